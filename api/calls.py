"""Calls that change what a service holds: what the journal records, and how each is carried out.

    Call(kind, header, body)     `header` is JSON; `body` the rows of the call as they came, with their media type in the header
    apply(holdings, call)        carries it out: `Done(result, changed)`, or an `EddyError`, and then nothing has changed

A call is carried out in the same way when it comes and when the journal is replayed, so whatever it depends on is in it: its
clock (`at_us`) too. Calls that changed nothing (equal definitions, a repeated idempotency key) are not recorded.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import orjson

from api.bodies import CSV, JSON, BodyError, Keys, csv_form, parse_bundle, parse_csv, parse_keys, parse_rows
from api.holdings import Holdings, KeptReceipt
from eddy import ConflictError, EddyError, Engine, InUseError, NotFoundError, Query, RowError
from eddy.catalog import Catalog, describe, describe_table
from eddy.csv import CsvRows
from eddy.screening import without

_log = logging.getLogger("eddy.calls")

#: Rejected rows that `?bad=skip` names.
MAX_REJECTED_SHOWN = 100


@dataclass(slots=True)
class Call:
    """One call. `rows` is what the body says, if somebody has read it already."""

    kind: str
    header: dict[str, Any]
    body: bytes = b""
    rows: Any = None
    #: whether it survives a restart; what the demo pushes does not
    journaled: bool = True
    #: the clock of the call, microseconds since 1970
    at_us: int = 0
    #: the last commit before it
    seq: int = field(default=0, repr=False)

    def encode(self) -> tuple[bytes, bytes]:
        """As the journal takes it."""
        head = orjson.dumps({"kind": self.kind, "at": self.at_us, "seq": self.seq, "header": self.header})
        return len(head).to_bytes(4, "little") + head, self.body


def decode(payload: memoryview) -> Call:
    """A call out of the journal."""
    length = int.from_bytes(payload[:4], "little")
    head = orjson.loads(payload[4 : 4 + length])
    return Call(head["kind"], head["header"], bytes(payload[4 + length :]), at_us=head["at"], seq=head["seq"])


class Done(NamedTuple):
    """What a call gave, and whether it changed anything."""

    result: Any
    changed: bool = True


def apply(holdings: Holdings, call: Call) -> Done:
    """Carry a call out."""
    key = call.header.get("key")
    if key is None:
        return _KINDS[call.kind](holdings, call)
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


def stream_options(definition: Mapping[str, Any]) -> dict[str, Any]:
    """The options of `create_stream` that a definition gives."""
    return {
        name: definition[name] for name in ("time", "lateness", "late", "timeline", "keep", "key", "end") if name in definition
    }


def _create_stream(holdings: Holdings, call: Call) -> Done:
    name, definition = call.header["name"], call.header["definition"]
    known = _found(holdings.engine.stream, name)
    if known is None:
        stream = holdings.engine.create_stream(name, **definition)
        holdings.define("stream", stream.name, definition)
        return Done({"created": True, "stream": stream})
    scratch = {"time": None, "lateness": 0, "late": "adjust", "timeline": "main", "keep": None, "seq": 0} | definition
    if describe(Catalog().create_stream(known.name, **scratch)) != known:
        raise ConflictError(
            f'stream "{known.name}" exists with another definition', code="other_definition", hint="drop it first"
        )
    return Done({"created": False, "stream": known}, False)


def _create_table(holdings: Holdings, call: Call) -> Done:
    name, definition = call.header["name"], call.header["definition"]
    known = _found(holdings.engine.table, name)
    if known is None:
        table = holdings.engine.create_table(name, **definition)
        holdings.define("table", table.name, definition)
        return Done({"created": True, "table": table})
    if describe_table(Catalog().create_table(known.name, **({"retroactive": False} | definition))) != known:
        raise ConflictError(f'table "{known.name}" exists with another definition', code="other_definition", hint="drop it first")
    return Done({"created": False, "table": known}, False)


def _drop(holdings: Holdings, call: Call) -> Done:
    holdings.engine.drop(call.header["name"])
    holdings.undefine(call.header["name"])
    return Done(None)


# ---- rows


def _push(holdings: Holdings, call: Call) -> Done:
    engine = holdings.engine
    stream = call.header["stream"]
    taken = _taken(engine, stream, engine.stream(stream).columns, call)
    return Done(engine.push(stream, taken.rows)._asdict() | taken.facts)


class _Taken(NamedTuple):
    """The rows of a call without the bad ones, if it asks for that, and what its receipt tells of them."""

    rows: Any
    facts: dict[str, Any]


def _taken(engine: Engine, name: str, columns: Mapping[str, str], call: Call) -> _Taken:
    """What a call has for a stream or table.

    Which rows are bad is recorded with the call: a replay must not judge again, for limits may have changed.
    """
    header = call.header
    skip = header.get("bad") == "skip"
    if header.get("media") == CSV:
        form = csv_form(header.get("csv"))
        read = _said(call, lambda body: parse_csv(body, columns, form, skip=skip))
    else:
        read = _said(call, lambda body: parse_rows(body, header["media"]))
    if not skip:
        rows, skipped = read, []
    elif "skipped" in header:
        skipped = header["skipped"]
        rows = _less(read, [one["row"] for one in skipped]) if skipped else read
    else:
        rows, skipped = _screened(engine, name, read)
        header["skipped"] = skipped
    if isinstance(rows, CsvRows):
        return _Taken(rows.table, _rejections(skipped) | {"nulls": rows.nulls()})
    return _Taken(rows, _rejections(skipped))


def _screened(engine: Engine, name: str, rows: Any) -> tuple[Any, list[dict[str, Any]]]:
    """The good rows, and what was wrong with the others."""
    if not isinstance(rows, CsvRows):
        good, errors = engine.screen(name, rows)
        return good, _shown(errors)
    _, errors = engine.screen(name, rows.table)
    for error in errors:
        error.row = int(rows.numbers[error.row or 0])
    kept = rows.without([error.row or 0 for error in errors]) if errors else rows
    return kept, _shown(sorted([*rows.errors, *errors], key=lambda error: error.row or 0))


def _shown(errors: list[RowError]) -> list[dict[str, Any]]:
    return [{"row": error.row, "column": error.column, "code": error.code, "detail": error.fact} for error in errors]


def _less(rows: Any, numbers: list[int]) -> Any:
    """Rows without those of some numbers."""
    return rows.without(numbers) if isinstance(rows, CsvRows) else without(rows, numbers)


def _push_many(holdings: Holdings, call: Call) -> Done:
    media = call.header.get("media", JSON)
    receipts = holdings.engine.push_many(_said(call, lambda body: parse_bundle(body, media)))
    return Done({name: receipt._asdict() | _rejections([]) for name, receipt in receipts.items()})


def _rejections(skipped: list[dict[str, Any]]) -> dict[str, Any]:
    return {"rejected": len(skipped)} | ({"errors": skipped[:MAX_REJECTED_SHOWN]} if skipped else {})


def _upsert(holdings: Holdings, call: Call) -> Done:
    engine = holdings.engine
    table = call.header["table"]
    taken = _taken(engine, table, engine.table(table).columns, call)
    return Done(engine.upsert(table, taken.rows)._asdict() | taken.facts)


def _delete(holdings: Holdings, call: Call) -> Done:
    return Done(holdings.engine.delete(call.header["table"], _keys(call).keys)._asdict())


def _retract(holdings: Holdings, call: Call) -> Done:
    keys = _keys(call)
    return Done(holdings.engine.retract(call.header["stream"], keys.keys, keys.time)._asdict())


def _keys(call: Call) -> Keys:
    found: Keys = _said(call, parse_keys)
    return found


def _said(call: Call, parse: Callable[[bytes], Any]) -> Any:
    """What the body of a call says. Nothing has been done yet: whatever a reader of formats stumbles over ends this call only."""
    if call.rows is not None:
        return call.rows
    try:
        return parse(call.body)
    except EddyError:
        raise
    except Exception as error:
        _log.exception("a body could not be read")
        raise BodyError("the body cannot be read", detail=type(error).__name__) from error


def _advance(holdings: Holdings, call: Call) -> Done:
    engine, timeline = holdings.engine, call.header["timeline"]
    before = engine.seq
    engine.advance(call.header["time"], timeline)
    return Done({"timeline": timeline, "time": engine.times()[timeline], "seq": engine.seq}, engine.seq > before)


# ---- queries

_SUBMIT = ("name", "params", "tags", "history", "emit", "expiry")


def _submit(holdings: Holdings, call: Call) -> Done:
    return Done(_start(holdings, call.header["definition"]))


def _start(holdings: Holdings, definition: dict[str, Any]) -> Query:
    query = holdings.engine.submit(definition["sql"], **{name: definition[name] for name in _SUBMIT if name in definition})
    holdings.define("query", query.name, definition)
    return query


def _submit_many(holdings: Holdings, call: Call) -> Done:
    """Several queries; without `partial` all of them or, if one is refused, none."""
    found: list[Query | EddyError] = []
    partial = call.header["partial"]
    for n, definition in enumerate(call.header["definitions"]):
        try:
            found.append(_start(holdings, definition))
        except EddyError as error:
            if not partial:
                for query in reversed(found):
                    assert isinstance(query, Query)
                    _end(holdings, query)
                error.item = n  # type: ignore[attr-defined]  # the answer says which one it was
                raise
            found.append(error)
    return Done(found, any(isinstance(one, Query) for one in found))


def _end(holdings: Holdings, query: Query) -> None:
    holdings.engine.cancel(query)
    holdings.undefine(query.name)


def _put_query(holdings: Holdings, call: Call) -> Done:
    """Create a query, or give it another text; the same text and options change nothing."""
    name, definition = call.header["name"], call.header["definition"]
    known = _found(holdings.engine.query, name)
    if known is None:
        return Done({"created": True, "query": _start(holdings, definition | {"name": name})})
    before = holdings.definitions[known.name.lower()].definition
    after = definition
    if after.get("expiry") == known.expiry:
        # what listings show of it, which may be a default that nobody asked for
        after = after | {"expiry": before.get("expiry")}
    if _essence(before) == _essence(after):
        return Done({"created": False, "query": known}, False)
    kept = [option for option in ("history", "emit", "expiry", "tags") if _essence(before)[option] != _essence(after)[option]]
    if kept:
        fact = f'query "{known.name}" runs with another {kept[0]}'
        raise ConflictError(
            fact, code="other_definition", hint="only sql and params can be replaced; cancel it to change the rest"
        )
    holdings.engine.replace(known, definition["sql"], params=definition.get("params"))
    holdings.define("query", known.name, after)
    return Done({"created": False, "query": known})


def _essence(definition: Mapping[str, Any]) -> dict[str, Any]:
    """A definition with what is left out written out."""
    return {
        "sql": definition["sql"],
        "params": definition.get("params") or {},
        "tags": list(definition.get("tags") or ()),
        "history": definition.get("history") or "new",
        "emit": definition.get("emit") or "commit",
        "expiry": definition.get("expiry"),
    }


def _cancel(holdings: Holdings, call: Call) -> Done:
    _end(holdings, holdings.engine.query(call.header["query"]))
    return Done(None)


def _cancel_tag(holdings: Holdings, call: Call) -> Done:
    """Cancel all queries with a tag, those that are read after their readers; all or none."""
    tag = call.header["tag"]
    tagged = [query for query in holdings.engine.queries.values() if tag in query.tags]
    names = {query.name.lower() for query in tagged}
    for query in holdings.engine.queries.values():
        if query.name.lower() not in names and (held := names.intersection(query.reads)):
            fact = f'query "{min(held)}" has the tag and is read by query "{query.name}", which has not'
            raise InUseError(fact, hint="cancel the reader first")
    # a reader is younger than what it reads, unless it was replaced: then it comes round again
    waiting = sorted(tagged, key=lambda query: -query.id)
    while waiting:
        read = {name for query in waiting for name in query.reads}
        free = [query for query in waiting if query.name.lower() not in read]
        assert free, "queries do not read each other in a circle"
        for query in free:
            _end(holdings, query)
        waiting = [query for query in waiting if query.name.lower() in read]
    return Done({"cancelled": len(tagged)}, bool(tagged))


def _pause(holdings: Holdings, call: Call) -> Done:
    query = holdings.engine.query(call.header["query"])
    holdings.engine.pause(query)
    return Done(query)


def _resume(holdings: Holdings, call: Call) -> Done:
    query = holdings.engine.query(call.header["query"])
    holdings.engine.resume(query)
    return Done(query)


def _read(holdings: Holdings, call: Call) -> Done:
    """Somebody begins to read the changes of queries: those that were logged for nobody are from now on."""
    for name in call.header["queries"]:
        holdings.engine.changes(name, "now")
    return Done(None)


def _found(find: Callable[[str], Any], name: str) -> Any:
    """The thing of that name; None if there is none."""
    try:
        return find(name)
    except NotFoundError:
        return None


def _set_policy(holdings: Holdings, call: Call) -> Done:
    holdings.engine.route_by(call.header["policy"])
    return Done({"policy": call.header["policy"]})


def _reserve(holdings: Holdings, call: Call) -> Done:
    """Nothing but the number of the last commit, which is in every call: commits that were not recorded count as well."""
    return Done(None)


_KINDS: dict[str, Callable[[Holdings, Call], Done]] = {
    "create_stream": _create_stream,
    "create_table": _create_table,
    "drop": _drop,
    "push": _push,
    "push_many": _push_many,
    "upsert": _upsert,
    "delete": _delete,
    "retract": _retract,
    "advance": _advance,
    "submit": _submit,
    "submit_many": _submit_many,
    "put_query": _put_query,
    "cancel": _cancel,
    "cancel_tag": _cancel_tag,
    "pause": _pause,
    "resume": _resume,
    "read": _read,
    "set_policy": _set_policy,
    "reserve": _reserve,
}
