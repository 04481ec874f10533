"""One table inside the engine: what a stream's source has, over versions instead of rows that come and go by time.

Its rows are versions (`stems/table.py`) in a row store like a stream's, so conditions on its columns are matched and joins on
them indexed as for streams. Unlike a stream's, its rows are there before the query that reads them: what a new leg needs of
predicate modules is computed for the versions held when its query starts (`eddy/history/recall.py`), and legs stay for as long
as their query can be read.

    held     the versions that count in a commit which some reader can still ask for: a commit in the log of a timeline with a
             query on the table, or the one that a stored row of a stream came after (`eddy/streams/marks.py`)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from eddy.base.checking import changing
from eddy.base.description import TableReceipt
from eddy.streams.marks import Marks
from eddy.streams.source import Source
from eddy.streams.table_keys import key_cells, last_of_each, null_key, parse_keys
from eddy.streams.timeline import Rows, Timeline
from eddy.streams.version_ranks import VersionRanks
from lineage.ingest import Ingested
from lineage.schema import Schema
from queries.bound import Readable
from stems.commit_spans import OPEN
from stems.keys import Keys
from stems.table import Versions


@dataclass(slots=True, eq=False)
class TableChange:
    """What a commit does to a table: versions that it ends, and rows that it writes."""

    ended: np.ndarray
    rows: Rows | None
    receipt: TableReceipt


class TableSource(Source):
    """A table and all that hangs on it."""

    stem_kind = "table"
    # versions have ranks instead (`eddy/streams/version_ranks.py`)
    stores_ids = False

    def __init__(self, name: str, schema: Schema, key: tuple[int, ...], retroactive: bool, module_numbers: Iterator[int]) -> None:
        # a table has no clock: its timeline is its own and never moves
        super().__init__(name, schema, None, Timeline(name), 0, False, module_numbers)
        self.readable = Readable(schema, True, key, retroactive)
        self.versions = Versions(self.stems, key)
        self._ranks = VersionRanks(self.store, self.modules.bank)
        #: the number of the next version
        self.next_version = 0
        #: keys of deletes that were not there
        self.unknown_keys = 0
        #: queries by the timeline they are on; empty iff nobody reads the table
        self.readers: Counter[Timeline] = Counter()
        #: the marks on each stream that a query joins with the table as it was, and how many queries do
        self.marks: dict[Source, Marks] = {}
        self._n_marking: Counter[Source] = Counter()

    @property
    def key(self) -> tuple[int, ...]:
        """The positions of the key columns, as declared."""
        return self.readable.key

    @property
    def retroactive(self) -> bool:
        return self.readable.retroactive

    # ---- changes

    def check_rows(self, rows: Any) -> Ingested:
        """Rows of an upsert, checked; nothing has changed."""
        checked = self.ingestor.check(rows)
        for position in self.key:
            nulls = checked.nulls[position]
            if nulls is not None and nulls.any():
                raise null_key(self.name, self.schema.names[position], int(np.argmax(nulls)))
        return checked

    @changing
    def upserted(self, checked: Ingested) -> TableChange:
        """What an upsert of checked rows does; of rows with one key the last counts."""
        self.ingestor.commit(checked)
        rows = Rows(checked.n_rows, checked.cells, checked.nulls, 0, 0)
        keys = self._keys_of(rows)
        last = last_of_each(keys)
        if len(last) < rows.n_rows:
            rows = rows.take(last)
            keys = self._keys_of(rows)
        found = self.versions.find(keys)
        ended = found[found >= 0]
        receipt = TableReceipt(rows.n_rows - len(ended), len(ended), 0, 0)
        return TableChange(ended, rows if rows.n_rows else None, receipt)

    def _keys_of(self, rows: Rows) -> Keys:
        columns = self.versions.key_index.columns
        cells = [key_cells(rows.cells[column], self.schema.columns[column].type) for column in columns]
        return self.versions.key_index.folding.fold(cells, [None] * len(columns))

    def deleted(self, keys: Any) -> TableChange:
        """What a delete of these keys does; raises `RowError` for what can be no key."""
        given = parse_keys(keys, self)
        found = self.versions.find(given)
        ended = np.unique(found[found >= 0])
        return TableChange(ended, None, TableReceipt(0, 0, len(ended), int(np.count_nonzero(found < 0))))

    def apply(self, change: TableChange, commit: int) -> Rows | None:
        """Begin a commit that changes the table; returns the rows that are to be stored, numbered and stamped with it."""
        for source, marks in self.marks.items():
            marks.note(commit, source.store.end)
        self.unknown_keys += change.receipt.unknown
        self.versions.close(change.ended, commit)
        rows = change.rows
        if rows is not None:
            self.versions.open(rows.n_rows, commit)
            rows.times, rows.numbers = commit, self.next_version
            self.next_version += rows.n_rows
        return rows

    # ---- readers

    def attach(self, timeline: Timeline, streams: list[Source]) -> None:
        """A query on a timeline reads the table; as it was when their rows came, if it joins any of these streams."""
        if not self.readers[timeline]:
            timeline.tables.append(self)
        self.readers[timeline] += 1
        for source in streams:
            self._n_marking[source] += 1
            self.marks.setdefault(source, Marks())

    def detach(self, timeline: Timeline, streams: list[Source]) -> None:
        """Such a query has gone for good."""
        self.readers[timeline] -= 1
        if not self.readers[timeline]:
            del self.readers[timeline]
            timeline.tables.remove(self)
        for source in streams:
            self._n_marking[source] -= 1
            if not self._n_marking[source]:
                del self._n_marking[source], self.marks[source]

    # ---- reading

    def ranks_at(self, filter_: int, positions: np.ndarray, ranks: np.ndarray) -> None:
        self._ranks.at(filter_, positions, ranks)

    def end_at(self, seq: int) -> int:
        return self.versions.end_at(seq)

    # ---- upkeep

    def n_needless(self) -> int:
        """How many versions nobody asks for if the logs are given up, at least."""
        asked = [timeline.log.gone_with(len(timeline.log)) for timeline in self.readers]
        return self.versions.n_forgettable(min([*asked, *(marks.oldest for marks in self.marks.values())], default=OPEN - 1))

    def forget_versions(self) -> None:
        """Let go of the versions that no reader can ask for any more."""
        asked = [timeline.log.gone for timeline in self.readers]
        for source, marks in self.marks.items():
            marks.trim(source.store.watermark)
            asked.append(marks.oldest)
        if self.versions.forget(min(asked, default=OPEN - 1)):
            for window in self.placement.classes.values():
                window.oldest = max(window.oldest, self.store.watermark)
        self.modules.bank.release_ids(self.store.end)
        self.compact_dictionaries()

    def bytes(self) -> dict[str, int]:
        return {**super().bytes(), "versions": self.versions.bytes() + self._ranks.bytes()}

    def check(self) -> None:
        super().check()
        self.versions.check()
        self._ranks.check()
        assert set(self.marks) == set(self._n_marking), "a stream is marked iff a query needs it"
        for source, marks in self.marks.items():
            marks.check(source.store.end)
        for timeline, n_queries in self.readers.items():
            assert self in timeline.tables and n_queries > 0, "a timeline knows the tables that are read on it"
