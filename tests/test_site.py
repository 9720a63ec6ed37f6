"""The documentation site is built without a warning, its links lead somewhere, and its tutorial on searching runs."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from a2ls.cli import main
from a2ls.cli._main import COMMANDS
from helpers.links import internal_links

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The folder of the built site, and what the build said."""
    folder = tmp_path_factory.mktemp("site")
    options = ["--quiet", "--fail-on-warning", "--keep-going", "--builder", "html"]
    command = [sys.executable, "-m", "sphinx", *options, str(DOCS), str(folder)]
    return folder, subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.slow
@pytest.mark.xdist_group("site")
def test_the_site_is_built_without_a_warning(site):
    folder, built = site
    assert (built.returncode, built.stderr) == (0, "")
    assert "--population-size" in (folder / "reference/commands.html").read_text()
    assert "A2LSSampler" in (folder / "reference/search.html").read_text()


@pytest.mark.slow
@pytest.mark.xdist_group("site")
def test_links_within_the_site_lead_to_a_file_and_to_an_anchor_in_it(site):
    folder, _ = site
    links = internal_links(folder)
    assert len(links) > 1000
    assert [(page, link) for page, link, leads in links if not leads] == []


def test_every_command_and_package_has_its_place_in_the_reference():
    commands = re.findall(r"```{command} (\w+)", (DOCS / "reference/commands.md").read_text())
    assert sorted(commands) == sorted(COMMANDS)
    listed = set(re.findall(r"^(\w+)$", (DOCS / "reference/api.md").read_text(), re.MULTILINE))
    packages = {path.parent.name for path in (ROOT / "src/a2ls").glob("*/__init__.py")}
    assert listed == packages - {"cli", "recorder"}


@pytest.mark.slow
def test_the_tutorial_on_searching(tmp_path, monkeypatch, capsys):
    text = (DOCS / "searching.md").read_text().replace(" \\\n        ", " ")
    text, real = text.split("## The real search")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    names, blocks = re.findall(r"save it as `(\w+\.py)`", text), re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    files = dict(zip(names, blocks, strict=True))
    assert sorted(files) == ["my_env.py", "my_search.py"]
    for name, code in files.items():
        Path(name).write_text(code)
    commands = re.findall(r"^    a2ls (.+)$", text, re.MULTILINE)
    assert [command.split()[0] for command in commands] == ["train", "search", "search", "top", "report", "validate"]
    for command in commands:
        assert main(shlex.split(command)) == 0, capsys.readouterr().err
    assert Path("report.html").exists()
    capsys.readouterr()
    exec(files["my_search.py"], {})
    assert "->" in capsys.readouterr().out
    sys.modules.pop("my_env", None)
    assert real.count("a2ls search") == 1
