"""The leaves of a query: the blocks where rows of a stream enter it, and the nodes above each.

A query without operators is one block. Of a query with operators the blocks are those of the tree as it was written: a selection
that is pushed down for speed stands above all the same. A query that reads others by name has their blocks below it: a row enters
where it enters those, provided that it is there once the query that reads them has begun (`Since`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from eddy.base.plans import Birth
from eddy.catalog.catalog import Catalog
from eddy.inspect.trace_lives import clock_after, commit_of
from eddy.inspect.trace_subject import Subject
from eddy.joins.join_query import JoinQuery
from eddy.operators.tree_query import TreeQuery
from eddy.query import Query
from eddy.streams.source import Source
from filters.expressions.expression import columns_of
from filters.expressions.predicate import Condition, normalise
from queries.bound import Block
from queries.joins import Join, JoinResidual
from queries.nodes import NamedQuery, Node, Slide, ToStream
from queries.split import conjuncts_of, split
from queries.tree import leaves, walk
from windows.spec import WindowSpec


@dataclass(frozen=True, slots=True)
class Since:
    """The beginning of a query's run: the last commit before it, the clock then, whether a commit opened it (the clock is then
    known for good), and the rows it may see from before."""

    commit: int
    clock: int
    opened: bool
    birth: Birth | None


@dataclass(frozen=True, slots=True)
class PathStep:
    """A node on the path from a leaf to the root: its query, and the number of the child that leads to the leaf."""

    node: Node
    child: int
    query: Query


@dataclass(frozen=True, eq=False)
class Leaf:
    """A running block that reads a stream."""

    #: runs the block: the query itself, or one that is hidden
    query: Query
    #: as it was written; None if it runs as it was
    rewritten: Block | None
    #: the query asked about
    owner: Query
    #: the window in steps right above the block
    steps: WindowSpec | None
    #: whether ISTREAM or DSTREAM stands above, which speak of events and not of instants
    by_event: bool
    #: the queries by whose names it is read, the one that it is part of first
    through: tuple[Query, ...]
    #: what stands above it, from below
    path: tuple[PathStep, ...]

    @cached_property
    def join(self) -> Join | None:
        """The join of the inputs; None for one input. The join of a rewritten block has only residuals, which need no index."""
        query = self.query
        if not isinstance(query, JoinQuery) or len(query.sources) == 1:
            return None
        if self.rewritten is None:
            return query.join_plan.join
        items = self.rewritten.inputs
        found = split(self.rewritten.condition, [item.name for item in items], [len(item.schema) for item in items])
        residuals = []
        for conjunct in conjuncts_of(self.rewritten.condition):
            positions = [ref.position for ref in columns_of(conjunct)]
            read = [k for k, item in enumerate(items) if any(0 <= at - item.offset < len(item.schema) for at in positions)]
            if len(read) > 1:
                residuals.append(JoinResidual(tuple(read), conjunct, ((), conjunct)))
        return Join(found.names, found.own, (), (), tuple(residuals))

    @cached_property
    def conditions(self) -> tuple[Condition, ...]:
        """The conditions of each input alone."""
        if self.rewritten is None:
            return self.query.conditions
        if self.join is None:
            return (normalise(self.rewritten.condition, clauses_apart=False),)
        return tuple(normalise(own, clauses_apart=False) for own in self.join.own)


def reads_stream(query: Query, source: Source, catalog: Catalog) -> bool:
    """Whether rows of a stream may enter a query, directly or through queries it reads by name."""
    if source.name.lower() in query.streams:
        return True
    return any(reads_stream(catalog.query(name), source, catalog) for name in query.reads)


def leaves_of(query: Query, source: Source, catalog: Catalog) -> Iterator[Leaf]:
    """The leaves of a running query that read a stream, in the order of its text."""
    return _Finder(source, catalog, query).of_query(query, (), (), False)


def begun_later(leaf: Leaf, subject: Subject) -> list[Since]:
    """The runs that began after a row came: of the query asked about, and of the queries between it and the leaf."""
    source, log = subject.source, subject.source.timeline.log
    found = []
    for query in dict.fromkeys((leaf.owner, *leaf.through)):
        run = query.runs[-1]
        clock = clock_after(log, run.after) if run.opened_us is None else run.opened_us
        since = Since(run.after, clock, run.opened_us is not None, query.birth)
        if subject.position is not None and not _came_in(since, source, subject.position, subject.start):
            found.append(since)
    return found


def _came_in(since: Since, source: Source, position: int, start: int) -> bool:
    """Whether a row came while a query ran."""
    gone, commit = source.timeline.log.gone, commit_of(source, position)
    if commit > gone or since.commit >= gone:
        return commit > since.commit
    # neither commit is logged any more
    seen = since.birth is None or position >= since.birth.end_of(source.number)
    return seen and (not since.opened or start >= since.clock)


class _Finder:
    """Finds the leaves below one query."""

    def __init__(self, source: Source, catalog: Catalog, owner: Query) -> None:
        self._source = source
        self._catalog = catalog
        self._owner = owner

    def of_query(self, query: Query, through: tuple[Query, ...], above: tuple[PathStep, ...], by_event: bool) -> Iterator[Leaf]:
        """The leaves of a query, with the nodes `above` it in other queries."""
        if not reads_stream(query, self._source, self._catalog):
            return
        if not isinstance(query, TreeQuery):
            yield Leaf(query, None, self._owner, None, by_event, through, above)
            return
        plan = query.tree_plan
        hidden = {
            id(core.query.join_plan if isinstance(core.query, JoinQuery) else core.query.plan): core for core in query.cores
        }
        running = ((node, hidden[id(plan.blocks[node])].query) for node in walk(plan.root) if isinstance(node, Block))
        yield from self._of_node(plan.written, query, running, through, above, by_event)

    def _of_node(
        self, node: Node, query: TreeQuery, running: Iterator[tuple[Block, Query]], through: tuple[Query, ...],
        above: tuple[PathStep, ...], by_event: bool,
    ) -> Iterator[Leaf]:  # fmt: skip
        """The leaves below a node; `running` are the running blocks, in tree order."""
        if isinstance(node, NamedQuery):
            named = self._catalog.query(node.name)
            if not named.running:
                # a paused input of a merge: no row enters by it
                return
            yield from self.of_query(named, (named, *through), above, by_event)
            return
        if isinstance(node, Block):
            block, runs = next(running)
            if any(leaf.name.lower() == self._source.name.lower() for leaf in leaves(node)):
                over = above[0].node if above and above[0].query is query else None
                steps = over.window if isinstance(over, Slide) and not over.of_query else None
                yield Leaf(runs, None if node == block else node, self._owner, steps, by_event, through, above)
            return
        looks_inside = by_event or (isinstance(node, ToStream) and node.kind != "rstream")
        for number, child in enumerate(node.children):
            yield from self._of_node(child, query, running, through, (PathStep(node, number, query), *above), looks_inside)
