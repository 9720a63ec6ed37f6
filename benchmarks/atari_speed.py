"""The part of `update_speed.py` about Atari games: updates of Rainbow, where their time goes, and a whole training."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import operators
from discrete_speed import BASELINE, PLAIN, WINNER
from measuring import Contestant, Timing, count_flops, time_in_turn
from pixel_speed import count_gflop
from rainbow_contestants import (
    ACTING,
    ADDING,
    PARTS,
    PLAYING,
    Learner,
    Play,
    Player,
    filled_replay,
    rainbow_settings,
    stable_baselines_dqn,
)
from rainbow_work import RainbowSizes, Work, update_work
from reporting import (
    Result,
    Row,
    bound_of,
    compared_json,
    derivation_line,
    empty_table,
    machine_json,
    median_and_quartiles,
    share_line,
    share_of_bound,
    timing_json,
    update_table,
)
from rich.console import Console
from rich.table import Table

from a2ls.envs import UnsuitableEnvironment
from a2ls.space import Loss, named_loss
from a2ls.training import TrainConfig, preset, with_baseline

CURL = "Rainbow + curl"
RECORDED = {PLAIN: f"{PLAIN}, recorded", WINNER: f"{WINNER}, recorded"}
JUDGING = "choosing an action of an evaluation"
ACTIONS = 6
"""Of Pong."""
PROFILED = 20
"""Updates that are profiled; fewer, if there are fewer rounds."""
GAME = 1_000
"""Agent steps in a game of an evaluation: what Pong takes where nearly every point is lost, 975 in the mean of ten
games with random actions. A player that keeps the ball in play takes longer."""
GOAL_SHARE = 0.8
GOAL_SIZES = (256, 32, 84)
GOAL_THREADS = 1

BASELINE_NOTE = (
    "Stable-Baselines3's DQN has the same convolutions, a hidden layer of as many units, and the same batch. It has no "
    "auxiliary loss, no distributions of returns, no noise on the weights, no streams, no double choice of actions and "
    "no priorities, its returns are of one step, and its target network is not copied in what is timed."
)
HOURS_NOTE = (
    f"An evaluation is taken to have games of {GAME:,} agent steps. What is written to disk, and the start of the "
    "process, are left out."
)


def atari_sizes(hidden: int, batch: int, image_size: int) -> RainbowSizes:
    """The sizes of the preset, but for these."""
    config = _settings()
    frames = config.environment.frames
    return RainbowSizes(hidden, batch, (frames, image_size, image_size), ACTIONS, rainbow_settings(config).atoms)


def _settings() -> TrainConfig:
    return preset("atari-100k", "pong")


def _methods() -> dict[str, tuple[TrainConfig, Loss | None]]:
    """The settings and the loss of each agent."""
    config = _settings()
    return {
        PLAIN: (config, None),
        WINNER: (config, named_loss("a2-winner")),
        CURL: (with_baseline(config, "curl"), named_loss("curl")),
    }


@dataclass(frozen=True)
class Found:
    """What was found about one size."""

    rows: Result
    convolutions: dict[str, float]
    """Of the agents: what PyTorch counts in their convolutions per update, in 10^9 operations."""
    parts: dict[str, dict[str, Timing]]
    """Of the agents: the parts of an update."""
    operators: dict[str, dict[str, float]]
    """Of the agents: the share of the profiled time of an update in each group of operators."""
    obstacles: dict[str, str]
    """Why updates of agents cannot be recorded, for those that cannot."""
    step: dict[str, Timing]
    """The parts of an agent step without its update; empty if the game cannot be played here."""


def measure(sizes: RainbowSizes, *, rounds: int | None, seconds: float) -> Found:
    """Time the updates of one size, their parts and what bounds them, and the rest of an agent step."""
    methods, title = _methods(), _title(sizes)
    works = {name: update_work(sizes, loss) for name, (_, loss) in methods.items()}
    with Console(stderr=True).status(f"{title}: filling replay buffers"):
        play = Play.draw(sizes)
        replay = filled_replay(_settings(), sizes, play)
        whole, in_parts = (
            {name: Learner(config, sizes, replay, loss) for name, (config, loss) in methods.items()} for _ in range(2)
        )
        contestants = [Contestant(name, learner.update) for name, learner in whole.items()]
        counts = {each.name: count_gflop(each) for each in contestants}
        gflop = {name: count.total for name, count in counts.items()}
        obstacles: dict[str, str] = {}
        for name, recorded_name in RECORDED.items():
            config, loss = methods[name]
            learner = Learner(config, sizes, replay, loss, recorded=True)
            obstacle = learner.obstacle()
            if obstacle is None:
                contestants.append(Contestant(recorded_name, learner.update))
                gflop[recorded_name] = gflop[name]
            else:
                obstacles[name] = obstacle
        baseline = _baseline(sizes, play)
        contestants += baseline
        gflop |= {each.name: count_flops(each) / 1e9 for each in baseline}
        contestants += _bounds(works)
        gflop |= {bound_of(name): work.flops / 1e9 for name, work in works.items()}
        player = _player(sizes)
    others = [Contestant(_in_parts(name), learner.update_in_parts) for name, learner in in_parts.items()]
    if player is not None:
        others += [Contestant("agent step", player.step), player.evaluation_actions(JUDGING)]
    timings = time_in_turn([*contestants, *others], rounds=rounds, seconds=seconds, title=title)
    profiled = PROFILED if rounds is None else min(rounds, PROFILED)
    step = {} if player is None else {**player.laps.timings(), JUDGING: timings[JUDGING]}
    if player is not None:
        player.env.close()
    return Found(
        rows={each.name: Row(timings[each.name], gflop[each.name]) for each in contestants},
        convolutions={name: count.convolutions for name, count in counts.items()},
        parts={name: learner.laps.timings() for name, learner in in_parts.items()},
        operators={name: operators.group_shares(learner.update, profiled) for name, learner in whole.items()},
        obstacles=obstacles,
        step=step,
    )


def _bounds(works: Mapping[str, Work]) -> list[Contestant]:
    return [Contestant(bound_of(name), work.prepare()) for name, work in works.items()]


def _baseline(sizes: RainbowSizes, play: Play) -> list[Contestant]:
    try:
        return [stable_baselines_dqn(_settings(), sizes, play, BASELINE)]
    except ImportError as error:
        print(f"Left out Stable-Baselines3 ({error}); to have it: pip install 'a2ls[bench]'", file=sys.stderr)
        return []


def _player(sizes: RainbowSizes) -> Player | None:
    try:
        return Player(_settings(), sizes)
    except UnsuitableEnvironment as error:
        print(f"Left out the game ({error}); to have it: pip install 'a2ls[atari]'", file=sys.stderr)
        return None


def _in_parts(name: str) -> str:
    return f"{name}, in parts"


def _title(sizes: RainbowSizes) -> str:
    channels, side, _ = sizes.observation
    return f"hidden {sizes.hidden}, batch {sizes.batch}, images {channels}x{side}x{side}"


def _by_agent(title: str, first: str, found: Found) -> Table:
    """A table with a column for each agent, under what it has beside the plain one."""
    return empty_table(title, first, *(name.removeprefix(f"{PLAIN} ") for name in found.parts))


def parts_table(found: Found) -> Table:
    """The parts of an update, and their shares of all of them."""
    drawn = _by_agent("The parts of an update by PyTorch: median ms, and share", "part", found)
    for part in PARTS:
        cells = []
        for parts in found.parts.values():
            total = sum(timing.median for timing in parts.values())
            timing = parts.get(part)
            cells.append("" if timing is None else f"{timing.median:.2f} {timing.median / total:4.0%}")
        drawn.add_row(part, *cells)
    return drawn


def operators_table(found: Found) -> Table:
    """Where the profiler saw the time go."""
    drawn = _by_agent("The time of an update by PyTorch's profiler", "where", found)
    for group in next(iter(found.operators.values())):
        drawn.add_row(group, *(f"{shares[group]:.1%}" for shares in found.operators.values()))
    return drawn


def products_share(shares: Mapping[str, float]) -> float:
    """The profiled share of convolutions and matrix products."""
    return shares[operators.CONVOLUTIONS] + shares[operators.PRODUCTS]


def step_table(found: Found) -> Table:
    """What an agent step takes besides its update."""
    drawn = empty_table("One agent step in Pong, without its update", "part", "median ms", "quartiles")
    for part, timing in found.step.items():
        drawn.add_row(part, *median_and_quartiles(timing))
    return drawn


def run_hours(update: Timing, step: Mapping[str, Timing]) -> dict[str, float]:
    """What a whole training of the preset takes, by what is done in it."""
    config = _settings()
    learning = config.agent_steps - config.learning_starts
    judged = config.evaluations * config.evaluation_episodes * GAME
    milliseconds = {
        "updates": learning * update.median,
        "actions": learning * step[ACTING].median,
        "environment": config.agent_steps * step[PLAYING].median,
        "replay buffer": config.agent_steps * step[ADDING].median,
        "evaluations": judged * (step[PLAYING].median + step[JUDGING].median),
    }
    hours = {what: each / 3_600_000 for what, each in milliseconds.items()}
    return {**hours, "all": sum(hours.values())}


def hours_table(found: Found) -> Table:
    """Whole trainings."""
    every = [run_hours(found.rows[name].timing, found.step) for name in found.parts]
    drawn = _by_agent("A whole training of atari-100k, in hours", "what", found)
    for what in every[0]:
        drawn.add_row(what, *(f"{hours[what]:.2f}" for hours in every))
    return drawn


def lines(sizes: RainbowSizes, found: Found, threads: int) -> list[str]:
    """What was derived beside PyTorch's count, whether updates can be recorded, and whether the goals are reached."""
    rows = found.rows
    said = []
    for name in found.parts:
        derived = update_work(sizes, _methods()[name][1]).flops / 1e9
        said.append(derivation_line("Convolutions and products", name, derived, rows[name].gflop))
    for name, obstacle in found.obstacles.items():
        said.append(f"{name} cannot be recorded: {obstacle}.")
    for name, recorded in RECORDED.items():
        if recorded in rows:
            ratio = rows[recorded].timing.median / rows[name].timing.median
            said.append(f"{recorded}: {ratio:.2f} of the time by PyTorch.")
    said.append(f"{WINNER} was timed {rows[WINNER].timing.runs} times.")
    if (sizes.hidden, sizes.batch, sizes.observation[-1]) == GOAL_SIZES and threads == GOAL_THREADS:
        said += goal_lines(f"{sizes.hidden}/{sizes.batch}", found)
    return said


def goal_lines(size: str, found: Found) -> list[str]:
    """Whether enough of the updates' time is in convolutions and matrix products."""
    said = []
    for name, shares in found.operators.items():
        share = share_of_bound(found.rows, name)
        if share is not None:
            said.append(share_line(f"{name} at {size}", share, "of the bound", GOAL_SHARE))
        profiled = "of the profiled time in convolutions and matrix products"
        said.append(share_line(f"{name} at {size}", products_share(shares), profiled, GOAL_SHARE))
    return said


def run(
    every_size: Sequence[RainbowSizes], *, threads: int, rounds: int | None, seconds: float, console: Console
) -> dict[str, Any]:
    """Measure and print; returns all figures."""
    figures = []
    for sizes in every_size:
        found = measure(sizes, rounds=rounds, seconds=seconds)
        for table in _tables(sizes, found):
            console.print()
            console.print(table)
        for line in lines(sizes, found, threads):
            console.print(line, highlight=False)
        figures.append(_size_json(sizes, found))
    console.print(f"\n{BASELINE_NOTE}\n{HOURS_NOTE}", highlight=False)
    return {**machine_json(threads), "notes": [BASELINE_NOTE, HOURS_NOTE], "sizes": figures}


def _tables(sizes: RainbowSizes, found: Found) -> list[Table]:
    drawn = [update_table(f"One update in an Atari game, {_title(sizes)}", found.rows, BASELINE)]
    drawn += [parts_table(found), operators_table(found)]
    if found.step:
        drawn += [step_table(found), hours_table(found)]
    return drawn


def _size_json(sizes: RainbowSizes, found: Found) -> dict[str, Any]:
    hours = {name: run_hours(found.rows[name].timing, found.step) for name in found.parts} if found.step else {}
    return {
        **asdict(sizes),
        "contestants": {
            name: {**compared_json(found.rows, name, BASELINE), "convolutions_gflop": found.convolutions.get(name)}
            for name in found.rows
        },
        "parts": {
            name: {part: timing_json(timing) for part, timing in parts.items()} for name, parts in found.parts.items()
        },
        "profiled_shares": found.operators,
        "not_recorded": found.obstacles,
        "agent_step": {part: timing_json(timing) for part, timing in found.step.items()},
        "hours": hours,
    }
