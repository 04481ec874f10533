"""One grouped filter: every predicate that any query has on one attribute of one stream.

A predicate is a union of intervals (`filters/values/intervals.py`); the bounds of all of them are the attribute's **cuts**, and
a value falls in exactly one **region** between two cuts (`filters/index/regions.py`). For a slot `q` with one interval

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
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from filters.index.cuts import NO_LIMIT, NO_ROOM, Cuts, find_cut, insert_cut, unuse_cut, use_cut
from filters.index.regions import (
    CELL_FLOAT,
    CELL_INT,
    CELL_STRING,
    MAX_SPAN,
    KeyGrid,
    RankTable,
    rank_by_code,
    rank_by_grid,
    rank_by_table,
)
from filters.values.intervals import Intervals, Key
from lineage.batch import TupleBatch
from lineage.dictionary import Dictionary
from lineage.kernels import kernel
from lineage.schema import KEY_MAX, Column, Type

#: Changes of cuts that a finder follows one by one.
MAX_BEHIND = 4


@kernel("void(int32[::1], int32[::1], int32[::1])")
def ids_of_ranks(ranks: np.ndarray, id_of: np.ndarray, ids: np.ndarray) -> None:
    """`ids[i]` = the region id of row i; there may be more ranks."""
    for i in range(len(ids)):
        ids[i] = id_of[np.uint64(ranks[i])]


class Multi:
    """The predicates of more than one interval on one attribute: by slot its [low, high) pairs of ranks, ascending.

    All pairs are one array, so that ranks move in one step; what goes leaves its pairs behind until they are the larger part.
    """

    __slots__ = ("_places", "_pairs", "_n_pairs", "_n_held")

    def __init__(self) -> None:
        #: slot -> where its pairs begin and end
        self._places: dict[int, tuple[int, int]] = {}
        self._pairs = np.zeros((8, 2), np.int32)
        #: pairs that are laid out, and those of them that some slot has
        self._n_pairs = 0
        self._n_held = 0

    def __len__(self) -> int:
        return len(self._places)

    def __contains__(self, slot: int) -> bool:
        return slot in self._places

    def put(self, slot: int, pairs: Sequence[tuple[int, int]]) -> None:
        self._n_held += len(pairs)
        if self._n_pairs + len(pairs) > len(self._pairs):
            self._lay_out()
        first, self._n_pairs = self._n_pairs, self._n_pairs + len(pairs)
        self._pairs[first : self._n_pairs] = np.array(pairs, np.int32).reshape(-1, 2)
        self._places[slot] = first, self._n_pairs

    def _lay_out(self) -> None:
        """Close the gaps, and have room for as many again."""
        held, self._n_pairs = self._pairs, 0
        self._pairs = np.zeros((2 * self._n_held + 8, 2), np.int32)
        for slot, (first, last) in self._places.items():
            start, self._n_pairs = self._n_pairs, self._n_pairs + last - first
            self._pairs[start : self._n_pairs] = held[first:last]
            self._places[slot] = start, self._n_pairs

    def pop(self, slot: int) -> None:
        """Remove the entry of a slot."""
        first, last = self._places.pop(slot, (0, 0))
        self._n_held -= last - first

    def get(self, slot: int) -> list[list[int]] | None:
        """The pairs of a slot; None if it has none."""
        place = self._places.get(slot)
        found: list[list[int]] | None = None if place is None else self._pairs[place[0] : place[1]].tolist()
        return found

    def items(self) -> Iterator[tuple[int, list[list[int]]]]:
        """The pairs of every slot that has any."""
        pairs = self._pairs.tolist()
        for slot, (first, last) in self._places.items():
            yield slot, pairs[first:last]

    def shift(self, at: int, by: int) -> None:
        """Move the ranks above one."""
        held = self._pairs[: self._n_pairs]
        held[held > at] += by


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
        "_rank_of",
        "_next_id",
        "_free_ids",
        "_aliases",
        "multi",
        "n_predicates",
        "_finder",
        "_behind",
        "_rank_of_code",
    )

    def __init__(self, column: Column, position: int, dictionary: Dictionary | None, number: int, cuts: Cuts) -> None:
        """`cuts` holds the cuts of all filters of a bank, by the filter's number."""
        self.column = column
        self.position = position
        self.dictionary = dictionary
        self.cell_kind = {Type.FLOAT: CELL_FLOAT, Type.STRING: CELL_STRING}.get(column.type, CELL_INT)
        self._number = number
        self._cuts = cuts
        #: the cuts of a string column
        self._texts: list[str] = []
        self.n_cuts = 0
        self._rank_of: np.ndarray | None = None
        self._next_id = 2
        self._free_ids: list[int] = []
        #: of each retired id, oldest first: it, the one that took its region in, the store position from which no row carries it
        self._aliases = array("q")
        self.multi = Multi()
        self.n_predicates = 0
        self._finder: RankTable | KeyGrid | None = None
        #: (cut, whether it came) of the changes that the finder does not know yet
        self._behind: list[tuple[int, bool]] = []
        self._rank_of_code: np.ndarray | None = None

    def turn_to(self, column: Column, position: int, dictionary: Dictionary | None) -> None:
        """Be the filter of another column, while there is no predicate; ids that stored rows carry are not given out again."""
        self.column = column
        self.position = position
        self.dictionary = dictionary
        self.cell_kind = {Type.FLOAT: CELL_FLOAT, Type.STRING: CELL_STRING}.get(column.type, CELL_INT)
        self._finder = self._rank_of_code = None
        self._behind.clear()

    @property
    def cuts(self) -> Any:
        """The cuts, ascending: an int64 array, or a list of str."""
        return self._texts if self.dictionary is not None else self._cuts.keys_of(self._number)

    @property
    def uses(self) -> np.ndarray:
        """How many bounds of predicates stand on each cut."""
        return self._cuts.uses_of(self._number)

    @property
    def ids(self) -> np.ndarray:
        """Region id by rank, that of NULL last; valid until the next change."""
        return self._cuts.ids_of(self._number)

    @property
    def null_rank(self) -> int:
        return self.n_cuts + 1

    @property
    def n_regions(self) -> int:
        """Regions of values and the one for NULL."""
        return self.n_cuts + 2

    # ---- predicates

    def add(self, slot: int, intervals: Intervals, low: np.ndarray, high: np.ndarray, top: int) -> list[int]:
        """Put a predicate on a slot; `low` and `high` are the bank's, no slot from `top` on has any. Returns the ranks split."""
        splits: list[int] = []
        pairs = []
        # bounds ascend, so a cut that one adds moves none of those found before
        for lo, hi in intervals.spans:
            first = 0 if lo is None else self._add_cut(lo, low, high, top, splits) + 1
            pairs.append((first, NO_LIMIT if hi is None else self._add_cut(hi, low, high, top, splits) + 1))
        pairs = self._closed(intervals, pairs)
        if len(pairs) == 1:
            low[self._number, slot], high[self._number, slot] = pairs[0]
        else:
            self.multi.put(slot, pairs)
        self.n_predicates += 1
        return splits

    def remove(self, slot: int, intervals: Intervals, low: np.ndarray, high: np.ndarray, top: int, position: int) -> list[int]:
        """Take a predicate off; `position` is the end of the store now. Returns the ranks merged away, highest first."""
        low[self._number, slot], high[self._number, slot] = 0, NO_LIMIT
        self.multi.pop(slot)
        self.n_predicates -= 1
        merged = []
        cuts = self._cuts
        for bound in reversed(intervals.bounds()):
            at = self._find_cut(bound)
            retired = unuse_cut(cuts.keys, cuts.uses, cuts.ids, cuts.at, cuts.n, low, high, self._number, top, at)
            if retired >= 0:
                self._dropped(bound, at)
                self._aliases.extend((retired, self.ids[at], position))
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
        return find_cut(cuts.keys, cuts.at, cuts.n, self._number, key)

    def _add_cut(self, key: Key, low: np.ndarray, high: np.ndarray, top: int, splits: list[int]) -> int:
        """Count one more bound on a cut and return where it is; a new one splits the rank of that number."""
        fresh = self._free_ids[-1] if self._free_ids else self._next_id
        at = (self._use_key if self.dictionary is None else self._use_text)(key, low, high, top, fresh)
        if at >= 0:
            return at
        at = ~at
        splits.append(at)
        if self._free_ids:
            self._free_ids.pop()
        else:
            self._next_id += 1
        self.n_cuts += 1
        if self.multi:
            self.multi.shift(at, 1)
        self._rank_of = self._rank_of_code = None
        return at

    def _use_key(self, key: int, low: np.ndarray, high: np.ndarray, top: int, fresh: int) -> int:
        cuts = self._cuts
        at = use_cut(cuts.keys, cuts.uses, cuts.ids, cuts.at, cuts.n, low, high, self._number, top, key, fresh)
        if at == NO_ROOM:
            cuts.make_room(self._number)
            return self._use_key(key, low, high, top, fresh)
        if at < 0 and self._finder is not None:
            self._unfound(key, True)
        return at

    def _use_text(self, key: str, low: np.ndarray, high: np.ndarray, top: int, fresh: int) -> int:
        at = self._find_cut(key)
        if at >= 0:
            self.uses[at] += 1
        else:
            cuts = self._cuts
            cuts.make_room(self._number)
            insert_cut(cuts.keys, cuts.uses, cuts.ids, cuts.at, cuts.n, low, high, self._number, top, ~at, KEY_MAX, fresh)
            self._texts.insert(~at, key)
        return at

    def _dropped(self, key: Key, at: int) -> None:
        """A cut has gone."""
        if self.dictionary is not None:
            del self._texts[at]
        elif self._finder is not None:
            self._unfound(key, False)
        self.n_cuts -= 1
        if self.multi:
            self.multi.shift(at, -1)
        self._rank_of = self._rank_of_code = None

    # ---- regions

    def find(self, batch: TupleBatch, ranks: np.ndarray) -> None:
        """Ranks of a batch's rows."""
        cells, nulls, has_nulls, first, n_rows = batch.cells, batch.nulls, batch.has_nulls, batch.first, batch.n_rows
        if self.dictionary is not None:
            rank_by_code(cells, nulls, has_nulls, self.position, first, n_rows, self.rank_of_code(), self.null_rank, ranks)
            return
        finder = self.finder()
        if isinstance(finder, RankTable):
            rank_by_table(cells, nulls, has_nulls, self.position, first, n_rows, finder.table, finder.base, self.null_rank, ranks)
        else:
            start = self._cuts.at[self._number]
            cuts = self._cuts.keys[start : start + self.n_cuts + 2]
            rank_by_grid(
                cells, nulls, has_nulls, self.position, first, n_rows, self.cell_kind == CELL_FLOAT, cuts, self.n_cuts,
                finder.grid, finder.below, finder.lowest, finder.shift, self.null_rank, ranks,
            )  # fmt: skip

    def finder(self) -> RankTable | KeyGrid:
        """Return the structure that finds the ranks of values, for a column without strings."""
        found = self._finder
        if found is not None and self._behind:
            if isinstance(found, RankTable) != self._narrow():
                found = None
            else:
                for key, came in self._behind:
                    if not (found.insert(key) if came else found.delete(key)):
                        found = None
                        break
            self._behind.clear()
        if found is None:
            found = self._finder = RankTable(self.cuts) if self._narrow() else KeyGrid(self.cuts)
        return found

    def _unfound(self, key: int, came: bool) -> None:
        """Note a cut that came or went: the next use updates the finder, or makes a new one if that is less work."""
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

    def write_ids(self, ranks: np.ndarray, ids: np.ndarray) -> None:
        """Fill in the region ids of rows by their ranks."""
        ids_of_ranks(ranks, self.ids, ids)

    def rank_of(self) -> np.ndarray:
        """The rank of every region id that a stored row may carry."""
        if self._rank_of is None:
            ranks = np.zeros(self._next_id, np.int32)
            ranks[self.ids] = np.arange(len(self.ids), dtype=np.int32)
            aliases = self._aliases
            for k in range(len(aliases) - 3, -1, -3):
                ranks[aliases[k]] = ranks[aliases[k + 1]]
            self._rank_of = ranks
        return self._rank_of

    def release_ids(self, watermark: int) -> None:
        """Ids that no stored row carries any more may be used again."""
        n = 0
        while n < len(self._aliases) and self._aliases[n + 2] <= watermark:
            self._free_ids.append(self._aliases[n])
            n += 3
        if n:
            del self._aliases[:n]
            self._rank_of = None

    def bytes(self) -> int:
        """Bytes of the cuts and ids; finders are derived and not counted."""
        keys = sum(map(len, self._texts)) if self.dictionary is not None else 8 * self.n_cuts
        return keys + 8 * self.n_cuts + 8 * len(self._aliases)

    def check(self, low: np.ndarray, high: np.ndarray, predicates: dict[int, Intervals]) -> None:
        """Every invariant of the docstring, against the predicates that should be here."""
        cuts = list(self.cuts) if self.dictionary is not None else self.cuts.tolist()
        assert cuts == sorted(set(cuts)), "cuts ascend strictly"
        assert len(cuts) == self.n_cuts == len(self.uses), "one use count a cut"
        assert len(self.ids) == self.n_regions and len(set(self.ids.tolist())) == len(self.ids), "one id a region"
        assert not set(self._aliases[::3]) & set(self.ids.tolist()), "a retired id is on no region"
        assert self.n_predicates == len(predicates), "every predicate is counted"
        uses = dict.fromkeys(cuts, 0)
        for slot, intervals in predicates.items():
            for bound in intervals.bounds():
                uses[bound] += 1
            pairs = self.ranks(intervals)
            held = (
                [(int(low[slot]), int(high[slot]))]
                if slot not in self.multi
                else [(first, last) for first, last in self.multi.get(slot) or []]
            )
            assert held == pairs, f"slot {slot} of {self.column.name}: ranks {held} stand for {pairs}"
        assert list(uses.values()) == list(self.uses), "each cut is used as often as predicates name it"
        if self._finder is not None:
            self.finder().check(self.cuts)
        free = np.ones(len(low), bool)
        free[list(predicates)] = False
        assert (low[free] == 0).all() and (high[free] == NO_LIMIT).all(), "slots without a predicate admit everything"
