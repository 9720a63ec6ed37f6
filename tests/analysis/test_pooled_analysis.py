"""What good losses have in common: every number in another way, and what the numbers find."""

import json
import math

import numpy as np
import pandas
import pytest
import scipy.stats
import statsmodels.api

from a2ls.analysis import analyse_pooled, pooled_mapping, pooled_notes, pooled_tables, read_patterns
from a2ls.analysis._recorded import FILE
from a2ls.analysis.pooled._analysis import FEW_LOSSES, FEW_MEMBERS, MADE_UP, analyse_losses
from a2ls.analysis.pooled._losses import LossScore, PooledLosses, Task
from a2ls.analysis.pooled._published_parts import published_part
from a2ls.search import SearchSpace
from a2ls.search._population import InitialShares, initial_population
from a2ls.space import PATTERNS, Loss, contains
from helpers.comparisons import ACTION, FORWARD, INVERSE, REWARD, STATE

TASKS = ("cheetah-run", "reacher-easy", "walker-walk")
LEVELS = {"cheetah-run": 2.0, "reacher-easy": 0.5, "walker-walk": 1.0}


@pytest.fixture(scope="module")
def losses():
    """Those of a first population, so that all patterns are there."""
    children = initial_population(np.random.default_rng(0), 240, SearchSpace(), InitialShares())
    return list(dict.fromkeys(child.loss.canonical() for child in children))


def pooled(losses, score, tasks=TASKS):
    """Every loss in some of the tasks, with what `score` says."""
    units = [
        LossScore(loss, task, score(loss, task), 1)
        for place, task in enumerate(tasks)
        for number, loss in enumerate(losses)
        if number % len(tasks) == place or number % 2
    ]
    return PooledLosses(tuple(units), tuple(Task(task, 1.0, 1) for task in tasks), False, True, {})


def by_part(analysis):
    return {part.comparison.what: part for part in analysis.parts}


def test_every_number_of_the_data_set_is_that_of_another_way_to_compute_it():
    rows = pandas.read_parquet(str(FILE))
    rows = rows[
        (rows.state == "finished") & (rows.preset == "fast") & (rows.own_settings == "") & rows.repeat_of.isna()
    ]
    plain = rows[rows.label == "sac"].groupby("env").score.mean()
    rows = rows[(rows.kind == "candidate") & (rows.operator == "mse") & ~rows.negatives.astype(bool) & (rows.predictor)]
    units = rows.groupby(["env", "canonical"]).score.mean().reset_index()
    units["score"] /= units.env.map(plain)
    levels = units.groupby("env").score.mean()
    parsed = units.canonical.map(Loss.parse)
    for name, pattern in PATTERNS.items():
        units[name] = [float(contains(loss, pattern)) for loss in parsed]
    for place, name in enumerate(("states", "actions", "rewards")):
        surplus = [sum(loss.target[place::3]) - sum(loss.source[place::3]) for loss in parsed]
        units[name] = np.sign(surplus) / 2
    names = [*PATTERNS, "states", "actions", "rewards"]
    units["horizon"] = [float(loss.horizon) for loss in parsed]
    units["centred"] = units.score - units.env.map(levels) + levels.mean()
    each = units.groupby("canonical")[[*names, "centred"]].mean()

    analysis = analyse_pooled()
    design = pandas.concat([units[[*names, "horizon"]], pandas.get_dummies(units.env, dtype=float)], axis=1)
    theirs = statsmodels.api.OLS(units.score, design).fit().params
    kept = [units.canonical != loss for loss in each.index]
    without = np.array([statsmodels.api.OLS(units.score[own], design[own]).fit().params for own in kept])
    errors = pandas.Series(
        np.sqrt((1 - 1 / len(each)) * ((without - theirs.to_numpy()) ** 2).sum(axis=0)), index=design.columns
    )
    student = scipy.stats.t(len(each) - 1)
    assert [part.comparison.what for part in analysis.parts] == names
    for name, part in by_part(analysis).items():
        having, lacking = (each.centred[each[name] > 0], each.centred[each[name] <= (0 if name in PATTERNS else -0.5)])
        assert (part.comparison.n_with, part.comparison.n_without) == (len(having), len(lacking))
        assert part.comparison.mean_with == pytest.approx(having.mean(), rel=1e-9)
        assert part.comparison.mean_without == pytest.approx(lacking.mean(), rel=1e-9)
        tested = scipy.stats.ttest_ind(having, lacking, equal_var=False).pvalue
        assert part.comparison.p == pytest.approx(tested, rel=1e-7)
        for env in levels.index:
            own = units[units.env == env]
            difference = (
                own.score[own[name] > 0].mean() - own.score[own[name] < (0.5 if name in PATTERNS else 0)].mean()
            )
            assert part.by_task[env].difference == pytest.approx(difference, rel=1e-8)
        check_effect(part.effect, theirs[name], errors[name], student)
    check_effect(analysis.horizon, theirs["horizon"], errors["horizon"], student)
    ps = sorted(part.effect.p for part in analysis.parts)
    assert min(part.effect.holm for part in analysis.parts) == pytest.approx(8 * ps[0])


def check_effect(effect, value, error, student):
    assert effect.value == pytest.approx(value, rel=1e-8)
    assert effect.interval == pytest.approx(tuple(value + error * np.array(student.interval(0.95))), rel=1e-8)
    assert effect.p == pytest.approx(2 * student.sf(abs(value) / error), rel=1e-7)


def test_what_was_put_into_the_scores_is_found_and_the_tasks_do_not_decide(losses):
    rng = np.random.default_rng(1)

    def score(loss, task):
        planted = 0.4 * contains(loss, PATTERNS[FORWARD]) - 0.3 * contains(loss, PATTERNS[ACTION])
        states = sum(loss.target[::3]) - sum(loss.source[::3])
        return LEVELS[task] + planted + 0.2 * np.sign(states) / 2 - 0.03 * loss.horizon + rng.normal(0, 0.1)

    analysis = analyse_losses(pooled(losses, score))
    parts = by_part(analysis)
    for name, truth in (
        (FORWARD, 0.4),
        (ACTION, -0.3),
        ("states", 0.2),
        (INVERSE, 0.0),
        (STATE, 0.0),
        ("rewards", 0.0),
    ):
        low, high = parts[name].effect.interval
        assert low < truth < high
        assert high - low < 0.2
        assert parts[name].effect.stars == ("**" if truth else "")
    assert analysis.horizon.value == pytest.approx(-0.03, abs=0.01)
    assert (parts[FORWARD].effect_agrees, parts["states"].effect_agrees) == ("yes", "yes")
    assert (parts[INVERSE].effect_agrees, parts[ACTION].effect_agrees) == ("not shown", "yes")
    assert parts[FORWARD].comparison.difference == pytest.approx(0.4, abs=0.15)
    turned = by_part(analyse_losses(pooled(losses, lambda loss, task: -score(loss, task))))
    assert (turned[FORWARD].effect_agrees, turned[FORWARD].agrees) == ("no", "no")


def test_scores_that_have_nothing_to_do_with_the_parts_are_not_significant_more_often_than_they_may_be(losses):
    """Losses differ, and tasks do, but not by their parts: what differs goes with a loss into all of its tasks."""
    rng = np.random.default_rng(2)
    repeats, ps, tested, families, tested_families = 200, [], [], 0, 0
    for _ in range(repeats):
        luck = dict(zip(losses, rng.normal(0, 0.3, len(losses)), strict=True))
        parts = analyse_losses(
            pooled(losses, lambda loss, task, luck=luck: LEVELS[task] + luck[loss] + rng.normal(0, 0.1))
        ).parts
        effects = [part.effect for part in parts if part.effect is not None]
        ps += [effect.p for effect in effects]
        tested += [part.comparison.p for part in parts if part.comparison.p is not None]
        families += min(effect.holm for effect in effects) < 0.05
        tested_families += min(part.comparison.holm for part in parts if part.comparison.holm is not None) < 0.05
    # Those of one repeat go together, so there are fewer draws than numbers.
    give_or_take = 3 * math.sqrt(0.0475 / (repeats * 4))
    for found in (ps, tested):
        assert len(found) >= 7 * repeats
        assert abs(np.mean(np.array(found) < 0.05) - 0.05) < give_or_take
    for found in (families, tested_families):
        assert found / repeats < 0.05 + 3 * math.sqrt(0.0475 / repeats)


def test_a_task_with_high_scores_and_losses_of_its_own_does_not_make_their_parts_look_good(losses):
    """All with the pattern are in a task in which everything scores more, with others that score as much."""
    high = [loss for loss in losses if contains(loss, PATTERNS[FORWARD])]
    others = [loss for loss in losses if not contains(loss, PATTERNS[FORWARD])]
    rng = np.random.default_rng(3)
    units = [LossScore(loss, "high", 5 + rng.normal(0, 0.1), 1) for loss in [*high, *others[:60]]]
    units += [LossScore(loss, "low", 1 + rng.normal(0, 0.1), 1) for loss in others[60:]]
    tasks = (Task("high", 1.0, 1), Task("low", 1.0, 1))
    parts = by_part(analyse_losses(PooledLosses(tuple(units), tasks, False, True, {})))
    assert abs(parts[FORWARD].comparison.difference) < 0.1
    assert parts[FORWARD].comparison.mean_with == pytest.approx(3, abs=0.1)
    assert abs(parts[FORWARD].effect.value) < 0.1
    assert parts[FORWARD].by_task["low"].difference is None


def test_what_nothing_can_tell_is_left_out_and_said(losses):
    rng = np.random.default_rng(4)
    without = [loss for loss in losses if not contains(loss, PATTERNS[REWARD])]
    patterns = read_patterns(["s0 a0 -> s1 s2"])
    # Those that have the one have the other.
    kept = [loss for loss in without if contains(loss, patterns["s0 a0 -> s1 s2"]) == contains(loss, PATTERNS[FORWARD])]
    analysis = analyse_losses(pooled(kept, lambda *_: rng.normal(1, 0.1)), patterns)
    parts = by_part(analysis)
    assert (parts[REWARD].comparison.n_with, parts[REWARD].effect) == (0, None)
    assert parts[REWARD].why_no_effect == FEW_MEMBERS
    for name in (FORWARD, "s0 a0 -> s1 s2"):
        assert (parts[name].effect, parts[name].why_no_effect) == (None, MADE_UP)
        assert parts[name].comparison.p is not None
    assert parts[STATE].effect is not None
    assert parts["s0 a0 -> s1 s2"].published is parts["s0 a0 -> s1 s2"].effect_agrees is None
    notes = " ".join(pooled_notes(analysis))
    assert f"reward-prediction ({FEW_MEMBERS})" in notes
    assert f"forward-dynamics, s0 a0 -> s1 s2 ({MADE_UP})" in notes
    assert "nan" not in str(pooled_tables(analysis)).lower()
    json.dumps(pooled_mapping(analysis), allow_nan=False)


def test_few_losses_have_no_effects_but_a_table():
    few = [Loss.parse(text) for text in ("s0 a0 -> s1", "s0 -> s1", "s0 -> s2", "s0 -> s3", "s0 s1 -> a0")]
    analysis = analyse_losses(pooled(few, lambda loss, _: float(loss.horizon), TASKS[:1]))
    assert {part.why_no_effect for part in analysis.parts} == {FEW_MEMBERS}
    assert all(part.agrees == "not shown" for part in analysis.parts)
    mixed = [Loss.parse(f"s0 a0 -> s{i}") for i in range(1, 4)]
    mixed += [Loss.parse(f"s0 s{i} s{i + 1} -> a0") for i in range(1, 4)]
    more = analyse_losses(pooled(mixed, lambda loss, _: float(loss.horizon), TASKS[:1]))
    assert {part.why_no_effect for part in more.parts} <= {FEW_LOSSES, FEW_MEMBERS}
    assert more.horizon is None or math.isfinite(more.horizon.value)


@pytest.mark.parametrize(
    ("part", "vectors", "images"),
    [
        # Read off table 4 of the paper by eye.
        (FORWARD, ("+", 2), ("+", 1)),
        (INVERSE, ("-", 2), ("-", 1)),
        (REWARD, ("-", 3), ("mixed", 2)),
        (ACTION, ("-", 3), ("mixed", 2)),
        (STATE, ("-", 3), ("+", 2)),
        ("states", ("+", 3), ("+", 2)),
        ("actions", ("-", 2), ("+", 1)),
        ("rewards", ("-", 2), ("mixed", 2)),
    ],
)
def test_directions_are_those_of_the_paper(part, vectors, images):
    assert published_part(part, pixels=False) == (*vectors, 3)
    assert published_part(part, pixels=True) == (*images, 3)
    assert published_part(part, pixels=True).agreement(1.0, 0.01) == {"+": "yes", "-": "no"}.get(images[0])
    assert published_part(part, pixels=False).agreement(1.0, 0.05) == "not shown"
    assert published_part("s0 -> s2", pixels=False) is None
