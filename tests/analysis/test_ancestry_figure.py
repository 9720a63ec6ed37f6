"""The family of the best candidate: who is in it, what changed from parent to child, and where they are drawn."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from a2ls.analysis.figures import ancestry_tree, change, draw_ancestry_tree
from a2ls.analysis.figures._ancestry import centred, layers_of, untangled
from a2ls.space import Loss
from helpers.figures import strict, unwrapped
from helpers.searches import candidate, dataset, made_up_search

SEARCH = dataset(
    candidate(0, (1.0,), loss="s0 -> r0"),
    candidate(1, (2.0,), loss="s0 a0 -> s1", origin="dynamics-prior"),
    candidate(2, (3.0,), loss="s0 -> a0"),
    candidate(3, (4.0,), loss="s0 a1 -> r0", stage=2, origin="replacement", parents=(0,)),
    candidate(4, (5.0,), loss="s0 a0 -> r0", stage=2, origin="crossover", parents=(1, 0)),
    candidate(5, (6.0,), loss="s0 -> a1", stage=2, origin="replacement", parents=(2,)),
    candidate(6, (9.0,), loss="s0 a0 a1 -> r0", stage=3, origin="crossover", parents=(3, 4)),
    candidate(7, (8.0,), loss="s0 -> r1", stage=3, origin="replacement", parents=(3,)),
    candidate(8, (99.0,), loss="s0 -> r2", stage=3, state="running", origin="replacement", parents=(5,)),
)


def test_the_family_by_hand():
    tree = ancestry_tree(SEARCH)
    assert tree.best == 6
    assert sorted((node.number, node.stage, node.row) for node in tree.nodes) == [
        (0, 1, 0),
        (1, 1, 0),
        (3, 2, 1),
        (4, 2, 1),
        (6, 3, 2),
    ]
    assert [(edge.parent, edge.child, edge.kind) for edge in tree.edges] == [
        (0, 3, "replacement"),
        (1, 4, "crossover"),
        (0, 4, "crossover"),
        (3, 6, "crossover"),
        (4, 6, "crossover"),
    ]
    assert {node.number: (node.aulc, node.origin, node.loss) for node in tree.nodes}[1] == (
        2.0,
        "dynamics-prior",
        "s0 a0 -> s1",
    )
    places = {node.number: node.x for node in tree.nodes}
    assert places[6] == 0
    assert sorted((places[3], places[4])) == [-0.5, 0.5]
    # 0 has a child on either side, 1 only 4: it stands on that one's side.
    assert (places[1] > places[0]) == (places[4] > places[3])


def test_what_changed_by_hand():
    changes = {(edge.parent, edge.child): edge.change for edge in ancestry_tree(SEARCH).edges}
    assert str(changes[0, 3]) == "source + a1"
    assert str(changes[1, 4]) == "target + r0 - s1"
    assert str(changes[3, 6]) == "source + a0"
    nothing = change(Loss.parse("s0 -> s1"), Loss.parse("s0 -> s1"))
    assert str(nothing) == "nothing"
    everything = change(Loss.parse("s0 a0 -> s1"), Loss.parse("s0 r2 -> s1 s3 @4 | inner +neg"))
    assert (everything.source_added, everything.source_removed) == (("r2",), ("a0",))
    assert (everything.target_added, everything.target_removed) == (("s3",), ())
    assert everything.horizon == (1, 4)
    assert everything.operator == ("mse", "inner +neg")
    assert str(everything) == "source + r2 - a0; target + s3; horizon 1 to 4; operator mse to inner +neg"


def _ancestors(number, by_number):
    return {number}.union(*(_ancestors(parent, by_number) for parent in by_number[number].parents))


@pytest.mark.parametrize("seed", range(6))
def test_families_of_whole_searches(seed):
    search = made_up_search(20, 5, seed=seed)
    tree = ancestry_tree(search)
    by_number = {each.number: each for each in search.candidates}
    # Some losses were bred twice, and the mean of their scores counts.
    assert tree.best == search.ranking.losses[0].candidates[0]
    assert {node.number for node in tree.nodes} == _ancestors(tree.best, by_number)
    assert {(edge.parent, edge.child) for edge in tree.edges} == {
        (parent, node.number) for node in tree.nodes for parent in by_number[node.number].parents
    }
    # Applied to the parent, each change gives the child.
    for edge in tree.edges:
        parent, child = by_number[edge.parent].loss, by_number[edge.child].loss
        source = {str(element) for element in parent.source_elements}
        grown = (source - set(edge.change.source_removed)) | set(edge.change.source_added)
        assert grown == {str(element) for element in child.source_elements}
    assert len({(node.row, node.x) for node in tree.nodes}) == len(tree.nodes)


def test_parents_of_the_same_stage_get_a_row_of_their_own():
    search = dataset(
        candidate(0, (1.0,)),
        candidate(1, (2.0,), origin="replacement", parents=(0,)),
        candidate(2, (3.0,), stage=2, origin="crossover", parents=(0, 1)),
    )
    assert [(node.number, node.stage, node.row) for node in ancestry_tree(search).nodes] == [
        (0, 1, 0),
        (1, 1, 1),
        (2, 2, 2),
    ]


def test_a_parent_that_is_there_twice_is_one_line():
    search = dataset(candidate(0, (1.0,)), candidate(1, (2.0,), stage=2, origin="crossover", parents=(0, 0)))
    assert len(ancestry_tree(search).edges) == 1


def _crossings(rows, parents):
    count = 0
    for upper, lower in pairwise(rows):
        lines = [
            (upper.index(parent), place)
            for place, number in enumerate(lower)
            for parent in parents[number]
            if parent in upper
        ]
        count += sum((a - c) * (b - d) < 0 for i, (a, b) in enumerate(lines) for c, d in lines[:i])
    return count


def test_lines_that_need_not_cross_do_not():
    parents = {0: [], 1: [], 2: [], 3: [2], 4: [1], 5: [0], 6: [5, 3], 7: [4, 3]}
    stages = {0: 1, 1: 1, 2: 1, 3: 2, 4: 2, 5: 2, 6: 3, 7: 3}
    rows = layers_of(stages, parents)
    assert rows == [[0, 1, 2], [3, 4, 5], [6, 7]]
    assert _crossings(rows, parents) > 0
    assert _crossings(untangled(rows, parents), parents) == 0


@settings(deadline=None)
@given(st.data())
def test_rows_keep_their_members_and_parents_come_first(data):
    size = data.draw(st.integers(1, 25))
    stages = dict(enumerate(sorted(data.draw(st.lists(st.integers(1, 5), min_size=size, max_size=size)))))
    parents = {
        number: data.draw(st.lists(st.integers(0, number - 1), max_size=2)) if number else [] for number in range(size)
    }
    rows = layers_of(stages, parents)
    row_of = {number: i for i, row in enumerate(rows) for number in row}
    assert sorted(row_of) == list(range(size))
    assert all(row_of[parent] < row_of[number] for number in parents for parent in parents[number])
    assert all(len({stages[number] for number in row}) == 1 for row in rows)
    assert [sorted(row) for row in untangled(rows, parents)] == [sorted(row) for row in rows]
    assert [sum(centred(len(row))) for row in rows] == [0] * len(rows)


def test_drawn_tree():
    drawn = strict(draw_ancestry_tree(ancestry_tree(SEARCH)))
    nodes = [trace for trace in drawn["data"] if trace["mode"] == "markers+text"]
    assert sum(len(trace["x"]) for trace in nodes) == 5
    words = {fields[0]: unwrapped(fields[4]) for trace in nodes for fields in trace["customdata"]}
    assert words[6] == "s0 a0 a1 -> r0"
    labels = [unwrapped(text).split() for trace in nodes for text in trace["text"]]
    assert ["9.0", "#6"] in labels
    stars = [symbol for trace in nodes for symbol in trace["marker"]["symbol"] if symbol == "star"]
    assert len(stars) == 1
    lines = [trace for trace in drawn["data"] if trace["mode"] == "lines"]
    assert sum(x is None for trace in lines for x in trace["x"]) == 5
    (mutations,) = (trace for trace in drawn["data"] if trace["mode"] == "markers")
    assert sorted(note["text"] for note in drawn["layout"]["annotations"]) == ["crossover", "crossover", "replacement"]
    crossed = next(text for text in mutations["customdata"] if "candidate 6" in text)
    assert unwrapped(crossed) == ("candidate 6 by crossover s0 a0 a1 -> r0 from 3: source + a0 from 4: source + a1")
    assert drawn["layout"]["yaxis"]["ticktext"] == ["stage 1", "stage 2", "stage 3"]


def test_a_large_family_is_drawn_without_words():
    rows = [candidate(i, (1.0,)) for i in range(16)]
    number = 16
    before = list(range(16))
    for stage in (2, 3, 4, 5):
        after = []
        for couple in zip(before[::2], before[1::2], strict=True):
            rows.append(candidate(number, (float(number),), stage=stage, origin="crossover", parents=couple))
            after.append(number)
            number += 1
        before = after
    tree = ancestry_tree(dataset(*rows))
    assert len(tree.nodes) == 31
    drawn = strict(draw_ancestry_tree(tree))
    assert "annotations" not in drawn["layout"]
    assert {trace["mode"] for trace in drawn["data"]} == {"lines", "markers"}


def test_a_winner_without_parents_is_alone():
    drawn = strict(draw_ancestry_tree(ancestry_tree(dataset(candidate(3)))))
    assert len(drawn["data"]) == 1
    assert "candidate 3 has no parents" in drawn["layout"]["title"]["subtitle"]["text"]
