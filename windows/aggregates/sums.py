"""COUNT, SUM, AVG, VARIANCE and STDDEV, from exact sums (see `windows/state/exact_sums.py`).

    COUNT      rows that count
    SUM, AVG   NULL of no rows; of floats NaN and infinities as IEEE adds them, else the nearest float; of ints exact
    VARIANCE   NULL of fewer than two rows, NaN if any value is NaN or infinite; STDDEV is its root

A sum of ints that an int64 cannot say is NULL and counted as an error.
"""

from __future__ import annotations

import numpy as np

from filters.values.vector import Array
from lineage.growth import LEAST, fitted
from lineage.kernels import Number, inline, kernel
from windows.aggregates.aggregate import AggregateKind
from windows.aggregates.operands import Operand
from windows.aggregates.part import AggregatePart
from windows.aggregates.steps import AggregateSteps
from windows.state.exact_sums import (
    MOST,
    NO_BITS,
    ExactSums,
    add_float,
    add_int,
    add_square,
    carry,
    fits_int,
    int_sum,
    is_finite,
    measure,
    nearest_float,
    quotient,
    variance,
)  # fmt: skip

#: Words of `counts` by group: all rows that count, and among them those whose value has no digits.
_ALL, _NAN, _PLUS, _MINUS = 0, 1, 2, 3


@inline
def _count_special(counts: Number, group: Number, word: Number, sign: Number) -> None:
    """Count a NaN or an infinity that comes or goes."""
    if (word & np.int64(0xFFFFFFFFFFFFF)) != 0:
        counts[_NAN, group] += sign
    elif word > 0:
        counts[_PLUS, group] += sign
    else:
        counts[_MINUS, group] += sign


@inline
def _special_sum(counts: Number, group: Number) -> Number:
    """Return the sum of the NaNs and infinities that are counted, 0.0 if there are none."""
    plus, minus = counts[_PLUS, group], counts[_MINUS, group]
    if counts[_NAN, group] != 0 or (plus != 0 and minus != 0):
        return np.nan
    return np.inf if plus != 0 else -np.inf if minus != 0 else 0.0


@kernel("void(int64[::1], int64[::1], int64[::1], int64[::1], uint8[::1], int64[:,::1], int64[::1])")
def walk_counts(
    slots: np.ndarray, signs: np.ndarray, groups: np.ndarray, readings: np.ndarray, counted: np.ndarray, counts: np.ndarray,
    read: np.ndarray,
) -> None:  # fmt: skip
    """Apply the steps; write the number of rows that count at each reading."""
    for k in range(len(slots)):
        group = groups[k]
        counts[_ALL, group] += signs[k] * np.int64(counted[slots[k]])
        if readings[k] >= 0:
            read[readings[k]] = counts[_ALL, group]


@kernel(
    "void(int64[::1], int64[::1], int64[::1], int64[::1], uint8[::1], int64[::1], int64[:,::1], int64[::1], int64[::1],"
    "int64[::1], float64[::1], uint8[::1])"
)
def walk_ints(
    slots: np.ndarray, signs: np.ndarray, groups: np.ndarray, readings: np.ndarray, counted: np.ndarray, cells: np.ndarray,
    counts: np.ndarray, words: np.ndarray, read_counts: np.ndarray, read_sums: np.ndarray, read_means: np.ndarray,
    fits: np.ndarray,
) -> None:  # fmt: skip
    """Apply the steps; write count, sum and mean of ints at each reading; no means if their array is empty."""
    for k in range(len(slots)):
        group = groups[k]
        if signs[k] != 0 and counted[slots[k]] != 0:
            counts[_ALL, group] += signs[k]
            add_int(words, 2 * group, 1, cells[slots[k]], signs[k])
        at = readings[k]
        if at >= 0:
            read_counts[at] = counts[_ALL, group]
            read_sums[at] = int_sum(words, 2 * group, 1)
            fits[at] = fits_int(words, 2 * group, 1)
            if len(read_means) > 0:
                n = np.float64(max(counts[_ALL, group], np.int64(1)))
                read_means[at] = quotient(words, 2 * group, 1, 2, 0, n)


@kernel(
    "void(int64[::1], int64[::1], int64[::1], int64[::1], uint8[::1], int64[::1], int64[:,::1], int64[::1], int64, int64,"
    "int64[::1], float64[::1], float64[::1])"
)
def walk_floats(
    slots: np.ndarray, signs: np.ndarray, groups: np.ndarray, readings: np.ndarray, counted: np.ndarray, cells: np.ndarray,
    counts: np.ndarray, words: np.ndarray, n_limbs: int, lowest: int, read_counts: np.ndarray,
    read_sums: np.ndarray, read_means: np.ndarray,
) -> None:  # fmt: skip
    """Apply the steps; write count, sum and mean of floats at each reading; no means if their array is empty."""
    for k in range(len(slots)):
        group = groups[k]
        if signs[k] != 0 and counted[slots[k]] != 0:
            word = cells[slots[k]]
            counts[_ALL, group] += signs[k]
            if is_finite(word):
                add_float(words, n_limbs * group, 1, lowest, word, signs[k])
            else:
                _count_special(counts, group, word, signs[k])
        at = readings[k]
        if at >= 0:
            read_counts[at] = counts[_ALL, group]
            special = _special_sum(counts, group)
            if special == 0.0:
                read_sums[at] = nearest_float(words, n_limbs * group, 1, n_limbs, lowest)
                if len(read_means) > 0:
                    n = np.float64(max(counts[_ALL, group], np.int64(1)))
                    read_means[at] = quotient(words, n_limbs * group, 1, n_limbs, lowest, n)
            else:
                read_sums[at] = special
                if len(read_means) > 0:
                    read_means[at] = special


@kernel(
    "void(int64[::1], int64[::1], int64[::1], int64[::1], uint8[::1], int64[::1], int64[:,::1], int64[::1], int64, int64,"
    "int64[::1], int64, int64, int64[::1], int64[::1], float64[::1])"
)
def walk_squares(
    slots: np.ndarray, signs: np.ndarray, groups: np.ndarray, readings: np.ndarray, counted: np.ndarray, cells: np.ndarray,
    counts: np.ndarray, words: np.ndarray, n_limbs: int, lowest: int, squares: np.ndarray, n_squares: int, lowest_square: int,
    scratch: np.ndarray, read_counts: np.ndarray, read: np.ndarray,
) -> None:  # fmt: skip
    """Apply the steps; write the variance at each reading, 0 for fewer than two values."""
    for k in range(len(slots)):
        group = groups[k]
        if signs[k] != 0 and counted[slots[k]] != 0:
            word = cells[slots[k]]
            counts[_ALL, group] += signs[k]
            if is_finite(word):
                add_float(words, n_limbs * group, 1, lowest, word, signs[k])
                add_square(squares, n_squares * group, 1, lowest_square, word, signs[k])
            else:
                _count_special(counts, group, word, signs[k])
        at = readings[k]
        if at >= 0:
            n = counts[_ALL, group]
            read_counts[at] = n
            if _special_sum(counts, group) != 0.0:
                read[at] = np.nan
            elif n < 2:
                read[at] = 0.0
            else:
                read[at] = variance(
                    words, n_limbs * group, n_limbs, lowest, squares, n_squares * group, n_squares, lowest_square, n, scratch
                )  # fmt: skip


class Counts(AggregatePart):
    """COUNT(*) and COUNT(x)."""

    def __init__(self, operand: Operand) -> None:
        self._operand = operand
        self.clear()

    def clear(self) -> None:
        self._counts = np.zeros((1, LEAST), np.int64)

    def hold(self, n_groups: int, n_slots: int) -> None:
        self._counts = fitted(self._counts, n_groups)

    def walk(self, steps: AggregateSteps) -> None:
        self._read = np.empty(steps.n_readings, np.int64)
        walk_counts(
            steps.slots, steps.signs, steps.groups, steps.readings, self._operand.counted, self._counts, self._read
        )  # fmt: skip

    def values(self, kind: AggregateKind) -> tuple[Array, Array]:
        return self._read, np.zeros(len(self._read), np.uint8)

    @property
    def bytes(self) -> int:
        return self._counts.nbytes


class _Sums(AggregatePart):
    """The common part of sums over one operand: counts, and an occasional carry for sums that only grow."""

    def __init__(self, operand: Operand, sums: list[ExactSums]) -> None:
        self._operand = operand
        self._sums = sums
        #: the kinds that are asked for
        self.kinds: set[AggregateKind] = set()
        self.clear()

    def clear(self) -> None:
        self._counts = np.zeros((4, LEAST), np.int64)
        #: steps since sums were last carried
        self._since = 0
        for sums in self._sums:
            sums.clear(LEAST)

    def hold(self, n_groups: int, n_slots: int) -> None:
        self._counts = fitted(self._counts, n_groups)
        for sums in self._sums:
            sums.hold(n_groups)

    def _begin(self, steps: AggregateSteps) -> None:
        self._since += len(steps)
        if self._since > MOST:
            self._since = len(steps)
            for sums in self._sums:
                carry(sums.words, sums.limbs.n)
        self._read_counts = np.empty(steps.n_readings, np.int64)

    @property
    def bytes(self) -> int:
        return self._counts.nbytes + sum(sums.bytes for sums in self._sums)


class IntSums(_Sums):
    """COUNT, SUM and AVG of ints and bools."""

    def __init__(self, operand: Operand) -> None:
        super().__init__(operand, [ExactSums()])

    def clear(self) -> None:
        super().clear()
        self._sums[0].cover(0, 62)

    def walk(self, steps: AggregateSteps) -> None:
        self._begin(steps)
        n = steps.n_readings
        self._totals = np.empty(n, np.int64)
        self._fits = np.empty(n, np.uint8)
        self._means = np.empty(n if AggregateKind.AVG in self.kinds else 0, np.float64)
        walk_ints(
            steps.slots, steps.signs, steps.groups, steps.readings, self._operand.counted, self._operand.cells, self._counts,
            self._sums[0].words.reshape(-1), self._read_counts, self._totals, self._means, self._fits,
        )  # fmt: skip
        if AggregateKind.SUM in self.kinds:
            self.errors += n - int(np.count_nonzero(self._fits))
            self.failures = (self._fits == 0).astype(np.int64)

    def values(self, kind: AggregateKind) -> tuple[Array, Array]:
        none = self._read_counts == 0
        if kind is AggregateKind.SUM:
            return self._totals, (none | (self._fits == 0)).view(np.uint8)
        if kind is AggregateKind.AVG:
            return self._means.view(np.int64), none.view(np.uint8)
        return self._read_counts, np.zeros(len(none), np.uint8)


class FloatSums(_Sums):
    """COUNT, SUM and AVG of floats."""

    def __init__(self, operand: Operand) -> None:
        super().__init__(operand, [ExactSums()])

    def enter(self, slots: Array, groups: Array) -> None:
        self._sums[0].cover(*_bits(self._operand.cells[slots]))

    def walk(self, steps: AggregateSteps) -> None:
        self._begin(steps)
        sums = self._sums[0]
        self._totals = np.empty(steps.n_readings, np.float64)
        self._means = np.empty(steps.n_readings if AggregateKind.AVG in self.kinds else 0, np.float64)
        walk_floats(
            steps.slots, steps.signs, steps.groups, steps.readings, self._operand.counted, self._operand.cells, self._counts,
            sums.words.reshape(-1), sums.limbs.n, sums.limbs.lowest, self._read_counts, self._totals, self._means,
        )  # fmt: skip

    def values(self, kind: AggregateKind) -> tuple[Array, Array]:
        none = (self._read_counts == 0).view(np.uint8)
        if kind is AggregateKind.SUM:
            return self._totals.view(np.int64), none
        if kind is AggregateKind.AVG:
            return self._means.view(np.int64), none
        return self._read_counts, np.zeros(len(none), np.uint8)


class Variances(_Sums):
    """VARIANCE and STDDEV of floats."""

    def __init__(self, operand: Operand) -> None:
        super().__init__(operand, [ExactSums(), ExactSums(power=2)])

    def enter(self, slots: Array, groups: Array) -> None:
        bits = _bits(self._operand.cells[slots])
        for sums in self._sums:
            sums.cover(*bits)

    def walk(self, steps: AggregateSteps) -> None:
        self._begin(steps)
        sums, squares = self._sums
        self._read = np.empty(steps.n_readings, np.float64)
        scratch = np.empty(5 * sums.limbs.n + squares.limbs.n + 16, np.int64)
        walk_squares(
            steps.slots, steps.signs, steps.groups, steps.readings, self._operand.counted, self._operand.cells, self._counts,
            sums.words.reshape(-1), sums.limbs.n, sums.limbs.lowest, squares.words.reshape(-1), squares.limbs.n,
            squares.limbs.lowest, scratch, self._read_counts, self._read,
        )  # fmt: skip

    def values(self, kind: AggregateKind) -> tuple[Array, Array]:
        values = np.sqrt(self._read) if kind is AggregateKind.STDDEV else self._read
        return values.view(np.int64), (self._read_counts < 2).view(np.uint8)


def _bits(cells: Array) -> tuple[int, int]:
    """The lowest and the highest bit of floats; see `measure`."""
    bits = np.array(NO_BITS, np.int64)
    measure(cells, bits)
    return int(bits[0]), int(bits[1])
