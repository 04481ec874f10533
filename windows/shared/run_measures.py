"""Measures of a run of cells, from their planes (see `windows/shared/planes.py`).

Cells are read `LANES` at a time, groups that lie side by side in every plane:

    work[at + plane * LANES + lane]        ->        fresh[measure * LANES + lane]

At most three limbs, which is what ordinary data has, are rounded without a branch for all lanes together; a run with anything
unusual (more limbs, sums beyond 2**53 of the second limb, NaN) is rounded cell by cell. The outcome is the same: the float
nearest to the sum.
"""

from __future__ import annotations

import numpy as np

from lineage.kernels import Number, inline
from lineage.lanes import LANES, copy_lanes, round_lanes, sum_lanes
from lineage.memory import bits_of, float_of
from windows.shared.planes import (
    COUNT,
    FLOATS,
    INTS,
    KIND,
    LIMBS,
    LOWEST,
    LOWEST_SQUARE,
    MEAN,
    MEASURE,
    N_LIMBS,
    N_SQUARES,
    SPECIAL,
    SQUARES,
)  # fmt: skip
from windows.state.exact_sums import nearest_float, quotient, variance


@inline
def _power_of_two(power: Number) -> Number:
    """2.0**power, for powers of normal floats."""
    return float_of((power + np.int64(1023)) << np.int64(52))


@inline
def read_float_sums(work: Number, at: Number, zeros: Number, column: Number, fresh: Number, to: Number) -> None:
    """Write the floats nearest to sums of floats; `zeros` is a run of zeros in `work`."""
    n_limbs, lowest = column[N_LIMBS], column[LOWEST]
    first = at + column[LIMBS] * LANES
    wide = np.int64(1)
    if n_limbs <= 3 and lowest >= -31 and lowest < 31:
        second = first + LANES if n_limbs > 1 else zeros
        third = first + 2 * LANES if n_limbs > 2 else zeros
        half, unit = _power_of_two(32 * lowest), _power_of_two(32 * lowest + 32)
        wide = round_lanes(fresh, to, work, first, second, third, unit, half)
    if wide != 0:
        for lane in range(LANES):
            fresh[to + lane] = bits_of(nearest_float(work, first + lane, LANES, n_limbs, lowest))
    if column[SPECIAL] > 0:
        special = at + column[SPECIAL] * LANES
        for lane in range(LANES):
            nan, plus, minus = work[special + lane], work[special + LANES + lane], work[special + 2 * LANES + lane]
            if nan != 0 or (plus != 0 and minus != 0):
                fresh[to + lane] = bits_of(np.nan)
            elif plus != 0 or minus != 0:
                fresh[to + lane] = bits_of(np.inf if plus != 0 else -np.inf)


@inline
def read_variances(work: Number, at: Number, column: Number, fresh: Number, counts: Number, to: Number, scratch: Number) -> None:
    """Write the variances of floats; 0 for fewer than two."""
    n_limbs, n_squares = column[N_LIMBS], column[N_SQUARES]
    for lane in range(LANES):
        n = fresh[counts + lane]
        special = np.int64(0)
        if column[SPECIAL] > 0:
            for k in range(3):
                special |= work[at + (column[SPECIAL] + k) * LANES + lane]
        if n < 2:
            fresh[to + lane] = 0
        elif special != 0:
            fresh[to + lane] = bits_of(np.nan)
        else:
            for i in range(n_limbs):
                scratch[i] = work[at + (column[LIMBS] + i) * LANES + lane]
            for i in range(n_squares):
                scratch[n_limbs + i] = work[at + (column[SQUARES] + i) * LANES + lane]
            fresh[to + lane] = bits_of(
                variance(
                    scratch, 0, n_limbs, column[LOWEST], scratch, n_limbs, n_squares, column[LOWEST_SQUARE], n,
                    scratch[n_limbs + n_squares :],
                )
            )  # fmt: skip


@inline
def read_means(work: Number, at: Number, column: Number, fresh: Number, counts: Number, sums: Number, to: Number) -> None:
    """Write the means of floats whose sums may be beyond all floats; 0 for none."""
    for lane in range(LANES):
        mean = float_of(fresh[sums + lane])
        special = np.int64(0)
        if column[SPECIAL] > 0:
            for k in range(3):
                special |= work[at + (column[SPECIAL] + k) * LANES + lane]
        if special == 0:
            n = np.float64(max(fresh[counts + lane], np.int64(1)))
            mean = quotient(work, at + column[LIMBS] * LANES + lane, LANES, column[N_LIMBS], column[LOWEST], n)
        fresh[to + lane] = bits_of(mean)


@inline
def read_measures(work: Number, at: Number, zeros: Number, columns: Number, fresh: Number, scratch: Number) -> None:
    """Write all measures of a run of cells but extremes."""
    copy_lanes(fresh, 0, work, at)
    for c in range(len(columns)):
        column = columns[c]
        to = column[MEASURE] * LANES
        counts = np.int64(0)
        if column[COUNT] > 0:
            counts = to
            copy_lanes(fresh, to, work, at + column[COUNT] * LANES)
            to += LANES
        if column[KIND] == INTS:
            sum_lanes(fresh, to, to + LANES, work, at + column[LIMBS] * LANES)
        elif column[KIND] == FLOATS:
            read_float_sums(work, at, zeros, column, fresh, to)
            if column[SQUARES] > 0:
                read_variances(work, at, column, fresh, counts, to + LANES, scratch)
            if column[MEAN] > 0:
                read_means(work, at, column, fresh, counts, to, column[MEAN] * LANES)
