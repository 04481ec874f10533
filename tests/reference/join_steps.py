"""Draws scripts of joins: 2 to 4 streams on one timeline, up to 2 tables, queries of 1 to 5 FROM items."""

from __future__ import annotations

import random
from collections.abc import Callable

from tests.reference.functions import FUNCTIONS
from tests.reference.join_workload import ANY_EDGES, TABLE_KEYS, Source, random_join, random_row, random_table_rows
from tests.reference.script import (
    Act,
    Advance,
    Delete,
    Push,
    Replace,
    Script,
    Step,
    StreamPlan,
    Submit,
    TablePlan,
    Upsert,
)  # fmt: skip
from tests.reference.steps import BATCH_ROWS
from tests.reference.workload import COLUMNS, MS, Spec, random_times

POLICIES = ["auto", "random", "lottery", "backpressure", "greedy"]
#: Running queries at a time: each of them is asked at many times after every step.
MAX_QUERIES = 5


def random_sources(rng: random.Random) -> tuple[list[StreamPlan], list[TablePlan]]:
    streams = []
    for k in range(rng.randint(2, 4)):
        columns = {**COLUMNS, "ts": rng.choice(["timestamp", "timestamp[us]"])}
        lateness = rng.choice([0, 0, 0, 1, 3 * MS])
        keep = rng.choice([None, None, None, MS, 20 * MS])
        streams.append(StreamPlan(f"s{k}", columns, "ts", lateness, rng.choice(["adjust", "adjust", "drop"]), "main", keep))
    tables = [
        TablePlan(f"t{k}", dict(COLUMNS), rng.choice(TABLE_KEYS), rng.random() < 0.5) for k in range(rng.choice([0, 1, 1, 2, 2]))
    ]
    return streams, tables


class JoinStepMaker:
    """Draws steps one by one; keeps each stream's place in time, so that streams lag, tie and run ahead."""

    def __init__(self, rng: random.Random, streams: list[StreamPlan], tables: list[TablePlan]) -> None:
        self.rng = rng
        self.edges = ANY_EDGES
        self.tables = tables
        self.sources = [Source(stream.name, stream.columns, False) for stream in streams]
        # a table twice: else most queries would be over streams alone
        self.sources += [Source(table.name, table.columns, True) for table in tables for _ in range(2)]
        base = rng.choice([0, 1_700_000_000_000 * MS, -10 * MS])
        self.center = {stream.name: base for stream in streams}
        #: by label: the query as it is now and whether it is paused; cancelled ones are not in it
        self.specs: dict[int, Spec] = {}
        self.paused: set[int] = set()
        #: every query made so far
        self.made: list[Spec] = []
        self._n_queries = 0

    def push(self, n_rows: int | None = None, many: bool | None = None) -> Push:
        rng = self.rng
        many = rng.random() < 0.4 if many is None else many
        names = rng.sample(list(self.center), rng.randint(2, len(self.center)) if many else 1)
        batches = {}
        for name in names:
            n = rng.choice([0, 1, 2, 3, 4, 6, 10]) if n_rows is None else n_rows
            batches[name] = [random_row(rng, time) for time in self._times(name, n)]
        return Push(batches, rng.choice(["columns", "dicts", "arrow"]), many)

    def _times(self, name: str, n: int) -> list[int]:
        """Times of one push: tied, close, late, or (as `random_times` has them) spread over several windows."""
        rng = self.rng
        self.center[name] += rng.choice([0, 0, 0, 1, MS, MS, 2 * MS, 15 * MS])
        if rng.random() < 0.7:
            self.center[name] = max(self.center.values())
        center = self.center[name]
        shape = rng.choice(["tied", "close", "close", "late", "any"])
        if shape == "any":
            return random_times(rng, n, center, rng.choice([1, MS, MS]))
        low, high = {"tied": (0, 0), "close": (0, 2 * MS), "late": (-4 * MS, MS)}[shape]
        unit = rng.choice([1, MS, MS])
        return [(center + rng.randint(low, high)) // unit * unit for _ in range(n)]

    def advance(self) -> Advance:
        ahead = self.rng.choice([-5 * MS, 0, 1, 999, MS, 2 * MS, 5 * MS, 20 * MS, 300 * MS])
        return Advance(max(self.center.values()) + ahead, "main")

    def upsert(self) -> Step:
        if not self.tables:
            return self.push()
        table = self.rng.choice(self.tables)
        return Upsert(table.name, random_table_rows(self.rng, table.key, self.rng.choice([0, 1, 2, 4, 6])))

    def delete(self) -> Step:
        if not self.tables:
            return self.advance()
        table = self.rng.choice(self.tables)
        rows = random_table_rows(self.rng, table.key, self.rng.choice([0, 1, 1, 2, 3]))
        return Delete(table.name, [tuple(row[column] for column in table.key) for row in rows])

    def draw_spec(self, n_inputs: int | None = None, like: Spec | None = None) -> Spec:
        """A query of this size or one that may replace `like`; now and then one that was there before."""
        fitting = [s for s in self.made if like is None or (s.is_stream, s.types) == (like.is_stream, like.types)]
        if n_inputs is None and fitting and self.rng.random() < 0.15:
            return self.rng.choice(fitting)
        instants = [center + self.rng.choice([0, MS, -MS]) for center in self.center.values()]
        self.made.append(random_join(self.rng, self.sources, instants, n_inputs, like, self.edges))
        return self.made[-1]

    def submit(self, n_inputs: int | None = None) -> Step:
        if len(self.specs) >= MAX_QUERIES:
            return self.act(["cancel"])
        label = self._n_queries
        self._n_queries += 1
        self.specs[label] = self.draw_spec(n_inputs)
        return Submit(label, self.specs[label], self.rng.choice(["new", "window"]))

    def replace(self) -> Step:
        running = [label for label in self.specs if label not in self.paused]
        if not running:
            return self.submit()
        label = self.rng.choice(running)
        self.specs[label] = self.draw_spec(like=self.specs[label])
        return Replace(label, self.specs[label])

    def act(self, verbs: list[str] | None = None) -> Step:
        """Cancel, pause or resume some query that is in a state for it; a push if there is none."""
        verb = self.rng.choice(verbs or ["cancel", "pause", "pause", "pause", "resume", "resume", "resume"])
        fitting = [label for label in self.specs if verb == "cancel" or (label in self.paused) == (verb == "resume")]
        if not fitting:
            return self.push()
        label = self.rng.choice(fitting)
        if verb == "cancel":
            del self.specs[label]
        (self.paused.add if verb == "pause" else self.paused.discard)(label)
        return Act(verb, label)

    def any(self) -> Step:
        makers: list[tuple[int, Callable[[], Step]]] = [
            (120, self.push), (25, self.advance), (50, self.upsert), (10, self.delete), (35, self.submit), (10, self.replace),
            (45, self.act),
        ]  # fmt: skip
        return self.rng.choices([maker for _, maker in makers], [weight for weight, _ in makers])[0]()


def make_join_script(seed: int, n_steps: int) -> Script:
    """The script of a seed: the same for ever, as long as the generators do not change."""
    rng = random.Random(seed)
    streams, tables = random_sources(rng)
    maker = JoinStepMaker(rng, streams, tables)
    steps: list[Step] = [maker.upsert() for _ in tables]
    steps += [maker.submit() for _ in range(rng.randint(1, 3))]
    steps += [maker.any() for _ in range(n_steps)]
    return Script(streams, rng.choice(POLICIES), rng.choice(BATCH_ROWS), steps, tables, tuple(FUNCTIONS))
