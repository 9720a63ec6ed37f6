import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import a2ls.cli.commands.simulate as command
import a2ls.simulation._strategies as strategies
from a2ls.cli import main
from a2ls.search import SearchConfig

ROOT = Path(__file__).parents[2]
OWN = ROOT / "examples/own_sampler.py"


@pytest.fixture
def _short(monkeypatch):
    """Searches of 60 trainings in the place of 700."""

    def short(name, training):
        sampler = "random" if name == "random" else "a2ls"
        return SearchConfig(training, population_size=20, stages=3, sampler=sampler)

    monkeypatch.setattr(strategies, "_config", short)


@pytest.mark.usefixtures("_short")
def test_an_own_sampler_is_compared_with_the_paper(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    names = ["--strategies", "paper", "random"]
    arguments = [*names, "--sampler", f"{OWN}:HillClimber", "--repeats", "3", "--workers", "1", "--out", str(tmp_path)]
    assert main(["simulate", *arguments]) == 0
    printed = capsys.readouterr().out
    assert "rank correlation with losses it has not seen" in printed
    assert "the truth itself would have" in printed
    rows = [line.split()[0] for line in printed.splitlines() if " M " in line]
    assert rows == ["paper", "random", "HillClimber"]
    assert "a2ls simulate --sampler" in printed

    numbers = json.loads((tmp_path / "simulation.json").read_text())
    assert [each["name"] for each in numbers["strategies"]] == rows
    assert (numbers["repeats"], numbers["environments"]) == (3, ["cheetah-run"])
    for each in numbers["strategies"]:
        assert len(each["qualities"]) == 3
        assert len(each["median"]) == len(numbers["steps"]) == 60
        assert each["trainings"] == [60.0] * 3
        assert each["steps"] == [60 * 40_000.0] * 3
    # The hill climber begins at random, and then climbs: losses of its end are not those of random search.
    assert numbers["strategies"][1]["chosen"] != numbers["strategies"][2]["chosen"]
    page = (tmp_path / "simulation.html").read_text()
    best = max(numbers["strategies"], key=lambda each: each["median"][-1])
    low, high = best["median_at_end_interval"]
    found = re.search(
        r"<p>Of 3 strategies (\w+) has .+? has (\S+) \(95 % interval (\S+) to (\S+)\) after 2.4 M steps", page
    )
    assert found.groups() == (best["name"], *(f"{value:.2f}" for value in (best["median"][-1], low, high)))
    assert "What searches choose" in page
    assert "HillClimber" in page


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--repeats", "0"], "repeats is 0, but must be at least 1"),
        (["--workers", "-1"], "workers is -1, but must not be negative"),
        (["--strategies", "paper", "rndom"], "there is no strategy 'rndom': did you mean random?"),
        (["--sampler", "nothing.py:Sampler"], "there is no file nothing.py with a sampler"),
        (["--data", "nowhere"], "nowhere holds nothing to analyse"),
        (["--env", "finger-spin", "--repeats", "1"], "finger-spin"),
    ],
)
def test_bad_input_is_one_line(arguments, words, capsys):
    assert main(["simulate", *arguments]) == 2
    said = capsys.readouterr().err
    assert words in said
    assert len(said.splitlines()) == 1


def test_help_shows_lines_to_start_from(capsys):
    with pytest.raises(SystemExit):
        command.run(["--help"])
    shown = capsys.readouterr().out
    assert "a2ls simulate --sampler my_sampler.py:HillClimber" in shown


def test_an_interrupt_ends_all_processes(tmp_path):
    line = [sys.executable, "-m", "a2ls", "simulate", "--workers", "2", "--repeats", "200", "--out", str(tmp_path)]
    process = subprocess.Popen(
        line,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        # As from a terminal: the shell of a script that runs in the background lets its children ignore Ctrl-C.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509 (no thread runs meanwhile)
    )
    assert "model of" in process.stdout.readline()
    time.sleep(3)
    os.killpg(process.pid, signal.SIGINT)
    _, said = process.communicate(timeout=120)
    assert process.returncode == 130
    assert "Traceback" not in said

    def still_there():
        listed = subprocess.run(["ps", "-eo", "pgid=,stat="], capture_output=True, text=True, check=True).stdout
        states = [state for group, state in map(str.split, listed.splitlines()) if int(group) == process.pid]
        return [state for state in states if not state.startswith("Z")]

    # What counts the resources of processes ends by itself when all of them have.
    deadline = time.monotonic() + 20
    while still_there() and time.monotonic() < deadline:
        time.sleep(0.1)
    assert still_there() == []
