"""The trainings that come with the package are those of docs/results, and the page on them says what they are."""

import re
from pathlib import Path

import pytest

from a2ls import BadInput, named_loss
from a2ls.analysis import recorded_trainings
from a2ls.analysis._columns import COLUMNS
from helpers.scripts import load_script

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def script():
    return load_script("data_set")


def test_the_file_holds_exactly_what_the_results_hold(script):
    collection = script.collected()
    assert script.is_current(collection), "run make data"
    assert {"curl", "cartpole-swingup-fast-image/curl", "cheetah-run-laptop/validation"} < set(collection.studies)
    assert collection.left_out >= 5


def test_the_page_on_the_data_is_up_to_date(script):
    text = (ROOT / "docs/data.md").read_text()
    assert text == script.with_tables(text, "data_set", script.TABLES), "run make data"
    columns = re.findall(r"^\| `(\w+)` \| ([a-z ]+) \| ", text.partition("## Columns")[2], re.MULTILINE)
    assert columns == list(COLUMNS.items())


def test_nothing_of_the_machine_is_in_the_file(script):
    texts = str(script.read_rows(script.FILE))
    assert re.findall(r"(?:/(?:home|root|work|tmp|Users|mnt)/|\w+://|[A-Z]:\\\\)[^'\"]*", texts) == []
    assert "storage" not in texts


def test_trainings_that_are_asked_for():
    everything = recorded_trainings(state=None)
    finished = recorded_trainings()
    assert {record.state for record in everything} > {record.state for record in finished} == {"finished"}
    plain = recorded_trainings(preset="fast", own_settings=False)
    changed = recorded_trainings(preset="fast", own_settings=True)
    others = [len(recorded_trainings(preset=name)) for name in ("fast-image", "fast-atari", "atari-100k")]
    assert len(plain) + len(changed) + sum(others) == len(finished)
    # Of a method, whose label says so, or of a whole benchmark: the one with hidden dimensions.
    of_benchmarks = {record.label for record in changed if ": " not in record.label}
    assert of_benchmarks == {"sac", "curl", str(named_loss("a2-winner"))}
    assert not any(": " in record.label for record in plain)
    walker = recorded_trainings(preset="fast", env="walker-walk", own_settings=False)
    assert walker == [record for record in plain if record.env == "walker-walk"]
    assert {record.seed: round(record.score, 1) for record in walker if record.label == "curl"} == {
        0: 155.6,
        1: 172.2,
        2: 133.8,
    }


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"preset": "fats"}, "preset is 'fats', which no training has: did you mean fast"),
        ({"env": "mars"}, "env is 'mars', which no training has: there are .*cheetah-run"),
    ],
)
def test_what_there_is_none_of_is_refused(asked, message):
    with pytest.raises(BadInput, match=message):
        recorded_trainings(**asked)
