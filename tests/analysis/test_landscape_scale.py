"""Several landscapes on one scale of heights and colours."""

import math

import numpy as np
import pytest

from a2ls.analysis.landscape._landscape import LossScale
from helpers.landscapes import BOWL, STEEP, made_up


def test_one_scale_for_all():
    assert LossScale.shared([BOWL]) == LossScale(False, 1, 4)
    both = LossScale.shared([BOWL, STEEP])
    assert both.log
    assert both.limits == pytest.approx((-2, math.log10(2000.01)))
    assert LossScale.shared([BOWL], "log").log
    assert not LossScale.shared([STEEP], "linear").log
    heights, texts = both.ticks
    assert texts == ["0.01", "0.1", "1", "10", "100", "1e+03"]
    np.testing.assert_allclose([10**height for height in heights], [float(text) for text in texts])
    assert LossScale.shared([BOWL], "log").ticks[1] == ["1", "2"]


def test_scales_of_losses_at_the_limits():
    flat = LossScale.shared([made_up(lambda *_: 2.0)])
    assert flat.limits == (1.5, 2.5)
    nothing = LossScale.shared([made_up(lambda *_: 0.0)], "log")
    assert not nothing.log
    zero = LossScale.shared([made_up(lambda x, *_: abs(x))], "log")
    assert zero.low == 0.25
    assert float(zero.height(0.0)) == pytest.approx(math.log10(0.25))
    broken = LossScale.shared([made_up(lambda x, *_: np.inf if x > 0.9 else np.nan if x < -0.9 else 1 + x**2)])
    assert (broken.low, broken.high) == (1, 1 + 0.75**2)
    assert np.isnan(broken.height(np.array([np.inf, np.nan]))).all()
