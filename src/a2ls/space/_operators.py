"""How a prediction is compared with its target."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, cast, get_args

from a2ls._errors import did_you_mean, nearest

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
