"""The prototypes' kernels, from whose speed the bars of joins were taken, written again (decision 12).

They carry every stored row's query bits, as CACQ does: a symbol becomes a dense code, each side has its own heads and links, a
row is put in front of its chain with its bits beside it, 16 chains are walked in turn, a match has the bits of both its rows,
and a transpose makes lists of them. The bare SteM (`bare_join.py`) does the same work about twice as fast: one look-up for build
and probe, chains breadth first, no bits at all.
"""

from __future__ import annotations

import numpy as np

from experiments.bench.base.bitmaps import kernel
from experiments.bench.joins import kernels
from experiments.bench.joins.bare_join import BitmapLister, Thresholds, region_rows
from experiments.bench.joins.join_workload import TIMES, JoinWorkload
from experiments.bench.joins.matches import MatchLists, TakeLists, ignore
from experiments.bench.joins.stem import PART, ring_rows, table_places
from lineage.bits import FULL, U64

#: Chains that are walked in turn, so that the loads of one hide behind those of the others.
_CHAINS = 16


@kernel
def build(codes: np.ndarray, first: int, heads: np.ndarray, links: np.ndarray) -> None:
    """Put rows in front of the chains of their codes."""
    ring = U64(len(links) - 1)
    for i in range(len(codes)):
        code = U64(codes[i])
        links[U64(first + i) & ring] = heads[code]
        heads[code] = first + i


@kernel
def keep_bits(bits: np.ndarray, first: int, kept: np.ndarray) -> None:
    """Store the query bits of new rows in a ring."""
    ring = U64(len(kept) - 1)
    for i in range(len(bits)):
        at = U64(first + i) & ring
        for w in range(bits.shape[1]):
            kept[at, w] = bits[i, w]


@kernel
def walk_in_turn(
    codes: np.ndarray,
    lows: np.ndarray,
    heads: np.ndarray,
    links: np.ndarray,
    chains: np.ndarray,
    progress: np.ndarray,
    rows: np.ndarray,
    positions: np.ndarray,
) -> int:
    """The next part of the matches: (probing row, position). Chain g stands at position `chains[0, g]`, of row `chains[1, g]`.

    `progress` is (rows begun, chains that go on): the walk is over when none does.
    """
    ring = U64(len(links) - 1)
    begun, going = progress[0], 1
    n = 0
    while going and n + _CHAINS <= len(rows):
        going = 0
        for g in range(_CHAINS):
            position = chains[0, g]
            row = chains[1, g]
            if position >= lows[U64(row)]:
                rows[U64(n)] = row
                positions[U64(n)] = position
                n += 1
                chains[0, g] = links[U64(position) & ring]
                going += 1
            elif begun < len(codes):
                chains[0, g] = heads[U64(codes[begun])]
                chains[1, g] = begun
                begun += 1
                going += 1
    progress[0] = begun
    progress[1] = going
    return n


@kernel
def join_bits(bits: np.ndarray, rows: np.ndarray, kept: np.ndarray, positions: np.ndarray, joined: np.ndarray) -> None:
    """The queries that both rows of each match have. `joined` may have more rows: they get none."""
    ring = U64(len(kept) - 1)
    for j in range(len(rows)):
        row = U64(rows[j])
        at = U64(positions[j]) & ring
        for w in range(joined.shape[1]):
            joined[j, w] = bits[row, w] & kept[at, w]
    for j in range(len(rows), len(joined)):
        for w in range(joined.shape[1]):
            joined[j, w] = 0


class _Side:
    """What one stream has stored."""

    def __init__(self, workload: JoinWorkload, n_words: int) -> None:
        n_ring = ring_rows(workload)
        self.heads = np.full(workload.n_keys, -1, np.int32)
        self.links = np.full(n_ring, -1, np.int32)
        self.times = np.zeros(n_ring, np.int64)
        self.bits = np.zeros((n_ring, n_words), np.uint64)
        self.end = 0
        #: oldest position that the last probe could reach
        self.low = 0


class PrototypeJoin:
    """Takes the pushes of a workload one after the other."""

    def __init__(self, workload: JoinWorkload) -> None:
        assert workload.n_streams == 2 and workload.one_window, "two streams, one window"
        self.workload = workload
        self.n_pushes = 0
        thresholds = Thresholds(workload.constants)
        self._attribute = thresholds.attribute
        self._regions = region_rows(thresholds)
        n_words = self._regions.shape[1]
        self._sides = [_Side(workload, n_words) for _ in range(2)]
        self._table = np.full((table_places(workload), 2), -1, np.int64)
        self._n_codes = 0
        n_rows = workload.n_rows
        self._codes = np.zeros(n_rows, np.int32)
        self._prices = np.zeros(n_rows, np.int32)
        self._lows = np.zeros(n_rows, np.int32)
        self._bits = np.zeros((n_rows, n_words), np.uint64)
        self._chains = np.zeros((2, _CHAINS), np.int32)
        self._progress = np.zeros(2, np.int64)
        self._rows = np.empty(PART, np.int32)
        self._positions = np.empty(PART, np.int32)
        self._lister = BitmapLister(thresholds.n_queries)

    def push(self, take: TakeLists = ignore) -> None:
        """The next push, its results given in parts."""
        stream, batch = self.workload.push(self.n_pushes)
        self.n_pushes += 1
        own, other = self._sides[stream], self._sides[1 - stream]
        first, times = own.end, batch[TIMES[stream]]
        self._n_codes = kernels.encode_symbols(batch["symbol"], self._table, self._codes, self._n_codes)
        if stream == 0:
            self._attribute.encode(batch["price"], self._prices)
            kernels.lineage_of_codes(self._prices, self._regions, self._bits)
        else:
            self._bits[:] = FULL
        build(self._codes, first, own.heads, own.links)
        kernels.put(times, own.times, first)
        keep_bits(self._bits, first, own.bits)
        own.end += len(times)
        other.low = kernels.find_lows(times, self.workload.window_us, other.times, other.low, other.end, self._lows)
        self._chains[:] = [[-1], [0]]
        self._progress[:] = (0, 1)
        while self._progress[1]:
            n = walk_in_turn(
                self._codes, self._lows, other.heads, other.links, self._chains, self._progress, self._rows, self._positions
            )
            if n:
                rows, positions = self._rows[:n], self._positions[:n]
                joined = self._lister.room(n)
                join_bits(self._bits, rows, other.bits, positions, joined)
                pair = (first + rows, positions)
                take(MatchLists(self._lister.lists(joined), pair if stream == 0 else pair[::-1]))
