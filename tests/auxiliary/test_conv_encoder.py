"""The convolutional encoder against loops over its weights, and how its weights start."""

import math

import numpy as np
import pytest
import torch
from torch import nn

from a2ls._errors import BadInput
from a2ls.agents._networks import initialise
from a2ls.auxiliary import make_encoder

SHAPE = (3, 17, 16)
FILTERS = 4


def make(shape=SHAPE, layers=2, filters=FILTERS):
    """An encoder with nothing at zero or one."""
    torch.manual_seed(0)
    encoder = make_encoder("conv", shape, layers=layers, filters=filters)
    for parameter in [*encoder.head.norm.parameters(), *(layer.bias for layer in encoder.body.layers)]:
        nn.init.normal_(parameter)
    return encoder


def images(count=2, shape=SHAPE):
    return torch.from_numpy(np.random.default_rng(0).integers(0, 256, (count, *shape), dtype=np.uint8))


def convolved(image, weight, bias, stride):
    """One image (channels, height, width), pixel by pixel."""
    _, height, width = image.shape
    rows, columns = (height - 3) // stride + 1, (width - 3) // stride + 1
    out = np.empty((len(weight), rows, columns))
    for row in range(rows):
        for column in range(columns):
            patch = image[:, row * stride : row * stride + 3, column * stride : column * stride + 3]
            out[:, row, column] = (weight * patch).sum(axis=(1, 2, 3)) + bias
    return out


def body_by_hand(encoder, batch):
    """(B, filters, height, width)"""
    out = []
    for image in batch.numpy().astype(np.float64) / 255:
        x = image
        for i, layer in enumerate(encoder.body.layers):
            weight, bias = (parameter.detach().double().numpy() for parameter in layer.parameters())
            x = np.maximum(convolved(x, weight, bias, stride=2 if i == 0 else 1), 0)
        out.append(x)
    return np.stack(out)


@pytest.mark.parametrize("layers", [1, 2, 3, 4])
def test_the_body_is_its_formula(layers):
    encoder = make(layers=layers)
    expected = body_by_hand(encoder, images())
    assert 0 < (expected == 0).mean() < 1
    # One place after the other, all filters of each.
    flat = expected.transpose(0, 2, 3, 1).reshape(2, -1)
    np.testing.assert_allclose(encoder.body(images()).detach().numpy(), flat, atol=1e-6, rtol=1e-5)
    assert encoder.body.output_dim == flat.shape[1]


def test_the_encoder_is_its_formula():
    encoder = make()
    body = body_by_hand(encoder, images()).transpose(0, 2, 3, 1).reshape(2, -1)
    weight, bias, gain, offset = (parameter.detach().double().numpy() for parameter in encoder.head.parameters())
    x = body @ weight.T + bias
    x = (x - x.mean(axis=1, keepdims=True)) / np.sqrt(x.var(axis=1, keepdims=True) + 1e-5)
    features = encoder(images()).detach().numpy()
    np.testing.assert_allclose(features, x * gain + offset, atol=1e-4)
    assert weight.shape == (50, body.shape[1])
    assert features.shape == (2, encoder.feature_dim) == (2, 50)


def test_features_are_normalised_and_not_squashed():
    features = make_encoder("conv", SHAPE, filters=FILTERS)(images())
    torch.testing.assert_close(features.mean(dim=1), torch.zeros(2), atol=1e-5, rtol=0)
    assert features.abs().max() > 1.0


@pytest.mark.parametrize(("layers", "side"), [(2, 39), (4, 35), (6, 31)])
def test_images_of_84_pixels_end_with_these_sides(layers, side):
    encoder = make((9, 84, 84), layers, filters=2)
    assert encoder.body.output_dim == side * side * 2
    assert encoder.body(images(1, (9, 84, 84))).shape == (1, side * side * 2)
    first, *others = (tuple(layer.weight.shape) for layer in encoder.body.layers)
    assert first == (2, 9, 3, 3)
    assert others == [(2, 2, 3, 3)] * (layers - 1)


def stored(batch, how):
    return {
        "float": batch.float(),
        "channels_last": batch.contiguous(memory_format=torch.channels_last),
        "strided": batch.repeat_interleave(2, dim=3)[:, :, :, ::2],
        "frames last": batch.permute(1, 0, 2, 3).contiguous().permute(1, 0, 2, 3),
        "float channels_last": batch.float().contiguous(memory_format=torch.channels_last),
    }[how]


@pytest.mark.parametrize("how", ["float", "channels_last", "strided", "frames last", "float channels_last"])
def test_features_do_not_depend_on_how_images_are_stored(how):
    encoder, batch = make(), images(5)
    other = stored(batch, how)
    kept = other.clone()
    assert torch.equal(encoder(batch), encoder(other))
    assert torch.equal(other, kept)


def test_gradients_are_those_of_the_layers_one_by_one():
    encoder, batch = make(), images(3)
    weights = torch.linspace(-1, 1, 50)
    (encoder(batch) * weights).sum().backward()
    mine = [parameter.grad.clone() for parameter in encoder.parameters()]
    double = make().double()
    x = batch.double() / 255
    for layer in double.body.layers:
        x = torch.relu(layer(x))
    x = double.head.norm(double.head.linear(x.permute(0, 2, 3, 1).flatten(1)))
    theirs = torch.autograd.grad((x * weights).sum(), list(double.parameters()))
    for a, b in zip(mine, theirs, strict=True):
        torch.testing.assert_close(a.double(), b, atol=1e-5 * b.abs().max().item(), rtol=1e-3)


@pytest.mark.parametrize(("side", "layers"), [(2, 1), (4, 2), (6, 2), (12, 6), (22, 6)])
def test_too_small_images_are_refused_with_their_size(side, layers):
    message = f"^images of side {side} are too small for {layers} convolutional layers$"
    with pytest.raises(BadInput, match=message):
        make_encoder("conv", (9, side, side), layers=layers)
    with pytest.raises(BadInput, match=message):
        make_encoder("conv", (9, 84, side), layers=layers)


@pytest.mark.parametrize(("side", "layers"), [(3, 1), (7, 2), (8, 2), (23, 6)])
def test_the_smallest_images_give_one_place(side, layers):
    encoder = make((1, side, side), layers, filters=3)
    assert encoder.body.output_dim == 3
    assert encoder(images(2, (1, side, side))).shape == (2, 50)


@pytest.mark.parametrize("layers", [-1, 0, 7])
def test_an_impossible_number_of_layers_is_refused_with_its_value(layers):
    with pytest.raises(ValueError, match=rf"conv must be from 1 to 6, got {layers}$"):
        make_encoder("conv", (9, 84, 84), layers=layers)


@pytest.mark.parametrize("observation", [7, (7,), (84, 84)])
def test_vectors_are_refused(observation):
    with pytest.raises(ValueError, match=r"conv needs images \(channels, height, width\), but observations are \("):
        make_encoder("conv", observation)


@pytest.mark.parametrize("kind", ["dense", "mlp", "identity"])
def test_the_other_encoders_refuse_images(kind):
    with pytest.raises(ValueError, match=rf"{kind} needs vectors, but observations have the shape \(9, 84, 84\)"):
        make_encoder(kind, (9, 84, 84))


@pytest.mark.parametrize("filters", [4, 12])
def test_convolutions_start_as_orthogonal_products_at_their_centre(filters):
    encoder = make((9, 20, 20), layers=3, filters=filters)
    torch.manual_seed(1)
    initialise(encoder)
    for layer in encoder.body.layers:
        weight = layer.weight.detach().clone()
        centre = weight[:, :, 1, 1].clone()
        weight[:, :, 1, 1] = 0
        assert weight.abs().max() == 0
        narrow = centre if centre.shape[0] <= centre.shape[1] else centre.T
        torch.testing.assert_close(narrow @ narrow.T, 2 * torch.eye(len(narrow)), atol=1e-5, rtol=0)
        assert np.linalg.norm(narrow[0].numpy()) == pytest.approx(math.sqrt(2))
        assert layer.bias.abs().max() == 0
    head = encoder.head.linear
    torch.testing.assert_close(head.weight @ head.weight.T, torch.eye(50), atol=1e-5, rtol=0)
    assert head.bias.abs().max() == 0
    second, third = encoder.body.layers[1:]
    assert not torch.equal(second.weight, third.weight)


def test_a_delta_orthogonal_encoder_keeps_the_length_of_what_it_sees():
    encoder = make((4, 9, 9), layers=1, filters=8)
    initialise(encoder)
    batch = images(2, (4, 9, 9))
    # Without the ReLU a product by sqrt(2) at every second pixel, from the second on.
    layer = encoder.body.layers[0]
    x = nn.functional.conv2d(batch / 255, layer.weight, layer.bias, stride=2)
    seen = (batch / 255)[:, :, 1:-1:2, 1:-1:2]
    torch.testing.assert_close(x.norm(dim=1), math.sqrt(2) * seen.norm(dim=1))
