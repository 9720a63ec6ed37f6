"""Numbers and words as people read them, the same in terminals, pages and figures."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import NamedTuple
from urllib.parse import unquote, unquote_plus

UNKNOWN = "-"
"""What stands where there is no number."""


def number_text(value: float | None, digits: int = 1, *, sign: bool = False) -> str:
    """A number, or what stands for one that is None or not finite.

    Args:
        value: The number.
        digits: Behind the point.
        sign: Whether a plus is shown.
    """
    if value is None or not math.isfinite(value):
        return UNKNOWN
    return f"{value:{'+' if sign else ''}.{digits}f}"


def interval_text(interval: Sequence[float] | None, digits: int = 1) -> str:
    """The two ends of an interval; None where there are too few seeds for one."""
    return UNKNOWN if interval is None else " to ".join(f"{end:.{digits}f}" for end in interval)


class Unit(NamedTuple):
    """What scores are measured in."""

    name: str
    digits: int
    """Behind the point."""

    def text(self, value: float | None) -> str:
        """A score, or what stands for one that is not there."""
        return number_text(value, self.digits)

    def range_text(self, interval: Sequence[float] | None) -> str:
        """The interval of a score, or what stands for one that is not there."""
        return interval_text(interval, self.digits)

    def estimate_text(self, value: float, interval: Sequence[float] | None) -> str:
        """A score with its interval, if it has one: `1.32 [1.05, 1.60]`."""
        if interval is None:
            return self.text(value)
        return f"{self.text(value)} [{', '.join(map(self.text, interval))}]"


AULC = Unit("AULC", 1)
"""In one environment."""
RELATIVE_AULC = Unit("relative AULC", 2)
"""In several: relative to that of the plain agent, which is 1."""


def level_text(level: float) -> str:
    """The level of an interval: `95 %`, `98.33 %`."""
    return f"{100 * level:.4g} %"


def p_value_text(p: float | None) -> str:
    """The p of a test; None where there was none."""
    return "<0.001" if p is not None and p < 0.001 else number_text(p, 3)


def duration(seconds: float) -> str:
    """A time that people can read at a glance."""
    if not math.isfinite(seconds):
        return UNKNOWN
    if seconds < 99.5:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 100 else f"{minutes // 60} h {minutes % 60:02} min"


def count_of(number: int, noun: str, plural: str = "") -> str:
    """A number and its noun: `1 stage`, `1,200 stages`; the plural is that with an s if it is not given."""
    return f"{number:,} {noun if number == 1 else plural or f'{noun}s'}"


def harmless(text: str) -> str:
    r"""A text with every character that a terminal obeys or hides, and does not show, by its number: `\x1b`.

    Texts come from folders and files of strangers. Lines stay lines.
    """
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() or each in _SHOWN else _number(each) for each in text)


# Not printable by Unicode, but by every terminal.
_SHOWN = "\n\t\u00a0"


def _number(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")


# A password may hold what ends one, written by who did not know: all up to the last @ is masked.
_PASSWORD = re.compile(r"://[^:/@\s]*:(?P<password>.*)@", re.DOTALL)
_PASSWORD_OPTION = re.compile(r"[?&][^=&]*(?:pass|pwd)[^=&]*=(?P<password>[^&#\s]+)", re.IGNORECASE)


def without_password(url: str, text: str | None = None) -> str:
    """The URL of a storage as it may be shown; or a text about it, such as an error of others.

    Args:
        url: The URL, with a password or not.
        text: Where it may stand, whole or its password alone; the URL itself if not given.
    """
    shown = url if text is None else text
    for found in (pattern.search(url) for pattern in (_PASSWORD, _PASSWORD_OPTION)):
        if found is not None and found["password"]:
            # Also as whoever read the URL understood it.
            for password in (found["password"], unquote(found["password"]), unquote_plus(found["password"])):
                shown = shown.replace(password, "***")
    return shown
