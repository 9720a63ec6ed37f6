"""The paper's operator experiment (its search space pruning): the ten operators on the same elements."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from a2ls._errors import BadInput
from a2ls.search._benchmark import Grid
from a2ls.search._contenders import Contender, loss_contender
from a2ls.search._results import Measure, summarise
from a2ls.search._rows import Row
from a2ls.search._statistics import Array, with_best_as_one
from a2ls.space import MSE, OPERATORS, Loss, Operator
from a2ls.training import DEFAULT_AGENT


def operator_contenders(loss: Loss, algorithm: str = DEFAULT_AGENT) -> tuple[Contender, ...]:
    """The loss with each of the ten operators in place of its own, for an agent."""
    return tuple(loss_contender(replace(loss, operator=operator), algorithm) for operator in OPERATORS)


def compared_loss(grid: Grid) -> Loss:
    """The loss, with the operator mse, whose operators a grid compares.

    Raises:
        BadInput: If it does not compare operators.
    """
    losses = [contender.loss for contender in grid.contenders]
    forms = {replace(loss.canonical(), operator=MSE) for loss in losses if loss is not None}
    if None in losses or len(forms) != 1 or len(losses) != len(OPERATORS):
        raise BadInput("the grid does not have the ten operators on one loss")
    return forms.pop()


def operator_scores(rows: Sequence[Row], measure: Measure = "last") -> dict[Operator, Array]:
    """The scores of each operator in all environments, on the scale on which the best operator has the mean 1.

    An operator that has no finished training in some environment is left out.
    """
    by_env = summarise(rows)
    scores: dict[Operator, list[Array]] = {}
    for summaries in by_env.values():
        for each in summaries:
            if each.rows and each.rows[0].loss is not None:
                scores.setdefault(each.rows[0].loss.operator, []).append(each.scores(measure))
    complete = {operator: own for operator, own in scores.items() if len(own) == len(by_env)}
    if not complete:
        return {}
    return dict(zip(complete, with_best_as_one(list(complete.values())), strict=True))
