"""Options of the command line that decide the defaults of others."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import get_args

from a2ls.training import DEFAULT_AGENT, DEFAULT_PRESET, PresetName, preset_for


def chosen_agent(arguments: Sequence[str]) -> str:
    """The agent, which decides what other options there are."""
    name: str = early_options(arguments, "agent").agent or DEFAULT_AGENT
    return name


def early_options(arguments: Sequence[str], *names: str) -> argparse.Namespace:
    """The values of some options, and whether pixels are asked for, before all others can be read.

    What is wrong with them is left to the parser of all options, which says it better: such options are None here.
    """
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
    parser.add_argument("--pixels", action=argparse.BooleanOptionalAction, default=False)
    for name in names:
        parser.add_argument(f"--{name}")
    try:
        return parser.parse_known_args(arguments)[0]
    except argparse.ArgumentError:
        return parser.parse_args([])


def chosen_preset(arguments: Sequence[str]) -> PresetName:
    """The preset, which decides the defaults of other options; one that there is not is refused later."""
    chosen = early_options(arguments, "preset")
    known = chosen.preset if chosen.preset in get_args(PresetName) else DEFAULT_PRESET
    name: PresetName = preset_for(known, pixels=chosen.pixels)  # type: ignore[assignment]
    return name
