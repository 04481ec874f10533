"""Invariants of a whole engine, checked between two calls."""

from __future__ import annotations

from eddy.catalog.catalog import Catalog
from eddy.commit.committer import Committer
from eddy.joins.join_query import JoinQuery
from eddy.operators.tree_query import TreeQuery
from lineage.elements import BEGINNING


def check_engine(catalog: Catalog, committer: Committer) -> None:
    """Raise AssertionError if any invariant of any part is broken."""
    for source in catalog.inputs():
        source.check()
    for query in catalog.queries.values():
        if isinstance(query, TreeQuery):
            query.check()
            continue
        source = catalog.input(query.stream)
        assert query.running == (query.kept is None), "a query runs or keeps its answer"
        if query.leg is not None:
            assert query in query.leg.queries and source.placement.legs[query.leg.key] is query.leg, "a query is on its leg"
        assert query.born <= source.store.end, "no query is born in the future"
    versions = [version for query in catalog.queries.values() for version in (*query.earlier, query)]
    versions += [core.query for query in versions if isinstance(query, TreeQuery) for core in query.cores]
    committer.joiner.check([version for version in versions if isinstance(version, JoinQuery)])
    for timeline in catalog.timelines.values():
        timeline.log.check()
        for source in timeline.sources:
            front = source.intake.front
            assert front <= timeline.now or timeline.now == BEGINNING, "no front is past the clock"
    for group in committer.templates.shared:
        group.check()
