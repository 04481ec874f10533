"""The names of an engine: streams with their timelines, tables, queries, functions.

Streams, tables and queries share one namespace, in any case. Every look-up that fails says what is close.
"""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import Any

import numpy as np

from eddy.base.checking import changing, checking
from eddy.base.description import MergedStream, Stream, Table
from eddy.base.plans import Birth
from eddy.catalog.definitions import stream_definition, table_definition
from eddy.merges.merge_intake import MergeIntake
from eddy.query import Query
from eddy.streams.source import Source
from eddy.streams.table_source import TableSource
from eddy.streams.timeline import Intake, Timeline
from filters.expressions.expression import UserFunction
from lineage.dictionary import Dictionary
from lineage.errors import ConflictError, EddyError, InUseError, NotFoundError, did_you_mean
from lineage.numbering import Numbering
from lineage.schema import Schema, Type, check_name
from queries.bound import Readable
from queries.signatures import is_reserved


class Catalog:
    """The streams, tables, queries and functions of one engine, by name."""

    def __init__(self) -> None:
        self.sources: dict[str, Source] = {}
        self.tables: dict[str, TableSource] = {}
        self.timelines: dict[str, Timeline] = {}
        self.queries: dict[int, Query] = {}
        self._query_by_name: dict[str, Query] = {}
        #: by the name of what they read, the queries that read a query, by id
        self._readers: dict[str, dict[int, Query]] = {}
        self.functions: dict[str, UserFunction] = {}
        self._next_query = 1
        #: that of the queries which came since the last commit, and the commit
        self._birth: tuple[int, Birth] | None = None
        self._module_numbers = Numbering(1)
        self._stream_numbers = Numbering()

    def clear(self) -> None:
        self.queries.clear()
        self._query_by_name.clear()
        self._readers.clear()
        self.sources.clear()
        self.tables.clear()
        self.timelines.clear()

    def draft(self) -> Catalog:
        """A copy for planning, to which queries can be added; it does not know which query reads which."""
        found = copy.copy(self)
        found.queries, found._query_by_name, found._readers = dict(self.queries), dict(self._query_by_name), {}
        return found

    # ---- streams

    def create_stream(
        self,
        name: str,
        columns: Mapping[str, str],
        time: str | None,
        lateness: Any,
        late: str,
        timeline: str,
        keep: Any,
        seq: int,
        key: Any = None,
        end: Any = None,
    ) -> Source:
        """Add a stream; `seq` is the last commit, before which a new timeline has no log."""
        with checking:
            check_name(name, "stream")
            self.check_free(name)
            stream = stream_definition(name, columns, time, lateness, late, timeline, keep, key, end)
            schema = Schema.parse(stream.columns, name)
        return self._add_stream(stream, schema, seq, None)

    def create_merge(self, stream: MergedStream, seq: int) -> Source:
        """Add a merged stream; `seq` as for `create_stream`."""
        with checking:
            check_name(stream.name, "merge")
            self.check_free(stream.name)
            schema = Schema.parse(stream.columns, stream.name)
        return self._add_stream(stream, schema, seq, partial(MergeIntake, replace(stream, columns={}), schema))

    @changing
    def _add_stream(
        self, stream: Stream, schema: Schema, seq: int,
        make_intake: Callable[[Sequence[Dictionary | None]], Intake] | None,
    ) -> Source:  # fmt: skip
        line = self.timeline_from(stream.timeline, seq)
        time_column, end_column = (None if one is None else schema.position(one) for one in (stream.time, stream.end))
        source = Source(
            stream.name, schema, time_column, line, stream.lateness_us, stream.late == "drop", self._module_numbers,
            next(self._stream_numbers), stream.keep_us, tuple(map(schema.position, stream.key)), end_column, make_intake,
        )  # fmt: skip
        self.sources[stream.name.lower()] = source
        line.sources.append(source)
        if source.own_ends is not None:
            line.keyed.append(source)
        return source

    def timeline_from(self, name: str, seq: int) -> Timeline:
        """The timeline of that name; made, with a log from commit `seq` on, if there is none."""
        line = self.timelines.get(name)
        if line is None:
            line = self.timelines[name] = Timeline(name)
            line.log.gone = seq
        return line

    def create_table(self, name: str, columns: Mapping[str, str], key: Any, retroactive: bool) -> TableSource:
        with checking:
            check_name(name, "table")
            self.check_free(name)
            schema = Schema.parse(columns, name)
            positions = tuple(map(schema.position, table_definition(name, columns, key, retroactive).key))
        with changing:
            table = self.tables[name.lower()] = TableSource(name, schema, positions, retroactive, self._module_numbers)
            return table

    def drop(self, name: str) -> None:
        """Remove a stream or table that no query reads."""
        with checking:
            table = self.tables.get(name.lower()) if isinstance(name, str) else None
            source = self.source(name) if table is None else table
            readers = [query for query in self.queries.values() if source.name.lower() in query.streams]
            if readers:
                kind = "merge" if isinstance(source.intake, MergeIntake) else "stream"
                shown = ", ".join(query.name for query in readers[:10]) + (", ..." if len(readers) > 10 else "")
                raise InUseError(
                    f'{kind if table is None else "table"} "{source.name}" is read by {len(readers)} queries',
                    detail=f"queries: {shown}", hint="cancel them first",
                )  # fmt: skip
        with changing:
            if table is not None:
                del self.tables[name.lower()]
                return
            source.timeline.sources.remove(source)
            if source.own_ends is not None:
                source.timeline.keyed.remove(source)
            del self.sources[source.name.lower()]

    def source(self, name: str, what: str = "stream") -> Source:
        """The stream of that name; `what` says what it is called if it is not there, and a "merge" is sought among merges."""
        found = self.sources.get(name.lower()) if isinstance(name, str) else None
        if found is None:
            known = [one.name for one in self.sources.values() if what == "stream" or isinstance(one.intake, MergeIntake)]
            is_table = isinstance(name, str) and name.lower() in self.tables
            hint = f'"{name}" is a table: upsert and delete change it' if is_table else did_you_mean(str(name), known)
            if isinstance(name, str) and name.lower() in self._query_by_name:
                hint = f'"{name}" is a query'
            raise NotFoundError(f'{what} "{name}" does not exist', code="unknown_stream", hint=hint)
        return found

    def plain_source(self, name: str, hint: str) -> Source:
        """The stream of that name, which must be no merged one: `hint` says how that is given rows."""
        found = self.source(name)
        if isinstance(found.intake, MergeIntake):
            raise ConflictError(f'"{found.name}" is a merged stream', code="is_merge", hint=hint.format(found.name))
        return found

    def merge(self, name: str) -> tuple[Source, MergeIntake]:
        """The merged stream of that name."""
        found = self.source(name, "merge")
        if not isinstance(found.intake, MergeIntake):
            fact = f'"{found.name}" is a stream, not a merged one'
            raise ConflictError(fact, code="no_merge", hint=f'push("{found.name}", rows) gives it rows')
        return found, found.intake

    def table(self, name: str) -> TableSource:
        found = self.tables.get(name.lower()) if isinstance(name, str) else None
        if found is None:
            names = [table.name for table in self.tables.values()]
            is_stream = isinstance(name, str) and name.lower() in self.sources
            hint = f'"{name}" is a stream: push gives it rows' if is_stream else did_you_mean(str(name), names)
            raise NotFoundError(f'table "{name}" does not exist', code="unknown_table", hint=hint)
        return found

    def input(self, name: str) -> Source:
        """The stream or table of that name, in lower case."""
        found = self.sources.get(name)
        return self.tables[name] if found is None else found

    def inputs(self) -> list[Source]:
        """All streams and tables."""
        return [*self.sources.values(), *self.tables.values()]

    def input_names(self) -> list[str]:
        """The names of everything a query can read: streams, tables, running queries."""
        return [
            *(source.name for source in self.inputs()),
            *(query.name for query in itertools.islice(self.queries.values(), 1000)),
        ]

    def readable(self, name: str) -> Readable | None:
        """The description of a stream, table or running query, for the binder; None if nothing has that name."""
        name = name.lower()
        source = self.sources.get(name) or self.tables.get(name)
        if source is not None:
            return source.readable
        query = self._query_by_name.get(name)
        return None if query is None else query.readable

    def timeline_name(self, name: str) -> str | None:
        """The name of the timeline of a stream or running query; None for a table."""
        source = self.sources.get(name.lower())
        if source is not None:
            return source.timeline.name
        query = self._query_by_name.get(name.lower())
        return None if query is None else self.timeline_of(query).name

    def timeline_of(self, query: Query) -> Timeline:
        """The timeline of a query."""
        return query.timeline or self.sources[query.stream].timeline

    def timeline(self, name: str) -> Timeline:
        found = self.timelines.get(name) if isinstance(name, str) else None
        if found is None:
            raise NotFoundError(f'timeline "{name}" does not exist', hint=did_you_mean(str(name), list(self.timelines)))
        return found

    # ---- queries

    def new_query(self, name: str | None) -> tuple[int, str]:
        """The number of a new query, and its name: the given one, which must be free, or one made from the number."""
        if name is not None:
            check_name(name, "query")
            self.check_free(name)
        number = self._next_query
        if name is None:
            name = f"q{number}"
            while name in self._query_by_name or name in self.sources or name in self.tables:
                name += "_"
        return number, name

    def add_query(self, query: Query) -> None:
        self._next_query = query.id + 1
        self.queries[query.id] = query
        self._query_by_name[query.name.lower()] = query
        self.begin_reading(query)

    def remove_query(self, query: Query) -> None:
        del self.queries[query.id]
        del self._query_by_name[query.name.lower()]
        self.end_reading(query)

    def begin_reading(self, query: Query) -> None:
        """Record that a query reads the queries that its text names."""
        for name in query.reads:
            self._readers.setdefault(name, {})[query.id] = query

    def end_reading(self, query: Query) -> None:
        """Remove the record of which queries a query reads: it was cancelled, or gets another text."""
        for name in query.reads:
            readers = self._readers[name]
            del readers[query.id]
            if not readers:
                del self._readers[name]

    def readers(self, query: Query) -> list[Query]:
        """The queries that read one by its name, the oldest first."""
        found = self._readers.get(query.name.lower(), {})
        return [found[id_] for id_ in sorted(found)]

    def query(self, query: Query | int | str) -> Query:
        found: Query | None = None
        if isinstance(query, Query):
            if self.queries.get(query.id) is not query:
                raise NotFoundError(f'query "{query.name}" is not running here', code="unknown_query", hint="it was cancelled")
            return query
        if isinstance(query, str):
            found = self._query_by_name.get(query.lower())
        elif isinstance(query, int | np.integer) and not isinstance(query, bool):
            found = self.queries.get(int(query))
        if found is None:
            names = [known.name for known in self.queries.values()]
            raise NotFoundError(
                f"query {query!r} does not exist", code="unknown_query", hint=did_you_mean(str(query), names[:1000])
            )
        return found

    def check_free(self, name: str) -> None:
        for kind, known in (("stream", self.sources), ("table", self.tables), ("query", self._query_by_name)):
            if name.lower() in known:
                raise ConflictError(f'"{name}" is already the name of a {kind}', code="name_taken")

    def birth(self, seq: int) -> Birth:
        """The birth of a query submitted after commit `seq`, the last one; a shared object."""
        if self._birth is None or self._birth[0] != seq:
            ends = {source.number: source.store.end for source in self.sources.values() if source.store.end}
            self._birth = seq, Birth(ends)
        return self._birth[1]

    # ---- functions

    def register(self, name: str, fn: Callable[..., Any], returns: str, cost: float) -> None:
        check_name(name, "function")
        if not callable(fn):
            raise EddyError(f'function "{name}" is not callable', code="bad_function")
        if returns not in ("int", "float", "string", "bool", "timestamp"):
            raise EddyError(
                f'function "{name}" returns {returns!r}', code="bad_function", hint="int, float, string, bool or timestamp"
            )
        if not isinstance(cost, int | float) or isinstance(cost, bool) or not 0 <= cost < float("inf"):
            raise EddyError(f'function "{name}" has the cost {cost!r}', code="bad_function", hint="microseconds a row, 0 or more")
        if is_reserved(name):
            raise ConflictError(f'"{name}" is a word of the query language', code="name_taken")
        if name.lower() in self.functions:
            raise ConflictError(f'function "{name}" is already registered', code="name_taken")
        self.functions[name.lower()] = UserFunction(name.lower(), fn, Type(returns), float(cost))


def describe(source: Source) -> Stream:
    """The public description of a stream."""
    if isinstance(source.intake, MergeIntake):
        return replace(source.intake.stream, columns=MappingProxyType(source.schema.declared()))
    time = None if source.time_column is None else source.schema.names[source.time_column]
    late = "drop" if source.intake.drop_late else "adjust"
    columns = MappingProxyType(source.schema.declared())
    own, names = source.own_ends, source.schema.names
    key = () if own is None or own.keys is None else tuple(names[position] for position in own.keys.columns)
    end = None if own is None or own.end_column is None else names[own.end_column]
    return Stream(
        source.name, columns, time, source.timeline.name, source.intake.lateness_us, late, source.stored.keep_us, key, end
    )  # fmt: skip


def describe_table(table: TableSource) -> Table:
    """The public description of a table."""
    names = table.schema.names
    columns = MappingProxyType(table.schema.declared())
    return Table(table.name, columns, tuple(names[position] for position in table.key), table.retroactive)
