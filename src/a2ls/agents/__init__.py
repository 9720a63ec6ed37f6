"""Agents: networks and updates. Nothing here knows environments or files."""

from a2ls.agents._config import SACConfig
from a2ls.agents._networks import TwinLinear
from a2ls.agents._sac import SAC, Metrics, Transitions, make_perception

__all__ = ["SAC", "Metrics", "SACConfig", "Transitions", "TwinLinear", "make_perception"]
