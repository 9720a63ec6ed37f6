"""Tiny environments, registered on import as a user's would be."""

# ruff: noqa: ARG002  (Gymnasium gives the signatures)

import gymnasium
import numpy as np
from gymnasium import spaces

NAN = float("nan")


class Counter(gymnasium.Env):
    """Observes (step, 10 * step), rewards with the number of the step, and ends after `length` steps.

    Keeps the actions it was given in `actions`.
    """

    observation_space = spaces.Box(-np.inf, np.inf, (2,), np.float64)

    def __init__(self, length=6, by_time_limit=False, spoil=None, spoil_at=None, action_space=None):
        self.action_space = action_space or spaces.Box(-1.0, 1.0, (1,), np.float32)
        self._length = length
        self._by_time_limit = by_time_limit
        self._spoil = spoil
        self._spoil_at = spoil_at
        self._step = 0
        self.actions = []

    def _observe(self):
        observation = np.array([self._step, 10.0 * self._step])
        if self._spoil == "observation" and self._step == self._spoil_at:
            observation[1] = NAN
        return observation

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self._step = 0
        return self._observe(), {}

    def step(self, action):
        self._step += 1
        self.actions.append(action)
        ends = self._step == self._length
        reward = NAN if self._spoil == "reward" and self._step == self._spoil_at else float(self._step)
        return self._observe(), reward, ends and not self._by_time_limit, ends and self._by_time_limit, {}


class Samples(gymnasium.Env):
    """Observes samples of any space; `raw` is the last of them."""

    action_space = spaces.Box(-1.0, 1.0, (1,), np.float32)

    def __init__(self, observation_space, observation=None):
        self.observation_space = observation_space
        self._observation = observation
        self.raw = None

    def _observe(self):
        self.raw = self.observation_space.sample() if self._observation is None else self._observation
        return self.raw

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return self._observe(), {}

    def step(self, action):
        return self._observe(), 0.0, False, False, {}


class Screen(Counter):
    """Draws the number of the episode in red, that of the step in green, and that of the pixel in blue.

    Counts the frames in `drawn` and the episodes in `episode`. From the step `fails_at` on, `failure` is drawn; an
    exception is raised.
    """

    metadata = {"render_modes": ["rgb_array"]}  # noqa: RUF012  (Gymnasium's own has no annotation)

    def __init__(self, render_mode=None, height=6, width=6, failure=None, fails_at=None, **kwargs):
        super().__init__(**kwargs)
        self.render_mode = render_mode
        self._blue = np.arange(height * width, dtype=np.uint8).reshape(height, width)
        self._failure = failure
        self._fails_at = np.inf if fails_at is None else fails_at
        self.drawn = 0
        self.episode = 0

    def reset(self, *, seed=None, options=None):
        self.episode += 1
        return super().reset(seed=seed)

    def render(self):
        self.drawn += 1
        if self._step >= self._fails_at:
            if isinstance(self._failure, Exception):
                raise self._failure
            return self._failure
        red, green = (np.full_like(self._blue, number) for number in (self.episode, self._step))
        return np.stack([red, green, self._blue], axis=2)


class Steered(Screen):
    """The reward is how bright the frame is, which starts at random and which the action changes."""

    def reset(self, *, seed=None, options=None):
        observation, info = super().reset(seed=seed)
        self._brightness = self.np_random.uniform(60.0, 190.0)
        return observation, info

    def step(self, action):
        self._brightness += 10.0 * float(action[0])
        observation, _, *ends, info = super().step(action)
        return observation, self._brightness, *ends, info

    def render(self):
        return np.full_like(super().render(), round(self._brightness))


class Unseen(Screen):
    """Takes a render mode and has none."""

    metadata = {"render_modes": []}  # noqa: RUF012


def _register(name, entry_point, **kwargs):
    gymnasium.register(f"Toy/{name}-v0", entry_point=entry_point, kwargs=kwargs)


_register("Counter", Counter)
_register("TimeLimited", Counter, by_time_limit=True)
_register("NaNAtReset", Counter, spoil="observation", spoil_at=0)
_register("NaNObservation", Counter, spoil="observation", spoil_at=4)
_register("NaNReward", Counter, spoil="reward", spoil_at=3)
for name, actions in {
    "Unbounded": spaces.Box(-np.inf, np.inf, (1,), np.float32),
    "IntegerActions": spaces.Box(0, 5, (1,), np.int64),
    "Matrix": spaces.Box(np.zeros((2, 2)), np.array([[1.0, 2.0], [3.0, 4.0]]), dtype=np.float64),
}.items():
    _register(name, Counter, action_space=actions)
arm = spaces.Tuple((spaces.Box(-1, 1, (2, 2)), spaces.Box(-5, 5, (), np.float64)))
for name, observations in {
    "Image": spaces.Box(0, 255, (8, 8, 3), np.uint8),
    "ImageFirst": spaces.Box(0, 255, (3, 8, 8), np.uint8),
    "GreyImage": spaces.Box(0, 255, (8, 8), np.uint8),
    "ImageWithin": spaces.Dict(camera=spaces.Box(0, 255, (8, 8), np.uint8), speed=spaces.Box(0, 1)),
    "Endless": spaces.Sequence(spaces.Box(0, 1)),
    "Nested": spaces.Dict(gear=spaces.Discrete(3), arm=arm),
    "Pair": spaces.Tuple((spaces.Box(-1, 1, ()), spaces.Box(-1, 1, (3,), np.float64))),
}.items():
    _register(name, Samples, observation_space=observations)
two = spaces.Dict(a=spaces.Box(-1, 1, (3,)), b=spaces.Box(-1, 1, (1,)))
_register("TooLong", Samples, observation_space=two["a"], observation=np.zeros(4, np.float32))
_register("MissingPart", Samples, observation_space=two, observation={"a": np.zeros(3, np.float32)})
_register("Screen", Screen)
_register("TimeLimitedScreen", Screen, by_time_limit=True)
_register("Steered", Steered, by_time_limit=True)
_register("LargeScreen", Screen, height=15, width=20)
_register("Unseen", Unseen)
_register("FadingScreen", Screen, failure=None, fails_at=4)
for name, failure in {
    "NothingDrawn": None,
    "GreyScreen": np.zeros((6, 6), np.uint8),
    "FloatScreen": np.zeros((6, 6, 3)),
    "TransparentScreen": np.zeros((6, 6, 4), np.uint8),
    "FailingScreen": OSError("no such display"),
}.items():
    _register(name, Screen, failure=failure, fails_at=0)
