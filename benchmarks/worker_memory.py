"""How much memory a worker process has after each of its trainings, which should not grow with their number.

One worker trains losses one after the other, each with the networks and the replay buffer of the preset, but few steps.
What it holds in memory afterwards, with libraries, is read from /proc. One MB is 10^6 bytes.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
from measuring import cpu_name
from rich.console import Console

from a2ls.engine import Evaluated, Failed, Finished, Job, JobKey, LocalEngine
from a2ls.search import SearchSpace
from a2ls.search._variation import random_loss
from a2ls.training import TrainConfig, TrainJob, preset

SHOWN_EVERY = 5

EXAMPLES = """\
examples:
  python benchmarks/worker_memory.py                                25 trainings on Cheetah-Run, some minutes
  python benchmarks/worker_memory.py --env Pendulum-v1 --trainings 10
"""


def short_training(env: str) -> TrainConfig:
    """A training with everything in it that the preset `fast` has, for a hundred updates."""
    config = preset("fast", env)
    steps = 200 * config.environment.action_repeat
    return replace(config, steps=steps, evaluations=1, evaluation_episodes=1, learning_starts=100)


def memory_after_each(env: str, trainings: int) -> Iterator[float]:
    """The megabytes of a worker after its first training, its second, and so on.

    Raises:
        RuntimeError: If a training fails.
    """
    rng, config, space = np.random.default_rng(0), short_training(env), SearchSpace()
    with LocalEngine(1) as engine:
        for number in range(trainings):
            while (loss := random_loss(rng, space)) not in space:
                pass
            job = Job(JobKey("memory", number), TrainJob(config, loss, number), str(loss))
            engine.submit(job)
            _wait_for(engine)
            _wait_for_sleep(engine.pids[0])
            yield _resident(engine.pids[0])


def _wait_for(engine: LocalEngine) -> None:
    while True:
        for event in engine.events(timeout=1.0):
            if isinstance(event, Evaluated):
                engine.answer(event.job.key, go_on=True)
            if isinstance(event, Failed):
                raise RuntimeError(event.reason)
            if isinstance(event, Finished):
                return


def _wait_for_sleep(pid: int) -> None:
    """Wait until a worker waits for its next job: it reports first, and tidies up after that."""
    sleeping = 0
    while sleeping < 5:
        time.sleep(0.1)
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0]
        sleeping = sleeping + 1 if state == "S" else 0


def _resident(pid: int) -> float:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 / 1e6 for line in lines if line.startswith("VmRSS"))


def main() -> None:
    """Train and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, epilog=EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--env", default="cheetah-run", help="where to train (default: cheetah-run)")
    parser.add_argument("--trainings", type=int, default=25, metavar="N", help="how many (default: 25)")
    arguments = parser.parse_args()
    if sys.platform != "linux":
        sys.exit("the memory of a process is read from /proc, which Linux has")
    console = Console()
    console.print(f"{cpu_name()}, {arguments.env}", highlight=False)
    measured: list[float] = []
    for megabytes in memory_after_each(arguments.env, arguments.trainings):
        measured.append(megabytes)
        if len(measured) == 1 or len(measured) % SHOWN_EVERY == 0:
            console.print(f"after {len(measured):3} trainings: {megabytes:6,.0f} MB", highlight=False)
    if len(measured) > 1:
        grown = (measured[-1] - measured[0]) / (len(measured) - 1)
        console.print(f"grown by {grown:.2f} MB for each training after the first", highlight=False)


if __name__ == "__main__":
    main()
