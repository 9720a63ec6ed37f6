"""Where intermediate results lie: apart while they are needed, in the same place afterwards."""

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from a2ls.recorder._recording import record, storage
from a2ls.recorder._tape import Life, find_places, lives_of, needless_copies, placed

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
def test_no_two_that_live_at_once_overlap_and_all_begin_with_a_line_of_the_cache(lives):
    places, size = find_places(lives)
    assert places.keys() == lives.keys()
    for memory, place in places.items():
        assert place >= 0
        assert place % LINE == 0
        assert place + lives[memory].size <= size
        for other, other_place in places.items():
            if other != memory and lives[other].meets(lives[memory]) and lives[other].size and lives[memory].size:
                assert place + lives[memory].size <= other_place or other_place + lives[other].size <= place
    needs = [sum(life.size for life in lives.values() if life.first <= moment <= life.last) for moment in range(50)]
    assert max(needs) <= size <= sum(lines(life.size) for life in lives.values())


@given(st.lists(st.integers(1, 1000), min_size=1, max_size=20))
def test_what_lives_one_after_the_other_has_one_place(sizes):
    places, size = find_places({i: Life(size, i, i) for i, size in enumerate(sizes)})
    assert set(places.values()) == {0}
    assert size == max(sizes)


def test_a_gap_is_filled():
    lives = {1: Life(64, 0, 9), 2: Life(128, 0, 3), 3: Life(64, 0, 9), 4: Life(100, 4, 5), 5: Life(129, 4, 9)}
    assert find_places(lives) == ({1: 0, 2: 64, 3: 192, 4: 64, 5: 256}, 256 + 129)


def lives_by_name(function, kept=()):
    """The lives of the tensors that a function returns by their names, those without life left out."""
    recording = record(function)
    named = recording.result
    found = lives_of(recording.operations, [named[name] for name in kept])
    return {name: found[storage(tensor)] for name, tensor in named.items() if storage(tensor) in found}


def test_memory_lives_from_its_operation_to_the_last_that_uses_it_or_a_view_of_it():
    x, y = torch.ones(2, 5), torch.ones(10)

    def function():
        a = x + 1
        part = a.T[1:]  # Two operations.
        b = x * 2
        c = torch.cat([part * 3, part])
        y.add_(1)
        b[:, 2:].add_(1)  # A slice of a slice, and the change of it.
        return {"a": a, "part": part, "b": b, "c": c, "x": x, "y": y}

    found = lives_by_name(function)
    assert found.keys() == {"a", "part", "b", "c"}
    assert (found["a"].first, found["a"].last) == (0, 5)
    assert found["part"] == found["a"]
    assert found["b"].first == 3
    assert found["b"].last > found["c"].last
    # Of a kept view, the memory is kept.
    assert lives_by_name(function, kept=["part", "c"]).keys() == {"b"}


def test_placed_operations_lie_in_one_memory_as_they_lay_before():
    x = torch.randn(3, 20)

    def function():
        a = x + 1
        b = a.T[2:].exp()
        c = (a > 0) * 2
        d = a.double()[:, 1:] + 1
        return a, b, c, d, (b.T * d[:, :18]).float()

    recording = record(function)
    operations, kept = recording.operations, recording.result[-1:]
    moved = placed(operations, kept)
    places, _ = find_places(lives_of(operations, kept))
    memories = set()
    for before, after in zip(operations, moved, strict=True):
        assert before.function is after.function
        for old, new in zip(before.inputs() + before.outputs(), after.inputs() + after.outputs(), strict=True):
            assert (new.shape, new.stride(), new.dtype) == (old.shape, old.stride(), old.dtype)
            if storage(old) in {storage(tensor) for tensor in (x, *kept)}:
                assert new.data_ptr() == old.data_ptr()
            else:
                memories.add(storage(new))
                assert new.data_ptr() == storage(new) + places[storage(old)] + old.data_ptr() - storage(old)
    assert len(memories) == 1
    assert not memories & {storage(tensor) for operation in operations for tensor in operation.outputs()}


def test_a_long_chain_needs_the_memory_of_three():
    x = torch.randn(1000)

    def function():
        y = x
        for _ in range(100):
            y = y * 2 + 1
        return y

    operations = record(function).operations
    _, size = find_places(lives_of(operations, []))
    assert size <= 3 * lines(4000)
    assert placed(operations, [])[0].result.untyped_storage().nbytes() == size


def test_what_is_copied_and_then_not_changed_is_made_where_it_is_copied_to():
    x = torch.randn(10)

    def function():
        needless, changed, copy_changed = x + 1, x + 2, x + 3
        copies = [made.new_empty_strided((10,), (1,)).copy_(made) for made in (needless, changed, copy_changed)]
        changed.add_(1)
        copies[2].add_(1)
        return [needless * 2, *(copy * 2 for copy in copies), copies[0]]

    recording = record(function)
    for kept in ([], recording.result[-1:]):
        found = needless_copies(recording.operations, kept)
        assert [copy.arguments[0].data_ptr() for copy in found] == [recording.result[-1].data_ptr()]
        moved = placed(recording.operations, kept, found)
        copy = recording.operations.index(found[0])
        assert moved[copy].arguments[1].data_ptr() == moved[copy].arguments[0].data_ptr()
        assert moved[copy].arguments[1].data_ptr() == moved[0].result.data_ptr()
        assert (moved[0].result.data_ptr() == recording.result[-1].data_ptr()) == bool(kept)
