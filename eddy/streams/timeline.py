"""The clock rules: how the rows of a stream become ordered, and when windows move (semantics 1-6).

Per stream, an **intake**:

    front       the largest time released on the stream, or its timeline's last `advance` if later
    late        a row older than the front as it was when the push came; it takes the front as its effective time
                (`adjust`) or is dropped; its columns keep what was sent
    released    rows with effective time <= max(largest time seen - lateness, front), in order of (time, acceptance);
                the others wait. A late row, being at the front, never waits.
    expired     accepted rows with effective time <= `over`: they come when their life is over (`eddy/streams/expiry.py`)

Per timeline, one clock `T` = the largest front of its streams; it never goes back. A row of a stream that lags behind T
takes effect at once: its start is T.

Waiting rows are kept as sorted runs whose lengths grow geometrically, so a push costs O(rows + log waiting), amortised.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from eddy.base.checking import changing
from eddy.base.description import Receipt
from eddy.base.result_log import ResultLog
from lineage.elements import BEGINNING
from lineage.errors import LimitError
from lineage.kernels import READ_ONLY_INT64, kernel
from lineage.schema import Schema
from stems.newest_rows import RETRACTION

if TYPE_CHECKING:
    from eddy.streams.source import Source
    from eddy.streams.table_source import TableSource

NOTHING_ACCEPTED = Receipt(0, 0, None, None)
#: The number that stands for a retraction of the row at position 0; those of other positions are below it.
ROW_RETRACTION = RETRACTION - 1
#: Rows that may wait for stragglers on one stream.
MAX_WAITING = 10_000_000


@kernel((READ_ONLY_INT64,))
def ascending(times: np.ndarray) -> bool:
    # to the end, whatever is found: so several are compared at a time
    falls = 0
    for i in range(1, len(times)):
        falls |= times[i] < times[i - 1]
    return falls == 0


@dataclass(slots=True)
class Rows:
    """Columns of some rows of a stream with their effective times and row numbers, in order of (time, acceptance)."""

    n_rows: int
    cells: list[np.ndarray]
    nulls: list[np.ndarray | None]
    #: effective times, or one time for all
    times: np.ndarray | int
    #: row numbers, or the number of the first when they are consecutive; negative for retractions (`eddy/streams/retractions.py`)
    numbers: np.ndarray | int

    def time_at(self, i: int) -> int:
        return self.times if isinstance(self.times, int) else int(self.times[i])

    def take(self, order: np.ndarray) -> Rows:
        """These rows, copied."""
        times = np.full(len(order), self.times) if isinstance(self.times, int) else self.times[order]
        numbers = self.numbers + order if isinstance(self.numbers, int) else self.numbers[order]
        nulls = [None if column is None else column[order] for column in self.nulls]
        return Rows(len(order), [column[order] for column in self.cells], nulls, times, numbers)

    def split(self, at: int) -> tuple[Rows, Rows]:
        """The rows before `at` and the others, as views."""
        return self._part(0, at), self._part(at, self.n_rows)

    def _part(self, first: int, last: int) -> Rows:
        times = self.times if isinstance(self.times, int) else self.times[first:last]
        numbers = self.numbers + first if isinstance(self.numbers, int) else self.numbers[first:last]
        nulls = [None if column is None else column[first:last] for column in self.nulls]
        return Rows(last - first, [column[first:last] for column in self.cells], nulls, times, numbers)

    def count_until(self, time: int) -> int:
        """How many rows have an effective time up to `time`."""
        if isinstance(self.times, int):
            return self.n_rows if self.times <= time else 0
        return int(self.times.searchsorted(time, "right"))


def merge(older: Rows, newer: Rows) -> Rows:
    """Two ordered runs as one; ties go to the older."""
    older, newer = older.take(np.arange(older.n_rows)), newer.take(np.arange(newer.n_rows))
    nulls: list[np.ndarray | None] = []
    for a, b in zip(older.nulls, newer.nulls, strict=True):
        if a is None and b is None:
            nulls.append(None)
        else:
            parts = [np.zeros(run.n_rows, np.uint8) if column is None else column for run, column in ((older, a), (newer, b))]
            nulls.append(np.concatenate(parts))
    joined = Rows(
        older.n_rows + newer.n_rows,
        [np.concatenate([a, b]) for a, b in zip(older.cells, newer.cells, strict=True)],
        nulls,
        np.concatenate([older.times, newer.times]),
        np.concatenate([older.numbers, newer.numbers]),
    )
    assert isinstance(joined.times, np.ndarray)
    return joined.take(np.argsort(joined.times, kind="stable"))


@dataclass(slots=True)
class Intake:
    """The reorder buffer and the front of one stream."""

    lateness_us: int
    drop_late: bool
    front: int = BEGINNING
    #: the largest time any row of the stream has carried
    largest: int = BEGINNING
    #: number of the next row accepted
    next_row: int = 0
    late_rows: int = 0
    dropped_rows: int = 0
    expired_rows: int = 0
    #: rows that wait: ordered runs, older first, each more than twice as long as the next
    _waiting: list[Rows] = field(default_factory=list)

    @property
    def takes_back(self) -> bool:
        """Whether single rows may be taken back: none, but for a merged stream."""
        return False

    @property
    def n_waiting(self) -> int:
        return sum(run.n_rows for run in self._waiting)

    def released(self, row: int) -> bool:
        """Whether the row of that number, and all with smaller ones, have left the buffer."""
        waiting = [run.numbers for run in self._waiting]
        return not any(bool(((numbers <= row) & (numbers != RETRACTION)).any()) for numbers in map(np.atleast_1d, waiting))

    def check_room(self, n_rows: int) -> None:
        """Raise if so many more waiting rows would be too many."""
        if self.lateness_us and self.n_waiting + n_rows > MAX_WAITING:
            raise LimitError(f"more than {MAX_WAITING} rows wait for stragglers", hint="advance the timeline, or lower lateness")

    def accept_now(
        self, cells: list[np.ndarray], nulls: list[np.ndarray | None], n_rows: int, now: int, over: int = BEGINNING
    ) -> tuple[Rows | None, Receipt]:
        """Accept a push of a stream without a time column, at `now` or at the front if that is later; all rows are released."""
        if not n_rows:
            return None, NOTHING_ACCEPTED
        if now > self.front:
            self.front = self.largest = now
        first = self.next_row
        self.next_row = first + n_rows
        rows = Rows(n_rows, cells, nulls, self.front, first)
        return rows, Receipt(n_rows, 0, first, first + n_rows - 1, self._expired(rows, over))

    def accept(
        self, cells: list[np.ndarray], nulls: list[np.ndarray | None], n_rows: int, times: np.ndarray, over: int = BEGINNING
    ) -> tuple[Rows | None, Receipt]:
        """Accept a push whose rows carry `times`; returns the released rows, which move the front, and the receipt."""
        if not n_rows:
            return None, NOTHING_ACCEPTED
        rows, n_late = self._order(Rows(n_rows, cells, nulls, times, self.next_row), times)
        accepted = rows.n_rows
        if not accepted:
            return self._release(None, self.front), Receipt(0, n_late, None, None)
        first = self.next_row
        self.next_row += accepted
        self.largest = max(self.largest, rows.time_at(accepted - 1))
        expired = self._expired(rows, over)
        released = self._release(rows, max(self.largest - self.lateness_us, self.front))
        return released, Receipt(accepted, n_late, first, first + accepted - 1, expired)

    def _expired(self, rows: Rows, over: int) -> int:
        """The number of ordered rows with times up to `over`, added to the count of expired rows."""
        # no row is before the front
        if self.front > over or rows.time_at(0) > over:
            return 0
        expired = rows.count_until(over)
        self.expired_rows += expired
        return expired

    def accept_retractions(
        self, cells: list[np.ndarray], nulls: list[np.ndarray | None], n: int, time: int
    ) -> Rows | None:  # fmt: skip
        """Accept retractions (`eddy/streams/retractions.py`) of one time, at the front if late; returns the released rows."""
        self.largest = max(self.largest, time)
        rows = Rows(n, cells, nulls, np.full(n, max(time, self.front)), np.full(n, RETRACTION))
        return self._release(rows, max(self.largest - self.lateness_us, self.front))

    def _order(self, rows: Rows, times: np.ndarray) -> tuple[Rows, int]:
        """The rows sorted by effective time, late ones adjusted or dropped."""
        front = self.front
        if ascending(times) and int(times[0]) >= front:
            return rows, 0
        late = times < front
        n_late = int(np.count_nonzero(late))
        self.late_rows += n_late
        if n_late and self.drop_late:
            self.dropped_rows += n_late
            kept = np.flatnonzero(~late)
            rows = rows.take(kept)
            rows.numbers = self.next_row
        elif n_late:
            rows.times = np.maximum(times, front)
        assert isinstance(rows.times, np.ndarray)
        if not ascending(np.ascontiguousarray(rows.times)):
            rows = rows.take(np.argsort(rows.times, kind="stable"))
        return rows, n_late

    @changing
    def advance(self, time: int) -> Rows | None:
        """Release the waiting rows up to a time and move the front there: no later row has a smaller time."""
        released = self._release(None, time)
        self.front = max(self.front, time)
        return released

    def _release(self, rows: Rows | None, bound: int) -> Rows | None:
        """The waiting rows and those of `rows` up to the bound; later ones wait."""
        if not self._waiting and rows is not None and rows.n_rows and rows.time_at(rows.n_rows - 1) <= bound:
            self.front = max(self.front, rows.time_at(rows.n_rows - 1))
            return rows
        if rows is not None and rows.n_rows:
            self._wait(rows)
        released: Rows | None = None
        kept = []
        for run in self._waiting:
            assert isinstance(run.times, np.ndarray)
            at = int(np.searchsorted(run.times, bound, "right"))
            if at:
                part, run = run.split(at)
                released = part if released is None else merge(released, part)
            if run.n_rows:
                # a short rest lets go of the memory of the whole
                kept.append(run.take(np.arange(run.n_rows)) if at > run.n_rows else run)
        self._waiting = kept
        if released is not None:
            self.front = max(self.front, released.time_at(released.n_rows - 1))
        return released

    def due(self, clock: int, schema: Schema) -> Rows | None:
        """The planned retractions of single rows up to a clock, which are planned no more: none, but for a merged stream."""
        return None

    def row_bytes(self) -> int:
        """The greatest average cost of a row that waits, beyond what it costs once it is stored."""
        return 0

    def _wait(self, rows: Rows) -> None:
        run = rows.take(np.arange(rows.n_rows))
        while self._waiting and self._waiting[-1].n_rows <= 2 * run.n_rows:
            run = merge(self._waiting.pop(), run)
        self._waiting.append(run)

    def used_codes(self, column: int) -> list[np.ndarray]:
        """Codes of a string column among the waiting rows."""
        return [run.cells[column] for run in self._waiting]

    def recode(self, column: int, new_code: np.ndarray) -> None:
        for run in self._waiting:
            run.cells[column] = np.maximum(new_code[run.cells[column]], 0)

    def bytes(self) -> int:
        return sum(column.nbytes for run in self._waiting for column in run.cells)

    def check(self) -> None:
        for run in self._waiting:
            assert isinstance(run.times, np.ndarray)
            assert (np.diff(run.times) >= 0).all(), "a run is ordered"
            assert run.times[0] > self.front, "what is at or before the front has been released"


@dataclass(slots=True, eq=False)
class Timeline:
    """A set of streams with one clock."""

    name: str
    #: the clock T: the largest front of its streams
    now: int = BEGINNING
    #: the last `advance`
    advanced: int = BEGINNING
    #: its streams, in order of their creation
    sources: list[Source] = field(default_factory=list)
    #: those of them whose rows have ends of their own
    keyed: list[Source] = field(default_factory=list)
    #: the tables that queries on it read
    tables: list[TableSource] = field(default_factory=list)
    log: ResultLog = field(default_factory=ResultLog)


def effect_time(clock: int) -> int:
    """The time of a change that takes effect now; 0 while the timeline has no clock."""
    return 0 if clock == BEGINNING else clock
