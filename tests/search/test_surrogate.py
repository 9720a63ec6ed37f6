"""The regression that chooses among children, and the pruner that ends clear losers."""

import sys
from dataclasses import replace

import numpy as np
import optuna
import pytest

from a2ls import BadInput
from a2ls.engine import Evaluated, Finished
from a2ls.search import A2LSSampler, Search, SearchConfig, SearchSpace, random_loss, suggest_loss
from a2ls.search._features import loss_features
from a2ls.search._population import CHOICES, LEFT_TO_CHANCE, Shares, next_population
from a2ls.search._surrogate import fit_surrogate
from a2ls.space import Loss
from a2ls.training import CurvePoint
from helpers.engines import InstantEngine

SPACE = SearchSpace()


def losses(count, seed=0):
    rng, found = np.random.default_rng(seed), []
    while len(found) < count:
        loss = random_loss(rng, SPACE)
        if loss in SPACE:
            found.append(loss)
    return found


def quality(loss):
    """What counts and masks express, with weights that nobody told the regression."""
    return sum(loss.target[::3]) - 2 * sum(loss.source[::3]) + 3 * loss.target[5]


def test_the_features_are_the_counts_and_the_masks():
    (row,) = loss_features([Loss.parse("s1 a1 a2 -> s0 r1 s2 r2")], 3)
    source = [1, 1, 2, 1, 0, 4]  # States, actions and rewards, each with its first step; no reward: 4.
    target = [2, 0, 0, 4, 2, 1]
    overlap, last = 0, 2
    bits = "000110010000" + "100001101000"
    assert row.tolist() == [*source, *target, overlap, last, *map(int, bits)]


def test_losses_that_mean_the_same_have_the_same_features():
    loss = Loss.parse("s0 a0 -> s1", 10)
    longer = Loss.parse("s0 a0 -> s1 @4", 10)
    assert loss_features([loss], 10).tolist() == loss_features([longer], 10).tolist()


def test_the_regression_learns_what_losses_are_worth_from_noisy_values():
    rng = np.random.default_rng(0)
    known, unknown = losses(150), losses(300, seed=1)
    predict = fit_surrogate(known, [quality(loss) + rng.normal(0, 2) for loss in known], SPACE.max_horizon)
    truth = np.array([quality(loss) for loss in unknown])
    assert np.corrcoef(predict(unknown), truth)[0, 1] > 0.8


def test_nothing_is_predicted_from_few_losses():
    known = losses(9)
    assert fit_surrogate(known, [1.0] * 9, SPACE.max_horizon) is None


def test_most_children_are_the_best_of_ten_and_some_are_left_to_chance():
    parents = dict(enumerate(losses(20)))
    rng = np.random.default_rng(1)
    ranks = []

    def predict(children):
        values = np.array([quality(loss) for loss in children])
        assert len(children) == CHOICES
        ranks.append(values.argmax())
        return values

    chosen = next_population(rng, 400, parents, SPACE, Shares(), predict=predict)
    chance = next_population(np.random.default_rng(1), 400, parents, SPACE, Shares())
    assert len(ranks) / 400 == pytest.approx(1 - LEFT_TO_CHANCE, abs=0.06)
    mean, spread = (f([quality(child.loss) for child in chance]) for f in (np.mean, np.std))
    assert np.mean([quality(child.loss) for child in chosen]) > mean + 0.7 * spread
    origins = [sorted(child.origin for child in population) for population in (chosen, chance)]
    assert origins[0] == origins[1]  # The shares stay exact.


@pytest.mark.parametrize("mode", ["generational", "steady"])
@pytest.mark.parametrize("direction", ["maximize", "minimize"])
def test_a_sampler_with_a_surrogate_proposes_better_losses_and_always_the_same(mode, direction):
    sign = 1 if direction == "maximize" else -1

    def proposed(surrogate):
        sampler = A2LSSampler(20, mode=mode, seed=0, surrogate=surrogate)
        study = optuna.create_study(direction=direction, sampler=sampler)
        study.optimize(lambda trial: sign * quality(suggest_loss(trial)), n_trials=60)
        return [suggest_loss(trial) for trial in study.trials]

    chosen, chance = proposed("ridge"), proposed("none")
    assert chosen[:20] == chance[:20]
    assert chosen == proposed("ridge")
    assert np.mean([quality(loss) for loss in chosen[20:]]) > np.mean([quality(loss) for loss in chance[20:]]) + 1


def test_a_missing_library_is_named(monkeypatch, tiny_search):
    monkeypatch.setitem(sys.modules, "sklearn.linear_model", None)
    search = Search(replace(tiny_search, surrogate="ridge"), optuna.storages.InMemoryStorage())
    engine = InstantEngine()
    with pytest.raises(BadInput, match=r"needs scikit-learn.*a2ls\[surrogate\]"):
        search.run(engine)
    assert engine.jobs == []


class FivePoints(InstantEngine):
    """Curves of five points: the score, and the share of it that the first three have."""

    def _outcome(self, job, worker):
        score, steps = self._score(job), job.training.config.steps
        points = [CurvePoint(i * steps // 5, (score * (0.8 if i <= 3 else 1.3),)) for i in range(1, 6)]
        return [*(Evaluated(job, worker, point) for point in points), Finished(job, worker, 2.5)]


@pytest.mark.parametrize("workers", [1, 4])
def test_the_rung_ends_those_behind_the_better_half_of_earlier_stages(workers, tiny_search):
    config: SearchConfig = replace(tiny_search, population_size=10, stages=3, pruner="rung")
    search = Search(config, optuna.storages.InMemoryStorage())
    search.run(FivePoints(workers))
    candidates = search.candidates()
    assert {c.state for c in candidates if c.stage == 1} == {"finished"}
    for candidate in candidates[10:]:
        earlier = [c.curve.points[2].score for c in candidates if c.stage < candidate.stage]
        behind = sum(score > candidate.curve.points[2].score for score in earlier)
        assert candidate.state == ("pruned" if behind >= len(earlier) / 2 else "finished")
        assert len(candidate.curve.points) == (3 if candidate.state == "pruned" else 5)
    assert {c.state for c in candidates[10:]} == {"finished", "pruned"}


@pytest.mark.parametrize("pruner", ["rung:at=1.5", "rung:keep=0", "rung:nonsense=1"])
def test_a_rung_that_makes_no_sense_is_refused(pruner, tiny_search):
    with pytest.raises(BadInput):
        replace(tiny_search, pruner=pruner)
