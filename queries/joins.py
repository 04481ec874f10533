"""The condition of a query over several inputs, in the parts a join runs.

    condition is TRUE on a combination of rows   iff
        own[k] is TRUE on the row of input k                          for every input k       (grouped filters)
        and key(left) = key(right) for every column pair              of every equality edge  (SteMs)
        and low <= key(right) - key(left) <= high                     for every band edge     (band indexes)
        and every residual is TRUE                                                            (predicate modules)

An edge joins two inputs, `left < right`, by columns named by their position in the input's *own* schema or, of an equality, by
an expression over that schema: a **derived column** (`stems/derived.py`). Equality edges are closed: whenever the written
equalities imply that a column of one input equals a column of another, the edge between the two is there, so every join order
finds it. All the pairs of two inputs are one edge, a key of several columns.

Keys, the domains in which columns are compared. A NULL has none, so it never joins:

    int, timestamp, bool   the value
    float                  the order key: NaN is one value above all others, -0.0 is 0.0
    string                 the text
    int with float         real numbers, exact beyond 2**53, as `filters/values/comparisons.py` compares them (DuckDB rounds the
    int).
                           Equality of real numbers is transitive, which equality after rounding is not: closing needs that.
                           Equality edges only; a band has two columns of one type

`stems/keys.py` computes them. `key(right) - key(left)` is meant without overflow: a bound and its negative fit into 64
bits, but a kernel that adds one to a key has to saturate.

Everything here is hashable and says nothing of aliases, windows or output columns: queries with equal values share modules.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from filters.expressions.expression import ColumnRef, Expression, columns_of, replace_columns
from filters.expressions.wording import say_expression
from lineage.schema import Type

#: In place of the position of a column that is not in the schema.
DERIVED = -1


@dataclass(frozen=True, slots=True)
class KeyColumn:
    """A column of an input that an edge compares."""

    #: position in the input's own schema; `DERIVED` iff it is computed
    position: int
    type: Type
    #: what it is computed by, over the input's own schema; None iff it is a column of the schema
    expression: Expression | None = None

    @classmethod
    def of(cls, expression: Expression) -> KeyColumn:
        """The column that an expression over the input's own schema is."""
        if isinstance(expression, ColumnRef):
            return cls(expression.position, expression.type)
        return cls(DERIVED, expression.type, expression)

    @property
    def place(self) -> tuple[int, str]:
        """Where it stands among the columns of a key: the same for every query."""
        return self.position, "" if self.expression is None else str(self.expression)

    def reads(self) -> list[int]:
        """The positions of the schema's columns that it reads."""
        return [self.position] if self.expression is None else [column.position for column in columns_of(self.expression)]

    def moved(self, place: Callable[[int], int]) -> KeyColumn:
        """The same column of a schema whose columns stand at other positions."""
        if self.expression is None:
            return KeyColumn(place(self.position), self.type)
        return KeyColumn.of(replace_columns(self.expression, lambda ref: ColumnRef(ref.type, ref.name, place(ref.position))))

    def say(self, names: Sequence[str]) -> str:
        """Its name, or its expression in words; `names` are those of the schema."""
        return names[self.position] if self.expression is None else say_expression(self.expression)


@dataclass(frozen=True, slots=True)
class EqualityEdge:
    """Two inputs whose rows meet when all pairs of columns are equal."""

    left: int
    right: int
    #: (column of left, column of right), by the place of the left one; no column stands in two pairs
    pairs: tuple[tuple[KeyColumn, KeyColumn], ...]

    def key(self, side: int) -> tuple[KeyColumn, ...]:
        """The key of one side's SteM, by place: equal for all edges, of any query, that look a row up by these columns."""
        return tuple(own for own, _ in self._sided(side))

    def probe(self, side: int) -> tuple[KeyColumn, ...]:
        """The other side's columns, in the order of `key(side)`: what a row that probes that SteM gives."""
        return tuple(other for _, other in self._sided(side))

    def _sided(self, side: int) -> list[tuple[KeyColumn, KeyColumn]]:
        assert side in (self.left, self.right), f"input {side} is no end of this edge"
        pairs = self.pairs if side == self.left else [(right, left) for left, right in self.pairs]
        return sorted(pairs, key=lambda pair: pair[0].place)


@dataclass(frozen=True, slots=True)
class BandEdge:
    """`low <= key(right_column) - key(left_column) <= high`; a bound of None is open, and not both are.

    Bounds are inclusive because keys are discrete: `left < right` is low = 1.
    """

    left: int
    right: int
    left_column: KeyColumn
    right_column: KeyColumn
    low: int | None
    high: int | None

    def bounds(self, side: int) -> tuple[int | None, int | None]:
        """`(low, high)` of that side's key minus the other's: where a row that probes looks for its partners."""
        assert side in (self.left, self.right), f"input {side} is no end of this edge"
        if side == self.right:
            return self.low, self.high
        return (None if self.high is None else -self.high), (None if self.low is None else -self.low)


@dataclass(frozen=True, slots=True)
class JoinResidual:
    """A condition over several inputs that no index serves."""

    #: the inputs it reads, ascending; at least two
    inputs: tuple[int, ...]
    #: over the concatenation of all inputs
    expression: Expression
    #: the names of the inputs it reads, and the expression over the concatenation of those alone: equal iff two queries can
    #: share the module, whatever else they read
    key: tuple[tuple[str, ...], Expression]


@dataclass(frozen=True, slots=True)
class Join:
    #: the stream or table of each input, in lower case
    names: tuple[str, ...]
    #: per input, the condition on its rows alone over its own schema; None keeps every row
    own: tuple[Expression | None, ...]
    #: by (left, right), at most one for two inputs
    equalities: tuple[EqualityEdge, ...]
    #: by (left, right) and their columns, at most one for two columns
    bands: tuple[BandEdge, ...]
    #: in the order of the text
    residuals: tuple[JoinResidual, ...]

    @property
    def key(self) -> tuple[object, ...]:
        """Equal iff two queries join the same streams in the same way; their own conditions and windows may differ."""
        return self.names, self.equalities, self.bands, frozenset(residual.key for residual in self.residuals)

    def parts(self) -> list[list[int]]:
        """The inputs, grouped so that no edge or residual leads from one group to another; several: a cross product."""
        part = list(range(len(self.names)))
        groups: list[tuple[int, ...]] = [(edge.left, edge.right) for edge in self.equalities]
        groups += [(edge.left, edge.right) for edge in self.bands]
        groups += [residual.inputs for residual in self.residuals]
        for group in groups:
            merged = {part[number] for number in group}
            part = [min(merged) if at in merged else at for at in part]
        return [[number for number, at in enumerate(part) if at == first] for first in sorted(set(part))]
