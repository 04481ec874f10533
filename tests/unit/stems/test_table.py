"""Versions of a table against a dictionary, and rows that close ranks."""

from __future__ import annotations

import random

import numpy as np
import pytest

from lineage.schema import Schema
from stems.commit_spans import OPEN
from stems.gathering import Gatherer
from stems.indexes import Indexes
from stems.row_store import RowStore
from stems.table import Versions
from tests.reference.limits import make_small

SCHEMA = Schema.parse({"k": "int", "x": "float", "v": "int"}, "t")


class Table:
    """Versions with a store and what the engine does around them."""

    def __init__(self, key: list[int]) -> None:
        self.store = RowStore(SCHEMA)
        self.stems = Indexes(self.store)
        self.versions = Versions(self.stems, key)
        self.by_value = self.stems.sorted_on(2)
        self.key = sorted(key)
        self.commit = 0
        self.n_versions = 0

    def keys(self, rows: list[tuple[int, float, int]]) -> object:
        cells = [np.array([row[column] for row in rows]) for column in self.key]
        cells = [np.ascontiguousarray(column, np.float64 if k == 1 else np.int64) for k, column in zip(self.key, cells)]
        return self.versions.key_index.folding.fold([column.view(np.int64) for column in cells], [None] * len(cells))

    def change(self, rows: list[tuple[int, float, int]], deleted: list[tuple[int, float, int]]) -> None:
        self.commit += 1
        found = self.versions.find(self.keys(rows + deleted)) if rows + deleted else np.zeros(0, np.int64)
        self.versions.close(np.unique(found[found >= 0]), self.commit)
        self.versions.open(len(rows), self.commit)
        at = 0
        while at < len(rows):
            stop = min(len(rows), at + self.store.room())
            columns = [np.array([row[c] for row in rows], np.float64 if c == 1 else np.int64) for c in range(3)]
            page, first = self.store.append(columns, [None] * 3, at, stop, self.commit, self.commit, self.n_versions + at)
            self.stems.build(page, first, first + stop - at)
            self.store.outcomes.keep(page, first, 5, np.array([1 + row[2] % 2 for row in rows[at:stop]], np.uint8))
            at = stop
        self.n_versions += len(rows)

    def at(self, commit: int) -> list[tuple[int, float, int]]:
        """The table as it was after a commit."""
        held = np.arange(self.store.watermark, self.store.end)
        positions = held[self.versions.counts(held, commit)]
        columns = [Gatherer(self.store).cells(c, positions)[0] for c in range(3)]
        return list(zip(columns[0].tolist(), columns[1].view(np.float64).tolist(), columns[2].tolist()))


@pytest.mark.parametrize("key", [[0], [1], [0, 1]])
@pytest.mark.parametrize("seed", range(6))
def test_a_table_is_what_it_was_after_every_commit_that_may_be_asked_for(
    key: list[int], seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_small(monkeypatch, {"PAGE_ROWS", "_PAGE_BITS", "MIN_FORGOTTEN", "_SPARE_PAGES"})
    rng = random.Random(seed)
    table = Table(key)
    current: dict[tuple[float, ...], tuple[int, float, int]] = {}
    history: list[list[tuple[int, float, int]]] = [[]]
    asked = moved = 0
    for _ in range(120):
        drawn = {}
        for _ in range(rng.choice([0, 1, 1, 2, 5, 40])):
            row = (rng.randrange(6), rng.choice([0.0, 1.0, 2.5]), rng.randrange(100))
            drawn[tuple(row[c] for c in key)] = row
        split = rng.randint(0, len(drawn))
        rows, deleted = list(drawn.values())[:split], list(drawn.values())[split:]
        for row in deleted:
            current.pop(tuple(row[c] for c in key), None)
        for row in rows:
            current[tuple(row[c] for c in key)] = row
        table.change(rows, deleted)
        history.append(sorted(current.values()))
        if rng.random() < 0.3:
            asked = rng.randint(asked, table.commit)
            moved += table.versions.forget(asked)
        table.versions.check()
        table.stems.check()
        table.store.check()
        for commit in range(asked, table.commit + 1):
            assert sorted(table.at(commit)) == history[commit]
        assert table.versions.end_at(table.commit) == table.store.end
        newest = np.arange(table.versions.end_at(table.commit - 1), table.store.end)
        assert (table.versions.opened_at(newest) == table.commit).all() and len(newest) == len(rows)
        assert (table.versions.closed_at(table.versions.closed_by(table.commit)) == table.commit).all()
    assert moved > 2, "versions were let go of"
    for page, at, stop in table.store.slices(table.store.watermark, table.store.end):
        assert (page.outcomes[5][at:stop] == 1 + page.cells[2, at:stop] % 2).all(), "outcomes moved with their rows"


def test_versions_that_nobody_asks_for_do_not_pile_up_below_an_old_one() -> None:
    table = Table([0])
    table.change([(0, 0.0, 0)], [])
    for n in range(10_000):
        table.change([(1, 0.0, n)], [])
        table.versions.forget(table.commit)
    assert table.store.end - table.store.watermark <= 1026 and table.versions.bytes() < 2 * 8 * 4096
    assert sorted(table.at(OPEN - 1)) == [(0, 0.0, 0), (1, 0.0, 9999)]
    numbers = table.store.numbers_at(np.arange(table.store.watermark, table.store.end))
    assert (numbers[0], numbers[-1]) == (0, 10_000), "a version keeps its number"


def test_closings_are_counted_for_as_long_as_they_are_asked_for() -> None:
    table = Table([0])
    table.change([(k, 0.0, 0) for k in range(10)], [])
    for k in range(1, 10):
        table.change([], [(j, 0.0, 0) for j in range(k - 1, k)])
    versions = table.versions
    assert [versions.n_closed_until(commit) for commit in (1, 2, 5, 10)] == [0, 1, 4, 9]
    assert [versions.commit_with(n) for n in (1, 4, 9)] == [2, 5, 10]
    assert not versions.forget(5)
    assert [versions.n_closed_until(commit) for commit in (5, 6, 10)] == [4, 5, 9]
