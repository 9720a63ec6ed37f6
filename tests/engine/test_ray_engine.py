"""`RayEngine` on a real cluster of two nodes on this machine, and what is said where there is none."""

import re
import shlex
import socket
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from a2ls import BadInput
from a2ls.benchmark import BenchmarkFolder
from a2ls.cli import main
from a2ls.engine import RayEngine, require_cluster
from a2ls.search import SearchFolder
from a2ls.testing import EngineConformance, ray_cluster
from helpers.engines import InstantEngine

# One process starts the one cluster.
pytestmark = pytest.mark.xdist_group("ray")


@pytest.fixture(scope="module")
def cluster():
    with ray_cluster(2, 1) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def shared(cluster, tmp_path_factory):
    """Two of the three processors are its own; one is left to other engines."""
    folder = tmp_path_factory.mktemp("ray")
    with RayEngine("shared", address=cluster.address, workers=2, log=folder / "workers.log") as engine:
        engine.folder = folder
        yield engine


class TestRayEngine(EngineConformance):
    @pytest.fixture
    def engine(self, shared):
        return shared


def scores(folder):
    return [(candidate.label, candidate.curve) for candidate in folder.candidates()]


@pytest.fixture(scope="session")
def small_search(tiny_search):
    training = replace(tiny_search.training, steps=400, evaluations=2, compiled=False)
    return replace(tiny_search, training=training, population_size=2, stages=2, baselines=())


def test_a_search_on_a_cluster_finds_what_one_on_this_machine_finds(cluster, shared, small_search, tmp_path):
    folder = SearchFolder.create(tmp_path / "cluster", small_search)
    with RayEngine("search", address=cluster.address, workers=1, checkpoints=str(tmp_path / "shared")) as engine:
        folder.run(engine)
    local = SearchFolder.create(tmp_path / "local", small_search)
    local.run(workers=1)
    assert len(scores(local)) == 4
    assert scores(folder) == scores(local)
    assert list((tmp_path / "shared").iterdir()) == []


@pytest.mark.slow
def test_benchmarks_and_validations_train_on_the_cluster_by_the_same_options(
    cluster, shared, small_search, tmp_path, monkeypatch
):
    monkeypatch.setattr("a2ls.studies._folder.LocalEngine", None)  # Nothing is trained by this machine's own engine.
    small = "--env Pendulum-v1 --seeds 1 --steps 200 --evaluations 1 --evaluation-episodes 1 --learning-starts 80"
    small += " --batch-size 8 --hidden 8"
    machines = f"--engine ray --address {cluster.address} --workers 1 --cpus 0.5 --checkpoints {tmp_path}/shared"
    asked = {"benchmark": ["--loss", "a2-winner", "--baseline", "sac"], "operators": []}
    for command, what in asked.items():
        out = tmp_path / command
        assert main([command, *what, *small.split(), "--no-compiled", *machines.split(), "--out", str(out)]) == 0
    search = SearchFolder.create(tmp_path / "search", small_search)
    search.run(InstantEngine(2))
    assert main(["validate", str(search.path), "--seeds", "1", "--top", "1", *machines.split()]) == 0
    folders = [*(tmp_path / command for command in asked), search.path / "validation"]
    trained = [BenchmarkFolder.open(folder).records() for folder in folders]
    assert [len(records) for records in trained] == [2, 10, 2]
    assert {record.state for records in trained for record in records} == {"finished"}


@pytest.mark.slow
def test_the_command_of_the_tutorial(cluster, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    tutorial = (Path(__file__).parents[2] / "docs/cluster.md").read_text()
    tutorial = tutorial.split("## Three machines")[1].split("## Slurm")[0]
    (command,) = re.findall(r"^    a2ls (search --env cheetah-run --engine ray .+)$", tutorial, re.MULTILINE)
    small = "--preset quick --population-size 2 --stages 1 --baselines none --steps 400 --evaluations 2 --hidden 8"
    small += " --env Pendulum-v1 --evaluation-episodes 1 --learning-starts 50 --batch-size 8 --workers 1"
    assert main(shlex.split(f"{command.replace('--env cheetah-run ', '')} {small} --address {cluster.address}")) == 0
    found = SearchFolder.open(Path("runs/cheetah"))
    assert {each.state for each in found.candidates()} == {"finished"}, capsys.readouterr().out


def test_a_node_with_another_version_is_refused(cluster, shared, small_search, tmp_path, monkeypatch):
    monkeypatch.setattr("a2ls.engine._ray_engine.version", lambda _: "9.9")
    folder = SearchFolder.create(tmp_path / "cluster", small_search)
    with (
        RayEngine("version", address=cluster.address, workers=1) as engine,
        pytest.raises(BadInput, match=r"has a2ls .*, but the search has 9\.9: install one version on all machines"),
    ):
        folder.run(engine)


def test_a_training_that_no_node_has_room_for_is_refused(cluster, shared):
    words = r"cpus is 1 and gpus is 0\.5, but no node .*: they have 1 CPUs and 0 GPUs, 2 CPUs and 0 GPUs\."
    with pytest.raises(BadInput, match=words):
        RayEngine("gpus", address=cluster.address, gpus=0.5)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"workers": 0}, "workers is 0"),
        ({"cpus": -1.0}, "cpus is -1.0, but must be a number that is not negative"),
        ({"cpus": 0.0}, "cpus and gpus are both 0"),
        ({"gpus": 1.5}, "gpus is 1.5, but more than one must be a whole number"),
        ({"checkpoints": "nosuch://here"}, "checkpoints is 'nosuch://here', which cannot be opened"),
        ({"checkpoints": "/proc/nowhere"}, "checkpoints is '/proc/nowhere', where nothing can be written"),
        ({"address": "here"}, "address is 'here', but must be 'auto' or host:port"),
    ],
)
def test_options_that_cannot_be_meant_are_refused_before_anything_is_connected(options, words):
    with pytest.raises(BadInput, match=words):
        RayEngine("options", **options)


def test_without_ray_the_message_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)  # As if it were not installed.
    with pytest.raises(BadInput, match=r"pip install 'a2ls\[ray\]'"):
        require_cluster("auto")


def test_without_a_cluster_a_command_ends_at_once_and_writes_nothing(tmp_path, monkeypatch, capsys):
    with socket.socket() as taken:  # Bound, and nobody listens.
        taken.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        command = ["search", "--engine", "ray", "--address", address, "--out", str(tmp_path / "search")]
        assert main(command) == 2
    assert f"no Ray cluster answers at the address '{address}'" in capsys.readouterr().err
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    monkeypatch.setenv("RAY_TMPDIR", str(tmp_path))
    assert main(["search", "--engine", "ray", "--out", str(tmp_path / "search")]) == 2
    assert "there is no Ray cluster on this machine" in capsys.readouterr().err
    assert main(["search", "--gpus", "0.5", "--out", str(tmp_path / "search")]) == 2
    assert "--gpus is for a cluster: give --engine ray, too" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_workers_write_nothing_into_a_folder_that_somebody_else_has_made_for_them(tmp_path, monkeypatch):
    from a2ls.engine._ray_worker import _own_folder

    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    own = _own_folder()
    own.parent.rename(tmp_path / "theirs")
    own.parent.symlink_to(tmp_path / "theirs")
    assert (tmp_path / "theirs") not in _own_folder().resolve().parents
    own.parent.unlink()
    assert _own_folder() == own
