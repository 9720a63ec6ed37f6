"""Benchmarks: grids that grow, what they store, and what their trainings come to."""

import math
from dataclasses import replace

import numpy as np
import pytest

from a2ls import BadInput, Failure
from a2ls.benchmark import (
    BenchmarkFolder,
    Grid,
    benchmark,
    compared_loss,
    method_runs,
    operator_methods,
    operator_scores,
)
from a2ls.search import SearchConfig, SearchFolder
from a2ls.space import OPERATORS, Loss, named_loss
from a2ls.studies import TrialRecord, baseline, method
from a2ls.training import Curve, CurvePoint, NotARun, preset, train
from helpers.engines import InstantEngine, made_up_score
from helpers.trainings import PENDULUM

WALKER = preset("fast", "walker-run")
SAC, FORWARD, WINNER = baseline("sac"), method("s0 a0 -> s1"), method("a2-winner")


def identities(jobs):
    return [(job.label, job.training.config.environment.env, job.training.seed) for job in jobs]


def results(folder):
    """What the records say, by what they are of."""
    return {
        (record.label, record.env, record.seed): record.curve
        for record in folder.records()
        if record.state == "finished"
    }


def test_a_grid_has_every_training_once_and_whole_rounds_of_seeds_first():
    shifted = method("s3 a3 -> s4")
    grid = Grid((SAC, FORWARD, shifted, method("none")), (PENDULUM, WALKER), (4, 5, 4))
    assert [run.identity for run in grid.runs()] == [
        (name, env, seed) for seed in (4, 5) for env in ("Pendulum-v1", "walker-run") for name in ("sac", "s0 a0 -> s1")
    ]
    assert grid.reference == "sac"
    assert Grid((FORWARD,), (PENDULUM,), (0,)).reference is None


def test_curl_is_one_method_as_loss_and_as_baseline():
    assert method("curl") == baseline("curl") == method("s2 -> s2 | bilinear +neg | no predictor")
    assert method("s2 -> s2 | bilinear +neg") != baseline("curl")


def test_methods_with_settings_of_their_own_are_methods_of_their_own(tmp_path):
    plain, wide = method("a2-winner"), method("A2-Winner: hidden=12,  encoder-lr = 1e-3")
    assert wide.name == f"{plain.name}: encoder_lr=0.001, hidden=12"
    assert wide.label == "a2-winner: encoder_lr=0.001, hidden=12"
    assert method("a2-winner: encoder_lr=1e-3, hidden=12") == wide != plain
    shared = method("sac: actor_encoder=shared, hidden_share=0.5, compiled=no")
    config = shared.job(PENDULUM, 0).config
    assert (config.agent.actor_encoder, config.environment.hidden_share, config.compiled) == ("shared", 0.5, False)
    assert replace(wide.job(PENDULUM, 0).config, agent=PENDULUM.agent) == PENDULUM
    assert wide.job(PENDULUM, 0).config.agent == replace(PENDULUM.agent, hidden=12, encoder_lr=1e-3)
    assert method("curl: hidden=12").job(PENDULUM, 0).config.agent.auxiliary_batch == "critic"

    engine, path = InstantEngine(), tmp_path / "b"
    folder = BenchmarkFolder.create(path, Grid((SAC, shared, plain, wide), (PENDULUM,), (0,)))
    folder.run(engine)
    assert [job.training for job in engine.jobs] == [each.job(PENDULUM, 0) for each in (SAC, shared, plain, wide)]
    again = BenchmarkFolder.open(path)
    assert (again.grid, again.missing(), again.grid.reference) == (folder.grid, [], "sac")
    assert [record.label for record in again.records()] == ["sac", shared.name, plain.name, wide.name]
    assert [record.is_baseline for record in again.records()] == [True, True, False, False]
    assert [runs.label for runs in method_runs(again.records())["Pendulum-v1"]] == [
        "sac", "sac: actor_encoder=shared, compiled=false, hidden_share=0.5", "a2-winner", wide.label]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a2-winner: steps=10", "steps cannot be a setting of one method: all methods of a benchmark have the same"),
        ("a2-winner: preset=fast", "preset cannot be a setting of one method: it stands for all settings"),
        ("a2-winner: hiden=10", "unknown setting 'hiden': did you mean hidden or"),
        ("a2-winner: hidden=big", "hidden is 'big', but must be of type int"),
        ("a2-winner: hidden=8, wide", "written name=value, got 'wide'"),
        ("a2-winner: actor_encoder=both", "actor_encoder is 'both', but must be one of 'own', 'shared'"),
        ("a2-loser: hidden=8", "there is no loss named 'a2-loser'"),
    ],
)
def test_settings_that_a_method_cannot_have(text, message):
    with pytest.raises(BadInput, match=message):
        method(text)
    with pytest.raises(BadInput, match="encoder_layers is 9"):
        Grid((method("a2-winner: encoder_layers=9"),), (PENDULUM,), (0,))


@pytest.mark.parametrize(
    ("grid", "message"),
    [
        (((), (PENDULUM,), (0,)), "nothing to train"),
        (((SAC,), (), (0,)), "environments are \\[\\]"),
        (((SAC,), (PENDULUM, replace(PENDULUM, steps=800)), (0,)), "each once"),
        (((SAC,), (PENDULUM,), ()), "seeds are \\[\\]"),
        (((SAC,), (PENDULUM,), (0, -1)), "not negative"),
    ],
)
def test_grids_that_cannot_be_trained(grid, message):
    with pytest.raises(BadInput, match=message):
        Grid(*grid)


def test_more_of_anything_trains_only_what_is_missing(tmp_path):
    def ask(*grid):
        folder, engine = BenchmarkFolder.ask(tmp_path / "b", Grid(*grid)), InstantEngine(workers=2)
        expected = len(folder.missing())
        folder.run(engine)
        assert len(engine.jobs) == expected
        assert not folder.missing()
        return identities(engine.jobs), results(BenchmarkFolder.open(tmp_path / "b"))

    first, before = ask((SAC,), (PENDULUM,), (0, 1))
    assert first == [("sac", "Pendulum-v1", 0), ("sac", "Pendulum-v1", 1)]
    assert ask((SAC,), (PENDULUM,), (0, 1))[0] == []
    assert ask((SAC,), (PENDULUM,), (0, 1, 2))[0] == [("sac", "Pendulum-v1", 2)]
    assert ask((FORWARD,), (PENDULUM,), (0,))[0] == [("forward-dynamics", "Pendulum-v1", 0)]
    last, after = ask((SAC, FORWARD), (PENDULUM, WALKER), (0,))
    assert last == [("sac", "walker-run", 0), ("forward-dynamics", "walker-run", 0)]
    assert len(after) == 6
    assert all(after[key] == curve for key, curve in before.items())


def test_rows_of_earlier_grids_stay_but_only_the_last_grid_is_asked(tmp_path):
    folder = BenchmarkFolder.create(tmp_path / "b", Grid((SAC, FORWARD), (PENDULUM,), (0, 1)))
    folder.run(InstantEngine())
    folder = BenchmarkFolder.ask(tmp_path / "b", Grid((SAC,), (PENDULUM,), (1,)))
    assert len(folder.records()) == 4
    assert [(record.label, record.seed) for record in folder.asked_records()] == [("sac", 1)]


def test_other_settings_in_the_same_environment_are_refused(tmp_path):
    grid = Grid((SAC,), (PENDULUM,), (0,))
    BenchmarkFolder.create(tmp_path / "b", grid)
    wider = replace(PENDULUM, agent=replace(PENDULUM.agent, hidden=16))
    with pytest.raises(BadInput, match="Pendulum-v1 with other settings: hidden is 8 there, but 16 here"):
        BenchmarkFolder.ask(tmp_path / "b", Grid((SAC,), (WALKER, wider), (0,)))
    kept = BenchmarkFolder.open(tmp_path / "b")
    assert (kept.grid, list(kept.settings.configs)) == (grid, ["Pendulum-v1"])


def test_the_folder_knows_its_grid_and_the_settings_of_all_environments(tmp_path):
    BenchmarkFolder.create(tmp_path / "b", Grid((SAC,), (PENDULUM,), (0,)))
    grid = Grid((baseline("curl"), WINNER, method("s0 -> s1 | inner +neg")), (WALKER,), (3, 4))
    BenchmarkFolder.ask(tmp_path / "b", grid)
    again = BenchmarkFolder.open(tmp_path / "b")
    assert [each.name for each in again.grid.methods] == [each.name for each in grid.methods]
    assert (again.grid.configs, again.grid.seeds) == (grid.configs, grid.seeds)
    assert again.settings.configs == {"Pendulum-v1": PENDULUM, "walker-run": WALKER}


@pytest.mark.parametrize("events", [0, 3, 8])
def test_an_interrupted_benchmark_goes_on(tmp_path, events):
    grid = Grid((SAC, FORWARD), (PENDULUM,), (0, 1))
    whole = BenchmarkFolder.create(tmp_path / "whole", grid)
    whole.run(InstantEngine())
    cut = BenchmarkFolder.create(tmp_path / "cut", grid)
    with pytest.raises(KeyboardInterrupt):
        cut.run(InstantEngine(interrupt_after=events))
    engine = InstantEngine()
    again = BenchmarkFolder.open(tmp_path / "cut")
    again.run(engine)
    assert len(engine.jobs) == (4 if events < 6 else 3)
    assert results(again) == results(whole)
    assert len(again.records()) == 4


def test_what_failed_is_tried_again_when_asked_again(tmp_path):
    def score(job):
        return RuntimeError("no luck") if job.training.seed == 1 else made_up_score(job)

    folder = BenchmarkFolder.create(tmp_path / "b", Grid((SAC,), (PENDULUM,), (0, 1)))
    folder.run(InstantEngine(score=score))
    assert [run.seed for run in folder.missing()] == [1]
    failed = [record for record in folder.records() if record.state == "failed"]
    assert [record.reasons for record in failed] == [("no luck", "no luck")]
    assert method_runs(folder.records())["Pendulum-v1"][0].failed == 1
    engine = InstantEngine()
    folder.run(engine)
    assert [job.training.seed for job in engine.jobs] == [1]
    summary = method_runs(folder.records())["Pendulum-v1"][0]
    assert (len(summary.records), summary.failed) == (2, 0)


@pytest.mark.parametrize(("reason", "is_one"), [("no luck at step {}", True), ("no {}", False)])
def test_trainings_that_all_fail_for_one_reason_end_with_it(reason, is_one, tmp_path):
    words = ["luck", "skill"]
    folder = BenchmarkFolder.create(tmp_path / "b", Grid((SAC,), (PENDULUM,), (0, 1)))
    engine = InstantEngine(
        score=lambda job: RuntimeError(reason.format(job.training.seed if is_one else words[job.training.seed]))
    )
    if is_one:
        with pytest.raises(
            Failure, match=r"^all of 2 trainings failed for one reason: no luck at step 1\. .*workers.log"
        ):
            folder.run(engine)
    else:
        folder.run(engine)
    assert [record.state for record in folder.records()] == ["failed", "failed"]
    folder.run(InstantEngine())  # When that is mended, they are trained.
    assert not folder.missing()


def test_a_folder_with_something_else_is_refused(tmp_path):
    SearchFolder.create(tmp_path / "search", SearchConfig(PENDULUM))
    grid = Grid((SAC,), (PENDULUM,), (0,))
    with pytest.raises(NotARun, match="holds no benchmark, but a search"):
        BenchmarkFolder.ask(tmp_path / "search", grid)
    with pytest.raises(NotARun, match="already holds a search"):
        BenchmarkFolder.create(tmp_path / "search", grid)
    with pytest.raises(NotARun, match="holds no benchmark"):
        BenchmarkFolder.open(tmp_path / "nothing")
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "config.toml").write_text("kind = ")
    with pytest.raises(NotARun, match="not valid TOML"):
        BenchmarkFolder.open(tmp_path / "broken")


def test_several_benchmarks_in_one_storage(tmp_path):
    url = f"sqlite:///{tmp_path}/shared.db"
    grid = Grid((SAC,), (PENDULUM,), (0,))
    for name in ("one", "two"):
        folder = BenchmarkFolder.create(tmp_path / name, grid, storage=url)
        folder.run(InstantEngine())
        assert len(folder.records()) == 1
        assert not folder.files.database.exists()
    with pytest.raises(BadInput, match="has a study 'one' already"):
        BenchmarkFolder.create(tmp_path / "elsewhere" / "one", grid, storage=url)
    with pytest.raises(BadInput, match="keeps its trainings in another storage"):
        BenchmarkFolder.ask(tmp_path / "one", grid, storage="sqlite:///other.db")
    assert not BenchmarkFolder.ask(tmp_path / "one", grid).missing()


def test_the_lock_is_given_back_after_a_run(tmp_path):
    folder = BenchmarkFolder.create(tmp_path / "b", Grid((SAC,), (PENDULUM,), (0,)))
    folder.run(InstantEngine())
    other = BenchmarkFolder.open(tmp_path / "b")
    other.run(InstantEngine())
    with other.files.acquire(), pytest.raises(BadInput, match="another process is at work"):
        folder.run(InstantEngine())


def test_real_trainings_are_those_of_train(tmp_path):
    folder = BenchmarkFolder.create(tmp_path / "b", Grid((baseline("sac-identity"), FORWARD), (PENDULUM,), (7,)))
    folder.run(workers=1)
    identity = replace(PENDULUM, agent=replace(PENDULUM.agent, encoder="identity"))
    assert results(folder) == {
        ("sac-identity", "Pendulum-v1", 7): train(identity, None, 7),
        ("s0 a0 -> s1", "Pendulum-v1", 7): train(PENDULUM, FORWARD.loss, 7),
    }


def record(label, seed, *scores, state="finished", env="Pendulum-v1"):
    loss = None if label == "sac" else Loss.parse(label)
    curve = Curve(tuple(CurvePoint(step, (score,)) for step, score in enumerate(scores, 1)))
    return TrialRecord(0, label, loss, env, seed, state, curve, 1.0, ())


def test_the_runs_of_known_records():
    records = [record("s0 a0 -> s1", 1, 10, 30), record("s0 a0 -> s1", 0, 20, 60), record("sac", 0, 5, 15)]
    records += [
        record("s0 a0 -> s1", 2, 1, state="running"),
        record("sac", 3, state="failed"),
        record("sac", 0, state="failed"),
    ]
    sac, forward = method_runs(records)["Pendulum-v1"]
    assert (sac.label, sac.mean(), sac.failed, sac.interval) == ("sac", 10.0, 1, None)
    assert math.isnan(sac.sd())
    assert forward.label == "forward-dynamics"
    assert forward.scores().tolist() == [40.0, 20.0]
    assert forward.scores("last").tolist() == [60.0, 30.0]
    assert (forward.mean(), forward.mean("last"), forward.ratio(sac)) == (30.0, 45.0, 3.0)
    assert forward.sd() == pytest.approx(np.std([40, 20], ddof=1))


def test_operators_on_one_loss(tmp_path):
    grid = Grid(operator_methods(named_loss("forward-dynamics")), (PENDULUM,), (0, 1))
    assert len(grid.methods) == 10
    assert str(compared_loss(grid)) == "s0 a0 -> s1"
    folder = BenchmarkFolder.create(tmp_path / "b", grid)
    engine = InstantEngine(score=lambda job: 50 * (1 + OPERATORS.index(job.training.loss.operator)))
    folder.run(engine)
    scores = operator_scores(folder.asked_records())
    assert list(scores) == list(OPERATORS)
    np.testing.assert_allclose(list(scores.values()), [[place / 10] * 2 for place in range(1, 11)])


def test_operators_of_a_loss_that_has_a_baseline_among_them():
    grid = Grid(operator_methods(named_loss("curl")), (PENDULUM,), (0,))
    assert "curl" in [each.name for each in grid.methods]
    assert str(compared_loss(grid)) == "s0 -> s0 | no predictor"
    for methods in ((SAC,), grid.methods[:9], (*grid.methods[:9], FORWARD)):
        with pytest.raises(BadInput, match="ten operators"):
            compared_loss(Grid(methods, (PENDULUM,), (0,)))


def test_benchmark_is_all_of_it_in_one_call(tmp_path):
    grid = Grid((baseline("sac"),), (PENDULUM,), (0, 1))
    assert [record.seed for record in benchmark(grid, tmp_path / "benchmark", engine=InstantEngine())] == [0, 1]
    more = Grid((baseline("sac"),), (PENDULUM,), (1, 2))
    engine = InstantEngine()
    assert [record.seed for record in benchmark(more, tmp_path / "benchmark", engine=engine)] == [1, 2]
    assert [job.training.seed for job in engine.jobs] == [2]


@pytest.mark.parametrize("folder", [BenchmarkFolder, SearchFolder])
def test_settings_that_someone_has_cut_are_refused_by_name(folder, tmp_path):
    kind = "benchmark" if folder is BenchmarkFolder else "search"
    (tmp_path / "config.toml").write_text(f'kind = "{kind}"\nname = "mine"\n')
    with pytest.raises(NotARun, match=r"config.toml lacks storage"):
        folder.open(tmp_path)
