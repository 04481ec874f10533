"""The values of aggregates, computed from the measures of cells (see `windows/shared/planes.py`)."""

from __future__ import annotations

import numpy as np

from filters.values.vector import Array
from lineage.schema import KEY_MAX, Type
from windows.aggregates.aggregate import AggregateKind
from windows.shared.planes import COUNT, INTS, MEAN, MEASURE, Planes


def finish(planes: Planes, kind: AggregateKind, column: int | None, measures: Array) -> tuple[Array, Array, int]:
    """Return cells and null bytes of an aggregate over a value column (None: over rows), and the number of int overflows.

    `measures` is `[measure, cell]`.
    """
    if column is None:
        assert kind is AggregateKind.COUNT, "only rows can be counted without a column"
        return measures[0], np.zeros(measures.shape[1], np.uint8), 0
    fields, asked = planes.fields[column], planes.columns[column]
    at = int(fields[MEASURE])
    counts = measures[at if fields[COUNT] else 0]
    sums = measures[at + (fields[COUNT] > 0) :]
    none = (counts == 0).view(np.uint8)
    if kind is AggregateKind.COUNT:
        return counts, np.zeros(len(counts), np.uint8), 0
    if kind in (AggregateKind.MIN, AggregateKind.MAX):
        return _extremes(planes, kind, column, measures), none, 0
    if kind in (AggregateKind.VARIANCE, AggregateKind.STDDEV):
        variances = np.ascontiguousarray(sums[1]).view(np.float64)
        values = np.sqrt(variances) if kind is AggregateKind.STDDEV else variances
        return values.view(np.int64), (counts < 2).view(np.uint8), 0
    if asked.kind == INTS:
        outside = sums[1] != sums[0] >> 63
        if kind is AggregateKind.SUM:
            return sums[0], none | outside, int(np.count_nonzero(outside))
        totals = sums[0].astype(np.float64)
        for cell in np.flatnonzero(outside).tolist():
            # rare, and only Python's integers round once
            totals[cell] = float((int(sums[1, cell]) << 64) + (int(sums[0, cell]) & (2**64 - 1)))
        return (totals / np.maximum(counts, 1)).view(np.int64), none, 0
    if kind is AggregateKind.SUM:
        return sums[0], none, 0
    if fields[MEAN]:
        return measures[fields[MEAN]], none, 0
    with np.errstate(invalid="ignore"):
        return (np.ascontiguousarray(sums[0]).view(np.float64) / np.maximum(counts, 1)).view(np.int64), none, 0


def _extremes(planes: Planes, kind: AggregateKind, column: int, measures: Array) -> Array:
    """Return the values of order keys."""
    asked = planes.columns[column]
    at = planes.n_sums + sum(len(before.flips) for before in planes.columns[:column])
    flip = -1 if kind is AggregateKind.MAX else 0
    keys: Array = measures[at + asked.flips.index(flip)] ^ flip
    if asked.type is Type.FLOAT:
        keys ^= (keys >> 63) & KEY_MAX
    return keys
