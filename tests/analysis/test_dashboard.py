"""What the server of the dashboard answers, and that nothing is written by looking."""

import http.client
import json
import socket
import threading
import urllib.request

import optuna
import pytest

from a2ls._errors import BadInput
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
def server(folder):
    server = make_dashboard(folder.path, "127.0.0.1", 0)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module")
def ask(server):
    """Asks the server for an address below it."""

    def answer(path, **headers):
        request = urllib.request.Request(f"http://127.0.0.1:{server.server_port}{path}", headers=headers)
        with urllib.request.urlopen(request, timeout=60) as got:
            return got.headers, got.read().decode()

    return answer


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


@pytest.fixture
def send(server):
    """Sends a request as it is, and returns the status and the answer."""

    def answer(method, path, host, body=None, **headers):
        connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=60)
        connection.putrequest(method, path, skip_host=True)
        for name, value in {"Host": host, "Content-Length": str(len(body or "")), **headers}.items():
            if value is not None:
                connection.putheader(name.replace("_", "-"), value.format(port=server.server_port))
        connection.endheaders((body or "").encode())
        got = connection.getresponse()
        status, text = got.status, got.read().decode()
        connection.close()
        return status, text

    return answer


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1:{port}", 200),
        ("localhost:{port}", 200),
        ("LocalHost.", 200),
        ("[::1]:{port}", 200),
        ("localhost:9999", 200),  # Through a tunnel.
        ("rebound.example:{port}", 403),
        ("localhost.rebound.example", 403),
        ("rebound.example@localhost", 403),
        ("192.168.0.7:{port}", 403),
        ("localhost, rebound.example", 403),
        ("", 403),
        (None, 403),
    ],
)
def test_only_requests_for_this_host_are_answered(send, host, status):
    answered, text = send("GET", "/api/studies", host)
    assert answered == status
    assert ("study_summaries" in text) == (status == 200)
    if status == 403:
        assert text.startswith("The dashboard answers no request for another host: open it as http://localhost:")


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "http://localhost:1"}, 403),
        ({"Sec_Fetch_Site": "cross-site"}, 403),
        ({"Sec_Fetch_Site": "same-site"}, 403),
        ({"Origin": "http://localhost:{port}", "Sec_Fetch_Site": "same-origin"}, 201),
        ({}, 201),  # No browser.
    ],
)
def test_only_pages_of_the_dashboard_change_anything(send, folder, headers, status):
    names = set(optuna.get_all_study_names(folder.study()._storage))
    made = json.dumps({"study_name": f"made {headers}", "directions": ["maximize"]})
    answered, text = send("POST", "/api/studies", "localhost:{port}", made, Content_Type="application/json", **headers)
    assert answered == status
    assert (set(optuna.get_all_study_names(folder.study()._storage)) != names) == (status == 201)
    if status == 403:
        assert text.startswith("The dashboard lets only its own pages change anything")
        study = folder.study()._study_id
        assert send("DELETE", f"/api/studies/{study}", "localhost:{port}", **headers)[0] == 403
        assert len(folder.candidates()) == 8


@pytest.mark.parametrize("host", ["\udcff", "x" * 300, "\u202e"], ids=ascii)
def test_an_address_that_cannot_be_is_refused(folder, host):
    with pytest.raises(BadInput, match="cannot listen on"):
        make_dashboard(folder.path, host, 0)


def test_who_listens_everywhere_is_reached_by_numbers_and_the_name_of_the_machine(folder):
    server = make_dashboard(folder.path, "0.0.0.0", 0)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        for host, status in (("10.1.2.3:80", 200), (socket.gethostname(), 200), ("rebound.example", 403)):
            connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=60)
            connection.request("GET", "/api/meta", headers={"Host": host})
            assert connection.getresponse().status == status
            connection.close()
    finally:
        server.shutdown()
        server.server_close()
