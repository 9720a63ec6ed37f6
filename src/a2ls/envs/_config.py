"""Which environment: its settings, and the registered Gymnasium environment that a name stands for."""

from __future__ import annotations

import importlib
import itertools
import re
from dataclasses import dataclass

import gymnasium
from gymnasium.envs.registration import EnvSpec

from a2ls._errors import BadInput, nearest, require
from a2ls._extras import extra
from a2ls._user_code import import_user_module
from a2ls.envs._atari_games import ATARI_GAMES, ATARI_NAMESPACE, atari_game, is_atari
from a2ls.envs._dm_control import DM_CONTROL_NAMESPACE, register_dm_control


class UnsuitableEnvironment(BadInput):
    """The environment is unknown, cannot be made here, or is not one the agent can learn from.

    The message is written for the user, so that a command line can print it without a traceback.
    """


@dataclass(frozen=True)
class EnvironmentConfig:
    """Which environment to learn in, and how the agent sees it."""

    env: str = "cheetah-run"
    """A task of dm_control (`cheetah-run`), a game of Atari-100k (`pong`), a Gymnasium id (`Pendulum-v1`,
    `dm_control/cheetah-run-v0`, `ALE/Tennis-v5`), or `module:id` for an environment that is registered when `module`
    is imported."""

    action_repeat: int = 4
    """How many environment steps one action is held for, which are one agent step; the rewards are summed. A step of an
    Atari game is a frame of its screen. Presets have 1 outside of dm_control and Atari."""

    pixels: bool = False
    """Whether the agent sees images that the environment draws, instead of its observations. Atari games can be seen in
    no other way: their images are grey."""

    image_observations: bool = False
    """Whether the environment's own observations are images, which the agent sees unless `pixels` asks for drawn ones.
    Presets find it out."""

    frame_size: int = 100
    """Height and width of an image, in pixels; those of another size are scaled."""

    frames: int = 3
    """How many of the last images are one observation."""

    camera: int = 0
    """Which camera of a dm_control task draws the images."""

    shadows: bool = True
    """Whether images of dm_control tasks have shadows and reflections. Without a graphics card these take two thirds
    of the time of drawing."""

    hidden_share: float = 0.0
    """Share of the state's dimensions that the agent never sees (partial observability; 0.2 in the paper)."""

    hidden_seed: int = 0
    """Which dimensions are hidden: the same seed hides the same ones, in training and in evaluation."""

    def __post_init__(self) -> None:
        if not self.env:
            raise BadInput("The environment is empty; give a name such as 'cheetah-run' or 'Pendulum-v1'.")
        require(self, ("action_repeat", "frame_size", "frames"), lambda value: value >= 1, "be at least 1")
        require(self, ("hidden_share",), lambda value: 0 <= value < 1, "be at least 0 and below 1")
        require(self, ("hidden_seed", "camera"), lambda value: value >= 0, "not be negative")
        if self.sees_images and self.hidden_share:
            raise BadInput(f"hidden_share is {self.hidden_share}, but only dimensions of vectors can be hidden")

    @property
    def sees_images(self) -> bool:
        """Whether observations are images, drawn ones or the environment's own."""
        return self.pixels or self.image_observations


# What no short name of dm_control has: a version, a namespace or a module.
_OTHER_NAME = re.compile(r"-v\d+$|[/:]")

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
    """Return the Gymnasium id for `name`: a short name of a dm_control task or a game, a Gymnasium id or `module:id`.

    Short names may be written as in the paper's tables (`Cheetah-Run`) or with underscores.

    Raises:
        UnsuitableEnvironment: If nothing of that name is registered; the message shows the nearest names.
    """
    if task := paper_task(name):
        return PAPER_TASKS[task]
    if game := atari_game(name):
        return ATARI_GAMES[game]
    return _other_dm_control_id(name) or find_spec(name).id


def paper_task(name: str) -> str | None:
    """The short name of the paper's task that `name` means, in whichever way it is written; None for others."""
    short = name.lower().replace("_", "-")
    if short in PAPER_TASKS:
        return short
    return next((task for task, gymnasium_id in PAPER_TASKS.items() if gymnasium_id == name), None)


def _other_dm_control_id(name: str) -> str | None:
    """The id of a task of dm_control by its short name, such as `cartpole-balance`, which the paper has not."""
    if _OTHER_NAME.search(name) or name in gymnasium.registry:
        return None
    _register_dm_control(name)
    ids = (each for each in gymnasium.registry if each.startswith(DM_CONTROL_NAMESPACE))
    short = {each.removeprefix(DM_CONTROL_NAMESPACE).rpartition("-v")[0].replace("_", "-"): each for each in ids}
    return short.get(name.lower().replace("_", "-"))


def dm_control_body(name: str) -> str | None:
    """The body of a task of dm_control: `cartpole` of `cartpole-balance`. None for all other environments."""
    gymnasium_id = PAPER_TASKS.get(paper_task(name) or "", name)
    if gymnasium_id.startswith(DM_CONTROL_NAMESPACE):
        return gymnasium_id.removeprefix(DM_CONTROL_NAMESPACE).partition("-")[0]
    is_other = _OTHER_NAME.search(name) or is_atari(name) or name in gymnasium.registry
    return None if is_other else name.lower().partition("-")[0]


def find_spec(gymnasium_id: str) -> EnvSpec:
    """Return the registered spec of a Gymnasium id or `module:id`, importing what registers it.

    Raises:
        UnsuitableEnvironment: If nothing of that name is registered; the message shows the nearest names. Also if
            what registers it is not installed.
    """
    module, separator, environment = gymnasium_id.rpartition(":")
    if separator:
        import_user_module(module, f"environment {gymnasium_id!r}", UnsuitableEnvironment)
    elif environment.startswith(DM_CONTROL_NAMESPACE):
        _register_dm_control(environment)
    if is_atari(environment):
        _register_atari(environment)
    try:
        return gymnasium.spec(environment)
    except gymnasium.error.Error as error:
        message = f"There is no environment {environment!r}. {_suggestion(environment, module)}"
        raise UnsuitableEnvironment(message) from error


def _register_dm_control(name: str) -> None:
    doubt = "" if name.startswith(DM_CONTROL_NAMESPACE) else ", or unknown"
    with extra("dmc", f"The environment {name!r} is a task of dm_control{doubt}; these tasks need"):
        register_dm_control()


def _register_atari(gymnasium_id: str) -> None:
    with extra("atari", f"The environment {gymnasium_id!r} needs"):
        ale = importlib.import_module("ale_py")
        importlib.import_module("cv2")  # Screens are scaled by it.
    # Before the first emulator is made: it would introduce itself on the terminal.
    ale.ALEInterface.setLoggerMode(ale.LoggerMode.Error)
    gymnasium.register_envs(ale)


def _suggestion(name: str, module: str) -> str:
    """What may be meant by a name that is not registered; `module` is empty if none was named with it."""
    own = [each for each, spec in gymnasium.registry.items() if module and _module_of(spec).startswith(module)]
    if own:
        return f"The module {module!r} has {', '.join(map(repr, own))}."

    # Compared without case and version, so that `pendulum` and `Pendulum-v9` both find `Pendulum-v1`.
    def plain(text: str) -> str:
        return text.lower().replace("_", "-").rpartition("-v")[0] or text.lower().replace("_", "-")

    known: dict[str, str] = {}
    # The registry lists versions in order: the newest stays. Short names come last, as games have ids like them too.
    for candidate in itertools.chain(gymnasium.registry, PAPER_TASKS, ATARI_GAMES):
        known[plain(candidate)] = candidate
    suggestions = [known[match] for match in nearest(plain(name), known)]
    if suggestions:
        meant = f"Did you mean {' or '.join(map(repr, suggestions))}?"
        return meant if module else f"{meant} One of yours is named with the module that registers it: 'module:id'."
    return (
        f"Known are the paper's tasks ({', '.join(PAPER_TASKS)}), Atari games ({', '.join(ATARI_GAMES)}; others as "
        f"'{ATARI_NAMESPACE}Tennis-v5'), the {len(gymnasium.registry)} ids that gymnasium.pprint_registry() lists, and "
        "'module:id' for an environment registered by a module."
    )


def _module_of(spec: EnvSpec) -> str:
    """The module with the class or the function that makes an environment."""
    if isinstance(spec.entry_point, str):
        return spec.entry_point.partition(":")[0]
    return str(getattr(spec.entry_point, "__module__", ""))
