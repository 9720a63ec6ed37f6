"""What the documents for developers point at is there."""

import re
import tomllib
from pathlib import Path

import pytest

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
