"""The rows that leave the windows of one stream in a commit, as batches that serve all window lengths at once.

Each window length loses a stretch of positions. Where lengths are near each other these overlap, and a row is in a batch once,
for all of them. A part of the commit names a row once for every length that it left, for its ends differ:

    batch     the rows that left any window, in the order of their positions
    segment   the rows of the batch that left windows of one length, one behind the other
    part      the segments behind each other, widest window first: row k of a segment is row `shift + k` of the part

So the kernels run once for a batch, whatever the number of lengths, and list each query from its own segment (design 7).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from eddy.expiry import Left
from eddy.legs import WindowClass
from eddy.outputs import Segments
from lineage.kernels import kernel
from stems.row_store import Page

if TYPE_CHECKING:
    from eddy.source import Source

#: Rows of one part at most, each counted for every window length that it left.
MAX_PART_ROWS = 1 << 18


@kernel(
    "int64(int64[::1], int64[::1], int64[::1], int64, int64, int64[::1], int32[::1], int32[::1], int32[::1], int64[:,::1], "
    "int64[::1])"
)
def lay_out_segments(
    first: np.ndarray,
    last: np.ndarray,
    numbers: np.ndarray,
    start: int,
    limit: int,
    position: np.ndarray,
    segment_first: np.ndarray,
    segment_stop: np.ndarray,
    shift: np.ndarray,
    stretches: np.ndarray,
    totals: np.ndarray,
) -> int:
    """Lay out the next batch of at most `limit` of the rows first[k]..last[k], which begin in ascending order.

    `start` is where the batch before ended. Fills in the segment of each class `numbers[k]`, the stretches of positions that make
    the batch, without gaps in between, and in `totals` where it ends and the rows of batch and part; returns how many stretches
    there are.
    """
    end = np.int64(start)
    left = np.int64(limit)
    for k in range(len(first)):
        low = max(first[k], end)
        if last[k] > low:
            taken = min(last[k] - low, left)
            left -= taken
            end = low + taken
        if left == 0:
            break
    n = 0
    n_rows = n_part = np.int64(0)
    for k in range(len(first)):
        low = max(first[k], np.int64(start))
        high = min(last[k], end)
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
        c = numbers[k]
        position[c] = low
        segment_first[c] = row
        segment_stop[c] = row + high - low
        shift[c] = n_part - row
        n_part += high - low
    totals[0], totals[1], totals[2] = end, n_rows, n_part
    return n


class LeavingBatch:
    """Rows of a source that leave windows in a commit, of several pages, and the segment of each window class."""

    __slots__ = ("windows", "segments", "pieces", "n_rows", "n_part_rows", "last")

    def __init__(
        self, windows: Sequence[WindowClass], segments: Segments, pieces: list[tuple[Page, int, int]], n_rows: int,
        n_part_rows: int, last: bool,
    ) -> None:  # fmt: skip
        #: the window classes of the source that the clock ends, widest first
        self.windows = windows
        self.segments = segments
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
    """What left windows, at least one row, in batches of at most `most` rows."""
    windows, first, last = left
    limit = max(1, min(most, MAX_PART_ROWS // len(windows)))
    numbers = np.array([window.number for window in windows])
    stretches, totals = np.empty((len(windows), 2), np.int64), np.zeros(3, np.int64)
    at, end = int(first[0]), int(last[last > first].max())
    while at < end:
        n = source.n_class_numbers()
        segments = Segments(np.zeros(n, np.int64), np.zeros(n, np.int32), np.zeros(n, np.int32), np.zeros(n, np.int32))
        found = lay_out_segments(first, last, numbers, at, limit, *segments, stretches, totals)
        at, n_rows, n_part_rows = totals.tolist()
        pieces = [piece for low, high in stretches[:found].tolist() for piece in source.store.slices(low, high)]
        yield LeavingBatch(windows, segments, pieces, n_rows, n_part_rows, at >= end)
