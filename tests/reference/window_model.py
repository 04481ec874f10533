"""The model of the whole language: the engine's calls, run event by event over trees of operators.

    events      in order of (time, scheduled ends before arrivals, order of the commit); after each, every running query's
                tree is stepped (`running.py`). An instant is closed before the first event after it.
    answer      what the tree holds after the last event; of a stream, the newest 1,000 rows it emitted
    changes     differences of the answer as a bag from event to event, and then
                emit="event":   one net change set for each instant of the commit
                emit="commit":  net over the commit by value; the + with the latest times and the - with the latest remain

Clocks, fronts and lateness are those of `timelines.py`, on timeline main; tables those of `tables.py`. Keyed streams
(`semantics.md` 34) are here: a row of a key ends the live one of that key, `retract` waits among the rows of its stream.

Choices where the text leaves room:

* A retraction is an input of its stream like a row: it moves what the stream has seen, so it is released as a row of its time
  would be, and the clock with it. It is never dropped: a late one takes effect at once.
* A row whose `end` is not after its start replaces the live row of its key all the same, and takes its place in [ROWS n].
* `submit` is a commit if there is history, if it reads no stream of the engine, or if its answer is not empty at once (a scalar
  aggregate); what it sees at once is + at `T`.
* `history="window"` reads rows that `keep` holds; what windows of other queries store is `naive.py`'s business.
* The changes of one commit come in the order of their times, of one time - before +, for emit="event"; for "commit" - before +.
* A paused query that others read, and its replacement, are left out: the text does not say what they see.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.reference.binding import Binder, Opening, check_meaning
from tests.reference.changes import Change, net
from tests.reference.contents import Arrived, Event
from tests.reference.naive import NEWEST
from tests.reference.operators import Tree, items, named
from tests.reference.running import bag
from tests.reference.tables import Table
from tests.reference.timelines import Receipt, Released, Stream, Timelines
from tests.reference.values import Row, Value, canonical_row


class Retraction(dict[str, Any]):
    """The key columns of a row that a stream takes back; waits among the stream's rows."""


@dataclass
class Keyed:
    """What a stream has beyond `timelines.Stream`."""

    key: tuple[str, ...]
    end: str | None
    arrived: list[Arrived] = field(default_factory=list)
    #: the last row of each key that was neither retracted nor replaced
    live: dict[Value, Arrived] = field(default_factory=dict)
    #: (key columns, event) of every retraction
    retracted: list[tuple[Row, int]] = field(default_factory=list)
    n_unknown: int = 0
    n_ended: int = 0


@dataclass
class Query:
    tree: Tree
    history: str
    emit: str
    #: the last commit before its submit or resume
    born: int
    opening: Opening | None = None
    #: the answer at the pause; None iff running
    kept: list[Value] | None = None


class WindowModel(Timelines):
    """The model. `commits[seq][number]` are the changes of a query, in the order a reader sees them."""

    def __init__(self, clock: Callable[[], int] = lambda: 0) -> None:
        super().__init__(clock)
        self.keyed: dict[str, Keyed] = {}
        self.tables: dict[str, Table] = {}
        self.queries: dict[int, Query] = {}
        self.names: dict[str, int] = {}
        self.openings: list[Opening] = []
        self.events: list[Event] = []
        self.commits: dict[int, dict[int, list[Change]]] = {}
        #: time of the last event
        self.now = -math.inf
        self._closed = True
        #: (time, changes) by query and event of the commit that runs
        self._steps: dict[int, list[tuple[float, Counter[Value]]]] = defaultdict(list)
        self._next_query = 0

    def create_stream(  # type: ignore[override]  # keyed streams are of this model only
        self,
        name: str,
        *,
        time: str = "ts",
        lateness: int = 0,
        late: str = "adjust",
        keep: int | None = None,
        key: Sequence[str] = (),
        end: str | None = None,
    ) -> None:
        super().create_stream(name, time=time, lateness=lateness, late=late, keep=keep)
        self.keyed[name] = Keyed(tuple(key), end)

    def create_table(self, name: str, *, key: Sequence[str], retroactive: bool = False) -> None:
        self.tables[name] = Table(name, tuple(key), retroactive)

    # -- input -------------------------------------------------------------------------------------------------------

    def _lives(self, stream: str) -> list[float]:
        running = [query for query in self.queries.values() if query.kept is None]
        windows = [item.window for query in running for item in items(query.tree) if item.source == stream and item.is_base]
        return [math.inf if window is None else window.width for window in windows]

    def push(self, name: str, rows: list[Row]) -> Receipt:
        return self.push_many({name: rows})[name]

    def push_many(self, batches: Mapping[str, list[Row]]) -> dict[str, Receipt]:
        receipts = {name: self.accept_rows(self.streams[name], rows) for name, rows in batches.items()}
        self._commit(self._releasable(batches))
        return receipts

    def retract(self, name: str, keys: Sequence[Sequence[Any]], time: int) -> None:
        stream = self.streams[name]
        front = self.front(stream)
        t = time if front is None else max(time, front)
        stream.seen = time if stream.seen is None else max(time, stream.seen)
        for key in keys:
            # between the last row accepted and the next one
            order = stream.n_accepted - 0.5
            stream.waiting.append((t, order, Retraction(zip(self.keyed[name].key, key, strict=True))))  # type: ignore[arg-type]
        stream.waiting.sort(key=lambda entry: entry[:2])
        self._commit(self._releasable({name: None}))

    def advance(self, time: int) -> bool:
        """Release every stream up to `time`; returns whether that was a commit."""
        if "main" in self.T and time < self.T["main"]:
            return False
        self._commit(self._releasable_by(time, "main"), time)
        return True

    def upsert(self, table: str, rows: Sequence[Row]) -> None:
        self.tables[table].upsert(rows, self.seq + 1)
        self._commit([], table=True)

    def delete(self, table: str, keys: Sequence[Sequence[object]]) -> None:
        self.tables[table].delete(keys, self.seq + 1)
        self._commit([], table=True)

    # -- events ------------------------------------------------------------------------------------------------------

    def _commit(self, released: list[Released], advanced: int | None = None, table: bool = False) -> None:
        self.seq += 1
        self._take(released)
        if advanced is not None:
            self._move("main", advanced)
            self._pass(advanced)
        if table:
            self.make_event("table")
        self._finish()

    def _finish(self) -> None:
        changed = {number: self.changes_of(number, steps) for number, steps in self._steps.items()}
        self.commits[self.seq] = {number: changes for number, changes in changed.items() if changes}
        self._steps.clear()

    def _take(self, released: list[Released]) -> None:
        """Rows and retractions take effect in order of (t, order of their stream, row)."""
        before = self.T.get("main")
        for t, _, stream, row in sorted(released, key=lambda entry: entry[:2]):
            start = self._start(t, before)
            self._pass(start)
            self._move("main", t)
            if isinstance(row, Retraction):
                self._retract(stream, row)
            else:
                self._arrive(stream, row, t, start)

    def _pass(self, time: float) -> None:
        """Let all happen that is due up to `time`: scheduled ends instant by instant, each instant closed before the next."""
        while True:
            running = [query.opening.root for query in self.queries.values() if query.opening and query.opening.root]
            due = min((root.due(self.now) for root in running), default=math.inf)
            if min(due, time) > self.now and not self._closed:
                self.make_event("close")
                self._closed = True
            elif due <= time:
                self.now = due
                self.make_event("ends")
            else:
                self.now = max(self.now, time)
                return

    def _arrive(self, stream: Stream, row: Row, t: int, start: int) -> None:
        keyed = self.keyed[stream.name]
        arrived = Arrived(row, t, start, self.seq, len(self.events))
        if keyed.end and row[keyed.end] is not None:
            arrived.until = row[keyed.end]
            keyed.n_ended += arrived.until <= start
        if keyed.key:
            key = canonical_row(row[column] for column in keyed.key)
            self._end(keyed.live.get(key))
            keyed.live[key] = arrived
        keyed.arrived.append(arrived)
        self.make_event("arrival")

    def _retract(self, stream: Stream, key: Retraction) -> None:
        keyed = self.keyed[stream.name]
        found = keyed.live.pop(canonical_row(key.values()), None)
        keyed.n_unknown += found is None or found.until <= self.now
        keyed.retracted.append((dict(key), len(self.events)))
        self._end(found)
        self.make_event("retraction")

    def _end(self, row: Arrived | None) -> None:
        if row is not None:
            row.gone = True

    def make_event(self, kind: str) -> Event:
        event = Event(len(self.events), kind, self.now, self.seq)
        self.events.append(event)
        self._closed = kind == "close"
        for number in sorted(self.queries):
            opening = self.queries[number].opening
            if opening is not None:
                self._step(number, opening, event)
        return event

    def _step(self, number: int, opening: Opening, event: Event) -> None:
        root = opening.root
        assert root is not None
        before = root.rows
        root.step(event)
        if opening.tree.is_stream:
            values = [canonical_row(row) for row in root.emitted]
            opening.emitted += [(event.number, value) for value in values]
            if values:
                self._steps[number].append((event.time, Counter(values)))
        elif root.rows is not before:
            after = bag(root.rows)
            difference = Counter(after)
            difference.subtract(opening.answers[-1][1])
            if any(difference.values()):
                opening.answers.append((event.number, after))
                self._steps[number].append((event.time, difference))

    def changes_of(self, number: int, steps: list[tuple[float, Counter[Value]]]) -> list[Change]:
        """The changes of a commit from those of its events."""
        if self.queries[number].emit == "commit" and not self.queries[number].tree.is_stream:
            return _netted(steps)
        by_instant: dict[float, list[tuple[float, Counter[Value]]]] = defaultdict(list)
        for time, difference in steps:
            by_instant[time].append((time, difference))
        return [change for instant in by_instant.values() for change in _netted(instant)]

    # -- queries -----------------------------------------------------------------------------------------------------

    def submit(self, tree: Tree, history: str = "new", emit: str = "commit", name: str | None = None) -> int:
        number = self._next_query
        self._next_query += 1
        check_meaning(tree, self.tables)
        self.queries[number] = Query(tree, history, emit, self.seq)
        if name is not None:
            self.names[name] = number
        commit = history == "window" or not any(item.is_base for item in items(tree))
        self._open(number, [], commit)
        return number

    def replace(self, number: int, tree: Tree) -> None:
        query = self.queries[number]
        if query.kept is not None or tree.is_stream != query.tree.is_stream or self.readers(number):
            raise ValueError("a paused query is not replaced, nor a relation by a stream, nor one that is read")
        before = self.answer(number)
        query.tree = tree
        self._close(number)
        self._open(number, before, commit=True)

    def cancel(self, number: int) -> None:
        if self.readers(number):
            raise ValueError("queries read it")
        self._close(number)
        del self.queries[number]
        self.names = {name: n for name, n in self.names.items() if n != number}

    def pause(self, number: int) -> None:
        if self.readers(number):
            raise ValueError("queries read it")
        self.queries[number].kept = self.answer(number)
        self._close(number)

    def resume(self, number: int) -> None:
        query = self.queries[number]
        kept, query.kept = query.kept, None
        query.born = self.seq
        self._open(number, kept or [], commit=True)

    def readers(self, number: int) -> list[int]:
        """The queries that name it."""
        mine = {name for name, n in self.names.items() if n == number}
        return [n for n, query in self.queries.items() if named(query.tree) & mine]

    def _close(self, number: int) -> None:
        opening = self.queries[number].opening
        if opening is not None:
            opening.closed = len(self.events) - 1
            self.queries[number].opening = None

    def _open(self, number: int, before: list[Value], commit: bool) -> None:
        """Start from what the query sees at once; `before` is the answer it had."""
        query = self.queries[number]
        self.seq += commit
        opening = Opening(number, query.tree, self.seq, len(self.events))
        opening.reads = {name: self._opening_of(name) for name in named(query.tree)}
        binder = Binder(opening, self.tables, lambda name: self.keyed[name].arrived, lambda name: self._first_seen(query, name))
        opening.root = binder.bind(query.tree)
        # the event steps all queries, this one by itself: its answer is no change of an event
        event = self.make_event("open")
        opening.root.step(event)
        query.opening = opening
        self.openings.append(opening)
        answer = bag(opening.root.rows)
        opening.answers.append((event.number, answer))
        if query.tree.is_stream:
            if commit:
                self._finish()
            return
        if answer and not commit:
            self.seq += 1
            commit = True
        if commit:
            difference = Counter(answer)
            difference.subtract(before)
            self._steps[number].append((self.now, difference))
            self._finish()

    def _first_seen(self, query: Query, name: str) -> int:
        """Position of the first row of a stream that a window of the query may hold when it is opened."""
        arrived = self.keyed[name].arrived
        if query.history != "window":
            return sum(row.seq <= query.born for row in arrived)
        keep = self.streams[name].keep
        if keep is None:
            raise ValueError(f"stream {name} keeps no rows for later queries")
        return sum(row.t + keep <= self.now for row in arrived)

    def _opening_of(self, name: str) -> Opening:
        opening = self.queries[self.names[name]].opening
        if opening is None:
            raise ValueError(f"{name} is paused")
        return opening

    # -- reading -----------------------------------------------------------------------------------------------------

    def answer(self, number: int) -> list[Value]:
        query = self.queries[number]
        if query.opening is None:
            return query.kept or []
        if query.tree.is_stream:
            return [value for _, value in query.opening.emitted[-NEWEST:]]
        return list(query.opening.answers[-1][1].elements())

    def changes(self, number: int, since: int) -> list[tuple[int, Change]]:
        """All changes after commit `since`, as (seq, change)."""
        return [(s, change) for s in range(since + 1, self.seq + 1) for change in self.commits[s].get(number, [])]


def _netted(steps: list[tuple[float, Counter[Value]]]) -> list[Change]:
    def signed(sign: int) -> list[Change]:
        return [
            Change(sign, 0 if time == -math.inf else int(time), value)
            for time, difference in steps
            for value, n in difference.items()
            for _ in range(n * sign)
        ]

    return net(signed(1), signed(-1))
