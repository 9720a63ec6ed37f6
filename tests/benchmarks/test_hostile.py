import random
import re
import subprocess
import sys
from pathlib import Path

import pytest
from ruin import damage
from tally import Tally

from helpers.processes import run_python

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the campaign finds processes in /proc")
CAMPAIGN = Path(__file__).parents[2] / "benchmarks" / "hostile"

# What comes of processes that end in all ways there are; a fork of this one, which has threads, might hang.
ENDS = """
import os, sys, time
sys.path.insert(0, sys.argv[1])
from processes import Process, adopt_orphans, ask, strays
adopt_orphans()
ways = {
    "fine": lambda: 0,
    "refused": lambda: sys.exit(2),
    "raises": lambda: {}["x"],
    "killed": lambda: os.kill(os.getpid(), 9),
    "hangs": lambda: time.sleep(60),
    "odd": lambda: 7,
}
for name, work in ways.items():
    with Process(work) as process:
        print(name, process.answer(1.0 if name == "hangs" else 60.0).complaint, sep=": ")
print("asked", ask(["losses", "nonsense"], 30.0).code)
with Process(lambda: os.fork() or time.sleep(60)) as process:
    process.wait(60)
    print("left", len(strays(patience=0.1)), len(strays(patience=0.1)))
"""


def campaign(*arguments):
    command = [sys.executable, str(CAMPAIGN), *arguments]
    return subprocess.run(command, check=False, capture_output=True, text=True)


def test_it_is_known_how_a_process_ended():
    lines = dict(line.partition(" ")[::2] for line in run_python(ENDS, CAMPAIGN).splitlines())
    assert lines == {
        "fine:": "",
        "refused:": "",
        "raises:": "traceback: KeyError: 'x'",
        "killed:": "exit code -9: ",
        "hangs:": "hang",
        "odd:": "exit code 7: ",
        "asked": "2",
        "left": "1 0",
    }


def test_a_short_campaign_finds_nothing():
    done = campaign("--only", "kills", "damages", "--number", "36")
    rows = [line.split() for line in done.stdout.splitlines() if re.match(r" (kills|damages) ", line)]
    assert [row[0] for row in rows] == ["kills", "damages"], done.stderr
    assert all(int(row[1]) > 0 and set(row[2:-1]) == {"0"} for row in rows), done.stdout
    assert done.returncode == 0


@pytest.mark.parametrize("seed", range(30))
def test_a_damage_is_done_to_one_file(seed, tmp_path):
    texts = {
        "a.toml": "x = 1\n[y]\nz = 'b'\n",
        "b.json": '{"x": [1, 2], "y": {"z": null}}',
        "c.csv": "a,b\n1,2\n",
        "d.pt": "x",
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    done = damage(tmp_path, random.Random(seed))
    for name, text in texts.items():
        if name != done.file:
            assert (tmp_path / name).read_text() == text
    assert done.mode is not None or not (tmp_path / done.file).is_file() or done.words.startswith(done.file)
    again = tmp_path / "again"
    again.mkdir()
    for name, text in texts.items():
        (again / name).write_text(text)
    assert damage(again, random.Random(seed)) == done


def test_a_campaign_that_was_stopped_goes_on(tmp_path):
    record = tmp_path / "trials.jsonl"
    whole = Tally("kills", 3, record)

    def find():
        whole.tried += 2
        whole.add("lost", "all of it", "once more")

    whole.trial(5, find)
    goes_on = Tally("kills", 3, record)
    goes_on.trial(5, lambda: pytest.fail("it was tried"))
    assert (goes_on.tried, goes_on.offences) == (2, whole.offences)
    others = []
    Tally("kills", 4, record).trial(5, lambda: others.append("another seed"))
    Tally("damages", 3, record).trial(5, lambda: others.append("another part"))
    assert len(others) == 2


def test_offences_that_differ_in_numbers_and_folders_are_one():
    tally = Tally("kills")
    for number in (10, 11):
        tally.add("lost", f"no such file: '/tmp/{number}/x' in line {number}", "")
    assert len({offence.cause for offence in tally.offences}) == 1
    assert tally.count("lost") == 2
