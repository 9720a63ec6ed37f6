"""The sampler as a package for OptunaHub: laid out as its registry asks for, and loaded as its users do."""

import inspect
import re
import runpy
from pathlib import Path

import optuna
import optunahub
import yaml

from a2ls.search import A2LSSampler

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "package/samplers/a2ls"
README = (PACKAGE / "README.md").read_text()


def test_the_sampler_is_loaded_by_optunahub_and_the_example_finds_better_losses(capsys):
    verbosity = optuna.logging.get_verbosity()
    hub = optunahub.load_local_module("samplers/a2ls", registry_root=str(ROOT / "package"))
    assert hub.A2LSSampler is A2LSSampler
    runpy.run_path(str(PACKAGE / "example.py"), run_name="__main__")
    optuna.logging.set_verbosity(verbosity)
    printed = capsys.readouterr().out
    plain = int(re.search(r"without a loss +(\d+)", printed)[1])
    means = [int(mean) for mean in re.findall(r"stage \d  mean (\d+)", printed)]
    assert len(means) == 5
    assert means[-1] > max(means[0], plain)


def test_the_page_has_what_the_registry_asks_for():
    _, front, text = README.split("---\n", 2)
    front = yaml.safe_load(front)
    assert set(front) == {"author", "title", "description", "tags", "optuna_versions", "license"}
    assert all(front.values())
    assert "sampler" in front["tags"]
    assert f"optuna=={front['optuna_versions'][-1]}" in (ROOT / "constraints.txt").read_text().split()
    sections = re.findall(r"^## (.+)$", text, re.MULTILINE)
    assert sections == ["Abstract", "APIs", "Installation", "Example", "Others"]
    assert not re.search(r"</?\w+>", text), "the registry drops HTML"
    assert (PACKAGE / "LICENSE").read_text() == (ROOT / "LICENSE").read_text()


def test_the_page_tells_the_names_and_arguments_that_there_are():
    hub = optunahub.load_local_module("samplers/a2ls", registry_root=str(ROOT / "package"))
    signatures = dict(re.findall(r"^- `(\w+)\((.*?)\)`", README, re.MULTILINE))
    assert set(signatures) == set(hub.__all__)
    told = re.findall(r'(\w+): [^=]+ = ("\w+"|[\w.]+)', signatures["A2LSSampler"])
    parameters = inspect.signature(A2LSSampler).parameters
    assert len(told) == len(re.findall(r"^  - `\w+`: ", README, re.MULTILINE)) == 8
    assert [(name, repr(parameters[name].default).replace("'", '"')) for name, _ in told] == told
