"""`AuxiliaryLoss`: what enters the predictor, what it is compared with, and where gradients go."""

import copy

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from a2ls.auxiliary import AuxiliaryLoss, Sequences
from a2ls.space import OPERATORS, Loss, named_loss

BATCH, STATE, ACTION, FEATURES = 4, 3, 2, 5


def numbered(steps, batch=BATCH):
    """Sequences in which every number tells its kind, step, sample and column."""

    def block(base, width):
        return [
            torch.tensor([[base + 1000 * t + 10 * b + d for d in range(width)] for b in range(batch)]).float()
            for t in range(steps)
        ]

    return Sequences(block(0, STATE), block(100_000, ACTION), [r[:, 0] for r in block(200_000, 1)])


def noisy(steps, seed=0, batch=BATCH):
    generator = torch.Generator().manual_seed(seed)
    return Sequences(
        torch.randn(steps, batch, STATE, generator=generator),
        torch.randn(steps, batch, ACTION, generator=generator),
        torch.randn(steps, batch, generator=generator),
    )


class RecordingEncoder:
    """Adds a constant to the states, and counts its calls and the rows it saw."""

    def __init__(self, shift):
        self.shift = shift
        self.calls = []

    def __call__(self, states):
        self.calls.append(len(states))
        return states + self.shift


class Joined:
    """What reaches the predictor (`source`) and the operator (`target`) of one call."""

    def __init__(self, loss, sequences):
        auxiliary = AuxiliaryLoss(loss, STATE, ACTION, predictor_hidden=4)
        auxiliary.predictor.register_forward_pre_hook(lambda _, inputs: setattr(self, "source", inputs[0]))
        auxiliary.operator.register_forward_pre_hook(lambda _, inputs: setattr(self, "target", inputs[1]))
        self.encoder, self.target_encoder = RecordingEncoder(0.25), RecordingEncoder(-0.5)
        self.value = auxiliary(sequences, self.encoder, self.target_encoder)


@st.composite
def valid_loss(draw):
    horizon = draw(st.integers(1, 5))
    bits = st.lists(st.booleans(), min_size=3 * horizon + 3, max_size=3 * horizon + 3).map(tuple)
    source, target = draw(bits.filter(lambda mask: any(mask[::3]))), draw(bits.filter(any))
    return Loss(horizon, source, target, draw(st.sampled_from(OPERATORS)))


def selected(loss):
    """Kinds and steps of both sides from the masks as text, counted from the first step that is used."""
    sides = []
    first = min(bits.index("1") // 3 for bits in loss.to_bits() if "1" in bits)
    for bits in loss.to_bits():
        sides.append([("sar"[i % 3], i // 3 - first) for i, bit in enumerate(bits) if bit == "1"])
    return sides


def concatenated(elements, sequences, shift):
    rows = []
    for b in range(BATCH):
        row = []
        for kind, step in elements:
            if kind == "s":
                row += [value + shift for value in sequences.states[step][b].tolist()]
            elif kind == "a":
                row += sequences.actions[step][b].tolist()
            else:
                row.append(sequences.rewards[step][b].item())
        rows.append(row)
    return torch.tensor(rows)


def test_a2_winner_joins_its_elements_in_the_order_of_the_mask():
    s = numbered(4)
    joined = Joined(named_loss("a2-winner"), s)
    source = torch.cat([s.states[1] + 0.25, s.actions[1], s.actions[2], s.actions[3]], dim=1)
    target = torch.cat([s.rewards[0][:, None], s.rewards[1][:, None], s.states[2] - 0.5, s.states[3] - 0.5], dim=1)
    assert torch.equal(joined.source, source)
    assert torch.equal(joined.target, target)


@settings(deadline=None, max_examples=60)
@given(valid_loss())
def test_any_loss_joins_its_elements_with_one_call_of_each_encoder(loss):
    everything = numbered(6)
    source, target = selected(loss)
    used = {*source, *target}
    # Only the steps that are selected are there at all: reading any other would raise.
    needed = Sequences(
        *(
            {step: values[step] for k, step in used if k == kind}
            for kind, values in zip("sar", (everything.states, everything.actions, everything.rewards), strict=True)
        )
    )
    joined = Joined(loss, needed)
    assert torch.equal(joined.source, concatenated(source, everything, 0.25))
    assert torch.equal(joined.target, concatenated(target, everything, -0.5))
    states_of = [sum(kind == "s" for kind, _ in side) for side in (source, target)]
    assert joined.encoder.calls == [states_of[0] * BATCH]
    assert joined.target_encoder.calls == ([states_of[1] * BATCH] if states_of[1] else [])


def test_time_major_tensors_lists_and_mappings_are_read_alike():
    tensors = noisy(4)
    steps = Sequences(list(tensors.states), list(tensors.actions), list(tensors.rewards))
    mappings = Sequences(*(dict(enumerate(part)) for part in (tensors.states, tensors.actions, tensors.rewards)))
    auxiliary = AuxiliaryLoss(named_loss("a2-winner"), FEATURES, ACTION)
    encoder, target_encoder = nn.Linear(STATE, FEATURES), nn.Linear(STATE, FEATURES)
    values = {auxiliary(sequences, encoder, target_encoder).item() for sequences in (tensors, steps, mappings)}
    assert len(values) == 1


def test_value_of_a2_winner_written_out_by_hand():
    torch.manual_seed(0)
    s = noisy(4)
    auxiliary = AuxiliaryLoss(named_loss("a2-winner"), FEATURES, ACTION)
    g, g_hat = nn.Linear(STATE, FEATURES), nn.Linear(STATE, FEATURES)
    first, last = auxiliary.predictor.layers
    source = torch.cat([F.linear(s.states[1], g.weight, g.bias), s.actions[1], s.actions[2], s.actions[3]], dim=1)
    y = F.linear(F.linear(source, first.weight, first.bias).clamp(min=0), last.weight, last.bias)
    state2, state3 = (F.linear(s.states[i], g_hat.weight, g_hat.bias) for i in (2, 3))
    y_hat = torch.stack([s.rewards[0], s.rewards[1], *state2.unbind(1), *state3.unbind(1)], dim=1)
    expected = ((y - y_hat) ** 2).sum() / (BATCH * (2 + 2 * FEATURES))
    assert auxiliary(s, g, g_hat).item() == pytest.approx(expected.item(), rel=1e-6)


@pytest.mark.parametrize("operator", OPERATORS, ids=str)
def test_gradients_reach_encoder_and_predictor_but_never_the_target_encoder(operator):
    torch.manual_seed(0)
    auxiliary = AuxiliaryLoss(Loss.parse(f"s0 a0 -> s1 r0 | {operator}"), FEATURES, ACTION)
    encoder, target_encoder = nn.Linear(STATE, FEATURES), nn.Linear(STATE, FEATURES)
    auxiliary(noisy(2), encoder, target_encoder).backward()
    for parameter in (*encoder.parameters(), *auxiliary.parameters()):
        assert parameter.grad is not None
        assert parameter.grad.abs().max() > 0
    assert all(parameter.requires_grad for parameter in target_encoder.parameters())
    assert all(parameter.grad is None for parameter in target_encoder.parameters())


def test_the_targets_are_constants_even_where_one_encoder_serves_both_sides():
    torch.manual_seed(0)
    auxiliary, sequences = AuxiliaryLoss(Loss.parse("s0 -> s0 s1"), FEATURES, ACTION), noisy(2)
    encoder = nn.Linear(STATE, FEATURES)
    auxiliary(sequences, encoder, encoder).backward()
    alone = copy.deepcopy(encoder)
    alone.zero_grad()
    y_hat = torch.cat([encoder(sequences.states[0]), encoder(sequences.states[1])], dim=1)
    error = (auxiliary.predictor(alone(sequences.states[0])) - y_hat.detach()).square().mean()
    torch.testing.assert_close(encoder.weight.grad, torch.autograd.grad(error, alone.weight)[0])
    # The gradient without the stop is another one, so the comparison above can fail.
    through = (auxiliary.predictor(encoder(sequences.states[0])) - y_hat).square().mean()
    assert not torch.allclose(encoder.weight.grad, torch.autograd.grad(through, encoder.weight)[0], rtol=1e-2)


def test_the_gradient_of_the_encoder_is_the_derivative_of_the_value():
    torch.manual_seed(0)
    auxiliary = AuxiliaryLoss(named_loss("a2-winner"), FEATURES, ACTION).double()
    encoder, target_encoder = nn.Linear(STATE, FEATURES).double(), nn.Linear(STATE, FEATURES).double()
    s = noisy(4)
    s = Sequences(s.states.double(), s.actions.double(), s.rewards.double())

    def value(weight):
        return auxiliary(s, lambda x: F.linear(x, weight), target_encoder)

    assert torch.autograd.gradcheck(value, encoder.weight)


def test_discrete_actions_enter_as_one_hot_vectors():
    torch.manual_seed(0)
    auxiliary = AuxiliaryLoss(Loss.parse("s0 a0 -> s1 a1"), FEATURES, 3)
    encoder, s = nn.Linear(STATE, FEATURES), noisy(2)
    numbers = torch.tensor([[2, 0, 1, 2], [1, 1, 0, 2]])
    vectors = torch.tensor([[[0, 0, 1], [1, 0, 0], [0, 1, 0], [0, 0, 1]], [[0, 1, 0], [0, 1, 0], [1, 0, 0], [0, 0, 1]]])
    by_vector = auxiliary(Sequences(s.states, vectors.float(), s.rewards), encoder, encoder)
    for dtype in (torch.int64, torch.int32, torch.uint8):
        by_number = auxiliary(Sequences(s.states, numbers.to(dtype), s.rewards), encoder, encoder)
        assert by_number.item() == by_vector.item()


def test_any_encoder_will_do():
    encoder = nn.Sequential(nn.Flatten(), nn.Linear(3 * 8 * 8, FEATURES), nn.Tanh())
    auxiliary = AuxiliaryLoss(named_loss("a2-winner"), FEATURES, ACTION)
    s = noisy(4)
    auxiliary(Sequences(torch.rand(4, BATCH, 3, 8, 8), s.actions, s.rewards), encoder, encoder).backward()
    assert encoder[1].weight.grad.abs().max() > 0


def test_losses_with_the_same_canonical_form_are_the_same_module():
    encoder, built = nn.Linear(STATE, FEATURES), []
    for text in ("s0 a0 -> s1 | bilinear +neg", "s2 a2 -> s3 @7 | bilinear +neg"):
        torch.manual_seed(0)
        auxiliary = AuxiliaryLoss(Loss.parse(text), FEATURES, ACTION)
        built.append((auxiliary, auxiliary(noisy(2), encoder, encoder)))
    (one, value), (other, other_value) = built
    assert one.loss == other.loss == Loss.parse("s0 a0 -> s1 | bilinear +neg")
    assert value.item() == other_value.item()
    assert {k: v.shape for k, v in one.state_dict().items()} == {k: v.shape for k, v in other.state_dict().items()}
    assert all(torch.equal(a, b) for a, b in zip(one.parameters(), other.parameters(), strict=True))


def test_a_loss_that_cannot_be_met_stays_away_from_zero_and_one_that_can_is_learnt():
    # Forward dynamics s1 = 0.5 s0 + a0 of independent noise: the prediction of s1 must become exact, that of fresh
    # noise cannot get below its variance.
    torch.manual_seed(0)
    states, actions, noise = torch.randn(256, 2), torch.randn(256, 2), torch.randn(256)
    encoder, errors = (lambda x: x), {}
    for text in ("s0 a0 -> s1", "s0 -> r0"):
        auxiliary = AuxiliaryLoss(Loss.parse(text), 2, 2, predictor_hidden=32)
        optimizer = torch.optim.Adam(auxiliary.parameters(), 1e-2)
        for step in range(300):
            if "r0" in text:
                noise = torch.randn(256, generator=torch.Generator().manual_seed(step))
            error = auxiliary(Sequences([states, 0.5 * states + actions], [actions], [noise]), encoder, encoder)
            optimizer.zero_grad()
            error.backward()
            optimizer.step()
        errors[text] = error.item()
    assert errors["s0 a0 -> s1"] < 0.02
    assert errors["s0 -> r0"] > 0.6
