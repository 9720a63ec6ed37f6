"""The report and the dashboard in a real browser: nothing breaks, everything is drawn, and it fits a phone."""

import shutil
import threading

import pytest

from a2ls.analysis import make_dashboard
from a2ls.analysis.report import page_html, search_report
from a2ls.search import SearchConfig, SearchFolder
from instant_engine import InstantEngine
from made_up_search import made_up_search
from tiny_pendulum import PENDULUM

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]
PATIENCE = 120_000

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here: apt-get install chromium")


@pytest.fixture(scope="module")
def browser():
    playwright = pytest.importorskip("playwright.sync_api")
    with playwright.sync_playwright() as started:
        opened = started.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield opened
        opened.close()


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "report.html"
    path.write_text(page_html(search_report(made_up_search(8, 3))), encoding="utf-8")
    return path.as_uri()


@pytest.fixture
def visit(browser):
    """Opens an address; what the page complains of is collected in `complaints`, what it asks of the network too."""
    contexts = []

    def open_page(address, *, width=1440, theme="light"):
        context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=theme)
        contexts.append(context)
        page = context.new_page()
        page.complaints, page.requests = [], []
        page.on("console", lambda said: page.complaints.append(said.text) if said.type == "error" else None)
        page.on("pageerror", lambda error: page.complaints.append(str(error)))
        page.on("request", lambda request: page.requests.append(request.url))
        page.goto(address, timeout=PATIENCE)
        return page

    yield open_page
    for context in contexts:
        context.close()


def drawn(page):
    page.wait_for_function("document.documentElement.dataset.drawn", timeout=PATIENCE)
    return page


@pytest.mark.parametrize("width", [390, 1440])
def test_the_report_is_whole_and_never_wider_than_the_screen(visit, report, width):
    page = drawn(visit(report, width=width))
    figures = page.locator(".figure")
    assert figures.count() >= 7
    assert page.locator(".figure .main-svg").count() >= figures.count()
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    boxes = [figures.nth(i).bounding_box() for i in range(figures.count())]
    assert all(box["width"] <= width and box["height"] > 100 for box in boxes)
    assert page.complaints == []
    assert [url for url in page.requests if not url.startswith(("file:", "data:", "blob:"))] == []


def test_pointing_at_a_candidate_shows_its_loss(visit, report):
    page = drawn(visit(report))
    figure = page.locator("#evolution .figure")
    figure.scroll_into_view_if_needed()
    point = page.evaluate(
        """() => {
          const graph = document.querySelector("#evolution .figure");
          const dots = graph._fullData.findIndex(trace => (trace.mode || "").includes("markers") && trace.x.length > 1);
          const trace = graph._fullData[dots], place = graph.getBoundingClientRect(), size = graph._fullLayout._size;
          return [place.left + size.l + graph._fullLayout.xaxis.d2p(trace.x[0]),
                  place.top + size.t + graph._fullLayout.yaxis.d2p(trace.y[0])];
        }"""
    )
    page.mouse.move(point[0] - 3, point[1])
    page.mouse.move(*point)
    label = page.locator("#evolution .hoverlayer .hovertext").first
    label.wait_for(timeout=PATIENCE)
    assert "->" in label.text_content()


def test_the_theme_follows_the_system_and_can_be_switched(visit, report):
    page = drawn(visit(report, theme="dark"))

    def colours():
        return page.evaluate(
            """() => [getComputedStyle(document.body).backgroundColor,
                      getComputedStyle(document.querySelector(".figure .xtick text")).fill]"""
        )

    dark = colours()
    page.locator("#theme").click()
    page.wait_for_function("document.documentElement.dataset.theme === 'light'")
    light = colours()
    assert light[0] == "rgb(255, 255, 255)"
    assert dark[0] != light[0]
    assert dark[1] != light[1]
    page.locator("#theme").click()
    assert colours() == dark
    assert page.complaints == []


def test_an_unfinished_and_an_empty_search_have_reports(visit, tmp_path):
    for ended in (5, 0):
        path = tmp_path / f"{ended}.html"
        path.write_text(page_html(search_report(made_up_search(4, 2, ended=ended))), encoding="utf-8")
        page = drawn(visit(path.as_uri(), width=390))
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
        assert page.complaints == []


def test_the_dashboard_shows_the_evolution(visit, tmp_path):
    folder = SearchFolder.create(tmp_path / "live", SearchConfig(PENDULUM, population=4, stages=2))
    folder.run(InstantEngine())
    server = make_dashboard(tmp_path / "live", "127.0.0.1", 0)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        study = folder.study()._study_id
        page = visit(f"http://127.0.0.1:{server.server_port}/dashboard/studies/{study}")
        page.get_by_text("Every candidate, stage by stage").first.wait_for(timeout=PATIENCE)
        assert page.complaints == []
        local = f"http://127.0.0.1:{server.server_port}/"
        assert [url for url in page.requests if not url.startswith((local, "data:", "blob:"))] == []
    finally:
        server.shutdown()
        server.server_close()
