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

from lineage.bits import ONE, U64, count_ones, store_word, trailing_zeros

F = TypeVar("F", bound=Callable[..., Any])


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


@kernel
def emit(words: np.ndarray, table: np.ndarray, rows: np.ndarray, at: int) -> int:
    """Append the rows of one bitmap, in order, to `rows[at:]`; returns the new `at`."""
    n_words = len(words)
    count = 0
    for w in range(n_words):
        count += int(count_ones(words[w]))
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
        end = at + int(count_ones(word))
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
