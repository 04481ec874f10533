"""An engine, the naive model and DuckDB side by side, fed with the same steps and compared after each.

After each step, for every query that is not cancelled:

    engine.check()                                     no invariant is broken
    engine.answer(q)     = the model's answer          and, while running, DuckDB's over the rows taken
    changes(q, since)    = the model's changes         as (seq, sign, time, row), - before + in each commit or instant
    sum of all changes   = the answer                  (its newest 1,000 for a stream query)
    sum of on_commit     = the input rows of the answer

and after a submit or replace, complete_since >= the model's, which is the earliest that is right.
"""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from tests.reference.comparison import Mismatch, same
from tests.reference.functions import FUNCTIONS
from tests.reference.naive import NEWEST, Naive
from tests.reference.oracle import Oracle, View, arrow_type
from tests.reference.payload import encode
from tests.reference.script import (
    Act,
    Advance,
    Crowd,
    Delete,
    Leave,
    Push,
    Replace,
    Retract,
    Script,
    Step,
    StreamPlan,
    Submit,
    TablePlan,
    Tick,
    Upsert,
)
from tests.reference.values import Value, canonical, canonical_row
from tests.reference.workload import Spec, to_datetime

MakeEngine = Callable[..., Any]


@dataclass
class Followed:
    """One query as the harness follows it from its submit."""

    spec: Spec
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
    #: what DuckDB was last asked: (rows taken of each stream, commit if there are tables, T, when it was opened)
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
        for table in script.tables:
            self._create_table(table)
        for name in script.functions:
            self.engine.register(name, FUNCTIONS[name].fn, returns=FUNCTIONS[name].returns)
        self.engine.on_commit(self._listen)

    def _create(self, plan: StreamPlan) -> None:
        self.columns[plan.name] = plan.columns
        options: dict[str, Any] = {}
        if plan.time:
            lateness = dt.timedelta(microseconds=plan.lateness_us)
            options = {"time": plan.time, "lateness": lateness, "late": plan.late, "timeline": plan.timeline}
            self.model.create_stream(
                plan.name,
                time=plan.time,
                lateness=plan.lateness_us,
                late=plan.late,
                timeline=plan.timeline,
                keep=plan.keep_us,
                key=plan.key,
                end=plan.end,
            )
        else:
            self.model.create_stream(plan.name, keep=plan.keep_us)
        if plan.key:
            options["key"] = list(plan.key)
        if plan.end is not None:
            options["end"] = plan.end
        if plan.keep_us is not None:
            options["keep"] = dt.timedelta(microseconds=plan.keep_us)
        self.engine.create_stream(plan.name, plan.columns, **options)
        if self.oracle:
            self.oracle.create_stream(plan.name, plan.columns, plan.key, plan.end)

    def _create_table(self, plan: TablePlan) -> None:
        self.columns[plan.name] = plan.columns
        self.model.create_table(plan.name, key=plan.key, retroactive=plan.retroactive)
        self.engine.create_table(plan.name, plan.columns, key=list(plan.key), retroactive=plan.retroactive)
        if self.oracle:
            self.oracle.create_table(plan.name, plan.columns, plan.key)

    def _listen(self, commit: Any) -> None:
        """Sum up the rows or matches of each query, as a bulk reader of `on_commit` would."""
        self.last_part = (commit.seq, bool(commit.last))
        query_ids, offsets, row_numbers = commit.row_lists()
        if len(query_ids) == 0:
            return
        values = [_as_list(column) for column in commit.columns.values()]
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
            case Retract():
                # the key of one column is written as its value
                keys = [key[0] if len(key) == 1 else key for key in step.keys]
                self.engine.retract(step.stream, keys, to_datetime(step.time))
                self.model.retract(step.stream, step.keys, step.time)
            case Advance():
                self.engine.advance(to_datetime(step.time), timeline=step.timeline)
                self.model.advance(step.time, step.timeline)
            case Tick():
                self.now = step.now
            case Upsert() | Delete():
                self._change_table(step)
            case Submit():
                self._submit(step)
            case Replace():
                self._replace(step)
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
            same(f"receipt of {name}", tuple(receipts[name]), tuple(receipt))

    def _change_table(self, step: Upsert | Delete) -> None:
        now = self.model.T.get("main")
        if isinstance(step, Upsert):
            self.engine.upsert(step.table, encode(step.rows, self.columns[step.table], "dicts"))
            self.model.upsert(step.table, step.rows)
            if self.oracle:
                self.oracle.upsert(step.table, step.rows, self.model.seq, now)
        else:
            # the key of one column is written as its value
            self.engine.delete(step.table, [key[0] if len(key) == 1 else key for key in step.keys])
            self.model.delete(step.table, step.keys)
            if self.oracle:
                self.oracle.delete(step.table, step.keys, self.model.seq, now)

    def _submit(self, step: Submit) -> None:
        spec = step.spec
        if hasattr(self.engine, "learn"):
            self.engine.learn(spec)
        cursor = self.model.seq
        options = {} if step.history == "new" else {"history": step.history}
        if step.emit != "commit":
            options["emit"] = step.emit
        handle = self.engine.submit(spec.sql, params=spec.params or None, **options)
        number = self.model.submit(spec.meaning, step.history, step.emit)
        self.followed[step.label] = Followed(spec, handle, number, cursor)
        self.heard.setdefault(handle.id, Counter())
        self._compare_complete(spec, handle, number)
        schema = self.engine.answer(handle).schema
        same(f"columns of {spec.sql}", schema.names, spec.names)
        for name, type in zip(spec.names, spec.types, strict=True):
            got = schema.field(name).type
            if type == "timestamp" and pa.types.is_timestamp(got):
                continue
            if got != arrow_type(type):
                raise Mismatch(f"column {name} of {spec.sql} is {got}, not {arrow_type(type)}")

    def _replace(self, step: Replace) -> None:
        query = self.followed.get(step.label)
        if query is None or query.paused:
            return
        if hasattr(self.engine, "learn"):
            self.engine.learn(step.spec)
        self._compare_changes(f"query {step.label}: {query.spec.sql}", query)
        self.engine.replace(query.handle, step.spec.sql, params=step.spec.params or None)
        self.model.replace(query.number, step.spec.meaning)
        query.spec = step.spec
        self._compare_complete(step.spec, query.handle, query.number)
        if query.spec.is_stream:
            query.newest.clear()
            query.total.clear()
            self.heard[query.handle.id].clear()

    def _compare_complete(self, spec: Spec, handle: Any, number: int) -> None:
        found, earliest = handle.complete_since, self.model.queries[number].complete_since
        if found is not None and (earliest is None or canonical(found) < earliest):
            raise Mismatch(f"{spec.sql} says it is complete since {canonical(found)}, not {earliest}")

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
            if query.spec.is_stream:
                query.total.clear()
                self.heard[query.handle.id].clear()

    # -- comparison --------------------------------------------------------------------------------------------------

    def compare(self, everything: bool = False) -> None:
        """Compare all queries; in a crowd only a few after each step, others after the next, all at the end."""
        self.engine.check()
        self._compare_counts()
        if not self.last_part[1]:
            raise Mismatch(f"the last part of commit {self.last_part[0]} does not say so")
        turns = 1 if everything else max(1, len(self.followed) // 12)
        for label, query in self.followed.items():
            if (label + self.n_steps) % turns == 0:
                self._compare_query(f"query {label}: {query.spec.sql} {query.spec.params or ''}", query)

    def _compare_counts(self) -> None:
        """What keyed streams count: rows that were over when they came. Keys are unknown once the store has let go of them."""
        keyed = [stream for stream in self.model.streams.values() if stream.has_own_ends]
        if keyed and hasattr(self.engine, "stats"):
            counted = self.engine.stats()["streams"]
            for stream in keyed:
                same(f"rows of {stream.name} that were over", counted[stream.name]["over"], stream.n_over)
                if counted[stream.name]["unknown_keys"] < stream.n_unknown:
                    raise Mismatch(f"{stream.name} knew keys without live rows")

    def _compare_query(self, what: str, query: Followed) -> None:
        model_values = self.model.answer(query.number)
        expected = Counter(model_values)
        table = self.engine.answer(query.handle)
        got_values = [canonical_row(row) for row in _table_rows(table)]
        same(f"answer of {what}", Counter(got_values), expected)
        same(f"seq of the answer of {what}", table.schema.metadata[b"seq"], str(self.model.seq).encode())
        self._compare_changes(what, query)
        summed = Counter(query.newest[-NEWEST:]) if query.spec.is_stream else query.total
        same(f"sum of changes of {what}", +summed, expected)
        if any(n < 0 for n in query.total.values()):
            raise Mismatch(f"a count below zero in the sum of changes of {what}: {query.total}")
        if not query.paused:
            self._compare_heard(what, query)
            self._ask_duckdb(what, query, expected)

    def _compare_heard(self, what: str, query: Followed) -> None:
        state = self.model.queries[query.number]
        rows = state.results if query.spec.is_stream else self.model.alive(query.number)
        names = [(k, name) for k, item in enumerate(state.meaning.inputs) for name in self.columns[item.source]]
        inputs = Counter(canonical_row(result.parts[k].row[name] for k, name in names) for result in rows)
        heard = Counter({value: n for value, n in self.heard[query.handle.id].items() if n})
        same(f"on_commit rows of {what}", heard, inputs)

    def _compare_changes(self, what: str, query: Followed) -> None:
        """Read what is new since the cursor; the model's changes, and in each commit - before + and by time."""
        found = list(self.engine.changes(query.handle, since=query.cursor))
        wanted = [(seq, c.sign, c.time, c.value) for seq, c in self.model.changes(query.number, query.cursor)]
        got = [(c.seq, c.sign, canonical(c.time), canonical_row(c.row[name] for name in query.spec.names)) for c in found]
        same(f"changes of {what}", Counter(got), Counter(wanted))
        by_time = self.model.queries[query.number].emit == "event"
        order = [(seq, time, sign) if by_time else (seq, sign, time) for seq, sign, time, _ in got]
        if order != sorted(order):
            raise Mismatch(f"changes of {what} are not in order: {order}")
        for _, sign, _, value in got:
            query.total[value] += sign
            query.newest.append(value)
        query.cursor = self.model.seq

    def _ask_duckdb(self, what: str, query: Followed, expected: Counter[Value]) -> None:
        if self.oracle is None or query.spec.question is None:
            return
        state = self.model.queries[query.number]
        names = [item.source for item in state.meaning.inputs]
        streams = [self.model.streams[name] for name in names if name in self.model.streams]
        taken = [(len(stream.taken), len(stream.retracted)) for stream in streams]
        commit = self.model.seq if len(taken) < len(names) else None
        asked = (taken, commit, self.model.T.get(state.timeline), state.opened)
        if asked == query.asked:
            return  # the same question as after the last step, and the answer was the model's
        query.asked = asked
        for stream in streams:
            self.oracle.load(stream.name, stream.taken, stream.retracted)
        view = View(state.seen_from, state.opened)
        answer = self.oracle.answer(self.model, state.meaning, view, query.spec.question)
        same(f"DuckDB's answer, against the model's, of {what}", answer, expected)

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
