"""The changes of queries as they happen: the position of a reader, and how it continues after a broken connection.

The service sends the changes of a commit, then progress with the number of the last commit that was sent whole. A `ChangeCursor`
gives changes out only by whole commits and remembers the last one. When the connection breaks, an incomplete commit is dropped
and the service is asked for everything after the last whole one. So each change is given once, in order.

    Committed    the changes of one commit; the whole answer if `snapshot`
    Gap          changes that were not sent, because the reader was slow
    End          nothing more comes of a query
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import httpx

from eddy.client.calls import path_of
from eddy.client.exchange import Give, Open, Patience, Pause, Read, Request, Steps, attempts, passing, retry_after, unreachable
from eddy.client.facts import Change, as_time
from eddy.client.problems import UnreachableError, error_of
from lineage.errors import EddyError, GoneError, LimitError, NotFoundError

_NDJSON = "application/x-ndjson"
#: Reasons of an end after which going on from the cursor works.
_PASSING = ("the service stops",)


@dataclass(frozen=True, slots=True)
class Committed:
    """The changes of some commits, up to `seq`; the whole answer as + rows if `snapshot`."""

    seq: int
    changes: tuple[Change, ...]
    snapshot: bool
    #: the clocks of the timelines, if the service told
    times: Mapping[str, datetime | None]


@dataclass(frozen=True, slots=True)
class Gap:
    """Message: the changes of the commits after `after` up to `until` were not sent; if `snapshot` the whole answer follows."""

    after: int
    until: int
    snapshot: bool


@dataclass(frozen=True, slots=True)
class End:
    """Message: no more changes come, of one query or, if it is None, of all."""

    query: str | None
    reason: str


Message = Committed | Gap | End


class ChangeCursor:
    """The position of a reader of some queries: the last whole commit, and the changes of an incomplete one."""

    def __init__(
        self, queries: Iterable[str], tags: Iterable[str], since: str | int, slow: str = "block", follow: bool = True
    ) -> None:
        self.queries = tuple(queries)
        self.tags = tuple(tags)
        self.slow = slow
        self.follow = follow
        #: "snapshot", "now", or the number of the last commit that was given out whole
        self.since = since
        #: nothing more will come
        self.done = False
        #: columns of each query that hold times
        self._times_of: dict[str, list[str]] = {}
        self.restart()

    def restart(self) -> None:
        """Drop an incomplete commit, because a new connection begins."""
        self._bytes = b""
        self._waiting: list[dict[str, Any]] = []
        self._snapshot = self.since == "snapshot"

    def request(self) -> Request:
        """Return the request for the changes after the last whole commit."""
        params = [("since", str(self.since)), ("slow", self.slow), ("follow", str(self.follow).lower()), ("format", "ndjson")]
        if len(self.queries) == 1 and not self.tags:
            path = path_of("queries", self.queries[0], "changes")
        else:
            path = "/v1/changes"
            params += [("query", name) for name in self.queries] + [("tag", tag) for tag in self.tags]
        return Request("GET", path, tuple(params), headers={"Accept": _NDJSON}, repeatable=True)

    def feed(self, chunk: bytes) -> Iterator[tuple[list[dict[str, Any]], Message]]:
        """Yield the messages that some bytes complete, each with its raw changes."""
        # split by hand: httpx ends lines at characters that JSON texts may hold
        lines, newline, rest = (self._bytes + chunk).rpartition(b"\n")
        self._bytes = rest
        if newline:
            # one value a line, read all at once
            for frame in json.loads(b"[" + lines.replace(b"\n", b",") + b"]"):
                yield from self._frame(frame)

    def _frame(self, frame: dict[str, Any]) -> Iterator[tuple[list[dict[str, Any]], Message]]:
        if "row" in frame:
            yield from self._change(frame)
        elif "progress" in frame:
            seq = frame["progress"]
            if isinstance(self.since, int) and seq < self.since:
                raise GoneError(
                    f"the service is at commit {seq}, this reader was at {self.since}", code="began_anew",
                    hint='start again with since="snapshot"',
                )  # fmt: skip
            times = {name: as_time(text) for name, text in (frame.get("times") or {}).items()}
            yield self._commit(seq, times)
        elif "gap" in frame:
            gap = Gap(**frame["gap"])
            # of the commits in the gap nothing is held: what waits is of them
            self._waiting = []
            self._snapshot = gap.snapshot
            if not gap.snapshot:
                self.since = max(gap.until, self.since) if isinstance(self.since, int) else gap.until
            yield [], gap
        elif "end" in frame:
            end = End(**frame["end"])
            if end.query is not None:
                name = end.query
                self._times_of.pop(name, None)
                self.queries = tuple(known for known in self.queries if known.lower() != name.lower())
                self.done = not self.queries and not self.tags
                yield [], end
            elif end.reason not in _PASSING:
                raise LimitError(f"the service ended the stream: {end.reason}", code="ended", hint="read faster, or slow=block")

    def _change(self, change: dict[str, Any]) -> Iterator[tuple[list[dict[str, Any]], Message]]:
        seq = change["seq"]
        if self._waiting and seq > self._waiting[-1]["seq"] and not self._snapshot:
            # changes come by commit: with the next one, the last is whole
            yield self._commit(self._waiting[-1]["seq"], {})
        if isinstance(self.since, int) and seq <= self.since and not self._snapshot:
            raise EddyError(f"a change of commit {seq} came after commit {self.since}", code="out_of_order")
        self._waiting.append(change)

    def _commit(self, seq: int, times: Mapping[str, datetime | None]) -> tuple[list[dict[str, Any]], Message]:
        changes, self._waiting = self._waiting, []
        snapshot, self._snapshot = self._snapshot, False
        self.since = seq
        return changes, Committed(seq, (), snapshot, times)

    # ---- values

    def unknown(self, changes: list[dict[str, Any]]) -> list[str]:
        """Return the queries whose columns are not known yet."""
        return [name for name in dict.fromkeys(change["query"] for change in changes) if name not in self._times_of]

    def learn(self, query: str, columns: Mapping[str, str]) -> None:
        """Note the columns of a query."""
        self._times_of[query] = [name for name, kind in columns.items() if kind.startswith("timestamp")]

    def finished(self, changes: list[dict[str, Any]], message: Message) -> Message:
        """Return a message with its changes, values as the engine gives them: times are times."""
        if not changes:
            return message
        assert isinstance(message, Committed)
        found = []
        for change in changes:
            row = change["row"]
            for name in self._times_of[change["query"]]:
                if row[name] is not None:
                    row[name] = datetime.fromisoformat(row[name])
            time = datetime.fromisoformat(change["time"])
            found.append(Change(change["seq"], time, change["sign"], row, change["query"]))
        return Committed(message.seq, tuple(found), message.snapshot, message.times)


def cursor_of(queries: list[str], tags: Iterable[str], since: str | int, slow: str, follow: bool) -> ChangeCursor:
    """Return the cursor of a reader; raise unless it names a query or a tag."""
    tags = [tags] if isinstance(tags, str) else list(tags)
    if not queries and not tags:
        raise EddyError("changes takes a query or a tag", code="bad_option", hint='changes("hot") or changes(tags=["demo"])')
    return ChangeCursor(queries, tags, since, slow, follow)


def follow(cursor: ChangeCursor, patience: Patience) -> Steps[None]:
    """Yield messages from a cursor's position on; continue after broken connections and restarts of the service."""
    pause = Pause(patience)
    while True:
        cursor.restart()
        asked = 0.0
        request = cursor.request()
        try:
            reply = yield Open(request)
            patience.met = True
            if reply.status >= 400:
                failure = error_of(reply.status, reply.body)
                if not passing(reply, failure, True):
                    raise failure
                asked = retry_after(reply)
            else:
                whole = False
                while chunk := (yield Read()):
                    for changes, message in cursor.feed(chunk):
                        pause.reset()
                        whole = whole or isinstance(message, Committed)
                        for name in cursor.unknown(changes):
                            cursor.learn(name, (yield from _columns(name, patience)))
                        yield Give(cursor.finished(changes, message))
                if cursor.done or (whole and not cursor.follow):
                    return
                failure = UnreachableError("the service ended the stream of changes", code="broken")
        except httpx.TransportError as error:
            failure = unreachable(error, request)
            if not patience.met:
                raise failure from None
        yield pause.next(failure, asked)


def _columns(name: str, patience: Patience) -> Steps[Mapping[str, str]]:
    """Return the columns of a query; none if it is gone, and then its times stay texts."""
    try:
        reply = yield from attempts(Request("GET", path_of("queries", name), repeatable=True), patience)
    except NotFoundError:
        return {}
    columns: Mapping[str, str] = json.loads(reply.body)["columns"]
    return columns
