"""Watching: the Python objects that a function may read, and whether they are what they were."""

from __future__ import annotations

import types
from collections import deque
from collections.abc import Iterable, Iterator
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
_NOT_ENTERED = (
    *(*_PLAIN, Tensor, torch.Generator, type),
    *(types.ModuleType, types.FunctionType, types.BuiltinFunctionType, types.MethodType),
)
_GROUPS = ["param_groups", "state"]
_PARTS = {"_parameters", "_buffers", "_modules"}
_OF_EVERY_MODULE = vars(nn.Module()).keys() - {"training", *_PARTS}
_END = object()


class Watch:
    """All that can be reached from an object, as it is now.

    Modules, optimizers, dictionaries, lists and plain objects are entered. Tensors are compared by identity, since
    what they hold is read anew at each call, and numbers and strings by their values.

    A comparison takes place before each call, when none of these objects is in the processor's caches. So it touches
    as few as it can, and iterates in C: over the values of dictionaries and over lists, by identity, and over tuples
    of those attributes of modules that are plain values, by equality. Of an optimizer's state it is the dictionary
    that is compared, and how many parameters it has.
    """

    def __init__(self, state: object) -> None:
        self._views: list[Iterable[Any]] = []
        self._names: list[str] = []
        self._getters: list[itemgetter[Any]] = []
        self._owners: list[dict[str, Any]] = []
        self._attributes: list[tuple[str, list[str]]] = []
        self._sized: list[dict[Any, Any]] = []
        self._states: list[dict[Any, dict[str, Any]]] = []
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
        self._views.append([_END])
        self._values, self._plain, self._sizes = list(self._now()), self._plain_now(), sum(map(len, self._sized))
        self._hooked = sum(map(len, self._hooks))

    def _enter(self, path: str, found: Any) -> list[tuple[str, Any]]:
        """Watch an object, and return what is in it, by name."""
        if isinstance(found, (tuple, frozenset)):  # Cannot change, but what is in them can.
            return [(f"{path}[{i}]", value) for i, value in enumerate(found)]
        view: Iterable[Any]
        if isinstance(found, (list, set, deque)):
            inside, view = [(f"{path}[{i}]", value) for i, value in enumerate(found)], found
        elif isinstance(found, dict):
            inside, view = [(f"{path}[{_key(key)}]", value) for key, value in found.items()], found.values()
        elif isinstance(found, torch.optim.Optimizer):
            self._states.append(found.state)
            self._sized.append(found.state)
            self._watch(_Chosen(vars(found), _GROUPS), [(f"{path}.{key}", 0) for key in _GROUPS])
            return [(f"{path}.param_groups", found.param_groups)]
        elif isinstance(found, nn.Module):
            attributes = {key: value for key, value in vars(found).items() if value or key not in _OF_EVERY_MODULE}
            self._sized.append(vars(found))
            self._hooks += [value for key, value in vars(found).items() if key.endswith("hooks")]
            plain = [key for key, value in attributes.items() if _is_plain(value)]
            plain = plain if len(plain) > 1 else plain * 2  # Of one key, a getter would give no tuple.
            self._getters.append(itemgetter(*plain))
            self._owners.append(vars(found))
            self._attributes.append((path, plain))
            others = [key for key in attributes if key not in plain and key not in _PARTS]
            inside, view = [(f"{path}.{key}", attributes[key]) for key in others], _Chosen(vars(found), others)
            self._watch(view, inside)
            return inside + [(path, attributes[key]) for key in _PARTS]
        elif hasattr(found, "__dict__"):
            inside, view = [(f"{path}.{key}", value) for key, value in vars(found).items()], vars(found).values()
        else:
            return []
        if not inside and isinstance(found, dict):
            self._sized.append(found)
        self._watch(view, inside)
        return inside

    def owned(self) -> set[int]:
        """The ids of the tensors that optimizers keep, and nobody else moves.

        They are as many as all others together. An optimizer that loads a state has another dictionary of them.
        """
        return {id(value) for state in self._states for kept in state.values() for value in kept.values()}

    def _watch(self, view: Iterable[Any], inside: list[tuple[str, Any]]) -> None:
        if inside:
            self._views.append(view)
            self._names += [name for name, _ in inside]

    def _now(self) -> Iterator[Any]:
        return chain.from_iterable(self._views)

    def _plain_now(self) -> list[Any]:
        return list(map(call, self._getters, self._owners))

    def change(self) -> str | None:
        """What is not as it was, in words."""
        if self._newest_hook != RemovableHandle.next_id:  # Hooks, of any object, are numbered.
            if sum(map(len, self._hooks)) != self._hooked:
                return "a hook of a module was added"
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
            return "something was added to what the function may read, or removed from it"
        self._values, self._plain = now, plain
        return None


class _Chosen:
    """Some values of a dictionary."""

    def __init__(self, found: dict[str, Any], keys: list[str]) -> None:
        self._found, self._keys = found, keys

    def __iter__(self) -> Iterator[Any]:
        return map(self._found.__getitem__, self._keys)


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
