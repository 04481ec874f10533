"""Generators of rows, tables and queries over several FROM items; what `workload.py` is for one stream.

Keys come from small pools, so that rows meet, with NULL, NaN, -0.0 and 0.0 among them. Expressions are those of
`workload.Expressions` over columns named `alias.column`; their functions take one row per FROM item.

A query has a shape (chain, star, cycle, tree or nothing at all) whose edges are equalities, bands, inequalities or functions,
and on top of them conditions over one input, over two (OR across inputs) and over three. The more inputs it has, the
smaller its windows: the naive model walks all combinations.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tests.reference.functions import FUNCTIONS
from tests.reference.lives import NOW, Window
from tests.reference.matching import Condition, Input, Meaning
from tests.reference.values import Row
from tests.reference.workload import (
    COLUMNS,
    INT_MAX,
    MS,
    Expressions,
    Node,
    Spec,
    arithmetic,
    ask,
    combine,
    compare,
    kleene_and,
    outputs_of,
)  # fmt: skip

#: Small pools: what rows of joins hold in each column of `COLUMNS`.
KEYS: dict[str, list[Any]] = {
    "id": [0, 0, 0, 0, 1, 1, 2, None],
    "n": [0, 1, 1, 1, 2, 2, 3, 5, None, INT_MAX],
    "x": [0.0, -0.0, 0.0, 1.0, 1.0, 2.5, math.nan, math.nan, math.inf, None],
    "s": ["a", "a", "a", "A", "b", "", None],
    "ok": [True, True, False, None],
    "at": [0, 0, 0, MS, MS, 5 * MS, None],
}
#: What a table's key may be.
TABLE_KEYS: list[tuple[str, ...]] = [("id",), ("id",), ("x",), ("s",), ("id", "s")]

#: By size: windows of an instant, of a few rows, of a handful, of many.
WINDOWS: list[list[tuple[str, Window]]] = [
    [
        ("[NOW]", NOW),
        ("[RANGE 1 MICROSECOND]", Window(1)),
        ("[RANGE 2 MICROSECONDS]", Window(2)),
        ("[RANGE 1 MILLISECOND]", Window(MS)),
        ("[ROWS 1]", Window(rows=1)),
    ],
    [
        ("[ROWS 2]", Window(rows=2)),
        ("[PARTITION BY id ROWS 1]", Window(rows=1, partition=("id",))),
        ("[ROWS 3 RANGE 5 MILLISECONDS]", Window(5 * MS, 3)),
        ("[RANGE 2 MILLISECONDS]", Window(2 * MS)),
    ],
    [
        ("[RANGE 5 MILLISECONDS]", Window(5 * MS)),
        ("[ROWS 5]", Window(rows=5)),
        ("[PARTITION BY x ROWS 1]", Window(rows=1, partition=("x",))),
        ("[PARTITION BY id ROWS 2 RANGE 20 MILLISECONDS]", Window(20 * MS, 2, ("id",))),
    ],
    [
        ("[RANGE 20 MILLISECONDS]", Window(20 * MS)),
        ("[RANGE 300 MILLISECONDS]", Window(300 * MS)),
        ("[PARTITION BY s, ok ROWS 2]", Window(rows=2, partition=("s", "ok"))),
        ("[ROWS 20 RANGE 300 MILLISECONDS]", Window(300 * MS, 20)),
    ],
]
#: Which sizes a query has, by its number of inputs: weights of the lists above.
SIZES = {1: (2, 2, 2, 2), 2: (2, 2, 3, 3), 3: (1, 3, 3, 0), 4: (1, 5, 1, 0), 5: (1, 6, 0, 0)}
UNBOUNDED_WINDOW = ("[RANGE UNBOUNDED]", Window())


@dataclass(frozen=True)
class Edges:
    """How the inputs of a query hang together, and how often the key of an equality is an expression."""

    shapes: Sequence[str]
    derived: float


ANY_EDGES = Edges(("chain", "star", "cycle", "tree", "tree"), 0.5)
#: Equalities of expressions, in circles: one of them has to be checked of what the others find.
DERIVED_CYCLES = Edges(("cycle",), 1.0)


def random_row(rng: random.Random, time: int | None = None) -> Row:
    row = {column: rng.choice(pool) for column, pool in KEYS.items()}
    return row if time is None else {**row, "ts": time}


def random_table_rows(rng: random.Random, key: Sequence[str], n: int) -> list[Row]:
    """Rows of a table: no NULL in the key."""
    rows = [random_row(rng) for _ in range(n)]
    for row in rows:
        row.update({column: rng.choice([value for value in KEYS[column] if value is not None]) for column in key})
    return rows


class JoinExpressions(Expressions):
    """Random expressions over the columns of several FROM items, of which `over` chooses the ones in play."""

    def __init__(
        self, rng: random.Random, items: Sequence[tuple[str, dict[str, str]]], instants: list[int], derived: float
    ) -> None:  # fmt: skip
        super().__init__(rng, {}, instants, use_params=rng.random() < 0.5)
        self._derived = derived
        self._items = items
        self.over(*range(len(items)))

    def over(self, *inputs: int) -> JoinExpressions:
        self._inputs = {self._items[k][0]: k for k in inputs}
        self.columns = {
            f"{self._items[k][0]}.{name}": declared.split("[")[0] for k in inputs for name, declared in self._items[k][1].items()
        }
        return self

    def refer(self, name: str) -> Node:
        alias, _, column = name.partition(".")
        k = self._inputs[alias]
        return Node(self.columns[name], name, f'{alias}."{column}"', lambda rows: rows[k][column])

    def at(self, k: int, column: str) -> Node:
        """A column of one input."""
        self.over(k)
        return self.refer(f"{self._items[k][0]}.{column}")

    def equal_id(self) -> Node:
        column = self.refer(f"{self.rng.choice(list(self._inputs))}.id")
        return combine("bool", "{} = {}", [column, self.constant("int")], lambda a, b: compare("=", a, b))

    # -- edges of a join ---------------------------------------------------------------------------------------------

    def equality(self, i: int, j: int) -> Node:
        column = self.rng.choice(["id", "id", "id", "n", "x", "s", "at"])
        left, right = self.at(i, column), self.at(j, column)
        if column == "n" and self.rng.random() < 0.4:
            added = combine("int", "({} + 1)", [right], lambda a: arithmetic("+", a, 1), "TRY({} + 1)")
            return combine("bool", "{} = {}", [left, added], lambda a, b: compare("=", a, b))
        if column == "s" and self.rng.random() < 0.3:
            left, right = self.called("folded", left), self.called("folded", right)
        elif self.rng.random() < self._derived:
            computed = self.rng.choice([(True, False), (False, True), (True, True)])
            left, right = (
                self.derived(k, column) if computes else node for k, computes, node in zip((i, j), computed, (left, right))
            )
        return combine("bool", "{} = {}", [left, right], lambda a, b: compare("=", a, b))

    def derived(self, k: int, column: str) -> Node:
        """A key of one input that is an expression, often NULL where the column is not, or the other way round."""
        key = self.at(k, column)
        type = key.type
        makers: list[Callable[[], Node]] = [
            lambda: combine(type, "COALESCE({}, {})", [key, self.constant(type)], lambda a, b: b if a is None else a),
            lambda: combine(type, "NULLIF({}, {})", [key, self.constant(type)], lambda a, b: None if compare("=", a, b) else a),
        ]
        if type == "int":
            makers += [
                lambda: combine("int", "({} % 2)", [key], lambda a: arithmetic("%", a, 2), "TRY({} % 2)"),
                lambda: combine("int", "({} % 2)", [key], lambda a: arithmetic("%", a, 2), "TRY({} % 2)"),
                lambda: combine("int", "({} - 1)", [key], lambda a: arithmetic("-", a, 1), "TRY({} - 1)"),
                lambda: combine("int", "({} * {})", [key, self.at(k, "n")], lambda a, b: arithmetic("*", a, b), "TRY({} * {})"),
                lambda: combine("int", "({} % {})", [key, self.at(k, "id")], lambda a, b: arithmetic("%", a, b), "TRY({} % {})"),
            ]
            if column == "id":
                makers += [
                    # an int that meets a float, exactly
                    lambda: combine("float", "({} / 2)", [key], lambda a: arithmetic("/", a, 2), "({} / 2)"),
                    lambda: combine("float", "CAST({} AS float)", [key], lambda a: None if a is None else float(a), "{}::DOUBLE"),
                ]
        elif type == "float":
            makers += [
                lambda: combine("float", "({} * 2)", [key], lambda a: arithmetic("*", a, 2)),
                lambda: combine("float", "(-{})", [key], lambda a: None if a is None else -a),
            ]
        elif type == "string":
            makers += [
                lambda: combine("string", "LOWER({})", [key], lambda a: None if a is None else a.lower()),
                lambda: combine("string", "UPPER({})", [key], lambda a: None if a is None else a.upper()),
                lambda: combine("string", "({} || 'a')", [key], lambda a: None if a is None else a + "a"),
            ]
        elif type == "timestamp":
            makers += [
                lambda: combine(
                    "timestamp", "DATE_TRUNC('second', {})", [key], lambda a: None if a is None else a // 10**6 * 10**6
                ),
                lambda: combine("timestamp", "({} + INTERVAL 1 MILLISECONDS)", [key], lambda a: None if a is None else a + MS),
            ]
        return self.rng.choice(makers)()

    def inequality(self, i: int, j: int) -> Node:
        column = self.rng.choice(["id", "n", "x", "s", "at"])
        op = self.rng.choice(["<", "<=", ">", ">=", "<>"])
        return combine("bool", f"{{}} {op} {{}}", [self.at(i, column), self.at(j, column)], lambda a, b: compare(op, a, b))

    def band(self, i: int, j: int) -> Node:
        """j.c BETWEEN i.c - low AND i.c + high: over times if both have one, else over n."""
        timed = all("ts" in self._items[k][1] for k in (i, j)) and self.rng.random() < 0.7
        column = "ts" if timed else "n"
        low, high = (self.rng.choice([0, MS, 2 * MS, 5 * MS] if timed else [0, 1, 2]) for _ in range(2))

        def test(a: Any, b: Any) -> bool | None:
            first, last = arithmetic("-", b, low), arithmetic("+", b, high)
            return kleene_and(compare(">=", a, first), compare("<=", a, last))

        def written(size: int) -> str:
            return f"INTERVAL {size // MS} MILLISECONDS" if timed else str(size)

        form = f"{{0}} BETWEEN {{1}} - {written(low)} AND {{1}} + {written(high)}"
        duck = None if timed else f"{{0}} BETWEEN TRY({{1}} - {low}) AND TRY({{1}} + {high})"
        return combine("bool", form, [self.at(j, column), self.at(i, column)], test, duck)

    def function(self, i: int, j: int) -> Node:
        return self.called("near", self.at(i, "n"), self.at(j, "n"))

    def called(self, name: str, *parts: Node) -> Node:
        function = FUNCTIONS[name]
        form = f"{name}({', '.join(['{}'] * len(parts))})"
        return combine(function.returns, form, list(parts), function.fn, function.duck)

    def edge(self, i: int, j: int) -> Node:
        makers = [(6, self.equality), (2, self.band), (1, self.inequality), (1, self.function)]
        return self.rng.choices([maker for _, maker in makers], [weight for weight, _ in makers])[0](i, j)


def _edges(rng: random.Random, n: int, shapes: Sequence[str]) -> list[tuple[int, int]]:
    shape = rng.choice(shapes)
    if n <= 2 and rng.random() < 0.1:
        return []  # a product
    if shape == "star":
        return [(0, k) for k in range(1, n)]
    if shape == "tree":
        return [(rng.randrange(k), k) for k in range(1, n)]
    return [(k - 1, k) for k in range(1, n)] + ([(0, n - 1)] if shape == "cycle" and n > 2 else [])


@dataclass(frozen=True)
class Source:
    """A stream or table that queries may name; `columns` as declared."""

    name: str
    columns: dict[str, str]
    is_table: bool


def random_join(
    rng: random.Random, sources: Sequence[Source], instants: list[int], n_inputs: int | None = None, like: Spec | None = None,
    edges: Edges = ANY_EDGES,
) -> Spec:  # fmt: skip
    """A query over 1 to 5 FROM items; one that may replace `like` has its columns and gives a stream if that does."""
    chosen = _random_items(rng, sources, n_inputs, like.is_stream if like else rng.random() < 0.12)
    n = len(chosen)
    plain = len({source.name for source, _, _ in chosen}) == n and rng.random() < 0.3
    aliases = [source.name if plain else "abcde"[k] for k, (source, _, _) in enumerate(chosen)]
    made = JoinExpressions(
        rng, [(alias, source.columns) for alias, (source, _, _) in zip(aliases, chosen)], instants, edges.derived
    )
    conditions = [(frozenset(edge), made.edge(*edge)) for edge in _edges(rng, n, edges.shapes)]
    for _ in range(rng.choice([0, 0, 1, 1, 2] if n <= 2 else [0, 0, 0, 1])):
        uses = rng.sample(range(n), min(n, rng.choice([1, 1, 2, 2, 3])))
        conditions.append((frozenset(uses), made.over(*uses).condition(rng.choice([0, 0, 1, 2]))))
    rng.shuffle(conditions)
    made.over(*range(n))
    types = like.types if like else [rng.choice(list(COLUMNS.values())).split("[")[0] for _ in range(rng.randint(1, 4))]
    outputs = [made.column(type) if rng.random() < 0.8 else made.scalar(type) for type in types]
    names = [f"c{i}" for i in range(len(outputs))]
    listed = ", ".join(f"{node.sql} AS {name}" for name, node in zip(names, outputs))
    items = [
        f"{source.name}{' ' + text if text else ''}{'' if plain else f' AS {alias}'}"
        for alias, (source, text, _) in zip(aliases, chosen)
    ]
    nodes = [node for _, node in conditions]
    return Spec(
        sql=f"SELECT {listed} FROM {_from_where(rng, items, conditions)}",
        question=ask(aliases, outputs, nodes),
        params={name: value for node in [*nodes, *outputs] for name, value in node.params.items()},
        meaning=Meaning(
            tuple(Input(source.name, window) for source, _, window in chosen),
            tuple(Condition(uses, node.fn) for uses, node in conditions),
            outputs_of(outputs),
        ),
        names=names,
        types=[node.type for node in outputs],
        is_stream=any(window is None and not source.is_table for source, _, window in chosen),
    )


def _random_items(
    rng: random.Random, sources: Sequence[Source], n_inputs: int | None, stream: bool
) -> list[tuple[Source, str, Window | None]]:
    """FROM items with their windows as written and as meant; one stream without window if it is to give a stream."""
    n = n_inputs or rng.choice([1, 2, 2, 2, 2, 3, 3, 4, 5])
    picked = [rng.choice(sources) for _ in range(n)]
    tables = [source for source in sources if source.is_table]
    streams = [source for source in sources if not source.is_table]
    if n >= 3 and tables and rng.random() < 0.6:  # streams and a table together: two of its versions may meet one match
        picked = [rng.choice(streams) for _ in range(n - 1)] + [rng.choice(tables)]
        rng.shuffle(picked)
    if stream:
        picked = [rng.choice(streams), *(rng.choice(tables) for _ in range(min(n - 1, 2) if tables else 0))]
        rng.shuffle(picked)
    n_streams = sum(not source.is_table for source in picked)
    items: list[tuple[Source, str, Window | None]] = []
    for source in picked:
        if source.is_table or stream:
            items.append((source, "", None))
        elif n_streams == 1 and n <= 2 and rng.random() < 0.1:
            items.append((source, *UNBOUNDED_WINDOW))
        else:
            items.append((source, *rng.choice(rng.choices(WINDOWS, SIZES[n])[0])))
    return items


def _from_where(rng: random.Random, items: list[str], conditions: list[tuple[frozenset[int], Node]]) -> str:
    """FROM as a list with everything in WHERE, or as JOIN .. ON where each item has a condition of its own."""
    by_item: list[list[str]] = [[] for _ in items]
    for uses, node in conditions:
        by_item[max(uses)].append(f"({node.sql})")
    if rng.random() < 0.5 or not all(by_item[1:]):
        where = " AND ".join(text for texts in by_item for text in texts)
        return ", ".join(items) + (f" WHERE {where}" if where else "")
    joined = [f"{item} ON {' AND '.join(texts)}" for item, texts in zip(items[1:], by_item[1:])]
    return " JOIN ".join([items[0], *joined]) + (f" WHERE {' AND '.join(by_item[0])}" if by_item[0] else "")
