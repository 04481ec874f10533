"""Logged changes of one query with operators, by commit: operators cannot be asked about the past.

    held       the changes of commits that the timeline's log still has, at most `log_rows` rows of them, and never less than
               those of the newest commit
    lost       commits up to this one are not held, or were never logged
    open       whether changes are logged: from the start of the query, but those of an aggregate from its first reader on

An aggregate changes with every commit, and its changes mostly have no reader: an unread log is given up once it has
`UNREAD_BYTES`, and begins again with its first reader (`docs/decisions/0013-aggregates-are-logged-for-readers.md`).

Bytes are those of arrays and texts, with a fixed addition for the objects around them: the same changes always have the same
bytes.
"""

from __future__ import annotations

from collections.abc import Iterator

from eddy.base.log_bounds import LogBounds
from eddy.base.packed_results import PackedResults, pack, unpack
from eddy.base.result_log import UNREAD_BYTES, ChangeLogs
from eddy.base.results import Results
from filters.values.vector import Vector

#: What the objects of a part take beside its cells, and those of each of its columns.
_PART_BYTES = 512
_COLUMN_BYTES = 256


def size_of(part: Results) -> int:
    """The bytes of a batch of changes."""
    n_bytes = _PART_BYTES + part.times.nbytes + (0 if isinstance(part.sign, int) else part.sign.nbytes)
    return n_bytes + sum(map(_column_size, part.columns))


def _column_size(column: Vector) -> int:
    n_bytes = _COLUMN_BYTES + column.values.nbytes
    codes = column.values
    if column.nulls is not None:
        n_bytes += column.nulls.nbytes
        codes = codes[~column.nulls]
    if column.dictionary is not None:
        n_bytes += sum(map(len, column.dictionary[codes].tolist()))
    return n_bytes


class ChangeLog:
    """The changes of one query by commit, oldest first; listed in its timeline's `ChangeLogs` while changes are logged."""

    __slots__ = ("_parts", "_sizes", "_n_rows", "_among", "_bounds", "aggregate", "bytes", "lost", "read")

    def __init__(self, among: ChangeLogs, bounds: LogBounds, aggregate: bool) -> None:
        #: by commit, of those that changed anything
        self._parts: dict[int, list[Results]] = {}
        self._sizes: dict[int, int] = {}
        self._n_rows = 0
        self._among = among
        self._bounds = bounds
        #: whether it is given up while nobody reads it
        self.aggregate = aggregate
        self.bytes = 0
        #: the last commit whose changes are gone
        self.lost = 0
        #: whether anybody has asked for it
        self.read = False

    def __getstate__(self) -> tuple[object, ...]:
        return (
            {seq: len(parts) for seq, parts in self._parts.items()},
            pack(list(self.parts())),
            self._sizes,
            self._among,
            self._bounds,
            self.aggregate,
            self.bytes,
            self.lost,
            self.read,
        )

    def __setstate__(
        self, state: tuple[dict[int, int], PackedResults | None, dict[int, int], ChangeLogs, LogBounds, bool, int, int, bool]
    ) -> None:
        counts, packed, self._sizes, self._among, self._bounds, self.aggregate, self.bytes, self.lost, self.read = state
        results = iter(unpack(packed))
        self._parts = {seq: [next(results) for _ in range(n)] for seq, n in counts.items()}
        self._n_rows = sum(map(len, self.parts()))

    @property
    def open(self) -> bool:
        return self in self._among.logs

    @property
    def unread(self) -> bool:
        """Whether the log may be given up: an aggregate's, without a reader so far."""
        return self.aggregate and not self.read

    def begin(self) -> None:
        """Log changes from now on."""
        self._among.logs[self] = None

    def close(self) -> None:
        """Drop all changes and stop logging: the log has no reader."""
        self._clear()
        self._among.logs.pop(self, None)

    def parts(self) -> Iterator[Results]:
        """All changes held, oldest first."""
        return (part for parts in self._parts.values() for part in parts)

    def append(self, seq: int, parts: list[Results]) -> None:
        """Log the changes of a commit; drops the oldest commits if there are too many rows."""
        if parts and self.open:
            size = sum(map(size_of, parts))
            self._parts[seq], self._sizes[seq] = parts, size
            self._n_rows += sum(map(len, parts))
            self._count(size)
            self._among.added += size
            while self._n_rows > self._bounds.rows and len(self._parts) > 1:
                self._drop(next(iter(self._parts)))

    def gives_up(self, seq: int) -> bool:
        """Drop an unread log that has grown too large; returns whether it did. `seq` is the last commit."""
        if not self.unread or self.bytes <= UNREAD_BYTES:
            return False
        self.close()
        self.lost = seq
        return True

    def forget(self, gone: int) -> None:
        """Drop the changes of commits up to `gone`."""
        while self._parts and (oldest := next(iter(self._parts))) <= gone:
            self._drop(oldest)

    def _drop(self, seq: int) -> None:
        self._n_rows -= sum(map(len, self._parts.pop(seq)))
        self._count(-self._sizes.pop(seq))
        self.lost = seq

    def _count(self, n_bytes: int) -> None:
        self.bytes += n_bytes
        self._among.bytes += n_bytes

    def _clear(self) -> None:
        self._parts.clear()
        self._sizes.clear()
        self._n_rows = 0
        self._count(-self.bytes)

    def lose(self, seq: int) -> None:
        """Note that changes up to commit `seq` were not logged."""
        self._clear()
        self.lost = seq

    def at(self, seq: int) -> list[Results]:
        """The changes of one commit."""
        return self._parts.get(seq, [])

    def sizes(self) -> Iterator[tuple[int, int]]:
        """The bytes of each commit that is held."""
        return iter(self._sizes.items())
