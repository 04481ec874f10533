"""Counts of the rows carried by an edge between two operators; updated once a commit, never by row."""

from __future__ import annotations

import numpy as np

from windows.delta import Delta


class EdgeCounts:
    """Rows begun, ends sent as negative rows, and premature ends among these."""

    __slots__ = ("plus", "minus", "premature")

    def __init__(self) -> None:
        self.plus = 0.0
        self.minus = 0.0
        self.premature = 0.0

    def add(self, delta: Delta, sends_ends: bool) -> None:
        """Count one commit; an edge that does not send scheduled ends sends only premature ones."""
        self.plus += len(delta.plus.ids)
        ended = len(delta.minus.ids)
        if ended:
            self.minus += ended
            self.premature += int(np.count_nonzero(delta.minus.ranks >= 0)) if sends_ends else ended

    def halve(self) -> None:
        """Halve all counts, so that recent commits weigh more."""
        self.plus /= 2
        self.minus /= 2
        self.premature /= 2
