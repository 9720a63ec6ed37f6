import json
import re
from dataclasses import replace

import pytest
from rich.console import Console

from a2ls._errors import Failure
from a2ls.analysis import ancestry, baseline_results, rank_candidates, stage_statistics, stages_table
from a2ls.cli import main
from a2ls.cli.views.candidates import candidates_table, stages_view
from a2ls.cli.views.curves import LabelledCurve, curves_side_by_side
from a2ls.envs import EnvironmentConfig
from a2ls.search import Budget, SearchConfig, SearchFolder, rank_losses
from a2ls.space import Loss
from a2ls.studies import Candidate, TrialRecord
from a2ls.training import Curve, CurvePoint, TrainConfig
from helpers.engines import InstantEngine, made_up_score
from helpers.searches import some_loss

TRAINING = TrainConfig(EnvironmentConfig("Pendulum-v1", action_repeat=2), steps=400, evaluations=2, learning_starts=20)
CONFIG = SearchConfig(TRAINING, population_size=4, stages=3, baselines=("sac", "curl"), baseline_seeds=2)


@pytest.fixture(scope="module")
def searched(tmp_path_factory):
    """A whole search, one candidate of which failed."""
    folder = SearchFolder.create(tmp_path_factory.mktemp("searches") / "search", CONFIG)

    def score(job):
        fails = job.key.number == 1 and "->" in job.label
        return RuntimeError("no [red]luck[/]") if fails else made_up_score(job)

    folder.run(InstantEngine(3, score=score))
    return folder


def curve(*scores):
    return Curve(tuple(CurvePoint(100 * (i + 1), (float(score),)) for i, score in enumerate(scores)))


def candidate(number, score=None, state="finished", *, stage=1, parents=(), text=None, **changes):
    loss = Loss.parse(some_loss(number) if text is None else text)
    points = curve() if score is None else curve(score)
    seconds = None if state == "running" else 61.0
    row = Candidate(
        number, str(loss), loss, "Pendulum-v1", 0, state, points, seconds, (), stage, "random", parents, None
    )
    return replace(row, **changes)


def baseline_row(number, name, seed, *scores, state="finished"):
    return TrialRecord(number, name, None, "Pendulum-v1", seed, state, curve(*scores), 50.0, ())


def ranked(rows, baselines=()):
    """What a search that selects by scores knows of these."""
    return rank_losses(CONFIG, rows, (), baselines)


def drawn(renderable, width=80):
    console = Console(width=width, force_terminal=False)
    with console.capture() as captured:
        console.print(renderable)
    return captured.get()


def test_finished_candidates_come_first_and_the_best_of_them_before_all():
    rows = [
        candidate(0, 99.0, "failed"),
        candidate(1, 50.0),
        candidate(2, 98.0, "pruned"),
        candidate(3, 60.0),
        candidate(4, None, "running"),
        candidate(5, float("nan"), "failed"),
        candidate(6, 60.0),
    ]
    assert [row.number for row in rank_candidates(rows, ranked(rows))] == [3, 6, 1, 2, 0, 5, 4]


def test_the_statistics_of_a_stage_are_those_of_its_finished_candidates():
    rows = [candidate(i, 10.0 * i) for i in range(7)]
    rows += [candidate(7, 900.0, "pruned"), candidate(8, None, "failed"), candidate(9, None, "running", stage=2)]
    first, second = stage_statistics(rows, ranked(rows))
    assert (first.average, first.top, first.best) == (30.0, 40.0, 60.0)
    assert first.counts == {"finished": 7, "pruned": 1, "failed": 1, "running": 0}
    assert (second.average, second.top, second.best) == (None, None, None)


def test_ancestry_follows_first_parents():
    rows = [candidate(0), candidate(3, parents=(0,)), candidate(5), candidate(12, parents=(3, 5))]
    assert [ancestry(row, rows) for row in rows] == ["0", "3 <- 0", "5", "12 <- 3+5 <- 0"]
    chain = [candidate(i, parents=(i - 1,) if i else ()) for i in range(30)]
    assert ancestry(chain[-1], chain).endswith(" <- 22 <- …")


def test_a_baseline_is_the_mean_of_its_finished_seeds():
    rows = [
        baseline_row(0, "sac", 0, 10, 20),
        baseline_row(1, "curl", 0, 1, 2),
        baseline_row(2, "sac", 1, 30, 40),
        baseline_row(3, "sac", 2, 500, state="running"),
    ]
    sac, curl = baseline_results(rows)
    assert (sac.name_with_seeds, sac.mean(), sac.spread()) == ("sac (mean of 2 seeds)", 25.0, "2 seeds: 15.0 to 35.0")
    assert [point.score for point in sac.curve.points] == [20.0, 30.0]
    assert (curl.name_with_seeds, curl.spread()) == ("curl (one seed)", "one seed")


def test_baselines_stand_where_they_rank():
    rows = [candidate(0, 50.0), candidate(1, 30.0), candidate(2, 99.0, "pruned")]
    results = baseline_results([baseline_row(0, "sac", 0, 40), baseline_row(1, "curl", 0, 60)])
    lines = drawn(candidates_table(rows, results, rows, ranked(rows))).splitlines()
    ranks = [line.split()[0] for line in lines[4:] if re.match(r" +\S+ +\d+\.\d", line)]
    assert ranks == ["»", "1", "»", "2", "-"]
    text = "\n".join(lines)
    assert "one seed; above 1 of 2 finished candidates" in text
    assert "pruned after step 100" in text


def test_bars_tell_scores_below_zero_apart():
    rows = [candidate(0, -100.0), candidate(1, -200.0), candidate(2, -300.0)]
    lines = [line for line in drawn(candidates_table(rows, [], rows, ranked(rows))).splitlines() if "s0 a0 -> " in line]
    assert [line.count("█") for line in lines] == [8, 4, 0]


@pytest.mark.parametrize("width", [80, 120])
def test_tables_fit_into_the_terminal_with_all_that_they_say(width):
    long = "s0 a0 r0 s1 a1 r1 s2 a2 r2 s3 a3 r3 s4 a4 r4 -> s5 a5 r5 s6 a6 r6 s7 a7 r7 s8 a8 r8"
    rows = [candidate(0, -1234.5, text=long), candidate(1, None, "failed", reasons=("it broke",))]
    names = ("sac", "sac-identity", "curl")
    results = baseline_results([baseline_row(i, name, i, *range(10)) for i, name in enumerate(names)])
    curves = [LabelledCurve(result.name_with_seeds, result.curve) for result in results] * 2
    table = drawn(candidates_table(rows, results, rows, ranked(rows)), width)
    stages = drawn(stages_view(stages_table(rows, results, ranked(rows))), width)
    for text in (table, stages, drawn(curves_side_by_side(curves, width), width)):
        assert max(map(len, text.splitlines())) <= width
        assert "…" not in text
        assert all(name in text for name in names)
    words = " ".join(table.split())
    assert "-1234.5" in words
    assert "failed: it broke" in words
    assert all(element in words for element in long.split())


LONG_NAMES = ("sac", "sac-identity", "s1 a1 a2 a3 -> r0 r1 s2 s3 | bilinear +neg", "quadruped-run-vector/stage5/5")


def stages_with_something_running(names, width):
    """The lines of the heading, of the stages and of the baselines, of a search with candidates in all states."""
    rows = [candidate(i, -1234.5 + 10 * i, stage=1 + i // 6) for i in range(12)]
    rows += [candidate(12, 1.0, "pruned", stage=3), candidate(13, None, "failed", stage=3)]
    rows += [candidate(14, None, "running", stage=3)]
    trained = [(name, seed) for name in names for seed in range(3)]
    results = baseline_results([baseline_row(i, name, seed, -1000 - i) for i, (name, seed) in enumerate(trained)])
    lines = [
        line.rstrip() for line in drawn(stages_view(stages_table(rows, results, ranked(rows))), width).splitlines()
    ]
    assert max(map(len, lines)) <= width
    assert not any("…" in line for line in lines)
    rule = next(i for i, line in enumerate(lines) if "──" in line)
    end = lines.index("", rule)
    return lines[rule - 1], lines[rule + 1 : end], lines[end + 1 : -1]


@pytest.mark.parametrize("width", [60, 66, 72, 80, 100])
@pytest.mark.parametrize("names", [LONG_NAMES, LONG_NAMES[:2], LONG_NAMES[:3]])
def test_no_number_of_the_stages_is_cut_beside_long_names(width, names):
    heading, stages, baselines = stages_with_something_running(names, width)
    assert heading.split()[-4:] == ["average", "top", "5", "best"]
    second = next(heading.index(name) for name in ("finished", "candidates") if name in heading)
    lines = [line[second:] for line in (*stages, *baselines)]
    scores = [found for line in lines if (found := re.findall(r"(?<=\s)-\d+\.\d(?!\S)", line))]
    means = [[f"{-1001 - 3 * i}.0", f"{-1000 - 3 * i}.0"] for i in range(len(names))]
    assert scores == [["-1209.5", "-1204.5", "-1184.5"], ["-1149.5", "-1144.5", "-1124.5"], *means]
    # The stage, then how many of its candidates are in each state.
    counts = re.findall(r"(?<!\S)[1-9]\d*(?!\S)", "\n".join(stages))
    assert counts == ["1", "6", "2", "6", "3", "1", "1", "1"]
    first_column = " ".join(" ".join(line[:second].split()) for line in baselines)
    places = [first_column.replace(" ", "").index("".join(name.split())) for name in names]
    assert places == sorted(places)
    ranges = [f"(3 seeds: {-1002 - 3 * i}.0 to {-1000 - 3 * i}.0)" for i in range(len(names))]
    assert re.findall(r"\(3 seeds: [^)]*\)", first_column) == ranges


def test_each_stage_and_baseline_has_one_line_where_names_are_short():
    heading, stages, baselines = stages_with_something_running(("sac", "curl"), 100)
    assert heading.split()[:5] == ["stage", "finished", "pruned", "failed", "running"]
    assert len(stages) == 3
    named = [line.split("  ")[0].strip() for line in baselines]
    assert named == ["sac (3 seeds: -1002.0 to -1000.0)", "curl (3 seeds: -1005.0 to -1003.0)"]


def test_narrow_curves_keep_their_last_step_and_aulc():
    curves = [LabelledCurve(f"number {i}", curve(*range(12))) for i in range(4)]
    text = drawn(curves_side_by_side(curves, 80))
    assert "1,200" in text
    assert text.count("5.5") == 4


def test_top_lists_the_best_first_beside_the_baselines(searched, capsys):
    assert main(["top", str(searched.path), "--count", "3"]) == 0
    shown = capsys.readouterr().out
    best = rank_candidates(searched.candidates(), searched.ranking())[:3]
    assert "11 of 12 candidates finished, in 3 stages of 4" in shown
    assert "Best first: 3 of 12 candidates" in shown
    places = [" ".join(shown.split()).index(f" {candidate.label}") for candidate in best]
    assert places == sorted(places)
    for candidate in best:
        known = searched.ranking().by_candidate[candidate.number]
        low, high = known.estimate.interval
        assert f"{known.estimate.value:.1f} {low:.1f} to {high:.1f} 1 {candidate.stage}" in " ".join(shown.split())
        assert f"score {candidate.curve.aulc:.1f}" in " ".join(shown.split())
    assert "drawn to what similar losses have" in " ".join(shown.split())
    assert "partly luck" not in shown
    assert "sac, a baseline" in shown
    assert "2 seeds: " in shown


def test_top_says_why_a_candidate_failed(searched, capsys):
    assert main(["top", str(searched.path), "--count", "99", "--stage", "1"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "Best first: 4 of 4 candidates of stage 1" in shown
    assert "failed: no [red]luck[/]" in shown


def test_json_has_everything_of_all_candidates(searched, capsys):
    assert main(["top", str(searched.path), "--json"]) == 0
    records = json.loads(capsys.readouterr().out, parse_constant=pytest.fail)
    assert len(records) == 12
    by_number = {record["number"]: record for record in records}
    for candidate in searched.candidates():
        record = by_number[candidate.number]
        assert record["loss"] == str(candidate.loss)
        assert record["stage"] == candidate.number // 4 + 1
        assert record["seed"] == 0
        if record["number"] == 1:
            assert (record["state"], record["score"], record["curve"]) == ("failed", None, [])
            assert record["reasons"] == ["no [red]luck[/]"] * 2
        else:
            assert (record["state"], record["score"], record["seconds"]) == ("finished", candidate.score, 2.5)
            assert record["curve"] == [[point.step, point.score] for point in candidate.curve.points]
        assert set(record["parents"]) <= set(by_number)
        assert (record["origin"] in ("replacement", "crossover", "horizon-change")) == bool(record["parents"])
    scores = [record["score"] for record in records if record["state"] == "finished"]
    assert scores == sorted(scores, reverse=True)
    first, ranked_first = records[0], searched.ranking().losses[0]
    assert first["estimate"] == ranked_first.estimate.value
    assert first["interval"] == list(ranked_first.estimate.interval)
    assert first["trainings"] == [{"env": "Pendulum-v1", "seed": 0, "score": first["score"]}]
    assert (records[-1]["estimate"], records[-1]["interval"], records[-1]["trainings"]) == (None, None, [])
    assert records[-1]["state"] == "failed"


def test_json_can_be_cut_short_and_has_no_nan(tmp_path, capsys):
    folder = SearchFolder.create(tmp_path / "search", replace(CONFIG, stages=1, baselines=()))
    with pytest.raises(Failure, match="all 4 candidates failed"):
        folder.run(InstantEngine(score=lambda _: float("nan")))
    assert main(["top", str(folder.path), "--json", "--count", "2"]) == 0
    records = json.loads(capsys.readouterr().out, parse_constant=pytest.fail)
    assert [record["score"] for record in records] == [None, None]
    assert records[0]["curve"] == [[200, None], [400, None]]
    assert main(["top", str(folder.path)]) == 0
    assert "nan" not in capsys.readouterr().out.replace("the AULC is nan", "")


def test_top_reads_a_search_that_has_just_begun_or_was_cut_short(tmp_path, capsys):
    folder = SearchFolder.create(tmp_path / "search", CONFIG, Budget(max_trials=2))
    assert main(["top", str(folder.path)]) == 0
    assert "No candidate yet" in capsys.readouterr().out
    assert main(["top", str(folder.path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == []

    class Interrupted(InstantEngine):
        def events(self, timeout):
            events = super().events(timeout)
            if any("->" in event.job.label and hasattr(event, "seconds") for event in events):
                raise KeyboardInterrupt
            return events

    with pytest.raises(KeyboardInterrupt):
        folder.run(Interrupted())
    assert main(["top", str(folder.path)]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "0 of 12 candidates finished" in shown
    assert "running after step 400" in shown
    assert "or so when the search was interrupted" in shown


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere"], "nowhere holds no search"),
        (["{folder}", "--count", "0"], "count is 0, but must be at least 1"),
        (["{folder}", "--stage", "0"], "stage is 0, but must be at least 1"),
        (["{folder}", "--stage", "4"], "stage is 4, but the search has begun 3 stages so far"),
    ],
)
def test_bad_input_is_one_clear_message(arguments, message, searched, capsys):
    assert main(["top", *(argument.format(folder=searched.path) for argument in arguments)]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert len(error.splitlines()) == 1
