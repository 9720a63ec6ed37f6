"""Encoders and predictors against computations on their weights."""

import numpy as np
import pytest
import torch
from torch import nn

from a2ls.auxiliary import AuxiliaryLoss, make_encoder, make_predictor
from a2ls.space import named_loss

OBSERVATION = 7


def arrays(module):
    return [parameter.detach().double().numpy() for parameter in module.parameters()]


def normalised(x):
    return (x - x.mean(axis=1, keepdims=True)) / np.sqrt(x.var(axis=1, keepdims=True) + 1e-5)


@pytest.fixture
def observations():
    return np.random.default_rng(0).normal(size=(6, OBSERVATION)).astype(np.float32)


@pytest.mark.parametrize("kind", ["dense", "mlp"])
@pytest.mark.parametrize("layers", [1, 2, 3, 4])
def test_encoder_is_its_formula(kind, layers, observations):
    torch.manual_seed(0)
    encoder = make_encoder(kind, OBSERVATION, layers=layers, mlp_width=16)
    for parameter in encoder.head.norm.parameters():
        nn.init.normal_(parameter)
    *body, head_weight, head_bias, gain, offset = arrays(encoder)
    x = observations.astype(np.float64)
    for weight, bias in zip(body[::2], body[1::2], strict=True):
        hidden = np.maximum(x @ weight.T + bias, 0)
        x = np.concatenate([x, hidden], axis=1) if kind == "dense" else hidden
    expected = normalised(x @ head_weight.T + head_bias) * gain + offset
    features = encoder(torch.from_numpy(observations)).detach().numpy()
    np.testing.assert_allclose(features, expected, atol=1e-5)
    assert len(body) == 2 * layers
    assert encoder.feature_dim == features.shape[1] == (OBSERVATION + 40 * layers if kind == "dense" else 50)


@pytest.mark.parametrize("kind", ["dense", "mlp"])
def test_features_are_normalised_and_not_squashed(kind, observations):
    features = make_encoder(kind, OBSERVATION)(torch.from_numpy(observations))
    torch.testing.assert_close(features.mean(dim=1), torch.zeros(6), atol=1e-5, rtol=0)
    torch.testing.assert_close(features.var(dim=1, unbiased=False), torch.ones(6), atol=1e-2, rtol=0)
    assert features.abs().max() > 1.0


def test_identity_hands_the_observation_on(observations):
    encoder = make_encoder("identity", OBSERVATION)
    assert torch.equal(encoder(torch.from_numpy(observations)), torch.from_numpy(observations))
    assert list(encoder.parameters()) == []
    assert encoder.feature_dim == OBSERVATION


def test_the_mlp_encoder_has_the_widths_it_is_given():
    encoder = make_encoder("mlp", OBSERVATION, layers=2, mlp_width=20, features=9)
    assert [tuple(w.shape) for w in arrays(encoder)] == [(20, 7), (20,), (20, 20), (20,), (9, 20), (9,), (9,), (9,)]


@pytest.mark.parametrize("layers", [-1, 0, 5])
@pytest.mark.parametrize("kind", ["dense", "mlp", "identity"])
def test_an_impossible_number_of_layers_is_refused_with_its_value(kind, layers):
    with pytest.raises(ValueError, match=rf"from 1 to 4, got {layers}$"):
        make_encoder(kind, OBSERVATION, layers=layers)


def test_unknown_kinds_are_refused_by_name():
    with pytest.raises(ValueError, match=r"'transformer'.*dense, mlp, identity, conv"):
        make_encoder("transformer", OBSERVATION)
    with pytest.raises(ValueError, match=r"'linear'.*paper, released"):
        make_predictor("linear", 3, 4)


def test_the_predictor_of_the_paper_has_one_layer_of_256_units(observations):
    predictor = make_predictor("paper", OBSERVATION, 4)
    w1, b1, w2, b2 = arrays(predictor)
    assert [w.shape for w in (w1, b1, w2, b2)] == [(256, OBSERVATION), (256,), (4, 256), (4,)]
    expected = np.maximum(observations @ w1.T + b1, 0) @ w2.T + b2
    np.testing.assert_allclose(predictor(torch.from_numpy(observations)).detach().numpy(), expected, atol=1e-5)
    assert make_predictor("paper", OBSERVATION, 4, hidden=31).layers[0].out_features == 31


def test_the_released_predictor_has_twice_the_input_width_and_batch_norm(observations):
    predictor = make_predictor("released", OBSERVATION, 4)
    w1, b1, gain, offset, w2, b2 = arrays(predictor)
    assert w1.shape == (2 * OBSERVATION, OBSERVATION)
    assert w2.shape == (4, 2 * OBSERVATION)
    hidden = normalised((observations @ w1.T + b1).T).T * gain + offset  # over the batch, not over the units
    expected = np.maximum(hidden, 0) @ w2.T + b2
    np.testing.assert_allclose(predictor(torch.from_numpy(observations)).detach().numpy(), expected, atol=1e-5)


@pytest.mark.parametrize(("kind", "hidden"), [("paper", 256), ("released", 2 * (50 + 3 * 6))])
def test_the_predictor_of_a2_winner_fits_its_elements(kind, hidden):
    # Source: one state and three actions. Target: two rewards and two states.
    auxiliary = AuxiliaryLoss(named_loss("a2-winner"), feature_dim=50, action_dim=6, predictor=kind)
    first, last = auxiliary.predictor.layers[0], auxiliary.predictor.layers[-1]
    assert (first.in_features, first.out_features, last.in_features) == (50 + 3 * 6, hidden, hidden)
    assert last.out_features == 2 + 2 * 50
