"""The join search: combinations of stored rows that satisfy the edges and residuals of a join.

A walk starts with rows of one input and adds the other inputs one by one, in an order it is given, each through an index by an
edge to an input it has (or, where nothing joins them, with every row). After each step the caller's `keep` says which
combinations go on: those wanted by some query. Every edge and residual is checked as soon as its inputs are there.

A walk gives its combinations in parts of at most `PART_ROWS`; inside it holds a part for each input at most, however many matches
a key has.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Sequence, Set
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from eddy.streams.source import Source
from filters.expressions.evaluate import true_rows
from filters.expressions.expression import ColumnRef, Expression, FunctionCall
from filters.values.comparisons import float_keys
from lineage.dictionary import Dictionary
from lineage.kernels import kernel
from lineage.schema import Type
from queries.joins import BandEdge, EqualityEdge, Join, KeyColumn
from stems.derived import DerivedColumn
from stems.frame import RowsFrame
from stems.hash_index import HashIndex, Probe
from stems.key_ranges import KeyRanges, shifted_ranges
from stems.keys import KeyFolding
from stems.sorted_index import RangeProbe, SortedIndex

#: Combinations of one part.
PART_ROWS = 1 << 14


class Reach(NamedTuple):
    """The rows of an input that a walk may add: `low <= position < hi`."""

    low: int
    hi: int


#: Rows of one input: those that follow each other, or positions.
Rows = Reach | np.ndarray


@kernel("void(int64[::1], int32[::1], int64[::1])")
def take_rows(values: np.ndarray, rows: np.ndarray, out: np.ndarray) -> None:
    """`out[i] = values[rows[i]]`, without numpy's copy of the rows to 64 bits."""
    for i in range(len(rows)):
        out[i] = values[np.uint64(rows[i])]


@kernel("void(int64, int32[::1], int64[::1])")
def count_from(low: int, rows: np.ndarray, out: np.ndarray) -> None:
    """`out[i] = low + rows[i]`: `take_rows` of consecutive positions."""
    for i in range(len(rows)):
        out[i] = low + rows[i]


class Combinations:
    """Rows side by side: positions by input, of the inputs added so far."""

    __slots__ = ("_rows", "_n")

    def __init__(self, rows: dict[int, Rows], n: int) -> None:
        #: by input; rows that follow each other only before the first other input is added
        self._rows = rows
        self._n = n

    def __len__(self) -> int:
        return self._n

    @property
    def inputs(self) -> Collection[int]:
        """The inputs added so far."""
        return self._rows.keys()

    def take(self, rows: np.ndarray) -> Combinations:
        return Combinations({k: self.at(k).take(rows) for k in self._rows}, len(rows))

    def grow(self, rows: np.ndarray, added: int, found: np.ndarray) -> Combinations:
        """The combinations numbered by `rows` (int32), each with a row of one more input."""
        grown: dict[int, Rows] = {}
        for k, held in self._rows.items():
            positions = np.empty(len(rows), np.int64)
            if isinstance(held, Reach):
                count_from(held.low, rows, positions)
            else:
                take_rows(held, rows, positions)
            grown[k] = positions
        grown[added] = found
        return Combinations(grown, len(rows))

    def rows(self, k: int) -> Rows:
        """The rows of an input, as a range or positions."""
        return self._rows[k]

    def at(self, k: int) -> np.ndarray:
        """The positions of an input's rows."""
        held = self._rows[k]
        if isinstance(held, Reach):
            held = self._rows[k] = np.arange(held.low, held.hi)
        return held


#: Which of the combinations go on, after the input of that number was added.
Keep = Callable[[Combinations, int], Combinations]
#: A probe of an input took so many combinations, gave so many, in so many nanoseconds.
Visited = Callable[[int, int, int, int], None]


def _ignore(added: int, rows_in: int, rows_out: int, ns: int) -> None:
    pass


@dataclass(frozen=True, slots=True)
class _Step:
    """How one input is added: the edge and index for the look-up, and the conditions checked then."""

    added: int
    #: the input that the edge leads from, and its columns or key column
    other: int
    columns: tuple[int, ...]
    edge: EqualityEdge | BandEdge | None
    index: HashIndex | SortedIndex | None
    folding: KeyFolding | None
    #: edges and residuals whose inputs are all there then
    conditions: tuple[Expression, ...]
    bands: tuple[BandEdge, ...]


class _WalkTask(NamedTuple):
    """The arguments of one walk."""

    reach: list[Reach]
    keep: Keep
    visited: Visited
    part_rows: int


class Walker:
    """Walks one join over the sources of its inputs; holds the indexes for it until `release`."""

    def __init__(self, join: Join, sources: list[Source]) -> None:
        self.join = join
        self.sources = sources
        self._offsets = np.cumsum([0, *(len(source.schema) for source in sources)]).tolist()
        #: by input and expression, the derived columns of the edges, and their places behind those of all inputs
        self._derived: dict[tuple[int, Expression], DerivedColumn] = {}
        self._places: dict[tuple[int, Expression], int] = {}
        self._hash: dict[tuple[EqualityEdge, int], tuple[HashIndex, KeyFolding]] = {}
        self._sorted: dict[tuple[BandEdge, int], SortedIndex] = {}
        #: values of residuals that could not be computed
        self._errors = 0
        #: by the first input and the order of the others
        self._steps: dict[tuple[int, tuple[int, ...]], list[_Step]] = {}
        #: by depth, where the pairs of a probe are written
        self._pairs: list[tuple[np.ndarray, np.ndarray]] = []
        for edge in join.equalities:
            for side, other in ((edge.left, edge.right), (edge.right, edge.left)):
                index = sources[side].stems.hash_on(self._positions(side, edge.key(side)))
                self._hash[edge, side] = (index, self._folding(edge, side, other))
        for band in join.bands:
            for side, column in ((band.left, band.left_column), (band.right, band.right_column)):
                self._sorted[band, side] = sources[side].stems.sorted_on(column.position)

    def _folding(self, edge: EqualityEdge, side: int, other: int) -> KeyFolding:
        def described(k: int, columns: Sequence[KeyColumn]) -> list[tuple[Type, Dictionary | None]]:
            return [(column.type, self.sources[k].dictionaries[at]) for column, at in zip(columns, self._positions(k, columns))]

        return KeyFolding.of_probing(described(other, edge.probe(side)), described(side, edge.key(side)))

    def _positions(self, k: int, columns: Sequence[KeyColumn]) -> list[int]:
        """The positions of an input's key columns in its store; derived columns are held from now on."""
        return [column.position if column.expression is None else self._held(k, column.expression).position for column in columns]

    def _held(self, k: int, expression: Expression) -> DerivedColumn:
        found = self._derived.get((k, expression))
        if found is None:
            found = self._derived[k, expression] = self.sources[k].derived.hold(expression)
            self._places[k, expression] = self._offsets[-1] + len(self._places)
        return found

    @property
    def errors(self) -> int:
        """Failed evaluations so far: of residuals once a combination, of derived columns once a stored row."""
        return self._errors + sum(column.errors for column in set(self._derived.values()))

    def release(self) -> None:
        for side, (index, _) in ((key[1], held) for key, held in self._hash.items()):
            self.sources[side].stems.release(index)
        for (_, side), sorted_index in self._sorted.items():
            self.sources[side].stems.release(sorted_index)
        for (k, _), column in self._derived.items():
            self.sources[k].derived.release(column)

    def recall(self, births: Sequence[int]) -> None:
        """Make the indexes hold the rows from these positions on, by input."""
        held: list[tuple[int, HashIndex | SortedIndex]] = [(side, index) for (_, side), (index, _) in self._hash.items()]
        held += [(side, sorted_index) for (_, side), sorted_index in self._sorted.items()]
        for side, index in held:
            if births[side] < index.since:
                self.sources[side].stems.recall(index)

    # ---- walking

    def walk(
        self, first: int, rows: Rows, order: list[int], reach: list[Reach], keep: Keep, visited: Visited = _ignore,
        part_rows: int = PART_ROWS,
    ) -> Iterator[Combinations]:  # fmt: skip
        """All combinations with one of these rows of input `first`; the other inputs are added in the given order."""
        begun = keep(Combinations({first: rows}, n_rows(rows)), first)
        if not order:
            yield from [begun] if len(begun) else []
        else:
            yield from self._extend(begun, self._steps_of(first, tuple(order)), _WalkTask(reach, keep, visited, part_rows), 0)

    def ready(self, bound: set[int]) -> list[int]:
        """The inputs that may be added next to the `bound` ones: by an equality, else by a band, else any."""
        left = [k for k in range(len(self.sources)) if k not in bound]
        for edges in (self.join.equalities, self.join.bands):
            found = [k for k in left if any(_leads(edge, k, bound) for edge in edges)]
            if found:
                return found
        return left

    def order(self, first: int) -> list[int]:
        """The other inputs, in the first order that `ready` allows."""
        bound, order = {first}, []
        while len(bound) < len(self.sources):
            order.append(self.ready(bound)[0])
            bound.add(order[-1])
        return order

    def _extend(self, held: Combinations, steps: list[_Step], walk: _WalkTask, depth: int) -> Iterator[Combinations]:
        """Add the inputs of the steps from `depth` on, at least one."""
        if not len(held):
            return
        step, last = steps[depth], depth + 1 == len(steps)
        ns, rows_out, began = 0, 0, time.perf_counter_ns()
        for rows, positions in self._partners(held, step, walk, depth):
            grown = held.grow(rows, step.added, positions)
            if step.conditions or step.bands:
                grown = self._check(grown, step)
            grown = walk.keep(grown, step.added)
            rows_out += len(grown)
            ns += time.perf_counter_ns() - began
            if not last:
                yield from self._extend(grown, steps, walk, depth + 1)
            elif len(grown):
                yield grown
            began = time.perf_counter_ns()
        walk.visited(step.added, len(held), rows_out, ns + time.perf_counter_ns() - began)

    def _partners(
        self, held: Combinations, step: _Step, walk: _WalkTask, depth: int
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:  # fmt: skip
        """(combination, position) pairs that satisfy the edge of a step, in parts."""
        low, hi = walk.reach[step.added]
        low = max(low, self.sources[step.added].store.watermark)
        probe: Probe | RangeProbe
        if isinstance(step.index, HashIndex):
            columns = [self._gather(held, step.other, column) for column in step.columns]
            assert step.folding is not None, "keys of the other side are brought to the form of this one"
            keys = step.folding.fold([cells for cells, _ in columns], [nulls for _, nulls in columns])
            probe = step.index.probe(keys, low, hi)
        elif step.index is not None:
            assert isinstance(step.edge, BandEdge), "ranges serve bands"
            probe = step.index.probe(self._ranges(held, step.edge, step.added), low, hi)
        else:
            yield from _product(len(held), low, hi, walk.part_rows)
            return
        out_row, out_position = self._room(depth, walk.part_rows)
        while n := probe.fill(out_row, out_position):
            yield out_row[:n], out_position[:n].copy()

    def _room(self, depth: int, part_rows: int) -> tuple[np.ndarray, np.ndarray]:
        """Buffers for the pairs of a probe; a walk has at most one probe in progress for each depth."""
        while len(self._pairs) <= depth or len(self._pairs[depth][0]) < part_rows:
            del self._pairs[depth:]
            self._pairs.append((np.empty(part_rows, np.int32), np.empty(part_rows, np.int64)))
        rows, positions = self._pairs[depth]
        return rows[:part_rows], positions[:part_rows]

    def _steps_of(self, first: int, order: tuple[int, ...]) -> list[_Step]:
        """The steps that add the inputs of an order to the first."""
        found = self._steps.get((first, order))
        if found is None:
            found = self._steps[first, order] = []
            bound = frozenset([first])
            for added in order:
                found.append(self._step(bound, added))
                bound |= {added}
        return found

    def _step(self, bound: frozenset[int], added: int) -> _Step:
        """The step that adds an input to the `bound` ones."""
        edges: list[EqualityEdge | BandEdge] = [*self.join.equalities, *self.join.bands]
        edge = next((edge for edge in edges if _leads(edge, added, bound)), None)
        other, columns = added, tuple[int, ...]()
        index: HashIndex | SortedIndex | None = None
        folding = None
        if edge is not None:
            other = edge.left if added == edge.right else edge.right
        if isinstance(edge, EqualityEdge):
            columns = tuple(self._positions(other, edge.probe(added)))
            index, folding = self._hash[edge, added]
        elif isinstance(edge, BandEdge):
            index = self._sorted[edge, added]
        return _Step(added, other, columns, edge, index, folding, *self._completed(bound, added, edge))

    def _completed(
        self, bound: frozenset[int], added: int, probed: EqualityEdge | BandEdge | None
    ) -> tuple[tuple[Expression, ...], tuple[BandEdge, ...]]:
        """The conditions and bands that can be checked once an input is added, without the probed edge."""
        now = bound | {added}
        conditions = []
        for edge in self.join.equalities:
            if edge is not probed and added in (edge.left, edge.right) and {edge.left, edge.right} <= now:
                conditions += [self._equal(edge, left, right) for left, right in edge.pairs]
        for residual in self.join.residuals:
            if added in residual.inputs and now.issuperset(residual.inputs):
                conditions.append(residual.expression)
        bands = [band for band in self.join.bands if band is not probed and _leads(band, added, bound)]
        return tuple(conditions), tuple(bands)

    def _gather(self, held: Combinations, k: int, column: int) -> tuple[np.ndarray, np.ndarray | None]:
        gatherer, rows = self.sources[k].gatherer, held.rows(k)
        return gatherer.cells_between(column, *rows) if isinstance(rows, Reach) else gatherer.cells(column, rows)

    def _ranges(self, held: Combinations, band: BandEdge, added: int) -> KeyRanges:
        """The range of each combination's partners on the band's column of an input."""
        other = band.left if added == band.right else band.right
        keys, nulls = self._keys(held, other, band.left_column if other == band.left else band.right_column)
        return shifted_ranges(keys, nulls, *band.bounds(added))

    def _keys(self, held: Combinations, k: int, column: KeyColumn) -> tuple[np.ndarray, np.ndarray | None]:
        cells, nulls = self._gather(held, k, column.position)
        return (float_keys(cells.view(np.float64)) if column.type is Type.FLOAT else cells), nulls

    # ---- checking

    def _check(self, held: Combinations, step: _Step) -> Combinations:
        """The combinations that satisfy every edge and residual completed by the input just added."""
        for band in step.bands:
            held = self._inside(held, band, step.added)
        for condition in step.conditions:
            held = self._true(held, condition)
        return held

    def _true(self, held: Combinations, expression: Expression) -> Combinations:
        if not len(held):
            return held
        frame = self.frame(held)
        rows = true_rows(expression, frame)
        self._errors += frame.errors
        return held if rows.all() else held.take(np.flatnonzero(rows))

    def _equal(self, edge: EqualityEdge, left: KeyColumn, right: KeyColumn) -> Expression:
        return FunctionCall(Type.BOOL, "=", (self._ref(edge.left, left), self._ref(edge.right, right)))

    def _ref(self, k: int, column: KeyColumn) -> ColumnRef:
        """A reference to an input's column in `frame`."""
        place = self._offsets[k] + column.position if column.expression is None else self._places[k, column.expression]
        return ColumnRef(column.type, column.say(self.sources[k].schema.names), place)

    def _inside(self, held: Combinations, band: BandEdge, added: int) -> Combinations:
        if not len(held):
            return held
        ranges = self._ranges(held, band, added)
        keys, nulls = self._keys(held, added, band.left_column if added == band.left else band.right_column)
        rows = (ranges.lowest <= keys) & (keys <= ranges.highest)
        if nulls is not None:
            rows &= nulls == 0
        return held if rows.all() else held.take(np.flatnonzero(rows))

    def frame(self, held: Combinations) -> RowsFrame:
        """The rows of combinations side by side; only columns of added inputs may be read."""
        none = np.zeros(0, np.int64)
        positions = [held.at(k) if k in held.inputs else none for k in range(len(self.sources))]
        gatherers, dictionaries = zip(*((source.gatherer, source.dictionaries) for source in self.sources), strict=True)
        derived = [(k, column.position) for (k, _), column in self._derived.items()]
        frame = RowsFrame(gatherers, dictionaries, positions, derived)
        frame.n_rows = len(held)
        return frame


def n_rows(rows: Rows) -> int:
    return max(0, rows.hi - rows.low) if isinstance(rows, Reach) else len(rows)


def _leads(edge: EqualityEdge | BandEdge, k: int, bound: Set[int]) -> bool:
    """Whether an edge connects a bound input with input k."""
    return (edge.left == k and edge.right in bound) or (edge.right == k and edge.left in bound)


def _product(n: int, low: int, hi: int, part_rows: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Every row of an input paired with each of n combinations, in parts."""
    for start in range(low, hi, part_rows):
        positions = np.arange(start, min(hi, start + part_rows))
        together = max(1, part_rows // len(positions))
        for first in range(0, n, together):
            rows = np.arange(first, min(n, first + together), dtype=np.int32)
            yield np.repeat(rows, len(positions)), np.tile(positions, len(rows))
