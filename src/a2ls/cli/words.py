"""Words that several commands use: numbers and times for people, and lines to be copied."""

from __future__ import annotations

from rich.console import Console


def duration(seconds: float) -> str:
    """A time that people can read at a glance."""
    if seconds < 99.5:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 100 else f"{minutes // 60} h {minutes % 60:02} min"


def count_of(number: int, noun: str) -> str:
    """A number and its noun: `1 stage`, `2 stages`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def say(console: Console, text: str) -> None:
    """A line as it stands, to be copied."""
    console.print(text, highlight=False, markup=False, soft_wrap=True)
