"""The agents that losses are compared with: what each changes in a configuration. The paper's numbers for images."""

import dataclasses

import pytest
import torch
from gymnasium.spaces import Box

from a2ls._errors import BadInput
from a2ls.agents import SAC
from a2ls.space import named_loss
from a2ls.training import (
    baseline_loss,
    baseline_names,
    preset,
    require_baseline,
    usual_baselines,
    with_baseline,
)

BASELINES = baseline_names("sac")


def flat(config):
    """Every setting by its dotted name."""
    values = dataclasses.asdict(config)
    groups = {name: value for name, value in values.items() if isinstance(value, dict)}
    inner = {f"{group}.{name}": value for group, fields in groups.items() for name, value in fields.items()}
    return inner | {name: value for name, value in values.items() if name not in groups}


def differences(before, after):
    before, after = flat(before), flat(after)
    assert before.keys() == after.keys()
    return {name: (before[name], after[name]) for name in before if before[name] != after[name]}


VECTOR_CHANGES = {
    "sac": {},
    "curl": {},
    "sac-identity": {"agent.encoder": ("dense", "identity")},
    "rad": {"agent.augmentation": ("none", "scale")},
}
IMAGE_CHANGES = {
    "sac": {},
    "curl": {},
    "sac-no-aug": {"environment.frame_size": (100, 84), "agent.augmentation": ("crop", "none")},
    "rad": {"environment.frame_size": (100, 78), "agent.augmentation": ("crop", "translate")},
    "drq": {
        "environment.frame_size": (100, 84),
        "agent.augmentation": ("crop", "shift"),
        "agent.augmented_views": (1, 2),
    },
}


def test_these_baselines_there_are():
    assert set(baseline_names("sac", pixels=False)) == VECTOR_CHANGES.keys()
    assert set(baseline_names("sac", pixels=True)) == IMAGE_CHANGES.keys()
    assert set(BASELINES) == {*VECTOR_CHANGES, *IMAGE_CHANGES}
    assert usual_baselines(preset("fast")) == ("sac", "sac-identity", "curl")
    assert usual_baselines(preset("fast-image")) == ("sac", "sac-no-aug", "curl")


@pytest.mark.parametrize("name", VECTOR_CHANGES)
def test_a_baseline_of_vectors_changes_just_these_settings(name):
    config = preset("fast", "walker-walk")
    assert differences(config, with_baseline(config, name)) == VECTOR_CHANGES[name]


@pytest.mark.parametrize("task", ["cheetah-run", "walker-walk"])
@pytest.mark.parametrize("paper", ["paper-image-search", "paper-image"])
@pytest.mark.parametrize("name", IMAGE_CHANGES)
def test_a_baseline_of_images_changes_just_these_settings(name, paper, task):
    config = preset(paper, task)
    assert differences(config, with_baseline(config, name)) == IMAGE_CHANGES[name]


@pytest.mark.parametrize(("name", "frame"), [("sac", 56), ("curl", 56), ("sac-no-aug", 48), ("drq", 48), ("rad", 44)])
def test_other_sizes_of_images_keep_their_proportions(name, frame):
    paper = preset("paper-image-search")
    small = dataclasses.replace(
        paper,
        environment=dataclasses.replace(paper.environment, frame_size=56),
        agent=dataclasses.replace(paper.agent, image_size=48),
    )
    config = with_baseline(small, name)
    assert config.environment.frame_size == frame
    assert agent_of(config, name).augmentation.shape == (9, 48, 48)


@pytest.mark.parametrize("first", ["rad", "drq", "sac-no-aug"])
@pytest.mark.parametrize("second", ["rad", "drq", "sac-no-aug"])
def test_of_two_baselines_of_images_the_second_counts(first, second):
    config = preset("paper-image-search")
    twice = with_baseline(with_baseline(config, first), second)
    assert differences(with_baseline(config, second), twice) == {}


def agent_of(config, name, action_dim=2):
    """The agent of a configuration, with narrow networks: which baseline it is does not depend on their width."""
    narrow = dataclasses.replace(config.agent, hidden=8, filters=2, predictor_hidden=8)
    side = config.environment.frame_size
    shape = (3 * config.environment.frames, side, side) if config.environment.pixels else (5,)
    return SAC(shape, Box(-1, 1, (action_dim,)), narrow, baseline_loss(name))


@pytest.mark.parametrize("name", IMAGE_CHANGES)
def test_every_image_baseline_sees_84_pixels_and_acts(name):
    config = with_baseline(preset("paper-image-search"), name)
    agent = agent_of(config, name)
    assert agent.augmentation.shape == (9, 84, 84)
    assert agent.encoder.body.output_dim == 35 * 35 * 2
    side = config.environment.frame_size
    actions = agent.act(torch.zeros(1, 9, side, side, dtype=torch.uint8), deterministic=True)
    assert actions.shape == (1, 2)
    (views,) = agent.augmentation.views([torch.zeros(2, 9, side, side, dtype=torch.uint8)], agent.generator)
    assert views.shape == (2, 9, 84, 84)


@pytest.mark.parametrize("name", IMAGE_CHANGES)
def test_every_image_baseline_has_a_fast_one_that_sees_as_many_pixels(name):
    config = preset("fast-image")
    side = config.agent.image_size
    assert agent_of(with_baseline(config, name), name).augmentation.shape == (9, side, side)


@pytest.mark.parametrize("name", VECTOR_CHANGES)
def test_every_vector_baseline_acts(name):
    agent = agent_of(with_baseline(preset("fast"), name), name)
    assert agent.act(torch.zeros(1, 5), deterministic=True).shape == (1, 2)
    assert agent.encoder.feature_dim == (5 if name == "sac-identity" else 5 + 40)


@pytest.mark.parametrize("name", BASELINES)
def test_curl_alone_has_a_loss(name):
    assert baseline_loss(name) == (named_loss("curl") if name == "curl" else None)


def test_the_loss_of_curl_is_contrastive():
    assert str(baseline_loss("curl")) == "s0 -> s0 | bilinear +neg"


@pytest.mark.parametrize("name", ["sac-no-aug", "drq"])
def test_what_is_for_images_is_refused_for_vectors(name):
    with pytest.raises(
        BadInput, match=f"^{name} is no baseline of sac for vectors; allowed are sac, sac-identity, curl, rad$"
    ):
        with_baseline(preset("fast"), name)


def test_what_is_for_vectors_is_refused_for_images():
    message = "^sac-identity is no baseline of sac for images; allowed are sac, sac-no-aug, curl, rad, drq$"
    with pytest.raises(BadInput, match=message):
        with_baseline(preset("paper-image-search"), "sac-identity")


@pytest.mark.parametrize(
    ("misspelt", "meant"),
    [
        ("sac_identity", "sac-identity"),
        ("sac-identiy", "sac-identity"),
        ("sac-noaug", "sac-no-aug"),
        ("crul", "curl"),
        ("dqr", "drq"),
        ("sacc", "sac"),
        ("rda", "rad"),
    ],
)
def test_a_misspelt_baseline_gets_the_nearest(misspelt, meant):
    with pytest.raises(BadInput, match=rf"^there is no baseline '{misspelt}': did you mean {meant}\b.*\?$"):
        require_baseline(misspelt)


def test_an_unknown_baseline_gets_all_there_are():
    with pytest.raises(BadInput, match=r"'xyz': allowed are sac, sac-identity, sac-no-aug, curl, rad, drq$"):
        require_baseline("xyz")
    assert [require_baseline(name) for name in BASELINES] == list(BASELINES)


# The paper's table of hyper-parameters for images: the lines with one value for all tasks and both columns.
PAPER_TABLE = {
    "environment.pixels": True,
    "agent.augmentation": "crop",
    "environment.frame_size": 100,
    "agent.image_size": 84,
    "replay_capacity": 100_000,
    "initial_steps": 1000,
    "environment.frames": 3,
    "agent.hidden": 1024,
    "agent.predictor_hidden": 256,
    "evaluation_episodes": 10,
    "agent.temperature_learning_rate": 1e-4,
    "agent.auxiliary_weight": 1.0,
    "agent.critic_tau": 0.01,
    "agent.target_every": 2,
    "agent.encoder": "conv",
    "agent.encoder_layers": 4,
    "agent.filters": 32,
    "agent.encoder_tau": 0.05,
    "agent.discount": 0.99,
    "agent.initial_temperature": 0.1,
    # Not in the table, but in the text and the published code.
    "agent.predictor": "paper",
    "agent.actor_encoder": "shared",
    "agent.actor_every": 2,
    "agent.augmented_views": 1,
}
ACTION_REPEAT = {"cheetah-run": 4, "reacher-easy": 4, "walker-walk": 2, "finger-spin": 2, "cartpole-swingup": 8}
# Of the final evaluation, by task: actor and critic, encoder, sequences in a batch.
FINAL = {
    "cheetah-run": (2e-4, 3e-3, 256),
    "finger-spin": (1e-3, 3e-3, 256),
    "walker-walk": (1e-3, 3e-3, 128),
    "cartpole-swingup": (1e-3, 1e-3, 512),
    "reacher-easy": (1e-3, 1e-3, 512),
}


def of_the_table(config):
    values = flat(config)
    return {name: values[name] for name in PAPER_TABLE}


@pytest.mark.parametrize("task", FINAL)
def test_paper_image_search_has_the_numbers_of_the_evolution(task):
    config = preset("paper-image-search", task)
    assert of_the_table(config) == PAPER_TABLE
    assert config.environment.env == task
    assert config.environment.action_repeat == ACTION_REPEAT[task]
    assert config.batch_size == 128
    assert (config.auxiliary_batch_size or config.batch_size) == 128
    assert config.agent.learning_rate == config.agent.predictor_learning_rate == 1e-3
    # For the two steps of the published code.
    assert config.agent.encoder_learning_rate == 2e-3
    assert config.environment.shadows


@pytest.mark.parametrize("written", [str, str.title, lambda task: f"dm_control/{task}-v0"], ids=["-", "title", "id"])
@pytest.mark.parametrize("task", FINAL)
def test_paper_image_has_the_numbers_of_the_final_evaluation(task, written):
    config = preset("paper-image", written(task))
    rate, encoder_rate, sequences = FINAL[task]
    assert of_the_table(config) == PAPER_TABLE
    assert config.environment.env == written(task)
    assert config.environment.action_repeat == ACTION_REPEAT[task]
    assert config.batch_size == 512
    assert (config.auxiliary_batch_size or config.batch_size) == sequences
    assert config.agent.learning_rate == rate
    assert config.agent.predictor_learning_rate == encoder_rate
    assert config.agent.encoder_learning_rate == 2 * encoder_rate
    assert config.environment.shadows


@pytest.mark.parametrize("name", ["paper-image-search", "paper-image"])
def test_images_are_trained_on_for_500_thousand_steps(name):
    config = preset(name, "cheetah-run")
    assert [4 * decision for decision in config.evaluation_decisions()] == [100_000 * i for i in range(1, 6)]


def test_the_image_agent_of_the_paper_has_its_layers_and_adams():
    config = preset("paper-image", "cheetah-run").agent
    agent = SAC((9, 100, 100), Box(-1, 1, (6,)), dataclasses.replace(config, hidden=16), named_loss("a2-winner"))
    assert [tuple(layer.weight.shape) for layer in agent.encoder.body.layers] == [(32, 9, 3, 3), *[(32, 32, 3, 3)] * 3]
    assert [layer.stride for layer in agent.encoder.body.layers] == [(2, 2), (1, 1), (1, 1), (1, 1)]
    assert agent.encoder.head[0].weight.shape == (50, 35 * 35 * 32)
    assert agent.encoder.feature_dim == 50
    assert agent.auxiliary.predictor[0].out_features == 256
    optimizers = (agent.critic_optimizer, agent.actor_optimizer, agent.auxiliary_optimizer, agent.alpha_optimizer)
    groups = [group for optimizer in optimizers for group in optimizer.param_groups]
    assert [group["lr"] for group in groups] == [2e-4, 2e-4, 3e-3, 6e-3, 1e-4]
    assert [group["betas"] for group in groups] == [*[(0.9, 0.999)] * 4, (0.5, 0.999)]
