"""Reading stored rows by position, in kernels: cells, lives, ranks and outcomes of rows that lie in many pages.

A row of a store is row `(position - origin) & mask` of page `(position - origin) >> bits`, and a kernel takes one address a page
(`lineage/memory.py`). An address of 0 says that the page does not have the thing: no NULLs, starts that are the times, no
region ids yet. Positions have to be held by the store; any order will do.
"""

from __future__ import annotations

import numpy as np

from lineage.kernels import Number, inline, kernel
from lineage.memory import load_int64, load_uint8, load_uint32
from stems.row_store import RowStore

U64 = np.uint64


@inline
def page_of(pages: np.ndarray, offset: Number, bits: Number) -> Number:
    return pages[U64(offset >> bits)]


@kernel("void(int64[::1], int64, int64, int64, int64[::1], int64[::1])")
def gather_cells(pages: np.ndarray, origin: int, bits: int, column: int, positions: np.ndarray, cells: np.ndarray) -> None:
    """The cells of one column; `pages` has the address of each page's cells."""
    shift = column << bits
    for i in range(len(positions)):
        offset = positions[i] - origin
        cells[i] = load_int64(page_of(pages, offset, bits), shift + (offset & ((1 << bits) - 1)))


@kernel("int64(int64[::1], int64, int64, int64, int64[::1], uint8[::1])")
def gather_nulls(pages: np.ndarray, origin: int, bits: int, column: int, positions: np.ndarray, nulls: np.ndarray) -> int:
    """The NULL bytes of one column; returns how many are set."""
    shift = column << bits
    found = np.int64(0)
    for i in range(len(positions)):
        offset = positions[i] - origin
        page = page_of(pages, offset, bits)
        null = load_uint8(page, shift + (offset & ((1 << bits) - 1))) if page else np.int64(0)
        nulls[i] = null
        found += null
    return int(found)


@kernel("void(int64[::1], int64[::1], int64, int64, int64[::1], int64[::1], int64[::1])")
def gather_lives(
    time_pages: np.ndarray, start_pages: np.ndarray, origin: int, bits: int, positions: np.ndarray, times: np.ndarray,
    starts: np.ndarray,
) -> None:  # fmt: skip
    """Effective times and starts."""
    for i in range(len(positions)):
        offset = positions[i] - origin
        row = offset & ((1 << bits) - 1)
        time = load_int64(page_of(time_pages, offset, bits), row)
        page = page_of(start_pages, offset, bits)
        times[i] = time
        starts[i] = load_int64(page, row) if page else time


@kernel("void(int64[::1], int64, int64, int64[::1], int32[::1], int32[::1])")
def gather_ranks(
    pages: np.ndarray, origin: int, bits: int, positions: np.ndarray, rank_of: np.ndarray, ranks: np.ndarray
) -> None:
    """Ranks on one grouped filter; `pages` has the address of its region ids, `rank_of` the rank of each id."""
    for i in range(len(positions)):
        offset = positions[i] - origin
        page = page_of(pages, offset, bits)
        ranks[i] = rank_of[U64(load_uint32(page, offset & ((1 << bits) - 1)))] if page else 0


@kernel("void(int64[::1], int64, int64, int64[::1], uint8[::1])")
def gather_bytes(pages: np.ndarray, origin: int, bits: int, positions: np.ndarray, out: np.ndarray) -> None:
    """One byte a row, 0 where the page has none."""
    for i in range(len(positions)):
        offset = positions[i] - origin
        page = page_of(pages, offset, bits)
        out[i] = load_uint8(page, offset & ((1 << bits) - 1)) if page else 0


class Gatherer:
    """Reads the rows of one store; the addresses are looked up when pages or what they hold have changed."""

    __slots__ = ("store", "_version", "_origin", "_bits", "_lives", "_nulls", "_ids", "_outcomes")

    def __init__(self, store: RowStore) -> None:
        self.store = store
        self._version = -1
        self._refresh()

    def __getstate__(self) -> tuple[RowStore]:
        return (self.store,)

    def __setstate__(self, state: tuple[RowStore]) -> None:
        (self.store,) = state
        self._version = -1

    def _refresh(self) -> None:
        store = self.store
        if self._version == store.version:
            return
        self._version = store.version
        pages = store.pages
        self._origin, self._bits = pages[0].base if pages else 0, store.page_bits
        #: made when asked for: of times and of starts; of NULLs; by filter, by predicate module
        self._lives: tuple[np.ndarray, np.ndarray] | None = None
        self._nulls: np.ndarray | None = None
        self._ids: dict[int, np.ndarray] = {}
        self._outcomes: dict[int, np.ndarray] = {}

    def cells(self, column: int, positions: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
        """The cells of a column, and their NULL bytes if any is NULL."""
        self._refresh()
        cells = np.empty(len(positions), np.int64)
        origin, pages = self.store.page_addresses()
        gather_cells(pages, origin, self._bits, column, positions, cells)
        if self._nulls is None:
            self._nulls = _addresses([page.nulls for page in self.store.pages])
        if not self._nulls.any():
            return cells, None
        nulls = np.empty(len(positions), np.uint8)
        return cells, nulls if gather_nulls(self._nulls, self._origin, self._bits, column, positions, nulls) else None

    def cells_between(self, column: int, first: int, last: int) -> tuple[np.ndarray, np.ndarray | None]:
        """The same of the rows first..last; not copied when they are in one page."""
        self._refresh()
        offset = first - self._origin
        page, at = self.store.pages[offset >> self._bits], offset & ((1 << self._bits) - 1)
        stop = at + last - first
        if stop > page.n_rows:
            return self.cells(column, np.arange(first, last))
        nulls = None if page.nulls is None else page.nulls[column, at:stop]
        return page.cells[column, at:stop], nulls if nulls is not None and nulls.any() else None

    def lives(self, positions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The effective times and the starts."""
        self._refresh()
        times, starts = np.empty(len(positions), np.int64), np.empty(len(positions), np.int64)
        if self._lives is None:
            pages = self.store.pages
            self._lives = _addresses([page.times for page in pages]), _addresses([page.starts for page in pages])
        gather_lives(*self._lives, self._origin, self._bits, positions, times, starts)
        return times, starts

    def ranks(self, filter_: int, rank_of: np.ndarray, positions: np.ndarray, ranks: np.ndarray) -> None:
        """Fill in the ranks on a grouped filter, by the region ids kept with the rows."""
        self._refresh()
        pages = self._ids.get(filter_)
        if pages is None:
            pages = self._ids[filter_] = np.array([page.ids_address(filter_) for page in self.store.pages], np.int64)
        gather_ranks(pages, self._origin, self._bits, positions, rank_of, ranks)

    def outcomes(self, module: int, positions: np.ndarray) -> np.ndarray:
        """The outcomes of a predicate module (`filters/expressions/residual.py`)."""
        self._refresh()
        pages = self._outcomes.get(module)
        if pages is None:
            pages = self._outcomes[module] = _addresses([page.outcomes.get(module) for page in self.store.pages])
        out = np.empty(len(positions), np.uint8)
        gather_bytes(pages, self._origin, self._bits, positions, out)
        return out


def _addresses(arrays: list[np.ndarray | None]) -> np.ndarray:
    return np.array([0 if array is None else array.ctypes.data for array in arrays], np.int64)
