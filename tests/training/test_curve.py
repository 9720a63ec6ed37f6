"""The learning curve and its file form."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a2ls.training import Curve, CurvePoint
from helpers.trainings import bits

returns = st.lists(st.floats(-1e12, 1e12), min_size=1, max_size=12).map(tuple)
points = st.builds(CurvePoint, st.integers(0, 10**9), returns)
curves = st.lists(points, max_size=6).map(lambda items: Curve(tuple(items)))


@given(curves)
def test_csv_restores_the_curve_bit_for_bit(curve):
    assert bits(Curve.from_csv(curve.to_csv())) == bits(curve)


def test_csv_is_readable_by_others():
    curve = Curve((CurvePoint(100, (1.0, 2.5)), CurvePoint(200, (-0.1,))))
    assert curve.to_csv() == "step,score,returns\n100,1.75,1.0 2.5\n200,-0.1,-0.1\n"


def test_the_aulc_is_the_mean_of_the_scores_and_not_of_all_returns():
    curve = Curve((CurvePoint(10, (0.0, 0.0, 0.0)), CurvePoint(20, (4.0,)), CurvePoint(30, (1.0, 3.0))))
    assert [point.score for point in curve.points] == [0.0, 4.0, 2.0]
    assert curve.aulc == 2.0


def test_an_empty_curve_has_no_aulc():
    assert math.isnan(Curve().aulc)
    assert Curve.from_csv(Curve().to_csv()) == Curve()


def test_with_point_adds_to_a_new_curve():
    curve = Curve((CurvePoint(10, (1.0,)),))
    longer = curve.with_point(CurvePoint(20, (2.0,)))
    assert ([p.step for p in curve.points], [p.step for p in longer.points]) == ([10], [10, 20])
    with pytest.raises(AttributeError):
        curve.points = ()
