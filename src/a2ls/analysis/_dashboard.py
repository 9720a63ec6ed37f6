"""Optuna's dashboard on the storage of a search, with the evolution among its plots."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from socketserver import ThreadingMixIn
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from optuna.study._frozen import FrozenStudy

from a2ls._errors import BadInput
from a2ls.analysis._dataset import read_dataset
from a2ls.search import SearchFolder

# Where the dashboard looks for plots among the attributes of a study: this, a name, and the number of a piece.
_PLOT = "dashboard:plot_data:evolution:0"
# Reading all candidates takes longer than the dashboard waits between two questions.
_FRESH_SECONDS = 10.0


class Dashboard(ThreadingMixIn, WSGIServer):
    """A web server that answers several requests at once, and ends without waiting for them."""

    daemon_threads = True


def make_dashboard(path: Path, host: str, port: int) -> Dashboard:
    """A server of the dashboard for the search in a folder; call `serve_forever` on it.

    Nothing is written to the storage by looking: the evolution is drawn anew whenever it is asked for.

    Args:
        path: The folder of a search, which may be running.
        host: The address to listen on; 127.0.0.1 can only be reached from this machine.
        port: The port; 0 for any that is free.

    Raises:
        BadInput: If there is no search, the dashboard is not installed, or the address cannot be used.
    """
    try:
        from optuna_dashboard import wsgi  # noqa: PLC0415 (an extra)
    except ImportError as error:
        raise BadInput("the dashboard needs the extra 'analysis': pip install 'a2ls[analysis]'") from error
    study = SearchFolder.open(path).study()
    storage: Any = study._storage
    stored_studies = storage.get_all_studies
    drawn = _remembered(lambda: _evolution_json(path))

    def with_evolution() -> list[FrozenStudy]:
        studies: list[FrozenStudy] = stored_studies()
        for each in studies:
            figure = drawn() if each._study_id == study._study_id else None
            if figure is not None:
                each.system_attrs = {**each.system_attrs, _PLOT: figure}
        return studies

    storage.get_all_studies = with_evolution
    try:
        return make_server(host, port, wsgi(storage), server_class=Dashboard, handler_class=_Quiet)
    except OSError as error:
        raise BadInput(f"cannot listen on {host}, port {port}: {error.strerror}; give another --port") from error


def _evolution_json(path: Path) -> str | None:
    from a2ls.analysis.figures._evolution import draw_evolution, evolution  # noqa: PLC0415 (slow to import)

    data = evolution(read_dataset(path))
    return None if data is None else str(draw_evolution(data).to_json())


def _remembered(make: Callable[[], str | None]) -> Callable[[], str | None]:
    """What `make` returned, if that was moments ago; made anew otherwise."""
    made: list[tuple[float, str | None]] = []

    def value() -> str | None:
        if not made or time.monotonic() - made[-1][0] > _FRESH_SECONDS:
            made[:] = [(time.monotonic(), make())]
        return made[-1][1]

    return value


class _Quiet(WSGIRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 (the name of the base class)
        """Say nothing: the dashboard asks every few seconds."""
