"""Observations that are images: which frames they are, and how they are drawn."""

import contextlib
import ctypes
import os
from collections import deque

import gymnasium
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from a2ls.envs import EnvironmentConfig, UnsuitableEnvironment, has_image_observations, make_env
from a2ls.envs._pixels import scaled
from helpers.processes import run_python

SIZE = 24


@contextlib.contextmanager
def cheetah(**settings):
    settings = {"pixels": True, "frame_size": SIZE, "action_repeat": 4} | settings
    try:
        env = make_env(EnvironmentConfig(env="cheetah-run", **settings))
    except UnsuitableEnvironment as error:
        pytest.skip(str(error))
    with contextlib.closing(env):
        yield env


@pytest.fixture(scope="module")
def shared():
    """One for all tests that need just one, because making it takes longer than using it."""
    with cheetah() as env:
        yield env


def toy(name, **settings):
    settings = {"pixels": True, "frame_size": 6, "action_repeat": 1} | settings
    return make_env(EnvironmentConfig(env=f"helpers.toy_envs:Toy/{name}-v0", **settings))


def actions(count, seed=0):
    return np.random.default_rng(seed).uniform(-1, 1, (count, 6)).astype(np.float32)


class DMControl:
    """The same task, driven and drawn without any of our code."""

    def __init__(self, seed, **drawing):
        from dm_control import suite

        self._task = suite.load("cheetah", "run", task_kwargs={"random": seed})
        self._drawing = {"camera_id": 0} | drawing
        self._task.reset()

    def frame(self):
        return self._task.physics.render(SIZE, SIZE, **self._drawing).transpose(2, 0, 1)

    def step(self, action):
        return sum(float(self._task.step(action.astype(np.float64)).reward) for _ in range(4))

    def close(self):
        self._task.physics.free()


def run(code, folder, **variables):
    """In a folder where MuJoCo may write its warnings to a file."""
    of_this_process = ("DISPLAY", "MUJOCO_GL", "PYOPENGL_PLATFORM", "LP_NUM_THREADS")
    return run_python(code, without=of_this_process, cwd=folder, **variables)


@pytest.mark.parametrize("seed", [11, 4])
def test_observations_are_the_last_frames_of_dm_control_in_order(shared, seed):
    assert shared.observation_space == gymnasium.spaces.Box(0, 255, (9, SIZE, SIZE), np.uint8)
    assert shared.observation_shape == (9, SIZE, SIZE)
    with contextlib.closing(DMControl(seed)) as reference:
        last = deque([reference.frame()] * 3, maxlen=3)
        np.testing.assert_array_equal(shared.reset(seed=seed)[0], np.concatenate(last))
        for action in actions(5, seed):
            observation, reward, *_ = shared.step(action)
            assert reward == reference.step(action)
            last.append(reference.frame())
            assert observation in shared.observation_space
            np.testing.assert_array_equal(observation, np.concatenate(last))
            assert not np.array_equal(last[-1], last[-2])
            assert len(np.unique(observation)) > 50


def test_the_camera_is_the_one_of_the_settings(shared):
    with cheetah(camera=1, frames=1) as env, contextlib.closing(DMControl(0, camera_id=1)) as reference:
        observation = env.reset(seed=0)[0]
        np.testing.assert_array_equal(observation, reference.frame())
    assert np.abs(shared.reset(seed=0)[0][-3:].astype(int) - observation).mean() > 10


def test_a_camera_that_is_not_there(shared):
    with pytest.raises(UnsuitableEnvironment, match=r"cannot be drawn: .*camera_id=99 is invalid") as told:
        make_env(EnvironmentConfig(env="cheetah-run", pixels=True, camera=99))
    assert "apt-get" not in str(told.value)  # Nothing is missing.


def test_without_shadows_the_picture_is_similar_and_the_episode_the_same(shared):
    unlit = {"render_flag_overrides": {"shadow": False, "reflection": False}}
    with cheetah(shadows=False) as env, contextlib.closing(DMControl(3, **unlit)) as reference:
        shared.reset(seed=3)
        np.testing.assert_array_equal(env.reset(seed=3)[0][-3:], reference.frame())
        for action in actions(4):
            with_shadows, reward, *_ = shared.step(action)
            observation, same_reward, *_ = env.step(action)
            assert reward == same_reward == reference.step(action)
            np.testing.assert_array_equal(observation[-3:], reference.frame())
            assert 0 < np.abs(observation.astype(int) - with_shadows).mean() < 10


@pytest.mark.parametrize("frames", [1, 3, 7])
def test_an_observation_never_reaches_into_the_episode_before(frames):
    env = toy("Screen", frames=frames)
    seen, expected = [], []
    for length in (6, 1, 3, 6):  # The second and third are broken off.
        seen.append(env.reset(seed=0)[0])
        drawn = [(env.unwrapped.episode, 0)] * frames
        expected.append(drawn[-frames:])
        for step in range(1, length + 1):
            seen.append(env.step(np.zeros(1, np.float32))[0])
            drawn.append((env.unwrapped.episode, step))
            expected.append(drawn[-frames:])
    # Compared at the end: what was given once must not change any more.
    for image, numbers in zip(seen, expected, strict=True):
        assert image.shape == (3 * frames, 6, 6)
        assert [tuple(frame[:2, 2, 3]) for frame in image.reshape(frames, 3, 6, 6)] == numbers
        # Rows are rows, and columns are columns.
        assert all(np.array_equal(blue, np.arange(36).reshape(6, 6)) for blue in image[2::3])


def test_one_frame_is_drawn_for_each_decision():
    env = toy("Screen", action_repeat=4)
    before = env.unwrapped.drawn
    env.reset(seed=0)
    assert env.unwrapped.drawn == before + 1
    for agent_step, steps in enumerate((4, 6), 2):  # The second ends with the episode, after two of its four steps.
        image = env.step(np.zeros(1, np.float32))[0]
        assert env.unwrapped.drawn == before + agent_step
        assert image[-2, 0, 0] == steps
    assert image[1::3, 0, 0].tolist() == [0, 4, 6]


def area_means(frame, size):
    """Every pixel repeated so often that all areas are whole pixels, in double precision and not rounded."""
    height, width, _ = frame.shape
    rows = frame.astype(np.float64).repeat(size, axis=0).reshape(size, height, width, 3).mean(axis=1)
    return rows.repeat(size, axis=1).reshape(size, size, width, 3).mean(axis=2)


@settings(max_examples=60)
@given(st.integers(1, 60), st.integers(1, 60), st.integers(1, 60), st.sampled_from([0, 1, 254, 255, None]))
def test_scaling_takes_the_means_of_areas(height, width, size, colour):
    frame = np.random.default_rng(0).integers(0, 256, (height, width, 3)).astype(np.uint8)
    if colour is not None:
        frame[:] = colour
    small = scaled(frame, size)
    assert (small.dtype, small.shape) == (np.uint8, (size, size, 3))
    assert np.abs(small - area_means(frame, size)).max() < (0.5 + 1e-3 if colour is None else 1e-9)


def test_frames_of_another_size_are_scaled():
    env = toy("LargeScreen", frames=1, frame_size=5)
    image = env.reset(seed=0)[0]
    assert image.shape == (3, 5, 5)
    assert np.abs(image - area_means(env.render(), 5).transpose(2, 0, 1)).max() < 0.5 + 1e-3


def test_an_environment_of_gymnasium():
    pytest.importorskip("pygame")
    env = make_env(EnvironmentConfig(env="Pendulum-v1", pixels=True, frame_size=21, action_repeat=2))
    reference = gymnasium.make("Pendulum-v1", render_mode="rgb_array")
    assert env.reset(seed=0)[0].shape == (9, 21, 21)
    reference.reset(seed=0)
    for _ in range(3):
        image = env.step(np.ones(1, np.float32))[0]
        for _ in range(2):
            reference.step(np.full(1, 2.0, np.float32))
        drawn = reference.render()
        assert drawn.shape == (500, 500, 3)
        assert np.abs(image[-3:] - area_means(drawn, 21).transpose(2, 0, 1)).max() < 0.5 + 1e-3
    env.close()
    reference.close()


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("Counter", "it takes no render_mode"),
        ("Unseen", "it has no render mode 'rgb_array'"),
        ("NothingDrawn", r"render\(\) gave NoneType"),
        ("GreyScreen", r"render\(\) gave uint8 of shape \(6, 6\)"),
        ("FloatScreen", r"render\(\) gave float64 of shape \(6, 6, 3\)"),
        ("TransparentScreen", r"render\(\) gave uint8 of shape \(6, 6, 4\)"),
        ("FailingScreen", "no such display .*apt-get install"),
    ],
)
@pytest.mark.filterwarnings("ignore:.*is not in the possible render_modes")
def test_an_environment_that_cannot_be_drawn(name, reason):
    with pytest.raises(UnsuitableEnvironment, match=f"'Toy/{name}-v0' cannot be drawn: {reason}"):
        toy(name)


def test_an_environment_that_stops_drawing():
    env = toy("FadingScreen")
    env.reset(seed=0)
    for _ in range(3):
        env.step(np.zeros(1, np.float32))
    with pytest.raises(UnsuitableEnvironment, match=r"render\(\) gave NoneType"):
        env.step(np.zeros(1, np.float32))


DRAW = f"""
import os
import numpy as np
from a2ls.envs import EnvironmentConfig, UnsuitableEnvironment, has_image_observations, make_env
try:
    env = make_env(EnvironmentConfig(env="cheetah-run", pixels=True, frame_size={SIZE}, action_repeat=4))
except UnsuitableEnvironment:
    os._exit(0)
env.reset(seed=0)
for _ in range(3):
    image = env.step(np.ones(6, np.float32))[0]
"""


def test_drawing_on_the_processor_starts_no_threads(tmp_path):
    names = """
for thread in os.listdir("/proc/self/task"):
    with open(f"/proc/self/task/{thread}/comm") as file:
        print(file.read(), end="")
"""
    if not os.path.isdir("/proc/self/task"):  # noqa: PTH112
        pytest.skip("threads are counted on Linux only")
    assert "llvmpipe" not in run(DRAW + names, tmp_path)


# In a process of its own, as dm_control's environments do not expect others that draw with MuJoCo.
HALF_CHEETAHS = """
import os
import numpy as np
from a2ls.envs import EnvironmentConfig, UnsuitableEnvironment, has_image_observations, make_env
config = EnvironmentConfig(env="HalfCheetah-v5", pixels=True, frame_size=20, frames=1)
try:
    one, other = make_env(config), make_env(config)
except UnsuitableEnvironment:
    os._exit(0)
images = [env.reset(seed=0)[0] for env in (one, other)]
other.close()
images.append(one.reset(seed=0)[0])
one.close()
print(np.concatenate(images).tobytes().hex())
"""


def test_closing_an_environment_of_gymnasium_does_not_blind_another_of_the_same_seed(tmp_path):
    printed = run(HALF_CHEETAHS, tmp_path)
    if not printed:
        pytest.skip("nothing can be drawn here")
    # Of two environments, the second of which is then closed, and of the first after that.
    first, second, after = np.frombuffer(bytes.fromhex(printed), np.uint8).reshape(3, 3, 20, 20)
    assert len(np.unique(first)) > 50
    np.testing.assert_array_equal(second, first)
    np.testing.assert_array_equal(after, first)


def image_drawn_with(folder, **variables):
    printed = run(f"{DRAW}\nprint(os.environ['MUJOCO_GL'], image.tobytes().hex())", folder, **variables)
    if not printed:
        pytest.skip("nothing can be drawn here")
    backend, image = printed.split()
    return backend, np.frombuffer(bytes.fromhex(image), np.uint8).reshape(9, SIZE, SIZE).astype(int)


@pytest.fixture
def needs_osmesa():
    try:
        ctypes.CDLL("libOSMesa.so.8")
    except OSError:
        pytest.skip("OSMesa is not installed")


@pytest.mark.usefixtures("needs_osmesa")
def test_osmesa_draws_what_egl_draws(tmp_path):
    backend, image = image_drawn_with(tmp_path, MUJOCO_GL="osmesa")
    assert backend == "osmesa"
    assert image.std() > 10
    backend, other = image_drawn_with(tmp_path)
    assert backend == "egl"
    # The same down to the bit where both are Mesa's; a graphics card rounds otherwise.
    assert np.abs(image - other).mean() < 2


@pytest.mark.usefixtures("needs_osmesa")
def test_osmesa_is_taken_where_egl_has_no_driver(tmp_path):
    backend, image = image_drawn_with(tmp_path, __EGL_VENDOR_LIBRARY_DIRS=str(tmp_path))
    assert backend == "osmesa"
    assert image.std() > 10


@pytest.mark.parametrize(("name", "channels"), [("Image", 3), ("ImageFirst", 3), ("GreyImage", 1)])
def test_images_that_the_environment_observes_are_stacked_as_they_are(name, channels):
    name = f"helpers.toy_envs:Toy/{name}-v0"
    assert has_image_observations(name)
    env = make_env(EnvironmentConfig(name, 1, image_observations=True, frame_size=8, frames=2))
    first, _ = env.reset(seed=0)
    raws = [env.unwrapped.raw]
    for _ in range(2):
        seen, *_ = env.step(np.zeros(1, np.float32))
        raws.append(env.unwrapped.raw)
    frames = [raw if raw.shape[0] == 3 else raw.reshape(8, 8, channels).transpose(2, 0, 1) for raw in raws]
    assert np.array_equal(first, np.concatenate([frames[0], frames[0]]))
    assert np.array_equal(seen, np.concatenate(frames[1:]))
    assert (seen.dtype, seen.shape) == (np.uint8, (2 * channels, 8, 8))
    larger = make_env(EnvironmentConfig(name, 1, image_observations=True, frame_size=9, frames=3))
    assert larger.observation_shape == (3 * channels, 9, 9)


def test_vectors_are_no_images():
    assert not has_image_observations("Pendulum-v1")
    with pytest.raises(UnsuitableEnvironment, match=r"image_observations is True, but .* Box\(.*of uint8"):
        make_env(EnvironmentConfig("Pendulum-v1", 1, image_observations=True))
