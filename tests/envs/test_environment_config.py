"""The settings refuse values that make no sense, and show them."""

import pytest

from a2ls._errors import BadInput
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
        ({"pixels": True, "hidden_share": 0.2}, r"hidden_share is 0\.2, but only dimensions of vectors can be hidden"),
        ({"pixels": True, "frames": 0}, "frames is 0"),
        ({"pixels": True, "frame_size": 0}, "frame_size is 0"),
    ],
)
def test_refuses(setting, message):
    with pytest.raises(BadInput, match=message):
        EnvironmentConfig(**setting)
