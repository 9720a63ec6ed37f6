"""Where a landscape is computed, and the figures that sum it up."""

import math

import numpy as np
import pytest

from a2ls._errors import BadInput
from a2ls.analysis.landscape._landscape import LandscapeSettings
from helpers.landscapes import made_up


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"resolution": 0}, "resolution is 0, but must be from 3 to 1,001"),
        ({"resolution": 2}, "resolution is 2, but must be from 3 to 1,001"),
        ({"extent": 0.0}, "extent is 0.0, but must be above 0"),
        ({"extent": math.inf}, "extent is inf"),
        ({"extent": math.nan}, "extent is nan"),
        ({"batch_size": 0}, "batch_size is 0, but must be at least 1"),
        ({"batches": 0}, "batches is 0"),
        ({"seed": -1}, "seed is -1, but must not be negative"),
    ],
)
def test_settings_that_are_not_allowed(settings, message):
    with pytest.raises(BadInput, match=message):
        LandscapeSettings(**settings)


@pytest.mark.parametrize("resolution", [3, 25, 33, 101])
def test_the_trained_weights_are_exactly_in_the_middle_of_an_odd_grid(resolution):
    positions = LandscapeSettings(resolution=resolution, extent=0.7).positions
    assert positions[resolution // 2] == 0
    assert (positions == -positions[::-1]).all()
    np.testing.assert_allclose(positions, np.linspace(-0.7, 0.7, resolution), atol=1e-15)


@pytest.mark.parametrize(
    ("function", "share"),
    [
        (lambda x, y: 1 + 3 * x**2 + y**2, 1),
        (lambda x, y: 1 + x**2 + y**2 + 1.9 * x * y, 1),
        (lambda x, y: 1 + x**2 + y**2 + 2.1 * x * y, 0),  # A saddle along the diagonal.
        (lambda x, y: 5 - x**2 - y**2, 0),
        (lambda x, y: 5 + x**2 - y**2, 0),
        (lambda x, y: 2 + x - y, 1),
        (lambda x, y: 5 + x**3 + y**2, 4 / 7),  # The inner places from 0 to the right.
        (lambda x, y: 5 + y**3 + x**2, 4 / 7),
        (lambda x, y: np.inf if x > 0.9 and y > 0.9 else 1 + x**2 + y**2, 48 / 49),
    ],
)
def test_where_a_landscape_is_convex(function, share):
    assert made_up(function).convex_share == pytest.approx(share)


def test_sharpness_and_extremes():
    landscape = made_up(lambda x, y: 2 + 8 * x**2 + 8 * y**2)
    assert landscape.sharpness == pytest.approx((2 + 8 * 0.25 - 2) / 2)
    assert (landscape.lowest, landscape.highest) == (2, 18)
    assert math.isnan(made_up(lambda x, *_: x**2).sharpness)
