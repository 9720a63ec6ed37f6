"""Loss landscapes that are functions of two numbers."""

import numpy as np

from a2ls.analysis.landscape._landscape import Landscape, LandscapeSettings


def made_up(function, resolution=9, label="made up", shapes=((2, 2),)):
    positions = LandscapeSettings(resolution=resolution).positions
    losses = np.array([[function(x, y) for x in positions] for y in positions], dtype=float)
    turns = np.arange(16) / 16 * 2 * np.pi
    ring = np.array([function(0.5 * np.cos(t), 0.5 * np.sin(t)) for t in turns])
    return Landscape(label, positions, losses, float(function(0, 0)), ring, shapes)


BOWL = made_up(lambda x, y: 1 + x**2 + 2 * y**2, label="a <bowl> & more")
STEEP = made_up(lambda x, y: 0.01 + 1000 * (x**2 + y**2), label="steep")
