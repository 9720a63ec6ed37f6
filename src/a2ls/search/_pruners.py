"""Optuna's pruners by name."""

from __future__ import annotations

import ast
import re

import optuna
from optuna.pruners import BasePruner, NopPruner

from a2ls._errors import BadInput
from a2ls._suggest import did_you_mean, nearest

NO_PRUNER = "none"


def make_pruner(text: str) -> BasePruner:
    """The pruner that a text names: `median`, `hyperband`, `percentile:percentile=25,n_startup_trials=8`.

    Raises:
        BadInput: For an unknown name, or options that the pruner does not take.
    """
    name, _, options = text.partition(":")
    known = _known_pruners()
    name = name.strip().lower()
    if name == NO_PRUNER:
        return NopPruner()
    if name not in known:
        allowed = (NO_PRUNER, *known)
        hint = did_you_mean(nearest(name, allowed)) or f"allowed are {', '.join(allowed)}"
        raise BadInput(f"there is no pruner {name!r}: {hint}")
    try:
        return known[name](**_options(options))
    except (TypeError, ValueError) as error:
        raise BadInput(f"the pruner {text!r} cannot be made: {error}") from error


def _known_pruners() -> dict[str, type[BasePruner]]:
    """By their names in lower case with hyphens, without the word pruner; those that wrap others are left out."""
    names = (name for name in optuna.pruners.__all__ if name not in ("BasePruner", "NopPruner", "PatientPruner"))
    return {_hyphenated(name.removesuffix("Pruner")): getattr(optuna.pruners, name) for name in names}


def _hyphenated(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "-", name).lower()


def _options(text: str) -> dict[str, object]:
    options: dict[str, object] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        key, equals, value = part.partition("=")
        if not equals:
            raise BadInput(f"an option of a pruner is written name=value, got {part!r}")
        try:
            options[key.strip()] = ast.literal_eval(value.strip())
        except (ValueError, SyntaxError):
            options[key.strip()] = value.strip()
    return options
