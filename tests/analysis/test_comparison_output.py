"""Comparisons as tables, mappings, figures and pages."""

import json
import re
from html import unescape

import numpy as np
import pytest

from a2ls.analysis import comparison_mapping, comparison_page, comparison_records
from a2ls.analysis.compare._figures import (
    COMPARISON_FIGURES,
    aggregate_figure,
    curve_figure,
    improvement_figure,
    method_styles,
    profile_figure,
)
from a2ls.analysis.report._loss_drawing import loss_svg
from helpers.comparisons import LONG, benchmark, by_label, quick, random_scores


@pytest.fixture(scope="module")
def comparison():
    scores = random_scores(["sac", "curl", "spr", LONG], ["cheetah-run", "walker-run"], 3)
    scores["curl"] = {env: own[:2] for env, own in scores["curl"].items()}
    return quick(benchmark(scores))


def test_every_number_is_in_the_table(comparison):
    records = comparison_records(comparison)
    first = by_label(comparison)["spr"]
    assert next(record for record in records if record["method"] == "spr") == {
        "method": "spr",
        "quantity": "iqm",
        "env": "",
        "at": None,
        "runs": 6,
        "value": first.iqm.value,
        "low": first.iqm.interval.low,
        "high": first.iqm.interval.high,
    }
    of_curl = [record for record in records if record["method"] == "curl"]
    assert all(record["low"] is None for record in of_curl)
    counts = {
        quantity: sum(record["quantity"] == quantity for record in of_curl) for quantity in ("mean", "profile", "sd")
    }
    assert counts == {"mean": 3, "profile": 101, "sd": 2}
    assert [record["runs"] for record in of_curl if record["quantity"] == "mean"] == [4, 2, 2]
    steps = [(record["env"], record["at"]) for record in of_curl if record["quantity"] == "curve iqm"]
    assert steps == [(env, step) for env in ("", "cheetah-run", "walker-run") for step in (4_000, 8_000)]


def test_the_mapping_is_json(comparison):
    mapping = json.loads(json.dumps(comparison_mapping(comparison, ["a note"]), allow_nan=False))
    assert mapping["notes"] == ["a note"]
    assert [each["label"] for each in mapping["methods"]] == [result.label for result in comparison.results]
    curl = next(each for each in mapping["methods"] if each["name"] == "curl")
    assert (curl["seeds"], curl["iqm"]["interval"], curl["profile"]["low"][0]) == ([0, 1], None, None)


def texts_of(figure):
    return json.dumps(figure.to_plotly_json(), default=list)


def test_interval_figures_show_the_estimates(comparison):
    figure = aggregate_figure(comparison)
    drawn = {trace.y[0]: trace for trace in figure.data}
    for result in comparison.results:
        trace = drawn[result.short]
        assert trace.x[0] == result.iqm.value
        if result.iqm.interval is None:
            assert trace.error_x.array is None
        else:
            assert trace.x[0] + trace.error_x.array[0] == pytest.approx(result.iqm.interval.high)
            assert trace.x[0] - trace.error_x.arrayminus[0] == pytest.approx(result.iqm.interval.low)
    # The best is on top.
    assert figure.layout.yaxis.categoryarray[-1] == comparison.results[0].short
    assert "better than one of sac" in texts_of(improvement_figure(comparison)).replace("<br>", " ")
    assert "sac" not in [trace.y[0] for trace in improvement_figure(comparison).data]


def test_bands_lie_around_their_lines(comparison):
    for figure in (profile_figure(comparison), curve_figure(comparison), curve_figure(comparison, "walker-run")):
        lines = [trace for trace in figure.data if trace.fill is None and trace.mode != "markers"]
        bands = {trace.legendgroup: trace for trace in figure.data if trace.fill == "toself"}
        assert len(lines) == 4
        # Two seeds have no interval.
        assert set(bands) == {line.legendgroup for line in lines} - {"curl"}
        for line in lines:
            if line.legendgroup in bands:
                assert list(bands[line.legendgroup].x) == [*line.x, *reversed(line.x)]
                outline = np.array(bands[line.legendgroup].y)
                high, low = outline[: len(line.y)], outline[len(line.y) :][::-1]
                assert (low <= np.array(line.y) + 1e-9).all()
                assert (np.array(line.y) <= high + 1e-9).all()
        assert len({(line.line.color, line.marker.symbol) for line in lines}) == 4


def test_every_run_is_a_mark_beside_its_line(comparison):
    marks = {
        trace.legendgroup: list(zip(trace.customdata, trace.x, trace.y, strict=True))
        for trace in curve_figure(comparison, "walker-run").data
        if trace.mode == "markers"
    }
    assert len(marks) == len(comparison.results)
    for result in comparison.results:
        records = result.environments["walker-run"].runs.records
        points = [(seed, each.step, each.score) for seed, own in records.items() for each in own.curve.points]
        assert marks[result.method.name] == points


def test_methods_with_settings_of_their_own_look_different_from_those_without():
    names = ["sac", "sac: hidden=512", "sac: actor_encoder=shared", "spr", "spr: hidden=512"]
    comparison = quick(benchmark(random_scores(names, ["walker-run"], 3)))
    styles = method_styles(comparison)
    assert len(set(styles.values())) == len(styles) == len(names)
    lines = {trace.name: (trace.line.color, trace.line.dash) for trace in profile_figure(comparison).data if trace.name}
    assert len(set(lines.values())) == len(names)


def test_a_colour_is_one_method_wherever_it_is_shown():
    names = ["sac", "curl", "spr", "atc", "a2-winner", "s0 a0 -> s1", "s0 a0 -> r0", "s0 -> s1", "s0 s1 -> a0", LONG]
    comparison = quick(benchmark(random_scores(names, ["cheetah-run", "walker-run"], 3)))
    colours = {name: style.colour for name, style in method_styles(comparison).items()}
    assert len(set(colours.values())) == len(colours) == len(names)
    by_short = {result.short: colours[result.method.name] for result in comparison.results}
    for figure in (figure for kind in COMPARISON_FIGURES for figure in kind.draw(comparison)):
        for trace in figure.data:
            if trace.legendgroup in colours and trace.fill is None:
                assert colours[trace.legendgroup] in (trace.line.color, trace.marker.color)
            elif trace.legendgroup is None:
                assert trace.marker.color == by_short[trace.y[0]]
    (table,) = (section for section in comparison_page(comparison).split("<section ") if 'id="methods"' in section)
    marked = re.findall(r'<span class="mark" style="color:(#\w+)">.</span>([^<]+)<', table)
    assert [(unescape(short), colour) for colour, short in marked] == [
        (result.short, by_short[result.short]) for result in comparison.results
    ]


def test_the_page_says_what_was_found_then_draws_it_and_shows_every_loss_as_its_grids():
    comparison = quick(benchmark(random_scores(["sac", "a2-winner", LONG], ["cheetah-run", "walker-run"], 3)))
    page = comparison_page(comparison)
    header, _, main = page.partition("<main>")
    assert header.partition("</h1>")[2].lstrip().startswith(f"<p>{comparison.verdict.sentence}</p>")
    assert main.index("figure-1") < main.index("<table>")
    sections = re.findall(r'<section id="([\w-]+)">', main)
    figures = [kind.key for kind in COMPARISON_FIGURES]
    assert sections == [figures[0], "methods", *figures[1:], "environments", "words"]
    for result in comparison.results:
        loss = result.method.loss
        assert main.count(loss_svg(loss) if loss else ">a baseline<") == 1
    assert main.count('<svg class="loss"') == 2


def test_the_page_stands_alone_and_shows_names_as_they_are():
    scores = random_scores(["sac", LONG], ["Evil</script><b>-v0", "walker-run"], 1)
    page = comparison_page(quick(benchmark(scores)), ["one <note>"])
    text, _, own = page.rpartition("<script>")
    assert "Evil&lt;/script&gt;&lt;b&gt;-v0" in text
    assert "one &lt;note&gt;" in text
    shown = LONG.replace("->", '<span class="arrow">-&gt;</span>')
    assert f"#1 is <code>{shown}</code>" in text
    assert page.count("<script>") == page.count("</script>") == 2
    assert "<script src" not in page
    assert "<link" not in page.replace('<link rel="icon" href="data:,">', "")
    assert "Evil</script>" not in own
    assert text.count('id="figure-') == own.count('"figure-')
