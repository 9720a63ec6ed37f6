"""A function recorded and played on random tensors, against PyTorch itself."""

import torch
from hypothesis import strategies as st

from a2ls.recorder import Recorded
from a2ls.recorder._recording import tensors_in

SPECIAL = torch.tensor([torch.nan, torch.inf, -torch.inf, -1.0, 0.0, 1.0, 1e-30, -1e-30, 100.0, -100.0])


def numbers(shape, generator, *, special=False):
    if special:
        return SPECIAL[torch.randint(len(SPECIAL), shape, generator=generator)]
    return torch.randn(shape, generator=generator)


def check(function, *shapes, calls=(), special=False, rtol=2e-5, atol=2e-5, times=3):
    """That a function of tensors gives what it gives by PyTorch, with just these operations left to PyTorch."""
    recorded = Recorded(function, required=True)
    generator = torch.Generator().manual_seed(0)
    for _ in range(times):
        inputs = [numbers(shape, generator, special=special) for shape in shapes]
        found, expected = tensors_in(recorded(*inputs)), tensors_in(function(*inputs))
        assert expected
        for result, right in zip(found, expected, strict=True):
            torch.testing.assert_close(result, right.detach(), rtol=rtol, atol=atol, equal_nan=True)
    assert left_to_pytorch(recorded) == sorted(calls)
    return recorded


def left_to_pytorch(recorded):
    return sorted({call for kind in recorded._kinds.values() for call in kind.tape.calls})


@st.composite
def layouts(draw, shape, *, broadcast=True):
    """The shape of a tensor, and a view of it that has the given shape, or can be broadcast to it."""
    axes = draw(st.permutations(range(len(shape))))
    steps = [draw(st.sampled_from([1, 1, 1, 2])) for _ in shape]
    lone = [broadcast and draw(st.integers(0, 4)) == 0 for _ in shape]
    sizes = [1 if alone else size for size, alone in zip(shape, lone, strict=True)]
    stored = [sizes[axis] * steps[axis] for axis in axes]
    order = [axes.index(axis) for axis in range(len(shape))]
    offset = draw(st.integers(0, 3))

    def view(x):
        whole = x[offset:].view(stored).permute(order)
        return whole[tuple(slice(None, None, step) for step in steps)]

    return (torch.Size(stored).numel() + offset,), view


shapes = st.lists(st.one_of(st.integers(1, 4), st.sampled_from([7, 33, 130])), max_size=4).filter(
    lambda shape: torch.Size(shape).numel() <= 3000
)
