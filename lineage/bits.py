"""Bit kernels: 64-bit words of bits, in row-major and query-major matrices.

    row-major     lin[row, word]    bit `slot & 63` of word `slot >> 6`: query `slot` still wants `row`
    query-major   rows[slot, word]  bit `row & 63` of word `row >> 6`: the same, the other way round

`transpose` turns the first into the second. `list_rows` turns query-major bits into lists of row numbers, the true
ceiling of a busy engine: it looks eight bits up at a time and stores all eight lanes, of which the next store
overwrites those that were not set, so the cost hardly depends on how many are set.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from llvmlite import ir

from lineage.kernels import Number, inline, intrinsic, kernel, step

U64 = np.uint64
ONE = np.uint64(1)
FULL = np.uint64(0xFFFFFFFFFFFFFFFF)

#: Spare room that `list_rows` needs behind the last row number (it stores eight at a time).
SPARE = 8

#: Which queries read which slots (`eddy/streams/outputs.py`), as the listing kernels take it: `query_of[slot]`,
#: `first_of[slot]`, further ones as `more_slot`, `more_query`, `more_first`, and their number; then `stop_of[slot]` and
#: `shift_of[slot]`, where a slot reads a segment of the batch only: the first row behind it, and what is added to its row
#: numbers. Empty `first_of`: from the first row on; empty `stop_of`: to the last one.
OutputArrays = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray, int, np.ndarray, np.ndarray]
OUTPUTS = "Tuple((int64[::1], int32[::1], int32[::1], int64[::1], int32[::1], int64, int32[::1], int32[::1]))"


def words(n: int) -> int:
    """How many 64-bit words hold n bits."""
    return (n + 63) >> 6


def set_bit(mask: np.ndarray, slot: int) -> None:
    mask[slot >> 6] |= U64(1 << (slot & 63))


def clear_bit(mask: np.ndarray, slot: int) -> None:
    mask[slot >> 6] &= ~U64(1 << (slot & 63))


@kernel("void(uint64[:,::1], int64, int64)")
def set_bit_of(masks: np.ndarray, k: int, slot: int) -> None:
    """`set_bit` of one of several masks."""
    masks[k, slot >> 6] |= ONE << U64(slot & 63)


@kernel("void(uint64[:,::1], int64, int64)")
def clear_bit_of(masks: np.ndarray, k: int, slot: int) -> None:
    """`clear_bit` of one of several masks."""
    masks[k, slot >> 6] &= ~(ONE << U64(slot & 63))


def has_bit(mask: np.ndarray, slot: int) -> bool:
    return bool(int(mask[slot >> 6]) >> (slot & 63) & 1)


def mask_of(slots: np.ndarray, n_words: int) -> np.ndarray:
    """The mask with the bits of these slots."""
    mask = np.zeros(n_words, np.uint64)
    np.bitwise_or.at(mask, slots >> 6, ONE << (slots & 63).astype(np.uint64))
    return mask


def slots_of(mask: np.ndarray) -> np.ndarray:
    """The set bits of a mask, ascending, as int32."""
    return np.flatnonzero(np.unpackbits(mask.view(np.uint8), bitorder="little")).astype(np.int32)


def _byte_table() -> np.ndarray:
    """For each byte, the positions of its set bits; the rest of its eight entries is 0."""
    table = np.zeros((256, 8), np.uint8)
    for byte in range(256):
        at = [bit for bit in range(8) if byte >> bit & 1]
        table[byte, : len(at)] = at
    return table.reshape(-1)


BYTE_BITS = _byte_table()


@intrinsic
def trailing_zeros(typing: Any, x: Any) -> Any:
    """Number of zero bits below the lowest set one; undefined for 0."""
    return step(numba.uint64(numba.uint64), lambda builder, args: builder.cttz(args[0], ir.Constant(ir.IntType(1), 1)))


@intrinsic
def leading_zeros(typing: Any, x: Any) -> Any:
    """Number of zero bits above the highest set one; undefined for 0."""
    return step(numba.uint64(numba.uint64), lambda builder, args: builder.ctlz(args[0], ir.Constant(ir.IntType(1), 1)))


@intrinsic
def count_ones(typing: Any, x: Any) -> Any:
    return step(numba.uint64(numba.uint64), lambda builder, args: builder.ctpop(args[0]))


@intrinsic
def store_word(typing: Any, rows: Any, at: Any, base: Any, table: Any, word: Any) -> Any:
    """Write `base + position` of every set bit of a word to `rows[at:]`; returns the new `at`. Overwrites 8 beyond it."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        rows_, at_, base_, table_, word_ = args
        i32, i64 = ir.IntType(32), ir.IntType(64)
        lanes, packed = ir.VectorType(i32, 8), ir.VectorType(ir.IntType(8), 8)
        target = context.make_array(signature.args[0])(context, builder, rows_).data
        source = context.make_array(signature.args[3])(context, builder, table_).data
        undefined = ir.Constant(lanes, ir.Undefined)
        first = builder.insert_element(undefined, builder.trunc(base_, i32), ir.Constant(i32, 0))
        offset = builder.shuffle_vector(first, undefined, ir.Constant(lanes, [ir.Constant(i32, 0)] * 8))
        eight = ir.Constant(lanes, [ir.Constant(i32, 8)] * 8)
        for k in range(8):
            byte = builder.and_(builder.lshr(word_, ir.Constant(i64, 8 * k)), ir.Constant(i64, 255))
            entry = builder.bitcast(builder.gep(source, [builder.shl(byte, ir.Constant(i64, 3))]), packed.as_pointer())
            found = builder.load(entry)
            found.align = 1
            stored = builder.store(
                builder.add(builder.zext(found, lanes), offset), builder.bitcast(builder.gep(target, [at_]), lanes.as_pointer())
            )
            stored.align = 4
            at_ = builder.add(at_, builder.ctpop(byte))
            offset = builder.add(offset, eight)
        return at_

    return numba.int64(rows, numba.int64, numba.int64, table, numba.uint64), generate


@inline
def emit_rows(
    bits: np.ndarray, n_words: Number, found: Number, base: Number, rows: np.ndarray, at: Number, table: np.ndarray
) -> Number:
    """Append the set bits of `bits`, of which there are `found` and the first stands for row `base`, to `rows[at:]`.

    Returns the new `at`.
    """
    if found >= 4 * n_words:
        for w in range(n_words):
            at = store_word(rows, at, base + np.int64(w << 6), table, bits[w])
    elif 4 * found < n_words:
        for w in range(n_words):
            word = bits[w]
            while word:
                rows[U64(at)] = base + np.int64(w << 6) + np.int64(trailing_zeros(word))
                word &= word - ONE
                at += 1
    else:
        # few bits a word: store four positions whether they are set or not, and move on by those that are; whether a word is
        # empty no predictor can know
        for w in range(n_words):
            word = bits[w]
            first = base + np.int64(w << 6)
            stop = at + np.int64(count_ones(word))
            k = U64(at)
            while True:
                for _ in range(4):
                    rows[k] = first + np.int64(trailing_zeros(word))
                    word &= word - ONE
                    k += ONE
                if k >= U64(stop):
                    break
            at = stop
    return at


@inline
def cut_rows(bits: np.ndarray, n_words: Number, first: Number, stop: Number, found: Number) -> Number:
    """Clear the bits outside first..stop; returns how many are left of `found`."""
    below = min(n_words, first >> 6)
    for w in range(below):
        found -= np.int64(count_ones(bits[w]))
        bits[w] = 0
    if below < n_words:
        kept = bits[below] & (FULL << U64(first & 63))
        found -= np.int64(count_ones(bits[below] ^ kept))
        bits[below] = kept
    above = stop >> 6
    if above < n_words:
        kept = bits[above] & ((ONE << U64(stop & 63)) - ONE)
        found -= np.int64(count_ones(bits[above] ^ kept))
        bits[above] = kept
        for w in range(above + 1, n_words):
            found -= np.int64(count_ones(bits[w]))
            bits[w] = 0
    return found


@inline
def next_output(
    legs: Number, outputs: Number, n_more: Number, word: Number, left: Number, more: Number
) -> Number:  # fmt: skip
    """The next query on a slot of the mask `legs`: (slot, query, first row that counts) and where the walk is.

    At its end the slot is -1. The walk starts with (0, legs[0], 0) and goes over the slots' first queries, then over
    the `more_*`: there `more` > 0.
    """
    query_of, first_of, more_slot, more_query, more_first, _, _, _ = outputs
    while left == 0 and word + 1 < len(legs):
        word += 1
        left = legs[word]
    if left != 0:
        slot = word * 64 + np.int64(trailing_zeros(left))
        first = np.int64(first_of[slot]) if len(first_of) else np.int64(0)
        return slot, query_of[slot], first, word, left & (left - ONE), more
    while more < n_more:
        slot = np.int64(more_slot[more])
        more += 1
        if (legs[slot >> 6] >> U64(slot & 63)) & ONE:
            first = np.int64(more_first[more - 1]) if len(first_of) else np.int64(0)
            return slot, more_query[more - 1], first, word, left, more
    return np.int64(-1), np.int64(0), np.int64(0), word, left, more


@kernel(f"int64(uint64[:,::1], int64, uint64[::1], {OUTPUTS}, int64[::1], int64[::1], int32[::1], uint8[::1], uint64[::1])")
def list_rows(
    rows_of: np.ndarray, n_words: int, legs: np.ndarray, outputs: OutputArrays, listed: np.ndarray, offsets: np.ndarray,
    rows: np.ndarray, table: np.ndarray, bits: np.ndarray,
) -> int:  # fmt: skip
    """Row numbers of the queries on the slots of the mask `legs` (`eddy/streams/outputs.py`), of those that have any.

    `query_of[slot]` reads a slot from row `first_of[slot]` on (all rows when that is empty), then the `more_*`, up to row
    `stop_of[slot]` and numbered with `shift_of[slot]` added, unless these are empty. Fills `listed` with the queries and
    `offsets[j]:offsets[j+1]` with their ranges in `rows`, which must hold all and `SPARE` more; returns how many are listed.
    `bits` is scratch of `n_words`.
    """
    at = np.int64(0)
    n = 0
    word, left, more = 0, legs[0], 0
    _, _, _, _, _, n_more, stop_of, shift_of = outputs
    while True:
        slot, query, first, word, left, more = next_output(legs, outputs, n_more, word, left, more)
        if slot < 0:
            break
        stop: Number = np.int64(n_words << 6)
        shift = np.int64(0)
        if len(stop_of):
            stop, shift = np.int64(stop_of[slot]), np.int64(shift_of[slot])
            if first >= stop:
                continue
        word_first = first >> 6
        n_used = ((stop + 63) >> 6) - word_first
        found = np.int64(0)
        for w in range(n_used):
            bits[w] = rows_of[slot, word_first + w]
            found += np.int64(count_ones(bits[w]))
        found = cut_rows(bits, n_used, first & 63, stop - (word_first << 6), found)
        if found:
            listed[n] = query
            offsets[n] = at
            n += 1
            at = emit_rows(bits, n_used, found, (word_first << 6) + shift, rows, at, table)
    offsets[n] = at
    return n


@kernel("int64(uint64[:,::1], int64, uint64[::1], int32[::1], int64)")
def count_rows(rows_of: np.ndarray, n_words: int, legs: np.ndarray, more_slot: np.ndarray, n_more: int) -> int:
    """How many rows `list_rows` can list at most, by popcount."""
    total: Number = np.int64(0)
    for word in range(len(legs)):
        left = legs[word]
        while left:
            slot = word * 64 + np.int64(trailing_zeros(left))
            left &= left - ONE
            for w in range(n_words):
                total += np.int64(count_ones(rows_of[slot, w]))
    for k in range(n_more):
        for w in range(n_words):
            total += np.int64(count_ones(rows_of[more_slot[k], w]))
    return int(total)


@kernel("void(uint64[:,::1], int64, int64, uint64[:,::1], uint64[::1])")
def transpose(lin: np.ndarray, n_rows: int, n_words: int, rows_of: np.ndarray, block: np.ndarray) -> None:
    """Row-major `[rows, words]` to query-major `[slots, rows/64]`, 64 x 64 bits at a time; missing rows read as 0.

    `block` is scratch of 64 words.
    """
    for v in range((n_rows + 63) >> 6):
        for w in range(n_words):
            for k in range(64):
                block[k] = lin[v * 64 + k, w] if v * 64 + k < n_rows else U64(0)
            j = 32
            mask = U64(0x00000000FFFFFFFF)
            while j:
                shift = U64(j)
                k = 0
                while k < 64:
                    a = block[k]
                    b = block[k + j]
                    t = ((a >> shift) ^ b) & mask
                    block[k + j] = b ^ t
                    block[k] = a ^ (t << shift)
                    k = (k + j + 1) & ~j
                j >>= 1
                mask ^= mask << U64(j)
            for k in range(64):
                rows_of[w * 64 + k, v] = block[k]
