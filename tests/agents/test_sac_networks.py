"""The actor's distribution and the twin critic."""

import math

import pytest
import torch
from torch import nn
from torch.distributions import Normal, TransformedDistribution
from torch.distributions.transforms import TanhTransform

from a2ls.agents._networks import Actor, TwinCritic, initialise

FEATURES, ACTIONS, HIDDEN = 5, 3, 16


def actor_with_output(mean, log_std_input):
    """An actor whose last layer gives the same numbers for any input."""
    actor = Actor(FEATURES, ACTIONS, HIDDEN).double()
    with torch.no_grad():
        actor.layers[-1].weight.zero_()
        actor.layers[-1].bias.copy_(torch.tensor([mean] * ACTIONS + [log_std_input] * ACTIONS))
    return actor


def output(actor, features):
    first, second, last = actor.layers
    return last(torch.relu(second(torch.relu(first(features)))))


def distribution(actor, features):
    mean, log_std = output(actor, features).chunk(2, dim=-1)
    std = torch.exp(-10 + 0.5 * (2 + 10) * (torch.tanh(log_std) + 1))  # CURL's form of the range [-10, 2]
    return TransformedDistribution(Normal(mean, std), TanhTransform())


@pytest.fixture
def generator():
    return torch.Generator().manual_seed(0)


@pytest.fixture
def _double():
    torch.set_default_dtype(torch.float64)  # the noise, too, is drawn in the default type
    yield
    torch.set_default_dtype(torch.float32)


@pytest.mark.usefixtures("_double")
def test_log_probability_is_that_of_a_squashed_gaussian(generator):
    torch.manual_seed(0)
    actor, features = Actor(FEATURES, ACTIONS, HIDDEN), torch.randn(200, FEATURES)
    draw = actor.draw(features, generator)
    expected = distribution(actor, features).log_prob(draw.actions).sum(dim=-1)
    torch.testing.assert_close(actor.log_probabilities(draw), expected, rtol=1e-8, atol=1e-8)


@pytest.mark.usefixtures("_double")
@pytest.mark.parametrize("share", [0.0, 0.3, -2.0])
def test_gradients_of_a_draw_are_those_of_a_squashed_gaussian(generator, share):
    torch.manual_seed(0)
    actor, features = Actor(FEATURES, ACTIONS, HIDDEN), torch.randn(20, FEATURES, requires_grad=True)
    noise = torch.randn(20, ACTIONS, generator=torch.Generator().set_state(generator.get_state()))
    with torch.inference_mode():
        draw = actor.draw(features, generator)
        mine, below = actor.draw_gradients(draw, 2 * draw.actions, torch.tensor(share))
    gaussian = distribution(actor, features).base_dist
    raw = gaussian.mean + gaussian.stddev * noise
    actions = torch.tanh(raw)
    log_density = gaussian.log_prob(raw) - torch.log(1 - actions**2)
    theirs = torch.autograd.grad(share * log_density.sum() + actions.square().sum(), [*actor.parameters(), features])
    for a, b in zip([*mine, below], theirs, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-6, atol=1e-6)
    assert [gradient.stride() for gradient in mine] == [parameter.stride() for parameter in actor.parameters()]


@pytest.mark.usefixtures("_double")
@pytest.mark.parametrize(("output", "log_std"), [(-50.0, -10.0), (0.0, -4.0), (50.0, 2.0), (math.atanh(2 / 3), 0.0)])
def test_log_std_is_held_between_minus_10_and_2(generator, output, log_std):
    # The actions' spread around a mean of zero shows the standard deviation.
    raw = torch.atanh(actor_with_output(0.0, output).draw(torch.randn(20_000, FEATURES), generator).actions)
    assert raw[raw.isfinite()].std().log().item() == pytest.approx(log_std, abs=0.05 if log_std < 2 else 0.2)


@pytest.mark.parametrize("mean", [-300.0, -30.0, 30.0, 300.0])
def test_extreme_means_have_finite_log_probabilities_and_gradients(generator, mean):
    actor = actor_with_output(mean, 0.0).float()
    with torch.inference_mode():
        draw = actor.draw(torch.randn(50, FEATURES), generator)
        log_probabilities = actor.log_probabilities(draw)
        gradients, below = actor.draw_gradients(draw, torch.ones(50, ACTIONS), torch.ones(()))
    assert draw.actions.abs().max() <= 1
    assert log_probabilities.isfinite().all()
    assert all(gradient.isfinite().all() for gradient in [*gradients, below])
    # Of raw ~ N(m, e^-4), with |m| large: log N(raw) + 2 |raw| - 2 log 2 in each dimension.
    expected = ACTIONS * (-0.5 * math.log(2 * math.pi) - 0.5 + 4 + 2 * abs(mean) - 2 * math.log(2))
    assert log_probabilities.mean().item() == pytest.approx(expected, abs=1.0)


def test_mean_action_is_the_squashed_mean():
    actor, features = Actor(FEATURES, ACTIONS, HIDDEN), torch.randn(9, FEATURES)
    assert torch.equal(actor.mean_action(features), torch.tanh(output(actor, features)[:, :ACTIONS]))


def test_samples_depend_on_nothing_but_the_generator(generator):
    actor, features = Actor(FEATURES, ACTIONS, HIDDEN), torch.randn(9, FEATURES)
    before = torch.get_rng_state()
    one, other, third = (actor.draw(features, torch.Generator().manual_seed(seed)).actions for seed in (3, 3, 4))
    assert torch.equal(one, other)
    assert not torch.equal(one, third)
    assert torch.equal(before, torch.get_rng_state())


def test_twin_critic_is_two_separate_networks_in_values_and_gradients():
    torch.manual_seed(0)
    twin = TwinCritic(FEATURES, ACTIONS, HIDDEN).double()
    for parameter in twin.parameters():
        nn.init.normal_(parameter)
    separate = []
    for i in range(2):
        network = nn.Sequential(
            nn.Linear(FEATURES + ACTIONS, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, 1)
        ).double()
        with torch.no_grad():
            for theirs, mine in zip(network[::2], (twin.first, twin.second, twin.last), strict=True):
                theirs.weight.copy_(mine.weight[i].T)
                theirs.bias.copy_(mine.bias[i, 0])
        separate.append(network)
    features, actions = torch.randn(7, FEATURES).double(), torch.randn(7, ACTIONS).double().requires_grad_()
    features.requires_grad_()
    values = twin(features, actions)
    joined = torch.cat([features, actions], dim=1)
    expected = torch.stack([network(joined)[:, 0] for network in separate])
    torch.testing.assert_close(values, expected)
    weights = torch.randn(2, 7).double()
    (weights * expected).sum().backward()
    with torch.inference_mode():
        traced, trace = twin.trace(features, actions)
        gradients, of_features = twin.gradients(trace, weights)
        of_actions = twin.action_gradient(trace, weights)
        alone, nothing = twin.gradients(trace, weights, below=False)
    torch.testing.assert_close(traced, values)
    torch.testing.assert_close(of_features, features.grad)
    torch.testing.assert_close(of_actions, actions.grad)
    assert nothing is None
    assert all(torch.equal(a, b) for a, b in zip(gradients, alone, strict=True))
    assert [gradient.stride() for gradient in gradients] == [parameter.stride() for parameter in twin.parameters()]
    for i, network in enumerate(separate):
        wanted = [tensor for layer in network[::2] for tensor in (layer.weight.grad.T, layer.bias.grad[None])]
        for gradient, theirs in zip(gradients, wanted, strict=True):
            torch.testing.assert_close(gradient[i], theirs)


def test_weights_start_orthogonal_and_biases_at_zero():
    network = nn.ModuleList([Actor(FEATURES, ACTIONS, HIDDEN), TwinCritic(FEATURES, ACTIONS, HIDDEN)])
    initialise(network)
    matrices = 0
    for name, parameter in network.named_parameters():
        if name.endswith("bias"):
            assert parameter.abs().max() == 0
            continue
        for matrix in parameter if parameter.dim() == 3 else [parameter]:
            matrices += 1
            narrow = matrix if matrix.shape[0] <= matrix.shape[1] else matrix.T
            torch.testing.assert_close(narrow @ narrow.T, torch.eye(len(narrow)), atol=1e-5, rtol=0)
    assert matrices == 3 + 2 * 3
    first = network[1].first.weight
    assert not torch.allclose(first[0], first[1])
