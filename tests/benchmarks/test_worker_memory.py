"""The memory of a worker does not grow with its trainings."""

import sys

import pytest
from worker_memory import memory_after_each

from helpers.processes import run_python

pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform != "linux", reason="memory is read from /proc")]

ONE_TRAINING = """
import gc
from dataclasses import replace
from a2ls.training import Training, preset

def begin_and_end():
    Training(replace(preset("fast", "cheetah-run"), steps=800), None, 0).close()

begin_and_end()
gc.collect()
kinds = [type(kept).__name__ for kept in gc.get_objects()]
print([kind for kind in ("Training", "SAC", "ReplayBuffer", "AgentEnv") if kind in kinds])
"""


def test_nothing_keeps_the_first_training_of_a_process():
    assert run_python(ONE_TRAINING).strip() == "[]"


def test_a_worker_is_as_large_after_many_trainings_as_after_the_first():
    measured = list(memory_after_each("cheetah-run", 15))
    # Megabytes: a worker that hands nothing back grows by fifty.
    assert measured[-1] - measured[0] < 20
