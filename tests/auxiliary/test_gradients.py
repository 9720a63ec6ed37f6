"""Gradients by formula against autograd's, of every network, operator and loss."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from a2ls.auxiliary import AuxiliaryLoss, Network, OperatorLoss, Perceptron, Sequences, make_encoder, make_predictor
from a2ls.space import OPERATORS, Loss, named_loss

OBSERVATION, BATCH, ACTION = 5, 7, 2
ENCODERS = {
    **{f"dense-{layers}": ("dense", OBSERVATION, layers) for layers in (1, 2, 4)},
    **{f"mlp-{layers}": ("mlp", OBSERVATION, layers) for layers in (1, 3)},
    "identity": ("identity", OBSERVATION, 1),
    "conv": ("conv", (3, 13, 13), 2),
}


@pytest.fixture(autouse=True)
def _double():
    """All in float64, so that what is compared are formulas and not their rounding."""
    torch.set_default_dtype(torch.float64)
    torch.manual_seed(0)
    yield
    torch.set_default_dtype(torch.float32)


def encoder(kind, observation, layers):
    return make_encoder(kind, observation, layers=layers, dense_width=3, mlp_width=6, filters=4, features=5)


def shuffled(network):
    """With weights at which no term of a gradient vanishes, as those of a new LayerNorm make some."""
    for parameter in network.parameters():
        nn.init.normal_(parameter, std=0.7)
    return network


class Transposed(Network):
    """A layer whose gradient autograd finds by columns, though its weight is stored by rows."""

    def __init__(self, inputs, outputs):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(outputs, inputs))

    def forward(self, x):
        return (x.unsqueeze(-1) * self.weight.T.contiguous()).sum(1)


NETWORKS = {
    **{name: (encoder, arguments) for name, arguments in ENCODERS.items()},
    "perceptron": (Perceptron, (OBSERVATION, 4, 3, 2)),
    "linear": (Perceptron, (OBSERVATION, 2)),
    "paper's predictor": (make_predictor, ("paper", OBSERVATION, 3)),
    "transposed": (Transposed, (OBSERVATION, 3)),
    "released predictor": (make_predictor, ("released", OBSERVATION, 3)),
}


def inputs(name):
    return torch.randn(BATCH, *(ENCODERS["conv"][1] if name == "conv" else (OBSERVATION,)))


def run(name):
    """A network, its output, and the gradients of its parameters and inputs if that of the output is one everywhere."""
    make, arguments = NETWORKS[name]
    network = make(*arguments)
    with torch.inference_mode():
        output, trace = network.trace(inputs(name))
        return network, output, *network.gradients(trace, torch.ones_like(output))


@pytest.mark.parametrize("name", NETWORKS)
def test_networks_give_the_gradients_of_autograd(name):
    make, arguments = NETWORKS[name]
    network, x = shuffled(make(*arguments)), inputs(name).requires_grad_()
    output = network(x)
    above = torch.randn(output.shape)
    *theirs, of_x = torch.autograd.grad((output * above).sum(), [*network.parameters(), x])
    with torch.inference_mode():
        traced, trace = network.trace(x.detach())
        mine, below = network.gradients(trace, above)
    torch.testing.assert_close(traced, output)
    torch.testing.assert_close(below, of_x)
    torch.testing.assert_close(mine, theirs)
    assert all(gradient.abs().max() > 0 for gradient in mine)


@pytest.mark.parametrize("name", NETWORKS)
def test_the_gradient_of_the_inputs_is_left_out_if_nobody_needs_it(name):
    make, arguments = NETWORKS[name]
    network, x = shuffled(make(*arguments)), inputs(name)
    with torch.inference_mode():
        above = torch.ones_like(network(x))
        # Traced twice, because a graph of autograd serves only once.
        both, _ = network.gradients(network.trace(x)[1], above)
        alone, below = network.gradients(network.trace(x)[1], above, below=False)
    assert below is None
    torch.testing.assert_close(alone, both)


@pytest.mark.parametrize("name", NETWORKS)
def test_gradients_lie_in_memory_as_their_parameters_do(name):
    # The optimiser walks through both at once.
    network, _, gradients, _ = run(name)
    assert [gradient.stride() for gradient in gradients] == [parameter.stride() for parameter in network.parameters()]


@pytest.mark.parametrize("name", NETWORKS)
def test_nothing_is_left_in_the_parameters_or_in_a_graph(name):
    network, output, gradients, below = run(name)
    assert not any(tensor.requires_grad for tensor in (output, below, *gradients))
    assert all(parameter.grad is None for parameter in network.parameters())


@pytest.mark.parametrize("weight", [1.0, 0.3])
@pytest.mark.parametrize("operator", OPERATORS, ids=str)
def test_operators_give_the_gradients_of_autograd(operator, weight):
    loss = OperatorLoss(operator, 4)
    prediction, target = torch.randn(BATCH, 4, requires_grad=True), torch.randn(BATCH, 4)
    value = loss(prediction, target)
    *theirs, of_prediction = torch.autograd.grad(weight * value, [*loss.parameters(), prediction])
    with torch.inference_mode():
        error, mine, below = loss.gradients(prediction.detach(), target, weight)
    torch.testing.assert_close(error(), value)
    torch.testing.assert_close(below, of_prediction)
    torch.testing.assert_close(mine, theirs)
    assert len(mine) == (operator.similarity == "bilinear")


@pytest.mark.parametrize("operator", OPERATORS, ids=str)
def test_a_prediction_of_zeros_has_finite_gradients(operator):
    error, own, below = OperatorLoss(operator, 4).gradients(torch.zeros(BATCH, 4), torch.randn(BATCH, 4))
    assert all(tensor.isfinite().all() for tensor in (error(), below, *own))


def sequences(horizon):
    return Sequences(
        torch.randn(horizon + 1, BATCH, OBSERVATION),
        torch.randn(horizon + 1, BATCH, ACTION),
        torch.randn(horizon + 1, BATCH),
    )


def masks(elements):
    return st.lists(st.booleans(), min_size=elements, max_size=elements)


@st.composite
def losses(draw):
    """Any valid loss over up to four steps."""
    horizon = draw(st.integers(1, 3))
    source = draw(masks(3 * horizon + 3).filter(lambda mask: any(mask[::3])))
    target = draw(masks(3 * horizon + 3).filter(any))
    return Loss(horizon, tuple(source), tuple(target), draw(st.sampled_from(OPERATORS)))


def gradients_of(auxiliary, batch, online, target_encoder, **options):
    with torch.inference_mode():
        features, trace = online.trace(auxiliary.source_observations(batch))
        seen = auxiliary.target_observations(batch)
        target_features = None if seen is None else target_encoder(seen)
        error, own, below = auxiliary.gradients(batch, features, target_features, **options)
        return error, own, None if below is None else online.gradients(trace, below, below=False)[0]


@given(losses(), st.sampled_from([1.0, 0.3]))
@settings(max_examples=60, deadline=None)
def test_losses_give_the_gradients_of_autograd(loss, weight):
    online, target = (shuffled(encoder("dense", OBSERVATION, 1)) for _ in range(2))
    auxiliary, batch = AuxiliaryLoss(loss, online.feature_dim, ACTION, predictor_hidden=6), sequences(3)
    value = auxiliary(batch, online, target)
    parameters = [*auxiliary.parameters(), *online.parameters()]
    theirs = torch.autograd.grad(weight * value, parameters)
    error, own, of_encoder = gradients_of(auxiliary, batch, online, target, weight=weight)
    torch.testing.assert_close(error(), value)
    torch.testing.assert_close([*own, *of_encoder], list(theirs))


def test_an_encoder_with_nothing_to_learn_is_spared_its_gradient():
    online = encoder("identity", OBSERVATION, 1)
    auxiliary, batch = AuxiliaryLoss(named_loss("a2-winner"), online.feature_dim, ACTION), sequences(3)
    _, own, of_encoder = gradients_of(auxiliary, batch, online, online, below=False)
    assert of_encoder is None
    theirs = torch.autograd.grad(auxiliary(batch, online, online), list(auxiliary.parameters()))
    torch.testing.assert_close(own, list(theirs))
