"""The actor at the bounds of its actions, and how the weights of an agent start; the rest is in `test_sac_update`."""

import math

import pytest
import torch
from torch import nn

from a2ls.agents._sac import Actor
from helpers.agents import CURL, make_agent, pixel_agent

FEATURES, ACTIONS = 5, 3


@pytest.mark.parametrize("mean", [-300.0, -30.0, 30.0, 300.0])
def test_log_probabilities_are_exact_where_actions_are_at_their_bounds(mean):
    actor = Actor(nn.Identity(), FEATURES, ACTIONS, hidden=16)
    with torch.no_grad():  # The same numbers for any input.
        actor.net[-1].weight.zero_()
        actor.net[-1].bias.copy_(torch.tensor([mean] * ACTIONS + [0.0] * ACTIONS))
    noise = torch.linspace(-2, 2, 7 * ACTIONS).view(7, ACTIONS)
    actions, log_prob = actor(torch.randn(7, FEATURES), noise)
    assert torch.equal(actions.abs(), torch.ones_like(actions))
    # Of raw ~ N(m, e^-4), with |m| large: log N(raw) + 2 |raw| - 2 log 2 in each dimension.
    raw = mean + math.exp(-4) * noise.double()
    gaussian = -0.5 * noise.double() ** 2 + 4 - 0.5 * math.log(2 * math.pi)
    expected = (gaussian + 2 * raw.abs() - 2 * math.log(2)).sum(dim=1)
    torch.testing.assert_close(log_prob.double(), expected, rtol=1e-5, atol=1e-4)
    log_prob.sum().backward()
    assert all(parameter.grad.isfinite().all() for parameter in actor.parameters())


@pytest.mark.parametrize("actor_encoder", ["own", "shared"])
@pytest.mark.parametrize("make", [make_agent, pixel_agent])
def test_weights_start_orthogonal_and_biases_at_zero(make, actor_encoder):
    settings = {"encoder_layers": 3, "filters": 12} if make is pixel_agent else {"encoder_layers": 2}
    agent = make(CURL, actor_encoder=actor_encoder, **settings)
    starts = {}
    for name, layer in agent.named_modules():
        if name.startswith("auxiliary") or not isinstance(layer, nn.Linear | nn.Conv2d):
            continue
        assert layer.bias.abs().max() == 0
        weight, gain = layer.weight.detach(), 1.0
        if isinstance(layer, nn.Conv2d):  # A product at the centre of the kernel, which makes up for the ReLU.
            around = weight.clone()
            around[:, :, 1, 1] = 0
            assert around.abs().max() == 0
            weight, gain = weight[:, :, 1, 1], 2.0
        narrow = weight if weight.shape[0] <= weight.shape[1] else weight.T
        torch.testing.assert_close(narrow @ narrow.T, gain * torch.eye(len(narrow)), atol=1e-5, rtol=0)
        starts[name] = weight
    # Each network has weights of its own, but for the targets, which start as copies.
    drawn = {name: start for name, start in starts.items() if not name.startswith("target_")}
    assert len({start.numpy().tobytes() for start in drawn.values()}) == len(drawn)
    for name in starts.keys() - drawn.keys():
        assert torch.equal(starts[name], starts[name.removeprefix("target_")])
        assert agent.get_submodule(name) is not agent.get_submodule(name.removeprefix("target_"))
        assert not agent.get_submodule(name).weight.requires_grad
    assert (agent.actor_body is agent.encoder.body) == (actor_encoder == "shared")
    assert agent.log_alpha.item() == pytest.approx(math.log(0.1))
