"""Random conditions over several inputs: the parts of the split, put together again, are TRUE on the same rows.

Rows are whole combinations, one row of each input side by side. Each part is computed as the engine will: own conditions on
the input's columns alone, equality edges by join keys, bands by the difference of order keys in unbounded ints.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from filters.expressions.evaluate import evaluate, true_rows
from filters.expressions.expression import ColumnRef, Expression, FunctionCall, Interval, Literal, columns_of
from filters.expressions.predicate import normalise
from filters.values.intervals import float_key
from filters.values.vector import DTYPES, ListFrame, Vector
from lineage import times
from lineage.schema import KEY_MAX, KEY_MIN, Schema, Type
from queries.binder import bind
from queries.bound import Readable
from queries.joins import BandEdge, EqualityEdge, Join, KeyColumn
from queries.parser import parse
from queries.split import split
from tests.reference.comparison import compared
from tests.reference.join_keys import join_keys
from tests.reference.seeds import amount

VALUES: dict[Type, list[Any]] = {
    Type.INT: [KEY_MIN, KEY_MIN + 1, -2, -1, 0, 1, 2, 3, 2**53, 2**53 + 1, KEY_MAX - 1, KEY_MAX],
    Type.FLOAT: [-float("inf"), -(2.0**63), -1.0, -0.0, 0.0, 1.0, 1.5, 2.0**53, 2.0**63, float("inf"), float("nan")],
    Type.STRING: ["", "a", "b", "a\0"],
    Type.BOOL: [False, True],
    Type.TIMESTAMP: [times.MIN_US, -1, 0, 1, 2, 5, times.MAX_US],
}
CONSTANTS: dict[Type, list[Any]] = {
    **VALUES,
    Type.INTERVAL: [Interval(0, 0), Interval(0, 1), Interval(0, -3), Interval(1, 0), Interval(0, 2**62), Interval(0, -(2**62))],
}
TYPES = list(VALUES)
OPS = ["<", "<=", ">", ">=", "=", "<>"]
KINDS = ["plain"] * 8 + ["sums"] * 4 + ["difference"] * 2 + ["constant"] * 3 + ["in", "null", "literal", "bool", "same"]
#: mostly what makes edges
EDGE_OPS = ["=", "=", "=", "<", "<=", ">", ">="]


def constant(draw: st.DrawFn, kind: Type) -> Literal:
    if draw(st.integers(0, 14)) == 0:
        return Literal(draw(st.sampled_from([kind, Type.NULL])), None) if kind is not Type.INTERVAL else Literal(Type.NULL, None)
    return Literal(kind, draw(st.sampled_from(CONSTANTS[kind])))


def comparable(column: ColumnRef, columns: list[ColumnRef]) -> list[ColumnRef]:
    return [other for other in columns if other.type is column.type or (other.type.numeric and column.type.numeric)]


@st.composite
def sums(draw: st.DrawFn, column: ColumnRef) -> Expression:
    """The column, perhaps with constants added."""
    found: Expression = column
    if column.type in (Type.INT, Type.FLOAT, Type.TIMESTAMP):
        for _ in range(draw(st.sampled_from([0, 0, 1, 1, 2, 3]))):
            step = constant(draw, Type.INTERVAL if column.type is Type.TIMESTAMP else column.type)
            op = draw(st.sampled_from(["+", "-"]))
            args = (step, found) if op == "+" and column.type is not Type.TIMESTAMP and draw(st.booleans()) else (found, step)
            found = FunctionCall(column.type, op, args)
    return found


@st.composite
def leaves(draw: st.DrawFn, columns: list[ColumnRef]) -> Expression:
    # Mostly two different columns; `x = x`, which is no edge, comes from the rest.
    column = draw(st.sampled_from(columns))
    kind = draw(st.sampled_from(KINDS))
    other = draw(st.sampled_from([other for other in comparable(column, columns) if other != column] or [column]))
    if kind == "literal":
        return Literal(Type.BOOL, draw(st.sampled_from([True, True, True, False, None])))
    if kind == "null":
        return FunctionCall(Type.BOOL, "not", (FunctionCall(Type.BOOL, "is_null", (column,)),))
    if kind == "bool" and column.type is Type.BOOL:
        return column
    if kind == "in":
        values = tuple(constant(draw, column.type) for _ in range(draw(st.integers(1, 3))))
        return FunctionCall(Type.BOOL, "in", (column, *values))
    if kind == "constant":
        args = (column, constant(draw, draw(st.sampled_from(comparable(column, columns))).type))
        return FunctionCall(Type.BOOL, draw(st.sampled_from(OPS)), args if draw(st.booleans()) else args[::-1])
    if kind == "difference" and column.type is other.type is Type.INT:
        difference = FunctionCall(Type.INT, "-", (draw(sums(column)), draw(sums(other))))
        args = (difference, constant(draw, Type.INT))
        return FunctionCall(Type.BOOL, draw(st.sampled_from(OPS)), args if draw(st.booleans()) else args[::-1])
    if kind == "same":
        return FunctionCall(Type.BOOL, draw(st.sampled_from(OPS)), (column, column))
    if kind == "sums":
        return FunctionCall(Type.BOOL, draw(st.sampled_from(OPS)), (draw(sums(column)), draw(sums(other))))
    return FunctionCall(Type.BOOL, draw(st.sampled_from(EDGE_OPS)), (column, other))


def conditions(columns: list[ColumnRef]) -> st.SearchStrategy[Expression]:
    leaf = leaves(columns)
    either = st.lists(leaf, min_size=2, max_size=3).map(lambda args: FunctionCall(Type.BOOL, "or", tuple(args)))
    negated = st.one_of(leaf, either).map(lambda arg: FunctionCall(Type.BOOL, "not", (arg,)))
    conjunct = st.one_of(leaf, leaf, leaf, leaf, either, negated)
    several = st.lists(conjunct, min_size=2, max_size=6).map(lambda args: FunctionCall(Type.BOOL, "and", tuple(args)))
    return st.one_of(conjunct, several, several, several)


Case = tuple[list[int], list[ColumnRef], Expression]


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Widths of 2 to 4 inputs, all their columns, and a condition over them. Few types, so that columns can be compared."""
    widths = draw(st.lists(st.sampled_from([1, 1, 2, 3]), min_size=2, max_size=4))
    types = draw(st.lists(st.sampled_from(TYPES), min_size=1, max_size=2))
    if draw(st.booleans()):
        types = [Type.INT, Type.FLOAT]
    columns = [ColumnRef(draw(st.sampled_from(types)), f"c{at % 3}", at) for at in range(sum(widths))]
    return widths, columns, draw(conditions(columns))


def random_rows(columns: list[ColumnRef], rng: np.random.Generator, n_rows: int = 200) -> list[list[Any]]:
    """Rows of values, None for NULL. Values often repeat within a row, for equalities to hold."""
    rows = []
    for _ in range(n_rows):
        favourite = {kind: values[rng.integers(len(values))] for kind, values in VALUES.items()}
        if rng.random() < 0.5:
            favourite[Type.INT], favourite[Type.FLOAT] = [(0, -0.0), (1, 1.0), (2**53, 2.0**53), (KEY_MIN, -(2.0**63))][
                rng.integers(4)
            ]
        row = []
        for column in columns:
            values = VALUES[column.type]
            value = favourite[column.type] if rng.random() < 0.7 else values[rng.integers(len(values))]
            row.append(None if rng.random() < 0.05 else value)
        rows.append(row)
    return rows


def vectors_of(columns: list[ColumnRef], rows: list[list[Any]]) -> list[Vector]:
    found = []
    for column in columns:
        values = [row[column.position] for row in rows]
        if column.type is Type.STRING:
            found.append(Vector.of_strings(values))
            continue
        nulls = np.array([value is None for value in values])
        cells = np.array([0 if value is None else value for value in values], DTYPES[column.type])
        found.append(Vector(column.type, cells, nulls))
    return found


def edge_rows(edge: EqualityEdge, offsets: list[int], vectors: list[Vector], rows: list[list[Any]]) -> np.ndarray:
    found = np.ones(len(rows), np.bool_)
    for held, probing in zip(edge.key(edge.right), edge.probe(edge.right), strict=True):
        at, other = column_of(edge.right, held, offsets, vectors, rows), column_of(edge.left, probing, offsets, vectors, rows)
        assert (at.type, other.type) == (held.type, probing.type)
        if held.type is Type.STRING:
            found &= np.array([text is not None and text == same for text, same in zip(at.to_pylist(), other.to_pylist())])
            continue
        keys, joins = join_keys(at, held.type)
        probes, probing_joins = join_keys(other, held.type)
        found &= joins & probing_joins & (keys == probes)
    return found


def column_of(k: int, column: KeyColumn, offsets: list[int], vectors: list[Vector], rows: list[list[Any]]) -> Vector:
    """A key column of an input, computed if it has to be."""
    if column.expression is None:
        return vectors[offsets[k] + column.position]
    assert columns_of(column.expression), "a key reads something"
    return evaluate(column.expression, ListFrame(vectors[offsets[k] :], len(rows))).widened(column.type)


def band_rows(edge: BandEdge, offsets: list[int], rows: list[list[Any]]) -> np.ndarray:
    found = []
    for row in rows:
        left, right = row[offsets[edge.left] + edge.left_column.position], row[offsets[edge.right] + edge.right_column.position]
        if left is None or right is None:
            found.append(False)
            continue
        difference = _key(right) - _key(left)
        found.append((edge.low is None or edge.low <= difference) and (edge.high is None or difference <= edge.high))
    return np.array(found)


def _key(value: int | float) -> int:
    return float_key(value) if isinstance(value, float) else value


def split_rows(join: Join, widths: list[int], vectors: list[Vector], rows: list[list[Any]]) -> np.ndarray:
    offsets = [sum(widths[:number]) for number in range(len(widths))]
    found = np.ones(len(rows), np.bool_)
    for number, condition in enumerate(join.own):
        if condition is not None:
            frame = ListFrame(vectors[offsets[number] : offsets[number] + widths[number]], len(rows))
            found &= true_rows(condition, frame)
    for equality in join.equalities:
        found &= edge_rows(equality, offsets, vectors, rows)
    for band in join.bands:
        found &= band_rows(band, offsets, rows)
    for residual in join.residuals:
        found &= true_rows(residual.expression, ListFrame(vectors, len(rows)))
    return found


@settings(max_examples=amount(120, long=400), deadline=None)
@given(cases(), st.integers(0, 2**31))
def test_the_parts_are_true_together_exactly_where_the_condition_is(case: Case, seed: int) -> None:
    widths, columns, condition = case
    join = split(condition, [f"s{number}" for number in range(len(widths))], widths)
    rows = random_rows(columns, np.random.default_rng(seed))
    vectors = vectors_of(columns, rows)
    expected = true_rows(condition, ListFrame(vectors, len(rows)))
    found = split_rows(join, widths, vectors, rows)
    compared(len(rows))
    wrong = np.flatnonzero(found != expected)
    assert len(wrong) == 0, (str(condition), join, rows[wrong[0]], bool(expected[wrong[0]]))


@settings(max_examples=amount(80, long=200), deadline=None)
@given(cases())
def test_the_parts_are_in_the_shape_the_engine_runs(case: Case) -> None:
    widths, columns, condition = case
    join = split(condition, [f"S{number}" for number in range(len(widths))], widths)
    assert join.names == tuple(f"s{number}" for number in range(len(widths)))
    for number, own in enumerate(join.own):
        if own is not None:
            normalise(own)
            assert all(column.position < widths[number] for column in columns_of(own))
    ends = [(edge.left, edge.right) for edge in join.equalities]
    assert ends == sorted(set(ends)) and all(left < right for left, right in ends)
    for edge in join.equalities:
        lefts = [left.place for left, _ in edge.pairs]
        assert lefts == sorted(set(lefts)), "by the place of the left, each column once"
        assert len({right for _, right in edge.pairs}) == len(edge.pairs)
        for number, column in [*((edge.left, left) for left, _ in edge.pairs), *((edge.right, right) for _, right in edge.pairs)]:
            assert all(0 <= position < widths[number] for position in column.reads())
    places = [(band.left, band.right, band.left_column.position, band.right_column.position) for band in join.bands]
    assert places == sorted(set(places))
    for band in join.bands:
        assert band.left < band.right and band.left_column.type is band.right_column.type
        assert band.low is not None or band.high is not None
        assert all(bound is None or abs(bound) <= KEY_MAX for bound in (band.low, band.high))
    for residual in join.residuals:
        assert len(residual.inputs) > 1
    hash(join), hash(join.key)


@settings(max_examples=amount(60, long=150), deadline=None)
@given(cases(), st.randoms(use_true_random=False))
def test_the_order_of_the_conjuncts_does_not_matter_to_what_is_shared(case: Case, rng: Any) -> None:
    widths, columns, condition = case
    names = [f"s{number}" for number in range(len(widths))]
    if not (isinstance(condition, FunctionCall) and condition.op == "and"):
        condition = FunctionCall(Type.BOOL, "and", (condition, FunctionCall(Type.BOOL, "=", (columns[0], columns[-1]))))
        if columns[0].type is not columns[-1].type:
            return
    args = list(condition.args)
    rng.shuffle(args)
    one, two = split(condition, names, widths), split(FunctionCall(Type.BOOL, "and", tuple(args)), names, widths)
    assert (one.equalities, one.bands) == (two.equalities, two.bands)
    assert one.key == two.key
    assert [normalise(own) for own in one.own] == [normalise(own) for own in two.own]


EXTREMES = [
    "b.x BETWEEN a.x - 5 AND a.x + 5",
    "a.x - b.x BETWEEN -5 AND 5",
    "a.x - b.x < 5",
    "b.x - a.x < 5",
    "b.x - a.x >= -9223372036854775808",
    "a.x + 9223372036854775807 >= b.x",
    "a.x - 1 + 1 = b.x",
]


@pytest.mark.parametrize("text", EXTREMES)
def test_bands_are_exact_at_the_ends_of_the_range(text: str) -> None:
    stream = Readable(Schema.parse({"x": "int"}, "s"))
    bound = bind(parse(f"SELECT 1 AS one FROM s [NOW] a, s [NOW] b WHERE {text}"), {"s": stream}.get)
    near = [KEY_MIN, KEY_MIN + 1, KEY_MIN + 5, -6, -5, -1, 0, 1, 4, 5, KEY_MAX - 5, KEY_MAX - 1, KEY_MAX]
    rows: list[list[Any]] = [[a, b] for a in near for b in near]
    columns = [ColumnRef(Type.INT, "x", 0), ColumnRef(Type.INT, "x", 1)]
    vectors = vectors_of(columns, rows)
    assert bound.join is not None and bound.condition is not None
    expected = true_rows(bound.condition, ListFrame(vectors))
    compared(len(rows))
    assert split_rows(bound.join, [1, 1], vectors, rows).tolist() == expected.tolist()
