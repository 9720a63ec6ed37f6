"""Drawing in many episodes and environments takes no more and no more memory, file handles or threads."""

import json
from pathlib import Path

import pytest

from helpers.processes import run_python

pytestmark = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is measured on Linux only")

# Run in a process of its own, where nothing else takes memory. Freed memory is handed back before it is measured, so
# that the figures repeat within a few tenths of a megabyte.
MEASURE = """
import ctypes, gc, json, os, sys
import numpy as np
from a2ls.envs import EnvironmentConfig, UnsuitableEnvironment, make_env

CONFIG = EnvironmentConfig(env="cartpole-swingup", pixels=True, frame_size=32, shadows=False, action_repeat=8)

def measured():
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    with open("/proc/self/status") as file:
        status = dict(line.split(":", 1) for line in file)
    # Not what files take: their pages come and go as the system likes.
    own = ("RssAnon", "RssShmem", "VmSwap")
    megabytes = sum(int(status[name].split()[0]) for name in own) * 1024 / 1e6
    return megabytes, len(os.listdir("/proc/self/fd")), len(os.listdir("/proc/self/task"))

def growth(times, repeated):
    "From after a third of the times to the end."
    for number in range(times):
        if number == times // 3:
            before = measured()
        repeated(number)
    return [now - then for now, then in zip(measured(), before, strict=True)]

def play(env, seed):
    env.reset(seed=seed)
    env.step(np.zeros(1, np.float32))

def make_and_close(number):
    env = make_env(CONFIG)
    play(env, number)
    env.close()
    return env

try:
    env = make_env(CONFIG)
except UnsuitableEnvironment as error:
    print(json.dumps(str(error)))
    os._exit(0)
episodes, environments = map(int, sys.argv[1:])
kept = []
figures = {"episodes": growth(episodes, lambda number: play(env, number))}
figures["environments"] = growth(environments, make_and_close)
figures["closed environments"] = growth(4, lambda number: kept.append(make_and_close(number)))
print(json.dumps(figures))
"""


@pytest.fixture(
    scope="module",
    params=[(90, 6), pytest.param((2000, 120), marks=pytest.mark.slow)],
    ids=lambda numbers: "{} episodes, {} environments".format(*numbers),
)
def growth(request):
    """Megabytes, file handles and threads that came in addition, in the best of up to four processes.

    In some, one in eight, a thread that draws gets a heap of its own on the way; what environments leave behind, they
    leave in all.
    """
    tried = []
    while len(tried) < 4:
        told = json.loads(run_python(MEASURE, *request.param))
        if isinstance(told, str):
            pytest.skip(told)
        tried.append(told)
        if told["environments"][0] < 3:
            break
    return min(tried, key=lambda each: each["environments"][0])


# Measured were up to 0.13 and 0.6 MB. An image has 9 kB, so 60 episodes that left two of them would leave 1.1 MB.
@pytest.mark.parametrize(("repeated", "most"), [("episodes", 0.7), ("environments", 3)])
def test_nothing_is_left_behind_by(growth, repeated, most):
    megabytes, handles, threads = growth[repeated]
    assert megabytes < most
    assert (handles, threads) == (0, 0)


def test_closing_frees_what_drawing_took(growth):
    # Of the last three, which are still referred to. Each keeps 14 MB of its model; open, it would keep 80 MB.
    megabytes, handles, threads = growth["closed environments"]
    assert megabytes < 3 * 27
    assert (handles, threads) == (0, 0)
