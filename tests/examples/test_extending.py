"""The examples of docs/extending.md, and the agent in examples/, with the ordinary commands."""

import re
import subprocess
import sys
import textwrap
from dataclasses import replace
from pathlib import Path

import gymnasium
import pytest
import torch
from gymnasium.envs.classic_control.pendulum import PendulumEnv

from a2ls import named_loss, train
from a2ls.auxiliary import AuxiliaryLoss, Sequences
from a2ls.benchmark import BenchmarkFolder
from a2ls.cli import main
from a2ls.envs import EnvironmentConfig
from a2ls.search import SearchFolder, search_preset
from a2ls.testing import EngineConformance
from a2ls.training import RunFolder, TrainJob, read_trained_agent, run_objective
from helpers.trainings import PENDULUM

ROOT = Path(__file__).parents[2]
PYTHON = re.findall(r"```python\n(.*?)```", (ROOT / "docs/extending.md").read_text(), re.DOTALL)
OPERATOR, ENCODER, OBJECTIVE, ENGINE, ENGINE_TEST = PYTHON
SMALL = ["--env", "Pendulum-v1", "--steps", "600", "--evaluations", "2"]
SMALL += ["--evaluation-episodes", "1", "--learning-starts", "200", "--batch-size", "16", "--hidden", "16"]


@pytest.fixture(autouse=True)
def _as_it_was(monkeypatch, _registries_as_they_were):
    """What the examples register and import is forgotten afterwards."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield
    for module in ("my_encoders", "my_training", "td3_agent", "own_objective", "search_your_own_agent"):
        sys.modules.pop(module, None)


def test_an_operator():
    example = {}
    exec(OPERATOR, example)
    loss = example["loss"]
    auxiliary = AuxiliaryLoss(loss, feature_dim=3, action_dim=1)
    states, actions = torch.randn(2, 8, 3), torch.randn(1, 8, 1)
    value = auxiliary(Sequences(states, actions, torch.zeros(1, 8)), lambda x: x, lambda x: x)
    prediction = auxiliary.predictor(torch.cat([states[0], actions[0]], dim=1))
    error = (prediction - states[1]).abs()
    assert value.item() == pytest.approx(torch.where(error < 1, error**2 / 2, error - 0.5).mean().item(), rel=1e-5)
    assert len(train(PENDULUM, loss, seed=0).points) == PENDULUM.evaluations


def test_an_encoder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("my_encoders.py").write_text(ENCODER)
    assert main(["train", *SMALL, "--loss", "a2-winner", "--encoder", "my_encoders:residual", "--out", "run"]) == 0
    agent = read_trained_agent(RunFolder.open(Path("run"))).agent
    assert agent.encoder.feature_dim == 50
    assert [name for name, _ in agent.encoder.named_parameters()][2] == "body.2.inner.0.weight"


def test_an_agent_is_trained_searched_and_benchmarked(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(ROOT / "examples")
    agent = ["--agent", "td3_agent:td3"]
    run = tmp_path / "run"
    assert main(["train", *agent, *SMALL, "--loss", "a2-winner", "--policy-delay", "3", "--out", str(run)]) == 0
    folder = RunFolder.open(run)
    assert type(read_trained_agent(folder).agent).__name__ == "TD3"
    job: TrainJob = folder.job
    assert (job.config.algorithm, job.config.agent.policy_delay) == ("td3_agent:td3", 3)
    assert train(job.config, job.loss, job.seed) == folder.read_curve()

    search = tmp_path / "search"
    small = [*agent, *SMALL, "--preset", "quick", "--population-size", "2", "--stages", "1", "--baseline-seeds", "1"]
    assert main(["search", *small, "--out", str(search)]) == 0
    found = SearchFolder.open(search)
    assert {candidate.state for candidate in found.candidates()} == {"finished"}
    assert [row.label for row in found.baselines()] == ["td3"]
    assert "--agent td3_agent:td3" in capfd.readouterr().out
    assert main(["search", "--resume", str(search), "--workers", "1"]) == 0

    benchmark = tmp_path / "benchmark"
    methods = ["--loss", "none", "curl", "--seeds", "1"]
    assert main(["benchmark", *agent, *SMALL, *methods, "--out", str(benchmark)]) == 0
    rows = BenchmarkFolder.open(benchmark).records()
    # CURL's loss is a baseline of SAC, and just a loss here.
    assert {row.label for row in rows} == {"td3", "s0 -> s0 | bilinear +neg | no predictor"}
    assert all(row.state == "finished" for row in rows)


def test_the_example_of_a_training_function_is_helped_by_losses(monkeypatch):
    monkeypatch.chdir(ROOT / "examples")
    scores = {}
    for loss in (None, named_loss("forward-dynamics")):
        config = search_preset("quick", objective="own_objective:train").training
        job = TrainJob(replace(config, steps=60), loss, 0)
        points = run_objective(job, lambda _: None).points
        assert [point.step for point in points] == [20, 40, 60]
        scores[loss] = points[-1].score
    plain, helped = scores.values()
    assert helped > plain + 10


TOY_AGENT = """
class MyAgent:
    def __init__(self, loss, seed):
        self.score = seed + (0 if loss is None else sum(map(len, (loss.source, loss.target))))
    def learn(self, steps):
        self.score += 1
    def evaluate(self):
        return self.score
"""


def test_a_training_function(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("my_training.py").write_text(TOY_AGENT + OBJECTIVE)
    size = ["--preset", "quick", "--population-size", "3", "--stages", "1", "--baseline-seeds", "1", "--workers", "1"]
    assert main(["search", "--objective", "my_training:train", "--steps", "20000", *size, "--out", "search"]) == 0
    assert "a2ls train" not in capsys.readouterr().out  # There is nothing to train with.
    folder = SearchFolder.open(tmp_path / "search")
    (plain,) = folder.baselines()
    assert (plain.label, plain.curve.aulc, len(plain.curve.points)) == ("objective", 10.5, 20)
    example = {}
    exec(TOY_AGENT + OBJECTIVE, example)
    for each in (*folder.candidates(), *folder.further()):
        points = []
        example["train"](each.loss, each.seed, lambda *point, seen=points: seen.append(point) or True)
        assert [(point.step, point.score) for point in each.curve.points] == points
    assert len(folder.further()) == 2  # The best of the stage is trained twice more.
    assert main(["report", "search"]) == 0
    assert main(["train", "--objective", "my_training:train", "--out", "run"]) == 2
    assert "an objective trains by itself" in capsys.readouterr().err


def indented(first_line):
    """The example of the page that begins so, which stands there as an indented block."""
    text = (ROOT / "docs/extending.md").read_text()
    (block,) = re.findall(rf"^(    {re.escape(first_line)}.*?\n)(?! {{4}}|\n)", text, re.DOTALL | re.MULTILINE)
    return textwrap.dedent(block)


@pytest.mark.slow
def test_an_environment_of_the_script_itself(tmp_path, monkeypatch, tiny_search):
    monkeypatch.chdir(tmp_path)
    small = replace(tiny_search, population_size=2, stages=1, baselines=())
    training = replace(small.training, environment=EnvironmentConfig("MyEnv-v0", action_repeat=1))
    names = {"gymnasium": gymnasium, "MyEnv": type("MyEnv", (PendulumEnv,), {}), "Path": Path}
    names |= {"SearchFolder": SearchFolder, "search_preset": lambda *_: replace(small, training=training)}
    try:
        exec(indented("gymnasium.register("), names)
    finally:
        gymnasium.registry.pop("MyEnv-v0", None)
    assert {each.state for each in names["folder"].candidates()} == {"finished"}


@pytest.mark.slow
def test_strategies_from_python(capsys):
    code = indented("from dataclasses import replace\n")
    assert "repeats=20)" in code
    exec(code.replace("repeats=20)", "repeats=1)"), names := {})
    assert [each.name for each in names["result"].strategies] == ["paper", "pruned"]
    assert "ratio=" in capsys.readouterr().out


def test_what_a_landscape_needs_is_said(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(ROOT / "examples")
    run = tmp_path / "run"
    assert main(["train", "--agent", "td3_agent:td3", *SMALL, "--out", str(run)]) == 0
    assert main(["landscape", str(run), "--out", str(tmp_path / "landscape.html")]) == 2
    assert "TD3 has no value_loss" in capsys.readouterr().err


@pytest.mark.slow
def test_an_engine(tmp_path):
    (tmp_path / "my_engine.py").write_text(ENGINE)
    (tmp_path / "test_my_engine.py").write_text(ENGINE_TEST)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_my_engine.py"]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    tests = [name for name in vars(EngineConformance) if name.startswith("test_")]
    assert f"{len(tests)} passed" in ran.stdout, ran.stdout
