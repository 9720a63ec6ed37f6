import math

import pytest

from a2ls._formatting import count_of, duration, interval_text, level_text, number_text, p_value_text
from a2ls._statistics import Interval


@pytest.mark.parametrize(
    ("seconds", "words"), [(0.4, "0 s"), (61, "61 s"), (300, "5 min"), (5400, "90 min"), (7500, "2 h 05 min")]
)
def test_durations_are_short(seconds, words):
    assert duration(seconds) == words


@pytest.mark.parametrize("unknown", [None, math.nan, math.inf])
def test_what_is_not_a_number_is_a_dash(unknown):
    assert number_text(unknown) == number_text(unknown, 3, sign=True) == interval_text(None) == "-"
    assert p_value_text(None) == "-"


def test_numbers_have_the_digits_and_the_sign_that_are_asked_for():
    assert (number_text(2.25), number_text(-2, 3), number_text(2, sign=True)) == ("2.2", "-2.000", "+2.0")
    assert interval_text(Interval(-1, 2.5)) == interval_text([-1, 2.5]) == "-1.0 to 2.5"
    assert (count_of(1, "stage"), count_of(1200, "stage")) == ("1 stage", "1,200 stages")
    assert (count_of(1, "loss", "losses"), count_of(2, "loss", "losses")) == ("1 loss", "2 losses")
    assert [level_text(1 - 0.05 / count) for count in (1, 3, 5)] == ["95 %", "98.33 %", "99 %"]


def test_a_p_value_is_never_zero():
    assert (p_value_text(0.0), p_value_text(0.00099), p_value_text(0.001)) == ("<0.001", "<0.001", "0.001")
