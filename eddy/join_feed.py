"""The feed of a query over several inputs, or over one whose rows end unscheduled (`eddy/feed.py`).

A match begins with the latest of its rows, in the event of that row, and ends with the first that leaves: by the clock, in the event
of the row that displaces it, or of the retraction or table change that ends it.
"""

from __future__ import annotations

import numpy as np

from eddy.feed import Feed
from eddy.join_query import JoinQuery
from eddy.join_reader import JoinReader
from eddy.ranks import Ranks
from eddy.result_log import Record
from eddy.table_query import TableQuery
from eddy.table_reader import TableReader
from eddy.walk import Combinations
from filters.vector import Vector
from lineage.elements import FOREVER
from lineage.schema import Type
from windows.delta import Delta, Minus, Plus, no_minus, no_plus
from windows.patterns import STRICT
from windows.values import ValueCodes


class JoinFeed(Feed):
    """Reads one query over several inputs."""

    def __init__(self, query: JoinQuery, sends_ends: bool) -> None:
        self.types = tuple(column.type for column in query.outputs)
        self.sends_ends = not query.is_stream and (sends_ends or query.update_pattern == STRICT)
        self._query = query
        #: numbers of the matches alive, by the positions of their rows; of those whose ends are known nobody asks again
        self._numbers = ValueCodes([Type.INT] * len(query.sources))
        self._next = 0

    def delta(self, record: Record, ranks: Ranks) -> Delta:
        reader = self._reader()
        plus = self._plus(reader, reader.begun(record), ranks)
        minus = self._minus(reader, record, ranks) if self.sends_ends else no_minus()
        self.errors += reader.errors
        return Delta(plus, minus)

    def snapshot(self, record: Record) -> Delta:
        reader = self._reader()
        plus = self._plus(reader, reader.alive(record), None) if not self._query.is_stream else no_plus(self.types)
        self.errors += reader.errors
        return Delta(plus, no_minus())

    def _reader(self) -> JoinReader:
        return TableReader(self._query) if isinstance(self._query, TableQuery) else JoinReader(self._query)

    def _plus(self, reader: JoinReader, found: list[tuple[Combinations, np.ndarray]], ranks: Ranks | None) -> Plus:
        ...
