"""The engine: streams, queries and rows for one program. The facade of the contract; the work is done by its parts.

    rows     push -> lineage/ingest (types) -> eddy/timeline (order) -> eddy/committer (commit) -> stems, eddy, listeners
    queries  submit -> queries (parse, bind) -> filters/predicate (normal form) -> eddy/source (a leg on a slot)
    reading  answer, changes -> eddy/reader

The engine does no I/O, starts no thread, and takes its clock and seed from outside: a seed and a log of calls replay any
run's answers and changes. One thread at a time may use it; a second one, or a listener that calls back, gets an error.
A call that raises has changed nothing.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType, TracebackType
from typing import Any, NoReturn

import numpy as np
import pyarrow as pa

from eddy import compile as kernels
from eddy import explain as explaining
from eddy import statistics
from eddy import trace as tracing
from eddy.changes import Changes
from eddy.commit import Commit
from eddy.committer import Committer
from eddy.description import Receipt, Stream
from eddy.eddy import Eddy
from eddy.policies import make
from eddy.query import NO_MODULES, Plan, Query, Run
from eddy.reader import Reader, Results, to_table
from eddy.readiness import check_runs
from eddy.result_log import LOG_ROWS, ResultLog
from eddy.source import Source
from eddy.timeline import BEGINNING, Accepted, Rows, Timeline
from eddy.turn import Turn
from filters.expression import UserFunction
from filters.predicate import normalise
from lineage.errors import ConflictError, EddyError, GoneError, InUseError, NotFoundError, QueryError, SchemaError, did_you_mean
from lineage.ingest import Ingested
from lineage.schema import Schema, Type, check_name
from lineage.times import duration_us, to_iso, to_us
from queries.binder import bind
from queries.bound import Readable
from queries.functions import is_reserved
from queries.parser import parse
from queries.syntax import ParsedQuery

#: Timeline of streams without a time column.
ARRIVAL = "arrival"
#: Texts whose parse is remembered.
_PARSED = 1024


class Engine:
    """A shared eddy over any number of streams and queries."""

    def __init__(
        self,
        policy: str = "auto",
        expiry: str = "auto",
        batch_rows: int = 4096,
        seed: int = 0,
        clock: Callable[[], Any] | None = None,
        *,
        log_rows: int = LOG_ROWS,
    ) -> None:
        if expiry != "auto":
            raise _not_yet(f'expiry="{expiry}"')
        if not isinstance(batch_rows, int) or isinstance(batch_rows, bool) or not 1 <= batch_rows <= 1 << 16:
            raise EddyError(f"batch_rows is {batch_rows!r}", code="bad_option", hint="a whole number from 1 to 65536")
        if not isinstance(log_rows, int) or isinstance(log_rows, bool) or not 1 <= log_rows <= 1 << 30:
            raise EddyError(f"log_rows is {log_rows!r}", code="bad_option", hint="a whole number from 1 to 2**30")
        if not isinstance(seed, int) or isinstance(seed, bool):
            raise EddyError(f"seed is {seed!r}", code="bad_option", hint="a whole number")
        kernels.ensure()
        self._eddy = Eddy(make(policy, seed))
        self._committer = Committer(self._eddy, batch_rows, log_rows)
        self._clock_us = _wall_clock_us if clock is None else (lambda: to_us(clock()))
        self._sources: dict[str, Source] = {}
        self._timelines: dict[str, Timeline] = {}
        self._logs: dict[str, ResultLog] = {}
        self._queries: dict[int, Query] = {}
        self._query_by_name: dict[str, Query] = {}
        self._functions: dict[str, UserFunction] = {}
        self._next_query = 1
        self._module_numbers = itertools.count(1)
        self._parsed: dict[str, ParsedQuery] = {}
        self._turn = Turn()

    # ---- life

    def __enter__(self) -> Engine:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Let go of all state; every later call but this one is an error."""
        if self._turn.closed:
            return
        with self._turn:
            self._turn.closed = True
            self._committer.listeners.clear()
            self._queries.clear()
            self._query_by_name.clear()
            self._sources.clear()

    def __repr__(self) -> str:
        state = (
            "closed"
            if self._turn.closed
            else f"{len(self._sources)} streams, {len(self._queries)} queries, commit {self._committer.seq}"
        )
        return f"<Engine {self._eddy.policy.name}: {state}>"

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
            for option, value in (("keep", keep), ("key", key), ("end", end)):
                if value is not None:
                    raise _not_yet(f"create_stream({option}=...)")
            check_name(name, "stream")
            self._check_free(name)
            schema = Schema.parse(columns, name)
            time_column = None
            if time is not None:
                column = schema.find(time) if isinstance(time, str) else None
                if column is None:
                    raise SchemaError(
                        f'time column "{time}" does not exist in "{name}"', hint=did_you_mean(str(time), list(schema.names))
                    )
                if column.type is not Type.TIMESTAMP:
                    raise SchemaError(f'time column "{column.name}" is of type {column.declared}', hint="declare it as timestamp")
                time_column = schema.position(column.name)
            if late not in ("adjust", "drop"):
                raise SchemaError(f"late is {late!r}", hint='"adjust" or "drop"')
            lateness_us = duration_us(lateness)
            if lateness_us < 0:
                raise SchemaError("lateness is negative")
            check_name(timeline, "timeline")
            if time_column is None:
                if timeline not in ("main", ARRIVAL):
                    raise SchemaError(
                        f'a stream without a time column is on timeline "{ARRIVAL}"',
                        hint="name its time column, or leave timeline out",
                    )
                if lateness_us:
                    raise SchemaError(
                        "a stream without a time column has no late rows", hint="name its time column, or leave lateness out"
                    )
                timeline = ARRIVAL
            elif timeline == ARRIVAL:
                raise SchemaError(f'timeline "{ARRIVAL}" is for streams without a time column')
            line = self._timelines.get(timeline)
            if line is None:
                line = self._timelines[timeline] = Timeline(timeline)
                self._logs[timeline] = ResultLog()
                self._logs[timeline].gone = self._committer.seq
            self._sources[name.lower()] = Source(
                name, schema, time_column, line, lateness_us, late == "drop", self._module_numbers
            )
            line.streams.append(name.lower())
            return self._describe(self._sources[name.lower()])

    def create_table(self, name: str, columns: Mapping[str, str], *, key: Any, retroactive: bool = False) -> NoReturn:
        raise _not_yet("create_table")

    def upsert(self, table: str, rows: Any) -> NoReturn:
        raise _not_yet("upsert")

    def delete(self, table: str, keys: Any) -> NoReturn:
        raise _not_yet("delete")

    def retract(self, stream: str, keys: Any, time: Any) -> NoReturn:
        raise _not_yet("retract")

    def replace(self, query: Query | int | str, sql: str, *, params: Mapping[str, Any] | None = None) -> NoReturn:
        raise _not_yet("replace")

    def drop(self, name: str) -> None:
        """Remove a stream that no query reads."""
        with self._turn:
            source = self._source(name)
            readers = [query for query in self._queries.values() if query.stream == source.name.lower()]
            if readers:
                shown = ", ".join(query.name for query in readers[:10]) + (", ..." if len(readers) > 10 else "")
                raise InUseError(
                    f'stream "{source.name}" is read by {len(readers)} queries',
                    detail=f"queries: {shown}",
                    hint="cancel them first",
                )
            source.timeline.streams.remove(source.name.lower())
            self._committer.forget_source(source)
            del self._sources[source.name.lower()]

    def register(self, name: str, fn: Callable[..., Any], *, returns: str, cost: float = 1.0) -> None:
        """Make a Python function callable in queries; `cost` is what a row costs, in microseconds.

        It must give the same result for the same arguments: in a SELECT list it is called whenever a row is read.
        """
        with self._turn:
            check_name(name, "function")
            if not callable(fn):
                raise EddyError(f'function "{name}" is not callable', code="bad_function")
            if returns not in ("int", "float", "string", "bool", "timestamp"):
                raise EddyError(
                    f'function "{name}" returns {returns!r}', code="bad_function", hint="int, float, string, bool or timestamp"
                )
            if not isinstance(cost, int | float) or isinstance(cost, bool) or not 0 <= cost < float("inf"):
                raise EddyError(
                    f'function "{name}" has the cost {cost!r}', code="bad_function", hint="microseconds a row, 0 or more"
                )
            if is_reserved(name):
                raise ConflictError(f'"{name}" is a word of the query language', code="name_taken")
            if name.lower() in self._functions:
                raise ConflictError(f'function "{name}" is already registered', code="name_taken")
            self._functions[name.lower()] = UserFunction(name.lower(), fn, Type(returns), float(cost))

    @property
    def streams(self) -> Mapping[str, Stream]:
        return MappingProxyType({source.name: self._describe(source) for source in self._sources.values()})

    @property
    def tables(self) -> Mapping[str, Any]:
        return MappingProxyType({})

    @property
    def queries(self) -> Mapping[str, Query]:
        return MappingProxyType({query.name: query for query in self._queries.values()})

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
        """Start a query; it is in effect when this returns, for the rows taken from now on."""
        with self._turn:
            if history != "new":
                raise _not_yet(f'history="{history}"')
            if emit != "commit":
                raise _not_yet(f'emit="{emit}"')
            if expiry not in (None, "auto"):
                raise _not_yet(f'expiry="{expiry}"')
            if name is not None:
                check_name(name, "query")
                self._check_free(name)
            if not isinstance(tags, list | tuple) or not all(isinstance(tag, str) for tag in tags):
                raise EddyError("tags is not a list of strings", code="bad_option")
            plan = self._plan(sql, params)
            source = self._sources[plan.stream]
            number = self._next_query
            self._next_query += 1
            chosen = name if name is not None else self._free_name(number)
            query = Query(self, number, chosen, sql, tuple(tags), plan)
            self._start(query, source)
            self._queries[number] = query
            self._query_by_name[chosen.lower()] = query
            return query

    def _plan(self, sql: str, params: Mapping[str, Any] | None) -> Plan:
        if not isinstance(sql, str):
            raise QueryError(f"a query is a text, not {type(sql).__name__}", code="not_a_text", hint='"SELECT ... FROM stream"')
        if params is not None and not isinstance(params, Mapping):
            raise EddyError("params is not a mapping", code="bad_option", hint='{"low": 5} for :low')
        parsed = self._parsed.get(sql)
        if parsed is None:
            parsed = parse(sql)
            if len(self._parsed) >= _PARSED:
                del self._parsed[next(iter(self._parsed))]
            self._parsed[sql] = parsed
        bound = bind(parsed, self._lookup, params, self._functions, self._stream_names)
        check_runs(parsed, bound)
        source = self._sources[bound.stream.lower()]
        outputs = source.shared_outputs(bound.columns)
        return Plan(source.name.lower(), bound.window, normalise(bound.condition), outputs, bound.defaults)

    def _stream_names(self) -> list[str]:
        return [source.name for source in self._sources.values()]

    def _lookup(self, name: str) -> Readable | None:
        source = self._sources.get(name.lower())
        return None if source is None else Readable(source.schema)

    def _start(self, query: Query, source: Source) -> None:
        leg = source.leg(query.window, query.plan.condition, query.name)
        run = Run(self._committer.seq, None, source.store.end, source.module_numbers(leg.condition) or NO_MODULES)
        query.begin(leg, run, source.leg_results(leg))
        source.add_reader(leg, query)
        window = query.window
        now = source.timeline.now
        if source.store.end == 0 or window.is_stream:
            query.complete_since_us = None if now == BEGINNING else now
        elif window.ends and now != BEGINNING:
            query.complete_since_us = now + window.width_us

    def cancel(self, query: Query | int | str) -> None:
        """Stop a query for good; it emits no final changes."""
        with self._turn:
            found = self._query(query)
            if found.leg is not None:
                self._stop(found)
            found.kept = None
            del self._queries[found.id]
            del self._query_by_name[found.name.lower()]

    def _stop(self, query: Query) -> None:
        source = self._sources[query.stream]
        leg = query.leg
        assert leg is not None
        query.end(self._committer.seq, source.leg_results(leg))
        source.remove_reader(leg, query)

    def pause(self, query: Query | int | str) -> None:
        """Stop a query for now; it keeps its last answer."""
        with self._turn:
            found = self._query(query)
            if found.leg is None:
                raise ConflictError(f'query "{found.name}" is already paused', code="already_paused")
            source = self._sources[found.stream]
            kept = Reader(found, source).keep(source.timeline.now)
            self._stop(found)
            found.kept = kept
            source.paused.append((found.window, self._committer.seq))

    def resume(self, query: Query | int | str) -> None:
        """Start a paused query as if it were new; one commit takes the answer it kept back."""
        with self._turn:
            found = self._query(query)
            if found.leg is not None:
                raise ConflictError(f'query "{found.name}" is not paused', code="not_paused")
            source = self._sources[found.stream]
            kept = found.kept
            assert kept is not None
            self._start(found, source)
            timeline = source.timeline
            taken_back = None
            if not found.window.is_stream:
                kept.ended = timeline.now
                found.runs[-1].taken_back = kept
                taken_back = (source, found.id, kept)
            log = self._logs[timeline.name]
            self._committer.run(timeline, log, self._sources_of(timeline), [], timeline.now, False, taken_back)
            found.runs = [run for run in found.runs if run.until is None or run.until > self._logs[timeline.name].gone]

    # ---- rows

    def push(self, stream: str, rows: Any) -> Receipt:
        """Give a stream rows: all of them, or none and an error."""
        with self._turn:
            source = self._source(stream)
            accepted = self._accept(source, source.ingestor.check(rows), self._now_of(source))
            released = [] if accepted.released is None else [(source, accepted.released)]
            timeline = source.timeline
            self._committer.run(timeline, self._logs[timeline.name], self._sources_of(timeline), released, timeline.now, False)
            return Receipt(accepted.accepted, accepted.late, accepted.first_row, accepted.last_row)

    def push_many(self, rows: Mapping[str, Any]) -> dict[str, Receipt]:
        """Give several streams of one timeline rows, in one commit, merged by time."""
        with self._turn:
            if not isinstance(rows, Mapping) or not rows:
                raise EddyError(
                    "push_many takes a mapping of streams to rows", code="bad_rows", hint='{"quotes": rows, "trades": rows}'
                )
            sources = [self._source(name) for name in rows]
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
                source.intake.check_room(given.n_rows)
            receipts, released = {}, []
            for name, source, given in zip(rows, sources, checked, strict=True):
                accepted = self._accept(source, given, now)
                receipts[name] = Receipt(accepted.accepted, accepted.late, accepted.first_row, accepted.last_row)
                if accepted.released is not None:
                    released.append((source, accepted.released))
            timeline = sources[0].timeline
            self._committer.run(timeline, self._logs[timeline.name], self._sources_of(timeline), released, timeline.now, False)
            return receipts

    def _now_of(self, source: Source) -> int:
        """The clock's time for rows of a stream without a time column; 0 for others."""
        return self._clock_us() if source.time_column is None else 0

    def _accept(self, source: Source, checked: Ingested, now: int) -> Accepted:
        """Take checked rows in; raises only before anything has changed."""
        source.intake.check_room(checked.n_rows)
        source.ingestor.commit(checked)
        if source.time_column is None:
            return source.intake.accept(checked.cells, checked.nulls, checked.n_rows, max(now, source.intake.front))
        times = checked.cells[source.time_column]
        if times.dtype != np.int64 or not times.flags.c_contiguous:
            times = np.ascontiguousarray(times, np.int64)
        return source.intake.accept(checked.cells, checked.nulls, checked.n_rows, times)

    def advance(self, time: Any, timeline: str = "main") -> None:
        """Say that no later row of a timeline will carry a smaller time. A time below its clock does nothing."""
        with self._turn:
            line = self._timelines.get(timeline) if isinstance(timeline, str) else None
            if line is None:
                raise NotFoundError(
                    f'timeline "{timeline}" does not exist', hint=did_you_mean(str(timeline), list(self._timelines))
                )
            clock = to_us(time)
            if clock < line.now:
                return
            sources = self._sources_of(line)
            released: list[tuple[Source, Rows]] = []
            for source in sources:
                rows = source.intake.advance(clock)
                if rows is not None:
                    released.append((source, rows))
            line.advanced = clock
            self._committer.run(line, self._logs[line.name], sources, released, clock, True)

    # ---- reading

    def answer(self, query: Query | int | str) -> pa.Table:
        """The answer of a query now, with `time` and `seq` in the table's metadata."""
        with self._turn:
            found = self._query(query)
            source = self._sources[found.stream]
            now = source.timeline.now
            reader = Reader(found, source)
            results = reader.answer(now)
            found.errors = reader.errors
            metadata = {"time": "" if now == BEGINNING else to_iso(now), "seq": str(self._committer.seq)}
            return to_table(found, results, metadata)

    def changes(self, query: Query | int | str, since: str | int = "snapshot") -> Changes:
        """A cursor over the changes of a query: from a snapshot on, from now on, or after a commit."""
        with self._turn:
            found = self._query(query)
            seq = self._committer.seq
            if since == "snapshot":
                return Changes(found, self._fetch, seq, True)
            if since == "now":
                return Changes(found, self._fetch, seq, False)
            if not isinstance(since, int) or isinstance(since, bool) or since < 0:
                raise EddyError(f"since is {since!r}", code="bad_option", hint='"snapshot", "now" or the number of a commit')
            source = self._sources[found.stream]
            gone = self._logs[source.timeline.name].gone
            if since == 0:
                since = max(gone, 0)
            self._check_held(found, since, gone)
            return Changes(found, self._fetch, min(since, seq), False)

    def _check_held(self, query: Query, since: int, gone: int) -> None:
        if since < gone and query.runs[0].after < gone:
            raise GoneError(
                f"the log no longer holds the changes after commit {since}", detail=f"it holds those after commit {gone}",
                hint='start again with since="snapshot"',
            )  # fmt: skip

    def _fetch(self, cursor: Changes) -> tuple[list[tuple[int, Results]], int]:
        with self._turn:
            query = self._query(cursor.query)
            source = self._sources[query.stream]
            log = self._logs[source.timeline.name]
            reader = Reader(query, source)
            seq = self._committer.seq
            if cursor.snapshot:
                results = reader.answer(source.timeline.now)
                found = [(seq, results)] if len(results) else []
            else:
                self._check_held(query, cursor.seq, log.gone)
                found = [(record.seq, part) for record in log.after(cursor.seq) for part in reader.changes(record)]
            query.errors = reader.errors
            return found, seq

    def on_commit(self, fn: Callable[[Commit], None]) -> Callable[[], None]:
        """Call `fn` with each part of each commit from now on; returns what removes it."""
        with self._turn:
            if not callable(fn):
                raise EddyError(f"{fn!r} is not callable", code="bad_option")
            return self._committer.listen(fn)

    # ---- looking inside

    def explain(self, sql_or_query: Query | int | str) -> dict[str, Any]:
        """How a query is run, or would be: shared modules, update pattern, state, defaults."""
        with self._turn:
            if isinstance(sql_or_query, str) and len(sql_or_query.split()) > 1:
                plan = self._plan(sql_or_query, None)
                source = self._sources[plan.stream]
                return explaining.explain_plan(plan, source, self._eddy.policy, source.legs.get((plan.window, plan.condition)))
            query = self._query(sql_or_query)
            return explaining.explain_query(query, self._sources[query.stream], self._eddy.policy)

    def trace(self, stream: str, row: int | Mapping[str, Any], query: Query | int | str | None = None) -> dict[str, Any]:
        """Why a row did or did not match: a row number, or a dict that is not pushed. Changes nothing."""
        with self._turn:
            source = self._source(stream)
            queries = [q for q in self._queries.values() if q.stream == source.name.lower()]
            if query is not None:
                found = self._query(query)
                if found not in queries:
                    raise ConflictError(f'query "{found.name}" does not read stream "{source.name}"', code="other_stream")
                queries = [found]
            return tracing.trace(source, row, queries)

    def stats(self) -> dict[str, Any]:
        """Counters of every module, stream and query, and the bytes they take."""
        with self._turn:
            return statistics.collect(self._eddy, self._committer, self._sources, self._timelines, self._queries)

    def check(self) -> None:
        """Raise AssertionError if any internal invariant is broken."""
        with self._turn:
            for source in self._sources.values():
                source.check()
            for query in self._queries.values():
                source = self._sources[query.stream]
                assert (query.leg is None) == (query.kept is not None), "a query runs or keeps its answer"
                if query.leg is not None:
                    assert query in query.leg.queries and source.legs[query.leg.key] is query.leg, "a query is on its leg"
                assert query.born <= source.store.end, "no query is born in the future"
            for timeline in self._timelines.values():
                for name in timeline.streams:
                    assert self._sources[name].intake.front <= timeline.now or timeline.now == BEGINNING, (
                        "no front is past the clock"
                    )

    # ---- names

    def _source(self, name: str) -> Source:
        found = self._sources.get(name.lower()) if isinstance(name, str) else None
        if found is None:
            hint = did_you_mean(str(name), self._stream_names())
            raise NotFoundError(f'stream "{name}" does not exist', code="unknown_stream", hint=hint)
        return found

    def _query(self, query: Query | int | str) -> Query:
        found: Query | None
        if isinstance(query, Query):
            if self._queries.get(query.id) is not query:
                raise NotFoundError(f'query "{query.name}" is not running here', code="unknown_query", hint="it was cancelled")
            return query
        found = None
        if isinstance(query, str):
            found = self._query_by_name.get(query.lower())
        elif isinstance(query, int | np.integer) and not isinstance(query, bool):
            found = self._queries.get(int(query))
        if found is None:
            names = [known.name for known in self._queries.values()]
            raise NotFoundError(
                f"query {query!r} does not exist", code="unknown_query", hint=did_you_mean(str(query), names[:1000])
            )
        return found

    def _check_free(self, name: str) -> None:
        """Streams, tables and queries share one namespace."""
        if name.lower() in self._sources:
            raise ConflictError(f'"{name}" is already the name of a stream', code="name_taken")
        if name.lower() in self._query_by_name:
            raise ConflictError(f'"{name}" is already the name of a query', code="name_taken")

    def _free_name(self, number: int) -> str:
        name = f"q{number}"
        while name in self._query_by_name or name in self._sources:
            name += "_"
        return name

    def _sources_of(self, timeline: Timeline) -> list[Source]:
        return [self._sources[name] for name in timeline.streams]

    def _describe(self, source: Source) -> Stream:
        time = None if source.time_column is None else source.schema.names[source.time_column]
        late = "drop" if source.intake.drop_late else "adjust"
        columns = MappingProxyType(source.schema.declared())
        return Stream(source.name, columns, time, source.timeline.name, source.intake.lateness_us, late)


def _not_yet(what: str) -> EddyError:
    return EddyError(f"{what} is not supported yet", code="not_supported", hint="it comes with a later version")


def _wall_clock_us() -> int:
    """The default clock of streams without a time column."""
    return time.time_ns() // 1000
