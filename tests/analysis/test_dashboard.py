"""What the server of the dashboard answers, and that nothing is written by looking."""

import json
import threading
import urllib.request

import pytest

from a2ls.analysis import make_dashboard
from a2ls.search import SearchConfig, SearchFolder
from helpers.engines import InstantEngine
from helpers.trainings import PENDULUM


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    config = SearchConfig(PENDULUM, population_size=4, stages=2, baselines=("sac",), baseline_seeds=2)
    folder = SearchFolder.create(tmp_path_factory.mktemp("dashboard") / "live", config)
    folder.run(InstantEngine())
    return folder


@pytest.fixture(scope="module")
def ask(folder):
    """Asks the server for an address below it."""
    server = make_dashboard(folder.path, "127.0.0.1", 0)
    threading.Thread(target=server.serve_forever, daemon=True).start()

    def answer(path, **headers):
        request = urllib.request.Request(f"http://127.0.0.1:{server.server_port}{path}", headers=headers)
        with urllib.request.urlopen(request, timeout=60) as got:
            return got.headers, got.read().decode()

    yield answer
    server.shutdown()
    server.server_close()


def test_the_page_has_a_style_and_is_whole_also_for_who_has_an_older_one(ask):
    headers, page = ask("/dashboard/studies/1", **{"If-Modified-Since": "Fri, 01 Jan 2100 00:00:00 GMT"})
    assert page.count("</style></head>") == 1
    assert int(headers["Content-Length"]) == len(page.encode())
    assert "script-src" in headers["Content-Security-Policy"]
    assert "bundle.js" in page
    assert len(ask("/static/bundle.js")[1]) > 1_000_000


def test_importances_are_not_computed_and_the_objective_is_the_aulc(ask, folder):
    study = folder.study()._study_id
    assert json.loads(ask(f"/api/studies/{study}/param_importances")[1]) == {"param_importances": []}
    detail = json.loads(ask(f"/api/studies/{study}")[1])
    assert detail["objective_names"] == ["AULC"]
    (plot,) = detail["plotly_graph_objects"]
    assert json.loads(plot["graph_object"])["layout"]["paper_bgcolor"] == "#ffffff"
    assert ask(f"/csv/{study}")[1].startswith("Number,State,AULC,")
    stored = folder.study()._storage.get_study_system_attrs(study)
    assert not [name for name in stored if name.startswith(("dashboard", "study:metric"))]
