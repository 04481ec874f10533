"""The rows that leave the windows of one stream in a commit, as batches that serve all window lengths at once.

Each window length loses a stretch of positions. Where lengths are near each other these overlap, and a row is in a batch once,
for all of them. A part of the commit names a row once for every length that it left, for its ends differ:

    batch     the rows that left any window, in the order of their positions
    segment   the rows of the batch that left windows of one length, one behind the other
    part      the segments behind each other, widest window first: row k of a segment is row `shift + k` of the part

So the kernels run once for a batch, whatever the number of lengths, and list each query from its own segment.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from eddy.streams.expiry import Left
from eddy.streams.legs import WindowClass
from eddy.streams.outputs import FIRST, POSITION, SHIFT, STOP
from lineage.kernels import kernel
from stems.row_store import Page

if TYPE_CHECKING:
    from eddy.streams.source import Source

#: Rows of one part at most, each counted for every window length that it left.
MAX_PART_ROWS = 1 << 18


@kernel("int64(int64[::1], int64[::1], int64[::1], int64, int64, int64[:,::1], int64[:,::1], int64[::1])")
def lay_out_segments(
    numbers: np.ndarray, first: np.ndarray, last: np.ndarray, start: int, limit: int, segments: np.ndarray,
    stretches: np.ndarray, totals: np.ndarray,
) -> int:  # fmt: skip
    """Lay out the next batch of at most `limit` of the rows first[k]..last[k], which begin in ascending order.

    `start` is where the batch before ended. Fills in the segment of each class `numbers[k]` and the stretches of positions that
    make the batch, which do not touch each other; returns how many these are. `totals` gets the position where the batch ends,
    the rows of batch, part and longest segment, and whether no rows are left.
    """
    end = np.int64(start)
    room = np.int64(limit)
    for k in range(len(first)):
        low = max(first[k], end)
        if last[k] > low and room > 0:
            taken = min(last[k] - low, room)
            room -= taken
            end = low + taken
    n = 0
    n_rows = n_part = longest = np.int64(0)
    whole = True
    for k in range(len(first)):
        low = max(first[k], np.int64(start))
        high = min(last[k], end)
        whole &= last[k] <= end or last[k] <= low
        if high <= low:
            continue
        if n == 0 or low > stretches[n - 1, 1]:
            stretches[n, 0] = stretches[n, 1] = low
            n += 1
        # the batch ends where its last stretch does
        row = n_rows - (stretches[n - 1, 1] - low)
        if high > stretches[n - 1, 1]:
            n_rows += high - stretches[n - 1, 1]
            stretches[n - 1, 1] = high
        segment = segments[numbers[k]]
        segment[POSITION] = low
        segment[FIRST] = row
        segment[STOP] = row + high - low
        segment[SHIFT] = n_part - row
        n_part += high - low
        longest = max(longest, high - low)
    totals[0], totals[1], totals[2], totals[3], totals[4] = end, n_rows, n_part, longest, whole
    return n


class LeavingBatch:
    """Rows of a source that leave windows in a commit, from one or more pages, and the segment of each window class."""

    __slots__ = ("windows", "segments", "pieces", "n_rows", "n_part_rows", "longest", "last")

    def __init__(
        self, windows: Sequence[WindowClass], segments: np.ndarray, pieces: list[tuple[Page, int, int]], n_rows: int,
        n_part_rows: int, longest: int, last: bool,
    ) -> None:  # fmt: skip
        #: the window classes of the source that the clock ends, widest first
        self.windows = windows
        #: by number of window class (`eddy/streams/outputs.py`), and the rows of the longest
        self.segments = segments
        self.longest = longest
        #: where its rows are: offsets in pages
        self.pieces = pieces
        self.n_rows = n_rows
        self.n_part_rows = n_part_rows
        #: whether no more rows of the source leave in the commit
        self.last = last

    @property
    def has_nulls(self) -> bool:
        return any(page.nulls is not None for page, _, _ in self.pieces)


def leaving_batches(source: Source, left: Left, most: int) -> Iterator[LeavingBatch]:
    """The rows that left windows, at least one, in batches of at most `most` rows."""
    windows, numbers, first, last = left
    limit = max(1, min(most, MAX_PART_ROWS // len(windows)))
    stretches, totals = np.empty((len(windows), 2), np.int64), np.empty(5, np.int64)
    at, whole = int(first[0]), 0
    while not whole:
        segments = np.zeros((source.placement.classes.n_numbers, 4), np.int64)
        n = lay_out_segments(numbers, first, last, at, limit, segments, stretches, totals)
        at, n_rows, n_part_rows, longest, whole = totals.tolist()
        pieces = [piece for low, high in stretches[:n].tolist() for piece in source.store.slices(low, high)]
        yield LeavingBatch(windows, segments, pieces, n_rows, n_part_rows, longest, bool(whole))
