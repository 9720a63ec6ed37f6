"""Optuna's dashboard on the storage of a search, with the evolution among its plots and the words of a search."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from pathlib import Path
from socketserver import ThreadingMixIn
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from optuna.study._frozen import FrozenStudy

from a2ls._errors import BadInput
from a2ls._extras import extra
from a2ls._formatting import AULC, RELATIVE_AULC
from a2ls.analysis._dataset import read_dataset
from a2ls.analysis._own_requests import only_own_requests
from a2ls.search import SearchConfig, SearchFolder

# Where the dashboard looks for plots among the attributes of a study: this, a name, and the number of a piece.
_PLOT = "dashboard:plot_data:evolution:0"
# Where Optuna has the names of objectives.
_METRIC_NAMES = "study:metric_names"
# Reading all candidates takes longer than the dashboard waits between two questions.
_FRESH_SECONDS = 10.0


class Dashboard(ThreadingMixIn, WSGIServer):
    """A web server that answers several requests at once, and ends without waiting for them."""

    daemon_threads = True


def make_dashboard(path: str | Path, host: str, port: int) -> Dashboard:
    """A server of the dashboard for the search in a folder; call `serve_forever` on it.

    Nothing is written to the storage by looking: the evolution is drawn anew whenever it is asked for, and the name of
    the objective is added to what is read. Requests of other pages and for other hosts are refused.

    Args:
        path: The folder of a search, which may be running.
        host: The address to listen on; 127.0.0.1 can only be reached from this machine.
        port: The port; 0 for any that is free.

    Raises:
        BadInput: If there is no search, the dashboard is not installed, or the address cannot be used.
    """
    with extra("analysis", "the dashboard needs"):
        from optuna_dashboard import wsgi  # noqa: PLC0415
    search = SearchFolder.open(path)
    study = search.study()
    storage: Any = study._storage
    stored_studies, stored_attributes = storage.get_all_studies, storage.get_study_system_attrs
    names = {_METRIC_NAMES: [_objective(search.config)]}
    drawn = _remembered(lambda: _evolution_json(search.path))

    def with_evolution() -> list[FrozenStudy]:
        studies: list[FrozenStudy] = stored_studies()
        for each in studies:
            figure = drawn() if each._study_id == study._study_id else None
            each.system_attrs = {**each.system_attrs, **names, **({} if figure is None else {_PLOT: figure})}
        return studies

    storage.get_all_studies = with_evolution
    storage.get_study_system_attrs = lambda study_id: {**stored_attributes(study_id), **names}
    app = only_own_requests(_adapted(wsgi(storage)), host)
    try:
        host.encode("idna")  # As the server will do, which reports a name that cannot be one in many ways.
        return make_server(host, port, app, server_class=Dashboard, handler_class=_Quiet)
    except OSError as error:
        raise BadInput(f"cannot listen on {host}, port {port}: {error.strerror}; give another --port") from error
    except UnicodeError as error:
        raise BadInput(f"cannot listen on {host}: it is neither an address nor a name of a host") from error


def _objective(config: SearchConfig) -> str:
    """What the study is told of a candidate, in words."""
    unit = AULC if len(config.environments) == 1 else RELATIVE_AULC
    return f"estimated {unit.name}" if config.selection == "estimate" else unit.name


def _evolution_json(path: Path) -> str | None:
    from a2ls.analysis.figures import BACKGROUNDS, draw_evolution, evolution  # noqa: PLC0415 (slow to import)

    data = evolution(read_dataset(path))
    if data is None:
        return None
    # The dashboard does not tell figures its theme: on a background of their own they can be read on any.
    return str(draw_evolution(data).update_layout(paper_bgcolor=BACKGROUNDS["light"]).to_json())


def _remembered(make: Callable[[], str | None]) -> Callable[[], str | None]:
    """What `make` returned, if that was moments ago; made anew otherwise."""
    made: list[tuple[float, str | None]] = []

    def value() -> str | None:
        if not made or time.monotonic() - made[-1][0] > _FRESH_SECONDS:
            made[:] = [(time.monotonic(), make())]
        return made[-1][1]

    return value


# For the page of the dashboard, which has no settings for these. It draws a plot that is added to it in half of the
# width, and cuts it off after 450 pixels. Its theme is told by the picture on its button alone; the colours of a light
# figure, inverted and turned back to their hue, are those of a dark one. Where a later version has other names for
# these things, the page is as its authors made it, and the figure is a light one.
_STYLE = r"""
.MuiGrid-root:not(.MuiGrid-container):has(#graph-hyperparameter-importances) { display: none; }
.MuiGrid-root:not(.MuiGrid-container):has(#user-defined-plot\:evolution) {
  order: -1; flex-basis: 100%; max-width: 100%; padding: 16px 0 0 16px;
}
#user-defined-plot\:evolution { height: auto !important; }
body:has([data-testid="Brightness4Icon"]) #user-defined-plot\:evolution { filter: invert(0.9) hue-rotate(180deg); }
"""
# Where it asks for the importance of parameters. Those of a loss are its masks read as numbers: nothing follows from
# how the AULC depends on them, and computing it takes the time of a core.
_IMPORTANCES = "/param_importances"
_PAGES = "/dashboard"


def _adapted(app: WSGIApplication) -> WSGIApplication:
    """The dashboard with our style in its page, and without the importance of parameters."""

    def answer(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        path = environ["PATH_INFO"]
        if path.rstrip("/").endswith(_IMPORTANCES):
            start_response("200 OK", [("Content-Type", "application/json")])
            return [b'{"param_importances": []}']
        if environ["REQUEST_METHOD"] != "GET" or not path.startswith(_PAGES):
            return app(environ, start_response)
        # All of the page, also for a browser that has kept one: it may be that of another dashboard.
        asked = {name: value for name, value in environ.items() if not name.startswith(("HTTP_IF_", "HTTP_RANGE"))}
        begun: list[tuple[str, list[tuple[str, str]]]] = []

        def begin(status: str, headers: list[tuple[str, str]], *_: Any) -> Callable[[bytes], object]:
            begun.append((status, headers))
            # An older way to send a page, which the dashboard does not use.
            return bytearray().extend

        page = _whole(app(asked, begin))
        status, headers = begun[-1]
        page = page.replace(b"</head>", f"<style>{_STYLE}</style></head>".encode(), 1)
        changed = ("content-length", "etag", "last-modified")
        kept = [(name, value) for name, value in headers if name.lower() not in changed]
        start_response(status, [*kept, ("Content-Length", str(len(page)))])
        return [page]

    return answer


def _whole(pieces: Iterable[bytes]) -> bytes:
    try:
        return b"".join(pieces)
    finally:
        # Those that are read from a file.
        getattr(pieces, "close", lambda: None)()


class _Quiet(WSGIRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 (the name of the base class)
        """Say nothing: the dashboard asks every few seconds."""
