"""Environments that do what none should; each is registered under its name, as `Hostile/Hangs-v0`."""

# ruff: noqa: ARG002  (Gymnasium gives the signatures)

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import gymnasium
import numpy as np
import torch
from gymnasium import spaces


class Calm(gymnasium.Env):
    """Episodes of `length` steps, in which nothing happens before `strike` is called at step `at` of all."""

    observation_space = spaces.Box(-1.0, 1.0, (2,), np.float32)
    action_space = spaces.Box(-1.0, 1.0, (1,), np.float32)
    length, at = 20, 250

    def __init__(self):
        self._all = self._step = 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self._step = 0
        return np.zeros(2, np.float32), {}

    def step(self, action):
        self._all += 1
        self._step += 1
        if self._all == self.at:
            self.strike()
        seen = np.array([self._step / 100, float(action[0])], np.float32).clip(-1, 1)
        return seen, float(action[0]), self._step == self.length, False, {}

    def strike(self):
        """Do it."""


class Hangs(Calm):
    def strike(self):
        time.sleep(1000)


class Dies(Calm):
    def strike(self):
        os.abort()


class Starves(Calm):
    """As a training that needs more memory than there is: the system kills it, and counts that."""

    def strike(self):
        counts = Path(os.environ["A2LS_TEST_COUNTS"])
        kills = int(counts.read_text().split()[1])
        counts.write_text(f"oom_kill {kills + 1}\n")
        os.kill(os.getpid(), signal.SIGKILL)


class Exits(Calm):
    def strike(self):
        sys.exit(0)


class EndsOddly(Calm):
    def strike(self):
        raise GeneratorExit("odd")


class Interrupts(Calm):
    def strike(self):
        raise KeyboardInterrupt


class Distracted(Calm):
    """Ctrl-C comes while Python removes an object, where it drops every error."""

    class Last:
        def __del__(self):
            signal.raise_signal(signal.SIGINT)

    def strike(self):
        self.Last()


class SetsThreads(Calm):
    def strike(self):
        torch.set_num_threads(torch.get_num_threads() + 1)


class Breaks(Calm):
    def strike(self):
        raise ValueError("a fault\x1b[31m of [/b] mine")


class Moves(Calm):
    """Into another folder, as soon as it is made and again later."""

    def __init__(self):
        super().__init__()
        self.strike()

    def strike(self):
        os.chdir("/")


class Breeds(Calm):
    """A process that lives on, whose number it writes down."""

    def strike(self):
        child = subprocess.Popen(["sleep", "1000"])
        Path(os.environ["A2LS_TEST_PIDS"]).write_text(str(child.pid))


class Endless(Calm):
    length = 10**9


class Short(Calm):
    length = 1


for kind in (Calm, *Calm.__subclasses__()):
    gymnasium.register(f"Hostile/{kind.__name__}-v0", entry_point=f"{__name__}:{kind.__name__}")
