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
from bitarray import bitarray
from llvmlite import ir
from numba.extending import intrinsic

from lineage.kernels import kernel

U64 = np.uint64
ONE = np.uint64(1)
FULL = np.uint64(0xFFFFFFFFFFFFFFFF)

#: Spare room that `list_rows` needs behind the last row number (it stores eight at a time).
SPARE = 8


def words(n: int) -> int:
    """How many 64-bit words hold n bits."""
    return (n + 63) >> 6


def set_bit(mask: np.ndarray, slot: int) -> None:
    mask[slot >> 6] |= U64(1 << (slot & 63))


def clear_bit(mask: np.ndarray, slot: int) -> None:
    mask[slot >> 6] &= ~U64(1 << (slot & 63))


def has_bit(mask: np.ndarray, slot: int) -> bool:
    return bool(int(mask[slot >> 6]) >> (slot & 63) & 1)


def to_bitarray(mask: np.ndarray, n: int) -> bitarray:
    """The first n bits of a word mask as a bitarray: the form for one query's or one module's set."""
    bits = bitarray(endian="little")
    bits.frombytes(mask.tobytes())
    return bits[:n]


def to_mask(bits: bitarray, n_words: int) -> np.ndarray:
    """A bitarray as a word mask."""
    raw = bitarray(bits, endian="little")
    raw.extend([0] * (n_words * 64 - len(raw)))
    return np.frombuffer(raw.tobytes(), np.uint64).copy()


def slots_of(mask: np.ndarray) -> np.ndarray:
    """The set bits of a mask, ascending, as int32."""
    return np.flatnonzero(np.unpackbits(mask.view(np.uint8), bitorder="little")).astype(np.int32)


def _byte_table() -> np.ndarray:
    """For each byte, the positions of its set bits; lanes beyond them are 0."""
    table = np.zeros((256, 8), np.int32)
    for byte in range(256):
        at = [bit for bit in range(8) if byte >> bit & 1]
        table[byte, : len(at)] = at
    return table


BYTE_BITS = _byte_table()


@intrinsic
def trailing_zeros(typing: Any, x: Any) -> Any:
    """Number of zero bits below the lowest set one; undefined for 0."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 1))

    return numba.uint64(numba.uint64), generate


@intrinsic
def count_ones(typing: Any, x: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.ctpop(args[0])

    return numba.uint64(numba.uint64), generate


@intrinsic
def store_byte(typing: Any, rows: Any, at: Any, base: Any, table: Any, byte: Any) -> Any:
    """`rows[at:at+8] = table[byte] + base`, eight int32 lanes in one store."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        rows_, at_, base_, table_, byte_ = args
        lane = ir.IntType(32)
        vector = ir.VectorType(lane, 8)
        source = context.make_array(signature.args[3])(context, builder, table_).data
        target = context.make_array(signature.args[0])(context, builder, rows_).data
        picked = builder.load(builder.bitcast(builder.gep(source, [builder.shl(byte_, ir.Constant(byte_.type, 3))]), vector.as_pointer()))
        picked.align = 4
        one = builder.insert_element(ir.Constant(vector, ir.Undefined), builder.trunc(base_, lane), ir.Constant(lane, 0))
        splat = builder.shuffle_vector(one, ir.Constant(vector, ir.Undefined), ir.Constant(ir.VectorType(lane, 8), [ir.Constant(lane, 0)] * 8))
        stored = builder.store(builder.add(picked, splat), builder.bitcast(builder.gep(target, [at_]), vector.as_pointer()))
        stored.align = 4
        return context.get_dummy_value()

    return numba.void(rows, numba.int64, numba.int64, table, numba.int64), generate


@kernel("int64(uint64[:,::1], int64, int32[::1], int32[::1], int64[::1], int32[::1], int32[::1], int32[:,::1])")
def list_rows(
    rows_of: np.ndarray,
    n_words: int,
    out_slot: np.ndarray,
    first_row: np.ndarray,
    offsets: np.ndarray,
    which: np.ndarray,
    rows: np.ndarray,
    table: np.ndarray,
) -> int:
    """Row numbers of the outputs that have any: output `k` reads slot `out_slot[k]` from row `first_row[k]` on.

    Fills `which[j]` with the output's number, `offsets[j]:offsets[j+1]` with its range in `rows`; returns how many
    outputs are listed. `rows` must hold all of them and `SPARE` more.
    """
    at = np.int64(0)
    listed = 0
    for k in range(len(out_slot)):
        slot = out_slot[k]
        first = np.int64(first_row[k])
        start = at
        offsets[listed] = at
        for w in range(first >> 6, n_words):
            word = rows_of[slot, w]
            if w == first >> 6:
                word &= FULL << U64(first & 63)
            if word == 0:
                continue
            base = np.int64(w << 6)
            if word & (word - ONE):
                for b in range(8):
                    byte = np.int64((word >> U64(8 * b)) & U64(255))
                    store_byte(rows, at, base + 8 * b, table, byte)
                    at += np.int64(count_ones(U64(byte)))
            else:
                rows[at] = base + np.int64(trailing_zeros(word))
                at += 1
        which[listed] = k
        if at > start:
            listed += 1
    offsets[listed] = at
    return listed


@kernel("int64(uint64[:,::1], int64, int32[::1], int32[::1], int64[::1])")
def count_rows(rows_of: np.ndarray, n_words: int, out_slot: np.ndarray, first_row: np.ndarray, counts: np.ndarray) -> int:
    """How many rows each output has, by popcount; returns the sum."""
    total = np.int64(0)
    for k in range(len(out_slot)):
        slot = out_slot[k]
        first = np.int64(first_row[k])
        found = np.int64(0)
        for w in range(first >> 6, n_words):
            word = rows_of[slot, w]
            if w == first >> 6:
                word &= FULL << U64(first & 63)
            found += np.int64(count_ones(word))
        counts[k] = found
        total += found
    return total


@kernel("void(uint64[:,::1], int64, int64, uint64[:,::1])")
def transpose(lin: np.ndarray, n_rows: int, n_words: int, rows_of: np.ndarray) -> None:
    """Row-major `[rows, words]` to query-major `[slots, rows/64]`, 64 x 64 bits at a time; missing rows read as 0."""
    block = np.empty(64, np.uint64)
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
