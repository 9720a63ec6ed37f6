"""Encoders and predictors against computations on their weights."""

import numpy as np
import pytest
import torch
from torch import nn

from a2ls._errors import BadInput
from a2ls.auxiliary import make_encoder, make_predictor, mlp

OBSERVATION, IMAGE = 7, (3, 17, 16)


def arrays(module):
    return [parameter.detach().double().numpy() for parameter in module.parameters()]


def normalised(x):
    return (x - x.mean(axis=1, keepdims=True)) / np.sqrt(x.var(axis=1, keepdims=True) + 1e-5)


def vectors(count=6):
    return torch.from_numpy(np.random.default_rng(0).normal(size=(count, OBSERVATION)).astype(np.float32))


def images(count=2, shape=IMAGE):
    return torch.from_numpy(np.random.default_rng(0).integers(0, 256, (count, *shape), dtype=np.uint8))


def make(kind, observation, **settings):
    """An encoder with no bias at zero and no gain at one."""
    torch.manual_seed(0)
    encoder = make_encoder(kind, observation, **settings)
    for name, parameter in encoder.named_parameters():
        if parameter.dim() == 1:
            nn.init.normal_(parameter, std=0.1 if name.startswith("body") else 1.0)
    return encoder


def head_by_hand(encoder, x):
    *_, weight, bias, gain, offset = arrays(encoder)
    return normalised(x @ weight.T + bias) * gain + offset


def convolved(image, weight, bias, stride):
    """One image (channels, height, width), pixel by pixel."""
    rows, columns = ((side - 3) // stride + 1 for side in image.shape[1:])
    out = np.empty((len(weight), rows, columns))
    for row, column in np.ndindex(rows, columns):
        patch = image[:, row * stride : row * stride + 3, column * stride : column * stride + 3]
        out[:, row, column] = (weight * patch).sum(axis=(1, 2, 3)) + bias
    return out


@pytest.mark.parametrize("kind", ["dense", "mlp"])
@pytest.mark.parametrize("layers", [1, 3])
def test_an_encoder_of_vectors_is_its_formula(kind, layers):
    encoder = make(kind, OBSERVATION, layers=layers, width=16)
    body, x = arrays(encoder.body), vectors().numpy().astype(np.float64)
    for weight, bias in zip(body[::2], body[1::2], strict=True):
        hidden = np.maximum(x @ weight.T + bias, 0)
        x = np.concatenate([x, hidden], axis=1) if kind == "dense" else hidden
    features = encoder(vectors()).detach().numpy()
    np.testing.assert_allclose(features, head_by_hand(encoder, x), atol=1e-5)
    assert len(body) == 2 * layers
    assert encoder.feature_dim == features.shape[1] == (OBSERVATION + 16 * layers if kind == "dense" else 50)


@pytest.mark.parametrize("layers", [1, 3])
def test_the_encoder_of_images_is_its_formula(layers):
    encoder = make("conv", IMAGE, layers=layers, filters=4)
    bodies = []
    for image in images().numpy().astype(np.float64) / 255:
        x = image
        for i, layer in enumerate(encoder.body.layers):
            x = np.maximum(convolved(x, *arrays(layer), stride=2 if i == 0 else 1), 0)
        bodies.append(x.transpose(1, 2, 0).ravel())  # One place after the other, all filters of each.
    expected = np.stack(bodies)
    assert 0 < (expected == 0).mean() < 1
    np.testing.assert_allclose(encoder.body(images()).detach().numpy(), expected, atol=1e-6, rtol=1e-5)
    np.testing.assert_allclose(encoder(images()).detach().numpy(), head_by_hand(encoder, expected), atol=1e-4)
    assert encoder.body.output_dim == expected.shape[1]
    assert encoder.feature_dim == encoder(images()).shape[1] == 50


def test_features_do_not_depend_on_how_images_are_stored():
    encoder, batch = make("conv", IMAGE, layers=2, filters=4), images(5)
    for other in (
        batch.float(),
        batch.contiguous(memory_format=torch.channels_last),
        batch.repeat_interleave(2, dim=3)[:, :, :, ::2],
        batch.permute(1, 0, 2, 3).contiguous().permute(1, 0, 2, 3),
    ):
        assert torch.equal(encoder(batch), encoder(other))
        assert torch.equal(other, batch.to(other.dtype))


def test_identity_hands_the_observation_on():
    encoder = make_encoder("identity", OBSERVATION)
    assert torch.equal(encoder(vectors()), vectors())
    assert list(encoder.parameters()) == []
    assert encoder.feature_dim == OBSERVATION


def test_widths_are_those_that_are_given():
    assert [a.shape for a in arrays(mlp(2, 3, 4))] == [(3, 2), (3,), (4, 3), (4,)]
    encoder = make_encoder("mlp", (OBSERVATION,), layers=2, width=20, features=9)
    assert [a.shape for a in arrays(encoder)] == [(20, 7), (20,), (20, 20), (20,), (9, 20), (9,), (9,), (9,)]
    assert make_encoder("dense", OBSERVATION, layers=2, width=3).feature_dim == OBSERVATION + 6


@pytest.mark.parametrize(("side", "layers"), [(3, 1), (7, 2), (23, 6)])
def test_the_smallest_images_give_one_place_and_smaller_ones_are_refused(side, layers):
    encoder = make_encoder("conv", (9, side, side), layers=layers, filters=3)
    assert encoder.body.output_dim == 3 == encoder.body(images(1, (9, side, side))).shape[1]
    for shape in ((9, side - 1, side - 1), (9, 84, side - 1)):
        with pytest.raises(
            BadInput, match=f"images of side {side - 1} are too small for {layers} convolutional layers"
        ):
            make_encoder("conv", shape, layers=layers)


@pytest.mark.parametrize(("kind", "most"), [("dense", 4), ("mlp", 4), ("identity", 4), ("conv", 6)])
def test_what_an_encoder_cannot_be_is_refused_with_its_value(kind, most):
    for layers in (-1, 0, most + 1):
        with pytest.raises(ValueError, match=rf"{kind} must be from 1 to {most}, got {layers}$"):
            make_encoder(kind, OBSERVATION, layers=layers)
    shapes, wanted = ([(7,), (84, 84)], "images") if kind == "conv" else ([(9, 84, 84)], "vectors")
    for shape in shapes:
        with pytest.raises(BadInput, match=rf"the encoder {kind} needs {wanted}.*, but observations have the shape \("):
            make_encoder(kind, shape)


def test_unknown_kinds_are_refused_by_name():
    with pytest.raises(ValueError, match=r"'transformer'.*dense, mlp, identity, conv"):
        make_encoder("transformer", OBSERVATION)
    with pytest.raises(ValueError, match=r"'linear'.*paper, released"):
        make_predictor("linear", 3, 4)


def test_the_predictor_of_the_paper_has_one_layer_of_256_units():
    predictor, x = make_predictor("paper", OBSERVATION, 4), vectors().numpy()
    w1, b1, w2, b2 = arrays(predictor)
    assert [w.shape for w in (w1, b1, w2, b2)] == [(256, OBSERVATION), (256,), (4, 256), (4,)]
    expected = np.maximum(x @ w1.T + b1, 0) @ w2.T + b2
    np.testing.assert_allclose(predictor(vectors()).detach().numpy(), expected, atol=1e-5)
    assert arrays(make_predictor("paper", OBSERVATION, 4, hidden=31))[0].shape == (31, OBSERVATION)


def test_the_released_predictor_has_twice_the_input_width_and_batch_norm():
    predictor, x = make_predictor("released", OBSERVATION, 4), vectors().numpy()
    w1, b1, gain, offset, w2, b2 = arrays(predictor)
    assert (w1.shape, w2.shape) == ((2 * OBSERVATION, OBSERVATION), (4, 2 * OBSERVATION))
    hidden = normalised((x @ w1.T + b1).T).T * gain + offset  # over the batch, not over the units
    np.testing.assert_allclose(predictor(vectors()).detach().numpy(), np.maximum(hidden, 0) @ w2.T + b2, atol=1e-5)
