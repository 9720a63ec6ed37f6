"""The replay memory against a plain list of the transitions."""

import io

import numpy as np
import pytest
import torch
from gymnasium.spaces import Box, Discrete
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from a2ls.space import Element, Loss
from a2ls.training import Replay, SequenceNeeds

CPU = torch.device("cpu")
ACTIONS = Box(-1, 1, (1,))
quick = settings(deadline=None, max_examples=80)


def filled(lengths, capacity, terminated=()):
    """A memory in which each observation is (episode, time), and the same as a list of (episode, time).

    The last episode may be under way: nothing says that it ended.
    """
    replay, told = Replay(capacity, (2,), ACTIONS, CPU), []
    for episode, length in enumerate(lengths):
        for time in range(length):
            replay.add(
                np.array([episode, time], np.float32),
                np.array([1000 * episode + time + 0.25], np.float32),
                1000 * episode + time + 0.5,
                np.array([episode, time + 1], np.float32),
                terminated=episode in terminated and time == length - 1,
                episode=episode,
            )
            told.append((episode, time))
    return replay, told[-capacity:]


def valid_starts(kept, length):
    """All (episode, time) from which `length` transitions of one episode are remembered."""
    return [
        kept[i]
        for i in range(len(kept) - length + 1)
        if all(kept[i + j] == (kept[i][0], kept[i][1] + j) for j in range(length))
    ]


def starts_of(sequences, needs):
    """Where each sequence starts, after checking that every element is the one of the true trajectory."""
    found = None
    for kind, values in zip("sar", (sequences.states, sequences.actions, sequences.rewards), strict=True):
        for step, value in values.items():
            numbers = value.double().numpy()
            if kind == "s":
                starts = list(zip(numbers[:, 0].astype(int), numbers[:, 1].astype(int) - step, strict=True))
            else:
                numbers = numbers.reshape(-1) - (0.25 if kind == "a" else 0.5)
                assert (numbers == np.floor(numbers)).all()  # an action where an action belongs
                starts = [(int(n // 1000), int(n % 1000) - step) for n in numbers]
            assert found is None or starts == found
            found = starts
    assert (list(sequences.states), list(sequences.actions), list(sequences.rewards)) == (
        needs.states,
        needs.actions,
        needs.rewards,
    )
    return found


elements = st.builds(Element, st.sampled_from("sar"), st.integers(0, 4))
losses = st.builds(
    Loss.from_elements,
    st.sets(elements, max_size=4).flatmap(lambda some: st.integers(0, 4).map(lambda i: {*some, Element("s", i)})),
    st.sets(elements, min_size=1, max_size=4),
)


@quick
@given(losses, st.lists(st.integers(1, 9), min_size=1, max_size=12), st.integers(1, 40))
def test_sequences_are_all_slices_of_the_true_trajectories_and_nothing_else(loss, lengths, capacity):
    replay, kept = filled(lengths, capacity)
    assert len(replay) == len(kept)
    needs = SequenceNeeds(loss)
    wanted = [element for side in (loss.source_elements, loss.target_elements) for element in side]
    first = min(element.step for element in wanted)
    # n transitions have the states 0 to n, the actions and rewards 0 to n - 1.
    length = max([1, *(e.step - first + (e.kind != "s") for e in wanted)])
    valid = valid_starts(kept, length)
    sequences = replay.sample_sequences(3000, needs, np.random.default_rng(0))
    if not valid:
        assert sequences is None
    else:
        # With 3000 draws from at most 40 starts, one that is possible is missed with probability below e^-70.
        assert set(starts_of(sequences, needs)) == set(valid)


def test_the_last_state_of_an_episode_is_reached():
    replay, _ = filled([3, 3], 10)
    sequences = replay.sample_sequences(200, SequenceNeeds(Loss.parse("s0 a0 -> s1")), np.random.default_rng(0))
    assert {tuple(row) for row in sequences.states[1].int().tolist()} == {(e, t) for e in (0, 1) for t in (1, 2, 3)}
    states = replay.sample_sequences(200, SequenceNeeds(Loss.parse("s0 -> s3")), np.random.default_rng(0)).states
    assert {tuple(row) for row in states[3].int().tolist()} == {(0, 3), (1, 3)}


def test_an_episode_that_is_too_short_by_one_gives_nothing():
    replay, _ = filled([3, 3, 2], 10)
    rng = np.random.default_rng(0)
    assert replay.sample_sequences(8, SequenceNeeds(Loss.parse("s0 -> s3")), rng) is not None
    assert replay.sample_sequences(8, SequenceNeeds(Loss.parse("s0 -> a3")), rng) is None
    assert replay.sample_sequences(8, SequenceNeeds(Loss.parse("s0 -> s4")), rng) is None
    assert Replay(10, (2,), ACTIONS, CPU).sample_sequences(8, SequenceNeeds(Loss.parse("s0 -> s1")), rng) is None


def test_only_the_elements_of_the_loss_are_gathered():
    needs = SequenceNeeds(Loss.parse("s1 a1 a2 a3 -> r0 r1 s2 s3"))
    assert (needs.states, needs.actions, needs.rewards, needs.transitions) == ([1, 2, 3], [1, 2, 3], [0, 1], 4)
    replay, _ = filled([9], 10)
    sequences = replay.sample_sequences(5, needs, np.random.default_rng(0))
    shapes = [{i: tuple(x.shape) for i, x in part.items()} for part in sequences]
    assert shapes == [dict.fromkeys((1, 2, 3), (5, 2)), dict.fromkeys((1, 2, 3), (5, 1)), dict.fromkeys((0, 1), (5,))]
    assert vars(SequenceNeeds(Loss.parse("s4 a4 -> s5 @9"))) == vars(SequenceNeeds(Loss.parse("s0 a0 -> s1")))


def probability_if_uniform(draws, possible):
    """The p-value of Pearson's test that all possible draws are equally likely."""
    counts = dict.fromkeys(possible, 0)
    for draw in draws:
        counts[draw] += 1
    return stats.chisquare(list(counts.values())).pvalue


# A memory with common and rare starts, with and without a seam, one where most draws cross an episode, and one where
# nearly all do, so that the valid starts are listed instead.
MEMORIES = {
    "one long episode, many short": ([60] + [4] * 30, 1000, 3),
    "ring with a seam": ([7, 30, 5, 50, 4, 25], 73, 4),
    "most drawn again": ([1] * 12 + [6], 1000, 3),
    "all redrawn": ([2] * 400 + [6], 1000, 4),
}


@pytest.mark.parametrize(("lengths", "capacity", "length"), MEMORIES.values(), ids=MEMORIES)
def test_every_valid_start_is_equally_likely(lengths, capacity, length):
    replay, kept = filled(lengths, capacity)
    possible = valid_starts(kept, length)
    needs = SequenceNeeds(Loss.parse(f"s0 -> s{length}"))
    assert needs.transitions == length
    rng, draws = np.random.default_rng(0), []
    for _ in range(200):
        draws += starts_of(replay.sample_sequences(100, needs, rng), needs)
    assert probability_if_uniform(draws, possible) > 1e-3


def test_the_test_of_uniformity_refuses_wrong_samplers():
    lengths, capacity, length = MEMORIES["one long episode, many short"]
    _, kept = filled(lengths, capacity)
    possible = valid_starts(kept, length)
    rng = np.random.default_rng(0)
    episodes = sorted({episode for episode, _ in possible})
    by_episode = [[start for start in possible if start[0] == episode] for episode in episodes]
    picked = [by_episode[i] for i in rng.integers(len(episodes), size=20_000)]
    assert probability_if_uniform([some[rng.integers(len(some))] for some in picked], possible) < 1e-6
    # A draw that crosses an episode moved back to the nearest start that does not.
    clamped = [kept[i] for i in rng.integers(len(kept) - length + 1, size=20_000)]
    clamped = [(episode, min(time, lengths[episode] - length)) for episode, time in clamped]
    assert probability_if_uniform(clamped, possible) < 1e-6


def test_every_transition_is_equally_likely_and_whole():
    replay, kept = filled([60] + [4] * 30 + [7], 101, terminated={3, 30})
    assert len(kept) == 101
    batch = replay.sample_transitions(20_000, np.random.default_rng(0))
    draws = [(int(e), int(t)) for e, t in batch.obs]
    assert probability_if_uniform(draws, kept) > 1e-3
    episode, time = batch.obs.T
    assert torch.equal(batch.next_obs, torch.stack([episode, time + 1], dim=1))
    assert torch.equal(batch.actions[:, 0], 1000 * episode + time + 0.25)
    assert torch.equal(batch.rewards, 1000 * episode + time + 0.5)
    # Only the ends of a task, not those of the other episodes, which a time limit may have ended.
    assert torch.equal(batch.continues == 0, (episode == 30) & (time == 3))


def test_batches_go_to_the_device():
    replay = Replay(10, (2,), ACTIONS, torch.device("meta"))
    for _ in range(5):
        replay.add(np.zeros(2), np.zeros(1), 0.0, np.zeros(2), terminated=False, episode=0)
    rng = np.random.default_rng(0)
    batch = replay.sample_transitions(3, rng)
    sequences = replay.sample_sequences(3, SequenceNeeds(Loss.parse("s0 a0 -> r0 s1")), rng)
    parts = [*batch, *(value for part in sequences for value in part.values())]
    assert len(parts) == 9
    assert {part.device.type for part in parts} == {"meta"}


@quick
@given(st.lists(st.integers(1, 9), min_size=1, max_size=8), st.integers(1, 30))
def test_a_restored_memory_samples_and_grows_alike(lengths, capacity):
    replay, _ = filled(lengths, capacity)
    file = io.BytesIO()
    torch.save(replay.state_dict(), file)
    file.seek(0)
    other = Replay(capacity, (2,), ACTIONS, CPU)
    other.load_state_dict(torch.load(file))
    for memory in (replay, other):
        for time in range(3):
            memory.add(np.full(2, time), np.zeros(1), 7.0, np.full(2, time + 1), terminated=False, episode=99)
    assert len(other) == len(replay)
    one, two = (memory.sample_transitions(200, np.random.default_rng(1)) for memory in (replay, other))
    assert all(torch.equal(a, b) for a, b in zip(one, two, strict=True))
    needs = SequenceNeeds(Loss.parse("s0 -> s1"))
    one, two = (memory.sample_sequences(200, needs, np.random.default_rng(1)) for memory in (replay, other))
    assert all(torch.equal(one.states[i], two.states[i]) for i in (0, 1))


def test_discrete_actions_stay_whole_numbers():
    replay = Replay(10, (1,), Discrete(5), CPU)
    for i in range(8):
        replay.add(np.array([i], np.float32), i % 5, 0.0, np.array([i + 1], np.float32), terminated=False, episode=0)
    batch = replay.sample_transitions(50, np.random.default_rng(0))
    assert (batch.actions.dtype, batch.actions.shape) == (torch.int64, (50,))
    assert torch.equal(batch.actions, batch.obs[:, 0].long() % 5)
    sequences = replay.sample_sequences(20, SequenceNeeds(Loss.parse("s0 a0 a2 -> s3")), np.random.default_rng(0))
    assert torch.equal(sequences.actions[2], (sequences.states[0][:, 0].long() + 2) % 5)
    file = io.BytesIO()
    torch.save(replay.state_dict(), file)
    file.seek(0)
    other = Replay(10, (1,), Discrete(5), CPU)
    other.load_state_dict(torch.load(file, weights_only=True))
    assert torch.equal(other.sample_transitions(50, np.random.default_rng(0)).actions, batch.actions)
