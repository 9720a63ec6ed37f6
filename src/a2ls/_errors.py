"""The one kind of error that a user's input can cause."""

from __future__ import annotations


class BadInput(ValueError):
    """Something the user gave is not allowed. The message says what, its value, and what is allowed."""
