import optuna
import pytest

from a2ls.engine import Evaluated, Finished, Job, JobKey, Started, run_jobs
from a2ls.simulation import SimulatedEngine
from a2ls.space import named_loss
from a2ls.training import Curve, CurvePoint, TrainJob, preset

CONFIG = preset("fast")
CURVE = Curve(tuple(CurvePoint(step, (float(step),)) for step in (8_000, 16_000, 24_000, 32_000, 40_000)))


class Source:
    """Some jobs; those in `stop` end at a step."""

    study_name = "jobs"

    def __init__(self, count, stop=None):
        loss = named_loss("a2-winner")
        self.waiting = [Job(JobKey("jobs", n), TrainJob(CONFIG, loss, n), "") for n in range(count)]
        self.stop = stop or {}
        self.points = {}
        self.seconds = {}

    def next_job(self):
        return self.waiting.pop(0) if self.waiting else None

    def started(self, job):
        self.points[job.key.number] = []

    def evaluated(self, job, point):
        self.points[job.key.number].append(point.step)
        return point.step < self.stop.get(job.key.number, 10**9)

    def finished(self, job, seconds):
        self.seconds[job.key.number] = seconds

    def failed(self, job, reason, *, again):
        raise AssertionError(f"{job} failed: {reason}, tried again: {again}")


def test_a_pruned_job_costs_the_steps_until_there():
    source, events = Source(3, {1: 16_000}), []
    engine = SimulatedEngine(lambda _: CURVE)
    run_jobs([source], engine, on_event=events.append)
    assert source.points == {
        0: [8_000, 16_000, 24_000, 32_000, 40_000],
        1: [8_000, 16_000],
        2: [8_000, 16_000, 24_000, 32_000, 40_000],
    }
    assert engine.steps_spent == 96_000
    assert source.seconds == {0: 40_000, 1: 16_000, 2: 40_000}
    assert engine.clock == engine.busy_seconds == 96_000
    assert [type(event) for event in events[:7]] == [Started, *[Evaluated] * 5, Finished]


def test_workers_go_on_side_by_side():
    source, order = Source(3, {0: 8_000}), []
    engine = SimulatedEngine(lambda _: CURVE, workers=2, seconds=lambda job: (100.0, 60.0, 50.0)[job.key.number])
    run_jobs([source], engine, on_event=lambda event: order.append((engine.clock, event.job.key.number, type(event))))
    ends = [(clock, number) for clock, number, kind in order if kind is Finished]
    # Job 0 ends after a fifth of its 100 seconds, job 2 takes its place.
    assert ends == [(20, 0), (60, 1), (70, 2)]
    assert [clock for clock, *_ in order] == sorted(clock for clock, *_ in order)
    assert engine.idle_share == pytest.approx(1 - (20 + 60 + 50) / 140)
    assert engine.free == 2


def test_a_pruner_of_optuna_spares_steps():
    """The study is told of a pruned trial, and the engine has not spent the rest of its steps."""
    study = optuna.create_study(direction="maximize", pruner=optuna.pruners.ThresholdPruner(lower=10_000.0))
    trial = study.ask()
    source = Source(1)
    engine = SimulatedEngine(lambda _: CURVE)

    def evaluated(_, point):
        trial.report(point.score, point.step)
        return not trial.should_prune()

    source.evaluated = evaluated
    run_jobs([source], engine)
    assert engine.steps_spent == 8_000
