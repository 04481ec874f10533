"""The state of all aggregates of one group-by: columns and operands by slot, parts by group, shared where aggregates allow it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np

from filters.values.vector import DTYPES, Array, Vector
from lineage.growth import LEAST
from lineage.schema import Type
from windows.aggregates.aggregate import AggregateKind, AggregateSpec
from windows.aggregates.chains import Chains
from windows.aggregates.distinct_counts import DistinctCounts
from windows.aggregates.extremes import Extremes, Medians
from windows.aggregates.operands import Operand, OperandColumn
from windows.aggregates.part import AggregatePart
from windows.aggregates.steps import AggregateSteps
from windows.aggregates.sums import Counts, FloatSums, IntSums, Variances

T = TypeVar("T")


class AggregateState:
    """Columns, operands and parts of some aggregates over an input with these column types."""

    def __init__(self, types: Sequence[Type], aggregates: Sequence[AggregateSpec]) -> None:
        self._types = types
        self.aggregates = tuple(aggregates)
        self._columns: dict[Any, OperandColumn] = {}
        self._operands: dict[Any, Operand] = {}
        self._parts: dict[Any, AggregatePart] = {}
        #: rows of each group, whatever any FILTER says
        self._rows = self._made(self._parts, "rows", lambda: Counts(self._operand(None, None)))
        #: the part of each aggregate
        self._of = [self._part(aggregate) for aggregate in aggregates]
        self._n_groups = self._n_slots = LEAST

    # ---- what the aggregates need

    def _made(self, things: dict[Any, T], key: Any, make: Any) -> T:
        if key not in things:
            things[key] = make()
        return things[key]

    def _column(self, place: int, type: Type) -> OperandColumn:
        return self._made(self._columns, (place, type), lambda: OperandColumn(place, type))

    def _operand(self, column: OperandColumn | None, filter: int | None, with_nulls: bool = False) -> Operand:
        key = (None if column is None else (column.place, column.type), filter, with_nulls)
        return self._made(self._operands, key, lambda: Operand(column, filter, with_nulls))

    def _part(self, aggregate: AggregateSpec) -> AggregatePart:
        kind, place = aggregate.kind, aggregate.argument
        if place is None:
            assert kind is AggregateKind.COUNT, "only COUNT has no argument"
            operand = self._operand(None, aggregate.filter)
            return self._made(self._parts, ("rows" if aggregate.filter is None else operand), lambda: Counts(operand))
        type = self._types[place]
        if kind in (AggregateKind.VARIANCE, AggregateKind.STDDEV):
            # as in DuckDB, ints are floats first
            type = Type.FLOAT
        operand = self._operand(self._column(place, type), aggregate.filter, kind in (AggregateKind.FIRST, AggregateKind.LAST))
        assert not aggregate.distinct or kind is AggregateKind.COUNT, "DISTINCT is for COUNT"
        if aggregate.distinct:
            return self._made(self._parts, ("distinct", operand), lambda: DistinctCounts(operand))
        match kind:
            case AggregateKind.COUNT:
                return self._made(self._parts, ("count", operand), lambda: Counts(operand))
            case AggregateKind.SUM | AggregateKind.AVG:
                sums = self._made(
                    self._parts, ("sums", operand), lambda: FloatSums(operand) if type is Type.FLOAT else IntSums(operand)
                )
                assert isinstance(sums, FloatSums | IntSums), "made just so"
                sums.kinds.add(kind)
                return sums
            case AggregateKind.VARIANCE | AggregateKind.STDDEV:
                return self._made(self._parts, ("variances", operand), lambda: Variances(operand))
            case AggregateKind.MIN | AggregateKind.MAX:
                return self._made(self._parts, (kind, operand), lambda: Extremes(operand, kind))
            case AggregateKind.MEDIAN:
                return self._made(self._parts, ("medians", operand), lambda: Medians(operand))
            case AggregateKind.FIRST | AggregateKind.LAST:
                return self._made(self._parts, ("chains", operand), lambda: Chains(operand))

    # ---- a commit

    def hold(self, n_groups: int, n_slots: int) -> None:
        """Make room for so many groups and slots."""
        if (n_groups, n_slots) == (self._n_groups, self._n_slots):
            return
        self._n_groups, self._n_slots = n_groups, n_slots
        for column in self._columns.values():
            column.hold(n_slots)
        for operand in self._operands.values():
            operand.hold(n_slots)
        for part in self._parts.values():
            part.hold(n_groups, n_slots)

    def enter(self, slots: Array, groups: Array, columns: list[Vector]) -> None:
        """Take the rows that begin in this commit, with the codes of their groups."""
        if len(slots) == 0:
            return
        for column in self._columns.values():
            column.enter(slots, columns)
        for operand in self._operands.values():
            operand.enter(slots, columns)
        for part in self._parts.values():
            part.enter(slots, groups)

    def walk(self, steps: AggregateSteps) -> tuple[Array, Array, Array]:
        """Apply all steps; return the group's number of rows at each reading, and cells and null bytes `[aggregate, reading]`."""
        for part in self._parts.values():
            part.walk(steps)
        cells = np.empty((len(self._of), steps.n_readings), np.int64)
        nulls = np.empty((len(self._of), steps.n_readings), np.uint8)
        for k, (part, aggregate) in enumerate(zip(self._of, self.aggregates)):
            cells[k], nulls[k] = part.values(aggregate.kind)
            if aggregate.type is Type.FLOAT:
                # one form for equal floats
                floats = cells[k].view(np.float64)
                floats += 0.0
                floats[np.isnan(floats)] = np.nan
        cells[nulls != 0] = 0
        return self._rows.values(AggregateKind.COUNT)[0], cells, nulls

    def leave(self, slots: Array) -> None:
        """Release the rows that ended in this commit."""
        for part in self._parts.values():
            part.leave(slots)

    def clear(self) -> None:
        """Reset to the initial size; no row is alive."""
        self._n_groups = self._n_slots = LEAST
        for thing in self._things():
            thing.clear()

    # ---- values

    def vector(self, k: int, cells: Array, nulls: Array) -> Vector:
        """Return cells of aggregate k as a vector of values."""
        aggregate = self.aggregates[k]
        if aggregate.type is Type.STRING:
            assert aggregate.argument is not None, "a text comes from a column"
            return self._column(aggregate.argument, Type.STRING).vector(cells, nulls)
        mask = nulls.astype(np.bool_) if nulls.any() else None
        if aggregate.type is Type.FLOAT:
            return Vector(Type.FLOAT, cells.view(np.float64), mask)
        return Vector(aggregate.type, cells.astype(DTYPES[aggregate.type], copy=False), mask)

    def many_texts(self, n_live: int) -> bool:
        """Whether in some column most texts belong to rows that ended."""
        return any(column.many_texts(n_live) for column in self._columns.values())

    def forget_texts(self, live: Array, shown: Array) -> None:
        """Drop the texts that no live row has, and renumber the codes in `shown`, the cells `[aggregate, group]`."""
        for column in self._columns.values():
            if column.type is Type.STRING:
                remap = column.forget_texts(live)
                for k, aggregate in enumerate(self.aggregates):
                    if aggregate.type is Type.STRING and aggregate.argument == column.place:
                        # groups that are gone may show any code
                        shown[k] = np.maximum(remap[np.minimum(shown[k], len(remap) - 1)], 0)

    @property
    def errors(self) -> int:
        return sum(part.errors for part in self._parts.values())

    @property
    def failures(self) -> Array:
        """How many values could not be computed at each reading of the last walk; there is one."""
        found: Array = np.sum([part.failures for part in self._parts.values() if part.failures is not None], axis=0)
        return found

    @property
    def bytes(self) -> int:
        return sum(thing.bytes for thing in self._things())

    def _things(self) -> list[OperandColumn | Operand | AggregatePart]:
        return [*self._columns.values(), *self._operands.values(), *self._parts.values()]
