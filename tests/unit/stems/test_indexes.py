"""The indexes of one stream together: shared, built in one step, and made late."""

from __future__ import annotations

import numpy as np

from eddy.base.compile import ensure
from lineage.dictionary import Dictionary
from lineage.schema import Schema, Type
from stems.hash_index import HashIndex
from stems.indexes import Indexes
from stems.key_ranges import shifted_ranges
from stems.keys import KeyFolding
from stems.row_store import PAGE_ROWS, RowStore
from tests.reference.dictionaries import encode_list

ensure()

SCHEMA = Schema.parse({"sym": "string", "price": "float", "n": "int"}, "t")


class Stream:
    """A store with its indexes and a dictionary."""

    def __init__(self) -> None:
        self.store = RowStore(SCHEMA)
        self.indexes = Indexes(self.store)
        self.texts = Dictionary()

    def push(self, texts: list[str]) -> None:
        n = len(texts)
        first = self.store.end
        cells = [encode_list(self.texts, texts), np.arange(first, first + n) / 2, np.arange(first, first + n)]
        done = 0
        while done < n:
            count = min(n - done, self.store.room())
            page, at = self.store.append(cells, [None] * 3, done, done + count, 0, 0, first + done)
            self.indexes.build(page, at, at + count)
            done += count
        self.indexes.check()

    def find(self, index: HashIndex, text: str) -> list[int]:
        """As a row of another stream finds it, with another dictionary."""
        other = Dictionary()
        folding = KeyFolding.of_probing([(Type.STRING, other)], [(Type.STRING, self.texts)])
        keys = folding.fold([encode_list(other, ["unknown", text])], [None])
        rows, positions = np.empty(64, np.int32), np.empty(64, np.int64)
        n = index.probe(keys, self.store.watermark, self.store.end).fill(rows, positions)
        assert (rows[:n] == 1).all()
        return positions[:n].tolist()

    def forget(self, watermark: int) -> None:
        self.store.forget(watermark)
        self.indexes.forget()
        self.indexes.check()


def test_an_index_is_shared_and_goes_with_its_last_user() -> None:
    stream = Stream()
    first, second = stream.indexes.hash_on([0]), stream.indexes.hash_on((0,))
    assert first is second and stream.indexes.hash_on([0, 2]) is not first
    assert stream.indexes.sorted_on(1) is stream.indexes.sorted_on(1)
    stream.push(["a", "b", "a"])
    assert stream.find(first, "a") == [2, 0]
    stream.indexes.release(first)
    assert stream.find(stream.indexes.hash_on([0]), "b") == [1]
    stream.indexes.release(first)
    stream.indexes.release(first)
    assert set(stream.indexes.stats()) == {"sym, n", "range of price"}
    stream.indexes.check()


def test_deleted_rows_stay_out_of_an_index_made_later() -> None:
    stream = Stream()
    early = stream.indexes.hash_on([0])
    stream.push(["a", "a", "b", "a"])
    stream.indexes.delete(np.array([1]))
    assert stream.find(early, "a") == [3, 0]
    late = stream.indexes.sorted_on(2)
    ranges = shifted_ranges(np.array([0]), None, -10, 10)
    rows, positions = np.empty(8, np.int32), np.empty(8, np.int64)
    assert late.probe(ranges, 0, 4).fill(rows, positions) == 0, "rows from before the index are not in it"
    stream.indexes.recall(late)
    n = late.probe(ranges, 0, 4).fill(rows, positions)
    assert positions[:n].tolist() == [0, 2, 3]
    stream.indexes.check()


def test_a_compacted_dictionary_gives_the_rows_their_new_codes() -> None:
    stream = Stream()
    index = stream.indexes.hash_on([0, 2])
    single = stream.indexes.hash_on([0])
    stream.push(["gone", "gone", "a", "b", "a"])
    stream.indexes.delete(np.array([4]))
    stream.forget(2)
    codes = stream.texts.compact(stream.store.used_codes(0))
    stream.store.recode(0, codes)
    stream.indexes.recode(0)
    stream.indexes.check()
    assert stream.find(single, "a") == [2] and stream.find(single, "gone") == []
    stream.push(["a"])
    assert stream.find(single, "a") == [5, 2] and index.stats()["rows"] == 4


def test_memory_returns_when_everything_is_forgotten() -> None:
    stream = Stream()
    stream.indexes.hash_on([0])
    stream.indexes.hash_on([2, 1])
    stream.indexes.sorted_on(1)
    baseline = stream.indexes.bytes()
    stream.push([f"t{i % 50}" for i in range(PAGE_ROWS + 100)])
    stream.indexes.delete(np.arange(0, 1000, 3))
    full = stream.indexes.bytes()
    stream.forget(PAGE_ROWS)
    assert stream.indexes.tombstones.bytes() == 0 and baseline < stream.indexes.bytes() < full
    stream.forget(stream.store.end)
    assert stream.indexes.bytes() == baseline
    stream.push(["t1"])
    assert stream.store.end == PAGE_ROWS + 101
