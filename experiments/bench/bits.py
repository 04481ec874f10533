"""Kernels on bitmaps of rows: transposing them and turning them into row lists.

Writing out (row, query) pairs is the ceiling of a busy engine, so it is done as fast as this kind of machine allows.
LLVM's masked compress-store is one instruction with AVX-512 and a scalar loop without: .04-.16 G pairs/s on an AVX2
machine. Three ways were compared there (G pairs/s of 4096-row bitmaps at density .5 / .25 / .05 / .01):

    count trailing zeros, one word after the other          .88   .74   .33   .11
    the same, four at a time                                .99   .85   .54   .12
    table: byte -> positions of its bits, 8 lanes a store   5.8   3.4   .67   .10

`emit` takes the table above `TABLE_DENSITY` set bits a word. Below it, it stores four positions of each word whether
they are set or not and moves on by the popcount (.30 against .22 at density .03: no branch to mispredict), and for
nearly empty bitmaps it skips empty words.

    bitmap   bit i of word w  =  row 64 w + i
    position table[8 b + j]   =  position of the j-th set bit of byte b
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
import numpy as np
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

F = TypeVar("F", bound=Callable[..., Any])

U64 = np.uint64
ONE = np.uint64(1)
FULL = np.uint64(0xFFFFFFFFFFFFFFFF)

#: Row buffers need this many spare elements: stores are 8 lanes or 4 elements wide.
SPARE = 64
#: Set bits a word from which the byte table wins.
TABLE_DENSITY = 4
#: Words a set bit from which skipping empty words wins.
EMPTY_DENSITY = 4


def kernel(fn: F) -> F:
    """Compile with numba as the engine does; typed, so callers stay checked."""
    compiled: Any = numba.njit(cache=True, nogil=True, boundscheck=False)(fn)
    return cast(F, compiled)


def _intrinsic(fn: Callable[..., Any]) -> Callable[..., Any]:
    made: Callable[..., Any] = intrinsic(fn)
    return made


def position_table() -> np.ndarray:
    """For every byte the positions of its set bits, zero padded to eight."""
    table = np.zeros((256, 8), np.uint8)
    for byte in range(256):
        positions = [bit for bit in range(8) if byte >> bit & 1]
        table[byte, : len(positions)] = positions
    return table.reshape(-1)


@_intrinsic
def trailing_zeros(_context: Any, _word: Any) -> Any:
    """Position of the lowest set bit; any value for 0."""

    def generate(_ctx: Any, builder: Any, _signature: Any, args: Any) -> Any:
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 1))

    return types.uint64(types.uint64), generate


@_intrinsic
def popcount(_context: Any, _word: Any) -> Any:
    """Number of set bits."""

    def generate(_ctx: Any, builder: Any, _signature: Any, args: Any) -> Any:
        return builder.ctpop(args[0])

    return types.uint64(types.uint64), generate


@_intrinsic
def store_word(_context: Any, rows: Any, _at: Any, _base: Any, table: Any, _word: Any) -> Any:
    """Write `base + position` of every set bit of a word to `rows[at:]`; returns the new `at`. Overwrites 8 beyond it."""

    def generate(ctx: Any, builder: Any, signature: Any, args: Any) -> Any:
        array, at, base, positions, word = args
        i32, i64 = ir.IntType(32), ir.IntType(64)
        lanes, packed = ir.VectorType(i32, 8), ir.VectorType(ir.IntType(8), 8)
        target = ctx.make_array(signature.args[0])(ctx, builder, array).data
        source = ctx.make_array(signature.args[3])(ctx, builder, positions).data
        undefined = ir.Constant(lanes, ir.Undefined)
        first = builder.insert_element(undefined, builder.trunc(base, i32), ir.Constant(i32, 0))
        offset = builder.shuffle_vector(first, undefined, ir.Constant(lanes, [ir.Constant(i32, 0)] * 8))
        eight = ir.Constant(lanes, [ir.Constant(i32, 8)] * 8)
        for step in range(8):
            byte = builder.and_(builder.lshr(word, ir.Constant(i64, 8 * step)), ir.Constant(i64, 255))
            entry = builder.bitcast(builder.gep(source, [builder.shl(byte, ir.Constant(i64, 3))]), packed.as_pointer())
            found = builder.load(entry)
            found.align = 1
            store = builder.store(
                builder.add(builder.zext(found, lanes), offset), builder.bitcast(builder.gep(target, [at]), lanes.as_pointer())
            )
            store.align = 4
            at = builder.add(at, builder.ctpop(byte))
            offset = builder.add(offset, eight)
        return at

    return types.int64(rows, types.int64, types.int64, table, types.uint64), generate


@kernel
def emit(words: np.ndarray, table: np.ndarray, rows: np.ndarray, at: int) -> int:
    """Append the rows of one bitmap, in order, to `rows[at:]`; returns the new `at`."""
    n_words = len(words)
    count = 0
    for w in range(n_words):
        count += int(popcount(words[w]))
    if count >= TABLE_DENSITY * n_words:
        for w in range(n_words):
            at = store_word(rows, np.int64(at), np.int64(w << 6), table, words[w])
        return at
    if count * EMPTY_DENSITY < n_words:
        for w in range(n_words):
            word = words[w]
            while word:
                rows[at] = (w << 6) + np.int64(trailing_zeros(word))
                word &= word - ONE
                at += 1
        return at
    for w in range(n_words):
        word = words[w]
        end = at + int(popcount(word))
        k = U64(at)
        while True:
            for _ in range(4):
                rows[k] = (w << 6) + np.int64(trailing_zeros(word))
                word &= word - ONE
                k += ONE
            if k >= U64(end):
                break
        at = end
    return at


@kernel
def transpose(lineage: np.ndarray, bitmaps: np.ndarray) -> None:
    """`[rows x words of queries]` to `[queries x words of rows]`; rows are a multiple of 512, taken as 8 SIMD lanes."""
    n_rows, n_words = lineage.shape
    block = np.empty((64, 8), np.uint64)
    for start in range(0, n_rows, 512):
        for w in range(n_words):
            for k in range(64):
                for lane in range(8):
                    block[k, lane] = lineage[start + lane * 64 + k, w]
            j = 32
            mask = U64(0x00000000FFFFFFFF)
            while j:
                shift = U64(j)
                k = 0
                while k < 64:
                    for lane in range(8):
                        a = block[k, lane]
                        b = block[k + j, lane]
                        swapped = ((a >> shift) ^ b) & mask
                        block[k + j, lane] = b ^ swapped
                        block[k, lane] = a ^ (swapped << shift)
                    k = (k + j + 1) & ~j
                j >>= 1
                mask ^= mask << U64(j)
            column = start >> 6
            for k in range(64):
                for lane in range(8):
                    bitmaps[w * 64 + k, column + lane] = block[k, lane]
