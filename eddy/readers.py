"""Which reader reads a query."""

from __future__ import annotations

from eddy.catalog import Catalog
from eddy.join_query import JoinQuery
from eddy.join_reader import JoinReader
from eddy.query import Query
from eddy.reader import Reader
from eddy.table_query import TableQuery
from eddy.table_reader import TableReader
from eddy.tree_query import TreeQuery, TreeReader


def reader_of(query: Query, catalog: Catalog) -> Reader | JoinReader | TreeReader:
    if isinstance(query, TreeQuery):
        return TreeReader(query)
    if isinstance(query, TableQuery):
        return TableReader(query)
    if isinstance(query, JoinQuery):
        return JoinReader(query)
    return Reader(query, catalog.sources[query.stream])
