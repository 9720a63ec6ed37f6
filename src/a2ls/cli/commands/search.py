"""`a2ls search`."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, NamedTuple, get_args

import tyro
from rich.console import Console

from a2ls import training
from a2ls._errors import BadInput
from a2ls._formatting import count_of, duration
from a2ls._schema import by_default_words
from a2ls.agents import OBJECTIVE
from a2ls.analysis import (
    TOP,
    Dataset,
    baseline_results,
    estimate_words,
    finished_candidates,
    mean_curve,
    read_dataset,
    stages_table,
)
from a2ls.cli._keeping import KEEP_NAMES, KeepOptions, enjoy_command
from a2ls.cli._logs import logged_search
from a2ls.cli._options import (
    ENGINE_OPTIONS,
    EngineOptions,
    OutFolder,
    early_options,
    new_folder,
    parse,
    refuse_settings,
)
from a2ls.cli.views.candidates import candidates_table, stages_title, stages_view
from a2ls.cli.views.curves import LabelledCurve, curves_side_by_side
from a2ls.cli.views.search import SearchProgress, SearchRecords, SearchView
from a2ls.cli.views.text import Screen, next_commands, resume_command, say, says_how_to_go_on
from a2ls.envs import EnvironmentConfig
from a2ls.loggers import require_packages
from a2ls.search import (
    Budget,
    SearchConfig,
    SearchFolder,
    SearchPresetName,
    search_preset,
    stage_trainings,
)
from a2ls.studies import Candidate
from a2ls.training import (
    USUAL_AGENTS,
    TrainConfig,
    action_repeat,
    differences,
    option_text,
    plain_baseline,
    preset_for,
    to_mapping,
)

_PRESET: SearchPresetName = "laptop"
# What may be given beside --resume.
_NEW_END = (
    *ENGINE_OPTIONS,
    *KEEP_NAMES,
    "--retry-failed",
    "--stages",
    "--max-trials",
    "--max-env-steps",
    "--max-hours",
)


@dataclass(frozen=True)
class Arguments:
    """Search an auxiliary loss for one environment or several, by evolution.

    Candidates are trained, the best breed the next stage, and everything is kept in a folder. The preset decides how
    large the search is, and with it the defaults above. `quick` shows all parts of a search in minutes, `laptop` is a
    real search of an evening on two cores, `paper-vector` has the paper's size and procedure. `quick-image`,
    `laptop-image` and `paper-image-search` are those for pixels; there are some for discrete actions and for Atari
    games, too. With several environments one loss is searched for all of them, and scores are relative to the plain
    agent's. Some lines to start from:

        a2ls search --env cheetah-run --preset quick
        a2ls search --env cheetah-run walker-walk reacher-easy --max-hours 3
        a2ls search --env walker-walk --baselines sac curl --baseline-seeds 5 --max-hours 8
        a2ls search --env Pendulum-v1 --steps 20000 --operators mse "inner +neg" --baselines none
        a2ls search --env cartpole-swingup --pixels --preset quick
        a2ls search --env LunarLander-v3
        a2ls search --objective my_module:train --steps 100
        a2ls search --resume runs/my-search
        a2ls search --resume runs/my-search --stages 10
        a2ls search --env cheetah-run --preset paper-vector --engine ray
    """

    settings: Annotated[SearchConfig, tyro.conf.arg(name="")]

    budget: Annotated[Budget, tyro.conf.arg(name="")] = field(default_factory=Budget)

    preset: SearchPresetName = _PRESET
    """Where settings come from that no option sets. `quick` is `quick-image` with --pixels, `quick-atari` for Atari
    games and `quick-discrete` for other discrete actions, and so is `laptop`."""

    machines: Annotated[EngineOptions, tyro.conf.arg(name="")] = field(default_factory=EngineOptions)

    keep: Annotated[KeepOptions, tyro.conf.arg(name="")] = field(default_factory=KeepOptions)

    out: OutFolder = None
    """The folder for the search; a new one below runs/ if not given."""

    storage: str = ""
    """URL of the Optuna storage for the candidates, such as postgresql://me@server/searches or
    sqlite:////data/searches.db; by default a file in the folder. docs/storage.md says which to take."""

    name: str = ""
    """Name of the search in that storage; by default that of the folder."""

    resume: Path | None = None
    """Go on with the search in this folder. Of its settings, only --stages and the budget (--max-trials,
    --max-env-steps, --max-hours) may be given anew: more of them prolongs a search. It may run elsewhere, too."""

    retry_failed: bool = False
    """With --resume: train the candidates again that have failed, as after a fault of the machine."""


def run(arguments: Sequence[str]) -> None:
    """Run the command."""
    arguments, others = split_environments(arguments)
    defaults, folder = _defaults(arguments, others)
    chosen = parse(Arguments, "a2ls search", arguments, defaults)
    chosen.machines.require_suitable()
    _check(chosen)
    chosen_training = chosen.settings.training
    name = preset_for(
        chosen.preset,
        chosen_training.environment.env,
        chosen_training.algorithm,
        pixels=chosen_training.environment.sees_images,
        allowed=get_args(SearchPresetName),
    )
    if chosen.retry_failed and folder is None:
        raise BadInput("--retry-failed is for a search that goes on: give --resume")
    if folder is None:
        path = chosen.out or new_folder(*chosen.settings.environments, name)
        folder = SearchFolder.create(path, chosen.settings, chosen.budget, storage=chosen.storage, name=chosen.name)
    else:
        _change(folder, chosen, defaults)
    if chosen.retry_failed:
        say(Screen(), f"{count_of(folder.retry_failed(), 'failed candidate')} to be tried again")
    about = "" if chosen.resume else f"preset {name}"
    search_in_view(folder, chosen.machines, keep=chosen.keep, about=about)
    print_summary(Screen(), folder)


def split_environments(arguments: Sequence[str]) -> tuple[list[str], tuple[str, ...]]:
    """The arguments with the first environment after --env, and the others: everywhere else --env has but one."""
    arguments = list(arguments)
    if "--env" not in arguments:
        return arguments, ()
    start = arguments.index("--env") + 2
    end = next((i for i in range(start, len(arguments)) if arguments[i].startswith("-")), len(arguments))
    return [*arguments[:start], *arguments[end:]], tuple(arguments[start:end])


def _defaults(arguments: Sequence[str], others: tuple[str, ...]) -> tuple[Arguments, SearchFolder | None]:
    """What the options that stand for many settings say: an old search for all of them, or preset and environment."""
    early = early_options(arguments)
    if early.resume is not None:
        folder = SearchFolder.open(early.resume)
        refuse_settings(early.preset, None, "search", *_NEW_END)
        return Arguments(folder.config, folder.settings.budget, storage=folder.settings.storage), folder
    name = early.preset_among(get_args(SearchPresetName), _PRESET)
    config = search_preset(name, early.env, early.agent_for(early.env))
    return Arguments(replace(config, other_environments=others) if others else config), None


def _check(chosen: Arguments) -> None:
    """What can be known to be of no use before anything is written."""
    config, budget = chosen.settings, chosen.budget
    require_packages(chosen.keep, tensorboard=chosen.keep.tensorboard)
    if not config.training.agent.trains_encoder:
        raise BadInput("the agent has no encoder that losses can train, as a search needs it: choose another --encoder")
    steps = stage_trainings(config, 1) * max(each.steps for each in config.configs)
    if 0 < budget.max_env_steps < steps:
        raise BadInput(f"max_env_steps is {budget.max_env_steps}, too few for one candidate of {steps} steps")
    for each in config.configs:
        training.require_trainable(each)


def _change(folder: SearchFolder, chosen: Arguments, defaults: Arguments) -> None:
    """Give a search that goes on its new end; refuse all other changes instead of ignoring them."""
    allowed = replace(
        defaults,
        settings=replace(defaults.settings, stages=chosen.settings.stages),
        budget=chosen.budget,
        machines=chosen.machines,
        keep=chosen.keep,
        resume=chosen.resume,
        retry_failed=chosen.retry_failed,
    )
    refuse_settings(chosen, allowed, "search", *_NEW_END)
    if (chosen.settings, chosen.budget) != (defaults.settings, defaults.budget):
        folder.change(stages=chosen.settings.stages, budget=chosen.budget)


def search_in_view(
    folder: SearchFolder,
    machines: EngineOptions,
    *,
    keep: KeepOptions | None = None,
    about: str = "",
    program: str = "a2ls",
) -> None:
    """Search what the folder says, from wherever it stands, and show how it goes.

    Args:
        folder: The search.
        machines: Where trainings run.
        keep: What is kept of the trainings beside their results.
        about: Words for the heading.
        program: What to type for this program.
    """
    keep = keep or KeepOptions()
    folder.files.mend()
    config, budget = folder.config, folder.settings.budget
    seconds_left = budget.max_hours * 3600 - folder.seconds_spent() if budget.max_hours else float("inf")
    if folder.files.taken_by_default:
        say(Screen(), by_default_words(folder.files.taken_by_default))
    header = ", ".join(filter(None, (*config.environments, about, f"in {folder.path}")))
    go_on = resume_command("search", folder.path, program)
    with machines.opened(folder.files) as engine:
        workers = machines.local_workers if engine is None else engine.workers
        progress = SearchProgress(
            config, folder.limit, workers, lambda: SearchRecords.of(folder), budget_seconds=seconds_left
        )
        with (
            says_how_to_go_on(go_on, progress.summary),
            SearchView(progress, header) as view,
            logged_search(folder, keep, view.on_event) as on_event,
        ):
            folder.run(
                engine,
                workers=workers,
                stall_seconds=machines.stall_seconds,
                keep_policies=keep.keep_policies,
                on_event=on_event,
                on_wait=view.on_wait,
            )


class _Spent(NamedTuple):
    """The part of the budget that ended a search before its last stage."""

    option: str
    value: float


def _spent_budget(folder: SearchFolder, candidates: Sequence[Candidate]) -> _Spent | None:
    """What ended the search, if it was not its last stage."""
    config, budget = folder.config, folder.settings.budget
    if sum(candidate.state != "running" for candidate in candidates) >= config.candidates:
        return None
    if budget.max_hours and folder.seconds_spent() >= budget.max_hours * 3600:
        return _Spent("--max-hours", budget.max_hours)
    if folder.limit == budget.max_trials:
        return _Spent("--max-trials", budget.max_trials)
    return _Spent("--max-env-steps", budget.max_env_steps) if folder.limit < config.candidates else None


def print_summary(console: Console, folder: SearchFolder, program: str = "a2ls") -> None:
    """What a search has found, how far it can be believed, and what to type next.

    Args:
        console: Where to print.
        folder: A search that has ended, or not.
        program: What to type for this program.
    """
    dataset = read_dataset(folder.path).on_one_scale()
    candidates, baselines, ranking = dataset.candidates, baseline_results(dataset.baselines), dataset.ranking
    best = finished_candidates(candidates, ranking)[:TOP]
    say(console, f"\n{', '.join(folder.config.environments)}: {_size(folder, dataset)}\n")
    console.print(stages_view(stages_table(candidates, baselines, ranking), stages_title(ranking)))
    if best:
        console.print(candidates_table(best, baselines, candidates, ranking, title="The best candidates"))
    if ranking.losses:
        first = ranking.losses[0]
        count = "one seed" if len(first.trainings) == 1 else f"mean of {len(first.trainings)} trainings"
        curves = [LabelledCurve(f"candidate {first.candidates[0]} ({count})", mean_curve(first.trainings))]
        curves += [LabelledCurve(result.name_with_seeds, result.curve) for result in baselines]
        console.print(curves_side_by_side(curves, console.width, ranking.unit))
    spent = _spent_budget(folder, candidates)
    if spent is not None:
        say(console, f"The budget ended the search before its last candidate: {spent.option} {spent.value:,g}.")
    for line in _warnings(folder, dataset):
        console.print(line, highlight=False, markup=False)
    say(console, "\n" + _next_commands(folder, best, spent, program))


def _size(folder: SearchFolder, dataset: Dataset) -> str:
    stages = max((candidate.stage for candidate in dataset.candidates), default=0)
    further = f" ({count_of(len(dataset.further), 'further training')})" if dataset.further else ""
    return (
        f"{count_of(len(dataset.candidates), 'candidate')}{further} in {count_of(stages, 'stage')}, "
        f"{duration(folder.seconds_spent())}, in {folder.path}"
    )


def _warnings(folder: SearchFolder, dataset: Dataset) -> list[str]:
    """What to know before believing the tables."""
    finished = len(finished_candidates(dataset.candidates, dataset.ranking))
    failed = sum(candidate.state == "failed" for candidate in dataset.candidates)
    estimated = estimate_words(dataset.ranking)
    lines = []
    if dataset.is_relative:
        plain = plain_baseline(folder.config.training.algorithm)
        lines.append(f"All scores are relative to {plain}, which is 1 in each environment.")
    if estimated is not None:
        lines.append(estimated)
    elif finished > 1:
        lines.append(
            f"Each candidate was trained with one seed. The best of {finished} such scores is partly luck and too high "
            "on average (the winner's curse): validate it with other seeds before you believe it."
        )
    elif finished:
        lines.append("The candidate was trained with one seed: validate it with others before you believe its score.")
    if failed:
        lines.append(f"{count_of(failed, 'candidate')} failed: `top` has the reasons, {folder.files.log} the details.")
    return lines


def _next_commands(folder: SearchFolder, best: Sequence[Candidate], spent: _Spent | None, program: str) -> str:
    path = shlex.quote(str(folder.path))
    commands = {
        "all candidates": f"{program} top {path}",
        "a page with all figures": f"{program} report {path}",
        "the same in the browser": f"{program} dashboard {path}",
    }
    if spent is not None:
        commands["the rest of the search"] = f"{resume_command('search', folder.path, program)} {spent.option} 0"
    if best:
        loss = shlex.quote(best[0].label)
        training = f"{_training_options(folder.config.training)} --seed {folder.config.seed + 1}"
        commands |= {
            "the best again, with other seeds": f"{program} validate {path}",
            "what the best one predicts": f"{program} losses {loss}",
        }
        if folder.config.training.algorithm != OBJECTIVE:
            commands["an agent with the best one"] = f"{program} train {training} --loss {loss}"
    commands |= enjoy_command(folder.path, program)
    return next_commands(commands)


def _training_options(config: TrainConfig) -> str:
    """Environment and agent as options of `a2ls train`, without those that are as by default."""
    environment = config.environment
    default = to_mapping(EnvironmentConfig(environment.env, action_repeat(environment.env)))
    given = [option_text(name, value) for name, value, _ in differences(to_mapping(environment), default)]
    agent = [] if config.algorithm in USUAL_AGENTS else [option_text("agent", config.algorithm)]
    return " ".join((option_text("env", environment.env), *given, *agent))
