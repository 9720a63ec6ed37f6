"""The replay memory: transitions for the agent, sequences that never cross an episode for the auxiliary loss."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from numpy.typing import NDArray
from torch import Tensor

from a2ls.agents import Transitions
from a2ls.auxiliary import Sequences
from a2ls.space import Loss
from a2ls.training._stores import Numbers, Places, make_store

# Share of draws that hit a valid start is close to one unless episodes are about as short as the sequence.
_MAX_REDRAWS = 16


class SequenceNeeds:
    """Which steps of which elements a loss reads, found once and used for every batch."""

    def __init__(self, loss: Loss) -> None:
        loss = loss.canonical()
        elements = {*loss.source_elements, *loss.target_elements}
        self.states, self.actions, self.rewards = (
            sorted(element.step for element in elements if element.kind == kind) for kind in "sar"
        )
        self.transitions = loss.transitions_needed


class Replay:
    """The last `capacity` transitions.

    A transition is stored with the observation after it, so the last observation of an episode is there although no
    transition starts from it. Memory is taken as it fills.

    Args:
        capacity: How many transitions to remember.
        observation_shape: (length,) of a vector, or 3 x frames, height and width of an image.
        action_space: A box of vectors, or `Discrete`.
        device: Where batches go.
    """

    def __init__(
        self,
        capacity: int,
        observation_shape: tuple[int, ...],
        action_space: spaces.Space[Any],
        device: torch.device,
    ) -> None:
        self.capacity = capacity
        self.device = device
        self._on_cpu = device.type == "cpu"  # Where a batch already is: asking torch to move it takes time.
        self._store = make_store(capacity, observation_shape)
        discrete = isinstance(action_space, spaces.Discrete)
        self._actions = np.empty((capacity, *(action_space.shape or ())), np.int64 if discrete else np.float32)
        self._rewards = np.empty(capacity, np.float32)
        self._continues = np.empty(capacity, np.float32)
        self._episodes = np.empty(capacity, np.int64)
        self.added = 0

    def __len__(self) -> int:
        return self.added - self._store.oldest

    def add(
        self,
        observation: NDArray[Any],
        action: NDArray[Any] | int,
        reward: float,
        next_observation: NDArray[Any],
        *,
        terminated: bool,
        episode: int,
    ) -> None:
        """Store a transition of the episode with this number, in place of the oldest if the memory is full.

        `terminated` is the end of the task itself; at the end by a time limit the value of what would follow counts.
        """
        starts = self.added == 0 or self._episodes[(self.added - 1) % self.capacity] != episode
        self._store.add(self.added, observation, next_observation, starts=starts)
        position = self.added % self.capacity
        self._actions[position] = action
        self._rewards[position] = reward
        self._continues[position] = not terminated
        self._episodes[position] = episode
        self.added += 1

    def sample_transitions(self, batch: int, rng: np.random.Generator) -> Transitions:
        """A batch of transitions, every stored one equally likely."""
        places = rng.integers(self._store.oldest, self.added, size=batch) % self.capacity
        return Transitions(
            obs=self._on_device(self._store.before(places)),
            actions=self._take(self._actions, places),
            rewards=self._take(self._rewards, places),
            next_obs=self._on_device(self._store.after(places)),
            continues=self._take(self._continues, places),
        )

    def sample_sequences(self, batch: int, needs: SequenceNeeds, rng: np.random.Generator) -> Sequences | None:
        """A batch of sequences with just the elements needed, every valid start equally likely.

        None if no stored episode is long enough.
        """
        starts = self._sample_starts(batch, needs.transitions, rng)
        if starts is None:
            return None
        # Row i is of transition i - 1, after which comes state i: so the last state of an episode is within reach.
        places = (starts + np.arange(-1, needs.transitions)[:, None]) % self.capacity
        return Sequences(
            states={
                i: self._on_device(self._store.after(places[i]) if i else self._store.before(places[1]))
                for i in needs.states
            },
            actions={i: self._take(self._actions, places[i + 1]) for i in needs.actions},
            rewards={i: self._take(self._rewards, places[i + 1]) for i in needs.rewards},
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

    def _take(self, column: NDArray[Any], places: Places) -> Tensor:
        return self._on_device(column.take(places, axis=0))

    def _on_device(self, values: NDArray[Any]) -> Tensor:
        tensor = torch.from_numpy(values)
        return tensor if self._on_cpu else tensor.to(self.device)

    def state_dict(self) -> dict[str, Any]:
        """All that is stored; columns are cut to what is filled."""
        filled = min(self.added, self.capacity)
        columns = {name: torch.from_numpy(column[:filled]) for name, column in self._columns().items()}
        return {"added": self.added, "observations": self._store.state_dict(), **columns}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore what `state_dict` returned, into a memory of the same capacity."""
        self.added = state["added"]
        self._store.load_state_dict(state["observations"])
        for name, column in self._columns().items():
            column[: len(state[name])] = state[name].cpu().numpy()

    def _columns(self) -> dict[str, NDArray[Any]]:
        return {
            "actions": self._actions,
            "rewards": self._rewards,
            "continues": self._continues,
            "episodes": self._episodes,
        }
