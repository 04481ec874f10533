"""Drive an engine and the naive model side by side and compare them after every step.

A run is a `Script`: the set-up (streams, engine options) and a list of steps, all plain data. `make_script(seed, n)`
draws one, `replay(script, make_engine)` runs it and raises `Mismatch` at the first difference, `shrink` removes steps,
rows and conditions from a failing script while it still fails, and `as_python` prints what is left as engine calls.

After each step, for every query that is not cancelled:

    engine.check()                                     no invariant is broken
    engine.answer(q)     = the model's answer          and, while running, DuckDB's over the rows taken
    changes(q, since)    = the model's changes         as (seq, sign, time, row), - before + in each commit
    sum of all changes   = the answer                  (its newest 1,000 for a stream query)
    sum of on_commit     = the input rows of the answer
"""

from __future__ import annotations

import datetime as dt
import os
import random
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa

from tests.reference.naive import NEWEST, Naive, Row, Value, canonical, canonical_row
from tests.reference.oracle import Oracle, arrow_type
from tests.reference.workload import COLUMNS, MS, WINDOWS, QuerySpec, random_query, random_rows, random_times, to_datetime

MakeEngine = Callable[..., Any]
POLICIES = ["auto", "random", "lottery", "backpressure", "greedy", "fixed:filter:m1.id,filter:m1.n"]
BATCH_ROWS = [1, 2, 3, 7, 64, 100, 4096, 8192]


class Mismatch(AssertionError):
    """The engine and the model differ; the text says where and how."""


# -- scripts ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class StreamPlan:
    name: str
    columns: dict[str, str]
    time: str | None
    lateness_us: int
    late: str
    timeline: str


@dataclass(frozen=True)
class Push:
    """One push of one stream, or one push_many; `form` is how the rows are written."""

    batches: dict[str, list[Row]]
    form: str
    many: bool


@dataclass(frozen=True)
class Advance:
    time: int
    timeline: str


@dataclass(frozen=True)
class Tick:
    """The engine's clock moves on: only streams without a time column see it."""

    now: int


@dataclass(frozen=True)
class Submit:
    label: int
    spec: QuerySpec


@dataclass(frozen=True)
class Crowd:
    """Many queries at once: enough of them make the engine lay them out in other ways."""

    members: list[Submit]


@dataclass(frozen=True)
class Leave:
    """Cancel those of these queries that are there."""

    labels: list[int]


@dataclass(frozen=True)
class Act:
    """cancel, pause or resume the query with that label; nothing if it is not in a state for it."""

    verb: str
    label: int


Step = Push | Advance | Tick | Submit | Crowd | Leave | Act


@dataclass(frozen=True)
class Script:
    streams: list[StreamPlan]
    policy: str
    batch_rows: int
    steps: list[Step] = field(default_factory=list)


def random_streams(rng: random.Random) -> list[StreamPlan]:
    """Stream m1 on timeline main and, as drawn, a second one there, one on another timeline, one without time."""
    streams = []
    for name, timeline in (("m1", "main"), ("m2", "main"), ("o1", "other")):
        lateness = rng.choice([0, 0, 1, 5 * MS, 50 * MS])
        unit = rng.choice(["timestamp", "timestamp[us]", "timestamp[ms]"])
        streams.append(StreamPlan(name, {**COLUMNS, "ts": unit}, "ts", lateness, rng.choice(["adjust", "drop"]), timeline))
    streams.append(StreamPlan("arr", dict(COLUMNS), None, 0, "adjust", "arrival"))
    return streams[:1] + [stream for stream in streams[1:] if rng.random() < 0.55]


class StepMaker:
    """Draws steps one by one; keeps the middle of each stream's times, so that they move on, lag and run late."""

    def __init__(self, rng: random.Random, streams: list[StreamPlan]) -> None:
        self.rng = rng
        self.streams = {stream.name: stream for stream in streams}
        base = rng.choice([0, 1_700_000_000_000 * MS, -10 * MS])
        self.center = dict.fromkeys(self.streams, base)
        #: whether many queries may come at once
        self.crowded = rng.random() < 0.2
        self.now = base
        #: by label: "running" or "paused"; cancelled queries are not in it
        self.states: dict[int, str] = {}
        #: streams with a query without window: more rows than its answer holds must come at times
        self.followed_streams: list[str] = []
        #: every query made so far
        self.specs: list[QuerySpec] = []
        self._n_queries = 0

    def push(self, n_rows: int | None = None, many: bool | None = None) -> Push:
        rng = self.rng
        if many is None:
            many = rng.random() < 0.2
        if many:  # the streams of one commit share a timeline
            timeline = rng.choice(list(self.streams.values())).timeline
            names = [name for name, stream in self.streams.items() if stream.timeline == timeline]
            names = rng.sample(names, rng.randint(1, len(names)))
        else:
            names = [rng.choice([*self.streams, "m1"])]
        if n_rows is None and self.followed_streams and not self.crowded and rng.random() < 0.04:
            n_rows, names, many = NEWEST + 200, [rng.choice(self.followed_streams)], False
        batches = {}
        for name in names:
            n = rng.choice([0, 1, 2, 3, 5, 8, 20, 20 if self.crowded else 60, 60, 300]) if n_rows is None else n_rows
            batches[name] = random_rows(rng, n, self._times(name, n))
        return Push(batches, rng.choice(["columns", "dicts", "arrow"]), many)

    def _times(self, name: str, n: int) -> list[int] | None:
        stream = self.streams[name]
        if stream.time is None:
            return None
        self.center[name] += self.rng.choice([0, 0, 1, MS, 4 * MS, 4 * MS, 15 * MS, 30 * MS, 400 * MS])
        if self.rng.random() < 0.25:
            self.center[name] = max(self.center[other] for other in self.streams)
        return random_times(self.rng, n, self.center[name], self.rng.choice([1, MS, MS]))

    def advance(self) -> Advance:
        timeline = self.streams[self.rng.choice(list(self.streams))].timeline
        ahead = self.rng.choice([-5 * MS, 0, 1, 999, MS, 5 * MS, 5 * MS, 20 * MS, 300 * MS, 1_000 * MS, 130_000 * MS])
        if timeline == "arrival":
            self.now += max(0, ahead)
            return Advance(self.now, timeline)
        latest = max(self.center[name] for name, stream in self.streams.items() if stream.timeline == timeline)
        return Advance(latest + ahead, timeline)

    def tick(self) -> Tick:
        self.now += self.rng.choice([-MS, 0, 1, MS, 5 * MS, 900 * MS])
        return Tick(self.now)

    def submit(self, depth: int | None = None, stream: str | None = None, crowd: bool = False) -> Submit:
        """A new query, or an old one again, as it was or over another window: equal queries share what they can."""
        rng = self.rng
        label = self._n_queries
        self._n_queries += 1
        self.states[label] = "running"
        spec = rng.choice(self.specs) if self.specs and rng.random() < 0.2 else None
        if spec is not None and rng.random() < 0.5:
            spec = spec.with_window(*rng.choice(WINDOWS))
        if spec is None:
            stream = stream or rng.choice([*self.streams, "m1", "m1"])
            instants = [self.center[stream] + rng.choice([0, MS, -MS]) for _ in range(3)]
            spec = random_query(rng, stream, self.streams[stream].columns, instants, depth, crowd)
        self.specs.append(spec)
        if spec.width is None:
            self.followed_streams.append(spec.stream)
        return Submit(label, spec)

    def crowd(self, n_queries: int | None = None) -> Crowd:
        return Crowd([self.submit(stream="m1", crowd=True) for _ in range(n_queries or self.rng.choice([10, 70, 110]))])

    def leave(self) -> Leave:
        """Cancel a good part of what runs."""
        labels = [label for label in self.states if self.rng.random() < 0.6]
        for label in labels:
            del self.states[label]
        return Leave(labels)

    def act(self, verbs: list[str] | None = None) -> Act | Tick:
        """Cancel, pause or resume some query that is in a state for it; a tick if there is none."""
        verb = self.rng.choice(verbs or ["cancel", "pause", "resume", "resume"])
        needed = {"cancel": ("running", "paused"), "pause": ("running",), "resume": ("paused",)}[verb]
        fitting = [label for label, state in self.states.items() if state in needed]
        if not fitting:
            return self.tick()
        label = self.rng.choice(fitting)
        if verb == "cancel":
            del self.states[label]
        else:
            self.states[label] = "paused" if verb == "pause" else "running"
        return Act(verb, label)

    def any(self) -> Step:
        makers: list[tuple[int, Callable[[], Step]]] = [
            (100, self.push), (30, self.advance), (10, self.tick), (40, self.submit), (30, self.act),
            (10 if self.crowded and len(self.states) < 60 else 0, self.crowd), (5, self.leave),
        ]  # fmt: skip
        return self.rng.choices([maker for _, maker in makers], [weight for weight, _ in makers])[0]()


def make_script(seed: int, n_steps: int) -> Script:
    """The script of a seed: the same for ever, as long as the generators do not change."""
    rng = random.Random(seed)
    streams = random_streams(rng)
    maker = StepMaker(rng, streams)
    steps: list[Step] = [maker.submit() for _ in range(rng.randint(1, 4))]
    steps += [maker.any() for _ in range(n_steps)]
    return Script(streams, rng.choice(POLICIES), rng.choice(BATCH_ROWS), steps)


# -- what a client sends ---------------------------------------------------------------------------------------------


def encode(rows: list[Row], columns: dict[str, str], form: str) -> Any:
    """Rows as a client would send them; datetimes where a bare number of the column's unit would lose digits."""
    if form == "arrow":
        schema = pa.schema([(name, arrow_type(declared)) for name, declared in columns.items()])
        return pa.Table.from_pylist(rows, schema=schema)
    units = {name: 1 if "[us]" in declared else MS for name, declared in columns.items() if declared.startswith("timestamp")}
    whole = {name: all(row[name] is None or row[name] % unit == 0 for row in rows) for name, unit in units.items()}

    def sent(name: str, value: Any) -> Any:
        if value is None or name not in units:
            return value
        return value // units[name] if whole[name] else to_datetime(value)

    if form == "dicts":
        return [{name: sent(name, value) for name, value in row.items() if value is not None} for row in rows]
    used = [name for name in columns if name == "ts" or not rows or any(row[name] is not None for row in rows)]
    return {name: [sent(name, row[name]) for row in rows] for name in used or list(columns)}


# -- the comparison --------------------------------------------------------------------------------------------------


@dataclass
class Followed:
    """One query as the harness follows it from its submit."""

    spec: QuerySpec
    #: what the engine's submit returned
    handle: Any
    #: its number in the model
    number: int
    #: the last commit whose changes were read
    cursor: int
    paused: bool = False
    #: all changes read so far, summed by value; for a stream query `newest` holds the values in order
    total: Counter[Value] = field(default_factory=Counter)
    newest: list[Value] = field(default_factory=list)
    #: what DuckDB was last asked: (rows taken, T, birth)
    asked: tuple[Any, ...] = ()


class Harness:
    """An engine, the model and DuckDB fed with the same steps."""

    def __init__(self, script: Script, make_engine: MakeEngine, use_duckdb: bool = True) -> None:
        self.now = 0
        self.n_steps = 0
        self.engine = make_engine(policy=script.policy, batch_rows=script.batch_rows, clock=lambda: to_datetime(self.now))
        self.model = Naive(lambda: self.now)
        self.oracle = Oracle() if use_duckdb else None
        self.columns: dict[str, dict[str, str]] = {}
        self.followed: dict[int, Followed] = {}
        #: input rows by query id, summed over all commits
        self.heard: dict[int, Counter[Value]] = {}
        self.last_part: tuple[int, bool] = (0, True)
        for stream in script.streams:
            self._create(stream)
        self.engine.on_commit(self._listen)

    def _create(self, plan: StreamPlan) -> None:
        self.columns[plan.name] = plan.columns
        options: dict[str, Any] = {}
        if plan.time:
            lateness = dt.timedelta(microseconds=plan.lateness_us)
            options = {"time": plan.time, "lateness": lateness, "late": plan.late, "timeline": plan.timeline}
            self.model.create_stream(plan.name, time=plan.time, lateness=plan.lateness_us, late=plan.late, timeline=plan.timeline)
        else:
            self.model.create_stream(plan.name)
        self.engine.create_stream(plan.name, plan.columns, **options)
        if self.oracle:
            self.oracle.create_stream(plan.name, plan.columns)

    def _listen(self, commit: Any) -> None:
        """Sum up the input rows of each query, as a bulk reader of `on_commit` would."""
        self.last_part = (commit.seq, bool(commit.last))
        query_ids, offsets, row_numbers = commit.row_lists()
        if len(query_ids) == 0:
            return
        columns = self.columns[commit.stream]
        given = commit.columns
        values = [_as_list(given[name]) for name in columns]
        signs = np.asarray(commit.sign)
        for i, query in enumerate(np.asarray(query_ids).tolist()):
            total = self.heard.setdefault(query, Counter())
            for r in np.asarray(row_numbers)[offsets[i] : offsets[i + 1]].tolist():
                total[tuple(column[r] for column in values)] += int(signs if signs.ndim == 0 else signs[r])

    # -- steps -------------------------------------------------------------------------------------------------------

    def do(self, step: Step) -> None:
        """Run one step on both sides, then compare."""
        match step:
            case Push():
                self._push(step)
            case Advance():
                self.engine.advance(to_datetime(step.time), timeline=step.timeline)
                self.model.advance(step.time, step.timeline)
            case Tick():
                self.now = step.now
            case Submit():
                self._submit(step)
            case Crowd():
                for member in step.members:
                    self._submit(member)
            case Leave():
                for label in step.labels:
                    self._act(Act("cancel", label))
            case Act():
                self._act(step)
        self.n_steps += 1
        self.compare()

    def _push(self, step: Push) -> None:
        payloads = {name: encode(rows, self.columns[name], step.form) for name, rows in step.batches.items()}
        if step.many:
            receipts = self.engine.push_many(payloads)
        else:
            receipts = {name: self.engine.push(name, payload) for name, payload in payloads.items()}
        expected = self.model.push_many(step.batches)
        for name, receipt in expected.items():
            got = receipts[name]
            found = (got.accepted, got.late, got.first_row, got.last_row)
            _same(f"receipt of {name}", found, (receipt.accepted, receipt.late, receipt.first_row, receipt.last_row))

    def _submit(self, step: Submit) -> None:
        spec = step.spec
        if hasattr(self.engine, "learn"):
            self.engine.learn(spec)
        handle = self.engine.submit(spec.sql, params=spec.params or None)
        number = self.model.submit(spec.stream, spec.width, spec.where, spec.select)
        self.followed[step.label] = Followed(spec, handle, number, self.model.seq)
        self.heard[handle.id] = Counter()
        schema = self.engine.answer(handle).schema
        _same(f"columns of {spec.sql}", schema.names, spec.names)
        for name, type in zip(spec.names, spec.types, strict=True):
            got = schema.field(name).type
            if type == "timestamp" and pa.types.is_timestamp(got):
                continue
            if got != arrow_type(type):
                raise Mismatch(f"column {name} of {spec.sql} is {got}, not {arrow_type(type)}")

    def _act(self, step: Act) -> None:
        query = self.followed.get(step.label)
        if query is None or query.paused != (step.verb == "resume") and step.verb != "cancel":
            return
        if step.verb == "resume":
            # in a crowd some changes of the run that ended may not have been read yet; they belong to its sum
            self._compare_changes(f"query {step.label}: {query.spec.sql}", query)
        getattr(self.engine, step.verb)(query.handle)
        getattr(self.model, step.verb)(query.number)
        if step.verb == "cancel":
            del self.followed[step.label]
        else:
            query.paused = step.verb == "pause"
        if step.verb == "resume":
            query.newest.clear()
            if query.spec.width is None:
                query.total.clear()
                self.heard[query.handle.id].clear()

    # -- comparison --------------------------------------------------------------------------------------------------

    def compare(self, everything: bool = False) -> None:
        """Compare all queries; in a crowd only a few after each step, others after the next, all at the end."""
        self.engine.check()
        if not self.last_part[1]:
            raise Mismatch(f"the last part of commit {self.last_part[0]} does not say so")
        turns = 1 if everything else max(1, len(self.followed) // 12)
        for label, query in self.followed.items():
            if (label + self.n_steps) % turns == 0:
                self._compare_query(f"query {label}: {query.spec.sql} {query.spec.params or ''}", query)

    def _compare_query(self, what: str, query: Followed) -> None:
        model_values = self.model.answer(query.number)
        expected = Counter(model_values)
        table = self.engine.answer(query.handle)
        got_values = [canonical_row(row) for row in _table_rows(table)]
        _same(f"answer of {what}", Counter(got_values), expected)
        _same(f"seq of the answer of {what}", table.schema.metadata[b"seq"], str(self.model.seq).encode())
        self._compare_changes(what, query)
        summed = Counter(query.newest[-NEWEST:]) if query.spec.width is None else query.total
        _same(f"sum of changes of {what}", +summed, expected)
        if any(n < 0 for n in query.total.values()):
            raise Mismatch(f"a count below zero in the sum of changes of {what}: {query.total}")
        if not query.paused:
            state = self.model.queries[query.number]
            rows = state.results if query.spec.width is None else self.model.alive(query.number)
            names = self.columns[query.spec.stream]
            inputs = Counter(canonical_row(result.row[name] for name in names) for result in rows)
            heard = Counter({value: n for value, n in self.heard[query.handle.id].items() if n})
            _same(f"on_commit rows of {what}", heard, inputs)
            self._ask_duckdb(what, query, expected)

    def _compare_changes(self, what: str, query: Followed) -> None:
        """Read what is new since the cursor; the model's changes, and in each commit - before + and by time."""
        found = list(self.engine.changes(query.handle, since=query.cursor))
        wanted = [(seq, c.sign, c.time, c.value) for seq, c in self.model.changes(query.number, query.cursor)]
        got = [(c.seq, c.sign, canonical(c.time), canonical_row(c.row[name] for name in query.spec.names)) for c in found]
        _same(f"changes of {what}", Counter(got), Counter(wanted))
        order = [entry[:3] for entry in got]
        if order != sorted(order):
            raise Mismatch(f"changes of {what} are not ordered by (seq, sign, time): {order}")
        for _, sign, _, value in got:
            query.total[value] += sign
            query.newest.append(value)
        query.cursor = self.model.seq

    def _ask_duckdb(self, what: str, query: Followed, expected: Counter[Value]) -> None:
        if self.oracle is None or query.spec.duck is None:
            return
        state = self.model.queries[query.number]
        stream = state.stream
        now = self.model.T.get(stream.timeline)
        asked = (len(stream.taken), now, state.birth)
        if asked == query.asked:
            return  # the same question as after the last step, and the answer was the model's
        query.asked = asked
        self.oracle.load(stream.name, stream.taken)
        answer = self.oracle.answer(stream.name, query.spec.duck, state.birth, query.spec.width, now)
        _same(f"DuckDB's answer, against the model's, of {what}", answer, expected)

    def close(self) -> None:
        if self.oracle:
            self.oracle.close()
        if hasattr(self.engine, "close"):
            self.engine.close()


def _table_rows(table: pa.Table) -> Iterator[tuple[Any, ...]]:
    """Rows of an Arrow table; names may repeat, so not by dict."""
    return zip(*(column.to_pylist() for column in table.columns), strict=True) if table.num_columns else iter(())


def _as_list(values: Any) -> list[Any]:
    """Canonical values of a column as `on_commit` gives it: Arrow, numpy or a list."""
    if isinstance(values, np.ndarray) and values.dtype.kind == "M":
        values = pa.array(values.astype("datetime64[us]"))
    listed = values.to_pylist() if hasattr(values, "to_pylist") else values.tolist() if hasattr(values, "tolist") else values
    return [canonical(value) for value in listed]


def _same(what: str, got: Any, expected: Any) -> None:
    if got == expected:
        return
    if isinstance(got, Counter) and isinstance(expected, Counter):
        missing, extra = expected - got, got - expected
        raise Mismatch(f"{what}\n  missing: {_few(missing)}\n  extra:   {_few(extra)}\n  of {expected.total()} expected")
    raise Mismatch(f"{what}\n  got:      {got}\n  expected: {expected}")


def _few(counts: Counter[Any]) -> str:
    shown = ", ".join(f"{value} x{n}" for value, n in list(counts.items())[:4])
    return shown + (f", ... ({len(counts)} distinct)" if len(counts) > 4 else "")


# -- running and shrinking -------------------------------------------------------------------------------------------


def replay(script: Script, make_engine: MakeEngine, use_duckdb: bool = True) -> None:
    """Run a script; raises `Mismatch`, or whatever the engine raises, at the first step that goes wrong."""
    harness = Harness(script, make_engine, use_duckdb)
    try:
        for number, step in enumerate(script.steps):
            try:
                harness.do(step)
            except Exception as error:
                error.add_note(f"at step {number}: {type(step).__name__}")
                raise
        harness.compare(everything=True)
    finally:
        harness.close()


def subject(**options: Any) -> Any:
    """The engine under test; with EDDY_SUBJECT=twin in the environment the model plays it, to test the tests."""
    if os.environ.get("EDDY_SUBJECT") == "twin":
        from tests.reference.twin import Twin

        return Twin(**options)
    from eddy import Engine

    return Engine(**options)


def run(seed: int, n_steps: int, make_engine: MakeEngine, use_duckdb: bool = True) -> None:
    """Make the script of `seed` and replay it; the failure names the seed."""
    try:
        replay(make_script(seed, n_steps), make_engine, use_duckdb)
    except Exception as error:
        error.add_note(f"seed {seed}, {n_steps} steps")
        raise


def shrink(script: Script, make_engine: MakeEngine, budget: int = 400) -> Script:
    """A smaller script that fails with the same kind of error; at most `budget` replays."""

    def error_of(candidate: Script) -> str | None:
        nonlocal budget
        budget -= 1
        try:
            replay(candidate, make_engine, use_duckdb=False)
        except Exception as error:
            return f"{type(error).__name__}:{str(error).split(' ')[0]}"
        return None

    kind = error_of(script)
    if kind is None:
        return script
    shrunk = True
    while shrunk and budget > 0:
        shrunk = False
        for candidate in _smaller(script):
            if budget <= 0:
                break
            if error_of(candidate) == kind:
                script, shrunk = candidate, True
                break
    return script


def _smaller(script: Script) -> Iterator[Script]:
    """Candidates: halves of the steps away, single steps away, halves of a push away, fewer streams."""
    steps = script.steps
    for part in _parts(steps):
        yield replace(script, steps=part)
    for i, step in enumerate(steps):
        if isinstance(step, Push):
            for smaller in _smaller_pushes(step):
                yield replace(script, steps=[*steps[:i], smaller, *steps[i + 1 :]])
        if isinstance(step, Crowd):
            for members in _parts(step.members):
                yield replace(script, steps=[*steps[:i], Crowd(members), *steps[i + 1 :]])
        if isinstance(step, Leave):
            for labels in _parts(step.labels):
                yield replace(script, steps=[*steps[:i], Leave(labels), *steps[i + 1 :]])
    used = {name for step in steps if isinstance(step, Push) for name in step.batches}
    used |= {step.spec.stream for step in steps if isinstance(step, Submit)}
    used |= {member.spec.stream for step in steps if isinstance(step, Crowd) for member in step.members}
    if any(stream.name not in used for stream in script.streams):
        yield replace(script, streams=[stream for stream in script.streams if stream.name in used])
    if script.batch_rows != 4096:
        yield replace(script, batch_rows=4096)
    if script.policy != "auto":
        yield replace(script, policy="auto")


def _parts(items: list[Any]) -> Iterator[list[Any]]:
    """The list without one of its halves, quarters, ..., single items."""
    size = len(items) // 2
    while size:
        for first in range(0, len(items), size):
            yield items[:first] + items[first + size :]
        size //= 2


def _smaller_pushes(step: Push) -> Iterator[Push]:
    for name, rows in step.batches.items():
        if len(step.batches) > 1:
            yield replace(step, batches={other: batch for other, batch in step.batches.items() if other != name})
        for part in _parts(rows):
            yield replace(step, batches={**step.batches, name: part})
    if step.many and len(step.batches) == 1:
        yield replace(step, many=False)
    if step.form != "dicts":
        yield replace(step, form="dicts")


def as_python(script: Script) -> str:
    """The script as calls that can be pasted after `from eddy import Engine`."""
    lines = [f"engine = Engine(policy={script.policy!r}, batch_rows={script.batch_rows})"]
    columns = {stream.name: stream.columns for stream in script.streams}
    for s in script.streams:
        options = f", time={s.time!r}, lateness=timedelta(microseconds={s.lateness_us}), late={s.late!r}, timeline={s.timeline!r}"
        lines.append(f"engine.create_stream({s.name!r}, {s.columns}{options if s.time else ''})")
    for step in script.steps:
        match step:
            case Push(batches, form, many):
                sent = {name: encode(rows, columns[name], form) for name, rows in batches.items()}
                lines += [f"engine.push_many({sent})"] if many else [f"engine.push({n!r}, {p})" for n, p in sent.items()]
            case Advance(time, timeline):
                lines.append(f"engine.advance({time / MS}, timeline={timeline!r})  # {time} us")
            case Tick(now):
                lines.append(f"now = {now}  # us, read by the engine's clock")
            case Submit(label, spec):
                lines.append(f"q{label} = engine.submit({spec.sql!r}, params={spec.params or None})")
            case Crowd(members):
                lines += [f"q{m.label} = engine.submit({m.spec.sql!r}, params={m.spec.params or None})" for m in members]
            case Leave(labels):
                lines += [f"engine.cancel(q{label})" for label in labels]
            case Act(verb, label):
                lines.append(f"engine.{verb}(q{label})")
    return "\n".join(lines)
