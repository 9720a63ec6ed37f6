"""Losses in files: what a cross-validation writes, or a line of text that a person wrote."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

from a2ls._errors import BadInput
from a2ls.space._loss import Loss
from a2ls.space._text import has_arrow
from a2ls.space._validity import InvalidLoss

_JSON = ".json"
# Whoever asks for the loss checks its horizon: not all allow the same.
_ANY_HORIZON = 10**6


class BadLossFile(BadInput):
    """A file that cannot be read as a loss. The message has its name and what is wrong."""


class LossFile(NamedTuple):
    """What a file says."""

    name: str
    loss: Loss
    about: str


def means_file(text: str) -> bool:
    """Whether a text that is no known name and no loss means a file: there is one, or it ends in .json."""
    try:
        return text.strip().lower().endswith(_JSON) or Path(text.strip()).is_file()
    except OSError:  # Too long for a path.
        return False


def read_loss_file(path: Path) -> LossFile:
    """Read the loss in a file: a JSON object with a `loss` in text form, or nothing but the text form.

    A JSON object may have a `name` and a line `about` the loss too; other keys are ignored.

    Raises:
        BadLossFile: If there is no file, or no loss in it.
    """
    content = _read(path).strip()
    values = _read_json(path, content) if path.suffix.lower() == _JSON or content.startswith("{") else None
    if values is None:
        return LossFile(path.stem, _parse(path, content), f"read from {path}")
    text = values.get("loss")
    if not isinstance(text, str):
        raise BadLossFile(f'{path} has no loss: a key "loss" with a text form such as "s0 a0 -> s1" is expected')
    name, about = (values.get(key) for key in ("name", "about"))
    return LossFile(
        name if isinstance(name, str) else path.stem,
        _parse(path, text),
        about if isinstance(about, str) else f"read from {path}",
    )


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise BadLossFile(f"cannot read {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise BadLossFile(f"{path} is not a text file, but must hold a loss as text or JSON") from error


def _read_json(path: Path, content: str) -> dict[str, Any] | None:
    """The object in a JSON file; None for a loss in the paper's notation, which begins with a brace too."""
    try:
        values = json.loads(content)
    except json.JSONDecodeError as error:
        if path.suffix.lower() != _JSON and has_arrow(content):
            return None
        raise BadLossFile(f"{path} is not valid JSON: {error}") from error
    if not isinstance(values, dict):
        raise BadLossFile(f'{path} holds no JSON object: {{"loss": "s0 a0 -> s1"}} is expected')
    return values


def _parse(path: Path, text: str) -> Loss:
    lines = len(text.splitlines())
    if lines != 1:
        raise BadLossFile(f"{path} has {lines} lines, but one loss in text form is expected, such as s0 a0 -> s1")
    try:
        return Loss.parse(text, _ANY_HORIZON)
    except InvalidLoss as error:
        raise BadLossFile(f"{path}: {error}") from error
