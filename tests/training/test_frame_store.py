"""The replay memory of images, which keeps every frame once, against a plain list of whole observations."""

import io
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import torch
from gymnasium.spaces import Box
from hypothesis import example, given, settings
from hypothesis import strategies as st

from a2ls.space import Loss
from a2ls.training import Replay, SequenceNeeds

CPU = torch.device("cpu")
SIDE = 2
ACTIONS = Box(-1, 1, (1,))
quick = settings(deadline=None, max_examples=60)


@dataclass(frozen=True)
class Told:
    """A transition as it was added: its observations whole, and the numbers of the frames in them."""

    before: np.ndarray
    after: np.ndarray
    frames_before: tuple[int, ...]
    frames_after: tuple[int, ...]
    episode: int


def frame(number):
    """Another one for each number."""
    shown = np.full(3 * SIDE * SIDE, number % 251, np.uint8)
    shown[:4] = np.frombuffer(np.int32(number).tobytes(), np.uint8)
    return shown.reshape(3, SIDE, SIDE)


def transitions(lengths, frames):
    """All transitions of episodes of these lengths, of which none shares a frame with another."""
    told, drawn = [], 0
    for episode, length in enumerate(lengths):
        numbers = [drawn] * frames
        for _ in range(length):
            drawn += 1
            before, after = tuple(numbers[-frames:]), tuple([*numbers, drawn][-frames:])
            numbers.append(drawn)
            images = (np.concatenate([frame(number) for number in some]) for some in (before, after))
            told.append(Told(*images, before, after, episode))
        drawn += 1
    return told


def empty(capacity, frames):
    return Replay(capacity, (3 * frames, SIDE, SIDE), ACTIONS, CPU)


def add(replay, told, first=0):
    """Add transitions whose actions and rewards are their numbers."""
    for number, one in enumerate(told, first):
        replay.add(one.before, np.array([number]), number + 0.5, one.after, terminated=False, episode=one.episode)


def kept(replay, told):
    """The numbers of the transitions that should be there: as many of the last as there is room for.

    That is for all of their frames, where the memory has room for some more than it has transitions.
    """
    forgotten = max(told[-1].frames_after) + 1 - len(replay._store._frames)
    numbers = range(max(0, len(told) - replay.capacity), len(told))
    return [number for number in numbers if min(told[number].frames_before) >= forgotten]


def check(replay, told):
    """That all that should be there is there, and is what was added."""
    numbers = np.arange(replay._store.oldest, replay.added)
    assert numbers.tolist() == kept(replay, told)
    assert len(replay) == len(numbers) > 0
    places = numbers % replay.capacity
    np.testing.assert_array_equal(replay._store.before(places), [told[number].before for number in numbers])
    np.testing.assert_array_equal(replay._store.after(places), [told[number].after for number in numbers])


lengths_of_episodes = st.lists(st.integers(1, 12), min_size=1, max_size=25)
capacities = st.integers(5, 40)
frames_of_images = st.integers(1, 4)


@quick
@given(lengths_of_episodes, capacities, frames_of_images)
@example([1] * 60, 7, 4)
@example([12] * 12, 5, 4)
@example([3, 1, 12, 2] * 8, 20, 3)
def test_whatever_is_kept_is_what_was_added(lengths, capacity, frames):
    replay, told = empty(capacity, frames), transitions(lengths, frames)
    for number, one in enumerate(told):
        add(replay, [one], number)
        check(replay, told[: number + 1])


@quick
@given(lengths_of_episodes, capacities, frames_of_images)
def test_batches_have_whole_transitions_and_all_of_them(lengths, capacity, frames):
    replay, told = empty(capacity, frames), transitions(lengths, frames)
    add(replay, told)
    batch = replay.sample_transitions(2000, np.random.default_rng(0))
    numbers = batch.actions[:, 0].long().tolist()
    assert (batch.obs.dtype, batch.obs.shape) == (torch.uint8, (2000, 3 * frames, SIDE, SIDE))
    # With 2000 draws from at most 40, one that is there is missed with probability below e^-45.
    assert sorted(set(numbers)) == kept(replay, told)
    np.testing.assert_array_equal(batch.obs, [told[number].before for number in numbers])
    np.testing.assert_array_equal(batch.next_obs, [told[number].after for number in numbers])
    assert batch.rewards.tolist() == [number + 0.5 for number in numbers]


@quick
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
    there, length = kept(replay, told), needs.transitions
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


@pytest.mark.parametrize("frames", [1, 2, 3, 4])
def test_every_frame_is_stored_once(frames):
    lengths = [5, 1, 12, 3, 1, 1, 7]
    replay, told = empty(100, frames), transitions(lengths, frames)
    add(replay, told)
    count = replay._store._frames_added
    assert count == sum(lengths) + len(lengths)
    np.testing.assert_array_equal(replay._store._frames[:count], [frame(number) for number in range(count)])


@pytest.mark.parametrize("frames", [1, 3])
@pytest.mark.parametrize("length", [50, 51, 125, 1000])
@pytest.mark.parametrize("capacity", [100, 1000, 1024])
def test_the_capacity_is_reached_unless_episodes_are_shorter_than_fifty_transitions(capacity, length, frames):
    replay, told = empty(capacity, frames), transitions([length] * (2500 // length), frames)
    for number, one in enumerate(told):
        add(replay, [one], number)
        assert len(replay) == min(number + 1, capacity)


@pytest.mark.parametrize("capacity", [100, 1000])
def test_of_short_episodes_as_many_are_kept_as_there_is_room_for(capacity):
    replay, told = empty(capacity, 3), transitions([1] * 3000, 3)
    add(replay, told)
    # Each has one transition and two frames.
    assert len(replay) == len(replay._store._frames) // 2
    check(replay, told)


def test_an_episode_that_is_longer_than_the_memory():
    replay, told = empty(10, 3), transitions([64], 3)
    add(replay, told)
    assert len(replay) == 10
    check(replay, told)


@quick
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
    check(other, told[:saved_at])
    for number in range(saved_at, len(told)):
        for memory in (replay, other):
            add(memory, [told[number]], number)
        check(other, told[: number + 1])
    one, two = (memory.sample_transitions(100, np.random.default_rng(1)) for memory in (replay, other))
    assert all(torch.equal(a, b) for a, b in zip(one, two, strict=True))
    needs = SequenceNeeds(Loss.parse("s0 a0 -> s1 s2"))
    one, two = (memory.sample_sequences(100, needs, np.random.default_rng(1)) for memory in (replay, other))
    assert (one is None) == (two is None)
    if one is not None:
        assert all(torch.equal(one.states[i], two.states[i]) for i in needs.states)


def test_a_memory_that_is_not_full_is_saved_in_as_much_space_as_it_fills():
    replay = empty(100_000, 3)
    add(replay, transitions([12] * 5, 3))
    file = io.BytesIO()
    torch.save(replay.state_dict(), file)
    assert file.tell() < 20_000


class Watched(np.ndarray):
    """Frames that note in `read` which of them are read."""

    def take(self, indices, axis=None, **others):
        self.read += np.asarray(indices).reshape(-1).tolist()
        return np.asarray(self).take(indices, axis=axis, **others)

    def __getitem__(self, index):
        self.read += np.arange(len(self))[index[0] if isinstance(index, tuple) else index].reshape(-1).tolist()
        return np.asarray(self)[index]


def test_only_the_frames_of_the_states_of_a_loss_are_read():
    replay, told = empty(30, 3), transitions([12] * 9, 3)
    add(replay, told)
    store = replay._store
    room = len(store._frames)
    store._frames = store._frames.view(Watched)
    store._frames.read = []
    sequences = replay.sample_sequences(8, SequenceNeeds(Loss.parse("s0 a0 a5 -> r2 s6")), np.random.default_rng(0))
    starts = sequences.actions[0][:, 0].long().tolist()
    numbers = [number for start in starts for number in told[start].frames_before + told[start + 5].frames_after]
    assert sorted(store._frames.read) == sorted(number % room for number in numbers)
    store._frames.read = []
    replay.sample_sequences(8, SequenceNeeds(Loss.parse("s0 -> r3")), np.random.default_rng(0))
    assert len(store._frames.read) == 8 * 3
    store._frames.read = []
    replay.sample_transitions(8, np.random.default_rng(0))
    assert len(store._frames.read) == 2 * 8 * 3


MEMORY = """
import os, torch
import numpy as np
from gymnasium.spaces import Box
from a2ls.training import Replay

def megabytes():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6

before = megabytes()
replay = Replay(100_000, (9, 100, 100), Box(-1, 1, (6,)), torch.device("cpu"))
empty = megabytes()
image = np.ones((9, 100, 100), np.uint8)
for _ in range(1000):
    replay.add(image, np.zeros(6, np.float32), 0.0, image, terminated=False, episode=0)
print(empty - before, megabytes() - empty)
"""


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="memory is measured on Linux only")
def test_memory_is_taken_as_it_fills():
    result = subprocess.run([sys.executable, "-c", MEMORY], check=False, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    empty, filled = map(float, result.stdout.split())
    assert empty < 50
    assert 29 < filled < 50  # A thousand frames of 30 kB, and small change.
