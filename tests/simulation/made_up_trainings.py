"""Trainings whose truth is known, for tests of the model that is fitted to them."""

import numpy as np

from a2ls.search import SearchSpace, random_loss
from a2ls.studies import TrialRecord
from a2ls.training import Curve, CurvePoint

STEPS = (8_000, 16_000, 24_000, 32_000, 40_000)
ENVS = ("cheetah-run", "walker-walk")
PLAIN = {"cheetah-run": 70.0, "walker-walk": 150.0}


def random_losses(count, seed=0):
    """Valid ones, each with another canonical form."""
    rng, space = np.random.default_rng(seed), SearchSpace()
    found = {}
    while len(found) < count:
        loss = random_loss(rng, space)
        if loss in space:
            found.setdefault(loss.canonical(), loss)
    return list(found.values())


def record(loss, env, seed, aulc, rng):
    """A training with this AULC: a curve that rises, with some noise of its points."""
    shape = np.arange(1, 6) * rng.lognormal(0, 0.2, 5)
    scores = (aulc * shape / shape.mean()).tolist()
    curve = Curve(tuple(CurvePoint(step, (score,)) for step, score in zip(STEPS, scores, strict=True)))
    label = "sac" if loss is None else str(loss)
    return TrialRecord(0, label, loss, env, seed, "finished", curve, 1.0, ())


def trainings(log_quality, losses, *, noise=0.2, seeds=2, envs=ENVS, plain_seeds=6, seed=0):
    """Trainings of losses whose log score is `log_quality(loss, env)`, and of the plain agent."""
    rng = np.random.default_rng(seed)
    records = []
    for env in envs:
        for loss, own_seeds in ((None, plain_seeds), *((each, seeds) for each in losses)):
            level = 0.0 if loss is None else log_quality(loss, env)
            for number in range(own_seeds):
                aulc = PLAIN[env] * np.exp(level + noise * rng.standard_normal())
                records.append(record(loss, env, number, aulc, rng))
    return records
