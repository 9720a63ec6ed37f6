"""The pictures of docs/gallery.md, and its text: every figure of the package, as the command beside it draws it.

python scripts/gallery.py                       # all pictures, and the text
python scripts/gallery.py comparison-iqm ...    # some pictures, and the text
python scripts/gallery.py --check               # only say whether the text is up to date and no picture is missing

Trainings that are not in docs/results are short. They are made once, below build/gallery.
"""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from generated_tables import with_tables

from a2ls.analysis.compare._figures import COMPARISON_FIGURES
from a2ls.analysis.figures import FIGURES, PRUNING

ROOT = Path(__file__).parents[1]
DOCUMENT = ROOT / "docs" / "gallery.md"
PICTURES = ROOT / "docs" / "gallery"
WORK = ROOT / "build" / "gallery"

# As wide as the text of the site, and sharp on most screens.
_WIDTH, _SCALE = 760, 1.5
_PATIENCE = 120_000


@dataclass(frozen=True)
class Source:
    """A page that figures are taken from."""

    name: str
    page: str
    """The command that writes it, to be typed in a checkout."""
    before: tuple[str, ...] = ()
    """Commands that train what it shows; each writes a folder of its own."""


@dataclass(frozen=True)
class Picture:
    """A figure of a page, with what the gallery says of it."""

    source: Source
    section: str
    """Where it is on the page; the first figure there is taken."""
    title: str
    caption: str

    @property
    def name(self) -> str:
        """Of its file, without the ending."""
        return f"{self.source.name}-{self.section}"


_SEARCH = "a2ls search --env Pendulum-v1 --steps 1500 --baselines none --max-trials 12"
_TRAIN = "a2ls train --env cheetah-run --keep-checkpoints"

SEARCH = Source("search", "a2ls report docs/results/three-tasks/candidates.parquet --out report.html")
OPERATORS = Source(
    "operators",
    "a2ls report runs/all-operators runs/mse --out operators.html",
    (f"{_SEARCH} --operators all --out runs/all-operators", f"{_SEARCH} --operators mse --out runs/mse"),
)
COMPARISON = Source(
    "comparison", "a2ls compare docs/results/three-tasks-a2-winner/candidates.parquet --out comparison.html"
)
LANDSCAPE = Source(
    "landscape",
    "a2ls landscape runs/sac runs/a2-winner --checkpoint checkpoints/8000.pt checkpoints/16000.pt checkpoints/24000.pt "
    "checkpoints/40000.pt --out landscape.html",
    (f"{_TRAIN} --loss none --out runs/sac", f"{_TRAIN} --loss a2-winner --out runs/a2-winner"),
)
SIMULATION = Source("simulation", "a2ls simulate --repeats 10 --out simulation")

GROUPS: dict[str, tuple[Picture, ...]] = {
    "A search": (
        *(Picture(SEARCH, kind.key, kind.title, kind.caption) for kind in FIGURES),
        Picture(OPERATORS, PRUNING.key, PRUNING.title, PRUNING.caption),
    ),
    "Methods side by side": tuple(
        Picture(COMPARISON, kind.key, kind.title, kind.caption) for kind in COMPARISON_FIGURES
    ),
    "A trained agent": (
        Picture(
            LANDSCAPE,
            "pictures",
            "Critic loss landscape",
            "The critic's loss around the trained weights, along two random directions, as surfaces and as heat maps, "
            "while the training goes on. A wide and even bowl is easier to learn in than a narrow or a rugged one.",
        ),
    ),
    "Ways to search": (
        Picture(
            SIMULATION,
            "choices",
            "What searches choose",
            "How good the loss truly is that each way to search would choose, after so many environment steps: the "
            "median and the middle half of repeats, with simulated trainings.",
        ),
    ),
}


def all_pictures() -> Iterator[Picture]:
    """Those of all groups."""
    for group in GROUPS.values():
        yield from group


def file_of(picture: Picture) -> Path:
    """Where it lies."""
    return PICTURES / f"{picture.name}.png"


def text() -> str:
    """All pictures with their captions and commands, as Markdown."""
    parts = []
    for heading, group in GROUPS.items():
        parts.append(f"## {heading}")
        for each in group:
            commands = "\n".join(f"    {command}" for command in (*each.source.before, each.source.page))
            place = file_of(each).relative_to(DOCUMENT.parent)
            parts += [f"### {each.title}", f"![{each.title}]({place})", each.caption, commands]
    return "\n\n".join(parts)


TABLES = {"figures": text}


def draw(pictures: Sequence[Picture]) -> None:
    """Write the files of these pictures anew, as Chromium shows them."""
    from playwright.sync_api import sync_playwright  # noqa: PLC0415 (only who draws needs a browser)

    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if chromium is None:
        sys.exit("no Chromium here: apt-get install chromium")
    PICTURES.mkdir(exist_ok=True)
    # Surfaces are drawn with WebGL, also without a graphics card.
    flags = ["--no-sandbox", "--disable-gpu", "--enable-unsafe-swiftshader"]
    with sync_playwright() as started:
        browser = started.chromium.launch(executable_path=chromium, args=flags)
        for source in dict.fromkeys(picture.source for picture in pictures):
            page = browser.new_page(
                viewport={"width": _WIDTH, "height": 900}, device_scale_factor=_SCALE, reduced_motion="reduce"
            )
            page.goto(_written(source).as_uri())
            page.wait_for_function("document.documentElement.dataset.drawn", timeout=_PATIENCE)
            _photograph(page, (picture for picture in pictures if picture.source == source))
            page.close()
        browser.close()


def _photograph(page: Any, pictures: Iterable[Picture]) -> None:
    for picture in pictures:
        figures = page.locator(f"#{picture.section} .figure")
        if figures.count() == 0:
            sys.exit(f"{picture.source.page} draws nothing in its section {picture.section}")
        figures.first.screenshot(path=file_of(picture), timeout=_PATIENCE)
        print(file_of(picture).relative_to(ROOT))


def _written(source: Source) -> Path:
    """The page, by the very commands that the gallery shows."""
    WORK.mkdir(parents=True, exist_ok=True)
    # As in a checkout: the commands name what is in docs.
    if not (WORK / "docs").exists():
        (WORK / "docs").symlink_to(ROOT / "docs")
    for command in source.before:
        if not (WORK / _out(command)).exists():
            _run(command)
    page = WORK / _out(source.page)
    _run(source.page)
    return page if page.suffix else page / f"{page.name}.html"


def _out(command: str) -> str:
    words = shlex.split(command)
    return words[words.index("--out") + 1]


def _run(command: str) -> None:
    print(command, flush=True)
    _, *words = shlex.split(command)
    subprocess.run([sys.executable, "-m", "a2ls", *words], cwd=WORK, check=True, stdout=subprocess.DEVNULL)


def main() -> None:
    """Draw and write, or check."""
    names = [word for word in sys.argv[1:] if word != "--check"]
    known = {picture.name: picture for picture in all_pictures()}
    unknown = [name for name in names if name not in known]
    if unknown:
        sys.exit(f"no picture {', '.join(unknown)}: there are {', '.join(known)}")
    document = DOCUMENT.read_text(encoding="utf-8")
    wanted = with_tables(document, "gallery", TABLES)
    if "--check" in sys.argv[1:]:
        missing = [name for name, picture in known.items() if not file_of(picture).exists()]
        if missing or document != wanted:
            sys.exit("docs/gallery.md or its pictures are not up to date: run make gallery")
        return
    draw([known[name] for name in names] or [*known.values()])
    DOCUMENT.write_text(wanted, encoding="utf-8")


if __name__ == "__main__":
    main()
