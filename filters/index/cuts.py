"""The cuts of all grouped filters of a bank, end to end in arrays as kernels take them.

    keys[at[f] : at[f] + n[f]]       the cuts of filter f, ascending; those of a string column are elsewhere, these mean nothing
    uses[at[f] : at[f] + n[f]]       how many bounds of predicates stand on each
    ids[at[f] : at[f] + n[f] + 2]    the id of each region by rank, that of NULL last

Behind the cuts of a filter at least two entries of `keys` are free, up to at[f + 1], and hold `KEY_MAX`: a search may read that
far. A cut that comes or goes moves those behind it and the ranks of predicates, in one kernel. When a filter has no room left all
are laid out anew with a quarter more for it: amortised constant per cut. Views are valid until the next change.
"""

from __future__ import annotations

import numpy as np

from filters.index.regions import find_rank
from lineage.kernels import Number, inline, kernel
from lineage.memory import move
from lineage.schema import KEY_MAX

#: `rank_high` of a slot without a predicate: above every rank.
NO_LIMIT = 1 << 30
#: What `use_cut` says when a filter is full: no place, nor the complement of one.
NO_ROOM = -(1 << 62)
#: Free entries behind the cuts of a filter.
_SPARE = 2


@inline
def shift_ranks(low: np.ndarray, high: np.ndarray, at: Number, by: Number) -> None:
    """Region `at` was split (by = 1) or has taken in the next one (by = -1): move the bounds above it."""
    # in 32 bits as they are stored: twice as many at a time
    above, step, limit = np.int32(at), np.int32(by), np.int32(NO_LIMIT)
    for slot in range(len(low)):
        rank = low[slot]
        low[slot] = rank + step if rank > above else rank
    for slot in range(len(high)):
        rank = high[slot]
        high[slot] = rank + step if (rank > above) & (rank < limit) else rank


@kernel("int64(int64[::1], int64[::1], int64[::1], int64, int64)")
def find_cut(keys: np.ndarray, at: np.ndarray, n: np.ndarray, f: int, key: int) -> int:
    """Return the place of a key among the cuts of a filter; ~i if it is missing and belongs at i."""
    i = find_rank(key, keys, at[f], n[f])
    return int(i - 1 if i and keys[at[f] + i - 1] == key else ~i)


@inline
def _insert(
    keys: np.ndarray, uses: np.ndarray, ids: np.ndarray, at: np.ndarray, n: np.ndarray, low: np.ndarray, high: np.ndarray,
    f: Number, top: Number, i: Number, key: Number, new_id: Number,
) -> None:  # fmt: skip
    place, behind = at[f] + i, n[f] - i
    move(keys, place + 1, place, behind)
    move(uses, place + 1, place, behind)
    move(ids, place + 2, place + 1, behind + 1)
    keys[place] = key
    uses[place] = 1
    ids[place + 1] = new_id
    n[f] += 1
    shift_ranks(low[f, :top], high[f, :top], i, 1)


@kernel(
    "void(int64[::1], int32[::1], int32[::1], int64[::1], int64[::1], int32[:,::1], int32[:,::1], int64, int64, int64, int64, "
    "int64)"
)
def insert_cut(
    keys: np.ndarray, uses: np.ndarray, ids: np.ndarray, at: np.ndarray, n: np.ndarray, low: np.ndarray, high: np.ndarray,
    f: int, top: int, i: int, key: int, new_id: int,
) -> None:  # fmt: skip
    """Put a cut with one use before cut i, where there is room: region i is split, its upper part has the new id.

    Moves the ranks of the slots below `top`.
    """
    _insert(keys, uses, ids, at, n, low, high, f, top, i, key, new_id)


@kernel(
    "int64(int64[::1], int32[::1], int32[::1], int64[::1], int64[::1], int32[:,::1], int32[:,::1], int64, int64, int64, int64)"
)
def use_cut(
    keys: np.ndarray, uses: np.ndarray, ids: np.ndarray, at: np.ndarray, n: np.ndarray, low: np.ndarray, high: np.ndarray,
    f: int, top: int, key: int, new_id: int,
) -> int:  # fmt: skip
    """One more use of the cut with that key: where it is, ~i if it was put there, or `NO_ROOM` and nothing has changed."""
    i = find_rank(key, keys, at[f], n[f])
    if i and keys[at[f] + i - 1] == key:
        uses[at[f] + i - 1] += 1
        return int(i - 1)
    if at[f] + n[f] + 1 + _SPARE > at[f + 1]:
        return NO_ROOM
    _insert(keys, uses, ids, at, n, low, high, f, top, i, key, new_id)
    return int(~i)


@kernel("int64(int64[::1], int32[::1], int32[::1], int64[::1], int64[::1], int32[:,::1], int32[:,::1], int64, int64, int64)")
def unuse_cut(
    keys: np.ndarray, uses: np.ndarray, ids: np.ndarray, at: np.ndarray, n: np.ndarray, low: np.ndarray, high: np.ndarray,
    f: int, top: int, i: int,
) -> int:  # fmt: skip
    """One use less of cut i. If it was the last the cut goes: region i takes in the next one, whose id is returned; else -1."""
    place, behind = at[f] + i, n[f] - i - 1
    uses[place] -= 1
    if uses[place]:
        return -1
    retired = ids[place + 1]
    move(keys, place, place + 1, behind)
    move(uses, place, place + 1, behind)
    move(ids, place + 1, place + 2, behind + 1)
    keys[place + behind] = KEY_MAX
    n[f] -= 1
    shift_ranks(low[f, :top], high[f, :top], i, -1)
    return int(retired)


class Cuts:
    """The cuts of the filters of one bank, by the number of the filter."""

    __slots__ = ("keys", "uses", "ids", "at", "n")

    def __init__(self) -> None:
        self.at = np.zeros(1, np.int64)
        self.n = np.zeros(0, np.int64)
        self.keys: np.ndarray = np.zeros(0, np.int64)
        self.uses: np.ndarray = np.zeros(0, np.int32)
        self.ids: np.ndarray = np.zeros(0, np.int32)
        self._lay_out([])

    def append(self) -> None:
        """One more filter: no cuts, and the regions 0 of all values and 1 of NULL."""
        self.n = np.append(self.n, 0)
        self._lay_out([*np.diff(self.at).tolist(), 8])
        self.ids[self.at[-2] + 1] = 1

    def make_room(self, f: int) -> None:
        """See that one more cut of a filter has room."""
        n = int(self.n[f])
        if self.at[f] + n + 1 + _SPARE > self.at[f + 1]:
            rooms = np.diff(self.at).tolist()
            rooms[f] = n + n // 4 + 8 + _SPARE
            self._lay_out(rooms)

    def keys_of(self, f: int) -> np.ndarray:
        start = self.at[f]
        return self.keys[start : start + self.n[f]]

    def uses_of(self, f: int) -> np.ndarray:
        start = self.at[f]
        return self.uses[start : start + self.n[f]]

    def ids_of(self, f: int) -> np.ndarray:
        start = self.at[f]
        return self.ids[start : start + self.n[f] + 2]

    def _lay_out(self, rooms: list[int]) -> None:
        """All arrays anew, with so much room for each filter; a filter that has none yet is all zeros."""
        before, old = self.at.tolist(), (self.keys, self.uses, self.ids)
        self.at = np.zeros(len(rooms) + 1, np.int64)
        np.cumsum(rooms, out=self.at[1:])
        size = int(self.at[-1])
        self.keys, self.uses, self.ids = np.full(size, KEY_MAX), np.zeros(size, np.int32), np.zeros(size, np.int32)
        for start, stop, to in zip(before, before[1:], self.at.tolist()):
            for array, values in zip((self.keys, self.uses, self.ids), old):
                array[to : to + stop - start] = values[start:stop]

    def check(self) -> None:
        """Assert the invariants of the docstring, as far as the cuts alone show them."""
        assert len(self.at) == len(self.n) + 1 and self.at[-1] == len(self.keys), "a filter begins where the one before it ends"
        for f, n in enumerate(self.n.tolist()):
            start, stop = int(self.at[f]), int(self.at[f + 1])
            assert start + n + _SPARE <= stop, "every filter has its room"
            assert (self.keys[start + n : stop] == KEY_MAX).all(), "free room holds the highest key"
