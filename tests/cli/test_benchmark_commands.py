"""`a2ls benchmark`, `validate`, `operators` and `export` as a user types them."""

import csv
import io
import json
import re
import shlex
import signal
import sys
import time
from dataclasses import replace
from functools import partial
from pathlib import Path

import optuna
import pytest
from rich.console import Console

from a2ls.agents import SACConfig
from a2ls.benchmark import BenchmarkFolder, Grid
from a2ls.cli import main
from a2ls.cli._options import parse_grid, settings_options
from a2ls.cli.commands.benchmark import Arguments
from a2ls.cli.views.benchmark import BenchmarkView, GridProgress, progress_view
from a2ls.engine import Evaluated, Failed, Finished, Job, JobKey, Progressed, Started
from a2ls.search import SearchConfig, SearchFolder, search_preset
from a2ls.studies import baseline, method
from a2ls.training import CurvePoint, RunFolder, preset
from helpers import trainings
from helpers.engines import InstantEngine, made_up_score
from helpers.processes import start

SHORT = (
    *("--action-repeat", "2", "--hidden", "8", "--batch-size", "8", "--steps", "400", "--learning-starts", "20"),
    *("--evaluations", "2", "--evaluation-episodes", "1"),
)
PENDULUM = replace(trainings.PENDULUM, agent=SACConfig(hidden=8), preset="fast")


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    optuna.logging.set_verbosity(optuna.logging.WARNING)


@pytest.fixture
def simulated(monkeypatch):
    """Trainings take no time, unless their seed is 13: then they fail."""

    def score(job):
        return RuntimeError("bad luck") if job.training.seed == 13 else made_up_score(job)

    monkeypatch.setattr("a2ls.studies._folder.LocalEngine", partial(InstantEngine, score=score))


def run(*arguments):
    """The exit code of a command."""
    try:
        return main(arguments)
    except SystemExit as exit_of_the_parser:
        return exit_of_the_parser.code


def searched(path="mine", **settings):
    config = SearchConfig(PENDULUM, population_size=4, stages=1, baselines=("sac",), **settings)
    folder = SearchFolder.create(Path(path), config)
    folder.run(workers=1)
    return folder


def fits(output, width=80):
    """Whether nothing is cut, and only lines that are to be copied are longer than the screen is wide."""
    lines = [line for line in output.splitlines() if not re.search("a2ls|->|, in mine", line)]
    return "…" not in output and max(map(len, lines)) <= width


# benchmark


@pytest.mark.usefixtures("simulated")
def test_benchmark_grows_by_what_is_missing(capsys):
    options = ("--env", "Pendulum-v1", *SHORT, "--out", "mine", "--workers", "2")
    assert run("benchmark", "--loss", "a2-winner", "--loss", "s0 a0 -> s1", "--seeds", "2", *options) == 0
    first = capsys.readouterr()
    assert "4 of 4 trainings done" in first.err
    assert "Fewer than 3 seeds: an interval would mean nothing (-)." in first.out
    assert "/ sac" not in first.out
    assert "2 seeds are too few to tell which method is the best in Pendulum-v1" in first.out
    assert re.search(r"To go on:\n\n  all statistics +a2ls compare mine\n", first.out)
    before = BenchmarkFolder.open(Path("mine")).records()

    more = ("--loss", "a2-winner", "s0 a0 -> s1", "--baseline", "sac", "--seeds", "3")
    assert run("benchmark", *more, *options) == 0
    second = capsys.readouterr()
    assert "4 of 9 trainings were done before" in second.out
    assert "5 of 5 trainings done" in second.err
    verdict, _, table = " ".join(second.out.split()).partition(" AULC ")
    assert re.search(r" (than|of) sac in Pendulum-v1: .*IQM .* \(95 % interval .* by permutation", verdict)
    assert "The p of the verdict is corrected (Holm), since 2 methods are compared with sac" in table
    assert re.search(r"forward-dynamics +3 ", second.out)
    assert re.search(r"sac +3 .* to .* 1\.00", second.out)
    assert fits(second.out)
    assert BenchmarkFolder.open(Path("mine")).records()[: len(before)] == before

    assert run("benchmark", "--resume", "mine") == 0
    third = capsys.readouterr()
    assert "all 9 trainings were done before" in third.out
    assert third.out.splitlines()[2:] == second.out.splitlines()[2:]


@pytest.mark.usefixtures("simulated")
def test_benchmark_with_other_settings_or_on_something_else_is_refused(capsys):
    options = ("--baseline", "sac", "--env", "Pendulum-v1", "--seeds", "1", "--out", "mine")
    assert run("benchmark", *options, *SHORT) == 0
    assert run("benchmark", *options, *SHORT, "--steps", "800") == 2
    assert "steps is 400 there, but 800 here" in capsys.readouterr().err
    searched("search")
    assert run("benchmark", "--resume", "search") == 2
    assert "search holds no benchmark, but a search" in capsys.readouterr().err
    assert run("operators", "--resume", "mine") == 2
    assert "mine holds no comparison of operators" in capsys.readouterr().err


@pytest.mark.usefixtures("simulated")
def test_failed_trainings_are_told_and_end_in_exit_code_1(capsys):
    options = ("--baseline", "sac", "--env", "Pendulum-v1", "--seeds", "2", "--first-seed", "12", "--out", "mine")
    assert run("benchmark", *options, *SHORT) == 1
    output = capsys.readouterr()
    assert "1 of 2 trainings failed, such as sac in Pendulum-v1 with seed 13: bad luck" in output.err
    assert re.search(r"sac +1 \(1 failed\)", output.out)
    assert fits(output.out)
    only = ("--baseline", "sac", "--loss", "spr", "--env", "Pendulum-v1", "--seeds", "1", "--first-seed", "13")
    assert run("benchmark", *only, *SHORT, "--out", "none") == 1
    assert "error: all of 2 trainings failed for one reason: bad luck" in capsys.readouterr().err


def test_only_given_options_replace_what_the_preset_says_for_an_environment():
    def steps(*arguments):
        _, configs = parse_grid([*arguments, "--preset", "paper-vector"], "a2ls benchmark", Arguments)
        return {config.environment.env: config.steps for config in configs}

    envs = ("--env", "cheetah-run", "--env", "walker-run")
    assert steps(*envs) == {"cheetah-run": 500_000, "walker-run": 1_500_000}
    # Given, though it is what the preset says for the first environment.
    assert steps(*envs, "--steps", "500000") == {"cheetah-run": 500_000, "walker-run": 500_000}
    assert steps("--env", "walker-run", "walker-run") == {"walker-run": 1_500_000}
    assert steps() == {"cheetah-run": 500_000}
    _, (config,) = parse_grid(["--env", "walker-run", "--hidden", "32"], "a2ls benchmark", Arguments)
    fast = preset("fast", "walker-run")
    assert config == replace(fast, agent=replace(fast.agent, hidden=32))


def test_settings_are_told_as_options_that_give_them():
    def again(configs):
        arguments = ["--env", *(config.environment.env for config in configs), *settings_options(configs).split()]
        return parse_grid(arguments, "a2ls benchmark", Arguments)[1]

    cheetah = preset("paper-vector", "cheetah-run")
    both = (cheetah, replace(cheetah, environment=replace(cheetah.environment, env="walker-run")))
    assert again(both) == both
    assert again((PENDULUM,)) == (PENDULUM,)
    assert settings_options([cheetah]) == "--preset paper-vector"
    assert settings_options([preset("fast")]) == ""


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["benchmark"], "nothing to train: give a loss or a baseline"),
        (["benchmark", "--loss", "a2-winer"], "did you mean a2-winner"),
        (["benchmark", "--loss", "nothing.json"], "cannot read nothing.json"),
        (["benchmark", "--baseline", "sca"], "no baseline 'sca': did you mean sac"),
        (["benchmark", "--baseline", "sac", "--env", "CartPole-v1"], "sac is no baseline of rainbow"),
        (["benchmark", "--baseline", "sac", "--env", "cheetah-rum"], "cheetah-run"),
        (["benchmark", "--baseline", "sac", "--seeds", "0"], "seeds is 0, but must be at least 1"),
        (["benchmark", "--baseline", "sac", "--first-seed", "-1"], "first_seed is -1"),
        (["benchmark", "--baseline", "sac", "--workers", "0"], "workers is 0"),
        (["benchmark", "--baseline", "sac", "--hidden", "0"], "hidden is 0"),
        (["benchmark", "--baseline", "sac", "--env", "Pendulum-v1", "--storage", "nope://x"], "cannot be opened"),
        (["benchmark", "--preset", "fats"], "fast"),
        (["benchmark", "--sedes", "3"], "--seeds"),
        (["benchmark", "--resume", "nowhere"], "nowhere holds no benchmark"),
        (["benchmark", "--resume", "nowhere", "--seeds", "3"], "leave out all others but --workers"),
        (["operators", "--loss", "none"], "loss is 'none'"),
        (["operators", "--loss", "a0 -> s1"], "the source has no state"),
        (["operators", "--score", "best"], "last"),
        (["validate"], "PATH"),
        (["validate", "nowhere"], "nowhere holds no search"),
        (["export"], "there is nothing to export"),
        (["export", "nowhere"], "nowhere holds nothing to analyse: neither a search or a benchmark"),
        (["export", "nowhere", "elsewhere"], "say where to write with --out"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_bad_input_is_one_clear_message_and_leaves_nothing_behind(arguments, message, tmp_path, capsys):
    assert run(*arguments) == 2
    error = capsys.readouterr().err
    # The parser draws boxes around its messages.
    assert message in re.sub(r"[│╭╮╰╯─\s]+", " ", error)
    assert "Traceback" not in error
    assert not list(tmp_path.iterdir())


def test_an_interrupted_benchmark_says_how_to_go_on_and_does(tmp_path):
    def command(*arguments):
        return [sys.executable, "-m", "a2ls", *arguments]

    options = (
        "--loss",
        "spr",
        "--env",
        "Pendulum-v1",
        "--seeds",
        "1",
        *SHORT,
        "--steps",
        "3000",
        "--evaluations",
        "15",
    )
    process = start("benchmark", *options, "--out", "mine", "--workers", "1")
    while process.poll() is None and not (tmp_path / "mine" / "workers.log").exists():
        time.sleep(0.05)
    folder = BenchmarkFolder.open(Path("mine"))
    while process.poll() is None and not any(row.curve.points for row in folder.records()):
        time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    output, error = process.communicate(timeout=60)
    assert process.returncode == 130, error
    assert output.splitlines()[-1] == "interrupted; go on with:  a2ls benchmark --resume mine"
    assert "Traceback" not in error
    assert run(*shlex.split(output.splitlines()[-1].partition("a2ls ")[2]), "--workers", "1") == 0
    rows = folder.records()
    assert [(row.label, row.state, len(row.curve.points)) for row in rows] == [
        (method("spr").name, "finished", 15),
    ]


# validate


def commands_of(output):
    """What is offered to be typed, by what it is for."""
    lines = [line.strip() for line in output.splitlines() if line.startswith("  a2ls ")]
    return {why.strip(): shlex.split(command)[1:] for command, _, why in (line.partition("#") for line in lines)}


def test_a_search_and_its_cross_validation_with_one_seed_that_tells_nothing(capsys):
    folder = searched(seed=3)
    assert run("validate", "mine", "--top", "2", "--seeds", "1", "--workers", "1") == 0
    output = capsys.readouterr().out
    said = json.loads((folder.path / "winner.json").read_text())
    assert said["outcome"] in ("unclear", "none")
    assert said["verdict"] in " ".join(output.split())
    assert "1 seed is too few for an interval." in said["verdict"]
    assert (said["environments"], said["seeds"]) == (["Pendulum-v1"], [4])
    assert fits(output)


# Scores of all losses and of the baseline, plus one from seed to seed; and what is offered next.
MORE = ["the same with more seeds", "more losses of the search", "a longer search"]
NEXT = {
    "better": (160, 20, ["what it predicts", "an agent with it", "how good it is, with other seeds"]),
    "unclear": (21, 20, [*MORE, "what the best predicts", "the best alone, with other seeds"]),
    "none": (10, 20, MORE),
}


@pytest.mark.parametrize("outcome", NEXT)
def test_validation_ends_with_a_verdict_and_with_what_to_do(outcome, monkeypatch, capsys):
    loss, sac, offered = NEXT[outcome]

    def score(job):
        return (sac if job.training.loss is None else loss) + 10 * (job.training.seed % 3)

    monkeypatch.setattr("a2ls.studies._folder.LocalEngine", partial(InstantEngine, score=score))
    searched(seed=3)
    assert run("validate", "--top", "2", "mine", "--seeds=3") == 0
    output = capsys.readouterr().out
    said = json.loads(Path("mine/winner.json").read_text())
    assert said["outcome"] == outcome
    sentence, table, note, last = (
        output.index(words)
        for words in (said["verdict"][:40], "AULC, where sac is 1", "97.5 % instead of 95 %", "To go on:")
    )
    assert sentence < table < note < last
    assert said["verdict"] in " ".join(output.split())
    assert ("winner," in output) == (outcome == "better")
    assert fits(output)
    commands = commands_of(output)
    assert list(commands) == offered

    for why, command in commands.items():
        if command[0] == "benchmark":
            assert parse_grid(command[1:], "a2ls benchmark", Arguments)[1] == (PENDULUM,)
        elif command[0] == "train":
            assert run(*command, "--out", "agent") == 0
            job = RunFolder.open(Path("agent")).job
            assert (str(job.loss), job.config) == (said["loss"], PENDULUM)
        else:
            assert run(*command) == 0, why
    if outcome != "none":
        assert said["loss"] in output
    else:
        assert commands["the same with more seeds"] == ["validate", "--top", "2", "mine", "--seeds=10"]
        assert said["loss"] is None
        run("validate", "mine", "--top", "2")
        for command in ("train", "losses", "benchmark"):
            capsys.readouterr()
            assert run(command, *(["--loss"] if command != "losses" else []), "mine/winner.json") == 2
            error = capsys.readouterr().err
            assert "None of the 2 losses is better than sac on average in Pendulum-v1" in error
            assert "a2ls validate mine --top 10 --seeds 10 --env Pendulum-v1" in error


@pytest.mark.usefixtures("simulated")
def test_validation_goes_on_and_grows(capsys):
    folder = searched(seed=3)
    assert run("validate", "mine", "--top", "3", "--seeds", "3", "--stage", "1") == 0
    assert "12 of 12 trainings done" in capsys.readouterr().err
    more = ("--top", "3", "--seeds", "4", "--env", "Pendulum-v1", "--env", "MountainCarContinuous-v0", "--workers", "3")
    assert run("validate", *more, "mine") == 0
    output = capsys.readouterr()
    assert "12 of 32 trainings were done before" in output.out
    assert "20 of 20 trainings done" in output.err
    assert "all together" in output.out
    assert re.search(r"all together +1 +#\d +\d\.\d{3} +\d\.\d{3} to \d\.\d{3}", output.out)
    assert "the best was chosen among 3 losses by these very scores" in " ".join(output.out.split())
    assert fits(output.out)
    winner = json.loads((folder.path / "winner.json").read_text())
    assert winner["environments"] == ["Pendulum-v1", "MountainCarContinuous-v0"]
    assert winner["seeds"] == [4, 5, 6, 7]
    environments = {row.env: row for row in BenchmarkFolder.open(folder.path / "validation").records()}
    assert set(environments) == {"Pendulum-v1", "MountainCarContinuous-v0"}
    validated = BenchmarkFolder.open(folder.path / "validation").settings.configs["MountainCarContinuous-v0"]
    assert replace(validated, environment=PENDULUM.environment) == PENDULUM
    assert validated.environment.action_repeat == 2


@pytest.mark.usefixtures("simulated")
def test_a_validated_loss_has_the_settings_of_the_presets_in_each_environment():
    config = replace(
        search_preset("paper-vector", "cheetah-run"), population_size=2, stages=1, baselines=("sac",), baseline_seeds=1
    )
    SearchFolder.create(Path("mine"), replace(config, training=replace(config.training, batch_size=64))).run(
        InstantEngine()
    )
    assert run("validate", "mine", "--env", "cheetah-run", "hopper-hop", "--seeds", "1", "--gamma", "0.9") == 0
    validated = BenchmarkFolder.open(Path("mine/validation"))
    for env, lr, steps in (("cheetah-run", 2e-4, 500_000), ("hopper-hop", 1e-3, 1_500_000)):
        own, wanted = validated.settings.configs[env], preset("paper-vector", env)
        # The search's batch size and the validation's gamma were wishes; all else is the preset's.
        assert own == replace(wanted, batch_size=64, agent=replace(wanted.agent, gamma=0.9))
        assert (own.agent.lr, own.steps, own.preset) == (lr, steps, "paper-vector")


@pytest.mark.usefixtures("simulated")
def test_methods_with_settings_stand_beside_each_other(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    methods = ("--method", "sac: actor_encoder=shared", "a2-winner", "a2-winner: encoder_layers=4, encoder=mlp")
    assert run("benchmark", "--baseline", "sac", *methods, "--env", "cheetah-run", "--seeds", "3", "--out", "b") == 0
    table = capsys.readouterr().out
    assert run("compare", "b", "--resamples", "100", "--reference", "a2-winner: encoder=mlp, encoder_layers=4") == 0
    key = capsys.readouterr().out
    for label in ("sac: actor_encoder=shared", "a2-winner: encoder=mlp, encoder_layers=4"):
        assert label in table
        assert f"is {label}" in " ".join(key.split())
    assert run("benchmark", "--method", "a2-winner: encoder=conv", "--env", "cheetah-run", "--out", "c") == 2
    assert "encoder is 'conv', but the agent sees vectors" in capsys.readouterr().err
    assert not Path("c").exists()


@pytest.mark.usefixtures("simulated")
def test_validation_that_cannot_be_done(capsys):
    searched()
    assert run("validate", "mine", "--stage", "2") == 2
    assert "mine has no finished candidate in stage 2" in capsys.readouterr().err
    assert run("validate", "mine", "--baseline", "scurl") == 2
    assert "no baseline 'scurl'" in capsys.readouterr().err
    assert run("validate", "mine", "--top", "0") == 2
    assert run("validate", "mine", "--env", "CartPole-v1") == 2
    assert not Path("mine/validation").exists()
    assert run("validate", "mine", "--seeds", "1") == 0
    assert run("validate", "mine", "--seeds", "1", "--steps", "800") == 2
    assert "steps is 400 there, but 800 here" in capsys.readouterr().err


@pytest.mark.usefixtures("simulated")
def test_an_interrupted_validation_says_that_the_same_command_goes_on(capsys, monkeypatch):
    searched("my search")

    with monkeypatch.context() as patch:
        patch.setattr("a2ls.studies._folder.LocalEngine", partial(InstantEngine, interrupt_after=0))
        assert run("validate", "my search", "--top", "2", "--seeds", "1") == 130
    last = capsys.readouterr().out.splitlines()[-1]
    assert last == "interrupted; go on with:  a2ls validate 'my search' --top 2 --seeds 1"
    assert run(*shlex.split(last.partition("a2ls ")[2])) == 0
    assert len(BenchmarkFolder.open(Path("my search/validation")).records()) == 3


# operators and export


@pytest.mark.usefixtures("simulated")
def test_operators_are_the_table_of_the_paper(capsys):
    assert run("operators", "--env", "Pendulum-v1", "--seeds", "2", *SHORT, "--out", "mine") == 0
    output = capsys.readouterr().out
    assert re.search(r"negatives +inner +bilinear +cosine +mse +nmse", output)
    cells = re.findall(r"(\d\.\d{3}) ± \d\.\d{3}", output)
    assert len(cells) == 10
    assert max(map(float, cells)) == 1.0
    assert output.index("with ") < output.index("without ")
    assert fits(output)
    assert run("operators", "--resume", "mine", "--score", "aulc") == 0
    again = capsys.readouterr()
    assert "all 20 trainings were done before" in again.out
    assert "AULC, mean ± standard deviation" in again.out


@pytest.mark.usefixtures("simulated")
def test_export(capsys):
    searched()
    assert run("export", "mine", "--out", "tables") == 0
    assert "4 candidates and 1 baseline:" in capsys.readouterr().out
    with Path("tables/candidates.csv").open(newline="") as file:
        assert [row["kind"] for row in csv.DictReader(file)] == ["candidate"] * 4 + ["baseline"]
    assert Path("tables/candidates.parquet").exists()
    assert run("export", "mine", "tables", "--out", "all") == 0
    output = capsys.readouterr().out
    assert "4 candidates and 1 baseline of 2 searches and benchmarks, without 5 that a folder before has:" in output


# The view


def test_progress_counts_what_this_process_has_trained():
    now = 0.0
    grid = Grid((baseline("sac"), method("a2-winner")), (preset("fast", "walker-run"),), (0, 1))
    runs = grid.runs()
    jobs = [Job(JobKey("s", i), each.method.job(each.config, each.seed), "x") for i, each in enumerate(runs)]
    progress = GridProgress(runs, 2, clock=lambda: now)
    assert progress.seconds_left is None
    progress.happened(Started(jobs[0], 0))
    progress.happened(Evaluated(jobs[0], 0, CurvePoint(8_000, (3.0,))))  # From its checkpoint.
    progress.happened(Progressed(jobs[0], 0, 20_000))
    now = 100.0
    progress.happened(Progressed(jobs[0], 0, 30_000))
    # 10,000 steps in 100 s, and 130,000 are left.
    assert progress.seconds_left == pytest.approx(1_300)
    now = 200.0
    progress.happened(Progressed(jobs[0], 0, 40_000))
    progress.happened(Evaluated(jobs[0], 0, CurvePoint(40_000, (5.0,))))
    line = progress.happened(Finished(jobs[0], 0, 400.0))
    assert line.startswith("walker-run, seed 0, x: AULC 4.0 in")
    assert "1 of 4 trainings done, about" in line
    assert progress.seconds_left == pytest.approx(1_200)
    progress.happened(Started(jobs[1], 1))
    assert "failed: lost" in progress.happened(Failed(jobs[1], 1, "lost"))
    assert progress.ended == 2
    progress.happened(Started(jobs[1], 0))
    assert progress.ended == 1
    progress.happened(Started(jobs[1], 5))  # Worker 0 was lost with its node.
    assert list(progress.activities) == [5]


@pytest.mark.parametrize("width", [80, 120])
def test_the_view_has_a_line_for_each_worker(width):
    grid = Grid((method("a2-winner-v"),), (preset("fast", "walker-run"),), (0, 1, 2))
    first = grid.runs()[0]
    job = Job(JobKey("s", 0), first.method.job(first.config, 0), "s0 a0 a1 s2 a2 a3 r3 a4 r4 a5 a7 s8 -> s1 s3 a4")
    progress = GridProgress(grid.runs(), 2)
    console = Console(width=width, force_terminal=True, color_system=None, file=io.StringIO())
    with BenchmarkView(progress, console) as view:
        view.on_event(Started(job, 1))
        view.on_event(Progressed(job, 1, 20_000))
        view.on_wait()
    console.print(progress_view(progress))
    output = re.sub(r"\x1b\[[?\d]*[A-Za-z]|\r", "", console.file.getvalue())
    lines = [line.rstrip() for line in output.splitlines()[-3:]]
    assert lines[0].startswith("0 of 3 trainings")
    assert "idle" in lines[1]
    assert lines[2].startswith("2  walker-run, seed 0, s0 a0")
    assert lines[2].endswith("20,000/40,000  no score")
    assert all(len(line) <= width for line in lines)
