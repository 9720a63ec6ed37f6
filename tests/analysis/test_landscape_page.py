"""Landscapes as pictures, in words, and as a page."""

import dataclasses
import itertools
import re

import numpy as np
import pytest

from a2ls.analysis.landscape._figures import landscape_figure
from a2ls.analysis.landscape._landscape import LandscapeSettings, LossScale
from a2ls.analysis.landscape._page import landscape_caption, landscape_page
from helpers.landscapes import BOWL, STEEP, made_up


@pytest.mark.parametrize("count", [1, 2, 5])
@pytest.mark.parametrize("choice", ["linear", "log"])
def test_pictures_share_their_axes_and_colours(count, choice):
    landscapes = [BOWL, STEEP, BOWL, STEEP, BOWL][:count]
    scale = LossScale.shared(landscapes, choice)
    figure = landscape_figure(landscapes, scale, columns=2)
    layout = figure.layout
    surfaces = [trace for trace in figure.data if trace.type == "surface"]
    maps = [trace for trace in figure.data if trace.type == "contour"]
    assert len(surfaces) == len(maps) == count
    for landscape, surface, heat_map in zip(landscapes, surfaces, maps, strict=True):
        expected = np.log10(landscape.losses) if choice == "log" else landscape.losses
        for trace in (surface, heat_map):
            np.testing.assert_allclose(np.array(trace.z), expected)
            np.testing.assert_array_equal(trace.x, landscape.positions)
            assert trace.coloraxis == "coloraxis"
            # Whatever the scale, the label under the pointer has the loss itself.
            assert trace.text[0][8] == f"1.00, -1.00<br>loss {landscape.losses[0, 8]:.4g}"
    contours = {(trace.contours.start, trace.contours.end, trace.contours.size) for trace in maps}
    assert len(contours) == 1
    assert (layout.coloraxis.cmin, layout.coloraxis.cmax) == pytest.approx(scale.limits)
    scenes = [layout[f"scene{i or ''}"] for i in [None, *range(2, count + 1)]]
    assert len({surface.scene for surface in surfaces}) == count
    for scene in scenes:
        assert scene.zaxis.range == pytest.approx(scale.limits)
        assert (scene.xaxis.range, scene.yaxis.range) == ((-1, 1), (-1, 1))
        assert scene.camera == scenes[0].camera
    assert len({(trace.xaxis, trace.yaxis) for trace in maps}) == count
    for trace in maps:
        across, along = layout[trace.xaxis.replace("x", "xaxis")], layout[trace.yaxis.replace("y", "yaxis")]
        # All others follow the first.
        assert (across.matches, along.matches) == ((None, None) if trace is maps[0] else ("x", "y"))
        assert across.range == along.range == (-1, 1)
    assert layout.autosize
    assert layout.width is None
    # What a theme decides is left to it.
    assert layout.paper_bgcolor is layout.plot_bgcolor is layout.font.color is None
    assert layout.template.layout.paper_bgcolor == "rgba(0,0,0,0)"
    assert [heading.text for heading in layout.annotations][:1] == ["<b>a &lt;bowl&gt; &amp; more</b>"]


def rectangles(places, count):
    """Where each picture is, as (left, right, bottom, top): the surfaces, and the heat maps."""
    numbers = ["", *range(2, count + 1)]
    surfaces = [places[f"scene{number}"]["domain"] for number in numbers]
    return (
        [(*domain["x"], *domain["y"]) for domain in surfaces],
        [(*places[f"xaxis{number}.domain"], *places[f"yaxis{number}.domain"]) for number in numbers],
    )


def apart(one, other):
    return one[1] <= other[0] or other[1] <= one[0] or one[3] <= other[2] or other[3] <= one[2]


@pytest.mark.parametrize("columns", [1, 2, 3, 4, 9])
@pytest.mark.parametrize("count", [1, 2, 3, 4, 7])
def test_no_picture_covers_another_or_leaves_the_figure(count, columns):
    landscapes = [BOWL] * count
    meta = landscape_figure(landscapes, LossScale.shared(landscapes), columns).layout.meta
    for places in (meta["wide"], meta["narrow"]):
        all_of_them = [place for kind in rectangles(places, count) for place in kind]
        assert len(all_of_them) == 2 * count
        for left, right, bottom, top in all_of_them:
            assert 0 <= left < right <= 1
            assert 0 <= bottom < top < 1
        assert all(apart(*pair) for pair in itertools.combinations(all_of_them, 2))


def test_a_screen_has_rows_of_pictures_and_a_phone_has_one_column():
    landscapes = [BOWL, STEEP, BOWL, STEEP, BOWL]
    figure = landscape_figure(landscapes, LossScale.shared(landscapes), columns=3)
    meta = figure.layout.meta
    surfaces, maps = rectangles(meta["wide"], 5)
    assert [surface[:2] for surface in surfaces] == [heat_map[:2] for heat_map in maps]
    assert len({surface[0] for surface in surfaces}) == 3
    assert surfaces[0][2:] == surfaces[2][2:]
    assert maps[0][2] > surfaces[3][3] > maps[3][3]
    assert {picture[:2] for kind in rectangles(meta["narrow"], 5) for picture in kind} == {(0, 1)}
    assert meta["narrow"]["height"] > meta["wide"]["height"]
    # As it is drawn at first.
    assert figure.layout.height == meta["wide"]["height"]
    assert figure.layout.scene4.domain.x == surfaces[3][:2]
    # Three are too small for labels of their own, a single column is not.
    assert not figure.layout.scene.xaxis.showticklabels
    assert meta["narrow"]["scene5"]["zaxis"]["showticklabels"]
    assert meta["narrow"]["scene5"]["xaxis"]["title"]["text"] == "1st"


def test_a_single_heat_map_is_beside_its_surface_where_there_is_room():
    meta = landscape_figure([BOWL], LossScale.shared([BOWL]), columns=4).layout.meta
    (surface,), (heat_map,) = rectangles(meta["wide"], 1)
    assert surface[1] == heat_map[0]
    assert surface[2] == heat_map[2]
    (surface,), (heat_map,) = rectangles(meta["narrow"], 1)
    assert surface[2] > heat_map[3]


def test_long_labels_are_broken_into_lines_that_fit():
    long = dataclasses.replace(BOWL, label="s10 a10 r10 " * 12)
    landscapes = [long, BOWL, BOWL, BOWL]
    meta = landscape_figure(landscapes, LossScale.shared(landscapes), columns=4).layout.meta
    for places, characters in ((meta["wide"], 21), (meta["narrow"], 38)):
        lines = [re.sub("<.*?>", "", line) for line in places["annotations[0].text"].split("<br>")]
        assert " ".join(lines) == long.label.strip()
        assert max(map(len, lines)) <= characters


def test_losses_that_are_not_finite_are_holes():
    broken = made_up(lambda x, *_: np.inf if x > 0.9 else np.nan if x < -0.9 else 1 + x**2)
    figure = landscape_figure([broken], LossScale.shared([broken]), columns=1)
    for trace in figure.data:
        if trace.type in ("surface", "contour"):
            assert np.isnan(np.array(trace.z)[:, [0, -1]]).all()
    assert "NaN" not in landscape_page([broken], LandscapeSettings()).rpartition("const FIGURES")[2]


def test_the_caption_says_what_is_shared():
    settings = LandscapeSettings(batch_size=100, batches=20, seed=7)
    caption = landscape_caption([BOWL, STEEP], settings, LossScale.shared([BOWL, STEEP]))
    assert "(seed 7)" in caption
    assert "the same 2,000 transitions" in caption
    assert "the same draw of directions" in caption
    assert "logarithmic" in caption
    other = dataclasses.replace(STEEP, shapes=((3, 3),))
    caption = landscape_caption([BOWL, other], settings, LossScale.shared([BOWL, other], "linear"))
    assert "not all of the same shapes" in caption
    assert "the same draw" not in caption
    assert "logarithmic" not in caption
    alone = landscape_caption([BOWL], settings, LossScale.shared([BOWL]))
    assert "draw" not in alone
    assert "All pictures" in caption
    assert "All pictures" not in alone


def test_the_page_needs_no_other_file():
    page = landscape_page([BOWL, STEEP], LandscapeSettings())
    assert re.findall(r'<(?:script|link|img)[^>]+(?:src|href)="([^"]*)', page) == ["data:,"]
    assert "Plotly.newPlot" in page
    assert "filter-normalised" in page


def test_the_page_has_the_figures_of_every_landscape():
    quoted = dataclasses.replace(STEEP, label="`quoted`")
    page = landscape_page([BOWL, quoted], LandscapeSettings())
    numbers = "".join(f"<td class=number>{number}</td>" for number in (1, 1, 4))
    cells = re.sub(r' data-heading="[^"]*"', "", page)
    assert f"<td><code>a &lt;bowl&gt; &amp; more</code></td>{numbers}" in cells
    assert "<td><code>&#x27;quoted&#x27;</code></td>" in cells
    assert "Sharpness: how much larger" in page
