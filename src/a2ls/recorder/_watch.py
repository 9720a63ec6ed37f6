"""Watching: the Python objects that a function may read, and whether they are what they were."""

from __future__ import annotations

import types
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from copyreg import _slotnames  # type: ignore[attr-defined]
from functools import partial
from itertools import chain
from operator import call, is_, itemgetter
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

_MOST = 100_000
"""Objects that are watched. To compare more would take longer than to run a function by PyTorch."""
_PLAIN = (bool, int, float, complex, str, bytes, type(None), torch.dtype, torch.device)
"""Compared by their values; all others are compared by identity."""
_NOT_ENTERED = (*_PLAIN, torch.Generator, type, types.ModuleType, types.BuiltinFunctionType)
_PARTS = {"_parameters", "_buffers", "_modules"}
_OF_EVERY_MODULE = vars(nn.Module()).keys() - {"training", *_PARTS}
_END = object()
_OTHER_PARTS = "something was added to what the function may read, or removed from it"


class Watch:
    """All that can be reached from an object, as it is now.

    Modules, optimizers, dictionaries, lists and plain objects are entered, and functions: the object of a method, and
    outer variables. Tensors are compared by identity, since what they hold is read anew at each call, and numbers and
    strings by their values. Global variables and attributes of classes are not compared.

    A comparison takes place before each call, when none of these objects is in the processor's caches. So it touches
    as few as it can, and iterates in C: over the values of dictionaries and over lists, by identity, and over tuples
    of those attributes of modules that are plain values, by equality.
    """

    def __init__(self, state: object) -> None:
        self._views: list[Iterable[Any]] = []
        self._names: list[str] = []
        self._getters: list[itemgetter[Any]] = []
        self._owners: list[dict[str, Any]] = []
        self._attributes: list[tuple[str, list[str]]] = []
        self._sized: list[dict[Any, Any]] = []
        self._hooks: list[dict[int, Any]] = []
        self._newest_hook = RemovableHandle.next_id
        self._seen: dict[int, object] = {}  # What has an id must live for it to be its.
        waiting = deque([(type(state).__name__, state)])
        while waiting and len(self._names) < _MOST:
            path, found = waiting.popleft()
            if id(found) not in self._seen and not isinstance(found, _NOT_ENTERED):
                self._seen[id(found)] = found
                waiting += self._enter(path, found)
        self.is_whole = not waiting
        """Whether there was not too much to watch."""
        self._tensors = [found for found in self._seen.values() if isinstance(found, Tensor)]
        self._views.append([_END])
        self._values, self._plain, self._sizes = list(self._now()), self._plain_now(), sum(map(len, self._sized))
        self._hooked = self._hooks_now()

    def _enter(self, path: str, found: Any) -> list[tuple[str, Any]]:
        """Watch an object, and return what is in it, by name."""
        fixed = _inside_fixed(path, found)
        if fixed is not None:
            return fixed
        if isinstance(found, dict):
            return self._watch(found.values(), [(f"{path}[{_key(key)}]", value) for key, value in found.items()])
        if isinstance(found, (list, set, deque)):
            return self._watch(found, [(f"{path}[{i}]", value) for i, value in enumerate(found)])
        ways: dict[type, Callable[[str, Any], list[tuple[str, Any]]]] = {
            nn.Module: self._enter_module,
            torch.optim.Optimizer: self._enter_optimizer,
            types.FunctionType: self._enter_function,
            object: self._enter_plain,
        }
        return next(enter for kind, enter in ways.items() if isinstance(found, kind))(path, found)

    def _enter_module(self, path: str, found: nn.Module) -> list[tuple[str, Any]]:
        attributes = {key: value for key, value in vars(found).items() if value or key not in _OF_EVERY_MODULE}
        self._sized.append(vars(found))
        self._hooks += [value for key, value in vars(found).items() if key.endswith("hooks")]
        plain = [key for key, value in attributes.items() if _is_plain(value)]
        plain = plain if len(plain) > 1 else plain * 2  # Of one key, a getter would give no tuple.
        self._getters.append(itemgetter(*plain))
        self._owners.append(vars(found))
        self._attributes.append((path, plain))
        others = [key for key in attributes if key not in plain and key not in _PARTS]
        inside = [(f"{path}.{key}", attributes[key]) for key in others]
        if others:
            self._watch(_Each(vars(found).__getitem__, others), inside)
        return inside + [(path, attributes[key]) for key in _PARTS]

    def _enter_optimizer(self, path: str, found: torch.optim.Optimizer) -> list[tuple[str, Any]]:
        own = vars(found)
        self._watch(own.values(), [(f"{path}.{key}", value) for key, value in own.items()])
        hooks = [key for key in own if key.endswith("hooks")]
        self._hooks += [own[key] for key in hooks]
        # Defaults are for groups that are added later, and hooks that are added are counted.
        passed_over = {"defaults", *(key for key in hooks if not own[key])}
        return [(f"{path}.{key}", value) for key, value in own.items() if key not in passed_over]

    def _enter_function(self, path: str, found: types.FunctionType) -> list[tuple[str, Any]]:
        cells = found.__closure__ or ()
        names = zip(found.__code__.co_freevars, cells, strict=True)
        inside = self._watch(_Each(_content, cells), [(name, _content(cell)) for name, cell in names])
        return [*inside, (path, found.__defaults__), (path, found.__kwdefaults__), (path, vars(found))]

    def _enter_plain(self, path: str, found: Any) -> list[tuple[str, Any]]:
        """An object of any other class: the attributes that have slots, and those in its dictionary."""
        inside: list[tuple[str, Any]] = []
        slots = _slotnames(type(found))
        if slots:
            view = _Each(partial(_attribute, found), slots)
            inside += self._watch(view, [(f"{path}.{key}", _attribute(found, key)) for key in slots])
        if hasattr(found, "__dict__"):
            own = vars(found)
            inside += self._watch(own.values(), [(f"{path}.{key}", value) for key, value in own.items()])
        return inside

    def _watch(self, view: Iterable[Any], inside: list[tuple[str, Any]]) -> list[tuple[str, Any]]:
        """Compare from now on what a view iterates over, which is now this, by name."""
        self._views.append(view)
        self._names += [name for name, _ in inside]
        return inside

    def _now(self) -> Iterator[Any]:
        return chain.from_iterable(self._views)

    def _plain_now(self) -> list[Any]:
        return list(map(call, self._getters, self._owners))

    def _hooks_now(self) -> int:
        """How many hooks modules, optimizers and tensors have."""
        of_tensors = chain.from_iterable(map(_hooks_of, self._tensors))
        return sum(map(len, self._hooks)) + sum(len(hooks) for hooks in of_tensors if hooks is not None)

    def change(self) -> str | None:
        """What is not as it was, in words."""
        try:
            return self._change()
        except KeyError:
            return _OTHER_PARTS

    def _change(self) -> str | None:
        if self._newest_hook != RemovableHandle.next_id:  # Hooks, of any object, are numbered.
            if self._hooks_now() != self._hooked:
                return "a hook was added"
            self._newest_hook = RemovableHandle.next_id
        same = all(map(is_, self._now(), self._values)) and sum(map(len, self._sized)) == self._sizes
        if same and self._plain_now() == self._plain:
            return None
        now, plain = list(self._now()), self._plain_now()
        for (path, keys), old, new in zip(self._attributes, self._plain, plain, strict=True):
            for key, before, after in zip(keys, old, new, strict=True):
                if not _equal(before, after):
                    return f"{path}.{key} changed from {_shown(before)} to {_shown(after)}"
        for name, before, after in zip(self._names, self._values, now, strict=False):
            if not _equal(before, after):
                return f"{name} changed from {_shown(before)} to {_shown(after)}"
        if len(now) != len(self._values) or sum(map(len, self._sized)) != self._sizes:
            return _OTHER_PARTS
        self._values, self._plain = now, plain
        return None


class _Each:
    """What a function gives for each of some keys, asked for anew whenever it is iterated over."""

    def __init__(self, get: Callable[[Any], Any], keys: Iterable[Any]) -> None:
        self._get, self.keys = get, list(keys)

    def __iter__(self) -> Iterator[Any]:
        return map(self._get, self.keys)


def _inside_fixed(path: str, found: Any) -> list[tuple[str, Any]] | None:
    """What is in an object that always holds the same, though these may change; None of other objects."""
    if isinstance(found, (tuple, frozenset)):
        return [(f"{path}[{i}]", value) for i, value in enumerate(found)]
    if isinstance(found, Tensor):
        return [(f"the hooks of {path}", hooks) for hooks in _hooks_of(found)]
    if isinstance(found, types.MethodType):
        return [(type(found.__self__).__name__, found.__self__), (path, found.__func__)]
    if isinstance(found, partial):
        return [(path, found.func), (path, found.args), (path, found.keywords)]
    return None


def _content(cell: types.CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # A variable that has no value yet.
        return None


def _hooks_of(tensor: Tensor) -> tuple[dict[int, Any] | None, dict[int, Any] | None]:
    return tensor._backward_hooks, tensor._post_accumulate_grad_hooks


def _attribute(found: object, name: str) -> Any:
    return getattr(found, name, None)


def _key(key: Any) -> str:
    return repr(key) if isinstance(key, _PLAIN) else type(key).__name__


def _is_plain(value: Any) -> bool:
    return all(map(_is_plain, value)) if type(value) is tuple else isinstance(value, _PLAIN)


def _shown(value: Any) -> str:
    return repr(value) if isinstance(value, _PLAIN) else f"one {type(value).__name__}"


def _equal(before: Any, after: Any) -> bool:
    if before is after:
        return True
    if type(before) is not type(after):
        return False
    if isinstance(before, tuple):
        return len(before) == len(after) and all(map(_equal, before, after))
    return isinstance(before, _PLAIN) and bool(before == after)
