"""`make` never installs packages of the system without a word, nor against one."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="Debian's packages")

SCRIPT = Path(__file__).parents[1] / "scripts" / "system-libraries"


@pytest.fixture
def run(tmp_path):
    """Runs the script on a made-up machine that has no package yet; apt-get only shows how it was called."""

    def program(name, body):
        file = tmp_path / name
        file.write_text(f"#!/bin/sh\n{body}\n")
        file.chmod(0o755)

    def run(user, installed="", apt_get="exit 0", **environment):
        program("id", f"echo {user}")
        program("dpkg-query", f"echo '{installed}'")
        program("apt-get", f'echo "CALLED apt-get $*" >&2; {apt_get}')
        return subprocess.run(
            [SCRIPT, "browser"],
            env={"PATH": f"{tmp_path}:{os.environ['PATH']}", **environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=True,
        ).stdout

    return run


def test_root_is_told_what_and_how_to_refuse_before_it_is_installed(run):
    told, called, _ = run(0).partition("CALLED")
    assert called
    assert "chromium" in told
    assert "SYSTEM_PACKAGES=no make" in told


@pytest.mark.parametrize(("user", "environment"), [(0, {"SYSTEM_PACKAGES": "no"}), (1000, {})])
def test_who_refuses_or_is_not_root_is_told_the_command(run, user, environment):
    printed = run(user, **environment)
    assert "CALLED" not in printed
    assert "apt-get install chromium" in printed


def test_a_failure_is_not_passed_over(run):
    assert "sudo apt-get install chromium" in run(0, apt_get="exit 1")


def test_nothing_is_said_or_done_where_nothing_is_missing(run):
    assert run(0, installed="install ok installed") == ""
