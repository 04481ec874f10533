"""The reader of a query's answer and changes, and how far back the log lets it read."""

from __future__ import annotations

from eddy.catalog.catalog import Catalog
from eddy.joins.join_query import JoinQuery
from eddy.joins.table_query import TableQuery
from eddy.operators.tree_query import TreeQuery, TreeReader
from eddy.query import Query
from eddy.reading.join_reader import JoinReader
from eddy.reading.stream_reader import StreamReader
from eddy.reading.table_reader import TableReader
from lineage.errors import GoneError


def make_reader(query: Query, catalog: Catalog) -> StreamReader | JoinReader | TreeReader:
    """A reader for the kind of the query."""
    if isinstance(query, TreeQuery):
        return TreeReader(query)
    if isinstance(query, TableQuery):
        return TableReader(query)
    if isinstance(query, JoinQuery):
        return JoinReader(query)
    return StreamReader(query, catalog.sources[query.stream])


def lost_until(query: Query, catalog: Catalog) -> int:
    """The last commit whose changes of a query can no longer be read."""
    lost = query.lost_until
    for version in (*query.earlier, query):
        if isinstance(version, TreeQuery):
            lost = max(lost, version.log.lost)
        gone = catalog.timeline_of(version).log.gone
        for run in version.runs:
            if run.after < gone:
                lost = max(lost, gone if run.until is None else min(gone, run.until))
    return lost


def check_held(query: Query, since: int, catalog: Catalog) -> None:
    """Raise `GoneError` if changes of a query after commit `since` can no longer be read."""
    lost = lost_until(query, catalog)
    if since < lost:
        raise GoneError(
            f"the log no longer holds the changes after commit {since}", detail=f"it holds those after commit {lost}",
            hint='start again with since="snapshot"',
        )  # fmt: skip
