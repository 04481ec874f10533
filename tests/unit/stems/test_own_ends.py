"""The column of own ends against a dict of keys, one event at a time."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from lineage.elements import FOREVER
from lineage.schema import Schema
from stems.gathering import Gatherer
from stems.own_ends import NOTHING_TAKEN_OUT, OwnEnds, Retractions, RowRetractions, TakenOut
from stems.row_store import RowStore
from tests.reference.values import canonical_row

SCHEMA = Schema.parse({"k": "int", "x": "float", "until": "timestamp[us]", "ts": "timestamp"}, "s")


class Slow:
    """Every row there ever was: its scheduled end, its end, and the commit that lowered it."""

    def __init__(self) -> None:
        self.rows: list[list[int]] = []
        self.newest: dict[Any, int] = {}

    def enter(self, key: Any, start: int, end: int, commit: int) -> None:
        self.lower(key, start, commit)
        self.newest[key] = len(self.rows)
        self.rows.append([end, end, 0])

    def lower(self, key: Any, start: int, commit: int) -> None:
        row = self.rows[self.newest[key]] if key in self.newest else None
        if row is not None and row[1] > start:
            row[1:] = [start, commit]

    def lower_row(self, position: int, start: int, commit: int) -> None:
        row = self.rows[position]
        if row[1] > start:
            row[1:] = [start, commit]

    def ends(self, first: int, commit: int) -> list[int]:
        return [end if lowered <= commit else scheduled for scheduled, end, lowered in self.rows[first:]]


def keys(rng: random.Random, n: int) -> tuple[list[int | None], list[float | None]]:
    return [rng.choice([0, 1, 2, None]) for _ in range(n)], [rng.choice([0.0, -0.0, 1.5, float("nan"), None]) for _ in range(n)]


def columns(values: list[list[Any]]) -> tuple[list[np.ndarray], list[np.ndarray | None]]:
    cells = [
        np.array([0 if v is None else v for v in column], np.float64 if i == 1 else np.int64) for i, column in enumerate(values)
    ]
    return cells, [np.array([v is None for v in column], np.uint8) for column in values]


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("key", [(0,), (0, 1), ()])
def test_ends_are_those_of_a_dict_of_keys_now_and_after_every_commit(seed: int, key: tuple[int, ...]) -> None:
    rng = random.Random(seed)
    store = RowStore(SCHEMA)
    own = OwnEnds(store, Gatherer(store), key, 2 if seed % 2 else None, by_row=True)
    slow, clock, low = Slow(), 0, 0
    for commit in range(1, 60):
        n, m = rng.choice([0, 1, 3, 30, 300]), rng.choice([0, 0, 1, 5]) if key else 0
        times = sorted(clock + rng.randint(0, 20) for _ in range(n))
        k, x = keys(rng, n)
        ends = [rng.choice([None, time - 1, time, time + 1, time + 30]) for time in times]
        gone_k, gone_x = keys(rng, m)
        before = sorted(rng.randint(0, n) for _ in range(m))
        starts = [times[b - 1] if b else clock for b in before]
        single = [rng.randrange(len(slow.rows)) for _ in range(rng.choice([0, 0, 1, 4]))] if slow.rows else []
        single_before = sorted(rng.randint(0, n) for _ in single)
        single_starts = [times[b - 1] if b else clock for b in single_before]
        for i in range(n + 1):
            for r, position in enumerate(single):
                if single_before[r] == i and position >= low:
                    slow.lower_row(position, single_starts[r], commit)
            for r in range(m):
                if before[r] == i:
                    slow.lower(canonical_row([(gone_k, gone_x)[c][r] for c in key]), starts[r], commit)
            if i < n:
                end = FOREVER if ends[i] is None or own.end_column is None else ends[i]
                slow.enter(canonical_row([(k, x)[c][i] for c in key]) if key else len(slow.rows), times[i], end, commit)
        if n:
            cells, nulls = columns([k, x, ends, times])
            done = 0
            while done < n:
                stop = min(n, done + store.room())
                store.append(cells, nulls, done, stop, np.array(times[done:stop]), clock, store.end)
                done = stop
        retractions = None
        if m:
            cells, nulls = columns([gone_k, gone_x])
            chosen = [cells[c].view(np.int64) for c in key]
            retractions = Retractions(chosen, [nulls[c] for c in key], np.array(starts), np.array(before))
        rows = RowRetractions(*(np.array(part, np.int64) for part in (single, single_starts, single_before))) if single else None
        own.settle(commit, TakenOut(retractions, rows))
        clock = times[-1] if n else clock
        for seq in (commit, commit - 1, max(0, commit - 5)):
            assert own.ends_at(np.arange(low, store.end), seq).tolist() == slow.ends(low, seq)
        lowered = [position for position, row in enumerate(slow.rows) if row[2] == commit and position >= low]
        assert [p for p in own.lowered_in(commit).tolist() if p >= low] == lowered and not len(own.lowered_in(commit + 1))
        if rng.random() < 0.2:
            low = max(low, own.move_to(clock - 5, commit - 1))
            own.forget(low)
            store.forget(low)
            assert all(row[1] <= clock - 5 and row[2] < commit for row in slow.rows[:low])
        own.check()


def test_rows_entered_again_end_nobody_and_a_store_that_is_empty_has_no_keys() -> None:
    store = RowStore(SCHEMA)
    own = OwnEnds(store, Gatherer(store), (0,), None)
    cells, nulls = columns([[1, 2, 1], [0.0] * 3, [None] * 3, [5, 6, 7]])
    store.room()
    store.append(cells, nulls, 0, 3, np.array([5, 6, 7]), 0, 0)
    own.settle(1, NOTHING_TAKEN_OUT)
    assert own.ends_at(np.arange(3), 1).tolist() == [7, FOREVER, FOREVER]
    own.recode(0)
    assert own.ends_at(np.arange(3), 1).tolist() == [7, FOREVER, FOREVER] and own.stats()["keys"] == 2
    own.check()
    own.forget(3)
    store.forget(3)
    assert own.stats()["keys"] == 0 and own.first_alive() == 3
    own.check()
