"""Sums of single queries: a record of planes for each (query, group).

This serves every query, whatever its condition: it is told which rows count for which query. A commit costs its (row, query)
pairs, a vector addition each; of the records that were touched those of queries with a reader are read.

    records[place, group, plane]      0 in all planes of a group without rows
"""

from __future__ import annotations

import numpy as np

from filters.values.vector import Array
from lineage.bits import ONE, trailing_zeros, words
from lineage.growth import LEAST, room_for
from lineage.kernels import kernel
from lineage.lanes import LANES, add_four
from windows.shared.pair_extremes import PairExtremes
from windows.shared.planes import Planes
from windows.shared.run_measures import read_measures
from windows.shared.shown import ShownMeasures

U64 = np.uint64


@kernel("void(int64[::1], int64[::1], int64[::1], int64[::1], int64[::1], uint64[:,::1])")
def interval_bits(
    ranks: np.ndarray, positions: np.ndarray, low: np.ndarray, high: np.ndarray, born: np.ndarray, bits: np.ndarray
) -> None:  # fmt: skip
    """Set the bits of the rows that count for each query: of rank low .. high - 1, from its birth on. Bits are 0 before."""
    for q in range(len(low)):
        first, last, birth = low[q], high[q], born[q]
        for i in range(len(ranks)):
            inside = ranks[i] >= first and ranks[i] < last and positions[i] >= birth
            bits[q, i >> 6] |= U64(inside) << U64(i & 63)


@kernel("void(uint64[:,::1], int64[::1], int64[::1], int64[:,::1])")
def cut_births(bits: np.ndarray, born: np.ndarray, positions: np.ndarray, reach: np.ndarray) -> None:
    """Clear the bits of the rows from before each query's birth; `reach` is scratch, the least and largest position of a word."""
    for w in range(reach.shape[1]):
        reach[0, w] = reach[1, w] = positions[w << 6]
        for i in range(w << 6, min((w + 1) << 6, len(positions))):
            reach[0, w] = min(reach[0, w], positions[i])
            reach[1, w] = max(reach[1, w], positions[i])
    for q in range(len(bits)):
        birth = born[q]
        for w in range(reach.shape[1]):
            if birth <= reach[0, w] or bits[q, w] == 0:
                continue
            kept = U64(0)
            if birth <= reach[1, w]:
                for i in range(w << 6, min((w + 1) << 6, len(positions))):
                    kept |= U64(positions[i] >= birth) << U64(i & 63)
            bits[q, w] &= kept


@kernel(
    "int64(uint64[:,::1], int64[::1], uint8[::1], int64[::1], int64[::1], int64, int64[::1], int64, int64[::1], int64,"
    "int64[::1], int64)"
)
def add_pairs(
    bits: np.ndarray, places: np.ndarray, watched: np.ndarray, groups: np.ndarray, vectors: np.ndarray, width: int,
    records: np.ndarray, n_groups: int, stamps: np.ndarray, stamp: int, touched: np.ndarray, n: int,
) -> int:  # fmt: skip
    """Add the row vectors to the records of the queries they count for; `width` is a multiple of 4.

    Records of watched queries that had another stamp are appended to a list of n; returns its new length.
    """
    for q in range(len(bits)):
        base = places[q] * n_groups
        for w in range(bits.shape[1]):
            word = bits[q, w]
            while word != 0:
                i = (np.int64(w) << 6) + np.int64(trailing_zeros(word))
                word &= word - ONE
                cell = base + groups[i]
                if watched[q] != 0 and stamps[cell] != stamp:
                    stamps[cell] = stamp
                    touched[n] = cell
                    n += 1
                for k in range(0, width, 4):
                    add_four(records, cell * width + k, vectors, i * width + k)
    return n


@kernel(
    "int64(int64[::1], int64[:,:,::1], int64, int64[::1], int64[:,::1], int64[::1], int64[::1], int64[:,:,:,::1], int64[:,::1],"
    "int64, int64[:,:,::1], int64[::1])"
)
def capture_pairs(
    cells: np.ndarray, all_records: np.ndarray, n_planes: int, shown_place: np.ndarray, columns: np.ndarray, work: np.ndarray,
    scratch: np.ndarray, shown_cells: np.ndarray, lists: np.ndarray, n: int, bests: np.ndarray, extreme_counts: np.ndarray,
) -> int:  # fmt: skip
    """List the records whose measures differ from those shown, with old and new measures, and store the new as shown.

    `work` begins with zeros, `scratch` with the measures of a run.
    """
    _, n_groups, width = all_records.shape
    _, n_places, n_measures, _ = shown_cells.shape
    capacity = lists.shape[1]
    records, shown, list, best = all_records.reshape(-1), shown_cells.reshape(-1), lists.reshape(-1), bests.reshape(-1)
    fresh = scratch[: n_measures * LANES]
    scratch = scratch[n_measures * LANES :]
    n_extremes = len(extreme_counts)
    for start in range(0, len(cells), LANES):
        n_lanes = min(LANES, len(cells) - start)
        for lane in range(LANES):
            cell = cells[start + min(lane, n_lanes - 1)]
            for plane in range(n_planes):
                work[LANES * (plane + 1) + lane] = records[cell * width + plane]
        read_measures(work, LANES, 0, columns, fresh, scratch)
        for lane in range(n_lanes):
            cell = cells[start + lane]
            for e in range(n_extremes):
                some = fresh[extreme_counts[e] * LANES + lane] != 0
                fresh[(n_measures - n_extremes + e) * LANES + lane] = best[cell * n_extremes + e] if some else 0
            place, group = shown_place[cell // n_groups], cell % n_groups
            at = (group // LANES * n_places + place) * n_measures * LANES + group % LANES
            same = True
            for m in range(n_measures):
                same &= shown[at + m * LANES] == fresh[m * LANES + lane]
            if not same:
                list[n] = (place << np.int64(32)) + group
                for m in range(n_measures):
                    list[n + (m + 1) * capacity] = shown[at + m * LANES]
                    list[n + (n_measures + m + 1) * capacity] = fresh[m * LANES + lane]
                    shown[at + m * LANES] = fresh[m * LANES + lane]
                n += 1
    return n


class PairSums:
    """The records of some queries, by place."""

    def __init__(self, planes: Planes) -> None:
        self._planes = planes
        self.n_groups = LANES
        self._records = np.zeros((LEAST, LANES, self.width), np.int64)
        self._stamps = np.zeros((LEAST, LANES), np.int64)
        self._stamp = 1
        self._free = list(range(LEAST - 1, -1, -1))
        #: where each place's query is shown; -1 if it has no reader
        self._shown_place = np.full(LEAST, -1, np.int64)
        #: records touched since the last `changes`
        self._touched = np.zeros(LEAST, np.int64)
        self._n_touched = 0
        self.extremes = PairExtremes(len(planes.extreme_counts))

    @property
    def width(self) -> int:
        """The words of a record, and of the row vectors added to it."""
        return -(-self._planes.n // 4) * 4

    def hold(self, n_groups: int) -> None:
        self._fit(len(self._records), n_groups)

    def _fit(self, n_places: int, n_groups: int) -> None:
        have_places, have_groups = self._stamps.shape
        if (n_places, n_groups) == (have_places, have_groups):
            return
        records = np.zeros((n_places, n_groups, self.width), np.int64)
        records[:have_places, :have_groups] = self._records
        stamps = np.zeros((n_places, n_groups), np.int64)
        stamps[:have_places, :have_groups] = self._stamps
        touched = self._touched[: self._n_touched]
        self._touched[: self._n_touched] = touched // have_groups * n_groups + touched % have_groups
        self._records, self._stamps, self.n_groups = records, stamps, n_groups
        self.extremes.fit(n_places, n_groups)

    def move(self, origins: Array) -> None:
        """Move the records to a new layout of planes; see `Planes.cover`."""
        records = np.zeros((*self._stamps.shape, self.width), np.int64)
        kept = np.flatnonzero(origins >= 0)
        records[:, :, kept] = self._records[:, :, origins[kept]]
        self._records = records

    def take_place(self) -> int:
        """Return a free place; its records are 0."""
        if not self._free:
            have = len(self._records)
            more = room_for(have + 1, have)
            self._fit(more, self.n_groups)
            self._shown_place = np.concatenate([self._shown_place, np.full(more - have, -1, np.int64)])
            self._free = list(range(more - 1, have - 1, -1))
        return self._free.pop()

    def leave_places(self, places: Array) -> None:
        """Give places back."""
        self._records[places] = 0
        self.unwatch(places)
        self.extremes.forget(places, known=True)
        self._free.extend(places.tolist())

    def watch(self, places: Array, shown_places: Array) -> None:
        """Give the queries at some places readers, by their places in `ShownMeasures`."""
        self._shown_place[places] = shown_places
        self.extremes.forget(places, known=False)

    def unwatch(self, places: Array) -> None:
        """Take the readers from the queries at some places."""
        self._shown_place[places] = -1
        self.extremes.forget(places, known=False)
        self._stamps[places] = 0
        touched = self._touched[: self._n_touched]
        kept = touched[self._shown_place[touched // self.n_groups] >= 0]
        self._touched[: len(kept)] = kept
        self._n_touched = len(kept)

    def touch_all(self) -> None:
        """Note all records of queries with a reader as touched."""
        cells = self.cells(np.flatnonzero(self._shown_place >= 0))
        if len(cells) > len(self._touched):
            self._touched = np.empty(room_for(len(cells), LEAST), np.int64)
        self._touched[: len(cells)] = cells
        self._n_touched = len(cells)

    def add(
        self, bits: Array, places: Array, groups: Array, vectors: Array, signs: Array, keys: Array, nulls: Array
    ) -> None:  # fmt: skip
        """Add rows to the records of queries by the bits `[query, word of rows]`; keys and null bytes are `[extreme, row]`."""
        watched = (self._shown_place[places] >= 0).view(np.uint8)
        most = self._n_touched + int(np.count_nonzero(watched)) * min(self.n_groups, len(groups))
        if most > len(self._touched):
            touched = np.empty(room_for(most, LEAST), np.int64)
            touched[: self._n_touched] = self._touched[: self._n_touched]
            self._touched = touched
        self._n_touched = add_pairs(
            bits, places, watched, groups, vectors.reshape(-1), self.width, self._records.reshape(-1), self.n_groups,
            self._stamps.reshape(-1), self._stamp, self._touched, self._n_touched,
        )  # fmt: skip
        self.extremes.add(bits, places, watched, groups, signs, keys, nulls)

    def touched(self) -> Array:
        """Return the records (place * n_groups + group) touched since the last `changes`."""
        return self._touched[: self._n_touched]

    def changes(self, shown: ShownMeasures, n: int) -> int:
        """Append the cells changed since the last call to a list of n cells; returns its new length.

        The extremes of all cells that were touched are known.
        """
        cells = self.touched()
        self._n_touched = 0
        self._stamp += 1
        return self._capture(cells, self._shown_place, shown, n)

    def show(self, places: Array, shown: ShownMeasures, shown_places: Array) -> int:
        """List all groups of some queries that differ from those shown at these places; their extremes are known."""
        shown_at = np.full(len(self._records), -1, np.int64)
        shown_at[places] = shown_places
        return self._capture(self.cells(places), shown_at, shown, 0)

    def cells(self, places: Array) -> Array:
        """Return the numbers of all records of some places."""
        return (places[:, None] * self.n_groups + np.arange(self.n_groups)).reshape(-1)

    def _capture(self, cells: Array, shown_place: Array, shown: ShownMeasures, n: int) -> int:
        planes = self._planes
        shown.room(n + len(cells), n)
        work = np.zeros(LANES * (planes.n + 1), np.int64)
        scratch = np.empty(planes.n_measures * LANES + planes.scratch, np.int64)
        return capture_pairs(
            cells, self._records, planes.n, shown_place, planes.fields, work, scratch, shown.cells, shown.list, n,
            self.extremes.best, planes.extreme_counts,
        )  # fmt: skip

    @property
    def n_places(self) -> int:
        return len(self._records)

    @property
    def n_taken(self) -> int:
        """The number of places in use."""
        return len(self._records) - len(self._free)

    @property
    def place_bytes(self) -> int:
        """The bytes of one query's records."""
        return int(self._records[0].nbytes + self._stamps[0].nbytes)

    @property
    def bytes(self) -> int:
        return self._records.nbytes + self._stamps.nbytes + self._touched.nbytes + self.extremes.bytes


def count_from_birth(bits: Array, born: Array, positions: Array) -> None:
    """Clear the bits of the rows from before each query's birth, of bits `[query, word of rows]`."""
    if len(positions):
        cut_births(bits, born, positions, np.empty((2, words(len(positions))), np.int64))


def no_bits(n_queries: int, n_rows: int) -> Array:
    """Return bits `[query, word of rows]` that are all 0."""
    return np.zeros((n_queries, words(n_rows)), np.uint64)
