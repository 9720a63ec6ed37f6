"""`a2ls landscape`, as a user types it."""

import csv
import dataclasses
import itertools
import json
import shutil
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from a2ls.agents import SACConfig
from a2ls.analysis.landscape._landscape import LandscapeSettings, critic_landscape
from a2ls.cli import main
from a2ls.cli._main import COMMANDS
from a2ls.cli.commands import landscape as _landscape
from a2ls.cli.views import landscape as landscape_view
from a2ls.space import named_loss
from a2ls.training import RunFolder, TrainJob, read_trained_agent, run_in_folder
from helpers.trainings import PENDULUM

QUICK = ["--resolution", "5", "--batch-size", "16", "--batches", "2"]
SETTINGS = LandscapeSettings(resolution=5, batch_size=16, batches=2)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """Three runs, the last one with networks of another shape."""
    base = tmp_path_factory.mktemp("trained")
    wide = dataclasses.replace(PENDULUM, agent=SACConfig(hidden=12, predictor_hidden=8))
    runs = {"winner": (PENDULUM, named_loss("a2-winner")), "plain": (PENDULUM, None), "wide": (wide, None)}
    for name, (config, loss) in runs.items():
        run_in_folder(RunFolder.create(base / name, TrainJob(config, loss, 0)))
    return base


@pytest.fixture(autouse=True)
def _beside_the_runs(trained, tmp_path, monkeypatch):
    shutil.copytree(trained, tmp_path / "runs")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setitem(COMMANDS, "landscape", "Draw the critic's loss around the trained weights of runs.")
    # A process of its own would freeze what it has loaded; this one is that of the tests.
    monkeypatch.setattr(_landscape, "prepare_process", torch.set_num_threads)


def expected(name, checkpoint=None, settings=SETTINGS):
    folder = RunFolder.open(Path("runs") / name)
    return critic_landscape(read_trained_agent(folder, checkpoint), name, settings)


def read_csv(path):
    with Path(path).open(newline="") as file:
        return list(csv.DictReader(file))


def test_a_page_a_table_and_the_grid_of_two_runs(capsys):
    assert main(["landscape", "runs/winner", "runs/plain", *QUICK, "--csv", "grid.csv"]) == 0
    shown = capsys.readouterr().out
    rows = read_csv("grid.csv")
    assert len(rows) == 2 * 25
    page = Path("landscape.html").read_text(encoding="utf-8")
    labels = [f"{loss}, Pendulum-v1, seed 0, step 400" for loss in ("a2-winner", "none")]
    for name, label in zip(("winner", "plain"), labels, strict=True):
        landscape = expected(name)
        ours = [row for row in rows if row["run"] == label]
        found = {(float(row["x"]), float(row["y"])): float(row["loss"]) for row in ours}
        for j, y in enumerate((-1, -0.5, 0, 0.5, 1)):
            for i, x in enumerate((-1, -0.5, 0, 0.5, 1)):
                assert found[x, y] == landscape.losses[j, i]
        (line,) = (line for line in shown.splitlines() if label in line)
        figures = [landscape.centre, landscape.losses.min(), landscape.losses.max()]
        ring = landscape.ring.mean() / landscape.centre - 1
        assert line.split()[-5:-1] == [*(f"{figure:.4g}" for figure in figures), f"{ring:.3g}"]
        assert label in page
    assert "the same draw of directions" in shown
    assert "written: landscape.html" in shown
    assert "written: grid.csv" in shown


def test_the_same_seed_gives_the_same_grid_and_another_another():
    for out, seed in (("a", "1"), ("b", "1"), ("c", "2")):
        arguments = ["--seed", seed, "--csv", f"{out}.csv", "--out", f"{out}.html"]
        assert main(["landscape", "runs/plain", *QUICK, *arguments]) == 0
    first, same, other = (Path(f"{name}.csv").read_bytes() for name in "abc")
    assert first == same
    assert first != other


def test_checkpoints_of_a_run_beside_each_other(capsys):
    state = torch.load("runs/plain/checkpoint.pt", weights_only=True)
    state["training"]["agent_steps"] = 100
    state["training"]["agent"]["critic.q1.0.weight"] *= 2
    torch.save(state, "runs/plain/early.pt")
    assert main(["landscape", "runs/plain", *QUICK, "--csv", "1.csv", "--checkpoint", "early.pt", "checkpoint.pt"]) == 0
    early, late = (expected("plain", Path("runs/plain") / name) for name in ("early.pt", "checkpoint.pt"))
    losses = np.array([float(row["loss"]) for row in read_csv("1.csv")]).reshape(2, 5, 5)
    np.testing.assert_array_equal(losses, [early.losses, late.losses])
    shown = capsys.readouterr().out
    assert "step 200 " in shown
    assert "step 400 " in shown
    # With one run, from anywhere.
    Path("runs/plain/early.pt").rename("elsewhere.pt")
    assert main(["landscape", "runs/plain", *QUICK, "--csv", "2.csv", "--checkpoint", "elsewhere.pt"]) == 0
    assert Path("2.csv").read_text().splitlines() == Path("1.csv").read_text().splitlines()[:26]


def test_a_run_that_keeps_its_checkpoints_shows_its_whole_training(capsys):
    folder = RunFolder.create(Path("runs/kept"), TrainJob(PENDULUM, None, 0))
    run_in_folder(folder, keep_checkpoints=True)
    assert [file.name for file in folder.kept_checkpoints()] == ["200.pt", "400.pt"]
    assert folder.read_curve() == RunFolder.open(Path("runs/plain")).read_curve()
    assert main(["landscape", "runs/kept", *QUICK, "--csv", "kept.csv", "--json", "kept.json", "--kept"]) == 0
    losses = np.array([float(row["loss"]) for row in read_csv("kept.csv")]).reshape(2, 5, 5)
    np.testing.assert_array_equal(losses, [expected("kept", file).losses for file in folder.kept_checkpoints()])
    np.testing.assert_array_equal(losses[1], expected("kept").losses)  # The last is where the training ended.
    numbers = json.loads(Path("kept.json").read_text())
    assert [(each["env"], each["loss"], each["seed"]) for each in numbers] == 2 * [("Pendulum-v1", "none", 0)]
    assert [each["step"] for each in numbers] == [200, 400]
    last = expected("kept")
    names = ("centre", "lowest", "highest", "sharpness", "convex")
    assert [numbers[1][name] for name in names] == [
        last.centre,
        last.losses.min(),
        last.losses.max(),
        pytest.approx(last.ring.mean() / last.centre - 1),
        last.convex_share,
    ]
    assert "step 200 " in capsys.readouterr().out
    assert main(["landscape", "runs/kept", "runs/plain", "--kept"]) == 2
    assert "runs/plain has kept no checkpoints: train it with --keep-checkpoints" in capsys.readouterr().err


def test_landscapes_that_nothing_else_tells_apart_are_called_by_their_files(capsys):
    shutil.copytree("runs/plain", "runs/again")
    assert main(["landscape", "runs/plain", "runs/again", "runs/winner", *QUICK]) == 0
    shown = capsys.readouterr().out
    assert "step 400 (runs/plain/checkpoint.pt)" in shown
    assert "step 400 (runs/again/checkpoint.pt)" in shown
    assert "runs/winner/" not in shown


def test_networks_of_different_shapes_have_directions_of_their_own(capsys):
    assert main(["landscape", "runs/plain", "runs/wide", *QUICK]) == 0
    words = "The networks are not all of the same shapes"
    assert words in " ".join(capsys.readouterr().out.split())
    assert words in Path("landscape.html").read_text(encoding="utf-8")


def test_progress_outside_of_a_terminal(capsys, monkeypatch):
    # Every point takes ten seconds.
    monkeypatch.setattr(landscape_view, "time", SimpleNamespace(monotonic=itertools.count(0, 10).__next__))
    assert main(["landscape", "runs/plain", *QUICK]) == 0
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "none, Pendulum-v1, seed 0, step 400: 2 of 42 points, about 7 min left"
    assert lines[-1].endswith(": 42 of 42 points, about 0 s left")
    assert len(lines) == 21


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "no run is given"),
        (["nowhere"], "nowhere holds no run: there is no config.toml in it"),
        (["runs"], "runs holds no run"),
        (["runs/plain/checkpoint.pt"], "is a file; name the folder of its run, and the file with --checkpoint"),
        (["runs/plain", "runs/new"], "there is no checkpoint runs/new/checkpoint.pt; a run writes"),
        (["runs/plain", "--checkpoint", "early.pt"], "there is no checkpoint runs/plain/early.pt"),
        (
            ["runs/plain", "runs/wide", "--checkpoint", "beside.pt"],
            "there is no checkpoint runs/plain/beside.pt, runs/w",
        ),
        (["runs/plain", "--checkpoint", "config.toml"], "config.toml is no checkpoint of a run"),
        (["runs/plain", "--checkpoint", "../wide/checkpoint.pt"], "no checkpoint of the run in runs/plain"),
        (["runs/plain", "--threads", "0"], "threads is 0, but must be from 1 to"),
        (["runs/plain", "--out", "runs"], "runs is a folder, but must be a file"),
        (["runs/plain", "--csv", "nowhere/grid.csv"], "there is no folder nowhere"),
    ],
)
def test_bad_input_is_one_line(arguments, message, capsys):
    RunFolder.create(Path("runs/new"), TrainJob(PENDULUM, None, 0))
    Path("beside.pt").touch()
    assert main(["landscape", *arguments]) == 2
    error = capsys.readouterr().err
    assert error.startswith("a2ls landscape: error: ")
    assert message in error
    assert error.count("\n") == 1
    assert not Path("landscape.html").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--resolution", "0"], "resolution is 0, but must be from 3 to 1,001"),
        (["--extent", "-1"], "extent is -1.0, but must be above 0"),
        (["--batches", "0"], "batches is 0, but must be at least 1"),
        (["--scale", "loog"], "--scale"),
        (["--resolutoin", "9"], "--resolution"),
    ],
)
def test_options_that_the_parser_refuses(arguments, message, capsys):
    with pytest.raises(SystemExit) as ended:
        main(["landscape", "runs/plain", *arguments])
    assert ended.value.code == 2
    assert message in capsys.readouterr().err


def test_help_says_how_a_run_keeps_more_than_its_last_checkpoint(capsys):
    with pytest.raises(SystemExit):
        main(["landscape", "--help"])
    text = " ".join(capsys.readouterr().out.split())
    assert "train with --keep-checkpoints" in text
    for option in ("--resolution", "--extent", "--batch-size", "--batches", "--seed", "--csv", "--out", "--scale"):
        assert option in text
