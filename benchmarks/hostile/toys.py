"""Environments that do what no environment should, registered on import as a user's would be: `toys:Hang-v0`.

All but for their mischief are the same task of twenty steps, `Polite-v0`. Each does its mischief once the agent learns,
unless its name says that it does it earlier: a command shall not be able to see it coming.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import torch
from gymnasium import spaces

LENGTH = 20
QUIET_STEPS = 150
ELSEWHERE = "HOSTILE_ELSEWHERE"
"""The variable with a folder for those who leave their own."""
NAN = float("nan")
Step = tuple[Any, ...]

_steps = 0  # Of all environments of this process.


class OddEnd(BaseException):
    """An exception that is none."""


class Toy(gymnasium.Env[Any, Any]):
    """Rewards actions near the first of two numbers that it shows.

    Args:
        mischief: What happens to a step, given the step as it should be.
        at_init: What happens when the environment is made.
        at_reset: What happens when an episode begins, given the observation.
        length: Steps of an episode.
    """

    observation_space = spaces.Box(-2.0, 2.0, (2,), np.float32)
    action_space = spaces.Box(-1.0, 1.0, (1,), np.float32)

    def __init__(
        self,
        mischief: Callable[[Step], Any] | None = None,
        at_init: Callable[[], object] | None = None,
        at_reset: Callable[[Any], Any] | None = None,
        length: int = LENGTH,
    ) -> None:
        self._mischief, self._at_reset, self._length = mischief, at_reset, length
        self._count = 0
        self._position = np.zeros(2, np.float32)
        if at_init is not None:
            at_init()

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begin an episode."""
        super().reset(seed=seed, options=options)
        self._count = 0
        self._position = self.np_random.uniform(-1, 1, 2).astype(np.float32)
        return (self._position if self._at_reset is None else self._at_reset(self._position)), {}

    def step(self, action: Any) -> Any:
        """Take a step."""
        global _steps  # noqa: PLW0603 (an environment may be made anew for each episode)
        _steps += 1
        self._count += 1
        reward = -abs(float(action[0]) - float(self._position[0]))
        self._position = np.clip(self._position + 0.1 * np.float32(action[0]), -2, 2).astype(np.float32)
        step: Step = (self._position, reward, False, self._count >= self._length, {})
        return step if self._mischief is None or _steps < QUIET_STEPS else self._mischief(step)


def _raise(error: BaseException) -> Any:
    raise error


def _hang() -> None:
    while True:
        time.sleep(1)


def _reward(value: Any) -> Callable[[Step], Step]:
    return lambda step: (step[0], value, *step[2:])


def _observation(value: Any) -> Callable[[Step], Step]:
    return lambda step: (value, *step[1:])


def _after(work: Callable[[], object]) -> Callable[[Step], Step]:
    """Do something, and then the step as it should be."""

    def mischief(step: Step) -> Step:
        work()
        return step

    return mischief


def _draw() -> None:
    random.seed(1)
    np.random.seed(1)  # noqa: NPY002 (the state that all share)
    torch.manual_seed(1)


def _reserve() -> None:
    _reserved.append(np.ones(10**6) if len(_reserved) < 50 else None)


_reserved: list[Any] = []
_begun: list[subprocess.Popen[bytes]] = []


def _begin_process() -> None:
    if not _begun:
        _begun.append(subprocess.Popen(["sleep", "300"]))


def _leave() -> None:
    os.chdir(Path(os.environ[ELSEWHERE]))


STEPS: dict[str, Callable[[Step], Any]] = {
    "Raise": lambda _: _raise(RuntimeError("[/b] {x} %s")),
    "RaiseOdd": lambda _: _raise(OddEnd("odd")),
    "Interrupt": lambda _: _raise(KeyboardInterrupt()),
    "StopIteration": lambda _: _raise(StopIteration()),
    "Exit": lambda _: sys.exit(0),
    "ExitAtOnce": lambda _: os._exit(0),
    "KillSelf": lambda _: os.kill(os.getpid(), signal.SIGKILL),
    "Abort": lambda _: os.abort(),
    "Hang": lambda _: _hang(),
    "RewardNaN": _reward(NAN),
    "RewardInfinite": _reward(float("inf")),
    "RewardNone": _reward(None),
    "RewardText": _reward("x"),
    "RewardVector": _reward(np.ones(3)),
    "RewardHuge": _reward(1e300),
    "ObservationNaN": _observation(np.full(2, NAN, np.float32)),
    "ObservationLong": _observation(np.zeros(3, np.float32)),
    "ObservationNone": _observation(None),
    "ObservationObjects": _observation(np.array(["a", None], dtype=object)),
    "FourValues": lambda step: step[:4],
    "Nothing": lambda _: None,
    "NeverEnds": lambda step: (*step[:3], False, {}),
    "Chdir": _after(_leave),
    "CloseFiles": _after(lambda: os.closerange(3, 64)),
    "Prints": _after(lambda: print("x" * 10_000)),
    "PrintsErrors": _after(lambda: print("x" * 10_000, file=sys.stderr)),
    "Child": _after(_begin_process),
    "RandomState": _after(_draw),
    "Threads": _after(lambda: torch.set_num_threads(3)),
    "Dtype": _after(lambda: torch.set_default_dtype(torch.float64)),
    "NoGradients": _after(lambda: torch.set_grad_enabled(False)),
    "Memory": _after(_reserve),
}
"""What happens to steps, by the name of the environment."""
RESETS: dict[str, Callable[[Any], Any]] = {
    "RaiseAtReset": lambda _: _raise(OSError("no such file: [/b]")),
    "HangAtReset": lambda _: _hang(),
    "NoneAtReset": lambda _: None,
    "LongAtReset": lambda _: np.zeros(3, np.float32),
}
INITS: dict[str, Callable[[], object]] = {
    "RaiseAtInit": lambda: _raise(ValueError("[/b]")),
    "ExitAtInit": lambda: sys.exit(0),
    "HangAtInit": _hang,
}

_TOY = f"{__name__}:Toy"
gymnasium.register("Polite-v0", entry_point=_TOY)
gymnasium.register("OneStep-v0", entry_point=_TOY, kwargs={"length": 1})
for _name, _step in STEPS.items():
    gymnasium.register(f"{_name}-v0", entry_point=_TOY, kwargs={"mischief": _step})
for _name, _reset in RESETS.items():
    gymnasium.register(f"{_name}-v0", entry_point=_TOY, kwargs={"at_reset": _reset})
for _name, _init in INITS.items():
    gymnasium.register(f"{_name}-v0", entry_point=_TOY, kwargs={"at_init": _init})
