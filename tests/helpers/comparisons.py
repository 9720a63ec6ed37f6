"""Benchmarks of a few trainings with scores that a test chooses, and comparisons of them and of groups of losses."""

from dataclasses import replace
from pathlib import Path

import numpy as np

from a2ls.analysis import Dataset, compare
from a2ls.studies import TrialRecord, baseline, method
from a2ls.training import Curve, CurvePoint, preset, to_mapping

RESULTS = Path(__file__).parents[2] / "docs/results/cheetah-run-laptop"
LONG = "a0 a1 a2 s3 a3 r3 a4 r4 r6 -> s0 r0 s1 a1 r1 s2 r3 s4 r4 s5 s6 r6"
FEW = 200
# The patterns of the paper.
FORWARD, INVERSE, REWARD = "forward-dynamics", "inverse-dynamics", "reward-prediction"
ACTION, STATE = "action-inference", "state-reconstruction"


def named(name):
    return baseline(name) if name in ("sac", "curl", "sac-identity", "rad") else method(name)


def curve(score, steps=(4_000, 8_000)):
    """The AULC is the score, and the last score is ten more."""
    return Curve(tuple(CurvePoint(step, (score + gain,)) for step, gain in zip(steps, (-10.0, 10.0), strict=True)))


def benchmark(scores, name="mine", *, steps=None, state="finished", **changes):
    """A benchmark with these AULCs: method -> environment -> seed -> score, or a list for the seeds 0, 1, ..."""
    records, training = [], {}
    for label, by_env in scores.items():
        who = named(label)
        for env, own in by_env.items():
            training.setdefault(env, to_mapping(replace(preset("fast", env), **changes)))
            for seed, score in own.items() if isinstance(own, dict) else enumerate(own):
                points = curve(score) if steps is None else curve(score, steps[env])
                records.append(TrialRecord(len(records), who.name, who.loss, env, seed, state, points, 1.0, ()))
    return Dataset(
        name, Path(name), "benchmark", tuple(records), {"kind": "benchmark", "name": name, "training": training}
    )


def random_scores(names, environments, seeds, seed=0):
    rng = np.random.default_rng(seed)
    return {name: {env: rng.uniform(100, 900, seeds).tolist() for env in environments} for name in names}


def by_label(comparison):
    return {result.label: result for result in comparison.results}


def by_what(comparisons):
    return {each.what: each for each in comparisons}


def quick(*datasets, **options):
    return compare(datasets, **{"resamples": FEW, **options})
