"""Trainings whose updates are played from tapes: as repeatable as any, and close to those without."""

import copy
import dataclasses
import tomllib
from itertools import pairwise

import pytest
import torch

from a2ls.agents import SACConfig
from a2ls.cli import main
from a2ls.envs import EnvironmentConfig
from a2ls.space import Loss, named_loss
from a2ls.training import TrainConfig, Training

WINNER, LONG = named_loss("a2-winner"), Loss.parse("s0 a0 -> s6 r1")
# Episodes of 6 environment steps, of which each begins after an odd number of updates.
COUNTER = TrainConfig(
    environment=EnvironmentConfig(env="a2ls_toy_envs:Toy/TimeLimited-v0", action_repeat=1),
    agent=SACConfig(hidden=16, predictor_hidden=16),
    steps=50,
    evaluations=2,
    evaluation_episodes=1,
    initial_steps=15,
    batch_size=8,
    auxiliary_batch_size=6,
)


def trained(config, loss=WINNER, **callbacks):
    training = Training(config, loss, seed=0)
    training.run(**callbacks)
    training.close()
    return training


def same(one, two):
    return all(torch.equal(a, b) for a, b in zip(one.parameters(), two.parameters(), strict=True))


def without_tapes(config):
    return dataclasses.replace(config, agent=dataclasses.replace(config.agent, compiled=False))


@pytest.mark.parametrize("actor_every", [2, 3])
def test_a_training_goes_on_bit_for_bit_from_any_episode(actor_every):
    config = dataclasses.replace(COUNTER, agent=dataclasses.replace(COUNTER.agent, actor_every=actor_every))
    saved = []
    whole = trained(config, on_episode=lambda training: saved.append(copy.deepcopy(training.state_dict())))
    assert len(saved) == 9
    assert {state["agent"]["_extra_state"]["updates"] % 2 for state in saved[3:]} == {1}
    for state in saved[2:]:
        other = Training(config, WINNER, seed=0)
        other.load_state_dict(state)
        other.run()
        other.close()
        assert same(whole.agent, other.agent)
        assert whole.curve == other.curve
        assert whole.metrics == other.metrics


@pytest.mark.parametrize("loss", [None, WINNER, LONG], ids=str)
def test_a_training_is_close_to_one_without_tapes(loss):
    # At first no episode is long enough for the last loss.
    config = dataclasses.replace(COUNTER, steps=24, evaluations=1, initial_steps=4)
    compiled, plain = trained(config, loss), trained(without_tapes(config), loss)
    assert compiled.updates_without_sequences == plain.updates_without_sequences
    assert (compiled.updates_without_sequences > 0) == (loss == LONG)
    assert not same(compiled.agent, plain.agent)
    for one, two in zip(compiled.agent.parameters(), plain.agent.parameters(), strict=True):
        torch.testing.assert_close(one, two, rtol=0, atol=2e-3)
    assert compiled.metrics == pytest.approx(plain.metrics, rel=0.05, abs=0.05)
    assert compiled.metrics.keys() == plain.metrics.keys()


def test_the_figures_of_a_training_can_be_watched_at_any_decision():
    seen = []
    training = trained(COUNTER, on_decision=lambda training: seen.append(training.metrics))
    assert seen[: COUNTER.initial_steps] == [{}] * COUNTER.initial_steps
    assert all(len(metrics) == 6 for metrics in seen[COUNTER.initial_steps :])
    # What an update does not have is that of the last one which had it.
    last = seen[COUNTER.initial_steps :]
    assert [one["entropy"] == two["entropy"] for one, two in zip(last[:-1:2], last[1::2], strict=False)] == [True] * 17
    assert all(one["entropy"] != two["entropy"] for one, two in zip(last[:-2:2], last[2::2], strict=True))
    assert all(one["critic_loss"] != two["critic_loss"] for one, two in pairwise(last))
    assert seen[-1] == training.metrics


@pytest.mark.parametrize(("option", "compiled"), [([], True), (["--no-compiled"], False), (["--compiled"], True)])
def test_tapes_can_be_switched_off_on_the_command_line(tmp_path, monkeypatch, option, compiled):
    monkeypatch.chdir(tmp_path)
    jobs = []
    monkeypatch.setattr("a2ls.cli._train.train_in_view", lambda folder, **_: jobs.append(folder.read_job()))
    assert main(["train", "--env", "Pendulum-v1", *option, "--out", "run"]) == 0
    assert jobs[0].config.agent.compiled is compiled
    assert tomllib.loads((tmp_path / "run/config.toml").read_text())["agent"]["compiled"] is compiled
