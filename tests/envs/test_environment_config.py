"""The settings refuse values that make no sense, and show them."""

import pytest

from a2ls.envs import EnvironmentConfig


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"env": ""}, "environment is empty"),
        ({"action_repeat": 0}, "action_repeat is 0, but must be at least 1"),
        ({"hidden_share": 1.0}, "hidden_share is 1.0, but must be at least 0 and below 1"),
        ({"hidden_share": -0.1}, "hidden_share is -0.1"),
        ({"hidden_share": float("nan")}, "hidden_share is nan"),
        ({"hidden_seed": -1}, "hidden_seed is -1"),
    ],
)
def test_refuses(setting, message):
    with pytest.raises(ValueError, match=message):
        EnvironmentConfig(**setting)
