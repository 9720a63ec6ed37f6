"""The command line: composes the other packages, with no logic of its own."""

from a2ls.cli._main import main

__all__ = ["main"]
