"""`a2ls compare` as a user types it."""

import csv
import json
import math
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import optuna
import pytest
from rich.console import Console
from scipy import stats

from a2ls._statistics import Estimate, Interval
from a2ls.analysis import Dataset, compare, export, read_dataset
from a2ls.benchmark import BenchmarkFolder, Grid
from a2ls.cli import main
from a2ls.cli.views.comparison import (
    aggregates_table,
    comparison_notes,
    environments_table,
    improvements_table,
    interval_bar,
    methods_key,
)
from a2ls.search import SearchConfig, SearchFolder
from a2ls.studies import TrialRecord, baseline, method
from a2ls.training import Curve, CurvePoint, preset, to_mapping
from helpers import trainings
from helpers.engines import InstantEngine, made_up_score

RESULTS = Path(__file__).parents[2] / "docs/results/cheetah-run-laptop"
LONG = "a0 a1 a2 s3 a3 r3 a4 r4 r6 -> s0 r0 s1 a1 r1 s2 r3 s4 r4 s5 s6 r6"
METHODS = (baseline("sac"), method("s0 a0 -> s1"), method(LONG))
CHEETAH, WALKER = (replace(preset("fast", env), steps=8_000, evaluations=2) for env in ("cheetah-run", "walker-run"))
QUICK = ("--resamples", "100")


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    optuna.logging.set_verbosity(optuna.logging.WARNING)


def trained(path, methods=METHODS, configs=(CHEETAH, WALKER), seeds=(0, 1, 2), score=made_up_score):
    folder = BenchmarkFolder.create(Path(path), Grid(methods, configs, seeds))
    folder.run(InstantEngine(2, score=score))
    return folder


def run(*arguments):
    """The exit code of a command."""
    try:
        return main(arguments)
    except SystemExit as exit_of_the_parser:
        return exit_of_the_parser.code


def refused(capsys, *arguments):
    """What a command says that ends with exit code 2."""
    assert run("compare", *arguments) == 2
    captured = capsys.readouterr()
    assert "Traceback" not in captured.err
    return captured.err


def drawn(renderable, width=80):
    console = Console(width=width, force_terminal=False)
    with console.capture() as captured:
        console.print(renderable)
    return captured.get()


def test_a_comparison_until_a_step_is_that_of_trainings_that_had_ended_there(capsys):
    trained("mine", configs=(replace(preset("fast"), steps=200_000, evaluations=2),))
    whole, half = read_dataset(Path("mine")), read_dataset(Path("mine")).until(100_000)
    assert [record.curve for record in half.records] == [Curve(record.curve.points[:1]) for record in whole.records]
    assert run("compare", "mine", *QUICK, "--measure", "last", "--until", "100000", "--json", "until.json") == 0
    shown = json.loads(Path("until.json").read_text())
    first = [record.curve.points[0].score for record in whole.records if record.label == "sac"]
    own = next(each for each in shown["methods"] if each["label"] == "sac")["environments"]["cheetah-run"]
    assert own["scores"] == first
    assert own["published (paper, mean ± sd of 10 seeds)"]["mean"] == 172  # The paper's are after 100,000 steps.
    assert "All trainings count until step 100,000 alone." in " ".join(capsys.readouterr().out.split())
    assert "no score of sac in cheetah-run after 7 steps, but after 100,000, 200,000" in refused(
        capsys, "mine", "--until", "7"
    )


def test_a_benchmark_is_compared(capsys):
    def score(job):
        return (200 if str(job.training.loss) == "s0 a0 -> s1" else 100) + job.training.seed

    records = trained("mine", score=score).records()
    assert run("compare", "mine", *QUICK) == 0
    text = capsys.readouterr().out
    verdict, _, rest = " ".join(text.split()).partition(" 3 methods in cheetah-run, walker-run ")
    assert verdict.startswith("As far as 3 seeds tell, forward-dynamics is ahead of sac over 2 environments: IQM 0.")
    assert re.search(r"probability 1.00 \(95 % interval 1.00 to 1.00; p = 0.0[0-4]\d by permutation\)\.$", verdict)
    assert "The p of the verdict is corrected (Holm), since 2 methods are compared with sac" in rest
    assert "AULC / 1000, over 2 environments" in text
    assert "Better than sac?" in text
    assert f"#1 is {LONG}" in text
    assert "From fewer than 10 seeds an interval is too narrow" in text
    words = " ".join(text.split())
    assert "No published scores beside cheetah-run, walker-run: the paper's are after 100,000 steps" in words
    scores = [record.curve.aulc / 1000 for record in records if record.label == "sac"]
    line = next(line for line in text.splitlines() if line.startswith(" sac "))
    assert f" 3 x 2  {stats.trim_mean(scores, 0.25):.3f} " in line
    assert all(len(line) <= 80 for line in text.splitlines())


def test_games_are_compared_on_the_scale_of_a_human(capsys):
    def score(job):
        return -20.7 + 35.3 * (0.5 + job.training.seed / 100)  # Half of what a human has in Pong, and a little more.

    games = tuple(replace(preset("atari-100k", env), steps=8_000) for env in ("ALE/Pong-v5", "breakout"))
    methods = (baseline("rainbow"), method("a2-winner", "rainbow"))
    trained("mine", methods, games[:1], score=score)
    trained("mine-too", methods, games[1:], score=lambda _: 30.5)
    files = ("--csv", "a.csv", "--json", "a.json", "--html", "a.html")
    assert run("compare", "mine", "mine-too", *QUICK, "--measure", "last", *files) == 0
    text = capsys.readouterr().out
    assert all(len(line) <= 80 for line in text.splitlines())
    lines = [line.split() for line in text.splitlines() if line.strip()]
    records = read_dataset(Path("mine")).records
    last = np.mean([record.curve.points[-1].score for record in records if record.label == "rainbow"])
    mean = f"{((last + 20.7) / 35.3 + 1) / 2:.3f}"
    row = next(words for words in lines if words[:2] == ["a2-winner", mean])
    assert (row[5], row[6], row[10]) == ("0.568", mean, "0.317")
    assert ["DrQ", "-", "-", "0.357", "†", "-", "-", "0.268", "†"] in lines
    assert ["pong", "-20.7", "14.6"] in lines
    words = " ".join(text.split())
    assert "last score, human-normalised, mean and median over 2 games" in words
    assert "No published scores beside pong, breakout: the paper has no scores of single games." in words
    assert "Published: mean and median over all 26 games after 400,000 frames, with the paper's settings." in words
    assert "Not the paper's setting beside them: 2 games (paper: 26), steps 8,000 (paper: 400,000)." in words
    for name in ("a.csv", "a.json", "a.html"):
        assert "human-normalised" in Path(name).read_text()
    # The paper has no AULC.
    assert run("compare", "mine", "mine-too", *QUICK) == 0
    text = capsys.readouterr().out
    assert "0.568" not in text
    assert "over games are of last scores: --measure last shows them." in " ".join(text.split())


def test_it_prints_the_same_every_time(capsys):
    trained("mine")
    assert run("compare", "mine", *QUICK) == 0
    first = capsys.readouterr().out
    assert run("compare", "mine", *QUICK) == 0
    assert capsys.readouterr().out == first


def test_several_folders_and_exports_are_merged(capsys):
    trained("first", METHODS[:1])
    export(trained("second", METHODS[1:]).path, Path("table"))
    assert run("compare", "first", "table/candidates.parquet", *QUICK, "--json", "apart.json") == 0
    trained("all")
    assert run("compare", "all", *QUICK, "--json", "together.json") == 0
    apart, together = (json.loads(Path(name).read_text()) for name in ("apart.json", "together.json"))
    assert apart == together
    assert "written: apart.json" in capsys.readouterr().out


def test_a_benchmark_that_is_not_done_yet_is_compared_as_far_as_it_is(capsys):
    def score(job):
        late = job.training.seed == 2 and job.training.config.environment.env == "walker-run"
        return RuntimeError("no luck") if late else made_up_score(job)

    trained("mine", score=score)
    assert run("compare", "mine", *QUICK) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "2 x 2" in text
    assert "Left out: 3 trainings not finished." in text
    assert "sac: only seeds 0, 1 finished everywhere" in text
    assert "leaves out seed 2 in cheetah-run" in text


def test_the_baselines_of_a_search_are_compared(capsys):
    config = SearchConfig(trainings.PENDULUM, population_size=4, stages=1, baselines=("sac", "curl"), baseline_seeds=3)
    SearchFolder.create(Path("search"), config).run(InstantEngine())
    assert run("compare", "search", *QUICK) == 0
    text = capsys.readouterr().out
    assert "AULC, where the mean of sac is 1, in Pendulum-v1" in text
    assert "the baselines count" in text


def test_real_results_with_two_seeds(capsys):
    assert run("compare", str(RESULTS / "validation"), "--measure", "last") == 0
    text = capsys.readouterr().out
    assert " ".join(text.split()).startswith("2 seeds are too few to tell whether #1, the best of 3 methods, is better")
    assert "last score / 1000, over 2 environments" in text
    assert "Fewer than 3 seeds: an interval would mean nothing (-)." in text


def test_options_choose_what_is_compared(capsys):
    trained("mine")
    assert run("compare", "mine", *QUICK, "--env", "walker-run", "--scale", "none", "--reference", "s0 a0 -> s1") == 0
    text = capsys.readouterr().out
    assert "AULC, in walker-run" in text
    assert "Better than forward-dynamics?" in text
    assert "cheetah-run" not in text


def test_files_are_written(capsys):
    trained("mine")
    assert run("compare", "mine", *QUICK, "--csv", "a.csv", "--json", "a.json", "--html", "a.html") == 0
    assert "--out FILE" not in capsys.readouterr().out
    with Path("a.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    means = {(row["method"], row["env"]): float(row["value"]) for row in rows if row["quantity"] == "mean"}
    trainings = BenchmarkFolder.open(Path("mine")).records()
    own = [record.curve.aulc for record in trainings if (record.label, record.env) == ("sac", "walker-run")]
    assert means["sac", "walker-run"] == pytest.approx(np.mean(own))
    mapping = json.loads(Path("a.json").read_text())
    sac = next(each for each in mapping["methods"] if each["name"] == "sac")
    assert sac["mean"]["value"] == pytest.approx(means["sac", ""])
    page = Path("a.html").read_text()
    assert page.startswith("<!doctype html>")
    assert mapping["verdict"] in page.partition("<main>")[0]
    assert page.count('class="figure" id="figure-') == 8
    assert sorted(path.name for path in Path().iterdir()) == ["a.csv", "a.html", "a.json", "mine"]


def test_bad_input_is_one_line(capsys):
    trained("mine")
    trained("longer", configs=(replace(CHEETAH, steps=16_000),))
    assert "give a folder" in refused(capsys)
    assert "holds nothing to analyse" in refused(capsys, "nowhere")
    assert "steps is 8000 in the first, but 16000 in the second" in refused(capsys, "mine", "longer")
    assert "the reference 'curl' is not among the methods" in refused(capsys, "mine", "--reference", "curl")
    assert "resamples is 5, but must be at least 100" in refused(capsys, "mine", "--resamples", "5")
    assert "no training is in 'hopper-hop'" in refused(capsys, "mine", "--env", "hopper-hop")
    assert "there is no folder no/where" in refused(capsys, "mine", "--html", "no/where/a.html")
    assert "mine is a folder" in refused(capsys, "mine", "--csv", "mine")


def test_the_help_teaches(capsys):
    assert run("compare", "--help") == 0
    text = " ".join(capsys.readouterr().out.split())
    for words in ("interquartile mean", "0.5 is no difference", "a2ls compare runs/my-benchmark", "--measure"):
        assert words in text


# The tables


def benchmark(names, env="cheetah-run", preset_name="paper-vector", seeds=3, **changes):
    """A benchmark in which every seed of every method is ten above the one before."""
    config = replace(preset(preset_name, env), **changes)
    records = []
    for who in (baseline(name) if name in ("sac", "curl", "sac-no-aug") else method(name) for name in names):
        for seed in range(seeds):
            score = 10.0 * (len(records) + 1)
            points = Curve((CurvePoint(config.steps // 2, (score / 2,)), CurvePoint(config.steps, (score,))))
            records.append(TrialRecord(len(records), who.name, who.loss, env, seed, "finished", points, 1.0, ()))
    training = {env: to_mapping(config)}
    return Dataset("made-up", Path("made-up"), "benchmark", tuple(records), {"kind": "benchmark", "training": training})


def test_published_scores_stand_beside_last_scores():
    dataset = benchmark(["sac", "a2-winner", "spr"], steps=100_000)
    comparison = compare([dataset], measure="last", resamples=100)
    text = drawn(environments_table(comparison))
    heading = [line[-17:].strip() for line in text.splitlines()[2:5]]
    assert " ".join(heading) == "published (paper, mean ± sd of 10 seeds)"
    ends = {line.split()[0]: line.split()[-3:] for line in text.splitlines() if "   " in line and line.strip()}
    assert ends["sac"] == ["172", "±", "29"]
    assert ends["a2-winner"] == ["529", "±", "76"]
    assert ends["spr"][-1] == "-"
    assert not any("published" in note.lower() for note in comparison_notes(comparison))


def test_published_scores_do_not_stand_beside_others():
    aulc = compare([benchmark(["sac", "a2-winner"], steps=100_000)], resamples=100)
    assert "published" not in drawn(environments_table(aulc))
    assert "--measure last" in comparison_notes(aulc)[-1]
    longer = compare([benchmark(["sac"], steps=200_000)], measure="last", resamples=100)
    assert "published" not in drawn(environments_table(longer))
    assert comparison_notes(longer)[-1].endswith("the paper's are after 100,000 steps, these after 200,000.")


def test_published_scores_tell_where_they_come_from_and_what_differs():
    dataset = benchmark(["sac-no-aug", "curl"], preset_name="paper-image", batch_size=64)
    comparison = compare([dataset], measure="last", resamples=100)
    text = drawn(environments_table(comparison))
    assert "99 ± 28 \n" in text
    assert "518 ± 28 † \n" in text
    cited, agent = comparison_notes(comparison)[-2:]
    assert cited == "† The paper took these over from the CURL paper."
    assert agent == "Not the paper's agent beside published scores: batch_size 64 (paper: 512)."


def test_the_best_comes_first_and_long_losses_have_numbers():
    comparison = compare([benchmark(["sac", LONG, "spr"])], resamples=100)
    lines = [line.split()[0] for line in drawn(aggregates_table(comparison)).splitlines()[4:] if line.strip()]
    assert lines == ["spr", "#1", "sac"]
    assert methods_key(comparison) == [f"#1 is {LONG}"]
    better = [line.split() for line in drawn(improvements_table(comparison)).splitlines()[4:] if line.strip()]
    assert [(words[0], words[1]) for words in better] == [("spr", "1.00"), ("#1", "1.00")]


def test_the_most_likely_to_be_better_comes_first():
    table = improvements_table(compare([read_dataset(RESULTS / "validation")]))
    rows = [line.split()[:2] for line in drawn(table).splitlines()[4:] if line.strip()]
    assert rows == [["#1", "1.00"], ["#3", "0.75"], ["#2", "0.50"]]


def test_without_a_reference_there_is_no_table_but_a_note():
    comparison = compare([benchmark(["spr", "atc"])], resamples=100)
    assert improvements_table(comparison) is None
    assert any("--reference" in note for note in comparison_notes(comparison))
    alone = compare([benchmark(["sac"])], resamples=100)
    assert improvements_table(alone) is None


def test_a_negative_reference_is_explained():
    dataset = benchmark(["sac", "spr"], env="Pendulum-v1", preset_name="fast")
    records = tuple(
        replace(record, curve=Curve(tuple(CurvePoint(p.step, (-p.score,)) for p in record.curve.points)))
        for record in dataset.records
    )
    notes = comparison_notes(compare([replace(dataset, records=records)], resamples=100))
    assert "Where the score of sac is negative, 1.2 means better by a fifth of its size." in notes


@pytest.mark.parametrize(
    ("estimate", "bar"),
    [
        (Estimate(0.5, Interval(0.25, 0.75)), "  ──●──  "),
        (Estimate(0.0, Interval(0.0, 1.0)), "●───┊────"),
        (Estimate(1.0, None), "    ┊   ●"),
        (Estimate(7.0, Interval(-3.0, 9.0)), "────┊───●"),
        (Estimate(math.nan, None), "    ┊    "),
    ],
)
def test_intervals_are_bars(estimate, bar):
    assert interval_bar(estimate, 0.0, 1.0, mark=0.5, width=9) == bar


def test_a_bar_without_a_scale_is_in_the_middle():
    assert interval_bar(Estimate(3.0, Interval(3.0, 3.0)), 3.0, 3.0, width=5) == "  ●  "
