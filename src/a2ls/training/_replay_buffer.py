"""The replay buffer: transitions for the agent, sequences that never cross an episode for the auxiliary loss.

Images are kept once each, however many observations they are part of.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import torch
from gymnasium import spaces
from numpy.typing import NDArray
from torch import Tensor

from a2ls.agents import ReplayConfig, Transitions
from a2ls.auxiliary import SequenceNeeds, Sequences
from a2ls.training._sum_tree import SumTree

Numbers = NDArray[np.int64]
Indices = NDArray[np.int64]

# Share of frames that are kept beside one for each transition: an episode has one frame more than transitions.
_SPARE_FRAMES = 1 / 50


class ObservationStore(Protocol):
    """The observations of the last transitions."""

    oldest: int
    """Number of the first transition whose observations are still there."""

    def add(self, number: int, obs: NDArray[Any], next_obs: NDArray[Any], *, starts: bool) -> None:
        """Keep the observations before and after a transition; `starts` if it is the first of an episode."""
        ...

    def obs(self, indices: Indices) -> NDArray[Any]:
        """The observations (B, *observation) before the transitions with these indices."""
        ...

    def next_obs(self, indices: Indices) -> NDArray[Any]:
        """The observations (B, *observation) after the transitions with these indices."""
        ...

    def state_dict(self) -> dict[str, Any]:
        """All that is stored."""
        ...

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore what `state_dict` returned, into a store of the same size."""
        ...


class VectorStore:
    """Vectors: the ones after a transition are kept too, so that the last of an episode is there."""

    def __init__(self, capacity: int, size: int) -> None:
        self.oldest = 0
        self._capacity = capacity
        self._added = 0
        self._obs = np.empty((capacity, size), np.float32)
        self._next_obs = np.empty((capacity, size), np.float32)

    def add(self, number: int, obs: NDArray[Any], next_obs: NDArray[Any], *, starts: bool) -> None:  # noqa: ARG002
        """Keep both vectors, in place of the oldest if the store is full."""
        self._obs[number % self._capacity] = obs
        self._next_obs[number % self._capacity] = next_obs
        self._added = number + 1
        self.oldest = max(0, self._added - self._capacity)

    def obs(self, indices: Indices) -> NDArray[np.float32]:
        """The vectors (B, size) before the transitions with these indices."""
        return self._obs.take(indices, axis=0)

    def next_obs(self, indices: Indices) -> NDArray[np.float32]:
        """The vectors (B, size) after the transitions with these indices."""
        return self._next_obs.take(indices, axis=0)

    def state_dict(self) -> dict[str, Any]:
        """All that is stored, cut to what is filled."""
        filled = self._added - self.oldest
        return {
            "added": self._added,
            "obs": torch.from_numpy(self._obs[:filled]),
            "next_obs": torch.from_numpy(self._next_obs[:filled]),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore what `state_dict` returned, into a store of the same capacity."""
        self._added = state["added"]
        self.oldest = max(0, self._added - self._capacity)
        filled = self._added - self.oldest
        self._obs[:filled] = state["obs"].cpu().numpy()
        self._next_obs[:filled] = state["next_obs"].cpu().numpy()


class FrameStore:
    """Images of several frames: every frame is kept once, and images are put together when they are read.

    Frames are counted from the first that was ever added, too. The frames of an image are those up to its newest, but
    none from before its episode, whose first frame stands in for them. If episodes are so short that their additional
    frames leave no room for as many transitions as the capacity, fewer transitions are kept.

    Args:
        capacity: How many transitions to keep.
        shape: Of an image: the channels of all its frames, height and width.
        frames: How many frames an image has.
    """

    def __init__(self, capacity: int, shape: tuple[int, ...], frames: int) -> None:
        channels, height, width = shape
        self.oldest = 0
        self._shape = shape
        self._capacity = capacity
        self._channels_per_frame = channels // frames
        self._frames_per_image = frames
        self._frame_capacity = capacity + round(capacity * _SPARE_FRAMES) + self._frames_per_image + 1
        # Memory that is not written to is not taken: this grows as it fills.
        self._frames = np.empty((self._frame_capacity, self._channels_per_frame, height, width), np.uint8)
        self._added = 0
        self._frames_added = 0
        self._episode_start = 0
        # Of each transition: the newest frame before it, and the first frame of its episode.
        self._newest = np.empty(capacity, np.int64)
        self._first = np.empty(capacity, np.int64)

    def add(self, number: int, obs: NDArray[Any], next_obs: NDArray[Any], *, starts: bool) -> None:
        """Keep the newest frame after the transition, and the one before it if an episode starts there."""
        if starts:
            self._episode_start = self._frames_added
            self._add_frame(obs)
        at = number % self._capacity
        self._newest[at] = self._frames_added - 1
        self._first[at] = self._episode_start
        self._add_frame(next_obs)
        self._added = number + 1
        self.oldest = max(self.oldest, number + 1 - self._capacity)
        while self._oldest_frame(self.oldest) < self._frames_added - self._frame_capacity:
            self.oldest += 1

    def _add_frame(self, image: NDArray[Any]) -> None:
        self._frames[self._frames_added % self._frame_capacity] = image[-self._channels_per_frame :]
        self._frames_added += 1

    def _oldest_frame(self, number: int) -> int:
        at = number % self._capacity
        return max(int(self._newest[at]) - self._frames_per_image + 1, int(self._first[at]))

    def obs(self, indices: Indices) -> NDArray[np.uint8]:
        """The images (B, channels, height, width) before the transitions with these indices."""
        return self._images(self._newest[indices], self._first[indices])

    def next_obs(self, indices: Indices) -> NDArray[np.uint8]:
        """The images (B, channels, height, width) after the transitions with these indices."""
        return self._images(self._newest[indices] + 1, self._first[indices])

    def _images(self, newest: Numbers, first: Numbers) -> NDArray[np.uint8]:
        frames = newest[:, None] + np.arange(1 - self._frames_per_image, 1)
        frames = np.maximum(frames, first[:, None]) % self._frame_capacity
        images: NDArray[np.uint8] = self._frames.take(frames, axis=0).reshape(-1, *self._shape)
        return images

    def state_dict(self) -> dict[str, Any]:
        """All that is stored, cut to what is filled."""
        filled, frames_filled = min(self._added, self._capacity), min(self._frames_added, self._frame_capacity)
        return {
            "added": self._added,
            "oldest": self.oldest,
            "frames_added": self._frames_added,
            "episode_start": self._episode_start,
            "frames": torch.from_numpy(self._frames[:frames_filled]),
            "newest": torch.from_numpy(self._newest[:filled]),
            "first": torch.from_numpy(self._first[:filled]),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore what `state_dict` returned, into a store of the same capacity."""
        self._added = state["added"]
        self.oldest = state["oldest"]
        self._frames_added = state["frames_added"]
        self._episode_start = state["episode_start"]
        frames = state["frames"].cpu().numpy()
        self._frames[: len(frames)] = frames
        filled = min(self._added, self._capacity)
        self._newest[:filled] = state["newest"].cpu().numpy()
        self._first[:filled] = state["first"].cpu().numpy()


def make_store(capacity: int, shape: tuple[int, ...], frames: int) -> ObservationStore:
    """A store for vectors (size,), or for images (channels, height, width) of so many frames."""
    return VectorStore(capacity, shape[0]) if len(shape) == 1 else FrameStore(capacity, shape, frames)


_LEAST_PRIORITY = 1e-6

# Share of draws that hit a valid start is close to one unless episodes are about as short as the sequence.
_MAX_REDRAWS = 16


class ReplayBuffer:
    """The last `capacity` transitions.

    A transition is stored with the observation after it, so the last observation of an episode is there although no
    transition starts from it. Memory is taken as it fills.

    Args:
        capacity: How many transitions to remember.
        observation_shape: (length,) of a vector, or channels, height and width of an image.
        action_space: A box of vectors, or `Discrete`.
        device: Where batches go.
        frames: How many frames an image has, each with the same share of its channels: the last ones of an episode,
            and at its start the first one as often. With 1, images are kept whole.
        replay: How transitions are drawn; single ones, all equally likely, if not given.
    """

    def __init__(
        self,
        capacity: int,
        observation_shape: tuple[int, ...],
        action_space: spaces.Space[Any],
        device: torch.device,
        *,
        frames: int = 1,
        replay: ReplayConfig | None = None,
    ) -> None:
        self.capacity = capacity
        self._replay = replay or ReplayConfig()
        self.device = device
        self._on_cpu = device.type == "cpu"  # Where a batch already is: asking torch to move it takes time.
        self._store = make_store(capacity, observation_shape, frames)
        discrete = isinstance(action_space, spaces.Discrete)
        self._actions = np.empty((capacity, *(action_space.shape or ())), np.int64 if discrete else np.float32)
        self._rewards = np.empty(capacity, np.float32)
        self._continues = np.empty(capacity, np.float32)
        self._episodes = np.empty(capacity, np.int64)
        self.added = 0
        self._tree = SumTree(capacity) if self._replay.priority_exponent else None
        self._highest_priority = 1.0

    def __len__(self) -> int:
        return self.added - self._store.oldest

    def add(
        self,
        obs: NDArray[Any],
        action: NDArray[Any] | int,
        reward: float,
        next_obs: NDArray[Any],
        *,
        terminated: bool,
        episode: int,
    ) -> None:
        """Store a transition of the episode with this number, in place of the oldest if the buffer is full.

        `terminated` is the end of the task itself; at the end by a time limit the value of what would follow counts.
        """
        oldest = self._store.oldest
        starts = self.added == 0 or self._episodes[(self.added - 1) % self.capacity] != episode
        self._store.add(self.added, obs, next_obs, starts=starts)
        position = self.added % self.capacity
        self._actions[position] = action
        self._rewards[position] = reward
        self._continues[position] = not terminated
        self._episodes[position] = episode
        self.added += 1
        if self._tree is not None:
            self._forget_priorities(oldest, self._store.oldest)
            self._tree.set(np.array([position]), self._highest_priority)  # Until it is known better: soon to be drawn.

    def _forget_priorities(self, oldest: int, new_oldest: int) -> None:
        """Let transitions whose observations are gone never be drawn."""
        assert self._tree is not None
        if new_oldest > oldest:
            self._tree.set(np.arange(oldest, new_oldest) % self.capacity, 0.0)

    def sample_transitions(self, batch: int, rng: np.random.Generator) -> Transitions:
        """A batch of transitions as `draw` draws them."""
        return self.transitions(self.draw(batch, rng))

    def draw(self, batch: int, rng: np.random.Generator) -> Numbers:
        """The numbers of some stored transitions.

        Every one is equally likely, or with priorities in proportion to these: one in each of as many equal parts of
        their sum.
        """
        if self._tree is None:
            return rng.integers(self._store.oldest, self.added, size=batch)
        points = (np.arange(batch) + rng.random(batch)) * (self._tree.total / batch)
        places = self._tree.find(points)
        # The newest transition with that place.
        return self.added - 1 - (self.added - 1 - places) % self.capacity

    def transitions(self, numbers: Numbers, beta: float = 1.0) -> Transitions:
        """The transitions of these numbers.

        Args:
            numbers: As `draw` gave them.
            beta: How far importance weights correct for unequal probabilities, from 0 to 1.
        """
        indices = numbers % self.capacity
        rewards, last, steps = self._take(self._rewards, indices), indices, None
        if self._replay.n_step > 1:
            sums, lengths = self._returns(numbers)
            last = (numbers + lengths - 1) % self.capacity
            rewards, steps = self._on_device(sums), self._on_device(lengths.astype(np.float32))
        return Transitions(
            obs=self._on_device(self._store.obs(indices)),
            actions=self._take(self._actions, indices),
            rewards=rewards,
            next_obs=self._on_device(self._store.next_obs(last)),
            continues=self._take(self._continues, last),
            steps=steps,
            weights=None if self._tree is None else self._on_device(self._importance(indices, beta)),
        )

    def _returns(self, numbers: Numbers) -> tuple[NDArray[np.float32], Numbers]:
        """The discounted sum of up to n rewards from each transition on, and how many: none beyond its episode."""
        following = numbers[:, None] + np.arange(self._replay.n_step)
        indices = following % self.capacity
        # Numbers of episodes never fall, so those of one episode are next to each other.
        same = (following < self.added) & (self._episodes[indices] == self._episodes[indices[:, :1]])
        discounts = (self._replay.gamma ** np.arange(self._replay.n_step)).astype(np.float32)
        rewards = np.where(same, self._rewards[indices], np.float32(0))
        return rewards @ discounts, same.sum(axis=1)

    def _importance(self, indices: Indices, beta: float) -> NDArray[np.float32]:
        """Importance weights, of which the largest is 1."""
        assert self._tree is not None
        weights = self._tree.weights(indices) ** -beta  # What the probabilities are divided by cancels out.
        importance: NDArray[np.float32] = (weights / weights.max()).astype(np.float32)
        return importance

    def set_priorities(self, numbers: Numbers, priorities: NDArray[np.floating[Any]]) -> None:
        """Let the transitions of these numbers be drawn in proportion to their priorities, to the power that is set."""
        assert self._tree is not None
        # A priority of nothing would let a transition never be drawn again.
        powers = np.maximum(priorities, _LEAST_PRIORITY) ** self._replay.priority_exponent
        self._tree.set(numbers % self.capacity, powers)
        self._highest_priority = max(self._highest_priority, float(powers.max()))

    def sample_sequences(self, batch: int, needs: SequenceNeeds, rng: np.random.Generator) -> Sequences | None:
        """A batch of sequences with just the elements needed, every valid start equally likely.

        None if no stored episode is long enough.
        """
        starts = self._sample_starts(batch, needs.transitions, rng)
        if starts is None:
            return None
        # Row i is of transition i - 1, after which comes state i: so the last state of an episode is within reach.
        indices = (starts + np.arange(-1, needs.transitions)[:, None]) % self.capacity
        return Sequences(
            states={
                i: self._on_device(self._store.next_obs(indices[i]) if i else self._store.obs(indices[1]))
                for i in needs.states
            },
            actions={i: self._take(self._actions, indices[i + 1]) for i in needs.actions},
            rewards={i: self._take(self._rewards, indices[i + 1]) for i in needs.rewards},
        )

    def _sample_starts(self, batch: int, length: int, rng: np.random.Generator) -> Numbers | None:
        """Numbers of transitions that start `length` transitions of one episode."""
        oldest, end = self._store.oldest, self.added - length + 1
        if oldest >= end:
            return None
        starts = rng.integers(oldest, end, size=batch)
        for _ in range(_MAX_REDRAWS):
            (crossing,) = self._crosses_episodes(starts, length).nonzero()
            if not len(crossing):
                return starts
            starts[crossing] = rng.integers(oldest, end, size=len(crossing))
        # Valid starts are rare: list them all instead.
        every = np.arange(oldest, end)
        valid = every[~self._crosses_episodes(every, length)]
        return rng.choice(valid, size=batch) if len(valid) else None

    def _crosses_episodes(self, starts: Numbers, length: int) -> NDArray[np.bool_]:
        first, last = starts % self.capacity, (starts + length - 1) % self.capacity
        differ: NDArray[np.bool_] = self._episodes.take(first) != self._episodes.take(last)
        return differ

    def _take(self, column: NDArray[Any], indices: Indices) -> Tensor:
        return self._on_device(column.take(indices, axis=0))

    def _on_device(self, values: NDArray[Any]) -> Tensor:
        tensor = torch.from_numpy(values)
        return tensor if self._on_cpu else tensor.to(self.device)

    def state_dict(self) -> dict[str, Any]:
        """All that is stored; columns are cut to what is filled."""
        filled = min(self.added, self.capacity)
        columns = {name: torch.from_numpy(column[:filled]) for name, column in self._columns().items()}
        state = {"added": self.added, "observations": self._store.state_dict(), **columns}
        if self._tree is not None:
            state["priorities"] = torch.from_numpy(self._tree.weights(np.arange(filled)))
            state["highest_priority"] = self._highest_priority
        return state

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore what `state_dict` returned, into a buffer of the same capacity."""
        self.added = state["added"]
        self._store.load_state_dict(state["observations"])
        for name, column in self._columns().items():
            column[: len(state[name])] = state[name].cpu().numpy()
        if self._tree is not None:
            priorities = state["priorities"].cpu().numpy()
            self._tree = SumTree(self.capacity)
            self._tree.set(np.arange(len(priorities)), priorities)
            self._highest_priority = state["highest_priority"]

    def _columns(self) -> dict[str, NDArray[Any]]:
        return {
            "actions": self._actions,
            "rewards": self._rewards,
            "continues": self._continues,
            "episodes": self._episodes,
        }
