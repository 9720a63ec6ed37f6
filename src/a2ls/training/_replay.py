"""The replay memory: transitions for the agent, sequences that never cross an episode for the auxiliary loss."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from a2ls.agents import Transitions
from a2ls.auxiliary import Sequences
from a2ls.space import Loss

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
    """The last `capacity` transitions in a ring.

    A transition is stored with the observation after it, so the last observation of an episode is there although no
    transition starts from it. Memory is taken as it fills.
    """

    def __init__(self, capacity: int, observation_dim: int, action_dim: int, device: torch.device) -> None:
        self.capacity = capacity
        self.device = device
        self.observations = np.empty((capacity, observation_dim), np.float32)
        self.actions = np.empty((capacity, action_dim), np.float32)
        self.rewards = np.empty(capacity, np.float32)
        self.next_observations = np.empty((capacity, observation_dim), np.float32)
        self.continues = np.empty(capacity, np.float32)
        self.episodes = np.empty(capacity, np.int64)
        self.added = 0

    def __len__(self) -> int:
        return min(self.added, self.capacity)

    def add(
        self,
        observation: NDArray[np.float32],
        action: NDArray[np.float32],
        reward: float,
        next_observation: NDArray[np.float32],
        *,
        terminated: bool,
        episode: int,
    ) -> None:
        """Store a transition of the episode with this number, in place of the oldest if the memory is full.

        `terminated` is the end of the task itself; at the end by a time limit the value of what would follow counts.
        """
        position = self.added % self.capacity
        self.observations[position] = observation
        self.actions[position] = action
        self.rewards[position] = reward
        self.next_observations[position] = next_observation
        self.continues[position] = not terminated
        self.episodes[position] = episode
        self.added += 1

    def sample_transitions(self, batch: int, rng: np.random.Generator) -> Transitions:
        """A batch of transitions, every stored one equally likely."""
        at = rng.integers(len(self), size=batch)
        return Transitions(
            observations=self._take(self.observations, at),
            actions=self._take(self.actions, at),
            rewards=self._take(self.rewards, at),
            next_observations=self._take(self.next_observations, at),
            continues=self._take(self.continues, at),
        )

    def sample_sequences(self, batch: int, needs: SequenceNeeds, rng: np.random.Generator) -> Sequences | None:
        """A batch of sequences with just the elements needed, every valid start equally likely.

        None if no stored episode is long enough.
        """
        starts = self._sample_starts(batch, needs.transitions, rng)
        if starts is None:
            return None

        def at(step: int) -> NDArray[np.int64]:
            return (starts + step) % self.capacity

        # State i follows transition i - 1, which is what makes the last state of an episode reachable.
        return Sequences(
            states={
                i: self._take(self.next_observations, at(i - 1)) if i else self._take(self.observations, at(0))
                for i in needs.states
            },
            actions={i: self._take(self.actions, at(i)) for i in needs.actions},
            rewards={i: self._take(self.rewards, at(i)) for i in needs.rewards},
        )

    def _sample_starts(self, batch: int, length: int, rng: np.random.Generator) -> NDArray[np.int64] | None:
        """Positions, counted from the oldest transition's, that start `length` transitions of one episode."""
        oldest = self.added - len(self)
        choices = len(self) - length + 1
        if choices < 1:
            return None
        starts = oldest + rng.integers(choices, size=batch)
        for _ in range(_MAX_REDRAWS):
            crossing = np.flatnonzero(~self._in_one_episode(starts, length))
            if not len(crossing):
                return starts
            starts[crossing] = oldest + rng.integers(choices, size=len(crossing))
        # Valid starts are rare: list them all instead.
        every = np.arange(oldest, oldest + choices)
        valid = every[self._in_one_episode(every, length)]
        return rng.choice(valid, size=batch) if len(valid) else None

    def _in_one_episode(self, starts: NDArray[np.int64], length: int) -> NDArray[np.bool_]:
        first, last = starts % self.capacity, (starts + length - 1) % self.capacity
        same: NDArray[np.bool_] = self.episodes[first] == self.episodes[last]
        return same

    def _take(self, column: NDArray[np.float32], at: NDArray[np.int64]) -> Tensor:
        return torch.from_numpy(column.take(at, axis=0)).to(self.device)

    def state_dict(self) -> dict[str, Any]:
        """All that is stored; columns are cut to what is filled."""
        columns = {name: torch.from_numpy(column[: len(self)]) for name, column in self._columns().items()}
        return {"added": self.added, **columns}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore what `state_dict` returned, into a memory of the same capacity."""
        self.added = state["added"]
        for name, column in self._columns().items():
            column[: len(self)] = state[name].cpu().numpy()

    def _columns(self) -> dict[str, NDArray[Any]]:
        return {name: value for name, value in vars(self).items() if isinstance(value, np.ndarray)}
