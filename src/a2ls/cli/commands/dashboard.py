"""`a2ls dashboard`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from a2ls._errors import require
from a2ls.analysis import make_dashboard
from a2ls.cli._options import parse
from a2ls.cli.views.text import Screen, say, warn

_LOOPBACK = "127.0.0.1"
_HIGHEST_PORT = 65_535


@dataclass(frozen=True)
class Arguments:
    """Look at a search in the browser while it runs.

    It is Optuna's dashboard, with the evolution among its plots. The page can only be reached from this machine, unless
    --host says otherwise. Whoever can reach it can also change and delete the search. Ctrl-C ends the dashboard, and
    never the search. Some lines to start from:

        a2ls dashboard runs/my-search
        a2ls dashboard runs/my-search --port 9000
    """

    folder: Annotated[Path, tyro.conf.Positional]
    """A folder that `a2ls search` wrote."""

    port: int = 8080
    """The port; 0 for any that is free."""

    host: str = _LOOPBACK
    """The address to listen on. 0.0.0.0 lets everybody in the network reach the search."""


def run(arguments: Sequence[str]) -> None:
    """Run the command."""
    chosen = parse(Arguments, "a2ls dashboard", arguments)
    require(chosen, ("port",), lambda value: 0 <= value <= _HIGHEST_PORT, f"be from 0 to {_HIGHEST_PORT}")
    console = Screen()
    server = make_dashboard(chosen.folder, chosen.host, chosen.port)
    if chosen.host != _LOOPBACK:
        warn(console, f"everybody who reaches {chosen.host} can change and delete the search")
    say(console, f"http://{chosen.host}:{server.server_port}/dashboard/  (Ctrl-C ends it)")
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        say(console, "ended; the search goes on by itself, if it was running")
    finally:
        server.server_close()
