"""The equality index against a dict of lists, after every step."""

from __future__ import annotations

import math
import random
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
import pytest

from eddy.base.compile import ensure
from filters.values.intervals import float_key
from lineage.dictionary import Dictionary
from lineage.schema import KEY_MAX, KEY_MIN, Schema, Type
from stems.hash_index import SWEEP_ROWS, HashIndex
from stems.key_table import place_of
from stems.row_store import RowStore
from tests.reference.dictionaries import encode_list
from tests.reference.indexes import SlowHashIndex
from tests.reference.seeds import seeds

ensure()

SCHEMA = Schema.parse({"a": "int", "x": "float", "s": "string", "b": "int", "flag": "bool", "ts": "timestamp"}, "t")
#: Thresholds so small that a few rows grow, split, shrink, merge and seal.
TINY = {"min_places": 4, "max_places": 16, "seal_at": 4, "sweep_rows": 8}
EDGE_INTS = [0, 1, -1, KEY_MIN, KEY_MAX, 1 << 32, -(1 << 32)]
EDGE_FLOATS = [0.0, -0.0, math.nan, -math.nan, math.inf, -math.inf, 1.5, -1.5, 5e-324]


class Both:
    """A store with an index, and its slow twin."""

    def __init__(
        self, seed: int, columns: Sequence[str], n_keys: int = 20, begin: int = 0, nulls: float = 0.1, **options: int
    ) -> None:
        self.rng = random.Random(seed)
        self.store = RowStore(SCHEMA)
        self.store.end = self.store.watermark = begin
        self.dictionary = Dictionary()
        self.columns = [SCHEMA.position(name) for name in columns]
        self.index = HashIndex(self.store, self.columns, **options)
        self.slow = SlowHashIndex()
        self.n_keys = n_keys
        self.nulls = nulls
        self.baseline = self.index.bytes()
        self.deleted: set[int] = set()

    def values(self, n: int) -> list[dict[str, Any]]:
        rng = self.rng

        def one(name: str) -> Any:
            if rng.random() < self.nulls:
                return None
            k = rng.randrange(self.n_keys)
            if name == "x":
                return EDGE_FLOATS[k] if k < len(EDGE_FLOATS) else k / 4
            if name == "s":
                return f"text {k}"
            if name == "flag":
                return k % 2 == 0
            return EDGE_INTS[k] if k < len(EDGE_INTS) and name == "a" else k

        return [{name: one(name) for name in SCHEMA.names} for _ in range(n)]

    def cells(self, rows: list[dict[str, Any]]) -> tuple[list[np.ndarray], list[np.ndarray | None]]:
        cells, nulls = [], []
        for column in SCHEMA.columns:
            values = [row[column.name] for row in rows]
            if column.type is Type.STRING:
                cells.append(encode_list(self.dictionary, values))
            else:
                dtype = np.float64 if column.type is Type.FLOAT else np.int64
                cells.append(np.array([0 if value is None else value for value in values], dtype))
            mask = np.array([value is None for value in values], np.uint8)
            nulls.append(mask if mask.any() else None)
        return cells, nulls

    def key(self, row: dict[str, Any]) -> Hashable | None:
        """Of several values, floats by order key; None if one is NULL."""
        values = [row[SCHEMA.names[column]] for column in self.columns]
        if None in values:
            return None
        return tuple(float_key(value) if isinstance(value, float) else value for value in values)

    def push(self, n: int) -> None:
        rows = self.values(n)
        cells, nulls = self.cells(rows)
        done = 0
        while done < n:
            count = min(n - done, self.store.room())
            page, at = self.store.append(cells, nulls, done, done + count, 0, 0, self.store.end)
            for i in range(count):
                self.slow.build(self.key(rows[done + i]), page.base + at + i)
            self.index.build(page, at, at + count)
            done += count

    def probe(self, n: int, low: int | None = None, hi: int | None = None, room: int = 1000) -> int:
        """Probe with random rows and compare; returns the number of pairs."""
        store = self.store
        low = store.watermark if low is None else low
        rows = self.values(n)
        cells, nulls = self.cells(rows)
        end = store.end if hi is None else hi
        probed = [column.view(np.int64) for column in (cells[c] for c in self.columns)]
        keys = self.index.folding.fold(probed, [nulls[c] for c in self.columns])
        probe = self.index.probe(keys, low, end)
        found: dict[int, list[int]] = {}
        out_row, out_position = np.empty(room, np.int32), np.empty(room, np.int64)
        while n_pairs := probe.fill(out_row, out_position):
            assert n_pairs <= room
            for row, position in zip(out_row[:n_pairs].tolist(), out_position[:n_pairs].tolist()):
                found.setdefault(row, []).append(position)
        assert probe.fill(out_row, out_position) == 0
        expected = {}
        for row in range(n):
            if matches := self.slow.probe(self.key(rows[row]), low, end):
                expected[row] = matches
        assert found == expected
        return sum(map(len, expected.values()))

    def delete(self, positions: list[int]) -> None:
        self.index.delete(np.array(positions, np.int64))
        self.slow.remove(positions)
        self.deleted.update(positions)

    def forget(self, watermark: int) -> None:
        self.store.forget(watermark)
        self.index.forget()
        self.slow.forget(watermark)

    def live(self) -> list[int]:
        return list(range(self.store.watermark, self.store.end))

    def step(self) -> None:
        """One random step, and everything compared."""
        rng, store = self.rng, self.store
        action = rng.choice(["push", "push", "push", "forget", "delete", "delete one", "probe", "rebuild"])
        live = self.live()
        if action == "push":
            self.push(rng.choice([1, 2, 7, 40, 150]))
        elif action == "forget":
            self.forget(rng.choice([store.watermark, rng.randint(store.watermark, store.end), store.end]))
        elif action == "delete" and live:
            some = rng.sample(live, rng.randint(1, max(1, len(live) // 3)))
            self.delete(some + some[:1])
        elif action == "delete one" and live:
            self.delete([live[-1] if rng.random() < 0.5 else live[0]])
        elif action == "rebuild" and rng.random() < 0.2:
            self.index.rebuild(np.array(sorted(self.deleted & set(live)), np.int64))
        self.index.check()
        low = rng.randint(store.watermark, store.end)
        self.probe(10, low=rng.choice([store.watermark, low]), hi=rng.randint(low, store.end), room=rng.choice([1, 3, 50, 500]))
        self.probe(6)


COLUMNS = [("a",), ("x",), ("s",), ("flag",), ("ts",), ("a", "x"), ("s", "b"), ("x", "s", "b")]


@pytest.mark.parametrize("columns", COLUMNS, ids="-".join)
@pytest.mark.parametrize("n_keys", [2, 12, 400])
def test_random_steps_agree_with_a_dict_of_lists(columns: tuple[str, ...], n_keys: int) -> None:
    for seed in range(3):
        both = Both(seed, columns, n_keys, **TINY)
        for _ in range(60):
            both.step()
        both.forget(both.store.end)
        assert both.index.bytes() == both.baseline


@pytest.mark.parametrize("begin", [2**31 - 60, 2**32 - 60, 2**44, 3 * 2**14 - 30])
def test_positions_have_no_end(begin: int) -> None:
    both = Both(5, ("a",), 5, begin, **TINY)
    for _ in range(60):
        both.step()


@pytest.mark.slow
@pytest.mark.parametrize("seed", seeds(range(40), 10))
def test_random_steps_at_length(seed: int) -> None:
    rng = random.Random(seed)
    options = {
        "min_places": rng.choice([2, 4, 16]), "max_places": rng.choice([16, 64]), "seal_at": rng.choice([2, 3, 8, 122]),
        "sweep_rows": rng.choice([1, 16, 4096]),
    }  # fmt: skip
    both = Both(
        seed, rng.choice(COLUMNS), rng.choice([1, 3, 30, 3000]), rng.choice([0, 2**31 - 999]), rng.random() / 2, **options
    )
    for _ in range(250):
        both.step()


def test_rows_cross_pages_of_store_and_links() -> None:
    both = Both(1, ("a", "b"), 8, nulls=0.0)
    for _ in range(6):
        both.push(9000)
        both.probe(5)
        both.forget(max(both.store.watermark, both.store.end - 20000))
        both.probe(5)
    assert both.index.stats()["blocks"] > 0


def test_a_key_with_many_rows_is_given_in_parts() -> None:
    both = Both(2, ("flag",), 2, nulls=0.0)
    both.push(5000)
    assert both.probe(8, room=33) > 10_000
    stats = both.index.stats()
    assert stats["blocks"] >= 2 * (2000 // 122), "long chains are sealed"


@pytest.mark.parametrize("room", [1, 7, 33])
@pytest.mark.parametrize("n_keys", [2, 40])
def test_a_probe_goes_on_while_rows_are_built_and_deleted(n_keys: int, room: int) -> None:
    """A batch in flight sees the rows it was promised: building seals rows that a walk stands on, deleting takes them out."""
    both = Both(3, ("b",), n_keys, nulls=0.0, seal_at=8)
    both.push(200)
    rows = both.values(12)
    cells, _ = both.cells(rows)
    keys = both.index.folding.fold([cells[both.columns[0]]], [None])
    end = both.store.end
    expected = sorted((i, p) for i, row in enumerate(rows) for p in both.slow.probe(both.key(row), 20, end))
    probe = both.index.probe(keys, 20, end)
    out_row, out_position = np.empty(room, np.int32), np.empty(room, np.int64)
    found: list[tuple[int, int]] = []
    gone: set[int] = set()
    while n := probe.fill(out_row, out_position):
        part = list(zip(out_row[:n].tolist(), out_position[:n].tolist()))
        assert not gone & {position for _, position in part}, "a row is not given after it was deleted"
        found += part
        both.push(5 if len(found) < 300 else 0)
        doomed = both.rng.sample(range(end), 3 if len(gone) < 100 else 0)
        both.delete(doomed)
        gone.update(doomed)
        both.index.check()
    assert both.index.stats()["blocks"] > 0
    assert len(found) == len(set(found)) and set(found) <= set(expected)
    assert {pair for pair in expected if pair[1] not in gone} <= set(found)
    for row in range(len(rows)):
        positions = [position for i, position in found if i == row]
        assert positions == sorted(positions, reverse=True), "the rows of a key come newest first"


def test_rows_that_come_seldom_are_not_sealed_until_they_come_often() -> None:
    store = RowStore(SCHEMA)
    index = HashIndex(store, [SCHEMA.names.index("a")], seal_at=100)

    def push(keys: np.ndarray) -> None:
        cells = [np.zeros(len(keys), np.float64 if column.type is Type.FLOAT else np.int64) for column in SCHEMA.columns]
        cells[SCHEMA.names.index("a")] = keys
        store.room()
        page, at = store.append(cells, [None] * len(cells), 0, len(keys), 0, 0, store.end)
        index.build(page, at, at + len(keys))

    for start in range(0, 12_000, 500):
        push(np.where(np.arange(start, start + 500) % 80 == 0, 7, np.arange(start, start + 500) + 1000))
        store.forget(max(0, start - 4000))
        index.forget()
    assert index.stats()["blocks"] == 0, "of 150 rows some 60 are held at any time"
    push(np.full(300, 7))
    assert index.stats()["blocks"] >= 2
    index.check()


@pytest.mark.parametrize("room", [1, 5, 121, 122, 123])
def test_a_part_may_end_anywhere_in_a_block(room: int) -> None:
    both = Both(4, ("b",), 1, nulls=0.0)
    both.push(500)
    assert both.index.stats()["blocks"] == 4
    both.delete([7, 200, 201, 499])
    assert both.probe(3, room=room) == 3 * 496
    assert both.probe(3, low=100, hi=300, room=room) == 3 * 198


def test_a_segment_that_looks_full_is_not_counted() -> None:
    """Sweeping costs little while there is nothing to give back, and gives back when there is."""
    store = RowStore(Schema.parse({"a": "int"}, "t"))
    index = HashIndex(store, [0])
    store.room()
    page, at = store.append([np.arange(1400)], [None], 0, 1400, 0, 0, 0)
    index.build(page, at, 1400)
    table = index._table
    assert [segment.n_places for segment in table.segments()] == [4096]
    table.longest_step = 0
    table.sweep(0)
    assert table.longest_step == 0 and table.steps["shrunk"] == 0
    table.sweep(1300)
    assert table.longest_step == 4096 and [segment.n_places for segment in table.segments()] == [512]
    index._table.check()


def test_the_watermark_may_not_pass_a_probe_in_progress() -> None:
    both = Both(3, ("a",))
    both.push(50)
    cells, _ = both.cells(both.values(4))
    probe = both.index.probe(both.index.folding.fold([cells[0]], [None]), 0, 50)
    both.forget(1)
    with pytest.raises(AssertionError, match="passed a probe"):
        probe.fill(np.empty(50, np.int32), np.empty(50, np.int64))


def test_keys_that_share_a_hash_stay_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """The hash of several columns is never trusted: here it is one of two numbers."""

    def bad_hash(columns: np.ndarray, n: int, words: np.ndarray) -> None:
        words[:n] = columns[0] & 1

    monkeypatch.setattr("stems.keys.hash_columns", bad_hash)
    for seed in range(4):
        both = Both(seed, ("b", "s"), 8, **TINY)
        for _ in range(40):
            both.step()


def test_a_large_table_grows_and_shrinks_in_small_steps() -> None:
    """No step touches more than two segments' places, whatever the number of keys."""
    store = RowStore(Schema.parse({"a": "int"}, "t"))
    index = HashIndex(store, [0], max_places=256)
    keys = np.random.default_rng(4).permutation(60_000) * 7
    for at in range(0, len(keys), 1000):
        store.room()
        done = 0
        while done < 1000:
            count = min(1000 - done, store.room())
            page, first = store.append([keys[at : at + 1000]], [None], done, done + count, 0, 0, store.end)
            before = sum(index.stats()[name] for name in ("grown", "split"))
            index.build(page, first, first + count)
            assert sum(index.stats()[name] for name in ("grown", "split")) - before <= 60
            done += count
    grown = index.stats()
    assert grown["segments"] > 400 and grown["longest_step"] <= 2 * 256
    assert 2 * 60_000 <= grown["places"] <= 8 * 60_000
    for watermark in range(0, 59_900, 500):
        store.forget(watermark)
        index.forget()
    for _ in range(3000):
        index._unswept = SWEEP_ROWS
        index.forget()
    shrunk = index.stats()
    assert shrunk["merged"] > 100 and shrunk["longest_step"] <= 2 * 256
    assert shrunk["places"] < 4096 and shrunk["bytes"] < grown["bytes"] / 20
    index.check()


def test_keys_that_agree_in_their_first_bits_share_a_large_segment() -> None:
    """Keys made to collide: multiples of the inverse of the hash's factor, which hash to 0, 1, 2, ..."""
    inverse = pow(0x9E3779B97F4A7C15, -1, 2**64)

    def unfold(word: int) -> int:
        folded = word * inverse % 2**64
        folded ^= folded >> 32
        return folded - 2**64 if folded >> 63 else folded

    keys = np.array([unfold(i) for i in range(3000)], np.int64)
    assert {place_of(int(key), 0xFFFF, 48) for key in keys} == {0}
    store = RowStore(Schema.parse({"a": "int"}, "t"))
    index = HashIndex(store, [0], min_places=4, max_places=16)
    store.room()
    page, at = store.append([keys], [None], 0, len(keys), 0, 0, 0)
    index.build(page, at, len(keys))
    index.check()
    assert index.stats()["bytes"] < 2**20


def test_a_key_replaced_over_and_over_keeps_a_short_chain() -> None:
    """Delete the old row, build the new one: what an aggregate as a source does."""
    both = Both(6, ("b",), 1, nulls=0.0)
    for _ in range(300):
        both.push(1)
        if both.store.end > 1:
            both.delete([both.store.end - 2])
    assert both.probe(3) == 3
    assert len(both.index._chain(both.store.end - 1)) == 1
    assert int(both.index._links.record(both.store.end - 1)[0]) > 299, "one step leads past all the deleted rows"


def test_an_index_made_late_holds_the_rows_from_then_on() -> None:
    both = Both(7, ("a",), 3, nulls=0.0)
    both.push(100)
    late = HashIndex(both.store, both.columns)
    assert late.since == 100
    late.check()
    late.rebuild(np.array([3, 4], np.int64))
    late.check()
    assert late.since == 0 and late.stats()["rows"] == 100


def test_expiry_frees_pages_of_links_and_blocks() -> None:
    both = Both(8, ("flag",), 2, nulls=0.0, seal_at=8)
    both.push(40_000)
    full = both.index.bytes()
    both.forget(35_000)
    assert both.index.bytes() < full / 2
    both.index.check()
    both.forget(40_000)
    assert both.index.bytes() == both.baseline
