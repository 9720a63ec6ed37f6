"""The Dockerfile agrees with the repository. Docker builds it elsewhere; here it is read."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
DOCKERFILE = (ROOT / "Dockerfile").read_text()
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def test_docker_sees_what_the_package_is_built_from_and_no_more():
    first, *rules = re.findall(r"^[^#\n].*$", (ROOT / ".dockerignore").read_text(), re.MULTILINE)
    assert first == "*"
    seen = {rule.removeprefix("!") for rule in rules if rule.startswith("!")}
    assert {name for name in seen if not (ROOT / name).exists()} == set()
    assert seen == {"constraints.txt", "pyproject.toml", "src", PROJECT["readme"], *PROJECT["license-files"]}


def test_it_has_all_extras_of_users_and_all_that_drawing_needs():
    assert re.findall(r"'\.\[(.+)\]'", DOCKERFILE) == ["all"]
    (packages,) = re.findall(r'drawing\) packages="(.+?)"', (ROOT / "scripts/system-libraries").read_text())
    assert f"--no-install-recommends {packages} " in DOCKERFILE
    (command,) = re.findall(r'^ENTRYPOINT \["(\w+)"\]$', DOCKERFILE, re.MULTILINE)
    assert command in PROJECT["scripts"]


def test_its_python_is_one_that_the_package_is_for_and_its_versions_are_those_of_the_tests():
    (python,) = re.findall(r"^FROM python:([\d.]+)-slim$", DOCKERFILE, re.MULTILINE)
    assert f"Programming Language :: Python :: {python}" in PROJECT["classifiers"]
    assert "--torch-backend cpu --constraint constraints.txt" in DOCKERFILE
