"""Properties that hold for every loss."""

import pickle

from hypothesis import given, settings
from hypothesis import strategies as st

from a2ls.space import OPERATORS, Element, Loss, contains, patterns_of

quick = settings(deadline=None)


@st.composite
def any_loss(draw, max_horizon=10):
    horizon = draw(st.integers(1, max_horizon))
    bits = st.lists(st.booleans(), min_size=3 * horizon + 3, max_size=3 * horizon + 3).map(tuple)
    return Loss(horizon, draw(bits), draw(bits), draw(st.sampled_from(OPERATORS)))


def valid_loss(max_horizon=10):
    return any_loss(max_horizon).filter(lambda loss: any(loss.source[::3]) and any(loss.target))


def strip_empty_steps(source, target):
    """The canonical masks by another way: cut empty steps off both ends of the two bit strings."""
    steps = [(source[i : i + 3], target[i : i + 3]) for i in range(0, len(source), 3)]
    while len(steps) > 1 and steps[0] == ("000", "000"):
        steps.pop(0)
    while len(steps) > 1 and steps[-1] == ("000", "000"):
        steps.pop()
    steps += [("000", "000")] * (2 - len(steps))
    return "".join(s for s, _ in steps), "".join(t for _, t in steps)


@quick
@given(any_loss())
def test_validity_is_the_papers_three_conditions(loss):
    expected = any(loss.source[::3]) and any(loss.target)
    assert loss.is_valid() == expected == (loss.problems() == ())
    assert loss.is_valid(max_horizon=loss.horizon - 1) is False


@quick
@given(valid_loss())
def test_every_written_form_reads_back_as_the_same_loss(loss):
    assert Loss.parse(str(loss)) == loss
    assert Loss.parse(loss.paper()) == loss
    assert Loss.parse(loss.latex()) == loss
    assert Loss.parse(f"${loss.latex()}$") == loss
    assert Loss.parse(str(loss).upper().replace(" ", "   ")) == loss


@quick
@given(any_loss())
def test_stored_forms_hold_invalid_losses_too(loss):
    assert Loss.from_bits(*loss.to_bits(), loss.operator) == loss
    assert Loss.from_dict(loss.to_dict()) == loss
    assert Loss.from_json(loss.to_json()) == loss
    assert Loss.from_elements(loss.source_elements, loss.target_elements, loss.horizon, loss.operator) == loss
    assert pickle.loads(pickle.dumps(loss)) == loss


@quick
@given(valid_loss(max_horizon=14))
def test_longer_horizons_read_back_where_they_are_allowed(loss):
    assert Loss.parse(str(loss), max_horizon=14) == loss


@quick
@given(any_loss())
def test_elements_are_the_set_bits_in_mask_order(loss):
    for mask, elements in ((loss.source, loss.source_elements), (loss.target, loss.target_elements)):
        sequence = [f"{kind}{step}" for step in range(loss.horizon + 1) for kind in "sar"]
        assert list(map(str, elements)) == [name for name, bit in zip(sequence, mask, strict=True) if bit]
        assert list(elements) == sorted(elements)


@quick
@given(any_loss())
def test_canonical_form_is_the_masks_without_empty_ends(loss):
    canonical = loss.canonical()
    assert canonical.to_bits() == strip_empty_steps(*loss.to_bits())
    assert canonical.operator == loss.operator
    assert canonical.canonical() == canonical


@quick
@given(any_loss(max_horizon=4), st.integers(0, 3), st.integers(0, 3))
def test_shifted_and_padded_losses_have_the_same_canonical_form(loss, before, after):
    source, target = ("000" * before + bits + "000" * after for bits in loss.to_bits())
    moved = Loss.from_bits(source, target, loss.operator)
    assert moved.canonical() == loss.canonical()
    assert moved.is_valid(max_horizon=20) == loss.is_valid()


@quick
@given(any_loss(), any_loss())
def test_order_equality_and_hash_agree(one, other):
    fields = [(x.horizon, x.source, x.target, x.operator) for x in (one, other)]
    assert (one < other) == (fields[0] < fields[1])
    assert (one == other) == (fields[0] == fields[1])
    copy = Loss(one.horizon, list(map(int, one.source)), list(map(int, one.target)), one.operator)
    assert copy == one
    assert hash(copy) == hash(one)
    assert sorted([one, other]) == sorted([other, one])


@quick
@given(any_loss())
def test_transitions_needed_is_the_shortest_sequence_with_all_elements(loss):
    wanted = {str(element) for element in loss.source_elements + loss.target_elements}

    def held_by(transitions):
        return {f"s{i}" for i in range(transitions + 1)} | {f"{kind}{i}" for i in range(transitions) for kind in "ar"}

    assert loss.transitions_needed == next(n for n in range(1, 13) if wanted <= held_by(n))


@quick
@given(any_loss(), st.sampled_from(OPERATORS))
def test_a_loss_contains_itself_whatever_operator_and_horizon(loss, operator):
    longer = Loss.from_elements(loss.source_elements, loss.target_elements, loss.horizon + 1, operator)
    assert contains(loss, longer)
    assert contains(longer, loss)
    assert patterns_of(loss) == patterns_of(longer)


@quick
@given(st.integers(0, 100))
def test_element_and_bit_are_two_names_of_one_place(bit):
    element = Element.at(bit)
    assert element.bit == bit
    assert Element.parse(str(element)) == Element.parse(element.paper()) == element
    assert Element.parse(element.latex()) == element
    assert element < Element.at(bit + 1)
