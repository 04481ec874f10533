"""The answer of a bound tree over given rows, node by node, without any state: the slow twin of every operator.

    answer(tree, contents) = the rows of the one-time SQL query over what each leaf holds      (Definition 1)

Rows are tuples of cells as a `Literal` holds them; bags are lists. `contents` gives the rows of a stream in its window, a table
or a running query, by the leaf. A Slide or Window node shows all rows of its child (`contents` decides what is in a window), a
Slide without bounds; a ToStream node has no answer at a time.
"""

from __future__ import annotations

import itertools
import statistics
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from filters.expressions.evaluate import evaluate
from filters.expressions.expression import Expression
from filters.values.intervals import float_key
from filters.values.vector import DTYPES, ListFrame, Vector
from lineage.schema import Type
from queries.bound import BoundInput, OutputColumn
from queries.joins import KeyColumn
from queries.nodes import (
    Aggregate,
    Block,
    Distinct,
    GroupBy,
    JoinNode,
    NamedQuery,
    Node,
    Select,
    SetOperation,
    Slide,
    ToStream,
    Window,
)

Row = tuple[Any, ...]
Contents = Callable[[BoundInput | NamedQuery], Sequence[Row]]


def answer(node: Node, contents: Contents) -> list[Row]:
    """The rows of a tree, each as often as it counts."""
    match node:
        case Block():
            rows = _product([contents(item) for item in node.inputs])
            types = [column.type for item in node.inputs for column in item.schema.columns]
            return _select(rows, types, node.condition, node.columns)
        case NamedQuery():
            return list(contents(node))
        case Window() | Slide():
            assert not isinstance(node, Slide) or not node.bounds, "the bounds are not known here"
            return answer(node.child, contents)
        case Select():
            return _select(answer(node.child, contents), _types(node.child), node.condition, node.columns)
        case JoinNode():
            rows = _product([answer(item, contents) for item in node.inputs])
            types = [kind for item in node.inputs for kind in _types(item)]
            _check_join(node, rows, types)
            return _select(rows, types, node.condition, node.columns)
        case Distinct():
            return list(dict.fromkeys(answer(node.child, contents)))
        case SetOperation():
            return _combine(node, Counter(answer(node.left, contents)), Counter(answer(node.right, contents)))
        case GroupBy():
            return _group(node, answer(node.child, contents))
        case ToStream():
            raise AssertionError("a stream has no answer at a time")


def _types(node: Node) -> list[Type]:
    return [column.type for column in node.columns]


def _product(parts: list[Sequence[Row]]) -> list[Row]:
    return [tuple(itertools.chain.from_iterable(rows)) for rows in itertools.product(*parts)]


def _select(rows: list[Row], types: list[Type], condition: Expression | None, columns: tuple[OutputColumn, ...]) -> list[Row]:
    if condition is not None:
        kept = _compute(condition, rows, types)
        rows = [row for row, true in zip(rows, kept, strict=True) if true is True]
    values = [_compute(column.expression, rows, types) for column in columns]
    return [tuple(column[at] for column in values) for at in range(len(rows))]


def _check_join(node: JoinNode, rows: list[Row], types: list[Type]) -> None:
    """The parts of a join are TRUE together exactly where its condition is."""
    offsets = list(itertools.accumulate([len(item.columns) for item in node.inputs], initial=0))
    condition = [None] * len(rows) if node.condition is None else _compute(node.condition, rows, types)
    residuals = [_compute(residual.expression, rows, types) for residual in node.join.residuals]
    for at, row in enumerate(rows):

        def key(number: int, column: KeyColumn, row: Row = row) -> Any:
            if column.expression is None:
                cell = row[offsets[number] + column.position]
            else:
                own = slice(offsets[number], offsets[number + 1])
                (cell,) = _compute(column.expression, [row[own]], types[own])
            return float_key(cell) if isinstance(cell, float) else cell

        holds = all(found[at] is True for found in residuals)
        for edge in node.join.equalities:
            pairs = [(key(edge.left, left), key(edge.right, right)) for left, right in edge.pairs]
            holds &= all(left is not None and left == right for left, right in pairs)
        for band in node.join.bands:
            left, right = key(band.left, band.left_column), key(band.right, band.right_column)
            known = left is not None and right is not None
            holds &= known and (band.low is None or right - left >= band.low) and (band.high is None or right - left <= band.high)
        assert holds == (node.condition is None or condition[at] is True), f"{node.join} on {row}"


def _compute(expression: Expression, rows: list[Row], types: list[Type]) -> list[Any]:
    frame = ListFrame([_vector(kind, [row[at] for row in rows]) for at, kind in enumerate(types)], n_rows=len(rows))
    found = evaluate(expression, frame)
    return [found.cell(row) for row in range(len(rows))]


def _vector(kind: Type, values: list[Any]) -> Vector:
    if kind is Type.STRING:
        return Vector.of_strings(values)
    nulls = np.array([value is None for value in values], np.bool_)
    return Vector(kind, np.array([0 if value is None else value for value in values], DTYPES[kind]), nulls)


def _combine(node: SetOperation, left: Counter[Row], right: Counter[Row]) -> list[Row]:
    found: Counter[Row] = Counter()
    for row in [*left, *(row for row in right if row not in left)]:
        n, m = left[row], right[row]
        match node.kind, node.all:
            case "union", True:
                found[row] = n + m
            case "union", False:
                found[row] = 1
            case "except", True:
                found[row] = max(0, n - m)
            case "except", False:
                found[row] = int(n > 0 and m == 0)
            case "intersect", True:
                found[row] = min(n, m)
            case _:
                found[row] = int(n > 0 and m > 0)
    return list(found.elements())


def _group(node: GroupBy, rows: list[Row]) -> list[Row]:
    groups: dict[Row, list[Row]] = {(): []} if node.scalar else {}
    for row in rows:
        groups.setdefault(row[: node.n_keys], []).append(row)
    return [(*key, *(_aggregate(item, members) for item in node.aggregates)) for key, members in groups.items()]


def _aggregate(item: Aggregate, rows: list[Row]) -> Any:
    if item.filter is not None:
        rows = [row for row in rows if row[item.filter] is True]
    if item.argument is None:
        return len(rows)
    given = [row[item.argument] for row in rows]
    values = [value for value in given if value is not None]
    match item.kind:
        case "count":
            return len(set(values)) if item.distinct else len(values)
        case "first" | "last":
            return (given[0] if item.kind == "first" else given[-1]) if given else None
        case "stddev" | "variance":
            function = statistics.stdev if item.kind == "stddev" else statistics.variance
            return function(values) if len(values) > 1 else None
    if not values:
        return None
    functions: dict[str, Callable[[list[Any]], Any]] = {
        "sum": sum,
        "avg": lambda found: sum(found) / len(found),
        "min": min,
        "max": max,
        "median": lambda found: float(statistics.median(found)),
    }
    return functions[item.kind](values)
