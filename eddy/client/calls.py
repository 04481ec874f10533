"""The calls of the service, each described once: its requests, and the result made of the replies.

A call is a generator of requests (`eddy/client/exchange.py`); `Client` and `AsyncClient` carry it out. Arguments and results are
those of the engine's call of the same name, where there is one.
"""

from __future__ import annotations

import functools
import inspect
import json
import uuid
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from eddy.base.description import MergedStream, Stream, Table
from eddy.client.exchange import Call, Reply, Request
from eddy.client.facts import (
    MergeReceipt,
    Query,
    Receipt,
    TableReceipt,
    merge_receipt_of,
    query_of,
    receipt_of,
    stream_of,
    table_of,
    table_receipt_of,
)
from eddy.client.problems import error_from
from eddy.client.rows import ARROW, JSON, encode, encode_adjusts, encode_many, to_json
from lineage.errors import ConflictError, EddyError, NotFoundError

if TYPE_CHECKING:
    from lineage.csv_form import CsvForm

#: Seconds that the service waits for rows to be visible.
VISIBLE = 30.0
#: Items of one page of a listing.
PAGE = 1000


def dressed(method: Callable[..., Any], call: Callable[..., Any]) -> None:
    """Copy a call's name, docstring and signature to the method that executes it."""
    functools.update_wrapper(method, call)
    del method.__wrapped__  # type: ignore[attr-defined]  # its signature has no self
    signature = inspect.signature(call)
    own = inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)
    parameters = [own, *signature.parameters.values()]
    method.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]  # what `help` shows


def ask(method: str, path: str, body: Any = None, **options: Any) -> Request:
    """Return a request with a JSON body, if any."""
    if body is not None:
        options |= {"content": to_json(body), "headers": {"Content-Type": JSON}}
    return Request(method, path, **options)


def get(path: str, **params: Any) -> Request:
    """Return a request that changes nothing."""
    given = tuple((name, str(value)) for name, value in params.items() if value is not None)
    return Request("GET", path, given, repeatable=True)


def json_of(reply: Reply) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(reply.body)
    return found


def path_of(*parts: str) -> str:
    """Return a path below `/v1`; names are quoted."""
    return "/v1/" + "/".join(quote(part, safe="") for part in parts)


def _given(**options: Any) -> dict[str, Any]:
    """Return the options that were given; durations become milliseconds."""
    return {
        name: value / timedelta(milliseconds=1) if isinstance(value, timedelta) else value
        for name, value in options.items()
        if value is not None
    }


# ---- streams and tables


def create_stream(
    name: str,
    columns: Mapping[str, str],
    *,
    time: str | None = None,
    lateness: float | timedelta = 0,
    late: str = "adjust",
    timeline: str = "main",
    keep: float | timedelta | None = None,
    key: str | Sequence[str] | None = None,
    end: str | None = None,
) -> Call[Stream]:
    """Declare a stream; an equal one that is there already is no error."""
    key = list(key) if key is not None and not isinstance(key, str) else key
    options = _given(time=time, lateness=lateness, late=late, timeline=timeline, keep=keep, key=key, end=end)
    reply = yield ask("PUT", path_of("streams", name), {"columns": dict(columns), **options}, repeatable=True)
    return stream_of(json_of(reply))


def create_merge(
    name: str,
    columns: Mapping[str, str],
    *,
    time: str,
    inputs: Sequence[str] = ("gw1", "gw2"),
    unique: bool | Sequence[str] = False,
    missing: str = "leader",
    key: str | Sequence[str] | None = None,
    end: str | None = None,
    case: str = "auto",
    policy: str = "stable",
    order: str | None = None,
    lateness: float | timedelta = 0,
    lag: float | timedelta = 0,
    timeline: str = "main",
    keep: float | timedelta | None = None,
) -> Call[MergedStream]:
    """Declare a stream whose rows several inputs give, each all of them; an equal one that is there already is no error."""
    options = _given(
        time=time, inputs=list(inputs), unique=unique if isinstance(unique, bool) else list(unique), missing=missing,
        key=list(key) if key is not None and not isinstance(key, str) else key, end=end, case=case, policy=policy, order=order,
        lateness=lateness, lag=lag, timeline=timeline, keep=keep,
    )  # fmt: skip
    reply = yield ask("PUT", path_of("merges", name), {"columns": dict(columns), **options}, repeatable=True)
    return _merge_of(json_of(reply))


def _merge_of(facts: Mapping[str, Any]) -> MergedStream:
    found = stream_of(facts)
    assert isinstance(found, MergedStream), "the service shows merges here"
    return found


def merges() -> Call[dict[str, MergedStream]]:
    """All merged streams by name."""
    reply = yield get("/v1/merges")
    return {facts["name"]: _merge_of(facts) for facts in json_of(reply)["items"]}


def merge_stats(name: str) -> Call[dict[str, Any]]:
    """Counts of a merged stream and of each of its inputs."""
    reply = yield get(path_of("merges", name))
    found: dict[str, Any] = json_of(reply)["state"]
    return found


def attach(name: str, input: str, since: Any = None) -> Call[None]:
    """Attach an input to a merged stream, with all rows from a time on; without `since` from the largest time given so far."""
    yield ask("PUT", path_of("merges", name, "inputs", input), _given(since=since))


def detach(name: str, input: str) -> Call[None]:
    """Detach an input from a merged stream: it has no say any more."""
    yield ask("DELETE", path_of("merges", name, "inputs", input))


def create_table(
    name: str, columns: Mapping[str, str], *, key: str | Sequence[str], retroactive: bool = False
) -> Call[Table]:  # fmt: skip
    """Declare a table; an equal one that is there already is no error."""
    definition = {"columns": dict(columns), "key": key if isinstance(key, str) else list(key), "retroactive": retroactive}
    reply = yield ask("PUT", path_of("tables", name), definition, repeatable=True)
    return table_of(json_of(reply))


def streams() -> Call[dict[str, Stream]]:
    """All streams by name."""
    reply = yield get("/v1/streams")
    return {facts["name"]: stream_of(facts) for facts in json_of(reply)["items"]}


def tables() -> Call[dict[str, Table]]:
    """All tables by name."""
    reply = yield get("/v1/tables")
    return {facts["name"]: table_of(facts) for facts in json_of(reply)["items"]}


def stream(name: str) -> Call[Stream]:
    """One stream."""
    reply = yield get(path_of("streams", name))
    return stream_of(json_of(reply))


def table(name: str) -> Call[Table]:
    """One table."""
    reply = yield get(path_of("tables", name))
    return table_of(json_of(reply))


def drop(name: str) -> Call[None]:
    """Remove a stream, merged or not, or a table that no query reads."""
    try:
        yield ask("DELETE", path_of("streams", name))
    except ConflictError as conflict:
        if conflict.code != "is_merge":
            raise
        yield ask("DELETE", path_of("merges", name))
    except NotFoundError as unknown:
        try:
            yield ask("DELETE", path_of("tables", name))
        except NotFoundError:
            raise unknown from None


# ---- rows


def push(
    stream: str, rows: Any, input: str | None = None, *, bad: str = "refuse", wait: str | None = None, key: str | None = None
) -> Call[Any]:  # fmt: skip
    """Give a stream, or one input of a merged one, rows: all or, with an error that names the row, none.

    `bad="skip"` takes the good ones; `wait="visible"` returns once results show them; `key` is an idempotency key of one's own.
    Gives a `Receipt`, for an input a `MergeReceipt`.
    """
    reply = yield _rows(_rows_path(stream, input), rows, bad, wait, key)
    return _receipt(json_of(reply), input)


def _rows_path(stream: str, input: str | None) -> str:
    return path_of("streams", stream, "rows") if input is None else path_of("merges", stream, "inputs", input, "rows")


def _receipt(facts: Mapping[str, Any], input: str | None) -> Receipt | MergeReceipt:
    return receipt_of(facts) if input is None else merge_receipt_of(facts)


def adjust(name: str, rows: Any, input: str, *, key: str | None = None) -> Call[MergeReceipt]:
    """Change the ends of events that an input of a merged stream has given, or remove them; all of them, or none."""
    body = encode_adjusts(rows)
    reply = yield _post(_rows_path(name, input), body.content, body.media, "refuse", None, key)
    return merge_receipt_of(json_of(reply))


def stable(name: str, input: str, time: Any, *, key: str | None = None) -> Call[MergeReceipt]:
    """Promise that an input of a merged stream gives no more rows with a smaller time."""
    path = path_of("merges", name, "inputs", input, "stable")
    reply = yield _post(path, to_json({"time": time}), JSON, "refuse", None, key)
    return merge_receipt_of(json_of(reply))


def upsert(table: str, rows: Any, *, bad: str = "refuse", key: str | None = None) -> Call[TableReceipt]:
    """Give a table rows; a row replaces the one with the same key."""
    reply = yield _rows(path_of("tables", table, "rows"), rows, bad, None, key)
    return table_receipt_of(json_of(reply))


def push_body(
    stream: str, content: bytes, media: str, input: str | None = None, *, csv: CsvForm | None = None, bad: str = "refuse",
    key: str | None = None,
) -> Call[Any]:  # fmt: skip
    """Push rows that are already encoded: NDJSON, CSV, Arrow or JSON. `csv` is the form of a CSV."""
    reply = yield _post(_rows_path(stream, input), content, media, bad, None, key, csv)
    return _receipt(json_of(reply), input)


def _rows(path: str, rows: Any, bad: str, wait: str | None, key: str | None) -> Request:
    body = encode(rows)
    return _post(path, body.content, body.media, bad, wait, key)


def _post(
    path: str, content: bytes, media: str, bad: str, wait: str | None, key: str | None, csv: CsvForm | None = None
) -> Request:  # fmt: skip
    """Return a request with rows. Its idempotency key makes it safe to send twice."""
    params = [("bad", bad)] if bad != "refuse" else []
    for name, text in ({} if csv is None else csv.texts()).items():
        params += [(name, one) for one in (text if isinstance(text, list) else [text])]
    params += [("wait", wait)] if wait is not None else []
    headers = {"Content-Type": media, "Idempotency-Key": key or uuid.uuid4().hex}
    slow = VISIBLE if wait is not None else 0.0
    return Request("POST", path, tuple(params), content, headers, repeatable=True, slow=slow)


def push_many(rows: Mapping[str, Any], *, key: str | None = None) -> Call[dict[str, Receipt]]:
    """Give several streams of one timeline rows, in one commit, merged by time."""
    body = encode_many(rows)
    reply = yield _post("/v1/rows", body.content, body.media, "refuse", None, key)
    return {name: receipt_of(facts) for name, facts in json_of(reply).items()}


def delete(table: str, keys: Any, *, key: str | None = None) -> Call[TableReceipt]:
    """Take rows out of a table, by their keys; a key of several columns is a tuple."""
    reply = yield _post(path_of("tables", table, "rows", "delete"), _keys(keys), JSON, "refuse", None, key)
    return table_receipt_of(json_of(reply))


def retract(stream: str, keys: Any, time: Any = None, *, key: str | None = None) -> Call[Receipt]:
    """End the live rows of a keyed stream with these keys, at a time."""
    reply = yield _post(path_of("streams", stream, "rows", "retract"), _keys(keys, time=time), JSON, "refuse", None, key)
    return receipt_of(json_of(reply))


def _keys(keys: Any, **more: Any) -> bytes:
    listed = keys.tolist() if hasattr(keys, "tolist") else list(keys)
    return to_json({"keys": listed, **{name: value for name, value in more.items() if value is not None}})


def advance(time: Any, timeline: str = "main") -> Call[int]:
    """Say that no later row of a timeline will carry a smaller time; gives the number of the last commit."""
    reply = yield ask("POST", path_of("timelines", timeline, "advance"), {"time": time}, repeatable=True)
    seq: int = json_of(reply)["seq"]
    return seq


# ---- queries


def name_of(query: Query | int | str) -> Call[str]:
    """Return the name of a query given by object, name or number."""
    if isinstance(query, Query):
        return query.name
    if isinstance(query, str):
        return query
    found = yield from find_queries()
    for known in found:
        if known.id == query:
            return known.name
    raise NotFoundError(f"query {query!r} does not exist", code="unknown_query")


def _at(query: Query | int | str, *more: str) -> Call[str]:
    """Return the path of a query."""
    name = yield from name_of(query)
    return path_of("queries", name, *more)


def _definition(sql: str, history: str, emit: str, tags: Sequence[str], **options: Any) -> dict[str, Any]:
    """Return the body that defines a query."""
    return {"sql": sql, "history": history, "emit": emit, **_given(tags=list(tags) or None, **options)}


def submit(
    sql: str,
    *,
    name: str | None = None,
    params: Mapping[str, Any] | None = None,
    tags: Sequence[str] = (),
    history: str = "new",
    emit: str = "commit",
    expiry: str | None = None,
) -> Call[Query]:
    """Start a query; it is in effect when this returns."""
    reply = yield ask("POST", "/v1/queries", _definition(sql, history, emit, tags, name=name, params=params, expiry=expiry))
    return query_of(json_of(reply))


def submit_many(queries: Sequence[str | Mapping[str, Any]], *, partial: bool = False) -> Call[list[str | EddyError]]:
    """Start many queries, each a text or a dict of the arguments of `submit`; gives their names.

    All of them or none: the error has `item`, the place of the one that was refused. With `partial` those that can be are
    started, and the others have their error in place of a name.
    """
    definitions = [{"sql": query} if isinstance(query, str) else dict(query) for query in queries]
    params = (("partial", "true"),) if partial else ()
    reply = yield ask("POST", "/v1/queries/batch", {"queries": definitions}, params=params, slow=VISIBLE)
    return [item["name"] if item["status"] == 201 else error_from(item, item["status"]) for item in json_of(reply)["items"]]


def replace(query: Query | int | str, sql: str, *, params: Mapping[str, Any] | None = None) -> Call[Query]:
    """Give a running query another text with the same columns; one commit takes the old answer to the new."""
    path = yield from _at(query)
    reply = yield get(path)
    known = query_of(json_of(reply))
    definition = _definition(sql, known.history, known.emit, known.tags, params=params, expiry=known.expiry)
    reply = yield ask("PUT", path, definition, repeatable=True)
    return query_of(json_of(reply))


def put(
    name: str,
    sql: str,
    *,
    params: Mapping[str, Any] | None = None,
    tags: Sequence[str] = (),
    history: str = "new",
    emit: str = "commit",
    expiry: str | None = None,
) -> Call[Query]:
    """Create a query or give it another text; the same text and options change nothing."""
    definition = _definition(sql, history, emit, tags, params=params, expiry=expiry)
    reply = yield ask("PUT", path_of("queries", name), definition, repeatable=True)
    return query_of(json_of(reply))


def query(query: Query | int | str) -> Call[Query]:
    """One query as it is now."""
    reply = yield get((yield from _at(query)))
    return query_of(json_of(reply))


def queries() -> Call[dict[str, Query]]:
    """All queries by name."""
    found = yield from find_queries()
    return {query.name: query for query in found}


def find_queries(
    *, state: str | None = None, stream: str | None = None, tag: str | None = None, sort: str = "id", limit: int | None = None
) -> Call[list[Query]]:
    """The queries of a state, over a stream, with a tag; `sort` is id, name or -own_bytes."""
    found: list[Query] = []
    cursor = None
    while limit is None or len(found) < limit:
        page = PAGE if limit is None else min(PAGE, limit - len(found))
        reply = yield get("/v1/queries", state=state, stream=stream, tag=tag, sort=sort, limit=page, cursor=cursor)
        listing = json_of(reply)
        found += map(query_of, listing["items"])
        cursor = listing["next_cursor"]
        if cursor is None:
            break
    return found


def pause(query: Query | int | str) -> Call[Query]:
    """Stop a query for now; it keeps its last answer."""
    reply = yield ask("POST", (yield from _at(query, "pause")))
    return query_of(json_of(reply))


def resume(query: Query | int | str) -> Call[Query]:
    """Start a paused query as if it were new."""
    reply = yield ask("POST", (yield from _at(query, "resume")))
    return query_of(json_of(reply))


def cancel(query: Query | int | str | None = None, *, tag: str | None = None) -> Call[int]:
    """Stop a query for good, or all that have a tag now. Gives how many once they are gone."""
    if (query is None) == (tag is None):
        raise EddyError("cancel takes a query or a tag", code="bad_option", hint='cancel("hot") or cancel(tag="demo")')
    if query is None:
        reply = yield ask("DELETE", "/v1/queries", params=(("tag", str(tag)),))
        n_cancelled: int = json_of(reply)["cancelled"]
        return n_cancelled
    yield ask("DELETE", (yield from _at(query)))
    return 1


# ---- reading


def answer(query: Query | int | str) -> Call[Any]:
    """The answer now: a pyarrow.Table with `time` and `seq` in its metadata."""
    import pyarrow as pa

    path = yield from _at(query, "answer")
    reply = yield Request("GET", path, (("format", "arrow"),), headers={"Accept": ARROW}, repeatable=True)
    with pa.ipc.open_stream(reply.body) as reader:
        return reader.read_all()


def explain(sql_or_query: Query | int | str, params: Mapping[str, Any] | None = None) -> Call[dict[str, Any]]:
    """How a query is run, or how a text would be."""
    if isinstance(sql_or_query, str) and len(sql_or_query.split()) > 1:
        reply = yield ask("POST", "/v1/queries/validate", {"sql": sql_or_query, **_given(params=params)}, repeatable=True)
    else:
        reply = yield get((yield from _at(sql_or_query, "plan")))
    return json_of(reply)


def trace(stream: str, row: int | Mapping[str, Any], query: Query | int | str | None = None) -> Call[dict[str, Any]]:
    """Why a row did or did not match: a row number, or a dict that is not pushed."""
    name = None if query is None else (yield from name_of(query))
    given = dict(row) if isinstance(row, Mapping) else int(row)
    reply = yield ask("POST", "/v1/trace", {"stream": stream, "row": given, **_given(query=name)}, repeatable=True)
    return json_of(reply)


def stats(query: Query | int | str | None = None) -> Call[dict[str, Any]]:
    """Counters of every module and stream and the queue, or those of one query."""
    reply = yield get("/v1/eddy" if query is None else (yield from _at(query, "stats")))
    return json_of(reply)


def totals() -> Call[dict[str, Any]]:
    """How much there is of everything and how fast it grows; takes no longer with more queries, unlike `stats`."""
    reply = yield get("/v1/eddy", brief="true")
    return json_of(reply)


def route_by(policy: str) -> Call[None]:
    """Route by another policy, from the next batch on."""
    yield ask("PATCH", "/v1/eddy", {"policy": policy}, repeatable=True)


def limits() -> Call[dict[str, float]]:
    """Every bound that the service enforces."""
    reply = yield get("/v1/limits")
    return json_of(reply)


def ready() -> Call[bool]:
    """Whether the service takes calls."""
    try:
        yield get("/readyz")
    except EddyError:
        return False
    return True
