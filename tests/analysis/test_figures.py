"""What all figures have in common: one contract, strict JSON, phones, light and dark pages, many candidates."""

import dataclasses
import json
import random
import re
import time
from pathlib import Path

import pytest

from a2ls.analysis import figures as all_figures
from a2ls.analysis import read_dataset
from a2ls.analysis.figures import (
    BACKGROUNDS,
    FIGURES,
    ORIGIN_COLOURS,
    PRUNING,
    ancestry_tree,
    checkpoint_correlations,
    evolution,
    learning_curves,
    pattern_histograms,
    pruning_histogram,
    selections,
    survivor_masks,
    theme_layout,
)
from a2ls.analysis.figures import _style as style
from a2ls.space import Loss
from a2ls.training import baseline_names
from helpers.figures import strict
from helpers.searches import baseline, candidate, dataset, made_up_search

REAL = Path(__file__).parents[2] / "docs" / "results" / "cheetah-run-laptop"
DATA_OF = {
    "evolution": evolution,
    "curves": learning_curves,
    "ancestry": ancestry_tree,
    "masks": survivor_masks,
    "patterns": pattern_histograms,
    "selection": selections,
    "checkpoints": checkpoint_correlations,
}

SEARCHES = {
    "empty": dataset(),
    "running only": dataset(candidate(0, (), state="running"), candidate(1, (3.0,), state="running")),
    "failed without a score": dataset(candidate(0, (), state="failed")),
    "failed with a score": dataset(candidate(0, (1.0,), state="failed")),
    "baselines only": dataset(baseline("sac", 0, (1.0, 2.0)), candidate(0, (), state="running")),
    "single": dataset(candidate(0)),
    "pruned only": dataset(candidate(0, (1.0,), state="pruned")),
    "one evaluation": dataset(*(candidate(i, (float(i),)) for i in range(4))),
    "all the same": dataset(*(candidate(i) for i in range(5)), baseline("sac", 0, (1.0, 2.0, 3.0))),
    "negative scores": dataset(*(candidate(i, (-1500.0, -900.5 - i)) for i in range(5))),
    "unknown parents": dataset(candidate(7, stage=3, origin="replacement", parents=(2,))),
    "unknown origin": dataset(*(candidate(i, origin="sampler") for i in range(3))),
    "made up, one stage": made_up_search(12, 1),
    "made up, in the second stage": made_up_search(12, 3, ended=17),
    "made up": made_up_search(12, 4),
}
NOTHING_YET = {
    "empty": set(DATA_OF),
    "running only": set(DATA_OF),
    "failed without a score": set(DATA_OF),
    "failed with a score": set(DATA_OF) - {"masks"},
    "baselines only": set(DATA_OF) - {"curves"},
    "single": {"checkpoints"},
    "pruned only": set(DATA_OF) - {"evolution", "masks"},
    "unknown parents": {"checkpoints"},
}


@pytest.mark.parametrize("name", SEARCHES)
@pytest.mark.parametrize("kind", FIGURES, ids=lambda kind: kind.key)
def test_every_figure_of_every_search_is_strict_json_or_none(kind, name):
    data = DATA_OF[kind.key](SEARCHES[name])
    figure = kind.draw(SEARCHES[name])
    assert (figure is None) == (data is None) == (kind.key in NOTHING_YET.get(name, ()))
    if figure is None:
        return
    assert dataclasses.is_dataclass(data)
    with pytest.raises(dataclasses.FrozenInstanceError):
        data.env = "elsewhere"
    drawn = strict(figure)
    assert drawn["data"]
    _fits_a_phone(drawn["layout"])
    # What a theme decides is left to it.
    assert not {"paper_bgcolor", "plot_bgcolor", "font", "colorscale"} & set(drawn["layout"])


def _fits_a_phone(layout):
    assert layout["autosize"]
    assert "width" not in layout
    title = layout["title"]
    assert len(re.sub("<.*?>", "", title["text"])) <= 32
    assert max(map(len, title["subtitle"]["text"].split("<br>"))) <= 46
    assert title["subtitle"]["text"]
    for arrangement in ("wide", "narrow"):
        assert layout["meta"][arrangement]["height"] >= 100
    assert layout["height"] == layout["meta"]["wide"]["height"]
    assert min(_font_sizes(layout)) >= 12


def _font_sizes(value, name=""):
    if isinstance(value, dict):
        if "font" in name and "size" in value:
            yield value["size"]
        for key, each in value.items():
            yield from _font_sizes(each, key)
    elif isinstance(value, list):
        for each in value:
            yield from _font_sizes(each, name)


def test_a_benchmark_has_none_of_these_figures():
    rows = [baseline("sac", seed, (1.0, 2.0)) for seed in range(3)]
    benchmark = dataclasses.replace(dataset(*rows), kind="benchmark")
    assert [kind.draw(benchmark) for kind in FIGURES] == [None] * len(FIGURES)


@pytest.mark.parametrize("kind", FIGURES, ids=lambda kind: kind.key)
def test_the_real_search_can_be_drawn(kind):
    assert strict(kind.draw(read_dataset(REAL)))["data"]


def test_the_catalogue_has_every_figure_once_with_words_to_read_it_by():
    kinds = (*FIGURES, PRUNING)
    assert sorted(kind.key for kind in kinds) == sorted([*DATA_OF, "pruning"])
    for kind in kinds:
        assert kind.title
        assert kind.needs
        assert 1 <= len(re.findall(r"[.?](?: |$)", kind.caption)) <= 3
        assert "  " not in kind.caption
    assert len({kind.title for kind in kinds}) == len({kind.caption for kind in kinds}) == len(kinds)


def test_everything_public_exists_and_is_documented():
    for name in all_figures.__all__:
        thing = getattr(all_figures, name)
        assert thing.__doc__ or name in ("Figure", "Theme")  # Plotly's own, and a Literal


# Themes


def _luminance(colour):
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def _contrast(first, second):
    light, dark = sorted((_luminance(first), _luminance(second)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("theme", BACKGROUNDS)
def test_colours_stand_out_on_both_pages(theme):
    own = {
        *ORIGIN_COLOURS.values(),
        *(style.baseline_line(name)["color"] for name in baseline_names()),
        *style.METHOD_COLOURS,
    }
    assert min(_contrast(colour, BACKGROUNDS[theme]) for colour in own) >= 3
    template = theme_layout(theme)["template"]["layout"]
    assert _contrast(template["font"]["color"], BACKGROUNDS[theme]) > 7
    assert _contrast(template["hoverlabel"]["font"]["color"], template["hoverlabel"]["bgcolor"]) > 7


def test_a_theme_changes_nothing_but_the_template():
    figure = FIGURES[0].draw(SEARCHES["made up"])
    before = strict(figure)
    figure.update_layout(theme_layout("dark"))
    after = strict(figure)
    assert after["layout"].pop("template") != before["layout"].pop("template")
    assert after == before
    json.dumps(theme_layout("light"), allow_nan=False)


@pytest.mark.parametrize("theme", BACKGROUNDS)
def test_backgrounds_are_the_page_s_own(theme):
    template = theme_layout(theme)["template"]["layout"]
    assert template["paper_bgcolor"] == template["plot_bgcolor"] == "rgba(0,0,0,0)"


def test_baselines_and_origins_look_different_from_each_other():
    for agent in ("sac", "rainbow"):  # No figure has those of two agents.
        lines = [style.baseline_line(name) for name in baseline_names(agent)]
        assert len({(line["color"], line["dash"]) for line in lines}) == len(baseline_names(agent))
    marks = [(style.origin_colour(origin), style.origin_symbol(origin)) for origin in ORIGIN_COLOURS]
    assert len({symbol for _, symbol in marks}) == len(ORIGIN_COLOURS)
    assert len({colour for colour, _ in marks}) == len(ORIGIN_COLOURS) - 1  # The two priors have one.
    colours = {style.baseline_line(name)["color"] for name in baseline_names()}
    assert colours.isdisjoint(ORIGIN_COLOURS.values())


def test_texts_of_others_are_not_read_as_tags():
    assert style.escaped("<b>a & b</b>") == "&lt;b&gt;a &amp; b&lt;/b&gt;"
    assert style.wrapped("s0 a0 -> s1") == "s0 a0 -> s1"
    assert all(len(line) <= 38 for line in style.wrapped("s10 a10 r10 " * 30).split("<br>"))


# Many candidates


@pytest.fixture(scope="module")
def ten_thousand():
    """Losses as long as they get, so that their texts are, too."""
    rng = random.Random(0)
    elements = [f"{kind}{step}" for step in range(11) for kind in "sar"]
    losses = []
    for _ in range(200):
        source, target = ([each for each in elements if rng.random() < 0.7] for _ in range(2))
        losses.append(Loss.parse(f"{' '.join(['s0', *source])} -> {' '.join([*target, 's10'])}"))
    return dataset(
        *(
            candidate(
                i,
                [rng.gauss(100, 20) for _ in range(5)],
                loss=losses[i % 200],
                stage=i // 1000 + 1,
                origin="crossover" if i >= 1000 else "random",
                parents=(i - 1000, 1000 * (i // 1000 - 1) + (7 * i) % 1000) if i >= 1000 else (),
            )
            for i in range(10_000)
        ),
        baseline("sac", 0, (1.0, 2.0, 3.0, 4.0, 5.0)),
        operators=["all"],
    )


def test_ten_thousand_candidates_stay_fast_and_small(ten_thousand):
    start = time.process_time()
    data = [make(ten_thousand) for make in DATA_OF.values()]
    data.append(pruning_histogram(ten_thousand, ten_thousand))
    assert time.process_time() - start < 5
    assert None not in data
    figures = {kind.key: kind.draw(ten_thousand) for kind in FIGURES}
    assert sum(len(figure.to_json()) for figure in figures.values()) < 8_000_000
    assert {trace.type for trace in figures["evolution"].data} == {"scattergl"}
    assert sum(len(trace.x) for trace in figures["evolution"].data if trace.mode == "markers") == 10_000 + 1 + len(
        ten_thousand.baselines
    )
