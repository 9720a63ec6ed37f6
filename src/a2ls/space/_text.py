"""Reading and writing a loss as text: ours, the paper's and LaTeX. One function reads all three."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from a2ls.space._elements import ELEMENT_HINT, MSE, Element, Operator
from a2ls.space._validity import InvalidLoss, semantic_problems

_ARROW = re.compile(r"[-=]+>|→|⟶|\\(?:long)?rightarrow(?![a-z])|\\to(?![a-z])", re.IGNORECASE)
# Typesetting that says nothing: math mode, \left and \right, thin spaces. \{ and \} become plain braces.
_TYPESETTING = re.compile(r"\$|\\(?:left|right)(?![a-z])|\\[,;! ]|\\(?=[{}])", re.IGNORECASE)
# A word is anything between spaces, commas and braces, but s_{t + 3} is one word.
_WORD = re.compile(r"[^\s,{}]+_\{[^{}]*\}|[^\s,{}]+")
_HORIZON = re.compile(r"@\s*([^\s|@]*)")
NO_PREDICTOR = "no predictor"


class LossText(NamedTuple):
    """What a text says."""

    horizon: int
    source: tuple[Element, ...]
    target: tuple[Element, ...]
    operator: Operator
    predictor: bool = True


def has_arrow(text: str) -> bool:
    """Whether a text looks like a loss and not like a name."""
    return _ARROW.search(text) is not None


def default_horizon(elements: Sequence[Element]) -> int:
    """The shortest horizon that holds the elements: the last step, but a sequence has at least one."""
    return max([1, *(element.step for element in elements)])


def read_loss(text: str, max_horizon: int) -> LossText:
    """Read a loss in any of the notations.

    Raises:
        InvalidLoss: With everything that is wrong with the text, whether of form or of meaning.
    """
    reasons: list[str] = []
    source_text, *target_texts = (_TYPESETTING.sub(" ", side) for side in _ARROW.split(text))
    if not target_texts:
        reasons.append("there is no arrow: a loss is written source -> target, such as s0 a0 -> s1")
        source_text, target_texts = "", [source_text]
    elif len(target_texts) > 1:
        reasons.append(f"there are {len(target_texts)} arrows where one is expected")
    tail = " ".join(target_texts)
    horizons = _HORIZON.findall(tail)
    target_text, *suffixes = _HORIZON.sub(" ", tail).split("|")
    operator_texts = [suffix for suffix in suffixes if " ".join(suffix.lower().split()) != NO_PREDICTOR]

    source = _read_elements(source_text, reasons)
    target = _read_elements(target_text, reasons)
    horizon = _read_horizon(horizons, (*source, *target), reasons)
    operator = _read_operator(operator_texts, reasons)
    predictor = len(operator_texts) == len(suffixes)
    if has_arrow(text):  # without one it is unknown which elements are the source
        reasons += semantic_problems(horizon, source, target, max_horizon, predictor=predictor)
    if reasons:
        raise InvalidLoss(text, tuple(reasons))
    return LossText(horizon, source, target, operator, predictor)


def read_elements(text: str) -> tuple[Element, ...]:
    """Read a list of elements such as `s0 a0`; a ValueError names every word that is none."""
    reasons: list[str] = []
    elements = _read_elements(text, reasons)
    if reasons:
        raise ValueError("; ".join(reasons))
    return elements


def _read_elements(text: str, reasons: list[str]) -> tuple[Element, ...]:
    elements = set()
    for word in _WORD.findall(text):
        try:
            elements.add(Element.parse(word))
        except ValueError:
            reasons.append(f"{word!r} is not an element: {ELEMENT_HINT}")
    return tuple(sorted(elements))


def _read_horizon(horizons: Sequence[str], elements: Sequence[Element], reasons: list[str]) -> int:
    shortest = default_horizon(elements)
    if not horizons:
        return shortest
    if len(horizons) > 1:
        reasons.append(f"there are {len(horizons)} horizons where one is expected")
    digits = horizons[0]
    if not re.fullmatch(r"[0-9]{1,9}", digits):
        reasons.append(f"'@{digits}' is not a horizon: write @ and a whole number, such as @3")
        return shortest
    horizon = int(digits)
    last_step = max((element.step for element in elements), default=0)
    if horizon < last_step:
        last = max(elements)
        reasons.append(f"the horizon @{horizon} is shorter than the last element, {last}")
        return shortest
    return horizon


def _read_operator(operator_texts: Sequence[str], reasons: list[str]) -> Operator:
    if not operator_texts:
        return MSE
    if len(operator_texts) > 1:
        reasons.append(f"there are {len(operator_texts)} operators where one is expected")
    try:
        return Operator.parse(operator_texts[0])
    except ValueError as error:
        reasons.append(str(error))
        return MSE


def text_form(loss: LossText) -> str:
    """`s0 a0 -> s1`, with `@k`, `| operator` and `| no predictor` only where they say something."""
    # One join, so that an empty side leaves no stray space.
    return " ".join([*map(str, loss.source), "->", *map(str, loss.target)]) + _suffix(loss)


def paper_form(loss: LossText) -> str:
    """`{s_t, a_t} -> {s_{t+1}}`."""
    source, target = (", ".join(e.paper() for e in side) for side in (loss.source, loss.target))
    return f"{{{source}}} -> {{{target}}}{_suffix(loss)}"


def latex_form(loss: LossText) -> str:
    r"""`\{s_{t}, a_{t}\} \rightarrow \{s_{t+1}\}`."""
    source, target = (", ".join(e.latex() for e in side) for side in (loss.source, loss.target))
    return rf"\{{{source}\}} \rightarrow \{{{target}\}}{_suffix(loss)}"


def _suffix(loss: LossText) -> str:
    horizon = "" if loss.horizon == default_horizon((*loss.source, *loss.target)) else f" @{loss.horizon}"
    operator = "" if loss.operator == MSE else f" | {loss.operator}"
    return horizon + operator + ("" if loss.predictor else f" | {NO_PREDICTOR}")
