"""Settings of the agent that cannot be meant."""

import pytest

from a2ls.agents import SAC, SACConfig


@pytest.mark.parametrize(
    "setting",
    [
        {"hidden": 0},
        {"predictor_hidden": 0},
        {"actor_every": 0},
        {"target_every": -1},
        {"learning_rate": 0.0},
        {"learning_rate": float("nan")},
        {"encoder_learning_rate": 0.0},
        {"temperature_learning_rate": -1e-3},
        {"initial_temperature": 0.0},
        {"discount": 1.1},
        {"discount": -0.1},
        {"critic_tau": 1.5},
        {"encoder_tau": float("nan")},
        {"auxiliary_weight": -1.0},
        {"encoder_layers": 0},
        {"encoder_layers": 5},
    ],
    ids=str,
)
def test_a_wrong_setting_is_refused_with_its_name_and_value(setting):
    ((name, value),) = setting.items()
    with pytest.raises(ValueError, match=f"^{name} is {value}, but must"):
        SACConfig(**setting)


def test_an_unknown_encoder_is_refused():
    with pytest.raises(ValueError, match="'transformer'"):
        SAC(3, 1, SACConfig(encoder="transformer"))
