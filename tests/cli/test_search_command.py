import os
import re
import shlex
import signal
import time
from dataclasses import fields, replace
from functools import partial

import pytest
from rich.console import Console

from a2ls.agents import SACConfig
from a2ls.cli import main
from a2ls.cli._options import available_cores, parse
from a2ls.cli.commands.search import Arguments, _defaults, print_summary, split_environments
from a2ls.envs import EnvironmentConfig
from a2ls.search import Budget, SearchConfig, SearchFolder, search_command, search_preset
from a2ls.training import TrainConfig
from helpers.engines import InstantEngine, made_up_score
from helpers.processes import start

TRAINING = [
    *("--env", "Pendulum-v1", "--action-repeat", "2", "--hidden", "8", "--batch-size", "8", "--steps", "400"),
    *("--learning-starts", "20", "--evaluations", "2", "--evaluation-episodes", "1"),
]
# As in the paper: each candidate once, by its score.
TINY = [
    *(*TRAINING, "--preset", "quick", "--population-size", "2", "--baseline-seeds", "1"),
    *("--rungs", "1", "--selection", "score", "--surrogate", "none"),
]


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def _simulated(monkeypatch):
    monkeypatch.setattr("a2ls.studies._folder.LocalEngine", InstantEngine)


def found(path):
    """All that a search determines."""
    folder = SearchFolder.open(path)
    rows = [(row.label, row.stage, row.origin, row.parents, row.state, row.curve) for row in folder.candidates()]
    return rows, {(row.label, row.seed, row.state, row.curve) for row in folder.baselines()}


def test_a_search_that_is_interrupted_and_goes_on_finds_the_same(tmp_path, capfd):
    # One process of a worker takes longer to start than all of the trainings: so one worker.
    assert main(["search", *TINY, "--workers", "1", "--out", "whole"]) == 0
    shown, error = capfd.readouterr()
    for line in ("stage 1 of 2 begins", "baseline sac (seed 0): AULC", "(stage 2, 2 of 2): AULC"):
        assert line in error
    words = ("AULC of each stage", "The best candidates", "Score by env step", "winner's curse")
    for word in (*words, "a2ls validate whole", "a2ls report whole", "a2ls dashboard whole"):
        assert word in shown
    rows, _ = found(tmp_path / "whole")
    assert [row[4] for row in rows] == ["finished"] * 4

    process = start("search", *TINY, "--workers", "1", "--out", "parts")
    for line in process.stderr:
        if line.startswith("stage 1 of 2 begins"):
            break
    process.send_signal(signal.SIGINT)
    output, error = process.communicate(timeout=60)
    assert process.returncode == 130, error
    assert "Traceback" not in error
    assert output.splitlines()[-1] == "interrupted; go on with:  a2ls search --resume parts"
    assert len(found(tmp_path / "parts")[0]) < 4

    assert main(["search", "--resume", "parts", "--workers", "1"]) == 0
    assert found(tmp_path / "parts") == found(tmp_path / "whole")


@pytest.mark.usefixtures("_simulated")
def test_the_end_of_a_search_is_told_with_tables_and_next_commands(tmp_path, capsys):
    assert main(["search", *TINY, "--population-size", "8", "--out", "my search"]) == 0
    shown, error = capsys.readouterr()
    words = " ".join(shown.split())
    candidates = SearchFolder.open(tmp_path / "my search").candidates()
    best = max(candidates, key=lambda candidate: candidate.score)
    first = [candidate.score for candidate in candidates[:8]]
    top = sum(sorted(first)[-5:]) / 5
    assert f" 1 8 0 0 {sum(first) / 8:.1f} {top:.1f} {max(first):.1f} 2 8" in words
    assert "sac (one seed) 1" in words
    assert f"candidate {best.number} (one seed)" in words
    assert "The best of 16 such scores is partly luck and too high on average (the winner's curse)" in words
    for command in (
        "a2ls top 'my search'",
        "a2ls validate 'my search'",
        f"a2ls losses '{best.label}'",
        f"a2ls train --env Pendulum-v1 --action-repeat 2 --seed 1 --loss '{best.label}'",
    ):
        assert command in shown
    assert error.startswith("Pendulum-v1, preset quick, in my search\n")
    assert error.count("AULC") > 16


@pytest.mark.usefixtures("_simulated")
def test_a_budget_cuts_a_stage_short_and_the_search_can_go_on(tmp_path, capsys):
    assert main(["search", *TINY, "--population-size", "4", "--max-trials", "6", "--out", "run"]) == 0
    words = " ".join(capsys.readouterr().out.split())
    assert "6 candidates in 2 stages" in words
    assert re.search(r" 2 2 0 0 \d+\.\d \d+\.\d \d+\.\d sac", words)
    assert "The budget ended the search before its last candidate: --max-trials 6." in words
    assert "a2ls search --resume run --max-trials 0" in words

    assert main(["search", "--resume", "run", "--max-trials", "0"]) == 0
    words = " ".join(capsys.readouterr().out.split())
    assert "8 candidates in 2 stages" in words
    assert "budget" not in words
    assert SearchFolder.open(tmp_path / "run").settings.budget == Budget()


@pytest.mark.usefixtures("_simulated")
@pytest.mark.parametrize(
    ("option", "value", "told"), [("--max-env-steps", "1300", "1,300"), ("--max-hours", "1e-9", "1e-09")]
)
def test_every_part_of_the_budget_is_told(option, value, told, capsys):
    assert main(["search", *TINY, option, value, "--baselines", "none", "--out", "run"]) == 0
    shown = capsys.readouterr().out
    assert f"before its last candidate: {option} {told}." in shown
    assert f"a2ls search --resume run {option} 0" in shown


@pytest.mark.usefixtures("_simulated")
def test_more_stages_prolong_a_search(tmp_path, capsys):
    assert main(["search", *TINY, "--out", "run"]) == 0
    before, _ = found(tmp_path / "run")
    assert main(["search", "--resume", "run", "--stages", "4", "--workers", "1"]) == 0
    after, _ = found(tmp_path / "run")
    assert after[:4] == before
    assert [row[1] for row in after] == [1, 1, 2, 2, 3, 3, 4, 4]
    assert SearchFolder.open(tmp_path / "run").config.stages == 4
    assert main(["search", *TINY, "--stages", "4", "--out", "at-once"]) == 0
    assert found(tmp_path / "at-once")[0] == after
    assert main(["search", "--resume", "run", "--stages", "1"]) == 0
    assert found(tmp_path / "run")[0] == after


@pytest.mark.usefixtures("_simulated")
def test_preset_and_environment_decide_what_the_options_leave_open(tmp_path):
    options = ["--env", "Pendulum-v1", "--preset", "quick", "--operators", "mse", "inner +neg", "--baselines", "none"]
    assert main(["search", *options, "--seed", "5", "--survivors", "0.5", "--hidden", "9"]) == 0
    (path,) = (tmp_path / "runs").iterdir()
    assert re.fullmatch(r"Pendulum-v1-quick-\d{8}-\d{6}", path.name)
    expected = replace(
        search_preset("quick", "Pendulum-v1"), operators=("mse", "inner +neg"), baselines=(), seed=5, survivors=0.5
    )
    agent = replace(expected.training.agent, hidden=9)
    assert SearchFolder.open(path).config == replace(expected, training=replace(expected.training, agent=agent))


@pytest.mark.usefixtures("_simulated")
def test_a_search_can_be_kept_in_another_storage_under_its_own_name(tmp_path, capsys):
    storage = ["--storage", f"sqlite:///{tmp_path}/shared.db", "--name", "mine"]
    assert main(["search", *TINY, *storage, "--out", "one"]) == 0
    assert not (tmp_path / "one/storage.db").exists()
    capsys.readouterr()
    assert main(["search", *TINY, *storage, "--out", "two"]) == 2
    assert "has a study 'mine' already" in capsys.readouterr().err
    assert not (tmp_path / "two").exists()
    assert main(["search", "--resume", "one"]) == 0


def test_failures_are_told_at_once_and_at_the_end(monkeypatch, capsys):
    def score(job):
        return RuntimeError("it broke") if "->" in job.label else made_up_score(job)

    monkeypatch.setattr("a2ls.studies._folder.LocalEngine", partial(InstantEngine, score=score))
    assert main(["search", *TINY, "--stages", "1", "--out", "run"]) == 1
    shown, error = capsys.readouterr()
    assert error.count("failed, and is tried once more: it broke: ") == 2
    assert error.count("failed for good (it broke)") == 2
    assert "all 2 candidates failed, the last because: it broke" in error
    assert "go on with:  a2ls search --resume run" in shown


def test_a_search_without_any_result_has_a_summary(tmp_path):
    folder = SearchFolder.create(tmp_path / "search", SearchConfig())
    console = Console(width=80)
    with console.capture() as captured:
        print_summary(console, folder, program="python -m a2ls")
    assert "0 candidates in 0 stages" in captured.get()
    assert f"python -m a2ls top {folder.path}" in captured.get()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--preset", "quik"], "invalid choice 'quik'"),
        (["--preset"], "--preset"),
        (["--populatoin-size", "5"], "--population-size"),
        (["--population-size", "0"], "population_size is 0, but must be from 1 to 100,000"),
        (["--population-size", "10000000"], "population_size is 10000000, but must be from 1 to 100,000"),
        (["--workers", "0"], "workers is 0, but must be at least 1"),
        (["--baselines", "sack"], "there is no baseline 'sack': did you mean sac?"),
        (["--baselines", "sac", "curl", "sac"], "baselines has one twice"),
        (["--operators", "mze"], "did you mean mse?"),
        (["--sampler", "grid"], "invalid choice 'grid'"),
        (["--pruner", "medain"], "did you mean median?"),
        (["--env", "cheetah-rum"], "cheetah-run"),
        (["--env", "CartPole-v1", "--agent", "sac"], "the agent sac needs continuous ones"),
        (["--encoder", "identity"], "the agent has no encoder that losses can train"),
        (["--max-hours", "-1"], "max_hours is -1.0, but must not be negative"),
        (["--max-env-steps", "100"], "max_env_steps is 100, too few for one candidate of 120000 steps"),
        (["--env", "Pendulum-v1", "--storage", "nothing://x"], "the storage 'nothing://x' cannot be opened"),
        (["--resume", "nowhere"], "nowhere holds no search"),
        (["--resume", "nowhere", "--steps", "9000"], "nowhere holds no search"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_bad_input_is_one_clear_message_and_leaves_nothing_behind(arguments, message, tmp_path, capsys):
    try:
        code = main(["search", *arguments])
    except SystemExit as exit_of_the_parser:
        code = exit_of_the_parser.code
    error = capsys.readouterr().err
    # The parser draws boxes around its messages.
    assert message in re.sub(r"[│╭╮╰╯─\s]+", " ", error)
    assert "Traceback" not in error
    assert code == 2
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "options",
    [
        ["--steps", "50000"],
        ["--env", "cheetah-run"],
        ["--preset", "laptop"],
        ["--seed", "1"],
        ["--population-size", "9"],
        ["--baselines", "none"],
        ["--out", "other"],
        ["--name", "other"],
        ["--hidden", "16", "--stages", "9"],
    ],
    ids=" ".join,
)
def test_a_search_that_goes_on_keeps_its_settings(options, tmp_path, capsys):
    environment = EnvironmentConfig("Pendulum-v1")
    folder = SearchFolder.create(
        tmp_path / "run", SearchConfig(TrainConfig(environment), population_size=3, stages=2, baselines=("sac",))
    )
    settings = folder.files.config.read_bytes()
    assert main(["search", "--resume", "run", *options]) == 2
    engine = "--workers, --stall-minutes, --engine, --address, --cpus, --gpus, --checkpoints"
    kept = "--keep-policies, --tensorboard, --wandb, --mlflow"
    assert f"leave out all others but {engine}, {kept}, --retry-failed, --stages" in capsys.readouterr().err
    assert folder.files.config.read_bytes() == settings
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_only_a_search_can_go_on(tmp_path, capsys):
    (tmp_path / "run").mkdir()
    (tmp_path / "run/config.toml").write_text('loss = "none"\n')
    assert main(["search", "--resume", "run"]) == 2
    assert "run holds no search, but a training" in capsys.readouterr().err


def test_a_folder_holds_one_search(tmp_path, capsys):
    folder = SearchFolder.create(tmp_path / "run", SearchConfig())
    settings = folder.files.config.read_bytes()
    assert main(["search", *TINY, "--out", "run"]) == 2
    assert "already holds a search" in capsys.readouterr().err
    assert folder.files.config.read_bytes() == settings


def test_a_search_at_work_is_not_changed(tmp_path, capsys):
    folder = SearchFolder.create(tmp_path / "run", SearchConfig(TrainConfig(EnvironmentConfig("Pendulum-v1"))))
    settings = folder.files.config.read_bytes()
    with folder.files.acquire():
        assert main(["search", "--resume", "run", "--stages", "9"]) == 2
        assert "another process is at work in run" in capsys.readouterr().err
    assert folder.files.config.read_bytes() == settings


def test_every_setting_is_an_option_and_help_shows_lines_to_type(capsys):
    with pytest.raises(SystemExit):
        main(["search", "--help"])
    shown = capsys.readouterr().out
    for config in (SearchConfig, Budget, TrainConfig, EnvironmentConfig, SACConfig):
        for field in fields(config):
            if field.name not in ("training", "environment", "agent", "other_environments"):
                option = "agent" if field.name == "algorithm" else field.name.replace("_", "-")
                assert re.search(rf"--{option}[ ,]", shown), field.name
    assert "a2ls search --env cheetah-run --preset quick" in shown


@pytest.mark.usefixtures("_simulated")
def test_one_search_may_be_on_several_environments(tmp_path, capsys):
    environments = ["Pendulum-v1", "MountainCarContinuous-v0"]
    options = ["--population-size", "4", "--rungs", "1", "2", "--promoted", "0.5", "--workers", "2", "--out", "run"]
    assert main(["search", *TRAINING[2:], "--preset", "quick", "--env", *environments, *options]) == 0
    shown, error = capsys.readouterr()
    assert error.startswith("Pendulum-v1, MountainCarContinuous-v0, preset quick, in run\n")
    folder = SearchFolder.open(tmp_path / "run")
    assert folder.config.environments == tuple(environments)
    assert {record.env for record in folder.candidates()} == set(environments)
    assert {record.env for record in folder.baselines()} == set(environments)
    assert len(folder.further()) == 4
    words = " ".join(shown.split())
    assert "Estimated relative AULC of each stage" in words
    assert "All scores are relative to sac, which is 1 in each environment." in words
    typed = search_command(folder.config)
    assert typed.startswith("a2ls search --env Pendulum-v1 MountainCarContinuous-v0 --preset quick ")
    arguments, others = split_environments(shlex.split(typed)[2:])
    assert others == ("MountainCarContinuous-v0",)
    assert parse(Arguments, "a2ls search", arguments, _defaults(arguments, others)[0]).settings == folder.config


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--env", "Pendulum-v1", "Pendulum-v1"], "each be given once"),
        (["--env", "Pendulum-v1", "walker-walk", "--baselines", "none"], "needs the baseline sac"),
        (["--env", "Pendulum-v1", "--rungs", "3", "1"], "rungs is (3, 1)"),
    ],
)
def test_races_and_environments_that_make_no_sense_are_refused(arguments, words, capsys, tmp_path):
    assert main(["search", *arguments]) == 2
    assert words in " ".join(capsys.readouterr().err.split())
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="a process cannot be bound to cores here")
def test_there_is_a_worker_for_each_core_that_the_process_may_use():
    before = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, [min(before)])
        assert available_cores() == 1
    finally:
        os.sched_setaffinity(0, before)


def test_top_reads_a_search_while_it_is_written(tmp_path, monkeypatch, capsys):
    shown = []

    class Watched(InstantEngine):
        def events(self, timeout):
            events = super().events(timeout)
            if any("->" in event.job.label for event in events) and len(shown) < 5:
                assert main(["top", "run"]) == 0
                shown.append(time.monotonic())
            return events

    monkeypatch.setattr("a2ls.studies._folder.LocalEngine", Watched)
    assert main(["search", *TINY, "--out", "run"]) == 0
    assert len(shown) == 5
    assert "Best first: 1 of 1 candidate\n" in re.sub(r" +\n", "\n", capsys.readouterr().out)
