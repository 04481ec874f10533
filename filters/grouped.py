"""One grouped filter: every predicate that any query has on one attribute of one stream.

A predicate is a union of intervals (`filters/intervals.py`); the bounds of all of them are the attribute's **cuts**, and
a value falls in exactly one **region** between two cuts (`filters/regions.py`). For a slot `q` with one interval

    rank_low[q] <= rank(value) < rank_high[q]      (the rows of the bank's arrays that belong to this filter)

decides. Slots without a predicate here, and free slots, hold 0 and `NO_LIMIT` and so admit everything, NULL too: a submit
touches only the attributes it names. Predicates of several intervals are kept aside (`Multi`), their `rank_high` above
`NO_LIMIT` holding their number.

A region also has an **id**, which never changes while rows that carry it are stored: the compact lineage of a stored row
on this attribute. A new cut splits a region; the lower part keeps the id. Rows stored before the split keep the old id:
for every older query the two parts agree, and younger queries do not count those rows (birth). When a cut goes, its
upper region's id becomes an alias of the lower one, and is handed out again once the store's watermark has passed.

Cost: adding or removing a predicate moves ranks, O(slots + cuts) in kernels, a few microseconds at 8192 queries.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right, insort
from typing import Any

import numpy as np

from filters.intervals import Intervals, Key
from filters.regions import (
    CELL_FLOAT,
    CELL_INT,
    CELL_STRING,
    MAX_SPAN,
    KeyGrid,
    KeyTable,
    find_rank,
    rank_by_code,
    rank_by_grid,
    rank_by_table,
)
from lineage.batch import TupleBatch
from lineage.dictionary import Dictionary
from lineage.kernels import kernel
from lineage.ragged import Ragged
from lineage.schema import KEY_MAX, Column, Type

#: Changes of cuts that a finder follows one by one.
MAX_BEHIND = 4
#: `rank_high` of a slot without a predicate: above every rank.
NO_LIMIT = 1 << 30


@kernel("void(int32[::1], int32[::1], int64, int64)")
def shift_ranks(low: np.ndarray, high: np.ndarray, at: int, by: int) -> None:
    """Region `at` was split (by = 1) or has taken in the next one (by = -1): move the bounds above it."""
    for slot in range(len(low)):
        low[slot] += by * (low[slot] > at)
        high[slot] += by * (high[slot] > at and high[slot] < NO_LIMIT)


@kernel("int64(int64[::1], int64[::1], int64[::1], int64, int64)")
def find_cut(data: np.ndarray, at: np.ndarray, n: np.ndarray, number: int, key: int) -> int:
    """Where a key is among the cuts of one filter, ~i when it is not there but would be at i."""
    i = find_rank(key, data, at[number], n[number])
    return int(i - 1 if i and data[at[number] + i - 1] == key else ~i)


@kernel("void(int32[::1], int32[::1], int32[::1])")
def ids_of_ranks(ranks: np.ndarray, id_of: np.ndarray, ids: np.ndarray) -> None:
    """`ids[i]` = the region id of row i; there may be more ranks."""
    for i in range(len(ids)):
        ids[i] = id_of[np.uint64(ranks[i])]


class Multi:
    """The predicates of more than one interval on one attribute: ranks per slot, few and short."""

    __slots__ = ("ranks",)

    def __init__(self) -> None:
        #: slot -> its [low, high) pairs of ranks, ascending
        self.ranks: dict[int, list[list[int]]] = {}

    def shift(self, at: int, by: int) -> None:
        for pairs in self.ranks.values():
            for pair in pairs:
                pair[0] += by * (pair[0] > at)
                pair[1] += by * (pair[1] > at)


class GroupedFilter:
    """The cuts of one attribute and how to find a value's region."""

    __slots__ = (
        "column",
        "position",
        "cell_kind",
        "dictionary",
        "_number",
        "_cuts",
        "_texts",
        "n_cuts",
        "uses",
        "ids",
        "_rank_of",
        "_id_array",
        "_next_id",
        "_free_ids",
        "_aliases",
        "multi",
        "n_predicates",
        "_finder",
        "_behind",
        "_rank_of_code",
    )

    def __init__(self, column: Column, position: int, dictionary: Dictionary | None, number: int, cuts: Ragged) -> None:
        """`cuts` are those of all filters of a bank, array `number` for this one, empty if the column holds strings."""
        self.column = column
        self.position = position
        self.dictionary = dictionary
        self.cell_kind = {Type.FLOAT: CELL_FLOAT, Type.STRING: CELL_STRING}.get(column.type, CELL_INT)
        self._number = number
        self._cuts = cuts
        #: the cuts of a string column
        self._texts: list[str] = []
        self.n_cuts = 0
        #: how many bounds of predicates stand on each cut
        self.uses = array("i")
        #: region id by rank; one more than ranks of values, for NULL
        self.ids = array("i", [0, 1])
        self._rank_of: np.ndarray | None = None
        self._id_array: np.ndarray | None = None
        self._next_id = 2
        self._free_ids: list[int] = []
        #: (retired id, the id that took its region in, store position from which no row carries it), oldest first
        self._aliases: list[tuple[int, int, int]] = []
        self.multi = Multi()
        self.n_predicates = 0
        self._finder: KeyTable | KeyGrid | None = None
        #: (cut, whether it came) of the changes that the finder does not know yet
        self._behind: list[tuple[int, bool]] = []
        self._rank_of_code: np.ndarray | None = None

    @property
    def cuts(self) -> Any:
        """The cuts, ascending: an int64 array, or a list of str."""
        return self._texts if self.dictionary is not None else self._cuts.view(self._number)

    @property
    def null_rank(self) -> int:
        return self.n_cuts + 1

    @property
    def n_regions(self) -> int:
        """Regions of values and the one for NULL."""
        return self.n_cuts + 2

    # ---- predicates

    def add(self, slot: int, intervals: Intervals, low: np.ndarray, high: np.ndarray) -> list[int]:
        """Put a predicate on a slot; `low` and `high` are the bank's ranks of this filter. Returns the ranks split."""
        splits: list[int] = []
        pairs = []
        # bounds ascend, so a cut that one adds moves none of those found before
        for lo, hi in intervals.spans:
            first = 0 if lo is None else self._add_cut(lo, low, high, splits) + 1
            pairs.append((first, NO_LIMIT if hi is None else self._add_cut(hi, low, high, splits) + 1))
        pairs = self._closed(intervals, pairs)
        if len(pairs) == 1:
            low[slot], high[slot] = pairs[0]
        else:
            self.multi.ranks[slot] = [list(pair) for pair in pairs]
        self.n_predicates += 1
        return splits

    def remove(self, slot: int, intervals: Intervals, low: np.ndarray, high: np.ndarray, position: int) -> list[int]:
        """Take a predicate off; `position` is the end of the store now. Returns the ranks merged away, highest first."""
        low[slot], high[slot] = 0, NO_LIMIT
        self.multi.ranks.pop(slot, None)
        self.n_predicates -= 1
        merged = []
        for bound in reversed(intervals.bounds()):
            at = self._find_cut(bound)
            self.uses[at] -= 1
            if not self.uses[at]:
                self._drop_cut(at, low, high, position)
                merged.append(at + 1)
        return merged

    def ranks(self, intervals: Intervals) -> list[tuple[int, int]]:
        """The intervals as [low, high) ranks; every bound must be a cut."""
        pairs = []
        for lo, hi in intervals.spans:
            first = 0 if lo is None else self._find_cut(lo) + 1
            pairs.append((first, NO_LIMIT if hi is None else self._find_cut(hi) + 1))
        return self._closed(intervals, pairs)

    def _closed(self, intervals: Intervals, pairs: list[tuple[int, int]]) -> list[tuple[int, int]]:
        """Ranks whose last may be open, up to the last region of values, and the region of NULL if it is in the set."""
        if pairs and pairs[-1][1] == NO_LIMIT:
            pairs[-1] = (pairs[-1][0], self.null_rank)
        if intervals.null:
            if pairs and pairs[-1][1] == self.null_rank:
                pairs[-1] = (pairs[-1][0], self.null_rank + 1)
            else:
                pairs.append((self.null_rank, self.null_rank + 1))
        return pairs

    def _find_cut(self, key: Key) -> int:
        """Where a cut is, ~i when there is none but would be at i."""
        if self.dictionary is not None:
            at = bisect_left(self._texts, key)
            return at if at < self.n_cuts and self._texts[at] == key else ~at
        cuts = self._cuts
        return find_cut(cuts.data, cuts.at, cuts.n, self._number, key)

    def _add_cut(self, key: Key, low: np.ndarray, high: np.ndarray, splits: list[int]) -> int:
        """Count one more bound on a cut and return where it is; a new one splits the rank of that number."""
        at = self._find_cut(key)
        if at >= 0:
            self.uses[at] += 1
            return at
        at = ~at
        splits.append(at)
        if self.dictionary is not None:
            insort(self._texts, key)
        else:
            self._cuts.insert(self._number, at, key)
            self._unfound(key, True)
        self.uses.insert(at, 1)
        self.n_cuts += 1
        shift_ranks(low, high, at, 1)
        self.multi.shift(at, 1)
        if self._free_ids:
            fresh = self._free_ids.pop()
        else:
            fresh = self._next_id
            self._next_id += 1
        self.ids.insert(at + 1, fresh)
        self._stale()
        return at

    def _drop_cut(self, at: int, low: np.ndarray, high: np.ndarray, position: int) -> None:
        if self.dictionary is not None:
            del self._texts[at]
        else:
            key = int(self.cuts[at])
            self._cuts.delete(self._number, at)
            self._unfound(key, False)
        del self.uses[at]
        self.n_cuts -= 1
        shift_ranks(low, high, at, -1)
        self.multi.shift(at, -1)
        retired = self.ids.pop(at + 1)
        self._aliases.append((retired, self.ids[at], position))
        self._stale()

    def _stale(self) -> None:
        self._rank_of = None
        self._id_array = None
        self._rank_of_code = None

    # ---- regions

    def find(self, batch: TupleBatch, ranks: np.ndarray) -> None:
        """Ranks of a batch's rows."""
        cells, nulls, has_nulls, first, n_rows = batch.cells, batch.nulls, batch.has_nulls, batch.first, batch.n_rows
        if self.dictionary is not None:
            rank_by_code(cells, nulls, has_nulls, self.position, first, n_rows, self.rank_of_code(), self.null_rank, ranks)
            return
        finder = self.finder()
        if isinstance(finder, KeyTable):
            rank_by_table(cells, nulls, has_nulls, self.position, first, n_rows, finder.table, finder.base, self.null_rank, ranks)
        else:
            start = self._cuts.at[self._number]
            cuts = self._cuts.data[start : start + self.n_cuts + 2]
            rank_by_grid(
                cells, nulls, has_nulls, self.position, first, n_rows, self.cell_kind == CELL_FLOAT, cuts, self.n_cuts,
                finder.grid, finder.below, finder.lowest, finder.shift, self.null_rank, ranks,
            )  # fmt: skip

    def finder(self) -> KeyTable | KeyGrid:
        """What finds the ranks of a column that holds no strings."""
        found = self._finder
        if found is not None and self._behind:
            if isinstance(found, KeyTable) != self._narrow():
                found = None
            else:
                for key, came in self._behind:
                    if not (found.insert(key) if came else found.delete(key)):
                        found = None
                        break
            self._behind.clear()
        if found is None:
            found = self._finder = KeyTable(self.cuts) if self._narrow() else KeyGrid(self.cuts)
        return found

    def _unfound(self, key: int, came: bool) -> None:
        """A cut came or went: the finder follows when it is asked, if that is less work than making it anew."""
        if self._finder is not None:
            self._behind.append((key, came))
            if len(self._behind) > MAX_BEHIND:
                self._finder = None
                self._behind.clear()

    def _narrow(self) -> bool:
        """Whether the cuts are ints close enough together for a look-up table."""
        if self.cell_kind != CELL_INT or not len(self.cuts):
            return False
        cuts = self.cuts
        lowest, highest = int(cuts[0]), int(cuts[-1])
        return highest - lowest <= MAX_SPAN and highest < KEY_MAX

    def rank_of_code(self) -> np.ndarray:
        """The rank of every code of the column's dictionary; extended by the codes that came since."""
        dictionary = self.dictionary
        assert dictionary is not None
        known = self._rank_of_code
        have = 0 if known is None else len(known)
        if known is None or have < len(dictionary.strings):
            cuts = self._texts
            fresh = np.array([bisect_right(cuts, text) for text in dictionary.strings[have:]], np.int32)
            known = self._rank_of_code = fresh if known is None else np.concatenate([known, fresh])
        return known

    def forget_codes(self) -> None:
        """The dictionary was compacted: codes mean other strings now."""
        self._rank_of_code = None

    # ---- region ids of stored rows

    def id_array(self) -> np.ndarray:
        """Region id by rank."""
        if self._id_array is None:
            self._id_array = np.array(self.ids, np.int32)
        return self._id_array

    def write_ids(self, ranks: np.ndarray, ids: np.ndarray) -> None:
        """Fill in the region ids of rows by their ranks."""
        ids_of_ranks(ranks, self.id_array(), ids)

    def rank_of(self) -> np.ndarray:
        """The rank of every region id that a stored row may carry."""
        if self._rank_of is None:
            ranks = np.zeros(self._next_id, np.int32)
            ranks[self.ids] = np.arange(len(self.ids), dtype=np.int32)
            for retired, into, _ in reversed(self._aliases):
                ranks[retired] = ranks[into]
            self._rank_of = ranks
        return self._rank_of

    def release_ids(self, watermark: int) -> None:
        """Ids that no stored row carries any more may be used again."""
        n = 0
        while n < len(self._aliases) and self._aliases[n][2] <= watermark:
            self._free_ids.append(self._aliases[n][0])
            n += 1
        if n:
            del self._aliases[:n]
            self._rank_of = None

    def bytes(self) -> int:
        """Bytes of the cuts and ids; finders are derived and not counted."""
        keys = sum(map(len, self._texts)) if self.dictionary is not None else 8 * self.n_cuts
        return keys + 4 * self.n_cuts + 4 * (len(self.ids) - 2 + len(self._aliases))

    def check(self, low: np.ndarray, high: np.ndarray, predicates: dict[int, Intervals]) -> None:
        """Every invariant of the docstring, against the predicates that should be here."""
        cuts = list(self.cuts) if self.dictionary is not None else self.cuts.tolist()
        assert cuts == sorted(set(cuts)), "cuts ascend strictly"
        assert len(cuts) == self.n_cuts == len(self.uses), "one use count a cut"
        assert len(self.ids) == self.n_regions and len(set(self.ids)) == len(self.ids), "one id a region"
        retired = [alias[0] for alias in self._aliases]
        assert not set(retired) & set(self.ids), "a retired id is on no region"
        assert self.n_predicates == len(predicates), "every predicate is counted"
        uses = dict.fromkeys(cuts, 0)
        for slot, intervals in predicates.items():
            for bound in intervals.bounds():
                uses[bound] += 1
            pairs = self.ranks(intervals)
            held = (
                [(int(low[slot]), int(high[slot]))]
                if slot not in self.multi.ranks
                else [tuple(p) for p in self.multi.ranks[slot]]
            )
            assert held == pairs, f"slot {slot} of {self.column.name}: ranks {held} stand for {pairs}"
        assert list(uses.values()) == list(self.uses), "each cut is used as often as predicates name it"
        if self._finder is not None:
            self.finder().check(self.cuts)
        free = np.ones(len(low), bool)
        free[list(predicates)] = False
        assert (low[free] == 0).all() and (high[free] == NO_LIMIT).all(), "slots without a predicate admit everything"
