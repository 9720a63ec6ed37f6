"""All pages in a real browser: nothing breaks, everything is drawn, and it fits a phone."""

import shutil
import threading
from dataclasses import replace

import pytest

from a2ls.analysis import LandscapeSettings, comparison_page, landscape_page, make_dashboard
from a2ls.analysis.report import page_html, search_report
from a2ls.search import SearchConfig, SearchFolder
from helpers.comparisons import LONG, benchmark, quick, random_scores
from helpers.engines import InstantEngine
from helpers.landscapes import BOWL, STEEP
from helpers.searches import made_up_search
from helpers.trainings import PENDULUM

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    # Surfaces are drawn with WebGL, here without a graphics card.
    "--enable-unsafe-swiftshader",
    "--disable-background-networking",
    "--disable-component-update",
]
PATIENCE = 120_000
PHONE = {"width": 390, "has_touch": True, "is_mobile": True}

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
    return written(tmp_path_factory.mktemp("report"), page_html(search_report(made_up_search(8, 3))))


@pytest.fixture(scope="module")
def comparison(tmp_path_factory):
    scores = random_scores(["sac", "curl", "spr", LONG], ["cheetah-run", "walker-run"], 3)
    return written(tmp_path_factory.mktemp("comparison"), comparison_page(quick(benchmark(scores))))


@pytest.fixture(scope="module")
def landscape(tmp_path_factory):
    return written(tmp_path_factory.mktemp("landscape"), landscape_page([BOWL, STEEP, BOWL], LandscapeSettings()))


def written(folder, page):
    path = folder / "page.html"
    path.write_text(page, encoding="utf-8")
    return path.as_uri()


@pytest.fixture(params=["report", "comparison", "landscape"])
def any_page(request):
    return request.getfixturevalue(request.param)


@pytest.fixture
def visit(browser):
    """Opens an address; what the page complains of is collected in `complaints`, what it asks of the network too."""
    contexts = []

    def open_page(address, *, width=1440, theme="light", **device):
        screen = {"viewport": {"width": width, "height": 900}, "color_scheme": theme}
        # Where the page scrolls at once, a place that was looked up stays where it is.
        context = browser.new_context(**screen, reduced_motion="reduce", **device)
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


def fits(page):
    return page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")


@pytest.mark.parametrize("width", [390, 1440])
@pytest.mark.parametrize(("name", "at_least"), [("report", 7), ("comparison", 8), ("landscape", 1)])
def test_a_page_is_whole_and_never_wider_than_the_screen(request, visit, name, at_least, width):
    page = drawn(visit(request.getfixturevalue(name), width=width))
    figures = page.locator(".figure")
    assert figures.count() >= at_least
    assert page.locator(".figure .main-svg").count() >= figures.count()
    assert fits(page)
    boxes = [figures.nth(i).bounding_box() for i in range(figures.count())]
    assert all(box["width"] <= width and box["height"] > 100 for box in boxes)
    assert page.complaints == []
    assert [url for url in page.requests if not url.startswith(("file:", "data:", "blob:"))] == []


@pytest.mark.parametrize(("name", "table", "losses"), [("comparison", "#methods", 3), ("report", "#best", 10)])
def test_no_column_is_cut_on_a_phone(request, visit, name, table, losses):
    page = drawn(visit(request.getfixturevalue(name), **PHONE))
    cut = page.evaluate(
        """() => [...document.querySelectorAll(".table, td, svg.loss")].filter(
             each => each.scrollWidth > each.clientWidth + 1 && each.tagName !== "svg"
                     || each.getBoundingClientRect().right > document.documentElement.clientWidth).length"""
    )
    assert cut == 0
    assert page.locator(f"{table} svg.loss").count() == losses
    arrows = """() => [...document.querySelectorAll("code .arrow")].map(each => each.getClientRects().length)"""
    assert set(page.evaluate(arrows)) == {1}
    assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    # The first figure begins on the second screen at the latest.
    assert page.locator(".figure").first.bounding_box()["y"] < 2 * page.viewport_size["height"]


# A comment in which a script begins has no end for a browser, and takes all figures with it.
HOSTILE = "<!--<script>`</script><img src=x onerror=alert(1)>"


def hostile_report():
    search = made_up_search(8, 3)
    bred = [replace(each, label=f"{each.label} {HOSTILE}", origin=HOSTILE) for each in search.candidates]
    return page_html(search_report(replace(search, name=HOSTILE, records=(*bred, *search.baselines))))


def hostile_comparison():
    trained = benchmark(random_scores(["sac", "curl", "spr"], ["cheetah-run"], 3))
    records = [each if each.is_baseline else replace(each, label=HOSTILE, loss=None) for each in trained.records]
    return comparison_page(quick(replace(trained, records=tuple(records))))


def hostile_landscape():
    return landscape_page([replace(BOWL, label=HOSTILE), STEEP], LandscapeSettings())


@pytest.mark.parametrize(("make", "at_least"), [(hostile_report, 7), (hostile_comparison, 5), (hostile_landscape, 1)])
def test_a_label_is_only_text_whatever_is_in_it(visit, tmp_path, make, at_least):
    page = drawn(visit(written(tmp_path, make())))
    assert page.locator(".figure .main-svg").count() >= page.locator(".figure").count() >= at_least
    assert "<!--<script>" in page.locator("main").inner_text()
    assert page.locator("img, main script").count() == 0
    assert page.complaints == []


def test_figures_follow_the_width_of_the_window(visit, any_page):
    page = drawn(visit(any_page, width=390))
    for width in (1200, 800, 320):
        page.set_viewport_size({"width": width, "height": 900})
        page.wait_for_function(
            """() => [...document.querySelectorAll(".figure")].every(
                 graph => Math.abs(graph._fullLayout.width - graph.clientWidth) < 2
                          && graph.clientHeight === graph.layout.meta[isNarrow() ? "narrow" : "wide"].height)""",
            timeout=PATIENCE,
        )
        assert fits(page)
    assert page.complaints == []


@pytest.mark.parametrize(("width", "side_by_side"), [(390, 1), (1440, 3)])
def test_landscapes_stand_side_by_side_where_there_is_room(visit, landscape, width, side_by_side):
    page = drawn(visit(landscape, width=width))
    assert page.locator(".figure .gl-container canvas").count() >= 3
    places = page.evaluate(
        """() => {
          const layout = document.querySelector(".figure")._fullLayout;
          return ["xaxis", "xaxis2", "xaxis3"].map(name => [layout[name]._offset, layout[name]._length]);
        }"""
    )
    assert len({round(offset) for offset, _ in places}) == side_by_side
    assert all(length > 150 for _, length in places)


def text_under_the_pointer(page, section, point):
    page.mouse.move(point[0] - 3, point[1])
    page.mouse.move(*point)
    label = page.locator(f"{section} .hoverlayer .hovertext").first
    label.wait_for(timeout=PATIENCE)
    return label.text_content()


def test_pointing_at_a_heat_map_shows_the_loss_there(visit, landscape):
    page = drawn(visit(landscape, width=390))
    page.locator("#pictures").scroll_into_view_if_needed()
    point = page.evaluate(
        """() => {
          const graph = document.querySelector(".figure"), {xaxis, yaxis} = graph._fullLayout;
          graph.scrollIntoView();
          const place = graph.getBoundingClientRect();
          return [place.left + xaxis._offset + xaxis.d2p(0.5), place.top + yaxis._offset + yaxis.d2p(-0.5)];
        }"""
    )
    assert "0.50, -0.50loss 1.75" in text_under_the_pointer(page, "#pictures", point)
    assert page.complaints == []


def test_pointing_at_a_candidate_shows_its_loss(visit, report):
    page = drawn(visit(report))
    assert "->" in text_under_the_pointer(page, "#evolution", place_of_a_candidate(page))


def place_of_a_candidate(page):
    page.locator("#evolution .figure").scroll_into_view_if_needed()
    return page.evaluate(
        """() => {
          const graph = document.querySelector("#evolution .figure");
          const dots = graph._fullData.findIndex(trace => (trace.mode || "").includes("markers") && trace.x.length > 1);
          const trace = graph._fullData[dots], place = graph.getBoundingClientRect(), size = graph._fullLayout._size;
          return [place.left + size.l + graph._fullLayout.xaxis.d2p(trace.x[0]),
                  place.top + size.t + graph._fullLayout.yaxis.d2p(trace.y[0])];
        }"""
    )


def swipe(page, point, *, right=0, down=0):
    """A finger that is set down at a point of the screen, moved and lifted."""
    finger = page.context.new_cdp_session(page)

    def touch(kind, *places):
        points = [{"x": x, "y": y} for x, y in places]
        finger.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

    touch("touchStart", point)
    for part in range(1, 11):
        touch("touchMove", (point[0] + right * part / 10, point[1] + down * part / 10))
    # A finger that has come to rest does not set the page going.
    page.wait_for_timeout(200)
    touch("touchEnd")
    finger.detach()


def views(page):
    """The ranges of all axes of all figures, and how the surfaces are turned."""
    return page.evaluate(
        """() => [...document.querySelectorAll(".figure")].map(({_fullLayout: layout}) => [
             Object.keys(layout).filter(name => /^[xy]axis/.test(name)).map(name => [...layout[name].range]),
             (layout._subplots.gl3d || []).map(name => layout[name]._scene.getCamera().eye)])"""
    )


def middles(page, selector):
    """The middle of each element on the page."""
    return page.evaluate(
        """selector => [...document.querySelectorAll(selector)].map(element => {
             const {left, top, width, height} = element.getBoundingClientRect();
             return [left + width / 2, top + window.scrollY + height / 2];
           })""",
        selector,
    )


def on_screen(page, point):
    """Where a point of the page is on the screen, once the page is scrolled so that it is in sight."""
    page.evaluate("top => window.scrollTo({top, behavior: 'instant'})", max(0, point[1] - 450))
    return point[0], point[1] - page.evaluate("window.scrollY")


def test_a_finger_scrolls_the_page_wherever_on_a_figure_it_starts(visit, any_page):
    page = drawn(visit(any_page, **PHONE))
    before = views(page)
    plots, surfaces = middles(page, ".figure .nsewdrag"), middles(page, ".figure .gl-container > div")
    axes = middles(page, ".figure .xaxislayer-above")
    assert len(plots) >= page.locator(".figure").count()
    for point in (*plots[:6], *surfaces[:2], *axes[:2]):
        place = on_screen(page, point)
        start = page.evaluate("window.scrollY")
        swipe(page, place, down=200)
        # Chromium keeps the first few pixels to tell a swipe from a tap.
        page.wait_for_function("start => start - window.scrollY > 150", arg=start, timeout=10_000)
    assert views(page) == before
    assert page.complaints == []


def test_a_tap_shows_a_candidate_also_after_scrolling(visit, report):
    page = drawn(visit(report, **PHONE))
    before = views(page)
    swipe(page, on_screen(page, middles(page, "#evolution .nsewdrag")[0]), down=200)
    point = place_of_a_candidate(page)
    label = page.locator("#evolution .hoverlayer .hovertext").first
    assert not label.is_visible()
    page.touchscreen.tap(*point)
    label.wait_for(timeout=PATIENCE)
    assert "->" in label.text_content()
    assert views(page) == before
    assert page.complaints == []


def test_two_taps_keep_the_first_view(visit, report):
    page = drawn(visit(report, **PHONE))
    point = place_of_a_candidate(page)
    ((stages, scores), _), *others = views(page)
    page.evaluate(
        "document.querySelector('#evolution .figure').on('plotly_doubleclick', () => { window.twice = true })"
    )
    page.touchscreen.tap(*point)
    page.touchscreen.tap(*point)
    page.wait_for_function("window.twice", timeout=10_000)
    page.wait_for_timeout(200)
    ((stages_now, scores_now), _), *others_now = views(page)
    assert stages_now == stages
    # Where the range follows from the data it is computed anew, with other roundings.
    assert scores_now == pytest.approx(scores, rel=1e-4)
    assert others_now == others


def test_a_finger_turns_a_surface_sideways_and_a_tap_tells_the_loss(visit, landscape):
    page = drawn(visit(landscape, **PHONE))
    (ranges, (turned, *others)), *_ = views(page)
    place = on_screen(page, middles(page, ".figure .gl-container > div")[0])
    page.touchscreen.tap(*place)
    label = page.locator(".figure .hovertext").first
    label.wait_for(timeout=PATIENCE)
    assert "loss" in label.text_content()
    start = page.evaluate("window.scrollY")
    swipe(page, place, right=100, down=10)
    (ranges_now, (turned_now, *others_now)), *_ = views(page)
    assert turned_now != turned
    assert (ranges_now, others_now) == (ranges, others)
    assert page.evaluate("window.scrollY") == start


def test_a_mouse_zooms_by_dragging(visit, report):
    page = drawn(visit(report))
    x, y = on_screen(page, middles(page, "#evolution .nsewdrag")[0])
    (((left, right), (low, high)), _), *others = views(page)
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + 100, y + 80, steps=4)
    page.mouse.up()
    zoomed = "high => document.querySelector('#evolution .figure')._fullLayout.yaxis.range[1] < high"
    page.wait_for_function(zoomed, arg=high, timeout=10_000)
    (((left_now, right_now), (low_now, high_now)), _), *others_now = views(page)
    assert left < left_now < right_now < right
    assert low < low_now < high_now < high
    assert others_now == others
    buttons = page.locator("#evolution .modebar-btn").evaluate_all("all => all.map(each => each.dataset.title)")
    assert "Zoom" in buttons
    assert not any("share" in title.lower() for title in buttons)


def test_the_theme_follows_the_system_and_can_be_switched(visit, any_page):
    page = drawn(visit(any_page, theme="dark"))

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


def test_surfaces_have_the_theme_of_the_page_and_stay_as_the_reader_turned_them(visit, landscape):
    page = drawn(visit(landscape, theme="light"))

    def scene(part):
        return page.evaluate(f"JSON.stringify(document.querySelector('.figure')._fullLayout.scene.{part})")

    light = scene("zaxis.gridcolor")
    page.evaluate("Plotly.relayout('figure-1', {'scene.camera.eye': {x: 0.5, y: -2, z: 1}})")
    turned = scene("camera.eye")
    page.locator("#theme").click()
    page.wait_for_function("document.documentElement.dataset.theme === 'dark'")
    assert scene("zaxis.gridcolor") != light
    assert scene("camera.eye") == turned


def test_an_unfinished_and_an_empty_search_have_reports(visit, tmp_path):
    for ended in (5, 0):
        page = drawn(visit(written(tmp_path, page_html(search_report(made_up_search(4, 2, ended=ended)))), width=390))
        assert fits(page)
        assert page.complaints == []


@pytest.fixture(scope="module")
def dashboard(tmp_path_factory):
    path = tmp_path_factory.mktemp("dashboard") / "live"
    folder = SearchFolder.create(path, SearchConfig(PENDULUM, population_size=4, stages=2))
    folder.run(InstantEngine())
    server = make_dashboard(path, "127.0.0.1", 0)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/dashboard/studies/{folder.study()._study_id}"
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize("width", [800, 1440])
def test_the_dashboard_shows_all_of_the_evolution_and_no_importances(visit, dashboard, width):
    page = visit(dashboard, width=width)
    page.get_by_text("Every candidate, stage by stage").first.wait_for(timeout=PATIENCE)
    drawn_in_card = page.evaluate(
        """() => {
          const svg = document.querySelector(".js-plotly-plot[id$=evolution] .main-svg");
          const [own, card] = [svg, svg.closest(".MuiCard-root")].map(element => element.getBoundingClientRect());
          return own.height > 450 && card.left < own.left && own.right < card.right && own.bottom < card.bottom;
        }"""
    )
    assert drawn_in_card
    page.get_by_text("Timeline").first.wait_for(timeout=PATIENCE)
    assert not page.get_by_text("Hyperparameter Importance").first.is_visible()
    assert page.get_by_text("AULC", exact=True).first.is_visible()
    assert page.get_by_text("Objective 0").count() == 0
    assert page.complaints == []
    local = dashboard.partition("/dashboard")[0]
    assert [url for url in page.requests if not url.startswith((local, "data:", "blob:"))] == []


def test_the_evolution_follows_the_theme_of_the_dashboard(visit, dashboard):
    for theme, other in (("light", "dark"), ("dark", "light")):
        page = visit(dashboard, theme=theme)
        plot = page.locator(".js-plotly-plot[id$=evolution]")
        plot.wait_for(timeout=PATIENCE)
        for now in (theme, other):
            # The background of the figure is white; the filter makes it dark.
            assert plot.evaluate("plot => getComputedStyle(plot).filter.startsWith('invert')") == (now == "dark")
            background = page.evaluate("getComputedStyle(document.body).backgroundColor")
            assert (background == "rgb(255, 255, 255)") == (now == "light")
            page.locator("[data-testid^=Brightness]").first.click()
            page.wait_for_function(
                "before => getComputedStyle(document.body).backgroundColor !== before", arg=background, timeout=PATIENCE
            )
