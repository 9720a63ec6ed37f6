"""The documentation site: it is built without a warning, and the tutorial on searching runs as it is typed."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from a2ls.cli import main
from a2ls.cli._main import COMMANDS

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"


@pytest.mark.slow
def test_the_site_is_built_without_a_warning(tmp_path):
    options = ["--quiet", "--fail-on-warning", "--keep-going", "--builder", "html"]
    built = subprocess.run(
        [sys.executable, "-m", "sphinx", *options, str(DOCS), str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (built.returncode, built.stderr) == (0, "")
    page = (tmp_path / "reference/commands.html").read_text()
    assert "--population-size" in page
    assert "A2LSSampler" in (tmp_path / "reference/search.html").read_text()


def test_every_command_and_package_has_its_place_in_the_reference():
    commands = re.findall(r"```{command} (\w+)", (DOCS / "reference/commands.md").read_text())
    assert sorted(commands) == sorted(COMMANDS)
    listed = set(re.findall(r"^(\w+)$", (DOCS / "reference/api.md").read_text(), re.MULTILINE))
    packages = {path.parent.name for path in (ROOT / "src/a2ls").glob("*/__init__.py")}
    assert listed == packages - {"cli", "recorder"}


@pytest.mark.parametrize("document", ["README.md", *(f"docs/{path.name}" for path in sorted(DOCS.glob("*.md")))])
def test_links_between_documents_lead_somewhere(document):
    text = (ROOT / document).read_text()
    for target, anchor in re.findall(r"\]\((?!https?:)([^)#\s]*)(?:#([^)\s]*))?\)", text):
        file = (ROOT / document).parent / target if target else ROOT / document
        assert file.exists(), target
        if anchor and file.suffix == ".md":
            headings = re.findall(r"^#+ (.+)$", file.read_text(), re.MULTILINE)
            assert anchor in {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.slow
def test_the_tutorial_on_searching(tmp_path, monkeypatch, capsys):
    text = (DOCS / "searching.md").read_text()
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
