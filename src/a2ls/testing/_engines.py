"""What every engine must do, as tests: any that passes them can run searches."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from a2ls.agents import SACConfig
from a2ls.engine import Engine, Evaluated, Event, Failed, Finished, Job, JobKey, Progressed, Started
from a2ls.envs import EnvironmentConfig
from a2ls.space import named_loss
from a2ls.training import Curve, TrainConfig, TrainJob, load_agent, preset, train

_SECONDS = 300.0


def small_job(
    number: int = 0, *, seed: int = 0, loss: str = "a2-winner", env: str = "Pendulum-v1", steps: int = 600
) -> Job:
    """A training of about a second, with an evaluation every 200 steps.

    Args:
        number: Of the job.
        seed: Of the training.
        loss: The name of a loss.
        env: Where the agent learns.
        steps: How long.
    """
    base = preset("fast", "Pendulum-v1")
    config: TrainConfig = replace(
        base,
        environment=EnvironmentConfig(env=env, action_repeat=1),
        agent=SACConfig(hidden=8, predictor_hidden=8),
        batch_size=8,
        steps=steps,
        evaluations=steps // 200,
        evaluation_episodes=1,
        learning_starts=80,
        compiled=False,
    )
    return Job(JobKey("study", number), TrainJob(config, named_loss(loss), seed), loss)


def ended(events: Iterable[Event]) -> list[Event]:
    """The last events of jobs among others."""
    return [event for event in events if isinstance(event, Finished | Failed)]


def run_to_the_end(
    engine: Engine, *jobs: Job, go_on: Callable[[Evaluated], bool] = lambda _: True, seconds: float = _SECONDS
) -> list[Event]:
    """Submit jobs and return all of their events.

    Args:
        engine: What runs them.
        jobs: No more than it has free workers.
        go_on: The answer to an evaluation.
        seconds: How long to wait.

    Raises:
        TimeoutError: If they have not ended by then.
    """
    for job in jobs:
        engine.submit(job)
    events: list[Event] = []
    deadline = time.monotonic() + seconds
    while len(ended(events)) < len(jobs):
        if time.monotonic() > deadline:
            raise TimeoutError(f"{len(jobs)} jobs have not ended in {seconds:g} s: {events}")
        for event in engine.events(0.5):
            events.append(event)
            if isinstance(event, Evaluated):
                engine.answer(event.job.key, go_on=go_on(event))
    return events


@functools.cache
def _expected(job: Job) -> Curve:
    """The curve of a job, trained in this process."""
    return train(job.training.config, job.training.loss, job.training.seed)


def _curve(events: Iterable[Event], job: Job) -> Curve:
    return Curve(tuple(event.point for event in events if isinstance(event, Evaluated) and event.job == job))


class EngineConformance:
    """Tests that every `Engine` must pass. Inherit from it and give it an engine, and pytest runs them:

        class TestMyEngine(EngineConformance):
            @pytest.fixture
            def engine(self):
                with MyEngine(workers=2) as engine:
                    yield engine

    The engine has two workers, none of them busy. It may be the same for all tests.
    """  # noqa: D415 (it ends with an example)

    def test_the_events_of_a_job_come_in_order_and_make_the_curve_of_train(self, engine: Engine) -> None:
        """`Started` first, steps that never go back, and one end."""
        job = small_job()
        events = run_to_the_end(engine, job)
        engine.forget_checkpoint(job.key)
        assert isinstance(events[0], Started)
        assert isinstance(events[-1], Finished)
        assert events[-1].seconds > 0
        assert {event.job for event in events} == {job}
        between = [event for event in events[1:-1] if isinstance(event, Evaluated | Progressed)]
        assert len(between) == len(events) - 2
        steps = [event.point.step if isinstance(event, Evaluated) else event.step for event in between]
        assert steps == sorted(steps)
        assert _curve(events, job) == _expected(job)

    def test_two_jobs_run_at_once_and_do_not_get_mixed_up(self, engine: Engine) -> None:
        """Each has a worker and a curve of its own; a third is refused."""
        jobs = small_job(1, seed=1), small_job(2, loss="forward-dynamics")
        assert (engine.workers, engine.free) == (2, 2)
        engine.submit(jobs[0])
        assert engine.free == 1
        engine.submit(jobs[1])
        assert engine.free == 0
        try:
            engine.submit(small_job(3))
        except RuntimeError as error:
            assert "2 workers are busy" in str(error)  # noqa: PT017 (pytest need not be there)
        else:
            raise AssertionError("a third job was taken")
        events: list[Event] = []
        deadline = time.monotonic() + _SECONDS
        while len(ended(events)) < 2:
            assert time.monotonic() < deadline, events
            events += (new := engine.events(0.5))
            for event in new:
                if isinstance(event, Evaluated):
                    engine.answer(event.job.key, go_on=True)
        assert engine.free == 2
        for job in jobs:
            assert _curve(events, job) == _expected(job)
            assert len({event.worker for event in events if event.job == job}) == 1
            engine.forget_checkpoint(job.key)
        assert len({event.worker for event in events}) == 2

    def test_a_job_that_raises_fails_with_its_reason_and_its_worker_goes_on(self, engine: Engine) -> None:
        """What is wrong with a job is no fault of its worker."""
        bad = small_job(4, env="Pendulm-v1")
        events = run_to_the_end(engine, bad)
        assert [type(event) for event in events] == [Started, Failed]
        assert isinstance(events[-1], Failed)
        assert events[-1].fault == "training"
        assert events[-1].reason.startswith("UnsuitableEnvironment: ")
        assert "\n" not in events[-1].reason
        again = run_to_the_end(engine, bad)  # As a search does, before it gives a job up.
        assert [type(event) for event in again] == [Started, Failed]
        engine.forget_checkpoint(bad.key)
        assert engine.free == 2

    def test_a_job_that_is_told_to_stop_ends_at_that_point(self, engine: Engine) -> None:
        """No evaluation comes after the one that was answered so."""
        job = small_job(5)
        events = run_to_the_end(engine, job, go_on=lambda event: event.point.step < 400)
        engine.forget_checkpoint(job.key)
        assert isinstance(events[-1], Finished)
        assert _curve(events, job).points == _expected(job).points[:2]

    def test_the_trained_agent_comes_with_the_end_if_it_is_wanted(self, engine: Engine) -> None:
        """It is that of the job; one that was told to stop has none."""
        job = replace(small_job(7), wants_policy=True)
        end = run_to_the_end(engine, job)[-1]
        engine.forget_checkpoint(job.key)
        assert isinstance(end, Finished)
        assert end.policy is not None
        with TemporaryDirectory() as folder:
            file = Path(folder) / "policy.safetensors"
            file.write_bytes(end.policy)
            policy = load_agent(file)
        assert (policy.job, policy.step) == (job.training, job.training.config.steps)
        stopped = run_to_the_end(engine, job, go_on=lambda _: False)[-1]
        engine.forget_checkpoint(job.key)
        assert isinstance(stopped, Finished)
        assert stopped.policy is None

    def test_a_job_can_be_done_again_once_its_result_is_stored(self, engine: Engine) -> None:
        """It is trained anew, to the same curve."""
        job = small_job(6)
        for _ in range(2):
            events = run_to_the_end(engine, job, go_on=lambda _: True)
            engine.forget_checkpoint(job.key)
            assert _curve(events, job) == _expected(job)

    def test_nothing_is_heard_of_an_engine_that_has_nothing_to_do(self, engine: Engine) -> None:
        """Nor is an answer that nobody waits for an error."""
        engine.answer(JobKey("study", 7), go_on=True)
        engine.forget_checkpoint(JobKey("study", 7))
        assert engine.events(0.01) == []
