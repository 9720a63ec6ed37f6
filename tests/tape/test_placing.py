"""Where intermediate results lie: apart while they are needed, in the same place afterwards."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from a2ls.tape._placing import Life, find_places, from_outside, lives_of, placed
from a2ls.tape._recording import record, storage

LINE = 64


def lines(size):
    return -(-size // LINE) * LINE


lives = st.builds(
    lambda size, first, length: Life(size, first, first + length),
    st.one_of(st.integers(0, 300), st.sampled_from([0, 4, 64, 128, 4096])),
    st.integers(0, 30),
    st.integers(0, 12),
)
any_lives = st.lists(lives, max_size=30).map(lambda found: dict(enumerate(found, start=100)))


@settings(max_examples=300)
@given(any_lives)
def test_no_two_that_live_at_once_overlap(lives):
    places, size = find_places(lives)
    assert places.keys() == lives.keys()
    for memory, place in places.items():
        assert place >= 0
        assert place + lives[memory].size <= size
        for other, other_place in places.items():
            if other != memory and lives[other].meets(lives[memory]) and lives[other].size and lives[memory].size:
                assert place + lives[memory].size <= other_place or other_place + lives[other].size <= place


@settings(max_examples=300)
@given(any_lives)
def test_places_begin_with_a_line_of_the_cache(lives):
    places, _ = find_places(lives)
    assert all(place % LINE == 0 for place in places.values())


@settings(max_examples=300)
@given(any_lives)
def test_memory_is_as_large_as_it_must_be_and_not_larger_than_all_together(lives):
    _, size = find_places(lives)
    needs = [sum(life.size for life in lives.values() if life.first <= moment <= life.last) for moment in range(50)]
    assert max(needs) <= size <= sum(lines(life.size) for life in lives.values())


@given(st.lists(st.integers(1, 1000), min_size=1, max_size=20))
def test_what_lives_one_after_the_other_has_one_place(sizes):
    places, size = find_places({i: Life(size, i, i) for i, size in enumerate(sizes)})
    assert set(places.values()) == {0}
    assert size == max(sizes)


@given(st.lists(st.integers(1, 1000), max_size=20))
def test_what_lives_at_once_has_places_in_a_row(sizes):
    places, size = find_places({i: Life(size, i, 100) for i, size in enumerate(sizes)})
    assert list(places.values()) == [sum(map(lines, sizes[:i])) for i in range(len(sizes))]
    assert size == (sum(map(lines, sizes[:-1])) + sizes[-1] if sizes else 0)


@pytest.mark.parametrize("fitting", [1, 100, 128])
def test_a_gap_is_filled(fitting):
    lives = {1: Life(64, 0, 9), 2: Life(128, 0, 3), 3: Life(64, 0, 9), 4: Life(fitting, 4, 5), 5: Life(129, 4, 9)}
    places, size = find_places(lives)
    assert places == {1: 0, 2: 64, 3: 192, 4: 64, 5: 256}
    assert size == 256 + 129


@pytest.mark.parametrize(
    ("one", "other", "meet"),
    [((0, 1), (2, 3), False), ((0, 2), (2, 3), True), ((0, 5), (2, 3), True), ((2, 2), (2, 2), True)],
)
def test_lives_that_share_an_operation_meet(one, other, meet):
    a, b = Life(4, *one), Life(4, *other)
    assert a.meets(b) == b.meets(a) == meet


# Lives of what functions compute.


def lives_by_name(function, kept=()):
    """The lives of the tensors that a function returns by their names, those without life left out."""
    with torch.inference_mode():
        named, operations = record(function)
    found = lives_of(operations, [named[name] for name in kept])
    return {name: found[storage(tensor)] for name, tensor in named.items() if storage(tensor) in found}


def test_memory_lives_from_its_operation_to_the_last_that_uses_it():
    x = torch.ones(10)

    def function():
        a = x + 1
        b = a * 2
        c = a - b
        d = c.exp()
        return {"a": a, "b": b, "c": c, "d": d, "x": x}

    assert lives_by_name(function) == {
        "a": Life(40, 0, 2),
        "b": Life(40, 1, 2),
        "c": Life(40, 2, 3),
        "d": Life(40, 3, 3),
    }


def test_use_of_a_view_is_use_of_its_memory():
    x = torch.ones(2, 5)

    def function():
        a = x + 1
        part = a.T[1:]
        b = x * 2
        c = part * 3
        return {"a": a, "part": part, "b": b, "c": c}

    # The view takes two operations.
    assert lives_by_name(function) == {
        "a": Life(40, 0, 4),
        "part": Life(40, 0, 4),
        "b": Life(40, 3, 3),
        "c": Life(32, 4, 4),
    }


def test_a_change_is_a_use():
    x = torch.ones(10)

    def function():
        a = x + 1
        b = x.exp()
        a[2:].add_(1)
        return {"a": a, "b": b}

    assert lives_by_name(function)["a"] == Life(40, 0, 3)


def test_memory_lives_from_when_it_is_taken():
    x = torch.ones(10)

    def function():
        a = torch.empty(10)
        b = x + 1
        a.copy_(b)
        return {"a": a, "b": b}

    lives = lives_by_name(function)
    assert lives["a"].first == 0
    assert lives["a"].last == lives["b"].last


def test_arguments_in_lists_and_keywords_are_uses():
    x = torch.ones(10)

    def function():
        a, b = x + 1, x + 2
        c = torch.cat([a, x])
        d = torch.ops.aten.threshold_backward.grad_input(x, x, 0.0, grad_input=b)
        return {"a": a, "b": b, "c": c, "d": d}

    assert lives_by_name(function) == {
        "a": Life(40, 0, 2),
        "b": Life(40, 1, 3),
        "c": Life(80, 2, 2),
        "d": Life(40, 1, 3),
    }


def test_what_is_kept_or_from_outside_has_no_life():
    x, y = torch.ones(10), torch.ones(10)

    def function():
        a = x + 1
        b = a[3:]
        y.add_(1)
        c = y * 2
        x[2:].mul_(2)
        return {"a": a, "b": b, "c": c, "x": x, "y": y, "d": c + 1}

    assert lives_by_name(function).keys() == {"a", "b", "c", "d"}
    # Of a kept view, the memory is kept.
    assert lives_by_name(function, kept=["b", "c"]).keys() == {"d"}


@torch.inference_mode()
def test_what_is_from_outside():
    x, y, z, unused = torch.ones(10), torch.ones(10), torch.ones(10), torch.ones(10)

    def function():
        a = torch.empty(10)
        b = x[3:] + 1
        y.add_(x)
        return torch.cat([a.mul_(y), b, b, z, y * a])

    _, operations = record(function)
    found = from_outside(operations)
    assert [id(tensor) for tensor in found] == [id(tensor) for tensor in (x, y, z)]
    assert not any(tensor is unused for tensor in found)


# All together.


@torch.inference_mode()
def test_placed_operations_lie_in_one_memory_as_they_lay_before():
    x = torch.randn(3, 20)

    def function():
        a = x + 1
        b = a.T[2:].exp()
        c = (a > 0) * 2
        d = a.double()[:, 1:] + 1
        return a, b, c, d, (b.T * d[:, :18]).float()

    results, operations = record(function)
    kept = results[-1:]
    moved = placed(operations, kept)
    places, _ = find_places(lives_of(operations, kept))
    assert [operation.function for operation in moved] == [operation.function for operation in operations]
    memories = set()
    for before, after in zip(operations, moved, strict=True):
        for old, new in zip(before.inputs() + before.outputs(), after.inputs() + after.outputs(), strict=True):
            assert (new.shape, new.stride(), new.dtype) == (old.shape, old.stride(), old.dtype)
            if storage(old) in {storage(tensor) for tensor in (x, *kept)}:
                assert new is old
            else:
                memories.add(storage(new))
                before_it = old.data_ptr() - storage(old)
                assert new.data_ptr() == storage(new) + places[storage(old)] + before_it
    assert len(memories) == 1
    assert not memories & {storage(tensor) for operation in operations for tensor in operation.outputs()}


@torch.inference_mode()
def test_one_tensor_is_moved_once():
    x = torch.ones(3)
    _, operations = record(lambda: [a := x + 1, a * a, a.exp()])
    first, second, third = placed(operations, [])
    assert second.arguments[0] is second.arguments[1] is third.arguments[0] is first.result


@torch.inference_mode()
def test_a_long_chain_needs_the_memory_of_three():
    x = torch.randn(1000)

    def function():
        y = x
        for _ in range(100):
            y = y * 2 + 1
        return y

    _, operations = record(function)
    lives = lives_of(operations, [])
    _, size = find_places(lives)
    assert len(lives) == 200
    assert size <= 3 * lines(4000)
    moved = placed(operations, [])
    assert moved[0].result.untyped_storage().nbytes() == size
