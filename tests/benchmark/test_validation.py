"""The cross-validation of searches: which losses, which seeds, and what it says."""

import json
import math
import shutil

import numpy as np
import pytest
from scipy import stats

from a2ls import BadInput
from a2ls._statistics import cautious_interval, corrected_level
from a2ls.benchmark import NoVerdict, Validation, best_losses, first_fresh_seed, validate
from a2ls.envs import EnvironmentConfig
from a2ls.search import SearchConfig, SearchFolder, rank_losses
from a2ls.space import BadLossFile, Loss, named_loss
from a2ls.studies import Candidate
from a2ls.training import Curve, CurvePoint, TrainConfig
from helpers.engines import InstantEngine
from helpers.trainings import PENDULUM

SEARCH = SearchConfig(PENDULUM, population_size=4, stages=1, seed=5, baselines=("sac",), baseline_seeds=2)


def in_env(env):
    return TrainConfig(EnvironmentConfig(env), PENDULUM.agent, steps=400, evaluations=2, learning_starts=20)


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    folder = SearchFolder.create(tmp_path_factory.mktemp("searches") / "mine", SEARCH)
    folder.run(InstantEngine())
    return folder.path


@pytest.fixture
def searched(original, tmp_path):
    """A search of its own for each test."""
    return SearchFolder.open(shutil.copytree(original, tmp_path / "mine"))


def candidate(number, text, score, *, stage=1, state="finished", repeat_of=None):
    curve = Curve((CurvePoint(1, (score,)),))
    loss = Loss.parse(text)
    return Candidate(number, text, loss, "e", number, state, curve, 1.0, (), stage, "random", (), repeat_of)


def test_the_best_losses_are_different_and_finished():
    candidates = [
        candidate(0, "s0 -> s1", 10),
        candidate(1, "s2 -> s3", 30),  # The same loss: the mean is 20.
        candidate(2, "s0 -> s2", 25),
        candidate(3, "s0 -> s3", 99, state="pruned"),
        candidate(4, "s0 -> s4", 99, state="failed"),
        candidate(5, "s0 -> s2", 25, stage=2, repeat_of=2),
        candidate(6, "s0 -> r0", 20, stage=2),
        candidate(7, "s0 -> a0", 1, stage=2),
    ]
    ranking = rank_losses(SEARCH, candidates)
    best = best_losses(ranking, candidates, 3)
    assert [(each.place, str(each.loss), each.trainings, each.candidates) for each in best] == [
        (1, "s0 -> s2", 1, (2, 5)),
        (2, "s0 -> s1", 2, (0, 1)),
        (3, "s0 -> r0", 1, (6,)),
    ]
    assert all(each.estimate == ranking.losses[i].estimate for i, each in enumerate(best))
    of_stage = best_losses(ranking, candidates, 9, stage=2)
    assert [str(each.loss) for each in of_stage] == ["s0 -> s2", "s0 -> r0", "s0 -> a0"]
    assert of_stage[0].candidates == (5,)
    assert best_losses(ranking, candidates, 9, stage=3) == []


def test_a_result_that_was_taken_over_does_not_count_twice():
    candidates = [candidate(0, "s0 -> s1", 10), candidate(1, "s0 -> s1", 40), candidate(2, "s0 -> s1", 40, repeat_of=1)]
    ranking = rank_losses(SEARCH, candidates)
    assert (ranking.losses[0].score, best_losses(ranking, candidates, 1)[0].trainings) == (25, 2)


def test_seeds_are_after_all_of_the_search(searched):
    used = {record.seed for record in (*searched.candidates(), *searched.baselines())}
    assert used == {5, 6}
    assert first_fresh_seed(searched) == 7
    validation = Validation.prepare(searched, [PENDULUM], seeds=2)
    assert validation.benchmark.grid.seeds == (7, 8)


def test_seeds_of_losses_that_were_trained_again_are_not_fresh(tmp_path):
    search = SearchConfig(
        PENDULUM, population_size=4, stages=2, repeats="retrain", baselines=("none",), max_horizon=1, seed=0
    )
    folder = SearchFolder.create(tmp_path / "mine", search)
    folder.run(InstantEngine())
    assert first_fresh_seed(folder) == 1 + max(record.seed for record in folder.candidates())


def test_a_search_that_has_not_begun_has_fresh_seeds_too(tmp_path):
    assert first_fresh_seed(SearchFolder.create(tmp_path / "mine", SEARCH)) == 7


def prepared(searched, scores, envs=("Pendulum-v1", "walker-run"), seeds=3, **options):
    """A validation with made-up scores by environment: that of the baseline, and one for each place.

    A score is one number, or one for each seed.
    """
    validation = Validation.prepare(searched, [in_env(env) for env in envs], seeds=seeds, **options)
    places = {each.method("sac").name: each.place for each in validation.selected}

    def score(job):
        own = scores[job.training.config.environment.env]
        value = own[places.get(str(job.training.loss and job.training.loss.canonical()), 0)]
        value = value[job.training.seed - 7] if isinstance(value, list) else value
        # The points of a curve are half of this and all of it, so the AULC is the value.
        return value if isinstance(value, Exception) else value / 0.75

    engine = InstantEngine(score=score)
    validation.benchmark.run(engine)
    return validation, engine


def test_the_verdict_is_normalised_by_the_baseline_of_each_environment(searched):
    validation, engine = prepared(
        searched, {"Pendulum-v1": [-100, -50, -150], "walker-run": [20, 30, 60]}, top=2, baseline_name="sac"
    )
    assert len(engine.jobs) == 2 * 3 * 3
    verdict = validation.verdict()
    first, second = validation.selected
    assert [(s.selected, s.mean.value, s.rank) for s in verdict.environments["Pendulum-v1"]] == [
        (first, pytest.approx(1.5), 1),
        (second, pytest.approx(0.5), 2),
    ]
    assert [(s.selected, s.mean.value) for s in verdict.environments["walker-run"]] == [
        (second, pytest.approx(3.0)),
        (first, pytest.approx(1.5)),
    ]
    assert [(s.selected, s.mean.value, s.rank) for s in verdict.overall] == [
        (second, pytest.approx(1.75), 1),
        (first, pytest.approx(1.5), 2),
    ]
    assert verdict.best.mean.interval == pytest.approx((1.75, 1.75))
    assert verdict.outcome == "better"
    assert (verdict.name, verdict.negative, verdict.left_out) == ("mine-winner", ("Pendulum-v1",), ())


# The AULCs of the baseline and two losses with the seeds 7, 8 and 9, and what is to be said of them.
OUTCOMES = {
    "better": (
        [[10, 11, 9], [20, 21, 19], [11, 12, 10]],
        "As far as 3 seeds tell, #1, the best of 2 losses, is better than sac in walker-run: AULC 2.000 where sac has "
        "1, 97.5 % interval ",
    ),
    "unclear": (
        [[10, 15, 5], [11, 17, 5], [9, 12, 3]],
        "It is unclear whether #1, the best of 2 losses, is better than sac in walker-run: it has AULC 1.100 where sac "
        "has 1, but its 97.5 % interval ",
    ),
    "none": (
        [[10, 11, 9], [6, 7, 5], [8, 10, 9]],
        "None of the 2 losses is better than sac on average in walker-run: the best, #2, has AULC 0.900 where sac has "
        "1, 97.5 % interval ",
    ),
}


@pytest.mark.parametrize("outcome", OUTCOMES)
def test_each_outcome_is_said_in_a_sentence_and_in_the_file(searched, outcome):
    scores, sentence = OUTCOMES[outcome]
    validation, _ = prepared(searched, {"walker-run": scores}, envs=["walker-run"], top=2)
    verdict = validation.verdict()
    assert verdict.outcome == outcome
    assert verdict.sentence.startswith(sentence)
    arrays = [np.array(own, dtype=float) for own in scores]
    best = arrays[verdict.best.selected.place]
    # The ratio of two means: the relative variances add up.
    relative = math.sqrt(sum(own.var(ddof=1) / 3 / own.mean() ** 2 for own in (best, arrays[0])))
    ratio = best.mean() / arrays[0].mean()
    distance = stats.t.ppf(0.9875, 4) * relative * ratio
    assert verdict.corrected == pytest.approx((ratio - distance, ratio + distance))
    assert verdict.corrected.low < verdict.best.mean.interval.low
    assert verdict.corrected.high > verdict.best.mean.interval.high

    path = validation.write_winner(verdict)
    values = json.loads(path.read_text())
    assert (values["outcome"], values["verdict"], values["level"]) == (outcome, verdict.sentence, 0.975)
    assert values["corrected_interval"] == list(verdict.corrected)
    assert {each["place"]: each["loss"] for each in values["losses"]} == {
        each.place: str(each.loss) for each in validation.selected
    }
    for each in values["losses"]:
        own = each["normalised"]
        assert own["overall"] == own["walker-run"]
        assert own["overall"]["mean"] == pytest.approx(arrays[each["place"]].mean() / arrays[0].mean())
        assert own["overall"]["interval"][0] < own["overall"]["mean"] < own["overall"]["interval"][1]
    if outcome == "none":
        assert (values["loss"], values["name"]) == (None, None)
        with pytest.raises(BadLossFile) as caught:
            named_loss(str(path))
        for words in (str(path), verdict.sentence, "on walker-run with the seeds 7, 8, 9", "a2ls validate "):
            assert words in str(caught.value)
    else:
        assert named_loss(str(path)) == verdict.best.selected.loss
        assert values["name"] == ("mine-winner" if outcome == "better" else "mine-best")
        assert ("not shown to be better than sac" in values["about"]) == (outcome == "unclear")


def test_a_single_loss_needs_no_correction(searched):
    validation, _ = prepared(searched, {"walker-run": [[10, 11, 9], [8, 9, 7]]}, envs=["walker-run"], top=1)
    verdict = validation.verdict()
    assert verdict.level == pytest.approx(0.95)
    assert verdict.sentence.startswith("#1, the only loss, is not better than sac on average in walker-run: it has")


def test_a_baseline_that_varies_as_much_as_it_scores_leaves_it_unclear(searched):
    validation, _ = prepared(searched, {"walker-run": [[0, 0, 9], [8, 9, 7]]}, envs=["walker-run"], top=1)
    verdict = validation.verdict()
    assert verdict.outcome == "unclear"
    assert verdict.sentence.endswith(" includes 1.")


@pytest.mark.parametrize("environments", [1, 3])
@pytest.mark.parametrize("seeds", [3, 5, 10])
def test_a_loss_that_is_no_better_is_rarely_called_better(seeds, environments):
    """For the best of five losses with the scores of the baseline; by a bootstrap it would be 18 % with 3 seeds."""
    generator = np.random.default_rng(0)
    called, tries = 0, 1_000
    for _ in range(tries):
        baselines, *losses = generator.normal(100, 20, (6, environments, seeds))
        best = max(losses, key=lambda own: (own.mean(axis=1) / baselines.mean(axis=1)).mean())
        called += cautious_interval(list(best), list(baselines), corrected_level(5)).low > 1
    assert called / tries < 0.025


def test_the_winner_is_a_loss_file(searched):
    validation, _ = prepared(searched, {"Pendulum-v1": [10, 30, 20], "walker-run": [20, 40, 20]}, top=2)
    path = validation.write_winner(validation.verdict())
    assert path == searched.path / "winner.json"
    values = json.loads(path.read_text())
    assert named_loss(str(path)) == validation.selected[0].loss
    assert (values["name"], values["environments"], values["seeds"]) == (
        "mine-winner",
        ["Pendulum-v1", "walker-run"],
        [7, 8, 9],
    )
    assert values["normalised"]["baseline"] == "sac"
    assert values["normalised"]["overall"]["mean"] == pytest.approx(2.5)
    assert values["normalised"]["walker-run"] == {"mean": pytest.approx(2.0), "interval": [2.0, 2.0], "rank": 1}
    assert "best of 2 losses of a search on Pendulum-v1" in values["about"]


def test_few_seeds_have_no_interval(searched):
    validation, _ = prepared(searched, {"walker-run": [10, 30, 20, 1, 1]}, envs=["walker-run"], seeds=2)
    verdict = validation.verdict()
    assert verdict.best.mean.interval is None
    assert verdict.outcome == "unclear"
    assert verdict.sentence.endswith("it has AULC 3.000 where sac has 1; 2 seeds are too few for an interval.")
    assert json.loads(validation.write_winner(verdict).read_text())["normalised"]["overall"]["interval"] is None


def test_asking_for_more_trains_what_is_missing_with_the_same_seeds(searched):
    scores = {"walker-run": [10, 30, 20], "Pendulum-v1": [10, 30, 20]}
    prepared(searched, scores, envs=["walker-run"], seeds=2, top=1)
    validation, engine = prepared(searched, scores, seeds=3, top=2)
    assert validation.benchmark.grid.seeds == (7, 8, 9)
    assert len(engine.jobs) == 18 - 4


def test_a_loss_without_results_is_left_out_and_the_others_are_judged(searched):
    validation, _ = prepared(searched, {"walker-run": [10, 30, 20], "Pendulum-v1": [10, RuntimeError("no"), 20]}, top=2)
    verdict = validation.verdict()
    assert verdict.left_out == validation.selected[:1]
    assert verdict.best.selected == validation.selected[1]


def test_an_environment_where_the_baseline_scores_nothing_is_left_out(searched):
    validation, _ = prepared(searched, {"walker-run": [0, 30, 20], "Pendulum-v1": [10, 15, 20]}, top=2)
    verdict = validation.verdict()
    assert verdict.without_scale == ("walker-run",)
    assert list(verdict.environments) == ["Pendulum-v1"]
    assert verdict.best.mean.value == pytest.approx(2.0)
    assert not math.isnan(verdict.best.mean.value)


def test_no_verdict(searched):
    validation, _ = prepared(searched, {"walker-run": [0, 30, 20]}, envs=["walker-run"], top=2)
    with pytest.raises(NoVerdict, match="baseline sac has no score but 0"):
        validation.verdict()


def test_what_cannot_be_validated(tmp_path, searched):
    with pytest.raises(BadInput, match="no finished candidate in stage 9"):
        Validation.prepare(searched, [PENDULUM], stage=9)
    with pytest.raises(BadInput, match="no baseline 'sca': did you mean sac"):
        Validation.prepare(searched, [PENDULUM], baseline_name="sca")
    with pytest.raises(BadInput, match="top is 0"):
        Validation.prepare(searched, [PENDULUM], top=0)
    empty = SearchFolder.create(tmp_path / "empty", SEARCH)
    with pytest.raises(BadInput, match="has no finished candidate"):
        Validation.prepare(empty, [PENDULUM])
    assert not (empty.path / "validation").exists()


def test_validate_is_all_of_it_in_one_call(searched):
    verdict = validate(searched, [in_env("Pendulum-v1")], top=2, seeds=3, engine=InstantEngine(2))
    assert len(verdict.overall) == 2
    assert json.loads(searched.files.winner.read_text())["verdict"] == verdict.sentence
