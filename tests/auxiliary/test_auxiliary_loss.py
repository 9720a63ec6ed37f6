"""`AuxiliaryLoss`: its value and its gradients, what it reads, and what it does not depend on."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from a2ls._errors import BadInput
from a2ls.auxiliary import AuxiliaryLoss, Sequences
from a2ls.space import Loss, named_loss
from helpers.losses import by_hand, valid_loss

BATCH, STATE, ACTION, FEATURES = 4, 3, 2, 5
WINNER = named_loss("a2-winner")
pytestmark = pytest.mark.usefixtures("_double")


def noisy(steps, seed=0):
    g = torch.Generator().manual_seed(seed)
    shapes = (steps, BATCH, STATE), (steps, BATCH, ACTION), (steps, BATCH)
    return Sequences(*(torch.randn(shape, generator=g) for shape in shapes))


class Counting(nn.Module):
    """An encoder that counts the rows of each call."""

    def __init__(self):
        super().__init__()
        self.layer, self.calls = nn.Linear(STATE, FEATURES), []

    def forward(self, states):
        self.calls.append(len(states))
        return self.layer(states)


def selected(loss):
    """Kinds and steps of both sides from the masks as text, counted from the first step that is used."""
    first = min(bits.index("1") // 3 for bits in loss.to_bits() if "1" in bits)
    return [[("sar"[i % 3], i // 3 - first) for i, bit in enumerate(bits) if bit == "1"] for bits in loss.to_bits()]


def side_by_side(elements, sequences, encoder):
    """The elements of every sample, one after the other."""
    rows = []
    for b in range(BATCH):
        read = {
            "s": lambda t, b=b: encoder.layer.weight @ sequences.states[t][b] + encoder.layer.bias,
            "a": lambda t, b=b: sequences.actions[t][b],
            "r": lambda t, b=b: sequences.rewards[t][b].reshape(1),
        }
        rows.append(torch.cat([read[kind](t) for kind, t in elements]))
    return torch.stack(rows)


@settings(max_examples=80)
@given(valid_loss(max_horizon=5), st.sampled_from([None, torch.int64, torch.int32, torch.uint8]))
def test_value_and_gradients_are_those_of_the_formula_and_nothing_else_is_read(loss, discrete):
    torch.manual_seed(0)
    everything, (source, target) = noisy(6), selected(loss)
    read = everything
    if discrete:  # Numbers of actions enter as one-hot vectors.
        numbers = torch.randint(ACTION, (6, BATCH))
        everything = everything._replace(actions=torch.eye(ACTION)[numbers])
        read = everything._replace(actions=numbers.to(discrete))
    # Only the steps that are selected are there at all: reading any other would raise.
    used = {*source, *target}
    needed = Sequences(
        *({t: values[t] for k, t in used if k == kind} for kind, values in zip("sar", read, strict=True))
    )
    auxiliary, encoder, target_encoder = (
        AuxiliaryLoss(loss, FEATURES, ACTION, predictor_hidden=6),
        Counting(),
        Counting(),
    )
    value = auxiliary(needed, encoder, target_encoder)
    states = [sum(kind == "s" for kind, _ in side) for side in (source, target)]
    assert encoder.calls == [states[0] * BATCH]
    assert target_encoder.calls == ([states[1] * BATCH] if states[1] else [])

    w1, b1, w2, b2, *of_operator = auxiliary.parameters()
    y = (side_by_side(source, everything, encoder) @ w1.T + b1).clamp(min=0) @ w2.T + b2
    y_hat = side_by_side(target, everything, target_encoder).detach()
    expected = by_hand(loss.operator, y, y_hat, *of_operator)
    torch.testing.assert_close(value, expected, rtol=1e-9, atol=1e-12)
    learning = [*encoder.parameters(), *auxiliary.parameters()]
    torch.testing.assert_close(
        torch.autograd.grad(value, learning, retain_graph=True),
        torch.autograd.grad(expected, learning),
        rtol=1e-8,
        atol=1e-10,
    )
    value.backward()
    assert all(parameter.grad is not None for parameter in learning)
    assert all(parameter.grad is None for parameter in target_encoder.parameters())


@pytest.mark.parametrize("number", [-1, ACTION])
def test_numbers_of_actions_that_there_are_not_are_an_error(number):
    actions = [torch.tensor([0, 1, number, 0])] * 4
    encoder, auxiliary = nn.Linear(STATE, FEATURES), AuxiliaryLoss(WINNER, FEATURES, ACTION, batch_first=False)
    with pytest.raises(IndexError, match="out of range"):
        auxiliary(noisy(4)._replace(actions=actions), encoder, encoder)


def test_curl_is_its_formula_on_given_features_and_w():
    """-log of exp(z W z+) over the sum of exp(z W z') of the positives of all samples; no predictor."""
    z, positives, w = (torch.randn(shape) for shape in ((BATCH, FEATURES), (BATCH, FEATURES), (FEATURES, FEATURES)))
    auxiliary = AuxiliaryLoss(named_loss("curl"), FEATURES, ACTION)
    assert [tuple(p.shape) for p in auxiliary.parameters()] == [(FEATURES, FEATURES)]
    auxiliary.operator.function.weight.data = w.clone()
    states = Sequences({0: torch.zeros(BATCH, STATE)}, {}, {})
    expected = 0.0
    for i in range(BATCH):
        similarity = [sum(z[i, m] * w[m, n] * positives[j, n] for m in range(FEATURES) for n in range(FEATURES)).exp()
                      for j in range(BATCH)]  # fmt: skip
        expected -= (similarity[i] / sum(similarity)).log() / BATCH
    assert auxiliary(states, lambda _: z, lambda _: positives).item() == pytest.approx(expected.item(), rel=1e-12)


def test_without_a_predictor_source_and_target_must_have_one_width():
    auxiliary = AuxiliaryLoss(Loss.parse("s0 a0 -> s1 a1"), FEATURES, ACTION, predictor="none")
    s, encoder = noisy(3), nn.Linear(STATE, FEATURES)
    source, target = (torch.cat([encoder(s.states[i]), s.actions[i]], 1) for i in (0, 1))
    assert auxiliary(s, encoder, encoder).item() == pytest.approx((source - target).square().mean().item())
    with pytest.raises(BadInput, match="the source has 11 numbers and the target 12"):
        AuxiliaryLoss(WINNER, FEATURES, ACTION, predictor="none")


def test_time_major_tensors_lists_and_mappings_are_read_alike():
    tensors, encoder = noisy(4), nn.Linear(STATE, FEATURES)
    auxiliary = AuxiliaryLoss(WINNER, FEATURES, ACTION, batch_first=False)
    forms = [tensors, Sequences(*map(list, tensors)), Sequences(*(dict(enumerate(part)) for part in tensors))]
    assert len({auxiliary(form, encoder, encoder).item() for form in forms}) == 1


def test_any_encoder_will_do():
    encoder, s = nn.Sequential(nn.Flatten(), nn.Linear(3 * 8 * 8, FEATURES), nn.Tanh()), noisy(4)
    images = torch.rand(4, BATCH, 3, 8, 8)
    AuxiliaryLoss(WINNER, FEATURES, ACTION, batch_first=False)(s._replace(states=images), encoder, encoder).backward()
    assert encoder[1].weight.grad.abs().max() > 0


@settings(max_examples=20)
@given(valid_loss(max_horizon=5), st.integers(0, 3))
def test_losses_with_the_same_canonical_form_are_the_same_module(loss, shift):
    none = (False,) * (3 * shift)
    shifted = Loss(loss.horizon + 2 * shift, none + loss.source + none, none + loss.target + none, loss.operator)
    encoder, values, built = nn.Linear(STATE, FEATURES), [], []
    for each in (loss, shifted):
        torch.manual_seed(0)
        built.append(AuxiliaryLoss(each, FEATURES, ACTION, batch_first=False))
        values.append(built[-1](noisy(6), encoder, encoder).item())
    assert built[0].loss == built[1].loss == loss.canonical()
    assert values[0] == values[1]
    assert all(torch.equal(a, b) for a, b in zip(*(module.parameters() for module in built), strict=True))
