"""What few scores say of losses, against the formulas with whole matrices and against losses of known quality."""

import numpy as np
import pytest

from a2ls.search._estimates import LossModel, Score, expected_scores

COUNTS = 4


def made_up(rng, *, losses=24, explained=0.3, between=0.3, within=0.4):
    """A raced search on three environments, the counts of losses, and the true quality of each over environments."""
    environments, effects = ("a", "b", "c"), np.array([0.0, 0.6, -0.3])
    weights = rng.normal(0, explained / np.sqrt(COUNTS), COUNTS)
    scores, counts, truth = [], {}, {}
    for loss in range(losses):
        counts[loss] = rng.normal(size=COUNTS)
        # About zero: of numbers above it the model would take logarithms.
        quality = counts[loss] @ weights + rng.normal(0, between)
        truth[loss] = quality + effects.mean()
        for k in range(1 if loss % 3 else 4):
            env = (loss + k) % 3
            scores.append(Score(loss, environments[env], quality + effects[env] + rng.normal(0, within)))
    return scores, counts, truth


def dense(scores, counts):
    """Design matrices: environments, standardised counts of each training, and which loss it is of."""
    envs, losses = (sorted({score[i] for score in scores}) for i in (1, 0))
    rows = np.array([counts[loss] for loss in losses])
    rows = (rows - rows.mean(axis=0)) / rows.std(axis=0)
    e = np.array([[s.env == env for env in envs] for s in scores], float)
    z = np.array([[s.loss == loss for loss in losses] for s in scores], float)
    return e, z, rows, np.array([s.value for s in scores]), losses


def test_estimates_intervals_and_predictions_are_the_conditional_distribution_of_the_model():
    scores, counts, _ = made_up(np.random.default_rng(0))
    model = LossModel(scores, counts)
    a2, b2, w2 = (getattr(model.spreads, name) ** 2 for name in ("explained", "between", "within"))
    e, z, rows, y, losses = dense(scores, counts)
    # The joint normal distribution of scores and qualities, with environments of a huge prior variance.
    huge = 1e7
    of_losses = a2 / COUNTS * rows @ rows.T + b2 * np.eye(len(losses))
    covariance = huge * e @ e.T + z @ of_losses @ z.T + w2 * np.eye(len(y))
    average = np.full((len(losses), e.shape[1]), 1 / e.shape[1])
    cross = huge * average @ e.T + of_losses @ z.T
    own = huge * average @ average.T + of_losses
    mean = cross @ np.linalg.solve(covariance, y)
    spread = np.sqrt(np.diag(own - cross @ np.linalg.solve(covariance, cross.T)))
    estimates = model.estimates()
    for loss, expected, sd in zip(losses, mean, spread, strict=True):
        assert estimates[loss].value == pytest.approx(expected, abs=1e-4)
        low, high = estimates[loss].interval
        assert (high - low) / (2 * 1.96) == pytest.approx(sd, abs=2e-4)
    # A loss that nobody trained, with the counts of one that somebody did, has all but what that one has for itself.
    cross_new = huge * average @ e.T + a2 / COUNTS * rows @ rows.T @ z.T
    predicted = model.predict(np.array([counts[loss] for loss in losses]))
    assert predicted == pytest.approx(cross_new @ np.linalg.solve(covariance, y), abs=1e-4)


def test_the_spreads_are_those_of_the_highest_restricted_likelihood():
    scores, counts, _ = made_up(np.random.default_rng(1))
    spreads = LossModel(scores, counts).spreads
    e, z, rows, y, _ = dense(scores, counts)

    def cost(explained, between, within):
        """Twice the negative logarithm, with that of the priors: ratios of variances are about 1, or e^1.5."""
        of_losses = explained**2 / COUNTS * rows @ rows.T + between**2 * np.eye(len(rows))
        v = z @ of_losses @ z.T + within**2 * np.eye(len(y))
        inverse = np.linalg.inv(v)
        eve = e.T @ inverse @ e
        p = inverse - inverse @ e @ np.linalg.solve(eve, e.T @ inverse)
        value = np.linalg.slogdet(v)[1] + np.linalg.slogdet(eve)[1] + y @ p @ y
        return value + sum((2 * np.log(spread / within) / 1.5) ** 2 for spread in (explained, between))

    fitted = [spreads.explained, spreads.between, spreads.within]
    best = cost(*fitted)
    for place in range(3):
        for factor in (0.97, 1.03):
            changed = list(fitted)
            changed[place] *= factor
            if place == 2:  # The prior is on ratios, and within follows from these.
                changed = [each * factor for each in fitted]
            assert cost(*changed) > best


def test_intervals_hold_and_the_best_of_many_is_not_overrated():
    rng = np.random.default_rng(2)
    covered, overrated, overrated_scores = [], [], []
    for _ in range(150):
        scores, counts, truth = made_up(rng, losses=30)
        model = LossModel(scores, counts)
        estimates, means = model.estimates(), model.means()
        covered += [each.interval.low <= truth[loss] <= each.interval.high for loss, each in estimates.items()]
        best = max(estimates, key=lambda loss: estimates[loss].value)
        lucky = max(means, key=means.get)
        overrated.append(estimates[best].value - truth[best])
        overrated_scores.append(means[lucky] - truth[lucky])
    assert np.mean(covered) == pytest.approx(0.95, abs=0.03)
    error = np.std(overrated) / np.sqrt(len(overrated))
    assert abs(np.mean(overrated)) < 4 * error
    assert np.mean(overrated_scores) > 10 * error  # What the estimate is free of.


def test_the_mean_score_of_a_loss_is_freed_from_the_environment():
    scores = [Score("x", "easy", 11.0), Score("x", "hard", 1.0), Score("y", "easy", 12.0), Score("z", "hard", 2.0)]
    means = LossModel(scores).means()
    assert means["y"] == pytest.approx(means["z"])
    assert means["y"] == pytest.approx(means["x"] + 1)


def test_without_a_repeat_there_is_no_interval_unless_a_baseline_tells_of_luck():
    scores = [Score(i, "a", value) for i, value in enumerate((-3.0, -2.0, 0.0, 5.0))]
    alone = LossModel(scores)
    assert not alone.tells_luck
    assert all(each.interval is None for each in alone.estimates().values())
    assert 0 < alone.estimates()[3].value < 5  # Drawn to the mean of all, which is 0, by the prior.
    lucky, sure = (LossModel(scores, equals=[[-d, d] * 10, [0.0] * 3]) for d in (5.0, 0.1))
    assert lucky.tells_luck
    assert lucky.estimates()[3].value < alone.estimates()[3].value < sure.estimates()[3].value
    assert sure.spreads.within < 1
    assert lucky.spreads.within > 3
    twice = [*scores, Score(0, "a", -2.9)]
    assert LossModel(twice, equals=[[-100.0, 100.0]]).estimates() == LossModel(twice).estimates()


def test_one_lucky_repeat_does_not_make_everything_certain():
    rng = np.random.default_rng(3)
    scores = [Score(i, "a", float(value)) for i, value in enumerate(rng.normal(0, 1, 12))]
    scores.append(scores[0])  # The same score again.
    low, high = LossModel(scores).estimates()[5].interval
    assert high - low > 1.5


def test_counts_that_do_not_differ_say_nothing():
    scores, counts, _ = made_up(np.random.default_rng(4))
    same = {loss: np.ones(COUNTS) for loss in counts}
    estimates, without = LossModel(scores, same).estimates(), LossModel(scores).estimates()
    for loss, each in without.items():
        assert estimates[loss].value == pytest.approx(each.value, abs=1e-3)


def test_of_scores_above_zero_it_is_the_logarithms_that_are_modelled():
    scores, counts, _ = made_up(np.random.default_rng(5))
    plain = LossModel(scores, counts)
    model = LossModel([score._replace(value=float(np.exp(score.value))) for score in scores], counts)
    assert model.spreads.relative
    assert not plain.spreads.relative
    assert model.spreads.within == pytest.approx(plain.spreads.within)
    half = plain.spreads.within**2 / 2
    for loss, each in plain.estimates().items():
        assert model.estimates()[loss].value == pytest.approx(np.exp(each.value + half))
        assert model.estimates()[loss].interval == pytest.approx([np.exp(end + half) for end in each.interval])
    rows = np.array([*counts.values()])
    assert model.predict(rows) == pytest.approx(np.exp(plain.predict(rows) + half))


def test_luck_that_grows_with_the_mean_does_not_make_the_best_overrated():
    rng = np.random.default_rng(6)
    errors = []
    for _ in range(150):
        scores, counts, truth = made_up(rng, losses=30)
        estimates = LossModel(
            [score._replace(value=float(np.exp(score.value))) for score in scores], counts
        ).estimates()
        best = max(estimates, key=lambda loss: estimates[loss].value)
        errors.append(np.log(estimates[best].value) - truth[best] - 0.4**2 / 2)
    assert abs(np.mean(errors)) < 4 * np.std(errors) / np.sqrt(len(errors))


def test_losses_that_were_ended_early_are_expected_where_the_line_through_the_others_says():
    rng = np.random.default_rng(0)
    early = rng.normal(50, 20, 30)
    whole = 1.5 * early + rng.normal(10, 5, 30)
    slope, offset = np.polyfit(early, whole, 1)
    known = list(zip(early, whole, strict=True))
    assert expected_scores([40.0, 60.0], known) == pytest.approx([slope * 40 + offset, slope * 60 + offset])
    assert expected_scores([-1e3, 1e3], known) == [whole.min(), whole.max()]
    assert expected_scores([40.0], known[:4]) == expected_scores([40.0], []) == []
    assert expected_scores([40.0], [*known, (np.nan, 1.0), (2.0, np.inf)]) == expected_scores([40.0], known)
    assert expected_scores([40.0], [(1.0, value) for value in whole]) == pytest.approx([whole.mean()])


def test_without_what_was_ended_early_the_counts_would_seem_to_be_worth_too_little():
    rng = np.random.default_rng(0)
    weights = {"those that went on": [], "all": []}
    for _ in range(30):
        count = rng.normal(size=200)
        quality = 10 + count
        early = quality + rng.normal(0, 1, 200)
        whole = early + rng.normal(0, 1, 200)
        goes_on = early > np.median(early)
        known = list(zip(early[goes_on], whole[goes_on], strict=True))
        expected = whole.copy()
        expected[~goes_on] = expected_scores(early[~goes_on], known)
        for name, values, chosen in (("those that went on", whole, goes_on), ("all", expected, goes_on | True)):
            scores = [Score(i, "", values[i]) for i in np.flatnonzero(chosen)]
            model = LossModel(scores, {i: np.array([count[i]]) for i in np.flatnonzero(chosen)})
            low, high = model.predict(np.array([[-1.0], [1.0]]))
            weights[name].append((high - low) / 2)
    errors = {name: abs(np.mean(own) - 1) for name, own in weights.items()}
    assert errors["all"] < errors["those that went on"] / 2
