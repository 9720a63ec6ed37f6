"""Whom a web server on this machine answers: those who asked for it by its own name, and only its own pages to change.

A page of anybody can send requests to this machine. Under a name of its own that points here (DNS rebinding) it could
even read the answers, so a request must name this server as its host. And what changes something must come from a page
of this server, or from no browser at all.
"""

from __future__ import annotations

import ipaddress
import re
import socket
from collections.abc import Iterable
from urllib.parse import urlsplit
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

LOOPBACK = ("localhost", "127.0.0.1", "::1")
_ANY_ADDRESS = ("", "0.0.0.0", "::")
_READING = ("GET", "HEAD", "OPTIONS")
# A name or an address, and a port: any, since a tunnel may lead to this one.
_HOST = re.compile(r"(?:\[(?P<address>[0-9a-f:.]+)\]|(?P<name>[^\s:@/\[\]]+))(?::[0-9]+)?", re.IGNORECASE)


def only_own_requests(app: WSGIApplication, host: str) -> WSGIApplication:
    """The same application, which refuses all others with a sentence and the status 403.

    Args:
        app: What to protect.
        host: The address that the server listens on.
    """

    def answer(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        refusal = _refusal(environ, host)
        if refusal is None:
            return app(environ, start_response)
        headers = [("Content-Type", "text/plain; charset=utf-8"), ("Content-Length", str(len(refusal)))]
        start_response("403 Forbidden", [*headers, ("X-Content-Type-Options", "nosniff")])
        return [refusal]

    return answer


def _refusal(environ: WSGIEnvironment, host: str) -> bytes | None:
    asked = environ.get("HTTP_HOST", "")
    if not _is_own(asked, host):
        own = f"http://{LOOPBACK[0]}:{environ['SERVER_PORT']}"
        return f"The dashboard answers no request for another host: open it as {own} on its machine.\n".encode()
    if environ["REQUEST_METHOD"] in _READING:
        return None
    origin, site = environ.get("HTTP_ORIGIN"), environ.get("HTTP_SEC_FETCH_SITE")
    is_from_here = origin is None or urlsplit(origin).netloc.lower() == asked.lower()
    if is_from_here and site in (None, "same-origin", "none"):
        return None
    return b"The dashboard lets only its own pages change anything, and this request is of another one.\n"


def _is_own(asked: str, host: str) -> bool:
    """Whether the host that a request names is this server."""
    match = _HOST.fullmatch(asked)
    if match is None:
        return False
    name = (match["address"] or match["name"]).lower().rstrip(".")
    if name in (*LOOPBACK, host.lower()):
        return True
    # Who listens everywhere is reached by many names. A number is safe: what points elsewhere is always a word.
    return host in _ANY_ADDRESS and (_is_address(name) or name in _machine_names())


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _machine_names() -> tuple[str, str]:
    return socket.gethostname().lower(), socket.getfqdn().lower()
