"""Sums shared by many queries against each query's own, under churn of queries and constants."""

from __future__ import annotations

import bisect
import math
import random
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from eddy.base.compile import ensure
from lineage.bits import words
from lineage.schema import Type
from windows.aggregates.aggregate import AggregateKind
from windows.shared.aggregates import AttributeRanges, Listed, MovedRows, SharedAggregates, ValueColumn, finish
from windows.shared.extremes import NONE

ensure()

LIMIT = 1 << 30
COLUMNS = [
    ValueColumn(Type.FLOAT, variance=True, minimum=True, maximum=True),
    ValueColumn(Type.INT, maximum=True),
    ValueColumn(Type.FLOAT),
    ValueColumn(Type.TIMESTAMP, sum=False, minimum=True),
]
KINDS = [
    (AggregateKind(kind), column)
    for kinds, column in (
        ("count", None),
        ("count sum avg variance stddev min max", 0),
        ("count sum avg max", 1),
        ("count min", 3),
        ("count sum avg", 2),
    )
    for kind in kinds.split()
]


class Regions:
    """Cuts of one attribute as the grouped filter keeps them: a new cut splits a region and the lower part keeps the id."""

    def __init__(self) -> None:
        self.cuts: list[float] = []
        self.ids = [0]
        #: ids whose cut is gone, with the id they count as
        self.aliases: dict[int, int] = {}
        self.n_ids = 1

    def cut(self, value: float) -> None:
        at = bisect.bisect_left(self.cuts, value)
        if at == len(self.cuts) or self.cuts[at] != value:
            self.cuts.insert(at, value)
            self.ids.insert(at + 1, self.n_ids)
            self.n_ids += 1

    def drop(self, value: float) -> None:
        at = self.cuts.index(value)
        del self.cuts[at]
        self.aliases[self.ids.pop(at + 1)] = self.ids[at]

    def region(self, value: float) -> int:
        return self.ids[bisect.bisect_right(self.cuts, value)]

    def rank_of(self) -> np.ndarray:
        ranks = np.full(self.n_ids, -1, np.int64)
        ranks[self.ids] = np.arange(len(self.ids))
        for id in range(self.n_ids):
            target = id
            while target in self.aliases:
                target = self.aliases[target]
            ranks[id] = ranks[target]
        return ranks

    def range(self, low: float, high: float) -> tuple[int, int]:
        first = 0 if low == -math.inf else self.cuts.index(low) + 1
        return first, LIMIT if high == math.inf else self.cuts.index(high) + 1


class Model:
    """Queries as plain lists of rows: (position, group, attribute, values, parity bit of a second condition)."""

    def __init__(self, seed: int, window: int) -> None:
        self.rng = random.Random(seed)
        self.window = window
        self.shared = SharedAggregates(COLUMNS, self.matches)
        self.regions = Regions()
        self.rows: list[tuple[int, int, float, tuple[Any, ...], int]] = []
        #: query -> (low, high, born, listed)
        self.queries: dict[int, tuple[float, float, int, bool]] = {}
        self.shown: dict[int, dict[int, tuple[Any, ...]]] = {}
        self.position = 0
        self.next_query = 0
        self.stored: dict[int, int] = {}

    # ---- what the engine would say

    def ranges(self) -> AttributeRanges:
        n = self.next_query + 1
        low, high = np.zeros(n, np.int64), np.zeros(n, np.int64)
        for query, (lower, upper, _, _) in self.queries.items():
            low[query], high[query] = self.regions.range(lower, upper)
        return AttributeRanges(self.regions.rank_of(), low, high)

    def watermark(self) -> int:
        return max(0, self.position - self.window)

    def counts_for(self, query: int, row: tuple[int, int, float, tuple[Any, ...], int]) -> bool:
        low, high, born, listed = self.queries[query]
        return low <= row[2] < high and row[0] >= born and (not listed or row[4] == 1)

    def matches(self, queries: np.ndarray, positions: np.ndarray) -> np.ndarray:
        """The bits of the stored rows that count for listed queries."""
        rows = {row[0]: row for row in self.rows}
        bits = np.zeros((len(queries), words(len(positions)) * 64), np.uint8)
        for k, query in enumerate(queries.tolist()):
            for at, position in enumerate(positions.tolist()):
                bits[k, at] = position in rows and self.counts_for(query, rows[position])
        return np.packbits(bits, axis=1, bitorder="little").view(np.uint64)

    # ---- steps

    def add_query(self, *, reader: bool, listed: bool) -> None:
        bounds = [-math.inf, math.inf, *(self.rng.randrange(20) for _ in range(2))]
        low, high = sorted(self.rng.sample(bounds, 2))
        if low == high:
            high = math.inf
        query = self.next_query
        self.next_query += 1
        for bound in (low, high):
            if math.isfinite(bound):
                self.regions.cut(bound)
        self.queries[query] = (low, high, self.position, listed)
        self.shared.add(query, self.position, self.watermark(), listed=listed)
        if reader:
            self.shared.watch(np.array([query]), self.ranges())
            self.shown[query] = self.expected(query)

    def remove_query(self, query: int) -> None:
        low, high, _, _ = self.queries.pop(query)
        self.shared.remove(query)
        self.shown.pop(query, None)
        used = {bound for each in self.queries.values() for bound in each[:2]}
        for bound in {low, high}:
            if math.isfinite(bound) and bound not in used:
                self.regions.drop(bound)

    def push(self, n: int, draw: Any) -> None:
        arrivals = []
        for _ in range(n):
            row = (self.position, self.rng.randrange(20), self.rng.randrange(-1, 21), draw(self.rng), self.rng.randrange(2))
            self.stored[self.position] = self.regions.region(row[2])
            self.position += 1
            arrivals.append(row)
        self.rows += arrivals
        ended = [row for row in self.rows if row[0] < self.watermark()]
        self.rows = [row for row in self.rows if row[0] >= self.watermark()]
        signed = [(1, row) for row in arrivals] + [(-1, row) for row in ended]
        self.apply(signed)
        self.shared.settle(self.watermark())

    def apply(self, signed: list[tuple[int, tuple[int, int, float, tuple[Any, ...], int]]]) -> None:
        rows = [row for _, row in signed]
        values = []
        for k, column in enumerate(COLUMNS):
            cells = [row[3][k] for row in rows]
            nulls = np.array([cell is None for cell in cells], np.uint8)
            dtype = np.float64 if column.type is Type.FLOAT else np.int64
            found = np.array([0 if cell is None else cell for cell in cells], dtype).view(np.int64)
            values.append((found, nulls if nulls.any() else np.zeros(0, np.uint8)))
        listed = [query for query, each in self.queries.items() if each[3]]
        bits = np.zeros((len(listed), words(len(rows))), np.uint64)
        for k, query in enumerate(listed):
            for i, row in enumerate(rows):
                bits[k, i >> 6] |= np.uint64(int(self.counts_for(query, row)) << (i & 63))
        self.shared.apply(
            MovedRows(
                np.array([row[1] for row in rows], np.int64), np.array([self.stored[row[0]] for row in rows], np.int64),
                np.array([row[0] for row in rows], np.int64), np.array([sign for sign, _ in signed], np.int64), values,
            ),
            self.ranges(),
            Listed(np.array(listed, np.int64), bits) if listed else None,
        )  # fmt: skip

    # ---- what must be

    def expected(self, query: int) -> dict[int, tuple[Any, ...]]:
        groups: dict[int, list[tuple[Any, ...]]] = {}
        for row in self.rows:
            if self.counts_for(query, row):
                groups.setdefault(row[1], []).append(row[3])
        return {group: tuple(compute(kind, column, values) for kind, column in KINDS) for group, values in groups.items()}

    def finished(self, measures: np.ndarray) -> list[tuple[Any, ...]]:
        columns = []
        for kind, column in KINDS:
            cells, nulls, _ = finish(self.shared.planes, kind, column, measures)
            is_int = (
                kind is AggregateKind.COUNT or (kind in (AggregateKind.SUM, AggregateKind.MAX) and column == 1) or column == 3
            )
            values = cells.tolist() if is_int else np.ascontiguousarray(cells).view(np.float64).tolist()
            columns.append([None if null else plain(value) for value, null in zip(values, nulls.tolist())])
        return list(zip(*columns))

    def check(self) -> None:
        self.shared.check()
        ranges = self.ranges()
        for query in self.queries:
            groups, measures = self.shared.answer(query, ranges)
            assert dict(zip(groups.tolist(), self.finished(measures))) == self.expected(query), f"query {query}"
        changes = self.shared.changes(ranges)
        places, groups = changes.places.copy(), changes.groups.copy()
        former, now = self.finished(changes.former.copy()), self.finished(self.shared.shown.now(places, groups))
        found: set[tuple[int, int]] = set()
        for query, group, was, is_now in zip(self.shared.readers_at()[places].tolist(), groups.tolist(), former, now):
            shown = self.shown[query]
            assert (query, group) not in found, "a cell is listed once"
            found.add((query, group))
            assert shown.get(group, was if was[0] == 0 else None) == was, "the former value is the one shown"
            if is_now[0] == 0:
                del shown[group]
            else:
                shown[group] = is_now
        for query, shown in self.shown.items():
            assert shown == self.expected(query), f"reader of query {query}"


def plain(value: Any) -> Any:
    return "NaN" if value != value else value


def compute(kind: AggregateKind, column: int | None, rows: list[tuple[Any, ...]]) -> Any:
    if column is None:
        return len(rows)
    values = [row[column] for row in rows if row[column] is not None]
    if kind is AggregateKind.COUNT:
        return len(values)
    if kind in (AggregateKind.VARIANCE, AggregateKind.STDDEV):
        n = len(values)
        if n < 2:
            return None
        if not all(map(math.isfinite, values)):
            return "NaN"
        exact = [Fraction(value) for value in values]
        variance = float(n * sum(value**2 for value in exact) - sum(exact) ** 2) / (n * (n - 1))
        return math.sqrt(variance) if kind is AggregateKind.STDDEV else variance
    if not values:
        return None
    if kind in (AggregateKind.MIN, AggregateKind.MAX):
        chosen = min if kind is AggregateKind.MIN else max
        return plain(chosen(values, key=lambda value: (value != value, value)))
    if COLUMNS[column].type is Type.INT:
        total = sum(values)
        return float(total) / len(values) if kind is AggregateKind.AVG else total if -(2**63) <= total < 2**63 else None
    special = sum(value for value in values if not math.isfinite(value))
    if special != 0:
        return plain(special)
    exact_total = sum(map(Fraction, values))
    if kind is AggregateKind.SUM:
        return float(exact_total) if abs(exact_total) < 2**1024 else (math.inf if exact_total > 0 else -math.inf)
    if abs(exact_total) < 2**1024:
        return float(exact_total) / len(values)
    return float(exact_total / 2**64) / len(values) * 2.0**64


def tame(rng: random.Random) -> tuple[Any, ...]:
    return round(rng.uniform(-100, 100), 3), rng.randrange(-1000, 1000), rng.randrange(100) / 4, rng.randrange(9)


def wild(rng: random.Random) -> tuple[Any, ...]:
    return (
        rng.choice([None, 0.0, 1e-8, 1e12, 0.1, -3.5, 1e-20, math.inf, math.nan]),
        rng.choice([None, 0, 1, -(2**63), 2**63 - 1, 7]),
        rng.choice([None, 1.0, -1.5, 2.0**1000, 1.7e308, -1.7e308, -math.inf, 5e-324]),
        rng.choice([None, -(2**63), 2**63 - 1, 0]),
    )


@pytest.mark.parametrize("draw", [tame, wild])
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.slow
def test_queries_that_come_and_go_have_the_sums_of_the_rows_they_count(seed: int, draw: Any) -> None:
    model = Model(seed, window=[5, 40, 200, 60][seed])
    rng = model.rng
    for _ in range(60):
        action = rng.random()
        if action < 0.3 and len(model.queries) < 25:
            model.add_query(reader=rng.random() < 0.7, listed=rng.random() < 0.2)
        elif action < 0.4 and model.queries:
            model.remove_query(rng.choice(list(model.queries)))
        else:
            # mostly tame values first, so that planes are added while queries run
            model.push(rng.choice([1, 3, 30]), draw if rng.random() < 0.3 else tame)
        model.check()


def test_sums_of_rows_that_all_left_are_zero_in_every_plane() -> None:
    model = Model(9, window=30)
    for _ in range(10):
        model.add_query(reader=True, listed=False)
    for _ in range(20):
        model.push(10, wild)
    model.apply([(-1, row) for row in model.rows])
    model.rows = []
    model.check()
    regions = model.shared._regions
    assert not regions._acc.any() and (regions.extremes.best == NONE).all() and (regions.extremes._heads < 0).all()


def test_a_young_query_shows_no_change_when_it_settles() -> None:
    model = Model(10, window=50)
    model.push(40, tame)
    for _ in range(8):
        model.add_query(reader=True, listed=False)
    assert {model.shared.path(query) for query in model.queries} == {"young"}
    model.push(60, tame)
    assert {model.shared.path(query) for query in model.queries} == {"region path"}
    model.check()
    assert len(model.shared.changes(model.ranges())) == 0


def test_nobody_is_shown_what_nobody_reads() -> None:
    model = Model(11, window=50)
    for _ in range(8):
        model.add_query(reader=False, listed=False)
    model.push(60, tame)
    assert len(model.shared.changes(model.ranges())) == 0
    model.shared.watch(np.array([0]), model.ranges())
    model.shown[0] = model.expected(0)
    model.push(20, tame)
    model.check()
    model.shared.unwatch(np.array([0]))
    del model.shown[0]
    model.push(20, tame)
    model.check()
