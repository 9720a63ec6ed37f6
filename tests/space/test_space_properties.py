"""Properties that hold for every loss."""

import pickle
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from a2ls.space import OPERATORS, Element, Loss, contains, patterns_of
from helpers.losses import any_loss, valid_loss


def strip_empty_steps(source, target):
    """The canonical masks by another way: cut empty steps off both ends of the two bit strings."""
    steps = [(source[i : i + 3], target[i : i + 3]) for i in range(0, len(source), 3)]
    while len(steps) > 1 and steps[0] == ("000", "000"):
        steps.pop(0)
    while len(steps) > 1 and steps[-1] == ("000", "000"):
        steps.pop()
    steps += [("000", "000")] * (2 - len(steps))
    return "".join(s for s, _ in steps), "".join(t for _, t in steps)


@given(any_loss())
def test_validity_is_the_papers_three_conditions(loss):
    expected = any(loss.source[::3]) and any(loss.target)
    assert loss.is_valid() == expected == (loss.problems() == ())
    assert loss.is_valid(max_horizon=loss.horizon - 1) is False


@given(valid_loss(max_horizon=14))
def test_every_written_form_reads_back_as_the_same_loss(loss):
    text = str(loss)
    for form in (text, text.upper().replace(" ", "   "), loss.paper(), loss.latex(), f"${loss.latex()}$"):
        assert Loss.parse(form, max_horizon=14) == loss


@given(any_loss())
def test_stored_forms_hold_invalid_losses_too(loss):
    assert Loss.from_bits(*loss.to_bits(), loss.operator) == loss
    assert Loss.from_dict(loss.to_dict()) == loss
    assert Loss.from_json(loss.to_json()) == loss
    assert Loss.from_elements(loss.source_elements, loss.target_elements, loss.horizon, loss.operator) == loss
    assert pickle.loads(pickle.dumps(loss)) == loss


@given(any_loss())
def test_a_loss_without_a_predictor_is_another_loss_in_every_form(loss):
    bare = replace(loss, predictor=False)
    assert bare != loss
    assert bare.canonical() == replace(loss.canonical(), predictor=False)
    assert Loss.from_bits(*bare.to_bits(), bare.operator, predictor=False) == bare
    assert Loss.from_json(bare.to_json()) == bare == Loss.from_dict(bare.to_dict())
    same_width = all(sum(bare.source[kind::3]) == sum(bare.target[kind::3]) for kind in range(3))
    assert bare.is_valid() == (loss.is_valid() and same_width)
    if bare.is_valid():
        assert all(Loss.parse(form) == bare for form in (str(bare), str(bare).upper(), bare.paper(), bare.latex()))
        assert Loss.parse(str(bare).removesuffix(" | no predictor")) == loss


@given(any_loss())
def test_a_loss_is_degenerate_if_no_bit_is_in_the_target_alone(loss):
    source, target = (int(bits, 2) for bits in loss.to_bits())
    assert loss.is_degenerate == (target != 0 and target & ~source == 0)


@given(any_loss())
def test_elements_are_the_set_bits_in_mask_order(loss):
    for mask, elements in ((loss.source, loss.source_elements), (loss.target, loss.target_elements)):
        sequence = [f"{kind}{step}" for step in range(loss.horizon + 1) for kind in "sar"]
        assert list(map(str, elements)) == [name for name, bit in zip(sequence, mask, strict=True) if bit]
        assert list(elements) == sorted(elements)


@given(any_loss())
def test_canonical_form_is_the_masks_without_empty_ends(loss):
    canonical = loss.canonical()
    assert canonical.to_bits() == strip_empty_steps(*loss.to_bits())
    assert canonical.operator == loss.operator
    assert canonical.canonical() == canonical


@given(any_loss(max_horizon=4), st.integers(0, 3), st.integers(0, 3))
def test_shifted_and_padded_losses_have_the_same_canonical_form(loss, before, after):
    source, target = ("000" * before + bits + "000" * after for bits in loss.to_bits())
    moved = Loss.from_bits(source, target, loss.operator)
    assert moved.canonical() == loss.canonical()
    assert moved.is_valid(max_horizon=20) == loss.is_valid()


@given(any_loss(), any_loss())
def test_order_equality_and_hash_agree(one, other):
    fields = [(x.horizon, x.source, x.target, x.operator) for x in (one, other)]
    assert (one < other) == (fields[0] < fields[1])
    assert (one == other) == (fields[0] == fields[1])
    copy = Loss(one.horizon, list(map(int, one.source)), list(map(int, one.target)), one.operator)
    assert copy == one
    assert hash(copy) == hash(one)
    assert all(type(bit) is bool for bit in copy.source + copy.target)
    assert sorted([one, other]) == sorted([other, one])


@given(any_loss())
def test_transitions_needed_is_the_shortest_sequence_with_all_elements(loss):
    wanted = {str(element) for element in loss.source_elements + loss.target_elements}

    def held_by(transitions):
        return {f"s{i}" for i in range(transitions + 1)} | {f"{kind}{i}" for i in range(transitions) for kind in "ar"}

    assert loss.transitions_needed == next(n for n in range(1, 13) if wanted <= held_by(n))


@given(any_loss(), st.sampled_from(OPERATORS))
def test_a_loss_contains_itself_whatever_operator_and_horizon(loss, operator):
    longer = Loss.from_elements(loss.source_elements, loss.target_elements, loss.horizon + 1, operator)
    assert contains(loss, longer)
    assert contains(longer, loss)
    assert patterns_of(loss) == patterns_of(longer)


@given(st.integers(0, 100))
def test_element_and_bit_are_two_names_of_one_place(bit):
    element = Element.at(bit)
    assert element.bit == bit
    assert Element.parse(str(element)) == Element.parse(element.paper()) == element
    assert Element.parse(element.latex()) == element
    assert element < Element.at(bit + 1)
