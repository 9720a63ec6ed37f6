"""The landscape of a trained agent, as it is read from a run."""

import dataclasses
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from a2ls._errors import BadInput
from a2ls.agents import SACConfig
from a2ls.analysis.landscape import _landscape
from a2ls.analysis.landscape._landscape import LandscapeSettings, critic_landscape, filter_normalised_direction
from a2ls.space import named_loss
from a2ls.training import RunFolder, Training, TrainJob, read_trained_agent, run_in_folder
from helpers.agents import generator
from helpers.trainings import PENDULUM, STEERED

WINNER = named_loss("a2-winner")
PIXELS = dataclasses.replace(STEERED, evaluations=1)
SMALL = LandscapeSettings(resolution=5, batch_size=16, batches=2)


def trained_folder(path, config, loss=WINNER):
    folder = RunFolder.create(path, TrainJob(config, loss, 3))
    run_in_folder(folder)
    return folder


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """A run on vectors and one on images, each trained once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "path", [str(Path(__file__).parents[1] / "envs"), *sys.path])
        base = tmp_path_factory.mktemp("runs")
        return {
            "vector": trained_folder(base / "vector", PENDULUM),
            "pixels": trained_folder(base / "pixels", PIXELS),
        }


@pytest.fixture(params=["vector", "pixels"])
def folder(request, folders):
    return folders[request.param]


def restored(folder):
    """The training of a folder as `a2ls train --resume` has it: another way to the same agent."""
    job = folder.job
    training = Training(job.config, job.loss, job.seed)
    folder.checkpoint.restore(training)
    training.close()
    return training


def test_the_centre_is_the_critic_loss_of_the_agent(folder, monkeypatch):
    monkeypatch.setattr(sys, "path", [str(Path(__file__).parents[1] / "envs"), *sys.path])
    settings = LandscapeSettings(resolution=5, batch_size=16, batches=1, seed=5)
    landscape = critic_landscape(read_trained_agent(folder), "", settings)
    training = restored(folder)
    training.agent.generator.manual_seed(settings.part_seed(_landscape._NOISE))
    rng = np.random.default_rng(settings.part_seed(_landscape._TRANSITIONS))
    expected = float(training.agent.update(training.replay_buffer.sample_transitions(16, rng))["critic_loss"])
    assert landscape.centre == pytest.approx(expected, rel=1e-6)
    assert landscape.losses[2, 2] == landscape.centre
    assert (landscape.losses != landscape.centre).sum() == 24


def test_the_loss_is_the_mean_over_batches_that_are_all_different(folders):
    trained = read_trained_agent(folders["vector"])
    settings = LandscapeSettings(resolution=3, batch_size=16, batches=3)
    rng = np.random.default_rng(settings.part_seed(_landscape._TRANSITIONS))
    noise = generator(settings.part_seed(_landscape._NOISE))
    losses = [
        trained.agent.value_loss(trained.replay_buffer.sample_transitions(16, rng), noise)[1]().item() for _ in range(3)
    ]
    assert len(set(losses)) == 3
    assert critic_landscape(trained, "", settings).centre == pytest.approx(sum(losses) / 3, rel=1e-9)


def test_an_agent_is_read_without_an_environment(folder, monkeypatch):
    monkeypatch.setattr(sys, "path", [str(Path(__file__).parents[1] / "envs"), *sys.path])
    training = restored(folder)
    monkeypatch.setattr("a2ls.training._trainer.make_env", None)
    trained = read_trained_agent(folder)
    assert trained.step == training.step == folder.job.config.steps
    expected = dict(training.agent.named_parameters())
    for name, value in trained.agent.named_parameters():
        assert torch.equal(value, expected[name]), name
    ours, theirs = (
        replay.sample_transitions(50, np.random.default_rng(0))
        for replay in (trained.replay_buffer, training.replay_buffer)
    )
    assert all(torch.equal(one, two) for one, two in zip(ours[:5], theirs[:5], strict=True))


def test_the_grid_around_an_agent_is_analytic_for_a_quadratic_loss(folder, monkeypatch):
    trained = read_trained_agent(folder)
    networks = nn.ModuleList([trained.agent.encoder, trained.agent.critic])

    def squares():
        return sum(parameter.double().square().sum() for parameter in networks.parameters())

    monkeypatch.setattr(trained.agent, "value_loss", lambda *_: (networks, squares))
    settings = LandscapeSettings(resolution=4, extent=0.6, batch_size=4, batches=1, seed=2)
    landscape = critic_landscape(trained, "", settings)

    def flat(tensors):
        return np.concatenate([each.detach().numpy().ravel().astype(np.float64) for each in tensors])

    first, second = (
        flat(filter_normalised_direction(networks, generator(settings.part_seed(part)))) for part in (0, 1)
    )
    weights = flat(networks.parameters())
    places = [-0.6, -0.2, 0.2, 0.6]
    expected = [[((weights + x * first + y * second) ** 2).sum() for x in places] for y in places]
    np.testing.assert_allclose(landscape.positions, places, rtol=1e-12)
    np.testing.assert_allclose(landscape.losses, expected, rtol=1e-5)
    turns = np.arange(16) / 16 * 2 * np.pi
    ring = [((weights + 0.5 * (np.cos(t) * first + np.sin(t) * second)) ** 2).sum() for t in turns]
    assert landscape.sharpness == pytest.approx((np.mean(ring) - landscape.centre) / landscape.centre, rel=1e-4)
    assert landscape.convex_share == 1
    assert abs(first @ second) < 0.5 * np.linalg.norm(first) * np.linalg.norm(second)


def test_an_agent_is_the_same_afterwards_and_a_landscape_the_same_again(folder):
    trained = read_trained_agent(folder)
    before = {name: value.clone() for name, value in trained.agent.named_parameters()}
    noise, outside = trained.agent.generator.get_state(), torch.get_rng_state()
    calls = []
    landscape = critic_landscape(trained, "one", SMALL, lambda: calls.append(1))
    assert len(calls) == SMALL.points == 25 + 16 + 1
    for name, value in trained.agent.named_parameters():
        assert value.detach().numpy().tobytes() == before[name].detach().numpy().tobytes(), name
    assert torch.equal(trained.agent.generator.get_state(), noise)
    assert torch.equal(torch.get_rng_state(), outside)
    again = critic_landscape(read_trained_agent(folder), "two", SMALL)
    assert again.losses.tobytes() == landscape.losses.tobytes()
    assert again.ring.tobytes() == landscape.ring.tobytes()
    other = critic_landscape(trained, "three", dataclasses.replace(SMALL, seed=1))
    assert not np.isclose(other.losses, landscape.losses).any()


def test_neither_resolution_nor_extent_changes_what_is_at_a_place(folders):
    trained = read_trained_agent(folders["vector"])
    small = critic_landscape(trained, "", dataclasses.replace(SMALL, extent=0.5))
    large = critic_landscape(trained, "", dataclasses.replace(SMALL, resolution=9))
    assert small.losses.tobytes() == large.losses[2:7, 2:7].tobytes()
    assert small.sharpness == large.sharpness
    assert small.centre == large.centre


def test_a_run_without_a_checkpoint(tmp_path):
    folder = RunFolder.create(tmp_path / "run", TrainJob(PENDULUM, None, 0))
    with pytest.raises(BadInput, match=r"checkpoint.pt does not exist: a run writes it"):
        read_trained_agent(folder)


def test_files_that_are_no_checkpoint_of_the_run(tmp_path, folders):
    file = tmp_path / "file.pt"
    for content in (b"", b"some text", b"PK\x03\x04 and so on"):
        file.write_bytes(content)
        with pytest.raises(BadInput, match=r"file.pt is no checkpoint of a run"):
            read_trained_agent(folders["vector"], file)
    torch.save({"training": {"agent": {}}}, file)
    with pytest.raises(BadInput, match="made by another version of a2ls"):
        read_trained_agent(folders["vector"], file)
    for state in ({"other": 1}, [1, 2]):
        torch.save(state, file)
        with pytest.raises(BadInput, match=r"file.pt is no checkpoint of a run"):
            read_trained_agent(folders["vector"], file)
    with pytest.raises(BadInput, match="is no checkpoint of the run in"):
        read_trained_agent(folders["vector"], folders["pixels"].checkpoint.path)
    wider = dataclasses.replace(PENDULUM, agent=SACConfig(hidden=9))
    for config, loss in ((wider, WINNER), (PENDULUM, None)):
        other = RunFolder.create(tmp_path / str(config.agent.hidden), TrainJob(config, loss, 0))
        with pytest.raises(BadInput, match="is no checkpoint of the run in"):
            read_trained_agent(other, folders["vector"].checkpoint.path)


def test_agents_without_a_loss_to_compute(folders):
    trained = read_trained_agent(folders["vector"])
    with torch.no_grad():
        trained.agent.critic.q1[0].weight[0, 0] = float("nan")
    with pytest.raises(BadInput, match="loss is nan at the trained weights"):
        critic_landscape(trained, "broken", SMALL)
    trained.replay_buffer.added = 0
    with pytest.raises(BadInput, match="the replay buffer is empty"):
        critic_landscape(trained, "new", SMALL)
