"""Searches that never took place: bred by the real evolution, with curves from a formula, or written down."""

import zlib
from dataclasses import replace
from pathlib import Path

import numpy as np

from a2ls.analysis import Dataset
from a2ls.search import SearchConfig, SearchSpace, search_preset
from a2ls.search._population import InitialShares, Shares, initial_population, next_population
from a2ls.space import Loss, contains, named_loss
from a2ls.studies import Candidate, TrialRecord
from a2ls.training import Curve, CurvePoint, preset, to_mapping

STEPS = (8_000, 16_000, 24_000, 32_000, 40_000)
FORWARD, INFERENCE = named_loss("forward-dynamics"), named_loss("action-inference")


def curve_of(level, rng, episodes=3):
    """Five evaluations that rise to nearly twice the level, which is about their mean."""
    means = level * 2 * np.arange(1, 6) / 6 + rng.normal(0, 8, 5)
    returns = np.maximum(0, means[:, None] + rng.normal(0, 5, (5, episodes)))
    return Curve(tuple(CurvePoint(step, tuple(own)) for step, own in zip(STEPS, returns.tolist(), strict=True)))


def level_of(loss):
    """Forward dynamics helps, action inference harms, long horizons harm a little: what an analysis should find."""
    return 90 - 2 * loss.horizon + 40 * contains(loss, FORWARD) - 30 * contains(loss, INFERENCE)


def made_up_search(population_size=20, stages=4, *, seed=0, name="made-up", ended=None, operators=("mse",)):
    """The dataset of a search. The first `ended` candidates are finished (all, if None), the others in training."""
    config = SearchConfig(
        preset("fast", "cheetah-run"), population_size=population_size, stages=stages, seed=seed, operators=operators
    )
    space: SearchSpace = config.space()
    rng = np.random.default_rng(seed)
    records = []
    survivors = []
    for stage in range(1, stages + 1):
        if stage == 1:
            children = initial_population(rng, population_size, space, InitialShares())
        else:
            parents = {each.number: each.loss for each in survivors}
            children = next_population(rng, population_size, parents, space, Shares())
        members = [
            _candidate(number, stage, child, ended=ended, rng=rng)
            for number, child in enumerate(children, start=len(records))
        ]
        records += members
        survivors = sorted(members, key=lambda each: -(each.score or 0))[: max(1, population_size // 4)]
    for label, level in (("sac", 70.0), ("curl", 65.0)):
        for own in range(3):
            loss = named_loss("curl") if label == "curl" else None
            curve = curve_of(level, rng)
            records.append(TrialRecord(own, label, loss, "cheetah-run", own, "finished", curve, 90.0, ()))
    settings = {"kind": "search", "name": name, **to_mapping(config), "budget": {}}
    return Dataset(name, Path(name), "search", tuple(records), settings)


def _candidate(number, stage, child, *, ended, rng):
    curve = curve_of(level_of(child.loss), rng)
    finished = ended is None or number < ended
    return Candidate(
        number=number,
        label=str(child.loss),
        loss=child.loss,
        env="cheetah-run",
        seed=0,
        state="finished" if finished else "running",
        curve=curve if finished else Curve(curve.points[:2]),
        seconds=100.0 if finished else None,
        reasons=(),
        stage=stage,
        origin=child.origin,
        parents=child.parents,
        repeat_of=None,
    )


# A few candidates, so that a test can say what should come out.


def curve(scores):
    """A point every thousand steps, with two episodes that average to the score."""
    return Curve(tuple(CurvePoint(1000 * (i + 1), (score - 1, score + 1)) for i, score in enumerate(scores)))


def some_loss(number):
    """A loss for each number: that of 0 is `s0 a0 -> s1`, and no two are the same."""
    elements = [f"{kind}{step}" for step in range(1, 9) for kind in "sr"]
    return f"s0 a0 -> {' '.join(each for i, each in enumerate(elements) if (number + 1) >> i & 1)}"


def candidate(number, scores=(1.0, 2.0, 3.0), *, loss=None, stage=1, state="finished", **others):
    loss = some_loss(number) if loss is None else loss
    parsed = Loss.parse(loss) if isinstance(loss, str) else loss
    fields = {"origin": "random", "parents": (), "repeat_of": None, **others}
    return Candidate(number, str(parsed), parsed, "pendulum", 0, state, curve(scores), 1.0, (), stage=stage, **fields)


def baseline(name, seed, scores, state="finished"):
    return TrialRecord(seed, name, None, "pendulum", seed, state, curve(scores), 1.0, ())


def dataset(*records, name="by-hand", **settings):
    return Dataset(name, Path(name), "search", records, {"kind": "search", "operators": ["mse"], **settings})


# A race on three environments, whose scores are of quite different sizes.

RACED = replace(
    search_preset("laptop", "walker-walk"),
    other_environments=("cheetah-run", "Pendulum-v1"),
    population_size=6,
    stages=2,
    rungs=(1, 3, 6),
    promoted=1 / 3,
    selection="estimate",
    baselines=("sac",),
    baseline_seeds=2,
)
LEVELS = {"walker-walk": 400.0, "cheetah-run": 60.0, "Pendulum-v1": -900.0}


def raced_score(job):
    """The level of the environment, a quarter more or less by the loss and as much by luck."""
    loss, training = job.training.loss, job.training
    env = training.config.environment.env
    quality = 0.0 if loss is None else zlib.crc32(str(loss.canonical()).encode()) % 1000 / 2000 - 0.25
    luck = zlib.crc32(f"{loss}; {env} {training.seed}".encode()) % 1000 / 2000 - 0.25
    return LEVELS[env] + abs(LEVELS[env]) * (quality + luck)
