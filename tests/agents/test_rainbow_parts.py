"""The parts of Rainbow one by one, its settings, and those of the presets."""

import math

import numpy as np
import pytest
import torch
from gymnasium.spaces import Discrete
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from torch import nn

from a2ls._errors import BadInput
from a2ls.agents import RainbowConfig, ReplayConfig, Transitions, make_agent
from a2ls.agents._rainbow import NoisyLinear, projected
from a2ls.envs import ATARI_GAMES
from a2ls.space import Loss, named_loss
from a2ls.training import preset, with_baseline
from helpers.agents import generator, vectors
from helpers.rainbow_agents import ACTIONS, rainbow, screen_rainbow, screens
from helpers.rainbow_reference import projection

# Distributions.


@st.composite
def supports(draw):
    """The lowest and the highest return, and how many there are."""
    low = draw(st.floats(-50, 50))
    return low, low + draw(st.floats(0.1, 100)), draw(st.integers(2, 60))


def some_probabilities(count, rng):
    probabilities = rng.exponential(size=count) * (rng.random(count) < 0.7) + 1e-9
    return probabilities / probabilities.sum()


def project(probabilities, returns, low, high):
    support = torch.linspace(low, high, len(probabilities), dtype=torch.float64)
    found = projected(torch.tensor(probabilities)[None], torch.tensor(returns)[None], support)
    return found[0].numpy(), support.numpy()


@given(supports(), st.floats(-200, 200), st.floats(0, 1), st.integers(0, 2**32 - 1))
def test_the_projection_is_that_of_the_paper_and_a_distribution(support, reward, discount, seed):
    low, high, atoms = support
    probabilities = some_probabilities(atoms, np.random.default_rng(seed))
    returns = reward + discount * np.linspace(low, high, atoms)
    found, _ = project(probabilities, returns, low, high)
    np.testing.assert_allclose(found, projection(probabilities, returns, low, high), rtol=0, atol=1e-9)
    assert found.min() >= 0
    assert found.sum() == pytest.approx(1, abs=1e-12)


@given(supports(), st.integers(0, 2**32 - 1))
def test_the_projection_keeps_the_mean_of_returns_within_the_support_and_clips_others(support, seed):
    low, high, atoms = support
    rng = np.random.default_rng(seed)
    probabilities = some_probabilities(atoms, rng)
    returns = rng.uniform(low, high, atoms)
    found, values = project(probabilities, returns, low, high)
    assert found @ values == pytest.approx(probabilities @ returns, abs=1e-9)
    # What is on the support stays where it is.
    np.testing.assert_allclose(project(probabilities, values.copy(), low, high)[0], probabilities, rtol=0, atol=1e-9)
    beyond = rng.uniform(0, 30, atoms)
    for returns, end in ((high + beyond, -1), (low - beyond, 0)):
        assert project(probabilities, returns, low, high)[0][end] == pytest.approx(1, abs=1e-12)


def with_distributions(network, wanted):
    """Let a network say these probabilities (actions, atoms), whatever it sees."""
    logits = torch.tensor(wanted).log()
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.zero_()
        network.advantage.bias.copy_(logits.flatten())
        network.value.bias.copy_(logits.mean(dim=0))


@pytest.mark.usefixtures("_double")
def test_the_online_network_chooses_the_action_whose_return_the_target_network_knows():
    agent = rainbow(atoms=3, value_min=-1.0, value_max=1.0, gamma=0.5)
    # The first action is the best for one of them, the last for the other.
    with_distributions(agent.returns, [[0.1, 0.1, 0.8], [0.3, 0.4, 0.3], [0.4, 0.4, 0.2]])
    with_distributions(agent.target_returns, [[0.7, 0.2, 0.1], [0.3, 0.4, 0.3], [0.1, 0.1, 0.8]])
    # Three rows: one step, a terminal one, and two steps.
    batch = Transitions(
        vectors(3, 0),
        torch.tensor([1, 2, 0]),
        torch.full((3,), 0.25),
        vectors(3, 1),
        torch.tensor([1.0, 0.0, 1.0]),
        torch.tensor([1.0, 1.0, 2.0]),
    )
    # Returns of (-1, 0, 1): (-0.25, 0.25, 0.75), (0.25, 0.25, 0.25) and (0, 0.25, 0.5), of probability 0.7, 0.2, 0.1.
    expected = torch.tensor([[0.175, 0.7, 0.125], [0.0, 0.75, 0.25], [0.0, 0.9, 0.1]])
    torch.testing.assert_close(agent.target_distribution(batch), expected)
    # -sum m log p, where the network says 0.3 0.4 0.3 of action 1, and so on.
    logs = torch.tensor([[0.3, 0.4, 0.3], [0.4, 0.4, 0.2], [0.1, 0.1, 0.8]]).log()
    torch.testing.assert_close(agent.errors(batch, expected), -(expected * logs).sum(dim=1))
    assert agent.act(vectors(), deterministic=True).tolist() == [0, 0, 0]
    torch.testing.assert_close(agent.q_values(agent.returns(torch.zeros(1, 9), None)), torch.tensor([[0.7, 0.0, -0.2]]))


# Networks.


@pytest.mark.usefixtures("_double")
def test_advantages_have_the_mean_zero_so_that_the_value_stream_is_the_mean():
    returns, x = rainbow().returns, torch.randn(4, 9, generator=generator())
    before = returns(x, None)
    assert before.shape == (4, ACTIONS, 6)
    torch.testing.assert_close(before.exp().sum(dim=2), torch.ones(4, ACTIONS))
    # Log-probabilities are known up to a number for each action: without their mean over the atoms they are.
    hidden, value = returns.hidden[0], returns.value
    expected = (x @ hidden.weight.T + hidden.bias).clamp(min=0) @ value.weight.T + value.bias
    means = (before - before.mean(dim=2, keepdim=True)).mean(dim=1)
    torch.testing.assert_close(means, expected - expected.mean(dim=1, keepdim=True))
    shift = torch.randn(6, generator=generator(1))
    with torch.no_grad():  # What all advantages have in common is nothing.
        returns.advantage.bias += shift.repeat(ACTIONS)
    torch.testing.assert_close(returns(x, None), before)
    with torch.no_grad():  # What is added to the value is added to all actions.
        returns.value.bias += shift
    torch.testing.assert_close(returns(x, None), (before + shift).log_softmax(dim=2))


def test_noise_has_the_mean_and_the_variance_of_factorised_gaussians():
    layer, g, draws = NoisyLinear(5, 3, sigma=0.5), generator(), 8_000
    bound = 1 / math.sqrt(5)
    for name, value in layer.named_parameters():
        if name.endswith("sigma"):
            assert (value - 0.5 * bound).abs().max() < 1e-7
        else:
            assert value.abs().max() <= bound
            assert value.unique().numel() == value.numel()
    with torch.no_grad():
        layer.weight_sigma.uniform_(0.2, 2, generator=g)
        layer.bias_sigma.uniform_(0.2, 2, generator=g)
        x = torch.randn(5, generator=g)
        y = torch.stack([layer(x[None], g)[0] for _ in range(draws)]).double()
        plain = x @ layer.weight.T + layer.bias
        assert torch.equal(layer(x[None], None)[0], layer(x[None], None)[0])
        torch.testing.assert_close(layer(x[None], None)[0], plain)
    # f(e) = sign(e) sqrt(|e|) has the mean 0, and the variance E|e|.
    k = math.sqrt(2 / math.pi)
    variance = k * (k * (layer.weight_sigma**2 @ x**2) + layer.bias_sigma**2).detach().double()
    errors = (y.mean(dim=0) - plain) / (variance / draws).sqrt()
    assert errors.abs().max() < 4
    # The kurtosis of f is 1 / k^2, so that of f times a sum of others is below 5: a standard deviation is 2 %.
    torch.testing.assert_close(y.var(dim=0), variance, rtol=0.08, atol=0)
    # Noise of different outputs is not the same, but it is the same for all of a batch.
    assert np.abs(np.corrcoef(y.T.numpy())[np.triu_indices(3, 1)]).max() < 0.05
    rows = layer(torch.stack([x, 2 * x, 3 * x]), g)
    torch.testing.assert_close(rows[2] - rows[1], rows[1] - rows[0])


@pytest.mark.parametrize(("make", "observed"), [(rainbow, vectors), (screen_rainbow, screens)])
def test_there_is_new_noise_whenever_an_agent_explores_and_none_when_it_is_evaluated(make, observed):
    agent, obs = make(noisy_sigma=1.0), observed(3)
    x = agent.encoder.body(obs)
    one, two = (agent.returns(x, agent.generator) for _ in range(2))
    assert not torch.isclose(one, two).any()
    assert torch.equal(agent.returns(x, None), agent.returns(x, None))
    many = observed(1).repeat(100, *[1] * (obs.ndim - 1))
    # All rows of a batch have the same noise, and every batch has another.
    explored = torch.stack([agent.act(many, deterministic=False) for _ in range(40)])
    assert (explored == explored[:, :1]).all()
    assert explored[:, 0].unique().numel() > 1
    state = agent.generator.get_state()
    evaluated = torch.stack([agent.act(many, deterministic=True) for _ in range(5)])
    assert evaluated.unique().numel() == 1
    assert torch.equal(state, agent.generator.get_state())


def test_a_share_of_the_actions_in_evaluations_is_random_and_of_no_effect_on_the_training():
    agent, count = rainbow(evaluation_epsilon=0.3), 30_000
    state = agent.generator.get_state()
    obs = vectors(1).repeat(count, 1)
    best = rainbow().act(obs[:1], deterministic=True).item()
    actions = agent.act(obs, deterministic=True)
    assert (actions.dtype, actions.shape) == (torch.int64, (count,))
    probabilities = np.full(ACTIONS, 0.3 / ACTIONS)
    probabilities[best] += 0.7
    assert stats.chisquare(actions.bincount(minlength=ACTIONS), count * probabilities).pvalue > 1e-3
    assert not torch.equal(actions, agent.act(obs, deterministic=True))
    assert torch.equal(agent.generator.get_state(), state)
    plain = rainbow()
    assert torch.equal(agent.act(obs, deterministic=False), plain.act(obs, deterministic=False))


# Presets.


def test_the_agent_of_atari_100k_is_data_efficient_rainbow_with_curl_on_it():
    config = preset("atari-100k", "pong", "rainbow")
    settings = config.agent
    assert config.environment.env == "pong"
    assert (config.steps, config.agent_steps, config.learning_starts, config.batch_size) == (400_000, 100_000, 1600, 32)
    assert config.buffer_size >= config.agent_steps
    screen = config.environment
    assert (screen.pixels, screen.frame_size, screen.frames, screen.action_repeat) == (True, 84, 4, 4)
    assert settings.replay == ReplayConfig(n_step=20, gamma=0.99, priority_exponent=0.5, priority_beta=0.4)
    curl = with_baseline(config, "curl").agent
    assert (curl.auxiliary_batch, curl.augmentation, curl.augmented, curl.encoder_tau) == (
        "shared",
        "shift",
        "auxiliary",
        0.001,
    )
    agent = make_agent("rainbow", (4, 84, 84), Discrete(6), curl, named_loss("curl"))
    first, second = (layer for layer in agent.encoder.body.modules() if isinstance(layer, nn.Conv2d))
    assert (first.in_channels, first.out_channels, first.kernel_size, first.stride) == (4, 32, (5, 5), (5, 5))
    assert (second.in_channels, second.out_channels, second.kernel_size, second.stride) == (32, 64, (5, 5), (5, 5))
    assert first.padding == second.padding == (0, 0)
    assert agent.encoder.body(torch.zeros(2, 4, 84, 84)).shape == (2, 576)
    assert agent.encoder(torch.zeros(2, 4, 84, 84)).shape == (2, 128)
    noisy = [layer for layer in agent.returns.modules() if isinstance(layer, NoisyLinear)]
    shapes = [(576, 256), (576, 256), (256, 51), (256, 6 * 51)]
    assert sorted(tuple(layer.weight.shape[::-1]) for layer in noisy) == sorted(shapes)
    for layer in noisy:
        strength = 0.1 / math.sqrt(layer.weight.shape[1])
        for sigma in (layer.weight_sigma, layer.bias_sigma):
            torch.testing.assert_close(sigma, torch.full_like(sigma, strength))
    torch.testing.assert_close(agent.support, torch.arange(-25, 26) * 0.4)
    (group,) = agent.optimizer.param_groups
    assert isinstance(agent.optimizer, torch.optim.Adam)
    assert (group["lr"], group["eps"], group["betas"], group["weight_decay"]) == (1e-4, 1.5e-4, (0.9, 0.999), 0)
    assert settings.max_gradient_norm == 10
    assert [i for i in range(6001) if agent.schedule(i)["targets"]] == [0, 2000, 4000, 6000]
    assert settings.evaluation_epsilon == 0.001


def test_the_coefficient_of_the_auxiliary_loss_is_small_in_four_games():
    weights = {game: preset("atari-100k", game, "rainbow").agent.auxiliary_weight for game in ATARI_GAMES}
    assert len(weights) == 26
    small = {game for game, weight in weights.items() if weight == 0.01}
    assert small == {"pong", "boxing", "private-eye", "freeway"}
    assert {weight for game, weight in weights.items() if game not in small} == {1.0}
    assert preset("atari-100k", "ALE/PrivateEye-v5", "rainbow").agent.auxiliary_weight == 0.01


# Settings.


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *((name, 0) for name in ("hidden", "predictor_hidden", "encoder_width", "filters", "n_step", "target_every")),
        *(("atoms", 1), ("encoder_layers", 0), ("encoder_layers", 5)),
        *((name, 0.0) for name in ("lr", "adam_eps", "max_gradient_norm")),
        *((name, 1.5) for name in ("gamma", "priority_exponent", "priority_beta", "evaluation_epsilon", "encoder_tau")),
        *((name, -0.1) for name in ("gamma", "priority_exponent", "priority_beta", "evaluation_epsilon")),
        *(("noisy_sigma", -0.1), ("auxiliary_weight", -1.0), ("value_min", 10.0), ("value_min", 11.0)),
        *((name, float("nan")) for name in ("lr", "gamma", "noisy_sigma", "value_min")),
        ("value_min", float("-inf")),
    ],
)
def test_a_wrong_setting_is_refused_with_its_name_and_value(name, value):
    with pytest.raises(BadInput, match=f"^{name} is {value}, but must"):
        RainbowConfig(**{name: value})


def test_settings_that_do_not_suit_the_observations_are_refused():
    for encoder in ("dense", "mlp", "identity"):
        RainbowConfig(encoder=encoder).require_observations(pixels=False)
        with pytest.raises(BadInput, match=f"encoder is '{encoder}', but the agent sees pixels"):
            RainbowConfig(encoder=encoder).require_observations(pixels=True)
    for encoder in ("atari", "conv"):
        RainbowConfig(encoder=encoder).require_observations(pixels=True)
        with pytest.raises(BadInput, match=f"encoder is '{encoder}', but the agent sees vectors"):
            RainbowConfig(encoder=encoder).require_observations(pixels=False)
    with pytest.raises(BadInput, match="augmentation is 'shift', which is for images"):
        RainbowConfig(encoder="dense", augmentation="shift").require_observations(pixels=False)


@pytest.mark.parametrize(
    ("settings", "loss", "message"),
    [
        ({"auxiliary_batch": "shared"}, "s0 a0 -> s0", "auxiliary_batch is 'shared', .* but the loss is s0 a0 -> s0"),
        ({"auxiliary_batch": "shared"}, "s0 -> s1", "auxiliary_batch is 'shared', .* but the loss is s0 -> s1"),
        ({"predictor": "none"}, "s0 a0 -> s1", "predictor is 'none', .* but the loss is s0 a0 -> s1"),
        ({"predictor": "transition"}, "s0 a0 -> s2", "predictor is 'transition', .* but the loss is s0 a0 -> s2"),
    ],
)
def test_settings_that_are_for_a_few_losses_alone(settings, loss, message):
    with pytest.raises(BadInput, match=message):
        rainbow(Loss.parse(loss), **settings)
    rainbow(named_loss("spr-3" if settings.get("predictor") == "transition" else "curl"), **settings)
