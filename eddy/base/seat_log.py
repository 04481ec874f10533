"""Logged changes of the queries of one template, by commit: their rows once, by seat.

    block      the changes of one commit: rows in order of seats, and where the rows of each seat begin
    logged     the seats whose changes are kept; rows of others are not in later blocks
    lost       commits up to this one are no longer held

A query finds its changes by its seat and the commits in which it had it (`eddy/base/change_log.py`). The log holds at most
`log_rows` rows for each logged seat, and never less than the newest commit.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from eddy.base.log_bounds import LogBounds
from eddy.base.packed_results import pack, unpack
from eddy.base.result_log import ChangeLogs
from eddy.base.results import Results, size_of
from filters.values.vector import Array
from lineage.growth import LEAST, fitted, room_for

if TYPE_CHECKING:
    from eddy.base.change_log import ChangeLog

#: What is dumped beside the blocks.
_REST = ("_sizes", "_among", "_bounds", "logged", "n_logged", "n_held", "unread", "_bytes_of", "bytes", "lost")


class CommitBlock(NamedTuple):
    """The changes of one commit."""

    results: Results
    #: the seats that have any, ascending, and the place of the first row of each and behind the last
    seats: Array
    at: Array


class SeatLog:
    """The changes of the seats of one template; listed in its timeline's `ChangeLogs` while any seat is logged."""

    __slots__ = (
        "_blocks", "_sizes", "_n_rows", "_among", "_bounds", "logged", "n_logged", "n_held", "unread", "_bytes_of", "bytes",
        "lost",
    )  # fmt: skip

    def __init__(self, among: ChangeLogs, bounds: LogBounds) -> None:
        self._blocks: dict[int, CommitBlock] = {}
        self._sizes: dict[int, int] = {}
        self._n_rows = 0
        self._among = among
        self._bounds = bounds
        #: by seat: whether it is logged, and the bytes of its rows
        self.logged = np.zeros(LEAST, np.bool_)
        self._bytes_of = np.zeros(LEAST, np.int64)
        self.n_logged = 0
        #: stretches of commits that a query may read
        self.n_held = 0
        #: by seat, logs that are given up when they are too large
        self.unread: dict[int, ChangeLog] = {}
        self.bytes = 0
        self.lost = 0

    def __getstate__(self) -> tuple[object, ...]:
        spans = {seq: (block.seats, block.at) for seq, block in self._blocks.items()}
        packed = pack([block.results for block in self._blocks.values()])
        rest = [getattr(self, name) for name in _REST]
        return spans, packed, *rest

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        spans, packed, *rest = state
        for name, value in zip(_REST, rest, strict=True):
            setattr(self, name, value)
        self._blocks = {seq: CommitBlock(found, *span) for (seq, span), found in zip(spans.items(), unpack(packed), strict=True)}
        self._n_rows = sum(len(block.results) for block in self._blocks.values())

    def begin(self, seat: int, log: ChangeLog) -> None:
        """Log the changes of a seat from now on, for the log of its query; that lets go of it when it reads them no more."""
        self._fit(seat)
        self.logged[seat], self._bytes_of[seat] = True, 0
        self.n_logged += 1
        self.n_held += 1
        if log.unread:
            self.unread[seat] = log
        self._among.logs[self] = None

    def _fit(self, seat: int) -> None:
        """Make room for a seat."""
        if seat >= len(self.logged):
            size = room_for(seat + 1, len(self.logged))
            self.logged, self._bytes_of = fitted(self.logged, size), fitted(self._bytes_of, size)

    def end(self, seat: int) -> None:
        """Log the changes of a seat no more; those logged stay."""
        self.logged[seat] = False
        self.n_logged -= 1
        self.unread.pop(seat, None)

    def let_go(self) -> None:
        """One stretch less may be read; with the last all changes go."""
        self.n_held -= 1
        if not self.n_held:
            for seq in list(self._blocks):
                self._drop(seq)
            self._among.logs.pop(self, None)

    def bytes_of(self, seat: int) -> int:
        """The bytes of the rows of a seat since it is logged."""
        return int(self._bytes_of[seat])

    def append(self, seq: int, results: Results, seats: Array) -> None:
        """Log the changes of a commit, in order of seats; drops the oldest commits if there are too many rows."""
        if not self.n_logged or not len(seats):
            return
        self._fit(int(seats[-1]))
        if not self.logged[seats].all():
            kept = np.flatnonzero(self.logged[seats])
            results, seats = results.take(kept), seats[kept]
        if not len(seats):
            return
        first = np.flatnonzero(np.append(True, seats[1:] != seats[:-1]))
        block = self._blocks[seq] = CommitBlock(results, seats[first], np.append(first, len(seats)))
        size = self._sizes[seq] = size_of(results)
        self._count(block, size)
        self._among.added += size
        while self._n_rows > self._bounds.rows * self.n_logged and len(self._blocks) > 1:
            self._drop(next(iter(self._blocks)))
        for log in list(self.unread.values()):
            log.gives_up(seq)

    def at(self, seq: int, seat: int) -> list[Results]:
        """The changes of a seat in a commit."""
        block = self._blocks.get(seq)
        if block is None:
            return []
        place = int(np.searchsorted(block.seats, seat))
        if place == len(block.seats) or block.seats[place] != seat:
            return []
        return [block.results.take(slice(int(block.at[place]), int(block.at[place + 1])))]

    def forget(self, gone: int) -> None:
        """Drop the changes of commits up to `gone`."""
        while self._blocks and (oldest := next(iter(self._blocks))) <= gone:
            self._drop(oldest)

    def _drop(self, seq: int) -> None:
        self._count(self._blocks.pop(seq), -self._sizes.pop(seq))
        self.lost = seq

    def _count(self, block: CommitBlock, size: int) -> None:
        n_rows = len(block.results)
        self._n_rows += n_rows if size > 0 else -n_rows
        self.bytes += size
        self._among.bytes += size
        np.add.at(self._bytes_of, block.seats, np.diff(block.at) * size // n_rows)

    def sizes(self) -> Iterator[tuple[int, int]]:
        """The bytes of each commit that is held."""
        return iter(self._sizes.items())
