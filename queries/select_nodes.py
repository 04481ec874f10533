"""From the inputs of a SELECT, its condition and its columns to the node that gives its rows.

    streams and tables as they are        a Block
    one other input                       a Select above it
    several, at least one of them other   a JoinNode above one node for each input

What reads one input alone is done below a join and below a Slide, by the block that reads it, in the shared eddy; and only the
columns that are still needed go up. That changes no answer: a condition on a row, and an expression over it, are the same
before and after a window that looks at the row's time alone. A window that counts rows is inside its block, which counts
before it selects.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import replace

from filters.expressions.expression import ColumnRef, Expression, FunctionCall, columns_of, replace_columns
from lineage.schema import Type
from queries.bound import Block, BoundInput, OutputColumn
from queries.inputs import Input
from queries.joins import BandEdge, EqualityEdge, Join, JoinResidual, KeyColumn
from queries.nodes import JoinNode, Node, Select, Slide, column_refs
from queries.split import conjuncts_of, split
from queries.tree import of_tables

Columns = tuple[OutputColumn, ...]


def read_inputs(inputs: tuple[Input, ...], condition: Expression | None, columns: Columns, defaults: list[str]) -> Node:
    """`SELECT columns FROM inputs WHERE condition`, over the concatenation of the inputs' columns."""
    base = tuple([item for item in inputs if isinstance(item, BoundInput)])
    if len(base) == len(inputs):
        return _read_block(base, condition, columns, defaults)
    if len(inputs) > 1:
        return _Joining(inputs, condition, columns).node(defaults)
    (only,) = inputs
    assert not isinstance(only, BoundInput)
    return select(only.node, condition, columns, defaults)


def select(child: Node, condition: Expression | None, columns: Columns, defaults: Sequence[str] = ()) -> Node:
    """`SELECT columns FROM child WHERE condition`; the child itself if that is all of it."""
    if isinstance(child, Slide) and not child.of_query and isinstance(child.child, Block) and _is_plain(child.child):
        return _select_slide(child, child.child, condition, columns, defaults)
    if isinstance(child, Slide) and child.bounds:
        read = _positions([*conjuncts_of(condition), *(column.expression for column in columns)])
        child = replace(child, bounds=any(position >= len(child.child.columns) for position in read))
    if condition is None and is_identity(child, columns):
        return child
    return Select(child, condition, columns, tuple(defaults))


def _read_block(
    inputs: tuple[BoundInput, ...], condition: Expression | None, columns: Columns, defaults: Sequence[str] = ()
) -> Block:
    join = None
    if len(inputs) > 1 or inputs[0].is_table:
        join = split(condition, [item.name for item in inputs], [len(item.schema) for item in inputs])
        defaults = [*defaults, *_say_products(join, inputs)]
    return Block(inputs, condition, columns, join, tuple(defaults))


def _select_slide(slide: Slide, block: Block, condition: Expression | None, columns: Columns, defaults: Sequence[str]) -> Node:
    """All of it below the window that does not read the window's bounds."""
    n_columns = len(block.columns)

    def reads_bounds(expression: Expression) -> bool:
        return any(ref.position >= n_columns for ref in columns_of(expression))

    conjuncts = conjuncts_of(condition)
    below = conjunction([conjunct for conjunct in conjuncts if not reads_bounds(conjunct)])
    above = [conjunct for conjunct in conjuncts if reads_bounds(conjunct)]
    if not above and not any(reads_bounds(column.expression) for column in columns):
        return Slide(Block(block.inputs, below, columns, None, tuple(defaults)), slide.window, bounds=False)
    kept = _positions([*above, *(column.expression for column in columns)])
    place = {position: at for at, position in enumerate([at for at in kept if at < n_columns])}
    place |= {n_columns + at: len(place) + at for at in range(2)}
    narrow = tuple(column for at, column in enumerate(block.columns) if at in place)
    child = Slide(Block(block.inputs, below, narrow), slide.window, bounds=True)
    moved = tuple(OutputColumn(column.name, _move(column.expression, place)) for column in columns)
    rest = conjunction([_move(conjunct, place) for conjunct in above])
    return child if rest is None and is_identity(child, moved) else Select(child, rest, moved, tuple(defaults))


class _Joining:
    """The making of one JoinNode; positions are those of the inputs as they were written until `_place` moves them."""

    def __init__(self, inputs: tuple[Input, ...], condition: Expression | None, columns: Columns) -> None:
        self._inputs = inputs
        self._columns = columns
        self._offsets = [item.offset for item in inputs]
        # named by their place: nothing of a join node depends on what its inputs are called
        self._join = split(condition, [str(number) for number in range(len(inputs))], [len(item.schema) for item in inputs])
        self._joining = [conjunct for conjunct in conjuncts_of(condition) if len(self._inputs_of(conjunct)) > 1]
        #: of each input, the columns that are read above it, by their position in its own schema
        self._kept = self._find_kept()
        #: the new position of each kept column in the concatenation, by the old one
        self._place = self._find_places()

    def node(self, defaults: list[str]) -> JoinNode:
        nodes = tuple(self._narrow(number, item) for number, item in enumerate(self._inputs))
        is_stream = any(node.is_stream for node in nodes)
        counts = is_stream or not all(of_tables(node) for node in nodes)
        frozen = tuple(
            isinstance(item, BoundInput) and item.is_table and counts and (is_stream or item.is_frozen) for item in self._inputs
        )
        columns = tuple(OutputColumn(column.name, _move(column.expression, self._place)) for column in self._columns)
        condition = conjunction([_move(conjunct, self._place) for conjunct in self._joining])
        remarks = (*defaults, *_say_products(self._join, self._inputs))
        return JoinNode(
            nodes, frozen, condition, self._moved_join(), columns, remarks, tuple(item.alias for item in self._inputs)
        )

    def _narrow(self, number: int, item: Input) -> Node:
        """The kept columns of the rows of one input that satisfy its own condition."""
        own = self._join.own[number]
        refs = column_refs(item.schema.columns)
        columns = tuple(OutputColumn(refs[at].name, refs[at]) for at in self._kept[number])
        if isinstance(item, BoundInput):
            return _read_block((replace(item, offset=0),), own, columns)
        return select(item.node, own, columns)

    def _find_kept(self) -> list[list[int]]:
        join = self._join
        found: list[set[int]] = [set() for _ in self._inputs]
        for edge in join.equalities:
            for left, right in edge.pairs:
                found[edge.left].update(left.reads())
                found[edge.right].update(right.reads())
        for band in join.bands:
            found[band.left].add(band.left_column.position)
            found[band.right].add(band.right_column.position)
        read = [column.expression for column in self._columns] + [residual.expression for residual in join.residuals]
        for position in _positions([*read, *self._joining]):
            number = self._input_of(position)
            found[number].add(position - self._offsets[number])
        return [sorted(positions) for positions in found]

    def _find_places(self) -> dict[int, int]:
        kept = [offset + position for offset, positions in zip(self._offsets, self._kept) for position in positions]
        return {position: at for at, position in enumerate(kept)}

    def _moved_join(self) -> Join:
        join = self._join

        def key(number: int, column: KeyColumn) -> KeyColumn:
            return column.moved(self._kept[number].index)

        equalities = [
            EqualityEdge(
                edge.left, edge.right, tuple((key(edge.left, left), key(edge.right, right)) for left, right in edge.pairs)
            )
            for edge in join.equalities
        ]
        bands = [
            BandEdge(
                band.left, band.right, key(band.left, band.left_column), key(band.right, band.right_column), band.low, band.high
            )
            for band in join.bands
        ]
        residuals = [self._moved_residual(residual) for residual in join.residuals]
        return Join(join.names, (None,) * len(join.own), tuple(equalities), tuple(bands), tuple(residuals))

    def _moved_residual(self, residual: JoinResidual) -> JoinResidual:
        packed: list[int] = []
        for number in residual.inputs:
            packed.extend(self._place[self._offsets[number] + position] for position in self._kept[number])
        expression = _move(residual.expression, self._place)
        own = _move(expression, {position: at for at, position in enumerate(packed)})
        return JoinResidual(residual.inputs, expression, (residual.key[0], own))

    def _input_of(self, position: int) -> int:
        return bisect_right(self._offsets, position) - 1

    def _inputs_of(self, expression: Expression) -> set[int]:
        return {self._input_of(ref.position) for ref in columns_of(expression)}


def conjunction(conjuncts: Sequence[Expression]) -> Expression | None:
    """All of them as one condition, None if there are none."""
    if len(conjuncts) < 2:
        return conjuncts[0] if conjuncts else None
    return FunctionCall(Type.BOOL, "and", tuple(conjuncts))


def _positions(expressions: Sequence[Expression]) -> list[int]:
    return sorted({ref.position for expression in expressions for ref in columns_of(expression)})


def _move(expression: Expression, place: dict[int, int]) -> Expression:
    return replace_columns(expression, lambda ref: ColumnRef(ref.type, ref.name, place[ref.position]))


def _is_plain(block: Block) -> bool:
    """Whether it is a stream as it is."""
    refs = column_refs(block.inputs[0].schema.columns)
    return block.condition is None and len(block.inputs) == 1 and [column.expression for column in block.columns] == refs


def is_identity(child: Node, columns: Columns) -> bool:
    """Whether the columns are those of the child, under the same names."""
    return [(column.name, column.expression) for column in columns] == [(ref.name, ref) for ref in column_refs(child.columns)]


def _say_products(join: Join, inputs: Sequence[Input]) -> list[str]:
    """A remark for inputs that nothing joins: allowed, but rarely meant."""
    parts = [", ".join(inputs[number].alias for number in part) for part in join.parts()]
    if len(parts) == 1:
        return []
    return [f"no condition joins {' with '.join(parts)}: every combination of their rows counts"]
