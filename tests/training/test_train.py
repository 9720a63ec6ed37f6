"""`train` and `Training`: what is repeatable, when it evaluates, and how it ends."""

import dataclasses
import io

import numpy as np
import pytest
import torch

from a2ls.agents import SACConfig
from a2ls.envs import EnvironmentConfig
from a2ls.space import Loss, named_loss
from a2ls.training import Curve, CurvePoint, Diverged, SequenceNeeds, TrainConfig, Training, train

WINNER = named_loss("a2-winner")
TINY = SACConfig(hidden=32, predictor_hidden=16)
PENDULUM = TrainConfig(
    environment=EnvironmentConfig(env="Pendulum-v1", action_repeat=1),
    agent=TINY,
    steps=1200,
    evaluations=3,
    evaluation_episodes=2,
    initial_steps=200,
    batch_size=32,
)
# Episodes of 6 environment steps that end by a time limit; their observation is the number of the step.
COUNTER = TrainConfig(
    environment=EnvironmentConfig(env="a2ls_toy_envs:Toy/TimeLimited-v0", action_repeat=1),
    agent=TINY,
    steps=100,
    evaluations=2,
    evaluation_episodes=1,
    initial_steps=20,
    batch_size=8,
)


def bits(curve):
    return [(point.step, [value.hex() for value in point.returns]) for point in curve.points]


@pytest.fixture(scope="module")
def pendulum_curve():
    return train(PENDULUM, WINNER, seed=0)


def test_the_same_arguments_give_the_same_curve_bit_for_bit(pendulum_curve):
    torch.manual_seed(99)  # nothing outside of the arguments counts
    np.random.seed(99)  # noqa: NPY002
    assert bits(train(PENDULUM, WINNER, seed=0)) == bits(pendulum_curve)


@pytest.mark.parametrize(("loss", "seed"), [(WINNER, 1), (None, 0), (named_loss("forward-dynamics"), 0)], ids=str)
def test_another_seed_or_loss_gives_another_curve(pendulum_curve, loss, seed):
    config = dataclasses.replace(PENDULUM, steps=400, evaluations=1)  # the first point of the curve
    curve = train(config, loss, seed)
    assert curve.points[0].step == 400
    assert bits(curve) != bits(Curve(pendulum_curve.points[:1]))


def test_a_shorter_training_is_the_beginning_of_a_longer_one(pendulum_curve):
    curve = train(dataclasses.replace(PENDULUM, steps=400, evaluations=1), WINNER, seed=0)
    assert bits(curve) == bits(Curve(pendulum_curve.points[:1]))


def test_losses_with_the_same_canonical_form_give_the_same_curve():
    config = dataclasses.replace(PENDULUM, steps=500, evaluations=1)
    curves = [train(config, Loss.parse(text), seed=3) for text in ("s0 a0 -> s1 r0", "s2 a2 -> s3 r2 @6")]
    assert bits(curves[0]) == bits(curves[1])


def test_a_restored_training_goes_on_to_the_same_curve(pendulum_curve):
    saved = {}

    def save(training):
        if training.episode == 4:
            file = saved["file"] = io.BytesIO()
            torch.save(training.state_dict(), file)
            saved["decisions"] = training.decisions

    first = Training(PENDULUM, WINNER, seed=0)
    first.run(on_episode=save, on_evaluation=lambda point: "stop" if point.step == 1200 else None)
    assert bits(first.curve) == bits(pendulum_curve)
    saved["file"].seek(0)
    second = Training(PENDULUM, WINNER, seed=0)
    second.load_state_dict(torch.load(saved["file"], weights_only=False))
    assert second.decisions == saved["decisions"] == 800
    assert bits(second.run()) == bits(pendulum_curve)
    for one, two in zip(first.agent.parameters(), second.agent.parameters(), strict=True):
        assert torch.equal(one, two)
    first.close()
    second.close()


@pytest.mark.parametrize(
    ("steps", "repeat", "evaluations", "expected"),
    [(100, 1, 2, [50, 100]), (103, 4, 3, [32, 68, 100]), (7, 1, 7, [1, 2, 3, 4, 5, 6, 7]), (60, 1, 1, [60])],
)
def test_evaluations_are_at_the_steps_asked_for(steps, repeat, evaluations, expected):
    environment = dataclasses.replace(COUNTER.environment, action_repeat=repeat)
    config = dataclasses.replace(
        COUNTER, environment=environment, steps=steps, evaluations=evaluations, evaluation_episodes=3
    )
    told = []
    curve = train(config, None, seed=0, on_evaluation=told.append)
    assert [point.step for point in curve.points] == expected
    assert tuple(told) == curve.points
    # Each step n of the toy's 6 rewards n, whatever the agent does.
    assert all(point.returns == (21.0, 21.0, 21.0) for point in curve.points)


def test_random_decisions_come_first_and_then_one_update_for_each():
    training = Training(COUNTER, WINNER, seed=0)
    updates = []
    training.run(on_decision=lambda t: updates.append((t.decisions, t.step, t.updates)))
    assert updates == [(i, i, max(0, i - 20)) for i in range(1, 101)]
    assert training.finished
    assert training.episode == 100 // 6
    assert training.updates_without_sequences == 0
    actions = training.replay.state_dict()["actions"].numpy()[:20, 0]
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
    assert (training.decisions, training.finished) == (40, False)
    training.close()


def test_a_stopped_training_that_is_taken_up_again_never_joins_two_episodes():
    # Stopped in the middle of an episode: what follows starts a new one.
    config = dataclasses.replace(COUNTER, evaluations=5)
    training = Training(config, None, seed=0)
    training.run(on_evaluation=lambda _: "stop")
    assert training.decisions % 6 != 0
    training.run()
    needs = SequenceNeeds(Loss.parse("s0 -> s1 s2 s3"))
    states = training.replay.sample_sequences(500, needs, np.random.default_rng(0)).states
    assert set((states[3] - states[1])[:, 0].tolist()) == {2.0}
    assert set((states[2] - states[1])[:, 0].tolist()) == {1.0}
    assert [point.step for point in training.curve.points] == [20, 40, 60, 80, 100]
    training.close()


@pytest.mark.parametrize(("env", "at_the_end"), [("TimeLimited", {1.0}), ("Counter", {0.0})])
def test_a_time_limit_is_bootstrapped_through_and_an_end_is_not(env, at_the_end):
    environment = EnvironmentConfig(env=f"a2ls_toy_envs:Toy/{env}-v0", action_repeat=1)
    training = Training(dataclasses.replace(COUNTER, environment=environment, initial_steps=100), None, seed=0)
    training.run()
    batch = training.replay.sample_transitions(500, np.random.default_rng(0))
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


def test_a_run_that_diverges_says_what_is_not_finite_and_keeps_its_curve():
    config = dataclasses.replace(COUNTER, agent=dataclasses.replace(TINY, learning_rate=1e20), evaluations=10)
    with pytest.raises(
        Diverged, match=r"diverged at step \d+: .*action is not finite \(.*(critic|actor)_loss is (nan|inf)"
    ) as caught:
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
    assert len(training.replay) == 0
    training.close()
