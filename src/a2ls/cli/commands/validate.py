"""`a2ls validate`."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import tyro
from rich.console import Console

from a2ls._errors import Failure, require
from a2ls._formatting import interval_text, number_text
from a2ls.benchmark import NoVerdict, Validation, Verdict
from a2ls.cli._grid import check_environments, fail_if_missing, train_grid
from a2ls.cli._options import Several, TrainingOptions, available_cores, parse_for_environments, settings_options
from a2ls.cli.views.results import negative_note, seeds_notes, verdict_table
from a2ls.cli.views.text import say
from a2ls.search import SearchFolder
from a2ls.studies import loss_label
from a2ls.training import NotARun, TrainConfig, in_environment, preset


@dataclass(frozen=True)
class Arguments:
    """Train the best losses of a search again, in several environments and with fresh seeds, and name a winner.

    A search trains a loss once, and the best of many such scores is partly luck. So the best few are trained anew, with
    seeds that the search has not used, beside a baseline: the score that selected a loss does not count again. The
    settings are those of the search, whatever environment they are used in (for pixels, with the action repeat of the
    paper for that task), but for the options that are given.

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
    """Where to train them; in the search's own environment if none is given."""

    top: int = 5
    """How many losses; two that mean the same count once."""

    seeds: int = 3
    """How many seeds each loss is trained with in each environment, from the first that the search has not used."""

    stage: int | None = None
    """Take the best losses of this stage alone."""

    baseline: str = ""
    """What to compare with; by default the agent without a loss. SAC has sac, sac-identity, curl and rad, and for
    pixels sac, sac-no-aug, curl, rad and drq. Its mean in each environment is 1."""

    workers: int = field(default_factory=available_cores)
    """Worker processes, which train with one thread each; by default one for each core. It changes no result."""


def run(arguments: Sequence[str]) -> None:
    """Run the command."""
    search, chosen, configs = _parse(arguments)
    require(chosen, ("workers", "top", "seeds"), lambda value: value >= 1, "be at least 1")
    check_environments(configs)
    validation = Validation.prepare(
        search,
        configs,
        top=chosen.top,
        seeds=chosen.seeds,
        stage=chosen.stage,
        baseline_name=chosen.baseline,
    )
    console = Console()
    _print_selected(console, validation)
    train_grid(validation.benchmark, chosen.workers, shlex.join(["a2ls", "validate", *arguments]))
    try:
        verdict = validation.verdict()
    except NoVerdict as error:
        fail_if_missing(validation.benchmark)
        raise Failure(str(error)) from error
    winner = validation.write_winner(verdict)
    _print_verdict(console, validation, verdict)
    _print_next(console, verdict, configs, winner)
    fail_if_missing(validation.benchmark)


def _parse(arguments: Sequence[str]) -> tuple[SearchFolder, Arguments, tuple[TrainConfig, ...]]:
    """The search, the command line, and the search's settings in each environment with the options that were given."""
    guess = next(filter(None, map(_search, arguments)), None)
    # Without a search the command ends with an error, or prints its help.
    chosen, configs = _parse_beside(arguments, preset("fast") if guess is None else guess.config.training)
    if guess is None or guess.path != chosen.folder:
        guess = SearchFolder.open(chosen.folder)
        chosen, configs = _parse_beside(arguments, guess.config.training)
    return guess, chosen, configs


def _search(argument: str) -> SearchFolder | None:
    try:
        return SearchFolder.open(Path(argument))
    except NotARun:
        return None


def _parse_beside(arguments: Sequence[str], training: TrainConfig) -> tuple[Arguments, tuple[TrainConfig, ...]]:
    def base(env: str) -> TrainConfig:
        return in_environment(training, env)

    def make(settings: TrainingOptions) -> Arguments:
        return Arguments(folder=tyro.MISSING, settings=settings)

    return parse_for_environments(arguments, "a2ls validate", make, base, training.environment.env)


def _print_selected(console: Console, validation: Validation) -> None:
    search = validation.search
    say(console, f"The best losses of {search.path}, and their AULC in the search (with seeds of its own):\n")
    for each in validation.selected:
        say(console, f"  #{each.place}  {number_text(each.score):>8}  {loss_label(each.loss)}")
    say(console, "")


def _print_verdict(console: Console, validation: Validation, verdict: Verdict) -> None:
    console.print()
    console.print(verdict_table(verdict))
    records = [record for record in validation.benchmark.asked_records() if record.state == "finished"]
    notes = seeds_notes(Counter((record.env, record.label) for record in records).values())
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


def _print_next(console: Console, verdict: Verdict, configs: Sequence[TrainConfig], path: Path) -> None:
    winner = verdict.winner
    say(console, f"\n{verdict.name} is #{winner.selected.place}: {winner.selected.loss}\n")
    console.print(_judgement(verdict), highlight=False, markup=False)
    file, settings = shlex.quote(str(path)), settings_options(configs)
    env, envs = shlex.quote(configs[0].environment.env), shlex.join(config.environment.env for config in configs)
    first = max(verdict.seeds) + 1
    say(
        console,
        f"\nIt is kept in {path}. To go on:\n\n"
        f"  a2ls losses {file}    # what it predicts\n"
        f"  a2ls train --loss {file} --env {env} {settings}    # an agent with it\n"
        f"  a2ls benchmark --loss {file} --baseline {verdict.baseline} --env {envs} --seeds 10 --first-seed {first} "
        f"{settings}    # how good it is",
    )


def _judgement(verdict: Verdict) -> str:
    """How far the winner can be believed."""
    interval, baseline, losses = verdict.winner.mean.interval, verdict.baseline, len(verdict.overall)
    caution = (
        f" It was chosen as the best of {losses} by these very scores, so they are too high on average: "
        "only a benchmark with other seeds tells how good it is."
    )
    caution = caution if losses > 1 else ""
    if interval is None:
        return f"So few seeds do not tell whether it is better than {baseline}: give more --seeds.{caution}"
    words = interval_text(interval, 3)
    if interval.holds(1):
        return (
            f"Its interval, {words}, includes 1: as far as these seeds tell it is no better than {baseline}.{caution}"
        )
    if interval.low > 1:
        return f"As far as these seeds tell it is better than {baseline}: {words}.{caution}"
    return f"It is worse than {baseline}, at {words}, and all others are worse still."
