"""The row store of one stream: a ring of pages, one copy of each row whatever the number of queries.

A row's **position** is its place in the order in which the stream took its rows; it never changes. Effective times do not
decrease with position, so "the rows alive in a window of width w" is a range of positions and expiry moves a pointer:

    watermark <= position < end        the rows held; whole pages below the watermark are given back
    time[p] <= time[p + 1]             effective times ascend
    start[p] = max(time[p], T when it was taken)

A page holds `PAGE_ROWS` rows as one `int64[columns, rows]` block of cells (see `lineage/schema.py`), NULL bytes once a row in
it has one, effective times, starts once one differs from its time, region ids per grouped filter (the compact lineage of
a row: 4 bytes an attribute, never query bits), and one byte per predicate module with the outcome for each row.

Columns may be added behind those of the schema and taken away again (`stems/derived.py`); `append` leaves their cells to who
added them. All pages have room for as many columns as the store, which doubles: adding many copies each row O(log) times.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from lineage.elements import Elements
from lineage.kernels import kernel
from lineage.memory import load_int64
from lineage.schema import Column, Schema, Type

#: Rows in a page, a power of two. Large enough that a batch of 4096 seldom meets its end, small enough to give memory back soon.
PAGE_ROWS = 1 << 14
#: Empty pages kept for reuse, as long as there are more that are not: fresh memory costs up to half the speed of a push.
_SPARE_PAGES = 4


@kernel("void(int64[::1], int64, int64, int64, int64[::1], int64[::1], int64[::1])")
def search_times(
    pages: np.ndarray, origin: int, bits: int, end: int, times: np.ndarray, lows: np.ndarray, found: np.ndarray
) -> None:
    """`found[k]` = the first position from `lows[k]` on whose time is greater than `times[k]`; `pages` is where times are."""
    mask = (np.int64(1) << bits) - 1
    for k in range(len(times)):
        # all before `at` are not after the time, all from `stop` on are
        at = lows[k]
        stop = np.int64(end)
        step = np.int64(1)
        while at < stop:
            middle = min(at + step - 1, (at + stop) >> 1)
            offset = middle - origin
            if load_int64(pages[np.uint64(offset >> bits)], offset & mask) <= times[k]:
                at = middle + 1
                step <<= 1
            else:
                stop = middle
        found[k] = at


class Page:
    """Rows `base .. base + n_rows` of a store."""

    __slots__ = (
        "base",
        "n_rows",
        "cells",
        "address",
        "times_address",
        "floats",
        "columns",
        "nulls",
        "times",
        "starts",
        "row_shift",
        "row_numbers",
        "ids",
        "_ids_address",
        "outcomes",
    )

    def __init__(self, is_float: list[bool], width: int) -> None:
        self.base = 0
        self.n_rows = 0
        self._take(np.empty((width, PAGE_ROWS), np.int64), np.empty(PAGE_ROWS, np.int64), is_float)
        #: None while no row of the page has a NULL
        self.nulls: np.ndarray | None = None
        #: None while every start is the row's time
        self.starts: np.ndarray | None = None
        #: row number minus position, while that is one number for the whole page
        self.row_shift = 0
        self.row_numbers: np.ndarray | None = None
        #: region ids [filters, rows]; None while none are kept
        self.ids: np.ndarray | None = None
        self._ids_address = 0
        #: predicate module -> outcome of each row (`filters/expressions/residual.py`)
        self.outcomes: dict[int, np.ndarray] = {}

    def _take(self, cells: np.ndarray, times: np.ndarray, is_float: list[bool]) -> None:
        """Have this memory."""
        self.cells, self.times = cells, times
        #: where the cells are, and the times, for kernels that look at rows of many pages
        self.address, self.times_address = int(cells.ctypes.data), int(times.ctypes.data)
        #: the same memory as floats, and the columns of the schema as what each holds
        self.floats = cells.view(np.float64)
        self.columns = [(self.floats if floating else cells)[c] for c, floating in enumerate(is_float)]

    def __getstate__(self) -> tuple[object, ...]:
        """Only the rows that it has: the last page of a store is mostly empty."""
        n = self.n_rows

        def held(array: np.ndarray | None) -> np.ndarray | None:
            return array if array is None or n == PAGE_ROWS else array[..., :n]

        return (
            self.base, n, self.row_shift, [column.dtype == np.float64 for column in self.columns], held(self.cells),
            held(self.times), held(self.nulls), held(self.starts), held(self.row_numbers), held(self.ids),
            {module: held(outcome) for module, outcome in self.outcomes.items()},
        )  # fmt: skip

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.base, self.n_rows, self.row_shift, is_float = state[:4]
        cells, times, self.nulls, self.starts, self.row_numbers, ids = map(_whole, state[4:10])
        self._take(cells, times, is_float)
        self.ids, self._ids_address = None, 0
        if ids is not None:
            self.put_ids(ids)
        self.outcomes = {module: _whole(outcome) for module, outcome in state[10].items()}

    def resize(self, width: int) -> None:
        """Have room for so many columns; those that there is room for stay as they are."""
        kept, n = min(width, len(self.cells)), self.n_rows
        cells = np.empty((width, PAGE_ROWS), np.int64)
        cells[:kept, :n] = self.cells[:kept, :n]
        if self.nulls is not None:
            nulls = np.zeros((width, PAGE_ROWS), np.uint8)
            nulls[:kept, :n] = self.nulls[:kept, :n]
            self.nulls = nulls
        self._take(cells, self.times, [column.dtype == np.float64 for column in self.columns])

    def clear(self, base: int) -> None:
        self.base, self.n_rows, self.row_shift = base, 0, 0
        self.nulls = self.starts = self.row_numbers = self.ids = None
        self.outcomes = {}

    def ids_address(self, filter_: int) -> int:
        """Where the region ids of a filter are; 0 if none are kept."""
        return self._ids_address + filter_ * self.ids.strides[0] if self.ids is not None and filter_ < len(self.ids) else 0

    def put_ids(self, ids: np.ndarray) -> None:
        self.ids = ids
        self._ids_address = int(ids.ctypes.data)

    def elements(self, at: np.ndarray | slice, width_us: int) -> Elements:
        """The lives of rows in a window of that width."""
        times = self.times[at]
        return Elements(times if self.starts is None else self.starts[at], times + width_us)

    def rows_of(self, first: int, last: int) -> np.ndarray:
        """Row numbers of the rows at offsets first..last."""
        if self.row_numbers is not None:
            return self.row_numbers[first:last]
        shift = self.base + self.row_shift
        return np.arange(first + shift, last + shift)

    def number(self, at: int, stop: int, rows: np.ndarray | int) -> None:
        """Number rows that do not just go on from those before them."""
        if isinstance(rows, int):
            shift = rows - (self.base + at)
            if self.row_numbers is None and (at == 0 or shift == self.row_shift):
                self.row_shift = shift
                return
            rows = np.arange(rows, rows + stop - at)
        if self.row_numbers is None:
            held = self.rows_of(0, at)
            self.row_numbers = np.empty(PAGE_ROWS, np.int64)
            self.row_numbers[:at] = held
        self.row_numbers[at:stop] = rows


def _whole(held: Any) -> Any:
    """An array of a page, from the rows it had."""
    if held is None or held.shape[-1] == PAGE_ROWS:
        return held
    whole = np.zeros((*held.shape[:-1], PAGE_ROWS), held.dtype)
    whole[..., : held.shape[-1]] = held
    return whole


class RowStore:
    """The pages of one stream between watermark and end."""

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        #: the rows of a page as a power of two, for kernels that look at rows of many pages
        self.page_bits = PAGE_ROWS.bit_length() - 1
        #: those of the schema, then those that were added; a place that is free has the type NULL
        self.columns: list[Column] = list(schema.columns)
        #: columns that a page has room for
        self._width = len(schema)
        self._is_float = [column.type is Type.FLOAT for column in schema.columns]
        #: the pages held, oldest first
        self.pages: list[Page] = []
        self._spare: list[Page] = []
        #: position of the first row of the first page
        self._base = 0
        self.end = 0
        self.watermark = 0
        #: the time of the newest row in pages that were given back; None while there is none
        self._forgotten_us: int | None = None
        self._no_nulls = np.zeros((1, 1), np.uint8)
        #: of the pages held, the address of the cells, and that of the times; None until asked for
        self._addresses: np.ndarray | None = None
        self._times_addresses: np.ndarray | None = None
        #: counts changes of the pages held and of the arrays they have
        self.version = 0
        self.outcomes = Outcomes(self)

    def __getstate__(self) -> dict[str, object]:
        return {**vars(self), "_spare": [], "_addresses": None, "_times_addresses": None}

    # ---- in

    def room(self) -> int:
        """Rows that still fit in the last page; makes a page when there is none."""
        if not self.pages or self.pages[-1].n_rows == PAGE_ROWS:
            page = self._spare.pop() if self._spare else Page(self._is_float, self._width)
            if not self.pages:
                self._base = self.end
            page.clear(self.end)
            self.pages.append(page)
            self._pages_changed()
        return PAGE_ROWS - self.pages[-1].n_rows

    def _pages_changed(self) -> None:
        self._addresses = self._times_addresses = None
        self.version += 1

    def append(
        self, cells: Sequence[np.ndarray], nulls: Sequence[np.ndarray | None], first: int, last: int, times: np.ndarray | int,
        taken_at: int, rows: np.ndarray | int,
    ) -> tuple[Page, int]:  # fmt: skip
        """Copy rows first..last of the given columns behind the end; they must fit in `room()`.

        `times` are effective times of those rows (or one time), `taken_at` the clock T before the commit, `rows` their row
        numbers (or the number of the first). Returns the page and the offset of the first row in it.
        """
        page = self.pages[-1]
        at = page.n_rows
        n_rows = last - first
        stop = at + n_rows
        if n_rows == len(cells[0]):
            for target, values in zip(page.columns, cells):
                target[at:stop] = values
        else:
            for target, values in zip(page.columns, cells):
                target[at:stop] = values[first:last]
        for c, column in enumerate(nulls):
            if column is not None:
                self._nullable(page)[c, at:stop] = column[first:last]
        page.times[at:stop] = times
        earliest = times if isinstance(times, int) else int(times[0])
        if earliest < taken_at or page.starts is not None:
            if page.starts is None:
                page.starts = np.empty(PAGE_ROWS, np.int64)
                page.starts[:at] = page.times[:at]
                self.version += 1
            np.maximum(page.times[at:stop], taken_at, out=page.starts[at:stop])
        if not isinstance(rows, int) or not at or page.row_numbers is not None or rows - self.end != page.row_shift:
            page.number(at, stop, rows)
        page.n_rows = stop
        self.end += n_rows
        return page, at

    def _nullable(self, page: Page) -> np.ndarray:
        """The NULL bytes of a page, made if it has none."""
        if page.nulls is None:
            page.nulls = np.zeros((self._width, PAGE_ROWS), np.uint8)
            self.version += 1
        return page.nulls

    # ---- columns behind those of the schema

    def add_column(self, column: Column) -> int:
        """Its position; what its cells are is for the caller to say, by `put`. O(rows) now and then."""
        free = (at for at in range(len(self.schema), len(self.columns)) if self.columns[at].type is Type.NULL)
        position = next(free, len(self.columns))
        if position == len(self.columns):
            self.columns.append(column)
            if position == self._width:
                self._resize(max(position + 1, 2 * self._width - len(self.schema)))
        else:
            self.columns[position] = column
        return position

    def drop_column(self, position: int) -> None:
        """Nobody reads the column any more; memory goes when most of it is not used. O(rows) then."""
        assert position >= len(self.schema), "columns of the schema stay"
        self.columns[position] = Column("", Type.NULL)
        while len(self.columns) > len(self.schema) and self.columns[-1].type is Type.NULL:
            self.columns.pop()
        added, room = len(self.columns) - len(self.schema), self._width - len(self.schema)
        if 4 * added <= room:
            self._resize(len(self.columns))

    def _resize(self, width: int) -> None:
        self._width = width
        self._spare = []
        for page in self.pages:
            page.resize(width)
        self._pages_changed()

    def put(self, page: Page, at: int, column: int, cells: np.ndarray, nulls: np.ndarray | None) -> None:
        """Write the cells of an added column for rows of a page, and where they are NULL."""
        stop = at + len(cells)
        page.cells[column, at:stop] = cells
        if nulls is not None:
            self._nullable(page)[column, at:stop] = nulls
        elif page.nulls is not None:
            page.nulls[column, at:stop] = 0

    def ids_of(self, page: Page, filter_: int) -> np.ndarray:
        """Where the region ids of one grouped filter are kept for the rows of a page."""
        held = page.ids
        if held is None or len(held) <= filter_:
            grown = np.zeros((filter_ + 1, PAGE_ROWS), np.int32)
            if held is not None:
                grown[: len(held)] = held
            page.put_ids(grown)
            self.version += 1
            held = grown
        ids: np.ndarray = held[filter_]
        return ids

    # ---- out

    def nulls_of(self, page: Page) -> np.ndarray:
        """The NULL bytes of a page as a kernel takes them; a dummy when it has none."""
        return self._no_nulls if page.nulls is None else page.nulls

    def slices(self, first: int, last: int) -> Iterator[tuple[Page, int, int]]:
        """The parts of pages that hold positions first..last: (page, from offset, to offset)."""
        first = max(first, self._base)
        while first < last:
            page = self.pages[(first - self._base) // PAGE_ROWS]
            at = first - page.base
            stop = min(page.n_rows, last - page.base)
            yield page, at, stop
            first = page.base + stop

    def by_page(self, positions: np.ndarray) -> Iterator[tuple[Page, np.ndarray]]:
        """Positions held, grouped by page: (page, indices into `positions`)."""
        pages = (positions - self._base) // PAGE_ROWS
        for number in np.unique(pages).tolist():
            yield self.pages[number], np.flatnonzero(pages == number)

    def elements_at(self, positions: np.ndarray, width_us: int) -> Elements:
        """The lives, in a window of that width, of rows at positions held, in any order."""
        starts, ends = np.empty(len(positions), np.int64), np.empty(len(positions), np.int64)
        for page, which in self.by_page(positions):
            starts[which], ends[which] = page.elements(positions[which] - page.base, width_us)
        return Elements(starts, ends)

    def numbers_at(self, positions: np.ndarray) -> np.ndarray:
        """The row numbers of rows at positions held."""
        numbers = np.empty(len(positions), np.int64)
        for page, which in self.by_page(positions):
            numbers[which] = page.rows_of(0, page.n_rows)[positions[which] - page.base]
        return numbers

    def page_addresses(self) -> tuple[int, np.ndarray]:
        """The position of the first page's first row, and where the cells of each page are; right until pages come or go."""
        if self._addresses is None:
            self._addresses = np.array([page.address for page in self.pages], np.int64)
        return self._base, self._addresses

    def first_after(self, time: int) -> int:
        """The first position held whose effective time is greater than `time`; the end if there is none."""
        return int(self.first_after_each(np.array([time]), np.array([self._base]))[0])

    def first_after_each(self, times: np.ndarray, lows: np.ndarray) -> np.ndarray:
        """The same for each of several times, from a position on that is not below the first page. O(log of the distance)."""
        if self._times_addresses is None:
            self._times_addresses = np.array([page.times_address for page in self.pages], np.int64)
        found = np.empty(len(times), np.int64)
        search_times(self._times_addresses, self._base, self.page_bits, self.end, times, lows, found)
        return found

    def time_at(self, position: int) -> int:
        page = self.pages[(position - self._base) // PAGE_ROWS]
        return int(page.times[position - page.base])

    def time_before(self, position: int) -> int | None:
        """The time of the row before a position that is not below the watermark, held or not; None if there never was one."""
        return self.time_at(position - 1) if position > self._base else self._forgotten_us

    def find_row(self, row: int) -> int | None:
        """The position of a row number, None if it is not held."""
        for page in reversed(self.pages):
            if page.row_numbers is None:
                position = row - page.row_shift
                if page.base <= position < page.base + page.n_rows:
                    return position if position >= self.watermark else None
            else:
                found = np.flatnonzero(page.row_numbers[: page.n_rows] == row)
                if len(found):
                    position = page.base + int(found[0])
                    return position if position >= self.watermark else None
        return None

    # ---- upkeep

    def forget(self, watermark: int) -> None:
        """Rows below the watermark are no longer needed; whole pages of them are given back."""
        assert self.watermark <= watermark <= self.end, "the watermark only moves forward, up to the end"
        self.watermark = watermark
        n = 0
        while n < len(self.pages) and self.pages[n].base + self.pages[n].n_rows <= watermark:
            # a page that may still take rows stays, unless all it holds is gone
            n += 1
        if n:
            n_spare = min(_SPARE_PAGES, len(self.pages) - n - 1)
            self._spare = [*self._spare, *self.pages[:n]][: max(0, n_spare)]
            last = self.pages[n - 1]
            self._forgotten_us = int(last.times[last.n_rows - 1])
            del self.pages[:n]
            self._pages_changed()
            self._base = self.pages[0].base if self.pages else self.end

    def close_ranks(self, kept: np.ndarray) -> None:
        """Only the rows at these positions stay; they move up to the end, in their order, and take new positions there.

        For rows that do not leave in the order they came (a table's), so that a few old ones do not hold the pages of the
        others. Whoever holds a position or an index of it has to look again. O(rows kept).
        """
        groups = [(page, kept[which] - page.base) for page, which in self.by_page(kept)]
        self.end = self.watermark = self._base = self.end - len(kept)
        self.pages = []
        self._pages_changed()
        for page, offsets in groups:
            assert page.starts is None and page.ids is None, "these rows have no starts and no region ids"
            numbers = page.rows_of(0, page.n_rows)
            self._copy_rows(page, offsets, numbers)

    def _copy_rows(self, page: Page, offsets: np.ndarray, numbers: np.ndarray) -> None:
        """Append rows of a page that is no longer held, with their outcomes."""
        while len(offsets):
            some, offsets = np.split(offsets, [self.room()])
            nulls = [None if page.nulls is None else page.nulls[c, some] for c in range(len(self.columns))]
            cells = [column[some] for column in page.columns]
            target, at = self.append(cells, nulls, 0, len(some), page.times[some], int(page.times[some[0]]), numbers[some])
            for c in range(len(self.schema), len(self.columns)):
                self.put(target, at, c, page.cells[c, some], nulls[c])
            for module, outcome in page.outcomes.items():
                self.outcomes.keep(target, at, module, outcome[some])

    def recode(self, column: int, new_code: np.ndarray) -> None:
        """The dictionary of a string column was compacted: replace the codes of the rows held."""
        for page in self.pages:
            codes = page.cells[column, : page.n_rows]
            np.take(new_code, codes, out=codes, mode="clip")
            np.maximum(codes, 0, out=codes)

    def used_codes(self, column: int) -> np.ndarray:
        """The distinct codes of a string column among the rows held."""
        parts = [np.unique(page.cells[column, at:stop]) for page, at, stop in self.slices(self.watermark, self.end)]
        return np.unique(np.concatenate(parts)) if parts else np.zeros(0, np.int64)

    def row_bytes(self) -> int:
        """Bytes of one row without NULL bytes, ids and outcomes."""
        return 8 * (self._width + 1)

    def bytes(self) -> int:
        """Bytes of the rows held, exactly by what each page keeps."""
        total = 0
        for page, at, stop in self.slices(self.watermark, self.end):
            width = self.row_bytes() + len(page.outcomes)
            width += 0 if page.nulls is None else self._width
            width += 0 if page.starts is None else 8
            width += 0 if page.row_numbers is None else 8
            width += 0 if page.ids is None else 4 * page.ids.shape[0]
            total += width * (stop - at)
        return total

    def check(self) -> None:
        """All invariants of the docstring."""
        assert self._base <= self.watermark or not self.pages, "the first page reaches the watermark"
        assert self.watermark <= self.end
        position = self._base
        last = None
        for page in self.pages:
            assert page.base == position, "pages follow each other"
            assert page is self.pages[-1] or page.n_rows == PAGE_ROWS, "only the last page has room"
            times = page.times[: page.n_rows]
            assert (np.diff(times) >= 0).all() and (last is None or not len(times) or last <= times[0]), "times ascend"
            assert (page.elements(slice(page.n_rows), 0).starts >= times).all(), "no row starts before its time"
            last = int(times[-1]) if len(times) else last
            position += page.n_rows
        assert position == self.end or not self.pages, "the last page reaches the end"
        assert all(len(page.cells) == self._width >= len(self.columns) for page in self.pages), "pages have room for all columns"
        assert tuple(self.columns[: len(self.schema)]) == self.schema.columns, "the columns of the schema come first"


class Outcomes:
    """The outcomes of predicate modules that are kept with the rows of a store, by the module's number."""

    __slots__ = ("_store",)

    def __init__(self, store: RowStore) -> None:
        self._store = store

    def _of(self, page: Page, module: int) -> np.ndarray:
        held = page.outcomes.get(module)
        if held is None:
            held = page.outcomes[module] = np.zeros(PAGE_ROWS, np.uint8)
            self._store.version += 1
        return held

    def keep(self, page: Page, at: int, module: int, outcome: np.ndarray) -> None:
        """Keep the outcome of a module for rows of a page."""
        self._of(page, module)[at : at + len(outcome)] = outcome

    def put(self, module: int, positions: np.ndarray, outcomes: np.ndarray) -> None:
        """Keep the outcomes of a module for rows held, in any order."""
        for page, which in self._store.by_page(positions):
            self._of(page, module)[positions[which] - page.base] = outcomes[which]

    def drop(self, module: int) -> None:
        """Forget the outcomes of a module: its number may be used again."""
        for page in self._store.pages:
            if page.outcomes.pop(module, None) is not None:
                self._store.version += 1
