"""Which rows of a stream are stored for queries to come: what `history="window"` may see.

    stored     the rows from `first` on: at each commit the oldest row that `keep` or the window of a running query holds,
               and never an older one than at the commit before; all of them gone when nobody wants any

The row store may hold more, for the log; it never holds less. Between two changes of the windows the latest commit decides
alone, for the clock never goes back: so it is enough to settle when a window is about to come or go, or when somebody asks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from stems.own_ends import OwnEnds
from stems.row_ends import RowEnds
from windows.spec import FOREVER

if TYPE_CHECKING:
    from eddy.streams.source import Source


class Stored:
    """The rows of one stream that later queries may see."""

    __slots__ = ("_source", "keep_us", "first", "_settled")

    def __init__(self, source: Source, keep_us: int | None) -> None:
        self._source = source
        #: how long rows are kept without any query; None: not at all
        self.keep_us = keep_us
        self.first = 0
        #: the last commit that it has been settled for
        self._settled = 0

    def settle(self, seq: int) -> int:
        """The first position stored after commit `seq`, the last one; to be asked before a window comes or goes."""
        if seq > self._settled:
            self._settled = seq
            self.first = max(self.first, self._wanted())
        # a full engine lets go of rows between commits, too
        self.first = max(self.first, self._source.store.watermark)
        return self.first

    def _wanted(self) -> int:
        """The oldest position that `keep` or a window wants now, births aside."""
        source = self._source
        store, now = source.store, source.timeline.now
        oldest = store.end
        for window in source.placement.classes.outermost():
            column = source.row_ends.find(window.rows, window.partition)
            assert column is not None, "whoever counts rows holds their ends"
            first = max(self.first, store.first_after(now - window.width_us))
            own = source.own_ends
            oldest = min(oldest, column.oldest_alive(first) if own is None else self._oldest_in(column, own, first))
        by_width = source.placement.classes.by_width
        widest = max(self.keep_us or 0, by_width[-1].window.width_us if by_width else 0)
        return min(oldest, store.first_after(now - widest)) if widest else oldest

    def _oldest_in(self, column: RowEnds, own_ends: OwnEnds, first: int) -> int:
        """The first position from `first` on whose row is neither displaced nor over by itself. O(rows)."""
        store, now = self._source.store, self._source.timeline.now
        held = np.arange(max(first, column.since, store.watermark), store.end)
        alive = (column.ends_at(held, store.end) == FOREVER) & (own_ends.ends_at(held, FOREVER) > now)
        return int(held[np.argmax(alive)]) if alive.any() else store.end
