"""The scores that the paper has published for DMC and Atari, to stand beside our own.

They are the scores at the end of a training, never an AULC. On DMC they are mean and standard deviation over ten seeds
of each task, and are shown where the setting is the same; on images the paper took all baselines but its image-based
SAC over from the CURL paper. On Atari there are only the mean and the median over all 26 games, human-normalised; all
but that of A2-winner are of methods of others, and the paper does not say which tables it has them from.
"""

from __future__ import annotations

import csv
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import NamedTuple

from a2ls._formatting import UNKNOWN, count_of
from a2ls.envs import ATARI_GAMES, is_atari, paper_task
from a2ls.space import Loss, names_of
from a2ls.training import TrainConfig, differences, preset, split_method, to_mapping

PUBLISHED = "published (paper, mean ± sd of 10 seeds)"
"""What a column of published scores is called."""
PUBLISHED_AGGREGATE = "published (paper)"
"""What a column of published means or medians over games is called."""
CITED = " †"
"""What stands behind a score that the paper has from others."""
PAPER_ATARI_FRAMES = 400_000
"""After how many env steps the paper's scores on Atari are: 100,000 agent steps."""

# Methods of the tables -> our names for them, where they differ or are no baselines of ours.
_IMAGE_NAMES = {"image-sac": "sac-no-aug", "planet": None, "dreamer": None, "sac+ae": None, "slacv1": None}
_OWN_IMAGE_METHODS = ("a2-winner", "image-sac")
_ATARI_NAMES = {"A2-winner": "a2-winner", "CURL": "curl", "Eff. Rainbow": "rainbow", "SPR": "spr"}
_OWN_ATARI_METHOD = "A2-winner"
# They say how long and where, not how: the first is compared by itself.
_NOT_THE_AGENT = ("env", "steps", "evaluations", "device")


class PublishedScore(NamedTuple):
    """A score of the paper's tables."""

    mean: float
    sd: float
    cited: bool
    """Whether the paper took it over from the CURL paper."""

    @property
    def text(self) -> str:
        """As it is shown in tables."""
        return f"{self.mean:.0f} ± {self.sd:.0f}{CITED if self.cited else ''}"


@dataclass(frozen=True)
class Published:
    """What the paper says about one setting."""

    scores: Mapping[str, PublishedScore]
    """By the names of our baselines and losses; empty if the setting is not one of the paper's."""
    reason: str = ""
    """Why there are none."""
    differences: tuple[str, ...] = ()
    """In which settings of the agent this is not the paper's: `hidden 256 (paper: 1024)`."""


class PublishedAggregate(NamedTuple):
    """What a method has over all 26 games of Atari-100k, in a table of the paper: human-normalised scores."""

    mean: float
    median: float
    cited: bool
    """Whether it is of another paper."""


@dataclass(frozen=True)
class PublishedOverGames:
    """What the paper says of all games together, to stand beside a comparison in some of them."""

    aggregates: Mapping[str, PublishedAggregate]
    """By the names of our baselines and losses; what is none of them has the name that the paper has for it."""
    differences: tuple[str, ...] = ()
    """In what the comparison is of another setting: `2 games (paper: 26)`."""


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
    if is_atari(environment.env):
        return Published({}, "the paper has no scores of single games")
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


def published_over_games(configs: Mapping[str, TrainConfig]) -> PublishedOverGames:
    """The paper's means and medians over all games, and in what trainings with these settings are otherwise.

    Args:
        configs: The settings in each game, by its short name.
    """
    all_games = len(ATARI_GAMES)
    games = [] if len(configs) == all_games else [f"{count_of(len(configs), 'game')} (paper: {all_games})"]
    others = dict.fromkeys(text for game, config in configs.items() for text in _unlike_atari_100k(game, config))
    return PublishedOverGames(_atari_table(), (*games, *others))


def _unlike_atari_100k(game: str, config: TrainConfig) -> Iterator[str]:
    """In which settings a training is not one of the paper's."""
    paper = preset("atari-100k", game)
    agent = config.algorithm.rpartition(":")[2]
    if agent != paper.algorithm:
        yield f"agent {agent} (paper: {paper.algorithm})"
        paper = paper.with_agent(config.algorithm, config.agent)
    if config.steps != paper.steps:
        yield f"steps {config.steps:,} (paper: {paper.steps:,})"
    for name, own, papers in differences(to_mapping(config), to_mapping(paper)):
        if name not in (*_NOT_THE_AGENT, "algorithm", "preset"):
            yield f"{name} {own} (paper: {papers})"


def published_texts(published: PublishedAggregate | None) -> tuple[str, str]:
    """Mean and median over games as they are shown, or what stands where there are none."""
    if published is None:
        return UNKNOWN, UNKNOWN
    mark = CITED if published.cited else ""
    return f"{published.mean:.3f}{mark}", f"{published.median:.3f}{mark}"


def published_name(name: str, loss: Loss | None, published: Collection[str]) -> str | None:
    """Under which name a method is among those of published scores, if it is."""
    if split_method(name)[1]:
        return None  # With settings of its own it is not the paper's.
    names = (name,) if loss is None else (name, *names_of(loss))
    return next((each for each in names if each in published), None)


def _our_name(method: str, pixels: bool) -> str | None:
    return _IMAGE_NAMES.get(method, method) if pixels else method


@cache
def _table() -> dict[tuple[bool, str], dict[int, dict[str, PublishedScore]]]:
    """From pixels or not, and task, to steps, to method."""
    table: dict[tuple[bool, str], dict[int, dict[str, PublishedScore]]] = {}
    for row in _rows("paper_scores.csv"):
        pixels = row["observation"] == "image"
        cited = pixels and row["method"] not in _OWN_IMAGE_METHODS
        score = PublishedScore(float(row["mean"]), float(row["std"]), cited)
        table.setdefault((pixels, row["task"]), {}).setdefault(int(row["env_steps"]), {})[row["method"]] = score
    return table


@cache
def _atari_table() -> dict[str, PublishedAggregate]:
    """By our names for the methods, where we have them."""
    return {
        _ATARI_NAMES.get(row["method"], row["method"]): PublishedAggregate(
            float(row["mean"]), float(row["median"]), row["method"] != _OWN_ATARI_METHOD
        )
        for row in _rows("paper_atari_aggregates.csv")
    }


def _rows(file: str) -> list[dict[str, str]]:
    text = files("a2ls.analysis").joinpath("data", file).read_text(encoding="utf-8")
    return [*csv.DictReader(text.splitlines())]
