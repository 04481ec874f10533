"""The naive model: the engine's calls over Python lists, as short and as plain as the semantics allow.

It follows `semantics.md` points 1-7, 9, 11-13 and 21 word by word, for single-stream select-project-filter queries:

    front(stream)  = max(largest t released on it, last advance of its timeline)
    late           = t < front, as the front was before the push; then t := front, or the row is dropped
    released       = rows with t <= max(largest time seen - lateness, front), in order of (t, acceptance)
    T(timeline)    = the largest front, never back
    start          = max(t, T before the commit)
    life           = [start, t + width), empty if t + width <= start
    answer(T)      = the results with start <= T < t + width of rows taken since the query's birth

Choices where the text leaves room:

* Order uses the effective time: a push is sorted by t, and rows of equal t, late ones too, keep the order they were sent in.
  A late row's t is the front, which is never above the bound, so it is released at once.
* The newest results of a stream query are the last ones released: by (start, position in release order).
* `Receipt.accepted` counts the rows that are kept: all but the dropped ones. Late rows count in `late` under both settings.
* An empty push is a commit. An `advance` to exactly `T` is one too (it may release rows of a lagging stream);
  one below `T` is nothing.
* A stream created after an `advance` of its timeline starts with that front.
* A resumed stream query starts with an empty answer; a resumed relation takes its kept answer back at `T` of its resume.
* Netting is by value over *all* changes of the commit, those of rows that come and go inside it too: when v ends at 5,
  comes at 6 and ends at 7 within one commit, what remains is - at 7 (`net`).

Times are int microseconds; rows are dicts of canonical values (timestamps as int microseconds).
"""

from __future__ import annotations

import datetime as dt
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

Row = dict[str, Any]
Value = tuple[Any, ...]

#: Width of a window that never ends.
UNBOUNDED = math.inf
#: A stream query's answer is its newest results, this many.
NEWEST = 1_000
#: What NaN is replaced by, so that it equals itself.
NAN = ("NaN",)
EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


def canonical(value: Any) -> Any:
    """One value such that `==` means the same SQL value: NaN = NaN, -0.0 = 0.0, a datetime is its microseconds.

    >>> canonical(float("nan")) == canonical(float("nan")), str(canonical(-0.0))
    (True, '0.0')
    """
    if isinstance(value, float):
        return NAN if math.isnan(value) else value + 0.0
    if isinstance(value, dt.datetime):
        aware = value if value.tzinfo else value.replace(tzinfo=dt.UTC)
        return (aware - EPOCH) // dt.timedelta(microseconds=1)
    return value


def canonical_row(values: Iterable[Any]) -> Value:
    return tuple(canonical(value) for value in values)


@dataclass(frozen=True)
class Change:
    """One change of a commit: `sign` +1 or -1, the event time at which it takes effect, and the value."""

    sign: int
    time: int
    value: Value


@dataclass
class Result:
    """A taken row that a query lets through: its value, the row it came from and its life [start, end)."""

    position: int
    start: int
    end: float
    value: Value
    row: Row


@dataclass
class Stream:
    name: str
    time: str | None
    lateness: int
    late: str
    timeline: str
    #: largest time sent, dropped rows included; None before the first row
    seen: int | None = None
    #: largest t released; None before the first release
    released: int | None = None
    #: (t, order of acceptance, row) of accepted rows above the release bound, sorted
    waiting: list[tuple[int, int, Row]] = field(default_factory=list)
    #: (t, start, row) of every row released, in order of release
    taken: list[tuple[int, int, Row]] = field(default_factory=list)
    n_accepted: int = 0
    n_late: int = 0


@dataclass
class Query:
    stream: Stream
    #: length of a row's life; None: the query is a stream
    width: float | None
    where: Callable[[Row], bool | None]
    select: Callable[[Row], Value]
    #: number of rows already taken when it was submitted or resumed
    birth: int
    results: list[Result] = field(default_factory=list)
    #: the answer at the pause; None iff running
    kept: list[Value] | None = None


@dataclass(frozen=True)
class Receipt:
    """What a push did; rows are numbered per stream in order of acceptance, None when none was accepted."""

    accepted: int
    late: int
    first_row: int | None = None
    last_row: int | None = None


class Naive:
    """The model. `commits[seq]` maps each query with changes to them, in the order a reader sees them."""

    def __init__(self, clock: Callable[[], int] = lambda: 0) -> None:
        self.clock = clock
        self.streams: dict[str, Stream] = {}
        self.queries: dict[int, Query] = {}
        #: clock T of each timeline; absent before its first row or advance
        self.T: dict[str, int] = {}
        self.advanced: dict[str, int] = {}
        self.seq = 0
        self.commits: dict[int, dict[int, list[Change]]] = {}
        self._next_query = 0

    def create_stream(
        self, name: str, *, time: str | None = None, lateness: int = 0, late: str = "adjust", timeline: str = "main"
    ) -> None:
        self.streams[name] = Stream(name, time, lateness, late, timeline if time else "arrival")

    def front(self, stream: Stream) -> int | None:
        return _latest(stream.released, self.advanced.get(stream.timeline))

    # -- input ---------------------------------------------------------------------------------------------------

    def push(self, name: str, rows: list[Row]) -> Receipt:
        return self.push_many({name: rows})[name]

    def push_many(self, batches: Mapping[str, list[Row]]) -> dict[str, Receipt]:
        receipts = {name: self._accept(self.streams[name], rows) for name, rows in batches.items()}
        released = []
        for order, name in enumerate(batches):
            stream = self.streams[name]
            bound = _latest(self.front(stream), None if stream.seen is None else stream.seen - stream.lateness)
            released += [(t, order, stream, row) for t, row in self._release(stream, bound)]
        self._commit(released)
        return receipts

    def advance(self, time: int, timeline: str = "main") -> bool:
        """Release every stream of the timeline up to `time`; returns whether that was a commit."""
        if timeline in self.T and time < self.T[timeline]:
            return False
        released = []
        for order, stream in enumerate(self.streams.values()):
            if stream.timeline == timeline:
                released += [(t, order, stream, row) for t, row in self._release(stream, time)]
        self.advanced[timeline] = time
        self._commit(released, {timeline: time})
        return True

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

    def _release(self, stream: Stream, bound: int | None) -> list[tuple[int, Row]]:
        """Take the waiting rows with t <= bound out of the buffer, in order."""
        out = [(t, row) for t, _, row in stream.waiting if bound is not None and t <= bound]
        stream.waiting = stream.waiting[len(out) :]
        if out:
            stream.released = _latest(stream.released, out[-1][0])
        return out

    # -- commits -------------------------------------------------------------------------------------------------

    def _commit(self, released: list[tuple[int, int, Stream, Row]], advanced: Mapping[str, int] | None = None) -> None:
        before = dict(self.T)
        released.sort(key=lambda entry: entry[:2])
        n_before = {stream.name: len(stream.taken) for stream in self.streams.values()}
        for t, _, stream, row in released:
            stream.taken.append((t, self._start(t, before.get(stream.timeline)), row))
            self.T[stream.timeline] = max(t, self.T.get(stream.timeline, t))
        for timeline, time in (advanced or {}).items():
            self.T[timeline] = max(time, self.T.get(timeline, time))
        self.seq += 1
        changed = {}
        for number, query in self.queries.items():
            if query.kept is None:
                changes = self._changes(query, n_before[query.stream.name], before.get(query.stream.timeline))
                if changes:
                    changed[number] = changes
        self.commits[self.seq] = changed

    def _start(self, t: int, clock: int | None) -> int:
        return t if clock is None else max(t, clock)

    def _end(self, t: int, start: int, width: float) -> float:
        return t + width

    def _changes(self, query: Query, n_before: int, before: int | None) -> list[Change]:
        """What this commit does to one query: + of rows just taken, - of ends in (T before, T]."""
        for position in range(max(n_before, query.birth), len(query.stream.taken)):
            t, start, row = query.stream.taken[position]
            end = UNBOUNDED if query.width is None else self._end(t, start, query.width)
            if self._passes(query, row) and start < end:
                query.results.append(Result(position, start, end, canonical_row(query.select(row)), row))
        pluses = [result for result in query.results if result.position >= n_before]
        now = self.T.get(query.stream.timeline)
        minuses = [r for r in query.results if now is not None and r.end <= now and (before is None or before < r.end)]
        if query.width is None:
            return [Change(1, r.start, r.value) for r in pluses]
        return self._net([Change(1, r.start, r.value) for r in pluses], [Change(-1, int(r.end), r.value) for r in minuses])

    def _net(self, pluses: list[Change], minuses: list[Change]) -> list[Change]:
        return net(pluses, minuses)

    def _passes(self, query: Query, row: Row) -> bool:
        return query.where(row) is True

    # -- queries -------------------------------------------------------------------------------------------------

    def submit(
        self, stream: str, width: float | None, where: Callable[[Row], bool | None], select: Callable[[Row], Value]
    ) -> int:
        number = self._next_query
        self._next_query += 1
        source = self.streams[stream]
        self.queries[number] = Query(source, width, where, select, self._birth(source))
        return number

    def _birth(self, stream: Stream) -> int:
        return len(stream.taken)

    def cancel(self, number: int) -> None:
        del self.queries[number]

    def pause(self, number: int) -> None:
        self.queries[number].kept = self.answer(number)

    def resume(self, number: int) -> None:
        query = self.queries[number]
        kept, query.kept = query.kept, None
        query.birth, query.results = self._birth(query.stream), []
        self.seq += 1
        self.commits[self.seq] = {}
        if query.width is not None and kept:
            now = self.T[query.stream.timeline]
            self.commits[self.seq][number] = [Change(-1, now, value) for value in kept]

    def alive(self, number: int) -> list[Result]:
        """The results that make up a running query's answer, oldest first."""
        query = self.queries[number]
        if query.width is None:
            return query.results[-NEWEST:]
        now = self.T.get(query.stream.timeline)
        return [r for r in query.results if now is not None and r.start <= now < r.end]

    def answer(self, number: int) -> list[Value]:
        kept = self.queries[number].kept
        return [r.value for r in self.alive(number)] if kept is None else kept

    def changes(self, number: int, since: int) -> list[tuple[int, Change]]:
        """All changes after commit `since`, as (seq, change)."""
        return [(s, change) for s in range(since + 1, self.seq + 1) for change in self.commits[s].get(number, [])]


def net(pluses: list[Change], minuses: list[Change]) -> list[Change]:
    """Net by value, - before +: of n plus and m minus of a value the latest |n - m| of the larger side remain.

    >>> net([Change(1, 6, ("v",))], [Change(-1, 5, ("v",)), Change(-1, 7, ("v",))])
    [Change(sign=-1, time=7, value=('v',))]
    """
    both: dict[Value, tuple[list[Change], list[Change]]] = defaultdict(lambda: ([], []))
    for change in pluses + minuses:
        both[change.value][change.sign < 0].append(change)
    keep: Counter[int] = Counter()
    for plus, minus in both.values():
        larger = plus if len(plus) > len(minus) else minus
        keep.update(map(id, sorted(larger, key=lambda c: c.time)[min(len(plus), len(minus)) :]))
    return sorted((c for c in minuses + pluses if keep[id(c)]), key=lambda c: (c.sign, c.time))


def _latest(a: int | None, b: int | None) -> int | None:
    return b if a is None else a if b is None else max(a, b)
