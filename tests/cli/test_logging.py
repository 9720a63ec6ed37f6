"""Training, benchmarking and searching with loggers: what they wrote is read back by their own packages."""

import json
import re

import pytest
from mlflow import MlflowClient
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from wandb.proto import wandb_internal_pb2

from a2ls import load_agent
from a2ls.benchmark import BenchmarkFolder
from a2ls.cli import main
from a2ls.search import SearchFolder
from a2ls.training import RunFolder

SMALL = [
    *("--env", "Pendulum-v1", "--action-repeat", "2", "--steps", "1000", "--evaluations", "2", "--hidden", "8"),
    *("--evaluation-episodes", "1", "--learning-starts", "150", "--batch-size", "8", "--predictor-hidden", "8"),
    "--no-compiled",
]


@pytest.fixture(scope="module")
def mlflow_storage(tmp_path_factory):
    """Made once: MLflow takes seconds to make its tables."""
    uri = f"sqlite:///{tmp_path_factory.mktemp('mlflow')}/mlflow.db"
    MlflowClient(uri).search_experiments()
    return uri


@pytest.fixture
def _mlflow(monkeypatch, mlflow_storage):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", mlflow_storage)


@pytest.fixture(autouse=True)
def _on_this_machine(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_SILENT", "true")


def of_tensorboard(folder):
    events = EventAccumulator(str(folder)).Reload()
    return {tag: [(each.step, each.value) for each in events.Scalars(tag)] for tag in events.Tags()["scalars"]}


def wandb_records(file):
    """The messages in the file of an offline run: a log of LevelDB, whose records are cut at blocks of 32 KiB."""
    data, place, message = file.read_bytes(), 7, b""
    assert data.startswith(b":W&B")
    while place + 7 <= len(data):
        if 32768 - place % 32768 < 7:
            place += 32768 - place % 32768
        size, kind = int.from_bytes(data[place + 4 : place + 6], "little"), data[place + 6]
        message += data[place + 7 : place + 7 + size]
        place += 7 + size
        if kind in (1, 4):  # Whole, or the last part.
            record = wandb_internal_pb2.Record()
            record.ParseFromString(message)
            yield record
            message = b""


def of_wandb(folder):
    """By name and run: the step and the value of all that offline runs hold."""
    found = {}
    for file in sorted(folder.glob("wandb/offline-run-*/*.wandb")):
        name = ""
        for record in wandb_records(file):
            name = record.run.display_name or name
            items = {item.key or "/".join(item.nested_key): json.loads(item.value_json) for item in record.history.item}
            for key, value in items.items():
                if not key.startswith("_") and key != "global_step":
                    found.setdefault((name, key), []).append((items["global_step"], value))
    return found


def of_mlflow(experiment):
    client = MlflowClient()
    (number,) = (each.experiment_id for each in client.search_experiments() if each.name == experiment)
    runs = client.search_runs([number])
    return {
        run.info.run_name: (run.data.params, {
            key: [(each.step, each.value) for each in client.get_metric_history(run.info.run_id, key)]
            for key in run.data.metrics
        })
        for run in runs
    }  # fmt: skip


@pytest.mark.usefixtures("_mlflow")
def test_a_training_logs_returns_evaluations_and_metrics_everywhere(tmp_path):
    assert main(["train", *SMALL, "--loss", "a2-winner", "--wandb", "mine", "--mlflow", "ours", "--out", "run"]) == 0
    scores = [(point.step, point.score) for point in RunFolder.open(tmp_path / "run").read_curve().points]
    board = of_tensorboard(tmp_path / "run/tensorboard")
    params, tracked = of_mlflow("ours")["run"]
    wandb = {key: values for (name, key), values in of_wandb(tmp_path / "run").items() if name == "run"}
    assert (params["seed"], params["agent.hidden"]) == ("0", "8")
    for logged in (board, tracked, wandb):
        steps, values = zip(*logged["evaluation/score"], strict=True)
        assert (steps, values) == (tuple(step for step, _ in scores), pytest.approx([score for _, score in scores]))
        returns = logged["rollout/episode_return"]
        assert [step for step, _ in returns] == [200, 400, 600, 800, 1000]
        assert all(-2000 < value < 0 for _, value in returns)
        assert "update/auxiliary_loss" in logged
    # What goes on is logged to the same runs.
    before = json.loads((tmp_path / "run/logged.json").read_text())
    (tmp_path / "run/result.json").unlink()
    assert main(["train", "--resume", "run", "--wandb", "mine", "--mlflow", "ours"]) == 0
    assert json.loads((tmp_path / "run/logged.json").read_text()) == before
    assert len(of_mlflow("ours")) == 1


@pytest.mark.slow
@pytest.mark.usefixtures("_mlflow")
def test_a_benchmark_logs_a_run_for_each_training(tmp_path):
    methods = ["--loss", "a2-winner", "none", "--seeds", "1", "--workers", "1", "--keep-policies", "1"]
    logs = ["--tensorboard", "--mlflow", "bench", "--wandb", "bench"]
    assert main(["benchmark", *SMALL, *methods, *logs, "--out", "bench"]) == 0
    tracked, wandb = of_mlflow("bench"), of_wandb(tmp_path / "bench")
    records = BenchmarkFolder.open(tmp_path / "bench").records()
    assert len(tracked) == len(records) == 2
    assert len(list(tmp_path.glob("bench/policies/Pendulum-v1/*.safetensors"))) == 1
    for record in records:
        (name,) = (each for each in tracked if each.startswith(f"{record.number}-"))
        scores = [(point.step, point.score) for point in record.curve.points]
        board = of_tensorboard(tmp_path / "bench/tensorboard" / name)
        assert tracked[name][1]["evaluation/score"] == scores == wandb[name, "evaluation/score"]
        for logged in (board, tracked[name][1]):
            assert [step for step, _ in logged["rollout/episode_return"]] == [200, 400, 600, 800, 1000]


def test_a_search_logs_its_course_to_one_run_and_keeps_its_best_policies(tmp_path, capsys):
    size = ["--population-size", "3", "--stages", "1", "--rungs", "1", "--baselines", "none", "--workers", "1"]
    logs = ["--tensorboard", "--wandb", "search", "--keep-policies", "2"]
    assert main(["search", *SMALL, "--preset", "quick", *size, *logs, "--out", "search"]) == 0
    folder = SearchFolder.open(tmp_path / "search")
    expected = [(each.number, each.curve.aulc) for each in folder.candidates()]
    wandb = {key: values for (_, key), values in of_wandb(tmp_path / "search").items()}
    for logged in (of_tensorboard(tmp_path / "search/tensorboard"), wandb):
        numbers, values = zip(*logged["search/aulc"], strict=True)
        assert (numbers, values) == ((0, 1, 2), pytest.approx([aulc for _, aulc in expected]))
        assert logged["search/best_estimate"][-1][1] == pytest.approx(folder.ranking().losses[0].estimate.value)
    trainings = [path for path in (tmp_path / "search/tensorboard").iterdir() if path.is_dir()]
    assert sorted(int(re.match(r"\d+", path.name)[0]) for path in trainings) == [0, 1, 2]
    files = sorted(tmp_path.glob("search/policies/Pendulum-v1/*.safetensors"))
    best = sorted((aulc for _, aulc in expected), reverse=True)[:2]
    assert sorted((load_agent(file).aulc for file in files), reverse=True) == best
    first = next(file for file in files if load_agent(file).aulc == best[0]).relative_to(tmp_path)
    assert re.search(rf"let the best kept agent play +a2ls enjoy {re.escape(str(first))}\n", capsys.readouterr().out)
    assert main(["enjoy", str(first), "--episodes", "1"]) == 0
    assert main(["enjoy", "search"]) == 2
    assert "holds 2 policies: name one of them" in capsys.readouterr().err


@pytest.mark.parametrize("extra", ["wandb", "mlflow"])
def test_a_package_that_is_missing_is_named_before_anything_is_trained(extra, tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(__import__("sys").modules, extra, None)
    assert main(["train", *SMALL, f"--{extra}", "mine", "--out", "run"]) == 2
    assert f"pip install 'a2ls[{extra}]'" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()
