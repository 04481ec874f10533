"""State buffers: which rows are due. All give the same rows in the same order; they differ in what they look at.

    add(slots, ends)         rows with a scheduled end, by slot, in the order they come
    remove(slots)            rows that ended before it
    due(upto, ends)          takes out the rows with end <= upto, in order of (end, order of coming)

| buffer | fits | looks at |
|---|---|---|
| `Fifo` | ends come in order (update pattern weakest) | the rows that are due, and one more |
| `Calendar` | any ends (weak) | the rows of the partitions of time that are due |
| `Scan` | any ends; the papers' list by arrival | every row, every time |
| `Unscheduled` | edges that send every end, found by id (strict, negative tuples) | nothing |

`ends` is the owner's array of scheduled ends by slot; a row without one (FOREVER) is in no buffer. Rows hang in doubly linked
lists through their slots, so that one leaves at once wherever it is: 16 bytes a slot, nothing to sweep.

A calendar has `2 ** b` partitions of `2 ** shift` microseconds each, used in turn: partition `(end >> shift) % 2 ** b`. A
partition is no wider than a step of the clock, so that it is looked at about once, nor than a few rows need, so that they are
quick to sort; there are at most twice as many partitions as rows, and where lives are too long for that, later rounds wait in the
same partition.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from filters.vector import Array
from lineage.kernels import Number, inline, kernel
from windows.growth import LEAST, fitted

#: What ends a list, and stands for the list itself in front of its first row.
_NONE = -1

#: Partitions of the smallest and the largest calendar.
_MIN_PARTITIONS = 16
_MAX_PARTITIONS = 1 << 22
#: A calendar is laid out anew when it looked in vain at this many rows for each one that was due, over the rows it holds.
_VAIN = 4
#: Rows that a partition is made for.
_FEW = 8
#: Due rows of one partition up to this many are sorted where they stand.
_SMALL = 32


@inline
def _append(links: Number, lists: Number, at: Number, slot: Number) -> None:
    """Hang a slot behind the last of a list. `links[slot]` is (next, previous), `lists[at]` (first, last)."""
    last = lists[at, 1]
    links[slot, 0] = _NONE
    links[slot, 1] = last
    if last < 0:
        lists[at, 0] = slot
    else:
        links[last, 0] = slot
    lists[at, 1] = slot


@inline
def _unlink(links: Number, lists: Number, at: Number, slot: Number) -> None:
    after = links[slot, 0]
    before = links[slot, 1]
    if before < 0:
        lists[at, 0] = after
    else:
        links[before, 0] = after
    if after < 0:
        lists[at, 1] = before
    else:
        links[after, 1] = before


@kernel("void(int64[::1], int64[::1], int64[:,::1], int64[:,::1], int64)")
def hang(slots: np.ndarray, ends: np.ndarray, links: np.ndarray, lists: np.ndarray, shift: int) -> None:
    """Each slot into the list of its end."""
    mask = np.int64(len(lists) - 1)
    for k in range(len(slots)):
        _append(links, lists, (ends[slots[k]] >> shift) & mask, slots[k])


@kernel("void(int64[::1], int64[::1], int64[:,::1], int64[:,::1], int64)")
def take_out(slots: np.ndarray, ends: np.ndarray, links: np.ndarray, lists: np.ndarray, shift: int) -> None:
    """Each slot out of the list of its end."""
    mask = np.int64(len(lists) - 1)
    for k in range(len(slots)):
        _unlink(links, lists, (ends[slots[k]] >> shift) & mask, slots[k])


@kernel("int64(int64, int64[::1], int64[:,::1], int64[:,::1], int64[::1])")
def first_due(upto: int, ends: np.ndarray, links: np.ndarray, lists: np.ndarray, found: np.ndarray) -> int:
    """Take the due rows off the front of the one list, in which ends ascend."""
    n = np.int64(0)
    slot = lists[0, 0]
    while slot >= 0 and ends[slot] <= upto:
        found[n] = slot
        n += 1
        slot = links[slot, 0]
    lists[0, 0] = slot
    if slot < 0:
        lists[0, 1] = _NONE
    else:
        links[slot, 1] = _NONE
    return int(n)


@inline
def _sort_small(found: Number, start: Number, stop: Number, ends: Number) -> None:
    """Insertion sort by end; equal ends stay in order."""
    for k in range(start + 1, stop):
        slot = found[k]
        end = ends[slot]
        j = k - 1
        while j >= start and ends[found[j]] > end:
            found[j + 1] = found[j]
            j -= 1
        found[j + 1] = slot


@kernel("void(int64, int64, int64, int64[::1], int64[:,::1], int64[:,::1], int64, int64[::1], int64[::1])")
def calendar_due(
    clock: int,
    upto: int,
    n_partitions: int,
    ends: np.ndarray,
    links: np.ndarray,
    lists: np.ndarray,
    shift: int,
    found: np.ndarray,
    counts: np.ndarray,
) -> None:
    """Take the due rows out of the partitions from the last clock to this one.

    `counts` becomes: rows found, rows looked at, 1 if those of a partition are many and still to be sorted by end.
    """
    mask = np.int64(len(lists) - 1)
    n = np.int64(0)
    looked = np.int64(0)
    unsorted = np.int64(0)
    first = clock >> shift
    for step in range(n_partitions):
        at = (first + step) & mask
        start = n
        slot = lists[at, 0]
        descends = False
        latest = ends[slot] if slot >= 0 else np.int64(0)
        # rows that stay are hung together again; those that leave are only read
        kept = np.int64(_NONE)
        while slot >= 0:
            looked += 1
            after = links[slot, 0]
            end = ends[slot]
            if end <= upto:
                found[n] = slot
                n += 1
                descends |= end < latest
                latest = end
            else:
                links[slot, 1] = kept
                if kept < 0:
                    lists[at, 0] = slot
                else:
                    links[kept, 0] = slot
                kept = slot
            slot = after
        if kept < 0:
            lists[at, 0] = _NONE
        else:
            links[kept, 0] = _NONE
        lists[at, 1] = kept
        if descends:
            if n - start <= _SMALL:
                _sort_small(found, start, n, ends)
            else:
                unsorted = np.int64(1)
    counts[0] = n
    counts[1] = looked
    counts[2] = unsorted


@kernel("int64(int64[::1], int64, int64, int64[::1], int64[::1])")
def scan_due(slots: np.ndarray, n_slots: int, upto: int, ends: np.ndarray, found: np.ndarray) -> int:
    """Take the due rows out of a list, which closes up; they stand in order of coming."""
    n = np.int64(0)
    kept = np.int64(0)
    for k in range(n_slots):
        slot = slots[k]
        if ends[slot] <= upto:
            found[n] = slot
            n += 1
        else:
            slots[kept] = slot
            kept += 1
    return int(n)


@kernel("int64(int64[:,::1], int64[:,::1], int64[::1])")
def list_slots(links: np.ndarray, lists: np.ndarray, found: np.ndarray) -> int:
    """Every row of every list."""
    n = np.int64(0)
    for at in range(len(lists)):
        slot = lists[at, 0]
        while slot >= 0:
            found[n] = slot
            n += 1
            slot = links[slot, 0]
    return int(n)


class Buffer(ABC):
    """Rows with a scheduled end; see the module."""

    __slots__ = ("n_rows", "looked_at")

    def __init__(self) -> None:
        self.n_rows = 0
        #: rows looked at so far in search of those due
        self.looked_at = 0

    @abstractmethod
    def add(self, slots: Array, ends: Array) -> None:
        """Rows in the order they come; `ends` by slot."""

    @abstractmethod
    def remove(self, slots: Array, ends: Array) -> None:
        """Rows that are in here."""

    @abstractmethod
    def due(self, upto: int, ends: Array) -> Array:
        """The slots of the rows with end <= upto, in order of (end, order of coming); they are no longer in here."""

    @property
    @abstractmethod
    def bytes(self) -> int: ...

    @abstractmethod
    def slots(self) -> Array:
        """The rows in here; those of equal end in order of coming."""


class _Linked(Buffer):
    """Lists of rows through their slots."""

    __slots__ = ("_links", "_lists", "_shift")

    def __init__(self, n_lists: int) -> None:
        super().__init__()
        self._lay_out(n_lists)
        self._shift = 0

    def _lay_out(self, n_lists: int) -> None:
        #: (next, previous) of each slot in its list
        self._links = np.zeros((LEAST, 2), np.int64)
        #: (first, last) of each list
        self._lists = np.full((n_lists, 2), _NONE, np.int64)

    def _fit(self, capacity: int) -> None:
        if len(self._links) < capacity:
            links = np.zeros((capacity, 2), np.int64)
            links[: len(self._links)] = self._links
            self._links = links

    def add(self, slots: Array, ends: Array) -> None:
        self._fit(len(ends))
        hang(slots, ends, self._links, self._lists, self._shift)
        self.n_rows += len(slots)

    def remove(self, slots: Array, ends: Array) -> None:
        take_out(slots, ends, self._links, self._lists, self._shift)
        self._left(len(slots))

    def _left(self, n_rows: int) -> None:
        self.n_rows -= n_rows
        if n_rows and not self.n_rows:
            self._lay_out(min(len(self._lists), _MIN_PARTITIONS))

    @property
    def bytes(self) -> int:
        return self._links.nbytes + self._lists.nbytes

    def slots(self) -> Array:
        found = np.empty(self.n_rows, np.int64)
        n = list_slots(self._links, self._lists, found)
        assert n == self.n_rows, "every row hangs in one list"
        return found


class Fifo(_Linked):
    """Ends come in order."""

    __slots__ = ("_last_end",)

    def __init__(self) -> None:
        super().__init__(1)
        #: no later row may end before it
        self._last_end = -(2**63)

    def add(self, slots: Array, ends: Array) -> None:
        if len(slots):
            coming = ends[slots]
            assert coming[0] >= self._last_end and (coming[1:] >= coming[:-1]).all(), "ends come in order"
            self._last_end = int(coming[-1])
            super().add(slots, ends)

    def due(self, upto: int, ends: Array) -> Array:
        found = np.empty(self.n_rows, np.int64)
        n = first_due(upto, ends, self._links, self._lists, found)
        self.looked_at += n + 1
        self._left(n)
        return found[:n]


class Calendar(_Linked):
    """Partitions of time."""

    __slots__ = ("_clock", "_steps", "_vain", "_counts")

    def __init__(self) -> None:
        super().__init__(_MIN_PARTITIONS)
        #: everything before it has been found; None before the first row
        self._clock: int | None = None
        #: sum and number of the clock's steps since the calendar was laid out
        self._steps = [0, 0]
        #: rows looked at in vain or sorted apart since then
        self._vain = 0
        self._counts = np.zeros(3, np.int64)

    def add(self, slots: Array, ends: Array) -> None:
        if len(slots):
            soonest = int(ends[slots].min())
            self._clock = soonest if self._clock is None else min(self._clock, soonest)
            super().add(slots, ends)

    def due(self, upto: int, ends: Array) -> Array:
        if self._clock is None or upto < self._clock:
            return np.zeros(0, np.int64)
        clock = self._clock
        first, last = clock >> self._shift, upto >> self._shift
        found = np.empty(self.n_rows, np.int64)
        span = min(last - first + 1, len(self._lists))
        calendar_due(clock, upto, span, ends, self._links, self._lists, self._shift, found, self._counts)
        n, looked, unsorted = self._counts.tolist()
        found = found[:n]
        if unsorted or last - first >= len(self._lists):
            found = found[np.argsort(ends[found], kind="stable")]
        self._steps[0] += upto - clock
        self._steps[1] += 1
        self._clock = upto
        self.looked_at += looked
        self._left(n)
        self._adapt(n if unsorted else looked - n - _VAIN * n, ends)
        return found

    def _adapt(self, vain: int, ends: Array) -> None:
        """Lay the calendar out anew once that costs no more than what it looks at in vain, or has to sort apart."""
        self._vain = max(0, self._vain + vain)
        if self._vain <= self.n_rows + _MIN_PARTITIONS:
            return
        self._vain = 0
        slots = self.slots()
        coming = ends[slots]
        step = self._steps[0] // self._steps[1]
        span = int(coming.max()) - int(coming.min()) + 1 if len(coming) else 1
        most = min(_MAX_PARTITIONS, max(_MIN_PARTITIONS, 2 * len(slots)))
        shift = max(1, min(step, span * _FEW // max(1, len(slots)))).bit_length() - 1
        n_lists = _MIN_PARTITIONS
        while n_lists < most and (n_lists << shift) <= span:
            n_lists *= 2
        self._steps = [0, 0]
        if (shift, n_lists) != (self._shift, len(self._lists)):
            self._shift = shift
            self._lists = np.full((n_lists, 2), _NONE, np.int64)
            hang(slots, ends, self._links, self._lists, shift)


class Scan(Buffer):
    """A list by order of coming that is looked through every time."""

    __slots__ = ("_slots",)

    def __init__(self) -> None:
        super().__init__()
        #: the first `n_rows` are in use
        self._slots = np.zeros(LEAST, np.int64)

    def add(self, slots: Array, ends: Array) -> None:
        total = self.n_rows + len(slots)
        if total > len(self._slots):
            self._slots = fitted(self._slots, max(total, 2 * len(self._slots)))
        self._slots[self.n_rows : total] = slots
        self.n_rows = total

    def remove(self, slots: Array, ends: Array) -> None:
        here = self._slots[: self.n_rows]
        self._slots = here[~np.isin(here, slots)]
        self.n_rows -= len(slots)
        assert len(self._slots) == self.n_rows, "what is removed was in here"
        self._shrink()

    def due(self, upto: int, ends: Array) -> Array:
        found = np.empty(self.n_rows, np.int64)
        n = scan_due(self._slots, self.n_rows, upto, ends, found)
        self.looked_at += self.n_rows
        self.n_rows -= n
        self._shrink()
        found = found[:n]
        return found[np.argsort(ends[found], kind="stable")]

    def _shrink(self) -> None:
        if not self.n_rows:
            self._slots = np.zeros(LEAST, np.int64)

    @property
    def bytes(self) -> int:
        return self._slots.nbytes

    def slots(self) -> Array:
        return self._slots[: self.n_rows]


class Unscheduled(Buffer):
    """For an edge that sends every end: nothing is ever found due."""

    __slots__ = ()

    def add(self, slots: Array, ends: Array) -> None: ...

    def remove(self, slots: Array, ends: Array) -> None: ...

    def due(self, upto: int, ends: Array) -> Array:
        return np.zeros(0, np.int64)

    @property
    def bytes(self) -> int:
        return 0

    def slots(self) -> Array:
        return np.zeros(0, np.int64)
