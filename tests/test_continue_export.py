"""A search of which only the export is left goes on without training again what the export has."""

import json
from pathlib import Path

from a2ls.engine import Finished, Job, JobKey
from a2ls.search._search import Settings
from a2ls.training import TrainJob
from helpers.scripts import load_script

EXPORT = Path(__file__).parents[1] / "docs/results/three-tasks"


def test_trainings_of_an_older_export_are_recalled():
    script = load_script("continue_export")
    rows, settings = script.read_rows(EXPORT / script.EXPORT_NAME)
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
