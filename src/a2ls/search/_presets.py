"""Named configurations of whole searches."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from a2ls._errors import BadInput
from a2ls.search._config import SearchConfig
from a2ls.training import TrainConfig, preset

SearchPresetName = Literal["quick", "laptop", "paper-vector"]


def search_preset(name: SearchPresetName, env: str = "cheetah-run") -> SearchConfig:
    """The settings of this name for an environment.

    `quick` shows all parts of a search in minutes; `laptop` is a real search in some hours on a few cores;
    `paper-vector` has the paper's population, networks and lengths, and trains repeated losses again.
    """
    if name == "quick":
        return SearchConfig(_quick_training(env), population=6, stages=2, baselines=("sac",), baseline_seeds=2)
    if name == "laptop":
        return SearchConfig(preset("fast", env), population=20, stages=6, baseline_seeds=2)
    if name == "paper-vector":
        # The paper ran its stages until a budget of GPU hours was spent: seven at most (appendix D.10).
        return SearchConfig(preset("paper-vector", env), population=100, stages=7, repeats="retrain")
    raise BadInput(f"there is no search preset {name!r}; allowed are quick, laptop, paper-vector")


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
