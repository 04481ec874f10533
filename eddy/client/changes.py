"""Cursors over changes, for programs: iterating gives changes, and a loop that is left early loses none of them."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol

from eddy.client.facts import Change
from eddy.client.following import ChangeCursor, Committed, Gap, Message
from lineage.errors import EddyError, GoneError


class OpenStream(Protocol):
    """An open stream of messages."""

    def __iter__(self) -> Iterator[Message]: ...

    def close(self) -> None: ...


class AsyncOpenStream(Protocol):
    def __aiter__(self) -> AsyncIterator[Message]: ...

    async def close(self) -> None: ...


class _Pending:
    """Changes that came and were not yet given out."""

    def __init__(self, cursor: ChangeCursor, describe: Callable[[str], Any]) -> None:
        self._cursor = cursor
        self._describe = describe
        self._pending: deque[Change] = deque()

    @property
    def seq(self) -> str | int:
        """Return the last commit that was read whole, or the starting point."""
        return self._cursor.since

    def _take(self, message: Message) -> None:
        if isinstance(message, Committed):
            self._pending.extend(message.changes)
        elif isinstance(message, Gap) and not message.snapshot:
            raise GoneError(
                f"the changes after commit {message.after} up to {message.until} were not sent: this reader was too slow",
                hint='start again with since="snapshot", or read with slow="block"',
            )
        elif isinstance(message, Gap):
            raise GoneError(
                f"the log no longer holds the changes after commit {message.after}", hint='start again with since="snapshot"'
            )

    def _table(self, columns: Mapping[str, str]) -> Any:
        head = {"seq": "int", "time": "timestamp", "sign": "sign"}
        rows = [(change.seq, change.time, change.sign, *change.row.values()) for change in self._pending]
        self._pending.clear()
        return arrow_table([*head.items(), *columns.items()], rows)

    def _only(self) -> str:
        if len(self._cursor.queries) != 1 or self._cursor.tags:
            raise EddyError("queries have different columns, a table has one set", code="many_queries", hint="read one query")
        return self._cursor.queries[0]


class Changes(_Pending):
    """A cursor of a `Client`: yields the changes up to now or, with `follow`, until the queries end."""

    def __init__(self, cursor: ChangeCursor, open_: Callable[[ChangeCursor], OpenStream], describe: Callable[[str], Any]) -> None:
        super().__init__(cursor, describe)
        self._open = open_

    def __iter__(self) -> Iterator[Change]:
        while self._pending:
            yield self._pending.popleft()
        if self._cursor.done:
            return
        stream = self._open(self._cursor)
        try:
            for message in stream:
                self._take(message)
                while self._pending:
                    yield self._pending.popleft()
        finally:
            stream.close()

    def arrow(self) -> Any:
        """The changes up to now as one table: seq, time, sign, then the columns."""
        columns = self._describe(self._only()).columns
        follow, self._cursor.follow = self._cursor.follow, False
        try:
            for message in self._open(self._cursor):
                self._take(message)
        finally:
            self._cursor.follow = follow
        return self._table(columns)


class AsyncChanges(_Pending):
    """A cursor of an `AsyncClient`."""

    def __init__(
        self, cursor: ChangeCursor, open_: Callable[[ChangeCursor], AsyncOpenStream], describe: Callable[[str], Any]
    ) -> None:
        super().__init__(cursor, describe)
        self._open = open_

    async def __aiter__(self) -> AsyncIterator[Change]:
        while self._pending:
            yield self._pending.popleft()
        if self._cursor.done:
            return
        stream = self._open(self._cursor)
        try:
            async for message in stream:
                self._take(message)
                while self._pending:
                    yield self._pending.popleft()
        finally:
            await stream.close()

    async def arrow(self) -> Any:
        """The changes up to now as one table: seq, time, sign, then the columns."""
        columns = (await self._describe(self._only())).columns
        follow, self._cursor.follow = self._cursor.follow, False
        try:
            async for message in self._open(self._cursor):
                self._take(message)
        finally:
            self._cursor.follow = follow
        return self._table(columns)


def arrow_table(columns: Sequence[tuple[str, str]], rows: Sequence[Sequence[Any]]) -> Any:
    """Return rows as a pyarrow.Table with the types of the engine's answers."""
    import pyarrow as pa

    types = {
        "int": pa.int64(), "float": pa.float64(), "string": pa.string(), "bool": pa.bool_(), "sign": pa.int8(),
        "timestamp": pa.timestamp("us", tz="UTC"),
    }  # fmt: skip
    kinds = [types.get(kind.split("[")[0], pa.string()) for _, kind in columns]
    cells = list(zip(*rows)) if rows else [()] * len(columns)
    return pa.Table.from_arrays(
        [pa.array(values, kind) for values, kind in zip(cells, kinds)], names=[name for name, _ in columns]
    )
