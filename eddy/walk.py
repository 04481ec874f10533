"""Finding combinations of stored rows that satisfy the edges and residuals of a join, with the queries that want them.

A walk starts with rows of one input and adds the other inputs one by one, each through an index by an edge to an input it
has (or, where nothing joins them, with every row). Every combination carries the bits of the queries that still want it:

    bits(combination) = AND over its inputs of the bits of the row there

and is dropped when none is left. A walk gives its combinations in parts of at most `PART_ROWS`; inside it holds a part for each
input at most, however many matches a key has.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from eddy.source import Source
from filters.comparisons import float_keys
from filters.evaluate import true_rows
from filters.expression import Call, ColumnRef, Expression
from lineage.dictionary import Dictionary
from lineage.schema import Type
from queries.joins import BandEdge, EqualityEdge, Join, KeyColumn
from stems.frame import RowsFrame
from stems.hash_index import HashIndex, Probe
from stems.key_ranges import Ranges, shifted_ranges
from stems.keys import KeyFolding
from stems.sorted_index import RangeProbe, SortedIndex

#: Combinations of one part.
PART_ROWS = 1 << 16


class Reach(NamedTuple):
    """Which rows of an input a walk may add: `low <= position < hi`; `hi` may be one for each combination it starts with."""

    low: int
    hi: int | np.ndarray


class Combinations(NamedTuple):
    """Rows side by side: positions by input, -1 for inputs not added yet, and bits by word."""

    positions: list[np.ndarray | None]
    bits: np.ndarray
    #: the row of the walk's first input that each grew from
    origin: np.ndarray

    def take(self, rows: np.ndarray) -> Combinations:
        positions = [None if column is None else column[rows] for column in self.positions]
        return Combinations(positions, self.bits[rows], self.origin[rows])


#: The bits of the queries that want the rows at some positions of an input.
Wanted = Callable[[int, np.ndarray], np.ndarray]


class Walker:
    """Walks one join over the sources of its inputs; holds the indexes it needs until `release`."""

    def __init__(self, join: Join, sources: list[Source]) -> None:
        self.join = join
        self.sources = sources
        self._offsets = np.cumsum([0, *(len(source.schema) for source in sources)]).tolist()
        self._hash: dict[tuple[EqualityEdge, int], tuple[HashIndex, KeyFolding]] = {}
        self._sorted: dict[tuple[BandEdge, int], SortedIndex] = {}
        #: values of residuals that could not be computed
        self.errors = 0
        for edge in join.equalities:
            for side, other in ((edge.left, edge.right), (edge.right, edge.left)):
                index = sources[side].stems.hash_on([column.position for column in edge.key(side)])
                self._hash[edge, side] = (index, self._folding(edge, side, other))
        for band in join.bands:
            for side, column in ((band.left, band.left_column), (band.right, band.right_column)):
                self._sorted[band, side] = sources[side].stems.sorted_on(column.position)

    def _folding(self, edge: EqualityEdge, side: int, other: int) -> KeyFolding:
        def described(source: Source, positions: list[int]) -> list[tuple[Type, Dictionary | None]]:
            return [(source.schema.columns[at].type, source.dictionaries[at]) for at in positions]

        probing = described(self.sources[other], [column.position for column in edge.probe(side)])
        stored = described(self.sources[side], [column.position for column in edge.key(side)])
        return KeyFolding.of_probing(probing, stored)

    def release(self) -> None:
        for side, (index, _) in ((key[1], held) for key, held in self._hash.items()):
            self.sources[side].stems.release(index)
        for (_, side), sorted_index in self._sorted.items():
            self.sources[side].stems.release(sorted_index)

    def recall(self, births: Sequence[int]) -> None:
        """Make sure that the indexes hold the rows from these positions on, by input."""
        held: list[tuple[int, HashIndex | SortedIndex]] = [(side, index) for (_, side), (index, _) in self._hash.items()]
        held += [(side, sorted_index) for (_, side), sorted_index in self._sorted.items()]
        for side, index in held:
            if births[side] < index.since:
                self.sources[side].stems.recall(index)

    # ---- walking

    def walk(
        self, first: int, positions: np.ndarray, bits: np.ndarray, reach: list[Reach], wanted: Wanted
    ) -> Iterator[Combinations]:
        """All combinations with a row of input `first` at one of the positions, which the queries in `bits` want."""
        start: list[np.ndarray | None] = [None] * len(self.sources)
        start[first] = positions
        begun = Combinations(start, bits, np.arange(len(positions)))
        yield from self._extend(self._keep(begun, bits), self._order(first), reach, wanted)

    def _order(self, first: int) -> list[int]:
        """The other inputs, each joined by an equality to those before it if that can be, else by a band, else by nothing."""
        bound, order = {first}, []
        ends = [{edge.left, edge.right} for edge in self._edges()]
        while len(bound) < len(self.sources):
            left = [k for k in range(len(self.sources)) if k not in bound]
            # the edges come in the order of preference
            found = next((k for pair in ends for k in left if k in pair and pair & bound), left[0])
            bound.add(found)
            order.append(found)
        return order

    def _extend(self, held: Combinations, order: list[int], reach: list[Reach], wanted: Wanted) -> Iterator[Combinations]:
        if not len(held.origin):
            return
        if not order:
            yield held
            return
        added = order[0]
        for rows, positions in self._partners(held, added, reach[added]):
            grown = held.take(rows)
            grown.positions[added] = positions
            grown = self._keep(grown, grown.bits & wanted(added, positions))
            grown = self._check(grown, added)
            yield from self._extend(grown, order[1:], reach, wanted)

    def _keep(self, held: Combinations, bits: np.ndarray) -> Combinations:
        rows = np.flatnonzero(bits.any(axis=1))
        return Combinations(held.positions, bits, held.origin) if len(rows) == len(bits) else held._replace(bits=bits).take(rows)

    def _partners(self, held: Combinations, added: int, reach: Reach) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """(combination, position) pairs of an input that one edge admits, in parts."""
        hi = reach.hi if isinstance(reach.hi, int) else reach.hi[held.origin]
        probe: Probe | RangeProbe | None = None
        edge = self._edge(held, added)
        if isinstance(edge, EqualityEdge):
            index, folding = self._hash[edge, added]
            other = edge.left if added == edge.right else edge.right
            columns = [self._gather(held, other, column.position) for column in edge.probe(added)]
            keys = folding.fold([cells for cells, _ in columns], [nulls for _, nulls in columns])
            probe = index.probe(keys, max(reach.low, self.sources[added].store.watermark), hi)
        elif isinstance(edge, BandEdge):
            low = max(reach.low, self.sources[added].store.watermark)
            probe = self._sorted[edge, added].probe(self._ranges(held, edge, added), low, hi)
        if probe is not None:
            out_row, out_position = np.empty(PART_ROWS, np.int32), np.empty(PART_ROWS, np.int64)
            while n := probe.fill(out_row, out_position):
                yield out_row[:n].copy(), out_position[:n].copy()
            return
        yield from _product(len(held.origin), max(reach.low, self.sources[added].store.watermark), hi)

    def _edge(self, held: Combinations, added: int) -> EqualityEdge | BandEdge | None:
        for edge in self._edges():
            if added in (edge.left, edge.right):
                other = edge.left if added == edge.right else edge.right
                if held.positions[other] is not None:
                    return edge
        return None

    def _edges(self) -> list[EqualityEdge | BandEdge]:
        """In order of preference."""
        return [*self.join.equalities, *self.join.bands]

    def _gather(self, held: Combinations, k: int, column: int) -> tuple[np.ndarray, np.ndarray | None]:
        positions = held.positions[k]
        assert positions is not None, "an edge leads to an input that the walk has"
        return self.sources[k].store.gather(column, positions)

    def _ranges(self, held: Combinations, band: BandEdge, added: int) -> Ranges:
        """Where the partners of each combination lie on the band's column of an input."""
        other = band.left if added == band.right else band.right
        keys, nulls = self._keys(held, other, band.left_column if other == band.left else band.right_column)
        return shifted_ranges(keys, nulls, *band.bounds(added))

    def _keys(self, held: Combinations, k: int, column: KeyColumn) -> tuple[np.ndarray, np.ndarray | None]:
        cells, nulls = self._gather(held, k, column.position)
        return (float_keys(cells.view(np.float64)) if column.type is Type.FLOAT else cells), nulls

    # ---- checking

    def _check(self, held: Combinations, added: int) -> Combinations:
        """Keep what satisfies every edge and residual that the input just added completes."""
        probed = self._edge(_without(held, added), added)
        for edge in self.join.equalities:
            if added in (edge.left, edge.right) and edge is not probed and self._has(held, (edge.left, edge.right)):
                for left, right in edge.pairs:
                    held = self._true(held, self._equal(edge, left, right))
        for band in self.join.bands:
            if added in (band.left, band.right) and band is not probed and self._has(held, (band.left, band.right)):
                held = self._inside(held, band, added)
        for residual in self.join.residuals:
            if added in residual.inputs and self._has(held, residual.inputs):
                held = self._true(held, residual.expression)
        return held

    def _true(self, held: Combinations, expression: Expression) -> Combinations:
        if not len(held.origin):
            return held
        frame = self.frame(held)
        rows = true_rows(expression, frame)
        self.errors += frame.errors
        return held if rows.all() else held.take(np.flatnonzero(rows))

    def _equal(self, edge: EqualityEdge, left: KeyColumn, right: KeyColumn) -> Expression:
        refs = [
            ColumnRef(column.type, self.sources[k].schema.names[column.position], self._offsets[k] + column.position)
            for k, column in ((edge.left, left), (edge.right, right))
        ]
        return Call(Type.BOOL, "=", tuple(refs))

    def _inside(self, held: Combinations, band: BandEdge, added: int) -> Combinations:
        if not len(held.origin):
            return held
        ranges = self._ranges(held, band, added)
        keys, nulls = self._keys(held, added, band.left_column if added == band.left else band.right_column)
        rows = (ranges.lowest <= keys) & (keys <= ranges.highest)
        if nulls is not None:
            rows &= nulls == 0
        return held if rows.all() else held.take(np.flatnonzero(rows))

    def _has(self, held: Combinations, inputs: tuple[int, ...]) -> bool:
        return all(held.positions[k] is not None for k in inputs)

    def frame(self, held: Combinations) -> RowsFrame:
        """The rows of combinations side by side; columns of inputs not added yet may not be read."""
        none = np.zeros(0, np.int64)
        positions = [none if column is None else column for column in held.positions]
        frame = RowsFrame([source.store for source in self.sources], [source.dictionaries for source in self.sources], positions)
        frame.n_rows = len(held.origin)
        return frame


def _without(held: Combinations, added: int) -> Combinations:
    return held._replace(positions=[None if k == added else column for k, column in enumerate(held.positions)])


def _product(n: int, low: int, hi: int | np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Every row of an input for each of n combinations, in parts."""
    tops = np.full(n, hi) if isinstance(hi, int) else hi
    for row, top in enumerate(tops.tolist()):
        for start in range(low, top, PART_ROWS):
            positions = np.arange(start, min(top, start + PART_ROWS))
            yield np.full(len(positions), row, np.int32), positions
