"""Predicate modules: looked at once for all queries, only where some query still wants the row."""

from __future__ import annotations

import numpy as np
import pytest

from eddy.base.compile import ensure
from filters.expressions.expression import ColumnRef, Expression, FunctionCall, Literal, UserCall, UserFunction
from filters.expressions.residual import NOT_TRUE, TRUE, UNTRIED, PredicateModule
from filters.values.vector import ListFrame, Vector
from lineage.bits import slots_of, words
from lineage.schema import Type

ensure()

A = ColumnRef(Type.INT, "a", 0)
EVEN = FunctionCall(Type.BOOL, "=", (FunctionCall(Type.INT, "%", (A, Literal(Type.INT, 2))), Literal(Type.INT, 0)))


class Asked:
    """A user function that remembers the values it was asked for and fails on some."""

    def __init__(self, failing: set[int] | None = None) -> None:
        self.values: list[int] = []
        self.failing = failing or set()

    def __call__(self, value: int) -> bool:
        self.values.append(value)
        if value in self.failing:
            raise ValueError(value)
        return value % 2 == 0

    def expression(self, cost: float = 3.0) -> Expression:
        return UserCall(Type.BOOL, UserFunction("even", self, Type.BOOL, cost), (A,))


def module(expression: Expression, *slots: int, n_words: int = 2) -> PredicateModule:
    made = PredicateModule(4, "residual:t#1", expression, n_words)
    for slot in slots:
        made.add(slot)
    return made


def frame(n_rows: int, nulls: np.ndarray | None = None) -> ListFrame:
    return ListFrame([Vector(Type.INT, np.arange(n_rows), nulls)])


def packed(bits: np.ndarray) -> np.ndarray:
    padded = np.zeros((len(bits), words(bits.shape[1]) * 64), np.uint8)
    padded[:, : bits.shape[1]] = bits
    return np.packbits(padded, axis=1, bitorder="little").view(np.uint64)


def test_slots_are_kept_ascending_and_as_bits() -> None:
    one = module(EVEN, 70, 3, 5)
    assert one.slots.tolist() == [3, 5, 70] == slots_of(one.interested).tolist() and one.slots.dtype == np.int32
    one.remove(5)
    one.resize(4)
    one.add(200)
    assert one.slots.tolist() == [3, 70, 200] == slots_of(one.interested).tolist()
    one.remove(200)
    one.resize(2)
    assert len(one.interested) == 2 and slots_of(one.interested).tolist() == [3, 70]


def test_the_declared_cost_is_the_sum_over_its_functions() -> None:
    both = FunctionCall(Type.BOOL, "and", (Asked().expression(3.0), Asked().expression(4.5)))
    assert module(both).declared_cost_us == 7.5 and module(EVEN).declared_cost_us == 0


@pytest.mark.parametrize("n_rows", [1, 63, 64, 65, 200])
@pytest.mark.parametrize("density", [0.0, 0.1, 0.9, 1.0])
def test_both_layouts_leave_interested_queries_only_the_rows_that_are_true(n_rows: int, density: float) -> None:
    rng = np.random.default_rng(n_rows)
    bits = rng.random((128, n_rows)) < density
    interested = [0, 5, 64, 127]
    nulls = rng.random(n_rows) < 0.2
    true = (np.arange(n_rows) % 2 == 0) & ~nulls
    wanted = bits[interested].any(axis=0)
    expected = bits.copy()
    expected[interested] &= true

    one = module(EVEN, *interested)
    rows_of = packed(bits)
    stored = [TRUE if kept else NOT_TRUE if tried else UNTRIED for kept, tried in zip(true & wanted, wanted, strict=True)]
    outcome, rows_in, rows_out = one.query_major(rows_of, n_rows, frame(n_rows, nulls), np.ones(words(n_rows) + 2, np.uint64))
    assert (rows_of == packed(expected)).all()
    assert (rows_in, rows_out) == (wanted.sum(), (true & wanted).sum())
    assert outcome.tolist() == stored and outcome.dtype == np.uint8

    lin = packed(np.ascontiguousarray(bits.T))
    outcome, rows_in, rows_out = one.row_major(lin, n_rows, frame(n_rows, nulls))
    assert (lin == packed(np.ascontiguousarray(expected.T))).all() and rows_in == wanted.sum()
    assert outcome.tolist() == stored and outcome.dtype == np.uint8
    assert rows_out == (wanted & expected.any(axis=0)).sum(), "rows that any query still wants, also one that is not interested"


def test_a_function_is_asked_only_for_rows_that_an_interested_query_wants() -> None:
    asked = Asked()
    one = module(asked.expression(), 1, 2)
    bits = np.zeros((128, 10), bool)
    bits[1, [2, 3]] = bits[2, [3, 7]] = bits[9, [0, 1, 5]] = True
    outcome, rows_in, rows_out = one.query_major(packed(bits), 10, frame(10), np.zeros(1, np.uint64))
    assert asked.values == [2, 3, 7] and (rows_in, rows_out) == (3, 1)
    assert outcome.tolist() == [UNTRIED, UNTRIED, TRUE, NOT_TRUE, UNTRIED, UNTRIED, UNTRIED, NOT_TRUE, UNTRIED, UNTRIED]
    asked.values.clear()
    one.row_major(packed(np.ascontiguousarray(bits.T)), 10, frame(10))
    assert asked.values == [2, 3, 7]


def test_a_stored_outcome_restricts_without_asking_again() -> None:
    asked = Asked()
    one = module(asked.expression(), 1)
    rows_of = np.full((128, 2), ~np.uint64(0))
    one.restrict(rows_of, 70, np.arange(70) % 3 == 0)
    assert slots_of(rows_of[1]).tolist() == list(range(0, 70, 3)) and (rows_of[0] == ~np.uint64(0)).all()
    assert asked.values == []


@pytest.mark.parametrize("wanted", [[True] * 6, [True, True, True, True, True, False]])
def test_values_that_cannot_be_computed_are_false_and_counted(wanted: list[bool]) -> None:
    one = module(Asked({2, 4}).expression(), 0)
    outcome = one.outcome(frame(6), np.array(wanted))
    assert np.flatnonzero(outcome).tolist() == [0] and one.errors == 2


def test_errors_of_one_module_are_not_counted_for_the_next_on_the_same_batch() -> None:
    failing, sound = module(Asked({2, 4}).expression(), 0), module(Asked().expression(), 0)
    batch = frame(6)
    everything = np.ones(6, bool)
    failing.outcome(batch, everything)
    sound.outcome(batch, everything)
    assert (failing.errors, sound.errors) == (2, 0)


def test_no_wanted_row_means_no_work() -> None:
    asked = Asked({0})
    one = module(asked.expression(), 0)
    assert not one.outcome(frame(4), np.zeros(4, bool)).any() and asked.values == [] and one.errors == 0
