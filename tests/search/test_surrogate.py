"""The regression that chooses among children, and the pruner that ends clear losers."""

import functools
import math
from dataclasses import replace

import numpy as np
import optuna
import pytest
from hypothesis import given
from optuna.trial import TrialState

from a2ls import BadInput
from a2ls.engine import Evaluated, Finished
from a2ls.search import (
    COUNTS,
    A2LSSampler,
    Search,
    SearchConfig,
    SearchSpace,
    loss_counts,
    loss_masks,
    random_loss,
    rank_losses,
    suggest_loss,
)
from a2ls.search._population import CHOICES, GENERATIONS, LEFT_TO_CHANCE, Shares, next_population
from a2ls.search._surrogate import fit_surrogate
from a2ls.search._trials import known_values
from a2ls.space import Loss
from a2ls.training import Curve, CurvePoint
from helpers.engines import InstantEngine
from helpers.losses import valid_loss

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


def test_the_counts_are_what_one_sees_in_the_text_form():
    loss = Loss.parse("s1 a1 a2 -> s0 r1 s2 r2")
    (row,) = loss_counts(loss_masks([loss], 8))
    assert dict(zip(COUNTS, row, strict=True)) == {
        **{"s in source": 1, "a in source": 2, "r in source": 0, "s in target": 2, "a in target": 0, "r in target": 2},
        **{"first s in source": 1, "first a in source": 1, "first r in source": 3},
        **{"first s in target": 0, "first a in target": 3, "first r in target": 1},
        **{"in both": 0, "steps": 3},
    }


@given(valid_loss(max_horizon=8))
def test_losses_that_mean_the_same_are_predicted_to_be_the_same(loss):
    two_later = (False,) * 6
    later = replace(loss, horizon=loss.horizon + 2, source=two_later + loss.source, target=two_later + loss.target)
    first, second = known_predictor()([loss, later])
    assert first == second


@functools.cache
def known_predictor():
    known = losses(30)
    return fit_surrogate(known, [quality(each) for each in known])


def test_the_regression_learns_what_losses_are_worth_from_noisy_values():
    rng = np.random.default_rng(0)
    known, unknown = losses(150), losses(300, seed=1)
    predict = fit_surrogate(known, [quality(loss) + rng.normal(0, 2) for loss in known])
    truth = np.array([quality(loss) for loss in unknown])
    assert np.corrcoef(predict(unknown), truth)[0, 1] > 0.8


def test_nothing_is_predicted_from_few_losses():
    known = losses(9)
    assert fit_surrogate(known, [1.0] * 9) is None


def test_most_children_are_bred_by_what_is_predicted_and_some_are_left_to_chance():
    parents = dict(enumerate(losses(20)))
    asked = []

    def predict(children):
        assert len(children) == CHOICES
        asked.append(children)
        return np.array([quality(loss) for loss in children])

    chosen = next_population(np.random.default_rng(1), 200, parents, SPACE, Shares(), predict=predict)
    chance = next_population(np.random.default_rng(1), 200, parents, SPACE, Shares())
    bred = len(asked) / GENERATIONS
    assert bred / 200 == pytest.approx(1 - LEFT_TO_CHANCE, abs=0.08)
    mean, spread = (f([quality(child.loss) for child in chance]) for f in (np.mean, np.std))
    best_of_ten = np.mean([max(map(quality, children)) for children in asked[::GENERATIONS]])
    assert best_of_ten > mean + spread
    assert np.mean([quality(child.loss) for child in chosen]) > best_of_ten + 0.5
    origins = [sorted(child.origin for child in population) for population in (chosen, chance)]
    assert origins[0] == origins[1]  # The shares stay exact.
    assert all(child.loss in SPACE for child in chosen)
    assert all(set(child.parents) <= set(parents) for child in chosen)


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


@pytest.mark.parametrize("others", [(), ("MountainCarContinuous-v0",)])
def test_what_pruned_trainings_would_have_come_to_counts_as_if_they_had_gone_on(others, tiny_search):
    config: SearchConfig = replace(
        tiny_search, population_size=20, stages=3, pruner="rung", selection="estimate", other_environments=others
    )
    search = Search(config, optuna.storages.InMemoryStorage())
    search.run(FivePoints(2))
    candidates, baselines = search.candidates(), search.baselines()
    finished = {env: [c for c in candidates if c.env == env and c.state == "finished"] for env in config.environments}
    # Whole trainings of `FivePoints` come to what the first three points have, divided by 0.8.
    whole = {
        c.number: np.clip(
            c.curve.points[2].score / 0.8,
            min(other.curve.aulc for other in finished[c.env]),
            max(other.curve.aulc for other in finished[c.env]),
        )
        for c in candidates
        if c.state == "pruned"
    }
    assert len(whole) >= 5
    gone_on = [
        replace(c, state="finished", curve=Curve((CurvePoint(c.curve.points[-1].step, (whole[c.number],)),)))
        if c.number in whole
        else c
        for c in candidates
    ]
    ranking, expected = (rank_losses(config, each, (), baselines) for each in (candidates, gone_on))
    assert whole.keys().isdisjoint(ranking.by_candidate)
    assert len(ranking.by_candidate) == len(candidates) - len(whole)
    for number, ranked in ranking.by_candidate.items():
        assert ranked.value == pytest.approx(expected.by_candidate[number].value)


def test_a_surrogate_takes_pruned_trials_for_what_they_would_have_come_to():
    def studied(lowest=None):
        """Two stages. Behind are values below 0: they are pruned after the half, or are the lowest value of others."""
        study = optuna.create_study(direction="maximize", sampler=A2LSSampler(40, seed=0, surrogate="ridge"))

        def objective(trial):
            value = quality(suggest_loss(trial))
            trial.report(value / 2, 1)
            if value >= 0:
                return value
            if lowest is None:
                raise optuna.TrialPruned
            return lowest

        study.optimize(objective, n_trials=80)
        return study.trials

    trials = studied()
    first = [trial for trial in trials[:40] if trial.state == TrialState.COMPLETE]
    lowest = min(trial.value for trial in first)
    assert 10 <= len(first) < 40
    values = known_values(trials[:40])
    assert values == pytest.approx({trial.number: max(quality(suggest_loss(trial)), lowest) for trial in trials[:40]})
    assert [suggest_loss(trial) for trial in trials] == [suggest_loss(trial) for trial in studied(lowest)]


@pytest.mark.filterwarnings("error")
def test_values_that_are_not_finite_teach_a_surrogate_nothing():
    study = optuna.create_study(direction="maximize", sampler=A2LSSampler(20, seed=0, surrogate="ridge"))

    def objective(trial):
        value = float(quality(suggest_loss(trial)))
        trial.report(math.nan if trial.number % 5 == 0 else value / 2, 1)
        if trial.number % 3 == 0:
            raise optuna.TrialPruned
        return math.inf if trial.number % 7 == 0 else value

    study.optimize(objective, n_trials=40)
    numbers = range(40)
    left_out = {n for n in numbers if (n % 5 == 0 if n % 3 == 0 else n % 7 == 0)}
    assert known_values(study.trials).keys() == set(numbers) - left_out


@pytest.mark.parametrize("pruner", ["rung:at=1.5", "rung:keep=0", "rung:nonsense=1"])
def test_a_rung_that_makes_no_sense_is_refused(pruner, tiny_search):
    with pytest.raises(BadInput):
        replace(tiny_search, pruner=pruner)
