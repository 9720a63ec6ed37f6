"""What an agent does again and again, recorded when it first happens and played from then on."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Hashable, Sequence
from functools import partial
from typing import Generic, TypeVar

from torch import Tensor, nn

from a2ls import tape

Result = TypeVar("Result")
Function = Callable[[Sequence[Tensor]], Result]

_MOST = 32
"""Tapes at a time: more than an agent needs, unless every batch has another size."""


class Tapes(Generic[Result]):
    """The tapes of functions of an agent, one for each kind of call.

    A tape has the addresses of its agent's parameters, so that a copy of an agent records tapes of its own.

    Args:
        kept: The tensors in a result. They are as the function gave them until the next call of the same kind.
    """

    def __init__(self, kept: Callable[[Result], Sequence[Tensor]]) -> None:
        self._kept = kept
        self._tapes: dict[Hashable, tape.Tape[Result] | None] = {}

    def __deepcopy__(self, memo: object) -> Tapes[Result]:
        return Tapes(self._kept)

    def __reduce__(self) -> tuple[type[Tapes[Result]], tuple[object]]:
        return Tapes, (self._kept,)

    def call(
        self, agent: nn.Module, kind: Hashable, function: Function[Result], inputs: Sequence[Tensor]
    ) -> tuple[Result, Callable[[], int]]:
        """Do what `function(inputs)` does; returns its result, and how often the tensors in that have been written to.

        Args:
            agent: Whose function it is. Its state dictionary holds all that the function changes.
            kind: Calls of one kind run the same operations on inputs of the same shapes.
            function: To be called without autograd.
            inputs: What it is given.
        """
        kind = kind, *[(tensor.shape, tensor.dtype) for tensor in inputs]
        found = self._tapes.get(kind)
        if kind not in self._tapes or (found is not None and not found.is_good()):
            found = self._tapes[kind] = self._recorded(agent, function, inputs)
            if len(self._tapes) > _MOST:
                del self._tapes[next(iter(self._tapes))]
        if found is None:
            return function(inputs), _never_again
        return found.play(inputs), partial(getattr, found, "plays")

    def _recorded(
        self, agent: nn.Module, function: Function[Result], inputs: Sequence[Tensor]
    ) -> tape.Tape[Result] | None:
        """The tape of a function; None if there can be none.

        The agent is afterwards as it was. So the first call, too, is played: a training that goes on after a kill makes
        its first call later than one that never stopped, and shall round as that does.
        """
        own = [tensor.clone() for tensor in inputs]
        before = copy.deepcopy(agent.state_dict())
        try:
            return tape.Tape(lambda: function(own), own, self._kept)
        except tape.NotRecordable:
            return None
        except ImportError as error:
            warnings.warn(f"updates are not compiled, and take longer: {error}", stacklevel=2)
            return None
        finally:
            agent.load_state_dict(before)


def _never_again() -> int:
    return 1
