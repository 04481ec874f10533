"""Which rows of a stream are stored for queries to come: what `history="window"` may see.

    stored     the rows from `first` on: at each commit the oldest row that `keep` or the window of a running query holds,
               and never an older one than at the commit before; all of them gone when nobody wants any

The row store may hold more, for the log; it never holds less. Between two changes of the windows the latest commit decides
alone, for the clock never goes back: so it is enough to settle when a window is about to come or go, or when somebody asks.
"""

from __future__ import annotations

from collections.abc import Callable

from stems.row_store import RowStore


class Stored:
    """The rows of one stream that later queries may see."""

    __slots__ = ("keep_us", "first", "_settled")

    def __init__(self, keep_us: int | None) -> None:
        #: how long rows are kept without any query; None: not at all
        self.keep_us = keep_us
        self.first = 0
        #: the last commit that it has been settled for
        self._settled = 0

    def settle(self, seq: int, store: RowStore, wanted: Callable[[], int]) -> int:
        """The first position stored after commit `seq`, the last one; `wanted` tells the oldest that somebody wants."""
        if seq > self._settled:
            self._settled = seq
            self.first = max(self.first, wanted())
        # a full engine lets go of rows between commits, too
        self.first = max(self.first, store.watermark)
        return self.first
