"""Would the random joins notice a broken window that counts rows? Each mutant breaks one rule of the engine.

`check` is left out: the answers, the changes and what listeners are told have to tell.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest

import eddy.joins.join_group
import eddy.reading.join_reader
import stems.partition_table
import stems.row_ends
from eddy import Engine
from eddy.lives.window_rows import WindowRows
from lineage.elements import Elements
from stems.partition_table import PartitionTable
from stems.row_ends import RowEnds
from tests.reference.breaking import Breaks, leave_it_to_the_answers
from tests.reference.driver import replay
from tests.reference.limits import settle_always
from tests.reference.stream_joins import make_relation_join_script

pytestmark = pytest.mark.slow

#: Scripts a mutant may survive before the test fails, and their length.
N_SEEDS = 20
N_STEPS = 40

#: what is broken -> a function that breaks it
MUTANTS = breaks = Breaks()


@breaks("ROWS n holds n + 1")
def _one_more(monkeypatch: pytest.MonkeyPatch) -> None:
    exact = RowEnds.__init__

    def larger(self: RowEnds, store: Any, rows: int, partition: Any = ()) -> None:
        exact(self, store, rows + 1, partition)

    monkeypatch.setattr(RowEnds, "__init__", larger)
    monkeypatch.setattr(stems.row_ends.EndColumns, "release", lambda self, column: None)


@breaks("a NULL in a partition's key is the value below it")
def _null_is_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    exact = PartitionTable.keys_of

    def unmarked(self: PartitionTable, page: Any, at: Any) -> tuple[np.ndarray, np.ndarray]:
        keys, hashes = exact(self, page, at)
        keys[len(self.columns) :] = 0
        stems.partition_table.hash_columns(keys, len(hashes), hashes)
        return keys, hashes

    monkeypatch.setattr(PartitionTable, "keys_of", unmarked)


@breaks("-0.0 and 0.0 are two keys of a partition")
def _signed_zero(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stems.partition_table, "float_keys", lambda values: values.view(np.int64))


@breaks("an end is read as it is, not as it was")
def _no_past(monkeypatch: pytest.MonkeyPatch) -> None:
    exact = RowEnds.ends_at
    monkeypatch.setattr(RowEnds, "ends_at", lambda self, positions, taken: exact(self, positions, self.end))


@breaks("a match that was displaced while the clock stood still is not taken back")
def _forgets_empty_lives(monkeypatch: pytest.MonkeyPatch) -> None:
    reader = eddy.reading.join_reader.JoinReader
    monkeypatch.setattr(reader, "there", lambda self, found, taken: np.zeros(len(found), np.bool_))


@breaks("ROWS n RANGE w is RANGE w to readers")
def _range_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    def by_clock(self: WindowRows, positions: np.ndarray, taken: int) -> Elements:
        return self._source.store.elements_at(positions, self._width)

    monkeypatch.setattr(WindowRows, "lives", by_clock)


@breaks("listeners are not told of displaced rows")
def _silent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RowEnds, "displaced_by", lambda self, first, last: np.zeros(0, np.int64))


@breaks("listeners are told of rows that are displaced")
def _ageless(monkeypatch: pytest.MonkeyPatch) -> None:
    exact = eddy.joins.join_group.JoinGroup._add_age

    def by_clock(self: eddy.joins.join_group.JoinGroup, batch: Any, found: Any, k: int, *asked: Any) -> None:
        ends, self.ends[k] = self.ends[k], None
        exact(self, batch, found, k, *asked)
        self.ends[k] = ends

    monkeypatch.setattr(eddy.joins.join_group.JoinGroup, "_add_age", by_clock)


@breaks("rows are kept for windows of the clock alone")
def _forgetful(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RowEnds, "alive_from", lambda self, taken: taken)


@pytest.mark.parametrize("what", MUTANTS)
def test_random_joins_notice_a_broken_window_that_counts_rows(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    MUTANTS[what](monkeypatch)
    leave_it_to_the_answers(monkeypatch)
    settle_always(monkeypatch)
    for seed in range(N_SEEDS):
        try:
            replay(make_relation_join_script(seed, N_STEPS), functools.partial(Engine, log_rows=1), use_duckdb=False)
        except AssertionError:
            return
    pytest.fail(f"{what}: nobody noticed in {N_SEEDS} seeds")
