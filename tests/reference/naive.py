"""The naive model: the engine's calls over Python lists, as short and as plain as the semantics allow.

It follows `semantics.md` points 1-9, 11-16, 21 and 34 word by word, for select-project-join queries over 1 to 8 FROM items:
streams with any window but SLIDE, streams without one, and tables. The rules are in the files of their nouns:

    timelines.py   when a stream takes a row, its effective time `t` and its start
    tables.py      the versions of a table's rows
    lives.py       windows as lifetimes: RANGE, NOW, ROWS, PARTITION BY
    matching.py    which combinations of rows are results, and when they live
    changes.py     how the changes of a commit net

and here is what a call does to the queries:

    answer(T)      = the results with start <= T < end
    changes        = + of the results that came, - of those that ended in the commit, net by value, - before +
    a query sees     rows of commits after its birth; with history="window" also what is stored
    stored           the rows from the oldest one on that `keep` or the window of a running query holds; settled at each
                     commit, and what is once gone stays gone

Choices where the text leaves room (others are in the files above):

* The newest results of a stream query are the last ones released: by (start, position in release order, table version).
* An empty push, upsert or delete is a commit. An `advance` to exactly `T` is one too (it may release rows of a lagging
  stream); one below `T` is nothing.
* Netting is by value over *all* changes of the commit, those of rows that come and go inside it too: when v ends at 5,
  comes at 6 and ends at 7 within one commit, what remains is - at 7 (`net`). A match whose life is empty in event time
  and which no commit has shown does not take part.
* What a query is given at once (`submit` with history, `replace`, `resume`, a query over tables) takes effect at `T`: the
  time of a change is never below `T` of the commit before.
* `submit` of a query over tables alone is a commit with the whole table as +, whatever `history` says, so that the
  changes always sum up to the answer. Such a query is on timeline main; before that has a clock its changes have time 0.
* A resumed stream query starts with an empty answer; a resumed relation takes its kept answer back at `T` of its resume,
  net of what it sees again as if new (by its history; tables).
* `replace` keeps the birth and the history: the new text sees what the old one could see, as far as it is stored; these rows
  meet a non-retroactive table as it is at the replace. A replaced stream query starts with an empty answer. A relation is not
  replaced by a stream, nor a paused query at all.
* What a stream stores is a suffix of its rows, so PARTITION BY keeps the rows of other keys in between. Queries count from
  their submit to their cancel for it, births aside; paused ones do not count. Waiting rows are not stored rows: they are taken
  later, and every query sees them then.
* `complete_since` is the earliest time that is right, from the rows that are missing; an engine that knows only how far
  back it stored may say a later one. None: never, or the timeline has no clock yet.

Times are int microseconds; rows are dicts of canonical values (timestamps as int microseconds).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from tests.reference.changes import Change, net
from tests.reference.lives import UNBOUNDED, Part, Window, contents, displace
from tests.reference.matching import MAX_INPUTS, Condition, Meaning, Result, Rows, life, matches
from tests.reference.tables import Table, Version
from tests.reference.timelines import Receipt, Released, Stream, Taken, Timelines
from tests.reference.values import Row, Value, canonical_row

#: A stream query's answer is its newest results, this many.
NEWEST = 1_000


@dataclass
class Query:
    meaning: Meaning
    #: inputs that are streams
    streams: frozenset[int]
    #: inputs that are tables which count as they were
    frozen: dict[int, Table]
    #: whether it gives a stream: only +, no end
    is_stream: bool
    timeline: str
    history: str
    #: the last commit before its submit or resume
    born: int
    #: the last commit when it was opened: by its submit, resume or replace
    opened: int = 0
    #: by input: position of the first row it could see then; 0 for a table
    seen_from: list[int] = field(default_factory=list)
    #: by input: the parts that live, in order of arrival
    parts: list[list[Part]] = field(default_factory=list)
    #: all results since it was opened
    results: list[Result] = field(default_factory=list)
    #: the answer at the pause; None iff running
    kept: list[Value] | None = None
    complete_since: int | None = None
    #: whether its changes are net over a "commit" or within each "event"
    emit: str = "commit"


class Naive(Timelines):
    """The model. `commits[seq]` maps each query with changes to them, in the order a reader sees them."""

    def __init__(self, clock: Callable[[], int] = lambda: 0) -> None:
        super().__init__(clock)
        self.tables: dict[str, Table] = {}
        self.queries: dict[int, Query] = {}
        self.commits: dict[int, dict[int, list[Change]]] = {}
        #: T of each timeline after each commit
        self.clocks: list[dict[str, int]] = [{}]
        self._next_query = 0

    def create_table(self, name: str, *, key: Sequence[str], retroactive: bool = False) -> None:
        self.tables[name] = Table(name, tuple(key), retroactive)

    # -- input ---------------------------------------------------------------------------------------------------

    def push(self, name: str, rows: list[Row]) -> Receipt:
        return self.push_many({name: rows})[name]

    def push_many(self, batches: Mapping[str, list[Row]]) -> dict[str, Receipt]:
        receipts = {name: self.accept_rows(self.streams[name], rows) for name, rows in batches.items()}
        self._commit(self._releasable(batches))
        return receipts

    def _lives(self, stream: str) -> list[float]:
        windows = [
            one.window
            for query in self.queries.values()
            if query.kept is None
            for one in query.meaning.inputs
            if one.source == stream
        ]
        return [math.inf if window is None else window.width for window in windows]

    def advance(self, time: int, timeline: str = "main") -> bool:
        """Release every stream of the timeline up to `time`; returns whether that was a commit."""
        if timeline in self.T and time < self.T[timeline]:
            return False
        self._commit(self._releasable_by(time, timeline), {timeline: time})
        return True

    def retract(self, name: str, keys: Sequence[Sequence[object]], time: int) -> None:
        self._accept_retractions(self.streams[name], keys, time)
        self._commit(self._releasable({name: None}))

    def upsert(self, table: str, rows: Sequence[Row]) -> None:
        self.tables[table].upsert(rows, self.seq + 1)
        self._commit([])

    def delete(self, table: str, keys: Sequence[Sequence[object]]) -> None:
        self.tables[table].delete(keys, self.seq + 1)
        self._commit([])

    # -- commits -------------------------------------------------------------------------------------------------

    def _commit(self, released: list[Released], advanced: Mapping[str, int] | None = None) -> None:
        self.seq += 1
        self._take(released)
        for timeline, time in (advanced or {}).items():
            self._move(timeline, time)
        changed = {number: self._step(query) for number, query in self.queries.items() if query.kept is None}
        self._finish({number: changes for number, changes in changed.items() if changes})

    def _finish(self, changed: dict[int, list[Change]]) -> None:
        self.commits[self.seq] = changed
        self.clocks.append(dict(self.T))
        self._settle_store()

    def _now(self, timeline: str) -> float:
        return self.T.get(timeline, -math.inf)

    def _step(self, query: Query) -> list[Change]:
        """What this commit does to one query: + of results just come, - of ends up to T."""
        for k in range(len(query.meaning.inputs)):
            self._arrive(query, k)
        came = self.results_of(query)
        query.results += came
        pluses = [Change(1, _at(result.start), result.value) for result in came]
        if query.is_stream:
            query.parts = [[] for _ in query.parts]
            return pluses
        now = self._now(query.timeline)
        ended = [result for result in query.results if not result.gone and result.end <= now]
        for result in ended:
            result.gone = True
        query.parts = [self._remaining(query, k, parts, now) for k, parts in enumerate(query.parts)]
        return self._emitted(query, pluses, [Change(-1, _at(result.end), result.value) for result in ended])

    def _arrive(self, query: Query, k: int) -> None:
        """Give an input what came in this commit; newer rows and versions end older ones."""
        source, window = query.meaning.inputs[k].source, query.meaning.inputs[k].window
        if k in query.streams:
            stream = self.streams[source]
            if window:
                for part in query.parts[k]:
                    part.end = min(part.end, stream.own_ends[part.number])
            query.parts[k] += [self.part_of(query, k, i, stream.taken[i]) for i in stream.positions_of(self.seq)]
            if window:
                self._displace(window, query.parts[k])
        elif k not in query.frozen:
            now = self._now(query.timeline)
            versions = self.tables[source].versions
            for part in query.parts[k]:
                if versions[part.number].closed == self.seq:
                    part.end = now
            query.parts[k] += [self.version_part(query, version) for version in versions if version.opened == self.seq]

    def _remaining(self, query: Query, k: int, parts: list[Part], now: float) -> list[Part]:
        """What lives, and of a keyed stream in a window that counts rows all: who was retracted leaves its place empty."""
        item = query.meaning.inputs[k]
        if item.window and item.window.rows is not None and self.streams[item.source].has_own_ends:
            return parts
        return [part for part in parts if part.end > now]

    def part_of(self, query: Query, k: int, position: int, taken: Taken) -> Part:
        item = query.meaning.inputs[k]
        window, stream = item.window, self.streams[item.source]
        if window is None:
            # nothing ends it, but what was over when it came is not shown
            end = UNBOUNDED if stream.scheduled[position] > taken.start else taken.start
        else:
            end = min(self._end(taken.t, taken.start, window.width), stream.own_ends[position])
        return Part(position, taken.row, self.seq, taken.start, end)

    def _end(self, t: int, start: int, width: float) -> float:
        return t + width

    def _displace(self, window: Window, parts: list[Part]) -> None:
        displace(window, parts)

    def version_part(self, query: Query, version: Version) -> Part:
        return Part(version.number, version.row, self.seq, self._now(query.timeline), UNBOUNDED)

    def results_of(self, query: Query) -> list[Result]:
        """The results with a part that came in this commit."""
        found = []
        before = self.clocks[-1].get(query.timeline, -math.inf)
        there = [[part for part in parts if part.end > before] for parts in query.parts]
        for parts in matches(query.meaning, there, query.frozen, query.streams, self.seq, self._passes):
            start, end = life(parts)
            if start < end:
                value = canonical_row(query.meaning.select([part.row for part in parts]))
                found.append(Result(parts, value))
        return found

    def _passes(self, condition: Condition, rows: Rows) -> bool:
        return condition.holds(rows) is True

    def _emitted(self, query: Query, pluses: list[Change], minuses: list[Change]) -> list[Change]:
        """The changes of a commit as the query wants them: net over all of it, or instant by instant."""
        if query.emit == "commit":
            return self.net_changes(pluses, minuses)
        found = []
        for time in sorted({change.time for change in pluses + minuses}):
            found += self.net_changes([c for c in pluses if c.time == time], [c for c in minuses if c.time == time])
        return found

    def net_changes(self, pluses: list[Change], minuses: list[Change]) -> list[Change]:
        return net(pluses, minuses)

    # -- queries -------------------------------------------------------------------------------------------------

    def submit(self, meaning: Meaning, history: str = "new", emit: str = "commit") -> int:
        number = self._next_query
        query = self.bind(meaning, history, self.seq)
        query.emit = emit
        self._next_query += 1
        self.queries[number] = query
        if history == "window" or not query.streams:
            self.open_in_commit(number, query, [])
        else:
            self._open(query)
        return number

    def replace(self, number: int, meaning: Meaning) -> None:
        """Another text under the same id: one commit holds the difference of the two answers."""
        old = self.queries[number]
        new = self.bind(meaning, old.history, old.born)
        if old.kept is not None or new.is_stream != old.is_stream:
            raise ValueError("a paused query is not replaced, nor a relation by a stream")
        new.emit = old.emit
        before = self.answer(number)
        self.queries[number] = new
        self.open_in_commit(number, new, before)

    def cancel(self, number: int) -> None:
        del self.queries[number]

    def pause(self, number: int) -> None:
        self.queries[number].kept = self.answer(number)

    def resume(self, number: int) -> None:
        query = self.queries[number]
        kept, query.kept = query.kept, None
        query.born = self.seq
        self.open_in_commit(number, query, kept or [])

    def bind(self, meaning: Meaning, history: str, born: int) -> Query:
        """A query with what its names stand for; refuses what the language refuses."""
        inputs = meaning.inputs
        streams = frozenset(k for k, item in enumerate(inputs) if item.source in self.streams)
        timelines = {self.streams[inputs[k].source].timeline for k in streams} or {"main"}
        is_stream = any(inputs[k].window is None for k in streams)
        unbounded = any(inputs[k].window == Window() for k in streams)
        windowed_table = any(item.window and k not in streams for k, item in enumerate(inputs))
        if len(timelines) > 1 or windowed_table or (len(streams) > 1 and (is_stream or unbounded)):
            raise ValueError("one timeline, no window on a table, and a bounded one on each stream of a join")
        if not 1 <= len(inputs) <= MAX_INPUTS:
            raise ValueError(f"1 to {MAX_INPUTS} FROM items, not {len(inputs)}")
        tables = {k: self.tables[item.source] for k, item in enumerate(inputs) if k not in streams}
        frozen = {k: table for k, table in tables.items() if streams and (is_stream or not table.retroactive)}
        return Query(meaning, streams, frozen, is_stream, timelines.pop(), history, born)

    def open_in_commit(self, number: int, query: Query, before: list[Value]) -> None:
        """A commit that takes the answer `before` to what the query sees at once."""
        self.seq += 1
        self._open(query)
        now = _at(self._now(query.timeline))
        changes = []
        if not query.is_stream:
            pluses = [Change(1, now, result.value) for result in query.results]
            changes = self._emitted(query, pluses, [Change(-1, now, value) for value in before])
        self._finish({number: changes} if changes else {})

    def _open(self, query: Query) -> None:
        """Start from what the query may see now, as if all of it had come in this instant."""
        now = self._now(query.timeline)
        query.opened = self.seq
        query.parts = [[] for _ in query.meaning.inputs]
        query.seen_from = [0] * len(query.parts)
        for k, item in enumerate(query.meaning.inputs):
            if k in query.streams:
                stream = self.streams[item.source]
                query.seen_from[k] = self._first_seen(query, stream) if item.window else len(stream.taken)
            if k in query.streams and item.window:
                entries = enumerate(stream.taken[query.seen_from[k] :], query.seen_from[k])
                parts = [self.part_of(query, k, position, taken) for position, taken in entries]
                self._displace(item.window, parts)
                query.parts[k] = self._remaining(query, k, parts, now)
                for part in query.parts[k]:
                    part.start = now
            elif k not in query.streams and k not in query.frozen:
                versions = self.tables[item.source].at(self.seq)
                query.parts[k] = [self.version_part(query, version) for version in versions]
        query.results = self.results_of(query)
        query.complete_since = self._complete_since(query)

    def _first_seen(self, query: Query, stream: Stream) -> int:
        """Position of the first row the query may see when it is opened."""
        if query.history == "window":
            return stream.stored_from
        born = sum(taken.seq <= query.born for taken in stream.taken)
        return max(stream.stored_from, born)

    # -- what is stored ------------------------------------------------------------------------------------------

    def _settle_store(self) -> None:
        """Let go of the rows before the oldest that somebody wants."""
        for stream in self.streams.values():
            windows = {Window(stream.keep)} if stream.keep else set()
            for query in self.queries.values():
                items = [item for item in query.meaning.inputs if item.source == stream.name and query.kept is None]
                windows |= {item.window for item in items if item.window}
            if stream.taken:
                now = self.T[stream.timeline]
                wanted = [self._oldest(stream, window, now) for window in windows]
                stream.stored_from = max(stream.stored_from, min(wanted, default=len(stream.taken)))

    def _oldest(self, stream: Stream, window: Window, now: int) -> int:
        """Position of the oldest row that a window holds, of those stored; the end if there is none."""
        inside = contents(window, stream.taken, stream.stored_from, now)
        return next((position for position in inside if stream.own_ends[position] > now), len(stream.taken))

    def _complete_since(self, query: Query) -> int | None:
        """From when on no row is missing that was taken before the query could see it."""
        now = self.T.get(query.timeline)
        since: float | None = now
        for k in query.streams:
            window = query.meaning.inputs[k].window
            stream = self.streams[query.meaning.inputs[k].source]
            if window is None or since is None or now is None:
                continue
            for i in contents(window, stream.taken, 0, now):
                if i < query.seen_from[k] and stream.own_ends[i] > now:
                    since = max(since, min(stream.taken[i].t + window.width, stream.own_ends[i]))
        return None if since is None or since == math.inf else int(since)

    # -- reading -------------------------------------------------------------------------------------------------

    def alive(self, number: int) -> list[Result]:
        """The results that make up a running query's answer, oldest first."""
        query = self.queries[number]
        if query.is_stream:
            return query.results[-NEWEST:]
        return [result for result in query.results if not result.gone]

    def answer(self, number: int) -> list[Value]:
        kept = self.queries[number].kept
        return [r.value for r in self.alive(number)] if kept is None else kept

    def answer_at(self, number: int, time: int) -> list[Value]:
        """A running relation's answer after all events of that instant; not before it was opened.

        A time after `T` means: if nothing more came.
        """
        return [r.value for r in self.queries[number].results if r.start <= time < r.end]

    def changes(self, number: int, since: int) -> list[tuple[int, Change]]:
        """All changes after commit `since`, as (seq, change)."""
        return [(s, change) for s in range(since + 1, self.seq + 1) for change in self.commits[s].get(number, [])]


def _at(time: float) -> int:
    """The time of a change; 0 while the timeline has no clock."""
    return 0 if time == -math.inf else int(time)
