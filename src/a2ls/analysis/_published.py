"""The scores that the paper has published for DMC, to stand beside our own where the setting is the same.

They are the scores at the end of a training (mean and standard deviation over ten seeds), never an AULC. On images the
paper took all baselines but its image-based SAC over from the CURL paper.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import NamedTuple

from a2ls.envs import paper_task
from a2ls.space import Loss, names_of
from a2ls.training import TrainConfig, differences, preset, split_method, to_mapping

PUBLISHED = "published (paper, mean ± sd of 10 seeds)"
"""What a column of published scores is called."""

# Methods of the tables -> our names for them, where they differ or are no baselines of ours.
_IMAGE_NAMES = {"image-sac": "sac-no-aug", "planet": None, "dreamer": None, "sac+ae": None, "slacv1": None}
_OWN_IMAGE_METHODS = ("a2-winner", "image-sac")
# They say how long and where, not how: the first is compared by itself.
_NOT_THE_AGENT = ("env", "steps", "evaluations", "device")


class PublishedScore(NamedTuple):
    """A score of the paper's tables."""

    mean: float
    sd: float
    cited: bool
    """Whether the paper took it over from the CURL paper."""


@dataclass(frozen=True)
class Published:
    """What the paper says about one setting."""

    scores: Mapping[str, PublishedScore]
    """By the names of our baselines and losses; empty if the setting is not one of the paper's."""
    reason: str = ""
    """Why there are none."""
    differences: tuple[str, ...] = ()
    """In which settings of the agent this is not the paper's: `hidden 256 (paper: 1024)`."""


def published_score(task: str, *, pixels: bool, steps: int, method: str) -> PublishedScore | None:
    """The score of a method of the paper's tables, by the names of the tables; None if it has none.

    Args:
        task: A short name, such as `cheetah-run`.
        pixels: Whether from images.
        steps: Environment steps.
        method: `a2-winner`, `a2-winner-v`, `sac`, `sac-identity` or `curl` for vectors; for images `a2-winner`, `curl`,
            `image-sac`, `planet`, `dreamer`, `sac+ae` or `slacv1`.
    """
    return _table().get((pixels, task), {}).get(steps, {}).get(method)


def published_for(config: TrainConfig) -> Published:
    """The paper's scores that trainings with these settings may be compared with."""
    environment = config.environment
    task = paper_task(environment.env) or environment.env
    kind = "images" if environment.pixels else "vectors"
    by_steps = _table().get((environment.pixels, task))
    if by_steps is None:
        return Published({}, f"no task of the paper's tables for {kind}")
    if config.steps not in by_steps:
        lengths = " or ".join(f"{steps:,}" for steps in sorted(by_steps))
        return Published({}, f"the paper's are after {lengths} steps, these after {config.steps:,}")
    paper = preset("paper-image" if environment.pixels else "paper-vector", task)
    repeat = paper.environment.action_repeat
    if environment.action_repeat != repeat:
        return Published({}, f"the paper's action repeat is {repeat}, here it is {environment.action_repeat}")
    if environment.hidden_share:
        return Published({}, "the paper's agents saw the whole state")
    scores = {_our_name(method, environment.pixels): score for method, score in by_steps[config.steps].items()}
    known = {name: score for name, score in scores.items() if name is not None}
    others = [each for each in differences(to_mapping(config), to_mapping(paper)) if each[0] not in _NOT_THE_AGENT]
    return Published(known, differences=tuple(f"{name} {own} (paper: {papers})" for name, own, papers in others))


def published_name(name: str, loss: Loss | None, scores: Mapping[str, PublishedScore]) -> str | None:
    """Under which name a method is among published scores, if it is."""
    if split_method(name)[1]:
        return None  # With settings of its own it is not the paper's.
    names = (name,) if loss is None else (name, *names_of(loss))
    return next((each for each in names if each in scores), None)


def _our_name(method: str, pixels: bool) -> str | None:
    return _IMAGE_NAMES.get(method, method) if pixels else method


@cache
def _table() -> dict[tuple[bool, str], dict[int, dict[str, PublishedScore]]]:
    """From pixels or not, and task, to steps, to method."""
    table: dict[tuple[bool, str], dict[int, dict[str, PublishedScore]]] = {}
    text = files("a2ls.analysis").joinpath("data", "paper_scores.csv").read_text(encoding="utf-8")
    for row in csv.DictReader(text.splitlines()):
        pixels = row["observation"] == "image"
        cited = pixels and row["method"] not in _OWN_IMAGE_METHODS
        score = PublishedScore(float(row["mean"]), float(row["std"]), cited)
        table.setdefault((pixels, row["task"]), {}).setdefault(int(row["env_steps"]), {})[row["method"]] = score
    return table
