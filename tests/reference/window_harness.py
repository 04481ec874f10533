"""An engine and the model of the whole language side by side, fed with the same steps and compared after each.

After each step, for every query that is not cancelled:

    engine.check()                                   no invariant is broken
    engine.answer(q)         = the model's answer
    changes(q, since)        = the model's changes of the step, in order, all of one commit
    sum of all changes       = the answer (the newest 1,000 of a stream)
    sum of on_commit parts   = the answer of a relation with operators, its own or shared; a query without
                               them has parts of its inputs' rows

and at the end, if asked, the model's answers and emitted rows are DuckDB's (`window_oracle.py`).

Times of changes are compared for streams and emit="event", where they are determined. With emit="commit" the times that remain of
changes that net depend on which rows an operator hands over (`semantics.md` 12): they must lie within the commit, unless
`exact_times` asks for the model's. A query with an inexact aggregate is compared within its tolerance, by its answer and
by the sum of its changes.

With `skip_refused` a query that the engine refuses as not supported is left out, with those that read it; `refused` counts them.
"""

from __future__ import annotations

import datetime as dt
import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from eddy.operators.tree_query import TreeQuery
from eddy.query import Query as EngineQuery
from tests.reference.binding import Opening
from tests.reference.comparison import Mismatch, same, same_bag
from tests.reference.naive import NEWEST
from tests.reference.operators import Tree, exact, items, parameters
from tests.reference.oracle import arrow_type
from tests.reference.payload import encode
from tests.reference.script import Act, Advance, Delete, Push, Upsert
from tests.reference.tree_sql import as_sql
from tests.reference.values import Value, canonical, canonical_row
from tests.reference.window_oracle import WindowOracle
from tests.reference.window_player import WindowPlayer
from tests.reference.window_script import Open, Retract, Rewrite, Step, WindowScript, smaller, written_keys
from tests.reference.window_steps import make_window_script
from tests.reference.workload import to_datetime

MakeEngine = Callable[..., Any]


@dataclass
class Followed:
    """One query as the harness follows it from its submit."""

    tree: Tree
    emit: str
    #: what the engine's submit returned
    handle: Any
    #: the engine's last commit whose changes were read
    cursor: int
    #: whether it came with the last step: its answer has been read as a snapshot
    fresh: bool = True
    #: all changes read so far, summed by value; for a stream query `newest` holds the values in order
    total: Counter[Value] = field(default_factory=Counter)
    newest: list[Value] = field(default_factory=list)
    #: the rows that parts of commits brought, minus those that they took
    heard: Counter[Value] = field(default_factory=Counter)

    @property
    def timed(self) -> bool:
        """Whether the text determines the times of its changes."""
        return self.tree.is_stream or self.emit == "event"


class WindowHarness:
    def __init__(
        self, script: WindowScript, make_engine: MakeEngine, exact_times: bool = False, skip_refused: bool = False
    ) -> None:
        self.script = script
        self.engine = make_engine(policy=script.policy, expiry=script.expiry, batch_rows=script.batch_rows)
        self.player = WindowPlayer(script)
        self.model = self.player.model
        self.exact_times = exact_times
        self.skip_refused = skip_refused
        self.followed: dict[int, Followed] = {}
        self.refused = 0
        #: by query id and commit part: rows that on_commit brought (+) and took (-), since the last step
        self._parts: list[tuple[int, int, list[Value]]] = []
        if hasattr(self.engine, "on_commit"):
            self.engine.on_commit(self._listen)
        for s in script.streams:
            options: dict[str, Any] = {"key": list(s.key)} if s.key else {}
            options |= {"end": s.end} if s.end else {}
            options |= {"keep": dt.timedelta(microseconds=s.keep_us)} if s.keep_us is not None else {}
            lateness = dt.timedelta(microseconds=s.lateness_us)
            self.engine.create_stream(s.name, dict(s.columns), time="ts", lateness=lateness, late=s.late, **options)
        for t in script.tables:
            self.engine.create_table(t.name, t.columns, key=list(t.key), retroactive=t.retroactive)

    # -- steps -------------------------------------------------------------------------------------------------------

    def do(self, step: Step) -> None:
        """Run one step on both sides, then compare; a step whose query is not in a state for it is left out."""
        if not self.player.may(step):
            return
        before = self.model.now
        seq = self.model.seq
        if self.ask(step):
            if not isinstance(step, Push):
                self.player.do(step)
            if isinstance(step, Open):
                self._begin(step)
        if isinstance(step, Act) and step.verb == "cancel":
            del self.followed[step.label]
        self.compare(seq, before)

    def ask(self, step: Step) -> bool:
        """Ask the engine for a step; returns whether it took it."""
        match step:
            case Push():
                self._push(step)
            case Advance():
                self.engine.advance(to_datetime(step.time))
            case Retract():
                self.engine.retract(step.stream, written_keys(step.keys), to_datetime(step.time))
            case Upsert():
                self.engine.upsert(step.table, encode(step.rows, self.script.columns[step.table], "dicts"))
            case Delete():
                self.engine.delete(step.table, written_keys(step.keys))
            case Open():
                return self.submit(step)
            case Rewrite():
                return self._replace(step)
            case Act():
                query = self.followed[step.label]
                getattr(self.engine, step.verb)(query.handle)
                if step.verb == "resume" and query.tree.is_stream:
                    query.newest.clear()
                    query.total.clear()
        return True

    def _push(self, step: Push) -> None:
        payloads = {name: encode(rows, self.script.columns[name], step.form) for name, rows in step.batches.items()}
        if step.many:
            receipts = self.engine.push_many(payloads)
        else:
            receipts = {name: self.engine.push(name, payload) for name, payload in payloads.items()}
        for name, expected in self.model.push_many(step.batches).items():
            same(f"receipt of {name}", tuple(receipts[name]), tuple(expected))

    def submit(self, step: Open) -> bool:
        options: dict[str, Any] = {"params": parameters(step.tree) or None}
        options |= {"history": step.history} if step.history != "new" else {}
        options |= {"emit": step.emit} if step.emit != "commit" else {}
        options |= {"name": step.name} if step.name else {}
        options |= {"expiry": step.expiry} if step.expiry else {}
        handle = self._refusable(step.tree, lambda sql: self.engine.submit(sql, **options))
        if handle is not None:
            self.followed[step.label] = Followed(step.tree, step.emit, handle, 0)
        return handle is not None

    def _replace(self, step: Rewrite) -> bool:
        query = self.followed[step.label]
        params = parameters(step.tree) or None
        done = self._refusable(step.tree, lambda sql: self.engine.replace(query.handle, sql, params=params) or query.handle)
        if done is None:
            return False
        query.tree = step.tree
        return True

    def _refusable(self, tree: Tree, call: Callable[[str], Any]) -> Any:
        sql = as_sql(tree)
        if hasattr(self.engine, "learn"):
            self.engine.learn(sql, tree)
        try:
            return call(sql)
        except Exception as error:
            if self.skip_refused and getattr(error, "code", "") == "not_supported":
                self.refused += 1
                return None
            error.add_note(sql)
            raise

    def _begin(self, step: Open) -> None:
        """Read a new query's answer as changes: from here on it has a reader."""
        query = self.followed[step.label]
        schema = self.engine.answer(query.handle).schema
        same(f"columns of {as_sql(step.tree)}", schema.names, list(step.tree.columns))
        for name, type in step.tree.columns.items():
            got = schema.field(name).type
            if got != arrow_type(type) and not (type.startswith("timestamp") and pa.types.is_timestamp(got)):
                raise Mismatch(f"column {name} of {as_sql(step.tree)} is {got}, not {arrow_type(type)}")
        for change in self.engine.changes(query.handle, since="snapshot"):
            self.add(query, change.sign, self.value(query, change))
        query.cursor = self._engine_seq(query)

    def _listen(self, part: Any) -> None:
        """Note results of operators: their part is called like their query, or like the stream of those who share it."""
        ids, offsets, rows = part.row_lists()
        shared = list(part.columns) != list(self.script.columns.get(part.stream, part.columns))
        if shared or part.stream in self.engine.queries:
            columns = [column.to_pylist() for column in part.columns.values()]
            values = [canonical_row(row) for row in zip(*columns, strict=True)]
            for k, id in enumerate(ids.tolist()):
                listed = rows[offsets[k] : offsets[k + 1]].tolist()
                self._parts.append((id, int(part.sign[0]), [values[row] for row in listed]))

    def _compare_heard(self, query: Followed, what: str, expected: list[Value]) -> None:
        for id, sign, values in self._parts:
            if id == query.handle.id:
                for value in values:
                    query.heard[value] += sign
        if isinstance(query.handle, EngineQuery) and not query.tree.is_stream and exact(query.tree):
            runs = isinstance(query.handle, TreeQuery)
            same(f"sum of on_commit of {what}", +query.heard, Counter(expected if runs else []))

    # -- comparison --------------------------------------------------------------------------------------------------

    def compare(self, seq: int, before: float) -> None:
        """Compare all queries after a step; `seq` and `before` are the model's commit and clock before it."""
        self.engine.check()
        for label, query in self.followed.items():
            what = f"query {label}, emit={query.emit}: {as_sql(query.tree)} {parameters(query.tree) or ''}"
            number = self.player.numbers[label]
            expected = self.model.answer(number)
            got = [canonical_row(row) for row in _table_rows(self.engine.answer(query.handle))]
            self.same_bag(query, f"answer of {what}", got, expected)
            if not query.fresh:
                self._compare_changes(query, what, number, seq, before)
            query.fresh = False
            summed = query.newest[-NEWEST:] if query.tree.is_stream else list(query.total.elements())
            self.same_bag(query, f"sum of changes of {what}", summed, expected)
            self._compare_heard(query, what, expected)
            if min(query.total.values(), default=0) < 0:
                raise Mismatch(f"a count below zero in the sum of changes of {what}: {query.total}")
        self._parts.clear()

    def same_bag(self, query: Followed, what: str, got: list[Value], expected: list[Value]) -> None:
        same_bag(what, got, expected, exactly=exact(query.tree))

    def _compare_changes(self, query: Followed, what: str, number: int, seq: int, before: float) -> None:
        """Read what is new since the cursor; a step is one commit at most."""
        found = list(self.engine.changes(query.handle, since=query.cursor))
        last = self._engine_seq(query)
        seqs = {change.seq for change in found}
        if len(seqs) > 1 or not all(query.cursor < each <= last for each in seqs):
            raise Mismatch(f"changes of {what} are of the commits {seqs}, read after {query.cursor}, now {last}")
        query.cursor = last
        got = [(change.sign, canonical(change.time), self.value(query, change)) for change in found]
        wanted = [(c.sign, c.time, c.value) for _, c in self.model.changes(number, seq)]
        timed = query.timed or self.exact_times
        order = [(time, sign) if query.timed else (sign, time) for sign, time, _ in got]
        if order != sorted(order):
            raise Mismatch(f"changes of {what} are out of order: {order}")
        low, high = (0 if time == -math.inf else int(time) for time in (before, self.model.now))
        if not all(low <= time <= high for _, time, _ in got) and not query.tree.is_stream:
            raise Mismatch(f"changes of {what} at {sorted({time for _, time, _ in got})}, in a commit from {low} to {high}")
        if exact(query.tree):
            same(f"changes of {what}", _counted(got, timed), _counted(wanted, timed))
        for sign, _, value in got:
            self.add(query, sign, value)

    def add(self, query: Followed, sign: int, value: Value) -> None:
        query.total[value] += sign
        query.newest.append(value)

    def value(self, query: Followed, change: Any) -> Value:
        return canonical_row(change.row[name] for name in query.tree.columns)

    def _engine_seq(self, query: Followed) -> int:
        return int(self.engine.answer(query.handle).schema.metadata[b"seq"])

    def ask_duckdb(self) -> None:
        oracle = WindowOracle(self.model, self.script.columns)
        try:
            for opening in self.model.openings:
                oracle.check(opening, as_sql(opening.tree))
        finally:
            oracle.close()

    def close(self) -> None:
        if hasattr(self.engine, "close"):
            self.engine.close()


def _counted(changes: list[tuple[int, int, Value]], timed: bool) -> Counter[tuple[Any, ...]]:
    return Counter((sign, time if timed else None, value) for sign, time, value in changes)


def _table_rows(table: pa.Table) -> list[tuple[Any, ...]]:
    """Rows of an Arrow table; names may repeat, so not by dict."""
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True)) if table.num_columns else []


# -- entries ---------------------------------------------------------------------------------------------------------


def replay(script: WindowScript, make_engine: MakeEngine, use_duckdb: bool = False, **options: bool) -> WindowHarness:
    """Run a script; raises `Mismatch`, or whatever the engine raises, at the first step that goes wrong."""
    harness = WindowHarness(script, make_engine, **options)
    try:
        for number, step in enumerate(script.steps):
            try:
                harness.do(step)
            except Exception as error:
                error.add_note(f"at step {number}: {type(step).__name__}")
                raise
        if use_duckdb:
            harness.ask_duckdb()
    finally:
        harness.close()
    return harness


def sample(script: WindowScript, make_engine: MakeEngine, every: int) -> int:
    """Run a long script on an engine alone and compare answers with DuckDB's after every so many steps; returns how many.

    The model keeps the clock and the rows; it runs no query, which would take too long. Queries come before the rows.
    """
    harness = WindowHarness(script, make_engine)
    model = harness.model
    openings: dict[int, Opening] = {}
    asked: list[tuple[int, int]] = []
    given: dict[int, list[list[Value]]] = {}
    try:
        for number, step in enumerate(script.steps):
            if isinstance(step, Open):
                harness.submit(step)
                first = {id(item): 0 for item in items(step.tree)}
                openings[step.label] = Opening(step.label, step.tree, model.seq, len(model.events) - 1, first)
                continue
            if harness.ask(step) and not isinstance(step, Push):
                harness.player.do(step)
            if openings and number % every == 0:
                harness.engine.check()
                asked.append((len(model.events) - 1, int(model.now)))
                for label in openings:
                    answer = harness.engine.answer(harness.followed[label].handle)
                    given.setdefault(label, []).append([canonical_row(row) for row in _table_rows(answer)])
        oracle = WindowOracle(model, script.columns)
        try:
            for label, opening in openings.items():
                for point, got, expected in zip(asked, given[label], oracle.answers(opening, asked), strict=True):
                    what = f"answer of {as_sql(opening.tree)} at {point[1]}"
                    harness.same_bag(harness.followed[label], what, got, expected)
        finally:
            oracle.close()
    finally:
        harness.close()
    return len(asked) * len(openings)


def run(seed: int, n_steps: int, make_engine: MakeEngine, use_duckdb: bool = False, **options: Any) -> None:
    """Make the script of `seed` and replay it; the failure names the seed. `options` as in `make_window_script`."""
    try:
        replay(make_window_script(seed, n_steps, **options), make_engine, use_duckdb)
    except Exception as error:
        error.add_note(f"seed {seed}, {n_steps} steps, {options}")
        raise


def shrink(script: WindowScript, make_engine: MakeEngine, budget: int = 300, **options: bool) -> WindowScript:
    """A smaller script that fails with the same kind of error; at most `budget` replays."""

    def error_of(candidate: WindowScript) -> str | None:
        nonlocal budget
        budget -= 1
        try:
            replay(candidate, make_engine, **options)
        except Exception as error:
            return f"{type(error).__name__}:{str(error).split(' ')[0]}"
        return None

    kind = error_of(script)
    shrunk = kind is not None
    while shrunk and budget > 0:
        shrunk = False
        for candidate in smaller(script):
            if budget <= 0:
                break
            if error_of(candidate) == kind:
                script, shrunk = replace(candidate), True
                break
    return script
