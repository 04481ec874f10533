"""Visits by arithmetic: how many filters a fixed order visits, without an engine.

A row visits a filter if some query that is still alive for it compares that filter's column; a query dies at the first
comparison that is not true. NaN stands for NULL and is never true. That is what the eddy does, row by row.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import permutations

import numpy as np

#: Column -> lower bound, exclusive, or (lower, upper) bounds.
Condition = Mapping[str, float | tuple[float, float]]


def passes(values: np.ndarray, bound: float | tuple[float, float]) -> np.ndarray:
    """Which values a comparison takes."""
    if isinstance(bound, tuple):
        low, high = bound
        found: np.ndarray = (values > low) & (values < high)
        return found
    result: np.ndarray = values > bound
    return result


def visits_of(batch: Mapping[str, np.ndarray], queries: Sequence[Condition], order: Iterable[str]) -> float:
    """Filters that a row visits on average."""
    n_rows = len(next(iter(batch.values())))
    alive = np.ones((len(queries), n_rows), bool)
    total = 0
    for name in order:
        users = [k for k, query in enumerate(queries) if name in query]
        total += int(np.count_nonzero(alive[users].any(axis=0)))
        for k in users:
            alive[k] &= passes(batch[name], queries[k][name])
    return total / n_rows


def best_order(batch: Mapping[str, np.ndarray], queries: Sequence[Condition], names: Iterable[str]) -> tuple[str, ...]:
    """The order that visits fewest filters, of all there are."""
    return min(permutations(names), key=lambda order: visits_of(batch, queries, order))
