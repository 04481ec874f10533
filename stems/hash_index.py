"""The equality index of a SteM: which stored rows have a key.

One index serves every query that joins on these columns of the stream, whoever probes. For a probe with bounds

    answer(key) = {position : low <= position < hi, stored key = key, not deleted}

where `low` is at least the store's watermark (or the oldest position that any window still needs) and `hi` the end of the store
when the probing batch was built: a pair of rows is found by the younger of the two, once. Keys with a NULL are not indexed.

It is `stems/key_table.py` (key -> newest row) and `stems/links.py` (row -> older rows of its key). Building or probing a
row costs one look-up, a probe then one step a match. Expiry is the store's watermark moving; `forget` gives memory back a
little at a time: pages of links and blocks as they die, segments of the key table by looking at one for every `SWEEP_ROWS`
rows built or forgotten.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lineage.schema import Type
from stems.chain_changes import build_chains, delete_rows
from stems.chain_walk import FAR, find_heads, walk_chains
from stems.key_search import AHEAD
from stems.key_table import COUNT_BITS, MAX_PLACES, MIN_PLACES, KeyTable
from stems.keys import KeyFolding, Keys
from stems.links import BLOCK_BITS, BLOCK_ROWS, BLOCK_WORDS, DELETED, LINK_BITS, NO_OLDER, SEALED
from stems.paged_words import PagedWords
from stems.row_store import Page, RowStore

#: Rows built or forgotten for each segment of the key table that is looked at: about half a nanosecond a row.
SWEEP_ROWS = 8192
#: Most segments looked at in one call.
MAX_SWEEPS = 16


class HashIndex:
    """The rows of a store by the key in some of its columns, complete from position `since` on."""

    def __init__(
        self,
        store: RowStore,
        columns: Sequence[int],
        *,
        seal_at: int = BLOCK_ROWS,
        min_places: int = MIN_PLACES,
        max_places: int = MAX_PLACES,
        sweep_rows: int = SWEEP_ROWS,
    ) -> None:
        assert 2 <= seal_at <= BLOCK_ROWS, "a block has to hold the rows sealed"
        self.store = store
        self.columns = tuple(columns)
        self.since = self.end = store.end
        types = [store.columns[column].type for column in self.columns]
        self.folding = KeyFolding.of_stored(types)
        self._no_nulls = [None] * len(self.columns)
        self._seal_at = seal_at
        self._sweep_rows = sweep_rows
        self._table = KeyTable(min_places, max_places)
        self._links = PagedWords(LINK_BITS, 1)
        self._blocks = PagedWords(BLOCK_BITS, BLOCK_WORDS)
        #: the number of the next block, and the first that has no memory yet
        self._next_block = np.zeros(2, np.int64)
        self._first_block = 0
        #: rows built or forgotten since the last look at a segment
        self._unswept = 0
        self._forgotten = store.watermark
        #: scratch of look-ups
        self._begins = np.zeros(2 * AHEAD, np.int64)
        #: (column, is float) of each column of a key of several
        self._compared = np.zeros((0, 2), np.int64)
        if len(self.columns) > 1:
            self._compared = np.array([(c, t is Type.FLOAT) for c, t in zip(self.columns, types)], np.int64)

    def __getstate__(self) -> dict[str, object]:
        return {**vars(self), "_begins": np.zeros_like(self._begins)}

    # ---- in

    def build(self, page: Page, at: int, stop: int) -> None:
        """Index the rows at offsets at..stop of a page, the newest of the store."""
        first = page.base + at
        assert first == self.end, "rows are built in the order of their positions"
        watermark = self.store.watermark
        assert page.base + stop - watermark < NO_OLDER, "a distance has 30 bits"
        keys = self._keys_of(page, at, stop)
        n_rows = stop - at
        self._links.hold(first, first + n_rows)
        origin, pages = self.store.page_addresses()
        done = 0
        while True:
            done = build_chains(
                keys.words, keys.columns, keys.usable, done, first, self._table.directory, watermark, self._links.addresses,
                self._blocks.addresses, self._next_block, self._seal_at, pages, origin, self.store.page_bits, self._compared,
                self._begins,
            )  # fmt: skip
            if done == n_rows:
                break
            if done < 0:
                done = -1 - done
                more = int(self._next_block[1]) + (1 << BLOCK_BITS)
                self._blocks.hold(int(self._next_block[1]), more)
                self._next_block[1] = more
            else:
                self._table.make_room(int(keys.words[done]), watermark)
        self.end = first + n_rows
        self._unswept += n_rows
        self._sweep()

    def _keys_of(self, page: Page, at: int, stop: int) -> Keys:
        """The keys of rows of a page."""
        cells = [page.cells[column, at:stop] for column in self.columns]
        if page.nulls is None:
            return self.folding.fold(cells, self._no_nulls)
        return self.folding.fold(cells, [page.nulls[column, at:stop] for column in self.columns])

    def delete(self, positions: np.ndarray) -> None:
        """These rows are never given again. O(1) each, and some steps of its chain."""
        positions = positions[(positions >= max(self.since, self.store.watermark)) & (positions < self.end)]
        origin, pages = self.store.page_addresses()
        for page, which in self.store.by_page(positions):
            keys = self._keys_of_rows(page, positions[which] - page.base)
            delete_rows(
                np.ascontiguousarray(positions[which]), keys.words, keys.columns, keys.usable, self._table.directory,
                self.store.watermark, self._links.addresses, self._blocks.addresses, pages, origin, self.store.page_bits,
                self._compared,
            )  # fmt: skip

    def _keys_of_rows(self, page: Page, offsets: np.ndarray) -> Keys:
        cells = [page.cells[column] for column in self.columns]
        nulls = [None if page.nulls is None else page.nulls[column] for column in self.columns]
        return self.folding.fold(cells, nulls, offsets.astype(np.int32))

    # ---- out

    def probe(self, keys: Keys, low: int, hi: int) -> Probe:
        """Find the stored rows with these keys at `low <= position < hi`.

        `keys` come from a `KeyFolding` for this index. `low` is not below the watermark.
        """
        assert low >= self.store.watermark, "rows below the watermark may be gone"
        heads, rows, progress = self._heads(keys, low)
        return Probe(self._links, self._blocks, self.store, heads, rows, progress, low, hi)

    def newest(self, keys: Keys) -> np.ndarray:
        """The position of the newest row of each key, deleted or not; -1 where there is none. One look-up each."""
        heads, rows, progress = self._heads(keys, self.store.watermark)
        n_heads = int(progress[2])
        found = np.full(len(keys), -1)
        found[rows[:n_heads]] = heads[:n_heads]
        return found

    def _heads(self, keys: Keys, low: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(newest position, probing row) of the keys that have a row at `low` or above, and where a walk from them begins."""
        origin, pages = self.store.page_addresses()
        n_keys = len(keys)
        heads = np.empty(n_keys + FAR, np.int64)
        rows = np.empty(n_keys, np.int32)
        progress = np.empty(4, np.int64)
        find_heads(
            keys.words, keys.columns, keys.usable, self._table.directory, self.store.watermark, low, pages, origin,
            self.store.page_bits, self._compared, heads, rows, progress, self._begins,
        )  # fmt: skip
        return heads, rows, progress

    # ---- upkeep

    def forget(self) -> None:
        """The store's watermark has moved: give memory back, a bounded number of steps at a time."""
        watermark = self.store.watermark
        if watermark >= self.end:
            self._clear()
            return
        self._links.drop_below(watermark)
        while self._first_block < self._next_block[0]:
            # a page of blocks goes when the owner of its last block is dead
            last = self._first_block | ((1 << BLOCK_BITS) - 1)
            if last >= self._next_block[0] or self._owner(last) >= watermark:
                break
            self._first_block = last + 1
        self._blocks.drop_below(self._first_block)
        self._unswept += watermark - self._forgotten
        self._forgotten = watermark
        self._sweep()

    def _owner(self, block: int) -> int:
        return int(self._blocks.record(block)[2:4].view(np.int64)[0])

    def _sweep(self) -> None:
        for _ in range(min(MAX_SWEEPS, self._unswept // self._sweep_rows)):
            self._table.sweep(self.store.watermark)
            self._unswept -= self._sweep_rows
        # what is left beyond one call's share is not owed later: the next rows bring their own
        self._unswept %= self._sweep_rows

    def _clear(self) -> None:
        self._table.clear()
        self._links.clear()
        self._blocks.clear()
        self._next_block[:] = self._first_block = 0
        self._unswept = 0
        self._forgotten = self.store.watermark

    def rebuild(self, deleted: np.ndarray) -> None:
        """Index every row that the store holds, but those at the positions `deleted`.

        For an index made when the store had rows that a query may still ask for, and after a dictionary was compacted. O(rows).
        """
        self._clear()
        self.since = self.end = self.store.watermark
        for page, at, stop in self.store.slices(self.store.watermark, self.store.end):
            self.build(page, at, stop)
        self.delete(deleted)

    def stats(self) -> dict[str, int]:
        segments = self._table.segments()
        return {
            "rows": self.end - max(self.since, self.store.watermark),
            "places": sum(segment.n_places for segment in segments),
            "places_used": sum(segment.used for segment in segments),
            "segments": len(segments),
            "blocks": int(self._next_block[0]) - self._first_block,
            "longest_step": self._table.longest_step,
            **self._table.steps,
            "bytes": self.bytes(),
        }

    def bytes(self) -> int:
        """The memory of table, links and blocks, exactly."""
        return self._table.bytes() + self._links.bytes() + self._blocks.bytes()

    def check(self) -> None:
        """All invariants: of the parts, and that the chains hold each indexed row once, under its key, newest first."""
        self._table.check()
        self._links.check()
        self._blocks.check()
        assert self.end == self.store.end, "every row of the store is built"
        watermark = self.store.watermark
        expected = self._expected()
        chained: dict[int, list[int]] = {}
        for segment in self._table.segments():
            for _, head in segment.places().tolist():
                newest = (head >> COUNT_BITS) - 1
                if newest >= watermark:
                    rows = self._chain(newest)
                    assert newest not in chained, "two keys do not share a row"
                    chained[newest] = rows
        seen = sorted(position for rows in chained.values() for position in rows)
        assert seen == sorted(expected), "each indexed row that is not deleted is in one chain"
        keys = set()
        for rows in chained.values():
            assert all(a > b for a, b in zip(rows, rows[1:])), "a chain goes from the newest row to the oldest"
            assert len({expected[position] for position in rows}) <= 1, "a chain holds one key"
            if rows:
                assert expected[rows[0]] not in keys, "a key has one chain"
                keys.add(expected[rows[0]])

    def _expected(self) -> dict[int, tuple[int, ...]]:
        """Position -> key of the rows that have to be in chains."""
        found = {}
        for page, at, stop in self.store.slices(max(self.since, self.store.watermark), self.end):
            keys = self._keys_of(page, at, stop)
            columns = keys.columns if len(keys.columns) else keys.words[None]
            for i in range(stop - at):
                position = page.base + at + i
                if (not len(keys.usable) or keys.usable[i]) and not self._link(position) & DELETED:
                    found[position] = tuple(columns[:, i].tolist())
        return found

    def _link(self, position: int) -> int:
        return int(self._links.record(position)[0])

    def _chain(self, position: int) -> list[int]:
        """The rows of a chain that are neither dead nor deleted."""
        watermark = self.store.watermark
        found = []
        while position >= watermark:
            link = self._link(position)
            if link & SEALED:
                block = self._blocks.record(self._block_number(link & NO_OLDER))
                assert self._owner(self._block_number(link & NO_OLDER)) == position, "a chain enters a block at its owner"
                entries = block[6 : 6 + int(block[4])].astype(np.int64)
                assert int((entries >= DELETED).sum()) == int(block[5]), "deleted rows of a block are counted"
                rows = position - (entries & NO_OLDER)
                for row, entry in zip(rows.tolist(), entries.tolist()):
                    if row >= watermark:
                        assert self._link(row) & SEALED and bool(self._link(row) & DELETED) == bool(entry & DELETED)
                        if entry < DELETED:
                            found.append(row)
                position = int(block[0:2].view(np.int64)[0]) - 1
            else:
                if not link & DELETED:
                    found.append(position)
                position -= link & NO_OLDER
        return found

    def _block_number(self, low_bits: int) -> int:
        """A block's number from its lower bits, which a link keeps."""
        return self._first_block + ((low_bits - self._first_block) & NO_OLDER)


class Probe:
    """A probe in progress: its pairs come in parts of bounded size.

    Rows may be built and deleted between parts: it gives what it was asked for, less what is deleted by then.
    """

    __slots__ = ("_links", "_blocks", "_store", "_heads", "_rows", "_progress", "_low", "_hi", "_done")

    def __init__(
        self, links: PagedWords, blocks: PagedWords, store: RowStore, heads: np.ndarray, rows: np.ndarray, progress: np.ndarray,
        low: int, hi: int,
    ) -> None:  # fmt: skip
        self._links = links
        self._blocks = blocks
        self._store = store
        #: these three are where the walk stands: see `walk_chains`
        self._heads = heads
        self._rows = rows
        self._progress = progress
        self._low = low
        self._hi = hi
        self._done = False

    def fill(self, out_row: np.ndarray, out_position: np.ndarray) -> int:
        """Write the next pairs of probing row (int32) and position (int64), as many as fit; 0 when there are no more.

        The positions of one row come newest first; rows come in no order.
        """
        room = min(len(out_row), len(out_position))
        assert room > 0, "no room for a pair"
        assert self._store.watermark <= self._low, "the watermark passed a probe in progress"
        if self._done:
            return 0
        found = walk_chains(
            self._heads, self._rows, self._progress, self._low, self._hi, self._links.addresses, self._blocks.addresses, room,
            out_row, out_position,
        )  # fmt: skip
        # a walk stops early only for want of room
        self._done = found < room
        return found
