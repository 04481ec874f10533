"""Checks of a call against the limits of a service, before it is executed.

Asked once, when a call comes. What the journal holds was admitted then, and is carried out again even if the limits have become
smaller since.
"""

from __future__ import annotations

from api.base.limits import Limits
from api.core.calls import Call
from api.core.holdings import Holdings
from eddy import LimitError


def admit(call: Call, holdings: Holdings, limits: Limits) -> None:
    """Raise `LimitError` if a call would pass a limit; the size of its rows is checked when they are parsed."""
    call.room = limits.body_bytes
    check = _CHECKS.get(call.kind)
    if check is not None:
        check(call, holdings, limits)


def _stream(call: Call, holdings: Holdings, limits: Limits) -> None:
    _columns(call, limits)
    _room("streams", len(holdings.engine.streams), _is_new(call, holdings), limits.streams, "drop those that nobody reads")


def _table(call: Call, holdings: Holdings, limits: Limits) -> None:
    _columns(call, limits)
    _room("tables", len(holdings.engine.tables), _is_new(call, holdings), limits.tables, "drop those that nobody reads")


def _query(call: Call, holdings: Holdings, limits: Limits) -> None:
    _room("queries", len(holdings.engine.queries), 1, limits.queries, "cancel those that nobody reads")


def _put_query(call: Call, holdings: Holdings, limits: Limits) -> None:
    if _is_new(call, holdings):
        _query(call, holdings, limits)


def _batch(call: Call, holdings: Holdings, limits: Limits) -> None:
    n = len(call.header["definitions"])
    if n > limits.batch_queries:
        fact = f"{n} queries in one call, more than {limits.batch_queries}"
        raise LimitError(fact, code="too_many_queries", hint="submit them in parts")
    _room("queries", len(holdings.engine.queries), n, limits.queries, "cancel those that nobody reads")


def _columns(call: Call, limits: Limits) -> None:
    n = len(call.header["definition"]["columns"])
    if n > limits.columns:
        raise LimitError(
            f"{n} columns, more than {limits.columns}", code="too_many_columns", hint="leave out what no query reads"
        )


def _is_new(call: Call, holdings: Holdings) -> int:
    return call.header["name"].lower() not in holdings.definitions


def _room(what: str, n_known: int, n_more: int, limit: int, hint: str) -> None:
    if n_more and n_known + n_more > limit:
        raise LimitError(f"there are {n_known} {what} of at most {limit}", code=f"too_many_{what}", hint=hint)


_CHECKS = {
    "create_stream": _stream,
    "create_merge": _stream,
    "create_table": _table,
    "submit": _query,
    "put_query": _put_query,
    "submit_many": _batch,
}
