"""The ten operators against loops written from the paper's appendix C.2."""

import math

import numpy as np
import pytest
import torch

from a2ls.auxiliary import OperatorLoss
from a2ls.space import OPERATORS, Operator

BATCH, WIDTH = 5, 3


def unit(vector):
    return vector / math.sqrt(sum(x * x for x in vector))


def score(similarity, y, y_hat, w):
    """The discrimination objective phi of one prediction and one target."""
    if similarity == "inner":
        return sum(a * b for a, b in zip(y, y_hat, strict=True))
    if similarity == "bilinear":
        return sum(y[i] * w[i, j] * y_hat[j] for i in range(len(y)) for j in range(len(y_hat)))
    return sum(a * b for a, b in zip(unit(y), unit(y_hat), strict=True))


def mean_squared_difference(similarity, y, y_hat):
    if similarity == "nmse":
        y, y_hat = unit(y), unit(y_hat)
    return sum((a - b) ** 2 for a, b in zip(y, y_hat, strict=True)) / len(y)


def by_hand(operator, y, y_hat, w):
    """The loss of a batch, sample by sample."""
    total = 0.0
    for i in range(len(y)):
        if operator.similarity in ("mse", "nmse"):
            total += mean_squared_difference(operator.similarity, y[i], y_hat[i])
            if operator.negatives:
                total -= mean_squared_difference(operator.similarity, y[i], y_hat[i - 1])  # its neighbour's target
            continue
        logits = [
            score(operator.similarity, y[i], y_hat[j], w) if operator.negatives or i == j else 0.0
            for j in range(len(y_hat))
        ]
        total -= math.log(math.exp(logits[i]) / sum(math.exp(logit) for logit in logits))
    return total / len(y)


def numeric_gradient(function, x, step=1e-6):
    gradient = np.zeros_like(x)
    for place in np.ndindex(x.shape):
        up, down = x.copy(), x.copy()
        up[place] += step
        down[place] -= step
        gradient[place] = (function(up) - function(down)) / (2 * step)
    return gradient


@pytest.fixture
def batch():
    rng = np.random.default_rng(3)
    # Lengths far from one, so that forgetting a normalisation shows.
    return 1.7 * rng.normal(size=(BATCH, WIDTH)), 0.6 * rng.normal(size=(BATCH, WIDTH))


def make(operator):
    torch.manual_seed(5)
    module = OperatorLoss(operator, WIDTH).double()
    return module, None if module.weight is None else module.weight.detach().numpy().copy()


@pytest.mark.parametrize("operator", OPERATORS, ids=str)
def test_value_is_that_of_the_formula(operator, batch):
    y, y_hat = batch
    module, w = make(operator)
    value = module(torch.from_numpy(y), torch.from_numpy(y_hat))
    assert value.shape == ()
    assert value.item() == pytest.approx(by_hand(operator, y, y_hat, w), rel=1e-10)


@pytest.mark.parametrize("operator", OPERATORS, ids=str)
def test_gradient_is_that_of_the_formula(operator, batch):
    y, y_hat = batch
    module, w = make(operator)
    prediction = torch.from_numpy(y).requires_grad_()
    module(prediction, torch.from_numpy(y_hat)).backward()
    expected = numeric_gradient(lambda x: by_hand(operator, x, y_hat, w), y)
    np.testing.assert_allclose(prediction.grad.numpy(), expected, atol=1e-7)
    assert np.abs(expected).max() > 1e-3
    if w is not None:
        expected = numeric_gradient(lambda x: by_hand(operator, y, y_hat, x), w)
        np.testing.assert_allclose(module.weight.grad.numpy(), expected, atol=1e-7)


@pytest.mark.parametrize("operator", OPERATORS, ids=str)
def test_only_bilinear_has_parameters_a_square_matrix_drawn_from_zero_to_one(operator):
    shapes = [tuple(parameter.shape) for parameter in OperatorLoss(operator, 40).parameters()]
    assert shapes == ([(40, 40)] if operator.similarity == "bilinear" else [])
    for parameter in OperatorLoss(operator, 40).parameters():
        assert parameter.min() >= 0
        assert parameter.max() <= 1
        assert parameter.std().item() == pytest.approx(math.sqrt(1 / 12), rel=0.05)


@pytest.mark.parametrize("operator", OPERATORS, ids=str)
def test_huge_predictions_stay_finite(operator):
    # exp() of such scores would overflow.
    module, _ = make(operator)
    y = torch.full((4, WIDTH), 1e4, dtype=torch.float64, requires_grad=True)
    value = module(y, torch.randn(4, WIDTH, dtype=torch.float64))
    value.backward()
    assert value.isfinite()
    assert y.grad.isfinite().all()


def test_an_independent_library_agrees_on_the_two_best_known_operators(batch):
    y, y_hat = (torch.from_numpy(x) for x in batch)
    spr = 2 - 2 * torch.nn.functional.cosine_similarity(y, y_hat)  # SPR's loss is the sum over the width
    assert OperatorLoss(Operator("nmse"), WIDTH)(y, y_hat).item() == pytest.approx(spr.mean().item() / WIDTH)
    infonce = torch.distributions.Categorical(logits=y @ y_hat.T).log_prob(torch.arange(BATCH))
    assert OperatorLoss(Operator("inner", True), WIDTH)(y, y_hat).item() == pytest.approx(-infonce.mean().item())
