"""Losses by name (those of Table 1, the paper's winners and its 180 published candidates) or from a file."""

from __future__ import annotations

import csv
import json
import re
import shlex
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

from a2ls._errors import BadInput, did_you_mean, nearest
from a2ls.space._loss import Loss
from a2ls.space._text import has_arrow
from a2ls.space._validity import ANY_HORIZON, MAX_HORIZON, InvalidLoss

_JSON = ".json"


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

    A JSON object may have a `name` and a line `about` the loss too; other keys are ignored, but for those by which the
    winner.json of a cross-validation says that no loss is better than the baseline.

    Raises:
        BadLossFile: If there is no file, or no loss in it.
    """
    content = _read(path).strip()
    values = _read_json(path, content) if path.suffix.lower() == _JSON or content.startswith("{") else None
    if values is None:
        return LossFile(path.stem, _parse(path, content), f"read from {path}")
    text = values.get("loss")
    if text is None and values.get("outcome") == "none":
        raise BadLossFile(_no_loss(path, values))
    if not isinstance(text, str):
        raise BadLossFile(f'{path} has no loss: a key "loss" with a text form such as "s0 a0 -> s1" is expected')
    name, about = (values.get(key) for key in ("name", "about"))
    return LossFile(
        name if isinstance(name, str) else path.stem,
        _parse(path, text),
        about if isinstance(about, str) else f"read from {path}",
    )


def _no_loss(path: Path, values: dict[str, Any]) -> str:
    """What a cross-validation said that found no loss to train with, and what to do."""
    folder = shlex.quote(str(path.parent))
    environments, seeds, losses = (values.get(key) or [] for key in ("environments", "seeds", "losses"))
    more = f"--top {max(10, 2 * len(losses))} --seeds {max(10, 2 * len(seeds))}"
    where = f" --env {shlex.join(environments)}" if environments else ""
    return (
        f"{path} has no loss. Its cross-validation on {', '.join(environments)} with the seeds "
        f"{', '.join(map(str, seeds))} says: {values.get('verdict', 'no loss is better.')} Next, try more losses and "
        f"seeds (a2ls validate {folder} {more}{where}) or a longer search (a2ls search --resume {folder} --stages N)"
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
    except (json.JSONDecodeError, RecursionError) as error:
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
        return Loss.parse(text, ANY_HORIZON)  # Whoever asks for the loss checks its horizon: not all allow the same.
    except InvalidLoss as error:
        raise BadLossFile(f"{path}: {error}") from error


_DEFAULT_ATC_HORIZON = 3
_DEFAULT_SPR_HORIZON = 5  # the prediction depth of the SPR paper


class NamedLoss(NamedTuple):
    """A loss of the zoo."""

    name: str
    loss: Loss
    about: str


class UnknownLoss(BadInput):
    """A name that no loss has.

    Attributes:
        name: What was asked for.
        suggestions: The nearest names, possibly none.
    """

    def __init__(self, name: str, suggestions: tuple[str, ...] = ()) -> None:
        # Both go to the base class, so that the error can be pickled back from a worker process.
        super().__init__(name, suggestions)
        self.name = name
        self.suggestions = suggestions

    def __str__(self) -> str:
        known = "known are " + ", ".join(entry.name for entry in _handmade())
        hint = did_you_mean(self.suggestions) or f"{known}; a loss in text form has an arrow, s0 a0 -> s1"
        return f"there is no loss named {self.name!r}; {hint}"


def named_loss(name: str) -> Loss:
    """The loss of the zoo with this name, or else in the file of this path; case does not matter, nor `_` for `-`.

    Besides the losses of Table 1 and the winners there are `atc-k` and `spr-k` for k in 1..10 (`atc` is
    `atc-3`, `spr` is `spr-5`), and the best five candidates of each stage of the paper's evolutions, named by
    task and observation, stage and rank: `cheetah-run-image/stage5/3`. A file holds a JSON object with a `loss` in text
    form, as the winner.json of a cross-validation does, or nothing but the text form; a name of the zoo goes first.

    Example:
        >>> print(named_loss("a2-winner"))
        s1 a1 a2 a3 -> r0 r1 s2 s3

    Raises:
        UnknownLoss: With the nearest names.
        BadLossFile: If it is a file without a loss, or the path of a .json file that does not exist.
    """
    return _entry(name).loss


def describe(name: str) -> str:
    """One line about a named loss."""
    return _entry(name).about


def named_losses() -> dict[str, Loss]:
    """All losses of the zoo by name.

    Example:
        >>> print(named_losses()["action-inference"])
        s0 s1 -> a0
    """
    return {entry.name: entry.loss for entry in zoo()}


def names_of(loss: Loss) -> tuple[str, ...]:
    """All names in the zoo of this loss, or of one that means the same (has the same canonical form)."""
    return _names_by_canonical_form().get(loss.canonical(), ())


def find_loss(text: str, max_horizon: int = MAX_HORIZON) -> Loss:
    """The valid loss that a user means: the text form of a loss if it has an arrow, a name of the zoo, or a file.

    Raises:
        UnknownLoss: If it is none of them; with the nearest names.
        BadLossFile: If it is a file without a loss, or the path of a .json file that does not exist.
        InvalidLoss: If the text has an arrow but is not valid, or the named loss is too long.

    Example:
        >>> find_loss("s0 a0 -> s1") == find_loss("forward-dynamics")
        True
    """
    if has_arrow(text):
        return Loss.parse(text, max_horizon)
    loss = named_loss(text)
    problems = loss.problems(max_horizon)
    if problems:
        raise InvalidLoss(text, problems)
    return loss


@cache
def zoo() -> tuple[NamedLoss, ...]:
    """All named losses, each with a line about it."""
    return (*_handmade(), *_families(), *_published())


@cache
def _by_name() -> dict[str, NamedLoss]:
    return {entry.name: entry for entry in zoo()}


@cache
def _names_by_canonical_form() -> dict[Loss, tuple[str, ...]]:
    names: dict[Loss, tuple[str, ...]] = {}
    for entry in zoo():
        form = entry.loss.canonical()
        names[form] = (*names.get(form, ()), entry.name)
    return names


def _entry(name: str) -> NamedLoss:
    wanted = re.sub(r"[\s_]+", "-", name.strip().lower())
    try:
        return _by_name()[wanted]
    except KeyError:
        if means_file(name):
            return NamedLoss(*read_loss_file(Path(name.strip())))
        raise UnknownLoss(name, nearest(wanted, _by_name())) from None


@cache
def _handmade() -> tuple[NamedLoss, ...]:
    return (
        # Table 1 of the paper.
        _named("forward-dynamics", "s0 a0 -> s1", "the next state from state and action"),
        _named("inverse-dynamics", "a0 s1 -> s0", "the state from the action taken and the next state"),
        _named("reward-prediction", "s0 a0 -> r0", "the reward from state and action"),
        _named("action-inference", "s0 s1 -> a0", "the action between two states"),
        # Table 1 gives the similarity only. CURL and ATC are contrastive: their InfoNCE needs the negatives. CURL has
        # no predictor, in its own paper as in appendix B of this one: g(s) W g'(s).
        _named(
            "curl",
            "s0 -> s0 | bilinear +neg | no predictor",
            "CURL: two views of one state against those of others",
        ),
        NamedLoss(
            "atc",
            _atc(_DEFAULT_ATC_HORIZON),
            f"ATC: the next states, contrasted with those of others; atc-1 to atc-{MAX_HORIZON} for other k",
        ),
        NamedLoss(
            "spr",
            _spr(_DEFAULT_SPR_HORIZON),
            f"SPR: the next states from state and actions; spr-1 to spr-{MAX_HORIZON} for other k",
        ),
        # Section 6 has this one as a pattern.
        _named("state-reconstruction", "s0 -> s0", "the state from itself, in the latent space"),
        # Section 4.2 calls A2-winner a candidate of stage 5 and appendix F the third of stage 4. The table of
        # appendix F has it as the third of stage 5, and that is the stage of the cross-validation.
        _named(
            "a2-winner",
            "s1 a1 a2 a3 -> r0 r1 s2 s3",
            "the paper's result on images, cheetah-run-image/stage5/3",
        ),
        _named(
            "a2-winner-released",
            "s0 a0 r0 a1 r1 a2 a3 r3 -> s1 s2 s3 s4",
            "what the readme of the authors' code calls A2-winner; not the loss of the paper",
        ),
        _named(
            "a2-winner-v",
            "s0 a0 a1 s2 a2 a3 r3 a4 r4 a5 a7 s8 a8 r8 -> s1 s3 a4 s6 s9",
            "the paper's result on vectors, cheetah-run-vector/stage4/4",
        ),
    )


def _named(name: str, text: str, about: str) -> NamedLoss:
    return NamedLoss(name, Loss.parse(text), about)


def _families() -> tuple[NamedLoss, ...]:
    horizons = range(1, MAX_HORIZON + 1)
    return (
        *(NamedLoss(f"atc-{k}", _atc(k), f"ATC: the next {k} states, contrasted") for k in horizons),
        *(NamedLoss(f"spr-{k}", _spr(k), f"SPR: the next {k} states from the actions") for k in horizons),
    )


def _atc(k: int) -> Loss:
    return Loss.parse(f"s0 -> {_steps('s', 1, k)} | bilinear +neg")


def _spr(k: int) -> Loss:
    return Loss.parse(f"s0 {_steps('a', 0, k - 1)} -> {_steps('s', 1, k)} | nmse")


def _steps(kind: str, first: int, last: int) -> str:
    return " ".join(f"{kind}{step}" for step in range(first, last + 1))


def _published() -> tuple[NamedLoss, ...]:
    """The tables of appendix F: the best five candidates of each stage of six evolutions."""
    table = files("a2ls.space").joinpath("data", "top_losses.csv").read_text(encoding="utf-8")
    return tuple(_published_loss(row) for row in csv.DictReader(table.splitlines()))


def _published_loss(row: dict[str, str]) -> NamedLoss:
    # The paper prints no horizon, so the shortest that holds the elements is taken.
    loss = Loss.parse(f"{row['source']} -> {row['target']} @{row['min_horizon']}")
    about = f"rank {row['rank']} in stage {row['stage']} of the search on {row['task']} ({row['observation']})"
    if row["used_for_cross_validation"] == "True":
        about += ", cross-validated"
    if row["name"]:
        about += f": {row['name']}"
    name = f"{row['task']}-{row['observation']}/stage{row['stage']}/{row['rank']}"
    return NamedLoss(name, loss, about)
