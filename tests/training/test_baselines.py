"""The agents that losses are compared with: what each changes in a configuration."""

import dataclasses

import pytest
import torch
from gymnasium.spaces import Box

from a2ls._errors import BadInput
from a2ls.agents import SAC
from a2ls.space import named_loss
from a2ls.training import (
    ReplayBuffer,
    Training,
    baseline_loss,
    baseline_names,
    preset,
    require_baseline,
    train,
    usual_baselines,
    with_baseline,
)
from helpers.trainings import COUNTER, flat

BASELINES = baseline_names("sac")


def differences(before, after):
    before, after = flat(before), flat(after)
    assert before.keys() == after.keys()
    return {name: (before[name], after[name]) for name in before if before[name] != after[name]}


VECTOR_CHANGES = {
    "sac": {},
    "curl": {"agent.auxiliary_batch": ("own", "critic")},
    "sac-identity": {"agent.encoder": ("dense", "identity")},
    "rad": {"agent.augmentation": ("none", "scale")},
}
IMAGE_CHANGES = {
    "sac": {},
    "curl": {"agent.auxiliary_batch": ("own", "critic")},
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


@pytest.mark.parametrize(
    ("config", "name", "changes"),
    [
        *((preset("fast", "walker-walk"), *each) for each in VECTOR_CHANGES.items()),
        *((preset("paper-image-search"), *each) for each in IMAGE_CHANGES.items()),
        (preset("paper-image", "walker-walk"), "drq", IMAGE_CHANGES["drq"]),
    ],
)
def test_a_baseline_changes_just_these_settings(config, name, changes):
    assert differences(config, with_baseline(config, name)) == changes


def test_curl_draws_no_sequences_beside_the_critics_batch(monkeypatch):
    drawn = []
    monkeypatch.setattr(ReplayBuffer, "sample_sequences", lambda *arguments: drawn.append(arguments))
    curl = with_baseline(COUNTER, "curl")
    training = Training(curl, baseline_loss("curl"), seed=0)
    training.run()
    training.close()
    assert (drawn, training.updates_without_sequences) == ([], 0)
    assert training.metrics["auxiliary_loss"] > 0
    train(COUNTER, baseline_loss("curl"), 0)
    assert drawn


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


PAPER_IMAGE = preset("paper-image-search")
SMALLER = dataclasses.replace(
    PAPER_IMAGE,
    environment=dataclasses.replace(PAPER_IMAGE.environment, frame_size=56),
    agent=dataclasses.replace(PAPER_IMAGE.agent, image_size=48),
)


@pytest.mark.parametrize(("name", "frame"), [("sac", 56), ("curl", 56), ("sac-no-aug", 48), ("drq", 48), ("rad", 44)])
def test_every_image_baseline_acts_and_keeps_the_proportions_of_images_of_other_sizes(name, frame):
    assert with_baseline(SMALLER, name).environment.frame_size == frame
    for config in (PAPER_IMAGE, SMALLER, preset("fast-image")):
        changed, size = with_baseline(config, name), config.agent.image_size
        agent, side = agent_of(changed, name), changed.environment.frame_size
        observed = torch.zeros(2, 9, side, side, dtype=torch.uint8)
        assert agent.act(observed, deterministic=True).shape == (2, 2)
        assert agent.augmentation.views([observed], agent.generator)[0].shape == (2, 9, size, size)


@pytest.mark.parametrize("name", VECTOR_CHANGES)
def test_every_vector_baseline_acts(name):
    agent = agent_of(with_baseline(preset("fast"), name), name)
    assert agent.act(torch.zeros(1, 5), deterministic=True).shape == (1, 2)
    assert agent.encoder.feature_dim == (5 if name == "sac-identity" else 5 + 40)


def test_curl_alone_has_a_loss():
    assert {name: baseline_loss(name) for name in BASELINES if baseline_loss(name)} == {"curl": named_loss("curl")}


@pytest.mark.parametrize(
    ("name", "config", "message"),
    [
        ("drq", preset("fast"), "drq is no baseline of sac for vectors; allowed are sac, sac-identity, curl, rad"),
        ("sac-identity", PAPER_IMAGE, "no baseline of sac for images; allowed are sac, sac-no-aug, curl, rad, drq"),
    ],
)
def test_a_baseline_of_other_observations_is_refused(name, config, message):
    with pytest.raises(BadInput, match=message):
        with_baseline(config, name)


@pytest.mark.parametrize(("misspelt", "meant"), [("sac_identity", "sac-identity"), ("dqr", "drq")])
def test_a_misspelt_baseline_gets_the_nearest(misspelt, meant):
    with pytest.raises(BadInput, match=rf"no baseline '{misspelt}': did you mean {meant}\b"):
        require_baseline(misspelt)


def test_an_unknown_baseline_gets_all_there_are():
    with pytest.raises(
        BadInput, match=r"'xyz': allowed are sac, sac-identity, sac-no-aug, curl, rad, drq, rainbow, spr, objective$"
    ):
        require_baseline("xyz")
    assert [require_baseline(name) for name in BASELINES] == list(BASELINES)
