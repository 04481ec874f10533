"""Which reader reads a query, and on which timeline it is."""

from __future__ import annotations

from eddy.catalog import Catalog
from eddy.join_query import JoinQuery
from eddy.join_reader import JoinReader
from eddy.query import Query
from eddy.reader import Reader
from eddy.table_query import TableQuery
from eddy.table_reader import TableReader
from eddy.timeline import Timeline
from eddy.tree_query import TreeQuery, TreeReader


def timeline_of(query: Query, catalog: Catalog) -> Timeline:
    if isinstance(query, JoinQuery | TreeQuery):
        return query.timeline
    return catalog.sources[query.stream].timeline


def reader_of(query: Query, catalog: Catalog) -> Reader | JoinReader | TreeReader:
    if isinstance(query, TreeQuery):
        return TreeReader(query)
    if isinstance(query, TableQuery):
        return TableReader(query)
    if isinstance(query, JoinQuery):
        return JoinReader(query)
    return Reader(query, catalog.sources[query.stream])
