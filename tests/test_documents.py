"""What documents point at is there, commands in them can be typed, and tables from the code are up to date."""

import re
import shlex
import tomllib
from importlib import import_module
from pathlib import Path

import pytest

from a2ls.benchmark import Grid
from a2ls.cli._options import flat, parse, parse_grid
from a2ls.studies import baseline, method
from helpers.scripts import load_script

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "a2ls"


@pytest.mark.parametrize("document", ["docs/architecture.md", "CONTRIBUTING.md"])
def test_every_file_that_a_document_names_exists(document):
    named = set(re.findall(r"`((?:[\w.]+/)+[\w.]+)`", (ROOT / document).read_text()))
    assert len(named) > 5
    assert {name for name in named if not (SOURCE / name).exists() and not (ROOT / name).exists()} == set()


def test_the_tree_shows_all_packages_from_those_that_import_nothing_to_the_command_line():
    shown = re.findall(r"^    [├└]── (\w+)/ ", (ROOT / "docs/architecture.md").read_text(), re.MULTILINE)
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    layers = [set(re.findall(r"a2ls\.(\w+)", layer)) for layer in reversed(contracts[0]["layers"])]
    for layer in layers:
        assert {shown.pop(0) for _ in layer} == layer
    assert shown == []


def test_the_change_log_begins_with_the_version_of_the_package_and_so_does_the_citation():
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    newest = re.search(r"^## (\S+) \((\S+)\)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert newest[1] == version
    citation = (ROOT / "CITATION.cff").read_text().splitlines()
    assert {f"version: {version}", f"date-released: {newest[2]}"} < set(citation)


PAPER = ROOT / "docs/paper.md"
RESULTS = ROOT / "docs/results.md"


def commands_of_the_paper():
    """Every command of the page on the paper's experiments, once."""
    text = PAPER.read_text()
    found = [*re.findall(r"`a2ls ([^`]+)`", text), *re.findall(r"^    a2ls ([^#\n]+)", text, re.MULTILINE)]
    return [command for command in dict.fromkeys(found) if " " in command]


def test_the_page_on_the_paper_has_a_command_for_each_kind_of_experiment():
    kinds = {command.split()[0] for command in commands_of_the_paper()}
    assert {
        "search",
        "validate",
        "benchmark",
        "compare",
        "operators",
        "analyze",
        "report",
        "landscape",
        "train",
    } <= kinds


@pytest.mark.parametrize("command", commands_of_the_paper())
def test_a_command_of_the_page_on_the_paper_can_be_typed(command):
    name, *arguments = shlex.split(command)
    module = import_module(f"a2ls.cli.commands.{name}")
    if name in ("benchmark", "operators"):
        chosen, configs = parse_grid(arguments, f"a2ls {name}", module.Arguments)
        if name == "benchmark":
            losses = [method(text) for text in (*flat(chosen.loss), *flat(chosen.method))]
            Grid((*map(baseline, flat(chosen.baseline)), *losses), configs, chosen.all_seeds)
    elif name == "train":
        job = module._base_job(arguments)
        parse(module.Arguments, "a2ls train", arguments, module.Arguments(settings=job.config))
    elif name == "search":
        arguments, others = module.split_environments(arguments)
        parse(module.Arguments, "a2ls search", arguments, module._defaults(arguments, others)[0])
    elif name == "validate":
        module._parse_beside(arguments, module.SearchConfig(module.preset("fast")))
    else:
        parse(module.Arguments, f"a2ls {name}", arguments)


def test_the_answers_of_the_page_of_results_are_those_of_the_trainings():
    results = load_script("results")
    text = RESULTS.read_text()
    assert text == results.with_tables(text, "results", results.TABLES), "run make results"
    # Every table has a place, and a study of which the page says nothing is none.
    assert all(f"<!-- {name}: scripts/results.py -->" in text for name in results.TABLES)
    assert all(f"## {study.question}" in text for study in results.STUDIES)
    figure = results.FIGURE.read_text()
    assert figure == results.figure(), "run make results"
    # Filled marks are those of methods that the page says are ahead.
    drawn = re.findall(r'<circle class="mark( shown)?"', figure)
    assert drawn == [" shown" if " is ahead of " in results.block(study) else "" for study in results.STUDIES]
    readme = " ".join((ROOT / "README.md").read_text().split())
    for claim, said in (
        (r"probability \S+ \(95 % interval \S+ to \d\.\d+", results.block(results.STUDIES[0])),
        (r"after \S+ of its steps \(95 % interval \S+ to \d\.\d+", results.simulated("cheetah-run")),
        (r"after \d\.\d+", results.simulated("three-tasks")),
    ):
        assert re.search(claim, said)[0] in readme


def test_the_tables_of_the_page_on_the_paper_are_those_of_the_code():
    tables = load_script("paper_tables")
    text = PAPER.read_text()
    assert text == tables.with_tables(text, "paper_tables", tables.TABLES), "run python scripts/paper_tables.py"
    # Where the paper has a value, the preset beside it has the same.
    for line in tables.hyper_parameters().splitlines()[2:]:
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        for papers, ours in ((2, 3), (5, 6), (7, 8)):
            if (
                cells[1] in ("`augmentation`", "`predictor`", "`encoder`", "`encoder_lr`")
                or "not said" in cells[papers]
            ):
                continue
            assert tables_value(cells[ours]) >= tables_value(cells[papers]), line


def test_the_gallery_has_every_figure_and_its_picture():
    gallery = load_script("gallery")
    text = gallery.DOCUMENT.read_text()
    assert text == gallery.with_tables(text, "gallery", gallery.TABLES), "run make gallery"
    pictures = {gallery.file_of(picture) for picture in gallery.all_pictures()}
    assert pictures == set(gallery.PICTURES.iterdir()), "run make gallery"


def tables_value(cell):
    """The values of a cell by task; `else` for all others. SAC-wo-aug is a baseline, and no task."""
    cell = cell.removeprefix("84 for SAC-wo-aug, ")
    values = {("else", cell.rpartition("else ")[2])} if cell else set()
    for value, tasks in re.findall(r"([\w.-]+) \(([^)]*)\)", cell):
        values |= {(task, value) for task in tasks.split(", ")}
    return values
