"""Random joins, all of whose keys are expressions; and would they notice a broken derived column?

Each mutant breaks one rule of `stems/derived.py`, or of who reads it. `check` is left out: the answers, the changes and what
listeners are told have to tell.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from eddy import Engine
from eddy.joins.walk import Walker
from filters.expressions.expression import TRUE, Expression
from filters.values.vector import Vector
from queries.joins import EqualityEdge, KeyColumn
from stems.derived import DerivedColumn, DerivedColumns
from tests.reference.breaking import Breaks, leave_it_to_the_answers
from tests.reference.driver import replay, subject
from tests.reference.join_workload import DERIVED_CYCLES
from tests.reference.seeds import seeds
from tests.reference.stream_joins import make_table_script

#: Scripts a mutant may survive before the test fails, and their length.
N_SEEDS = 30
N_STEPS = 40

#: what is broken -> a function that breaks it
MUTANTS = breaks = Breaks()


@breaks("rows that were stored before have no values")
def _only_new_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    exact = DerivedColumns.hold

    def hold(self: DerivedColumns, expression: Expression) -> DerivedColumn:
        known, store = expression in self.columns, self._store
        column = exact(self, expression)
        if not known:
            for page, at, stop in store.slices(store.watermark, store.end):
                store.put(page, at, column.position, np.zeros(stop - at, np.int64), np.ones(stop - at, np.bool_))
        return column

    monkeypatch.setattr(DerivedColumns, "hold", hold)


@breaks("a NULL is the value below it")
def _no_nulls(monkeypatch: pytest.MonkeyPatch) -> None:
    exact = DerivedColumn.encoded

    def encoded(self: DerivedColumn, found: Vector) -> tuple[np.ndarray, None]:
        if self.dictionary is not None:
            self.dictionary.computed("")
        return exact(self, found)[0], None

    monkeypatch.setattr(DerivedColumn, "encoded", encoded)


@breaks("a float is kept as the whole number below it")
def _whole_floats(monkeypatch: pytest.MonkeyPatch) -> None:
    exact = DerivedColumn.encoded

    def encoded(self: DerivedColumn, found: Vector) -> tuple[np.ndarray, np.ndarray | None]:
        if found.values.dtype == np.float64:
            found = Vector(found.type, np.floor(found.values), found.nulls)
        return exact(self, found)

    monkeypatch.setattr(DerivedColumn, "encoded", encoded)


@breaks("all texts have the same code")
def _one_text(monkeypatch: pytest.MonkeyPatch) -> None:
    exact = DerivedColumn._codes

    def codes(self: DerivedColumn, found: Vector) -> tuple[np.ndarray, np.ndarray | None]:
        cells, nulls = exact(self, found)
        return np.zeros_like(cells), nulls

    monkeypatch.setattr(DerivedColumn, "_codes", codes)


@breaks("an edge by which nothing is looked up is not checked where it is derived")
def _unchecked(monkeypatch: pytest.MonkeyPatch) -> None:
    exact = Walker._equal

    def equal(self: Walker, edge: EqualityEdge, left: KeyColumn, right: KeyColumn) -> Any:
        plain = left.expression is None and right.expression is None
        return exact(self, edge, left, right) if plain else TRUE

    monkeypatch.setattr(Walker, "_equal", equal)


@pytest.mark.parametrize("seed", seeds(range(30), 8))
def test_a_seed_of_joins_by_derived_keys_passes(seed: int) -> None:
    replay(make_table_script(seed, 30, edges=DERIVED_CYCLES), subject, use_duckdb=seed % 2 == 0)


@pytest.mark.slow
@pytest.mark.parametrize("what", MUTANTS)
def test_random_joins_notice_a_broken_derived_column(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    MUTANTS[what](monkeypatch)
    leave_it_to_the_answers(monkeypatch)
    for seed in range(N_SEEDS):
        try:
            replay(make_table_script(seed, N_STEPS, edges=DERIVED_CYCLES), Engine, use_duckdb=False)
        except AssertionError:
            return
    pytest.fail(f"{what}: nobody noticed in {N_SEEDS} seeds")
