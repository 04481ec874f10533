"""The results of the contestants of a join, and one form in which they can be compared.

A **match** is one row of every stream; the engine and the bare kernel list matches by query, NiagaraCQ's plans copy a joined
tuple for every query. `Pairs` collects either as rows `(query, row number in stream 0, in stream 1, ..)`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from experiments.bench.base.bare import RowLists


class MatchLists(NamedTuple):
    """A part of a push's results. Views of pooled buffers, valid until the next part."""

    #: the part's matches by query
    lists: RowLists
    #: for every stream, the row number of each match
    rows: tuple[np.ndarray, ...]


class Copies(NamedTuple):
    """Joined tuples `tuples[offsets[q]:offsets[q + 1]]` of query q: symbol, bits of the price, times of both rows."""

    offsets: np.ndarray
    tuples: np.ndarray


TakeLists = Callable[[MatchLists], object]
TakeCopies = Callable[[Copies], object]


def ignore(part: object) -> None:
    """A listener that only has to be called."""


class Pairs:
    """Collects results, copied."""

    def __init__(self, n_streams: int) -> None:
        self._found: list[np.ndarray] = [np.zeros((0, 1 + n_streams), np.int64)]

    def add(self, queries: np.ndarray, *rows: np.ndarray) -> None:
        """(query, row numbers) pairs, as columns."""
        self._found.append(np.column_stack((queries, *rows)).astype(np.int64))

    def sorted(self) -> np.ndarray:
        """All pairs in order, each as often as it was given."""
        found = np.concatenate(self._found)
        return found[np.lexsort(found.T[::-1])]


def assert_same(found: Pairs, expected: Pairs) -> None:
    """Both gave the same matches to the same queries."""
    a, b = found.sorted(), expected.sorted()
    assert len(a) == len(b), f"{len(a)} (match, query) pairs, not {len(b)}"
    assert np.array_equal(a, b), "other matches, or for other queries"
