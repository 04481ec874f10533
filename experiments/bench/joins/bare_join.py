"""The bare SteM: the join of stocks and articles for queries `price > c`, the best known for this machine.

No SQL, no NULLs, no routing, no log, no queries coming and going. A push is coded, built and probed; stored quotes keep the
region code of their price; a match has the queries of its quote's region; row lists come out in parts of up to 4096 matches.
Arrivals only: the moments at which matches leave follow from the times of their rows. The layouts of the last step:

    Prefixes       matches in the order of their codes, a bitmap every 8 of them, flipped where it differs: no lineage at all
    RegionRows     the region's row of query bits for every match, bit transpose, lists: as for any set of conditions
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from experiments.bench.base import bare_kernels
from experiments.bench.base.bare import Attribute, Output, PrefixLists, RowLists
from experiments.bench.base.bitmaps import transpose
from experiments.bench.joins import kernels
from experiments.bench.joins.join_workload import JoinWorkload
from experiments.bench.joins.matches import MatchLists, TakeLists, ignore
from experiments.bench.joins.stem import PART, SymmetricStem, ring_rows
from lineage.bits import BYTE_BITS, FULL

#: Rows that `transpose` takes at a time.
_BLOCK = 512


class Thresholds:
    """The cuts of `price > c`: a query takes the prices whose code is above the number of its cut."""

    def __init__(self, constants: np.ndarray) -> None:
        cuts, cut_of = np.unique(np.nextafter(constants, np.inf), return_inverse=True)
        self.n_queries = len(constants)
        self.attribute = Attribute("price", cuts)
        #: for each query the number of its cut
        self.cut_of = cut_of.astype(np.int32)


class Lister(Protocol):
    def lists(self, codes: np.ndarray) -> RowLists: ...


class Prefixes:
    """Row lists of matches from prefix bitmaps of their codes."""

    def __init__(self, thresholds: Thresholds) -> None:
        n = thresholds.n_queries
        starts, attributes, above = np.arange(n + 1), np.zeros(n, np.int32), np.ones(n, np.bool_)
        self._prefixes = PrefixLists([thresholds.attribute.n_cuts], PART, starts, attributes, thresholds.cut_of, above)

    def lists(self, codes: np.ndarray) -> RowLists:
        return self._prefixes.lists(codes[None, :])


def region_rows(thresholds: Thresholds) -> np.ndarray:
    """The query bits of every region, `[regions, words]`."""
    n_queries, n_cuts = thresholds.n_queries, thresholds.attribute.n_cuts
    regions = np.full((n_cuts + 1, (n_queries + 63) // 64), FULL)
    bare_kernels.fill_region(regions, 0, n_cuts, np.arange(n_queries), thresholds.cut_of, np.ones(n_queries, np.bool_))
    return regions


class BitmapLister:
    """Row lists of matches from the query bits of each, by a bit transpose."""

    def __init__(self, n_queries: int) -> None:
        self._n_queries = n_queries
        self._words = (n_queries + 63) // 64
        self._lineage = np.zeros((PART, self._words), np.uint64)
        self._bits = np.zeros(self._words * PART, np.uint64)
        self._output = Output(n_queries, PART)

    def room(self, n_matches: int) -> np.ndarray:
        """Where the bits of so many matches go, and zeros up to a whole block."""
        return self._lineage[: -(-n_matches // _BLOCK) * _BLOCK]

    def lists(self, lineage: np.ndarray) -> RowLists:
        n_rows = len(lineage)
        bitmaps = self._bits[: self._words * n_rows].reshape(-1, n_rows // 64)
        transpose(lineage, bitmaps)
        out = self._output
        n_lists = bare_kernels.lists_of_bitmaps(bitmaps, self._n_queries, BYTE_BITS, out.queries, out.offsets, out.rows)
        return out.lists(n_lists)


class RegionRows:
    """Row lists of matches from the query bits of their regions."""

    def __init__(self, thresholds: Thresholds) -> None:
        self._regions = region_rows(thresholds)
        self._lister = BitmapLister(thresholds.n_queries)

    def lists(self, codes: np.ndarray) -> RowLists:
        lineage = self._lister.room(len(codes))
        kernels.lineage_of_codes(codes, self._regions, lineage)
        return self._lister.lists(lineage)


class BareJoin:
    """Takes the pushes of a workload one after the other."""

    def __init__(self, workload: JoinWorkload, lister: type[Prefixes] | type[RegionRows]) -> None:
        self.workload = workload
        self.n_pushes = 0
        thresholds = Thresholds(workload.constants)
        self._attribute = thresholds.attribute
        self._lister: Lister = lister(thresholds)
        self._stem = SymmetricStem(workload)
        #: region codes of the stored quotes, a ring
        self._codes = np.zeros(ring_rows(workload), np.int32)
        self._new_codes = np.zeros(workload.n_rows, np.int32)
        self._match_codes = np.zeros(PART, np.int32)

    def push(self, take: TakeLists = ignore) -> None:
        """The next push, its results given in parts."""
        stream, batch = self.workload.push(self.n_pushes)
        self.n_pushes += 1
        if stream == 0:
            self._attribute.encode(batch["price"], self._new_codes)
            kernels.put(self._new_codes, self._codes, self._stem.ends[0])
        for stocks, articles in self._stem.matches(stream, batch):
            codes = self._match_codes[: len(stocks)]
            kernels.gather(self._codes, stocks, codes)
            take(MatchLists(self._lister.lists(codes), (stocks, articles)))


LAYOUTS: dict[str, type[Prefixes] | type[RegionRows]] = {"prefixes": Prefixes, "region rows": RegionRows}
