"""From the name a user gives to a registered Gymnasium environment."""

import importlib
import itertools

import gymnasium
from gymnasium.envs.registration import EnvSpec

from a2ls._suggest import nearest
from a2ls._user_code import import_user_module
from a2ls.envs._errors import UnsuitableEnvironment
from a2ls.envs._rendering import prepare_rendering

DM_CONTROL_NAMESPACE = "dm_control/"

PAPER_TASKS: dict[str, str] = {
    "ball-in-cup-catch": "dm_control/ball_in_cup-catch-v0",
    "cartpole-swingup": "dm_control/cartpole-swingup-v0",
    "cartpole-swingup-sparse": "dm_control/cartpole-swingup_sparse-v0",
    "cheetah-run": "dm_control/cheetah-run-v0",
    "finger-spin": "dm_control/finger-spin-v0",
    "finger-turn-hard": "dm_control/finger-turn_hard-v0",
    "fish-upright": "dm_control/fish-upright-v0",
    "hopper-hop": "dm_control/hopper-hop-v0",
    "hopper-stand": "dm_control/hopper-stand-v0",
    "humanoid-run": "dm_control/humanoid-run-v0",
    "humanoid-stand": "dm_control/humanoid-stand-v0",
    "humanoid-walk": "dm_control/humanoid-walk-v0",
    "pendulum-swingup": "dm_control/pendulum-swingup-v0",
    "quadruped-run": "dm_control/quadruped-run-v0",
    "reacher-easy": "dm_control/reacher-easy-v0",
    "walker-run": "dm_control/walker-run-v0",
    "walker-stand": "dm_control/walker-stand-v0",
    "walker-walk": "dm_control/walker-walk-v0",
}
"""The paper's 18 tasks with vector observations: short name -> Gymnasium id."""


def resolve_id(name: str) -> str:
    """Return the Gymnasium id for `name`: a short name of `PAPER_TASKS`, a Gymnasium id or `module:id`.

    Short names may be written as in the paper's tables (`Cheetah-Run`) or with underscores.

    Raises:
        UnsuitableEnvironment: If nothing of that name is registered; the message shows the nearest names.
    """
    task = paper_task(name)
    return PAPER_TASKS[task] if task else find_spec(name).id


def paper_task(name: str) -> str | None:
    """The short name of the paper's task that `name` means, in whichever way it is written; None for others."""
    short = name.lower().replace("_", "-")
    if short in PAPER_TASKS:
        return short
    return next((task for task, gymnasium_id in PAPER_TASKS.items() if gymnasium_id == name), None)


def find_spec(gymnasium_id: str) -> EnvSpec:
    """Return the registered spec of a Gymnasium id or `module:id`, importing what registers it.

    Raises:
        UnsuitableEnvironment: If nothing of that name is registered; the message shows the nearest names.
    """
    module, separator, environment = gymnasium_id.rpartition(":")
    if separator:
        import_user_module(module, f"environment {gymnasium_id!r}", UnsuitableEnvironment)
    if environment.startswith(DM_CONTROL_NAMESPACE):
        _register_dm_control()
    try:
        return gymnasium.spec(environment)
    except gymnasium.error.Error as error:
        message = f"There is no environment {environment!r}. {_suggestion(environment)}"
        raise UnsuitableEnvironment(message) from error


def _register_dm_control() -> None:
    prepare_rendering()
    gymnasium.register_envs(importlib.import_module("shimmy"))


def _suggestion(name: str) -> str:
    # Compared without case and version, so that `pendulum` and `Pendulum-v9` both find `Pendulum-v1`.
    def plain(text: str) -> str:
        return text.lower().replace("_", "-").rpartition("-v")[0] or text.lower().replace("_", "-")

    known: dict[str, str] = {}
    for candidate in itertools.chain(PAPER_TASKS, gymnasium.registry):
        known[plain(candidate)] = candidate  # The registry lists versions in order: the newest stays.
    suggestions = [known[match] for match in nearest(plain(name), known)]
    if suggestions:
        return f"Did you mean {' or '.join(map(repr, suggestions))}?"
    return (
        f"Known are the paper's tasks ({', '.join(PAPER_TASKS)}), the {len(gymnasium.registry)} ids that "
        "gymnasium.pprint_registry() lists, and 'module:id' for an environment registered by a module."
    )
