"""The changes of one query with operators in a commit, as a part for the listeners of `on_commit`."""

from __future__ import annotations

import numpy as np

from eddy.base.results import Results
from eddy.matching.row_lists import RowLists
from filters.values.vector import Frame, ListFrame


class ResultRows:
    """Output rows of one query, all of one sign; a single list, for no other query shares them."""

    __slots__ = ("_query", "_results")

    def __init__(self, query: int, results: Results) -> None:
        self._query = query
        self._results = results

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
        return np.array([self._query]), np.array([0, self.n_rows]), np.arange(self.n_rows, dtype=np.int32)

    def counts(self) -> tuple[np.ndarray, np.ndarray]:
        return np.array([self._query]), np.array([self.n_rows])
