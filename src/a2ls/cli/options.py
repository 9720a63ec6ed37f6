"""Options of the command line that decide the defaults of others."""

from __future__ import annotations

import argparse
from collections.abc import Sequence


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
