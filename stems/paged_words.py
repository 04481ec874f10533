"""Fixed-size records in pages, found by number in constant time and never copied.

Records are numbered from 0 for ever; record `n` is record `n mod per_page` of page `n // per_page`, whose memory is at
`addresses[page mod len(addresses)]` (both powers of two), so a kernel takes the addresses alone:

    held = {page of n : lowest <= n < end}       one array each; a page below `drop_below` is given back at once
    addresses[page & (len - 1)] = its memory     0 where no page is held

The ring of addresses doubles when the pages held do not fit and halves when a quarter of it would do: 8 bytes a page.
"""

from __future__ import annotations

import numpy as np

_MIN_RING = 4


class PagedWords:
    """Records of `width` uint32 words, `1 << bits` a page."""

    __slots__ = ("bits", "width", "addresses", "_pages")

    def __init__(self, bits: int, width: int) -> None:
        self.bits = bits
        self.width = width
        self.addresses = np.zeros(_MIN_RING, np.int64)
        #: page number -> its memory; the numbers are consecutive
        self._pages: dict[int, np.ndarray] = {}

    def __getstate__(self) -> tuple[int, int, int, dict[int, np.ndarray]]:
        return self.bits, self.width, len(self.addresses), self._pages

    def __setstate__(self, state: tuple[int, int, int, dict[int, np.ndarray]]) -> None:
        self.bits, self.width, size, self._pages = state
        self._lay_out(size)

    def hold(self, first: int, last: int) -> None:
        """Have pages for the records first .. last - 1, none below those held; their words are 0 where the page is new."""
        if (last - 1) >> self.bits in self._pages:
            return
        for number in range(first >> self.bits, ((last - 1) >> self.bits) + 1):
            if number not in self._pages:
                page = np.zeros((1 << self.bits) * self.width, np.uint32)
                self._pages[number] = page
                if len(self._pages) > len(self.addresses):
                    self._lay_out(2 * len(self.addresses))
                self.addresses[number & (len(self.addresses) - 1)] = page.ctypes.data

    def drop_below(self, record: int) -> None:
        """Records below this one are no longer read."""
        below = record >> self.bits
        gone = []
        for number in self._pages:
            if number >= below:
                break
            gone.append(number)
        if not gone:
            return
        for number in gone:
            self.addresses[number & (len(self.addresses) - 1)] = 0
            del self._pages[number]
        size = len(self.addresses)
        while size > _MIN_RING and 4 * len(self._pages) <= size:
            size //= 2
        if size < len(self.addresses):
            self._lay_out(size)

    def clear(self) -> None:
        self._pages.clear()
        self.addresses = np.zeros(_MIN_RING, np.int64)

    def _lay_out(self, size: int) -> None:
        self.addresses = np.zeros(size, np.int64)
        for number, page in self._pages.items():
            self.addresses[number & (size - 1)] = page.ctypes.data

    def record(self, number: int) -> np.ndarray:
        """The words of one record; for checks."""
        at = (number & ((1 << self.bits) - 1)) * self.width
        return self._pages[number >> self.bits][at : at + self.width]

    def bytes(self) -> int:
        return self.addresses.nbytes + sum(page.nbytes for page in self._pages.values())

    def check(self) -> None:
        numbers = list(self._pages)
        assert numbers == list(range(numbers[0], numbers[0] + len(numbers))) if numbers else True, "pages follow each other"
        size = len(self.addresses)
        assert len(numbers) <= size and size & (size - 1) == 0, "the ring has a place for each page"
        for number, page in self._pages.items():
            assert self.addresses[number & (size - 1)] == page.ctypes.data, "an address leads to its page"
        assert np.count_nonzero(self.addresses) == len(numbers), "no address outlives its page"
