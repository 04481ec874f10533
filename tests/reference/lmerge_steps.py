"""Random scripts over `FROM LMERGE(..)`: the engine beside `lmerge_model.py`, compared after every call.

Streams a, b and d present the same rows, each in its own way: some missing, some twice, late, in other calls; c is another stream
of the timeline, so that all of them may lag. Queries merge streams, running queries that are streams, and relations. What merges
of relations have to show is the answer of the input that decides, as that very engine gives it.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import groupby
from typing import Any, NamedTuple

from eddy import Engine
from tests.reference.comparison import same
from tests.reference.lmerge_model import Given, Shape, StreamMergeModel, content
from tests.reference.reloading import Reloading
from tests.reference.timelines import Released, Timelines
from tests.reference.values import Row

COLUMNS = {"k": "int", "v": "int", "ts": "timestamp[us]"}
STREAMS = ("a", "b", "d")
EXPIRY = ("input", "negative", "negative+message", "piggyback", "direct", "update-pattern", "auto")
#: Running queries that are streams: what each reads, and its condition.
NAMED = {"na": ("a", lambda row: True), "nb": ("b", lambda row: row["v"] > 0)}
NAMED_SQL = {"na": "SELECT k, v, ts FROM a", "nb": "SELECT k, v, ts FROM b WHERE v > 0"}
RELATIONS = {
    "ra": "SELECT k, COUNT(*) AS n FROM a [RANGE 20 MICROSECONDS] GROUP BY k",
    "rb": "SELECT k, COUNT(*) AS n FROM b [RANGE 20 MICROSECONDS] GROUP BY k",
    "rd": "SELECT k, COUNT(*) AS n FROM d [ROWS 5] GROUP BY k",
    "rk": "SELECT k, v AS n FROM keyed [RANGE 40 MICROSECONDS]",
    "wa": "SELECT k, v, ts FROM a [RANGE 15 MICROSECONDS]",
    "wb": "SELECT DISTINCT k, v, ts FROM b [RANGE 30 MICROSECONDS]",
    "wc": "SELECT k, v, ts FROM c [ROWS 4] UNION ALL SELECT k, v, ts FROM b [NOW]",
}
SHAPES = (
    Shape("[RANGE 12 MICROSECONDS]", 12), Shape("[RANGE 40 MICROSECONDS]", 40), Shape("[NOW]", 1), Shape("[RANGE UNBOUNDED]"),
    Shape("[ROWS 4]", rows=4), Shape("[PARTITION BY k ROWS 2]", rows=2, partition="k"),
    Shape("[ROWS 3 RANGE 10 MICROSECONDS]", 10, rows=3),
    Shape("[RANGE 12 MICROSECONDS SLIDE 5 MICROSECONDS]", 12, slide=5),
    Shape("[RANGE 6 MICROSECONDS SLIDE 6 MICROSECONDS]", 6, slide=6),
)  # fmt: skip

Bag = Counter[tuple[Any, ...]]
Answer = Callable[[list[Row]], list[tuple[Any, ...]]]


def _groups(rows: list[Row]) -> list[tuple[Any, ...]]:
    keys = {row["k"]: [other["v"] for other in rows if other["k"] == row["k"]] for row in rows}
    return [(key, len(found), sum(found)) for key, found in keys.items() if len(found) > 1]


def _ends(rows: list[Row]) -> list[tuple[Any, ...]]:
    return [(rows[0]["v"], rows[-1]["v"])] if rows else []


def _pairs(rows: list[Row]) -> list[tuple[Any, ...]]:
    return [(one["v"], other["v"]) for one in rows for other in rows if one["k"] == other["k"]]


#: Queries over a merge with a window: text around it, and what they give of its rows.
FORMS: tuple[tuple[str, Answer], ...] = (
    ("SELECT k, v, ts FROM {} AS r", lambda rows: [(row["k"], row["v"], row["ts"]) for row in rows]),
    ("SELECT DISTINCT v FROM {} AS r WHERE k < 2", lambda rows: list({(row["v"],) for row in rows if row["k"] < 2})),
    ("SELECT k, COUNT(*) AS n, SUM(v) AS s FROM {} AS r GROUP BY k HAVING COUNT(*) > 1", _groups),
    ("SELECT COUNT(*) AS n FROM {} AS r", lambda rows: [(len(rows),)]),
    ("SELECT FIRST(v) AS f, LAST(v) AS l FROM {} AS r GROUP BY 1 = 1", _ends),
    ("SELECT k FROM {} AS r UNION SELECT v FROM {} AS s", lambda rows: list({(row[c],) for row in rows for c in ("k", "v")})),
    ("SELECT r.v, s.v AS w FROM {} AS r JOIN {} AS s ON r.k = s.k", _pairs),
)


@dataclass
class Merged:
    """A submitted query over a merge of streams."""

    query: Any
    inputs: tuple[str, ...]
    history: str
    #: None: it has no window
    shape: Shape | None
    answer: Answer
    model: StreamMergeModel
    emit: str
    #: the changes read so far: the last commit, and what they sum up to
    seq: int = 0
    total: Bag = field(default_factory=Counter)


class Chosen(NamedTuple):
    """A submitted query over a merge of relations: inputs by name, with the query whose answer each has, and the shown one."""

    query: Any
    inputs: dict[str, str]
    shown: list[Bag]


class Script(Timelines):
    """One random script."""

    def __init__(self, seed: int, reloads: bool) -> None:
        super().__init__()
        self.rng = rng = random.Random(seed)
        make = Reloading(seed, chance=0.15) if reloads else Engine
        self.engine: Any = make(batch_rows=rng.choice([1, 3, 4096]), expiry=rng.choice(EXPIRY))
        for name in (*STREAMS, "c"):
            lateness, late = rng.choice([0, 0, 3]), rng.choice(["adjust", "drop"])
            self.create_stream(name, time="ts", lateness=lateness, late=late)
            self.engine.create_stream(
                name, COLUMNS, time="ts", lateness=timedelta(microseconds=lateness), late=late, keep=3_600_000
            )
        self.engine.create_stream("keyed", COLUMNS, time="ts", key=["k"])
        self.create_stream("keyed", time="ts")
        for name, sql in {**NAMED_SQL, **RELATIONS}.items():
            self.engine.submit(sql, name=name, history="window")
        self.paused: set[str] = set()
        self.merged: list[Merged] = []
        self.chosen: list[Chosen] = []
        #: the rows that all present, and how far each has come
        self.logical: list[Row] = []
        self.at = dict.fromkeys((*STREAMS, "c", "keyed"), 0)
        self.met: Counter[str] = Counter()

    # ---- input

    def rows_of(self, name: str, n: int) -> list[Row]:
        """The next rows of a stream as it presents them."""
        rng = self.rng
        while len(self.logical) < self.at[name] + n:
            last = self.logical[-1]["ts"] if self.logical else 0
            self.logical.append({"k": rng.randint(0, 2), "v": rng.randint(0, 2), "ts": last + rng.choice([0, 0, 1, 1, 4])})
        rows = self.logical[self.at[name] : self.at[name] + n]
        self.at[name] += n
        found = [row for row in rows for _ in range(rng.choice([0, 1, 1, 1, 1, 1, 1, 2]))]
        if rng.random() < 0.3:
            rng.shuffle(found)
        return found

    def push(self) -> None:
        rng = self.rng
        names = rng.sample([*STREAMS, "c", "keyed"], rng.choice([1, 1, 1, 2, 3]))
        batches = {name: self.rows_of(name, rng.randint(0, 6)) for name in names}
        if len(batches) == 1:
            ((name, rows),) = batches.items()
            self.engine.push(name, rows)
        else:
            self.engine.push_many(batches)
        for name, rows in batches.items():
            self.accept_rows(self.streams[name], rows)
        self.commit(self._releasable(batches))

    def catch_up(self) -> None:
        """One stream reaches the one that is furthest."""
        name = self.rng.choice(STREAMS)
        rows = self.rows_of(name, max(0, max(self.at.values()) - self.at[name]) + self.rng.randint(0, 2))
        self.engine.push(name, rows)
        self.accept_rows(self.streams[name], rows)
        self.commit(self._releasable({name: rows}))

    def advance(self) -> None:
        time = self.T.get("main", 0) + self.rng.choice([0, 1, 5, 20])
        self.engine.advance(instant(time))
        self.commit(self._releasable_by(time, "main"), time)

    def retract(self) -> None:
        time = self.T.get("main", 0)
        self.engine.retract("keyed", [self.rng.randint(0, 2)], instant(time))
        stream = self.streams["keyed"]
        stream.seen = time if stream.seen is None else max(stream.seen, time)
        released = max(time, stream.released or 0)
        stream.released = released
        self.commit(self._releasable({"keyed": []}), self.T.get("main", 0))

    def commit(self, released: list[Released], advanced: int | None = None) -> None:
        self.seq += 1
        before = self.T.get("main")
        self._take(released)
        if advanced is not None:
            self._move("main", advanced)
        for one in self.merged:
            given = [found for name in one.inputs for found in self.given(name, released, before)]
            given.sort(key=lambda found: (found.start, found.place))
            one.model.commit(given, self.points(one.inputs), self.T.get("main", -math.inf))
        for two in self.chosen:
            self.choose(two)

    def given(self, name: str, released: list[Released], before: int | None) -> list[Given]:
        """The rows that an input of a merge gives in a commit."""
        order = sorted(released, key=lambda entry: entry[:2])
        rows = [(place, t, stream.name, row) for place, (t, _, stream, row) in enumerate(order)]
        if name not in NAMED:
            return [Given(name, t, self._start(t, before), place, row) for place, t, of, row in rows if of == name]
        if name in self.paused:
            return []
        read, wanted = NAMED[name]
        starts = [(place, self._start(t, before), row) for place, t, of, row in rows if of == read and wanted(row)]
        return [Given(name, start, start, place, row) for place, start, row in starts]

    def points(self, inputs: tuple[str, ...]) -> dict[str, float | None]:
        now = self.T.get("main", -math.inf)
        found: dict[str, float | None] = {}
        for name in inputs:
            if name in self.streams:
                front = self.front(self.streams[name])
                found[name] = -math.inf if front is None else front
            else:
                found[name] = None if name in self.paused else now
        return found

    def choose(self, one: Chosen) -> None:
        """The answer of the input that decides is what a merge of relations shows; nobody does: what it showed."""
        points = self.points(tuple(one.inputs))
        known = [point for point in points.values() if point is not None]
        if known:
            leader = next(name for name, point in points.items() if point == max(known))
            self.met[f"chosen {leader}"] += 1
            one.shown[0] = bag(self.engine.answer(one.inputs[leader]))
        else:
            self.met["nobody"] += 1

    # ---- queries

    def submit_streams(self) -> None:
        rng = self.rng
        running = [name for name in NAMED if name not in self.paused]
        inputs = tuple(rng.sample([*STREAMS, *running], rng.choice([2, 2, 3])))
        history = rng.choice(["new", "window"])
        shape = rng.choice([*SHAPES, None])
        # a join may not hold more and more rows
        form, answer = FORMS[0] if shape is None else rng.choice(FORMS[:-1] if shape.text == "[RANGE UNBOUNDED]" else FORMS)
        source = f"LMERGE({', '.join(inputs)}){f' {shape.text}' if shape else ''}"
        options = {"history": history, "emit": rng.choice(["commit", "event"]), "expiry": rng.choice([None, *EXPIRY])}
        query = self.engine.submit(form.format(*[source] * form.count("{}")), **options)
        self.merged.append(Merged(query, inputs, history, shape, answer, self.begun(inputs, history, shape), options["emit"]))
        self.met[f"history {history}"] += 1

    def restart(self) -> None:
        """A merge of streams is paused and resumed: it begins anew."""
        if self.merged:
            one = self.rng.choice(self.merged)
            self.engine.pause(one.query)
            self.engine.resume(one.query)
            one.model = self.begun(one.inputs, one.history, one.shape)

    def begun(self, inputs: tuple[str, ...], history: str, shape: Shape | None) -> StreamMergeModel:
        """A merge of streams that begins now."""
        model = StreamMergeModel(inputs, self.points(inputs))
        if history == "window":
            stored = [
                Given(name, taken.t, taken.start, place, taken.row)
                for name in inputs
                if name in self.streams
                for place, taken in enumerate(self.streams[name].taken)
            ]
            stored.sort(key=lambda one: (one.start, inputs.index(one.input), one.place))
            placed = [one._replace(place=place) for place, one in enumerate(stored)]
            model.open(placed, self.points(inputs), self.T.get("main", -math.inf))
        if shape is None:
            # a stream begins with what comes next
            model.rows.clear()
        return model

    def submit_relations(self) -> None:
        rng = self.rng
        if rng.random() < 0.5:
            names = [name for name in ("ra", "rb", "rd", "rk") if name not in self.paused]
            inputs = {name: name for name in rng.sample(names, min(len(names), rng.choice([2, 3])))}
            window = ""
        else:
            names = [name for name in ("wa", "wb", "wc") if name not in self.paused]
            inputs = {name: name for name in rng.sample(names, min(len(names), rng.choice([1, 2])))}
            window = rng.choice(["[RANGE 25 MICROSECONDS]", "[ROWS 3]"])
            stream = rng.choice(["a", "b"])
            beside = self.engine.submit(f"SELECT k, v, ts FROM {stream} {window}")
            inputs = dict(rng.sample([*inputs.items(), (stream, beside.name)], len(inputs) + 1))
        if len(inputs) < 2:
            return
        sql = f"SELECT * FROM LMERGE({', '.join(inputs)}) {window if any(name in STREAMS for name in inputs) else ''} AS r"
        query = self.engine.submit(sql, emit=rng.choice(["commit", "event"]))
        self.chosen.append(Chosen(query, inputs, [Counter()]))
        self.choose(self.chosen[-1])

    def pause(self) -> None:
        name = self.rng.choice([*NAMED, *RELATIONS])
        if name in self.paused:
            self.engine.resume(name)
            self.paused.discard(name)
        else:
            self.engine.pause(name)
            self.paused.add(name)
            for one in self.merged:
                one.model.leave(name)
            self.met["paused"] += 1

    def cancel(self) -> None:
        if self.merged and self.rng.random() < 0.5:
            self.engine.cancel(self.merged.pop(self.rng.randrange(len(self.merged))).query)
        elif self.chosen:
            self.engine.cancel(self.chosen.pop(self.rng.randrange(len(self.chosen))).query)

    # ---- comparison

    def compare(self) -> None:
        now = self.T.get("main", -math.inf)
        for one in self.merged:
            rows = content(one.model.rows, one.shape, now) if one.shape else [row.row for row in one.model.rows][-1000:]
            found = [canonical(row) for row in self.engine.answer(one.query).to_pylist()]
            expected = one.answer(rows)
            same(one.query.sql, Counter(found), Counter(expected))
            if one.shape is None:
                assert found == expected, "rows of a stream are in the order in which they came"
            elif one.emit == "event":
                self.compare_instants(one, one.shape)
        for two in self.chosen:
            same(two.query.sql, bag(self.engine.answer(two.query)), two.shown[0])
        for query in [one.query for one in (*self.merged, *self.chosen)]:
            if not query.is_stream:
                total: Bag = Counter()
                for change in self.engine.changes(query, since=0):
                    total[tuple(change.row.values())] += change.sign
                assert +total == Counter(tuple(row.values()) for row in self.engine.answer(query).to_pylist())

    def compare_instants(self, one: Merged, shape: Shape) -> None:
        """The changes of every instant lead to what the window held then."""
        changes = list(self.engine.changes(one.query, since=one.seq))
        for time, of_instant in groupby(changes, key=lambda change: round(change.time.timestamp() * 1e6)):
            for change in of_instant:
                one.total[canonical(change.row)] += change.sign
            rows = [row for row in one.model.rows if row.start <= time]
            same(f"{one.query.sql} at {time}", +one.total, Counter(one.answer(content(rows, shape, time))))
            self.met["instants"] += 1
        one.seq = max([one.seq, *(change.seq for change in changes)])

    def step(self) -> None:
        steps = [
            (self.push, 12), (self.catch_up, 5), (self.advance, 3), (self.retract, 1), (self.submit_streams, 3),
            (self.submit_relations, 2), (self.pause, 3), (self.cancel, 1), (self.restart, 1),
        ]  # fmt: skip
        self.rng.choices([step for step, _ in steps], [weight for _, weight in steps])[0]()
        self.compare()
        self.engine.check()


def instant(micros: int) -> datetime:
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=micros)


def canonical(row: Row) -> tuple[Any, ...]:
    return tuple(round(value.timestamp() * 1e6) if hasattr(value, "timestamp") else value for value in row.values())


def bag(answer: Any) -> Bag:
    return Counter(tuple(row.values()) for row in answer.to_pylist())


def run(seed: int, n_steps: int, reloads: bool = False) -> Counter[str]:
    """Run one script; returns what it met."""
    script = Script(seed, reloads)
    for _ in range(n_steps):
        script.step()
    met = script.met
    for one in script.merged:
        met.update(one.model.met)
    return met
