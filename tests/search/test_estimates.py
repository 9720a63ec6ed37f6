"""What few scores say of losses, against the formulas with whole matrices and against losses of known quality."""

import numpy as np
import pytest

from a2ls.search._estimates import Luck, Score, estimate_losses


def made_up(rng, *, losses=24, between=0.3, within=0.4, stages=3):
    """A raced search on three environments, and the true quality of each loss over them."""
    environments, effects = ("a", "b", "c"), np.array([0.0, 0.6, -0.3])
    scores, truth = [], {}
    for loss in range(losses):
        stage = loss * stages // losses
        quality = 1 + 0.2 * stage + rng.normal(0, between)
        truth[loss] = quality + effects.mean()
        for k in range(1 if loss % 3 else 4):
            env = (loss + k) % 3
            scores.append(Score(loss, environments[env], stage, quality + effects[env] + rng.normal(0, within)))
    return scores, truth


def dense(scores):
    """Design matrices of the model: environments and stages without the last, and losses."""
    envs, stages, losses = (sorted({score[i] for score in scores}) for i in (1, 2, 0))
    x = np.array([[s.env == env for env in envs] + [s.stage == st for st in stages[:-1]] for s in scores], float)
    z = np.array([[s.loss == loss for loss in losses] for s in scores], float)
    wanted = np.array(
        [
            [1 / len(envs)] * len(envs) + [next(s.stage for s in scores if s.loss == loss) == st for st in stages[:-1]]
            for loss in losses
        ]
    )
    return x, z, wanted, np.array([s.value for s in scores]), losses


def test_estimates_and_intervals_are_the_conditional_distribution_of_the_model():
    scores, _ = made_up(np.random.default_rng(0))
    found = estimate_losses(scores)
    b2, w2 = found.spreads.between**2, found.spreads.within**2
    x, z, wanted, y, losses = dense(scores)
    # The joint normal distribution of scores and qualities, with effects of a huge prior variance.
    huge = 1e7
    covariance = huge * x @ x.T + b2 * z @ z.T + w2 * np.eye(len(y))
    cross = huge * wanted @ x.T + b2 * z.T
    own = huge * wanted @ wanted.T + b2 * np.eye(len(losses))
    mean = cross @ np.linalg.solve(covariance, y)
    spread = np.sqrt(np.diag(own - cross @ np.linalg.solve(covariance, cross.T)))
    for loss, expected, sd in zip(losses, mean, spread, strict=True):
        assert found.losses[loss].value == pytest.approx(expected, abs=1e-4)
        low, high = found.losses[loss].interval
        assert (high - low) / (2 * 1.96) == pytest.approx(sd, abs=2e-4)


def test_the_spreads_are_those_of_the_highest_restricted_likelihood():
    scores, _ = made_up(np.random.default_rng(1))
    spreads = estimate_losses(scores).spreads
    x, z, _, y, _ = dense(scores)

    def cost(between, within):
        """Twice the negative logarithm, with that of the prior: the ratio of variances is about 1, or e^1.5."""
        v = between**2 * z @ z.T + within**2 * np.eye(len(y))
        inverse = np.linalg.inv(v)
        xvx = x.T @ inverse @ x
        p = inverse - inverse @ x @ np.linalg.solve(xvx, x.T @ inverse)
        value = np.linalg.slogdet(v)[1] + np.linalg.slogdet(xvx)[1] + y @ p @ y
        return value + (2 * np.log(between / within) / 1.5) ** 2

    best = cost(spreads.between, spreads.within)
    for factor in (0.98, 1.02):
        assert cost(spreads.between * factor, spreads.within) > best
        assert cost(spreads.between, spreads.within * factor) > best


def test_intervals_hold_and_the_best_of_many_is_not_overrated():
    rng = np.random.default_rng(2)
    covered, overrated, overrated_scores = [], [], []
    for _ in range(150):
        scores, truth = made_up(rng, losses=30)
        found = estimate_losses(scores)
        covered += [
            low <= truth[loss] <= high for loss, (low, high) in ((k, e.interval) for k, e in found.losses.items())
        ]
        best = max(found.losses, key=lambda loss: found.losses[loss].value)
        lucky = max(found.means, key=found.means.get)
        overrated.append(found.losses[best].value - truth[best])
        overrated_scores.append(found.means[lucky] - truth[lucky])
    assert np.mean(covered) == pytest.approx(0.95, abs=0.03)
    error = np.std(overrated) / np.sqrt(len(overrated))
    assert abs(np.mean(overrated)) < 4 * error
    assert np.mean(overrated_scores) > 10 * error  # What the estimate is free of.


def test_the_mean_score_of_a_loss_is_freed_from_the_environment():
    scores = [Score("x", "easy", 1, 11.0), Score("x", "hard", 1, 1.0), Score("y", "easy", 1, 12.0)]
    scores += [Score("z", "hard", 1, 2.0)]
    means = estimate_losses(scores).means
    assert means["y"] == pytest.approx(means["z"])
    assert means["y"] == pytest.approx(means["x"] + 1)


def test_without_a_repeat_nothing_is_known_but_the_scores_unless_a_baseline_tells_of_luck():
    scores = [Score(i, "a", 1, value) for i, value in enumerate((1.0, 2.0, 4.0, 9.0))]
    alone = estimate_losses(scores)
    assert alone.spreads is None
    assert {loss: each.value for loss, each in alone.losses.items()} == {0: 1.0, 1: 2.0, 2: 4.0, 3: 9.0}
    assert all(each.interval is None for each in alone.losses.values())
    with_luck = estimate_losses(scores, Luck(squares=40.0, freedom=4))
    assert 4 < with_luck.losses[3].value < 9  # Drawn to the mean of all, which is 4.
    twice = [*scores, Score(0, "a", 1, 1.1)]
    assert estimate_losses(twice, Luck(1e6, 1000)) == estimate_losses(twice)


def test_nothing_is_estimated_from_nothing():
    assert estimate_losses([]).losses == {}


def test_one_lucky_repeat_does_not_make_everything_certain():
    rng = np.random.default_rng(3)
    scores = [Score(i, "a", 1, float(value)) for i, value in enumerate(rng.normal(0, 1, 12))]
    scores.append(scores[0])  # The same score again.
    found = estimate_losses(scores)
    low, high = found.losses[5].interval
    assert high - low > 1.5
