"""One training to do (configuration, loss and seed), and configurations as TOML: unknown keys are refused."""

from __future__ import annotations

import dataclasses
import shlex
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

import tomli_w

from a2ls._errors import BadInput, did_you_mean, nearest
from a2ls._schema import SCHEMA_KEY, SCHEMA_VERSION, require_readable
from a2ls.space import Loss, find_loss
from a2ls.training._config import TrainConfig
from a2ls.training._presets import DEFAULT_PRESET, preset, preset_for

T = TypeVar("T")

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


NO_LOSS = "none"
_JOB_KEYS = ("loss", "seed", "preset")


@dataclass(frozen=True)
class TrainJob:
    """What `train` is called with, and all that its curve depends on; knows nothing of workers and storages."""

    config: TrainConfig
    loss: Loss | None
    seed: int

    def to_toml(self) -> str:
        """The job as TOML; `read_job` gives it back."""
        about = {SCHEMA_KEY: SCHEMA_VERSION, "loss": loss_text(self.loss), "seed": self.seed}
        return tomli_w.dumps(about | to_mapping(self.config))


def loss_text(loss: Loss | None) -> str:
    """The text form of a loss, or `none`."""
    return NO_LOSS if loss is None else str(loss)


def parse_loss(text: str) -> Loss | None:
    """The loss of this name or text form; None for `none`."""
    return None if text.strip().lower() == NO_LOSS else find_loss(text)


def read_job(path: Path, base: TrainJob | None = None) -> TrainJob:
    """Read a job from a TOML file.

    Besides the fields of `TrainConfig` (`environment` and `agent` are tables) the file may hold `loss`, `seed` and
    `preset`. What it leaves out comes from the preset it names, or else from `base`, or else from `fast`; with pixels
    from that for images.

    Raises:
        BadInput: If the file cannot be read, or has an unknown key or a wrong value.
    """
    try:
        mapping = tomllib.loads(path.read_text())
    except OSError as error:
        raise BadInput(f"cannot read {path}: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BadInput(f"{path} is not valid TOML: {error}") from error
    require_readable(mapping.pop(SCHEMA_KEY, 1), path)
    try:
        return _job(mapping, base or TrainJob(preset(DEFAULT_PRESET), None, 0))
    except BadInput as error:
        raise BadInput(f"{path}: {error}") from error


def _job(mapping: dict[str, Any], base: TrainJob) -> TrainJob:
    config = base.config
    environment = mapping.get("environment", {})
    pixels = environment.get("pixels") is True
    if "preset" in mapping or pixels > config.environment.pixels:
        name = preset_for(mapping.pop("preset", DEFAULT_PRESET), pixels=pixels)
        algorithm = mapping.get("algorithm", config.algorithm)
        config = preset(name, environment.get("env", config.environment.env), algorithm)  # type: ignore[arg-type]
    loss, seed = mapping.pop("loss", loss_text(base.loss)), mapping.pop("seed", base.seed)
    if not isinstance(loss, str):
        raise BadInput(f"loss is {loss!r}, but must be a name, a text form or 'none'")
    if not isinstance(seed, int) or isinstance(seed, bool) or seed < 0:
        raise BadInput(f"seed is {seed!r}, but must be a whole number that is not negative")
    return TrainJob(with_mapping(config, mapping, others=_JOB_KEYS), parse_loss(loss), seed)
