"""The paper's scores: beside which trainings they may stand."""

from collections import Counter
from dataclasses import replace

import pytest

from a2ls.analysis import published_for, published_over_games, published_score
from a2ls.analysis._published import _table, published_name
from a2ls.envs import ATARI_GAMES, PAPER_TASKS, EnvironmentConfig
from a2ls.space import named_loss
from a2ls.training import baseline_names, in_environment, preset, with_settings

VECTOR = replace(preset("paper-vector", "cheetah-run"), steps=100_000)
IMAGE = preset("paper-image", "walker-walk")


@pytest.mark.parametrize(
    ("setting", "mean", "sd"),
    [
        # Read off the tables of the paper by eye.
        (("cheetah-run", False, 100_000, "a2-winner"), 529, 76),
        (("cheetah-run", False, 100_000, "sac"), 172, 29),
        (("hopper-stand", False, 100_000, "a2-winner-v"), 311, 177),
        (("finger-turn-hard", False, 100_000, "sac-identity"), 347, 150),
        (("quadruped-run", False, 1_000_000, "a2-winner-v"), 863, 50),
        (("quadruped-run", False, 1_000_000, "a2-winner"), 838, 58),
        (("humanoid-run", False, 1_000_000, "curl"), 1, 0),
        (("cheetah-run", True, 500_000, "a2-winner"), 613, 39),
        (("cheetah-run", True, 100_000, "image-sac"), 128, 12),
        (("cartpole-swingup", True, 100_000, "dreamer"), 326, 27),
        (("ball-in-cup-catch", True, 500_000, "slacv1"), 852, 71),
    ],
)
def test_scores_are_those_of_the_paper(setting, mean, sd):
    task, pixels, steps, method = setting
    score = published_score(task, pixels=pixels, steps=steps, method=method)
    assert (score.mean, score.sd) == (mean, sd)


def test_there_is_nothing_where_the_paper_has_nothing():
    assert published_score("cheetah-run", pixels=False, steps=500_000, method="sac") is None
    assert published_score("reacher-easy", pixels=True, steps=100_000, method="slacv1") is None
    assert published_score("dog-run", pixels=True, steps=100_000, method="curl") is None


def test_the_tables_are_complete():
    sizes = Counter()
    for (pixels, task), by_steps in _table().items():
        assert task in PAPER_TASKS
        for steps, scores in by_steps.items():
            sizes[pixels, steps] += len(scores)
            assert all(0 <= score.mean <= 1000 and score.sd >= 0 for score in scores.values())
    assert sizes == {(True, 100_000): 40, (True, 500_000): 40, (False, 100_000): 60, (False, 1_000_000): 30}


def test_the_setting_of_the_paper_has_scores_under_our_names():
    published = published_for(VECTOR)
    assert set(published.scores) == {"a2-winner", "a2-winner-v", "sac", "sac-identity", "curl"}
    assert not any(score.cited for score in published.scores.values())
    assert (published.reason, published.differences) == ("", ())
    written_otherwise = replace(VECTOR, environment=EnvironmentConfig("dm_control/cheetah-run-v0"))
    assert published_for(written_otherwise).scores == published.scores


@pytest.mark.parametrize("steps", [100_000, 500_000])
def test_on_images_most_baselines_are_cited(steps):
    published = published_for(replace(IMAGE, steps=steps))
    cited = {name: score.cited for name, score in published.scores.items()}
    assert cited == {"a2-winner": False, "sac-no-aug": False, "curl": True}
    assert set(cited) - {"a2-winner"} <= set(baseline_names())


@pytest.mark.parametrize(
    ("config", "words"),
    [
        (replace(VECTOR, steps=40_000), "the paper's are after 100,000 steps, these after 40,000"),
        (replace(IMAGE, steps=40_000), "the paper's are after 100,000 or 500,000 steps, these after 40,000"),
        (replace(VECTOR, environment=EnvironmentConfig(action_repeat=2)), "action repeat is 4, here it is 2"),
        (replace(IMAGE, environment=replace(IMAGE.environment, action_repeat=4)), "action repeat is 2, here it is 4"),
        (replace(VECTOR, environment=EnvironmentConfig(hidden_share=0.2)), "saw the whole state"),
        (replace(VECTOR, environment=EnvironmentConfig("Pendulum-v1")), "no task of the paper's tables for vectors"),
        (in_environment(IMAGE, "hopper-hop"), "no task of the paper's tables for images"),
        (preset("fast", "pong"), "the paper has no scores of single games"),
        (preset("fast-image", "ALE/Zaxxon-v5"), "the paper has no scores of single games"),
    ],
)
def test_another_setting_has_none_and_says_why(config, words):
    published = published_for(config)
    assert published.scores == {}
    assert words in published.reason


def test_where_the_agent_is_another_one_it_is_said():
    fast = replace(preset("fast", "cheetah-run"), steps=100_000, evaluations=7, device="cuda")
    differences = published_for(fast).differences
    assert "hidden 256 (paper: 1024)" in differences
    assert "batch_size 128 (paper: 512)" in differences
    assert not any(each.startswith(("evaluations", "steps", "device", "env ")) for each in differences)


def test_methods_are_found_by_all_of_their_names():
    scores = published_for(VECTOR).scores
    winner = named_loss("a2-winner")
    assert published_name(str(winner.canonical()), winner, scores) == "a2-winner"
    assert published_name("sac", None, scores) == "sac"
    assert published_name("curl", named_loss("curl"), scores) == "curl"
    assert published_name("rad", None, scores) is None
    spr = named_loss("spr")
    assert published_name(str(spr), spr, scores) is None
    # What is called sac on images sees random crops; the paper's has none.
    images = published_for(IMAGE).scores
    assert published_name("sac", None, images) is None
    assert published_name("sac-no-aug", None, images) == "sac-no-aug"


def test_over_games_there_are_a_mean_and_a_median_of_each_method():
    """Read off the two tables of the paper by eye."""
    own = published_over_games({}).aggregates
    assert {name: (each.mean, each.median) for name, each in own.items()} == {
        "a2-winner": (0.568, 0.317),
        "curl": (0.381, 0.175),
        "rainbow": (0.285, 0.161),
        "DrQ": (0.357, 0.268),
        "SimPLe": (0.443, 0.144),
        "OTRainbow": (0.264, 0.204),
        "spr": (0.704, 0.415),
    }
    assert [name for name, each in own.items() if not each.cited] == ["a2-winner"]
    assert published_name("rainbow", None, own) == "rainbow"
    assert published_name("rainbow: hidden=512", None, own) is None
    assert published_name("drq", None, own) is None  # Ours is a variant of SAC.


def test_over_games_it_is_said_in_what_a_setting_is_another_one():
    def differences(games, **changes):
        configs = {game: with_settings(preset("atari-100k", game), changes) for game in games}
        return published_over_games(configs).differences

    assert differences(ATARI_GAMES) == ()
    assert differences(ATARI_GAMES, device="cuda", evaluations=10) == ()
    assert differences(["pong", "qbert"], action_repeat=1, n_step=10) == (
        "2 games (paper: 26)",
        "action_repeat 1 (paper: 4)",
        "n_step 10 (paper: 20)",
    )
    mixed = {"pong": preset("atari-100k", "pong"), "qbert": replace(preset("atari-100k", "qbert"), steps=8_000)}
    assert published_over_games(mixed).differences[1:] == ("steps 8,000 (paper: 400,000)",)
    other = preset("fast-atari", "pong", "sac")
    assert published_over_games({"pong": other}).differences[1] == "agent sac (paper: rainbow)"
