"""Elements: rows with their lives, and the signed changes that a life implies (semantics 4, 6).

    alive at T    start <= T < end
    +             takes effect at the start
    -             takes effect at the end; a life without end has one after every clock

The end is known when the row comes, so a scheduled - is never stored or sent: it follows from the element.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

#: Before every time that a row can have: the clock before there is one.
BEGINNING = -(2**62)
#: Larger than any time: the end of a life that has none, and the length of one that the clock does not end.
FOREVER = 2**62


class Elements(NamedTuple):
    """Lives of some rows, in microseconds."""

    starts: np.ndarray
    ends: np.ndarray

    def alive_at(self, clock: int) -> np.ndarray:
        """Which rows are alive."""
        alive: np.ndarray = (self.starts <= clock) & (clock < self.ends)
        return alive

    def times(self, sign: int) -> np.ndarray:
        """When the changes of that sign take effect."""
        return self.starts if sign > 0 else self.ends
