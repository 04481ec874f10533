"""A calendar: rows in partitions of time by their scheduled end; due rows are found without looking at the others.

    partition   (end >> shift) % partitions: `2 ** shift` microseconds of time, and the same time of later rounds
    page        up to PAGE entries (slot, end) of one partition; full pages are followed by others, in order of coming
    place       where the entry of a slot stands: a row that ends early leaves a gap at once

Rows come to a page that is in the cache and leave it read from front to back; entries that stay close up. What is due is then
sorted by end, digit by digit. A partition is as wide as a step of the clock, so that it is looked at about once, but holds some
rows at least, so that pages are filled; where lives are longer than all partitions, later rounds wait in the same ones. It is
laid out anew when it looks in vain too often, has more gaps than rows, or was made for many more rows than it has.
"""

from __future__ import annotations

import numpy as np

from filters.values.vector import Array
from lineage.growth import LEAST, fitted, fitted_rows, room_for
from lineage.kernels import Number, inline, kernel
from windows.state.buffer import Buffer

PAGE = 32
_NONE = -1

#: Partitions of the smallest and the largest calendar, and the rows that a partition should have at least.
_MIN_PARTITIONS = 16
_MAX_PARTITIONS = 1 << 20
_FEW = 16
#: How many times as many rows as when it was laid out a calendar may have before it is laid out anew.
_GROWTH = 4

#: Bits of a digit when sorting; up to this many rows are sorted by insertion.
_DIGIT = 11
_SMALL = 32

#: Places of `header`: pages handed out so far, free ones among them.
_HIGH, _N_FREE = 0, 1
#: Places of `counts`: rows found, entries looked at, gaps closed, 1 if not found in order.
_FOUND, _LOOKED, _CLOSED, _UNSORTED = range(4)


@inline
def _free_page(page: Number, free: Number, header: Number) -> None:
    free[header[_N_FREE]] = page
    header[_N_FREE] += 1


@kernel(
    "void(int64[::1], int64[::1], int64[:,::1], int64[:,::1], int64[:,::1], int64[::1], int64[::1], int64[::1], boolean, int64)",
)
def enter_rows(
    slots: np.ndarray,
    ends: np.ndarray,
    entries: np.ndarray,
    pages: np.ndarray,
    partitions: np.ndarray,
    free: np.ndarray,
    header: np.ndarray,
    places: np.ndarray,
    tracks: bool,
    shift: int,
) -> None:
    """Append each row to its partition. `pages[p]` is (entries, next), `partitions[at]` (first page, last page)."""
    mask = np.int64(len(partitions) - 1)
    for k in range(len(slots)):
        slot = slots[k]
        end = ends[k]
        at = (end >> shift) & mask
        page = partitions[at, 1]
        if page < 0 or pages[page, 0] == PAGE:
            last = page
            if header[_N_FREE] > 0:
                header[_N_FREE] -= 1
                page = free[header[_N_FREE]]
            else:
                page = header[_HIGH]
                header[_HIGH] += 1
            pages[page, 0] = 0
            pages[page, 1] = _NONE
            if last < 0:
                partitions[at, 0] = page
            else:
                pages[last, 1] = page
            partitions[at, 1] = page
        place = page * PAGE + pages[page, 0]
        pages[page, 0] += 1
        entries[place, 0] = slot
        entries[place, 1] = end
        if tracks:
            places[slot] = place


@kernel("int64(int64[:,::1], int64[:,::1], int64[:,::1], int64[::1], boolean, int64[::1], int64[::1])")
def list_rows(
    entries: np.ndarray,
    pages: np.ndarray,
    partitions: np.ndarray,
    places: np.ndarray,
    tracks: bool,
    slots: np.ndarray,
    ends: np.ndarray,
) -> int:
    """List all rows, partition by partition in order of coming, and their places; returns how many."""
    n = np.int64(0)
    for at in range(len(partitions)):
        page = partitions[at, 0]
        while page >= 0:
            for place in range(page * PAGE, page * PAGE + pages[page, 0]):
                slot = entries[place, 0]
                if slot >= 0:
                    slots[n] = slot
                    ends[n] = entries[place, 1]
                    n += 1
                    if tracks:
                        places[slot] = place
            page = pages[page, 1]
    return int(n)


@kernel("void(int64[::1], int64[:,::1], int64[::1])")
def leave_gaps(slots: np.ndarray, entries: np.ndarray, places: np.ndarray) -> None:
    """Clear the places of rows that end early."""
    for k in range(len(slots)):
        entries[places[slots[k]], 0] = _NONE


@kernel(
    "void(int64, int64, int64, int64[:,::1], int64[:,::1], int64[:,::1], int64[::1], int64[::1], int64[::1], boolean,"
    "int64[::1], int64[::1], int64[::1])"
)
def take_due(
    first: int,
    n_partitions: int,
    upto: int,
    entries: np.ndarray,
    pages: np.ndarray,
    partitions: np.ndarray,
    free: np.ndarray,
    header: np.ndarray,
    places: np.ndarray,
    tracks: bool,
    slots: np.ndarray,
    ends: np.ndarray,
    counts: np.ndarray,
) -> None:
    """Take the rows with end <= upto out of some partitions; the others close up."""
    mask = np.int64(len(partitions) - 1)
    n = np.int64(0)
    looked = np.int64(0)
    closed = np.int64(0)
    unsorted = np.int64(0)
    latest = np.int64(-0x8000000000000000)
    for step in range(n_partitions):
        at = (first + step) & mask
        page = partitions[at, 0]
        into = page
        filled = np.int64(0)
        while page >= 0:
            after = pages[page, 1]
            n_entries = pages[page, 0]
            looked += n_entries
            for k in range(page * PAGE, page * PAGE + n_entries):
                slot = entries[k, 0]
                end = entries[k, 1]
                if slot < 0:
                    closed += 1
                elif end <= upto:
                    slots[n] = slot
                    ends[n] = end
                    n += 1
                    unsorted |= np.int64(end < latest)
                    latest = end
                else:
                    if filled == PAGE:
                        pages[into, 0] = PAGE
                        into = pages[into, 1]
                        filled = np.int64(0)
                    place = into * PAGE + filled
                    entries[place, 0] = slot
                    entries[place, 1] = end
                    if tracks:
                        places[slot] = place
                    filled += 1
            page = after
        if into >= 0:
            # pages behind the last one that rows stayed in are free; so is that one if none did
            rest = pages[into, 1]
            pages[into, 0] = filled
            pages[into, 1] = _NONE
            partitions[at, 1] = into
            if filled == 0:
                _free_page(into, free, header)
                partitions[at, 0] = _NONE
                partitions[at, 1] = _NONE
            while rest >= 0:
                _free_page(rest, free, header)
                rest = pages[rest, 1]
    counts[_FOUND] = n
    counts[_LOOKED] = looked
    counts[_CLOSED] = closed
    counts[_UNSORTED] = unsorted


@kernel("int64(int64, int64, int64[:,::1], int64[:,::1])")
def count_entries(first: int, n_partitions: int, pages: np.ndarray, partitions: np.ndarray) -> int:
    """Return the number of entries of some partitions, with gaps."""
    mask = np.int64(len(partitions) - 1)
    n = np.int64(0)
    for step in range(n_partitions):
        page = partitions[(first + step) & mask, 0]
        while page >= 0:
            n += pages[page, 0]
            page = pages[page, 1]
    return int(n)


@kernel("boolean(int64[::1], int64[::1], int64, int64, int64[::1], int64[::1], int64[::1])")
def sort_by_end(
    slots: np.ndarray, ends: np.ndarray, soonest: int, latest: int, slots_to: np.ndarray, ends_to: np.ndarray, digits: np.ndarray
) -> bool:
    """Sort rows by end, stably, by insertion or digit by digit; returns whether the result is in `slots_to`."""
    n = len(slots)
    swapped = False
    if n <= _SMALL:
        for k in range(1, n):
            slot = slots[k]
            end = ends[k]
            j = k - 1
            while j >= 0 and ends[j] > end:
                slots[j + 1] = slots[j]
                ends[j + 1] = ends[j]
                j -= 1
            slots[j + 1] = slot
            ends[j + 1] = end
    else:
        mask = (np.int64(1) << _DIGIT) - 1
        shift = np.int64(0)
        while (latest - soonest) >> shift > 0:
            n_digits = min(mask, (latest - soonest) >> shift) + 1
            for d in range(n_digits):
                digits[d] = 0
            for k in range(n):
                digits[((ends[k] - soonest) >> shift) & mask] += 1
            total = np.int64(0)
            for d in range(n_digits):
                count = digits[d]
                digits[d] = total
                total += count
            for k in range(n):
                d = ((ends[k] - soonest) >> shift) & mask
                slots_to[digits[d]] = slots[k]
                ends_to[digits[d]] = ends[k]
                digits[d] += 1
            slots, slots_to = slots_to, slots
            ends, ends_to = ends_to, ends
            swapped = not swapped
            shift += _DIGIT
    return swapped


class Calendar(Buffer):
    """Rows by the time of their end."""

    __slots__ = (
        "_gaps",
        "_clock",
        "_asked",
        "_steps",
        "_vain",
        "_shift",
        "_entries",
        "_pages",
        "_partitions",
        "_free",
        "_header",
        "_places",
        "_tracks",
        "_planned",
    )

    def __init__(self) -> None:
        super().__init__()
        #: everything before it has been found; None before the first row
        self._clock: int | None = None
        #: when it was last asked what is due
        self._asked: int | None = None
        #: sum and number of the clock's steps since the calendar was laid out
        self._steps = [0, 0]
        self._shift = 0
        #: where the entry of each slot stands, kept from the first row on that ends early: most inputs have none
        self._places = np.zeros(LEAST, np.int64)
        self._tracks = False
        self._lay_out(_MIN_PARTITIONS)

    def _lay_out(self, n_partitions: int) -> None:
        """Set up an empty calendar."""
        #: entries looked at in vain
        self._vain = 0
        #: entries without a row
        self._gaps = 0
        self._entries = np.zeros((LEAST * PAGE, 2), np.int64)
        self._pages = np.zeros((LEAST, 2), np.int64)
        self._partitions = np.full((n_partitions, 2), _NONE, np.int64)
        self._free = np.zeros(LEAST, np.int64)
        self._header = np.zeros(2, np.int64)
        #: rows for which partitions are narrow enough
        self._planned = max(self.n_rows, _FEW * _MIN_PARTITIONS) * _GROWTH

    def add(self, slots: Array, ends: Array) -> None:
        if not len(slots):
            return
        coming = ends[slots]
        soonest = int(coming.min())
        self._clock = soonest if self._clock is None else min(self._clock, soonest)
        if self._tracks:
            self._places = fitted(self._places, len(ends))
        self._enter(slots, coming)
        self.n_rows += len(slots)
        if self.n_rows > self._planned:
            self._rearrange()

    def _enter(self, slots: Array, ends: Array) -> None:
        """Put rows with their ends into the pages."""
        needed = self._n_pages + len(slots) // PAGE + min(len(slots), len(self._partitions))
        if needed > len(self._pages):
            n_pages = room_for(needed, len(self._pages))
            self._pages = fitted_rows(self._pages, n_pages)
            self._entries = fitted_rows(self._entries, n_pages * PAGE)
            self._free = fitted(self._free, n_pages)
        enter_rows(
            slots, ends, self._entries, self._pages, self._partitions, self._free, self._header, self._places, self._tracks,
            self._shift,
        )  # fmt: skip

    @property
    def n_partitions(self) -> int:
        return len(self._partitions)

    @property
    def _n_pages(self) -> int:
        """The number of pages in use."""
        return int(self._header[_HIGH] - self._header[_N_FREE])

    def remove(self, slots: Array, ends: Array) -> None:
        if not len(slots):
            return
        if not self._tracks:
            self._tracks = True
            self._places = fitted(self._places, len(ends))
            self._listed()
        leave_gaps(slots, self._entries, self._places)
        self._gaps += len(slots)
        self._left(len(slots))
        if self._gaps > self.n_rows + PAGE * _MIN_PARTITIONS:
            self._rearrange()

    def _left(self, n_rows: int) -> None:
        self.n_rows -= n_rows
        if n_rows and not self.n_rows:
            self._places = np.zeros(LEAST, np.int64)
            self._lay_out(_MIN_PARTITIONS)

    def due(self, upto: int, ends: Array) -> Array:
        if self._asked is not None:
            self._steps[0] += upto - self._asked
            self._steps[1] += 1
        self._asked = upto
        if self._clock is None or upto < self._clock or not self.n_rows:
            return np.zeros(0, np.int64)
        clock, self._clock = self._clock, upto
        first, last = clock >> self._shift, upto >> self._shift
        span = min(last - first + 1, len(self._partitions))
        found = np.empty((2, count_entries(first, span, self._pages, self._partitions)), np.int64)
        counts = np.zeros(4, np.int64)
        take_due(
            first, span, upto, self._entries, self._pages, self._partitions, self._free, self._header, self._places,
            self._tracks, found[0], found[1], counts,
        )  # fmt: skip
        n, looked, closed, unsorted = counts.tolist()
        self._gaps -= closed
        self.looked_at += looked
        slots = found[0, :n]
        if unsorted:
            due = found[1, :n]
            scratch = np.empty((2, n), np.int64)
            digits = np.empty(1 << _DIGIT, np.int64)
            if sort_by_end(slots, due, int(due.min()), int(due.max()), scratch[0], scratch[1], digits):
                slots = scratch[0]
        self._vain = max(0, self._vain + looked - closed - 2 * n + span // 4)
        self._left(n)
        wide = len(self._pages) > 8 * self._n_pages + 64 or len(self._partitions) > self.n_rows + 64
        if wide or self._vain > self.n_rows + len(self._partitions):
            self._rearrange()
        return slots

    def _rearrange(self) -> None:
        """Lay the calendar out anew for the rows it has and the steps the clock takes."""
        slots, coming = self._listed()
        span = int(coming.max() - coming.min()) + 1 if len(slots) else 1
        step = self._steps[0] // max(1, self._steps[1])
        self._shift = max(1, step, span * _FEW // max(1, len(slots))).bit_length() - 1
        n_partitions = _MIN_PARTITIONS
        while n_partitions < _MAX_PARTITIONS and (n_partitions << self._shift) <= span:
            n_partitions *= 2
        self._steps = [step, 1]
        self._lay_out(n_partitions)
        self._enter(slots, coming)

    def _listed(self) -> tuple[Array, Array]:
        """Return all rows and their ends; rows of equal end in order of coming."""
        found = np.empty((2, self.n_rows), np.int64)
        n = list_rows(self._entries, self._pages, self._partitions, self._places, self._tracks, found[0], found[1])
        assert n == self.n_rows, "every row is in a partition"
        return found[0], found[1]

    def slots(self) -> Array:
        return self._listed()[0]

    @property
    def bytes(self) -> int:
        arrays = (self._entries, self._pages, self._partitions, self._free, self._places)
        return sum(array.nbytes for array in arrays)
