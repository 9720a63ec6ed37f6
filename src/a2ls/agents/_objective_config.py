"""A training function of the user's own in the place of an agent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NoReturn

from a2ls._errors import BadInput
from a2ls.agents._registry import AgentConfig

OBJECTIVE = "objective"
"""Under which name it stands among the agents. The function without a loss is the baseline of this name."""


@dataclass(frozen=True)
class ObjectiveConfig(AgentConfig):
    """Which function trains; it knows its own networks and learning."""

    objective: str = ""
    """A training function of your own that is called with the loss, instead of a training of this package, as
    `module:function`."""


def no_agent() -> NoReturn:
    """There is nothing to make.

    Raises:
        BadInput: Always.
    """
    raise BadInput("an objective trains by itself: search, benchmark and validate call it, but there is no agent of it")
