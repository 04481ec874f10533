"""Random queries: the tree that the binder makes of a text has the answer that DuckDB gives for the text.

Texts nest groups, sets, joins, DISTINCT, WITH and queries in FROM. What the binder moves below joins and windows, and the
columns it leaves out, must not show; `tests/reference/tree_answer.py` computes the tree as it stands. All rows are in all
windows, so DuckDB reads the same text without them.
"""

from __future__ import annotations

import itertools
from typing import Any, TypeVar

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lineage.schema import Schema
from queries.binder import bind
from queries.bound import Readable
from queries.nodes import JoinNode, Node
from queries.parser import parse
from queries.syntax import MAX_SELECTS
from queries.tree import walk
from tests.reference.comparison import compared
from tests.reference.oracle import asked
from tests.reference.seeds import amount
from tests.reference.tree_answer import answer

T = TypeVar("T")
COLUMNS = {"i": "int", "j": "int", "s": "string"}
SCHEMA = Schema.parse(COLUMNS, "t")
KNOWN = {"t": Readable(SCHEMA, is_table=True, key=(0,), retroactive=True), "r": Readable(SCHEMA)}
STREAMS = ["r [RANGE 1 DAY]", "r [RANGE 1 DAY SLIDE 1 HOUR]", "r [ROWS 100]"]
AGGREGATES = ["COUNT({i})", "COUNT({s})", "COUNT(DISTINCT {i})", "SUM({i})", "MIN({i})", "MAX({s})", "MEDIAN({i})", "AVG({i})"]

rows = st.lists(
    st.tuples(st.sampled_from([None, 0, 1, 2, 3]), st.sampled_from([None, 1, 2, 5]), st.sampled_from([None, "a", "b"])),
    max_size=6,
)


class Texts:
    """Draws texts; every column is of type int or string and called by a name of its own."""

    def __init__(self, draw: st.DrawFn) -> None:
        self._draw = draw
        self._numbers = itertools.count()
        #: (name, types) of WITH
        self.names: list[tuple[str, list[tuple[str, str]]]] = []

    def choose(self, options: list[T]) -> T:
        return self._draw(st.sampled_from(options))

    def query(self, depth: int, types: list[str] | None = None) -> tuple[str, list[tuple[str, str]]]:
        """A query and the names and types of its columns."""
        kind = self.choose(["select", "select", "group", "set"] if depth > 0 else ["select"])
        if kind == "set":
            left, columns = self.query(depth - 1, types)
            right, _ = self.query(depth - 1, [kind for _, kind in columns])
            operator = self.choose(["UNION", "UNION ALL", "EXCEPT", "EXCEPT ALL", "INTERSECT", "INTERSECT ALL"])
            return f"({left}) {operator} ({right})", columns
        wanted = types or [self.choose(["int", "string"]) for _ in range(self.choose([1, 2, 3]))]
        sources, columns = self._sources(depth)
        where = f" WHERE {self._condition(columns)}" if self.choose([True, False]) else ""
        if kind == "group":
            return self._group(sources, columns, where, wanted)
        distinct = self.choose(["", "", "DISTINCT "])
        items = [(self._fresh("c"), kind, self._expression(columns, kind)) for kind in wanted]
        shown = ", ".join(f"{text} AS {name}" for name, _, text in items)
        return f"SELECT {distinct}{shown} FROM {sources}{where}", [(name, kind) for name, kind, _ in items]

    def _fresh(self, letter: str) -> str:
        return f"{letter}{next(self._numbers)}"

    def _sources(self, depth: int) -> tuple[str, list[tuple[str, str]]]:
        found: list[str] = []
        columns: list[tuple[str, str]] = []
        for _ in range(self.choose([1, 1, 2])):
            alias = self._fresh("x")
            kind = self.choose(["table", "stream", "query", "query", "name"] if depth > 0 else ["table", "stream"])
            if kind == "query":
                inner, names = self.query(depth - 1)
                text = f"({inner})"
            elif kind == "name" and self.names:
                text, names = self.choose(self.names)
            else:
                text, names = ("t" if kind == "table" else self.choose(STREAMS)), list(COLUMNS.items())
            found.append(f"{text} AS {alias}")
            columns.extend((f"{alias}.{name}", kind) for name, kind in names)
        return ", ".join(found), columns

    def _group(
        self, sources: str, columns: list[tuple[str, str]], where: str, wanted: list[str]
    ) -> tuple[str, list[tuple[str, str]]]:
        keys = [self._expression(columns, self.choose(["int", "string"])) for _ in range(self.choose([0, 1, 2]))]
        # a bare number would be the place of a column
        keys = [key for key in keys if "x" in key]
        items = []
        for kind in wanted:
            usable = [key for key in keys if (kind == "string") == self._is_string(key, columns)]
            as_key = bool(usable) and self.choose([True, False])
            text = self.choose(usable) if as_key else self._aggregated(columns, kind)
            items.append((self._fresh("c"), kind, text))
        shown = ", ".join(f"{text} AS {name}" for name, _, text in items)
        by = f" GROUP BY {', '.join(keys)}" if keys else ""
        having = f" HAVING {self._aggregated(columns, 'int')} >= 1" if self.choose([True, False, False]) else ""
        return f"SELECT {shown} FROM {sources}{where}{by}{having}", [(name, kind) for name, kind, _ in items]

    def _is_string(self, text: str, columns: list[tuple[str, str]]) -> bool:
        return "||" in text or dict(columns).get(text) == "string"

    def _aggregated(self, columns: list[tuple[str, str]], kind: str) -> str:
        number, text = self._expression(columns, "int"), self._expression(columns, "string")
        if kind == "string":
            return f"MIN({text})"
        chosen: str = self.choose(["COUNT(*)", *AGGREGATES]).format(i=number, s=text)
        if "MAX" in chosen:
            chosen = f"LENGTH({chosen})"
        elif self.choose([True, False, False]):
            chosen += f" FILTER (WHERE {self._condition(columns)})"
        # back to an int, exactly: halves and smaller parts are cut off in the same way on both sides
        return f"CAST(FLOOR({chosen} * 2) AS BIGINT)" if "AVG" in chosen or "MEDIAN" in chosen else chosen

    def _expression(self, columns: list[tuple[str, str]], kind: str) -> str:
        usable = [name for name, found in columns if found == kind]
        if kind == "string":
            return self.choose([*(usable * 3), f"{self.choose(usable)} || 'z'" if usable else "'k'"])
        if not usable:
            return self.choose(["7", "8"])
        one, other = self.choose(usable), self.choose(usable)
        return self.choose(
            [one, one, one, f"({one} + {other})", f"(CASE WHEN {one} > 1 THEN {other} ELSE 4 END)", f"({one} * 2)"]
        )

    def _condition(self, columns: list[tuple[str, str]]) -> str:
        parts = []
        for _ in range(self.choose([1, 2, 3])):
            kind = self.choose(["int", "int", "string"])
            left, right = self._expression(columns, kind), self._expression(columns, kind)
            constant = self.choose(["1", "2", "5"]) if kind == "int" else "'a'"
            tests = [f"{left} = {right}", f"{left} < {right}", f"{left} <> {constant}", f"{left} >= {constant}"]
            parts.append(self.choose([*tests, f"{left} IS NULL"]))
        joined: str = self.choose([" AND ", " AND ", " OR "]).join(parts)
        return f"NOT ({joined})" if self.choose([True, False, False, False]) else joined


@st.composite
def texts(draw: st.DrawFn) -> str:
    found = Texts(draw)
    definitions = []
    for number in range(draw(st.sampled_from([0, 0, 1, 2]))):
        sql, columns = found.query(1)
        definitions.append(f"n{number} AS ({sql})")
        found.names.append((f"n{number}", columns))
    sql, _ = found.query(draw(st.integers(0, 3)))
    return f"WITH {', '.join(definitions)} {sql}" if definitions else sql


def both(sql: str, contents: dict[str, list[tuple[Any, ...]]]) -> tuple[Node, list[Any], list[Any]]:
    """The tree of a text, its answer, and DuckDB's."""
    node = bind(parse(sql), KNOWN.get)
    ours = answer(node, lambda leaf: contents[leaf.name])
    compared()
    return node, sorted(ours, key=repr), sorted(asked(sql, contents), key=repr)


@settings(max_examples=amount(80, long=250), deadline=None, suppress_health_check=list(HealthCheck))
@given(texts(), rows, rows)
def test_a_tree_has_the_answer_that_duckdb_gives_for_its_text(
    sql: str, table: list[tuple[Any, ...]], stream: list[tuple[Any, ...]]
) -> None:
    if sql.count("SELECT") > MAX_SELECTS // 4:
        return
    _, ours, theirs = both(sql, {"t": table, "r": stream})
    assert ours == theirs, sql


JOINS = [
    "SELECT a.i, b.n FROM t a JOIN (SELECT j, COUNT(*) AS n FROM r [ROWS 9] GROUP BY j) AS b "
    "ON a.j = b.j AND a.i < b.n WHERE a.s = 'a'",
    "SELECT a.i, c.s FROM (SELECT DISTINCT i, j FROM t) AS a, r [RANGE 1 DAY SLIDE 1 HOUR] AS c, t AS d "
    "WHERE a.i = c.i AND c.i = d.j AND d.j >= 1 AND a.j + c.j > d.i",
    "SELECT COUNT(*) FROM (SELECT i FROM t) AS a, (SELECT j, j AS k FROM r [ROWS 9]) AS b WHERE a.i = b.j AND b.j = b.k",
]


@pytest.mark.parametrize("sql", JOINS)
def test_a_join_over_queries_loses_nothing_that_is_needed(sql: str) -> None:
    table = [(1, 1, "a"), (1, 2, "a"), (2, 1, "b"), (0, 1, "a"), (None, 1, "a"), (5, 5, None)]
    stream = [(1, 1, "x"), (1, 1, "y"), (2, 5, "x"), (None, None, None), (0, 1, "a")]
    node, ours, theirs = both(sql, {"t": table, "r": stream})
    assert any(isinstance(part, JoinNode) for part in walk(node))
    assert ours == theirs and ours
