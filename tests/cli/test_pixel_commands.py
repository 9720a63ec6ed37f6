"""The command line with pixels, as a user types it."""

import json
import subprocess
import sys
from pathlib import Path

import imageio.v3 as imageio
import pytest

from a2ls.benchmark import BenchmarkFolder
from a2ls.cli import main
from a2ls.search import SearchFolder
from a2ls.training import RunFolder, preset

TINY = [
    *("--env", "cartpole-swingup", "--pixels", "--no-shadows", "--frame-size", "20", "--image-size", "16"),
    *("--encoder-layers", "2", "--filters", "4", "--hidden", "8", "--batch-size", "4", "--steps", "1200"),
    *("--learning-starts", "130", "--evaluations", "1", "--evaluation-episodes", "1"),
]


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def planned(monkeypatch):
    """The jobs that `a2ls train` would train."""
    jobs = []
    monkeypatch.setattr("a2ls.cli.commands.train.train_in_view", lambda folder, **_: jobs.append(folder.job))
    return jobs


def test_pixels_alone_mean_the_fast_preset_for_images(planned):
    assert main(["train", "--env", "cartpole-swingup", "--pixels", "--loss", "a2-winner", "--out", "run"]) == 0
    assert planned[0].config == preset("fast-image", "cartpole-swingup")


def test_a_file_that_asks_for_pixels_means_it_too(tmp_path, planned):
    (tmp_path / "some.toml").write_text("steps = 9000\n[environment]\nenv = 'walker-walk'\npixels = true\n")
    assert main(["train", "--config", "some.toml", "--out", "run"]) == 0
    config = planned[0].config
    assert (config.steps, config.environment.action_repeat, config.agent.encoder) == (9000, 2, "conv")


@pytest.mark.parametrize(
    ("agent", "augmentation", "frame_size", "loss"),
    [
        ("sac", "crop", 100, "none"),
        ("sac-no-aug", "none", 84, "none"),
        ("curl", "crop", 100, "s0 -> s0 | bilinear +neg | no predictor"),
        ("rad", "translate", 78, "none"),
        ("drq", "shift", 84, "none"),
    ],
)
def test_an_agent_by_name(planned, agent, augmentation, frame_size, loss):
    assert main(["train", "--preset", "paper-image-search", "--baseline", agent, "--out", "run"]) == 0
    config = planned[0].config
    assert (config.agent.augmentation, config.environment.frame_size) == (augmentation, frame_size)
    assert str(planned[0].loss).lower().replace(" @1", "") == loss


def test_the_loss_curl_is_the_baseline_curl(planned):
    for option in ("--loss", "--baseline"):
        assert main(["train", "--preset", "paper-image-search", option, "curl", "--out", option[2:]]) == 0
    assert planned[0] == planned[1]
    assert (planned[0].config.agent.auxiliary_batch, planned[0].config.preset) == ("critic", "paper-image-search")
    assert RunFolder.open(Path("loss")).job == planned[0]


def test_a_run_on_pixels_learns_goes_on_and_leaves_a_film(tmp_path):
    command = [sys.executable, "-m", "a2ls", "train", *TINY, "--loss", "a2-winner", "--out", "run"]
    done = subprocess.run([*command, "--video", "--video-format", "gif"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "cartpole-swingup from pixels (20 x 20)" in done.stdout
    result = RunFolder.open(tmp_path / "run").read_result()
    assert (result.state, result.updates) == ("finished", 150 - 130)
    film = imageio.imread(tmp_path / "run/video.gif")
    assert film.shape == (125, 240, 320, 3)
    assert (film[0] != film[-1]).any()
    assert main(["train", "--resume", "run", "--video"]) == 0
    assert (tmp_path / "run/video.mp4").stat().st_size > 10_000


def test_a_benchmark_on_pixels_compares_the_baselines_for_images(tmp_path):
    baselines = ["sac", "sac-no-aug", "curl", "rad", "drq"]
    assert main(["benchmark", *TINY, "--baseline", *baselines, "--seeds", "1", "--out", "all"]) == 0
    rows = BenchmarkFolder.open(tmp_path / "all").records()
    assert {row.label: row.state for row in rows} == dict.fromkeys(baselines, "finished")


@pytest.mark.slow
def test_a_search_on_pixels_from_its_start_to_a_verdict(tmp_path):
    settings = [
        "--env",
        "cartpole-swingup",
        "--pixels",
        "--preset",
        "quick",
        "--population-size",
        "3",
        "--steps",
        "12000",
    ]
    assert main(["search", *settings, "--out", "found"]) == 0
    folder = SearchFolder.open(tmp_path / "found")
    assert [candidate.state for candidate in folder.candidates()] == ["finished"] * 6
    assert {candidate.stage for candidate in folder.candidates()} == {1, 2}
    assert folder.config.training.environment.pixels
    assert main(["validate", "found", "--top", "1", "--seeds", "1", "--baseline", "sac-no-aug"]) == 0
    said = json.loads((tmp_path / "found/winner.json").read_text())
    assert said["normalised"]["baseline"] == "sac-no-aug"
    # So short a search may find no loss that is better.
    ended = main(["train", *TINY, "--loss", "found/winner.json", "--out", "run"])
    assert ended == (2 if said["outcome"] == "none" else 0)
