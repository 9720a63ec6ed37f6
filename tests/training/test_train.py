"""`train` and `Training`: what is repeatable, when it evaluates, and how it ends."""

import dataclasses

import numpy as np
import pytest
import torch

from a2ls import BadInput
from a2ls.agents import SACConfig
from a2ls.space import Loss, named_loss
from a2ls.training import Curve, CurvePoint, Diverged, Training, preset, train, with_baseline
from helpers.trainings import COUNTER, PENDULUM, STEERED, bits

WINNER = named_loss("a2-winner")


@pytest.fixture(scope="module", params=[PENDULUM, STEERED], ids=["vectors", "pixels"])
def whole(request):
    """A configuration and its curve."""
    return request.param, train(request.param, WINNER, seed=0)


def first_half(config):
    return dataclasses.replace(config, steps=config.steps // 2, evaluations=config.evaluations // 2)


def test_the_same_arguments_give_the_same_curve_bit_for_bit(whole):
    config, curve = whole
    torch.manual_seed(99)  # nothing outside of the arguments counts
    np.random.seed(99)  # noqa: NPY002
    assert bits(train(config, WINNER, seed=0)) == bits(curve)
    assert len({point.returns for point in curve.points}) == config.evaluations
    assert bits(train(first_half(config), WINNER, seed=0)) == bits(curve)[: config.evaluations // 2]


@pytest.mark.parametrize(("loss", "seed"), [(WINNER, 1), (None, 0), (named_loss("forward-dynamics"), 0)], ids=str)
def test_another_seed_or_loss_gives_another_curve(whole, loss, seed):
    config, curve = whole
    assert bits(train(config, loss, seed))[-1] != bits(curve)[-1]


def test_losses_with_the_same_canonical_form_give_the_same_curve():
    one, two = (train(PENDULUM, Loss.parse(text), seed=3) for text in ("s0 a0 -> s1 r0", "s2 a2 -> s3 r2 @6"))
    assert bits(one) == bits(two)


@pytest.mark.parametrize(
    ("steps", "repeat", "evaluations", "expected"),
    [(100, 1, 2, [50, 100]), (103, 4, 3, [32, 68, 100]), (7, 1, 7, [1, 2, 3, 4, 5, 6, 7]), (60, 1, 1, [60])],
)
def test_evaluations_are_at_the_steps_asked_for(steps, repeat, evaluations, expected):
    environment = dataclasses.replace(COUNTER.environment, action_repeat=repeat)
    changes = {"steps": steps, "evaluations": evaluations, "evaluation_episodes": 3, "learning_starts": 5}
    config = dataclasses.replace(COUNTER, environment=environment, **changes)
    told = []
    curve = train(config, None, seed=0, on_evaluation=told.append)
    assert [point.step for point in curve.points] == expected
    assert tuple(told) == curve.points
    # Each step n of the toy's 6 rewards n, whatever the agent does.
    assert all(point.returns == (21.0, 21.0, 21.0) for point in curve.points)


def test_random_decisions_come_first_and_then_one_update_for_each():
    training = Training(COUNTER, WINNER, seed=0)
    updates = []
    training.run(on_step=lambda t: updates.append((t.agent_steps, t.step, t.updates)))
    assert updates == [(i, i, max(0, i - 20)) for i in range(1, 101)]
    assert training.finished
    assert training.episode == 100 // 6
    assert training.updates_without_sequences == 0
    actions = training.replay_buffer.state_dict()["actions"].numpy()[:20, 0]
    assert np.abs(actions).max() > 0.7
    assert len(set(actions.tolist())) == 20
    training.close()


def test_stop_ends_the_training_at_that_evaluation():
    told = []

    def stop_at_the_second(point):
        told.append(point)
        return "stop" if len(told) == 2 else None

    config = dataclasses.replace(COUNTER, evaluations=5)
    training = Training(config, None, seed=0)
    curve = training.run(on_evaluation=stop_at_the_second)
    assert [point.step for point in curve.points] == [20, 40]
    assert (training.agent_steps, training.finished) == (40, False)
    training.close()


@pytest.mark.parametrize(("env", "at_the_end"), [("TimeLimited", {1.0}), ("Counter", {0.0})])
def test_a_time_limit_is_bootstrapped_through_and_an_end_is_not(env, at_the_end):
    environment = dataclasses.replace(COUNTER.environment, env=f"helpers.toy_envs:Toy/{env}-v0")
    training = Training(dataclasses.replace(COUNTER, environment=environment, learning_starts=100), None, seed=0)
    training.run()
    batch = training.replay_buffer.sample_transitions(500, np.random.default_rng(0))
    last = batch.next_obs[:, 0] == 6
    assert set(batch.continues[last].tolist()) == at_the_end
    assert set(batch.continues[~last].tolist()) == {1.0}
    assert torch.equal(batch.next_obs[:, 0], batch.obs[:, 0] + 1)
    assert torch.equal(batch.rewards, batch.next_obs[:, 0])
    training.close()


def test_a_loss_longer_than_every_episode_is_left_out_and_counted():
    too_long, just_fits = Loss.parse("s0 -> s7"), Loss.parse("s0 -> s6")
    trainings = {loss: Training(COUNTER, loss, seed=0) for loss in (too_long, just_fits)}
    for training in trainings.values():
        training.run()
        training.close()
        assert training.updates == 80
    assert trainings[too_long].updates_without_sequences == 80
    assert trainings[just_fits].updates_without_sequences == 0
    assert "auxiliary_loss" not in trainings[too_long].metrics
    assert np.isfinite(trainings[just_fits].metrics["auxiliary_loss"])


def test_the_number_of_evaluation_episodes_changes_nothing_else():
    states = []
    for episodes in (1, 4):
        training = Training(dataclasses.replace(COUNTER, evaluation_episodes=episodes, evaluations=episodes), WINNER, 0)
        training.run()
        training.close()
        states.append([parameter.detach().clone() for parameter in training.agent.parameters()])
    assert all(torch.equal(a, b) for a, b in zip(*states, strict=True))


def test_every_evaluation_episode_has_a_seed_of_its_own():
    # An agent that does not learn, and so acts alike in all of them.
    config = dataclasses.replace(PENDULUM, evaluation_episodes=2, learning_starts=PENDULUM.agent_steps)
    training = Training(config, None, seed=0)
    assert len({value for point in training.run().points for value in point.returns}) == 4
    training.close()


def test_plain_arguments_mean_what_the_command_line_means_by_them(monkeypatch):
    jobs = []

    class NoTraining:
        def __init__(self, *job):
            jobs.append(job)

        def run(self, **_):
            return Curve()

        def close(self):
            pass

    monkeypatch.setattr("a2ls.training._trainer.Training", NoTraining)
    train("Pendulum-v1", loss="s0 a0 -> s1", steps=2000)
    train(preset("fast", "walker-walk", steps=8000), named_loss("a2-winner"), 3)
    train("CartPole-v1", "curl")
    assert jobs == [
        (dataclasses.replace(preset("fast", "Pendulum-v1"), steps=2000), Loss.parse("s0 a0 -> s1"), 0),
        (dataclasses.replace(preset("fast", "walker-walk"), steps=8000), WINNER, 3),
        (with_baseline(preset("fast-discrete", "CartPole-v1"), "curl"), named_loss("curl"), 0),
    ]


@pytest.mark.parametrize(("steps", "refused"), [(100, True), (103, True), (104, False)])
def test_a_training_without_an_update_is_refused_with_the_numbers_that_make_it_so(steps, refused):
    environment = dataclasses.replace(COUNTER.environment, action_repeat=4)
    config = dataclasses.replace(COUNTER, environment=environment, steps=steps, learning_starts=25)
    if not refused:
        assert len(train(config, None).points) == 2
        return
    with pytest.raises(BadInput) as caught:
        train(config, None)
    assert str(caught.value) == (
        f"there would be no update: {steps} environment steps are 25 agent steps with an action repeat of 4, and the "
        "first 25 agent steps are random (learning_starts): give at least 104 steps, or fewer learning_starts"
    )


def test_a_run_that_diverges_says_what_is_not_finite_and_keeps_its_curve():
    config = dataclasses.replace(COUNTER, agent=SACConfig(hidden=8, lr=1e20), evaluations=10)
    with pytest.raises(Diverged, match=r"action is not finite \(.*(critic|actor)_loss is (nan|inf)") as caught:
        train(config, WINNER, seed=0)
    assert 20 < caught.value.step < 30
    # The evaluations at 10 and 20 were before learning began.
    assert caught.value.curve.points[:2] == (CurvePoint(10, (21.0,)), CurvePoint(20, (21.0,)))


def test_the_policy_is_the_deterministic_one_that_is_evaluated():
    training = Training(COUNTER, WINNER, seed=0)
    training.run()
    observation = np.array([3.0, 30.0], np.float32)
    action = training.policy(observation)
    assert action.shape == (1,)
    assert np.array_equal(action, training.policy(observation))
    expected = training.agent.act(torch.from_numpy(observation)[None], deterministic=True)[0]
    np.testing.assert_allclose(action, expected.numpy(), rtol=1e-5)
    training.close()


def test_a_fresh_training_has_an_empty_curve():
    training = Training(COUNTER, None, seed=0)
    assert (training.curve, training.step, training.finished, training.metrics) == (Curve(), 0, False, {})
    assert len(training.replay_buffer) == 0
    training.close()
