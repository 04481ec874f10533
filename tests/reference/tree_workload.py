"""Random trees of operators over small values: duplicates, ties, NULL and empty groups and values that come back are common.

A tree is stacked up to three deep over streams, tables and running queries. It is held to what has one meaning:

* Which of several rows of one event is the newest is nobody's business: [ROWS n] over a stream that a query gives is drawn
  only where an event emits one row (of each key). FIRST and LAST likewise need one stream below.
* Aggregates whose last digits are free (STDDEV, VARIANCE) stand only in the outermost query.
* No non-retroactive table beside a relation unless asked for, RSTREAM over windows that slide only where all of them slide alike.
* No [RANGE UNBOUNDED] below a join, nor below MEDIAN and COUNT(DISTINCT), which are refused over it.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tests.reference.lives import NOW, Window
from tests.reference.operators import (
    INEXACT,
    Aggregate,
    Combined,
    Distinct,
    Expression,
    Grouped,
    Item,
    Named,
    Select,
    Slide,
    ToStream,
    Tree,
    items,
    slides,
    walk,
)
from tests.reference.tree_sql import aggregate_text
from tests.reference.workload import MS, arithmetic, combine, compare, kleene_and, kleene_not, kleene_or, quote

#: Columns of every stream but its time; a keyed one also has `id` and perhaps `until`.
COLUMNS = {"k": "int", "n": "int", "g": "string", "x": "float", "y": "float", "ok": "bool"}
VALUES: dict[str, list[Any]] = {
    "id": [0, 1, 2, 3],
    "k": [0, 0, 1, 1, 2, None],
    "n": [0, 1, 1, 2, 3, None],
    "g": ["a", "a", "b", "", None],
    "x": [0.0, -0.0, 0.5, 1.5, float("nan"), float("inf"), None],
    # what sums are taken of: each sum of these is exact in a float
    "y": [0.0, 0.5, 1.5, 2.5, -3.25, None],
    "ok": [True, True, False, None],
}
CONSTANTS: dict[str, list[Any]] = {
    "int": [0, 1, 2, 3],
    "float": [0.0, 0.5, 1.5],
    "string": ["a", "b", ""],
    "bool": [True, False],
}
TYPES = ["int", "int", "int", "string", "string", "float", "bool"]

RANGES = [
    NOW,
    Window(2),
    Window(MS),
    Window(2 * MS),
    Window(2 * MS),
    Window(3 * MS),
    Window(3 * MS),
    Window(5 * MS),
    Window(8 * MS),
]
ROWS = [Window(rows=1), Window(rows=2), Window(rows=3), Window(4 * MS, 3), Window(2 * MS, 5)]
SLIDES = [
    Slide(2 * MS, MS),
    Slide(4 * MS, 2 * MS),
    Slide(3 * MS, 2 * MS),
    Slide(MS, 2 * MS),
    Slide(2 * MS, 2 * MS),
    Slide(1_500, 500),
]
#: The same as the windows over the streams of queries.
BOUNDED_SLIDES = [*SLIDES, *(replace(window, bounds=True) for window in SLIDES)]
#: The columns that windows in steps add.
BOUNDS = {"window_start": "timestamp", "window_end": "timestamp"}


@dataclass(frozen=True)
class Source:
    """A stream or table."""

    name: str
    columns: Mapping[str, str]
    is_table: bool = False
    retroactive: bool = False


class Scope:
    """Expressions over the rows of a FROM list."""

    def __init__(self, rng: random.Random, chosen: Sequence[Item]) -> None:
        self.rng = rng
        self.columns = [
            _column(k, item.alias, name, type) for k, item in enumerate(chosen) for name, type in item.columns.items()
        ]

    def of(self, *types: str) -> list[Expression]:
        return [column for column in self.columns if column.type in types]

    def constant(self, type: str) -> Expression:
        value = self.rng.choice(CONSTANTS[type])
        text = quote(value) if type == "string" else str(value).upper() if type == "bool" else repr(value)
        return Expression(type, text, text, lambda rows: value)

    def scalar(self, type: str) -> Expression:
        """Something of that type: a column, if there is one and the draw does not say otherwise."""
        columns = self.of(type)
        if columns and self.rng.random() < 0.85:
            return self.rng.choice(columns)
        if type == "int" and columns:
            op, parts = self.rng.choice(["+", "-"]), [self.rng.choice(columns), self.constant("int")]
            return combine("int", f"({{}} {op} {{}})", parts, lambda a, b: arithmetic(op, a, b))
        if type == "float" and self.of("int"):
            return combine("float", "({} / 2)", [self.rng.choice(self.of("int"))], lambda a: arithmetic("/", a, 2))
        if type == "bool":
            return combine("bool", "({} IS NULL)", [self.rng.choice(self.columns)], lambda a: a is None)
        if type in CONSTANTS:
            parts = [self.rng.choice(self.columns), self.constant(type), self.constant(type)]
            return combine(type, "CASE WHEN {} IS NULL THEN {} ELSE {} END", parts, lambda a, b, c: b if a is None else c)
        return self.rng.choice(columns)

    def comparison(self) -> Expression:
        left = self.rng.choice(self.of(*CONSTANTS) or [self.constant("int")])
        right = self.constant(left.type) if self.rng.random() < 0.8 else self.rng.choice(self.of(left.type) or [left])
        op = self.rng.choice(["=", "<>", "<>", "<", "<=", ">", ">=", ">=", "<="])
        return combine("bool", f"{{}} {op} {{}}", [left, right], lambda a, b: compare(op, a, b))

    def condition(self) -> Expression:
        kind = self.rng.choice(["one", "one", "one", "null", "not", "and", "or", "bool"])
        if kind == "null":
            column, wanted = self.rng.choice(self.columns), self.rng.random() < 0.5
            return combine("bool", f"{{}} IS {'' if wanted else 'NOT '}NULL", [column], lambda a: (a is None) == wanted)
        if kind == "bool" and self.of("bool"):
            return self.rng.choice(self.of("bool"))
        if kind == "not":
            return combine("bool", "NOT ({})", [self.comparison()], kleene_not)
        if kind in ("and", "or"):
            parts = [self.comparison(), self.comparison()]
            return combine("bool", f"({{}}) {kind.upper()} ({{}})", parts, kleene_and if kind == "and" else kleene_or)
        return self.comparison()

    def equality(self, left: Sequence[Expression], right: Sequence[Expression]) -> Expression | None:
        pairs = [(a, b) for a, b in itertools.product(left, right) if a.type == b.type and a.type in ("int", "string", "float")]
        if not pairs:
            return None
        alike = [pair for pair in pairs if pair[0].sql.split(".")[-1] == pair[1].sql.split(".")[-1] != "x"]
        pair = self.rng.choice(alike if alike and self.rng.random() < 0.7 else pairs)
        sides = [self._derived(side) if self.rng.random() < 0.25 else side for side in pair]
        return combine("bool", "{} = {}", sides, lambda a, b: compare("=", a, b))

    def _derived(self, key: Expression) -> Expression:
        """A key that is an expression of one."""
        if self.rng.random() < 0.5:
            fallback = "a" if key.type == "string" else 1
            return combine(key.type, f"COALESCE({{}}, {fallback!r})", [key], lambda a: fallback if a is None else a)
        if key.type == "string":
            return combine("string", "UPPER({})", [key], lambda a: None if a is None else a.upper())
        op = "%" if key.type == "int" else "*"
        return combine(key.type, f"({{}} {op} 2)", [key], lambda a: arithmetic(op, a, 2))


def _column(k: int, alias: str, name: str, type: str) -> Expression:
    return Expression(type.split("[")[0], f"{alias}.{name}", f'{alias}."{name}"', lambda rows: rows[k][name])


class TreeMaker:
    """Draws trees; one object makes the queries of one script. Windows are `scale` times as wide as their names here say."""

    def __init__(self, rng: random.Random, sources: Sequence[Source], scale: int = 1) -> None:
        self.rng = rng
        self._scale = scale
        #: whether tables that are not retroactive stand beside relations, of which DuckDB knows nothing
        self.frozen = False
        self.streams = [source for source in sources if not source.is_table]
        self.tables = [source for source in sources if source.is_table]
        #: running queries that may be read
        self.named: list[Named] = []
        self._n_aliases = 0
        self._n_shared = 0
        self._defined: list[tuple[str, Tree]] = []

    def query(self, depth: int | None = None, stream: bool | None = None) -> Tree:
        """A whole query, up to three operators deep over its leaves."""
        self._n_aliases = self._n_shared = 0
        self._defined = []
        depth = self.rng.choice([0, 1, 1, 2, 2, 3]) if depth is None else depth
        stream = self.rng.random() < 0.25 if stream is None else stream
        return self.stream(max(depth, 1)) if stream else self.relation(depth, root=True)

    # -- relations ---------------------------------------------------------------------------------------------------

    def relation(self, depth: int, types: Sequence[str] | None = None, root: bool = False, bounded: bool = False) -> Tree:
        """A relation with columns of these types, if given; `bounded`: without [RANGE UNBOUNDED]."""
        rng = self.rng
        if depth == 0:
            kind = rng.choice(["select", "select", "join", "grouped"])
        else:
            kind = rng.choice(["select", "join", "join", "grouped", "grouped", "distinct", "combined", "combined"])
        if kind == "combined":
            types = types or [rng.choice(["int", "int", "string", "bool", "float"]) for _ in range(rng.choice([1, 1, 1, 2]))]
            left, right = (self.relation(depth - 1, types, bounded=bounded) for _ in range(2))
            return Combined(rng.choice(["union", "except", "except", "intersect", "intersect"]), rng.random() < 0.5, left, right)
        if kind == "distinct":
            return Distinct(self.relation(depth - 1, types or [rng.choice(TYPES)], bounded=bounded))
        if kind == "grouped":
            made = self.grouped(depth, root, bounded)
            if types is None or list(made.columns.values()) == list(types):
                return made
            item = Item(self._alias(), made, made.columns)
            return self._select([item], Scope(rng, [item]), [], types)
        chosen, links = self._from(depth, 1 if kind == "select" else 2, bounded)
        return self._select(chosen, Scope(rng, chosen), links, types)

    def _select(
        self, chosen: Sequence[Item], scope: Scope, links: list[Expression], types: Sequence[str] | None, filtered: float = 0.3
    ) -> Select:
        rng = self.rng
        if rng.random() < filtered:
            links = [*links, scope.condition()]
        wanted = types or [rng.choice(TYPES) for _ in range(rng.randint(1, 3))]
        outputs = [(f"c{i}", scope.scalar(type)) for i, type in enumerate(wanted)]
        if types is None and scope.of("timestamp") and rng.random() < 0.1:
            outputs.append((f"c{len(outputs)}", rng.choice(scope.of("timestamp"))))
        return Select(tuple(chosen), _all(links), tuple(outputs))

    def grouped(self, depth: int, root: bool, bounded: bool) -> Grouped:
        rng = self.rng
        chosen, links = self._from(depth, rng.choice([1, 1, 1, 2]), bounded)
        scope = Scope(rng, chosen)
        if rng.random() < 0.25:
            links.append(scope.condition())
        keys = [
            scope.scalar(rng.choice(["int", "string", "string", "bool", "float"])) for _ in range(rng.choice([0, 1, 1, 1, 2]))
        ]
        keys += [column for column in scope.columns if "window_" in column.sql and rng.random() < 0.6]
        ordered = len(chosen) == 1 and chosen[0].window is not None and one_an_event(chosen[0].source)
        endless = any(item.window == Window() for item in chosen) or any(
            unbounded(item.source) for item in chosen if not isinstance(item.source, str)
        )
        aggregates = [self._aggregate(scope, root, ordered, endless) for _ in range(rng.choice([1, 2, 2, 3]))]
        row = [Expression(key.type, key.sql, f"k{i}", _of(f"k{i}")) for i, key in enumerate(keys)]
        row += [Expression(made.type, aggregate_text(made), f"a{i}", _of(f"a{i}")) for i, made in enumerate(aggregates)]
        shown = [column for column in row if rng.random() < 0.9] or row
        inner = Scope(rng, [])
        inner.columns = row[: len(keys)] + [
            column for column, made in zip(row[len(keys) :], aggregates) if made.kind not in INEXACT
        ]
        having = inner.comparison() if inner.of(*CONSTANTS) and rng.random() < 0.2 else None
        outputs = tuple((f"c{i}", column) for i, column in enumerate(shown))
        return Grouped(tuple(chosen), _all(links), tuple(keys), tuple(aggregates), having, outputs)

    def _aggregate(self, scope: Scope, root: bool, ordered: bool, endless: bool) -> Aggregate:
        rng = self.rng
        where = scope.condition() if rng.random() < 0.2 else None
        kinds = ["count", "count", "sum", "sum", "avg", "min", "max", "max", "min"]
        kinds += [] if endless else ["median", "distinct"]
        kinds += ["stddev", "variance"] if root else []
        kinds += ["first", "last"] * 2 if ordered else []
        kind = rng.choice(kinds)
        if kind == "count" and rng.random() < 0.6:
            return Aggregate("count", None, False, where)
        numbers = [column for column in scope.of("int", "float") if column.type == "int" or column.sql.endswith(".y")]
        if kind in ("sum", "avg", "median", "stddev", "variance"):
            special = [column for column in scope.of("float") if column.sql.endswith(".x")]
            if kind == "sum" and special and rng.random() < 0.3:
                return Aggregate("sum", rng.choice(special), False, where)
            if not numbers:
                return Aggregate("count", None, False, where)
            return Aggregate(kind, rng.choice(numbers), False, where)
        argument = rng.choice(scope.columns)
        if kind == "distinct":
            return Aggregate("count", argument, True, where)
        if kind in ("min", "max") and argument.type == "bool":
            argument = rng.choice(scope.of("int", "float", "string") or [argument])
        return Aggregate(kind, argument, False, where)

    # -- streams -----------------------------------------------------------------------------------------------------

    def stream(self, depth: int) -> Tree:
        """ISTREAM, DSTREAM or RSTREAM of a relation, or a select over a stream without a window."""
        rng = self.rng
        if rng.random() < 0.2:
            return self._unwindowed(depth)
        child = self.relation(depth - 1)
        words = ["istream", "istream", "dstream"] + (["rstream"] if _may_be_shown_whole(child) else [])
        return ToStream(rng.choice(words), child)

    def _unwindowed(self, depth: int) -> Select:
        rng = self.rng
        named = [query for query in self.named if query.is_stream]
        if depth > 1 and rng.random() < 0.5:
            item = self._derived(self.stream(depth - 1))
        elif named and rng.random() < 0.5:
            item = self._derived(rng.choice(named))
        else:
            source = rng.choice(self.streams)
            item = Item(self._alias(), source.name, source.columns)
        chosen, links = [item], []
        if self.tables and rng.random() < 0.4:
            table = rng.choice(self.tables)
            chosen.append(Item(self._alias(), table.name, table.columns, is_table=True))
            link = self._link(chosen)
            links = [link] if link else []
        return self._select(chosen, Scope(rng, chosen), links, None)

    # -- FROM --------------------------------------------------------------------------------------------------------

    def _from(self, depth: int, n: int, bounded: bool) -> tuple[list[Item], list[Expression]]:
        """The items of a FROM list and what joins them; those of depth 0 are streams and tables."""
        rng = self.rng
        chosen: list[Item] = []
        for _ in range(n):
            kind = rng.choice(["base", "relation", "relation", "stream", "named"] if depth else ["base", "base", "base", "named"])
            if kind == "relation" and self._defined and rng.random() < 0.3:
                name, tree = rng.choice(self._defined)
                chosen.append(replace(self._derived(tree), shared=name))
            elif kind == "relation":
                types = ["int", *rng.choice([[], ["string"], ["int"]])] if n > 1 and rng.random() < 0.7 else None
                chosen.append(self._derived(self.relation(depth - 1, types, bounded=bounded or n > 1)))
            elif kind == "stream":
                groups = rng.random() < 0.3
                chosen.append(
                    self._windowed(ToStream("istream", self.grouped(depth - 1, False, False)) if groups else self.stream(depth))
                )
            elif kind == "named" and (fitting := [query for query in self.named if not (query.endless and (bounded or n > 1))]):
                query = rng.choice(fitting)
                chosen.append(self._windowed(query) if query.is_stream else self._derived(query))
            else:
                chosen.append(self._base(joined=n > 1 or bounded))
        relations = any(item.window is None for item in chosen)
        tables = [table for table in self.tables if table.retroactive or not relations or self.frozen]
        if tables and len(chosen) > 1 and rng.random() < (0.8 if self.frozen else 0.3):
            table = rng.choice(tables)
            chosen[rng.randrange(n)] = Item(self._alias(), table.name, table.columns, is_table=True)
            if all(item.is_table for item in chosen):
                chosen[0] = self._base(joined=True)
        link = self._link(chosen) if n > 1 else None
        return chosen, [link] if link else []

    def _link(self, chosen: Sequence[Item]) -> Expression | None:
        left, right = (
            [_column(k, item.alias, name, type) for name, type in item.columns.items()] for k, item in enumerate(chosen)
        )
        return Scope(self.rng, chosen).equality(left, right)

    def _base(self, joined: bool) -> Item:
        rng = self.rng
        source = rng.choice(self.streams)
        window: Window | Slide
        kind = rng.choice(["range"] * 4 + ["rows"] * 2 + ["partition", "slide", "slide"] + ([] if joined else ["unbounded"]))
        columns = dict(source.columns)
        if kind == "rows":
            window = rng.choice(ROWS)
        elif kind == "partition":
            keys = tuple(rng.sample(["k", "g", "x", "n"], rng.choice([1, 1, 2])))
            window = replace(rng.choice(ROWS[:4]), partition=keys)
        elif kind == "slide":
            window = replace(rng.choice(SLIDES), bounds=rng.random() < 0.7, called=rng.random() < 0.5)
            if window.bounds:
                columns |= BOUNDS
        else:
            window = Window() if kind == "unbounded" else rng.choice(RANGES)
        return Item(self._alias(), source.name, columns, self._scaled(window))

    def _scaled(self, window: Window | Slide) -> Window | Slide:
        if isinstance(window, Slide):
            return replace(window, width=window.width * self._scale, slide=window.slide * self._scale)
        width = window.width * self._scale if window.width > 2 else window.width
        return replace(window, width=width, rows=None if window.rows is None else window.rows * self._scale)

    def _windowed(self, tree: Tree) -> Item:
        """A window over a stream that a query gives."""
        rng = self.rng
        window: Window | Slide = rng.choice(RANGES[2:]) if rng.random() < 0.7 else rng.choice(BOUNDED_SLIDES)
        if one_an_event(tree) and rng.random() < 0.6:
            window = rng.choice(ROWS)
        elif (keys := _group_keys(tree)) and one_an_event(tree, keys) and rng.random() < 0.9:
            window = replace(rng.choice(ROWS[:4]), partition=keys)
        item = self._derived(tree)
        columns = {**item.columns, **BOUNDS} if isinstance(window, Slide) and window.bounds else item.columns
        return replace(item, window=self._scaled(window), columns=columns)

    def _derived(self, tree: Tree) -> Item:
        shared = None
        if not isinstance(tree, Named) and not any(tree is other for _, other in self._defined) and self.rng.random() < 0.15:
            shared = f"w{self._n_shared}"
            self._n_shared += 1
            if not tree.is_stream:
                self._defined.append((shared, tree))
        return Item(self._alias(), tree, tree.columns, shared=shared)

    def _alias(self) -> str:
        self._n_aliases += 1
        return f"r{self._n_aliases}"


def _of(name: str) -> Any:
    return lambda rows: rows[0][name]


def _all(parts: Sequence[Expression]) -> Expression | None:
    if len(parts) <= 1:
        return parts[0] if parts else None
    return combine("bool", " AND ".join(["({})"] * len(parts)), list(parts), kleene_and)


def unbounded(tree: Tree) -> bool:
    """Whether [RANGE UNBOUNDED] stands in it, or in a query it names."""
    named = any(isinstance(node, Named) and node.endless for node in walk(tree))
    return named or any(item.window == Window() for item in items(tree))


def one_an_event(source: str | Tree, keys: Sequence[str] = ()) -> bool:
    """Whether an event emits one row at most, or one of each key."""
    match source:
        case str():
            return True
        case Select():
            return [item.is_base for item in source.items] == [True]
        case ToStream("istream", Grouped() as child):
            found = {node.duck for name, node in child.outputs if name in keys}
            return found >= {f"k{i}" for i in range(len(child.keys))}
        case ToStream("istream", Select() as child):
            single = len(child.items) == 1 and child.items[0].is_base
            return single and not isinstance(child.items[0].window, Slide)
    return False


def _group_keys(tree: Tree) -> tuple[str, ...]:
    """The columns of a stream of groups that are keys of the groups."""
    if not isinstance(tree, ToStream) or not isinstance(tree.child, Grouped):
        return ()
    keys = {f"k{i}" for i in range(len(tree.child.keys))}
    return tuple(name for name, node in tree.child.outputs if node.duck in keys)


def _may_be_shown_whole(tree: Tree) -> bool:
    """Whether RSTREAM of it has one meaning: no window slides, or all windows slide alike and nothing else stands beside them."""
    sliding = slides(tree)
    if not sliding:
        return True
    windows = [item.window for item in items(tree)]
    alike = len(sliding) == 1 and all(
        isinstance(w, Slide) or (w is None and not i.is_table) for w, i in zip(windows, items(tree))
    )
    return alike and not any(isinstance(node, Named) or (isinstance(node, Grouped) and node.scalar) for node in walk(tree))
