"""Random boolean expressions: the atoms of the normal form, put together again, are TRUE on exactly the same rows."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from filters.expressions.evaluate import true_rows
from filters.expressions.expression import ColumnRef, Expression, FunctionCall, Literal
from filters.expressions.predicate import MAX_CLAUSES, Atom, Condition, IndexAtom, normalise
from filters.values.intervals import float_key
from filters.values.vector import ListFrame, Vector
from lineage.schema import KEY_MAX, KEY_MIN, Type
from tests.reference.comparison import compared
from tests.reference.seeds import amount

TYPES = [Type.INT, Type.FLOAT, Type.STRING, Type.BOOL]
VALUES: dict[Type, list[Any]] = {
    Type.INT: [KEY_MIN, -1, 0, 1, 2, 3, 2**53, 2**53 + 1, KEY_MAX],
    Type.FLOAT: [-math.inf, -1.5, -0.0, 0.0, 1.0, 2.0, 2.5, 2.0**53, 2.0**63, math.inf, math.nan],
    Type.STRING: ["", "\0a", "a", "a\0a", "b", "é"],
    Type.BOOL: [False, True],
}
OPS = ["<", "<=", ">", ">=", "=", "<>"]
#: the constants a column of a type is compared with
CONSTANTS = {type_: [type_] for type_ in TYPES} | {Type.INT: [Type.INT, Type.FLOAT], Type.FLOAT: [Type.INT, Type.FLOAT]}


@st.composite
def literals(draw: st.DrawFn, column: ColumnRef) -> Literal:
    type_ = draw(st.sampled_from(CONSTANTS[column.type]))
    if draw(st.integers(0, 9)) == 0:
        return Literal(draw(st.sampled_from([type_, Type.NULL])), None)
    return Literal(type_, draw(st.sampled_from(VALUES[type_])))


@st.composite
def leaves(draw: st.DrawFn, columns: list[ColumnRef]) -> Expression:
    column = draw(st.sampled_from(columns))
    kind = draw(st.sampled_from(["compare", "flipped", "between", "in", "null", "residual", "bool", "literal", "like"]))
    if kind == "literal":
        return Literal(Type.BOOL, draw(st.sampled_from([True, False, None])))
    if kind == "null":
        return FunctionCall(Type.BOOL, "is_null", (column,))
    if kind == "bool" and column.type is Type.BOOL:
        return column
    if kind == "in":
        values = draw(st.lists(literals(column), min_size=1, max_size=4))
        return FunctionCall(Type.BOOL, "in", (column, *values))
    if kind == "between":
        low, high = draw(literals(column)), draw(literals(column))
        return FunctionCall(
            Type.BOOL, "and", (FunctionCall(Type.BOOL, ">=", (column, low)), FunctionCall(Type.BOOL, "<=", (column, high)))
        )
    if kind == "residual":
        others = [other for other in columns if other.type in CONSTANTS[column.type]]
        return FunctionCall(Type.BOOL, draw(st.sampled_from(OPS)), (column, draw(st.sampled_from(others))))
    if kind == "like" and column.type is Type.STRING:
        return FunctionCall(Type.BOOL, "like", (column, Literal(Type.STRING, draw(st.sampled_from(["a%", "%", "_"])))))
    args = (column, draw(literals(column)))
    return FunctionCall(Type.BOOL, draw(st.sampled_from(OPS)), args if kind != "flipped" else args[::-1])


def conditions(columns: list[ColumnRef]) -> st.SearchStrategy[Expression]:
    def grow(inner: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
        several = st.lists(inner, min_size=2, max_size=4).map(tuple)
        return st.one_of(
            several.map(lambda args: FunctionCall(Type.BOOL, "and", args)),
            several.map(lambda args: FunctionCall(Type.BOOL, "or", args)),
            inner.map(lambda arg: FunctionCall(Type.BOOL, "not", (arg,))),
        )

    return st.recursive(leaves(columns), grow, max_leaves=14)


@st.composite
def cases(draw: st.DrawFn) -> tuple[list[ColumnRef], Expression]:
    types = draw(st.lists(st.sampled_from(TYPES), min_size=3, max_size=3))
    columns = [ColumnRef(type_, f"c{position}", position) for position, type_ in enumerate(types)]
    return columns, draw(conditions(columns))


def random_rows(columns: list[ColumnRef], seed: int, n_rows: int = 60) -> list[list[Any]]:
    """Rows of values, None for NULL."""
    rng = np.random.default_rng(seed)
    rows = []
    for _ in range(n_rows):
        values = [VALUES[column.type][rng.integers(len(VALUES[column.type]))] for column in columns]
        rows.append([None if rng.random() < 0.15 else value for value in values])
    return rows


def frame_of(columns: list[ColumnRef], rows: list[list[Any]]) -> ListFrame:
    vectors = []
    for column in columns:
        values = [row[column.position] for row in rows]
        if column.type is Type.STRING:
            vectors.append(Vector.of_strings(values))
            continue
        nulls = np.array([value is None for value in values])
        dtype = {Type.INT: np.int64, Type.FLOAT: np.float64, Type.BOOL: np.bool_}[column.type]
        vectors.append(Vector(column.type, np.array([0 if value is None else value for value in values], dtype), nulls))
    return ListFrame(vectors)


def atom_rows(atom: Atom, rows: list[list[Any]], frame: ListFrame) -> np.ndarray:
    if not isinstance(atom, IndexAtom):
        return true_rows(atom.expression, frame)
    keys = [row[atom.position] for row in rows]
    keys = [float_key(key) if isinstance(key, float) else key for key in keys]
    return np.array([atom.intervals.holds(key) for key in keys])


def condition_rows(condition: Condition, rows: list[list[Any]], frame: ListFrame) -> np.ndarray:
    found = np.full(len(rows), not condition.never)
    for atom in (*condition.conjuncts, *condition.residuals):
        found &= atom_rows(atom, rows, frame)
    for clause in condition.clauses:
        found &= np.any([atom_rows(atom, rows, frame) for atom in clause], axis=0)
    return found


@settings(max_examples=amount(100, long=250), deadline=None)
@given(cases(), st.integers(0, 2**31))
def test_the_normal_form_is_true_on_exactly_the_rows_of_the_expression(
    case: tuple[list[ColumnRef], Expression], seed: int
) -> None:
    columns, expression = case
    rows = random_rows(columns, seed)
    frame = frame_of(columns, rows)
    condition = normalise(expression)
    compared(len(rows))
    assert condition_rows(condition, rows, frame).tolist() == true_rows(expression, frame).tolist(), str(condition)


def test_a_constant_that_ends_in_nul_means_the_same_to_the_index_and_to_the_evaluator() -> None:
    column = ColumnRef(Type.STRING, "s", 0)
    rows = [[text] for text in ("", "\0", "a", "a\0", "a\0\0", "b")]
    frame = frame_of([column], rows)
    for op in OPS:
        for constant in ("\0", "a\0", "a\0\0"):
            expression = FunctionCall(Type.BOOL, op, (column, Literal(Type.STRING, constant)))
            assert true_rows(expression, frame).tolist() == condition_rows(normalise(expression), rows, frame).tolist()


@settings(max_examples=amount(60, long=150), deadline=None)
@given(cases())
def test_the_normal_form_is_in_the_shape_the_engine_runs(case: tuple[list[ColumnRef], Expression]) -> None:
    condition = normalise(case[1])
    positions = [atom.position for atom in condition.conjuncts]
    assert positions == sorted(set(positions)), "one atom an attribute, by position"
    assert all(len(clause) > 1 for clause in condition.clauses)
    assert len(condition.clauses) <= MAX_CLAUSES * 4
    for atom in condition.atoms():
        if isinstance(atom, IndexAtom):
            assert not atom.intervals.empty and not atom.intervals.everything
    for clause in condition.clauses:
        places = [atom.position if isinstance(atom, IndexAtom) else -1 for atom in clause]
        assert len(set(places)) == len(places), "atoms on one attribute are united, residuals too"


@settings(max_examples=amount(50, long=100), deadline=None)
@given(cases(), st.randoms(use_true_random=False))
def test_reordered_conjuncts_are_the_same_condition(case: tuple[list[ColumnRef], Expression], rng: Any) -> None:
    expression = case[1]
    if not (isinstance(expression, FunctionCall) and expression.op == "and"):
        expression = FunctionCall(Type.BOOL, "and", (expression, FunctionCall(Type.BOOL, "is_null", (case[0][0],))))
    args = list(expression.args)
    rng.shuffle(args)
    assert normalise(FunctionCall(Type.BOOL, "and", tuple(args))) == normalise(expression)


@settings(max_examples=amount(50, long=100), deadline=None)
@given(cases(), cases(), st.integers(0, 2**31))
def test_equal_conditions_keep_the_same_rows(
    one: tuple[list[ColumnRef], Expression], two: tuple[list[ColumnRef], Expression], seed: int
) -> None:
    columns, expression = one
    other = FunctionCall(Type.BOOL, "not", (FunctionCall(Type.BOOL, "not", (expression,)),))
    rows = random_rows(columns, seed)
    frame = frame_of(columns, rows)
    for candidate in (other, two[1]):
        same_columns = candidate is other or [c.type for c in two[0]] == [c.type for c in columns]
        if same_columns and normalise(candidate) == normalise(expression):
            assert true_rows(candidate, frame).tolist() == true_rows(expression, frame).tolist()
