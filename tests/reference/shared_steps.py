"""Draws scripts whose queries group the same few windows of the same streams, so that their aggregates are shared.

Keys and arguments are columns and every key is shown, as `eddy/operators/shared/shared_form.py` asks; conditions are intervals of
one column (the path of regions) or anything else (that of pairs); HAVING and select lists have constants. Windows move with the
clock or in steps, with the bounds of extents among the keys or without, and some queries are DISTINCT. Queries come, see stored
rows, pause, are replaced and go while others run on.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from tests.reference.lives import NOW, Window
from tests.reference.operators import Aggregate, Distinct, Expression, Grouped, Item, Select, Slide
from tests.reference.steps import BATCH_ROWS
from tests.reference.tree_sql import aggregate_text
from tests.reference.tree_workload import BOUNDS, COLUMNS, Scope, _of
from tests.reference.window_script import Open, Rewrite, Step, StreamPlan, WindowScript
from tests.reference.window_steps import KEEP, POLICIES, WindowStepMaker
from tests.reference.workload import MS, arithmetic, combine, compare

#: Wide against the steps of time: a query is young for some of them.
WINDOWS: list[Window | Slide] = [Window(40 * MS), Window(40 * MS), Window(90 * MS), Window(3 * MS), NOW]
STEPS: list[Window | Slide] = [Slide(40 * MS, 20 * MS), Slide(40 * MS, 10 * MS), Slide(10 * MS, 30 * MS), Slide(25 * MS, 25 * MS)]
EXTENTS: list[Window | Slide] = [
    Slide(each.width, each.slide, bounds=True, called=called)
    for each in STEPS
    if isinstance(each, Slide)
    for called in (False, True)
]
KEYS = [("g",), ("g",), ("k",), ("g", "k"), ()]
#: Running queries at a time.
MAX_SHARED = 12


class SharedMaker:
    """Draws the queries of one script; those of a stream mostly differ in their condition only."""

    def __init__(self, rng: random.Random, streams: list[StreamPlan]) -> None:
        self.rng = rng
        self._streams = streams
        self._keys = rng.choice(KEYS)
        #: of which windows are, and whether extents are keys
        self._windows = rng.choice([WINDOWS, WINDOWS, STEPS, EXTENTS])
        self._bound = ("window_end",) if self._windows is EXTENTS else ()
        self._window = rng.choice(self._windows)
        #: whether queries show a column that is computed with a constant
        self._extra = rng.random() < 0.5
        self._attribute = rng.choice(["r.n", "r.y"])
        self._aggregates = self._draw_aggregates(self._scope(streams[0])[1])

    def _scope(self, stream: StreamPlan) -> tuple[Item, Scope]:
        window = self._window if self.rng.random() < 0.8 else self.rng.choice(self._windows)
        columns = {**stream.columns, **BOUNDS} if self._bound else dict(stream.columns)
        item = Item("r", stream.name, columns, window)
        return item, Scope(self.rng, [item])

    def distinct(self) -> Distinct:
        """The values of some columns."""
        item, scope = self._scope(self._streams[0])
        by_name = {column.sql.split(".")[-1]: column for column in scope.columns}
        outputs = tuple((name, by_name[name]) for name in (*(self._keys or ("k",)), *self._bound))
        return Distinct(Select((item,), self._condition(scope), outputs))

    def query(self, keys: tuple[str, ...] | None = None, aggregates: list[Aggregate] | None = None) -> Grouped:
        """Keys and aggregates, unless given, are those of the others four times of five."""
        rng = self.rng
        item, scope = self._scope(rng.choice([self._streams[0], *self._streams]))
        own = rng.random() < 0.2
        named = keys if keys is not None else (*(rng.choice(KEYS) if own else self._keys), *self._bound)
        made = aggregates or (self._draw_aggregates(scope) if own else self._aggregates)
        by_name = {column.sql.split(".")[-1]: column for column in scope.columns}
        grouped = [by_name[name] for name in named]
        row = [Expression(key.type, key.sql, f"k{i}", _of(f"k{i}")) for i, key in enumerate(grouped)]
        row += [Expression(each.type, aggregate_text(each), f"a{i}", _of(f"a{i}")) for i, each in enumerate(made)]
        having = None
        counts = [column for column, each in zip(row[len(grouped) :], made) if each.kind == "count"]
        if counts and rng.random() < 0.2:
            having = combine("bool", "{} > {}", [rng.choice(counts), self._constant(3)], lambda n, c: compare(">", n, c))
        if self._extra:
            of = counts[0] if counts else self._constant(9)
            row.append(combine("int", "({} * {})", [of, self._constant(9)], lambda a, b: arithmetic("*", a, b)))
        outputs = tuple((f"c{i}", column) for i, column in enumerate(row))
        return Grouped((item,), self._condition(scope), tuple(grouped), tuple(made), having, outputs)

    def _condition(self, scope: Scope) -> Expression | None:
        kind = self.rng.choice(["interval"] * 4 + ["any", "any", "none"])
        if kind == "interval":
            column = next(column for column in scope.columns if column.sql == self._attribute)
            op = self.rng.choice(["<", "<=", ">", ">=", "="])
            made = [column, scope.constant(column.type)]
            return combine("bool", f"{{}} {op} {{}}", made, lambda a, b: compare(op, a, b))
        return scope.condition() if kind == "any" else None

    def _constant(self, below: int) -> Expression:
        value = self.rng.randrange(below)
        return Expression("int", str(value), str(value), lambda rows: value)

    def _draw_aggregates(self, scope: Scope) -> list[Aggregate]:
        rng = self.rng
        by_name = {column.sql.split(".")[-1]: column for column in scope.columns}
        made = []
        for _ in range(rng.choice([1, 2, 3])):
            kind = rng.choice(["count", "count", "sum", "sum", "avg", "min", "max"])
            if kind == "count" and rng.random() < 0.5:
                made.append(Aggregate("count"))
            else:
                names = ["n", "y", "x"] if kind in ("min", "max", "count") else ["n", "y", "y"]
                made.append(Aggregate(kind, by_name[rng.choice(names)]))
        return made


class SharedStepMaker(WindowStepMaker):
    """Steps over such queries."""

    def __init__(self, rng: random.Random, streams: list[StreamPlan]) -> None:
        super().__init__(rng, streams, [])
        self._shared = SharedMaker(rng, streams)

    def open(self) -> Step:
        if len(self.running) >= MAX_SHARED:
            return self.act(["cancel"])
        label = self._n_queries
        self._n_queries += 1
        tree = self._shared.distinct() if self.rng.random() < 0.15 else self._shared.query()
        self.running[label] = tree, None
        history = "window" if self._kept and self.rng.random() < 0.3 else "new"
        return Open(label, tree, history)

    def rewrite(self) -> Step:
        """The same keys and aggregates over other rows: columns stay as they were."""
        running = [label for label, (tree, _) in self.running.items() if isinstance(tree, Grouped)]
        fitting = [label for label in running if label not in self.paused] if self._kept else []
        if not fitting:
            return self.push()
        label = self.rng.choice(fitting)
        old, _ = self.running[label]
        assert isinstance(old, Grouped)
        keys = tuple(key.sql.split(".")[-1] for key in old.keys)
        tree = self._shared.query(keys, list(old.aggregates))
        self.running[label] = tree, None
        return Rewrite(label, tree)


def make_shared_script(seed: int, n_steps: int) -> WindowScript:
    """The script of a seed: two plain streams, up to a dozen queries at a time."""
    rng = random.Random(seed)
    keep = rng.choice([None, KEEP])
    columns = {**COLUMNS, "ts": "timestamp[us]"}
    streams = [StreamPlan(f"s{k}", columns, rng.choice([0, 0, 1, 2 * MS]), "adjust", keep) for k in range(2)]
    maker = SharedStepMaker(rng, streams)
    steps: list[Step] = [maker.start(), *(maker.open() for _ in range(3))]
    makers: list[tuple[int, Callable[[], Step]]] = [
        (60, maker.push), (14, maker.advance), (30, maker.open), (8, maker.rewrite), (16, maker.act),
    ]  # fmt: skip
    weights = [weight for weight, _ in makers]
    steps += [rng.choices([make for _, make in makers], weights)[0]() for _ in range(n_steps)]
    steps.append(maker.finish())
    return WindowScript(streams, [], policy=rng.choice(POLICIES), batch_rows=rng.choice(BATCH_ROWS), steps=steps)
