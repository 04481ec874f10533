"""Output rows of queries with operators in a commit, as a part for the listeners of `on_commit`."""

from __future__ import annotations

import numpy as np

from eddy.base.results import Results
from eddy.matching.row_lists import RowLists
from filters.values.vector import Array, Frame, ListFrame


class ResultRows:
    """Output rows of one sign, those of each query side by side; no two queries share one."""

    __slots__ = ("_results", "_queries")

    def __init__(self, results: Results, queries: Array | int) -> None:
        """`queries`: the number of each row's query, or of the only one."""
        self._results = results
        self._queries = queries if isinstance(queries, np.ndarray) else np.full(len(results), queries)

    @property
    def n_rows(self) -> int:
        return len(self._results)

    def frame(self) -> Frame:
        return ListFrame(self._results.columns, self.n_rows)

    def times(self) -> np.ndarray:
        return self._results.times

    def numbers(self) -> np.ndarray:
        """The places of the rows in the part: results of operators have no row numbers."""
        return np.arange(self.n_rows)

    def row_lists(self) -> RowLists:
        first = np.flatnonzero(np.append(True, self._queries[1:] != self._queries[:-1]))
        return self._queries[first], np.append(first, self.n_rows), np.arange(self.n_rows, dtype=np.int32)

    def counts(self) -> tuple[np.ndarray, np.ndarray]:
        queries, offsets, _ = self.row_lists()
        return queries, np.diff(offsets)
