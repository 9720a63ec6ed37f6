"""Plotly, for all modules that draw: it is an extra, and whoever lacks it is told so."""

from a2ls._extras import extra

with extra("analysis", "figures need"):
    import plotly.graph_objects as go
    from plotly.graph_objects import Figure

__all__ = ["Figure", "go"]
