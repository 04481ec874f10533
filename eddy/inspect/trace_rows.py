"""The current rows of a block over one stream, and of the nodes right above it: read again from the row store.

They show in a trace the values of a group. A trace reads at most `LOOKED_AT` rows, over all queries; a group that would take more
is not looked up, and the trace says so.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from eddy.inspect.trace_leaves import Leaf
from eddy.inspect.trace_lives import LATEST
from eddy.joins.join_query import JoinQuery
from eddy.lives.early_ends import CommitPoint
from eddy.lives.window_rows import WindowRows
from eddy.streams.source import Source
from filters.expressions.evaluate import evaluate, true_rows
from filters.expressions.expression import Expression, user_functions_of
from filters.values.vector import ListFrame, Vector
from lineage.schema import Type
from queries.nodes import Aggregate, Block, Node, Select, Slide
from stems.frame import RowsFrame, condition_rows

#: Rows that one trace reads, of row stores and answers, to tell what stands above leaves.
LOOKED_AT = 250_000


class TracedRows(NamedTuple):
    """Columns of rows; without columns where rows are only counted."""

    columns: list[Vector]
    n_rows: int


class Allowance:
    """The number of rows that one trace may still read."""

    def __init__(self) -> None:
        self._left = LOOKED_AT
        #: how often it was asked for more than was left
        self.n_refused = 0

    def take(self, n_rows: int) -> bool:
        """Take so many rows off the allowance; returns whether they were left."""
        if n_rows > self._left:
            self.n_refused += 1
            return False
        self._left -= n_rows
        return True


def rows_now(node: Node, leaf: Leaf, source: Source, allowance: Allowance) -> TracedRows | None:
    """The current rows of a node over a leaf; None if they are too many, need user functions, or the node is of another kind."""
    if any(user_functions_of(expression) for expression in _expressions(node)):
        return None
    if isinstance(node, Block):
        positions = _positions(leaf, source, allowance)
        return None if positions is None else _columns(leaf, source, positions)
    if isinstance(node, Slide) and isinstance(node.child, Block) and not node.of_query:
        positions = _positions(leaf, source, allowance)
        if positions is None or any(user_functions_of(column.expression) for column in node.child.columns):
            return None
        width, slide = node.window.width_us, node.window.slide_us
        boundary = source.timeline.now // slide * slide
        starts, times = source.store.elements_at(positions, 0)
        positions = positions[(boundary - width <= times) & (starts < boundary)]
        found = _columns(leaf, source, positions)
        if node.bounds:
            found.columns.extend(Vector.constant(Type.TIMESTAMP, at, len(positions)) for at in (boundary - width, boundary))
        return found
    if isinstance(node, Select):
        below = rows_now(node.child, leaf, source, allowance)
        return None if below is None else selected(node, below)
    return None


def selected(node: Select, below: TracedRows) -> TracedRows:
    """The rows of a Select over given rows."""
    if node.condition is not None:
        kept = np.flatnonzero(true_rows(node.condition, ListFrame(*below)))
        below = TracedRows([column.take(kept) for column in below.columns], len(kept))
    frame = ListFrame(*below)
    return TracedRows([evaluate(column.expression, frame) for column in node.columns], below.n_rows)


def _expressions(node: Node) -> list[Expression]:
    found = [column.expression for column in node.columns] if isinstance(node, Block | Select) else []
    return [*found, node.condition] if isinstance(node, Block | Select) and node.condition is not None else found


def _positions(leaf: Leaf, source: Source, allowance: Allowance) -> np.ndarray | None:
    """The positions of a leaf's rows in its window now; None if they are too many."""
    query = leaf.query
    (window,) = query.windows
    if window.is_stream or leaf.join is not None:
        return None
    run, store, now = query.runs[-1], source.store, source.timeline.now
    rows = WindowRows(source, window.width_us, query.group.ends[0] if isinstance(query, JoinQuery) else None)
    at = CommitPoint(now, store.end, LATEST)
    low = min(max(rows.first_alive(at), run.born, store.watermark), store.end)
    if not allowance.take(store.end - low):
        return None
    found = np.zeros(store.end - low, np.bool_)
    for page, start, stop in store.slices(low, store.end):
        first = page.base + start - low
        if leaf.rewritten is None:
            mask = condition_rows(leaf.conditions[0], store, page, start, stop, source.dictionaries, run.modules)
        elif leaf.rewritten.condition is None:
            mask = np.ones(stop - start, np.bool_)
        else:
            here = np.arange(page.base + start, page.base + stop)
            mask = true_rows(leaf.rewritten.condition, RowsFrame([source.gatherer], [source.dictionaries], [here]))
        found[first : first + stop - start] = mask
    found = rows.keep_alive(found, low, at)
    return low + np.flatnonzero(found)


def _columns(leaf: Leaf, source: Source, positions: np.ndarray) -> TracedRows:
    frame = RowsFrame([source.gatherer], [source.dictionaries], [positions])
    return TracedRows([evaluate(column.expression, frame) for column in leaf.query.outputs], len(positions))


# ---- groups


def rows_like(columns: Sequence[Vector], values: Sequence[Vector]) -> np.ndarray:
    """The rows whose cells equal the values, one for each column: NULL = NULL, NaN = NaN."""
    found = np.ones(len(columns[0]), np.bool_)
    for column, value in zip(columns, values):
        cell, nulls = value.cell(0), column.null_mask()
        if cell is None:
            found &= nulls
        elif column.dictionary is not None:
            texts, places = column.compact()
            found &= np.array([text == cell for text in texts])[places] & ~nulls
        elif cell != cell:
            found &= np.isnan(column.values) & ~nulls
        else:
            found &= (column.values == cell) & ~nulls
    return found


def aggregated(item: Aggregate, columns: Sequence[Vector], rows: np.ndarray) -> Any:
    """The value of an aggregate over rows in their order of arrival, as `Vector.cell` gives values."""
    if item.filter is not None:
        kept = columns[item.filter]
        rows = rows[kept.values[rows].astype(np.bool_) & ~kept.null_mask()[rows]]
    if item.argument is None:
        return len(rows)
    argument = columns[item.argument].take(rows)
    cells = [argument.cell(row) for row in range(len(argument))]
    if item.kind in ("first", "last"):
        return None if not cells else cells[0 if item.kind == "first" else -1]
    values = [cell for cell in cells if cell is not None]
    if item.distinct:
        return len({("nan",) if value != value else value for value in values})
    if item.kind == "count":
        return len(values)
    return _over(item.kind, values) if values else None


def _over(kind: str, values: list[Any]) -> Any:
    if kind in ("min", "max"):
        # NaN is above all numbers
        return (min if kind == "min" else max)(values, key=lambda value: (value != value, value))
    n = len(values)
    whole = all(isinstance(value, int) for value in values)
    if kind == "sum" and whole:
        return sum(values)
    if kind == "median":
        ordered = sorted(values, key=lambda value: (value != value, value))
        return (ordered[(n - 1) // 2] + ordered[n // 2]) / 2
    total = sum(values) if whole or not all(map(math.isfinite, values)) else math.fsum(values)
    if kind in ("sum", "avg"):
        return float(total) if kind == "sum" else total / n
    if n < 2:
        return None
    mean = total / n
    variance = math.fsum((value - mean) ** 2 for value in values) / (n - 1) if math.isfinite(mean) else math.nan
    return variance if kind == "variance" else math.sqrt(variance)
