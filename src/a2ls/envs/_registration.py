"""Environments that this program has registered itself, as in a script or a notebook, for processes that have not."""

from __future__ import annotations

import dataclasses

import cloudpickle
import gymnasium
from gymnasium.envs.registration import EnvSpec, load_env_creator

from a2ls.envs._atari_games import is_atari
from a2ls.envs._config import UnsuitableEnvironment, dm_control_body

_MAIN = "__main__"


def registration(env: str) -> bytes | None:
    """What another process needs in order to know an environment; None if it finds it by its name.

    Classes and functions of modules are named, and imported there; those of the program itself are sent whole.

    Raises:
        UnsuitableEnvironment: If it cannot be sent.
    """
    spec = gymnasium.registry.get(env)
    if spec is None or is_atari(env) or dm_control_body(env) is not None or _comes_with_gymnasium(spec):
        return None
    try:
        return bytes(cloudpickle.dumps(_without_main(spec)))
    except Exception as error:  # Whatever a class of the user's raises when it is pickled.
        raise UnsuitableEnvironment(
            f"The environment {env!r} was registered by this program, and cannot be sent to worker processes: "
            f"{type(error).__name__}: {error}. Put it into a module that registers it, and call it 'module:{env}'."
        ) from error


def register(registered: bytes) -> None:
    """Make an environment known to this process, given what `registration` said of it in another one."""
    spec: EnvSpec = cloudpickle.loads(registered)
    gymnasium.registry[spec.id] = spec


def _comes_with_gymnasium(spec: EnvSpec) -> bool:
    return isinstance(spec.entry_point, str) and spec.entry_point.startswith("gymnasium.")


def _without_main(spec: EnvSpec) -> EnvSpec:
    """A spec that does not name the main module, which is another one in another process."""
    if isinstance(spec.entry_point, str) and spec.entry_point.partition(":")[0] == _MAIN:
        make = load_env_creator(spec.entry_point)
        return dataclasses.replace(spec, entry_point=make)  # type: ignore[arg-type]
    return spec
