"""Settings of a training: what is refused, when it evaluates, and the paper's numbers."""

import dataclasses
import itertools

import pytest
import torch
from gymnasium.spaces import Box
from hypothesis import given
from hypothesis import strategies as st

from a2ls.envs import EnvironmentConfig
from a2ls.training import TrainConfig, preset, preset_for, require_trainable


@pytest.mark.parametrize(
    "name", ["evaluations", "evaluation_episodes", "initial_steps", "batch_size", "replay_capacity"]
)
@pytest.mark.parametrize("value", [0, -3])
def test_a_number_below_one_is_refused_with_its_name_and_value(name, value):
    with pytest.raises(ValueError, match=f"^{name} is {value}, but must be at least 1$"):
        TrainConfig(**{name: value})


@pytest.mark.parametrize("steps", [-5, 0, 19])
def test_fewer_decisions_than_evaluations_are_refused(steps):
    with pytest.raises(ValueError, match=rf"steps is {steps}, which is -?\d+ decisions .* repeat of 4: too few for 5"):
        TrainConfig(steps=steps)
    assert TrainConfig(steps=20).decisions == 5


def test_a_device_that_is_not_there_is_refused():
    with pytest.raises(ValueError, match=r"device is 'gpu', but must be one of cpu, cuda, mps"):
        TrainConfig(device="gpu")
    if not torch.cuda.is_available():
        with pytest.raises(ValueError, match=r"device is 'cuda:1', which this machine.*available: cpu"):
            require_trainable(TrainConfig(device="cuda:1"))


@given(st.integers(1, 5000), st.integers(1, 60), st.integers(1, 8))
def test_evaluations_are_evenly_spaced_and_the_last_is_at_the_end(decisions, evaluations, repeat):
    if decisions < evaluations:
        return
    config = TrainConfig(
        environment=EnvironmentConfig(action_repeat=repeat),
        steps=decisions * repeat + repeat - 1,
        evaluations=evaluations,
    )
    at = (0, *config.evaluation_decisions())
    assert len(at) == evaluations + 1
    assert at[-1] == config.decisions == decisions
    gaps = [b - a for a, b in itertools.pairwise(at)]
    assert min(gaps) >= 1
    assert max(gaps) - min(gaps) <= 1


# The paper's table of hyper-parameters for vectors, line by line, with the lengths of its search (appendix D.5).
PAPER_TABLE = {
    "replay_capacity": 100_000,
    "initial_steps": 1000,
    "environment.action_repeat": 4,
    "agent.hidden": 1024,
    "agent.predictor_hidden": 256,
    "evaluation_episodes": 10,
    "agent.temperature_learning_rate": 1e-4,
    "batch_size": 512,
    "agent.auxiliary_weight": 1.0,
    "agent.critic_tau": 0.01,
    "agent.target_every": 2,
    "agent.encoder": "dense",
    "agent.encoder_layers": 1,
    "agent.encoder_tau": 0.05,
    "agent.discount": 0.99,
    "agent.initial_temperature": 0.1,
    "agent.predictor": "paper",
    "agent.actor_every": 2,
    "evaluations": 5,
}


@pytest.mark.parametrize(
    ("env", "rate", "points"),
    [
        ("cheetah-run", 2e-4, [100_000, 200_000, 300_000, 400_000, 500_000]),
        ("Cheetah-Run", 2e-4, [100_000, 200_000, 300_000, 400_000, 500_000]),
        ("dm_control/cheetah-run-v0", 2e-4, [100_000, 200_000, 300_000, 400_000, 500_000]),
        ("hopper-hop", 1e-3, [300_000, 600_000, 900_000, 1_200_000, 1_500_000]),
        ("quadruped-run", 1e-3, [300_000, 600_000, 900_000, 1_200_000, 1_500_000]),
    ],
)
def test_paper_vector_has_the_numbers_of_the_paper(env, rate, points):
    config = preset("paper-vector", env)
    values = dataclasses.asdict(config)
    flat = {f"{a}.{b}": v for a in ("environment", "agent") for b, v in values[a].items()} | values
    assert {name: flat[name] for name in PAPER_TABLE} == PAPER_TABLE
    assert config.agent.learning_rate == rate
    assert config.agent.encoder_learning_rate == 2 * rate
    assert [4 * decision for decision in config.evaluation_decisions()] == points
    assert config.environment.env == env
    assert config.environment.hidden_share == 0


def test_the_agent_of_the_paper_has_its_layers_and_adams():
    from a2ls.agents import SAC
    from a2ls.space import named_loss

    agent = SAC((17,), Box(-1, 1, (6,)), preset("paper-vector").agent, named_loss("a2-winner"))
    features = 17 + 40
    assert agent.encoder.feature_dim == features
    for critic in (agent.critic.q1, agent.critic.q2):
        assert widths(critic) == [features + 6, 1024, 1024, 1]
    assert widths(agent.actor.net) == [features, 1024, 1024, 12]
    assert widths(agent.auxiliary.predictor)[1] == 256
    # The encoder's is twice the paper's rate, for the two steps of the published code.
    (critic,), (actor,), (alpha,) = (
        optimizer.param_groups for optimizer in (agent.critic_optimizer, agent.actor_optimizer, agent.alpha_optimizer)
    )
    predictor, encoder = agent.auxiliary_optimizer.param_groups
    assert [group["lr"] for group in (critic, actor, predictor, encoder, alpha)] == [2e-4, 2e-4, 2e-4, 4e-4, 1e-4]
    assert {group["betas"] for group in (critic, actor, predictor, encoder)} == {(0.9, 0.999)}
    assert alpha["betas"] == (0.5, 0.999)


def widths(network):
    layers = [layer for layer in network if isinstance(layer, torch.nn.Linear)]
    return [layers[0].in_features, *(layer.out_features for layer in layers)]


def test_the_fast_preset():
    config = preset("fast", "walker-walk")
    assert (config.environment.env, config.environment.action_repeat) == ("walker-walk", 4)
    assert (config.steps, config.batch_size, config.agent.hidden, config.agent.learning_rate) == (
        40_000,
        128,
        256,
        1e-3,
    )
    assert [4 * decision for decision in config.evaluation_decisions()] == [8000, 16000, 24000, 32000, 40000]


def test_pixels_turn_a_preset_into_the_one_for_images():
    assert preset_for("fast", pixels=True) == "fast-image"
    assert preset_for("fast", pixels=False) == "fast"
    assert preset_for("paper-image", pixels=True) == "paper-image"
    with pytest.raises(ValueError, match=r"'paper-vector' is for vectors; for pixels there are fast-image, "):
        preset_for("paper-vector", pixels=True)


def test_pixels_and_the_encoder_must_go_together():
    vectors, images = preset("fast"), preset("fast-image")
    with pytest.raises(ValueError, match=r"encoder is 'dense', but the agent sees pixels: it must be conv"):
        dataclasses.replace(images, agent=vectors.agent)
    with pytest.raises(ValueError, match=r"encoder is 'conv', but the agent sees vectors: it must be dense, mlp or"):
        dataclasses.replace(vectors, agent=images.agent)


def test_unknown_names_are_refused_with_those_there_are():
    with pytest.raises(ValueError, match=r"no preset 'slow'; allowed are fast, paper-vector"):
        preset("slow")
