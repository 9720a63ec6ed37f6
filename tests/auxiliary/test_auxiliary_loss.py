"""`AuxiliaryLoss`: its value and its gradients, what it reads, and what it does not depend on."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from operator_loops import by_hand
from torch import nn

from a2ls.auxiliary import AuxiliaryLoss, Sequences
from a2ls.space import OPERATORS, Loss, named_loss

BATCH, STATE, ACTION, FEATURES = 4, 3, 2, 5
WINNER = named_loss("a2-winner")


@pytest.fixture(autouse=True)
def _double():
    """All in float64, so that what is compared are formulas and not their rounding."""
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


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


@st.composite
def losses(draw):
    horizon = draw(st.integers(1, 5))
    bits = st.lists(st.booleans(), min_size=3 * horizon + 3, max_size=3 * horizon + 3).map(tuple)
    source, target = draw(bits.filter(lambda mask: any(mask[::3]))), draw(bits.filter(any))
    return Loss(horizon, source, target, draw(st.sampled_from(OPERATORS)))


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


@settings(deadline=None, max_examples=80)
@given(losses(), st.booleans())
def test_value_and_gradients_are_those_of_the_formula_and_nothing_else_is_read(loss, discrete):
    torch.manual_seed(0)
    everything, (source, target) = noisy(6), selected(loss)
    if discrete:
        numbers = torch.randint(ACTION, (6, BATCH))
        everything = everything._replace(actions=torch.eye(ACTION)[numbers])
    read = everything._replace(actions=numbers.to(torch.int32)) if discrete else everything
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


def test_the_elements_of_a2_winner_are_joined_in_the_order_of_the_mask():
    s, seen = noisy(4), {}
    auxiliary = AuxiliaryLoss(WINNER, STATE, ACTION)
    auxiliary.predictor.register_forward_pre_hook(lambda _, inputs: seen.update(source=inputs[0]))
    auxiliary.operator.register_forward_pre_hook(lambda _, inputs: seen.update(target=inputs[1]))
    auxiliary(s, lambda x: x + 0.25, lambda x: x - 0.5)
    source = torch.cat([s.states[1] + 0.25, s.actions[1], s.actions[2], s.actions[3]], dim=1)
    target = torch.cat([s.rewards[0][:, None], s.rewards[1][:, None], s.states[2] - 0.5, s.states[3] - 0.5], dim=1)
    assert torch.equal(seen["source"], source)
    assert torch.equal(seen["target"], target)


def test_the_targets_are_constants_even_where_one_encoder_serves_both_sides():
    torch.manual_seed(0)
    auxiliary, s, encoder = (
        AuxiliaryLoss(Loss.parse("s0 -> s0 s1"), FEATURES, ACTION),
        noisy(2),
        nn.Linear(STATE, FEATURES),
    )
    y, y_hat = auxiliary.predictor(encoder(s.states[0])), torch.cat([encoder(s.states[0]), encoder(s.states[1])], dim=1)
    mine, stopped, through = (
        torch.autograd.grad(loss, encoder.weight, retain_graph=True)[0]
        for loss in (auxiliary(s, encoder, encoder), (y - y_hat.detach()).square().mean(), (y - y_hat).square().mean())
    )
    torch.testing.assert_close(mine, stopped)
    assert not torch.allclose(mine, through, rtol=1e-2)


def test_time_major_tensors_lists_and_mappings_are_read_alike():
    tensors, encoder = noisy(4), nn.Linear(STATE, FEATURES)
    auxiliary = AuxiliaryLoss(WINNER, FEATURES, ACTION)
    forms = [tensors, Sequences(*map(list, tensors)), Sequences(*(dict(enumerate(part)) for part in tensors))]
    assert len({auxiliary(form, encoder, encoder).item() for form in forms}) == 1


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.uint8])
def test_discrete_actions_of_any_integer_type_enter_as_one_hot_vectors(dtype):
    auxiliary, encoder, s = (
        AuxiliaryLoss(Loss.parse("s0 a0 -> s1 a1"), FEATURES, 3),
        nn.Linear(STATE, FEATURES),
        noisy(2),
    )
    numbers = torch.tensor([[2, 0, 1, 2], [1, 1, 0, 2]])
    by_number, by_vector = (
        auxiliary(s._replace(actions=actions), encoder, encoder)
        for actions in (numbers.to(dtype), torch.eye(3)[numbers])
    )
    assert by_number.item() == by_vector.item()


def test_any_encoder_will_do():
    encoder, s = nn.Sequential(nn.Flatten(), nn.Linear(3 * 8 * 8, FEATURES), nn.Tanh()), noisy(4)
    images = torch.rand(4, BATCH, 3, 8, 8)
    AuxiliaryLoss(WINNER, FEATURES, ACTION)(s._replace(states=images), encoder, encoder).backward()
    assert encoder[1].weight.grad.abs().max() > 0


@settings(deadline=None, max_examples=20)
@given(losses(), st.integers(0, 3))
def test_losses_with_the_same_canonical_form_are_the_same_module(loss, shift):
    none = (False,) * (3 * shift)
    shifted = Loss(loss.horizon + 2 * shift, none + loss.source + none, none + loss.target + none, loss.operator)
    encoder, values, built = nn.Linear(STATE, FEATURES), [], []
    for each in (loss, shifted):
        torch.manual_seed(0)
        built.append(AuxiliaryLoss(each, FEATURES, ACTION))
        values.append(built[-1](noisy(6), encoder, encoder).item())
    assert built[0].loss == built[1].loss == loss.canonical()
    assert values[0] == values[1]
    assert all(torch.equal(a, b) for a, b in zip(*(module.parameters() for module in built), strict=True))


def test_a_loss_that_cannot_be_met_stays_away_from_zero_and_one_that_can_is_learnt():
    # The prediction of s1 = 0.5 s0 + a0 must become exact, that of fresh noise cannot get below its variance.
    torch.manual_seed(0)
    states, actions, errors = torch.randn(256, 2), torch.randn(256, 2), {}
    for text in ("s0 a0 -> s1", "s0 -> r0"):
        auxiliary = AuxiliaryLoss(Loss.parse(text), 2, 2, predictor_hidden=32)
        optimizer = torch.optim.Adam(auxiliary.parameters(), 1e-2)
        for _ in range(300):
            batch = Sequences([states, 0.5 * states + actions], [actions], [torch.randn(256)])
            error = auxiliary(batch, nn.Identity(), nn.Identity())
            optimizer.zero_grad()
            error.backward()
            optimizer.step()
        errors[text] = error.item()
    assert errors["s0 a0 -> s1"] < 0.02
    assert errors["s0 -> r0"] > 0.6
