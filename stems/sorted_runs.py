"""Sorted runs of (key, position) and the kernels that merge and search them.

    keys[i], positions[i]     for i < size, ascending by (key, position)
    positions[i] < 0          the row ~positions[i] was deleted: below every `low`, so a search skips it like a dead one
    first <= position < last  of every row in it; runs of one index cover ranges that follow each other

A merge of two neighbouring runs goes on a little at a time into memory of its own; until it is done both are read, and
deletions are made in both copies. It leaves out what is dead or deleted.
"""

from __future__ import annotations

import numpy as np

from lineage.kernels import Number, inline, kernel
from lineage.schema import KEY_MAX

U64 = np.uint64


@kernel("void(int64[::1], int64[::1], int64, int64[::1], int64[::1], int64, int64[::1], int64[::1], int64[::1], int64, int64)")
def merge_some(
    a_keys: np.ndarray,
    a_positions: np.ndarray,
    a_size: int,
    b_keys: np.ndarray,
    b_positions: np.ndarray,
    b_size: int,
    keys: np.ndarray,
    positions: np.ndarray,
    state: np.ndarray,
    fuel: int,
    watermark: int,
) -> None:
    """Merge `fuel` more rows of two runs, the older one first among equal keys. `state`: rows read of each, rows written."""
    i, j, n = state[0], state[1], state[2]
    while fuel > 0 and (i < a_size or j < b_size):
        fuel -= 1
        from_a = j >= b_size or (i < a_size and a_keys[U64(i)] <= b_keys[U64(j)])
        position = a_positions[U64(i)] if from_a else b_positions[U64(j)]
        # never beyond the room: rows written are at most rows read
        keys[U64(n)] = a_keys[U64(i)] if from_a else b_keys[U64(j)]
        positions[U64(n)] = position
        n += position >= watermark
        i += from_a
        j += not from_a
    state[0], state[1], state[2] = i, j, n


@inline
def first_at_least(keys: np.ndarray, size: Number, start: Number, key: Number) -> Number:
    """The first index from `start` on whose key is not below `key`; `size` if there is none. O(log of the distance)."""
    step = np.int64(1)
    below = start - 1
    while below + step < size and keys[U64(below + step)] < key:
        below += step
        step <<= 1
    above = min(size, below + step)
    while below + 1 < above:
        middle = (below + above) >> 1
        less = keys[U64(middle)] < key
        below = middle if less else below
        above = above if less else middle
    return above


@kernel(
    "int64(int64[::1], int64[::1], int64, int64[::1], int64[::1], int32[::1], int64, int64, int64[::1], int64, int32[::1], "
    "int64[::1])"
)
def scan_run(
    keys: np.ndarray,
    positions: np.ndarray,
    size: int,
    lowest: np.ndarray,
    highest: np.ndarray,
    rows: np.ndarray,
    low: int,
    hi: int,
    cursor: np.ndarray,
    found: int,
    out_row: np.ndarray,
    out_position: np.ndarray,
) -> int:
    """Append to the `found` pairs those of a run with key in a range and `low <= position < hi`; returns how many now.

    Ranges ascend by `lowest`, so each search goes on from the last; `rows[i]` is the probing row of range i. `cursor` is
    where the scan stands: range, where its search began or begins, next index, and one past the last (-1: not searched).
    The run is done when the range is the number of ranges.
    """
    room = np.int64(len(out_row))
    range_, begin, at, stop = cursor[0], cursor[1], cursor[2], cursor[3]
    n = np.int64(found)
    n_ranges = len(lowest)
    while range_ < n_ranges:
        row = rows[U64(range_)]
        if stop < 0:
            top = highest[U64(range_)]
            if lowest[U64(range_)] <= top:
                begin = first_at_least(keys, size, begin, lowest[U64(range_)])
                stop = size if top == KEY_MAX else first_at_least(keys, size, begin, top + 1)
            else:
                stop = begin
            at = begin
        end = min(stop, at + room - n)
        for k in range(at, end):
            position = positions[U64(k)]
            out_row[U64(n)] = row
            out_position[U64(n)] = position
            n += (position >= low) & (position < hi)
        at = end
        if at < stop:
            if n == room:
                break
            continue
        range_ += 1
        stop = np.int64(-1)
    cursor[0], cursor[1], cursor[2], cursor[3] = range_, begin, at, stop
    return int(n)


@kernel("int64(int64[::1], int64[::1], int64, int64[::1], int64[::1])")
def mark_deleted(keys: np.ndarray, positions: np.ndarray, size: int, gone_keys: np.ndarray, gone: np.ndarray) -> int:
    """Mark rows, given by key and position, where the run has them; returns how many it had and were not marked."""
    marked = 0
    for g in range(len(gone)):
        low = np.int64(0)
        high = np.int64(size)
        while low < high:
            middle = (low + high) >> 1
            position = positions[middle]
            position ^= position >> 63
            if keys[middle] < gone_keys[g] or (keys[middle] == gone_keys[g] and position < gone[g]):
                low = middle + 1
            else:
                high = middle
        if low < size and keys[low] == gone_keys[g] and positions[low] == gone[g]:
            positions[low] = ~gone[g]
            marked += 1
    return marked


class SortedRun:
    """A sorted run; its arrays may be longer than `size`."""

    __slots__ = ("keys", "positions", "size", "first", "last", "n_deleted", "merging")

    def __init__(self, keys: np.ndarray, positions: np.ndarray, size: int, first: int, last: int) -> None:
        self.keys = keys
        self.positions = positions
        self.size = size
        self.first = first
        self.last = last
        self.n_deleted = 0
        #: in a merge that is not done
        self.merging = False

    def delete(self, keys: np.ndarray, positions: np.ndarray) -> None:
        self.n_deleted += mark_deleted(self.keys, self.positions, self.size, keys, positions)

    def dead(self, watermark: int) -> int:
        """About how many of its rows are dead or deleted."""
        passed = min(max(watermark - self.first, 0), self.last - self.first)
        return self.size * passed // max(1, self.last - self.first) + self.n_deleted

    def bytes(self) -> int:
        return self.keys.nbytes + self.positions.nbytes

    def check(self) -> None:
        keys, positions = self.keys[: self.size], self.positions[: self.size]
        positions = positions ^ (positions >> 63)
        later = (keys[1:] > keys[:-1]) | ((keys[1:] == keys[:-1]) & (positions[1:] > positions[:-1]))
        assert later.all(), "a run ascends by key and position"
        assert not self.size or self.first <= positions.min() <= positions.max() < self.last, "positions are in the run's range"
        assert self.n_deleted == int((self.positions[: self.size] < 0).sum()), "deleted rows are counted"


class RunMerge:
    """Two neighbouring runs, the older first, on the way to be one; or one run on the way to lose its dead rows."""

    __slots__ = ("older", "newer", "_first", "_state", "_keys", "_positions", "_late")

    def __init__(self, older: SortedRun, newer: SortedRun, watermark: int) -> None:
        self.older = older
        self.newer = newer
        #: no row below it is written
        self._first = max(older.first, watermark)
        older.merging = newer.merging = True
        size = older.size + newer.size
        self._keys = np.empty(size + 1, np.int64)
        self._positions = np.empty(size + 1, np.int64)
        self._state = np.zeros(3, np.int64)
        #: rows deleted in what is written already
        self._late = 0

    @property
    def left(self) -> int:
        """Rows not read yet."""
        return self.older.size + self.newer.size - int(self._state[0]) - int(self._state[1])

    def advance(self, fuel: int, watermark: int) -> None:
        a, b = self.older, self.newer
        merge_some(
            a.keys, a.positions, a.size, b.keys, b.positions, b.size, self._keys, self._positions, self._state, fuel, watermark
        )  # fmt: skip

    def delete(self, keys: np.ndarray, positions: np.ndarray) -> None:
        """Delete rows from the written part of the merge; the rest will leave them out."""
        self._late += mark_deleted(self._keys, self._positions, int(self._state[2]), keys, positions)

    def result(self) -> SortedRun:
        run = SortedRun(self._keys, self._positions, int(self._state[2]), self._first, self.newer.last)
        run.n_deleted = self._late
        return run

    def bytes(self) -> int:
        return self._keys.nbytes + self._positions.nbytes
