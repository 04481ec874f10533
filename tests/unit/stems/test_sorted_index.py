"""The index for inequality and band joins against a list that is scanned, after every step."""

from __future__ import annotations

import math
import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eddy.base.compile import ensure
from filters.values.intervals import float_key
from lineage.schema import KEY_MAX, KEY_MIN, Schema
from stems.key_ranges import KeyRanges, shifted_ranges
from stems.row_store import RowStore
from stems.sorted_index import SortedIndex
from tests.reference.indexes import SlowSortedIndex

ensure()

SCHEMA = Schema.parse({"a": "int", "x": "float", "ts": "timestamp", "flag": "bool"}, "t")
EDGES: dict[str, list[Any]] = {
    "a": [KEY_MIN, KEY_MAX, 0, -1],
    "x": [math.nan, -math.nan, math.inf, -math.inf, -0.0, 0.0, 5e-324],
    "ts": [KEY_MIN, KEY_MAX],
    "flag": [0, 1],
}


class Both:
    """A store with an index, and its slow twin."""

    def __init__(self, seed: int, name: str, span: int, begin: int = 0, nulls: float = 0.1, **options: int) -> None:
        self.rng = random.Random(seed)
        self.store = RowStore(SCHEMA)
        self.store.end = self.store.watermark = begin
        self.name = name
        self.column = SCHEMA.position(name)
        self.index = SortedIndex(self.store, self.column, **options)
        self.slow = SlowSortedIndex()
        self.span = span
        self.nulls = nulls
        self.baseline = self.index.bytes()
        self.deleted: set[int] = set()

    def value(self) -> Any:
        if self.rng.random() < 0.05:
            return self.rng.choice(EDGES[self.name])
        if self.name == "flag":
            return self.rng.randrange(2)
        return self.rng.randrange(self.span) / (4.0 if self.name == "x" else 1)

    def key(self, value: Any) -> int:
        return float_key(value) if self.name == "x" else int(value)

    def push(self, n: int) -> None:
        values = [None if self.rng.random() < self.nulls else self.value() for _ in range(n)]
        dtype = np.float64 if self.name == "x" else np.int64
        column = np.array([0 if value is None else value for value in values], dtype)
        cells = [column if name == self.name else np.zeros(n, np.float64 if name == "x" else np.int64) for name in SCHEMA.names]
        mask = np.array([value is None for value in values], np.uint8)
        nulls = [mask if name == self.name and mask.any() else None for name in SCHEMA.names]
        done = 0
        while done < n:
            count = min(n - done, self.store.room())
            page, at = self.store.append(cells, nulls, done, done + count, 0, 0, self.store.end)
            for i in range(count):
                value = values[done + i]
                self.slow.build(None if value is None else self.key(value), page.base + at + i)
            self.index.build(page, at, at + count)
            done += count

    def probe(self, n: int, low: int, hi: int, room: int = 1000) -> int:
        ends = [self.key(self.value()) for _ in range(2 * n)]
        ranges = KeyRanges(np.array(ends[:n], np.int64), np.array(ends[n:], np.int64))
        probe = self.index.probe(ranges, low, hi)
        out_row, out_position = np.empty(room, np.int32), np.empty(room, np.int64)
        found: dict[int, list[int]] = {}
        while n_pairs := probe.fill(out_row, out_position):
            assert n_pairs <= room
            for row, position in zip(out_row[:n_pairs].tolist(), out_position[:n_pairs].tolist()):
                found.setdefault(row, []).append(position)
        expected = {}
        for row in range(n):
            if matches := self.slow.probe(ends[row], ends[n + row], low, hi):
                expected[row] = matches
        assert {row: sorted(positions) for row, positions in found.items()} == expected
        return sum(map(len, expected.values()))

    def delete(self, positions: list[int]) -> None:
        self.index.delete(np.array(positions, np.int64))
        self.slow.remove(positions)
        self.deleted.update(positions)

    def forget(self, watermark: int) -> None:
        self.store.forget(watermark)
        self.index.forget()
        self.slow.forget(watermark)

    def step(self) -> None:
        rng, store = self.rng, self.store
        action = rng.choice(["push", "push", "push", "forget", "delete", "delete one", "rebuild"])
        live = list(range(store.watermark, store.end))
        if action == "push":
            self.push(rng.choice([1, 3, 20, 90]))
        elif action == "forget":
            self.forget(rng.choice([store.watermark, rng.randint(store.watermark, store.end), store.end]))
        elif action == "delete" and live:
            some = rng.sample(live, rng.randint(1, max(1, len(live) // 3)))
            self.delete(some + some[:1])
        elif action == "delete one" and live:
            self.delete([rng.choice(live)])
        elif action == "rebuild" and rng.random() < 0.2:
            self.index.rebuild(np.array(sorted(self.deleted & set(live)), np.int64))
        self.index.check()
        low = rng.choice([store.watermark, rng.randint(store.watermark, store.end)])
        self.probe(5, low, rng.randint(low, store.end), rng.choice([1, 7, 1000]))
        self.probe(4, store.watermark, store.end)


@pytest.mark.parametrize("name", SCHEMA.names)
@pytest.mark.parametrize("span", [3, 1000])
def test_random_steps_agree_with_a_scan(name: str, span: int) -> None:
    for seed in range(4):
        both = Both(seed, name, span, small=8, min_fuel=4)
        for _ in range(80):
            both.step()
        both.forget(both.store.end)
        assert both.index.bytes() == both.baseline == 0


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(30))
def test_random_steps_at_length(seed: int) -> None:
    rng = random.Random(seed)
    both = Both(
        seed, rng.choice(SCHEMA.names), rng.choice([1, 5, 10**9]), rng.choice([0, 2**40]), rng.random() / 2,
        small=rng.choice([1, 16, 8192]), min_fuel=rng.choice([1, 50]),
    )  # fmt: skip
    for _ in range(250):
        both.step()


def test_rows_are_in_few_runs_and_merged_in_small_steps() -> None:
    store = RowStore(SCHEMA)
    index = SortedIndex(store, 0, small=64, min_fuel=64)
    rng = np.random.default_rng(3)
    most = 0
    for _ in range(2000):
        n = int(rng.integers(1, 60))
        n = min(n, store.room())
        other = [np.zeros(n, np.int64)] * 2
        page, at = store.append([rng.integers(0, 10**6, n), np.zeros(n), *other], [None] * 4, 0, n, 0, 0, store.end)
        index.build(page, at, at + n)
        store.forget(max(store.watermark, store.end - 20_000))
        index.forget()
        most = max(most, index.stats()["runs"])
    assert most <= 40
    stats = index.stats()
    assert stats["longest_step"] <= 12 * 4 * 64, "a build moves some rows of some merges"
    assert 20_000 <= stats["entries"] <= 1.5 * 20_000, "dead rows go soon"
    index.check()


def test_deleted_rows_make_no_run_long() -> None:
    both = Both(4, "a", 100, nulls=0.0, small=16, min_fuel=64)
    both.push(2000)
    both.delete(list(range(1900)))
    for _ in range(100):
        both.push(1)
    assert both.index.stats()["entries"] < 400
    both.index.check()
    assert both.probe(5, 0, both.store.end) >= 0


def test_texts_are_refused() -> None:
    with pytest.raises(AssertionError, match="order"):
        SortedIndex(RowStore(Schema.parse({"s": "string"}, "t")), 0)


# -- Ranges of stored keys against the condition itself, in Python's unbounded ints ------------------------------------


KEYS = st.one_of(st.integers(KEY_MIN, KEY_MAX), st.integers(-3, 3), st.sampled_from([KEY_MAX, KEY_MAX - 1, KEY_MIN, KEY_MIN + 1]))
#: a bound and its negative fit into 64 bits
BOUNDS = st.one_of(st.none(), KEYS.filter(lambda key: key > KEY_MIN))


@given(stored=KEYS, key=KEYS, low=BOUNDS, high=BOUNDS)
def test_a_band_is_exact_also_where_a_sum_leaves_64_bits(stored: int, key: int, low: int | None, high: int | None) -> None:
    ranges = shifted_ranges(np.array([key]), None, low, high)
    difference = stored - key
    expected = (low is None or low <= difference) and (high is None or difference <= high)
    assert bool(ranges.lowest[0] <= stored <= ranges.highest[0]) is expected


def test_null_matches_nothing() -> None:
    ranges = shifted_ranges(np.array([5, 5]), np.array([0, 1], np.uint8), None, 3)
    assert (ranges.lowest <= ranges.highest).tolist() == [True, False] and len(ranges) == 2
