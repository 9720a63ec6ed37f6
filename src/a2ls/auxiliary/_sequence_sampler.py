"""Sequences from a flat replay buffer: NumPy arrays that are written as a ring, with a flag at the end of episodes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from a2ls._errors import BadInput
from a2ls.auxiliary._auxiliary_loss import Sequences
from a2ls.space import Loss, find_loss

Rows = NDArray[np.int64]

# Nearly all draws hit a valid start, unless episodes are about as short as the sequences.
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


class SequenceSampler:
    """Draws batches of sequences for an auxiliary loss from the arrays of a replay buffer.

    A sequence never crosses the end of an episode, nor the place where the buffer is being written, and every start
    that allows for this is equally likely. The arrays are read where they are: what is written to them later is
    sampled from then on.

    Row i of each array belongs to transition i. With several environments that are stepped together the arrays have
    one more axis after the first, of as many places: `dones` then has the shape (size, n_envs), else (size,).

    Args:
        loss: What to draw sequences for: a `Loss`, or its text form or name.
        obs: (size, *observation), before each transition.
        actions: (size, action_dim), or (size,) or (size, 1) of an integer type if they are discrete.
        rewards: (size,) or (size, 1).
        dones: (size,). True where the transition is the last of its episode, for whatever reason: the end of the task,
            a time limit, or a reset in between.
        next_obs: (size, *observation), after each transition: at the end of an episode its last observation, not the
            first one of the next. Without it the state after a transition is taken from the next row, and the last
            state of each episode, which no row has, is not used.
        device: Where batches go.
        obs_transform: What is done to observations (B, *observation) on their way, such as a normalisation.
        reward_transform: What is done to rewards (B,).

    Raises:
        BadInput: If the arrays do not belong together.

    Example:
        >>> sampler = SequenceSampler("a2-winner", obs, actions, rewards, dones, next_obs=next_obs)
        >>> sequences = sampler.sample(128, rng, position=step % size, full=step >= size)
    """

    def __init__(
        self,
        loss: Loss | str,
        obs: NDArray[Any],
        actions: NDArray[Any],
        rewards: NDArray[Any],
        dones: NDArray[Any],
        *,
        next_obs: NDArray[Any] | None = None,
        device: torch.device | str = "cpu",
        obs_transform: Callable[[NDArray[Any]], NDArray[Any]] | None = None,
        reward_transform: Callable[[NDArray[Any]], NDArray[Any]] | None = None,
    ) -> None:
        self.loss = (find_loss(loss) if isinstance(loss, str) else loss).canonical()
        self._needs = SequenceNeeds(self.loss)
        self._device = torch.device(device)
        self._obs_transform, self._reward_transform = obs_transform, reward_transform
        columns = {"obs": obs, "actions": actions, "rewards": rewards, "dones": dones, "next_obs": next_obs}
        if dones.ndim not in (1, 2) or not dones.size:
            raise BadInput(f"dones has the shape {dones.shape}, but must have (size,) or (size, n_envs)")
        for name, column in columns.items():
            if column is not None and column.shape[: dones.ndim] != dones.shape:
                raise BadInput(f"{name} has the shape {column.shape}, but must begin with that of dones, {dones.shape}")
        if next_obs is not None and next_obs.shape != obs.shape:
            raise BadInput(f"next_obs has the shape {next_obs.shape}, but obs has {obs.shape}")
        if rewards.shape not in (dones.shape, (*dones.shape, 1)):
            raise BadInput(f"rewards has the shape {rewards.shape}, but must have that of dones, {dones.shape}")
        self._columns = columns
        self._size = len(dones)
        self._envs = dones.shape[1] if dones.ndim == 2 else None
        last_state = max([-1, *self._needs.states])
        # How many rows in a row a sequence has: without `next_obs` one more where it ends in a state.
        self.rows = self._needs.transitions if next_obs is not None else max(self._needs.transitions, last_state + 1)

    def sample(
        self, batch_size: int, rng: np.random.Generator, *, position: int, full: bool = False
    ) -> Sequences | None:
        """A batch of sequences with just the elements that the loss selects, as tensors; None if there is none yet.

        Numbers of 64 bits become those of PyTorch's default type, which networks have.

        Args:
            batch_size: How many sequences.
            rng: What draws them.
            position: The row that will be written next.
            full: Whether all rows have been written; otherwise those before `position` have.
        """
        starts = self._starts(batch_size, rng, position, full)
        if starts is None:
            return None
        rows, env = starts
        columns = self._columns

        def take(name: str, offset: int) -> NDArray[Any]:
            column, at = columns[name], (rows + offset) % self._size
            assert column is not None
            return column[at] if env is None else column[at, env]

        def state(step: int) -> NDArray[Any]:
            # The last state of an episode is there only as the one after its last transition.
            return take("next_obs", step - 1) if step and columns["next_obs"] is not None else take("obs", step)

        return Sequences(
            states={step: self._tensor(state(step), self._obs_transform) for step in self._needs.states},
            actions={step: self._tensor(take("actions", step)) for step in self._needs.actions},
            rewards={
                step: self._tensor(take("rewards", step).reshape(-1), self._reward_transform)
                for step in self._needs.rewards
            },
        )

    def _tensor(self, values: NDArray[Any], transform: Callable[[NDArray[Any]], NDArray[Any]] | None = None) -> Tensor:
        tensor = torch.as_tensor(values if transform is None else transform(values), device=self._device)
        # NumPy and many environments have 64 bits by default, networks do not.
        return tensor.to(torch.get_default_dtype()) if tensor.dtype == torch.float64 else tensor

    def _starts(
        self, batch: int, rng: np.random.Generator, position: int, full: bool
    ) -> tuple[Rows, Rows | None] | None:
        """Rows (B,) where valid sequences start, and with several environments whose (B,)."""
        if not 0 <= position < self._size + (not full):
            raise BadInput(f"position is {position}, but the buffer has the rows 0 to {self._size - 1}")
        # Rows in the order in which they were written; no sequence goes on from the newest to the oldest.
        oldest, filled = (position, self._size) if full else (0, position)
        ages = filled - self.rows + 1
        if ages < 1:
            return None
        places = ages * (self._envs or 1)
        drawn = rng.integers(places, size=batch)
        for _ in range(_MAX_REDRAWS):
            (crossing,) = self._cross(drawn, oldest).nonzero()
            if not len(crossing):
                return self._at(drawn, oldest)
            drawn[crossing] = rng.integers(places, size=len(crossing))
        # Valid starts are rare: list them all instead.
        every = np.arange(places)
        valid = every[~self._cross(every, oldest)]
        return self._at(rng.choice(valid, size=batch), oldest) if len(valid) else None

    def _at(self, places: Rows, oldest: int) -> tuple[Rows, Rows | None]:
        """The row of each place, which counts environments first and then rows from the oldest on."""
        if self._envs is None:
            return (places + oldest) % self._size, None
        return (places // self._envs + oldest) % self._size, places % self._envs

    def _cross(self, places: Rows, oldest: int) -> NDArray[np.bool_]:
        """Whether an episode ends before the last row of the sequence at each place."""
        rows, env = self._at(places, oldest)
        inner = (rows[:, None] + np.arange(self.rows - 1)) % self._size
        dones = self._columns["dones"]
        assert dones is not None
        ends = dones[inner] if env is None else dones[inner, env[:, None]]
        crossing: NDArray[np.bool_] = ends.astype(bool).any(axis=1)
        return crossing
