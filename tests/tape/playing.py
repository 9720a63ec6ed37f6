"""A function recorded on some tensors and played on others, against PyTorch itself."""

import torch

from a2ls.tape import Tape
from a2ls.tape._recording import tensors_in

SPECIAL = [torch.nan, torch.inf, -torch.inf, -1.0, 0.0, 1.0, 1e-30, -1e-30]


def normal(shape, generator):
    return torch.randn(shape, generator=generator)


def special(shape, generator):
    """NaN, infinities and a few numbers, in any order."""
    return torch.tensor(SPECIAL)[torch.randint(len(SPECIAL), shape, generator=generator)]


def as_given(*tensors):
    return tensors


@torch.inference_mode()
def played(function, *shapes, view=as_given, make=normal, times=2):
    """The tape of `function(*view(*inputs))`, of which all results were compared at each play.

    Only the views themselves are not recorded.
    """
    generator = torch.Generator().manual_seed(0)
    own = [make(shape, generator) for shape in shapes]
    operands = view(*own)
    tape = Tape(lambda: function(*operands), own, tensors_in)
    for _ in range(times):
        new = [make(shape, generator) for shape in shapes]
        results = tensors_in(tape.play([tensor.clone() for tensor in new]))
        expected = tensors_in(function(*view(*new)))
        assert expected
        for result, right in zip(results, expected, strict=True):
            assert result.stride() == right.stride()
            torch.testing.assert_close(result, right, rtol=1e-5, atol=1e-5, equal_nan=True)
    return tape


def check(function, *shapes, **settings):
    """That a function is played right, and without PyTorch."""
    tape = played(function, *shapes, **settings)
    assert tape.calls == []
    return tape


def functions(tape):
    return [operation.function for operation in tape._operations]
