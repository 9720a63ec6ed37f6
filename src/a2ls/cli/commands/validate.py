"""`a2ls validate`."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import tyro
from rich.console import Console

from a2ls._errors import Failure, require
from a2ls._formatting import level_text
from a2ls._statistics import MANY_SEEDS
from a2ls.agents import OBJECTIVE
from a2ls.benchmark import NoVerdict, Validation, Verdict
from a2ls.cli._grid import check_environments, fail_if_missing, train_grid
from a2ls.cli._keeping import KeepOptions
from a2ls.cli._options import (
    EngineOptions,
    Several,
    TrainingOptions,
    parse_for_environments,
    settings_options,
)
from a2ls.cli.views.results import negative_note, seeds_notes, verdict_table
from a2ls.cli.views.text import Screen, print_verdict, say
from a2ls.loggers import require_packages
from a2ls.search import SearchConfig, SearchFolder
from a2ls.studies import loss_label
from a2ls.training import NotARun, TrainConfig, in_environment, preset


@dataclass(frozen=True)
class Arguments:
    """Train the best losses of a search again, with fresh seeds: is one a winner?

    A search trains most losses once, and what it knows of the best is uncertain. So the best few are trained anew, with
    seeds that the search has not used, beside a baseline: the scores that selected a loss do not count again. The
    settings are those of the search's preset in each environment, and where the search differs from its preset, or
    options are given, these.

    A winner is better than the baseline by an interval that allows for its choice as the best of several losses. That
    none is better, or that these seeds do not tell, are answers too. winner.json has the answer and all numbers, and
    the best loss if its mean is above that of the baseline.

    The trainings are kept in the folder `validation` of the search. After an interrupt, or with more environments or
    seeds, the same command goes on and trains what is missing. Some lines to start from:

        a2ls validate runs/my-search
        a2ls validate runs/my-search --env cheetah-run walker-run hopper-hop --seeds 5
        a2ls validate runs/my-search --top 3 --stage 5 --env cheetah-run --env walker-run
    """

    folder: Annotated[Path, tyro.conf.Positional]
    """A folder that `a2ls search` wrote."""

    settings: Annotated[TrainingOptions, tyro.conf.arg(name="")]

    env: Annotated[Several, tyro.conf.arg(metavar="ENV")] = ()
    """Where to train them; in the search's own environments if none is given."""

    top: int = 5
    """How many losses; two that mean the same count once."""

    seeds: int = 3
    """How many seeds each loss is trained with in each environment, from the first that the search has not used."""

    stage: int | None = None
    """Take the best losses of this stage alone."""

    baseline: str = ""
    """What to compare with; by default the agent without a loss. SAC has sac, sac-identity, curl and rad, and for
    pixels sac, sac-no-aug, curl, rad and drq. Its mean in each environment is 1."""

    machines: Annotated[EngineOptions, tyro.conf.arg(name="")] = field(default_factory=EngineOptions)

    keep: Annotated[KeepOptions, tyro.conf.arg(name="")] = field(default_factory=KeepOptions)


def run(arguments: Sequence[str]) -> None:
    """Run the command."""
    search, chosen, configs = _parse(arguments)
    chosen.machines.require_suitable()
    require(chosen, ("top", "seeds"), lambda value: value >= 1, "be at least 1")
    require_packages(chosen.keep, tensorboard=chosen.keep.tensorboard)
    check_environments(configs)
    validation = Validation.prepare(
        search,
        configs,
        top=chosen.top,
        seeds=chosen.seeds,
        stage=chosen.stage,
        baseline_name=chosen.baseline,
    )
    console = Screen()
    _print_selected(console, validation)
    go_on = shlex.join(["a2ls", "validate", *arguments])
    train_grid(validation.benchmark, chosen.machines, go_on, chosen.keep)
    try:
        verdict = validation.verdict()
    except NoVerdict as error:
        fail_if_missing(validation.benchmark)
        raise Failure(str(error)) from error
    path = validation.write_winner(verdict)
    _print_verdict(console, validation, verdict)
    more = _more(search, verdict, len(validation.selected) == chosen.top, arguments)
    _print_next(console, verdict, configs, path, more)
    fail_if_missing(validation.benchmark)


def _parse(arguments: Sequence[str]) -> tuple[SearchFolder, Arguments, tuple[TrainConfig, ...]]:
    """The search, the command line, and the search's settings in each environment with the options that were given."""
    guess = next(filter(None, map(_search, arguments)), None)
    # Without a search the command ends with an error, or prints its help.
    chosen, configs = _parse_beside(arguments, SearchConfig(preset("fast")) if guess is None else guess.config)
    if guess is None or guess.path != chosen.folder:
        guess = SearchFolder.open(chosen.folder)
        chosen, configs = _parse_beside(arguments, guess.config)
    return guess, chosen, configs


def _search(argument: str) -> SearchFolder | None:
    try:
        return SearchFolder.open(Path(argument))
    except NotARun:
        return None


def _parse_beside(arguments: Sequence[str], config: SearchConfig) -> tuple[Arguments, tuple[TrainConfig, ...]]:
    def base(env: str) -> TrainConfig:
        return in_environment(config.training, env)

    def make(settings: TrainingOptions) -> Arguments:
        return Arguments(folder=tyro.MISSING, settings=settings)

    return parse_for_environments(arguments, "a2ls validate", make, base, *config.environments)


def _print_selected(console: Console, validation: Validation) -> None:
    search = validation.search
    unit = search.ranking().unit
    known = {each: unit.estimate_text(each.estimate.value, each.estimate.interval) for each in validation.selected}
    estimated = "estimated " if any(each.estimate.interval is not None for each in known) else ""
    say(console, f"The best losses of {search.path}, and their {estimated}{unit.name} in the search (its own seeds):\n")
    width = max(8, *map(len, known.values()))
    for each, text in known.items():
        say(console, f"  #{each.place}  {text:>{width}}  {loss_label(each.loss)}")
    say(console, "")


def _print_verdict(console: Console, validation: Validation, verdict: Verdict) -> None:
    console.print()
    print_verdict(console, verdict.sentence)
    console.print(verdict_table(verdict))
    records = [record for record in validation.benchmark.asked_records() if record.state == "finished"]
    notes = seeds_notes(Counter((record.env, record.label) for record in records).values())
    if len(verdict.overall) > 1:
        notes.append(
            f"The verdict is by an interval at {level_text(verdict.level)} instead of 95 %: the best was chosen among "
            f"{len(verdict.overall)} losses by these very scores. They are too high on average for the best."
        )
    if verdict.negative:
        notes.append(negative_note(verdict.baseline))
    if verdict.without_scale:
        envs = ", ".join(verdict.without_scale)
        notes.append(f"Left out: {envs}, where {verdict.baseline} has no score, or one of 0, to compare with.")
    if verdict.left_out:
        losses = ", ".join(f"#{each.place}" for each in verdict.left_out)
        notes.append(f"Left out: {losses}, which failed with every seed somewhere.")
    for note in notes:
        console.print(note, style="dim", highlight=False, markup=False)


def _print_next(
    console: Console, verdict: Verdict, configs: Sequence[TrainConfig], path: Path, more: Mapping[str, str]
) -> None:
    """Where the answer is kept, and what to do with it; `more` may find a better loss."""
    best, file, settings = verdict.best.selected, shlex.quote(str(path)), settings_options(configs)
    env, envs = shlex.quote(configs[0].environment.env), shlex.join(config.environment.env for config in configs)
    benchmark = (
        f"a2ls benchmark --loss {file} --baseline {shlex.quote(verdict.baseline)} --env {envs} --seeds 10 "
        f"--first-seed {max(verdict.seeds) + 1} {settings}"
    )
    train = f"a2ls train --loss {file} --env {env} {settings}"
    if verdict.outcome == "better":
        kept = f"The winner, {verdict.name}, is kept in {path}:\n\n  {best.loss}"
        commands = {
            f"a2ls losses {file}": "what it predicts",
            **({} if configs[0].algorithm == OBJECTIVE else {train: "an agent with it"}),
            benchmark: "how good it is, with other seeds",
        }
    elif verdict.outcome == "unclear":
        kept = f"The best of them, which may be no better, is kept in {path}:\n\n  {best.loss}"
        commands = {
            **more,
            f"a2ls losses {file}": "what the best predicts",
            benchmark: "the best alone, with other seeds",
        }
    else:
        kept = f"No loss is kept in {path}, only the numbers."
        commands = dict(more)
    lines = "".join(f"  {command.strip()}    # {why}\n" for command, why in commands.items())
    say(console, f"\n{kept}\n\nTo go on:\n\n{lines}".rstrip())


def _more(search: SearchFolder, verdict: Verdict, are_more: bool, arguments: Sequence[str]) -> dict[str, str]:
    """What may find a loss that is better: the commands, and what each is for.

    Args:
        search: Whose losses were validated.
        verdict: What that said.
        are_more: Whether the search may have more losses.
        arguments: The command line as it was.
    """
    losses = {_with(arguments, "--top", 2 * len(verdict.overall)): "more losses of the search"}
    longer = f"a2ls search --resume {shlex.quote(str(search.path))} --stages {2 * search.config.stages}"
    return {
        _with(arguments, "--seeds", max(MANY_SEEDS, 2 * len(verdict.seeds))): "the same with more seeds",
        **(losses if are_more else {}),
        longer: "a longer search",
    }


def _with(arguments: Sequence[str], option: str, value: int) -> str:
    """The command as it was typed, but for one option; where it stands may matter to those around it."""
    changed = [f"{option}={value}" if each.startswith(f"{option}=") else each for each in arguments]
    if option in changed:
        changed[changed.index(option) + 1] = str(value)
    elif changed == list(arguments):
        changed += [option, str(value)]
    return shlex.join(["a2ls", "validate", *changed])
