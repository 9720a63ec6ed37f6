"""One element of a trajectory: a state, an action or a reward at a step."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import total_ordering
from typing import Literal, get_args

Kind = Literal["s", "a", "r"]
# The order of the bits at each step of a mask, as in the paper: 110001 is {s_t, a_t, r_{t+1}}.
KINDS: tuple[Kind, ...] = get_args(Kind)

ELEMENT_HINT = "an element looks like s0, a3 or r10, or s_t, s_{t+3}"

# At most nine digits: no horizon needs more, and int() refuses some thousands of them with an obscure error.
_ELEMENT = re.compile(
    r"(?P<kind>[sar])"
    r"(?:_?(?P<plain>[0-9]{1,9})"  # s3
    r"|_t(?:\+(?P<loose>[0-9]{1,9}))?"  # s_t, and s_t+3 where someone left out the braces
    r"|_\{\s*t\s*(?:\+\s*(?P<braced>[0-9]{1,9})\s*)?\})",  # s_{t}, s_{t+3}
    re.IGNORECASE,
)


@total_ordering
@dataclass(frozen=True)
class Element:
    """The state `s`, action `a` or reward `r`, `step` steps after the start of the sequence.

    Elements are ordered as the bits of a mask: by step, and s, a, r at each step.

    Example:
        >>> str(Element("s", 3)), Element.parse("a_{t+1}")
        ('s3', Element(kind='a', step=1))
    """

    kind: Kind
    step: int

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"the kind of an element is one of {', '.join(KINDS)}, got {self.kind!r}")
        if self.step < 0:
            raise ValueError(f"the step of an element counts from 0, got {self.step}")

    @classmethod
    def parse(cls, text: str) -> Element:
        """Read `s3`, `s_t`, `s_{t+3}`, in lower or upper case."""
        match = _ELEMENT.fullmatch(text.strip())
        if match is None:
            raise ValueError(f"{text!r} is not an element: {ELEMENT_HINT}")
        step = match["plain"] or match["loose"] or match["braced"] or "0"
        kind = next(kind for kind in KINDS if kind == match["kind"].lower())
        return cls(kind, int(step))

    @classmethod
    def at(cls, bit: int) -> Element:
        """The element that a bit of a mask stands for."""
        step, kind = divmod(bit, len(KINDS))
        return cls(KINDS[kind], step)

    @property
    def bit(self) -> int:
        """The place of the element in a mask, counted from 0."""
        return len(KINDS) * self.step + KINDS.index(self.kind)

    def paper(self) -> str:
        """The paper's notation: `s_t`, `s_{t+3}`."""
        return f"{self.kind}_t" if self.step == 0 else f"{self.kind}_{{t+{self.step}}}"

    def latex(self) -> str:
        """The notation of the paper's source: `s_{t}`, `s_{t+3}`."""
        return f"{self.kind}_{{t}}" if self.step == 0 else self.paper()

    def __lt__(self, other: object) -> bool:
        if not isinstance(other, Element):
            return NotImplemented
        return self.bit < other.bit

    def __str__(self) -> str:
        return f"{self.kind}{self.step}"
