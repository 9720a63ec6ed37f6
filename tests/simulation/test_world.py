import numpy as np
import pytest
from made_up_trainings import ENVS, random_losses, trainings

from a2ls._errors import BadInput
from a2ls.simulation import WorldModel, check
from a2ls.space import Loss

LOSSES = random_losses(40)
RECORDS = trainings(lambda loss, _: 0.03 * len(loss.target_elements), LOSSES, seeds=2)
MODEL = WorldModel.fit(RECORDS)


def world(seed=0):
    return MODEL.sample(np.random.default_rng(seed))


def test_quality_depends_on_loss_and_environment_alone():
    first, second = world(), world()
    losses = [*LOSSES, *random_losses(30, seed=1)]
    at_once = first.qualities(losses)
    one_by_one = [[second.quality(loss, env) for env in ENVS] for loss in reversed(losses)]
    assert at_once == pytest.approx(np.array(one_by_one)[::-1], rel=1e-9)
    assert [first.quality(loss) for loss in losses] == pytest.approx(at_once.mean(axis=1))
    assert at_once.min() > 0
    assert len(np.unique(at_once)) == at_once.size
    assert world(1).quality(losses[-1]) != first.quality(losses[-1])


def test_losses_that_mean_the_same_are_one():
    own = world()
    late, early = Loss.parse("s2 a2 -> s3 @7"), Loss.parse("s0 a0 -> s1")
    assert own.quality(late, ENVS[0]) == own.quality(early, ENVS[0])
    assert own.curve(late, ENVS[0], 3) == own.curve(early, ENVS[0], 3)


@pytest.mark.parametrize("loss", [None, LOSSES[3], random_losses(1, seed=9)[0]])
def test_the_mean_score_of_many_seeds_is_the_quality(loss):
    own, env = world(), ENVS[1]
    plain = np.mean([record.curve.aulc for record in RECORDS if record.loss is None and record.env == env])
    scores = np.array([own.curve(loss, env, seed).aulc for seed in range(4000)]) / plain
    assert scores.mean() == pytest.approx(own.quality(loss, env), rel=0.02)
    assert np.log(scores).std() == pytest.approx(MODEL.covariance.noise[1], rel=0.05)
    assert own.curve(loss, env, 5) == world().curve(loss, env, 5) != own.curve(loss, env, 6)


def test_curves_have_the_shapes_of_real_ones_with_about_the_same_score():
    own, env = world(), ENVS[0]
    real = [(record.curve.aulc, shape(record.curve)) for record in RECORDS if record.env == env]
    for loss in LOSSES[:20]:
        curve = own.curve(loss, env, 7)
        nearest = sorted(real, key=lambda each: abs(each[0] - curve.aulc))[:5]
        assert any(shape(curve) == pytest.approx(other) for _, other in nearest)


def shape(curve):
    return np.array([point.score for point in curve.points]) / curve.aulc


def test_first_scores_say_as_much_as_in_the_data():
    early = check(MODEL, RECORDS).early_scores
    assert [each.env for each in early] == list(ENVS)
    for each in early:
        assert each.simulated == pytest.approx(each.real, abs=0.15)


def test_what_the_model_does_not_know_is_refused():
    own = world()
    with pytest.raises(BadInput, match="environment is 'finger-spin', but the model has trainings in cheetah-run"):
        own.quality(LOSSES[0], "finger-spin")
    with pytest.raises(BadInput, match="operator mse and a predictor alone"):
        own.quality(Loss.parse("s0 a0 -> s1 | bilinear"))
    with pytest.raises(BadInput, match="horizons up to 10 alone"):
        own.quality(Loss.parse("s0 -> s12", max_horizon=12))
    assert own.steps(ENVS[0]) == 40_000
