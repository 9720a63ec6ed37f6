"""`a2ls enjoy`."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, get_args

import numpy as np
import tyro

from a2ls import training
from a2ls._errors import BadInput, require
from a2ls._formatting import UNKNOWN, count_of, interval_text, number_text
from a2ls._statistics import mean_estimate
from a2ls.cli._options import parse
from a2ls.cli.views.text import Screen, say
from a2ls.cli.views.training import run_label
from a2ls.training import PolicyName, VideoFormat, require_seed


@dataclass(frozen=True)
class Arguments:
    """Let a trained agent play: the returns of its episodes, and a film of one.

    Some lines to start from:

        a2ls enjoy runs/cheetah-run-a2-winner-seed0
        a2ls enjoy runs/cheetah-run-a2-winner-seed0 --policy best --episodes 50
        a2ls enjoy runs/cheetah-run-a2-winner-seed0 --video cheetah.mp4
        a2ls enjoy runs/my-search/policies/cheetah-run/my-search-12.safetensors
    """

    folder: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="FOLDER|FILE")]
    """A folder that `a2ls train` wrote, or the file of a policy that a search or a benchmark has kept."""

    policy: PolicyName = "last"
    """Of a training: its last policy, or that of its best evaluation."""

    episodes: int = 10
    """How many episodes to play, without noise."""

    seed: int = 0
    """Determines the episodes. None of them is one of those that the training was evaluated on."""

    video: Annotated[Path | None, tyro.conf.arg(metavar="FILE.mp4")] = None
    """Where to write a film of the first episode, .mp4 or .gif; needs the extra `video`."""


def run(arguments: Sequence[str]) -> None:
    """Run the command."""
    chosen = parse(Arguments, "a2ls enjoy", arguments)
    require(chosen, ("episodes",), lambda value: value >= 1, "be at least 1")
    require_seed(chosen.seed)
    formats = get_args(VideoFormat)
    if chosen.video is not None and chosen.video.suffix[1:] not in formats:
        raise BadInput(f"the video is {chosen.video.name}, but must end in {' or '.join(formats)}")
    agent = training.load_agent(chosen.folder, chosen.policy)
    training.prepare_process()
    # The film first: where it cannot be made, nobody waits for the other episodes.
    shown = None if chosen.video is None else agent.film(chosen.video, chosen.seed)
    returns = agent.evaluate(chosen.episodes, chosen.seed)
    console = Screen()
    say(console, f"{run_label(agent.job)}, trained for {agent.step:,} env steps")
    say(console, f"return {_summary(returns)}")
    if shown is not None:
        say(console, f"film of an episode with the return {shown:.1f}: {chosen.video}")


def _summary(returns: Sequence[float]) -> str:
    """Mean, standard deviation and the interval of the mean, and how far the episodes are apart."""
    estimate = mean_estimate(np.asarray(returns))
    sd = statistics.stdev(returns) if len(returns) > 1 else None
    interval = UNKNOWN if estimate.interval is None else interval_text(estimate.interval)
    return (
        f"{estimate.value:.1f} ± {number_text(sd)} (mean ± sd of {count_of(len(returns), 'episode')}), 95 % interval "
        f"of the mean {interval}, lowest {min(returns):.1f}, highest {max(returns):.1f}"
    )
