"""When the rows of a stream leave a window that counts rows, as a column over its row store (semantics 8).

A row leaves `[ROWS n]` when the n-th newer row of the stream comes, and `[PARTITION BY k ROWS n]` when the n-th newer row of its
key does; that row **displaces** it:

    end[position] = start of the row that displaces it, FOREVER while none has

so a row lives during `[start, min(t + w, end))` in a window with `RANGE w`, and during `[start, end)` without. Starts ascend with
position, so do the ends within a key (and of all rows of a plain window).

One column serves every query with that n and those keys, whenever it began. A query counts rows from its birth on, and a row is
displaced by newer rows alone: those newer than a row the query counts are counted by it as well, so the n-th of them is the same
for all. The rows from before its birth get ends that it never looks at.

Rows come after a row was read, and then it ends at a time that may have been reached already: a row that takes effect at T
displaces at T. What was true after an earlier commit is asked with `taken`, the end of the store then: only the rows
before it displace. So next to the end a partitioned column keeps which row it was (`stems/partition_table.py`), and the other
way round; in a plain one it is the row n further on.

    since <= position < end = store.end     rows that have an entry, as long as the store holds them
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lineage.elements import FOREVER
from lineage.kernels import kernel
from lineage.schema import Type
from stems.paged_words import PagedWords
from stems.partition_table import PartitionTable, load_end, load_link, store_end
from stems.row_store import Page, RowStore

#: Rows of a page of ends, as a power of two: 32 KB.
ROW_BITS = 12
#: A link has 32 bits: further apart two rows of a key cannot be.
_MAX_HELD = 1 << 32

_NO_PAGES = np.zeros(1, np.int64)


@kernel("void(int64[::1], int64, int64, int64, int64[::1], int64)")
def shift_starts(starts: np.ndarray, first: int, n: int, low: int, ends: np.ndarray, bits: int) -> None:
    """Enter rows whose first has position `first`: each displaces the row n before it, if that is not below `low`."""
    for i in range(len(starts)):
        store_end(ends, bits, first + i, FOREVER)
        if first + i - n >= low:
            store_end(ends, bits, first + i - n, starts[i])


@kernel("void(int64[::1], int64, int64, int64[::1], boolean, int64[::1], int64, int64[::1])")
def gather_ends(
    positions: np.ndarray, taken: int, n: int, links: np.ndarray, plain: bool, ends: np.ndarray, bits: int, found: np.ndarray
) -> None:
    """The ends of rows, as far as rows before `taken` displace them."""
    for i in range(len(positions)):
        position = positions[i]
        end = load_end(ends, bits, position)
        if end != FOREVER:
            by = position + (n if plain else load_link(links, bits, position))
            if by >= taken:
                end = np.int64(FOREVER)
        found[i] = end


@kernel("void(int64[::1], int64[::1], int64, int64[::1])")
def gather_links(positions: np.ndarray, links: np.ndarray, bits: int, found: np.ndarray) -> None:
    """The rows that displaced rows with an end."""
    for i in range(len(positions)):
        found[i] = positions[i] + load_link(links, bits, positions[i])


@kernel("int64(int64, int64, int64, int64[::1], int64[::1], int64)")
def first_not_displaced(position: int, last: int, taken: int, links: np.ndarray, ends: np.ndarray, bits: int) -> int:
    """The first position up to `last` that no row before `taken` displaces."""
    while position < last:
        if load_end(ends, bits, position) == FOREVER or position + load_link(links, bits, position) >= taken:
            break
        position += 1
    return position


@kernel("int64(int64, int64, int64, int64[::1], int64, int64[::1])")
def list_displaced(first: int, last: int, low: int, backs: np.ndarray, bits: int, found: np.ndarray) -> int:
    """List the rows, not below `low`, that the rows first..last displaced; returns how many."""
    n = 0
    for position in range(first, last):
        back = load_link(backs, bits, position)
        if back != 0 and position - back >= low:
            found[n] = position - back
            n += 1
    return n


class RowEnds:
    """The ends of the rows of a store in windows of `rows` rows, of each key in the columns `partition` if there are any."""

    __slots__ = ("store", "rows", "since", "end", "_ends", "_links", "_backs", "_keys", "_low", "_lowest_alive")

    def __init__(self, store: RowStore, rows: int, partition: Sequence[int] = ()) -> None:
        self.store = store
        self.rows = rows
        self.since = self.end = store.end
        self._ends = PagedWords(ROW_BITS, 2)
        self._links = PagedWords(ROW_BITS, 1)
        self._backs = PagedWords(ROW_BITS, 1)
        #: None without PARTITION BY
        self._keys = PartitionTable(store.schema, partition) if partition else None
        #: the first row that is not forgotten; like `since` at first
        self._low = store.end
        #: of a partitioned column: rows before it were displaced when `move_to` was last told
        self._lowest_alive = store.end

    @property
    def partition(self) -> tuple[int, ...]:
        return self._keys.columns if self._keys is not None else ()

    # ---- in

    def build(self, page: Page, at: int, stop: int) -> None:
        """Rows at offsets at..stop of a page, the newest of the store, displace older ones."""
        first, last = page.base + at, page.base + stop
        assert first == self.end, "rows come in the order of their positions"
        starts = (page.times if page.starts is None else page.starts)[at:stop]
        self._ends.hold(first, last)
        if self._keys is None:
            shift_starts(starts, first, self.rows, self._low, self._ends.addresses, ROW_BITS)
        else:
            assert last - self._low < _MAX_HELD, "a link has 32 bits"
            self._links.hold(first, last)
            self._backs.hold(first, last)
            self._keys.enter(
                page, at, stop, starts, self.rows, self._ends.addresses, self._links.addresses, self._backs.addresses, ROW_BITS
            )
        self.end = last

    def rebuild(self, first: int) -> None:
        """Make the column anew for the rows held from `first` on: older ones, or texts with other codes. O(rows)."""
        self._clear(first)
        for page, at, stop in self.store.slices(first, self.store.end):
            self.build(page, at, stop)

    def _clear(self, position: int) -> None:
        for pages in (self._ends, self._links, self._backs):
            pages.clear()
        if self._keys is not None:
            self._keys.clear()
        self.since = self.end = self._low = self._lowest_alive = position

    # ---- out

    def ends_at(self, positions: np.ndarray, taken: int) -> np.ndarray:
        """The ends of rows that have an entry, in any order, when the rows before `taken` were there."""
        found = np.empty(len(positions), np.int64)
        links = _NO_PAGES if self._keys is None else self._links.addresses
        gather_ends(
            positions, taken, self.rows, links, self._keys is None, self._ends.addresses, ROW_BITS, found
        )  # fmt: skip
        return found

    def displacers(self, positions: np.ndarray) -> np.ndarray:
        """The rows that displaced rows with an end, in any order."""
        if self._keys is None:
            return positions + self.rows
        found = np.empty(len(positions), np.int64)
        gather_links(positions, self._links.addresses, ROW_BITS, found)
        return found

    def displaced_by(self, first: int, last: int) -> np.ndarray:
        """The rows held that the rows at positions first..last, which have an entry, displaced; ascending."""
        if self._keys is None:
            return np.arange(max(self._low, first - self.rows), max(self._low, last - self.rows))
        found = np.empty(last - first, np.int64)
        return np.sort(found[: list_displaced(first, last, self._low, self._backs.addresses, ROW_BITS, found)])

    def first_alive(self, taken: int) -> int:
        """A position below which every row was displaced when the rows before `taken` were there.

        Without PARTITION BY those from it on were not; with it, it is that of the last `move_to`, which must not have
        been told more than `taken`.
        """
        return max(self._low, taken - self.rows) if self._keys is None else self._lowest_alive

    def oldest_alive(self, first: int) -> int:
        """The first position from `first` on that no row has displaced; O(rows displaced from there on) with PARTITION BY."""
        first = max(first, self._low)
        if self._keys is None:
            return min(max(first, self.end - self.rows), self.end)
        return first_not_displaced(first, self.end, self.end, self._links.addresses, self._ends.addresses, ROW_BITS)

    def move_to(self, taken: int) -> int:
        """`first_alive` for the oldest `taken` that anybody will ask about from now on."""
        alive = self.alive_from(taken)
        if self._keys is not None:
            self._lowest_alive = alive
        return alive

    def alive_from(self, taken: int) -> int:
        """Return the position to which `move_to` would move. O(rows passed) with PARTITION BY."""
        if self._keys is None or self._lowest_alive >= min(taken, self.end):
            return self.first_alive(taken)
        return first_not_displaced(
            self._lowest_alive, min(taken, self.end), taken, self._links.addresses, self._ends.addresses, ROW_BITS
        )

    def page_addresses(self) -> tuple[int, np.ndarray]:
        """For kernels: `bits`, and where pages are. The end of a row is int64 word `position & (2 ** bits - 1)` of the page at
        `addresses[(position >> bits) & (len(addresses) - 1)]`; right until rows are built or forgotten."""
        return ROW_BITS, self._ends.addresses

    # ---- upkeep

    def forget(self, watermark: int) -> None:
        """The store is about to forget the rows below the watermark: it still holds them."""
        if watermark >= self.end:
            since = self.since
            self._clear(self.end)
            self.since = since
            return
        if watermark <= self._low:
            return
        if self._keys is not None:
            for page, at, stop in self.store.slices(self._low, watermark):
                kept = self.ends_at(np.arange(page.base + at, page.base + stop), self.end) == FOREVER
                if kept.any():
                    self._keys.leave(page, at + np.flatnonzero(kept), self._links.addresses, ROW_BITS)
        self._low = watermark
        self._lowest_alive = max(self._lowest_alive, watermark)
        for pages in (self._ends, self._links, self._backs):
            pages.drop_below(watermark)

    def row_bytes(self) -> int:
        """The greatest average cost of a row in bytes: its end, its links, and a place in a table that has just doubled."""
        return 8 if self._keys is None else 16 + self._keys.key_bytes()

    def bytes(self) -> int:
        """The memory of ends, links and keys, exactly."""
        return self._ends.bytes() + self._links.bytes() + self._backs.bytes() + (0 if self._keys is None else self._keys.bytes())

    def check(self) -> None:
        """All invariants: of the parts, and that each end and each key is what counting again gives."""
        assert self.end == self.store.end, "every row of the store is built"
        assert self.since <= self._low <= self.end and self.store.watermark <= self._low, "rows held have an entry"
        for pages in (self._ends, self._links, self._backs):
            pages.check()
        held: dict[tuple[int, ...], list[int]] = {}
        starts: dict[int, int] = {}
        for page, at, stop in self.store.slices(self._low, self.end):
            keys = (
                [()] * (stop - at) if self._keys is None else map(tuple, self._keys.keys_of(page, slice(at, stop))[0].T.tolist())
            )
            for position, key in zip(range(page.base + at, page.base + stop), keys, strict=True):
                held.setdefault(key, []).append(position)
            starts |= zip(range(page.base + at, page.base + stop), page.elements(slice(at, stop), 0).starts.tolist(), strict=True)
        for rows in held.values():
            newer = rows[self.rows :]
            ends = [*(starts[by] for by in newer), *[FOREVER] * (len(rows) - len(newer))]
            assert self.ends_at(np.array(rows), self.end).tolist() == ends, "the n-th newer row displaces"
            for position, by in zip(rows, newer):
                found = [self.ends_at(np.array([position]), taken)[0] for taken in (by, by + 1)]
                assert found == [FOREVER, starts[by]], "a row is displaced once its displacer is there"
        displaced = sorted(position for rows in held.values() for position in rows[: -self.rows])
        assert self.displaced_by(self._low, self.end).tolist() == displaced, "every row but the newest n is displaced by one"
        if self._keys is not None:
            self._keys.check()
            alive = {key: rows[-self.rows :] for key, rows in held.items()}
            expected = {key: (len(rows), rows[0], rows[-1]) for key, rows in alive.items()}
            assert self._keys.places() == expected, "a key has its newest rows"


class EndColumns:
    """The columns of ends over one row store: each made for the first query that needs it, shared, gone with the last."""

    def __init__(self, store: RowStore) -> None:
        self.store = store
        #: (n, partition) -> the column and how many users it has
        self.held: dict[tuple[int, tuple[int, ...]], tuple[RowEnds, int]] = {}

    def hold(self, rows: int, partition: tuple[int, ...]) -> RowEnds:
        """The column for windows of so many rows; it begins with the rows that come next. To be given back by `release`."""
        column, users = self.held.get((rows, partition)) or (RowEnds(self.store, rows, partition), 0)
        self.held[rows, partition] = (column, users + 1)
        return column

    def release(self, column: RowEnds) -> None:
        """One user less; the last one takes the column away."""
        key = (column.rows, column.partition)
        users = self.held[key][1] - 1
        if users:
            self.held[key] = (column, users)
        else:
            del self.held[key]

    def recall(self, column: RowEnds, first: int) -> None:
        """Have the ends of the rows held from `first` on, also of those from before the column was made. O(rows)."""
        if column.since > first:
            column.rebuild(first)

    def find(self, rows: int, partition: tuple[int, ...]) -> RowEnds | None:
        """Return the column if it is held."""
        held = self.held.get((rows, partition))
        return None if held is None else held[0]

    def build(self, page: Page, at: int, stop: int) -> None:
        """Rows just appended to the store, at offsets at..stop of a page."""
        for column, _ in self.held.values():
            column.build(page, at, stop)

    def forget(self, watermark: int) -> None:
        """The store is about to forget the rows below the watermark."""
        for column, _ in self.held.values():
            column.forget(watermark)

    def recode(self, column: int) -> None:
        """The dictionary of a string column was compacted, and the store recoded its rows. O(rows) for each partition by it."""
        assert self.store.schema.columns[column].type is Type.STRING, "only texts have codes"
        for ends, _ in self.held.values():
            if column in ends.partition:
                ends.rebuild(max(ends.since, self.store.watermark))

    def row_bytes(self) -> int:
        """The greatest average cost of a row in all columns, in bytes."""
        return sum(column.row_bytes() for column, _ in self.held.values())

    def bytes(self) -> int:
        return sum(column.bytes() for column, _ in self.held.values())

    def check(self) -> None:
        for key, (column, users) in self.held.items():
            assert users > 0 and key == (column.rows, column.partition), "a column is held iff it has users"
            column.check()
