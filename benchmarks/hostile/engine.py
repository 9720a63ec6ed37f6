"""Trainings that take no time, of searches and benchmarks whose storage is real."""

from __future__ import annotations

import zlib

import a2ls.studies._folder
from a2ls.engine import Job
from a2ls.simulation import SimulatedEngine
from a2ls.training import Curve, CurvePoint


def made_up_curve(job: Job) -> Curve:
    """A curve that depends on all that a training depends on, so that no setting changes without a trace."""
    training = job.training
    level = 100 + zlib.crc32(f"{training.loss} {training.config} {training.seed}".encode()) % 1000 / 10
    count = training.config.evaluations
    points = []
    for number in range(1, count + 1):
        score = level * (1 + number / count)
        points.append(CurvePoint(training.config.steps * number // count, (score - 1, score + 1)))
    return Curve(tuple(points))


class InstantEngine(SimulatedEngine):
    """Takes the arguments of `LocalEngine`, in whose place it may stand."""

    def __init__(self, workers: int = 1, *_: object, **__: object) -> None:
        super().__init__(made_up_curve, workers)

    def __enter__(self) -> InstantEngine:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def train_in_no_time() -> None:
    """Let all commands of this process train with it."""
    vars(a2ls.studies._folder)["LocalEngine"] = InstantEngine
