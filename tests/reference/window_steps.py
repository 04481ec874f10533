"""Draws scripts of trees of operators: 2 or 3 streams on one timeline, keyed ones among them, up to 2 tables.

Time moves in small steps against windows of a few milliseconds, so that pushes lie inside windows, touch their ends and span
several; at times only `advance` moves it. Streams lag each other, rows tie, run late and wait.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from tests.reference.operators import Named, Tree, exact, named, walk
from tests.reference.script import Act, Advance, Delete, Push, TablePlan, Upsert
from tests.reference.steps import BATCH_ROWS
from tests.reference.tree_workload import COLUMNS, VALUES, Source, TreeMaker, unbounded
from tests.reference.values import Row
from tests.reference.window_script import Open, Retract, Rewrite, Step, StreamPlan, WindowScript
from tests.reference.workload import MS

POLICIES = ["auto", "random", "lottery", "backpressure", "greedy"]
EXPIRIES = ["auto", "input", "negative", "negative+message", "piggyback", "direct", "update-pattern"]
#: Running queries at a time.
MAX_QUERIES = 5
#: How deep queries read queries.
MAX_NAMED = 3
#: Longer than any script, so that what a later query sees does not depend on what other windows store.
KEEP = 1_000_000 * MS
TABLE_COLUMNS = {"k": "int", "n": "int", "g": "string"}


def random_sources(rng: random.Random, plain: bool = False) -> tuple[list[StreamPlan], list[TablePlan]]:
    """Streams and tables; `plain`: no stream has a key or an end."""
    keep = rng.choice([None, KEEP])
    streams = []
    for number in range(rng.choice([2, 2, 3])):
        columns = {**COLUMNS, "ts": "timestamp[us]"}
        key: tuple[str, ...] = ()
        end = None
        if rng.random() < 0.3 and not plain:
            columns, key = {"id": "int", **columns}, ("id",)
        if rng.random() < 0.2 and not plain:
            columns, end = {**columns, "until": "timestamp[us]"}, "until"
        late, lateness = rng.choice(["adjust", "adjust", "drop"]), rng.choice([0, 0, 0, 1, 2 * MS])
        streams.append(StreamPlan(f"s{number}", columns, lateness, late, keep, key, end))
    tables = [
        TablePlan(f"t{number}", dict(TABLE_COLUMNS), ("k",), rng.random() < 0.6) for number in range(rng.choice([0, 1, 1, 2]))
    ]
    return streams, tables


def tree_maker(rng: random.Random, streams: list[StreamPlan], tables: list[TablePlan], scale: int = 1) -> TreeMaker:
    sources = [Source(stream.name, stream.columns) for stream in streams]
    sources += [Source(table.name, table.columns, True, table.retroactive) for table in tables]
    return TreeMaker(rng, sources, scale)


def random_row(rng: random.Random, stream: StreamPlan, time: int) -> Row:
    row = {name: rng.choice(VALUES[name]) for name in stream.columns if name in VALUES}
    if stream.end:
        row[stream.end] = rng.choice([None, time + 1, time + MS, time + 2 * MS, time + 3 * MS, time])
    return {**row, "ts": time}


class WindowStepMaker:
    """Draws steps one by one."""

    def __init__(self, rng: random.Random, streams: list[StreamPlan], tables: list[TablePlan]) -> None:
        self.rng = rng
        self.streams = {stream.name: stream for stream in streams}
        self.tables = tables
        self.trees = tree_maker(rng, streams, tables)
        self.center = {stream.name: rng.choice([0, 1_700_000_000_000 * MS, -10 * MS]) for stream in streams}
        self.center = dict.fromkeys(self.center, min(self.center.values()))
        #: by label: the tree, the name; cancelled ones are not in it
        self.running: dict[int, tuple[Tree, str | None]] = {}
        self.paused: set[int] = set()
        self._n_queries = 0

    # -- input -------------------------------------------------------------------------------------------------------

    def start(self) -> Step:
        return Advance(min(self.center.values()), "main")

    def finish(self) -> Step:
        """All windows pass."""
        return Advance(max(self.center.values()) + 100 * MS, "main")

    def push(self) -> Step:
        rng = self.rng
        many = rng.random() < 0.4
        names = rng.sample(list(self.streams), rng.randint(1, len(self.streams)) if many else 1)
        batches = {name: [random_row(rng, self.streams[name], time) for time in self._times(name)] for name in names}
        return Push(batches, rng.choice(["columns", "dicts", "arrow"]), many)

    def _times(self, name: str) -> list[int]:
        rng = self.rng
        self.center[name] += rng.choice([0, 0, 1, MS, MS, 2 * MS, 6 * MS])
        if rng.random() < 0.7:
            self.center[name] = max(self.center.values())
        center = self.center[name]
        shape = rng.choice(["tied", "close", "close", "late", "wide"])
        low, high = {"tied": (0, 0), "close": (0, 2 * MS), "late": (-3 * MS, MS), "wide": (0, 9 * MS)}[shape]
        unit = rng.choice([1, 500, MS, MS])
        times = [(center + rng.randint(low, high)) // unit * unit for _ in range(rng.choice([0, 1, 2, 3, 4, 5, 6, 8]))]
        self.center[name] = max([center, *times])
        return times if shape == "late" else sorted(times)

    def advance(self) -> Step:
        ahead = self.rng.choice([-MS, 0, 1, 999, MS, 2 * MS, 5 * MS, 20 * MS])
        time = max(self.center.values()) + ahead
        if ahead > 0:
            self.center[self.rng.choice(list(self.center))] = time
        return Advance(time, "main")

    def retract(self) -> Step:
        keyed = [stream for stream in self.streams.values() if stream.key]
        if not keyed:
            return self.push()
        stream = self.rng.choice(keyed)
        keys = [(self.rng.choice(VALUES["id"]),) for _ in range(self.rng.choice([1, 1, 2]))]
        return Retract(stream.name, keys, self.center[stream.name] + self.rng.choice([-MS, 0, 0, 1, MS]))

    def upsert(self) -> Step:
        if not self.tables:
            return self.push()
        table = self.rng.choice(self.tables)
        rows = [{name: self.rng.choice(VALUES[name]) for name in table.columns} for _ in range(self.rng.choice([0, 1, 2, 3]))]
        return Upsert(table.name, [row for row in rows if row["k"] is not None])

    def delete(self) -> Step:
        if not self.tables:
            return self.advance()
        return Delete(self.rng.choice(self.tables).name, [(self.rng.choice([0, 1, 2]),)])

    # -- queries -----------------------------------------------------------------------------------------------------

    def open(self) -> Step:
        if len(self.running) >= MAX_QUERIES:
            return self.act(["cancel"])
        rng = self.rng
        label = self._n_queries
        self._n_queries += 1
        tree = self.trees.query()
        name = f"v{label}" if exact(tree) and self._depth(tree) < MAX_NAMED and rng.random() < 0.4 else None
        self.running[label] = tree, name
        self._list_named()
        history = "window" if self._kept and not _makes_streams(tree) and rng.random() < 0.4 else "new"
        return Open(label, tree, history, rng.choice(["commit", "event"]), name, rng.choice([None, None, *EXPIRIES]))

    @property
    def _kept(self) -> bool:
        return all(stream.keep_us for stream in self.streams.values())

    def _depth(self, tree: Tree) -> int:
        by_name = {name: other for other, name in self.running.values() if name}
        return max((1 + self._depth(by_name[name]) for name in named(tree)), default=0)

    def _list_named(self) -> None:
        open_ones = [entry for label, entry in self.running.items() if label not in self.paused]
        made = [Named(name, tree.columns, tree.is_stream, endless=unbounded(tree)) for tree, name in open_ones if name]
        self.trees.named = made

    def _unread(self) -> list[int]:
        """Queries that no other one reads."""
        read = {name for tree, _ in self.running.values() for name in named(tree)}
        return [label for label, (_, name) in self.running.items() if name not in read]

    def rewrite(self) -> Step:
        """One with the same columns; names of running queries are left alone, so that none reads itself."""
        fitting = [label for label in self._unread() if label not in self.paused and self._kept]
        if not fitting:
            return self.push()
        label = self.rng.choice(fitting)
        old, name = self.running[label]
        if old.is_stream or name or _makes_streams(old):
            return self.push()
        self.trees.named = []
        types = list(old.columns.values())
        if set(types) - {"int", "float", "string", "bool"}:
            return self.push()
        tree = self.trees.relation(self.rng.choice([0, 1]), types)
        self.running[label] = tree, name
        self._list_named()
        return Rewrite(label, tree) if not _makes_streams(tree) else self.act(["cancel"])

    def act(self, verbs: list[str] | None = None) -> Step:
        """Cancel, pause or resume some query that is in a state for it; a push if there is none."""
        verb = self.rng.choice(verbs or ["cancel", "pause", "resume", "resume"])
        fitting = [label for label in self._unread() if verb == "cancel" or (label in self.paused) == (verb == "resume")]
        if not fitting:
            return self.push()
        label = self.rng.choice(fitting)
        if verb == "cancel":
            del self.running[label]
        (self.paused.add if verb == "pause" else self.paused.discard)(label)
        self._list_named()
        return Act(verb, label)

    def any(self) -> Step:
        makers: list[tuple[int, Callable[[], Step]]] = [
            (130, self.push), (30, self.advance), (25, self.retract), (20, self.upsert), (6, self.delete), (18, self.open),
            (14, self.rewrite), (10, self.act),
        ]  # fmt: skip
        return self.rng.choices([maker for _, maker in makers], [weight for weight, _ in makers])[0]()


def _makes_streams(tree: Tree) -> bool:
    return any(node.is_stream for node in walk(tree))


def make_window_script(seed: int, n_steps: int, plain: bool = False, **options: Any) -> WindowScript:
    """The script of a seed: the same for ever, as long as the generators do not change; `options` as in `WindowScript`."""
    rng = random.Random(seed)
    streams, tables = random_sources(rng, plain)
    maker = WindowStepMaker(rng, streams, tables)
    steps: list[Step] = [maker.start(), *(maker.upsert() for _ in tables)]
    steps += [maker.open() for _ in range(rng.randint(3, 5))]
    steps += [maker.any() for _ in range(n_steps)]
    steps.append(maker.finish())
    drawn = {"policy": rng.choice(POLICIES), "expiry": rng.choice(EXPIRIES), "batch_rows": rng.choice(BATCH_ROWS)}
    return WindowScript(streams, tables, steps=steps, **{**drawn, **options})


def make_long_script(seed: int, n_steps: int, **options: Any) -> WindowScript:
    """Many rows against wider windows; all queries are relations and are opened before the first row."""
    rng = random.Random(seed)
    streams, tables = random_sources(rng)
    trees = tree_maker(rng, streams, tables, scale=4)
    steps: list[Step] = [Advance(0, "main")]
    while len(steps) < 6:
        tree = trees.query(stream=False)
        if not _makes_streams(tree):
            steps.append(Open(len(steps), tree, "new", rng.choice(["commit", "event"]), None, rng.choice([None, *EXPIRIES])))
    time = 0
    for _ in range(n_steps):
        kind = rng.choice(["push"] * 8 + ["advance", "upsert"])
        if kind == "push":
            names = rng.sample(list(streams), rng.randint(1, len(streams)))
            size, spread = rng.choice([1, 10, 40, 100]), rng.choice([1, 5, 20])
            sent = {s.name: sorted(time + rng.randint(0, spread * 250) * 4 for _ in range(size)) for s in names}
            time = max([time, *(times[-1] for times in sent.values())]) - rng.choice([0, 0, 0, MS])
            batches = {s.name: [random_row(rng, s, at) for at in sent[s.name]] for s in names}
            steps.append(Push(batches, rng.choice(["columns", "arrow"]), many=True))
        elif kind == "advance":
            time += rng.choice([0, 1, MS, 10 * MS])
            steps.append(Advance(time, "main"))
        elif tables:
            table = rng.choice(tables)
            steps.append(
                Upsert(table.name, [{name: rng.choice(VALUES[name]) for name in table.columns} | {"k": rng.randint(0, 2)}])
            )
    drawn = {"policy": rng.choice(POLICIES), "expiry": rng.choice(EXPIRIES), "batch_rows": rng.choice(BATCH_ROWS)}
    return WindowScript(streams, tables, steps=steps, **{**drawn, **options})


# -- one sequence of rows, cut in many ways --------------------------------------------------------------------------


def ordered_rows(rng: random.Random, streams: list[StreamPlan], n: int) -> list[tuple[str, Row]]:
    """Rows of all streams in the order in which one commit would merge them: by time, then by stream."""
    times = [rng.randint(0, 20 * MS) // 500 * 500 for _ in range(n)]
    drawn = [(time, rng.randrange(len(streams))) for time in times]
    return [(streams[k].name, random_row(rng, streams[k], time)) for time, k in sorted(drawn)]


def cut(rng: random.Random, rows: list[tuple[str, Row]], largest: int) -> list[Push]:
    """The rows in commits of up to `largest` rows each."""
    names = list(dict.fromkeys(sorted(name for name, _ in rows)))
    pushes = []
    while rows:
        size = rng.randint(1, largest)
        part, rows = rows[:size], rows[size:]
        batches = {name: [row for other, row in part if other == name] for name in names}
        pushes.append(Push({name: batch for name, batch in batches.items() if batch}, "dicts", many=True))
    return pushes
