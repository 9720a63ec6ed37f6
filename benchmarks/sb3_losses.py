"""SAC of Stable-Baselines3 with A2-winner, with the same networks, and as it is: two tasks, three seeds each.

    python benchmarks/sb3_losses.py docs/results/sb3/runs.csv            train what is missing, three minutes a run
    python benchmarks/sb3_losses.py docs/results/sb3/runs.csv --show     the table

All have the budget and the settings of the preset `fast`: 40,000 env steps with an action repeat of 4, 256 hidden
units, batches of 128, a learning rate of 1e-3. All else is as in Stable-Baselines3. A row is appended when its run
ends, and runs that have one are left out: stop it at any time, start it again, in several processes if they are given
different tasks, methods or seeds.
"""

from __future__ import annotations

import argparse
import csv
import sys
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import stable_baselines3
import torch
from rich import box
from rich.console import Console
from rich.table import Table
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import DummyVecEnv

from a2ls import preset
from a2ls._statistics import cautious_interval, normalised_estimate
from a2ls.envs import make_env
from a2ls.sb3 import SAC
from a2ls.training import TrainConfig

ENVIRONMENTS = ("cheetah-run", "walker-walk")
METHODS = ("a2-winner", "same networks", "stable-baselines3")
BASELINE = "same networks"
"""With the loss; without it, through the same encoder; the class of Stable-Baselines3, without an encoder."""
HIDDEN, RATE = 256, 1e-3
# Of the environment that agents are evaluated in, whatever the seed of the training.
_EVALUATION_SEED = 1_000


@dataclass(frozen=True)
class Run:
    """One row of the file."""

    env: str
    method: str
    seed: int
    aulc: float
    """The mean of the scores."""
    scores: str
    """Mean returns of the evaluations, in order, with spaces between them."""
    seconds: float

    @property
    def key(self) -> tuple[str, str, int]:
        """What is trained once."""
        return self.env, self.method, self.seed


def read(path: Path) -> list[Run]:
    """The runs in a file, none if there is no such file."""
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return [
            Run(row["env"], row["method"], int(row["seed"]), float(row["aulc"]), row["scores"], float(row["seconds"]))
            for row in csv.DictReader(file)
        ]


def append(path: Path, run: Run) -> None:
    """Add a row, after the heading if the file is new."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", newline="") as file:
        writer = csv.DictWriter(file, [field.name for field in fields(Run)], lineterminator="\n")
        if file.tell() == 0:
            writer.writeheader()
        writer.writerow(asdict(run))


def vectorised(config: TrainConfig, seed: int) -> DummyVecEnv:
    """The environment with its action repeat, as Stable-Baselines3 takes it."""
    env = DummyVecEnv([lambda: Monitor(make_env(config.environment))])
    env.seed(seed)
    return env


class Evaluations(BaseCallback):
    """Evaluates after given numbers of agent steps, in an environment of its own."""

    def __init__(self, config: TrainConfig) -> None:
        super().__init__()
        self.scores: list[float] = []
        self._at = set(config.evaluation_agent_steps())
        self._episodes = config.evaluation_episodes
        self._env = vectorised(config, _EVALUATION_SEED)

    def _on_step(self) -> bool:
        if self.num_timesteps in self._at:
            score, _ = evaluate_policy(self.model, self._env, self._episodes, deterministic=True)
            self.scores.append(float(np.mean(score)))
        return True


def train(config: TrainConfig, method: str, seed: int) -> Run:
    """One run."""
    env = vectorised(config, seed)
    settings: dict[str, Any] = {
        "learning_rate": RATE,
        "batch_size": config.batch_size,
        "buffer_size": config.buffer_size,
        "learning_starts": config.learning_starts,
        "policy_kwargs": {"net_arch": [HIDDEN, HIDDEN]},
        "seed": seed,
        "device": "cpu",
    }
    model: stable_baselines3.SAC
    if method == "stable-baselines3":
        model = stable_baselines3.SAC("MlpPolicy", env, **settings)
    else:
        model = SAC("MlpPolicy", env, auxiliary_loss=method if method == "a2-winner" else None, **settings)
    evaluations, start = Evaluations(config), time.process_time()
    model.learn(config.agent_steps, evaluations)
    seconds = round(time.process_time() - start, 1)
    scores = evaluations.scores
    aulc = round(float(np.mean(scores)), 2)
    return Run(config.environment.env, method, seed, aulc, " ".join(f"{score:.1f}" for score in scores), seconds)


def table(runs: Iterable[Run]) -> Table:
    """AULC of every method in every environment and over all, beside that of the same networks without the loss."""
    drawn = Table(title="AULC, and score at the end", title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in ("environment", "method"):
        drawn.add_column(heading, no_wrap=True)
    for heading in ("of each seed", "mean", f"of {BASELINE}", "95 %", "at the end", "seconds"):
        drawn.add_column(heading, justify="right", no_wrap=True)
    found: dict[str, dict[str, list[Run]]] = {}
    for run in runs:
        found.setdefault(run.env, {}).setdefault(run.method, []).append(run)
    for env, methods in found.items():
        for method in filter(methods.__contains__, METHODS):
            own = methods[method]
            drawn.add_row(
                env,
                method,
                " ".join(f"{run.aulc:.0f}" for run in own),
                f"{np.mean([run.aulc for run in own]):.1f}",
                *_relative(method, [methods]),
                f"{np.mean([float(run.scores.split()[-1]) for run in own]):.1f}",
                f"{np.mean([run.seconds for run in own]):.0f}",
            )
    for method in METHODS:
        if method != BASELINE:
            drawn.add_row("all", method, "", "", *_relative(method, list(found.values())), "", "")
    return drawn


def _relative(method: str, environments: list[dict[str, list[Run]]]) -> tuple[str, str]:
    """The AULC of a method where the baseline's is 1, with the interval that holds from few seeds, too."""
    if method == BASELINE or any({method, BASELINE} - methods.keys() for methods in environments):
        return "", ""
    own, base = ([np.array([run.aulc for run in each[name]]) for each in environments] for name in (method, BASELINE))
    interval = cautious_interval(own, base)
    shown = "" if interval is None else f"{interval.low:.2f} to {interval.high:.2f}"
    return f"{normalised_estimate(own, base).value:.2f}", shown


def main() -> None:
    """Train what is missing, or show what is there."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path, help="the runs, as CSV")
    parser.add_argument("--show", action="store_true", help="print the table, and train nothing")
    parser.add_argument("--env", nargs="+", default=ENVIRONMENTS, help=f"(default: {' '.join(ENVIRONMENTS)})")
    parser.add_argument("--methods", nargs="+", default=METHODS, choices=METHODS)
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2], help="(default: 0 1 2)")
    chosen = parser.parse_args()
    if not chosen.show:
        torch.set_num_threads(1)
        for seed in chosen.seeds:
            for env in chosen.env:
                for method in chosen.methods:
                    if (env, method, seed) not in {run.key for run in read(chosen.file)}:
                        run = train(preset("fast", env), method, seed)
                        append(chosen.file, run)
                        print(f"{env}, {method}, seed {seed}: AULC {run.aulc:.1f}, {run.seconds:.0f} s", flush=True)
    # A file has room for all columns.
    Console(width=None if sys.stdout.isatty() else 120).print(table(read(chosen.file)))


if __name__ == "__main__":
    main()
