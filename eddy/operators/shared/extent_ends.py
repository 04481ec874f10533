"""The ends of extents that are rows of their own, of one window in steps over one stream, whatever queries show them.

As ends of windows that move with the clock they are counted once for the stream, not for each query (`eddy/commit/ends.py`): so
neither the way in which rows expire nor what queries share tells where a call is cut. Without bounds a row of such a window ends
once, and is counted with the window that holds it.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from eddy.operators.shared.shared_window import WindowRange
from eddy.streams.source import Source
from windows.operators.slide import count_extents
from windows.spec import WindowSpec


class ExtentEnds:
    """Counts the extents of the rows that are there."""

    __slots__ = ("_source", "_window", "_first")

    def __init__(self, source: Source, window: WindowSpec) -> None:
        self._source = source
        self._window = window
        self._first = WindowRange(source, window).low(source.timeline.now)

    def most_ends(self, upto: int) -> int:
        """An upper bound on the number of extents up to an instant."""
        slide = self._window.slide_us
        passed = upto // slide - self._source.timeline.now // slide
        return (self._source.store.end - self._first) * min(passed, self._window.width_us // slide + 1)

    def count_ends(self, upto: int) -> Callable[[int], int]:
        """The number of extents shown by an instant <= `upto`; O(rows) once, then O(log rows)."""
        times, starts = self._source.gatherer.lives(np.arange(self._first, self._source.store.end))
        slide, width = self._window.slide_us, self._window.width_us
        first, last = (starts // slide + 1) * slide, (times + width) // slide * slide
        shown = first <= last
        return count_extents(first[shown], last[shown], slide, self._source.timeline.now)
