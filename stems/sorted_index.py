"""The index of a SteM for inequality and band joins: which stored rows have a key in a range.

    answer(range) = {position : low <= position < hi, lowest <= key <= highest, not deleted}

with the order key of one column (int, timestamp, bool or float) and `low`, `hi` as in `stems/hash_index.py`; NULLs are not
indexed.

The rows are in sorted runs (`stems/sorted_runs.py`), each over a range of positions, together over all rows. A batch
becomes a run; neighbours are merged when the older is no more than about as long as the newer, so there are O(log rows)
runs and a row is merged O(log rows) times. No merge makes a run longer than a quarter of the rows held: so the oldest run
dies as a whole soon after its first row. One of which more than half is dead or deleted is written anew. Long merges go on
a little with every build, each by `FUEL` rows a row built, which is enough for it to end before the next of its size
begins. A probe costs two searches a run and row, each going on from the last row's, then one step a row in range.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from lineage.schema import Type
from stems.key_ranges import KeyRanges
from stems.keys import KeyFolding, Keys
from stems.row_store import Page, RowStore
from stems.sorted_runs import RunMerge, SortedRun, scan_run

#: Runs up to this length together are merged at once: some 20 microseconds.
SMALL = 8192
#: Rows that each merge in progress moves on for a row built or forgotten, and at least in a call.
FUEL = 4
MIN_FUEL = 2048

_NOTHING = np.zeros(0, np.int64)


class SortedIndex:
    """The rows of a store by the value of one column, complete from position `since` on."""

    def __init__(self, store: RowStore, column: int, *, small: int = SMALL, min_fuel: int = MIN_FUEL) -> None:
        type_ = store.columns[column].type
        assert type_ is not Type.STRING, "texts do not order by their codes"
        self.store = store
        self.column = column
        self.since = self.end = store.end
        self._folding = KeyFolding.of_stored([type_])
        self._small = small
        self._min_fuel = min_fuel
        #: oldest first
        self._runs: list[SortedRun] = []
        self._merges: list[RunMerge] = []
        self._forgotten = store.watermark
        #: merges done, and the most rows that one call has moved
        self.n_merges = 0
        self.longest_step = 0

    # ---- in

    def build(self, page: Page, at: int, stop: int) -> None:
        """Index the rows at offsets at..stop of a page, the newest of the store."""
        first = page.base + at
        assert first == self.end, "rows are built in the order of their positions"
        keys = self._folding.fold(
            [page.cells[self.column, at:stop]], [None if page.nulls is None else page.nulls[self.column, at:stop]]
        )
        kept = np.flatnonzero(keys.usable) if len(keys.usable) else None
        words = keys.words if kept is None else keys.words[kept]
        order = np.argsort(words, kind="stable")
        positions = first + (order if kept is None else kept[order])
        self.end = first + stop - at
        if len(order):
            self._runs.append(SortedRun(words[order], positions, len(order), first, self.end))
        self._work(stop - at)

    def delete(self, positions: np.ndarray) -> None:
        """These rows are never given again. O(log rows) each."""
        positions = positions[(positions >= max(self.since, self.store.watermark)) & (positions < self.end)]
        for page, which in self.store.by_page(positions):
            gone, keys = self._usable(positions[which], self._keys_of_rows(page, positions[which] - page.base))
            for run in self._runs:
                inside = (gone >= run.first) & (gone < run.last)
                if inside.any():
                    run.delete(keys[inside], gone[inside])
            for merge in self._merges:
                merge.delete(keys, gone)

    def _keys_of_rows(self, page: Page, offsets: np.ndarray) -> Keys:
        nulls = None if page.nulls is None else page.nulls[self.column]
        return self._folding.fold([page.cells[self.column]], [nulls], offsets.astype(np.int32))

    @staticmethod
    def _usable(positions: np.ndarray, keys: Keys) -> tuple[np.ndarray, np.ndarray]:
        if not len(keys.usable):
            return positions, keys.words
        kept = np.flatnonzero(keys.usable)
        return positions[kept], keys.words[kept]

    # ---- out

    def probe(self, ranges: KeyRanges, low: int, hi: int) -> RangeProbe:
        """Find the stored rows with a key in the range of each probing row at `low <= position < hi`."""
        assert low >= self.store.watermark, "rows below the watermark may be gone"
        return RangeProbe([run for run in self._runs if run.last > low], ranges, low, hi)

    # ---- upkeep

    def forget(self) -> None:
        """The store's watermark has moved: drop dead runs and go on with merges."""
        watermark = self.store.watermark
        if watermark >= self.end:
            self._runs, self._merges = [], []
        else:
            self._drop(watermark)
            self._work(watermark - self._forgotten)
        self._forgotten = watermark

    def _drop(self, watermark: int) -> None:
        """Drop runs whose rows are all dead, and merges of two dead runs."""
        for merge in self._merges:
            if merge.newer.last <= watermark:
                merge.older.merging = merge.newer.merging = False
        self._merges = [merge for merge in self._merges if merge.older.merging]
        while self._runs and self._runs[0].last <= watermark and not self._runs[0].merging:
            del self._runs[0]

    def _work(self, n_rows: int) -> None:
        """Begin what merges are due, and move all in progress on by a share of the rows built or forgotten."""
        watermark = self.store.watermark
        moved = self._begin(watermark)
        fuel = max(self._min_fuel, FUEL * n_rows)
        for merge in list(self._merges):
            moved += min(fuel, merge.left)
            merge.advance(fuel, watermark)
            if not merge.left:
                self._finish(merge)
        self.longest_step = max(self.longest_step, moved)

    def _begin(self, watermark: int) -> int:
        """Begin merges that are due, newest runs first, and do short ones at once; returns how many rows were moved."""
        moved = 0
        longest = max(self._small, (self.end - watermark) // 4)
        at = len(self._runs) - 1
        while at >= 0:
            newer = self._runs[at]
            older = self._runs[at - 1] if at else None
            merge = None
            if not newer.merging and 2 * newer.dead(watermark) > newer.size:
                merge = RunMerge(newer, SortedRun(_NOTHING, _NOTHING, 0, newer.last, newer.last), watermark)
            elif older is not None and not newer.merging and not older.merging:
                total = older.size + newer.size
                if older.size.bit_length() <= newer.size.bit_length() and total <= longest:
                    merge = RunMerge(older, newer, watermark)
            if merge is not None:
                self._merges.append(merge)
                if merge.left <= self._small:
                    moved += merge.left
                    merge.advance(merge.left, watermark)
                    self._finish(merge)
                    # the result may be due again, with the runs on either side
                    at = min(at + 1, len(self._runs))
            at -= 1
        return moved

    def _finish(self, merge: RunMerge) -> None:
        """Put the merged run in place of its parts."""
        self._merges.remove(merge)
        run = merge.result()
        at = self._runs.index(merge.older)
        parts = 2 if merge.newer in self._runs[at : at + 2] else 1
        self._runs[at : at + parts] = [run] if run.size else []
        self.n_merges += 1

    def rebuild(self, deleted: np.ndarray) -> None:
        """Index every row that the store holds, but those at the positions `deleted`. O(rows log rows)."""
        self._runs, self._merges = [], []
        self.since = self.end = self.store.watermark
        for page, at, stop in self.store.slices(self.store.watermark, self.store.end):
            self.build(page, at, stop)
        self.delete(deleted)

    def stats(self) -> dict[str, int]:
        return {
            "rows": self.end - max(self.since, self.store.watermark),
            "entries": sum(run.size for run in self._runs),
            "runs": len(self._runs),
            "merging": len(self._merges),
            "merged": self.n_merges,
            "longest_step": self.longest_step,
            "bytes": self.bytes(),
        }

    def bytes(self) -> int:
        """The memory of runs and of merges in progress, exactly."""
        return sum(run.bytes() for run in self._runs) + sum(merge.bytes() for merge in self._merges)

    def check(self) -> None:
        """All invariants: of the runs, and that they hold each indexed row once, under its key."""
        assert self.end == self.store.end, "every row of the store is built"
        for run in self._runs:
            run.check()
        for older, newer in zip(self._runs, self._runs[1:]):
            assert older.last <= newer.first, "runs follow each other"
        merging = [run for merge in self._merges for run in (merge.older, merge.newer) if run in self._runs]
        assert len(merging) == len({id(run) for run in merging}), "a run is in one merge at most"
        assert {id(run) for run in merging} == {id(run) for run in self._runs if run.merging}, "a run knows that it is merged"
        low = max(self.since, self.store.watermark)
        held = {
            position: key
            for run in self._runs
            for key, position in zip(run.keys[: run.size].tolist(), run.positions[: run.size].tolist())
            if position >= low
        }
        expected = dict(self._expected(low))
        assert held.items() <= expected.items(), "a run holds rows of the store under their keys"
        gone = {~position for run in self._runs for position in run.positions[: run.size].tolist() if position < 0}
        assert not gone & set(held), "a deleted row is not held"

    def _expected(self, low: int) -> Iterator[tuple[int, int]]:
        for page, at, stop in self.store.slices(low, self.end):
            offsets = np.arange(at, stop)
            positions, keys = self._usable(page.base + offsets, self._keys_of_rows(page, offsets))
            yield from zip(positions.tolist(), keys.tolist())


class RangeProbe:
    """A probe in progress: its pairs come in parts of bounded size. It keeps the runs it began with."""

    __slots__ = ("_runs", "_lowest", "_highest", "_rows", "_low", "_hi", "_cursor")

    def __init__(self, runs: list[SortedRun], ranges: KeyRanges, low: int, hi: int) -> None:
        #: those not done, the next one last
        self._runs = runs
        # in the order of their beginnings, so that one search goes on where the last one ended
        order = np.argsort(ranges.lowest, kind="stable")
        self._lowest = ranges.lowest[order]
        self._highest = ranges.highest[order]
        self._rows = order.astype(np.int32)
        self._low = low
        self._hi = hi
        self._cursor = np.array([0, 0, 0, -1], np.int64)

    def fill(self, out_row: np.ndarray, out_position: np.ndarray) -> int:
        """Write the next pairs of probing row (int32) and position (int64), as many as fit; 0 when there are no more.

        Newer runs come first; in a run ranges by their beginning; in a range rows by key.
        """
        room = min(len(out_row), len(out_position))
        found = 0
        while self._runs and found < room:
            run = self._runs[-1]
            found = scan_run(
                run.keys, run.positions, run.size, self._lowest, self._highest, self._rows, self._low, self._hi,
                self._cursor, found, out_row[:room], out_position[:room],
            )  # fmt: skip
            if self._cursor[0] == len(self._rows):
                self._runs.pop()
                self._cursor[:] = (0, 0, 0, -1)
        return found
