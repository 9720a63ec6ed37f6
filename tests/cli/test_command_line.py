import itertools
import re
import signal
import subprocess
import sys
import time
from dataclasses import fields

import pytest

from a2ls.agents import SACConfig
from a2ls.benchmark import BenchmarkFolder, Grid
from a2ls.cli import main
from a2ls.cli._main import COMMANDS
from a2ls.cli._options import EarlyOptions, early_options
from a2ls.envs import EnvironmentConfig
from a2ls.search import SearchFolder
from a2ls.studies import baseline
from a2ls.training import RunFolder, TrainConfig, preset
from helpers.processes import start

SHORT = [
    *("--env", "Pendulum-v1", "--steps", "600", "--evaluations", "3"),
    *("--evaluation-episodes", "2", "--learning-starts", "100", "--hidden", "16", "--batch-size", "16"),
]


def a2ls(*arguments):
    """The command as a user types it."""
    return subprocess.run(
        [sys.executable, "-m", "a2ls", *arguments], capture_output=True, text=True, timeout=300, check=False
    )


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_train_keeps_a_run_and_curves_shows_it(tmp_path):
    done = a2ls("train", *SHORT, "--loss", "a2-winner", "--seed", "7", "--out", "run")
    assert done.returncode == 0, done.stderr
    assert "AULC" in done.stdout
    assert "env step 600: score" in done.stderr
    assert "600 env steps (600 agent steps)" in done.stdout
    assert "a2ls curves run\n" in done.stdout
    assert {"config.toml", "curve.csv", "checkpoint.pt", "result.json", "tensorboard"} <= {
        path.name for path in (tmp_path / "run").iterdir()
    }
    job = RunFolder.open(tmp_path / "run").job
    assert (job.seed, str(job.loss), job.config.agent.hidden) == (7, "s1 a1 a2 a3 -> r0 r1 s2 s3", 16)

    again = a2ls("train", "--config", "run/config.toml", "--out", "again")
    assert again.returncode == 0, again.stderr
    assert (tmp_path / "again/curve.csv").read_bytes() == (tmp_path / "run/curve.csv").read_bytes()

    shown = a2ls("curves", "run", "again")
    assert shown.returncode == 0
    aulc = RunFolder.open(tmp_path / "run").read_result().aulc
    assert shown.stdout.count(f"{aulc:.1f}") == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["trian"], "unknown command 'trian': did you mean train?"),
        (["losses", "a2-winer"], "did you mean a2-winner"),
        (["losses", "a0 -> "], "the target is empty"),
        (["losses", "s0 -> s11"], "outside 1..10"),
        (["train", "--loss", "forward-dynamic"], "did you mean forward-dynamics"),
        (["train", "--loss", "a0 -> "], "the source has no state"),
        (["train", "--hiden", "5"], "--hidden"),
        (["train", "--hidden", "many"], "--hidden"),
        (["train", "--hidden", "0"], "hidden is 0, but must be at least 1"),
        (["train", "--steps", "3"], "too few for 5 evaluations"),
        (
            ["train", "--steps", "4000"],
            "no update: 4,000 environment steps are 1,000 agent steps with an action repeat",
        ),
        (["search", "--env", "Pendulum-v1", "--steps", "900"], "no update: 900 environment steps are 900 agent steps"),
        (
            ["benchmark", "--loss", "spr", "--method", "a2-winner: learning_starts=10000"],
            "10,000 agent steps are random",
        ),
        (["quickstart", "--steps", "2000"], "no update: 2,000 environment steps are 500 agent steps"),
        (["train", "--preset", "fats"], "fast"),
        (["train", "--preset"], "--preset"),
        (["train", "--pixels", "--preset", "paper-vector"], "for pixels there are fast-image"),
        (["train", "--pixels", "--baseline", "sac-identity"], "allowed are sac, sac-no-aug, curl, rad, drq"),
        (["train", "--baseline", "drq"], "allowed are sac, sac-identity, curl, rad"),
        (["train", "--baseline", "curl", "--loss", "spr-2"], "has one of its own"),
        (["train", "--pixels", "--encoder", "dense"], "it must be conv"),
        (["train", "--pixels", "--frame-size", "30", "--image-size", "40"], "crop needs one above image_size"),
        (["train", "--augmentation", "crop"], "which is for images"),
        (["search", "--pixels", "--baselines", "sac-identity"], "sac-identity is no baseline of sac for images"),
        (["benchmark", "--baseline", "drq"], "drq is no baseline of sac for vectors"),
        (["train", "--baseline", "ppo"], "allowed are sac, sac-identity"),
        (["train", "--agent", "sca"], "there is no agent 'sca': did you mean sac"),
        (["search", "--agent", "nowhere:ppo"], "The module 'nowhere' of the agent 'nowhere:ppo' cannot be imported"),
        (["benchmark", "--agent", "ppo", "--loss", "spr"], "there is no agent 'ppo'"),
        (["train", "--env", "CartPole-v1", "--preset", "paper-vector"], "for discrete actions there are fast-discrete"),
        (["train", "--seed", "-1"], "seed is -1"),
        (["train", "--seed", "4294967296"], "seed is 4294967296, but must be from 0 to 4294967295"),
        (["search", "--env", "Pendulum-v1", "--seed", "9" * 20], "seed is 99999999999999999999"),
        (["train", "--threads", "0"], "threads is 0"),
        (["train", "--threads", "100000"], "threads is 100000, but must be from 1 to"),
        (["train", "--out", "x" * 300], "xxx: File name too long"),
        (["search", "--env", "Pendulum-v1", "--out", "x" * 300], "File name too long"),
        (["train", "--device", "tpu"], "device is 'tpu'"),
        (["train", "--env", "cheetah-rum"], "cheetah-run"),
        (["train", "--env", "cheetah-rum", "--steps", "900"], "There is no environment 'cheetah-rum'"),
        (["train", "--env", "CartPole-v1", "--agent", "sac"], "the agent sac needs continuous ones"),
        (["train", "--env", "pong", "--preset", "fast-image"], "for Atari games there are fast-atari, atari-100k"),
        (["train", "--env", "pong", "--no-pixels"], "encoder is 'atari', but the agent sees vectors"),
        (["train", "--env", "no_such_module:Env-v0"], "no_such_module"),
        (["train", "--resume", "nowhere"], "nowhere holds no run"),
        (["train", "--resume", "nowhere", "--steps", "9000"], "leave out all others"),
        (["train", "--config", "nothing.toml"], "cannot read nothing.toml"),
        (["train", "--checkpoint-seconds", "-1"], "checkpoint_seconds is -1.0"),
        (["curves"], "no folder is given"),
        (["curves", "nowhere"], "nowhere holds no run"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_bad_input_is_one_clear_message_and_leaves_nothing_behind(arguments, message, tmp_path, capsys):
    try:
        code = main(arguments)
    except SystemExit as exit_of_the_parser:
        code = exit_of_the_parser.code
    error = capsys.readouterr().err
    # The parser draws boxes around its messages.
    assert message in re.sub(r"[│╭╮╰╯─\s]+", " ", error)
    assert "Traceback" not in error
    assert code == 2
    assert not list(tmp_path.iterdir())


def test_bad_input_in_a_process_has_no_traceback():
    done = a2ls("train", "--env", "CartPole-v1", "--agent", "sac")
    assert done.returncode == 2
    assert done.stderr.startswith("a2ls train: error: ")
    assert "Traceback" not in done.stderr


def test_an_interrupt_says_how_to_go_on(tmp_path):
    process = start("train", *SHORT, "--steps", "100000", "--out", "run")
    while process.poll() is None and not (tmp_path / "run/tensorboard").exists():
        time.sleep(0.05)
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    output, error = process.communicate(timeout=30)
    assert process.returncode == 130, error
    assert "a2ls train --resume run" in output
    assert "Traceback" not in error


def test_every_setting_is_an_option(capsys):
    with pytest.raises(SystemExit):
        main(["train", "--help"])
    shown = capsys.readouterr().out
    for config in (EnvironmentConfig, SACConfig, TrainConfig):
        for field in fields(config):
            if field.name not in ("environment", "agent"):
                option = "agent" if field.name == "algorithm" else field.name.replace("_", "-")
                assert re.search(rf"--{option}[ ,]", shown), field.name


def test_the_options_override_the_file_and_the_file_the_preset(tmp_path, monkeypatch):
    (tmp_path / "some.toml").write_text('loss = "spr-2"\nbatch_size = 7\nsteps = 2000\n[agent]\nhidden = 9\n')
    jobs = []
    monkeypatch.setattr("a2ls.cli.commands.train.train_in_view", lambda folder, **_: jobs.append(folder.job))
    options = [
        "--config",
        "some.toml",
        "--preset",
        "paper-vector",
        "--env",
        "Pendulum-v1",
        "--baseline",
        "sac-identity",
    ]
    assert main(["train", *options, "--steps", "3000", "--out", "run"]) == 0
    config = jobs[0].config
    paper = preset("paper-vector", "Pendulum-v1")
    assert (config.steps, config.batch_size, config.agent.hidden) == (3000, 7, 9)
    assert config.agent.encoder == "identity"
    assert config.agent.lr == paper.agent.lr
    assert config.environment.env == "Pendulum-v1"
    assert str(jobs[0].loss) == "s0 a0 a1 -> s1 s2 | nmse"


def test_options_that_decide_defaults_are_found_among_all_others(capsys):
    options = ["--loss", "s0 -> s1", "--preset=quick", "--env", "one", "two", "--hiden", "5", "--pixels", "--help"]
    early = early_options([*options, "--agent", "mine:td3"])
    assert (early.preset, early.env, early.agent, early.pixels) == ("quick", "one", "mine:td3", True)
    assert early_options([*options, "--no-pixels", "--env", "last"]).env == "last"
    # All options together are read later, and whoever reads them says what is missing here.
    assert early_options([*options, "--agent"]) == EarlyOptions()
    assert capsys.readouterr() == ("", "")


def test_curves_of_what_is_no_run_says_what_it_is_and_what_shows_it(tmp_path, tiny_search, tiny_training, capsys):
    SearchFolder.create(tmp_path / "search", tiny_search)
    BenchmarkFolder.create(tmp_path / "benchmark", Grid((baseline("sac"),), (tiny_training,), (0,)))
    assert main(["curves", "search"]) == 2
    words = "search holds no run, but a search: `a2ls top` and `a2ls report` show what it found"
    assert words in capsys.readouterr().err
    assert main(["curves", "benchmark"]) == 2
    assert "holds no run, but a benchmark: `a2ls compare` shows what it found" in capsys.readouterr().err


def test_help_names_every_command(capsys):
    assert main([]) == 0
    shown = capsys.readouterr().out
    for command in COMMANDS:
        assert f"a2ls {command}" in shown


@pytest.mark.parametrize("command", COMMANDS)
def test_help_fits_a_terminal_and_breaks_no_sentence(command, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "80")
    with pytest.raises(SystemExit) as end:
        main([command, "--help"])
    assert end.value.code == 0
    lines = capsys.readouterr().out.splitlines()
    to_copy = re.compile(r" {4}(a2ls|python) ")
    assert [line for line in lines if len(line) > 80 and not to_copy.match(line)] == []
    # A line of an option's help ends early only where the next word does not fit, or with the help itself.
    rows = [re.match(r"│ {8,}(\S.*?) +│$", line) for line in lines]
    texts = [row and (row.group(1), row.start(1)) for row in rows]
    for one, two in itertools.pairwise(texts):
        if one and two and one[1] == two[1]:
            assert len(one[0]) + 1 + len(two[0].split()[0]) > 77 - one[1], one[0]


@pytest.mark.parametrize(
    "command", ["train", "search", "benchmark", "operators", "export", "simulate", "report", "landscape", "compare"]
)
def test_what_a_command_makes_is_written_to_out(command, capsys):
    with pytest.raises(SystemExit):
        main([command, "--help"])
    assert re.search(r"-o (FOLDER|FILE),.* --out", capsys.readouterr().out)


def test_losses_does_not_wait_for_torch():
    code = "import sys; from a2ls.cli import main; main(['losses', 'spr-3']); assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


def test_a_run_records_a_video(tmp_path):
    # Pendulum draws with a package of its own; a task of dm_control draws with what is installed here.
    options = ["--env", "cartpole-swingup", "--steps", "4000", "--evaluations", "1", "--evaluation-episodes", "1"]
    done = a2ls("train", *options, "--hidden", "16", "--learning-starts", "990", "--video", "--out", "run")
    assert done.returncode == 0, done.stderr
    video = (tmp_path / "run/video.mp4").read_bytes()
    assert video[4:8] == b"ftyp"
    assert "run/video.mp4" in done.stdout
    assert len(video) > 10_000


def test_quickstart_is_a_search_that_ends_with_the_best_loss_beside_the_plain_agent(tmp_path):
    done = a2ls("quickstart", "--env", "Pendulum-v1", "--steps", "600")
    assert done.returncode == 0, done.stderr
    (path,) = (tmp_path / "runs").iterdir()
    folder = SearchFolder.open(path)
    assert [candidate.state for candidate in folder.candidates()] == ["finished"] * 12
    assert len(folder.further()) == 4  # One candidate of each stage is trained twice more.
    best = folder.ranking().losses[0]
    table = done.stdout[done.stdout.rindex("Score by env step") :]
    assert f"candidate {best.candidates[0]} (" in table
    assert "sac (mean of 2 seeds)" in table
    assert f"{best.score:.1f}" in table
    assert "drawn to what similar losses have" in " ".join(table.split())
    for command in ("top", "report", "dashboard", "validate", "losses", "train"):
        assert f" {command} " in table
