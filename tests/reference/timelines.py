"""The clock rules: which rows a stream takes, when, and at what effective time (`semantics.md` 1-3).

    front(stream)  = max(largest t released on it, last advance of its timeline)
    late           = t < front, as the front was before the push; then t := front, or the row is dropped
    released       = rows with t <= max(largest time seen - lateness, front), in order of (t, acceptance)
    T(timeline)    = the largest front, never back
    start          = max(t, T before the commit)

So the rows a stream has taken are in order of t, and those of a commit are in order of start over all its streams.

Choices where the text leaves room:

* Order uses the effective time: a push is sorted by t, and rows of equal t, late ones too, keep the order they were sent in.
  A late row's t is the front, which is never above the bound, so it is released at once.
* `Receipt.accepted` counts the rows that are kept: all but the dropped ones. Late rows count in `late` under both settings.
* A retraction is an input of its stream like a row: it moves what the stream has seen, so it is released as a row of its time
  would be, and the clock with it. It is never dropped: a late one takes effect at once.
* A row whose `end` is not after its start replaces the live row of its key all the same, and takes its place in [ROWS n]. NULL
  is a key.
* A stream created after an `advance` of its timeline starts with that front.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tests.reference.values import Row, Value, canonical_row


@dataclass(frozen=True)
class Taken:
    """A row that its stream has released: effective time, start of its life, the commit it came in."""

    t: int
    start: int
    seq: int
    row: Row


class Retraction(dict[str, Any]):
    """The key columns of a row that a stream takes back; waits among the stream's rows."""


@dataclass
class Stream:
    name: str
    time: str | None
    lateness: int
    late: str
    timeline: str
    #: how long rows are stored for later queries; None: only as long as some query needs them
    keep: int | None = None
    #: largest time sent, dropped rows included; None before the first row
    seen: int | None = None
    #: largest t released; None before the first release
    released: int | None = None
    #: (t, order of acceptance, row) of accepted rows above the release bound, sorted
    waiting: list[tuple[int, float, Row]] = field(default_factory=list)
    #: every row released, in order of release
    taken: list[Taken] = field(default_factory=list)
    #: `taken` from here on is what the row store still holds
    stored_from: int = 0
    n_accepted: int = 0
    n_late: int = 0
    #: columns by which rows replace each other, and the column with the end of a row
    key: tuple[str, ...] = ()
    end: str | None = None
    #: by position, the end of each row taken as it came, and as it is: replaced, retracted
    scheduled: list[float] = field(default_factory=list)
    own_ends: list[float] = field(default_factory=list)
    #: position of the newest row of each key
    newest: dict[Value, int] = field(default_factory=dict)
    #: (rows taken before it, when it took effect, key) of every retraction
    retracted: list[tuple[int, int, Row]] = field(default_factory=list)
    n_over: int = 0
    n_unknown: int = 0

    @property
    def has_own_ends(self) -> bool:
        return bool(self.key) or self.end is not None

    def enter(self, row: Row, start: int) -> None:
        """A row is taken: it has an end of its own, and ends the one of its key."""
        end = math.inf if self.end is None or row[self.end] is None else row[self.end]
        self.n_over += end <= start
        if self.key:
            key = canonical_row(row[column] for column in self.key)
            self.lower(key, start)
            self.newest[key] = len(self.scheduled)
        self.scheduled.append(end)
        self.own_ends.append(end)

    def lower(self, key: Value, time: int) -> bool:
        """End the live row of a key; returns whether there is one."""
        position = self.newest.get(key)
        if position is None or self.own_ends[position] <= time:
            return False
        self.own_ends[position] = time
        return True

    def positions_of(self, seq: int) -> range:
        """Positions of the rows taken in commit `seq`, which is the last one."""
        first = len(self.taken)
        while first and self.taken[first - 1].seq == seq:
            first -= 1
        return range(first, len(self.taken))


class Receipt(NamedTuple):
    """What a push did; rows are numbered per stream in order of acceptance, None when none was accepted."""

    accepted: int
    late: int
    first_row: int | None = None
    last_row: int | None = None
    #: rows accepted whose life was over before they came, in every window of a running query
    expired: int = 0


#: (t, order of its stream in the commit, stream, row)
Released = tuple[int, int, Stream, Row]


class Timelines:
    """Streams with their fronts and the clock of each timeline."""

    def __init__(self, clock: Callable[[], int] = lambda: 0) -> None:
        self.clock = clock
        self.streams: dict[str, Stream] = {}
        #: clock T of each timeline; absent before its first row or advance
        self.T: dict[str, int] = {}
        self.advanced: dict[str, int] = {}
        self.seq = 0

    def create_stream(
        self,
        name: str,
        *,
        time: str | None = None,
        lateness: int = 0,
        late: str = "adjust",
        timeline: str = "main",
        keep: int | None = None,
        key: Sequence[str] = (),
        end: str | None = None,
    ) -> None:
        line = timeline if time else "arrival"
        self.streams[name] = Stream(name, time, lateness, late, line, keep, key=tuple(key), end=end)

    def front(self, stream: Stream) -> int | None:
        return _latest(stream.released, self.advanced.get(stream.timeline))

    def accept_rows(self, stream: Stream, rows: list[Row]) -> Receipt:
        """Put rows into the stream's buffer, late ones at its front or not at all."""
        front = self.front(stream)
        now = self.clock()
        arrival = now if front is None else max(now, front)
        n_late = n_expired = 0
        first = stream.n_accepted
        over = self.T.get(stream.timeline, -math.inf) - max(self._lives(stream.name), default=math.inf)
        for row in rows:
            t = row[stream.time] if stream.time else arrival
            stream.seen = t if stream.seen is None else max(stream.seen, t)
            if front is not None and t < front:
                n_late += 1
                if stream.late == "drop":
                    continue
                t = self._adjusted(t, front)
            stream.waiting.append((t, stream.n_accepted, row))
            stream.n_accepted += 1
            n_expired += t <= over
        stream.waiting.sort(key=lambda entry: entry[:2])
        stream.n_late += n_late
        last = stream.n_accepted - 1
        return Receipt(last + 1 - first, n_late, *((first, last) if last >= first else (None, None)), expired=n_expired)

    def _lives(self, stream: str) -> list[float]:
        """How long rows of a stream live in the windows of running queries: infinite where the clock does not end them."""
        return []

    def _accept_retractions(self, stream: Stream, keys: Sequence[Sequence[Any]], time: int) -> None:
        """Put retractions into the stream's buffer, behind the rows accepted; late ones at its front."""
        t = _latest(time, self.front(stream))
        assert t is not None
        stream.seen = _latest(time, stream.seen) if keys else stream.seen
        for key in keys:
            stream.waiting.append((t, stream.n_accepted - 0.5, Retraction(zip(stream.key, key, strict=True))))
        stream.waiting.sort(key=lambda entry: entry[:2])

    def _adjusted(self, t: int, front: int) -> int:
        return front

    def _releasable(self, names: Mapping[str, object]) -> list[Released]:
        """What a push on these streams releases."""
        released: list[Released] = []
        for order, name in enumerate(names):
            stream = self.streams[name]
            bound = _latest(self.front(stream), None if stream.seen is None else stream.seen - stream.lateness)
            released += [(t, order, stream, row) for t, row in self._release(stream, bound)]
        return released

    def _releasable_by(self, time: int, timeline: str) -> list[Released]:
        """What an advance to `time` releases; it is the front of every stream of the timeline from now on."""
        released: list[Released] = []
        for order, stream in enumerate(self.streams.values()):
            if stream.timeline == timeline:
                released += [(t, order, stream, row) for t, row in self._release(stream, time)]
        self.advanced[timeline] = time
        return released

    def _release(self, stream: Stream, bound: int | None) -> list[tuple[int, Row]]:
        """Take the waiting rows with t <= bound out of the buffer, in order."""
        out = [(t, row) for t, _, row in stream.waiting if bound is not None and t <= bound]
        stream.waiting = stream.waiting[len(out) :]
        if out:
            stream.released = _latest(stream.released, out[-1][0])
        return out

    def _take(self, released: list[Released]) -> None:
        """Rows take effect in order of (t, order of their stream, row); the clocks follow."""
        before = dict(self.T)
        for t, _, stream, row in sorted(released, key=lambda entry: entry[:2]):
            start = self._start(t, before.get(stream.timeline))
            if isinstance(row, Retraction):
                stream.retracted.append((len(stream.taken), start, row))
                stream.n_unknown += not stream.lower(canonical_row(row.values()), start)
            else:
                stream.taken.append(Taken(t, start, self.seq, row))
                stream.enter(row, start)
            self._move(stream.timeline, t)

    def _move(self, timeline: str, time: int) -> None:
        self.T[timeline] = max(time, self.T.get(timeline, time))

    def _start(self, t: int, clock: int | None) -> int:
        return t if clock is None else max(t, clock)


def _latest(a: int | None, b: int | None) -> int | None:
    return b if a is None else a if b is None else max(a, b)
