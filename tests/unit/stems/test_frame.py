"""Reading stored rows: frames over a page, and the rows that satisfy a condition, against plain Python."""

from __future__ import annotations

import math
import random
from typing import Any

import numpy as np
import pytest

from eddy.base.compile import ensure
from filters.expressions.evaluate import true_rows
from filters.expressions.expression import ColumnRef, FunctionCall, Literal
from filters.expressions.predicate import EVERY_ROW, NO_ROW, Condition, IndexAtom, ResidualAtom, normalise
from filters.values.intervals import NOT_NULL, NOTHING, ONLY_NULL, Intervals, compare, float_key
from lineage.dictionary import Dictionary
from lineage.schema import KEY_MAX, KEY_MIN, Schema, Type
from stems.frame import PageFrame, condition_rows, interval_rows
from stems.row_store import RowStore
from tests.reference.dictionaries import encode_list

ensure()

SCHEMA = Schema.parse({"a": "int", "x": "float", "s": "string", "flag": "bool", "ts": "timestamp"}, "t")
VALUES: dict[str, list[Any]] = {
    "a": [KEY_MIN, -1, 0, 1, 2, 3, KEY_MAX],
    "x": [-math.inf, -1.5, -0.0, 0.0, 2.0, math.inf, math.nan],
    "s": ["", "\0", "a", "b", "é"],
    "flag": [False, True],
    "ts": [-1, 0, 10**15],
}


class Stored:
    """Random rows in a store, with NULLs or without."""

    def __init__(self, seed: int, n_rows: int, null_share: float) -> None:
        rng = random.Random(seed)
        self.dictionaries = [Dictionary() if column.type is Type.STRING else None for column in SCHEMA.columns]
        self.rows = [
            {name: None if rng.random() < null_share else rng.choice(VALUES[name]) for name in SCHEMA.names}
            for _ in range(n_rows)
        ]
        self.store = RowStore(SCHEMA)
        cells, nulls = [], []
        for name, column, dictionary in zip(SCHEMA.names, SCHEMA.columns, self.dictionaries):
            values = [row[name] for row in self.rows]
            if dictionary is not None:
                cells.append(encode_list(dictionary, values))
            else:
                dtype = np.float64 if column.type is Type.FLOAT else np.int64
                cells.append(np.array([0 if value is None else value for value in values], dtype))
            mask = np.array([value is None for value in values], np.uint8)
            nulls.append(mask if mask.any() else None)
        self.store.room()
        self.page, _ = self.store.append(cells, nulls, 0, n_rows, np.arange(n_rows), 0, 0)

    def keys(self, name: str) -> list[Any]:
        return [float_key(row[name]) if isinstance(row[name], float) else row[name] for row in self.rows]

    def interval_rows(self, name: str, intervals: Intervals, at: int, stop: int) -> list[bool]:
        position = SCHEMA.position(name)
        return interval_rows(intervals, self.store, self.page, at, stop, position, self.dictionaries[position]).tolist()

    def condition_rows(self, condition: Condition, at: int, stop: int, modules: dict[str, int]) -> list[bool]:
        return condition_rows(condition, self.store, self.page, at, stop, self.dictionaries, modules).tolist()


def shapes(name: str) -> list[Intervals]:
    """All comparisons with every value, unions of them, and NULL."""
    found = [NOTHING, NOT_NULL, ONLY_NULL, NOT_NULL.union(ONLY_NULL)]
    for value in VALUES[name]:
        found += [compare(SCHEMA[name].type, op, value) for op in ("<", "<=", ">", ">=", "=", "<>")]
    found += [one.union(ONLY_NULL) for one in found[4::3]]
    return found + [found[4].union(found[-1]), found[8].union(found[-4])]


@pytest.mark.parametrize("name", SCHEMA.names)
@pytest.mark.parametrize("null_share", [0.0, 0.3])
def test_interval_rows_are_those_whose_value_the_intervals_hold(name: str, null_share: float) -> None:
    stored = Stored(1, 90, null_share)
    keys = stored.keys(name)
    for intervals in shapes(name):
        for at, stop in [(0, 90), (13, 77), (40, 40), (89, 90)]:
            assert stored.interval_rows(name, intervals, at, stop) == [intervals.holds(key) for key in keys[at:stop]], str(
                intervals
            )


def test_a_code_beyond_the_dictionary_is_in_no_interval() -> None:
    stored = Stored(1, 5, 0.0)
    position = SCHEMA.position("s")
    empty = Dictionary()
    found = interval_rows(NOT_NULL, stored.store, stored.page, 0, 5, position, empty)
    assert found.tolist() == [False] * 5


def test_every_row_and_no_row() -> None:
    stored = Stored(2, 10, 0.2)
    assert stored.condition_rows(EVERY_ROW, 2, 9, {}) == [True] * 7
    assert stored.condition_rows(NO_ROW, 2, 9, {}) == [False] * 7


def test_a_residual_is_read_from_the_outcome_kept_with_the_rows_and_is_false_where_none_is() -> None:
    stored = Stored(3, 10, 0.0)
    residual = ResidualAtom(FunctionCall(Type.BOOL, "like", (ColumnRef(Type.STRING, "s", 2), Literal(Type.STRING, "a%"))))
    condition = Condition((), (residual,), ())
    assert stored.condition_rows(condition, 0, 10, {str(residual): 4}) == [False] * 10
    stored.store.outcomes.keep(stored.page, 3, 4, np.array([True, False, True]))
    assert stored.condition_rows(condition, 2, 7, {str(residual): 4}) == [False, True, False, True, False]


@pytest.mark.parametrize("seed", range(6))
def test_condition_rows_are_the_true_rows_of_the_expression(seed: int) -> None:
    rng = random.Random(seed)
    stored = Stored(seed, 120, rng.choice([0.0, 0.2]))
    columns = [ColumnRef(column.type, column.name, position) for position, column in enumerate(SCHEMA.columns)]

    def leaf() -> FunctionCall:
        column = rng.choice(columns)
        if rng.random() < 0.15:
            return FunctionCall(Type.BOOL, "is_null", (column,))
        if rng.random() < 0.2:
            return FunctionCall(Type.BOOL, rng.choice(["<", "=", ">="]), (columns[0], columns[1]))
        op = rng.choice(["<", "<=", ">", ">=", "=", "<>"])
        return FunctionCall(
            Type.BOOL, op, (column, Literal(column.type, rng.choice([v for v in VALUES[column.name] if v not in ("\0",)])))
        )

    for _ in range(25):
        parts = tuple(FunctionCall(Type.BOOL, rng.choice(["or", "and"]), (leaf(), leaf())) for _ in range(rng.randint(1, 3)))
        expression = FunctionCall(Type.BOOL, rng.choice(["and", "or"]), parts)
        frame = PageFrame(stored.page, SCHEMA, stored.dictionaries, slice(0, 120))
        expected = true_rows(expression, frame)
        condition = normalise(expression)
        modules: dict[str, int] = {}
        for atom in condition.atoms():
            if not isinstance(atom, IndexAtom):
                number = modules.setdefault(str(atom), len(modules))
                stored.store.outcomes.keep(stored.page, 0, number, true_rows(atom.expression, frame))
        at, stop = sorted(rng.sample(range(121), 2))
        assert stored.condition_rows(condition, at, stop, modules) == expected[at:stop].tolist(), str(condition)


@pytest.mark.parametrize("null_share", [0.0, 0.3])
@pytest.mark.parametrize("at", [slice(0, 50), slice(7, 31), slice(9, 9), np.array([3, 3, 0, 49]), np.array([], np.int64)])
def test_a_frame_gives_the_values_of_its_rows(null_share: float, at: slice | np.ndarray) -> None:
    stored = Stored(4, 50, null_share)
    frame = PageFrame(stored.page, SCHEMA, stored.dictionaries, at)
    picked = stored.rows[at] if isinstance(at, slice) else [stored.rows[i] for i in at]
    assert frame.n_rows == len(picked)
    for position, name in enumerate(SCHEMA.names):
        vector = frame.column(position)
        assert vector.type is SCHEMA[name].type and len(vector) == len(picked)
        found = [vector.cell(i) for i in range(len(picked))]
        assert list(map(repr, found)) == [repr(row[name]) for row in picked]


def test_a_frame_is_a_copy_that_later_rows_do_not_change() -> None:
    stored = Stored(5, 20, 0.0)
    frame = PageFrame(stored.page, SCHEMA, stored.dictionaries, slice(0, 20))
    before = frame.column(0)
    stored.page.cells[0, :20] = 99
    assert [before.cell(i) for i in range(20)] == [row["a"] for row in stored.rows]


def test_a_column_without_nulls_has_none_though_another_has() -> None:
    stored = Stored(6, 30, 0.0)
    stored.page.nulls = np.zeros((len(SCHEMA), len(stored.page.times)), np.uint8)
    stored.page.nulls[0, 4] = 1
    frame = PageFrame(stored.page, SCHEMA, stored.dictionaries, slice(0, 30))
    assert frame.column(1).nulls is None and frame.column(0).nulls is not None
    assert frame.column(0).cell(4) is None
