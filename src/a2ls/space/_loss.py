"""An auxiliary loss: which elements of a short trajectory predict which others, by which operator."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from operator import index
from typing import Any

from a2ls.space._elements import KINDS, MSE, Element, Operator
from a2ls.space._text import LossText, default_horizon, latex_form, paper_form, read_elements, read_loss, text_form
from a2ls.space._validity import MAX_HORIZON, Layout, mask_length, semantic_problems

_FIELDS = ("horizon", "source", "target", "operator")


@dataclass(frozen=True, order=True, repr=False)
class Loss:
    """An auxiliary loss: predict the target elements from the source elements.

    Hashable, and ordered by its fields in turn. An instance is well formed (the masks have the right length)
    but not always valid: a search makes children first and asks for their `problems()` afterwards.

    Attributes:
        horizon: k, of the sequence s0 a0 r0 … sk ak rk.
        source: 3k+3 bits, in the order s, a, r at each step.
        target: 3k+3 bits in the same order.
        operator: How the prediction is compared with the target.
        predictor: Whether a network predicts the target from the source. Without it the source itself is compared with
            the target, as in CURL; no such loss is in the paper's search space.

    Example:
        >>> loss = Loss.parse("s0 a0 -> s1")
        >>> loss.to_bits()
        ('110000', '000100')
        >>> loss == Loss(1, (1, 1, 0, 0, 0, 0), (0, 0, 0, 1, 0, 0))
        True
    """

    horizon: int
    source: tuple[bool, ...]
    target: tuple[bool, ...]
    operator: Operator = MSE
    predictor: bool = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "horizon", index(self.horizon))
        if self.horizon < 0:
            raise ValueError(f"a horizon is not negative, got {self.horizon}")
        for name in ("source", "target"):
            object.__setattr__(self, name, _as_mask(name, getattr(self, name), self.horizon))
        if not isinstance(self.operator, Operator):
            raise TypeError(f"operator must be an Operator, such as Operator('mse'), got {self.operator!r}")

    # Meaning

    def problems(self, max_horizon: int = MAX_HORIZON) -> tuple[str, ...]:
        """Every reason why the loss cannot be trained, in words; none if it is valid.

        The rules are the paper's: a state in the source, a target that is not empty, a horizon in range. Without a
        predictor, both sides must have the same width, too.
        """
        return semantic_problems(
            self.horizon, self.source_elements, self.target_elements, max_horizon, predictor=self.predictor
        )

    def is_valid(self, max_horizon: int = MAX_HORIZON) -> bool:
        """Whether the loss has no `problems()`."""
        return not self.problems(max_horizon)

    def fits(self, layout: Layout) -> bool:
        """Whether the masks select nothing that the layout does not have at this horizon.

        Example:
            >>> Loss.parse("s0 -> r1").fits("released"), Loss.parse("s0 -> r1 @2").fits("released")
            (False, True)
        """
        length = mask_length(self.horizon, layout)
        return not any(self.source[length:] + self.target[length:])

    def canonical(self) -> Loss:
        """The loss with the earliest start and the shortest horizon that means the same.

        A loss is computed on sequences from everywhere in an episode, so only the steps between its elements
        count, not where the first of them stands.

        Example:
            >>> str(Loss.parse("s2 a2 -> s3 @7").canonical())
            's0 a0 -> s1'
        """
        return self._canonical

    # Kept, and on the masks themselves: a search asks for the forms of thousands of losses, again and again.
    @cached_property
    def _canonical(self) -> Loss:
        selected = [bit for bit, (a, b) in enumerate(zip(self.source, self.target, strict=True)) if a or b]
        first, last = (selected[0] // len(KINDS), selected[-1] // len(KINDS)) if selected else (0, 0)
        horizon = max(1, last - first)
        start, length = first * len(KINDS), mask_length(horizon)
        source, target = (
            (mask[start : start + length] + (False,) * length)[:length] for mask in (self.source, self.target)
        )
        if (source, target) == (self.source, self.target):
            return self
        return Loss(horizon, source, target, self.operator, self.predictor)

    @property
    def is_degenerate(self) -> bool:
        """Whether every element of the target is in the source, too, so that it need only be handed on.

        Something is left to learn where source and target are different views of a state: with random augmentations,
        which images have, and vectors by default have not.
        """
        target = set(self.target_elements)
        return bool(target) and target <= set(self.source_elements)

    @property
    def source_elements(self) -> tuple[Element, ...]:
        """The elements to predict from, in the order of the mask."""
        return _selected(self.source)

    @property
    def target_elements(self) -> tuple[Element, ...]:
        """The elements to predict, in the order of the mask."""
        return _selected(self.target)

    @property
    def transitions_needed(self) -> int:
        """How many consecutive transitions hold all selected elements.

        n transitions hold the states s0 … sn, but the actions and rewards only up to a(n-1), r(n-1): the
        action after the last state has not been taken yet.

        Example:
            >>> Loss.parse("s0 a0 -> s1").transitions_needed, Loss.parse("s0 -> a1").transitions_needed
            (1, 2)
        """
        elements = self.source_elements + self.target_elements
        return max([1, *(element.step + (element.kind != "s") for element in elements)])

    # Text

    @classmethod
    def parse(cls, text: str, max_horizon: int = MAX_HORIZON) -> Loss:
        r"""Read a valid loss from text.

        Commas, spacing, upper case and repeated elements do not matter. `@k` gives a horizon longer than the
        last element, `| operator` an operator other than mse, `| no predictor` that source and target are compared
        without one. The paper's notation and LaTeX are read too.

        Example:
            >>> print(Loss.parse("s1 a1 a2 a3 -> r0 r1 s2 s3"))
            s1 a1 a2 a3 -> r0 r1 s2 s3
            >>> print(Loss.parse(r"$\{s_t\} \rightarrow \{s_{t+1}\}$ @2 | bilinear +neg"))
            s0 -> s1 @2 | bilinear +neg

        Raises:
            InvalidLoss: With everything that is wrong with the text.
        """
        read = read_loss(text, max_horizon)
        return cls.from_elements(read.source, read.target, read.horizon, read.operator, predictor=read.predictor)

    def paper(self) -> str:
        """The paper's notation, `{s_t, a_t} -> {s_{t+1}}`; `parse` reads it back."""
        return paper_form(self._as_text())

    def latex(self) -> str:
        r"""LaTeX for math mode, `\{s_{t}, a_{t}\} \rightarrow \{s_{t+1}\}`; `parse` reads it back."""
        return latex_form(self._as_text())

    def _as_text(self) -> LossText:
        return LossText(self.horizon, self.source_elements, self.target_elements, self.operator, self.predictor)

    def __str__(self) -> str:
        return text_form(self._as_text())

    def __repr__(self) -> str:
        return f"<Loss {self}>"  # the masks are too long to be read

    # Other forms. None of them checks `problems()`: what can be made can be stored.

    @classmethod
    def from_elements(
        cls,
        source: Iterable[Element],
        target: Iterable[Element],
        horizon: int | None = None,
        operator: Operator = MSE,
        *,
        predictor: bool = True,
    ) -> Loss:
        """The loss of these elements, by default with the shortest horizon that holds them."""
        source, target = set(source), set(target)
        shortest = default_horizon([*source, *target])
        if horizon is None:
            horizon = shortest
        last = max(source | target, default=None)
        if last is not None and horizon < last.step:
            raise ValueError(f"the horizon {horizon} is shorter than the last element, {last}")
        sequence = [Element.at(bit) for bit in range(mask_length(horizon))]
        source_mask, target_mask = (tuple(element in side for element in sequence) for side in (source, target))
        return cls(horizon, source_mask, target_mask, operator, predictor)

    def to_bits(self) -> tuple[str, str]:
        """The two masks as in the paper, such as `("110000", "000100")`."""
        source, target = ("".join("01"[bit] for bit in mask) for mask in (self.source, self.target))
        return source, target

    @classmethod
    def from_bits(cls, source_bits: str, target_bits: str, operator: Operator = MSE, *, predictor: bool = True) -> Loss:
        """The loss of two masks written as 0 and 1; the horizon follows from their length."""
        length = len(source_bits)
        if length != len(target_bits) or length == 0 or length % len(KINDS):
            raise ValueError(
                "source and target bits must have the same length, a multiple of 3: "
                f"got {length} ({source_bits!r}) and {len(target_bits)} ({target_bits!r})"
            )
        strange = sorted(set(source_bits + target_bits) - {"0", "1"})
        if strange:
            raise ValueError(f"bits are written as 0 and 1, got {', '.join(map(repr, strange))}")
        source, target = (tuple(bit == "1" for bit in bits) for bits in (source_bits, target_bits))
        return cls(length // len(KINDS) - 1, source, target, operator, predictor)

    def to_dict(self) -> dict[str, Any]:
        """Plain values that JSON, TOML and tables hold and a person can read; `predictor` only where there is none."""
        values: dict[str, Any] = {
            "horizon": self.horizon,
            "source": " ".join(map(str, self.source_elements)),
            "target": " ".join(map(str, self.target_elements)),
            "operator": str(self.operator),
        }
        return values if self.predictor else values | {"predictor": False}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Loss:
        """The loss that `to_dict` wrote."""
        if sorted(set(values) - {"predictor"}) != sorted(_FIELDS):
            raise ValueError(f"a loss has the fields {', '.join(_FIELDS)}, got {', '.join(values) or 'none'}")
        horizon = values["horizon"]
        if not isinstance(horizon, int):
            raise ValueError(f"the horizon of a loss is a whole number, got {horizon!r}")
        source, target, operator = (str(values[name]) for name in ("source", "target", "operator"))
        return cls.from_elements(
            read_elements(source),
            read_elements(target),
            horizon,
            Operator.parse(operator),
            predictor=bool(values.get("predictor", True)),
        )

    def to_json(self) -> str:
        """One line of JSON."""
        return json.dumps(self.to_dict())

    @classmethod
    def from_json(cls, text: str) -> Loss:
        """The loss that `to_json` wrote."""
        values = json.loads(text)
        if not isinstance(values, dict):
            raise ValueError(f"a loss is a JSON object with {', '.join(_FIELDS)}, got {text!r}")
        return cls.from_dict(values)


def _as_mask(name: str, bits: Iterable[Any], horizon: int) -> tuple[bool, ...]:
    bits = tuple(bits)
    expected = mask_length(horizon)
    if len(bits) != expected:
        raise ValueError(f"the {name} mask of horizon {horizon} must have 3k+3 = {expected} bits, got {len(bits)}")
    if not all(map((0, 1).__contains__, bits)):
        strange = next(bit for bit in bits if bit not in (0, 1))
        raise ValueError(f"a mask holds booleans (or 0 and 1), got {strange!r} in the {name}")
    return tuple(map(bool, bits))


def _selected(mask: tuple[bool, ...]) -> tuple[Element, ...]:
    return tuple(Element.at(bit) for bit, selected in enumerate(mask) if selected)
