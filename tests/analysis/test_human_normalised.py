"""Scores of Atari games on the scale of random play and a human."""

import numpy as np
import pytest

from a2ls._errors import BadInput
from a2ls.analysis import human_normalised
from a2ls.analysis._atari import game_scores
from a2ls.envs import ATARI_GAMES

# The scores of CURL in each game, as its authors report them, in the order of the games' names.
CURL = (
    *(558.2, 142.1, 600.6, 734.5, 131.6, 14870.0, 1.2, 4.9, 1058.5, 12146.5, 817.6, 26.7, 1181.3),
    *(669.3, 6279.3, 471.0, 872.5, 4229.6, 14307.8, 1465.5, -16.5, 218.4, 1042.4, 5661.0, 384.5, 2955.2),
)


def test_what_is_reported_of_curl_comes_out():
    """All 26 pairs of scores at once: the mean and the median that are published of these scores."""
    scores = [human_normalised(game, score) for game, score in zip(ATARI_GAMES, CURL, strict=True)]
    assert round(float(np.mean(scores)), 3) == 0.381
    assert round(float(np.median(scores)), 3) == 0.175


def test_random_play_is_0_and_a_human_1_in_each_game():
    for name in (*ATARI_GAMES, *ATARI_GAMES.values()):
        known = game_scores(name)
        assert (human_normalised(name, known.random), human_normalised(name, known.human)) == (0.0, 1.0)
        assert known.random < known.human
    assert human_normalised("Pong", -21) == pytest.approx(-0.3 / 35.3)
    assert human_normalised("up_n_down", 533.4 + 2 * 11159.8) == pytest.approx(2)


@pytest.mark.parametrize("env", ["cheetah-run", "ALE/Zaxxon-v5", ""])
def test_other_environments_are_refused_with_what_is_allowed(env):
    with pytest.raises(BadInput, match=rf"{env!r} has no human score .* allowed are .* Atari-100k, alien, .*up-n-down"):
        human_normalised(env, 1.0)
