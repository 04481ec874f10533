"""Rewritten trees have the answer of the tree as it was written, and forms that look right but are not differ from it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from filters.expressions.expression import UserFunction
from lineage.schema import Schema, Type
from queries.binder import bind
from queries.bound import Readable
from queries.nodes import Block, Distinct, JoinNode, Node, Select, SetOperation
from queries.parser import parse
from queries.rewrites import Rewritten, pulled_up, pushed_down, simplified
from queries.syntax import MAX_SELECTS
from queries.tree import walk
from tests.property.test_trees_duckdb import KNOWN, rows, texts
from tests.reference.comparison import compared
from tests.reference.oracle import asked
from tests.reference.seeds import amount
from tests.reference.tree_answer import answer

Contents = dict[str, list[tuple[Any, ...]]]


def bound(sql: str) -> Node:
    return bind(parse(sql), KNOWN.get)


def bag(node: Node, contents: Contents) -> Counter[tuple[Any, ...]]:
    return Counter(answer(node, lambda leaf: contents[leaf.name]))


def forms(root: Node) -> dict[str, Node]:
    """Every tree that the rewrites make of one."""
    simple = simplified(root).root
    up, down = pulled_up(simple).root, pushed_down(simple).root
    return {
        "simplified": simple,
        "pulled up": up,
        "pushed down": down,
        "both": pushed_down(up).root,
        "both, turned": pulled_up(down).root,
    }


@settings(max_examples=amount(50, long=120), deadline=None, suppress_health_check=list(HealthCheck))
@given(texts(), rows, rows)
def test_every_form_of_a_random_tree_has_the_same_answer(
    sql: str, table: list[tuple[Any, ...]], stream: list[tuple[Any, ...]]
) -> None:
    if sql.count("SELECT") > MAX_SELECTS // 4:
        return
    root, contents = bound(sql), {"t": table, "r": stream}
    expected = bag(root, contents)
    for name, form in forms(root).items():
        compared()
        assert bag(form, contents) == expected, f"{name}: {sql}"
        assert [(column.name, column.type) for column in form.columns] == [(c.name, c.type) for c in root.columns]


A, B, C = "SELECT i, s FROM r [RANGE 1 DAY]", "SELECT j, s FROM r [RANGE 1 HOUR]", "r [RANGE 2 DAYS]"
PULLED = [
    f"SELECT m.i, c.j FROM ({A} EXCEPT ALL {B}) AS m, {C} AS c WHERE m.i = c.i",
    f"SELECT m.i, c.j FROM ({A} EXCEPT {B}) AS m, {C} AS c WHERE m.i = c.i AND m.s = 'a'",
    f"SELECT c.j FROM ({A} EXCEPT ALL {B}) AS m, t AS c WHERE m.i = c.i AND m.i + c.j > 2",
    f"SELECT c.j, m.s || c.s AS x FROM {C} AS c, ({A} EXCEPT {B}) AS m WHERE c.i = m.i AND c.j <= m.i",
    f"SELECT COUNT(*) AS n, m.s FROM ({A} EXCEPT ALL {B}) AS m, {C} AS c, t AS d WHERE m.i = c.i AND c.j = d.j GROUP BY m.s",
    f"SELECT m.i FROM ({A} EXCEPT ALL {B}) AS m, (SELECT i FROM t EXCEPT SELECT j FROM t) AS c WHERE m.i = c.i",
]
PUSHED = [
    "SELECT DISTINCT a.i FROM (SELECT DISTINCT i, j FROM r [RANGE 1 DAY]) AS a, r [RANGE 1 HOUR] AS b WHERE a.j = b.j",
    "SELECT DISTINCT a.i, b.j FROM (SELECT i, j FROM t) AS a, r [RANGE 1 HOUR] AS b WHERE a.i = b.i AND a.j < b.j",
    "SELECT DISTINCT i FROM (SELECT i FROM t UNION ALL SELECT j FROM r [ROWS 5]) AS u",
    "SELECT DISTINCT a.i, b.i AS k FROM (SELECT DISTINCT i FROM t) AS a, (SELECT i FROM r [ROWS 4]) AS b WHERE a.i = b.i",
]
SELECTED = [
    f"SELECT i FROM ({A} {word} {B}) AS u WHERE s = 'a' AND i > 1"
    for word in ("UNION", "UNION ALL", "EXCEPT", "EXCEPT ALL", "INTERSECT", "INTERSECT ALL")
] + [
    "SELECT i FROM (SELECT DISTINCT i, s FROM t) AS u WHERE s <> 'a'",
    "SELECT n FROM (SELECT i, COUNT(*) AS n FROM t GROUP BY i) AS u WHERE i >= 1 AND n >= 1",
    "SELECT x FROM (SELECT a.i + b.j AS x, a.s FROM t AS a, r [ROWS 5] AS b WHERE a.i = b.i) AS u WHERE x > 2 AND s = 'a'",
]  # fmt: skip


def both(sql: str, contents: Contents, form: Node) -> tuple[Counter[Any], Counter[Any]]:
    """The answer of a form of a text's tree, and DuckDB's of the text."""
    compared()
    return bag(form, contents), Counter(asked(sql, contents))


@pytest.mark.parametrize(
    ("sql", "rewrite", "name"),
    [(sql, pulled_up, "negation pulled up") for sql in PULLED] + [(sql, pushed_down, "distinct pushed down") for sql in PUSHED],
)
@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
@given(rows, rows)
def test_a_rewrite_that_is_taken_keeps_duckdb_s_answer(
    sql: str, rewrite: Callable[[Node], Rewritten], name: str, table: list[tuple[Any, ...]], stream: list[tuple[Any, ...]]
) -> None:
    made = rewrite(simplified(bound(sql)).root)
    assert any(found.name == name and not found.refused for found in made.rewrites)
    ours, theirs = both(sql, {"t": table, "r": stream}, made.root)
    assert ours == theirs


@pytest.mark.parametrize("sql", SELECTED)
@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
@given(rows, rows)
def test_a_selection_goes_into_the_blocks(sql: str, table: list[tuple[Any, ...]], stream: list[tuple[Any, ...]]) -> None:
    made = simplified(bound(sql)).root
    assert all(node.condition is not None for node in walk(made) if isinstance(node, Block))
    ours, theirs = both(sql, {"t": table, "r": stream}, made)
    assert ours == theirs


def test_pulling_a_negation_up_leaves_it_above_the_join() -> None:
    root = pulled_up(bound(PULLED[0])).root
    assert isinstance(root, Select) and isinstance(root.child, SetOperation) and root.child.all
    assert [type(child) for child in root.child.children] == [JoinNode, JoinNode]
    blocks = [node for node in walk(bound(PULLED[0])) if isinstance(node, Block)]
    assert {node for node in walk(root) if isinstance(node, Block)} == set(blocks), "the blocks are those of the text"


def test_a_float_is_only_compared_and_a_user_function_is_not_moved() -> None:
    """-0.0 and 0.0 are one value to UNION, whose copy is shown may print either way."""
    readable = Readable(Schema.parse({"x": "float", "i": "int"}, "f"))
    function = UserFunction("odd", lambda value: value, Type.BOOL, 1.0)
    for condition, moves in (("x > 1", True), ("CAST(x AS VARCHAR) = '0.0'", False), ("odd(i)", False), ("i % 2 = 1", True)):
        sql = f"SELECT i FROM (SELECT x, i FROM f [ROWS 9] UNION SELECT x, i FROM f [ROWS 5]) AS u WHERE {condition}"
        root = bind(parse(sql), {"f": readable}.get, None, {"odd": function})
        made = simplified(root)
        assert (made.root != root) == moves, condition
        assert any(found.refused for found in made.rewrites) != moves, condition


# -- forms that are not valid


TWO_AND_ONE: Contents = {"t": [], "r": [(1, 1, "a"), (1, 5, "a")]}


def parts() -> tuple[JoinNode, SetOperation, Node]:
    """A join over a minus on one column, the minus, and what it is joined with."""
    minus = "SELECT i FROM r [RANGE 1 DAY] EXCEPT ALL SELECT j FROM r [RANGE 1 HOUR]"
    root = bound(f"SELECT m.i FROM ({minus}) AS m, {C} AS c WHERE m.i = c.i")
    assert isinstance(root, JoinNode) and isinstance(root.inputs[0], SetOperation)
    return root, root.inputs[0], root.inputs[1]


def test_figure_6_of_the_paper_differs_with_multiplicities() -> None:
    """(A - B) join C is not (A join C) - B: B takes away one copy, not one for each partner."""
    root, minus, _ = parts()
    figure = SetOperation("except", True, replace(root, inputs=(minus.left, root.inputs[1])), minus.right)
    contents: Contents = {"t": [], "r": [(1, 1, "a"), (1, 5, "a")]}
    expected = bag(root, contents)
    assert bag(figure, contents) != expected
    assert bag(pulled_up(root).root, contents) == expected
    once: Contents = {"t": [], "r": [(1, 5, "a"), (2, 1, "b")]}
    assert bag(figure, once) == bag(root, once), "with one row a key they agree"


def test_columns_left_out_before_the_negation_differ() -> None:
    """Rows (1, a) and (1, b) of A: one of them is taken away, and with only i left both would be."""
    sql = f"SELECT m.i FROM ({A} EXCEPT ALL SELECT i, s FROM t) AS m, {C} AS c WHERE m.i = c.i"
    root = bound(sql)
    contents: Contents = {"t": [(1, 0, "b"), (1, 0, "b")], "r": [(1, 0, "a"), (1, 0, "b")]}
    made = pulled_up(simplified(root).root).root
    assert isinstance(made, Select) and isinstance(made.child, SetOperation)
    minus = made.child
    early = SetOperation("except", True, replace(made, child=minus.left), replace(made, child=minus.right))
    assert bag(made, contents) == bag(root, contents)
    assert bag(early, contents) != bag(root, contents)


def test_a_set_minus_pulled_up_without_distinct_differs() -> None:
    root, minus, _ = parts()
    root = replace(root, inputs=(replace(minus, all=False), root.inputs[1]))
    made = pulled_up(root).root
    assert isinstance(made, Select) and isinstance(made.child, SetOperation)
    left = made.child.left
    assert isinstance(left, JoinNode) and isinstance(left.inputs[0], Distinct)
    many = replace(made, child=replace(made.child, left=replace(left, inputs=(left.inputs[0].child, left.inputs[1]))))
    contents: Contents = {"t": [], "r": [(2, 0, "a"), (2, 0, "a")]}
    assert bag(made, contents) == bag(root, contents)
    assert bag(many, contents) != bag(root, contents)


def test_distinct_is_not_pushed_below_a_minus_that_counts() -> None:
    sql = "SELECT DISTINCT i FROM (SELECT i FROM r [RANGE 1 DAY] EXCEPT ALL SELECT j FROM r [RANGE 1 HOUR]) AS u"
    root = simplified(bound(sql)).root
    made = pushed_down(root)
    assert made.root == root and [found.refused for found in made.rewrites] == ["of two copies less one, one is left"]
    assert isinstance(root, Distinct) and isinstance(root.child, SetOperation)
    wrong = replace(root.child, left=Distinct(root.child.left), right=Distinct(root.child.right))
    assert bag(wrong, TWO_AND_ONE) != bag(root, TWO_AND_ONE)


JOINED = f"FROM ({A} EXCEPT ALL {B}) AS m, {C} AS c WHERE m.i = c.i"
COMPUTED = f"FROM (SELECT i + 1 AS k FROM ({A} EXCEPT ALL {B}) AS n) AS m, {C} AS c WHERE m.k = c.i"
REFUSED = {
    f"SELECT FIRST(c.j) AS x {JOINED}": "FIRST and LAST depend on when rows begin",
    f"ISTREAM (SELECT c.j {JOINED})": "a stream is made of it",
    f"SELECT c.j {COMPUTED}": "columns are computed between the two",
}


@pytest.mark.parametrize("sql", REFUSED)
def test_what_is_not_valid_is_refused_with_the_reason(sql: str) -> None:
    root = simplified(bound(sql)).root
    made = pulled_up(root)
    assert made.root == root and REFUSED[sql] in [found.refused for found in made.rewrites]
