"""How an agent acts on images."""

import numpy as np
import pytest
import torch
from image_formulas import body, doubles, head, mlp
from pixel_agents import ACTION, WINNER, images, make_agent, sequences, snapshot, transitions
from torch import nn


def active(agent):
    """Weights with which every pixel that the convolutions see matters."""
    torch.manual_seed(0)
    for parameter in agent.encoder.body.parameters():
        nn.init.uniform_(parameter, 0.1, 1.0)
    return agent


@pytest.mark.parametrize(("frame", "size", "margin"), [(17, 13, 2), (16, 13, 1)])
def test_actions_depend_on_the_pixels_of_the_middle_alone(frame, size, margin):
    agent = active(make_agent(None, frame=frame, image_size=size))
    image = images(1, frame)[0]
    each = image.repeat(frame * frame, 1, 1, 1)
    for i in range(frame * frame):
        each[i, :, i // frame, i % frame] ^= 255
    actions = agent.act(torch.cat([image[None], each]), deterministic=True)
    moved = ((actions[1:] - actions[0]).abs().amax(dim=1) > 1e-6).view(frame, frame)
    expected = torch.zeros(frame, frame, dtype=torch.bool)
    expected[margin : margin + size, margin : margin + size] = True
    assert torch.equal(moved, expected)


@pytest.mark.parametrize("augmentation", ["crop", "shift", "none"])
def test_deterministic_actions_are_the_same_every_time(augmentation):
    agent, batch = make_agent(augmentation=augmentation), images(3)
    agent.update(transitions(), sequences(WINNER))
    state = agent.generator.get_state()
    first = agent.act(batch, deterministic=True)
    assert torch.equal(first, agent.act(batch, deterministic=True))
    assert torch.equal(state, agent.generator.get_state())
    assert first.shape == (3, ACTION)
    assert not torch.equal(first[0], first[1])
    assert not torch.equal(first, agent.act(batch, deterministic=False))


@pytest.mark.parametrize(("augmentation", "frame"), [("shift", 12), ("none", 12), ("crop", 14)])
def test_acting_is_the_policy_on_the_plain_view(augmentation, frame):
    agent, batch = make_agent(None, frame=frame, augmentation=augmentation), images(3, frame)
    agent.update(transitions(frame=frame))
    p = doubles(snapshot(agent))
    middle = batch[:, :, 1:13, 1:13] if augmentation == "crop" else batch
    features = head(p, "actor_encoder.head", body(p, "encoder.body", middle))
    mean = mlp(p, "actor.layers", (0, 1, 2), features)[:, :ACTION].tanh()
    torch.testing.assert_close(agent.act(batch, deterministic=True).double(), mean, atol=1e-5, rtol=0)


def test_a_translated_image_is_acted_on_in_the_middle_of_black():
    agent, batch = make_agent(None, frame=8, augmentation="translate"), images(3, 8)
    agent.update(transitions(frame=8))
    black = np.pad(batch, [(0, 0), (0, 0), (2, 2), (2, 2)])
    p = doubles(snapshot(agent))
    mean = mlp(p, "actor.layers", (0, 1, 2), head(p, "actor_encoder.head", body(p, "encoder.body", black)))
    acted = agent.act(batch, deterministic=True).double()
    torch.testing.assert_close(acted, mean[:, :ACTION].tanh(), atol=1e-5, rtol=0)
