"""Settings of a training: what is refused, when it evaluates, and the paper's numbers."""

import dataclasses
import itertools
from typing import get_args

import pytest
import torch
from gymnasium.spaces import Box
from hypothesis import given
from hypothesis import strategies as st

from a2ls.agents import SAC
from a2ls.envs import EnvironmentConfig
from a2ls.space import named_loss
from a2ls.training import (
    PresetName,
    TrainConfig,
    in_environment,
    preset,
    preset_for,
    require_trainable,
    suitable_agent,
    with_settings,
)
from helpers.trainings import flat


@pytest.mark.parametrize("name", ["batch_size", "auxiliary_batch_size"])
def test_a_batch_is_not_larger_than_all_that_is_remembered(name):
    TrainConfig(**{name: 100_000})
    with pytest.raises(ValueError, match=f"{name} is 100001, but must not be more than buffer_size, which is 100000"):
        TrainConfig(**{name: 100_001})


@pytest.mark.parametrize("name", ["evaluations", "evaluation_episodes", "learning_starts", "batch_size", "buffer_size"])
@pytest.mark.parametrize("value", [0, -3])
def test_a_number_below_one_is_refused_with_its_name_and_value(name, value):
    with pytest.raises(ValueError, match=f"^{name} is {value}, but must be at least 1$"):
        TrainConfig(**{name: value})


@pytest.mark.parametrize("steps", [-5, 0, 19])
def test_fewer_decisions_than_evaluations_are_refused(steps):
    with pytest.raises(
        ValueError, match=rf"steps is {steps}, which is -?\d+ agent steps .* repeat of 4: too few for 5"
    ):
        TrainConfig(steps=steps)
    assert TrainConfig(steps=20).agent_steps == 5


def test_a_device_that_is_not_there_is_refused():
    with pytest.raises(ValueError, match=r"device is 'gpu', but must be one of cpu, cuda, mps"):
        TrainConfig(device="gpu")
    if not torch.cuda.is_available():
        with pytest.raises(ValueError, match=r"device is 'cuda:1', which this machine.*available: cpu"):
            require_trainable(TrainConfig(device="cuda:1"))


@given(st.integers(1, 5000), st.integers(1, 60), st.integers(1, 8))
def test_evaluations_are_evenly_spaced_and_the_last_is_at_the_end(agent_steps, evaluations, repeat):
    if agent_steps < evaluations:
        return
    config = TrainConfig(
        environment=EnvironmentConfig(action_repeat=repeat),
        steps=agent_steps * repeat + repeat - 1,
        evaluations=evaluations,
    )
    at = (0, *config.evaluation_agent_steps())
    assert len(at) == evaluations + 1
    assert at[-1] == config.agent_steps == agent_steps
    gaps = [b - a for a, b in itertools.pairwise(at)]
    assert min(gaps) >= 1
    assert max(gaps) - min(gaps) <= 1


# The paper's tables of hyper-parameters: the lines with one value for all tasks, and what the published code adds.
BOTH = {
    "buffer_size": 100_000,
    "learning_starts": 1000,
    "agent.hidden": 1024,
    "agent.predictor_hidden": 256,
    "agent.predictor": "paper",
    "evaluations": 5,
    "evaluation_episodes": 10,
    "agent.alpha_lr": 1e-4,
    "agent.auxiliary_weight": 1.0,
    "agent.critic_tau": 0.01,
    "agent.encoder_tau": 0.05,
    "agent.actor_every": 2,
    "agent.target_every": 2,
    "agent.gamma": 0.99,
    "agent.initial_alpha": 0.1,
}
VECTORS = BOTH | {
    "environment.pixels": False,
    "environment.hidden_share": 0,
    "environment.action_repeat": 4,
    "batch_size": 512,
    "agent.encoder": "dense",
    "agent.encoder_layers": 1,
}
IMAGES = BOTH | {
    "environment.pixels": True,
    "environment.shadows": True,
    "environment.frame_size": 100,
    "environment.frames": 3,
    "agent.augmentation": "crop",
    "agent.augmented_views": 1,
    "agent.image_size": 84,
    "agent.encoder": "conv",
    "agent.encoder_layers": 4,
    "agent.filters": 32,
    "agent.actor_encoder": "shared",
}
# Of images, by task: action repeat; and in the final evaluation actor and critic, encoder, sequences in a batch.
IMAGE_TASKS = {
    "cheetah-run": (4, 2e-4, 3e-3, 256),
    "finger-spin": (2, 1e-3, 3e-3, 256),
    "walker-walk": (2, 1e-3, 3e-3, 128),
    "cartpole-swingup": (8, 1e-3, 1e-3, 512),
    "reacher-easy": (4, 1e-3, 1e-3, 512),
}


def check_paper(config, numbers, every):
    """That a configuration has these numbers, and an evaluation after every so many steps."""
    values = flat(config)
    assert {name: values[name] for name in numbers} == numbers
    repeat = config.environment.action_repeat
    assert [repeat * agent_step for agent_step in config.evaluation_agent_steps()] == [every * i for i in range(1, 6)]


@pytest.mark.parametrize(
    ("env", "rate", "every"),
    [("cheetah-run", 2e-4, 100_000), ("hopper-hop", 1e-3, 300_000), ("quadruped-run", 1e-3, 300_000)],
)
def test_paper_vector_has_the_numbers_of_the_paper(env, rate, every):
    # The encoder's is twice the paper's rate, for the two steps of the published code.
    rates = {"agent.lr": rate, "agent.predictor_lr": rate, "agent.encoder_lr": 2 * rate}
    check_paper(preset("paper-vector", env), {"environment.env": env, **VECTORS, **rates}, every)


@pytest.mark.parametrize("task", IMAGE_TASKS)
def test_paper_image_has_the_numbers_of_the_evolution_and_of_the_final_evaluation(task):
    repeat, final_rate, final_encoder_rate, final_sequences = IMAGE_TASKS[task]
    for name, rate, encoder_rate, batch, sequences in [
        ("paper-image-search", 1e-3, 1e-3, 128, 128),
        ("paper-image", final_rate, final_encoder_rate, 512, final_sequences),
    ]:
        config = preset(name, task)
        rates = {"agent.lr": rate, "agent.predictor_lr": encoder_rate, "agent.encoder_lr": 2 * encoder_rate}
        own = {"environment.env": task, "environment.action_repeat": repeat, "batch_size": batch}
        check_paper(config, IMAGES | own | rates, 100_000)
        assert (config.auxiliary_batch_size or config.batch_size) == sequences


@pytest.mark.parametrize(("task", "steps"), [("cheetah-run", 100_000), ("humanoid-run", 1_000_000)])
def test_the_table_of_vector_scores_has_lengths_of_its_own(task, steps):
    search, table = flat(preset("paper-vector", task)), flat(preset("paper-vector-table", task))
    assert table["steps"] == steps
    assert {name for name in table if table[name] != search[name]} == {"preset", "steps", "evaluations"}
    # A point at 100,000 steps there is in both.
    assert 100_000 in [4 * agent_step for agent_step in preset("paper-vector-table", task).evaluation_agent_steps()]


@pytest.mark.parametrize(("task", "repeat"), [("cartpole-swingup", 8), ("finger-spin", 2), ("walker-run", 2)])
def test_released_vector_has_what_the_published_code_has_otherwise(task, repeat):
    paper, released = flat(preset("paper-vector", task)), flat(preset("released-vector", task))
    assert {name: released[name] for name in released if released[name] != paper[name]} == {
        "preset": "released-vector",
        "environment.action_repeat": repeat,
        "agent.predictor": "released",
        "agent.auxiliary_views": "shared",
    }
    assert (released["agent.actor_encoder"], released["agent.encoder_lr"]) == (
        "own",
        2 * released["agent.predictor_lr"],
    )


@pytest.mark.parametrize(("env", "repeat"), [("finger-turn_easy", 2), ("dm_control/cartpole-balance-v0", 8),
    ("Cartpole-Balance", 8), ("CartPole-v1", 1), ("fish-swim", 4)])  # fmt: skip
def test_the_body_of_any_task_decides_its_action_repeat_on_images(env, repeat):
    assert preset("paper-image", env).environment.action_repeat == repeat


@pytest.mark.parametrize("name", ["fast", "quick", "paper-vector", "released-vector", "fast-image", "fast-discrete"])
@pytest.mark.parametrize("env", ["Pendulum-v1", "CartPole-v1", "helpers.toy_envs:Toy/Counter-v0"])
def test_outside_of_dm_control_an_action_is_held_for_one_step(name, env):
    config, task = preset(name, env), preset(name, "cheetah-run", "rainbow" if env == "CartPole-v1" else None)
    assert config.environment.action_repeat == 1
    if name in ("fast", "quick", "fast-image"):  # They take as long as on a task.
        assert config.agent_steps == task.agent_steps


PRESETS = [*get_args(PresetName), "quick", "quick-image"]
CONTINUOUS = [name for name in PRESETS if "discrete" not in name and "atari" not in name]


@pytest.mark.parametrize("name", CONTINUOUS)
@pytest.mark.parametrize("other", ["hopper-hop", "walker-walk", "Pendulum-v1"])
def test_in_another_environment_a_preset_is_what_it_is_there(name, other):
    own = preset(name, "cheetah-run")
    assert in_environment(own, other) == preset(name, other)
    assert in_environment(in_environment(own, other), "cheetah-run") == own
    # What somebody has chosen stays, in every group of settings.
    wishes = {"steps": 77_000, "frames": 2, "critic_tau": 0.3}
    changed, there = with_settings(own, wishes), with_settings(preset(name, other), wishes)
    assert in_environment(changed, other) == there
    # Files of earlier versions do not say where their settings come from.
    unnamed = in_environment(dataclasses.replace(changed, preset=""), other)
    assert flat(unnamed) == flat(dataclasses.replace(there, preset=""))


def test_in_another_game_a_preset_is_what_it_is_there():
    own = preset("atari-100k", "pong")
    assert (own.algorithm, own.agent.auxiliary_weight) == ("rainbow", 0.01)
    assert in_environment(own, "ALE/Krull-v5") == preset("atari-100k", "ALE/Krull-v5")
    assert in_environment(own, "krull").agent.auxiliary_weight == 1.0
    wished = with_settings(own, {"n_step": 10, "auxiliary_weight": 0.5})
    assert in_environment(wished, "krull") == with_settings(
        preset("atari-100k", "krull"), {"n_step": 10, "auxiliary_weight": 0.5}
    )
    unnamed = dataclasses.replace(wished, preset="")
    assert flat(in_environment(unnamed, "krull")) == flat(
        dataclasses.replace(in_environment(wished, "krull"), preset="")
    )


@pytest.mark.parametrize("name", ["paper-vector", "paper-image"])
@pytest.mark.parametrize("written", ["Cheetah-Run", "dm_control/cheetah-run-v0"])
def test_a_task_has_its_numbers_however_it_is_written(name, written):
    config = preset(name, "cheetah-run")
    environment = dataclasses.replace(config.environment, env=written)
    assert preset(name, written) == dataclasses.replace(config, environment=environment)


def rates_of(agent):
    """The rates of critic, actor, predictor, encoder and alpha, after a look at how Adam averages."""
    optimizers = (agent.critic_optimizer, agent.actor_optimizer, agent.auxiliary_optimizer, agent.alpha_optimizer)
    groups = [group for optimizer in optimizers for group in optimizer.param_groups]
    assert [group["betas"] for group in groups] == [*[(0.9, 0.999)] * 4, (0.5, 0.999)]
    return [group["lr"] for group in groups]


def test_the_agent_of_the_paper_has_its_layers_and_adams():
    agent = SAC((17,), Box(-1, 1, (6,)), preset("paper-vector").agent, named_loss("a2-winner"))
    features = 17 + 40
    assert agent.encoder.feature_dim == features
    for critic in (agent.critic.q1, agent.critic.q2):
        assert widths(critic) == [features + 6, 1024, 1024, 1]
    assert widths(agent.actor.net) == [features, 1024, 1024, 12]
    assert widths(agent.auxiliary.predictor)[1] == 256
    assert rates_of(agent) == [2e-4, 2e-4, 2e-4, 4e-4, 1e-4]


def test_the_image_agent_of_the_paper_has_its_layers_and_adams():
    config = dataclasses.replace(preset("paper-image", "cheetah-run").agent, hidden=16)
    agent = SAC((9, 100, 100), Box(-1, 1, (6,)), config, named_loss("a2-winner"))
    layers = agent.encoder.body.layers
    assert [tuple(layer.weight.shape) for layer in layers] == [(32, 9, 3, 3), *[(32, 32, 3, 3)] * 3]
    assert [layer.stride for layer in layers] == [(2, 2), (1, 1), (1, 1), (1, 1)]
    assert agent.encoder.head[0].weight.shape == (50, 35 * 35 * 32)
    assert agent.encoder.feature_dim == 50
    assert widths(agent.auxiliary.predictor)[1] == 256
    assert rates_of(agent) == [2e-4, 2e-4, 3e-3, 6e-3, 1e-4]


def widths(network):
    layers = [layer for layer in network if isinstance(layer, torch.nn.Linear)]
    return [layers[0].in_features, *(layer.out_features for layer in layers)]


def test_the_fast_preset():
    config = preset("fast", "walker-walk")
    assert (config.environment.env, config.environment.action_repeat) == ("walker-walk", 4)
    assert (config.steps, config.batch_size, config.agent.hidden, config.agent.lr) == (
        40_000,
        128,
        256,
        1e-3,
    )
    assert [4 * agent_step for agent_step in config.evaluation_agent_steps()] == [8000, 16000, 24000, 32000, 40000]


@pytest.mark.parametrize(("name", "env", "agent", "pixels", "meant"), [
    ("fast", "cheetah-run", "sac", True, "fast-image"),
    ("fast", "cheetah-run", "sac", False, "fast"),
    ("paper-image", "cheetah-run", "sac", True, "paper-image"),
    ("paper-image", "cheetah-run", "sac", False, "paper-image"),
    ("fast", "CartPole-v1", "rainbow", False, "fast-discrete"),
    ("fast", "CartPole-v1", "rainbow", True, "fast-image"),
    ("fast", "pong", "rainbow", False, "fast-atari"),
    ("fast", "ALE/Tennis-v5", "rainbow", True, "fast-atari"),
    ("atari-100k", "pong", "rainbow", False, "atari-100k"),
])  # fmt: skip
def test_the_environment_decides_which_preset_is_meant(name, env, agent, pixels, meant):
    assert preset_for(name, env, agent, pixels=pixels) == meant


@pytest.mark.parametrize(("name", "env", "agent", "pixels", "message"), [
    ("paper-vector", "cheetah-run", "sac", True, "'paper-vector' is for vect.*; for pixels there are fast-image, "),
    ("paper-vector", "CartPole-v1", "rainbow", False, "for discrete actions there are fast-discrete$"),
    ("paper-image", "pong", "rainbow", False, "is for pixels; for Atari games there are fast-atari, atari-100k"),
    ("atari-100k", "cheetah-run", "sac", False, "is for Atari games; for vectors and continuous actions there"),
    ("fast-discrete", "pong", "rainbow", False, "'fast-discrete' is for discrete actions; for Atari games"),
])  # fmt: skip
def test_a_preset_for_something_else_is_refused(name, env, agent, pixels, message):
    with pytest.raises(ValueError, match=message):
        preset_for(name, env, agent, pixels=pixels)


@pytest.mark.parametrize(("env", "agent"), [("cheetah-run", "sac"), ("Pendulum-v1", "sac"), ("CartPole-v1", "rainbow"),
    ("pong", "rainbow"), ("ALE/Tennis-v5", "rainbow")])  # fmt: skip
def test_the_actions_decide_which_agent_is_meant(env, agent):
    assert suitable_agent(env) == agent
    assert preset("fast-image", env).algorithm == agent


def test_pixels_and_the_encoder_must_go_together():
    vectors, images = preset("fast"), preset("fast-image")
    with pytest.raises(ValueError, match=r"encoder is 'dense', but the agent sees pixels: it must be conv"):
        dataclasses.replace(images, agent=vectors.agent)
    with pytest.raises(ValueError, match=r"encoder is 'conv', but the agent sees vectors: it must be dense, mlp or"):
        dataclasses.replace(vectors, agent=images.agent)


def test_unknown_names_are_refused_with_those_there_are():
    with pytest.raises(ValueError, match=r"no preset 'slow'; allowed are fast, paper-vector"):
        preset("slow")
