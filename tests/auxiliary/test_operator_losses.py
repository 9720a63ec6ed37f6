"""The operators against loops, and one more that a user registers."""

import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from a2ls.auxiliary import AuxiliaryLoss, OperatorLoss, Sequences, register_operator
from a2ls.space import MSE, OPERATORS, Loss
from helpers.losses import by_hand

BATCH, WIDTH = 5, 3


def batch():
    g = torch.Generator().manual_seed(3)
    # Lengths far from one, so that forgetting a normalisation shows.
    y, y_hat = (scale * torch.randn(BATCH, WIDTH, generator=g, dtype=torch.float64) for scale in (1.7, 0.6))
    return y.requires_grad_(), y_hat


def make(operator):
    torch.manual_seed(5)
    return OperatorLoss(operator, WIDTH).double()


@pytest.mark.parametrize("operator", OPERATORS, ids=str)
def test_value_and_gradients_are_those_of_the_formula(operator):
    (y, y_hat), module = batch(), make(operator)
    value, expected = module(y, y_hat), by_hand(operator, y, y_hat, *module.parameters())
    assert value.shape == ()
    torch.testing.assert_close(value, expected, rtol=1e-10, atol=0)
    inputs = [y, *module.parameters()]
    mine, theirs = (torch.autograd.grad(loss, inputs) for loss in (value, expected))
    torch.testing.assert_close(mine, theirs, rtol=1e-9, atol=1e-12)
    assert all(gradient.abs().max() > 1e-3 for gradient in mine)


@pytest.mark.parametrize("operator", OPERATORS, ids=str)
def test_only_bilinear_has_parameters_a_square_matrix_drawn_from_zero_to_one(operator):
    parameters = list(OperatorLoss(operator, 40).parameters())
    assert [tuple(p.shape) for p in parameters] == ([(40, 40)] if operator.similarity == "bilinear" else [])
    for parameter in parameters:
        assert 0 <= parameter.min() < 0.05
        assert 0.95 < parameter.max() <= 1
        assert parameter.std().item() == pytest.approx(math.sqrt(1 / 12), rel=0.05)


@pytest.mark.parametrize("scale", [0.0, 1e4])
@pytest.mark.parametrize("operator", OPERATORS, ids=str)
def test_huge_predictions_and_those_of_zero_stay_finite(operator, scale):
    # exp() of such scores would overflow, and a vector of zeros has no direction.
    y = torch.full((4, WIDTH), scale, dtype=torch.float64, requires_grad=True)
    value = make(operator)(y, batch()[1][:4])
    value.backward()
    assert value.isfinite()
    assert y.grad.isfinite().all()


class Weighted(nn.Module):
    """A squared error with a learnt weight of each column."""

    def __init__(self, width):
        super().__init__()
        self.weights = nn.Parameter(torch.arange(1.0, width + 1))

    def forward(self, prediction, target, *, negatives):  # noqa: ARG002
        return (self.weights * (prediction - target).square()).sum()


def huber(prediction, target, *, negatives):
    return F.huber_loss(prediction, target) - (10 if negatives else 0)


def test_a_prediction_and_a_target_of_other_shapes_are_refused():
    with pytest.raises(ValueError, match=r"the prediction has the shape \(4, 1\), the target \(4, 4\)"):
        OperatorLoss(MSE, 1)(torch.zeros(4, 1), torch.zeros(4, 4))


@pytest.mark.usefixtures("_registries_as_they_were")
def test_an_operator_of_one_s_own_can_be_named_in_a_loss_and_trained():
    text = "s0 a0 -> s1 | huber"
    with pytest.raises(ValueError, match="'huber' is not an operator"):
        Loss.parse(text)
    register_operator("huber", huber)
    register_operator("weighted", Weighted)
    states, actions = torch.randn(2, BATCH, WIDTH), torch.randn(1, BATCH, 2)
    given = Sequences(states, actions, ())
    for name, expected in [
        ("huber", lambda y: F.huber_loss(y, states[1])),
        ("huber +neg", lambda y: F.huber_loss(y, states[1]) - 10),
        ("weighted", lambda y: (torch.tensor([1.0, 2.0, 3.0]) * (y - states[1]) ** 2).sum()),
    ]:
        loss = Loss.parse(f"s0 a0 -> s1 | {name}")
        assert Loss.parse(str(loss)) == loss
        auxiliary = AuxiliaryLoss(loss, WIDTH, 2)
        y = auxiliary.predictor(torch.cat([states[0], actions[0]], dim=1))
        value = auxiliary(given, nn.Identity(), nn.Identity())
        torch.testing.assert_close(value, expected(y))
        value.backward()
        assert all(parameter.grad.abs().max() > 0 for parameter in auxiliary.parameters())
        assert len(list(auxiliary.parameters())) == 4 + (name == "weighted")
    with pytest.raises(ValueError, match="one word in lower case"):
        register_operator("two words", huber)
