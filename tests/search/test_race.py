"""Races inside the stages of a search: who is trained again, whatever happens meanwhile."""

from dataclasses import replace

import numpy as np
import optuna
import pytest

from a2ls import BadInput
from a2ls.search import Budget, Search, rank_losses, stage_trainings
from a2ls.search._ranking import Scale
from helpers.engines import InstantEngine, made_up_score

LEVELS = {"Pendulum-v1": 100.0, "MountainCarContinuous-v0": 40.0, "InvertedPendulum-v5": 7.0}


@pytest.fixture
def raced(tiny_search):
    """Two more environments, and three rungs: 9 candidates once, 3 of them three times, one of these six times."""
    others = tuple(env for env in LEVELS if env != tiny_search.training.environment.env)
    return replace(
        tiny_search,
        population_size=9,
        stages=3,
        rungs=(1, 3, 6),
        selection="estimate",
        other_environments=others,
        baseline_seeds=2,
    )


def score(job):
    """What depends on the loss, the environment and luck."""
    quality = 1 if job.training.loss is None else 1 + 0.05 * sum(job.training.loss.target[::3])
    luck = made_up_score(job) % 1 - 0.5
    return LEVELS[job.training.config.environment.env] * (quality + 0.3 * luck)


def search_of(config, storage=None, **options):
    return Search(config, storage or optuna.storages.InMemoryStorage(), **options)


def outcome(search):
    """All that a search found, but for times."""
    candidates = [(c.number, c.label, c.env, c.seed, c.stage, c.parents, c.state, c.curve) for c in search.candidates()]
    further = sorted((f.candidate, f.index, f.label, f.env, f.seed, f.state, f.curve) for f in search.further())
    told = [(trial.number, trial.state, trial.value) for trial in search.study.trials]
    return candidates, further, told


@pytest.fixture
def calm(raced):
    search = search_of(raced)
    search.run(InstantEngine(2, score=score))
    return search


def test_each_rung_trains_the_best_of_the_one_before(raced, calm):
    numbers = {stage: [c.number for c in calm.candidates() if c.stage == stage] for stage in (1, 2, 3)}
    assert [len(own) for own in numbers.values()] == [9, 9, 9]
    assert len(calm.further()) == 3 * (stage_trainings(raced, 9) - 9) == 3 * (3 * 2 + 1 * 3)
    for stage, own in numbers.items():
        so_far = [c for c in calm.candidates() if c.stage <= stage]
        before = [f for f in calm.further() if f.candidate < own[0]]
        members = own
        for rung, trainings in ((1, 1), (2, 3)):
            # What was known when the rung ended: all earlier stages, and of this one as many trainings as the rung has.
            known = [*before, *(f for f in calm.further() if f.candidate in own and f.index < trainings)]
            ranking = rank_losses(raced, so_far, known, calm.baselines())
            best = [n for each in ranking.losses for n in each.candidates if n in members]
            promoted = {f.candidate for f in calm.further() if f.candidate in own and f.index >= trainings}
            assert promoted == set(best[: (3, 1)[rung - 1]])
            members = promoted


def test_a_candidate_is_trained_in_all_environments_before_another_seed(raced, calm):
    for number in {f.candidate for f in calm.further()}:
        first = calm.candidates()[number]
        own = sorted((f for f in calm.further() if f.candidate == number), key=lambda f: f.index)
        trained = [(first.env, first.seed), *((f.env, f.seed) for f in own)]
        assert len(set(trained)) == len(trained)
        assert {env for env, _ in trained[:3]} == set(raced.environments)
        assert [seed for _, seed in trained] == [raced.seed] * 3 + [raced.seed + 1] * (len(own) - 2)
    firsts = [c.env for c in calm.candidates()]
    assert firsts[:3] == list(raced.environments)


def test_the_study_is_told_the_estimates_and_parents_are_the_best_by_them(raced, calm):
    trials = calm.study.trials
    assert all(trial.state.name == "COMPLETE" for trial in trials)
    first = [trial.number for trial in trials[:9]]
    best = sorted(first, key=lambda n: -trials[n].value)[:2]
    parents = {n for c in calm.candidates() if c.stage == 2 for n in c.parents}
    assert parents <= set(best)
    ranking = calm.ranking()
    last = [trial for trial in trials if trial.number >= 18]
    for trial in sorted(last, key=lambda t: t.datetime_complete)[-1:]:  # Told with all that is known at the end.
        assert trial.value == pytest.approx(ranking.by_candidate[trial.number].estimate.value)


@pytest.mark.parametrize("workers", [1, 5])
def test_the_number_of_workers_changes_nothing(workers, raced, calm):
    search = search_of(raced)
    search.run(InstantEngine(workers, score=score))
    assert outcome(search) == outcome(calm)


@pytest.mark.parametrize("surrogate", ["none", "ridge"])
def test_a_search_that_is_interrupted_again_and_again_ends_as_if_nothing_had_happened(surrogate, raced):
    raced = replace(raced, surrogate=surrogate, pruner="rung")
    calm, storage = search_of(raced), optuna.storages.InMemoryStorage()
    calm.run(InstantEngine(2, score=score))
    rng = np.random.default_rng(0)
    interruptions = 0
    while True:
        try:
            search_of(raced, storage).run(InstantEngine(2, score=score, interrupt_after=int(rng.integers(1, 40))))
        except KeyboardInterrupt:
            interruptions += 1
        else:
            break
    assert interruptions >= 10
    assert outcome(search_of(raced, storage)) == outcome(calm)


def test_in_steady_mode_nobody_waits_and_every_block_is_raced(raced):
    search = search_of(replace(raced, mode="steady"))
    engine = InstantEngine(4, score=score)
    search.run(engine)
    counts = {f.candidate: 0 for f in search.further()}
    for f in search.further():
        counts[f.candidate] += 1
    for stage in (1, 2, 3):
        own = [c.number for c in search.candidates() if c.stage == stage]
        assert sorted(counts.get(n, 0) for n in own) == [0] * 6 + [2, 2, 5]
    assert all(trial.state.name == "COMPLETE" for trial in search.study.trials)


def test_random_search_is_raced_as_well(raced):
    search = search_of(replace(raced, sampler="random"))
    search.run(InstantEngine(2, score=score))
    assert len(search.further()) == 3 * 9
    assert len(search.candidates()) == 27


def test_who_fails_is_out_and_who_fails_later_is_judged_by_what_it_has(raced):
    def failing(job):
        index = job.training.seed - raced.seed
        if job.training.loss is not None and (made_up_score(job) * 10 % 4 < 1 or index > 0):
            return RuntimeError("broke")
        return score(job)

    search = search_of(replace(raced, stages=1))
    search.run(InstantEngine(2, score=failing))
    failed = {c.number for c in search.candidates() if c.state == "failed"}
    assert failed
    assert failed.isdisjoint(f.candidate for f in search.further())
    states = {trial.number: trial.state.name for trial in search.study.trials}
    assert {n for n, state in states.items() if state == "FAIL"} == failed
    assert set(states.values()) == {"FAIL", "COMPLETE"}
    assert any(f.state == "failed" for f in search.further())


def test_scores_are_relative_to_the_plain_agent_whatever_its_sign(raced):
    scale = Scale({"up": 50.0, "down": -50.0, "zero": 0.0})
    assert [scale.score("up", x) for x in (50.0, 75.0, 0.0)] == [1, 1.5, 0]
    assert [scale.score("down", x) for x in (-50.0, -25.0, 0.0)] == [1, 1.5, 2]
    assert [scale.score("zero", x) for x in (0.0, 2.0)] == [1, 3]
    assert Scale().score("any", 17.0) == 17.0
    assert Scale.of(raced, []) is None


def test_a_search_on_several_environments_needs_the_plain_agent(raced):
    with pytest.raises(BadInput, match="needs the baseline sac"):
        replace(raced, baselines=())

    def without_plain(job):
        training = job.training
        in_one = training.loss is None and training.config.environment.env == "InvertedPendulum-v5"
        return RuntimeError("no plain agent") if in_one else score(job)

    with pytest.raises(BadInput, match="relative to sac, but it failed: no plain agent"):
        search_of(raced).run(InstantEngine(2, score=without_plain))


@pytest.mark.parametrize("trainings", [1, 17, 18, 20, 45])
def test_a_budget_of_steps_is_never_exceeded(trainings, raced):
    steps = max(each.steps for each in raced.configs)
    search = search_of(raced, budget=Budget(max_env_steps=trainings * steps))
    search.run(InstantEngine(2, score=score))
    spent = sum(r.curve.points[-1].step for r in (*search.candidates(), *search.further()) if r.curve.points)
    assert spent <= trainings * steps
    assert spent >= trainings * steps - 18 * steps
    assert all(trial.state.is_finished() for trial in search.study.trials)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"rungs": ()}, "rungs is"),
        ({"rungs": (0, 2)}, "rungs is"),
        ({"rungs": (3, 3)}, "rungs is"),
        ({"promoted": 0.0}, "promoted is"),
        ({"other_environments": ("Pendulum-v1",)}, "each be given once"),
    ],
)
def test_races_that_cannot_be_run_are_refused(changes, words, raced):
    with pytest.raises(BadInput, match=words):
        replace(raced, **changes)
