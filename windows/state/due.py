"""State buffers, which find the rows that are due. All give the same rows in the same order, at different cost.

    add(slots, ends)         rows with a scheduled end, by slot, in the order they come
    remove(slots, ends)      rows that ended before it
    due(upto, ends)          takes out the rows with end <= upto, in order of (end, order of coming)

| buffer | fits | looks at |
|---|---|---|
| `Fifo` | ends come in order (update pattern weakest) | the rows that are due, and one more |
| `Calendar` (`windows/state/calendar.py`) | any ends (weak) | the rows of the partitions of time that are due |
| `Scan` | any ends; the papers' list by arrival | every row, every time |
| `Unscheduled` | edges that send every end, found by id (strict, negative tuples) | nothing |

`ends` is the owner's array of scheduled ends by slot; a row without one (FOREVER) is in no buffer.
"""

from __future__ import annotations

import numpy as np

from filters.values.vector import Array
from lineage.growth import LEAST, fitted, fitted_rows
from lineage.kernels import kernel
from windows.state.buffer import Buffer as Buffer
from windows.state.calendar import Calendar as Calendar

#: What ends a list.
_NONE = -1


@kernel("void(int64[::1], int64[:,::1], int64[::1])")
def append_slots(slots: np.ndarray, links: np.ndarray, ends: np.ndarray) -> None:
    """Append each slot to the list. `links[slot]` is (next, previous), `ends` (first, last)."""
    for k in range(len(slots)):
        slot = slots[k]
        last = ends[1]
        links[slot, 0] = _NONE
        links[slot, 1] = last
        if last < 0:
            ends[0] = slot
        else:
            links[last, 0] = slot
        ends[1] = slot


@kernel("void(int64[::1], int64[:,::1], int64[::1])")
def unlink_slots(slots: np.ndarray, links: np.ndarray, ends: np.ndarray) -> None:
    """Remove each slot from the list."""
    for k in range(len(slots)):
        after = links[slots[k], 0]
        before = links[slots[k], 1]
        if before < 0:
            ends[0] = after
        else:
            links[before, 0] = after
        if after < 0:
            ends[1] = before
        else:
            links[after, 1] = before


@kernel("int64(int64, int64[::1], int64[:,::1], int64[::1], int64[::1])")
def first_due(upto: int, times: np.ndarray, links: np.ndarray, ends: np.ndarray, found: np.ndarray) -> int:
    """Take the due rows off the front of the list, in which their times ascend."""
    n = np.int64(0)
    slot = ends[0]
    while slot >= 0 and times[slot] <= upto:
        found[n] = slot
        n += 1
        slot = links[slot, 0]
    ends[0] = slot
    if slot < 0:
        ends[1] = _NONE
    else:
        links[slot, 1] = _NONE
    return int(n)


@kernel("int64(int64[:,::1], int64[::1], int64[::1])")
def list_slots(links: np.ndarray, ends: np.ndarray, found: np.ndarray) -> int:
    """Write the slots of a buffer's list of rows in order; returns how many."""
    n = np.int64(0)
    slot = ends[0]
    while slot >= 0:
        found[n] = slot
        n += 1
        slot = links[slot, 0]
    return int(n)


@kernel("int64(int64[::1], int64, int64, int64[::1], int64[::1])")
def scan_due(slots: np.ndarray, n_slots: int, upto: int, ends: np.ndarray, found: np.ndarray) -> int:
    """Take the due rows out of a list, which closes up; they are in order of coming."""
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


class Fifo(Buffer):
    """A linked list of rows, for ends that come in order."""

    __slots__ = ("_links", "_ends", "_last_end")

    def __init__(self) -> None:
        super().__init__()
        #: no later row may end before it
        self._last_end = -(2**63)
        self._reset()

    def _reset(self) -> None:
        #: (next, previous) of each slot
        self._links = np.zeros((LEAST, 2), np.int64)
        #: the first and the last slot
        self._ends = np.full(2, _NONE, np.int64)

    def add(self, slots: Array, ends: Array) -> None:
        if len(slots):
            assert self.fits(slots, ends), "ends come in order"
            self._last_end = int(ends[slots[-1]])
            if len(self._links) != len(ends):
                self._links = fitted_rows(self._links, len(ends))
            append_slots(slots, self._links, self._ends)
            self.n_rows += len(slots)

    def fits(self, slots: Array, ends: Array) -> bool:
        """Return whether rows that come end in order, and after all that came."""
        coming = ends[slots]
        return len(coming) == 0 or (coming[0] >= self._last_end and bool((coming[1:] >= coming[:-1]).all()))

    def as_calendar(self, ends: Array) -> Calendar:
        """Return a calendar with the same rows, for ends in any order."""
        found = Calendar()
        found.looked_at = self.looked_at
        found.add(self.slots(), ends)
        return found

    def remove(self, slots: Array, ends: Array) -> None:
        unlink_slots(slots, self._links, self._ends)
        self._left(len(slots))

    def due(self, upto: int, ends: Array) -> Array:
        found = np.empty(self.n_rows, np.int64)
        n = first_due(upto, ends, self._links, self._ends, found)
        self.looked_at += n + 1
        self._left(n)
        return found[:n]

    def _left(self, n_rows: int) -> None:
        self.n_rows -= n_rows
        if n_rows and not self.n_rows:
            self._reset()

    @property
    def bytes(self) -> int:
        return self._links.nbytes

    def slots(self) -> Array:
        found = np.empty(self.n_rows, np.int64)
        assert list_slots(self._links, self._ends, found) == self.n_rows, "every row hangs in the list"
        return found


class Scan(Buffer):
    """A list by order of coming, searched as a whole every time."""

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
    """A buffer without rows, for an edge that sends every end: no row is ever found due."""

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
