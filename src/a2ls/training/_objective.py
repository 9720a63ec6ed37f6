"""Training by a function of the user's own, named as `module:function`, in the place of `train`."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterable
from typing import Any

from a2ls._errors import BadInput
from a2ls._user_code import import_user_module
from a2ls.training._curve import Curve, CurvePoint
from a2ls.training._job import TrainJob

_ARGUMENTS = ("loss", "seed", "report", "env", "steps")
"""What a function may take, by these names; it is given those that it takes."""


class BadObjective(ValueError):
    """The function does not do what a training function has to do."""


class _Stopped(BaseException):
    """The function reports on, although it was told to stop. No `except Exception` of its own keeps it from ending."""


def find_objective(name: str) -> Callable[..., Any]:
    """The function that `module:function` names; the module may lie in the current folder.

    Raises:
        BadInput: If there is none, or it takes what it cannot be given.
    """
    module, _, attribute = name.rpartition(":")
    if not module or not attribute:
        raise BadInput(f"objective is {name!r}, but must be module:function")
    function: Any = import_user_module(module, f"objective {name!r}")
    for part in attribute.split("."):
        function = getattr(function, part, None)
    if not callable(function):
        raise BadInput(f"objective is {name!r}, but the module {module} has no function {attribute!r}")
    _chosen_arguments(function, name)
    return function  # type: ignore[no-any-return]


def _chosen_arguments(function: Callable[..., Any], name: str) -> tuple[str, ...]:
    parameters = inspect.signature(function).parameters.values()
    unknown = [
        each.name
        for each in parameters
        if each.name not in _ARGUMENTS
        and each.default is each.empty
        and each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD)
    ]
    if unknown or "loss" not in (each.name for each in parameters):
        wrong = f"takes {unknown[0]!r}" if unknown else "takes no loss"
        raise BadInput(f"the objective {name!r} {wrong}; it must take loss, and may take {', '.join(_ARGUMENTS[1:])}")
    return tuple(each.name for each in parameters if each.name in _ARGUMENTS)


def run_objective(job: TrainJob, on_evaluation: Callable[[CurvePoint], object]) -> Curve:
    """Call the function of a job, and return the curve that it reported or returned.

    Args:
        job: Its agent is the `objective`, whose settings name the function.
        on_evaluation: Called with each point of the curve; the function is told to end there if it returns "stop".

    Raises:
        BadInput: If there is no such function.
        BadObjective: If it reports no score, or one that is none.
    """
    name = getattr(job.config.agent, "objective", "")
    function = find_objective(name)
    curve, stopped = Curve(), False

    def report(step: int, score: float) -> bool:
        nonlocal curve, stopped
        if stopped:
            raise _Stopped
        point = _point(step, score, curve)
        curve = curve.with_point(point)
        stopped = on_evaluation(point) == "stop"
        return not stopped

    available = dict(zip(_ARGUMENTS, (job.loss, job.seed, report, _env(job), job.config.steps), strict=True))
    chosen = _chosen_arguments(function, name)
    try:
        result = function(**{key: available[key] for key in chosen})
        if not stopped:
            _report_result(result, report, job.config.steps, reported=bool(curve.points))
    except _Stopped:
        return curve
    except SystemExit as error:
        raise BadObjective(f"the objective {name!r} ends the program, by sys.exit({error.code!r})") from error
    if not curve.points:
        raise BadObjective(f"the objective {name!r} has neither reported nor returned a score")
    return curve


def _env(job: TrainJob) -> str:
    return job.config.environment.env


def _report_result(result: Any, report: Callable[[int, float], bool], steps: int, *, reported: bool) -> None:
    """What the function returned: nothing, one score, or a curve of (step, score)."""
    if result is None:
        return
    if reported:
        raise BadObjective("the objective has reported scores, and returns something as well: do one of both")
    if isinstance(result, Curve):
        points: Iterable[Any] = [(point.step, point.score) for point in result.points]
    else:
        points = result if isinstance(result, list | tuple) else [(steps, result)]
    for point in points:
        try:
            step, score = point
        except (TypeError, ValueError) as error:
            raise BadObjective(
                f"the objective returns {point!r:.60} in a curve, but its points are (step, score)"
            ) from error
        if not report(step, score):
            return


def _point(step: Any, score: Any, curve: Curve) -> CurvePoint:
    try:
        number, value = int(step), float(score)
    except (TypeError, ValueError) as error:
        words = f"the step {step!r:.40} and the score {score!r:.40}"
        raise BadObjective(f"the objective gives {words}, but they must be numbers") from error
    if not math.isfinite(value):
        raise BadObjective(f"the objective gives the score {value} at step {number}, but it must be finite")
    last = curve.points[-1].step if curve.points else 0
    if number <= last and (curve.points or number < 0):
        raise BadObjective(f"the objective gives a score for step {number} after one for step {last}: steps must grow")
    return CurvePoint(number, (value,))
