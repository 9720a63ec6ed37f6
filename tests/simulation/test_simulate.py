import json
import math
from dataclasses import replace

import numpy as np
import pytest
from made_up_trainings import ENVS, random_losses, trainings
from optuna.samplers import RandomSampler

from a2ls._errors import BadInput
from a2ls.search import SearchConfig, search_preset
from a2ls.simulation import (
    STRATEGIES,
    Simulation,
    Strategy,
    StrategyResult,
    WorldModel,
    result_cells,
    sampler_strategy,
    simulate,
    simulation_figure,
    strategy,
)
from a2ls.simulation._repeat import simulate_search
from a2ls.space import Loss
from a2ls.training import preset

MODEL = WorldModel.fit(trainings(lambda loss, _: 0.05 * len(loss.target_elements), random_losses(40), seeds=2))
SMALL = SearchConfig(preset("fast"), population_size=8, stages=3, baselines=("sac",), baseline_seeds=2)
RANDOM = replace(SMALL, sampler="random")
PAIR = (Strategy("evolution", SMALL), Strategy("random", RANDOM))


def same(first, second):
    return np.array_equal(first.qualities, second.qualities) and first.chosen == second.chosen


def test_the_same_seed_gives_the_same_result_in_one_process_and_in_two():
    strategies = (*PAIR, Strategy("own", RANDOM, sampler=RandomSampler))
    progress = []
    one = simulate(MODEL, strategies, repeats=3, seed=5, on_progress=lambda *numbers: progress.append(numbers))
    two = simulate(MODEL, strategies, repeats=3, seed=5, workers=2)
    assert all(same(*pair) for pair in zip(one.strategies, two.strategies, strict=True))
    other = simulate(MODEL, strategies, repeats=3, seed=6)
    assert not same(one.strategies[0], other.strategies[0])
    assert progress[0] == (0, 3 * 3 * 26)
    assert progress[-1] == (3 * 3 * 26, 3 * 3 * 26)


def test_all_strategies_search_the_same_worlds():
    """So a strategy that is there twice is the same twice, whatever stands beside it, and worlds differ."""
    twice = simulate(MODEL, [PAIR[0], Strategy("again", SMALL), PAIR[1]], repeats=3)
    alone = simulate(MODEL, PAIR[:1], repeats=3)
    assert same(twice.strategies[0], twice.strategies[1])
    assert same(twice.strategies[0], alone.strategies[0])
    assert len(set(twice.strategies[0].qualities[:, -1])) == 3


def test_what_is_recorded_is_the_true_quality_of_the_best_candidate_so_far():
    world = MODEL.sample(np.random.default_rng(0))
    grid = [40_000 * count for count in (1, 2, 3, 10, 26, 40)]
    outcome = simulate_search(PAIR[1], world, ("cheetah-run",), 3, grid)
    # Two trainings of the baseline come first: with them alone the choice is the plain agent.
    assert outcome.qualities[:2].tolist() == [1.0, 1.0]
    assert outcome.qualities[2] != 1.0
    assert outcome.qualities[-1] == outcome.qualities[-2] == world.quality(outcome.chosen, "cheetah-run")
    assert (outcome.trainings, outcome.steps) == (26, 26 * 40_000)
    # The best of the noisy scores is the choice: redo it by hand.
    scores = {}
    simulate_search(Strategy("spy", RANDOM), Spy(world, scores), ("cheetah-run",), 3, grid)
    assert max(scores, key=scores.get) == outcome.chosen


class Spy:
    """A world that remembers what was trained."""

    def __init__(self, world, scores):
        self.world, self.scores = world, scores

    def curve(self, loss, env, seed):
        curve = self.world.curve(loss, env, seed)
        if loss is not None:
            self.scores[loss] = curve.aulc
        return curve

    def __getattr__(self, name):
        return getattr(self.world, name)


def test_a_race_on_several_environments_counts_all_of_its_trainings():
    raced = Strategy("raced", replace(SMALL, rungs=(1, 2), promoted=0.25, selection="estimate", baselines=()))
    result = simulate(MODEL, [PAIR[0], raced], ENVS, repeats=2, workers=1)
    # Two of eight candidates are trained twice in each stage; scores are relative to the plain agent in both tasks.
    assert result.strategies[1].trainings.tolist() == [3 * (8 + 2) + 2 * 2] * 2
    assert result.strategies[1].steps.tolist() == [34 * 40_000.0] * 2
    assert result.strategies[0].trainings.tolist() == [3 * 8 + 2 * 2] * 2
    assert result.grid[-1] == 34 * 40_000
    world = MODEL.sample(np.random.default_rng([0, 0, 0]))
    chosen = Loss.parse(result.strategies[1].chosen[0])
    mean = np.mean([world.quality(chosen, env) for env in ENVS])
    assert result.strategies[1].qualities[0, -1] == pytest.approx(mean)


def test_a_pruner_saves_steps():
    pruned = Strategy("pruned", replace(SMALL, pruner="median:n_startup_trials=4"))
    result = simulate(MODEL, [*PAIR, pruned], repeats=3)
    assert result.strategies[0].steps.tolist() == [26 * 40_000.0] * 3
    assert result.strategies[2].steps.max() < 25 * 40_000
    assert result.strategies[2].trainings.tolist() == [26.0] * 3


def by_hand(*curves):
    """Simulations of three repeats and four steps."""
    results = tuple(
        StrategyResult(name, np.array(own, dtype=float), np.full(3, 40.0), np.full(3, 4.0), ("", "", ""))
        for name, own in zip(("reference", "other", "third"), curves, strict=False)
    )
    return Simulation(("cheetah-run",), np.array([10.0, 20.0, 30.0, 40.0]), results, 0)


def test_steps_until_the_goal():
    reference = [[1, 1, 2, 3], [1, 2, 3, 4], [1, 1, 1, 2]]
    faster = [[1, 3, 3, 3], [2, 3, 1, 3], [1, 1, 1, 9]]
    never = [[1, 1, 1, 1], [1, 2.9, 1, 1], [1, 1, 9, 9]]
    result = by_hand(reference, faster, never)
    assert result.goal == 3
    assert [result.steps_until(each) for each in result.strategies] == [40, 20, math.inf]
    assert result.steps_until(result.strategies[0], 2) == 30
    assert result.steps_of_repeats(result.strategies[0]).tolist() == [40, 30, math.inf]
    assert result.compared(result.strategies[0]).ratio == 1
    assert result.compared(result.strategies[0]).interval == (1, 1)
    compared = result.compared(result.strategies[1])
    assert (compared.steps, compared.ratio) == (20, 0.5)
    assert compared.interval.low <= 0.5 <= compared.interval.high
    missed = result.compared(result.strategies[2])
    assert (missed.steps, missed.ratio, missed.interval.high) == (math.inf, math.inf, math.inf)
    assert result_cells(result, result.strategies[2])[-2] == "not reached"
    whole = result.to_mapping()
    assert Simulation.from_mapping(json.loads(json.dumps(whole))).to_mapping() == whole
    mapping = whole["strategies"][2]
    assert mapping["steps_until_goal"] is None
    assert mapping["quartiles"] == [[1.0, 1.0, 1.0, 1.0], [1.0, 1.95, 5.0, 5.0]]


def test_the_figure_shows_medians_and_the_middle_half():
    drawn = simulation_figure(by_hand([[1, 1, 2, 3], [1, 2, 3, 4], [1, 1, 1, 2]], [[2, 2, 2, 2]] * 3))
    band, line, _, other = drawn.data
    assert list(line.x) == [10, 20, 30, 40]
    assert list(line.y) == [1, 1, 2, 3]
    assert list(band.y) == [1, 1, 1.5, 2.5, 3.5, 2.5, 1.5, 1]
    assert (line.name, other.name) == ("reference: 3.00", "other: 2.00")
    assert drawn.layout.shapes[0].y0 == 3


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"strategies": ()}, "no strategy"),
        ({"strategies": (PAIR[0], PAIR[0])}, "the same name: evolution, evolution"),
        ({"repeats": 0}, "repeats is 0, but must be at least 1"),
        ({"workers": 0}, "workers is 0, but must be at least 1"),
        ({"environments": ("finger-spin",)}, "environment is finger-spin, but the model has trainings in cheetah-run"),
        (
            {"strategies": (Strategy("long", replace(SMALL, training=replace(SMALL.training, steps=80_000))),)},
            "steps is 80,000 in cheetah-run, but the model is of trainings of 40,000",
        ),
    ],
)
def test_bad_input_is_refused(arguments, words):
    with pytest.raises(BadInput, match=words):
        simulate(MODEL, **{"strategies": PAIR, "repeats": 1} | arguments)


def test_built_in_strategies_but_the_default_search_have_the_trainings_of_the_paper():
    assert STRATEGIES == ("paper", "random", "tpe", "laptop")
    made = [strategy(name, preset("fast")).config for name in STRATEGIES]
    assert [config.candidates for config in made[:3]] == [700, 700, 700]
    assert made[3].candidates == search_preset("laptop").candidates
    assert (made[0].sampler, made[0].population_size, made[0].stages) == ("a2ls", 100, 7)
    with pytest.raises(BadInput, match="no strategy 'papr': did you mean paper"):
        strategy("papr", preset("fast"))


def test_a_strategy_may_have_settings_of_its_own():
    made = strategy("laptop: surrogate=none, rungs=1 2 4, priors=0", preset("fast"))
    assert made.name == "laptop: surrogate=none, rungs=1 2 4, priors=0"
    assert (made.config.surrogate, made.config.rungs, made.config.priors) == ("none", (1, 2, 4), 0.0)
    for settings, words in (("rungs=2 1", "each above"), ("steps=3", "all strategies"), ("rung=1", "mean rungs")):
        with pytest.raises(BadInput, match=words):
            strategy(f"laptop: {settings}", preset("fast"))


def test_the_paper_searches_in_the_first_environment_alone():
    names = ("cheetah-run", "walker-walk")
    assert strategy("paper", preset("fast")).config_in(names, 3).environments == ("cheetah-run",)
    assert strategy("laptop", preset("fast")).config_in(names, 3).environments == names


@pytest.mark.parametrize(
    ("place", "words"),
    [
        ("HillClimber", "must be written FILE.py:CLASS"),
        ("nothing.py:HillClimber", "no file nothing.py"),
        ("optuna.samplers:Nothing", "no class 'Nothing' that is an optuna.samplers.BaseSampler"),
        ("optuna.samplers:GridSampler", "cannot be made with a seed alone"),
        ("no_such_module:Sampler", "cannot be imported"),
    ],
)
def test_what_is_no_sampler_is_said(place, words):
    with pytest.raises(BadInput, match=words):
        sampler_strategy(place, preset("fast"))
