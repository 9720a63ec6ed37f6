"""What only the export is left of goes on without training again what the export has."""

import itertools
import json
from pathlib import Path

from a2ls import BenchmarkFolder
from a2ls.engine import Finished, Job, JobKey
from a2ls.search._search import Settings
from a2ls.training import TrainJob
from helpers.scripts import load_script

RESULTS = Path(__file__).parents[1] / "docs/results"


def test_trainings_of_an_older_export_are_recalled():
    script = load_script("continue_export")
    rows, settings = script.read_rows(RESULTS / "three-tasks" / script.EXPORT_NAME)
    for row in rows:  # As if written before there was this setting.
        written = json.loads(row["settings"])
        del written["environment"]["image_observations"]
        row["settings"] = json.dumps(written)
    own = {name: value for name, value in settings.items() if name not in ("seconds_spent", "versions")}
    config = Settings.from_mapping(own | {"storage": ""}).config.training
    finished = [row for row in rows if row["state"] == "finished" and row["env"] == config.environment.env]
    assert len(finished) > 20
    engine = script.RecallingEngine(script.known_trainings(rows), engine=None)
    for number, row in enumerate(finished):
        record = script.to_record(row)
        engine.submit(Job(JobKey("again", number), TrainJob(config, record.loss, record.seed), record.label))
        events = engine.events(timeout=0)
        assert isinstance(events[-1], Finished)
        assert tuple(event.point for event in events[1:-1]) == record.curve.points


def test_a_benchmark_is_made_again_with_all_that_it_was_ever_asked_for(tmp_path, monkeypatch):
    script = load_script("continue_export")
    export, folder = RESULTS / "vectors-100k", tmp_path / "again"
    rows, settings = script.read_rows(export / script.EXPORT_NAME)
    before = [script.to_record(row) for row in rows]
    asked = {(method, env, seed) for method, env, seed in itertools.product(*settings["grid"].values())}
    assert {(record.label, record.env, record.seed) for record in before} > asked
    monkeypatch.setattr("sys.argv", ["continue_export.py", str(export), str(folder)])
    script.main()
    after = BenchmarkFolder.open(folder).records()

    def told(records):
        return {(each.label, each.env, each.seed): (each.curve, each.seconds, each.version) for each in records}

    assert told(after) == told(before)
    assert all(record.state == "finished" for record in after)
