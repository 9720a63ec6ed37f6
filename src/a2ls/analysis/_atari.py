"""What random play and a human score in the 26 games of Atari-100k, and scores on the scale between the two.

The scores are those that the field normalises by (Wang et al., 2016: Dueling network architectures), of episodes that
start with up to 30 steps of doing nothing.
"""

from __future__ import annotations

import csv
from functools import cache
from importlib.resources import files
from typing import NamedTuple

from a2ls._errors import BadInput
from a2ls._statistics import normalised
from a2ls.envs import atari_game


class GameScores(NamedTuple):
    """What the two scores of a game are that others are measured by."""

    random: float
    """Of random play."""
    human: float


def game_scores(env: str) -> GameScores | None:
    """The scores of random play and of a human in a game of Atari-100k, however it is written; None for others."""
    return _table().get(atari_game(env) or "")


def human_normalised(env: str, score: float) -> float:
    """A score in a game of Atari-100k, on the scale on which random play has 0 and a human 1.

    >>> human_normalised("pong", 14.6)
    1.0

    Args:
        env: The short name of the game, or its Gymnasium id: `pong`, `ALE/Pong-v5`.
        score: What an agent has there.

    Raises:
        BadInput: If it is another environment.
    """
    known = game_scores(env)
    if known is None:
        raise BadInput(
            f"{env!r} has no human score to normalise by: allowed are the games of Atari-100k, {', '.join(_table())}"
        )
    return float(normalised(score - known.random, known.human - known.random))


@cache
def _table() -> dict[str, GameScores]:
    text = files("a2ls.analysis").joinpath("data", "atari_scores.csv").read_text(encoding="utf-8")
    return {
        row["game"]: GameScores(float(row["random"]), float(row["human"])) for row in csv.DictReader(text.splitlines())
    }
