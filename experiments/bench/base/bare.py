"""The bare kernels: the same work as the engine's with nothing around it, the best known for this machine.

No SQL, no queries coming and going, no NULLs, no routing, no log: arrays in, row lists out, buffers kept from batch to
batch. The engine's share of this speed is what `eddy bench` reports. Each class prepares its index from a workload;
its layouts take a batch and return `RowLists`, and the bench divides by the fastest of them. Layouts:

    Conjunctions.by_query    prefix bitmaps of rows, one AND a comparison, row lists while the bitmap is in cache
    Conjunctions.by_row      region tables, one AND of five region rows a row, bit transpose, row lists
    RangeQueries.by_slice    narrow ranges of one attribute as slices of the rows in value order
    Candidates.by_pair       queries of an id by hash, range checked, pairs grouped by query
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from experiments.bench.base import bare_kernels as kernels
from experiments.bench.base.bitmaps import SPARE, transpose
from experiments.bench.base.workloads import Batch, Comparison, Workload
from lineage.bits import BYTE_BITS, FULL

#: Ints whose cuts span no more than this are coded by look-up.
_LOOKUP = 1 << 16
#: Up to this many float cuts are counted one by one.
_COUNTED = 16
#: Buckets of the grid for each cut.
_BUCKETS = 4
#: Region tables larger than this are not tried: row-major lost long before.
_MAX_REGION_BYTES = 1 << 25


class RowLists(NamedTuple):
    """Like the engine's: rows `rows[offsets[i]:offsets[i + 1]]` for `queries[i]`; only queries that have rows, in order.

    Views of pooled buffers, valid until the next batch.
    """

    queries: np.ndarray
    offsets: np.ndarray
    rows: np.ndarray


Layout = Callable[[Batch], RowLists]


class Output:
    """Pooled buffers of row lists."""

    def __init__(self, n_queries: int, n_rows: int) -> None:
        self.queries = np.empty(n_queries + 1, np.int32)
        self.offsets = np.empty(n_queries + 1, np.int64)
        # no page is touched before a row number is written there
        self.rows = np.empty(n_queries * n_rows + SPARE, np.int32)

    def lists(self, n_lists: int) -> RowLists:
        return RowLists(self.queries[:n_lists], self.offsets[: n_lists + 1], self.rows[: self.offsets[n_lists]])


class Attribute:
    """The cuts of one column and how a value finds its code."""

    def __init__(self, name: str, cuts: np.ndarray) -> None:
        self.name = name
        self.cuts = cuts
        self.n_cuts = len(cuts)
        self.lookup: np.ndarray | None = None
        if cuts.dtype == np.int64 and self.n_cuts and cuts[-1] - cuts[0] < _LOOKUP:
            self.base = int(cuts[0]) - 1
            self.lookup = np.searchsorted(cuts, np.arange(self.base, int(cuts[-1]) + 1), "right").astype(np.int32)
            return
        if self.n_cuts <= _COUNTED:
            return
        n_buckets = _BUCKETS * self.n_cuts
        self.low = float(cuts[0])
        self.scale = n_buckets / max(float(cuts[-1]) - self.low, 1e-300)
        self.starts = kernels.grid_starts(cuts, self.low, self.scale, n_buckets)
        self.padded = np.append(cuts.astype(np.float64), [np.nan, np.nan])

    def encode(self, values: np.ndarray, codes: np.ndarray) -> None:
        if self.lookup is not None:
            kernels.codes_by_value(values, self.lookup, self.base, codes)
        elif self.n_cuts <= _COUNTED:
            kernels.codes_by_count(values, self.cuts, codes)
        else:
            kernels.codes_by_grid(values, self.padded, self.starts, self.low, self.scale, codes)


class PrefixLists:
    """Row lists of conjunctions from the codes of rows, by prefix bitmaps of each attribute (`kernels.lists_by_query`)."""

    def __init__(
        self, n_cuts: Sequence[int], n_rows: int, starts: np.ndarray, attributes: np.ndarray, cuts: np.ndarray, above: np.ndarray
    ) -> None:
        n_kept = n_rows // kernels.STEP + 2
        self._n_cuts = n_cuts
        self._parts = (starts, attributes, cuts, above)
        self._kept_all = np.array([n < n_kept for n in n_cuts])
        self._bitmaps = np.zeros((len(n_cuts), min(max(n_cuts) + 1, n_kept), (n_rows + 63) // 64), np.uint64)
        self._ranks = np.zeros((len(n_cuts), max(n_cuts) + 1), np.int32)
        self._orders = np.zeros((len(n_cuts), n_rows), np.int32)
        self._output = Output(len(starts) - 1, n_rows)

    def lists(self, codes: np.ndarray) -> RowLists:
        """Row lists of up to `n_rows` rows; `codes[a]` are those of attribute a."""
        n_rows = codes.shape[1]
        for a, n_cuts in enumerate(self._n_cuts):
            if not n_cuts:
                continue
            if self._kept_all[a]:
                kernels.prefix_bitmaps(codes[a], n_cuts, self._bitmaps[a])
            else:
                kernels.order_by_code(codes[a], n_cuts, self._ranks[a], self._orders[a])
                kernels.step_bitmaps(self._orders[a, :n_rows], self._bitmaps[a])
        out = self._output
        tables = (self._kept_all, self._bitmaps, self._ranks, self._orders, BYTE_BITS)
        return out.lists(kernels.lists_by_query(n_rows, *self._parts, *tables, out.queries, out.offsets, out.rows))


def _cuts_of(comparison: Comparison) -> list[tuple[int | float, bool]]:
    """A comparison as (cut, above) parts: rows below the cut, or from it on."""
    constant = comparison.constant
    after = constant + 1 if isinstance(constant, int) else float(np.nextafter(constant, np.inf))
    return {
        "<": [(constant, False)],
        "<=": [(after, False)],
        ">": [(after, True)],
        ">=": [(constant, True)],
        "=": [(constant, True), (after, False)],
    }[comparison.op]


class Conjunctions:
    """Queries as conjunctions of comparisons over up to five attributes."""

    def __init__(self, workload: Workload, n_rows: int) -> None:
        self.n_rows = n_rows
        self.n_queries = workload.n_queries
        names = list(workload.columns)
        parts = [
            (q, names.index(c.column), cut, above)
            for q, query in enumerate(workload.queries)
            for c in query
            for cut, above in _cuts_of(c)
        ]
        found: list[list[int | float]] = [[] for _ in names]
        for _, a, cut, _ in parts:
            found[a].append(cut)
        kinds = {"int": np.int64, "float": np.float64}
        self.attributes = [
            Attribute(name, np.unique(np.array(cuts, kinds[workload.columns[name]]))) for name, cuts in zip(names, found)
        ]
        self.part_query = np.array([p[0] for p in parts], np.int64)
        self.part_attribute = np.array([p[1] for p in parts], np.int32)
        self.part_above = np.array([p[3] for p in parts], np.bool_)
        self.part_cut = np.zeros(len(parts), np.int32)
        for a, attribute in enumerate(self.attributes):
            mine = self.part_attribute == a
            wanted = np.array(found[a], attribute.cuts.dtype)
            self.part_cut[mine] = np.searchsorted(attribute.cuts, wanted)
        starts = np.searchsorted(self.part_query, np.arange(self.n_queries + 1)).astype(np.int64)
        n_cuts = [attribute.n_cuts for attribute in self.attributes]
        self.prefixes = PrefixLists(n_cuts, n_rows, starts, self.part_attribute, self.part_cut, self.part_above)
        self.codes = np.zeros((len(names), n_rows), np.int32)
        self.output = Output(self.n_queries, n_rows)
        self.regions: np.ndarray | None = None

    def layouts(self) -> dict[str, Layout]:
        """The layouts worth timing for this many queries and rows."""
        found: dict[str, Layout] = {"query-major": self.by_query}
        n_regions = sum(attribute.n_cuts + 1 for attribute in self.attributes)
        words = (self.n_queries + 63) // 64
        if len(self.attributes) == 5 and self.n_rows % 512 == 0 and n_regions * words * 8 <= _MAX_REGION_BYTES:
            found["row-major"] = self.by_row
        return found

    def _encode(self, batch: Batch) -> None:
        for a, attribute in enumerate(self.attributes):
            attribute.encode(batch[attribute.name], self.codes[a])

    def by_query(self, batch: Batch) -> RowLists:
        self._encode(batch)
        return self.prefixes.lists(self.codes)

    def _build_regions(self) -> np.ndarray:
        words = (self.n_queries + 63) // 64
        sizes = [attribute.n_cuts + 1 for attribute in self.attributes]
        self.first = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int64)
        regions = np.full((sum(sizes), words), FULL)
        for a, attribute in enumerate(self.attributes):
            mine = self.part_attribute == a
            kernels.fill_region(
                regions, int(self.first[a]), attribute.n_cuts, self.part_query[mine], self.part_cut[mine], self.part_above[mine]
            )
        self.lineage = np.zeros((self.n_rows, words), np.uint64)
        self.by_bits = np.zeros((words * 64, self.n_rows // 64), np.uint64)
        return regions

    def by_row(self, batch: Batch) -> RowLists:
        if self.regions is None:
            self.regions = self._build_regions()
        self._encode(batch)
        kernels.lineage_by_row(self.codes, self.regions, self.first, self.lineage)
        transpose(self.lineage, self.by_bits)
        out = self.output
        return out.lists(kernels.lists_of_bitmaps(self.by_bits, self.n_queries, BYTE_BITS, out.queries, out.offsets, out.rows))


class RangeQueries(Conjunctions):
    """Queries that are one range of one attribute each."""

    def __init__(self, workload: Workload, n_rows: int, *, narrow: bool) -> None:
        super().__init__(workload, n_rows)
        self.narrow = narrow
        self.low = self.part_cut[0::2].copy()
        self.high = self.part_cut[1::2].copy()
        self.ranks = np.zeros(self.attributes[0].n_cuts + 1, np.int32)
        self.order = np.zeros(n_rows, np.int32)

    def layouts(self) -> dict[str, Layout]:
        # sorting wide slices by insertion would take minutes
        return {"query-major": self.by_query} | ({"slices": self.by_slice} if self.narrow else {})

    def by_slice(self, batch: Batch) -> RowLists:
        (attribute,) = self.attributes
        self._encode(batch)
        kernels.order_by_code(self.codes[0], attribute.n_cuts, self.ranks, self.order)
        out = self.output
        n_lists = kernels.lists_of_ranges(self.low, self.high, self.ranks, self.order, out.queries, out.offsets, out.rows)
        return out.lists(n_lists)


class Candidates:
    """Queries `id = c AND lo <= x AND x <= hi`."""

    def __init__(self, workload: Workload, n_rows: int) -> None:
        n_queries = workload.n_queries
        ids = np.array([query[0].constant for query in workload.queries], np.int64)
        low = np.array([query[1].constant for query in workload.queries])
        high = np.nextafter(np.array([query[2].constant for query in workload.queries]), np.inf)
        keys, inverse = np.unique(ids, return_inverse=True)
        starts = np.concatenate([[0], np.cumsum(np.bincount(inverse))]).astype(np.int64)
        members = np.argsort(inverse, kind="stable").astype(np.int32)
        table, positions = kernels.build_hash(keys, 1 << int(2 * len(keys)).bit_length())
        #: from an id to its queries and their ranges
        self.index = (table, positions, starts, members, low[members], high[members])
        widest = int(np.diff(starts).max())
        self.pair_query = np.empty(n_rows * widest + 1, np.int32)
        self.pair_row = np.empty(n_rows * widest + 1, np.int32)
        self.touched = np.zeros((n_queries + 63) // 64, np.uint64)
        self.cursor = np.zeros(n_queries, np.int64)
        self.output = Output(n_queries, n_rows)

    def layouts(self) -> dict[str, Layout]:
        return {"candidates": self.by_pair}

    def by_pair(self, batch: Batch) -> RowLists:
        n_pairs = kernels.candidate_pairs(batch["id"], batch["x"], *self.index, self.pair_query, self.pair_row)
        out = self.output
        n_lists = kernels.lists_of_pairs(
            self.pair_query, self.pair_row, n_pairs, self.touched, self.cursor, out.queries, out.offsets, out.rows
        )
        return out.lists(n_lists)
