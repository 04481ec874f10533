"""Cleanse: an input put in order, so that a simpler merge can take it (the LMerge paper, VI-D). With R1 it is the baseline of R3.

    events[n]    start, payload, end, 1 while the number is in use, the next copy; end = start: removed, but not taken out yet
    table        from a hash of (start, payload, end) to the first of its copies that are not removed (`lineage/hash_table.py`)
    heap         all numbers in use, the smallest (start, payload) first

An event is given out once every event with its start, and every one before it, is frozen. So starts never fall, the events of one
start come together in order of payload and end, and the stable point given out is the smallest start held, or the input's own if
nothing is held (L11: the paper releases every frozen event at once, also one that starts after an event that may still move).

Cost: an insert and the release of an event take the logarithm of the number held, an adjust is two searches. A stable that
releases nothing looks at one event: the one with the latest end of those with the smallest start. After a stable that reaches
beyond it they are looked at once more.

An element that breaks a promise of its own stream is dropped and counted.
"""

from __future__ import annotations

import numpy as np

from lineage.elements import BEGINNING, FOREVER
from lineage.growth import LEAST, fitted, fitted_rows
from lineage.hash_table import delete_entry, entry_of, hash_of, move_entries, number_of, table_shift
from lineage.kernels import Number, called, inline, kernel
from lineage.numbers import Numbers, hand_out, take_back
from lmerge.streams.elements import INSERT, STABLE, ElementBatch, hash_event

#: Removed events that may stay in the heap of an empty Cleanse.
_FEW = 1024
#: Fields of an event.
_START, _PAYLOAD, _END, _USED, _NEXT = range(5)
#: Places of `header`: the input's point and the one given out; events in the heap and held; which one holds the others back;
#: outputs; numbers taken back; elements dropped; places of the table and of runs looked at.
_SAID, _GIVEN, _N_HEAP, _N_HELD, _BLOCKER, _N_OUT, _N_FREED, _N_DROPPED, _LOOKED = range(9)


class Cleanse:
    """Elements of one input, held until they are frozen and given out as inserts in order of their starts."""

    def __init__(self) -> None:
        self._numbers = Numbers()
        self._events = np.zeros((LEAST, 5), np.int64)
        self._table = np.zeros(2 * LEAST, np.int64)
        self._heap = np.zeros(LEAST, np.int64)
        self._header = np.array([BEGINNING, BEGINNING, 0, 0, -1, 0, 0, 0, 0], np.int64)

    @property
    def stable(self) -> int:
        """The last stable point given out."""
        return int(self._header[_GIVEN])

    @property
    def n_held(self) -> int:
        """Events that wait."""
        return int(self._header[_N_HELD])

    @property
    def n_dropped(self) -> int:
        """Elements that broke a promise of their own stream."""
        return int(self._header[_N_DROPPED])

    @property
    def n_looked(self) -> int:
        """Places of the table and events in runs of copies that were looked at, in all."""
        return int(self._header[_LOOKED])

    @property
    def bytes(self) -> int:
        """Bytes of state, without the rows behind the payloads: one for every event held."""
        return self._events.nbytes + self._table.nbytes + self._heap.nbytes + self._numbers.bytes

    def push(self, batch: ElementBatch) -> ElementBatch:
        """Take elements; returns the inserts and stables that they let out."""
        n_inserts = int(np.count_nonzero(batch.kinds == INSERT))
        if self._numbers.reserve(n_inserts, self._events[:, _USED]):
            self._fit()
        room = self.n_held + len(batch.kinds) if STABLE in batch.kinds else 0
        out = np.empty((3, room), np.int64)
        pool = (self._numbers.free, self._numbers.header)
        self._header[_N_OUT] = self._header[_N_FREED] = 0
        _cleanse(tuple(batch), self._events, self._table, self._heap, pool, self._header, out)
        n_out = int(self._header[_N_OUT])
        n_freed = int(self._header[_N_FREED]) + self._take_out_removed()
        if self._numbers.shrink(n_freed, self._events[:, _USED], int(self._header[_N_HEAP])):
            self._fit()
        starts, payloads, ends = (np.ascontiguousarray(column[:n_out]) for column in out)
        # no life is empty, so a stable is told by its start
        kinds = np.where(starts == FOREVER, STABLE, INSERT)
        return ElementBatch(kinds, np.where(kinds == STABLE, 0, starts), payloads, np.zeros(n_out, np.int64), ends)

    def _take_out_removed(self) -> int:
        """Take removed events out of the heap where they are more than half of it; returns how many."""
        heap = self._heap[: self._header[_N_HEAP]]
        if len(heap) <= 2 * self.n_held + _FEW:
            return 0
        events = self._events[heap]
        held = events[:, _END] > events[:, _START]
        removed, kept = heap[~held], heap[held]
        self._events[removed, _USED] = 0
        self._numbers.give(removed)
        # what is in order is a heap
        self._heap[: len(kept)] = kept[np.lexsort((self._events[kept, _PAYLOAD], self._events[kept, _START]))]
        self._header[_N_HEAP] = len(kept)
        return len(removed)

    def _fit(self) -> None:
        """Give the arrays the capacity of the numbers."""
        capacity = self._numbers.capacity
        self._events = fitted_rows(self._events, capacity)
        self._heap = fitted(self._heap, capacity)
        old, self._table = self._table, np.zeros(2 * capacity, np.int64)
        move_entries(old, self._table)

    def check(self) -> None:
        """Assert that heap, table and events agree, and that nothing is held that could go."""
        used = self._events[:, _USED]
        self._numbers.check(used)
        heap = self._heap[: self._header[_N_HEAP]]
        assert sorted(heap.tolist()) == np.flatnonzero(used).tolist(), "every number in use is in the heap once"
        parents = self._events[heap[(np.arange(1, len(heap)) - 1) // 2]]
        children = self._events[heap[1:]]
        before = parents[:, _START] < children[:, _START]
        equal = (parents[:, _START] == children[:, _START]) & (parents[:, _PAYLOAD] <= children[:, _PAYLOAD])
        assert (before | equal).all(), "no event stands before its parent"
        held = heap[self._events[heap, _END] > self._events[heap, _START]]
        numbers = []
        for number in ((self._table[self._table != 0] & 0xFFFFFFFF) - 1).tolist():
            while number >= 0:
                numbers.append(number)
                number = int(self._events[number, _NEXT])
        assert sorted(numbers) == sorted(held.tolist()), "the table has every event that is held"
        assert len(held) == self.n_held, "they are counted"
        if len(held) and self._header[_SAID] > BEGINNING:
            starts = self._events[held, _START]
            waiting = self._events[held[starts == starts.min()], _END]
            assert waiting.max() >= self._header[_SAID], "what is frozen and not held back is out"
            assert self.stable <= starts.min(), "no stable point passes what is held"


@inline
def _hash_copy(start: Number, payload: Number, end: Number) -> Number:
    return hash_event(hash_event(start, payload), end)


@inline
def _find(events: Number, table: Number, h: Number, start: Number, payload: Number, end: Number, header: Number) -> Number:
    """Return the place of an event's first copy in the table, or the free place where it would be."""
    mask = np.int64(len(table) - 1)
    at = h >> table_shift(table)
    while table[at] != 0:
        header[_LOOKED] += 1
        if hash_of(table[at]) == h:
            n = number_of(table[at])
            if events[n, _START] == start and events[n, _PAYLOAD] == payload and events[n, _END] == end:
                break
        at = (at + 1) & mask
    return at


@called
def _enter(events: Number, table: Number, number: Number, header: Number) -> None:
    """Put an event into the table, behind the first of its copies if it has one."""
    start, payload, end = events[number, _START], events[number, _PAYLOAD], events[number, _END]
    h = _hash_copy(start, payload, end)
    at = _find(events, table, h, start, payload, end, header)
    first = number_of(table[at])
    if first < 0:
        events[number, _NEXT] = -1
        table[at] = entry_of(h, number)
    else:
        events[number, _NEXT] = events[first, _NEXT]
        events[first, _NEXT] = number


@called
def _leave(events: Number, table: Number, start: Number, payload: Number, end: Number, header: Number) -> Number:
    """Take one copy of an event out of the table; returns its number, -1 if there is none."""
    at = _find(events, table, _hash_copy(start, payload, end), start, payload, end, header)
    number = number_of(table[at])
    if number >= 0:
        second = events[number, _NEXT]
        if second < 0:
            delete_entry(table, at, table_shift(table))
        else:
            events[number, _NEXT] = events[second, _NEXT]
            number = second
    return number


@inline
def _comes_before(events: Number, a: Number, b: Number) -> Number:
    return events[a, _START] < events[b, _START] or (
        events[a, _START] == events[b, _START] and events[a, _PAYLOAD] < events[b, _PAYLOAD]
    )


@inline
def _rise(events: Number, heap: Number, at: Number) -> None:
    """Move the number at the end of the heap to its place."""
    number = heap[at]
    while at > 0:
        parent = (at - 1) >> 1
        if not _comes_before(events, number, heap[parent]):
            break
        heap[at] = heap[parent]
        at = parent
    heap[at] = number


@inline
def _pop(events: Number, heap: Number, n: Number) -> None:
    """Move the first of a heap of n numbers behind the others, which stay a heap."""
    first, number = heap[0], heap[n - 1]
    at = np.int64(0)
    while True:
        child = 2 * at + 1
        if child >= n - 1:
            break
        if child + 1 < n - 1 and _comes_before(events, heap[child + 1], heap[child]):
            child += 1
        if not _comes_before(events, heap[child], number):
            break
        heap[at] = heap[child]
        at = child
    heap[at] = number
    heap[n - 1] = first


@called
def _sink(events: Number, heap: Number, first: Number, at: Number, n: Number, header: Number) -> None:
    """Move a number of a heap of n, from a place on and the earliest end first, down to where it belongs."""
    number = heap[first + at]
    while 2 * at + 1 < n:
        header[_LOOKED] += 1
        child = 2 * at + 1
        if child + 1 < n and events[heap[first + child + 1], _END] < events[heap[first + child], _END]:
            child += 1
        if events[heap[first + child], _END] >= events[number, _END]:
            break
        heap[first + at] = heap[first + child]
        at = child
    heap[first + at] = number


@inline
def _sort_run(events: Number, heap: Number, first: Number, n: Number, header: Number) -> None:
    """Sort n numbers from a place on by their ends, the latest first."""
    for at in range(n // 2 - 1, -1, -1):
        _sink(events, heap, first, at, n, header)
    for left in range(n - 1, 0, -1):
        heap[first], heap[first + left] = heap[first + left], heap[first]
        _sink(events, heap, first, 0, left, header)


@inline
def _sort_copies(events: Number, heap: Number, first: Number, last: Number, header: Number) -> None:
    """Put numbers that were popped, the last one first, in order: those of equal payloads by their ends."""
    while first < last:
        then = first + 1
        while then < last and events[heap[then], _PAYLOAD] == events[heap[first], _PAYLOAD]:
            then += 1
        _sort_run(events, heap, first, then - first, header)
        first = then


@inline
def _release(events: Number, table: Number, heap: Number, free: Number, taken: Number, header: Number, out: Number) -> None:
    """Give out, start by start, what is frozen up to the first event that is not."""
    said = header[_SAID]
    while header[_N_HEAP] > 0:
        start = events[heap[0], _START]
        blocker = header[_BLOCKER]
        if blocker >= 0 and events[blocker, _USED] != 0 and events[blocker, _START] == start:
            if events[blocker, _END] >= said and events[blocker, _END] > start and said < FOREVER:
                break
        # those of the first start go behind the heap
        n_all = header[_N_HEAP]
        n = n_all
        latest, header[_BLOCKER] = np.int64(-FOREVER), -1
        while n > 0 and events[heap[0], _START] == start:
            _pop(events, heap, n)
            n -= 1
            end = events[heap[n], _END]
            if end > start and end > latest:
                latest, header[_BLOCKER] = end, heap[n]
        if latest >= said and said < FOREVER:
            while n < n_all:
                _rise(events, heap, n)
                n += 1
            break
        header[_N_HEAP] = n
        _sort_copies(events, heap, n, n_all, header)
        for k in range(n_all - 1, n - 1, -1):
            number = heap[k]
            payload, end = events[number, _PAYLOAD], events[number, _END]
            if end > start:
                # whichever copy it is: all of them leave now
                _leave(events, table, start, payload, end, header)
                out[0, header[_N_OUT]], out[1, header[_N_OUT]], out[2, header[_N_OUT]] = start, payload, end
                header[_N_OUT] += 1
                header[_N_HELD] -= 1
            events[number, _USED] = 0
            take_back(number, free, taken)
            header[_N_FREED] += 1


@kernel(
    "void(UniTuple(int64[::1], 5), int64[:, ::1], int64[::1], int64[::1], UniTuple(int64[::1], 2), int64[::1], int64[:, ::1])"
)
def _cleanse(
    batch: tuple[np.ndarray, ...],
    events: np.ndarray,
    table: np.ndarray,
    heap: np.ndarray,
    pool: tuple[np.ndarray, ...],
    header: np.ndarray,
    out: np.ndarray,
) -> None:
    """Take elements in their order; outputs are (start, payload, end), a stable has FOREVER as its start and its point as end."""
    kinds, starts, payloads, olds, ends = batch
    free, taken = pool
    for k in range(len(kinds)):
        start, payload, end = starts[k], payloads[k], ends[k]
        if kinds[k] == STABLE:
            header[_SAID] = max(header[_SAID], end)
            _release(events, table, heap, free, taken, header, out)
            point = header[_SAID]
            if header[_N_HEAP] > 0:
                point = min(point, events[heap[0], _START])
            if point > header[_GIVEN]:
                header[_GIVEN] = point
                out[0, header[_N_OUT]], out[1, header[_N_OUT]], out[2, header[_N_OUT]] = FOREVER, 0, point
                header[_N_OUT] += 1
        elif kinds[k] == INSERT:
            if start < header[_SAID] or end <= start:
                header[_N_DROPPED] += 1
                continue
            number = hand_out(free, taken)
            events[number, _START], events[number, _PAYLOAD], events[number, _END], events[number, _USED] = start, payload, end, 1
            _enter(events, table, number, header)
            heap[header[_N_HEAP]] = number
            _rise(events, heap, header[_N_HEAP])
            header[_N_HEAP] += 1
            header[_N_HELD] += 1
        else:
            number = np.int64(-1)
            if min(olds[k], end) >= header[_SAID] and end >= start:
                number = _leave(events, table, start, payload, olds[k], header)
            if number < 0:
                header[_N_DROPPED] += 1
                continue
            events[number, _END] = end
            if end == start:
                header[_N_HELD] -= 1
            else:
                _enter(events, table, number, header)
