"""The replay buffer of images, which keeps every frame once, against a plain list of whole observations."""

import io
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import torch
from gymnasium.spaces import Box, Discrete
from hypothesis import example, given, settings
from hypothesis import strategies as st

from a2ls.space import Loss
from a2ls.training import ReplayBuffer, SequenceNeeds
from helpers.processes import run_python

CPU = torch.device("cpu")
SIDE = 2
ACTIONS = Box(-1, 1, (1,))


@dataclass(frozen=True)
class Told:
    """A transition as it was added: its observations whole, and the numbers of the frames in them."""

    before: np.ndarray
    after: np.ndarray
    frames_before: tuple[int, ...]
    frames_after: tuple[int, ...]
    episode: int


def frame(number, colours=3):
    """Another one for each number."""
    shown = np.full(colours * SIDE * SIDE, number % 251, np.uint8)
    shown[:4] = np.frombuffer(np.int32(number).tobytes(), np.uint8)
    return shown.reshape(colours, SIDE, SIDE)


def transitions(lengths, frames, colours=3):
    """All transitions of episodes of these lengths, of which none shares a frame with another."""
    told, drawn = [], 0
    for episode, length in enumerate(lengths):
        numbers = [drawn] * frames
        for _ in range(length):
            drawn += 1
            before, after = tuple(numbers[-frames:]), tuple([*numbers, drawn][-frames:])
            numbers.append(drawn)
            images = (np.concatenate([frame(number, colours) for number in some]) for some in (before, after))
            told.append(Told(*images, before, after, episode))
        drawn += 1
    return told


def empty(capacity, frames, colours=3):
    return ReplayBuffer(capacity, (colours * frames, SIDE, SIDE), ACTIONS, CPU, frames=frames)


def add(replay, told, first=0):
    """Add transitions whose actions and rewards are their numbers."""
    for number, one in enumerate(told, first):
        replay.add(one.before, np.array([number]), number + 0.5, one.after, terminated=False, episode=one.episode)


def kept(told, capacity, frames):
    """The numbers of the transitions that should be there: as many of the last as there is room for.

    That is for all of their frames, of which there is room for a fiftieth more than for transitions, and for an image.
    """
    forgotten = max(told[-1].frames_after) + 1 - (capacity + round(capacity / 50) + frames + 1)
    numbers = range(max(0, len(told) - capacity), len(told))
    return [number for number in numbers if min(told[number].frames_before) >= forgotten]


def check(replay, told, frames):
    """That batches have all transitions that should be there, and each as it was added."""
    there = kept(told, replay.capacity, frames)
    batch = replay.sample_transitions(1500, np.random.default_rng(0))
    numbers = batch.actions[:, 0].long()
    assert (batch.obs.dtype, batch.obs.shape) == (torch.uint8, (1500, *told[0].before.shape))
    # With 1500 draws from at most 40, one that is there is missed with probability below e^-30.
    assert sorted(set(numbers.tolist())) == there
    assert len(replay) == len(there) > 0
    np.testing.assert_array_equal(batch.obs, np.stack([one.before for one in told])[numbers])
    np.testing.assert_array_equal(batch.next_obs, np.stack([one.after for one in told])[numbers])
    assert torch.equal(batch.rewards, numbers + 0.5)


lengths_of_episodes = st.lists(st.integers(1, 12), min_size=1, max_size=25)
capacities = st.integers(5, 40)
frames_of_images = st.integers(1, 4)


@settings(max_examples=60)
@given(lengths_of_episodes, capacities, frames_of_images, st.sampled_from([1, 3]))
@example([1] * 60, 7, 4, 3)
@example([12] * 12, 5, 4, 1)
@example([3, 1, 12, 2] * 8, 20, 3, 3)
@example([64], 10, 3, 3)
def test_whatever_is_kept_is_what_was_added(lengths, capacity, frames, colours):
    replay, told = empty(capacity, frames, colours), transitions(lengths, frames, colours)
    for number, one in enumerate(told):
        add(replay, [one], number)
        assert len(replay) == len(kept(told[: number + 1], capacity, frames))
        if number % 7 == 0 or number == len(told) - 1:
            check(replay, told[: number + 1], frames)


@settings(max_examples=60)
@given(
    lengths_of_episodes,
    capacities,
    frames_of_images,
    st.sampled_from(["s0 a0 -> s1", "s0 a0 -> s1 s3", "s2 a0 a1 -> r0 s4", "s0 s5 a0 -> s1 r4"]),
)
def test_sequences_have_the_states_of_one_episode(lengths, capacity, frames, text):
    replay, told = empty(capacity, frames), transitions(lengths, frames)
    add(replay, told)
    needs = SequenceNeeds(Loss.parse(text))
    there, length = kept(told, capacity, frames), needs.transitions
    valid = {
        start
        for start in there
        if start + length - 1 in there and told[start].episode == told[start + length - 1].episode
    }
    sequences = replay.sample_sequences(2000, needs, np.random.default_rng(0))
    if not valid:
        assert sequences is None
        return
    starts = sequences.actions[0][:, 0].long().tolist()
    assert set(starts) == valid
    assert list(sequences.states) == needs.states
    for step, states in sequences.states.items():
        expected = [told[start + step - 1].after if step else told[start].before for start in starts]
        np.testing.assert_array_equal(states, expected)


@pytest.mark.parametrize(
    ("capacity", "length", "frames"), [(100, 50, 3), (1000, 51, 1), (1024, 50, 3), (1000, 1000, 3)]
)
def test_the_capacity_is_reached_unless_episodes_are_shorter_than_fifty_transitions(capacity, length, frames):
    replay, told = empty(capacity, frames), transitions([length] * (2500 // length), frames)
    for number, one in enumerate(told):
        add(replay, [one], number)
        assert len(replay) == min(number + 1, capacity)


@settings(max_examples=60)
@given(lengths_of_episodes, capacities, frames_of_images, st.data())
def test_a_restored_memory_goes_on_alike(lengths, capacity, frames, data):
    told = transitions(lengths, frames)
    saved_at = data.draw(st.integers(1, len(told)))
    replay = empty(capacity, frames)
    add(replay, told[:saved_at])
    file = io.BytesIO()
    torch.save(replay.state_dict(), file)
    file.seek(0)
    other = empty(capacity, frames)
    other.load_state_dict(torch.load(file, weights_only=True))
    check(other, told[:saved_at], frames)
    for number in range(saved_at, len(told)):
        for memory in (replay, other):
            add(memory, [told[number]], number)
        if number < saved_at + 4 or number == len(told) - 1:
            check(other, told[: number + 1], frames)
    one, two = (memory.sample_transitions(100, np.random.default_rng(1)) for memory in (replay, other))
    assert all(torch.equal(a, b) for a, b in zip(one[:5], two[:5], strict=True))
    needs = SequenceNeeds(Loss.parse("s0 a0 -> s1 s2"))
    one, two = (memory.sample_sequences(100, needs, np.random.default_rng(1)) for memory in (replay, other))
    assert (one is None) == (two is None)
    if one is not None:
        assert all(torch.equal(one.states[i], two.states[i]) for i in needs.states)


def test_a_memory_that_is_not_full_is_saved_in_as_much_space_as_it_fills_with_every_frame_once():
    replay, lengths = empty(100_000, 3), [5, 1, 12, 3, 1, 1, 7]
    add(replay, transitions(lengths, 3))
    state, file = replay.state_dict(), io.BytesIO()
    torch.save(state, file)
    assert file.tell() < 20_000
    every = [frame(number) for number in range(sum(lengths) + len(lengths))]
    np.testing.assert_array_equal(state["observations"]["frames"], every)


def test_images_without_frames_are_kept_whole():
    replay = ReplayBuffer(10, (3 * 3, SIDE, SIDE), ACTIONS, CPU)
    told = transitions([4, 3], frames=3)
    add(replay, told)
    check(replay, told, frames=1)


def test_a_hundred_thousand_transitions_of_atari_take_at_most_three_quarters_of_a_gigabyte():
    capacity = 1000
    replay = ReplayBuffer(capacity, (4, 84, 84), Discrete(18), CPU, frames=4)
    held = [*vars(replay).values(), *vars(replay._store).values()]
    taken = sum(each.nbytes for each in held if isinstance(each, np.ndarray))
    assert capacity * 84 * 84 < taken
    assert taken / capacity * 100_000 < 0.75e9


MEMORY = """
import os, torch
import numpy as np
from gymnasium.spaces import Box
from a2ls.training import ReplayBuffer

def megabytes():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6

before = megabytes()
replay = ReplayBuffer(100_000, (9, 100, 100), Box(-1, 1, (6,)), torch.device("cpu"), frames=3)
empty = megabytes()
image = np.ones((9, 100, 100), np.uint8)
for _ in range(1000):
    replay.add(image, np.zeros(6, np.float32), 0.0, image, terminated=False, episode=0)
print(empty - before, megabytes() - empty)
"""


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="memory is measured on Linux only")
def test_memory_is_taken_as_it_fills():
    empty, filled = map(float, run_python(MEMORY).split())
    assert empty < 50
    assert 29 < filled < 50  # A thousand frames of 30 kB, and small change.
