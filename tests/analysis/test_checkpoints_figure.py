"""Rank correlations between checkpoints, against scipy."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import spearmanr

from a2ls.analysis.figures import checkpoint_correlations, draw_checkpoint_correlations
from helpers.figures import strict
from helpers.searches import candidate, dataset, made_up_search


def test_a_made_up_search_against_scipy():
    search = made_up_search(20, 3, ended=50)
    data = checkpoint_correlations(search)
    finished = [each for each in search.candidates if each.state == "finished"]
    columns = [[point.score for point in each.curve.points] + [each.curve.aulc] for each in finished]
    assert data.count == 50
    assert data.steps == (8_000, 16_000, 24_000, 32_000, 40_000)
    np.testing.assert_allclose(np.array(data.correlations), spearmanr(columns).statistic, atol=1e-12)


# Whole numbers, because many are equal.
@settings(deadline=None)
@given(st.lists(st.tuples(*[st.integers(0, 5)] * 2), min_size=3, max_size=30))
def test_ties_against_scipy(scores):
    data = checkpoint_correlations(dataset(*(candidate(i, tuple(map(float, own))) for i, own in enumerate(scores))))
    columns = np.array([(first, second, (first + second) / 2) for first, second in scores])
    for i in range(3):
        for j in range(3):
            own = data.correlations[i][j]
            if len(set(columns[:, i])) == 1 or len(set(columns[:, j])) == 1:
                assert own is None
            else:
                assert own == pytest.approx(spearmanr(columns[:, i], columns[:, j]).statistic, abs=1e-12)
                assert -1 <= own <= 1


def test_only_finished_candidates_with_the_checkpoints_of_most_count():
    rows = [candidate(i, (float(i), 5.0 - i)) for i in range(3)]
    others = [
        candidate(3, (9.0,), state="pruned"),
        candidate(4, (9.0, 9.0), state="running"),
        candidate(5, (9.0, 9.0), repeat_of=1),
        candidate(6, (9.0, 9.0, 9.0)),
    ]
    data = checkpoint_correlations(dataset(*rows, *others))
    assert data.count == 3
    assert data.correlations[0][:2] == pytest.approx((1, -1))
    assert data.correlations[0][2] is None  # all have the same AULC
    assert checkpoint_correlations(dataset(*rows[:2], *others)) is None


def test_drawn_matrix():
    scores = ((1.0, 2.0), (2.0, 3.0), (3.0, 1.0))
    drawn = strict(draw_checkpoint_correlations(checkpoint_correlations(dataset(*map(candidate, range(3), scores)))))
    (matrix,) = drawn["data"]
    assert matrix["x"] == matrix["y"] == ["1,000", "2,000", "AULC"]
    assert np.array(matrix["z"]).shape == (3, 3)
    assert matrix["z"][0][1] == pytest.approx(-0.5)
    assert matrix["texttemplate"]
    assert drawn["layout"]["coloraxis"]["cmin"] == -1


def test_a_matrix_of_many_checkpoints_has_no_numbers_and_one_without_negatives_starts_at_zero():
    data = checkpoint_correlations(
        dataset(*(candidate(i, tuple(float(i * j) for j in range(1, 11))) for i in range(4)))
    )
    drawn = strict(draw_checkpoint_correlations(data))
    assert "texttemplate" not in drawn["data"][0]
    assert drawn["layout"]["coloraxis"]["cmin"] == 0
    assert drawn["layout"]["title"]["subtitle"]["text"].replace("<br>", " ").endswith("it is 1.00")
