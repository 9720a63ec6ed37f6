"""Training functions of users, in the place of the training of this package."""

import sys
from dataclasses import replace

import pytest

from a2ls import BadInput, named_loss, train
from a2ls.agents import OBJECTIVE, ObjectiveConfig
from a2ls.search import search_preset
from a2ls.training import Training, TrainJob, find_objective, preset, require_trainable, run_objective
from helpers.trainings import PENDULUM, bits

FUNCTIONS = """
from a2ls import train as a2ls_train

def one_score(loss):
    return 3.5

def points(loss, seed, env, steps):
    return [(1, seed), (steps, len(env))]

def reports(loss, report):
    asked = [report(step, 10 * step) for step in (1, 2)]
    report(3, sum(asked))

def swallows(loss, report):
    for step in range(1, 9):
        try:
            report(step, 0.0)
        except Exception:
            pass

def ends_where_it_is_told(loss, report):
    step = 0
    while report(step := step + 1, 1.0):
        pass
    return 99.0

def built_in(loss, seed):
    from helpers.trainings import PENDULUM
    return a2ls_train(PENDULUM, loss, seed)

def silent(loss): pass
def both(loss, report): report(1, 1.0); return 2.0
def backwards(loss, report): report(2, 1.0); report(2, 1.0)
def infinite(loss): return float("inf")
def words(loss): return "good"
def flat(loss): return [1.0, 2.0]
def exits(loss): raise SystemExit(3)
def no_loss(seed): return 1.0
def more(loss, budget): return 1.0
a_number = 3
"""


@pytest.fixture(autouse=True)
def _functions(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "my_functions.py").write_text(FUNCTIONS)
    yield
    sys.modules.pop("my_functions", None)


def job(name, loss=None, seed=7):
    config = search_preset("quick", "maze", objective=f"my_functions:{name}").training
    return TrainJob(replace(config, steps=100), loss, seed)


def curve_of(name, stop_at=None):
    seen = []

    def evaluated(point):
        seen.append((point.step, point.score))
        return "stop" if point.step == stop_at else None

    curve = run_objective(job(name), evaluated)
    assert [(point.step, point.score) for point in curve.points] == seen
    return seen


def test_a_score_a_curve_or_reports_are_the_learning_curve():
    assert curve_of("one_score") == [(100, 3.5)]
    assert curve_of("points") == [(1, 7.0), (100, 4.0)]
    assert curve_of("reports") == [(1, 10.0), (2, 20.0), (3, 2.0)]


def test_a_function_that_is_told_to_stop_gets_no_further():
    assert curve_of("ends_where_it_is_told", stop_at=4) == [(step, 1.0) for step in (1, 2, 3, 4)]
    assert curve_of("swallows", stop_at=2) == [(1, 0.0), (2, 0.0)]
    assert curve_of("points", stop_at=1) == [(1, 7.0)]


def test_the_training_of_this_package_is_one():
    found = run_objective(job("built_in", named_loss("a2-winner"), 1), lambda _: None)
    expected = train(PENDULUM, named_loss("a2-winner"), 1)
    assert bits(found) == [(point.step, [point.score.hex()]) for point in expected.points]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("silent", "neither reported nor returned a score"),
        ("both", "do one of both"),
        ("backwards", "step 2 after one for step 2"),
        ("infinite", "the score inf at step 100"),
        ("words", "score 'good', but they must be numbers"),
        ("flat", r"returns 1\.0 in a curve"),
        ("exits", r"sys\.exit\(3\)"),
    ],
)
def test_what_is_no_curve_is_refused_in_words(name, message):
    with pytest.raises(ValueError, match=message):
        run_objective(job(name), lambda _: None)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("", "objective is '', but must be module:function"),
        ("my_functions", "must be module:function"),
        ("nowhere:train", "The module 'nowhere' of the objective 'nowhere:train' cannot be imported"),
        ("my_functions:trian", "has no function 'trian'"),
        ("my_functions:a_number", "has no function 'a_number'"),
        ("my_functions:no_loss", "takes no loss; it must take loss, and may take seed, report, env, steps"),
        ("my_functions:more", "takes 'budget'"),
    ],
)
def test_what_is_no_training_function_is_refused_before_anything_is_written(name, message):
    with pytest.raises(BadInput, match=message):
        find_objective(name)
    config = replace(preset("fast", "maze", OBJECTIVE), agent=ObjectiveConfig(name))
    with pytest.raises(BadInput, match=message):
        require_trainable(config)


def test_there_is_no_agent_of_it():
    config = replace(preset("fast", "Pendulum-v1", OBJECTIVE), agent=ObjectiveConfig("my_functions:one_score"))
    with pytest.raises(BadInput, match="an objective trains by itself"):
        Training(config, None, 0)
