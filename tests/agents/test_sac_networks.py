"""The actor's distribution, the critics, and how the weights of an agent start."""

import math

import pytest
import torch
from small_agents import CURL, make_agent, pixel_agent
from torch import nn
from torch.distributions import Normal, TransformedDistribution
from torch.distributions.transforms import TanhTransform

from a2ls.agents._sac import Actor, Critic

FEATURES, ACTIONS, HIDDEN = 5, 3, 16


def actor_with_output(mean, log_std_input):
    """An actor whose last layer gives the same numbers for any input."""
    actor = Actor(nn.Identity(), FEATURES, ACTIONS, HIDDEN)
    with torch.no_grad():
        actor.net[-1].weight.zero_()
        actor.net[-1].bias.copy_(torch.tensor([mean] * ACTIONS + [log_std_input] * ACTIONS))
    return actor


@pytest.mark.usefixtures("_double")
def test_an_action_and_its_log_probability_are_those_of_a_squashed_gaussian():
    torch.manual_seed(0)
    actor = Actor(nn.Linear(4, FEATURES), FEATURES, ACTIONS, HIDDEN)
    x, noise = torch.randn(50, 4), torch.randn(50, ACTIONS)
    first, _, second, _, last = actor.net
    mean, log_std = last(torch.relu(second(torch.relu(first(actor.head(x)))))).chunk(2, dim=-1)
    std = torch.exp(-10 + 0.5 * (2 + 10) * (torch.tanh(log_std) + 1))  # CURL's form of the range [-10, 2]
    actions, log_prob = actor(x, noise)
    torch.testing.assert_close(actions, torch.tanh(mean + std * noise))
    expected = TransformedDistribution(Normal(mean, std), TanhTransform()).log_prob(actions).sum(dim=-1)
    torch.testing.assert_close(log_prob, expected, rtol=1e-8, atol=1e-8)
    torch.testing.assert_close(actor.mean(x), torch.tanh(mean))


@pytest.mark.usefixtures("_double")
@pytest.mark.parametrize(("output", "log_std"), [(-50.0, -10.0), (0.0, -4.0), (50.0, 2.0), (math.atanh(2 / 3), 0.0)])
def test_log_std_is_held_between_minus_10_and_2(output, log_std):
    actions, _ = actor_with_output(0.0, output)(torch.randn(1, FEATURES), torch.full((1, ACTIONS), 0.5))
    torch.testing.assert_close(torch.atanh(actions), torch.full((1, ACTIONS), 0.5 * math.exp(log_std)))


@pytest.mark.parametrize("mean", [-300.0, -30.0, 30.0, 300.0])
def test_log_probabilities_are_exact_where_actions_are_at_their_bounds(mean):
    actor = actor_with_output(mean, 0.0)
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


def test_the_critic_is_two_separate_networks():
    torch.manual_seed(0)
    critic, features, actions = Critic(FEATURES, ACTIONS, HIDDEN), torch.randn(7, FEATURES), torch.randn(7, ACTIONS)
    values = critic(features, actions)
    for network, value in zip((critic.q1, critic.q2), values, strict=True):
        x = torch.cat([features, actions], dim=1)
        for layer in (network[0], network[2], network[4]):
            x = x.clamp(min=0) if layer is not network[0] else x
            x = x @ layer.weight.T + layer.bias
        torch.testing.assert_close(value, x.flatten())
    assert [tuple(p.shape) for p in critic.q1.parameters()] == [(16, 8), (16,), (16, 16), (16,), (1, 16), (1,)]
    assert not {id(p) for p in critic.q1.parameters()} & {id(p) for p in critic.q2.parameters()}


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
