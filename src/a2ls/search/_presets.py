"""Named configurations of whole searches."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal, get_args

from a2ls._errors import BadInput
from a2ls.search._config import SearchConfig
from a2ls.training import TrainConfig, differences, option_text, preset, to_mapping

SearchPresetName = Literal["quick", "laptop", "paper-vector", "quick-image", "laptop-image", "paper-image-search"]

# Of the paper's section 4.1, for images.
_BASELINES_OF_THE_PAPER = ("sac-no-aug", "sac", "curl")


def search_preset(name: SearchPresetName, env: str = "cheetah-run") -> SearchConfig:
    """The settings of this name for an environment.

    `quick` shows all parts of a search in minutes; `laptop` is a real search in some hours on a few cores;
    `paper-vector` has the paper's population, networks and lengths, and trains repeated losses again. `quick-image`,
    `laptop-image` and `paper-image-search` are the same for images; all of them take longer.
    """
    if name == "quick":
        return SearchConfig(_quick_training(env), population=6, stages=2, baselines=("sac",), baseline_seeds=2)
    if name == "laptop":
        return SearchConfig(preset("fast", env), population=20, stages=6, baseline_seeds=2)
    if name == "paper-vector":
        # The paper ran its stages until a budget of GPU hours was spent: seven at most (appendix D.10).
        return SearchConfig(preset("paper-vector", env), population=100, stages=7, repeats="retrain")
    if name == "quick-image":
        return SearchConfig(_quick_image_training(env), population=4, stages=2, baselines=("sac",))
    if name == "laptop-image":
        return SearchConfig(preset("fast-image", env), population=12, stages=4, baselines=_BASELINES_OF_THE_PAPER)
    if name == "paper-image-search":
        training = preset("paper-image-search", env)
        return SearchConfig(training, population=100, stages=7, repeats="retrain", baselines=_BASELINES_OF_THE_PAPER)
    raise BadInput(f"there is no search preset {name!r}; allowed are {', '.join(get_args(SearchPresetName))}")


def search_command(config: SearchConfig) -> str:
    """What to type for a search with these settings: the nearest preset, and what differs from it."""
    env = config.training.environment.env

    def options(name: SearchPresetName) -> str:
        given = differences(to_mapping(config), to_mapping(search_preset(name, env)))
        return " ".join((option_text("preset", name), *(option_text(key, value) for key, value, _ in given)))

    nearest = min((options(name) for name in get_args(SearchPresetName)), key=len)
    return f"a2ls search {option_text('env', env)} {nearest}"


def _quick_training(env: str) -> TrainConfig:
    """As `fast`, but smaller and shorter: enough to see an agent begin to learn."""
    fast = preset("fast", env)
    return replace(
        fast,
        agent=replace(fast.agent, hidden=128),
        batch_size=64,
        steps=16_000,
        evaluations=4,
        evaluation_episodes=5,
        initial_steps=500,
    )


def _quick_image_training(env: str) -> TrainConfig:
    """As `fast-image`, but smaller and shorter."""
    fast = preset("fast-image", env)
    return replace(
        fast,
        agent=replace(fast.agent, hidden=128, filters=8),
        batch_size=32,
        steps=2_000 * fast.environment.action_repeat,
        evaluations=2,
        evaluation_episodes=2,
        initial_steps=500,
    )
