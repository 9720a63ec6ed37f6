"""Rainbow really learns, recorded or not, and the check fails for one that is broken on purpose."""

import numpy as np
import pytest

from a2ls.agents import Rainbow
from a2ls.space import named_loss
from a2ls.training import Training, preset, train, with_settings

SOLVED = 475.0
RANDOM_PLAY = 11.5  # In Road Runner, as the field has it.


def best_score(evaluations):
    """The best mean of ten episodes of Cartpole, up to the first that is enough; one evaluation every 1,000 steps."""
    wishes = {"steps": 1_000 * evaluations, "evaluations": evaluations}
    training = Training(with_settings(preset("fast-discrete", "CartPole-v1"), wishes), None, seed=0)
    curve = training.run(on_evaluation=lambda point: "stop" if point.score >= SOLVED else None)
    training.close()
    return max(point.score for point in curve.points)


def test_the_pole_is_balanced():
    # Ten of ten seeds were there after 1,000 to 13,000 steps.
    assert best_score(15) >= SOLVED


def test_with_a_future_that_counts_negative_it_is_not(monkeypatch):
    update = Rainbow.update
    monkeypatch.setattr(
        Rainbow,
        "update",
        lambda self, batch, *rest, **parts: update(self, batch._replace(continues=-batch.continues), *rest, **parts),
    )
    assert best_score(5) < 300


def test_recorded_updates_are_those_of_pytorch():
    """Up to rounding, with noise, priorities and returns of several steps."""
    wishes = {"steps": 700, "learning_starts": 150, "batch_size": 16, "hidden": 16, "evaluations": 1, "lr": 1e-4}
    config = with_settings(preset("fast-discrete", "CartPole-v1"), wishes | {"evaluation_episodes": 1})
    trained = []
    for compiled in (True, False):
        training = Training(with_settings(config, {"compiled": compiled}), named_loss("a2-winner"), seed=0)
        training.run()
        training.close()
        trained.append([*training.agent.parameters()])
    for mine, theirs in zip(*trained, strict=True):
        assert (mine - theirs).abs().max() < 2e-3


@pytest.mark.slow
@pytest.mark.parametrize("loss", [None, named_loss("a2-winner")], ids=["rainbow", "a2-winner"])
def test_a_game_is_learned_in_minutes(loss):
    config = preset("fast-atari", "road-runner")
    scores = [np.mean([point.score for point in train(config, loss, seed).points[1:]]) for seed in range(3)]
    # The weakest of six had twenty times that of random play; on another processor it is another run.
    assert min(scores) > 10 * RANDOM_PLAY
