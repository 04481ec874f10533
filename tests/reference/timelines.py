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
* A stream created after an `advance` of its timeline starts with that front.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from tests.reference.values import Row


@dataclass(frozen=True)
class Taken:
    """A row that its stream has released: effective time, start of its life, the commit it came in."""

    t: int
    start: int
    seq: int
    row: Row


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
    waiting: list[tuple[int, int, Row]] = field(default_factory=list)
    #: every row released, in order of release
    taken: list[Taken] = field(default_factory=list)
    #: `taken` from here on is what the row store still holds
    stored_from: int = 0
    n_accepted: int = 0
    n_late: int = 0

    def positions_of(self, seq: int) -> range:
        """Positions of the rows taken in commit `seq`, which is the last one."""
        first = len(self.taken)
        while first and self.taken[first - 1].seq == seq:
            first -= 1
        return range(first, len(self.taken))


@dataclass(frozen=True)
class Receipt:
    """What a push did; rows are numbered per stream in order of acceptance, None when none was accepted."""

    accepted: int
    late: int
    first_row: int | None = None
    last_row: int | None = None


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
    ) -> None:
        self.streams[name] = Stream(name, time, lateness, late, timeline if time else "arrival", keep)

    def front(self, stream: Stream) -> int | None:
        return _latest(stream.released, self.advanced.get(stream.timeline))

    def _accept(self, stream: Stream, rows: list[Row]) -> Receipt:
        """Put rows into the stream's buffer, late ones at its front or not at all."""
        front = self.front(stream)
        now = self.clock()
        arrival = now if front is None else max(now, front)
        n_late = 0
        first = stream.n_accepted
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
        stream.waiting.sort(key=lambda entry: entry[:2])
        stream.n_late += n_late
        last = stream.n_accepted - 1
        return Receipt(last + 1 - first, n_late, *((first, last) if last >= first else (None, None)))

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
            stream.taken.append(Taken(t, self._start(t, before.get(stream.timeline)), self.seq, row))
            self._move(stream.timeline, t)

    def _move(self, timeline: str, time: int) -> None:
        self.T[timeline] = max(time, self.T.get(timeline, time))

    def _start(self, t: int, clock: int | None) -> int:
        return t if clock is None else max(t, clock)


def _latest(a: int | None, b: int | None) -> int | None:
    return b if a is None else a if b is None else max(a, b)
