"""Cleanse: an input put in order, so that a simpler merge can take it (the LMerge paper, VI-D). With R1 it is the baseline of R3.

    events[n]    start, payload, end, 1 while the number is in use; end = start: removed, but not taken out yet
    table        from a hash of (start, payload) to the numbers of events that are not removed (`lineage/hash_table.py`)
    heap         all numbers in use, the smallest (start, payload) first

An event is given out once every event with its start, and every one before it, is frozen. So starts never fall, the events of one
start come together in order of payload and end, and the stable point given out is the smallest start held, or the input's own if
nothing is held (L11: the paper releases every frozen event at once, also one that starts after an event that may still move).

Cost: an insert and the release of an event take the logarithm of the number held, an adjust is one search. A stable that
releases nothing looks at one event: the one with the latest end of those with the smallest start. After a stable that reaches
beyond it they are looked at once more. Equal payloads of one start are sorted by insertion: bags of many copies are slow.

An element that breaks a promise of its own stream is dropped and counted.
"""

from __future__ import annotations

import numpy as np

from lineage.elements import BEGINNING, FOREVER
from lineage.growth import LEAST, fitted, fitted_rows
from lineage.hash_table import delete_entry, entry_of, hash_of, move_entries, number_of, table_shift
from lineage.kernels import Number, inline, kernel
from lineage.numbers import Numbers, hand_out, take_back
from lmerge.streams.elements import INSERT, STABLE, ElementBatch, hash_event

#: Removed events that may stay in the heap of an empty Cleanse.
_FEW = 1024
#: Fields of an event.
_START, _PAYLOAD, _END, _USED = 0, 1, 2, 3
#: Places of `header`: the input's point and the one given out; events in the heap and held; which one holds the others back;
#: outputs; numbers taken back; elements dropped.
_SAID, _GIVEN, _N_HEAP, _N_HELD, _BLOCKER, _N_OUT, _N_FREED, _N_DROPPED = range(8)


class Cleanse:
    """Elements of one input, held until they are frozen and given out as inserts in order of their starts."""

    def __init__(self) -> None:
        self._numbers = Numbers()
        self._events = np.zeros((LEAST, 4), np.int64)
        self._table = np.zeros(2 * LEAST, np.int64)
        self._heap = np.zeros(LEAST, np.int64)
        self._header = np.array([BEGINNING, BEGINNING, 0, 0, -1, 0, 0, 0], np.int64)

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
        numbers = (self._table[self._table != 0] & 0xFFFFFFFF) - 1
        assert sorted(numbers.tolist()) == sorted(held.tolist()), "the table has every event that is held"
        assert len(held) == self.n_held, "they are counted"
        if len(held) and self._header[_SAID] > BEGINNING:
            starts = self._events[held, _START]
            waiting = self._events[held[starts == starts.min()], _END]
            assert waiting.max() >= self._header[_SAID], "what is frozen and not held back is out"
            assert self.stable <= starts.min(), "no stable point passes what is held"


@inline
def _find(events: Number, table: Number, start: Number, payload: Number, end: Number) -> Number:
    """Return the place of an event in the table; -1 if it is not there."""
    mask = np.int64(len(table) - 1)
    h = hash_event(start, payload)
    at = h >> table_shift(table)
    found = np.int64(-1)
    while table[at] != 0:
        if hash_of(table[at]) == h:
            n = number_of(table[at])
            if events[n, _START] == start and events[n, _PAYLOAD] == payload and events[n, _END] == end:
                found = at
                break
        at = (at + 1) & mask
    return found


@inline
def _enter(table: Number, h: Number, number: Number) -> None:
    """Put an event into the table."""
    mask = np.int64(len(table) - 1)
    at = h >> table_shift(table)
    while table[at] != 0:
        at = (at + 1) & mask
    table[at] = entry_of(h, number)


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


@inline
def _sort_copies(events: Number, heap: Number, first: Number, last: Number) -> None:
    """Put numbers that were popped, the last one first, in order: those of equal payloads by their ends."""
    for k in range(last - 2, first - 1, -1):
        number = heap[k]
        at = k
        while at + 1 < last and (
            events[heap[at + 1], _PAYLOAD] == events[number, _PAYLOAD] and events[heap[at + 1], _END] > events[number, _END]
        ):
            heap[at] = heap[at + 1]
            at += 1
        heap[at] = number


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
        _sort_copies(events, heap, n, n_all)
        for k in range(n_all - 1, n - 1, -1):
            number = heap[k]
            payload, end = events[number, _PAYLOAD], events[number, _END]
            if end > start:
                delete_entry(table, _find(events, table, start, payload, end), table_shift(table))
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
            _enter(table, hash_event(start, payload), number)
            heap[header[_N_HEAP]] = number
            _rise(events, heap, header[_N_HEAP])
            header[_N_HEAP] += 1
            header[_N_HELD] += 1
        else:
            at = _find(events, table, start, payload, olds[k])
            if at < 0 or min(olds[k], end) < header[_SAID] or end < start:
                header[_N_DROPPED] += 1
                continue
            events[number_of(table[at]), _END] = end
            if end == start:
                delete_entry(table, at, table_shift(table))
                header[_N_HELD] -= 1
