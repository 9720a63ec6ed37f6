"""What a loss is made of: elements of a trajectory, and the operator that compares a prediction with its target."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache, total_ordering
from typing import Literal, cast, get_args

from a2ls._errors import did_you_mean, nearest

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

    @staticmethod
    @cache  # There are few, and a search asks for them again and again.
    def at(bit: int) -> Element:
        """The element that a bit of a mask stands for."""
        step, kind = divmod(bit, len(KINDS))
        return Element(KINDS[kind], step)

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


Similarity = Literal["inner", "bilinear", "cosine", "mse", "nmse"]
SIMILARITIES: tuple[Similarity, ...] = get_args(Similarity)
"""Those of the paper."""
_KNOWN: list[str] = list(SIMILARITIES)


def register_similarity(name: str) -> None:
    """Let an `Operator` have one more name; `a2ls.auxiliary.register_operator` says what it computes."""
    if not name.isidentifier() or name != name.lower():
        raise ValueError(f"the name of an operator is {name!r}, but must be one word in lower case")
    if name not in _KNOWN:
        _KNOWN.append(name)


@dataclass(frozen=True, order=True)
class Operator:
    """A similarity measure, with or without un-paired targets as negative samples.

    Example:
        >>> Operator.parse("bilinear +neg")
        Operator(similarity='bilinear', negatives=True)
        >>> str(Operator("mse"))
        'mse'
    """

    similarity: Similarity
    negatives: bool = False

    def __post_init__(self) -> None:
        if self.similarity not in _KNOWN:
            raise ValueError(_unknown_similarity(self.similarity))
        object.__setattr__(self, "negatives", bool(self.negatives))

    @classmethod
    def parse(cls, text: str) -> Operator:
        """Read `mse` or `mse +neg`, in any case and spacing; the paper's `N-MSE` is read as `nmse`."""
        similarity, plus, negatives = (part.strip().lower() for part in text.partition("+"))
        similarity = similarity.replace("-", "")
        problems = []
        if similarity not in _KNOWN:
            problems.append(_unknown_similarity(similarity))
        if plus and negatives not in ("neg", "negatives"):
            problems.append(f"only +neg may follow the similarity of an operator, got '+{negatives}'")
        if problems:
            raise ValueError("; ".join(problems))
        return cls(cast("Similarity", similarity), bool(plus))

    def __str__(self) -> str:
        return f"{self.similarity} +neg" if self.negatives else self.similarity


def _unknown_similarity(word: str) -> str:
    question = did_you_mean(nearest(word, _KNOWN))
    allowed = f"an operator is one of {', '.join(_KNOWN)}, each with or without +neg"
    return f"{word!r} is not an operator" + (f"; {question}" if question else "") + f" ({allowed})"


# The ten operators of the space: five similarities, each without and with negatives.
OPERATORS: tuple[Operator, ...] = tuple(
    Operator(similarity, negatives) for similarity in SIMILARITIES for negatives in (False, True)
)
# What the paper keeps after it pruned the space (section 3.2.1), hence the default everywhere.
MSE = Operator("mse")
