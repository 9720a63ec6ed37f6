"""What a loss is and how it is written, checked by hand against the paper."""

import doctest
import importlib
import json
import subprocess
import sys

import pytest

from a2ls.space import MSE, OPERATORS, Element, InvalidLoss, Loss, Operator, space_size

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


@pytest.mark.parametrize(
    "text",
    [
        "s0 a0 -> s1",
        "  S0,a0->S1  ",
        "a0 s0 a0 -> s1 s1",
        "s0 a0 → s1",
        "s0 a0 => s1 | mse",
        "s0 a0 -> s1 @1 | MSE",
        "{s_t, a_t} -> {s_{t+1}}",
        "{s_t,a_t}->{s_{t+1}} @ 1 | mse",
        "{ s_{t}, a_{ t } } -> { s_{t + 1} }",
        "s_t, a_t -> s_t+1",
        r"$\{s_{t}, a_{t}\} \rightarrow \{s_{t+1}\}$",
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
    ("text", "horizon", "operator"),
    [
        ("s0 -> s0", 1, "mse"),
        ("s0 -> s0 @4", 4, "mse"),
        ("s0 -> s3", 3, "mse"),
        ("s0 -> s3 @5 | bilinear +neg", 5, "bilinear +neg"),
        ("s0 -> s3@5|bilinear+neg", 5, "bilinear +neg"),
        ("s0 -> s3 | N-MSE", 3, "nmse"),
        ("s0 -> s3 | mse +neg @6", 6, "mse +neg"),
        (r"\{s_t\} \rightarrow \{s_{t+3}\} @5 | cosine +neg", 5, "cosine +neg"),
    ],
)
def test_horizon_and_operator(text, horizon, operator):
    loss = Loss.parse(text)
    assert (loss.horizon, str(loss.operator)) == (horizon, operator)
    assert len(loss.source) == len(loss.target) == 3 * horizon + 3
    assert Loss.parse(str(loss)) == loss


def test_text_names_horizon_and_operator_only_where_they_are_not_the_default():
    assert str(Loss.parse("s0 -> s2 @2 | mse")) == "s0 -> s2"
    assert str(Loss.parse("s0 -> s2 @3 | mse +neg")) == "s0 -> s2 @3 | mse +neg"
    assert Loss.parse("s0 -> s2 @3 | nmse").paper() == "{s_t} -> {s_{t+2}} @3 | nmse"


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("s2 a2 -> s3 @7", "s0 a0 -> s1"),
        ("s1 a1 -> r0", "s1 a1 -> r0"),
        ("s4 -> s4 | cosine", "s0 -> s0 | cosine"),
        ("s0 -> s0 @9", "s0 -> s0"),
    ],
)
def test_canonical_by_hand(text, canonical):
    assert Loss.parse(text).canonical() == Loss.parse(canonical)


@pytest.mark.parametrize(
    ("text", "transitions"),
    [
        ("s0 -> s0", 1),
        ("s0 a0 -> s1", 1),
        ("s0 -> a1", 2),
        ("s0 -> r3", 4),
        ("s0 -> s3", 3),
        ("s0 -> s1 @9", 1),
    ],
)
def test_transitions_needed_by_hand(text, transitions):
    assert Loss.parse(text).transitions_needed == transitions


def test_json_is_readable():
    text = Loss.parse("s0 a0 -> s1 @2 | mse +neg").to_json()
    assert json.loads(text) == {"horizon": 2, "source": "s0 a0", "target": "s1", "operator": "mse +neg"}


def test_json_errors_say_what_they_got():
    with pytest.raises(ValueError, match="fields horizon, source, target, operator, got horizon"):
        Loss.from_json('{"horizon": 1}')
    with pytest.raises(ValueError, match="JSON object"):
        Loss.from_json("[1]")
    with pytest.raises(ValueError, match="whole number, got '2'"):
        Loss.from_dict({"horizon": "2", "source": "s0", "target": "s1", "operator": "mse"})
    with pytest.raises(ValueError, match="shorter than the last element, s3"):
        Loss.from_dict({"horizon": 2, "source": "s0", "target": "s3", "operator": "mse"})
    with pytest.raises(ValueError, match=r"'x1' is not an element.*'y' is not an element"):
        Loss.from_dict({"horizon": 2, "source": "s0", "target": "x1 y", "operator": "mse"})


# Errors


def test_masks_of_the_wrong_length():
    with pytest.raises(ValueError, match="source mask of horizon 2 must have 3k\\+3 = 9 bits, got 6"):
        Loss(2, (True,) * 6, (True,) * 9)
    with pytest.raises(ValueError, match="target mask of horizon 1 must have 3k\\+3 = 6 bits, got 9"):
        Loss(1, (True,) * 6, (True,) * 9)
    with pytest.raises(ValueError, match=r"got 6 .* and 3"):
        Loss.from_bits("110000", "100")
    with pytest.raises(ValueError, match="multiple of 3: got 4"):
        Loss.from_bits("1100", "1100")


def test_masks_hold_bits_and_nothing_else():
    with pytest.raises(ValueError, match="got 2 in the source"):
        Loss(1, (2, 0, 0, 0, 0, 0), (0,) * 6)
    with pytest.raises(ValueError, match="got 'x'"):
        Loss.from_bits("1x0000", "000100")
    with pytest.raises(ValueError, match="got -1"):
        Loss(-1, (), ())
    with pytest.raises(TypeError, match="must be an Operator"):
        Loss(1, (1,) * 6, (1,) * 6, "mse")


def test_masks_of_numbers_become_booleans():
    loss = Loss(1, (1, 0, 0, 0, 0, 0), [0, 0, 0, 1, 0, 0])
    assert loss.source == (True, False, False, False, False, False)
    assert all(type(bit) is bool for bit in loss.source + loss.target)


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
    import pickle

    error = InvalidLoss("s0", ("one", "two"))
    copy = pickle.loads(pickle.dumps(error))
    assert (copy.text, copy.reasons, str(copy)) == ("s0", ("one", "two"), str(error))


# Operators and elements


def test_there_are_ten_operators_and_each_reads_back():
    assert len(set(OPERATORS)) == 10
    assert sorted({operator.similarity for operator in OPERATORS}) == [
        "bilinear",
        "cosine",
        "inner",
        "mse",
        "nmse",
    ]
    for operator in OPERATORS:
        assert Operator.parse(str(operator)) == operator
    assert sorted(OPERATORS)[0] == Operator("bilinear")


@pytest.mark.parametrize(("word", "nearest"), [("bilnear", "bilinear"), ("msee", "mse"), ("cosin", "cosine")])
def test_misspelt_operator_names_the_nearest_and_all(word, nearest):
    for make in (Operator, Operator.parse):
        with pytest.raises(ValueError, match=rf"did you mean {nearest}.*inner, bilinear, cosine, mse, nmse"):
            make(word)


def test_elements_are_ordered_as_the_mask():
    names = ["s0", "a0", "r0", "s1", "a1", "r1", "s10"]
    elements = [Element.parse(name) for name in names]
    shuffled = [elements[place] for place in (6, 2, 0, 5, 3, 1, 4)]
    assert sorted(shuffled) == elements
    assert [element.bit for element in elements] == [0, 1, 2, 3, 4, 5, 30]
    with pytest.raises(ValueError, match="'q0' is not an element"):
        Element.parse("q0")
    with pytest.raises(ValueError, match="counts from 0, got -1"):
        Element("s", -1)
    with pytest.raises(ValueError, match="got 'x'"):
        Element("x", 1)


def test_from_elements_needs_room():
    with pytest.raises(ValueError, match="horizon 1 is shorter than the last element, a2"):
        Loss.from_elements([Element("s", 0)], [Element("a", 2)], horizon=1)


# The package


def test_space_needs_neither_torch_nor_numpy():
    code = "import sys, a2ls.space; print([m for m in ('torch', 'numpy', 'gymnasium') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("module", ["", "._elements", "._loss", "._operators", "._patterns", "._zoo"])
def test_examples_in_the_documentation(module):
    result = doctest.testmod(importlib.import_module(f"a2ls.space{module}"))
    assert result.attempted > 0
    assert result.failed == 0


def test_all_public_names_exist():
    import a2ls.space

    assert all(hasattr(a2ls.space, name) for name in a2ls.space.__all__)
