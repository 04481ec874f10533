"""Calls that change the state of a service: their form in the journal, and their execution.

    Call(kind, header, body)     `header` is JSON; `body` the rows of the call as they came, with their media type in the header
    apply(holdings, call)        carries it out: `Done(result, changed)`, or an `EddyError`, and then nothing has changed

Whatever else is raised is a bug. What each call reads and looks up before its first change stands in `checking`
(`eddy/base/checking.py`): a bug there is one of the reader of that call, and harms nobody else.

A call is carried out in the same way when it comes and when the journal is replayed, so whatever it depends on is in it: its
clock (`at_us`) too. Calls that changed nothing (equal definitions, a repeated idempotency key) are not recorded.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import orjson

from api.core.holdings import Holdings, KeptReceipt
from api.wire.bodies import CSV, JSON, NDJSON, BodyError, RowKeys, csv_form, parse_bundle, parse_csv, parse_keys, parse_rows
from eddy import (
    ConflictError,
    EddyError,
    Engine,
    InUseError,
    LimitError,
    MergeReceipt,
    NotFoundError,
    Query,
    RowError,
    Stream,
    Table,
)
from eddy.base.checking import came_late, changed_nothing, changing, checking
from eddy.catalog.definitions import stream_definition, table_definition
from eddy.catalog.merge_definition import merge_definition
from eddy.csv import CsvRows
from eddy.merges.element_lines import word_of
from eddy.preparing import Asked
from eddy.streams.screening import without

#: Rejected rows that `?bad=skip` names.
MAX_REJECTED_SHOWN = 100


@dataclass(slots=True)
class Call:
    """One call; `rows` is its parsed body, if it was parsed already."""

    kind: str
    header: dict[str, Any]
    body: bytes = b""
    rows: Any = None
    #: whether it survives a restart; what the demo pushes does not
    journaled: bool = True
    #: bytes that Arrow rows may stand for; None if the call was let in before
    room: int | None = field(default=None, repr=False)
    #: the clock of the call, microseconds since 1970
    at_us: int = 0
    #: the last commit before it
    seq: int = field(default=0, repr=False)

    def encode(self) -> tuple[bytes, bytes]:
        """Return the call as the parts of a journal record."""
        try:
            head = orjson.dumps({"kind": self.kind, "at": self.at_us, "seq": self.seq, "header": self.header})
        except TypeError as error:
            # a number beyond 64 bits, or half of a character
            raise BodyError("the call holds what cannot be recorded", detail=str(error)) from None
        return len(head).to_bytes(4, "little") + head, self.body


def decode(payload: memoryview) -> Call:
    """Return the call of a journal record."""
    length = int.from_bytes(payload[:4], "little")
    head = orjson.loads(payload[4 : 4 + length])
    return Call(head["kind"], head["header"], bytes(payload[4 + length :]), at_us=head["at"], seq=head["seq"])


class Done(NamedTuple):
    """The result of a call, whether it changed anything, and the bugs of parts that changed nothing."""

    result: Any
    changed: bool = True
    bugs: Sequence[Exception] = ()


def unreadable(bug: Exception) -> BodyError:
    """Return the error told to a caller for a bug before any change: the request could not be read."""
    error = BodyError("the body cannot be read", detail=type(bug).__name__, hint="this is a bug; the log has the details")
    if (item := getattr(bug, "item", None)) is not None:
        error.item = item  # type: ignore[attr-defined]  # the answer says which one it was
    return error


def apply(holdings: Holdings, call: Call) -> Done:
    """Execute a call."""
    key = call.header.get("key")
    if key is None:
        return _KINDS[call.kind](holdings, call)
    with checking:
        asked = {name: value for name, value in call.header.items() if name != "skipped"}
        digest = hashlib.sha256(orjson.dumps([call.kind, asked], option=orjson.OPT_SORT_KEYS) + call.body).hexdigest()
        kept = holdings.receipts.get(key)
        if kept is not None:
            if kept.digest != digest:
                fact = "the idempotency key was used for another call"
                raise ConflictError(fact, code="key_reused", hint="a new call needs a new key")
            return Done(kept.result, False)
    done = _KINDS[call.kind](holdings, call)
    holdings.keep_receipt(key, KeptReceipt(digest, done.result))
    return done


# ---- streams and tables


def _create_stream(holdings: Holdings, call: Call) -> Done:
    engine = holdings.engine
    return _create(holdings, call, "stream", engine.stream, engine.create_stream, stream_definition)


def _create_table(holdings: Holdings, call: Call) -> Done:
    engine = holdings.engine
    return _create(holdings, call, "table", engine.table, engine.create_table, table_definition)


def _create_merge(holdings: Holdings, call: Call) -> Done:
    engine = holdings.engine
    return _create(holdings, call, "merge", engine.merge, engine.create_merge, merge_definition)


def _create(
    holdings: Holdings,
    call: Call,
    kind: str,
    find: Callable[[str], Stream | Table],
    create: Callable[..., Stream | Table],
    define: Callable[..., Stream | Table],
) -> Done:
    """Create a stream, merge or table; an existing one must have the same definition."""
    name, definition = call.header["name"], call.header["definition"]
    with checking:
        known = _found(find, name)
    if known is None:
        found = create(name, **definition)
        holdings.define(kind, found.name, definition)
        return Done({"created": True, kind: found})
    with checking:
        if define(known.name, **definition) != known:
            fact = f'{kind} "{known.name}" exists with another definition'
            raise ConflictError(fact, code="other_definition", hint="drop it first")
    return Done({"created": False, kind: known}, False)


def _drop(holdings: Holdings, call: Call) -> Done:
    holdings.engine.drop(call.header["name"])
    holdings.undefine(call.header["name"])
    return Done(None)


# ---- rows


def _push(holdings: Holdings, call: Call) -> Done:
    engine = holdings.engine
    stream = call.header["stream"]
    with checking:
        found = engine.stream(stream)
        _expect_plain(found, "POST /v1/merges/{0}/inputs/{{input}}/rows gives it the rows of one input")
        taken = _taken(call, found.columns, lambda rows: engine.screen(stream, rows))
    return Done(engine.push(stream, taken.rows)._asdict() | taken.facts)


def _expect_plain(stream: Stream, hint: str) -> None:
    """Raise if a stream is a merged one; the hint names its call."""
    if stream.kind == "merge":
        raise ConflictError(f'"{stream.name}" is a merged stream', code="is_merge", hint=hint.format(stream.name))


class _Taken(NamedTuple):
    """The rows of a call, without bad ones if it asks for that, and the facts about them for its receipt."""

    rows: Any
    facts: dict[str, Any]


#: Splits rows into those that fit and the errors of the others.
Screen = Callable[[Any], tuple[Any, list[RowError]]]


def _taken(call: Call, columns: Mapping[str, str], screen: Screen) -> _Taken:
    """Return the rows of a call for a stream or table.

    Which rows are bad is recorded with the call: a replay must not judge again, for limits may have changed.
    """
    header = call.header
    skip = header.get("bad") == "skip"
    if header.get("media") == CSV:
        form = csv_form(header.get("csv"))
        read = _said(call, lambda body: parse_csv(body, columns, form, skip=skip))
    else:
        read = _said(call, lambda body: parse_rows(body, header["media"], len(columns), call.room))
    if not skip:
        rows, skipped = read, []
    elif "skipped" in header:
        skipped = header["skipped"]
        rows = _less(read, [one["row"] for one in skipped]) if skipped else read
    else:
        rows, skipped = _screened(screen, read)
        header["skipped"] = skipped
        orjson.dumps(skipped)  # what cannot be recorded is found before anything changes
    if isinstance(rows, CsvRows):
        return _Taken(rows.table, _rejections(skipped) | {"nulls": rows.nulls()})
    return _Taken(rows, _rejections(skipped))


def _screened(screen: Screen, rows: Any) -> tuple[Any, list[dict[str, Any]]]:
    """Return the good rows, and the errors of the others."""
    if not isinstance(rows, CsvRows):
        good, errors = screen(rows)
        return good, _shown(errors)
    _, errors = screen(rows.table)
    for error in errors:
        error.row = int(rows.numbers[error.row or 0])
    kept = rows.without([error.row or 0 for error in errors]) if errors else rows
    return kept, _shown(sorted([*rows.errors, *errors], key=lambda error: error.row or 0))


def _shown(errors: list[RowError]) -> list[dict[str, Any]]:
    return [{"row": error.row, "column": error.column, "code": error.code, "detail": error.fact} for error in errors]


def _less(rows: Any, numbers: list[int]) -> Any:
    """Return rows without the given row numbers."""
    return rows.without(numbers) if isinstance(rows, CsvRows) else without(rows, numbers)


def _push_many(holdings: Holdings, call: Call) -> Done:
    engine, media = holdings.engine, call.header.get("media", JSON)

    def width(stream: str) -> int:
        found = _found(engine.stream, stream)
        return 0 if found is None else len(found.columns)

    with checking:
        rows = _said(call, lambda body: parse_bundle(body, media, width, call.room))
        for name in rows:
            if (found := _found(engine.stream, name)) is not None:
                _expect_plain(found, "POST /v1/merges/{0}/inputs/{{input}}/rows gives it the rows of one input")
    receipts = engine.push_many(rows)
    return Done({name: receipt._asdict() | _rejections([]) for name, receipt in receipts.items()})


def _rejections(skipped: list[dict[str, Any]]) -> dict[str, Any]:
    return {"rejected": len(skipped)} | ({"errors": skipped[:MAX_REJECTED_SHOWN]} if skipped else {})


def _upsert(holdings: Holdings, call: Call) -> Done:
    engine = holdings.engine
    table = call.header["table"]
    with checking:
        taken = _taken(call, engine.table(table).columns, lambda rows: engine.screen(table, rows))
    return Done(engine.upsert(table, taken.rows)._asdict() | taken.facts)


def _delete(holdings: Holdings, call: Call) -> Done:
    return Done(holdings.engine.delete(call.header["table"], _keys(call).keys)._asdict())


def _retract(holdings: Holdings, call: Call) -> Done:
    with checking:
        hint = 'POST /v1/merges/{0}/inputs/{{input}}/rows with lines {{"adjust": ..}} ends or removes rows of one input'
        _expect_plain(holdings.engine.stream(call.header["stream"]), hint)
    keys = _keys(call)
    return Done(holdings.engine.retract(call.header["stream"], keys.keys, keys.time)._asdict())


def _keys(call: Call) -> RowKeys:
    with checking:
        found: RowKeys = _said(call, parse_keys)
    return found


def _said(call: Call, parse: Callable[[bytes], Any]) -> Any:
    """Return the parsed body of a call."""
    return parse(call.body) if call.rows is None else call.rows


def _advance(holdings: Holdings, call: Call) -> Done:
    engine, timeline = holdings.engine, call.header["timeline"]
    before = engine.seq
    engine.advance(call.header["time"], timeline)
    return Done({"timeline": timeline, "time": engine.times()[timeline], "seq": engine.seq}, engine.seq > before)


# ---- inputs of merges


class WaitingError(LimitError):
    """Too many rows wait for a stable point of a merge."""

    default_code = "too_many_waiting"
    #: seconds after which an input may have said one
    retry_after = 1.0


def _push_input(holdings: Holdings, call: Call) -> Done:
    engine, (merge, of) = holdings.engine, (call.header["merge"], call.header["input"])
    with checking:
        found = engine.merge(merge)
        assert found.time is not None, "rows are merged by their times"
        elements = _Elements(engine, merge, of, found.time)
        taken = _taken(call, found.columns, elements.screen)
    try:
        if call.header["media"] == NDJSON and elements.are_in(taken.rows):
            receipt = engine.push_elements(merge, taken.rows, of)
        else:
            receipt = engine.push(merge, taken.rows, input=of)
    except LimitError as error:
        if error.code != WaitingError.default_code or came_late(error):
            raise
        raise WaitingError(error.fact, detail=error.detail, hint=error.hint) from None
    return Done(_merge_receipt(receipt) | taken.facts)


class _Elements(NamedTuple):
    """The lines of one input of a merge, among which may be adjusts and points."""

    engine: Engine
    merge: str
    input: str
    time: str

    def are_in(self, rows: Any) -> bool:
        return isinstance(rows, list) and any(word_of(line, self.time) is not None for line in rows)

    def screen(self, rows: Any) -> tuple[Any, list[RowError]]:
        """Return the lines without bad rows, and the errors of these."""
        if not self.are_in(rows):
            return self.engine.screen_input(self.merge, rows, self.input)
        places = [place for place, line in enumerate(rows) if word_of(line, self.time) is None]
        _, errors = self.engine.screen_input(self.merge, [rows[place] for place in places], self.input)
        for error in errors:
            error.row = places[error.row or 0]
        return without(rows, [error.row or 0 for error in errors]), errors


def _merge_receipt(receipt: MergeReceipt) -> dict[str, Any]:
    until = receipt.settled_before
    return receipt._asdict() | {"settled_before": None if until is None else until.isoformat().replace("+00:00", "Z")}


def _stable(holdings: Holdings, call: Call) -> Done:
    receipt = holdings.engine.stable(call.header["merge"], call.header["input"], call.header["time"])
    return Done(_merge_receipt(receipt) | _rejections([]))


def _attach(holdings: Holdings, call: Call) -> Done:
    holdings.engine.attach(call.header["merge"], call.header["input"], call.header.get("since"))
    return Done(None)


def _detach(holdings: Holdings, call: Call) -> Done:
    holdings.engine.detach(call.header["merge"], call.header["input"])
    return Done(None)


# ---- queries


def _asked(definition: Mapping[str, Any]) -> Asked:
    """Return a definition in the form that the engine takes."""
    return Asked(**{name: definition[name] for name in Asked._fields if name in definition})


def _submit(holdings: Holdings, call: Call) -> Done:
    return Done(_start(holdings, call.header["definition"])[0])


def _start(holdings: Holdings, *definitions: dict[str, Any]) -> list[Query]:
    """Start queries from definitions: all or none."""
    with checking:
        asked = [_asked(definition) for definition in definitions]
    queries = holdings.engine.submit_many(asked)
    for query, definition in zip(queries, definitions, strict=True):
        holdings.define("query", query.name, definition)
    return queries


def _submit_many(holdings: Holdings, call: Call) -> Done:
    """Start several queries; without `partial`, all or none."""
    definitions = call.header["definitions"]
    if not call.header["partial"]:
        return Done(_start(holdings, *definitions) if definitions else [], bool(definitions))
    found: list[Query | EddyError] = []
    bugs: list[Exception] = []
    for definition in definitions:
        try:
            found += _start(holdings, definition)
        except EddyError as error:
            found.append(error)
        except Exception as error:
            if not changed_nothing(error):
                raise
            found.append(unreadable(error))
            bugs.append(error)
    return Done(found, any(isinstance(one, Query) for one in found), bugs)


def _end(holdings: Holdings, query: Query) -> None:
    holdings.engine.cancel(query)
    holdings.undefine(query.name)


def _put_query(holdings: Holdings, call: Call) -> Done:
    """Create a query, or give it another text; the same text and options change nothing."""
    name, definition = call.header["name"], call.header["definition"]
    with checking:
        known = _found(holdings.engine.query, name)
    if known is None:
        return Done({"created": True, "query": _start(holdings, definition | {"name": name})[0]})
    with checking:
        before = holdings.definitions[known.name.lower()].definition
        after = definition
        if after.get("expiry") == known.expiry:
            # what listings show of it, which may be a default that nobody asked for
            after = after | {"expiry": before.get("expiry")}
        was, becomes = _essence(before), _essence(after)
        if was == becomes:
            return Done({"created": False, "query": known}, False)
        kept = [option for option in ("history", "emit", "expiry", "tags") if was[option] != becomes[option]]
        if kept:
            fact = f'query "{known.name}" runs with another {kept[0]}'
            hint = "only sql and params can be replaced; cancel it to change the rest"
            raise ConflictError(fact, code="other_definition", hint=hint)
    holdings.engine.replace(known, definition["sql"], params=definition.get("params"))
    holdings.define("query", known.name, after)
    return Done({"created": False, "query": known})


def _essence(definition: Mapping[str, Any]) -> dict[str, Any]:
    """Return a definition with its defaults written out."""
    return {
        "sql": definition["sql"],
        "params": definition.get("params") or {},
        "tags": list(definition.get("tags") or ()),
        "history": definition.get("history") or "new",
        "emit": definition.get("emit") or "commit",
        "expiry": definition.get("expiry"),
    }


def _cancel(holdings: Holdings, call: Call) -> Done:
    with checking:
        query = holdings.engine.query(call.header["query"])
    _end(holdings, query)
    return Done(None)


def _cancel_many(holdings: Holdings, call: Call) -> Done:
    """Cancel queries by their ids, all or none; ids of queries that are gone are ignored."""
    engine = holdings.engine
    with checking:
        known = [query for id_ in call.header["queries"] if (query := _found(engine.query, id_)) is not None]
        ids = {query.id for query in known}
        for query in known:
            for reader in engine.readers(query):
                if reader.id not in ids:
                    raise InUseError(f'query "{query.name}" is read by query "{reader.name}"', hint="cancel the reader first")
        ordered = readers_first(known)
    for query in ordered:
        _end(holdings, query)
    return Done({"cancelled": len(known)}, bool(known))


def readers_first(queries: Iterable[Query]) -> list[Query]:
    """Return queries in an order in which they can be cancelled: the youngest first, but readers before the queries they read."""
    # a reader is younger than what it reads, unless it was replaced: then what it reads comes round again
    waiting = sorted(queries, key=lambda query: -query.id)
    found: list[Query] = []
    while read := {name for query in waiting for name in query.reads}:
        free = [query for query in waiting if query.name.lower() not in read]
        assert free, "queries do not read each other in a circle"
        found += free
        waiting = [query for query in waiting if query.name.lower() in read]
    return found + waiting


def _pause(holdings: Holdings, call: Call) -> Done:
    with checking:
        query = holdings.engine.query(call.header["query"])
    holdings.engine.pause(query)
    return Done(query)


def _resume(holdings: Holdings, call: Call) -> Done:
    with checking:
        query = holdings.engine.query(call.header["query"])
    holdings.engine.resume(query)
    return Done(query)


def _start_logging(holdings: Holdings, call: Call) -> Done:
    """Start the change logs of queries that are not logged yet, because a reader begins."""
    with checking:
        queries = [holdings.engine.query(name) for name in call.header["queries"]]
    with changing:
        for query in queries:
            holdings.engine.changes(query, "now")
    return Done(None)


def _found(find: Callable[[Any], Any], name: str | int) -> Any:
    """Return the thing with that name; None if there is none."""
    try:
        return find(name)
    except NotFoundError:
        return None


def _set_policy(holdings: Holdings, call: Call) -> Done:
    holdings.engine.route_by(call.header["policy"])
    return Done({"policy": call.header["policy"]})


def _reserve(holdings: Holdings, call: Call) -> Done:
    """Change nothing: the record keeps the number of the last commit, so that commits without a record count."""
    return Done(None)


_KINDS: dict[str, Callable[[Holdings, Call], Done]] = {
    "create_stream": _create_stream,
    "create_merge": _create_merge,
    "create_table": _create_table,
    "drop": _drop,
    "push": _push,
    "push_many": _push_many,
    "upsert": _upsert,
    "delete": _delete,
    "retract": _retract,
    "push_input": _push_input,
    "stable": _stable,
    "attach": _attach,
    "detach": _detach,
    "advance": _advance,
    "submit": _submit,
    "submit_many": _submit_many,
    "put_query": _put_query,
    "cancel": _cancel,
    "cancel_many": _cancel_many,
    "pause": _pause,
    "resume": _resume,
    "read": _start_logging,
    "set_policy": _set_policy,
    "reserve": _reserve,
}
