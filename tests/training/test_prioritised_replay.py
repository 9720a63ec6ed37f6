"""Priorities and returns of several steps in the replay buffer against plain lists, and how a training uses them."""

import dataclasses
import io

import numpy as np
import pytest
import torch
from gymnasium.spaces import Discrete
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import stats

from a2ls.agents import RainbowConfig, ReplayConfig
from a2ls.envs import EnvironmentConfig
from a2ls.space import Loss
from a2ls.training import Checkpoint, ReplayBuffer, TrainConfig, Training

CPU = torch.device("cpu")
VECTORS, FRAMES = (2,), 3
IMAGES = (2 * FRAMES, 1, 1)
PRIORITIES = ReplayConfig(n_step=1, gamma=0.9, priority_exponent=0.5, priority_beta=0.4)


def seen(episode, time, shape):
    """What is observed at a time of an episode; an image shows it and the times before it, as far as there are any."""
    if shape == VECTORS:
        return np.array([episode, time], np.float32)
    times = [max(time - back, 0) for back in reversed(range(FRAMES))]
    return np.array([[episode, each] for each in times], np.uint8).reshape(shape)


def steps_of(lengths):
    """All (episode, time) of episodes of these lengths, and whether it is the last of its episode."""
    return [(e, t, t == length - 1) for e, length in enumerate(lengths) for t in range(length)]


def reward_of(episode, time):
    """Another one for each transition."""
    return float(np.float32(np.sin(100 * episode + time) * 5))


def add(replay, episode, time, shape=VECTORS, terminated=False):
    replay.add(
        seen(episode, time, shape),
        (episode + time) % 7,
        reward_of(episode, time),
        seen(episode, time + 1, shape),
        terminated=terminated,
        episode=episode,
    )


def empty(capacity, replay=PRIORITIES, shape=VECTORS):
    return ReplayBuffer(capacity, shape, Discrete(7), CPU, frames=FRAMES, replay=replay)


def filled(lengths, capacity, replay=PRIORITIES, shape=VECTORS, terminated=()):
    buffer = empty(capacity, replay, shape)
    for episode, time, last in steps_of(lengths):
        add(buffer, episode, time, shape, terminated=last and episode in terminated)
    return buffer


def restored(replay, config=PRIORITIES, shape=VECTORS):
    file = io.BytesIO()
    torch.save(replay.state_dict(), file)
    file.seek(0)
    other = empty(replay.capacity, config, shape)
    other.load_state_dict(torch.load(file, weights_only=True))
    return other


def there(replay):
    return np.arange(replay.added - len(replay), replay.added)


def probabilities(replay):
    """Of each transition to be drawn: importance weights that correct wholly are in proportion to their inverse."""
    inverse = 1 / replay.transitions(there(replay), beta=1.0).weights.double().numpy()
    return inverse / inverse.sum()


def probability_of(counts, expected):
    """The p-value of Pearson's test that these are the probabilities of the counts."""
    return stats.chisquare(counts, np.sum(counts) * np.asarray(expected)).pvalue


# Priorities.


@pytest.mark.parametrize(("exponent", "batch"), [(0.5, 5), (0.5, 32), (1.0, 7)])
def test_transitions_are_drawn_in_proportion_to_their_priorities_to_a_power(exponent, batch):
    config = dataclasses.replace(PRIORITIES, priority_exponent=exponent)
    replay, rng = filled([30, 25, 20], 50, config), np.random.default_rng(0)
    priorities = rng.exponential(size=50) + 0.01
    replay.set_priorities(there(replay), priorities.astype(np.float32))
    expected = priorities**exponent / (priorities**exponent).sum()
    draws = np.concatenate([replay.draw(batch, rng) for _ in range(30_000 // batch)])
    assert probability_of(np.bincount(draws - 25, minlength=50), expected) > 1e-3
    # w = (N p)^-beta, over the largest of the batch.
    numbers = replay.draw(batch, rng)
    for beta in (0.0, 0.4, 1.0):
        weights = (50 * expected[numbers - 25]) ** -beta
        found = replay.transitions(numbers, beta).weights
        assert found.dtype == torch.float32
        np.testing.assert_allclose(found, weights / weights.max(), rtol=1e-5)


def test_one_transition_is_drawn_in_each_of_as_many_equal_parts_as_the_batch_has():
    replay = filled([64], 64)
    assert sorted(replay.draw(64, np.random.default_rng(0))) == list(range(64))
    replay.set_priorities(np.array([20]), np.array([65.0**2]))  # As much as all others, and two of them.
    for seed in range(20):
        counts = np.bincount(replay.draw(32, np.random.default_rng(seed)), minlength=64)
        assert 15 <= counts[20] <= 17
        assert counts.sum() - counts[20] == len(set(np.flatnonzero(counts)) - {20})


def test_a_new_transition_has_the_highest_priority_that_there_ever_was():
    replay = filled([3], 4)
    np.testing.assert_allclose(probabilities(replay), np.ones(3) / 3)
    replay.set_priorities(np.arange(3), np.array([0.01, 0.04, 0.09]))
    add(replay, 0, 3)  # They start at one.
    np.testing.assert_allclose(probabilities(replay), np.array([1, 2, 3, 10]) / 16, rtol=1e-6)
    replay.set_priorities(np.array([3, 1]), np.array([16.0, 4.0]))
    replay.set_priorities(np.array([3]), np.array([1.0]))
    for other in (replay, restored(replay)):
        add(other, 0, 4)
        np.testing.assert_allclose(probabilities(other), np.array([2, 0.3, 1, 4]) / 7.3, rtol=1e-6)


def test_the_last_of_several_priorities_of_one_transition_counts_and_none_is_lost_at_zero():
    replay = filled([4], 4)
    replay.set_priorities(np.array([0, 1, 0]), np.array([9.0, 1.0, 4.0]))
    np.testing.assert_allclose(probabilities(replay), np.array([2, 1, 1, 1]) / 5, rtol=1e-6)
    replay.set_priorities(np.array([0, 1, 2, 3]), np.zeros(4))
    np.testing.assert_allclose(probabilities(replay), np.full(4, 0.25))
    assert set(replay.draw(100, np.random.default_rng(0))) == {0, 1, 2, 3}


events = st.lists(
    st.one_of(
        st.just("add"),
        st.just("add"),
        st.just("add"),
        st.just("end"),
        st.just("save"),
        st.lists(st.tuples(st.integers(0, 1000), st.floats(0.01, 50)), min_size=1, max_size=5),
    ),
    max_size=60,
)


@settings(max_examples=80)
@given(events, st.integers(1, 9), st.sampled_from([VECTORS, IMAGES]))
@example(["add", "end"] * 40, 9, IMAGES)
@example(["add", "end", [(0, 9.0)], "save"] * 12, 7, IMAGES)
def test_whatever_happens_all_that_is_there_is_drawn_by_its_priority_and_nothing_else(happened, capacity, shape):
    replay, powers, highest, told = empty(capacity, shape=shape), {}, 1.0, []
    episode, time = 0, 0
    for event in happened:
        if event == "add":
            add(replay, episode, time, shape)
            powers[len(told)] = highest
            told.append((episode, time))
            time += 1
        elif event == "end" and time:
            episode, time = episode + 1, 0
        elif event == "save":
            replay = restored(replay, shape=shape)
        elif isinstance(event, list) and told:
            numbers = there(replay)[[place % len(replay) for place, _ in event]]
            replay.set_priorities(numbers, np.array([priority for _, priority in event]))
            for number, (_, priority) in zip(numbers.tolist(), event, strict=True):
                powers[number] = priority**0.5
                highest = max(highest, powers[number])
    if not told:
        return
    assert replay.added == len(told)
    assert 1 <= len(replay) <= capacity
    assert shape == IMAGES or len(replay) == min(len(told), capacity)
    numbers = there(replay)
    kept = np.array([powers[number] for number in numbers])
    np.testing.assert_allclose(probabilities(replay), kept / kept.sum(), rtol=1e-5)
    # With 60 times as many parts as there may be of the least, each is drawn.
    drawn = replay.draw(int(60 * kept.sum() / kept.min()) + 1, np.random.default_rng(0))
    assert sorted(set(drawn.tolist())) == numbers.tolist()
    batch = replay.transitions(numbers)
    np.testing.assert_array_equal(batch.obs, [seen(*told[number], shape) for number in numbers])


def test_images_that_are_forgotten_early_are_never_drawn():
    # Every episode has one frame more than transitions, so there is no room for as many of the shortest.
    replay, capacity = empty(20, shape=IMAGES), 20
    for number, (episode, time, _) in enumerate(steps_of([1] * 30 + [40] + [2] * 30)):
        add(replay, episode, time, IMAGES)
        for other in (replay, restored(replay, shape=IMAGES)) if number % 10 == 9 else (replay,):
            drawn = other.draw(200, np.random.default_rng(number))
            assert sorted(set(drawn.tolist())) == there(other).tolist()
            batch = other.transitions(drawn)
            shown = batch.obs[:, -2:, 0, 0].tolist()
            every = [(e, t) for e, t, _ in steps_of([1] * 30 + [40] + [2] * 30)]
            assert shown == [list(every[each]) for each in drawn]
        if number == 29:
            assert len(replay) < capacity
        if number == 69:
            assert len(replay) == capacity
        replay.set_priorities(there(replay), np.full(len(replay), 0.3 + number % 3))


def test_a_memory_that_was_in_use_has_the_priorities_of_the_one_it_is_restored_from():
    saved, other = filled([5], 20), filled([12, 13], 20)
    saved.set_priorities(np.arange(5), np.array([1.0, 4.0, 9.0, 16.0, 25.0]))
    other.set_priorities(np.arange(5, 25), np.full(20, 100.0))
    other.load_state_dict(saved.state_dict())
    assert set(other.draw(500, np.random.default_rng(0)).tolist()) == set(range(5))
    add(other, 0, 5)
    np.testing.assert_allclose(probabilities(other), np.array([1, 2, 3, 4, 5, 5]) / 20, rtol=1e-6)


# Returns of several steps.


def n_step(steps, i, config, terminated):
    """Rewards, steps, next observation and whether it goes on, from transition i, by going through the list."""
    total, taken = 0.0, 0
    episode = steps[i][0]
    while taken < config.n_step and i + taken < len(steps) and steps[i + taken][0] == episode:
        total += config.gamma**taken * reward_of(*steps[i + taken][:2])
        taken += 1
    _, time, last = steps[i + taken - 1]
    return total, taken, (episode, time + 1), 0.0 if last and episode in terminated else 1.0


@settings(max_examples=150)
@given(
    st.lists(st.integers(1, 9), min_size=1, max_size=10),
    st.sets(st.integers(0, 9)),
    st.builds(ReplayConfig, n_step=st.integers(2, 12), gamma=st.floats(0.1, 1)),
    st.integers(1, 40),
    st.sampled_from([VECTORS, IMAGES]),
)
@example([9, 9, 9], {0, 2}, ReplayConfig(12, 0.9), 5, VECTORS)
@example([1] * 9, {3}, ReplayConfig(3, 0.9), 4, IMAGES)
def test_returns_of_several_steps_are_those_of_the_episode_so_far(lengths, terminated, config, capacity, shape):
    steps = steps_of(lengths)
    if len(lengths) % 2:  # One more episode is under way.
        steps = [*steps, (len(lengths), 0, False), (len(lengths), 1, False)]
    replay = empty(capacity, config, shape)
    for episode, time, last in steps:
        add(replay, episode, time, shape, terminated=last and episode in terminated)
    numbers = there(replay)
    for other in (replay, restored(replay, config, shape)):
        batch = other.transitions(numbers)
        rewards, taken, after, continues = zip(
            *(n_step(steps, i, config, terminated) for i in numbers.tolist()), strict=True
        )
        np.testing.assert_allclose(batch.rewards, rewards, rtol=1e-5, atol=1e-5)
        np.testing.assert_array_equal(batch.steps, taken)
        np.testing.assert_array_equal(batch.obs, [seen(*steps[i][:2], shape) for i in numbers])
        np.testing.assert_array_equal(batch.next_obs, [seen(*each, shape) for each in after])
        np.testing.assert_array_equal(batch.continues, continues)
        np.testing.assert_array_equal(batch.actions, [(steps[i][0] + steps[i][1]) % 7 for i in numbers])
        assert {batch.rewards.dtype, batch.steps.dtype, batch.continues.dtype} == {torch.float32}
        assert batch.weights is None
    # All of them are drawn, also those with fewer steps.
    assert set(replay.draw(2000, np.random.default_rng(0)).tolist()) == set(numbers.tolist())


def test_returns_of_one_step_are_the_plain_transitions():
    lengths, ends = [5, 1, 12, 3, 7], {0, 3}
    plain, single = (filled(lengths, 20, config, terminated=ends) for config in (None, ReplayConfig(1, 0.9)))
    one, two = (replay.sample_transitions(200, np.random.default_rng(0)) for replay in (plain, single))
    assert one.steps is two.steps is one.weights is two.weights is None
    assert all(torch.equal(a, b) for a, b in zip(one[:5], two[:5], strict=True))


def test_returns_and_priorities_go_together():
    lengths, ends, numbers = [5, 1, 12, 3, 7], {0, 3}, np.array([9, 20, 27, 14, 9])
    both = filled(lengths, 20, dataclasses.replace(PRIORITIES, n_step=3), terminated=ends)
    returns = filled(lengths, 20, ReplayConfig(3, 0.9), terminated=ends).transitions(numbers)
    single = filled(lengths, 20, terminated=ends)
    for replay in (both, single):
        replay.set_priorities(np.arange(10, 25), np.linspace(0.1, 2, 15))
    found = both.transitions(numbers, 0.7)
    assert all(torch.equal(a, b) for a, b in zip(found[:6], returns[:6], strict=True))
    assert torch.equal(found.weights, single.transitions(numbers, 0.7).weights)


# Trainings.

LOSS = Loss.parse("s0 a0 -> s1")
CARTPOLE = TrainConfig(
    environment=EnvironmentConfig(env="CartPole-v1", action_repeat=1),
    agent=RainbowConfig(
        encoder="dense",
        hidden=8,
        predictor_hidden=8,
        atoms=11,
        value_min=0.0,
        value_max=50.0,
        n_step=3,
        target_every=30,
    ),
    algorithm="rainbow",
    steps=160,
    evaluations=2,
    evaluation_episodes=1,
    learning_starts=40,
    batch_size=8,
    buffer_size=70,
    compiled=False,
)


def trained(config=CARTPOLE, loss=LOSS, **callbacks):
    training = Training(config, loss, seed=0)
    training.run(**callbacks)
    training.close()
    return training


def same(one, two):
    return all(torch.equal(a, b) for a, b in zip(one.agent.parameters(), two.agent.parameters(), strict=True))


@pytest.mark.parametrize("compiled", [False, True])
def test_a_training_that_is_taken_up_goes_on_as_if_it_had_never_ended(compiled, tmp_path):
    config = dataclasses.replace(CARTPOLE, compiled=compiled)
    checkpoint = Checkpoint(tmp_path / "job.pt")

    def save(training):
        if training.step >= 90 and not checkpoint.path.exists():
            checkpoint.save(training, seconds=1.0)

    whole = trained(config, on_episode=save)
    assert whole.updates == 120
    other = Training(config, LOSS, seed=0)
    checkpoint.restore(other)
    assert 90 <= other.step < 160
    other.run()
    other.close()
    assert whole.curve == other.curve
    assert same(whole, other)
    one, two = (each.replay_buffer for each in (whole, other))
    assert torch.equal(one.state_dict()["priorities"], two.state_dict()["priorities"])
    assert whole.metrics == other.metrics


def test_evaluations_have_no_effect_on_a_training():
    often = dataclasses.replace(CARTPOLE, evaluations=8, evaluation_episodes=2)
    assert same(trained(), trained(often))


def test_a_training_anneals_beta_and_gives_the_replay_buffer_the_errors_of_what_it_drew(monkeypatch):
    training = Training(CARTPOLE, None, seed=0)
    replay, told = training.replay_buffer, []

    def watch(owner, name, note):
        function = getattr(owner, name)

        def watched(*args, **kwargs):
            result = function(*args, **kwargs)
            note(args, result)
            return result

        monkeypatch.setattr(owner, name, watched)

    def note_batch(args, batch):
        told[-1] |= {"asked": args[0], "beta": args[1], "batch": batch}

    watch(replay, "draw", lambda _, drawn: told.append({"drawn": drawn}))
    watch(replay, "transitions", note_batch)
    # The priorities are taken from among the metrics afterwards.
    watch(training, "_agent_update", lambda args, metrics: told[-1].update(given=args[0], metrics=dict(metrics)))
    watch(replay, "set_priorities", lambda args, _: told[-1].update(set=args))
    training.run()
    training.close()
    assert len(told) == training.updates == 120
    # From 0.4, where learning starts, to 1 at the last step.
    betas = [each["beta"] for each in told]
    np.testing.assert_allclose(betas, [0.4 + 0.6 * step / 120 for step in range(1, 121)])
    for each in told:
        assert each["given"] is each["batch"]
        np.testing.assert_array_equal(each["asked"], each["drawn"])
        np.testing.assert_array_equal(each["set"][0], each["drawn"])
        np.testing.assert_array_equal(each["set"][1], each["metrics"]["priorities"])
        assert each["batch"].weights.max() == 1
    assert any(each["batch"].weights.min() < 0.9 for each in told)
    assert training.metrics.keys() == {"value_loss"}


def test_without_priorities_every_transition_is_equally_likely_and_the_errors_are_left_alone():
    training = trained(dataclasses.replace(CARTPOLE, agent=dataclasses.replace(CARTPOLE.agent, priority_exponent=0.0)))
    batch = training.replay_buffer.sample_transitions(50, np.random.default_rng(0))
    assert batch.weights is None
    assert batch.steps.max() == 3
    assert training.metrics.keys() == {"value_loss", "auxiliary_loss"}
    drawn = training.replay_buffer.draw(7000, np.random.default_rng(0)) - 90
    assert probability_of(np.bincount(drawn, minlength=70), np.ones(70) / 70) > 1e-3
