"""Real learning curves of each environment, to take the shapes of simulated ones from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from a2ls._errors import BadInput
from a2ls._statistics import Array
from a2ls.simulation._trainings import PLAIN
from a2ls.studies import TrialRecord
from a2ls.training import Curve, CurvePoint

# A shape is one of so many real ones. More would be of agents that learnt much faster or slower.
_NEAREST = 5


@dataclass(frozen=True)
class CurveLibrary:
    """The curves of the trainings in one environment."""

    env: str
    steps: tuple[int, ...]
    """Where trainings were evaluated."""
    plain: float
    """The mean AULC of the plain agent: a score is an AULC divided by it."""
    scores: Array
    """Of all trainings, rising."""
    shapes: Array
    """Their curves divided by their AULC: (trainings, steps)."""

    @staticmethod
    def of(env: str, records: Sequence[TrialRecord]) -> CurveLibrary:
        """The library of an environment from trainings anywhere.

        Raises:
            BadInput: If they are not comparable, or there is none of the plain agent.
        """
        own = [record for record in records if record.env == env]
        grids = {tuple(point.step for point in record.curve.points) for record in own}
        if len(grids) > 1:
            lengths = ", ".join(sorted({f"{grid[-1]:,} steps with {len(grid)} evaluations" for grid in grids}))
            raise BadInput(f"the trainings in {env} are not of one length: {lengths}")
        baseline = [record.curve.aulc for record in own if record.loss is None]
        if not baseline:
            raise BadInput(f"there is no training of {PLAIN} in {env}, which scores are relative to")
        plain = float(np.mean(baseline))
        if plain <= 0:
            raise BadInput(f"the mean AULC of {PLAIN} in {env} is {plain:.4g}, but must be above 0")
        curves = np.array([[point.score for point in record.curve.points] for record in own])
        aulc = curves.mean(axis=1)
        order = np.argsort(aulc[aulc > 0], kind="stable")
        shapes = (curves[aulc > 0] / aulc[aulc > 0][:, None])[order]
        return CurveLibrary(env, grids.pop(), plain, aulc[aulc > 0][order] / plain, shapes)

    def curve(self, score: float, rng: np.random.Generator) -> Curve:
        """A curve with this score and the shape of one of those with the nearest scores."""
        count = min(_NEAREST, len(self.scores))
        nearest = np.argsort(np.abs(self.scores - score), kind="stable")[:count]
        values = self.shapes[rng.choice(nearest)] * (score * self.plain)
        return Curve(tuple(CurvePoint(step, (value,)) for step, value in zip(self.steps, values.tolist(), strict=True)))
