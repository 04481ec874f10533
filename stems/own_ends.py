"""The own ends of a stream's rows, which hold in every window, as columns over its row store (semantics 34).

    end[position]      the earliest of
                           scheduled    what its `end` column says, FOREVER if that is NULL or there is none
                           replaced     the start of the next row with its key
                           retracted    the time of a retraction, of its key or of the row itself, that found it alive
    commit[position]   the commit that lowered the end below what was scheduled, 0 while none did

A row whose end is not after its start is never alive. One column serves every query. What was true after an earlier commit
is asked with its number: what later ones lowered counts as scheduled. Ends do not ascend with positions.

Rows enter after those of a whole commit are stored, together with its retractions, in the order in which they take effect:
joins, which alone ask for ends, come later (`eddy/commit/committer.py`).

    low <= position < end = store.end between commits     rows that have an entry
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lineage.elements import FOREVER
from lineage.kernels import kernel
from stems.gathering import Gatherer
from stems.newest_rows import RETRACTION, Events, NewestRows
from stems.paged_words import PagedWords
from stems.partition_table import load_end, store_end
from stems.row_ends import ROW_BITS
from stems.row_store import Page, RowStore

#: Stands for an end that was lowered after the commit in question.
_LOWERED_LATER = -(2**63)
_NO_ROWS = np.zeros(0, np.int64)
#: After every commit there is.
_LATEST = 2**62


@kernel("void(int64[::1], int64, int64[::1], int64)")
def put_ends(scheduled: np.ndarray, first: int, ends: np.ndarray, bits: int) -> None:
    """The ends of rows whose first has position `first`."""
    for i in range(len(scheduled)):
        store_end(ends, bits, first + i, scheduled[i])


@kernel("int64(int64[::1], int64, int64[::1], int64[::1], int64, int64[::1])")
def gather_own_ends(
    positions: np.ndarray, commit: int, ends: np.ndarray, commits: np.ndarray, bits: int, found: np.ndarray
) -> int:
    """The ends of rows after a commit; returns how many were lowered later, for which `_LOWERED_LATER` stands."""
    later = np.int64(0)
    for i in range(len(positions)):
        end = load_end(ends, bits, positions[i])
        if load_end(commits, bits, positions[i]) > commit:
            end = np.int64(_LOWERED_LATER)
            later += 1
        found[i] = end
    return int(later)


@kernel("int64(int64, int64, int64, int64, int64[::1], int64[::1], int64)")
def first_not_over(position: int, last: int, clock: int, commit: int, ends: np.ndarray, commits: np.ndarray, bits: int) -> int:
    """The first position up to `last` whose row was not over at a clock, after a commit; or was ended since."""
    while position < last:
        if load_end(ends, bits, position) > clock or load_end(commits, bits, position) > commit:
            break
        position += 1
    return position


@kernel("void(int64[::1], int64[::1], int64, int64, int64[::1], int64[::1], int64, int64[:,::1], int64[::1])")
def end_rows(
    positions: np.ndarray, starts: np.ndarray, low: int, commit: int, ends: np.ndarray, commits: np.ndarray, bits: int,
    lowered: np.ndarray, counts: np.ndarray,
) -> None:  # fmt: skip
    """End rows that are alive, listed in `lowered` with the number of the event; `counts` are those ended, and those over."""
    for i in range(len(positions)):
        position = positions[i]
        if position >= low and load_end(ends, bits, position) > starts[i]:
            store_end(ends, bits, position, starts[i])
            store_end(commits, bits, position, commit)
            lowered[0, counts[0]] = position
            lowered[1, counts[0]] = i
            counts[0] += 1
        else:
            counts[1] += 1


class Retractions(NamedTuple):
    """Retractions of one commit by key: 64-bit cells and NULL bytes of their key columns, when they take effect, and how many of
    the commit's rows come before each."""

    cells: list[np.ndarray]
    nulls: list[np.ndarray | None]
    starts: np.ndarray
    rows_before: np.ndarray


class RowRetractions(NamedTuple):
    """Retractions of one commit by row: positions, when they take effect, and how many of the commit's rows come before each."""

    positions: np.ndarray
    starts: np.ndarray
    rows_before: np.ndarray


class TakenOut(NamedTuple):
    """The retractions of one stream in one commit, each kind in the order in which they take effect."""

    by_key: Retractions | None
    by_row: RowRetractions | None


NOTHING_TAKEN_OUT = TakenOut(None, None)


class OwnEnds:
    """The own ends of the rows of a store: by key, by a column that holds them, by retractions of single rows."""

    def __init__(
        self, store: RowStore, gatherer: Gatherer, key: tuple[int, ...], end_column: int | None, by_row: bool = False
    ) -> None:  # fmt: skip
        self.store = store
        self.gatherer = gatherer
        self.end_column = end_column
        #: whether single rows are retracted
        self.by_row = by_row
        #: None if the stream has no key
        self.keys = NewestRows(store.schema, key) if key else None
        self.end = self._low = store.end
        #: rows before it were over when `move_to` was last told
        self._lowest_alive = store.end
        self._ends = PagedWords(ROW_BITS, 2)
        self._commits = PagedWords(ROW_BITS, 2)
        #: the last commit, and the rows whose ends it lowered, ascending, with the places of what did
        self._commit = 0
        self._lowered = _NO_ROWS
        self._places = _NO_ROWS
        #: rows that were over when they came, rows replaced and retracted, keys of retractions that had no live row
        self.n_over = self.n_replaced = self.n_retracted = self.n_unknown = 0

    # ---- in

    def settle(self, commit: int, retractions: TakenOut) -> None:
        """End the rows that a commit's stored rows and retractions end."""
        first, last = self.end, self.store.end
        self._commit, self._lowered, self._places, self.end = commit, _NO_ROWS, _NO_ROWS, last
        if last > first:
            self._ends.hold(first, last)
            self._commits.hold(first, last)
            for page, at, stop in self.store.slices(first, last):
                scheduled = self._scheduled_of(page, at, stop)
                self.n_over += int(np.count_nonzero(scheduled <= page.elements(slice(at, stop), 0).starts))
                put_ends(scheduled, page.base + at, self._ends.addresses, ROW_BITS)
        if retractions.by_row is not None:
            self._end_rows(retractions.by_row, commit)
        if self.keys is not None and (last > first or retractions.by_key is not None):
            events = self._events(first, retractions.by_key)
            (lowered, by), counts = self._enter(events, commit)
            self.n_replaced += int(counts[0])
            self.n_retracted += int(counts[1]) - self._list(lowered, _places(events, first)[by])
            self.n_unknown += int(counts[2])

    def _end_rows(self, retractions: RowRetractions, commit: int) -> None:
        """End single rows; those already over are counted."""
        n = len(retractions.positions)
        lowered, counts = np.empty((2, n), np.int64), np.zeros(2, np.int64)
        end_rows(
            retractions.positions, retractions.starts, self._low, commit, self._ends.addresses, self._commits.addresses, ROW_BITS,
            lowered, counts,
        )  # fmt: skip
        ended, by = lowered[:, : counts[0]]
        self._list(ended, 2 * retractions.rows_before[by])
        self.n_retracted += int(counts[0])
        self.n_unknown += int(counts[1])

    def _list(self, lowered: np.ndarray, places: np.ndarray) -> int:
        """Add rows to those whose ends this commit lowered; returns how many of them were among these: ended earlier still."""
        n = len(lowered) + len(self._lowered)
        positions = np.concatenate([lowered, self._lowered])
        self._lowered, first = np.unique(positions, return_index=True)
        self._places = np.concatenate([places, self._places])[first]
        return n - len(self._lowered)

    def _enter(self, events: Events, commit: int) -> tuple[np.ndarray, np.ndarray]:
        assert self.keys is not None
        return self.keys.end_older(events, commit, self._ends.addresses, self._commits.addresses, ROW_BITS)

    def _events(self, first: int, retractions: Retractions | None) -> Events:
        """The rows from `first` on, and retractions between them."""
        assert self.keys is not None
        keys, hashes, starts = [], [], []
        for page, at, stop in self.store.slices(first, self.store.end):
            page_keys, page_hashes = self.keys.keys_of(page, slice(at, stop))
            keys.append(page_keys)
            hashes.append(page_hashes)
            starts.append(page.elements(slice(at, stop), 0).starts)
        positions = np.arange(first, self.store.end)
        order = None
        if retractions is not None:
            n = len(retractions.starts)
            more_keys, more_hashes = self.keys.fold(retractions.cells, retractions.nulls, n)
            keys.append(more_keys)
            hashes.append(more_hashes)
            starts.append(retractions.starts)
            # one that has k rows before it stands between row k - 1 and row k
            order = np.argsort(np.concatenate([np.arange(len(positions)), retractions.rows_before - 0.5]), kind="stable")
            positions = np.concatenate([positions, np.full(n, RETRACTION)])
        events = Events(np.concatenate(keys, axis=1), np.concatenate(hashes), positions, np.concatenate(starts))
        if order is None:
            return events
        return Events(np.ascontiguousarray(events.keys[:, order]), *(column[order] for column in events[1:]))

    # ---- out

    def ends_at(self, positions: np.ndarray, commit: int) -> np.ndarray:
        """The ends of rows that have an entry, in any order, as they were after a commit."""
        found = np.empty(len(positions), np.int64)
        if gather_own_ends(positions, commit, self._ends.addresses, self._commits.addresses, ROW_BITS, found):
            later = np.flatnonzero(found == _LOWERED_LATER)
            found[later] = self.scheduled(positions[later])
        return found

    @property
    def n_scheduled(self) -> int:
        """No fewer than the rows whose own end the clock will reach."""
        return 0 if self.end_column is None else self.end - self._lowest_alive

    def ends_between(self, after: int, until: int) -> np.ndarray:
        """The ends in (after, until] of rows that have an entry, in order."""
        ends = self.ends_at(np.arange(self._lowest_alive, self.end), _LATEST)
        return np.sort(ends[(ends > after) & (ends <= until)])

    def scheduled(self, positions: np.ndarray) -> np.ndarray:
        """The ends of rows as they came."""
        if self.end_column is None:
            return np.full(len(positions), FOREVER)
        cells, nulls = self.gatherer.cells(self.end_column, positions)
        return cells if nulls is None else np.where(nulls != 0, FOREVER, cells)

    def _scheduled_of(self, page: Page, at: int, stop: int) -> np.ndarray:
        if self.end_column is None:
            return np.full(stop - at, FOREVER)
        cells = page.cells[self.end_column, at:stop]
        return cells.copy() if page.nulls is None else np.where(page.nulls[self.end_column, at:stop] != 0, FOREVER, cells)

    def alive_at_first(self, positions: np.ndarray) -> np.ndarray:
        """Which rows were not over when they came."""
        came: np.ndarray = self.scheduled(positions) > self.gatherer.lives(positions)[1]
        return came

    def lowered_in(self, commit: int) -> np.ndarray:
        """The rows whose ends a commit, which is the last one or later, lowered; ascending."""
        return self._lowered if commit == self._commit else _NO_ROWS

    def places_of(self, positions: np.ndarray) -> np.ndarray:
        """Where in the last commit the ends of rows were lowered: 2 k + 1 by its k-th row of the stream, from 0, and 2 k by a
        retraction that has k rows before it; -1 where none was."""
        if not len(self._lowered):
            return np.full(len(positions), -1)
        at = np.minimum(np.searchsorted(self._lowered, positions), len(self._lowered) - 1)
        found: np.ndarray = np.where(self._lowered[at] == positions, self._places[at], -1)
        return found

    def first_alive(self) -> int:
        """A position below which every row was over when `move_to` was last told."""
        return self._lowest_alive

    def move_to(self, clock: int, commit: int) -> int:
        """`first_alive`, from now on: nobody asks for an earlier clock or commit any more. O(rows passed)."""
        self._lowest_alive = self.alive_from(clock, commit)
        return self._lowest_alive

    def alive_from(self, clock: int, commit: int) -> int:
        """Return the position to which `move_to` would move."""
        return first_not_over(
            self._lowest_alive, self.end, clock, commit, self._ends.addresses, self._commits.addresses, ROW_BITS
        )

    # ---- upkeep

    def forget(self, watermark: int) -> None:
        """The store is about to forget the rows below the watermark: it still holds them."""
        if watermark <= self._low:
            return
        if watermark >= self.end:
            self._clear()
        else:
            if self.keys is not None:
                for page, at, stop in self.store.slices(self._low, watermark):
                    self.keys.leave_all(page, at, stop)
            for pages in (self._ends, self._commits):
                pages.drop_below(watermark)
        self._low = watermark
        self._lowest_alive = max(self._lowest_alive, watermark)

    def _clear(self) -> None:
        for pages in (self._ends, self._commits):
            pages.clear()
        if self.keys is not None:
            self.keys.clear()

    def recode(self, column: int) -> None:
        """The dictionary of a string column was compacted, and the store recoded its rows. O(rows) if it is in the key."""
        if self.keys is not None and column in self.keys.columns:
            self.keys.clear()
            if self._low < self.end:
                lowered, _ = self._enter(self._events(self._low, None), 0)
                assert not lowered.size, "rows that come again end nobody"

    def row_bytes(self) -> int:
        """The greatest average cost of a row in bytes."""
        return 16 + (0 if self.keys is None else self.keys.key_bytes())

    def bytes(self) -> int:
        """The memory of ends, commits and keys, exactly."""
        return self._ends.bytes() + self._commits.bytes() + (0 if self.keys is None else self.keys.bytes())

    def stats(self) -> dict[str, int]:
        return {
            "over": self.n_over,
            "replaced": self.n_replaced,
            "retracted": self.n_retracted,
            "unknown_keys": self.n_unknown,
            "keys": 0 if self.keys is None else self.keys.n_keys,
        }

    def check(self) -> None:
        """Assert all invariants: of the parts, and that ends and keys follow from the rows and retractions."""
        assert self.end == self.store.end, "every row of the store has an entry"
        assert self.store.watermark <= self._low <= self._lowest_alive <= self.end, "rows held have an entry"
        held = np.arange(self._low, self.end)
        ends, scheduled = self.ends_at(held, 2**62), self.scheduled(held)
        commits = np.array([self._commits.record(position).view(np.int64)[0] for position in held.tolist()], np.int64)
        assert (ends <= scheduled).all(), "no end is later than scheduled"
        assert ((ends < scheduled) == (commits > 0)).all(), "a lowered end has its commit"
        assert (self.ends_at(held, 0) == scheduled).all(), "before any commit ends are as scheduled"
        if self.keys is None:
            assert self.by_row or not (commits > 0).any(), "only keys and retractions end rows early"
            return
        self.keys.check()
        newest: dict[tuple[int, ...], int] = {}
        for page, at, stop in self.store.slices(self._low, self.end):
            starts = page.elements(slice(at, stop), 0).starts
            for i, key in enumerate(map(tuple, self.keys.keys_of(page, slice(at, stop))[0].T.tolist())):
                position = page.base + at + i
                if key in newest:
                    assert ends[newest[key] - self._low] <= starts[i], "a row ends the one of its key before it"
                newest[key] = position
        assert self.keys.places() == {key: (1, position, position) for key, position in newest.items()}, (
            "a key has its newest row"
        )


def _places(events: Events, first: int) -> np.ndarray:
    """The places of events among the rows from `first` on; see `OwnEnds.places_of`."""
    is_row = events.positions != RETRACTION
    found: np.ndarray = 2 * (np.cumsum(is_row) - is_row) + is_row
    return found
