"""The figure of docs/results.md: which method beats which, with intervals, as an SVG that any page can show."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

from a2ls._formatting import interval_text, number_text
from a2ls._statistics import Estimate

_WIDTH, _TOP, _ROW, _BOTTOM = 680, 94, 54, 16
_TEXT, _LEFT, _RIGHT, _VALUES = 15, 360, 520, 540
_TITLE = "How likely a run beats one of what it is compared with"
_LEGEND = "Filled: shown to be better. Of several methods the best one. Lines are 95 % intervals."
# Colours are those of the figures of the package, and of its pages at night.
_STYLE = """
  .page { fill: #ffffff } text { fill: #1f2328 } .quiet { fill: #59616c; font-size: 12px } .even { stroke: #aab0b8 }
  .grid { stroke: #e1e4e8 } .bar, .mark { stroke: #59616c; stroke-width: 2.5 } .mark { fill: #ffffff }
  .bar.shown { stroke: #0072B2 } .mark.shown { stroke: #0072B2; fill: #0072B2 }
  @media (prefers-color-scheme: dark) {
    .page { fill: #14171c } text { fill: #e6e8eb } .quiet { fill: #aab0b8 } .even { stroke: #59616c }
    .grid { stroke: #343a43 } .bar, .mark { stroke: #aab0b8 } .mark { fill: #14171c }
    .bar.shown { stroke: #2B93D1 } .mark.shown { stroke: #2B93D1; fill: #2B93D1 }
  }
"""


@dataclass(frozen=True)
class Finding:
    """One question, and what its trainings say."""

    question: str
    compared: str
    """Which method beside which."""
    chance: Estimate
    """That a run of the one beats one of the other."""
    is_ahead: bool
    """Whether it is shown to be better."""


def findings_figure(findings: Sequence[Finding]) -> str:
    """An SVG with a row for each finding."""
    height = _TOP + _ROW * len(findings) + _BOTTOM
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" role="img" '
            'aria-labelledby="title" font-family="system-ui, sans-serif" font-size="14">',
            f'<title id="title">{_TITLE}</title>',
            f"<style>{_STYLE}</style>",
            f'<rect class="page" width="{_WIDTH}" height="{height}" rx="12"/>',
            _text(_TEXT, 28, _TITLE, "", 'font-weight="600"'),
            _text(_TEXT, 48, _LEGEND, "quiet"),
            *_axis(height),
            *(line for number, each in enumerate(findings) for line in _row(_TOP + _ROW * number, each)),
            "</svg>\n",
        ]
    )


def _axis(height: int) -> Iterator[str]:
    for place in (0.0, 0.5, 1.0):
        x, kind = _x(place), "even" if place == 0.5 else "grid"
        yield f'<line class="{kind}" x1="{x}" y1="{_TOP - 8}" x2="{x}" y2="{height - _BOTTOM}"/>'
        yield _text(x, _TOP - 14, f"{place:g}", "quiet", 'text-anchor="middle"')


def _row(top: int, finding: Finding) -> Iterator[str]:
    middle, kind = top + 35, " shown" if finding.is_ahead else ""
    yield _text(_TEXT, top + 18, finding.question)
    yield _text(_TEXT, middle + 4, finding.compared, "quiet")
    value = number_text(finding.chance.value, 2)
    if finding.chance.interval is not None:
        low, high = finding.chance.interval
        yield f'<line class="bar{kind}" x1="{_x(low)}" y1="{middle}" x2="{_x(high)}" y2="{middle}"/>'
        value += f" ({interval_text(finding.chance.interval, 2)})"
    yield f'<circle class="mark{kind}" cx="{_x(finding.chance.value)}" cy="{middle}" r="5"/>'
    yield _text(_VALUES, middle + 4, value, "", 'font-size="13"')


def _x(chance: float) -> float:
    return round(_LEFT + chance * (_RIGHT - _LEFT), 1)


def _text(x: float, y: float, words: str, kind: str = "", more: str = "") -> str:
    attributes = " ".join(filter(None, [f'x="{x}" y="{y}"', kind and f'class="{kind}"', more]))
    return f"<text {attributes}>{escape(words)}</text>"
