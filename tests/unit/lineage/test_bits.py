"""The bit kernels against numpy on unpacked bits."""

from __future__ import annotations

import numpy as np
import pytest

from eddy.base.compile import ensure
from lineage.batch import Lineage
from lineage.bits import (
    BYTE_BITS,
    SPARE,
    clear_bit,
    count_rows,
    has_bit,
    list_rows,
    set_bit,
    slots_of,
    transpose,
    words,
)

ensure()

DENSITIES = [0.0, 0.001, 0.03, 0.5, 0.97, 1.0]


def random_bits(rng: np.random.Generator, n_slots: int, n_rows: int, density: float) -> np.ndarray:
    """Booleans `[slots, rows]`."""
    return rng.random((n_slots, n_rows)) < density


def packed(bits: np.ndarray) -> np.ndarray:
    """Booleans `[a, b]` as words `[a, words(b)]`."""
    padded = np.zeros((len(bits), words(bits.shape[1]) * 64), np.uint8)
    padded[:, : bits.shape[1]] = bits
    return np.packbits(padded, axis=1, bitorder="little").view(np.uint64)


def test_words_is_the_least_number_of_words_that_hold_the_bits() -> None:
    assert [words(n) for n in (0, 1, 63, 64, 65, 128, 129)] == [0, 1, 1, 1, 2, 2, 3]


@pytest.mark.parametrize("slot", [0, 1, 31, 32, 63, 64, 127])
def test_one_bit_is_set_read_and_cleared_alone(slot: int) -> None:
    mask = np.zeros(2, np.uint64)
    set_bit(mask, slot)
    assert slots_of(mask).tolist() == [slot]
    assert [has_bit(mask, other) for other in range(128)] == [other == slot for other in range(128)]
    mask[:] = ~np.uint64(0)
    clear_bit(mask, slot)
    assert slots_of(mask).tolist() == [other for other in range(128) if other != slot]


@pytest.mark.parametrize("density", DENSITIES)
@pytest.mark.parametrize(("n_rows", "n_words"), [(1, 1), (63, 1), (64, 2), (65, 1), (200, 3), (300, 2)])
def test_transpose_turns_rows_into_columns_bit_by_bit(density: float, n_rows: int, n_words: int) -> None:
    rng = np.random.default_rng(n_rows)
    bits = random_bits(rng, n_words * 64, n_rows, density)
    lin = np.vstack([packed(np.ascontiguousarray(bits.T)), np.full((5, n_words), ~np.uint64(0))])
    rows_of = rng.integers(0, 2**63, (n_words * 64, words(n_rows)), np.uint64)
    transpose(lin, n_rows, n_words, rows_of, np.zeros(64, np.uint64))
    assert (rows_of == packed(bits)).all(), "rows behind the last are 0 although the buffer was full of rubbish"


def test_lineage_turns_its_bits_round_once_and_reuses_its_buffers() -> None:
    rng = np.random.default_rng(1)
    lineage = Lineage()
    for n_rows, n_words in [(70, 2), (300, 1), (3, 4), (70, 2)]:
        bits = random_bits(rng, n_words * 64, n_rows, 0.3)
        lineage.begin(n_rows, n_words, by_query=False)
        assert lineage.lin.shape[1] == n_words and len(lineage.lin) >= n_rows
        lineage.lin[:n_rows] = packed(np.ascontiguousarray(bits.T))
        for _ in range(2):
            assert (lineage.to_query_major() == packed(bits)).all() and lineage.by_query
            lineage.lin[:] = 0


NO_FIRST = np.zeros(0, np.int32)


@pytest.mark.parametrize("from_first", [True, False])
@pytest.mark.parametrize("density", DENSITIES)
@pytest.mark.parametrize("n_rows", [1, 64, 65, 257])
def test_list_rows_and_count_rows_give_each_query_its_rows(density: float, n_rows: int, from_first: bool) -> None:
    rng = np.random.default_rng(n_rows)
    n_slots, n_more = 128, 40
    bits = random_bits(rng, n_slots, n_rows, density)
    rows_of = packed(bits)
    legs = np.packbits(rng.random(n_slots) < 0.7, bitorder="little").view(np.uint64)
    query_of = rng.permutation(n_slots) + 1000
    more_slot, more_query = rng.integers(0, n_slots, n_more + 3).astype(np.int32), np.arange(n_more + 3) + 5000
    edges = [0, 1, 63, 64, n_rows - 1, n_rows]
    first_of, more_first = (np.minimum(rng.choice(edges, n), n_rows).astype(np.int32) for n in (n_slots, n_more + 3))
    asked = [(int(query_of[slot]), slot, int(first_of[slot])) for slot in slots_of(legs).tolist()]
    asked += [
        (int(query), slot, int(first))
        for query, slot, first in list(zip(more_query, more_slot.tolist(), more_first))[:n_more]
        if has_bit(legs, slot)
    ]
    expected = {}
    for query, slot, first in asked:
        rows = np.flatnonzero(bits[slot])
        if from_first:
            rows = rows[rows >= first]
        if len(rows):
            expected[query] = rows.tolist()

    most = count_rows(rows_of, words(n_rows), legs, more_slot, n_more)
    total = sum(map(len, expected.values()))
    every = sum(int(bits[slot].sum()) for slot in [*slots_of(legs).tolist(), *more_slot[:n_more].tolist()])
    assert total <= most == every
    rubbish = 2**31 - 1
    rows = np.full(most + SPARE + 4, rubbish, np.int32)
    offsets, listed = np.zeros(n_slots + n_more + 1, np.int64), np.zeros(n_slots + n_more, np.int64)
    firsts = (first_of, more_first) if from_first else (NO_FIRST, NO_FIRST)
    outputs = (query_of, firsts[0], more_slot, more_query, firsts[1], n_more, NO_FIRST, NO_FIRST)
    scratch = np.zeros(words(n_rows), np.uint64)
    n = list_rows(rows_of, words(n_rows), legs, outputs, listed, offsets, rows, BYTE_BITS, scratch)
    found = {int(listed[j]): rows[offsets[j] : offsets[j + 1]].tolist() for j in range(n)}
    assert found == expected and n == len(expected), "queries without rows are not listed"
    assert offsets[0] == 0 and offsets[n] == total
    assert (rows[-4:] == rubbish).all(), "nothing is written behind the spare room"


def test_list_rows_reads_only_the_words_it_is_told() -> None:
    rows_of = np.full((64, 3), ~np.uint64(0))
    rows = np.zeros(64 + SPARE, np.int32)
    offsets, listed = np.zeros(2, np.int64), np.zeros(1, np.int64)
    legs, first_of = np.array([1 << 7], np.uint64), np.full(64, 60, np.int32)
    outputs = (np.arange(64), first_of, NO_FIRST, np.zeros(0, np.int64), NO_FIRST, 0, NO_FIRST, NO_FIRST)
    assert list_rows(rows_of, 1, legs, outputs, listed, offsets, rows, BYTE_BITS, np.zeros(1, np.uint64)) == 1
    assert listed.tolist() == [7] and rows[: offsets[1]].tolist() == [60, 61, 62, 63]


@pytest.mark.parametrize("density", DENSITIES)
@pytest.mark.parametrize("n_rows", [1, 64, 65, 257])
def test_a_slot_that_reads_a_segment_lists_its_rows_only_and_by_their_numbers_there(density: float, n_rows: int) -> None:
    rng = np.random.default_rng(n_rows)
    n_slots = 128
    bits = random_bits(rng, n_slots, n_rows, density)
    edges = [0, 1, 5, 63, 64, 65, 130, n_rows - 1, n_rows]
    first_of, stop_of = (np.minimum(rng.choice(edges, n_slots), n_rows).astype(np.int32) for _ in range(2))
    shift_of = rng.integers(-n_rows, 1000, n_slots).astype(np.int32)
    more_slot, more_first = np.arange(0, n_slots, 3, dtype=np.int32), np.full(43, n_rows // 2, np.int32)
    more_query = np.arange(43) + 5000
    expected = {}
    for query, slot, first in [
        *((slot, slot, int(first_of[slot])) for slot in range(n_slots)),
        *((int(query), int(slot), n_rows // 2) for query, slot in zip(more_query, more_slot)),
    ]:
        rows = np.flatnonzero(bits[slot])
        rows = rows[(rows >= first) & (rows < stop_of[slot])] + shift_of[slot]
        if len(rows):
            expected[query] = rows.tolist()
    found_rows = np.zeros(n_rows * (n_slots + 43) + SPARE, np.int32)
    offsets, listed = np.zeros(n_slots + 44, np.int64), np.zeros(n_slots + 43, np.int64)
    outputs = (np.arange(n_slots), first_of, more_slot, more_query, more_first, 43, stop_of, shift_of)
    legs, scratch = np.full(2, ~np.uint64(0)), np.zeros(words(n_rows), np.uint64)
    n = list_rows(packed(bits), words(n_rows), legs, outputs, listed, offsets, found_rows, BYTE_BITS, scratch)
    assert {int(listed[j]): found_rows[offsets[j] : offsets[j + 1]].tolist() for j in range(n)} == expected
