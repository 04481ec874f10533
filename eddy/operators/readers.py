"""Which reader reads a query."""

from __future__ import annotations

from eddy.catalog.catalog import Catalog
from eddy.joins.join_query import JoinQuery
from eddy.joins.table_query import TableQuery
from eddy.operators.tree_query import TreeQuery, TreeReader
from eddy.query import Query
from eddy.reading.join_reader import JoinReader
from eddy.reading.reader import Reader
from eddy.reading.table_reader import TableReader


def reader_of(query: Query, catalog: Catalog) -> Reader | JoinReader | TreeReader:
    if isinstance(query, TreeQuery):
        return TreeReader(query)
    if isinstance(query, TableQuery):
        return TableReader(query)
    if isinstance(query, JoinQuery):
        return JoinReader(query)
    return Reader(query, catalog.sources[query.stream])
