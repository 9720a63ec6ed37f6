"""Trainings whose updates are recorded: as repeatable as any, and close to those by PyTorch."""

import copy
import dataclasses
import tomllib
from itertools import pairwise

import pytest
import torch
from gymnasium.spaces import Box

from a2ls.agents import SAC, SACConfig, Transitions
from a2ls.auxiliary import Sequences
from a2ls.cli import main
from a2ls.recorder import Recorded
from a2ls.space import MSE, OPERATORS, Loss, named_loss
from a2ls.training import Training, read_job
from helpers import trainings

WINNER, LONG = named_loss("a2-winner"), Loss.parse("s0 a0 -> s6 r1")
# Episodes of 6 environment steps, of which each begins after an odd number of updates.
COUNTER = dataclasses.replace(trainings.COUNTER, steps=50, learning_starts=15, auxiliary_batch_size=6)


def trained(config, loss=WINNER, **callbacks):
    training = Training(config, loss, seed=0)
    training.run(**callbacks)
    training.close()
    return training


def same(one, two):
    return all(torch.equal(a, b) for a, b in zip(one.parameters(), two.parameters(), strict=True))


@pytest.mark.parametrize("actor_every", [2, 3])
def test_a_training_goes_on_bit_for_bit_from_any_episode(actor_every):
    config = dataclasses.replace(COUNTER, agent=dataclasses.replace(COUNTER.agent, actor_every=actor_every))
    saved = []
    whole = trained(config, on_episode=lambda training: saved.append(copy.deepcopy(training.state_dict())))
    assert len(saved) == 9
    assert {state["updates"] % 2 for state in saved[3:]} == {1}
    for state in saved[2::2]:
        other = Training(config, WINNER, seed=0)
        other.load_state_dict(state)
        other.run()
        other.close()
        assert same(whole.agent, other.agent)
        assert whole.curve == other.curve
        assert whole.metrics == other.metrics


@pytest.mark.parametrize("loss", [None, WINNER, LONG], ids=str)
def test_a_recorded_training_is_close_to_one_by_pytorch(loss):
    # At first no episode is long enough for the last loss.
    config = dataclasses.replace(COUNTER, steps=24, evaluations=1, learning_starts=4)
    compiled, plain = trained(config, loss), trained(dataclasses.replace(config, compiled=False), loss)
    assert compiled.updates_without_sequences == plain.updates_without_sequences
    assert (compiled.updates_without_sequences > 0) == (loss == LONG)
    assert not same(compiled.agent, plain.agent)
    for one, two in zip(compiled.agent.parameters(), plain.agent.parameters(), strict=True):
        torch.testing.assert_close(one, two, rtol=0, atol=2e-3)
    assert compiled.metrics == pytest.approx(plain.metrics, rel=0.05, abs=0.05)
    assert compiled.metrics.keys() == plain.metrics.keys()


def test_the_metrics_of_a_training_can_be_watched_at_any_decision():
    seen = []
    training = trained(COUNTER, on_step=lambda training: seen.append(training.metrics))
    assert seen[: COUNTER.learning_starts] == [{}] * COUNTER.learning_starts
    assert all(len(metrics) == 6 for metrics in seen[COUNTER.learning_starts :])
    # What an update does not have is that of the last one which had it.
    last = seen[COUNTER.learning_starts :]
    assert [one["entropy"] == two["entropy"] for one, two in zip(last[:-1:2], last[1::2], strict=False)] == [True] * 17
    assert all(one["entropy"] != two["entropy"] for one, two in zip(last[:-2:2], last[2::2], strict=True))
    assert all(one["critic_loss"] != two["critic_loss"] for one, two in pairwise(last))
    assert seen[-1] == training.metrics


@pytest.mark.parametrize(("option", "compiled"), [([], True), (["--no-compiled"], False), (["--compiled"], True)])
def test_recording_can_be_switched_off_on_the_command_line(tmp_path, monkeypatch, option, compiled):
    monkeypatch.chdir(tmp_path)
    jobs = []
    monkeypatch.setattr("a2ls.cli.commands.train.train_in_view", lambda folder, **_: jobs.append(folder.job))
    assert main(["train", "--env", "Pendulum-v1", *option, "--out", "run"]) == 0
    assert jobs[0].config.compiled is compiled
    assert tomllib.loads((tmp_path / "run/config.toml").read_text())["compiled"] is compiled


def test_an_older_file_says_it_of_the_agent(tmp_path):
    path = tmp_path / "config.toml"
    path.write_text('loss = "none"\nseed = 0\n[agent]\nhidden = 64\ncompiled = false\n')
    job = read_job(path)
    assert (job.config.compiled, job.config.agent.hidden) == (False, 64)


@pytest.mark.parametrize(
    ("operator", "settings"),
    [
        *((operator, {}) for operator in OPERATORS),
        (MSE, {"encoder": "mlp", "encoder_layers": 2}),
        (MSE, {"encoder": "dense", "encoder_layers": 3}),
        (MSE, {"encoder": "identity"}),
        (MSE, {"predictor": "released"}),
        (MSE, {"actor_encoder": "shared"}),
        (MSE, {"augmentation": "scale"}),
        (MSE, {"augmentation": "noise", "augmented_views": 2}),
        (MSE, {"auxiliary_weight": 0.3, "target_every": 3}),
    ],
    ids=str,
)
def test_recorded_updates_do_what_the_agent_does(operator, settings):
    """From equal weights and batches: PyTorch's update and the recorded one agree."""
    loss = dataclasses.replace(WINNER, operator=operator)
    space = Box(-1, 1, (2,))
    plain, other = (
        SAC((5,), space, SACConfig(**{"hidden": 24, "predictor_hidden": 16, **settings}), loss) for _ in range(2)
    )
    update = Recorded(other.update, state=other)
    act = Recorded(other.act, state=other)
    generator = torch.Generator().manual_seed(0)
    for number in range(6):
        batch = Transitions(
            torch.randn(16, 5, generator=generator),
            torch.rand(16, 2, generator=generator) * 2 - 1,
            torch.randn(16, generator=generator),
            torch.randn(16, 5, generator=generator),
            torch.ones(16),
        )
        sequences = Sequences(*(torch.randn(4, 16, *shape, generator=generator) for shape in ((5,), (2,), ())))
        expected = plain.update(batch, sequences, **plain.schedule(number))
        found = update(batch, sequences, **other.schedule(number))
        assert found.keys() == expected.keys()
        for name in expected:
            torch.testing.assert_close(found[name], expected[name], rtol=2e-3, atol=2e-4)
        torch.testing.assert_close(
            act(batch.obs[:1], deterministic=False), plain.act(batch.obs[:1], deterministic=False), rtol=0, atol=2e-3
        )
    for one, two in zip(plain.parameters(), other.parameters(), strict=True):
        torch.testing.assert_close(one, two, rtol=0, atol=2e-3)
    # The buffers of batch norm, too, and as many draws of noise.
    assert plain.generator.get_state().equal(other.generator.get_state())
