"""When to record a function, when to run what was recorded, and when to leave it to PyTorch."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar

import torch
from torch import Tensor
from torch.utils._pytree import tree_map_only

from a2ls.recorder._loading import require_machine
from a2ls.recorder._recording import difference, may_have_gradient, record
from a2ls.recorder._watch import Watch

if TYPE_CHECKING:
    from a2ls.recorder._tape import Tape

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")

_MOST_KINDS = 32
_MOST_ATTEMPTS = 2
"""Calls of a kind that do not yet do what the next one will, for what they set up."""
_MOST_RENEWALS = 16
"""Recordings of a kind because something has changed."""
_DESCRIPTIONS = (bool, int, float, complex, str, type(None), type, tuple, torch.Size, torch.dtype)
"""What the description of a call may hold."""
_BY_PYTORCH = object()
"""In place of a result: PyTorch is to run this call."""
_ALONE = threading.RLock()
"""Held by the thread that records or plays. One for all functions: several may share weights and generators, which are
not what they were while one of these is recorded and undone."""


class NotRecordable(Exception):
    """A function that must be recorded cannot be."""


@dataclass
class _Kind(Generic[Result]):
    """Calls with arguments of the same structure, shapes, types and Python values."""

    calls: int = 0
    attempts: int = 0
    renewals: int = 0
    next_check: int = 2
    tape: Tape[Result] | None = None
    reason: str | None = None
    """Why PyTorch runs it."""


class Recorded(Generic[Parameters, Result]):
    """A function that is called as before, and runs faster.

    The first call of a kind is recorded, undone, and run again from the recording, as are all that follow, so that all
    round alike. A kind has arguments of the same structure, and of the same shapes and types of tensors, and the same
    Python values. Calls that cannot be recorded are run by PyTorch, and a warning says why. A call that sets up what
    the next one finds, such as the first step of an optimizer, is run by PyTorch, and the next one is recorded.

    The second call of a kind, the tenth, the hundredth and so on are recorded and compared before they are run.
    Gradients that the function leaves in its parameters are there afterwards; to clear them at its end is faster.

    What the function writes is tensors, and nothing else: a call that changes Python objects cannot be recorded, and
    neither can one that reads numbers out of tensors. What Python objects it reads must be reachable from `state`: if
    they have changed, it is recorded anew. So it is if a tensor was replaced, or has other memory or another layout.
    Threads may share it: they wait for each other.

    Args:
        function: Works on tensors on the CPU, which may be differentiated and optimised in it. Its arguments are
            tensors, Python numbers, strings and None, also in lists, tuples and dictionaries.
        state: What the function reads besides its arguments: an object, or several in a tuple. If not given, it is all
            that can be reached from the function: the object of a method, and the outer variables of others.
        required: Whether to raise `NotRecordable` where PyTorch would have to run a call.

    Example:
        >>> update = Recorded(agent.update, state=agent)
        >>> metrics = update(batch, actor=True)
    """

    def __init__(self, function: Callable[Parameters, Result], state: object = None, *, required: bool = False) -> None:
        self._function = function
        self._state = function if state is None else state
        self._required = required
        self._kinds: dict[Hashable, _Kind[Result]] = {}

    def __call__(self, *args: Parameters.args, **kwargs: Parameters.kwargs) -> Result:
        """What the function returns; tensors in it are the caller's."""
        if torch._C._len_torch_dispatch_stack():
            return self._function(*args, **kwargs)
        with _ALONE:
            result: Result = self._called(args, kwargs)
        return self._function(*args, **kwargs) if result is _BY_PYTORCH else result

    def _called(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """What the function returns, or `_BY_PYTORCH`."""
        if not _machine_is_there():
            return _BY_PYTORCH
        tensors: list[Tensor] = []
        described: list[Any] = [torch.is_grad_enabled(), torch.is_inference_mode_enabled(), torch.get_default_dtype()]
        if torch.is_autocast_enabled("cpu"):
            described.append(torch.get_autocast_dtype("cpu"))
        _flatten((args, kwargs), tensors, described)
        key = tuple(described)
        try:
            kind = self._kinds.get(key) or self._kind(key, tensors)
        except TypeError:  # An argument that has no hash.
            kind = self._kind(key, tensors)
        kind.calls += 1
        if kind.reason is not None:
            return _BY_PYTORCH
        tape = kind.tape
        if tape is not None:
            obstacle = tape.obstacle()
            if obstacle is None:
                tape.write(tensors)
                if tape.plays + 1 == kind.next_check:
                    return self._checked(kind, tape, args, kwargs)
                return tape.play()
            kind.tape, kind.attempts = None, 0
            kind.renewals += 1
            if kind.renewals > _MOST_RENEWALS:
                found = f"it would have to be recorded again and again: {obstacle}"
                self._give_up(kind, f"{found}; what changes could be a tensor, such as a buffer of a module")
                return _BY_PYTORCH
        return self._recorded(kind, tensors, args, kwargs)

    def report(self) -> str:
        """The kinds of calls so far: how they are run, and if by PyTorch, why."""
        lines = []
        for number, kind in enumerate(self._kinds.values(), start=1):
            if kind.tape is None:
                how = kind.reason or "not recorded yet"
            else:
                left = ", ".join(sorted(set(kind.tape.calls))) or "none"
                how = f"{kind.tape.instructions} instructions, {len(kind.tape.calls)} calls of PyTorch: {left}"
            lines.append(f"kind {number}, {kind.calls} calls: {how}")
        return "\n".join(lines) or "no calls yet"

    @property
    def reasons(self) -> list[str]:
        """Why kinds of calls are run by PyTorch, for those that are."""
        return [kind.reason for kind in self._kinds.values() if kind.reason is not None]

    def _kind(self, described: tuple[Any, ...], tensors: Sequence[Tensor]) -> _Kind[Result]:
        odd = [leaf for leaf in described if not isinstance(leaf, _DESCRIPTIONS)]
        key = f"a {type(odd[0]).__name__}" if odd else described
        if key not in self._kinds and len(self._kinds) >= _MOST_KINDS:
            key = "too many"
        kind = self._kinds.get(key)
        if kind is not None:
            return kind
        kind = self._kinds[key] = _Kind()
        if key == "too many":
            found = f"it was called with arguments of more than {_MOST_KINDS} kinds, and each needs a recording; "
            self._give_up(kind, found + "a number that is always another should be a tensor")
        elif odd:
            self._give_up(kind, f"an argument is {key}, and neither a tensor nor a Python number, string or None")
        elif any(t.device.type != "cpu" or t.requires_grad or t.layout != torch.strided for t in tensors):
            self._give_up(kind, "an argument is not a plain tensor on the CPU, or requires a gradient")
        return kind

    def _recorded(
        self, kind: _Kind[Result], tensors: Sequence[Tensor], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Result:
        """Do a call that there is no tape for, and make one if it can be made.

        Where it cannot, the call has been done once, by PyTorch: nothing is undone in vain.
        """
        own = [tensor.clone() for tensor in tensors]
        call = self._call_with(own, args, kwargs)
        watch = Watch(self._state)
        first = record(call)
        obstacle, changed = first.obstacle, watch.change()
        if obstacle is None and not watch.is_whole:
            obstacle = "its state has too many parts to be watched"
        if obstacle is None and any(map(first.wrote_to, own)):
            obstacle = "it writes to a tensor that it is given"
        if obstacle is None and changed is None:
            gradients = [(tensor, tensor.grad) for tensor in first.outside() if may_have_gradient(tensor)]
            after = [(generator, generator.get_state()) for generator in first.generators]
            first.exchange()
            # Generators go on: if Python saw numbers drawn from them, it now sees others.
            second = record(call)
            second.exchange()
            changed = second.obstacle or watch.change() or difference(first.signature(), second.signature())
            if changed is None:
                from a2ls.recorder._tape import Tape  # noqa: PLC0415 (needs Numba)

                second.rewind()
                first.rewind()
                tape = kind.tape = Tape(second, own, watch)
                kind.next_check = 2
                del first, second
                return tape.play()
            first.exchange()
            for generator, state in after:
                generator.set_state(state)
            for tensor, gradient in gradients:
                tensor.grad = gradient
        for mine, tensor in zip(own, tensors, strict=True):
            if first.wrote_to(mine):
                tensor.copy_(mine)
        kind.attempts += 1
        if obstacle is not None:
            self._give_up(kind, obstacle)
        elif kind.attempts >= _MOST_ATTEMPTS:
            self._give_up(kind, f"it does not do the same each time: {changed}")
        return first.result

    def _checked(
        self, kind: _Kind[Result], tape: Tape[Result], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Result:
        """Play a tape, if a call of the function still does what is on it."""
        now = record(self._call_with(tape.inputs, args, kwargs))
        wrong = now.obstacle or difference(tape.signature, now.signature())
        if wrong is not None:
            kind.tape = None
            self._give_up(kind, f"it does not do the same each time: {wrong}")
            return now.result
        now.exchange()
        now.rewind()
        kind.next_check = 10 if kind.next_check == 2 else 10 * kind.next_check
        return tape.play()

    def _call_with(self, own: Sequence[Tensor], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Callable[[], Result]:
        """A call with other tensors."""
        others = iter(own)
        args, kwargs = tree_map_only(Tensor, lambda _: next(others), (args, kwargs))
        return lambda: self._function(*args, **kwargs)

    def _give_up(self, kind: _Kind[Result], reason: str) -> None:
        kind.reason = reason
        name = getattr(self._function, "__qualname__", repr(self._function))
        if self._required:
            raise NotRecordable(f"{name} cannot be recorded: {reason}")
        warnings.warn(f"{name} is run by PyTorch, which takes longer: {reason}", stacklevel=5)


def _flatten(tree: Any, tensors: list[Tensor], described: list[Any]) -> None:
    """Append the tensors in nested dictionaries, lists and tuples, and a description of all but their numbers."""
    if isinstance(tree, Tensor):
        tensors.append(tree)
        described += tree.shape, tree.dtype, tree.requires_grad, tree.is_cpu
    elif isinstance(tree, dict):
        described += type(tree), tuple(tree)
        for value in tree.values():
            _flatten(value, tensors, described)
    elif isinstance(tree, (list, tuple)):
        described += type(tree), len(tree)
        for value in tree:
            _flatten(value, tensors, described)
    else:
        described += type(tree), tree


@cache
def _machine_is_there() -> bool:
    """Whether instructions can be run here; if not, that is said once."""
    try:
        require_machine()
    except ImportError as error:
        warnings.warn(f"updates are run by PyTorch, and take longer: {error}", stacklevel=4)
        return False
    return True
