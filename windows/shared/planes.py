"""Planes: the integers that make up the sums of one (query, group) or one (region, group), all added alike.

    plane 0                   rows
    of each value column      its limbs (`windows/state/exact_sums.py`), and of their squares where variances are asked for;
                              rows whose value is not NULL, once there has been a NULL; NaN, +inf, -inf, once there has been one

What a row adds to the planes is its **row vector**; taking it back subtracts the same. So every sum over rows, and every
difference of such sums, is exact, and is 0 in all planes of no rows. The planes follow the values: where a value needs another
limb, or the first NULL comes, the layout grows, and the owners of planes move them (`move`).

What is read from the planes of one cell are its **measures**, 64 bits each:

    measure 0      rows
    int column     rows not NULL, once there has been a NULL; the sum as 128 bits, lower half first
    float column   rows not NULL, likewise; the bits of the float nearest to the sum; those of the variance, if asked for; those
                   of the mean, once a value was so large that a sum may be beyond all floats; all 0 of no rows

Behind them a measure for each extreme that is asked for (`windows/shared/extremes.py`): the order key of the smallest value, of
the largest one inverted; 0 of no values. No plane makes those up, for they cannot be subtracted.

Measures decide whether a cell changed. COUNT, SUM, AVG, VARIANCE, STDDEV, MIN and MAX follow from them
(`windows/shared/measures.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from filters.values.vector import Array
from lineage.kernels import kernel
from lineage.schema import Type
from windows.state.exact_sums import NO_BITS, Limbs, add_float, add_int, add_square, is_finite, measure

#: Places in the description of a column, as kernels take it.
KIND, COUNT, LIMBS, N_LIMBS, LOWEST, SPECIAL, SQUARES, N_SQUARES, LOWEST_SQUARE, MEASURE, MEAN = range(11)
N_FIELDS = 11

#: What is summed: nothing, ints or floats.
NOTHING, INTS, FLOATS = range(3)

#: Sums of floats with bits below this are floats, however many.
_HUGE = 960


@kernel("void(int64[::1], uint8[::1], int64[::1], int64[::1], int64[::1], int64)")
def fill_vectors(
    cells: np.ndarray, nulls: np.ndarray, signs: np.ndarray, column: np.ndarray, flat: np.ndarray, width: int
) -> None:  # fmt: skip
    """Add one column to the row vectors, which hold zeros there; `nulls` is empty iff no row is NULL."""
    for i in range(len(cells)):
        if len(nulls) > 0 and nulls[i] != 0:
            continue
        at = i * width
        sign, word = signs[i], cells[i]
        if column[COUNT] > 0:
            flat[at + column[COUNT]] += sign
        if column[KIND] == NOTHING:
            continue
        if column[KIND] == INTS:
            add_int(flat, at + column[LIMBS], 1, word, sign)
        elif is_finite(word):
            add_float(flat, at + column[LIMBS], 1, column[LOWEST], word, sign)
            if column[SQUARES] > 0:
                add_square(flat, at + column[SQUARES], 1, column[LOWEST_SQUARE], word, sign)
        else:
            special = 0 if (word & np.int64(0xFFFFFFFFFFFFF)) != 0 else 1 if word > 0 else 2
            flat[at + column[SPECIAL] + special] += sign


@kernel("int64(int64[::1], uint8[::1])")
def has_special(cells: np.ndarray, nulls: np.ndarray) -> int:
    """Whether any value is NaN or infinite."""
    for i in range(len(cells)):
        if not is_finite(cells[i]) and (len(nulls) == 0 or nulls[i] == 0):
            return 1
    return 0


@dataclass(frozen=True, slots=True)
class ValueColumn:
    """A column and the measures asked of it: sums of INT (also bools) or FLOAT, variances of FLOAT, extremes of all but texts."""

    type: Type
    sum: bool = True
    variance: bool = False
    minimum: bool = False
    maximum: bool = False

    def __post_init__(self) -> None:
        assert not self.sum or self.type in (Type.INT, Type.FLOAT), "sums are of numbers"
        assert not self.variance or (self.sum and self.type is Type.FLOAT), "variances are of floats"
        assert self.type not in (Type.STRING, Type.NULL), "texts do not order by their codes"

    @property
    def kind(self) -> int:
        return NOTHING if not self.sum else FLOATS if self.type is Type.FLOAT else INTS

    @property
    def flips(self) -> list[int]:
        """The masks by which the keys of each extreme are inverted, so that the extreme is the smallest."""
        return [0] * self.minimum + [-1] * self.maximum


class _Column:
    """The planes that one column needs so far."""

    __slots__ = ("limbs", "squares", "counts", "special", "huge")

    def __init__(self, column: ValueColumn) -> None:
        self.limbs = Limbs() if column.sum else None
        self.squares = Limbs(2) if column.variance else None
        if self.limbs is not None and column.kind == INTS:
            self.limbs.cover(0, 62)
        #: whether there has been a NULL; a value without digits; one so large that sums may be beyond all floats
        self.counts = False
        self.special = False
        self.huge = False


class Planes:
    """The layout of planes; see the module."""

    def __init__(self, columns: Sequence[ValueColumn]) -> None:
        self.columns = tuple(columns)
        self._state = [_Column(column) for column in columns]
        self._lay_out()

    def _lay_out(self) -> None:
        self.fields = np.zeros((len(self.columns), N_FIELDS), np.int64)
        at, place = 1, 1
        for k, (column, state) in enumerate(zip(self.columns, self._state)):
            fields = self.fields[k]
            fields[KIND] = column.kind
            fields[MEASURE] = place
            place += state.counts + (0, 2, 1 + column.variance)[column.kind]
            if state.huge:
                fields[MEAN] = place
                place += 1
            if state.limbs is not None:
                fields[LIMBS], fields[N_LIMBS], fields[LOWEST] = at, state.limbs.n, state.limbs.lowest
                at += state.limbs.n
            if state.squares is not None:
                fields[SQUARES], fields[N_SQUARES], fields[LOWEST_SQUARE] = at, state.squares.n, state.squares.lowest
                at += state.squares.n
            if state.counts:
                fields[COUNT] = at
                at += 1
            if state.special:
                fields[SPECIAL] = at
                at += 3
        #: the measure that counts the values of each extreme
        counts = [
            fields[MEASURE] if state.counts else 0
            for column, state, fields in zip(self.columns, self._state, self.fields)
            for _ in column.flips
        ]
        self.extreme_counts = np.array(counts, np.int64)
        #: planes of a cell; measures of a cell, and how many of those are not extremes
        self.n, self.n_measures, self.n_sums = at, place + len(counts), place

    @property
    def scratch(self) -> int:
        """The words of scratch that `read_measures` needs."""
        needed = 1
        for state in self._state:
            if state.limbs is not None and state.squares is not None:
                needed = max(needed, 6 * state.limbs.n + 2 * state.squares.n + 16)
        return needed

    def cover(self, values: Sequence[tuple[Array, Array]]) -> Array | None:
        """Extend the layout for rows with these cells and null bytes (empty iff none is NULL).

        Returns None if it fits already, else where each plane comes from in the old layout: -1 is a plane of zeros.
        """
        before = self.fields
        grew = False
        for column, state, (cells, nulls) in zip(self.columns, self._state, values, strict=True):
            if not state.counts and nulls.any():
                state.counts = grew = True
            if column.kind == FLOATS:
                if not state.special and has_special(cells, nulls):
                    state.special = grew = True
                bits = np.array(NO_BITS, np.int64)
                measure(cells, bits)
                if not state.huge and bits[1] >= _HUGE:
                    state.huge = grew = True
                for limbs in (state.limbs, state.squares):
                    grew |= limbs is not None and limbs.cover(int(bits[0]), int(bits[1]))
        if not grew:
            return None
        self._lay_out()
        return self._origins(before)

    def _origins(self, before: Array) -> Array:
        origins = np.full(self.n, -1, np.int64)
        origins[0] = 0
        for old, new in zip(before, self.fields):
            for first, n, lowest in ((LIMBS, N_LIMBS, LOWEST), (SQUARES, N_SQUARES, LOWEST_SQUARE)):
                at = int(new[first] + old[lowest] - new[lowest])
                origins[at : at + int(old[n])] = np.arange(old[first], old[first] + old[n])
            if new[COUNT]:
                # until now no row was NULL
                origins[new[COUNT]] = old[COUNT]
            if old[SPECIAL]:
                origins[new[SPECIAL] : new[SPECIAL] + 3] = np.arange(old[SPECIAL], old[SPECIAL] + 3)
        return origins

    def vectors(self, values: Sequence[tuple[Array, Array]], signs: Array, width: int) -> Array:
        """Return the row vectors of rows that the layout covers, `width` integers each."""
        found = np.zeros((len(signs), width), np.int64)
        found[:, 0] = signs
        for fields, (cells, nulls) in zip(self.fields, values, strict=True):
            fill_vectors(cells, nulls, signs, fields, found.reshape(-1), width)
        return found
