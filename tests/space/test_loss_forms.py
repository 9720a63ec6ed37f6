"""What a loss is and how it is written, checked by hand against the paper."""

import doctest
import importlib
import json
import pickle
from itertools import product

import pytest

from a2ls.space import MSE, OPERATORS, Element, InvalidLoss, Loss, Operator, mask_length, space_size

A2_WINNER = Loss.parse("s1 a1 a2 a3 -> r0 r1 s2 s3")


def reasons(text, **options):
    with pytest.raises(InvalidLoss) as caught:
        Loss.parse(text, **options)
    assert repr(text) in str(caught.value)
    for reason in caught.value.reasons:
        assert reason in str(caught.value)
    return caught.value.reasons


def test_mask_of_the_papers_section_3():
    # "the binary mask of this subset sequence {s_t, a_t, r_{t+1}} is denoted as 110001"
    loss = Loss.from_bits("110001", "000100")
    assert list(map(str, loss.source_elements)) == ["s0", "a0", "r1"]
    assert loss.paper() == "{s_t, a_t, r_{t+1}} -> {s_{t+1}}"
    assert Loss.parse("{s_t, a_t, r_{t+1}} -> {s_{t+1}}").to_bits() == ("110001", "000100")


def test_a2_winner_by_hand():
    assert A2_WINNER.to_bits() == ("000110010010", "001001100100")
    assert A2_WINNER.horizon == 3
    assert A2_WINNER.operator == MSE
    assert A2_WINNER.transitions_needed == 4  # a3 is an element
    assert A2_WINNER.paper() == "{s_{t+1}, a_{t+1}, a_{t+2}, a_{t+3}} -> {r_t, r_{t+1}, s_{t+2}, s_{t+3}}"
    assert A2_WINNER.latex() == (
        r"\{s_{t+1}, a_{t+1}, a_{t+2}, a_{t+3}\} \rightarrow \{r_{t}, r_{t+1}, s_{t+2}, s_{t+3}\}"
    )
    assert A2_WINNER.canonical() == A2_WINNER  # r0 is at the first step


def test_space_size_by_hand():
    # 64^2 + … + 64^11 = 64^2 (64^10 - 1) / 63 = 4096 * 18300341342965825, times ten operators
    assert space_size() == 749_581_981_407_880_192_000
    assert space_size(1) == 10 * 2**6 * 2**6
    assert space_size(2) == 10 * (4096 + 262_144)
    # 16 times fewer: two bits less in each of two masks.
    assert space_size(layout="released") == 749_581_981_407_880_192_000 // 16
    assert space_size(layout="released") == 10 * sum(2 ** (6 * k + 2) for k in range(1, 11))


@pytest.mark.parametrize("layout", ["paper", "released"])
@pytest.mark.parametrize("max_horizon", [1, 2])
def test_space_size_is_the_number_of_losses_that_fit(layout, max_horizon):
    fitting = 0
    for horizon in range(1, max_horizon + 1):
        masks = list(product("01", repeat=3 * horizon + 3))
        # Both masks of a loss have the same rule, so it is tried for one of them at a time.
        alone = [sum(Loss.from_bits("".join(mask), "0" * len(mask)).fits(layout) for mask in masks)]
        alone += [sum(Loss.from_bits("0" * len(mask), "".join(mask)).fits(layout) for mask in masks)]
        fitting += alone[0] * alone[1]
    assert space_size(max_horizon, layout) == len(OPERATORS) * fitting


def test_a_mask_has_the_bits_of_its_layout():
    assert [mask_length(k) for k in (1, 2, 10)] == [6, 9, 33]
    assert [mask_length(k, "released") for k in (1, 2, 10)] == [4, 7, 31]


@pytest.mark.parametrize(
    ("text", "fits"),
    [
        ("s0 a0 r0 s1 -> s0 a0 r0 s1", True),
        ("s0 a1 -> s1", False),
        ("s0 r1 -> s1", False),
        ("s0 -> a1", False),
        ("s0 -> r1", False),
        ("s0 a1 -> r1 @2", True),
        ("s1 a1 a2 a3 -> r0 r1 s2 s3", False),
        ("s1 a1 a2 a3 -> r0 r1 s2 s3 @4", True),
    ],
)
def test_the_released_layout_ends_with_a_state(text, fits):
    assert Loss.parse(text).fits("released") is fits
    assert Loss.parse(text).fits("paper")


@pytest.mark.parametrize(
    "text",
    [
        "  S0,a0->S1  ",
        "a0 s0 a0 -> s1 s1",
        "s0 a0 → s1",
        "s0 a0 => s1 | mse",
        "s0 a0 -> s1 @1 | MSE",
        "{ s_{t}, a_{ t } } -> { s_{t + 1} } @ 1 | mse",
        "s_t, a_t -> s_t+1",
        r"$\{s_t, a_t\}\to\{s_{t+1}\}$",
        r"\left\{s_t,\, a_t\right\} \longrightarrow \left\{s_{t+1}\right\} | mse",
    ],
)
def test_one_loss_in_many_spellings(text):
    loss = Loss.parse(text)
    assert loss.to_bits() == ("110000", "000100")
    assert str(loss) == "s0 a0 -> s1"
    assert repr(loss) == "<Loss s0 a0 -> s1>"


@pytest.mark.parametrize(
    ("text", "horizon", "operator", "shortest"),
    [
        ("s0 -> s0", 1, "mse", "s0 -> s0"),
        ("s0 -> s3 @3 | mse", 3, "mse", "s0 -> s3"),
        ("s0 -> s3@5|bilinear+neg", 5, "bilinear +neg", "s0 -> s3 @5 | bilinear +neg"),
        ("s0 -> s3 | N-MSE", 3, "nmse", "s0 -> s3 | nmse"),
        ("s0 -> s3 | mse +neg @6", 6, "mse +neg", "s0 -> s3 @6 | mse +neg"),
    ],
)
def test_horizon_and_operator_are_written_only_where_they_are_not_the_default(text, horizon, operator, shortest):
    loss = Loss.parse(text)
    assert (loss.horizon, str(loss.operator), str(loss)) == (horizon, operator, shortest)
    assert len(loss.source) == len(loss.target) == 3 * horizon + 3


def test_json_is_readable():
    text = Loss.parse("s0 a0 -> s1 @2 | mse +neg").to_json()
    assert json.loads(text) == {"horizon": 2, "source": "s0 a0", "target": "s1", "operator": "mse +neg"}


FIELDS = {"horizon": 2, "source": "s0", "target": "s1", "operator": "mse"}


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Loss.from_json('{"horizon": 1}'), "fields horizon, source, target, operator, got horizon"),
        (lambda: Loss.from_json("[1]"), "JSON object"),
        (lambda: Loss.from_dict(FIELDS | {"horizon": "2"}), "whole number, got '2'"),
        (lambda: Loss.from_dict(FIELDS | {"target": "s3"}), "shorter than the last element, s3"),
        (lambda: Loss.from_dict(FIELDS | {"target": "x1 y"}), r"'x1' is not an element.*'y' is not an element"),
        (lambda: Loss.from_elements([Element("s", 0)], [Element("a", 2)], horizon=1), "1 is shorter .*, a2"),
        (lambda: Loss(2, (True,) * 6, (True,) * 9), r"source mask of horizon 2 .* 9 bits, got 6"),
        (lambda: Loss(1, (True,) * 6, (True,) * 9), r"target mask of horizon 1 .* 6 bits, got 9"),
        (lambda: Loss.from_bits("110000", "100"), r"got 6 .* and 3"),
        (lambda: Loss.from_bits("1100", "1100"), "multiple of 3: got 4"),
        (lambda: Loss(1, (2, 0, 0, 0, 0, 0), (0,) * 6), "got 2 in the source"),
        (lambda: Loss.from_bits("1x0000", "000100"), "got 'x'"),
        (lambda: Loss(-1, (), ()), "got -1"),
        (lambda: Element.parse("q0"), "'q0' is not an element"),
        (lambda: Element("s", -1), "counts from 0, got -1"),
        (lambda: Element("x", 1), "got 'x'"),
    ],
)
def test_what_cannot_be_is_refused_with_its_value(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_an_operator_is_no_text():
    with pytest.raises(TypeError, match="must be an Operator"):
        Loss(1, (1,) * 6, (1,) * 6, "mse")


def test_problems_lists_every_reason():
    assert Loss.parse("s0 -> s1").problems() == ()
    empty = Loss(12, (False,) * 39, (False,) * 39)
    no_state, no_target, horizon = empty.problems()
    assert "no state" in no_state
    assert "target is empty" in no_target
    assert "12 is outside 1..10" in horizon
    assert len(empty.problems(max_horizon=12)) == 2
    assert Loss(0, (1, 0, 0), (1, 0, 0)).problems() == ("the horizon 0 is outside 1..10",)


def test_parse_lists_every_reason_of_form_and_meaning():
    found = reasons("a0 x1 -> @3 | msee +pos")
    assert len(found) == 4  # what is wrong with the operator is one reason
    for part in ("'x1' is not an element", "no state", "target is empty", "did you mean mse", "'+pos'"):
        assert part in " ".join(found)


def test_several_bad_elements_are_all_listed_with_a_hint():
    found = reasons("s0 state s -> t1 s_{t-1} s1")
    assert [reason.split()[0] for reason in found] == ["'state'", "'s'", "'t1'", "'s_{t-1}'"]
    assert all("looks like s0, a3" in reason for reason in found)


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("s0 a0 s1", "no arrow"),
        ("", "no arrow"),
        ("s0 -> s1 -> s2", "2 arrows"),
        ("s0 -> s3 @2", "@2 is shorter than the last element, s3"),
        ("s0 -> s1 @many", "'@many' is not a horizon"),
        ("s0 -> s1 @2 @3", "2 horizons"),
        ("s0 -> s1 @0", "@0 is shorter than the last element, s1"),
        ("s0 -> s0 @0", "horizon 0 is outside 1..10"),
        ("s0 -> s11", "horizon 11 is outside 1..10"),
        ("s0 -> s999999999", "horizon 999999999 is outside 1..10"),
        ("s0 -> s1 | mse | nmse", "2 operators"),
        ("s0 -> s1 |", "'' is not an operator"),
        ("-> s1", "no state"),
        ("a0 r0 -> s1", "no state"),
        ("s0 ->", "target is empty"),
    ],
)
def test_one_wrong_thing_gives_one_reason(text, part):
    (reason,) = reasons(text)
    assert part in reason


def test_horizon_limit_is_a_parameter():
    assert Loss.parse("s0 -> s11", max_horizon=11).horizon == 11
    assert reasons("s0 -> s4", max_horizon=3) == ("the horizon 4 is outside 1..3",)


def test_invalid_loss_survives_pickling():
    error = InvalidLoss("s0", ("one", "two"))
    copy = pickle.loads(pickle.dumps(error))
    assert (copy.text, copy.reasons, str(copy)) == ("s0", ("one", "two"), str(error))


# Operators and elements


def test_there_are_ten_operators_and_each_reads_back():
    assert {operator.similarity for operator in OPERATORS} == {"bilinear", "cosine", "inner", "mse", "nmse"}
    assert len({Operator.parse(str(operator)) for operator in OPERATORS}) == 10
    assert all(Operator.parse(str(operator)) == operator for operator in OPERATORS)
    assert min(OPERATORS) == Operator("bilinear")


@pytest.mark.parametrize("make", [Operator, Operator.parse])
def test_misspelt_operator_names_the_nearest_and_all(make):
    with pytest.raises(ValueError, match=r"did you mean bilinear.*inner, bilinear, cosine, mse, nmse"):
        make("bilnear")


@pytest.mark.parametrize("module", ["", "._elements", "._loss", "._patterns", "._zoo"])
def test_examples_in_the_documentation(module):
    result = doctest.testmod(importlib.import_module(f"a2ls.space{module}"))
    assert result.attempted > 0
    assert result.failed == 0
