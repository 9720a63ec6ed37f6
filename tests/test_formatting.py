import math

import pytest

from a2ls._formatting import (
    count_of,
    duration,
    harmless,
    interval_text,
    level_text,
    number_text,
    p_value_text,
    without_password,
)
from a2ls._statistics import Interval


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.4, "0 s"), (61, "61 s"), (300, "5 min"), (5400, "90 min"), (7500, "2 h 05 min"), (math.nan, "-")],
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


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://me:hush@there:5432/x", "postgresql://me:***@there:5432/x"),
        ("postgresql+psycopg2://me:a%40b/c@d@there/x", "postgresql+psycopg2://me:***@there/x"),
        ("redis://:hush@there", "redis://:***@there"),
        ("mysql://there/x?user=me&password=hush&ssl=1", "mysql://there/x?user=me&password=***&ssl=1"),
        ("postgresql://me@there:5432/x", "postgresql://me@there:5432/x"),
        ("sqlite:////data/a@b:c.db", "sqlite:////data/a@b:c.db"),
        ("no URL", "no URL"),
    ],
)
def test_a_storage_is_shown_without_its_password(url, shown):
    assert without_password(url) == shown


def test_errors_of_others_are_shown_without_the_password():
    url = "postgresql://me:a%20b@there/x"
    assert without_password(url, f"cannot open {url} by 'a b'") == "cannot open postgresql://me:***@there/x by '***'"


def test_what_a_terminal_obeys_is_shown_by_its_number():
    assert harmless("a\x1b[2J\r\x07\x9b\u202e\udcff") == r"a\x1b[2J\r\x07\x9b\u202e\udcff"
    text = "two lines\nof Zürich → 東京 ±\u00a01"
    assert harmless(text) == text
