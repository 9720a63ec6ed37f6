"""Settings as mappings, as options of the command line, and as words behind the name of a method."""

from __future__ import annotations

import dataclasses
import re
import reprlib
import shlex
import sys
from collections.abc import Iterator, Mapping
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

from a2ls._errors import BadInput, did_you_mean, nearest

T = TypeVar("T")

PRESET = "preset"

_FORMER_NAMES = {
    "initial_steps": "learning_starts",
    "replay_capacity": "buffer_size",
    "discount": "gamma",
    "learning_rate": "lr",
    "predictor_learning_rate": "predictor_lr",
    "encoder_learning_rate": "encoder_lr",
    "temperature_learning_rate": "alpha_lr",
    "initial_temperature": "initial_alpha",
    "population": "population_size",
}
"""What settings were called in version 0.1, whose files and folders are still read."""


def to_mapping(settings: Any) -> dict[str, Any]:
    """The fields of a dataclass, groups as nested mappings."""
    fields = {field.name: getattr(settings, field.name) for field in dataclasses.fields(settings)}
    return {name: to_mapping(value) if dataclasses.is_dataclass(value) else value for name, value in fields.items()}


def with_mapping(settings: T, mapping: Mapping[str, Any], *, group: str = "", others: tuple[str, ...] = ()) -> T:
    """The dataclass with the fields that the mapping names replaced.

    A dataclass whose fields depend on each other may say how, by a method `prepared_for`: given the mapping, it returns
    the dataclass to start from and the mapping to put into it.

    Args:
        settings: The dataclass; its fields may be dataclasses themselves.
        mapping: New values; nested where the field is a dataclass.
        group: Where the settings stand in a larger one, for messages.
        others: Keys that are read elsewhere, to be suggested too.

    Raises:
        BadInput: For an unknown key, naming the nearest known ones, or for a value of the wrong type.
    """
    if not isinstance(mapping, Mapping):  # What is read from a file may be anything.
        raise BadInput(f"{group or 'the settings'} must be a group of settings, but got {_short(mapping)}")
    if hasattr(settings, "prepared_for"):
        settings, mapping = settings.prepared_for(mapping)
    hints = get_type_hints(type(settings))
    changes: dict[str, Any] = {}
    for given, value in mapping.items():
        name = f"{group}.{given}" if group else given
        key = given if given in hints else _FORMER_NAMES.get(given, given)
        if key not in hints:
            allowed = (*others, *hints)
            hint = did_you_mean(nearest(given, allowed)) or f"allowed are {', '.join(allowed)}"
            raise BadInput(f"unknown key {name!r}: {hint}")
        current = getattr(settings, key)
        if not dataclasses.is_dataclass(current):
            changes[key] = _checked(name, value, hints[key])
        elif isinstance(value, Mapping):
            changes[key] = with_mapping(current, value, group=name)
        else:
            raise BadInput(f"{name} is a group of settings, but got {_short(value)}")
    return dataclasses.replace(settings, **changes)  # type: ignore[type-var]


def differences(one: Mapping[str, Any], other: Mapping[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    """What two mappings of a dataclass differ in: the name of each setting, out of its group, and both values.

    The name of the preset does not count: the same settings may come from several.
    """
    for name, value in one.items():
        if name == PRESET:
            continue
        if isinstance(value, Mapping):
            yield from differences(value, other[name])
        elif value != other[name]:
            yield name, value, other[name]


def option_text(name: str, value: Any) -> str:
    """A setting as an option of the command line: `--frame-size 84`, `--pixels`, `--no-shadows`."""
    dashed = "agent" if name == "algorithm" else name.replace("_", "-")
    if isinstance(value, bool):
        return f"--{dashed}" if value else f"--no-{dashed}"
    values = value if isinstance(value, list | tuple) else [value]
    return " ".join((f"--{dashed}", *(shlex.quote(str(each)) for each in values or ["none"])))


# What whoever counts with 64 bits can hold, as PyTorch and SQLite do.
_LARGEST = {int: 2**63 - 1, float: sys.float_info.max}


def _checked(name: str, value: Any, hint: Any) -> Any:
    if get_origin(hint) is Literal:
        if value not in get_args(hint):
            raise BadInput(f"{name} is {_short(value)}, but must be one of {', '.join(map(repr, get_args(hint)))}")
        return value
    if get_origin(hint) is tuple:
        kind = get_args(hint)[0]
        if not isinstance(value, list | tuple) or not all(_is_a(kind, item) for item in value):
            what = "texts" if kind is str else "whole numbers"
            raise BadInput(f"{name} is {_short(value)}, but must be a list of {what}")
        return tuple(value)
    if not _is_a(hint, value):
        raise BadInput(f"{name} is {_short(value)}, but must be of type {getattr(hint, '__name__', hint)}")
    # Compared before it is converted, since the largest whole numbers are no float.
    if hint in _LARGEST and not abs(value) <= _LARGEST[hint]:
        raise BadInput(f"{name} is {_short(value)}, but must be a finite number up to {_LARGEST[hint]:.0e}")
    return float(value) if hint is float else value


def _is_a(kind: type, value: object) -> bool:
    """Whether a value is of a type: a truth is no number, and a whole number is a number."""
    if isinstance(value, bool):
        return kind is bool
    return isinstance(value, int | float if kind is float else kind)


def _short(value: object) -> str:
    """A value in a message, of which nobody wants to read pages."""
    return reprlib.repr(value)


# Settings of one method among others: `a2-winner: encoder_layers=4, predictor=released`

_METHOD = re.compile(r"(?P<base>.*?)\s*:\s*(?P<settings>[A-Za-z][\w-]*\s*=.*)", re.DOTALL)
_TRUTHS = {"true": True, "yes": True, "false": False, "no": False}


def split_method(name: str) -> tuple[str, str]:
    """The name of a method without settings of its own, and these as text; empty if it has none."""
    match = _METHOD.fullmatch(name.strip())
    return (name, "") if match is None else (match["base"], match["settings"])


def parse_settings(text: str, settings: Any, refused: Mapping[str, str]) -> dict[str, Any]:
    """Settings that are written `name=value, name=value`, by name and in the order of the names.

    Args:
        text: What is written.
        settings: The dataclass that they are for; each may be in one of its groups.
        refused: Settings that must not be given, with the reasons.

    Raises:
        BadInput: For an unknown name, naming the nearest known ones, or for a value of the wrong type.
    """
    hints = _flat_hints(settings)
    values: dict[str, Any] = {}
    for part in text.split(","):
        given, equals, value = (piece.strip() for piece in part.partition("="))
        name = given.replace("-", "_")
        if not equals:
            raise BadInput(f"a setting of a method is written name=value, got {part.strip()!r}")
        if name in refused:
            raise BadInput(f"{name} cannot be a setting of one method: {refused[name]}")
        if name not in hints:
            hint = did_you_mean(nearest(name, hints)) or f"allowed are {', '.join(hints)}"
            raise BadInput(f"unknown setting {given!r}: {hint}")
        values[name] = _checked(name, _read(value, hints[name]), hints[name])
    return dict(sorted(values.items()))


def settings_text(values: Mapping[str, Any]) -> str:
    """What `parse_settings` reads."""
    return ", ".join(f"{name}={_written(value)}" for name, value in values.items())


def with_settings(settings: T, values: Mapping[str, Any]) -> T:
    """The dataclass with these values, each in whichever of its groups has it."""
    changes: dict[str, Any] = {}
    for field in dataclasses.fields(settings):  # type: ignore[arg-type]
        current = getattr(settings, field.name)
        if dataclasses.is_dataclass(current):
            changes[field.name] = with_settings(current, values)
        elif field.name in values:
            changes[field.name] = values[field.name]
    return dataclasses.replace(settings, **changes)  # type: ignore[type-var]


def _flat_hints(settings: Any) -> dict[str, Any]:
    """The types of all settings, those in groups included."""
    hints: dict[str, Any] = {}
    for name, hint in get_type_hints(type(settings)).items():
        current = getattr(settings, name)
        hints |= _flat_hints(current) if dataclasses.is_dataclass(current) else {name: hint}
    return hints


def _read(text: str, hint: Any) -> Any:
    """The value that a text means, or the text, which is then of the wrong type."""
    if hint is bool:
        return _TRUTHS.get(text.lower(), text)
    if get_origin(hint) is tuple:
        return [_read(part, get_args(hint)[0]) for part in text.split()]
    try:
        return hint(text) if hint in (int, float) else text
    except ValueError:
        return text


def _written(value: Any) -> str:
    if isinstance(value, tuple):
        return " ".join(map(_written, value))
    return str(value).lower() if isinstance(value, bool) else str(value)
