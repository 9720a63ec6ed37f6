"""Agents: networks and updates. Nothing here knows environments or files."""

from typing import TYPE_CHECKING

from a2ls._lazy import imported_when_used
from a2ls.agents._config import SACConfig

if TYPE_CHECKING:
    from a2ls.agents._figures import Metrics
    from a2ls.agents._networks import TwinLinear
    from a2ls.agents._sac import SAC, Transitions, make_perception
else:
    __getattr__ = imported_when_used(
        __name__,
        {
            "a2ls.agents._figures": ("Metrics",),
            "a2ls.agents._networks": ("TwinLinear",),
            "a2ls.agents._sac": ("SAC", "Transitions", "make_perception"),
        },
    )

__all__ = ["SAC", "Metrics", "SACConfig", "Transitions", "TwinLinear", "make_perception"]
