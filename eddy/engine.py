"""The engine: streams, queries and rows for one program. The facade of the contract; the work is done by its parts.

    rows     push -> lineage/ingest (types) -> eddy/streams (order) -> eddy/commit -> stems, eddy/matching, listeners
    names    eddy/catalog (streams, timelines, queries, functions)
    queries  submit -> eddy/catalog (parse, bind, normal form) -> eddy/lifecycle (a leg on a slot, or operators)
    reading  answer, changes -> eddy/reading

The engine does no I/O, starts no thread, and takes its clock and seed from outside: a seed and a log of calls replay any
run's answers and changes. One thread at a time may use it; a second one, or a listener that calls back, gets an error.
A call that raises has changed nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from types import MappingProxyType, TracebackType
from typing import Any, overload

import numpy as np
import pyarrow as pa

from eddy.base import compile as kernels
from eddy.base.checking import changing, checking
from eddy.base.description import MergeReceipt, Receipt, Stream, Table, TableReceipt
from eddy.base.log_bounds import LOG_BYTES, LOG_ROWS, LogBounds
from eddy.base.results import Results, to_table
from eddy.base.turn import Turn
from eddy.catalog.catalog import Catalog, describe, describe_table
from eddy.catalog.definitions import ARRIVAL
from eddy.catalog.planner import Planner
from eddy.changes import Changes
from eddy.commit.committer import Committer
from eddy.commit.invariants import check_engine
from eddy.commit.state_cap import STATE_BYTES, StateCap, check_state_bytes
from eddy.inspect import statistics
from eddy.inspect import trace as tracing
from eddy.inspect.explained import explained_name, explained_plan
from eddy.inspect.trace_leaves import reads_stream
from eddy.lifecycle import Lifecycle
from eddy.matching.commit import Commit
from eddy.matching.eddy import Eddy
from eddy.merge_elements import MergeElements
from eddy.merging import PUSH_HINT, RETRACT_HINT
from eddy.operators.readers import check_held, lost_until, make_reader
from eddy.operators.tree_query import TreeQuery
from eddy.preparing import Asked, check_expiry
from eddy.query import Query
from eddy.routing import make
from eddy.streams import retractions
from eddy.streams.screening import screen
from eddy.streams.source import Source
from eddy.streams.timeline import Rows, Timeline
from lineage.elements import BEGINNING
from lineage.errors import ConflictError, EddyError, RowError
from lineage.ingest import Ingested
from lineage.times import ahead_hint, duration_us, to_datetime, to_iso, to_us


class Engine(MergeElements):
    """A shared eddy over any number of streams and queries."""

    def __init__(
        self,
        policy: str = "auto",
        expiry: str = "auto",
        batch_rows: int = 4096,
        seed: int = 0,
        clock: Callable[[], Any] | None = None,
        *,
        wall: Callable[[], Any] | None = None,
        log_rows: int = LOG_ROWS,
        log_bytes: int = LOG_BYTES,
        state_bytes: int = STATE_BYTES,
        max_ahead: Any = None,
        sharing: bool = True,
    ) -> None:
        check_expiry(expiry)
        if not isinstance(batch_rows, int) or isinstance(batch_rows, bool) or not 1 <= batch_rows <= 1 << 16:
            raise EddyError(f"batch_rows is {batch_rows!r}", code="bad_option", hint="a whole number from 1 to 65536")
        bounds = LogBounds(log_rows, log_bytes)
        bounds.check()
        check_state_bytes(state_bytes)
        if not isinstance(seed, int) or isinstance(seed, bool):
            raise EddyError(f"seed is {seed!r}", code="bad_option", hint="a whole number")
        #: how far past the clock the time of a row may be; None: as far as it likes
        self._max_ahead_us = None if max_ahead is None else duration_us(max_ahead)
        self._seed = seed
        kernels.ensure()
        self._eddy = Eddy(make(policy, seed))
        self._committer = Committer(self._eddy, batch_rows, bounds)
        self._clock = clock
        #: the clock that times of rows are held against; None: the same
        self._wall = wall
        self._catalog = Catalog()
        self._planner = Planner(self._catalog)
        self._cap = StateCap(state_bytes, self._catalog.inputs, self._committer.templates, self._spare, self._forget)
        self._lives = Lifecycle(self, self._catalog, self._committer, self._planner, self._cap, expiry, bool(sharing))
        self._turn = Turn()

    # ---- life

    def __enter__(self) -> Engine:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def __getstate__(self) -> dict[str, Any]:
        """The attributes but the caller's clocks and the current turn (`eddy/state/dump.py`)."""
        return {name: value for name, value in vars(self).items() if name not in ("_clock", "_wall", "_turn")}

    def _restart(self, clock: Callable[[], Any] | None, wall: Callable[[], Any] | None) -> None:
        """Set clocks and turn after loading a state."""
        self._clock, self._wall = clock, wall
        self._turn = Turn()

    def close(self) -> None:
        """Drop all state; every later call but this one raises."""
        if self._turn.closed:
            return
        with self._turn:
            self._turn.closed = True
            self._committer.listeners.clear()
            self._catalog.clear()

    def __repr__(self) -> str:
        held = f"{len(self._catalog.sources)} streams, {len(self._catalog.queries)} queries, commit {self._committer.seq}"
        return f"<Engine {self._eddy.policy.name}: {'closed' if self._turn.closed else held}>"

    # ---- streams

    def create_stream(
        self,
        name: str,
        columns: Mapping[str, str],
        *,
        time: str | None = None,
        lateness: Any = 0,
        late: str = "adjust",
        timeline: str = "main",
        keep: Any = None,
        key: Any = None,
        end: Any = None,
    ) -> Stream:
        """Declare a stream; see the contract for the options."""
        with self._turn:
            seq = self._committer.seq
            return describe(self._catalog.create_stream(name, columns, time, lateness, late, timeline, keep, seq, key, end))

    def create_table(self, name: str, columns: Mapping[str, str], *, key: Any, retroactive: bool = False) -> Table:
        """Declare a table; `retroactive`: its changes also affect existing results, not only those of later rows."""
        with self._turn:
            return describe_table(self._catalog.create_table(name, columns, key, retroactive))

    def upsert(self, table: str, rows: Any) -> TableReceipt:
        """Insert rows into a table, or replace the rows with their keys: all of them, or none and an error."""
        with self._turn:
            with checking:
                found = self._catalog.table(table)
                checked = found.check_rows(rows)
                self._cap.charge_rows(found, checked.n_rows)
            change = found.upserted(checked)
            self._committer.change_table(found, change)
            return change.receipt

    def delete(self, table: str, keys: Any) -> TableReceipt:
        """Delete rows of a table; `keys` are values, or tuples for a key of several columns. Unknown keys are counted."""
        with self._turn:
            with checking:
                found = self._catalog.table(table)
                change = found.deleted(keys)
            self._committer.change_table(found, change)
            return change.receipt

    def retract(self, stream: str, keys: Any, time: Any) -> Receipt:
        """End the live rows of a stream with these keys at a time, in the order of the stream; `keys` as for `delete`.

        Keys without a live row are counted in `stats`, when the retraction takes effect.
        """
        with self._turn:
            with checking:
                source = self._catalog.plain_source(stream, RETRACT_HINT)
                checked, time_us = retractions.check_keys(source, keys), to_us(time)
                self._check_ahead(time_us, source.timeline)
                source.intake.check_room(checked.n_rows)
            released, receipt = retractions.accept(source, checked, time_us)
            timeline = source.timeline
            self._committer.run(timeline, [] if released is None else [(source, released)], timeline.now, False)
            return receipt

    def drop(self, name: str) -> None:
        """Remove a stream or table that no query reads."""
        with self._turn:
            self._catalog.drop(name)
            with changing:
                for query in self._catalog.queries.values():
                    for version in query.earlier:
                        if name.lower() in version.streams:
                            self._lives.forget_version(query, version)

    def register(self, name: str, fn: Callable[..., Any], *, returns: str, cost: float = 1.0) -> None:
        """Make a Python function callable in queries; `cost` is the cost of a row, in microseconds.

        It must give the same result for the same arguments: in a SELECT list it is called whenever a row is read.
        """
        with self._turn:
            self._catalog.register(name, fn, returns, cost)

    @property
    def streams(self) -> Mapping[str, Stream]:
        return MappingProxyType({source.name: describe(source) for source in self._catalog.sources.values()})

    @property
    def tables(self) -> Mapping[str, Table]:
        return MappingProxyType({table.name: describe_table(table) for table in self._catalog.tables.values()})

    @property
    def queries(self) -> Mapping[str, Query]:
        return MappingProxyType({query.name: query for query in self._catalog.queries.values()})

    @property
    def seq(self) -> int:
        """The number of the last commit."""
        return self._committer.seq

    def skip_to(self, seq: int) -> None:
        """Number later commits after `seq`: commits up to it were made elsewhere, or must not be numbered again."""
        with self._turn:
            self._committer.seq = max(self._committer.seq, seq)

    def times(self) -> dict[str, datetime | None]:
        """The clock of each timeline; None before its first row."""
        with self._turn:
            lines = self._catalog.timelines.values()
            return {line.name: None if line.now == BEGINNING else to_datetime(line.now) for line in lines}

    @property
    def has_arrivals(self) -> bool:
        """Whether time must pass for streams without a time column: some of their rows end by the clock alone."""
        line = self._catalog.timelines.get(ARRIVAL)
        return line is not None and any(source.placement.keeps_ids for source in line.sources)

    def stream(self, name: str) -> Stream:
        """The stream of that name, in any case."""
        with self._turn:
            return describe(self._catalog.source(name))

    def table(self, name: str) -> Table:
        """The table of that name, in any case."""
        with self._turn:
            return describe_table(self._catalog.table(name))

    def query(self, query: Query | int | str) -> Query:
        """The query with that number, or of that name, in any case."""
        with self._turn:
            return self._catalog.query(query)

    # ---- queries

    def submit(
        self,
        sql: str,
        *,
        name: str | None = None,
        params: Mapping[str, Any] | None = None,
        tags: Sequence[str] = (),
        history: str = "new",
        emit: str = "commit",
        expiry: str | None = None,
    ) -> Query:
        """Start a query; when this returns it is in effect for all rows taken from now on.

        With `history="window"` also for the rows still stored: a commit gives the first answer over them. With `emit="event"` its
        changes are net within each instant of a commit, not over the whole of it.
        """
        with self._turn:
            return self._lives.submit([Asked(sql, name, params, tags, history, emit, expiry)])[0]

    def submit_many(self, asked: Sequence[Asked]) -> list[Query]:
        """Start several queries, of which later ones may read earlier ones: all, or none and an error that names the bad one."""
        with self._turn:
            return self._lives.submit(asked)

    def readers(self, query: Query | int | str) -> list[Query]:
        """The queries that read a query by its name, the oldest first."""
        return self._catalog.readers(self._catalog.query(query))

    def cancel(self, query: Query | int | str) -> None:
        """Stop a query for good; it emits no final changes."""
        with self._turn:
            self._lives.cancel(self._found(query))

    def pause(self, query: Query | int | str) -> None:
        """Stop a query for now; it keeps its last answer."""
        with self._turn:
            self._lives.pause(self._found(query))

    def resume(self, query: Query | int | str) -> None:
        """Start a paused query as if it were new; one commit takes the kept answer back, net of the first new answer."""
        with self._turn:
            self._lives.resume(self._found(query))

    def replace(self, query: Query | int | str, sql: str, *, params: Mapping[str, Any] | None = None) -> None:
        """Give a running query another text with the same columns; one commit leads from the old answer to the new one."""
        with self._turn:
            self._lives.replace(self._found(query), sql, params)

    def _found(self, query: Query | int | str) -> Query:
        with checking:
            return self._catalog.query(query)

    # ---- rows

    @overload
    def push(self, stream: str, rows: Any) -> Receipt: ...

    @overload
    def push(self, stream: str, rows: Any, input: str) -> MergeReceipt: ...

    def push(self, stream: str, rows: Any, input: str | None = None) -> Receipt | MergeReceipt:
        """Push rows into a stream, of one input if it is a merged one: all of them, or none and an error."""
        if input is not None:
            return self._push_input(stream, rows, input)
        with self._turn:
            with checking:
                source = self._catalog.plain_source(stream, PUSH_HINT)
                checked = source.ingestor.check(rows)
                self._check_room(source, checked)
            released, receipt = self._accept(source, checked, self._now_of(source))
            timeline = source.timeline
            self._committer.run(timeline, [] if released is None else [(source, released)], timeline.now, False)
            return receipt

    def released(self, stream: str, row: int) -> bool:
        """Whether a row of a stream, by its number, and all rows before it are stored: none waits for late rows."""
        with self._turn:
            return self._catalog.source(stream).intake.released(row)

    def screen(self, name: str, rows: Any) -> tuple[Any, list[RowError]]:
        """Split rows into the rows a stream or table would take, and the errors of the others; changes nothing."""
        with self._turn:
            if isinstance(name, str) and name.lower() in self._catalog.tables:
                return screen(rows, self._catalog.table(name).check_rows)
            source = self._catalog.source(name)

            def check(some: Any) -> None:
                self._check_times(source, source.ingestor.check(some))

            return screen(rows, check)

    def push_many(self, rows: Mapping[str, Any]) -> dict[str, Receipt]:
        """Push rows into several streams of one timeline in one commit, merged by time."""
        with self._turn:
            with checking:
                if not isinstance(rows, Mapping) or not rows:
                    raise EddyError(
                        "push_many takes a mapping of streams to rows", code="bad_rows", hint='{"quotes": rows, "trades": rows}'
                    )
                sources = [self._catalog.plain_source(name, PUSH_HINT) for name in rows]
                if len(set(map(id, sources))) < len(sources):
                    raise EddyError("a stream is named twice", code="bad_rows")
                timelines = {source.timeline.name for source in sources}
                if len(timelines) > 1:
                    raise ConflictError(
                        f"streams of different timelines in one commit: {', '.join(sorted(timelines))}",
                        code="two_timelines",
                        hint="push them apart",
                    )
                checked = [source.ingestor.check(given) for source, given in zip(sources, rows.values(), strict=True)]
                now = self._now_of(sources[0])
                for source, given in zip(sources, checked, strict=True):
                    self._check_room(source, given)
            receipts: dict[str, Receipt] = {}
            released: list[tuple[Source, Rows]] = []
            for name, source, given in zip(rows, sources, checked, strict=True):
                taken, receipts[name] = self._accept(source, given, now)
                if taken is not None:
                    released.append((source, taken))
            timeline = sources[0].timeline
            self._committer.run(timeline, released, timeline.now, False)
            return receipts

    def _now_of(self, source: Source) -> int:
        """The clock's time for rows of a stream without a time column; 0 for others."""
        return self._clock_us() if source.time_column is None else 0

    def _clock_us(self) -> int:
        """The clock that was given, or the wall's."""
        return time.time_ns() // 1000 if self._clock is None else to_us(self._clock())

    def _wall_us(self) -> int:
        """The wall clock that was given, or the clock."""
        return self._clock_us() if self._wall is None else to_us(self._wall())

    def _check_room(self, source: Source, checked: Ingested) -> None:
        """Raise if there is no room for so many rows, or their times are too far ahead."""
        self._check_times(source, checked)
        source.intake.check_room(checked.n_rows)
        self._cap.charge_rows(source, checked.n_rows)

    def _check_times(self, source: Source, checked: Ingested) -> None:
        """Raise if a row's time is too far ahead."""
        if self._max_ahead_us is not None and source.time_column is not None and checked.n_rows:
            times = checked.cells[source.time_column]
            latest = int(times.argmax())
            self._check_ahead(int(times[latest]), source.timeline, latest, source.schema.names[source.time_column])

    def _check_ahead(self, time_us: int, timeline: Timeline, row: int | None = None, column: str | None = None) -> None:
        """Raise if a time is too far past the wall clock: it would end every window at once. The timeline of arrivals has a clock
        of its own, which may be ahead of the wall clock."""
        if self._max_ahead_us is None:
            return
        clock = max(self._wall_us(), self._clock_us()) if timeline.name == ARRIVAL else self._wall_us()
        if time_us > clock + self._max_ahead_us:
            raise RowError(
                f"the time {to_iso(time_us)} is more than {self._max_ahead_us // 1_000_000} s ahead of the clock",
                code="too_far_ahead", hint=ahead_hint(time_us, clock), row=row, column=column,
            )  # fmt: skip

    def _spare(self) -> int:
        """A lower bound of the bytes that `_forget` frees."""
        versions = sum(table.store.row_bytes() * table.n_needless() for table in self._catalog.tables.values())
        return versions + sum(map(self._committer.spare, self._catalog.timelines.values()))

    def _forget(self) -> None:
        """Drop the log and all rows outside every window, to make room for a push."""
        for line in self._catalog.timelines.values():
            self._committer.retention.forget_log(line)
        for table in self._catalog.tables.values():
            table.forget_versions()

    @changing
    def _accept(self, source: Source, checked: Ingested, now: int) -> tuple[Rows | None, Receipt]:
        """Hand checked rows to the stream's intake; returns the rows it releases, and the receipt."""
        source.ingestor.commit(checked)
        if source.time_column is None:
            return source.intake.accept_now(checked.cells, checked.nulls, checked.n_rows, now, source.expiry.over_until())
        times = checked.cells[source.time_column]
        if times.dtype != np.int64 or not times.flags.c_contiguous:
            times = np.ascontiguousarray(times, np.int64)
        return source.intake.accept(checked.cells, checked.nulls, checked.n_rows, times, source.expiry.over_until())

    def advance(self, time: Any, timeline: str = "main") -> None:
        """Promise that no later row of a timeline has a smaller time. A time below its clock does nothing."""
        with self._turn:
            with checking:
                line = self._catalog.timeline(timeline)
                clock = to_us(time)
                if clock < line.now:
                    return
                self._check_ahead(clock, line)
            released: list[tuple[Source, Rows]] = []
            for source in line.sources:
                rows = source.intake.advance(clock)
                if rows is not None:
                    released.append((source, rows))
            line.advanced = clock
            self._committer.run(line, released, clock, True)

    # ---- reading

    def answer(self, query: Query | int | str) -> pa.Table:
        """The answer of a query now, with `time` and `seq` in the table's metadata."""
        with self._turn:
            found = self._catalog.query(query)
            now = self._catalog.timeline_of(found).now
            reader = make_reader(found, self._catalog)
            results = reader.answer(now)
            found.errors = reader.errors
            metadata = {"time": "" if now == BEGINNING else to_iso(now), "seq": str(self._committer.seq)}
            return to_table(found.column_names, results, metadata)

    def changes(self, query: Query | int | str, since: str | int = "snapshot") -> Changes:
        """A cursor over the changes of a query: from a snapshot on, from now on, or after a commit."""
        with self._turn:
            found = self._catalog.query(query)
            seq = self._committer.seq
            self._check_since(since)
            if isinstance(found, TreeQuery):
                found.read(seq)
            if since == "snapshot":
                return Changes(found, self._fetch, seq, True)
            if since == "now":
                return Changes(found, self._fetch, seq, False)
            assert isinstance(since, int)
            if since == 0:
                since = lost_until(found, self._catalog)
            check_held(found, since, self._catalog)
            return Changes(found, self._fetch, min(since, seq), False)

    def _check_since(self, since: str | int) -> None:
        numbered = isinstance(since, int) and not isinstance(since, bool) and since >= 0
        if not numbered and since not in ("snapshot", "now"):
            raise EddyError(f"since is {since!r}", code="bad_option", hint='"snapshot", "now" or the number of a commit')

    def _fetch(self, cursor: Changes) -> tuple[list[tuple[int, Results]], int]:
        with self._turn:
            query = self._catalog.query(cursor.query)
            seq = self._committer.seq
            found: list[tuple[int, Results]] = []
            errors = 0
            if cursor.snapshot:
                reader = make_reader(query, self._catalog)
                results = reader.answer(self._catalog.timeline_of(query).now)
                found = [(seq, results)] if len(results) else []
                errors = reader.errors
            else:
                check_held(query, cursor.seq, self._catalog)
                for version in (*query.earlier, query):
                    reader = make_reader(version, self._catalog)
                    records = self._catalog.timeline_of(version).log.after(cursor.seq)
                    found += [(record.seq, part) for record in records for part in reader.changes(record)]
                    errors += reader.errors
            query.errors = errors
            return found, seq

    def on_commit(self, fn: Callable[[Commit], None]) -> Callable[[], None]:
        """Call `fn` with each part of each commit from now on; returns a function that removes the listener."""
        with self._turn:
            if not callable(fn):
                raise EddyError(f"{fn!r} is not callable", code="bad_option")
            return self._committer.listen(fn)

    # ---- looking inside

    def explain(self, sql_or_query: Query | int | str, params: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """The way a query runs, or would with these `params`: shared modules, update pattern, state, defaults."""
        with self._turn:
            policy = self._eddy.policy
            if isinstance(sql_or_query, str) and len(sql_or_query.split(None, 1)) > 1:
                plan = self._planner.plan(sql_or_query, params)
                return explained_plan(plan, self._catalog, policy, self._committer.joiner, self._lives.expiry)
            return explained_name(sql_or_query, self._catalog, policy)

    def trace(self, stream: str, row: int | Mapping[str, Any], query: Query | int | str | None = None) -> dict[str, Any]:
        """Why a row did or did not match: a row number, or a dict not pushed (`eddy/inspect/trace.py`). Changes nothing."""
        with self._turn:
            source = self._catalog.source(stream)
            queries = [q for q in self._catalog.queries.values() if reads_stream(q, source, self._catalog)]
            if query is not None:
                found = self._catalog.query(query)
                if found not in queries:
                    raise ConflictError(f'query "{found.name}" does not read stream "{source.name}"', code="other_stream")
                queries = [found]
            return tracing.trace(source, row, queries, self._catalog)

    def stats(self, query: Query | int | str | None = None) -> dict[str, Any]:
        """Counters of every module, stream and query, and the bytes they take; or those of one query alone."""
        with self._turn:
            if query is not None:
                return statistics.of_query(self._catalog.query(query), self._catalog)
            return statistics.collect(self._eddy, self._committer, self._catalog)

    def totals(self) -> dict[str, Any]:
        """Counts of streams, rows, queries and bytes; the cost does not depend on the number of queries, unlike `stats`."""
        with self._turn:
            return statistics.totals(self._committer, self._catalog) | {"bytes": self._cap.held()}

    def own_bytes(self, query: Query | int | str) -> int:
        """The bytes that cancelling a query would free."""
        with self._turn:
            return statistics.own_bytes(self._catalog.query(query))

    def route_by(self, policy: str) -> None:
        """Route by another policy from the next batch on; statistics of modules are kept."""
        with self._turn:
            with checking:
                chosen = make(policy, self._seed)
            with changing:
                self._eddy.policy = chosen
                self._committer.joiner.route_by(chosen)
                for source in self._catalog.inputs():
                    source.modules.route = None

    def limit(
        self, *, state_bytes: int | None = None, max_ahead: Any = None, log_rows: int | None = None, log_bytes: int | None = None
    ) -> None:  # fmt: skip
        """Set new bounds, as for a new engine; rows and bytes that are not given stay, `max_ahead` has no bound then.

        A log is cut back to its bounds with its next commits.
        """
        with self._turn:
            held = self._committer.retention.bounds
            bounds = LogBounds(held.rows if log_rows is None else log_rows, held.bytes if log_bytes is None else log_bytes)
            bounds.check()
            state_bytes = self._cap.limit if state_bytes is None else state_bytes
            check_state_bytes(state_bytes)
            self._max_ahead_us = None if max_ahead is None else duration_us(max_ahead)
            held.rows, held.bytes = bounds.rows, bounds.bytes
            self._cap.set_limit(state_bytes)

    def check(self) -> None:
        """Raise AssertionError if any internal invariant is broken."""
        with self._turn:
            check_engine(self._catalog, self._committer)
