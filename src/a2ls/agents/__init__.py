"""Agents: networks and updates. Nothing here knows environments or files."""

from a2ls.agents._config import SACConfig
from a2ls.agents._networks import TwinLinear
from a2ls.agents._sac import SAC, Transitions, make_perception

__all__ = ["SAC", "SACConfig", "Transitions", "TwinLinear", "make_perception"]
