"""`a2ls train`."""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, get_args

import tyro
from rich.text import Text

from a2ls import recorder, training
from a2ls._errors import BadInput, Failure, require
from a2ls._schema import by_default_words
from a2ls.agents import ObjectiveConfig
from a2ls.cli._options import OutFolder, early_options, new_folder, parse, refuse_settings, require_threads
from a2ls.cli.views.curves import LabelledCurve, curves_table
from a2ls.cli.views.text import Screen, next_commands, resume_command, say, says_how_to_go_on, warn
from a2ls.cli.views.training import TrainingView, loss_label, run_label, summary_table, warnings
from a2ls.loggers import LogTargets, logging_to, open_loggers, require_packages
from a2ls.training import (
    DEFAULT_CHECKPOINT_SECONDS,
    DEFAULT_PRESET,
    NO_LOSS,
    PresetName,
    RunFolder,
    TrainConfig,
    TrainJob,
    VideoFormat,
    baseline_loss,
    baseline_with,
    loss_text,
    parse_loss,
    preset,
    read_job,
    to_mapping,
    with_baseline,
)


@dataclass(frozen=True)
class Arguments:
    """Train an agent with an auxiliary loss, or with none.

    Everything is kept in a folder. Settings are taken from the preset, then from the file of --config, then from the
    baseline, then from the options. The defaults above are those of the preset that was chosen. Some lines to start
    from:

        a2ls train --env cheetah-run --loss a2-winner
        a2ls train --env Pendulum-v1 --steps 20000 --loss "s0 a0 -> s1"
        a2ls train --env walker-walk --preset paper-vector --baseline sac-identity
        a2ls train --env cheetah-run --pixels --loss a2-winner --video
        a2ls train --env walker-walk --preset paper-image --baseline drq
        a2ls train --env CartPole-v1 --loss a2-winner
        a2ls train --env pong --preset atari-100k --loss a2-winner
        a2ls train --env cheetah-run --agent my_agents:td3 --loss a2-winner
        a2ls train --resume runs/cheetah-run-a2-winner-seed0
    """

    settings: Annotated[TrainConfig, tyro.conf.arg(name="")]

    loss: str = NO_LOSS
    """A name (`a2ls losses` lists them), a text form such as "s0 a0 -> s1", a file such as the winner.json of a
    cross-validation, or `none` for the plain agent."""

    seed: int = 0
    """Determines everything that is random."""

    preset: PresetName = DEFAULT_PRESET
    """Where settings come from that nothing else sets: `fast` (one or two minutes on one core), `fast-image` (about
    ten), `fast-discrete`, `fast-atari`, or the paper's. `fast` means `fast-image` with --pixels, `fast-atari` in an
    Atari game, and `fast-discrete` where other actions are discrete."""

    baseline: str | None = None
    """A variant of the agent that losses are compared with, a short form of several options. Those of SAC: `sac` (as
    the preset says), `sac-identity` (no encoder, vectors only), `sac-no-aug` (no augmentation, pixels only), `curl`
    (with its loss), `rad` or `drq` (pixels only). Those of Rainbow: `rainbow`, `curl`, `spr`."""

    config: Path | None = None
    """A TOML file with settings, such as the config.toml of an earlier run."""

    out: OutFolder = None
    """The folder for the run; a new one below runs/ if not given."""

    resume: Path | None = None
    """Go on with the run in this folder; it knows its own settings."""

    video: bool = False
    """Record an episode of the trained agent in the folder."""

    video_format: VideoFormat = "mp4"
    """The format of that video, video.mp4 or video.gif."""

    checkpoint_seconds: float = DEFAULT_CHECKPOINT_SECONDS
    """Seconds between two checkpoints, which are written between episodes: what a kill may cost."""

    keep_checkpoints: bool = False
    """Keep a checkpoint of every evaluation in the folder, for `a2ls landscape --kept`."""

    log: Annotated[LogTargets, tyro.conf.arg(name="")] = field(default_factory=LogTargets)

    threads: int = 1
    """Threads of the one training; several trainings at once are faster with one each."""


def run(arguments: Sequence[str]) -> None:
    """Run the command."""
    base = _base_job(arguments)
    defaults = Arguments(settings=base.config, loss=loss_text(base.loss), seed=base.seed)
    chosen = parse(Arguments, "a2ls train", arguments, defaults)
    require_threads(chosen.threads)
    require(chosen, ("seed", "checkpoint_seconds"), lambda value: value >= 0, "not be negative")
    if chosen.resume is not None:
        others = ("--video", "--checkpoint-seconds", "--keep-checkpoints", "--wandb", "--mlflow", "--threads")
        refuse_settings(chosen, _allowed_with_resume(chosen), "run", *others)
        folder = RunFolder.open(chosen.resume)
    else:
        loss = parse_loss(chosen.loss)
        own = None if chosen.baseline is None else baseline_loss(chosen.baseline)
        if own is not None and loss != own:
            raise BadInput(f"loss is {chosen.loss!r}, but {chosen.baseline} has one of its own: leave one out")
        job = TrainJob(chosen.settings, loss, chosen.seed)
        require_packages(chosen.log)
        if isinstance(job.config.agent, ObjectiveConfig):
            raise BadInput("an objective trains by itself: `a2ls train` is for agents; call the function instead")
        # Before the folder, so that nothing is left behind if it cannot be used.
        training.require_trainable(job.config, render=chosen.video)
        path = chosen.out or new_folder(job.config.environment.env, loss_label(job), f"seed{job.seed}")
        folder = RunFolder.create(path, job)
    config = folder.job.config
    if config.is_recorded:
        _compile_updates()
    training.prepare_process(chosen.threads)  # When all is loaded that it lets the garbage collector pass over.
    video = chosen.video_format if chosen.video else None
    train_in_view(
        folder,
        checkpoint_seconds=chosen.checkpoint_seconds,
        keep_checkpoints=chosen.keep_checkpoints,
        video=video,
        log=chosen.log,
    )


def _compile_updates() -> None:
    """Do it before the training, with a word about it: the first time after an installation one waits for it."""
    waiting = Screen().status("compiling updates: once after an installation, about 20 seconds")
    with waiting, contextlib.suppress(ImportError):  # The training says it when it goes on without.
        recorder.prepare()


def _allowed_with_resume(chosen: Arguments) -> Arguments:
    return Arguments(
        settings=preset(DEFAULT_PRESET),
        resume=chosen.resume,
        video=chosen.video,
        video_format=chosen.video_format,
        checkpoint_seconds=chosen.checkpoint_seconds,
        keep_checkpoints=chosen.keep_checkpoints,
        log=chosen.log,
        threads=chosen.threads,
    )


def train_in_view(
    folder: RunFolder,
    *,
    checkpoint_seconds: float = DEFAULT_CHECKPOINT_SECONDS,
    keep_checkpoints: bool = False,
    video: VideoFormat | None = None,
    log: LogTargets | None = None,
) -> None:
    """Train what the folder says, with progress and a summary."""
    job = folder.job
    console = Screen()
    steps = f"{job.config.steps:,} env steps ({job.config.agent_steps:,} agent steps)"
    about = f", {steps}, in {folder.path}"
    console.print(Text.assemble((run_label(job), "bold"), about), soft_wrap=True)
    if folder.taken_by_default:
        say(console, by_default_words(folder.taken_by_default))
    settings = {"loss": loss_text(job.loss), "seed": job.seed, **to_mapping(job.config)}
    loggers = open_loggers(log or LogTargets(), folder.path, name=folder.home.name, config=settings)
    try:
        with logging_to(loggers), says_how_to_go_on(resume_command("train", folder.path)), TrainingView(job) as view:
            result = training.run_in_folder(
                folder,
                on_start=view.on_start,
                on_step=view.on_step,
                on_evaluation=view.on_evaluation,
                checkpoint_seconds=checkpoint_seconds,
                keep_checkpoints=keep_checkpoints,
                video=video,
                loggers=loggers,
            )
    except training.Diverged as error:
        raise Failure(f"{error}. Its curve is kept in {folder.path}") from error
    if result.state == "diverged":
        raise Failure(f"{folder.path} cannot go on: {result.reason}")
    console.print(curves_table([LabelledCurve(loss_label(job), folder.read_curve())]))
    console.print(summary_table(folder, result, video))
    for warning in warnings(result):
        warn(console, warning)
    path = shlex.quote(str(folder.path))
    commands = {
        "let the agent play": f"a2ls enjoy {path}",
        "its curve, beside those of other runs": f"a2ls curves {path}",
    }
    say(console, "\n" + next_commands(commands))


def _base_job(arguments: Sequence[str]) -> TrainJob:
    """What the options that stand for many settings say; they decide the defaults of all others."""
    early = early_options(arguments)
    name = early.preset_among(get_args(PresetName), DEFAULT_PRESET)
    job = TrainJob(preset(name, early.env, early.agent_for(early.env)), None, 0)
    if early.config is not None:
        job = read_job(early.config, base=job)
    name = early.baseline or _baseline_of(early.loss, job.config.algorithm)
    if name is not None:
        job = replace(job, config=with_baseline(job.config, name), loss=baseline_loss(name) or job.loss)
    return job


def _baseline_of(loss: str | None, algorithm: str) -> str | None:
    """The baseline whose loss it is, which has settings of its own, too: `--loss curl` is `--baseline curl`."""
    try:
        meant = None if loss is None else parse_loss(loss)
    except BadInput:
        return None  # It is refused later, when all options are known.
    return None if meant is None else baseline_with(meant, algorithm)
