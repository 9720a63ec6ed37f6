"""The part of `update_speed.py` about discrete actions: updates of Rainbow on vectors, and what recording brings."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from measuring import Contestant, count_flops, time_in_turn
from rainbow_contestants import Learner, Play, filled_replay, rainbow_settings, stable_baselines_dqn
from rainbow_work import RainbowSizes, update_work
from reporting import Result, Row, bound_of, compared_json, derivation_line, machine_json, update_table
from rich.console import Console

from a2ls.space import named_loss
from a2ls.training import TrainConfig, preset

PLAIN, WINNER = "Rainbow", "Rainbow + A2-winner"
BASELINE = "Stable-Baselines3 DQN"
LOSSES = {PLAIN: None, WINNER: named_loss("a2-winner")}
OBSERVATION, ACTIONS = 4, 2
"""Of CartPole-v1."""

BASELINE_NOTE = (
    "Stable-Baselines3's DQN has a hidden layer of as many units, and the same batch. It has no encoder, no auxiliary "
    "loss, no distributions of returns, no noise on the weights, no streams, no double choice of actions and no "
    "priorities, its returns are of one step, and its target network is not copied in what is timed."
)


def vector_sizes(hidden: int, batch: int) -> RainbowSizes:
    """The sizes of the preset, but for these."""
    return RainbowSizes(hidden, batch, (OBSERVATION,), ACTIONS, rainbow_settings(_settings()).atoms)


def _settings() -> TrainConfig:
    return preset("fast-discrete", "CartPole-v1")


def by_pytorch(name: str) -> str:
    """The name of an agent whose updates are not recorded."""
    return f"{name}, PyTorch"


def measure(sizes: RainbowSizes, *, rounds: int | None, seconds: float) -> Result:
    """Time the updates of one size, recorded and by PyTorch, and what bounds them."""
    title, config = _title(sizes), _settings()
    with Console(stderr=True).status(f"{title}: filling replay buffers"):
        play = Play.draw(sizes)
        replay = filled_replay(config, sizes, play)
        contestants, bounds = [], []
        gflop: dict[str, float] = {}
        for name, loss in LOSSES.items():
            work = update_work(sizes, loss)
            recorded = Learner(config, sizes, replay, loss, recorded=True)
            obstacle = recorded.obstacle()
            if obstacle is not None:
                print(f"{name} is run by PyTorch, and not recorded: {obstacle}", file=sys.stderr)
            plain = Learner(config, sizes, replay, loss)
            ours = [Contestant(name, recorded.update), Contestant(by_pytorch(name), plain.update)]
            gflop |= dict.fromkeys((each.name for each in ours), count_flops(ours[-1]) / 1e9)
            contestants += ours
            bounds.append(Contestant(bound_of(name), work.prepare()))
            gflop[bound_of(name)] = work.flops / 1e9
        try:
            theirs = stable_baselines_dqn(config, sizes, play, BASELINE)
            contestants.append(theirs)
            gflop[BASELINE] = count_flops(theirs) / 1e9
        except ImportError as error:
            print(f"Left out Stable-Baselines3 ({error}); to have it: pip install 'a2ls[bench]'", file=sys.stderr)
    timings = time_in_turn([*contestants, *bounds], rounds=rounds, seconds=seconds, title=title)
    return {name: Row(timing, gflop[name]) for name, timing in timings.items()}


def _title(sizes: RainbowSizes) -> str:
    return f"hidden {sizes.hidden}, batch {sizes.batch}, {sizes.observation[0]} numbers"


def lines(sizes: RainbowSizes, result: Result) -> list[str]:
    """The derived products beside PyTorch's count of the real update, and what recording brings."""
    said = []
    for name, loss in LOSSES.items():
        derived = update_work(sizes, loss).flops / 1e9
        said.append(derivation_line("Products", name, derived, result[name].gflop))
    for name in LOSSES:
        ratio = result[name].timing.median / result[by_pytorch(name)].timing.median
        said.append(f"{name}, recorded: {ratio:.2f} of the time by PyTorch.")
    return [*said, f"{WINNER} was timed {result[WINNER].timing.runs} times."]


def run(
    every_size: Sequence[RainbowSizes], *, threads: int, rounds: int | None, seconds: float, console: Console
) -> dict[str, Any]:
    """Measure and print; returns all figures."""
    figures = []
    for sizes in every_size:
        result = measure(sizes, rounds=rounds, seconds=seconds)
        console.print()
        console.print(update_table(f"One update with discrete actions, {_title(sizes)}", result, BASELINE))
        for line in lines(sizes, result):
            console.print(line, highlight=False)
        contestants = {name: compared_json(result, name, BASELINE) for name in result}
        figures.append({**asdict(sizes), "contestants": contestants})
    console.print(f"\n{BASELINE_NOTE}", highlight=False)
    return {**machine_json(threads), "notes": [BASELINE_NOTE], "sizes": figures}
