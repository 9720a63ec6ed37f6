"""Configurations as TOML: every field by its name, groups as tables, unknown keys refused with the nearest known."""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Iterator, Mapping
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

from a2ls._errors import BadInput
from a2ls._suggest import did_you_mean, nearest

T = TypeVar("T")


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
    if hasattr(settings, "prepared_for"):
        settings, mapping = settings.prepared_for(mapping)
    hints = get_type_hints(type(settings))
    changes: dict[str, Any] = {}
    for key, value in mapping.items():
        name = f"{group}.{key}" if group else key
        if key not in hints:
            allowed = (*others, *hints)
            hint = did_you_mean(nearest(key, allowed)) or f"allowed are {', '.join(allowed)}"
            raise BadInput(f"unknown key {name!r}: {hint}")
        current = getattr(settings, key)
        if not dataclasses.is_dataclass(current):
            changes[key] = _checked(name, value, hints[key])
        elif isinstance(value, Mapping):
            changes[key] = with_mapping(current, value, group=name)
        else:
            raise BadInput(f"{name} is a group of settings, but got {value!r}")
    return dataclasses.replace(settings, **changes)  # type: ignore[type-var]


def differences(one: Mapping[str, Any], other: Mapping[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    """What two mappings of a dataclass differ in: the name of each setting, out of its group, and both values."""
    for name, value in one.items():
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


def _checked(name: str, value: Any, hint: Any) -> Any:
    if get_origin(hint) is Literal:
        if value not in get_args(hint):
            raise BadInput(f"{name} is {value!r}, but must be one of {', '.join(map(repr, get_args(hint)))}")
        return value
    if get_origin(hint) is tuple:
        if not isinstance(value, list | tuple) or not all(isinstance(item, str) for item in value):
            raise BadInput(f"{name} is {value!r}, but must be a list of texts")
        return tuple(value)
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if not isinstance(value, hint) or (isinstance(value, bool) and hint is not bool):
        raise BadInput(f"{name} is {value!r}, but must be of type {hint.__name__}")
    return value
