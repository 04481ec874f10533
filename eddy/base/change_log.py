"""Logged changes of one query with operators, by commit: operators cannot be asked about the past.

    held       the changes of commits that the timeline's log still has, at most `log_rows` rows of them, and never less than
               those of the newest commit
    own        those of commits that opened the query, or that it has for itself: by commit
    stretches  those of commits in which it had a seat of a template: they are in the log of that (`eddy/base/seat_log.py`)
    lost       commits up to this one are not held, or were never logged
    open       whether changes are logged: from the start of the query, but those of an aggregate from its first reader on

An aggregate changes with every commit, and its changes mostly have no reader: an unread log is given up once it has
`UNREAD_BYTES`, and begins again with its first reader (`docs/decisions/0013-aggregates-are-logged-for-readers.md`).

Bytes are those of arrays and texts, with a fixed addition for the objects around them: the same changes always have the same
bytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from eddy.base.log_bounds import LogBounds
from eddy.base.packed_results import pack, unpack
from eddy.base.result_log import UNREAD_BYTES, ChangeLogs
from eddy.base.results import Results, size_of
from eddy.base.seat_log import SeatLog

#: What is dumped beside the changes.
_REST = ("_sizes", "_among", "_bounds", "_stretches", "_seat", "aggregate", "bytes", "_lost", "read")


@dataclass(slots=True)
class Stretch:
    """The commits in which a query had a seat and was logged: after `after`, up to `until` (None: still)."""

    log: SeatLog
    seat: int
    after: int
    until: int | None = None

    @property
    def lost(self) -> int:
        """The last of its commits that is not held."""
        return self.log.lost if self.log.lost > self.after else 0


class ChangeLog:
    """The changes of one query by commit, oldest first; listed in its timeline's `ChangeLogs` while changes are logged."""

    __slots__ = ("_parts", "_sizes", "_n_rows", "_among", "_bounds", "_stretches", "_seat", "aggregate", "bytes", "_lost", "read")

    def __init__(self, among: ChangeLogs, bounds: LogBounds, aggregate: bool) -> None:
        #: by commit, of those that changed anything
        self._parts: dict[int, list[Results]] = {}
        self._sizes: dict[int, int] = {}
        self._n_rows = 0
        self._among = among
        self._bounds = bounds
        self._stretches: list[Stretch] = []
        #: the log and the seat of its template, while it has one
        self._seat: tuple[SeatLog, int] | None = None
        #: whether it is given up while nobody reads it
        self.aggregate = aggregate
        #: of the changes that it has for itself
        self.bytes = 0
        self._lost = 0
        #: whether anybody has asked for it
        self.read = False

    def __getstate__(self) -> tuple[Any, ...]:
        counts = {seq: len(parts) for seq, parts in self._parts.items()}
        packed = pack([part for parts in self._parts.values() for part in parts])
        return counts, packed, *(getattr(self, name) for name in _REST)

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        counts, packed, *rest = state
        for name, value in zip(_REST, rest, strict=True):
            setattr(self, name, value)
        results = iter(unpack(packed))
        self._parts = {seq: [next(results) for _ in range(n)] for seq, n in counts.items()}
        self._n_rows = sum(len(part) for parts in self._parts.values() for part in parts)

    @property
    def open(self) -> bool:
        return self in self._among.logs

    @property
    def unread(self) -> bool:
        """Whether the log may be given up: an aggregate's, without a reader so far."""
        return self.aggregate and not self.read

    @property
    def lost(self) -> int:
        """The last commit whose changes are gone."""
        return max([self._lost, *(stretch.lost for stretch in self._stretches)])

    @property
    def held_bytes(self) -> int:
        """The bytes of all changes held."""
        return self.bytes + sum(stretch.log.bytes_of(stretch.seat) for stretch in self._stretches)

    # ---- what is logged

    def begin(self, seq: int) -> None:
        """Log the changes of commits after `seq`, the last one."""
        if not self.open:
            self._among.logs[self] = None
            self._sit_down(seq)

    def sit(self, log: SeatLog, seat: int, seq: int) -> None:
        """Take the changes of commits after `seq` from a seat of a template."""
        self._seat = log, seat
        if self.open:
            self._sit_down(seq)

    def _sit_down(self, seq: int) -> None:
        if self._seat is not None:
            log, seat = self._seat
            log.begin(seat, self)
            self._stretches.append(Stretch(log, seat, seq))

    def stand_up(self, seq: int) -> None:
        """Take no more changes from the seat after commit `seq`: the query stops running."""
        if self._seat is not None and self.open:
            self._stretches[-1].until = seq
            self._leave()
        self._seat = None

    def _leave(self) -> None:
        """Log the changes of the seat no more."""
        assert self._seat is not None, "it has a seat"
        log, seat = self._seat
        log.end(seat)

    def mark_read(self) -> None:
        """Note that somebody has asked for changes: they are not given up any more."""
        self.read = True
        if self._seat is not None:
            log, seat = self._seat
            log.unread.pop(seat, None)

    def close(self) -> None:
        """Drop all changes and stop logging: the log has no reader."""
        if self._seat is not None and self.open:
            self._leave()
        self._clear()
        self._among.logs.pop(self, None)

    def gives_up(self, seq: int) -> bool:
        """Drop an unread log that has grown too large; returns whether it did. `seq` is the last commit."""
        if not self.unread or self.held_bytes <= UNREAD_BYTES:
            return False
        self.close()
        self._lost = seq
        return True

    def lose(self, seq: int) -> None:
        """Note that changes up to commit `seq` were not logged."""
        self._clear()
        self._lost = seq

    # ---- changes

    def append(self, seq: int, parts: list[Results]) -> None:
        """Log changes that the query has for itself in a commit; drops the oldest commits if there are too many rows."""
        if parts and self.open:
            size = sum(map(size_of, parts))
            self._parts[seq], self._sizes[seq] = parts, size
            self._n_rows += sum(map(len, parts))
            self._count(size)
            self._among.added += size
            while self._n_rows > self._bounds.rows and len(self._parts) > 1:
                self._drop(next(iter(self._parts)))

    def at(self, seq: int) -> list[Results]:
        """The changes of one commit."""
        own = self._parts.get(seq)
        if own is not None:
            return own
        for stretch in self._stretches:
            if stretch.after < seq and (stretch.until is None or seq <= stretch.until):
                return stretch.log.at(seq, stretch.seat)
        return []

    def forget(self, gone: int) -> None:
        """Drop the changes of commits up to `gone`."""
        while self._parts and (oldest := next(iter(self._parts))) <= gone:
            self._drop(oldest)
        for stretch in [one for one in self._stretches if one.until is not None and one.until <= gone]:
            self._stretches.remove(stretch)
            self._lost = max(self._lost, stretch.until or 0)
            stretch.log.let_go()

    def _drop(self, seq: int) -> None:
        self._n_rows -= sum(map(len, self._parts.pop(seq)))
        self._count(-self._sizes.pop(seq))
        self._lost = seq

    def _count(self, n_bytes: int) -> None:
        self.bytes += n_bytes
        self._among.bytes += n_bytes

    def _clear(self) -> None:
        self._parts.clear()
        self._sizes.clear()
        self._n_rows = 0
        self._count(-self.bytes)
        stretches, self._stretches = self._stretches, []
        for stretch in stretches:
            stretch.log.let_go()

    def sizes(self) -> Iterator[tuple[int, int]]:
        """The bytes of each commit that it holds for itself."""
        return iter(self._sizes.items())
