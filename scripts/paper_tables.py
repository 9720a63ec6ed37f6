"""The tables of docs/paper.md that come from the code: hyper-parameters beside the paper's, and what experiments cost.

python scripts/paper_tables.py            # write them into docs/paper.md
python scripts/paper_tables.py --check    # only say whether they are up to date
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from generated_tables import markdown_table, with_tables

from a2ls.envs import ATARI_GAMES, PAPER_TASKS
from a2ls.training import TrainConfig, preset

DOCUMENT = Path(__file__).parents[1] / "docs" / "paper.md"

# The tasks of the paper's tables of scores.
IMAGE_TASKS = ("cheetah-run", "reacher-easy", "walker-walk", "finger-spin", "cartpole-swingup", "ball-in-cup-catch")
VECTOR_TASKS = tuple(PAPER_TASKS)


class Line(NamedTuple):
    """A line of the paper's tables of hyper-parameters (its appendix C.4), and the setting that has its value."""

    words: str
    setting: str
    vectors: str
    evolution: str
    final: str


def _same(words: str, setting: str, value: str) -> Line:
    return Line(words, setting, value, value, value)


_SLOW_CHEETAH = "2e-4 (cheetah-run), else 1e-3"
LINES = (
    Line("Random crop", "agent.augmentation", "", "False for SAC-wo-aug, else True", "True"),
    Line("Observation rendering", "environment.frame_size", "", "84 for SAC-wo-aug, else 100", "100"),
    Line("Observation downsampling", "agent.image_size", "", "84", "84"),
    _same("Replay buffer size", "buffer_size", "100k"),
    _same("Initial steps", "learning_starts", "1000"),
    Line("Stacked frames", "environment.frames", "", "3", "3"),
    Line(
        "Action repeat",
        "environment.action_repeat",
        "4",
        "2 (walker-walk), else 4",
        "8 (cartpole-swingup), 2 (walker-walk, finger-spin), else 4",
    ),
    _same("Hidden units (MLP)", "agent.hidden", "1024"),
    _same("Hidden units (predictor)", "agent.predictor_hidden", "256"),
    _same("", "agent.predictor", "one hidden layer"),
    _same("Evaluation episodes", "evaluation_episodes", "10"),
    Line(
        "Learning rate, actor and critic",
        "agent.lr",
        "2e-4 (cheetah-run), else 1e-3",
        "1e-3",
        "2e-4 (cheetah-run), else 1e-3",
    ),
    Line(
        "Learning rate, encoder",
        "agent.predictor_lr",
        _SLOW_CHEETAH,
        "1e-3",
        "3e-3 (cheetah-run, finger-spin, walker-walk), else 1e-3",
    ),
    _same("", "agent.encoder_lr", "as above; the code steps twice"),
    _same("Learning rate, alpha", "agent.alpha_lr", "1e-4"),
    Line("Batch size, RL loss", "batch_size", "512", "128", "512"),
    Line(
        "Batch size, auxiliary loss",
        "auxiliary_batch_size",
        "512",
        "128",
        "128 (walker-walk), 256 (cheetah-run, finger-spin), else 512",
    ),
    _same("Auxiliary loss multiplier", "agent.auxiliary_weight", "1"),
    _same("Q function EMA", "agent.critic_tau", "0.01"),
    _same("Critic target update freq", "agent.target_every", "2"),
    _same("", "agent.actor_every", "not said"),
    Line("Encoder", "agent.encoder", "DenseMLP", "convolutions", "convolutions"),
    Line("Layers", "agent.encoder_layers", "1", "4", "4"),
    Line("Latent dimension of DenseMLP", "agent.encoder_width", "40", "", ""),
    Line("Filters", "agent.filters", "", "32", "32"),
    _same("", "agent.actor_encoder", "not said"),
    _same("Encoder EMA", "agent.encoder_tau", "0.05"),
    _same("Discount", "agent.gamma", "0.99"),
    _same("Initial temperature", "agent.initial_alpha", "0.1"),
    Line("Steps (D.5, 4.1)", "steps", "500k (cheetah-run), else 1500k", "500k", "500k"),
    _same("Points of the AULC", "evaluations", "5"),
)

COLUMNS: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("vectors", "paper-vector", VECTOR_TASKS),
    ("", "released-vector", VECTOR_TASKS),
    ("evolution", "paper-image-search", IMAGE_TASKS),
    ("final", "paper-image", IMAGE_TASKS),
    ("", "fast", VECTOR_TASKS),
    ("", "fast-image", IMAGE_TASKS),
)
"""The column of the paper's, if it has one, the preset beside it, and for which tasks."""

_HEADINGS = {"vectors": "paper, vectors", "evolution": "paper, images, evolution", "final": "paper, images, final"}


def hyper_parameters() -> str:
    """The lines of the paper's tables beside the values of the presets, as Markdown."""
    headings = ["paper", "setting"]
    for papers, name, _ in COLUMNS:
        headings += [*([_HEADINGS[papers]] if papers else []), f"`{name}`"]
    rows = []
    for line in LINES:
        cells = [line.words, f"`{line.setting.rpartition('.')[2]}`"]
        for papers, name, tasks in COLUMNS:
            # A setting that the paper has for images alone has no effect on vectors, and the other way round.
            applies = line.evolution if "image" in name else line.vectors
            value = _value(line.setting, name, tasks) if applies else ""
            cells += [*([getattr(line, papers)] if papers else []), value]
        rows.append(cells)
    return markdown_table(headings, rows, left=2)


def _value(setting: str, name: str, tasks: Sequence[str]) -> str:
    """What a preset has for the tasks: the exceptions, and what most have."""
    values = {task: _read(preset(name, task), setting) for task in tasks}  # type: ignore[arg-type]
    usual = values["reacher-easy"]  # The paper makes no exception for it.
    others = dict.fromkeys(value for value in values.values() if value != usual)
    exceptions = [f"{_text(value)} ({', '.join(task for task in tasks if values[task] == value)})" for value in others]
    return ", ".join([*exceptions, f"else {_text(usual)}"] if exceptions else [_text(usual)])


def _read(config: TrainConfig, setting: str) -> Any:
    if setting == "auxiliary_batch_size":
        return config.auxiliary_batch_size or config.batch_size
    *groups, name = setting.split(".")
    for group in groups:
        config = getattr(config, group)
    return getattr(config, name)


def _text(value: Any) -> str:
    if isinstance(value, float):
        plain = f"{value:g}"
        return f"{value:.1e}".replace(".0e", "e").replace("e-0", "e-") if 0 < value < 0.01 else plain
    return f"{value // 1000}k" if isinstance(value, int) and value >= 10_000 else str(value)


# Rainbow

RAINBOW_PRESETS = {"atari-100k": "alien", "fast-atari": "alien", "fast-discrete": "CartPole-v1"}
"""The presets of Rainbow, and an environment for each: a game that CURL makes no exception for."""
_OF_IMAGES = ("frame_size", "frames")
_SHOWN = (
    *("steps", "environment.action_repeat", "environment.frame_size", "environment.frames", "learning_starts"),
    *(
        "buffer_size",
        "batch_size",
        "agent.encoder",
        "agent.hidden",
        "agent.atoms",
        "agent.value_min",
        "agent.value_max",
    ),
    *("agent.noisy_sigma", "agent.n_step", "agent.gamma", "agent.priority_exponent", "agent.priority_beta", "agent.lr"),
    *("agent.adam_eps", "agent.max_gradient_norm", "agent.target_every", "agent.encoder_tau", "agent.auxiliary_weight"),
    *("agent.augmentation", "agent.predictor_hidden", "agent.evaluation_epsilon", "evaluations", "evaluation_episodes"),
)


def rainbow_settings() -> str:
    """The settings of the presets of Rainbow, as Markdown."""
    rows = []
    for setting in _SHOWN:
        name = setting.rpartition(".")[2]
        cells = [f"`{name}`"]
        for each, env in RAINBOW_PRESETS.items():
            config = preset(each, env)  # type: ignore[arg-type]
            cells.append("" if name in _OF_IMAGES and not config.environment.pixels else _text(_read(config, setting)))
        rows.append(cells)
    return markdown_table(["setting", *(f"`{name}`" for name in RAINBOW_PRESETS)], rows, left=1)


# What experiments cost

PACES = {"paper-vector": 164.6, "paper-image-search": 1454.0, "paper-image": 5733.0, "atari-100k": 32.2}
"""Milliseconds for an update of the agent with A2-winner on one core of the machine of docs/results.md, by

    python benchmarks/update_speed.py --sizes 1024x512
    python benchmarks/update_speed.py --pixels --threads 1 --layouts --sizes 1024x128 1024x512

while a training of low priority ran on the other core, and on a quiet machine

    python benchmarks/update_speed.py --atari
"""


class Experiment(NamedTuple):
    """An experiment of the paper."""

    where: str
    what: str
    preset: str
    trainings: dict[str, int]
    """In each task."""
    steps: int = 0
    """Of a training, where it is not that of the preset."""

    @property
    def pixels(self) -> bool:
        """Whether agents see images."""
        return "image" in self.preset

    @property
    def updates(self) -> int:
        """Of all trainings together."""
        return sum(count * self._updates(task) for task, count in self.trainings.items())

    def _updates(self, task: str) -> int:
        config = preset(self.preset, task)  # type: ignore[arg-type]
        steps = self.steps or config.steps
        return steps // config.environment.action_repeat - config.learning_starts


_TRAINED_ON = ("cheetah-run", "reacher-easy", "walker-walk")
IMAGE_EVOLUTION = Experiment(
    "4.1",
    "evolution on images, 100 losses in 7, 7 and 4 stages",
    "paper-image-search",
    {"cheetah-run": 700, "reacher-easy": 700, "walker-walk": 400},
)
VECTOR_EVOLUTION = Experiment(
    "D.5",
    "evolution on vectors, 100 losses in 7, 6 and 5 stages",
    "paper-vector",
    {"cheetah-run": 700, "hopper-hop": 600, "quadruped-run": 500},
)
EXPERIMENTS = (
    IMAGE_EVOLUTION,
    Experiment("4.2", "cross-validation of 5 losses, 3 seeds", "paper-image-search", dict.fromkeys(_TRAINED_ON, 18)),
    Experiment("5", "images: A2-winner, CURL, SAC; 10 seeds", "paper-image", dict.fromkeys(IMAGE_TASKS, 30)),
    Experiment("5", "vectors: 5 methods, 10 seeds", "paper-vector-table", dict.fromkeys(VECTOR_TASKS, 50)),
    Experiment("5", "3 depths of the encoder, 2 tasks, 5 seeds", "paper-image", dict.fromkeys(IMAGE_TASKS[:2], 15)),
    Experiment(
        "5", "partial observability, 3 methods, 5 seeds", "paper-vector-table", {"cheetah-run": 15, "hopper-hop": 15}
    ),
    Experiment("5", "Atari-100k: A2-winner, 26 games, 5 seeds", "atari-100k", dict.fromkeys(ATARI_GAMES, 5)),
    Experiment("D.1", "10 operators, 5 seeds", "paper-image-search", dict.fromkeys(_TRAINED_ON, 50)),
    VECTOR_EVOLUTION,
    Experiment("D.6", "4 encoders, 6 tasks, 5 seeds", "paper-vector-table", dict.fromkeys(IMAGE_TASKS, 20)),
    Experiment("D.7", "landscapes with and without A2-winner", "paper-vector", {"humanoid-stand": 2}, 1_000_000),
)
# The paper's hours on a P100, 16,000 and 1,500 for each of three tasks, which paid for the stages of its tables.
_BUDGETS = {True: (48_000, IMAGE_EVOLUTION), False: (4_500, VECTOR_EVOLUTION)}


def costs() -> str:
    """How many trainings and updates each experiment of the paper is, and the hours, as Markdown."""
    rows = []
    for each in EXPERIMENTS:
        pace = PACES.get(each.preset, PACES["paper-vector"])
        hours = [each.updates * pace / 3.6e6]
        if each.preset != "atari-100k":  # The paper's budgets are of SAC.
            budget, evolution = _BUDGETS[each.pixels]
            hours.append(budget * each.updates / evolution.updates)
        counts = f"{sum(each.trainings.values()):,}", f"{each.updates / 1e6:,.1f}"
        shown = [f"{_round(own):,}" for own in hours]
        rows.append([each.where, each.what, *counts, *shown, *[""] * (2 - len(shown))])
    headings = ["section", "experiment", "trainings", "million updates", "hours, one core", "hours, one P100"]
    return markdown_table(headings, rows, left=2)


def _round(hours: float) -> int:
    """To two digits: it is an estimate."""
    digits = max(0, len(str(round(hours))) - 2)
    return int(round(hours, -digits))


TABLES = {"hyper-parameters": hyper_parameters, "rainbow": rainbow_settings, "costs": costs}


def main() -> None:
    """Write the tables, or check them."""
    text = DOCUMENT.read_text(encoding="utf-8")
    wanted = with_tables(text, "paper_tables", TABLES)
    if "--check" in sys.argv[1:]:
        sys.exit(None if text == wanted else "docs/paper.md is not up to date: run python scripts/paper_tables.py")
    DOCUMENT.write_text(wanted, encoding="utf-8")


if __name__ == "__main__":
    main()
