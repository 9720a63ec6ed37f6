"""The replay buffer against a plain list of the transitions."""

import io

import numpy as np
import pytest
import torch
from gymnasium.spaces import Box, Discrete
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from a2ls.space import Element, Loss
from a2ls.training import ReplayBuffer, SequenceNeeds

CPU = torch.device("cpu")
ACTIONS = Box(-1, 1, (1,))


def filled(lengths, capacity, terminated=()):
    """A memory in which each observation is (episode, time), and the same as a list of (episode, time).

    The last episode may be under way: nothing says that it ended.
    """
    replay, told = ReplayBuffer(capacity, (2,), ACTIONS, CPU), []
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
    assert [list(part) for part in sequences] == [needs.states, needs.actions, needs.rewards]
    return found


elements = st.builds(Element, st.sampled_from("sar"), st.integers(0, 4))
losses = st.builds(
    Loss.from_elements,
    st.sets(elements, max_size=4).flatmap(lambda some: st.integers(0, 4).map(lambda i: {*some, Element("s", i)})),
    st.sets(elements, min_size=1, max_size=4),
)


@settings(max_examples=80)
@given(losses, st.lists(st.integers(1, 9), min_size=1, max_size=12), st.integers(1, 40))
def test_sequences_are_all_slices_of_the_true_trajectories_and_nothing_else(loss, lengths, capacity):
    replay, kept = filled(lengths, capacity)
    assert len(replay) == len(kept)
    needs = SequenceNeeds(loss)
    wanted = [element for side in (loss.source_elements, loss.target_elements) for element in side]
    first = min(element.step for element in wanted)
    of_kind = [sorted({e.step - first for e in wanted if e.kind == kind}) for kind in "sar"]
    assert [needs.states, needs.actions, needs.rewards] == of_kind
    # n transitions have the states 0 to n, the actions and rewards 0 to n - 1.
    length = max([1, *(e.step - first + (e.kind != "s") for e in wanted)])
    valid = valid_starts(kept, length)
    sequences = replay.sample_sequences(3000, needs, np.random.default_rng(0))
    if not valid:
        assert sequences is None
    else:
        # With 3000 draws from at most 40 starts, one that is possible is missed with probability below e^-70.
        assert set(starts_of(sequences, needs)) == set(valid)


def test_an_empty_memory_has_no_sequences():
    empty, needs = ReplayBuffer(10, (2,), ACTIONS, CPU), SequenceNeeds(Loss.parse("s0 -> s1"))
    assert empty.sample_sequences(8, needs, np.random.default_rng(0)) is None


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
    replay = ReplayBuffer(10, (2,), ACTIONS, torch.device("meta"))
    for _ in range(5):
        replay.add(np.zeros(2), np.zeros(1), 0.0, np.zeros(2), terminated=False, episode=0)
    rng = np.random.default_rng(0)
    batch = replay.sample_transitions(3, rng)
    sequences = replay.sample_sequences(3, SequenceNeeds(Loss.parse("s0 a0 -> r0 s1")), rng)
    parts = [*batch[:5], *(value for part in sequences for value in part.values())]
    assert len(parts) == 9
    assert {part.device.type for part in parts} == {"meta"}


@settings(max_examples=80)
@given(st.lists(st.integers(1, 9), min_size=1, max_size=8), st.integers(1, 30))
def test_a_restored_memory_samples_and_grows_alike(lengths, capacity):
    replay, _ = filled(lengths, capacity)
    file = io.BytesIO()
    torch.save(replay.state_dict(), file)
    file.seek(0)
    other = ReplayBuffer(capacity, (2,), ACTIONS, CPU)
    other.load_state_dict(torch.load(file))
    for memory in (replay, other):
        for time in range(3):
            memory.add(np.full(2, time), np.zeros(1), 7.0, np.full(2, time + 1), terminated=False, episode=99)
    assert len(other) == len(replay)
    one, two = (memory.sample_transitions(200, np.random.default_rng(1)) for memory in (replay, other))
    assert all(torch.equal(a, b) for a, b in zip(one[:5], two[:5], strict=True))
    needs = SequenceNeeds(Loss.parse("s0 -> s1"))
    one, two = (memory.sample_sequences(200, needs, np.random.default_rng(1)) for memory in (replay, other))
    assert all(torch.equal(one.states[i], two.states[i]) for i in (0, 1))


def test_discrete_actions_stay_whole_numbers():
    replay = ReplayBuffer(10, (1,), Discrete(5), CPU)
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
    other = ReplayBuffer(10, (1,), Discrete(5), CPU)
    other.load_state_dict(torch.load(file, weights_only=True))
    assert torch.equal(other.sample_transitions(50, np.random.default_rng(0)).actions, batch.actions)
