"""Failures that the user is told about in one line."""

from __future__ import annotations


class Failure(Exception):
    """A command could not do what it was asked, although its input was fine; the message says why."""
