"""One training to do: configuration, loss and seed; and TOML files of it, in which unknown keys are refused."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import tomli_w

from a2ls._errors import BadInput
from a2ls._schema import SCHEMA_KEY, SCHEMA_VERSION, require_readable
from a2ls.space import Loss, find_loss
from a2ls.training._config import TrainConfig
from a2ls.training._presets import DEFAULT_PRESET, preset, preset_for
from a2ls.training._seeds import require_seed
from a2ls.training._settings import PRESET, to_mapping, with_mapping

NO_LOSS = "none"
_JOB_KEYS = ("loss", "seed", PRESET)


@dataclass(frozen=True)
class TrainJob:
    """What `train` is called with, and all that its curve depends on; knows nothing of workers and storages.

    Raises:
        BadInput: If the settings of the agent are not for such a loss, or the seed is too large.
    """

    config: TrainConfig
    loss: Loss | None
    seed: int

    def __post_init__(self) -> None:
        require_seed(self.seed)
        if self.loss is not None:
            self.config.agent.require_loss(self.loss)

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


def read_job(path: str | Path, base: TrainJob | None = None) -> TrainJob:
    """Read a job from a TOML file.

    Besides the fields of `TrainConfig` (`environment` and `agent` are tables) the file may hold `loss`, `seed` and
    `preset`. What it leaves out comes from the preset it names, or else from `base`, or else from `fast`; with pixels
    from that for images.

    Raises:
        BadInput: If the file cannot be read, or has an unknown key or a wrong value.
    """
    path = Path(path)
    try:
        text = path.read_text()
    except OSError as error:
        raise BadInput(f"cannot read {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise BadInput(f"{path} is not valid TOML: {error}") from error
    return job_of(text, path, base or TrainJob(preset(DEFAULT_PRESET), None, 0))


def job_of(text: str, path: Path, base: TrainJob) -> TrainJob:
    """The job that a text says, as `read_job` has it; `path` is where the text comes from, for errors."""
    try:
        mapping = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise BadInput(f"{path} is not valid TOML: {error}") from error
    require_readable(mapping.pop(SCHEMA_KEY, 1), path)
    try:
        return _job(mapping, base)
    except BadInput as error:
        raise BadInput(f"{path}: {error}") from error


def _job(mapping: dict[str, Any], base: TrainJob) -> TrainJob:
    config = base.config
    environment = mapping.get("environment", {})
    if not isinstance(environment, dict):
        raise BadInput(f"environment is a group of settings, but got {environment!r}")
    pixels = environment.get("pixels") is True
    named = mapping.pop(PRESET, None)
    texts = {PRESET: named, "algorithm": mapping.get("algorithm"), "environment.env": environment.get("env")}
    for name, value in texts.items():
        if not isinstance(value, str | None):
            raise BadInput(f"{name} is {value!r}, but must be a text")
    if named or pixels > config.environment.pixels:
        algorithm, env = mapping.get("algorithm", config.algorithm), environment.get("env", config.environment.env)
        name = preset_for(named or DEFAULT_PRESET, env, algorithm, pixels=pixels)
        config = preset(name, env, algorithm)  # type: ignore[arg-type]
    if named == "":
        config = replace(config, preset="")
    loss, seed = mapping.pop("loss", loss_text(base.loss)), mapping.pop("seed", base.seed)
    if not isinstance(loss, str):
        raise BadInput(f"loss is {loss!r}, but must be a name, a text form or 'none'")
    if not isinstance(seed, int) or isinstance(seed, bool) or seed < 0:
        raise BadInput(f"seed is {seed!r}, but must be a whole number that is not negative")
    return TrainJob(with_mapping(config, mapping, others=_JOB_KEYS), parse_loss(loss), seed)
