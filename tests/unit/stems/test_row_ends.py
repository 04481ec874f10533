"""The ends of rows in windows that count rows, against a dict of deques."""

from __future__ import annotations

import math
import random
from typing import Any

import numpy as np
import pytest

from eddy.base.compile import ensure
from lineage.dictionary import Dictionary
from lineage.elements import FOREVER
from lineage.kernels import kernel
from lineage.memory import load_int64
from lineage.schema import Schema
from stems import partition_table
from stems.row_ends import EndColumns, RowEnds
from stems.row_store import RowStore
from tests.reference.dictionaries import encode_list
from tests.reference.row_ends import SlowRowEnds


@kernel("void(int64[::1], int64[::1], int64, int64[::1])")
def read_ends(positions: np.ndarray, addresses: np.ndarray, bits: int, found: np.ndarray) -> None:
    """As the kernels of others read ends."""
    for i in range(len(positions)):
        page = addresses[(positions[i] >> bits) & (len(addresses) - 1)]
        found[i] = load_int64(page, positions[i] & ((1 << bits) - 1))


ensure()

SCHEMA = Schema.parse({"k": "int", "x": "float", "s": "string"}, "t")
#: One NaN has other bits than the other.
OTHER_NAN = float(np.array([0xFFF8000000000001], np.uint64).view(np.float64)[0])
POOLS: dict[str, list[Any]] = {
    "k": [0, 1, 2, -(2**63), 2**63 - 1, None],
    "x": [0.0, -0.0, 1.5, math.nan, OTHER_NAN, math.inf, None],
    "s": ["", "a", "b", "0", None],
}


class Both:
    """A store with columns of ends, and their twins."""

    def __init__(self, *windows: tuple[int, tuple[int, ...]]) -> None:
        self.store = RowStore(SCHEMA)
        self.texts = Dictionary()
        self.columns = EndColumns(self.store)
        self.rows: list[tuple[tuple[Any, ...], int]] = []
        self.clock = 0
        self.held: list[tuple[RowEnds, SlowRowEnds]] = []
        for n, partition in windows:
            self.hold(n, partition)

    def hold(self, n: int, partition: tuple[int, ...]) -> RowEnds:
        column, slow = self.columns.hold(n, partition), SlowRowEnds(n)
        for row, start in self.rows:
            slow.push([row[c] for c in partition], start)
        self.held.append((column, slow))
        return column

    def push(self, rows: list[tuple[Any, ...]], times: list[int], taken_at: int = -1) -> None:
        """Rows with their times, taken when the clock stood at `taken_at`."""
        cells = [
            np.array([0 if row[0] is None else row[0] for row in rows], np.int64),
            np.array([0.0 if row[1] is None else row[1] for row in rows], np.float64),
            encode_list(self.texts, ["" if row[2] is None else row[2] for row in rows]),
        ]
        nulls = [np.array([row[c] is None for row in rows], np.uint8) for c in range(3)]
        done = 0
        while done < len(rows):
            count = min(len(rows) - done, self.store.room())
            piece = np.array(times[done : done + count], np.int64)
            marked = [column if column.any() else None for column in nulls]
            page, at = self.store.append(cells, marked, done, done + count, piece, taken_at, len(self.rows) + done)
            self.columns.build(page, at, at + count)
            done += count
        for row, time in zip(rows, times, strict=True):
            self.rows.append((row, max(time, taken_at)))
            for column, slow in self.held:
                slow.push([row[c] for c in column.partition], max(time, taken_at))
        self.clock = max([self.clock, taken_at, *times])

    def push_values(self, *values: int) -> None:
        """Rows with these numbers for k, each a microsecond after the one before."""
        self.push([(value, 0.0, "") for value in values], [self.clock + 1 + i for i in range(len(values))])

    def forget(self, watermark: int) -> None:
        self.columns.forget(watermark)
        self.store.forget(watermark)

    def compare(self, taken: int | None = None) -> None:
        """Every end that can be asked for, as of some end of the store."""
        self.columns.check()
        taken = self.store.end if taken is None else taken
        for column, slow in self.held:
            first = max(column.since, self.store.watermark)
            positions = np.arange(first, taken)
            expected = [slow.end(p, taken) for p in range(first, taken)]
            assert column.ends_at(positions, taken).tolist() == [FOREVER if end == math.inf else end for end in expected]
            first_alive = slow.first_alive(first, taken)
            if not column.partition:
                assert column.first_alive(taken) == first_alive
            assert column.first_alive(taken) <= first_alive


def random_rows(rng: random.Random, n: int) -> list[tuple[Any, ...]]:
    return [tuple(rng.choice(pool) for pool in POOLS.values()) for _ in range(n)]


WINDOWS = [(1, ()), (3, ()), (40, ()), (1, (0,)), (2, (1,)), (2, (2,)), (3, (0, 1, 2)), (7, (2,)), (2**30, (0,)), (2**30, ())]


@pytest.mark.parametrize("seed", range(12))
def test_ends_are_those_of_a_dict_of_deques(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches of any size, lagging rows, NULL, NaN, signed zeros and texts as keys, rows forgotten, columns made late."""
    rng = random.Random(seed)
    sizes = {"row_store.PAGE_ROWS": [5, 48, 1 << 14], "row_ends.ROW_BITS": [2, 4, 12], "partition_table._MIN_PLACES": [2, 16]}
    for name, values in sizes.items():
        monkeypatch.setattr(f"stems.{name}", rng.choice(values))
    both = Both(*rng.sample(WINDOWS, 5))
    oldest = [0] * len(both.held)
    logged = 0
    for _ in range(40):
        step = rng.random()
        if step < 0.75:
            before, n = both.clock, rng.choice([1, 1, 2, 5, 30, 100])
            low = both.store.time_at(both.store.end - 1) if both.store.watermark < both.store.end else both.clock
            times = sorted(rng.randint(low, both.clock + rng.choice([0, 3])) for _ in range(n))
            both.push(random_rows(rng, n), times, before)
        elif step < 0.9:
            both.forget(rng.randint(both.store.watermark, both.store.end))
            logged = max(logged, both.store.watermark)
        else:
            first = rng.randint(both.store.watermark, max(logged, both.store.watermark))
            both.columns.recall(both.hold(rng.choice([1, 2, 4]), rng.choice([(), (0,), (1, 2)])), first)
            oldest.append(0)
        both.compare()
        logged = rng.randint(logged, both.store.end)
        for k, (column, slow) in enumerate(both.held):
            found = column.move_to(logged)
            assert oldest[k] <= found == max(found, slow.first_alive(max(column.since, both.store.watermark), logged))
            oldest[k] = found
        both.compare(rng.randint(logged, both.store.end))


def test_a_row_ends_at_the_start_of_the_row_that_displaces_it() -> None:
    both = Both((2, ()), (1, (0,)))
    plain, by_key = both.held[0][0], both.held[1][0]
    both.push([(1, 0.0, ""), (2, 0.0, ""), (1, 0.0, "")], [10, 20, 25], taken_at=22)
    assert plain.ends_at(np.arange(3), 3).tolist() == [25, FOREVER, FOREVER], "two newer rows end a row, of any key"
    assert by_key.ends_at(np.arange(3), 3).tolist() == [25, FOREVER, FOREVER]
    both.push([(1, 0.0, "")], [26], taken_at=90)
    assert plain.ends_at(np.arange(4), 4).tolist() == [25, 90, FOREVER, FOREVER], "a lagging row displaces when it is taken"
    assert by_key.ends_at(np.arange(4), 4).tolist() == [25, FOREVER, 90, FOREVER]
    assert plain.ends_at(np.arange(3), 3).tolist() == [25, FOREVER, FOREVER], "before it came it displaced nobody"
    assert by_key.ends_at(np.arange(3), 3).tolist() == [25, FOREVER, FOREVER]


def test_null_nan_and_zero_are_keys() -> None:
    both = Both((1, (1,)), (1, (2,)), (1, (0, 1)))
    rows = [
        (1, None, None),
        (1, 0.0, ""),
        (1, math.nan, None),
        (1, -0.0, ""),
        (None, None, "a"),
        (1, OTHER_NAN, "b"),
        (1, None, ""),
    ]
    both.push(rows, list(range(7)))
    floats, texts, two = (column.ends_at(np.arange(7), 7).tolist() for column, _ in both.held)
    assert floats == [4, 3, 5, FOREVER, 6, FOREVER, FOREVER]
    assert texts == [2, 3, FOREVER, 6, FOREVER, FOREVER, FOREVER], "NULL is another key than the empty text"
    assert two == [6, 3, 5, FOREVER, FOREVER, FOREVER, FOREVER], "NULL is a key beside another column too"


def test_many_key_columns_tell_their_nulls_apart() -> None:
    store = RowStore(Schema.parse({f"c{i}": "int" for i in range(70)}, "t"))
    column = EndColumns(store).hold(1, tuple(range(70)))
    store.room()
    nulls = [np.array([0, 0, int(i == 69), int(i == 5), int(i == 69)], np.uint8) for i in range(70)]
    page, at = store.append([np.zeros(5, np.int64)] * 70, nulls, 0, 5, np.arange(5), 0, 0)
    column.build(page, at, 5)
    column.check()
    assert column.ends_at(np.arange(5), 5).tolist() == [1, FOREVER, 4, FOREVER, FOREVER]


def test_a_kernel_reads_ends_by_address() -> None:
    both = Both((3, ()), (2, (0,)))
    both.push_values(*(i % 7 for i in range(20_000)))
    both.forget(5000)
    positions = np.random.default_rng(0).integers(5000, 20_000, 1000)
    for column, _ in both.held:
        bits, addresses = column.page_addresses()
        found = np.empty(1000, np.int64)
        read_ends(positions, addresses, bits, found)
        assert found.tolist() == column.ends_at(positions, both.store.end).tolist()
        assert (found < FOREVER).sum() > 900


def test_a_column_made_late_knows_the_rows_that_come_next_or_all_if_recalled() -> None:
    both = Both()
    both.push_values(1, 2, 1)
    late = both.hold(1, (0,))
    both.push_values(2, 2)
    assert late.since == 3 and late.ends_at(np.array([3, 4]), 5).tolist() == [5, FOREVER]
    both.compare()
    both.columns.recall(late, 0)
    assert late.since == 0 and late.ends_at(np.arange(5), 5).tolist() == [3, 4, FOREVER, 5, FOREVER]
    both.push_values(1)
    both.compare()


def test_columns_are_shared_and_go_with_their_last_user() -> None:
    both = Both()
    first, second = both.columns.hold(3, (0,)), both.columns.hold(3, (0,))
    assert first is second and both.columns.hold(3, ()) is not first and both.columns.hold(4, (0,)) is not first
    assert both.columns.find(3, (0,)) is first and both.columns.find(3, (1,)) is None
    both.columns.release(first)
    assert both.columns.find(3, (0,)) is first
    both.columns.release(first)
    assert both.columns.find(3, (0,)) is None
    both.push_values(1, 2)
    both.columns.check()


def test_a_compacted_dictionary_leaves_the_keys_what_they_are() -> None:
    both = Both((2, (2,)), (2, (0,)))
    both.push([(0, 0.0, text) for text in ("gone", "gone", "a", "b", "a")], [1, 2, 3, 4, 5])
    both.forget(2)
    codes = both.texts.compact(both.store.used_codes(2))
    both.store.recode(2, codes)
    both.columns.recode(2)
    both.compare()
    both.push([(0, 0.0, text) for text in ("a", "b", "gone")], [6, 7, 8])
    both.compare()
    assert both.held[0][0].ends_at(np.array([2]), 6).tolist() == [6]


def test_memory_grows_with_the_rows_and_returns_with_them() -> None:
    both = Both((2**30, (0,)), (1, ()), (2, (0,)))
    baseline = [column.bytes() for column, _ in both.held]
    both.push_values(*(i % 3000 for i in range(30_000)))
    full = [column.bytes() for column, _ in both.held]
    assert all(column.row_bytes() * 33_000 >= now for (column, _), now in zip(both.held, full, strict=True))
    assert all(32 * 30_000 >= after > before for before, after in zip(baseline, full, strict=True))
    assert 8 * 30_000 <= full[1] <= 9 * 30_000, "the plain column is one word a row"
    both.forget(29_990)
    few = [column.bytes() for column, _ in both.held]
    assert all(now < after / 5 for now, after in zip(few, full, strict=True))
    assert both.columns.bytes() == sum(few)
    both.compare()
    both.forget(both.store.end)
    assert [column.bytes() for column, _ in both.held] == baseline
    both.push_values(1, 1, 1)
    both.compare()


def test_keys_that_collide_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    def one_hash(keys: np.ndarray, n: int, hashes: np.ndarray) -> None:
        hashes[:n] = 5

    monkeypatch.setattr(partition_table, "hash_columns", one_hash)
    both = Both((2, (0,)))
    rng = random.Random(7)
    for _ in range(20):
        both.push_values(*(rng.randrange(30) for _ in range(rng.randrange(1, 20))))
        both.forget(rng.randint(both.store.watermark, both.store.end))
        both.compare()
