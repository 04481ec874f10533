"""A histogram of durations. One thread adds; other threads may read, and see numbers that are a moment old."""

from __future__ import annotations

from bisect import bisect_left


class Timings:
    """Numbers of durations by size, and their sum."""

    #: seconds; a duration is counted under the first that is not smaller
    bounds = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)

    def __init__(self) -> None:
        #: one more than bounds: those that were longer than any
        self.counts = [0] * (len(self.bounds) + 1)
        self.seconds = 0.0

    def add(self, seconds: float) -> None:
        self.counts[bisect_left(self.bounds, seconds)] += 1
        self.seconds += seconds
