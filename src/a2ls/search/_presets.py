"""Named configurations of whole searches."""

from __future__ import annotations

from typing import Literal, get_args

from a2ls._errors import BadInput
from a2ls.search._config import SearchConfig
from a2ls.training import DEFAULT_AGENT, differences, option_text, plain_baseline, preset, to_mapping, usual_baselines

SearchPresetName = Literal["quick", "laptop", "paper-vector", "quick-image", "laptop-image", "paper-image-search"]

# The presets of their trainings, where these have other names.
_TRAININGS = {"laptop": "fast", "laptop-image": "fast-image"}


def search_preset(name: SearchPresetName, env: str = "cheetah-run", agent: str = DEFAULT_AGENT) -> SearchConfig:
    """The settings of this name for an environment and an agent.

    `quick` shows all parts of a search in minutes; `laptop` is a real search in some hours on a few cores;
    `paper-vector` has the paper's population, networks and lengths, and trains repeated losses again. `quick-image`,
    `laptop-image` and `paper-image-search` are the same for images; all of them take longer.
    """
    if name not in get_args(SearchPresetName):
        raise BadInput(f"there is no search preset {name!r}; allowed are {', '.join(get_args(SearchPresetName))}")
    training = preset(_TRAININGS.get(name, name), env, agent)  # type: ignore[arg-type]
    if name.startswith("quick"):
        population, seeds = (6, 2) if name == "quick" else (4, 1)
        plain = (plain_baseline(agent),)
        return SearchConfig(training, population=population, stages=2, baselines=plain, baseline_seeds=seeds)
    usual = usual_baselines(training)
    if name == "laptop":
        return SearchConfig(training, population=20, stages=6, baselines=usual, baseline_seeds=2)
    if name == "laptop-image":
        return SearchConfig(training, population=12, stages=4, baselines=usual)
    # The paper ran its stages until a budget of GPU hours was spent: seven at most (appendix D.10).
    return SearchConfig(training, population=100, stages=7, repeats="retrain", baselines=usual)


def search_command(config: SearchConfig) -> str:
    """What to type for a search with these settings: the nearest preset, and what differs from it."""
    env, agent = config.training.environment.env, config.training.algorithm

    def options(name: SearchPresetName) -> str:
        given = differences(to_mapping(config), to_mapping(search_preset(name, env, agent)))
        return " ".join((option_text("preset", name), *(option_text(key, value) for key, value, _ in given)))

    nearest = min((options(name) for name in get_args(SearchPresetName)), key=len)
    chosen = "" if agent == DEFAULT_AGENT else f" {option_text('agent', agent)}"
    return f"a2ls search {option_text('env', env)}{chosen} {nearest}"
