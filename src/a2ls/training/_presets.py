"""Named configurations: presets, and the baselines that auxiliary losses are compared with."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, Literal, get_args

from a2ls._errors import BadInput, did_you_mean, nearest
from a2ls.agents import OBJECTIVE, Baseline, agent_spec, agent_specs
from a2ls.envs import (
    EnvironmentConfig,
    atari_game,
    dm_control_body,
    has_discrete_actions,
    has_image_observations,
    is_atari,
    paper_task,
)
from a2ls.space import Loss, named_loss
from a2ls.training._config import DEFAULT_AGENT, DISCRETE_AGENT, TrainConfig
from a2ls.training._settings import differences, split_method, to_mapping, with_mapping

PresetName = Literal[
    "fast",
    "paper-vector",
    "paper-vector-table",
    "released-vector",
    "fast-image",
    "paper-image-search",
    "paper-image",
    "fast-discrete",
    "fast-atari",
    "atari-100k",
]

DEFAULT_PRESET: PresetName = "fast"

_CHEETAH = "cheetah-run"
# Those that the paper's table of vector scores has after a million steps.
_DIFFICULT = frozenset(
    {"quadruped-run", "hopper-hop", "pendulum-swingup", "humanoid-stand", "humanoid-walk", "humanoid-run"}
)
# Settings that change no result but for rounding.
_WITHOUT_EFFECT = ("device", "compiled")
_FAST_AGENT_STEPS, _QUICK_AGENT_STEPS, _QUICK_IMAGE_AGENT_STEPS = 10_000, 4_000, 2_000
_ATARI_REPEAT = _DM_CONTROL_REPEAT = 4

Settings = dict[str, Any]
"""Fields of `TrainConfig`, all but those of the agent."""


def _fast(env: str) -> Settings:
    """One core trains this in one or two minutes, and it tells useful losses from useless ones."""
    environment = _vectors(env)
    return {"environment": environment, "steps": _FAST_AGENT_STEPS * environment.action_repeat, "batch_size": 128}


def _quick(env: str) -> Settings:
    """As `fast`, but smaller and shorter: enough to see an agent begin to learn."""
    steps = _QUICK_AGENT_STEPS * action_repeat(env)
    shorter = {"batch_size": 64, "steps": steps, "evaluations": 4, "evaluation_episodes": 5, "learning_starts": 500}
    return _fast(env) | shorter


def _paper_vector(env: str) -> Settings:
    """The paper's table of vector hyper-parameters, with the lengths of its search (appendix D.5)."""
    return {"environment": _vectors(env), "steps": 500_000 if paper_task(env) == _CHEETAH else 1_500_000}


def _paper_vector_table(env: str) -> Settings:
    """As `paper-vector`, with the lengths of the table of scores: 100,000 steps, or a million for difficult tasks."""
    return _paper_vector(env) | {"steps": 1_000_000 if paper_task(env) in _DIFFICULT else 100_000, "evaluations": 10}


def _released_vector(env: str) -> Settings:
    """As `paper-vector`, but all that the authors' published code has otherwise; the rest is in the agent's."""
    return _paper_vector(env) | {"environment": EnvironmentConfig(env=env, action_repeat=_image_action_repeat(env))}


def _fast_image(env: str) -> Settings:
    """Small images, few filters and a small batch: about ten minutes on one core for every task."""
    return {
        "environment": _images(env, frame_size=42, shadows=False),
        "steps": _FAST_AGENT_STEPS * _image_action_repeat(env),
        "batch_size": 64,
        "evaluation_episodes": 3,
    }


def _quick_image(env: str) -> Settings:
    """As `fast-image`, but smaller and shorter."""
    steps = _QUICK_IMAGE_AGENT_STEPS * _image_action_repeat(env)
    shorter = {"batch_size": 32, "steps": steps, "evaluations": 2, "evaluation_episodes": 2, "learning_starts": 500}
    return _fast_image(env) | shorter


def _paper_image_search(env: str) -> Settings:
    """The paper's table of image hyper-parameters, as during the evolution."""
    return {"environment": _images(env), "steps": 500_000, "batch_size": 128}


def _paper_image(env: str) -> Settings:
    """The paper's table of image hyper-parameters, as in the final evaluation of A2-winner."""
    sequences = {"walker-walk": 128, _CHEETAH: 256, "finger-spin": 256}.get(paper_task(env) or "", 512)
    return {"environment": _images(env), "steps": 500_000, "batch_size": 512, "auxiliary_batch_size": sequences}


def _fast_discrete(env: str) -> Settings:
    """Discrete actions and vectors: about a minute on one core, in which Cartpole is solved."""
    return {
        "environment": EnvironmentConfig(env=env, action_repeat=1),
        "steps": 15_000,
        "batch_size": 64,
        "learning_starts": 500,
    }


def _quick_discrete(env: str) -> Settings:
    """As `fast-discrete`, but shorter."""
    shorter = {"batch_size": 32, "steps": 4_000, "evaluations": 4, "evaluation_episodes": 5, "learning_starts": 250}
    return _fast_discrete(env) | shorter


def _atari_100k(env: str) -> Settings:
    """100,000 agent steps, which are 400,000 frames, in an Atari game."""
    screens = EnvironmentConfig(env=env, action_repeat=_ATARI_REPEAT, pixels=True, frame_size=84, frames=4)
    return {"environment": screens, "steps": 100_000 * _ATARI_REPEAT, "batch_size": 32, "learning_starts": 1_600}


def _fast_atari(env: str) -> Settings:
    """A tenth as long as `atari-100k`: some minutes on one core, in which Road Runner is played far above chance."""
    shorter = {"steps": 10_000 * _ATARI_REPEAT, "evaluation_episodes": 5, "learning_starts": 500}
    return _atari_100k(env) | shorter


def _quick_atari(env: str) -> Settings:
    """As `fast-atari`, but shorter."""
    shorter = {"steps": 1_000 * _ATARI_REPEAT, "evaluations": 2, "evaluation_episodes": 1, "learning_starts": 250}
    return _fast_atari(env) | shorter


def _vectors(env: str) -> EnvironmentConfig:
    return EnvironmentConfig(env=env, action_repeat=action_repeat(env))


def action_repeat(env: str) -> int:
    """Environment steps for which vector presets hold an action: the paper's four in tasks of dm_control, else one.

    Other environments are made for one choice in each step; many of them skip frames themselves.
    """
    return 1 if dm_control_body(env) is None else _DM_CONTROL_REPEAT


def _images(env: str, **settings: Any) -> EnvironmentConfig:
    own = has_image_observations(env)
    repeat = _image_action_repeat(env)
    return EnvironmentConfig(env=env, pixels=not own, image_observations=own, action_repeat=repeat, **settings)


def _image_action_repeat(env: str) -> int:
    """Of the paper, for all tasks with the same body."""
    return {"cartpole": 8, "walker": 2, "finger": 2}.get(dm_control_body(env) or "", action_repeat(env))


_PRESETS: dict[str, Callable[[str], Settings]] = {
    "fast": _fast,
    "paper-vector": _paper_vector,
    "paper-vector-table": _paper_vector_table,
    "released-vector": _released_vector,
    "fast-image": _fast_image,
    "paper-image-search": _paper_image_search,
    "paper-image": _paper_image,
    "fast-discrete": _fast_discrete,
    "fast-atari": _fast_atari,
    "atari-100k": _atari_100k,
    # Of small searches.
    "quick": _quick,
    "quick-image": _quick_image,
    "quick-discrete": _quick_discrete,
    "quick-atari": _quick_atari,
}

Kind = Literal["vector", "image", "discrete", "atari"]
"""What presets are made for: continuous actions and vectors, images that are drawn, discrete actions and vectors, and
Atari games."""


def _kind_of_preset(name: str) -> Kind:
    return next((kind for kind in get_args(Kind) if kind in name), "vector")


def _kind(env: str, algorithm: str, *, pixels: bool) -> Kind:
    if is_atari(env):
        return "atari"
    if pixels:
        return "image"
    return "discrete" if agent_spec(algorithm).discrete else "vector"


def suitable_agent(env: str) -> str:
    """The agent for the actions of an environment, if nobody names one."""
    return DISCRETE_AGENT if has_discrete_actions(env) else DEFAULT_AGENT


def preset(
    name: PresetName | Literal["quick", "quick-image", "quick-discrete", "quick-atari"],
    env: str = _CHEETAH,
    agent: str | None = None,
    *,
    steps: int | None = None,
) -> TrainConfig:
    """The configuration of this name for an environment; the paper's depends on the task.

    Networks and learning are the agent's own settings for this preset, or its defaults if it has none.

    Args:
        name: The preset.
        env: The environment. Outside of dm_control and Atari an action is held for one step.
        agent: The agent; the one for the actions of the environment, if none is named.
        steps: Environment steps instead of the preset's. There are as many evaluations, evenly spaced.

    Example:
        >>> config = preset("paper-vector", "cheetah-run")
        >>> config.steps, config.batch_size, config.environment.action_repeat
        (500000, 512, 4)
    """
    if name not in _PRESETS:
        raise BadInput(f"there is no preset {name!r}; allowed are {', '.join(_PRESETS)}")
    agent = agent or suitable_agent(env)
    settings = agent_spec(agent).settings(name, paper_task(env) or atari_game(env))
    config = TrainConfig(algorithm=agent, agent=settings, preset=name, **_PRESETS[name](env))
    if agent == OBJECTIVE:
        # The environment is a name that the function is given, and its steps are what the function calls so.
        own = EnvironmentConfig(env=env, action_repeat=1)
        config = replace(config, environment=own, evaluations=1, learning_starts=1)
    return config if steps is None else replace(config, steps=steps)


def in_environment(config: TrainConfig, env: str) -> TrainConfig:
    """The configuration in another environment: what comes from its preset is what the preset says there.

    What differs from the preset is taken to be somebody's wish, and stays. Configurations of version 0.2 and earlier do
    not say their preset: it is the one that they differ least from.
    """
    name = config.preset or _nearest_preset(config)
    before, after = (
        to_mapping(preset(name, each, config.algorithm))  # type: ignore[arg-type]
        for each in (config.environment.env, env)
    )
    merged = _merged(to_mapping(config), before, after)
    merged["environment"]["env"] = env
    return with_mapping(config, merged)


def _merged(own: Settings, before: Settings, after: Settings) -> Settings:
    """The values of `after` wherever one's own are those of `before`."""
    return {
        name: _merged(value, before[name], after[name])
        if isinstance(value, dict)
        else (after if value == before[name] else own)[name]
        for name, value in own.items()
    }


def _nearest_preset(config: TrainConfig) -> str:
    env, own = config.environment.env, to_mapping(config)

    def distance(name: str) -> int:
        return len([*differences(own, to_mapping(preset(name, env, config.algorithm)))])  # type: ignore[arg-type]

    return min(presets_like(config, _PRESETS), key=distance)


def known_preset(config: TrainConfig) -> str:
    """The preset that a configuration comes from; if it does not say so, the one that it equals; else empty."""
    alike = presets_like(config, _PRESETS)
    return config.preset or next((name for name in alike if not own_settings(config, name)), "")


def own_settings(config: TrainConfig, name: str, variant: str | None = None) -> dict[str, Any]:
    """What a configuration has otherwise than a preset, for its environment and agent.

    Where and how fast networks are computed does not count.

    Args:
        config: The configuration.
        name: The preset.
        variant: A baseline, whose settings are not taken for the configuration's own.
    """
    expected = preset(name, config.environment.env, config.algorithm)  # type: ignore[arg-type]
    if variant is not None:
        expected = with_baseline(expected, variant)
    found = differences(to_mapping(config), to_mapping(expected))
    return {setting: value for setting, value, _ in found if setting not in _WITHOUT_EFFECT}


def preset_for(
    name: str, env: str, algorithm: str, *, pixels: bool, allowed: tuple[str, ...] = get_args(PresetName)
) -> str:
    """The preset that is meant for an environment.

    `fast` is `fast-image` with pixels and where observations are images, `fast-atari` for Atari games, and
    `fast-discrete` for other discrete actions.

    Raises:
        BadInput: If the preset is for another kind of environment, and there is none of that name for this one.
    """
    kind, own = _kind(env, algorithm, pixels=pixels or has_image_observations(env)), _kind_of_preset(name)
    images_of_any = own == "image" and kind != "atari"  # They are drawn, whatever the environment.
    if name not in allowed or own == kind or images_of_any:
        return name
    if own == "vector" and f"{name}-{kind}" in allowed:
        return f"{name}-{kind}"
    words = {"vector": "vectors and continuous actions", "image": "pixels", "discrete": "discrete actions"}
    words["atari"] = "Atari games"
    suitable = ", ".join(each for each in allowed if _kind_of_preset(each) == kind)
    raise BadInput(f"the preset {name!r} is for {words[own]}; for {words[kind]} there are {suitable}")


def usual_config(env: str, loss: Loss | None) -> TrainConfig:
    """The settings with which `a2ls train --env ENV --loss LOSS` trains, if nothing else is given."""
    agent = suitable_agent(env)
    config = preset(preset_for(DEFAULT_PRESET, env, agent, pixels=False), env, agent)  # type: ignore[arg-type]
    variant = None if loss is None else baseline_with(loss, agent)
    return config if variant is None else with_baseline(config, variant)


def presets_like(config: TrainConfig, among: Iterable[str]) -> tuple[str, ...]:
    """Those among some presets that are for environments of the same kind."""
    kind = _kind(config.environment.env, config.algorithm, pixels=config.environment.sees_images)
    return tuple(name for name in among if _kind_of_preset(name) == kind)


def baseline_names(algorithm: str | None = None, *, pixels: bool | None = None) -> tuple[str, ...]:
    """The baselines of an agent, or of all that are registered; those for images or for vectors only, if asked for.

    The first of an agent is the agent itself, without a loss.
    """
    specs = agent_specs() if algorithm is None else (agent_spec(algorithm),)
    names = (
        name
        for spec in specs
        for name, each in spec.all_baselines().items()
        if pixels is None or each.suits(pixels=pixels)
    )
    return tuple(dict.fromkeys(names))  # Two agents may have baselines of one name.


def plain_baseline(algorithm: str) -> str:
    """The name of the agent itself, without a loss, among its baselines."""
    return baseline_names(algorithm)[0]


def usual_baselines(config: TrainConfig) -> tuple[str, ...]:
    """What to compare losses with, if nothing else is asked for."""
    known = agent_spec(config.algorithm).all_baselines().items()
    return tuple(name for name, each in known if each.usual and each.suits(pixels=config.environment.sees_images))


def is_baseline(name: str) -> bool:
    """Whether an agent has a baseline of this name, which may have settings of its own behind it."""
    return split_method(name)[0] in baseline_names()


def require_baseline(name: str) -> str:
    """The name, if there is a baseline of it.

    Raises:
        BadInput: If there is none, naming those that there are.
    """
    _find(name)
    return name


def baseline_loss(name: str) -> Loss | None:
    """The auxiliary loss of a baseline: CURL has one, the others have none."""
    loss = _find(name).loss
    return None if loss is None else named_loss(loss)


def baseline_with(loss: Loss, algorithm: str) -> str | None:
    """The baseline of an agent whose loss this is, or one that means the same; None if there is none."""
    form = loss.canonical()
    for name in baseline_names(algorithm):
        own = baseline_loss(name)
        if own is not None and own.canonical() == form:
            return name
    return None


def with_baseline(config: TrainConfig, name: str) -> TrainConfig:
    """The configuration with the variant of its agent of this name.

    Raises:
        BadInput: If it is a variant of another agent, or not for observations of this kind.
    """
    pixels = config.environment.sees_images
    suitable = baseline_names(config.algorithm, pixels=pixels)
    if name not in suitable:
        kind = "images" if pixels else "vectors"
        raise BadInput(f"{name} is no baseline of {config.algorithm} for {kind}; allowed are {', '.join(suitable)}")
    variant = agent_spec(config.algorithm).all_baselines()[name]
    settings, frame_size = variant.change(config.agent, config.environment.frame_size)
    return replace(config, environment=replace(config.environment, frame_size=frame_size), agent=settings)


def _find(name: str) -> Baseline:
    known = {each: found for spec in agent_specs() for each, found in spec.all_baselines().items()}
    if name not in known:
        hint = did_you_mean(nearest(name, known)) or f"allowed are {', '.join(known)}"
        raise BadInput(f"there is no baseline {name!r}: {hint}")
    return known[name]
