"""The lifecycle of an engine's queries: submit, pause, resume, replace, cancel.

    submit     plan (`eddy/catalog/planner.py`) -> a query of its kind -> started over the rows it may see
    start      it runs from the next commit on
    open       a commit gives it its first answer: of stored rows, of tables, of running queries
    stop       it stops running; its changes so far can still be read in the log

A call that raises has changed nothing: all checks come before the first change.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from eddy.base.checking import changing, checking
from eddy.base.plans import JoinPlan, Plan, QueryRun, TreePlan
from eddy.base.result_log import LoggedCommit
from eddy.base.results import Results
from eddy.catalog.catalog import Catalog
from eddy.catalog.definitions import MAIN
from eddy.catalog.planner import Planner
from eddy.catalog.replacing import check_replaces
from eddy.commit.committer import Committer, Part
from eddy.commit.state_cap import StateCap
from eddy.history.recall import recall
from eddy.joins.join_query import JoinQuery
from eddy.joins.table_group import TableGroup
from eddy.joins.table_query import TableQuery
from eddy.matching.result_rows import ResultRows
from eddy.operators.completeness import tree_complete_since
from eddy.operators.core import Core, JoinCore, StreamCore
from eddy.operators.merge_stage import InputStage, inputs_named
from eddy.operators.readers import make_reader
from eddy.operators.replanning import Replanner, ReplanPace
from eddy.operators.shared.shared_form import Shareable, shareable
from eddy.operators.shared.shared_operation import SharedOperation
from eddy.operators.stage import FeedStage, QueryStage, Stage
from eddy.operators.template import Member, Template
from eddy.operators.template_builder import TemplateBuilder
from eddy.operators.template_key import blocks_of, lifted
from eddy.operators.tree_query import TreeQuery
from eddy.preparing import Asked, Ready, prepare
from eddy.query import Query
from eddy.reading.join_feed import JoinFeed
from eddy.reading.opening import Held, complete_since, first_seen, opening_parts
from eddy.reading.stream_feed import NamedFeed
from eddy.streams.source import Source
from eddy.streams.table_source import TableSource
from eddy.streams.timeline import effect_time
from lineage.errors import ConflictError, InUseError
from queries.nodes import NamedQuery
from windows.spec import WindowSpec

if TYPE_CHECKING:
    from eddy.engine import Engine


class Lifecycle:
    """Starts and ends the queries of one engine."""

    def __init__(
        self, engine: Engine, catalog: Catalog, committer: Committer, planner: Planner, cap: StateCap, expiry: str,
        sharing: bool,
    ) -> None:  # fmt: skip
        self._engine = engine
        #: whether queries that differ in constants are one template
        self._sharing = sharing
        self._catalog = catalog
        self._committer = committer
        self._planner = planner
        self._cap = cap
        #: what a query that says nothing has
        self.expiry = expiry
        #: when the way in which a query is run is changed
        self.pace = ReplanPace()
        committer.templates.shared.make_own = self._make_own

    # ---- from the outside

    def submit(self, asked: Sequence[Asked]) -> list[Query]:
        """Start queries, of which later ones may read earlier ones: all or none."""
        with checking:
            ready = prepare(self._engine, asked, self._catalog, self._planner)
            self._cap.charge_queries(len(ready))
        with changing:
            names = {one.name.lower() for one in ready}
            return [self._submit(one, names) for one in ready]

    def _submit(self, ready: Ready, names: set[str]) -> Query:
        """Start one query; `names` are the names in the same call."""
        asked, plan = ready.asked, ready.plan
        if isinstance(plan, TreePlan) and names.intersection(plan.queries):
            # what it reads runs only now, and how that is run is known
            plan = self._planner.plan(asked.sql, asked.params)
        query = self._make(ready.number, ready.name, asked.sql, tuple(asked.tags), plan, asked.history == "window")
        query.emit = asked.emit
        query.expiry = asked.expiry or self.expiry
        query.birth = None if asked.history == "window" else self._catalog.birth(self._committer.seq)
        self._start(query)
        self._catalog.add_query(query)
        if asked.history == "window" or query.opens:
            # what is stored, or what tables and queries hold, is there at once, so the submit is a commit
            self._open(query, None, None)
        return query

    def cancel(self, query: Query) -> None:
        with checking:
            self._check_unread(query, "cancelled")
        with changing:
            if query.running:
                self._stop(query)
            query.kept = None
            for version in (*query.earlier, query):
                self._release(version)
            query.earlier = ()
            self._catalog.remove_query(query)

    def pause(self, query: Query) -> None:
        with checking:
            if not query.running:
                raise ConflictError(f'query "{query.name}" is already paused', code="already_paused")
            self._check_unread(query, "paused", by_merges=True)
            kept = make_reader(query, self._catalog).keep(self._catalog.timeline_of(query).now)
        with changing:
            for merged in self._merged_inputs(query):
                merged.detach()
            self._end_run(query)
            query.kept = kept

    def resume(self, query: Query) -> None:
        with checking:
            if query.running:
                raise ConflictError(f'query "{query.name}" is not paused', code="not_paused")
            before, left = self._before(query)
        with changing:
            if query.birth is not None:
                query.birth = self._catalog.birth(self._committer.seq)
            self._start(query)
            self._open(query, before, left)
            query.forget_runs(self._catalog.timeline_of(query).log.gone)
            for merged in self._merged_inputs(query):
                merged.attach(self._result_stage(query))

    def replace(self, query: Query, sql: str, params: Mapping[str, Any] | None) -> None:
        with checking:
            plan = self._planner.plan(sql, params)
            check_replaces(query, plan)
            self._check_unread(query, "replaced")
            if isinstance(plan, TreePlan) and query.name.lower() in plan.queries:
                fact = f'the new text of query "{query.name}" reads that query'
                raise ConflictError(fact, code="reads_itself", hint="submit it under another name")
            before, left = self._before(query)
        with changing:
            log, seq = self._catalog.timeline_of(query).log, self._committer.seq
            self._end_run(query)
            other = self._make(query.id, query.name, sql, query.tags, plan, True)
            if isinstance(query, TreeQuery) and isinstance(other, TreeQuery):
                other.log.read = query.log.read
            self._catalog.end_reading(query)
            version = query.become(other)
            self._catalog.begin_reading(query)
            log.hold(seq, partial(self.forget_version, query, version))
            self._start(query)
            self._open(query, before, left)

    def forget_version(self, query: Query, version: Query) -> None:
        """Release an earlier version of a query, which can no longer be read."""
        if version in query.earlier:
            query.forget_version(version)
            self._release(version)

    def _check_unread(self, query: Query, done: str, by_merges: bool = False) -> None:
        """Raise if other queries read a query; `by_merges`: those do not count that only merge it."""
        readers = self._readers(query)
        if by_merges:
            readers = [other.name for other in self._catalog.readers(query) if _needs(other, query)]
        if readers:
            shown = ", ".join(readers[:10]) + (", ..." if len(readers) > 10 else "")
            raise InUseError(
                f'query "{query.name}" cannot be {done}: it is read by {len(readers)} queries',
                detail=f"queries: {shown}", hint="cancel them first",
            )  # fmt: skip

    def _readers(self, query: Query) -> list[str]:
        """The names of the queries that read a query by its name."""
        return [other.name for other in self._catalog.readers(query)]

    def _merged_inputs(self, query: Query) -> list[InputStage]:
        """The inputs of running merges that are a query."""
        found = [other.operation for other in self._catalog.readers(query) if isinstance(other, TreeQuery)]
        name = query.name.lower()
        return [stage for one in found if isinstance(one, Member) for stage in inputs_named(one.template.root, name)]

    # ---- starting

    def _make(
        self, number: int, name: str, sql: str, tags: tuple[str, ...], plan: Plan | JoinPlan | TreePlan, looks_back: bool
    ) -> Query:  # fmt: skip
        """A query object of a plan; `looks_back`: it may see rows from before its start."""
        if isinstance(plan, Plan):
            return Query(self._engine, number, name, sql, tags, plan)
        if isinstance(plan, TreePlan):
            timeline = self._catalog.timeline_from(plan.timeline, self._committer.seq)
            return TreeQuery(self._engine, number, name, sql, tags, plan, timeline, self._committer.retention.bounds)
        return self._make_join(number, name, sql, tags, plan, looks_back)

    def _make_join(self, number: int, name: str, sql: str, tags: tuple[str, ...], plan: JoinPlan, looks_back: bool) -> JoinQuery:
        catalog = self._catalog
        sources = [catalog.input(source) for source in plan.streams]
        streams = [catalog.sources[source] for source in plan.streams if source in catalog.sources]
        timeline = streams[0].timeline if streams else catalog.timeline_from(MAIN, self._committer.seq)
        group = self._committer.joiner.group(plan.join, sources, plan.windows, timeline, number if looks_back else None)
        kind = TableQuery if isinstance(group, TableGroup) else JoinQuery
        return kind(self._engine, number, name, sql, tags, plan, group)

    def _start(self, query: Query) -> None:
        """Run a query from the next commit on, over the rows it may see now."""
        seq = self._committer.seq
        if isinstance(query, TreeQuery):
            shares = self._sharing and query.emit == "commit" and query.expiry == "auto"
            shared = shareable(query.tree_plan) if shares else None
            if shared is not None:
                query.start(seq, self._shared_operation(query, shared))
                return
            query.start(seq, self._member(query, None))
            return
        sources = self._sources(query)
        births = self._births(query, sources, query.windows)
        query.complete_since_us = complete_since(self._catalog.timeline_of(query).now, sources, query.windows, births)
        if isinstance(query, JoinQuery):
            query.start(seq, births)
            return
        source = sources[0]
        leg = source.placement.leg(query.window, query.plan.condition, query.name)
        recall(source, leg, births[0])
        run = QueryRun(seq, None, births[0], source.modules.numbers_of(leg.condition))
        query.begin(leg, run, source.placement.leg_results(leg))
        source.placement.add_reader(leg, query)

    def _births(self, query: Query, sources: Sequence[Source], windows: Sequence[WindowSpec]) -> tuple[int, ...]:
        seq = self._committer.seq
        return tuple([first_seen(query.birth, source, window, seq) for source, window in zip(sources, windows)])

    # ---- operators

    def _shared_operation(self, query: TreeQuery, shared: Shareable) -> SharedOperation:
        """Make a query a member of the shared group of its form."""
        hidden = Query(self._engine, query.id, query.name, query.sql, (), shared.plan)
        core = StreamCore(hidden, self._catalog.sources[shared.plan.stream])
        births = self._births(query, core.sources, hidden.windows)
        read = {block: (core.sources, hidden.windows, births) for block, _ in query.tree_plan.blocks.items()}
        query.complete_since_us = tree_complete_since(query.tree_plan.root, query.timeline.now, read)
        core.start(self._committer.seq, births)
        return self._committer.templates.shared.join(query, shared, core)

    def _make_own(self, query: TreeQuery, record: LoggedCommit) -> None:
        """Replace a query's membership in a shared group by operators of its own, in their state after a commit."""
        shared = query.operation
        assert isinstance(shared, SharedOperation), "a query that shares"
        member = self._member(query, (shared.core.query.born,))
        member.open(record)
        member.n_results = shared.n_results
        shared.stop(self._committer.seq)
        self._committer.templates.shared.tidy(query.timeline, shared.group)
        query.operation = member
        query.log.sit(member.template.log, member.seat, record.seq)

    def _member(self, query: TreeQuery, born: tuple[int, ...] | None) -> Member:
        """A query on a seat of its template, over cores that run from the next commit on; `born`: births of its only core, if
        known."""
        plan, templates = query.tree_plan, self._committer.templates
        blocks = blocks_of(plan)
        cores = [self._core(query, plan.blocks[block]) for block in blocks]
        found = lifted(plan, query.emit, query.expiry, query.id, self._sharing)
        template = templates.find(query.timeline, found.key)
        if template is not None:
            member = template.join(query, found.constants, cores)
        else:
            template = Template(found, query.timeline, query.emit, self._committer.retention.bounds)
            member = template.join(query, found.constants, cores)
            builder = TemplateBuilder(template, blocks, cores, self._named_stage)
            readers = partial(self._template_readers, template)
            template.run(Replanner(plan.forms.forms, query.expiry, self.pace, builder.build, readers))
        births = [born or self._births(query, core.sources, core.query.windows) for core in cores]
        read = {
            block: (core.sources, core.query.windows, first) for block, core, first in zip(blocks, cores, births, strict=True)
        }  # fmt: skip
        query.complete_since_us = tree_complete_since(plan.root, query.timeline.now, read)
        for core, first in zip(cores, births, strict=True):
            core.start(self._committer.seq, first)
        templates.add(member)
        return member

    def _template_readers(self, template: Template) -> list[str]:
        """The names of the queries that read one of a template's by name."""
        return [name for member in template.members.values() for name in self._readers(member.query)]

    def _core(self, query: TreeQuery, plan: Plan | JoinPlan) -> Core:
        """A block of a query, as a hidden query of its own."""
        if isinstance(plan, Plan):
            hidden = Query(self._engine, query.id, query.name, query.sql, (), plan)
            return StreamCore(hidden, self._catalog.sources[plan.stream])
        joined = self._make_join(query.id, query.name, query.sql, (), plan, query.birth is None)
        return JoinCore(joined, self._committer.joiner)

    def _named_stage(self, node: NamedQuery) -> Stage:
        """A stage that gives the result of a running query; as an input of a merge it may be paused."""
        query = self._catalog.query(node.name)
        if node.merged:
            stage = self._result_stage(query) if query.running else None
            return InputStage(node, self._catalog.timeline_of(query), stage)
        return self._result_stage(query)

    def _result_stage(self, query: Query) -> Stage:
        if isinstance(query, TreeQuery):
            if isinstance(query.operation, SharedOperation):
                # who reads it wants to see single events
                self._make_own(query, LoggedCommit(self._committer.seq, query.timeline.now, query.timeline.now))
            assert isinstance(query.operation, Member), "only running queries are read"
            return QueryStage(query.operation.template.root, query.operation.seat)
        if isinstance(query, JoinQuery):
            feed = JoinFeed(query, False, None)
            feed.add(0, query)
            return FeedStage(feed)
        return FeedStage(NamedFeed(query, self._catalog.sources[query.stream]))

    # ---- opening

    def _open(self, query: Query, before: Results | None, left: Held | None) -> None:
        """Commit a query's first answer, net of the answer it had `before`; `left` are the rows of that answer."""
        timeline, run = self._catalog.timeline_of(query), query.runs[-1]
        now = run.opened_us = timeline.now
        at_us = effect_time(now)
        taken_back = None
        if before is not None and len(before):
            taken_back = Results(before.columns, np.full(len(before), at_us), -1)
        if isinstance(query, TreeQuery):
            self._committer.open(query, taken_back, opening_parts(query.id, left, None, at_us))
            return
        if taken_back is not None:
            run.taken_back = taken_back
            timeline.log.hold(self._committer.seq + 1, run.forget_taken_back)
        # what tables alone hold is found by the group of the query
        came = self._rows_of(query) if self._reads_streams(query) else None
        parts: list[Part] = [*opening_parts(query.id, left, came, at_us)]
        if taken_back is not None and left is None and self._committer.listeners:
            # it had operators: what listeners have of it are rows of its answer, not of streams
            parts.insert(0, (query, ResultRows(taken_back, query.id), -1))
        self._committer.show(query, timeline, parts)

    def _before(self, query: Query) -> tuple[Results | None, Held | None]:
        """The answer that a query is about to take back (None for a stream), and its rows."""
        if query.is_stream:
            return None, None
        return make_reader(query, self._catalog).answer(self._catalog.timeline_of(query).now), self._rows_of(query)

    def _rows_of(self, query: Query) -> Held | None:
        """The rows or matches of a relation's answer; None without listeners, and for results of operators."""
        if not self._committer.listeners or query.is_stream or isinstance(query, TreeQuery):
            return None
        of = query.group if isinstance(query, JoinQuery) else self._catalog.sources[query.stream]
        return of, query.kept or make_reader(query, self._catalog).keep(self._catalog.timeline_of(query).now)

    def _sources(self, query: Query) -> list[Source]:
        return [self._catalog.input(name) for name in query.streams]

    def _reads_streams(self, query: Query) -> bool:
        return not isinstance(query, JoinQuery) or any(name in self._catalog.sources for name in query.streams)

    # ---- ending

    def _stop(self, query: Query) -> None:
        seq = self._committer.seq
        if isinstance(query, TreeQuery):
            templates, operation = self._committer.templates, query.operation
            query.stop(seq)
            if isinstance(operation, SharedOperation):
                templates.shared.tidy(query.timeline, operation.group)
            elif operation is not None:
                templates.remove(operation)
            return
        sources = self._sources(query)
        for source in sources:
            if not isinstance(source, TableSource):
                source.stored.settle(seq)
        if isinstance(query, JoinQuery):
            query.stop(seq)
            return
        leg = query.leg
        assert leg is not None
        query.end(seq, sources[0].placement.leg_results(leg))
        sources[0].placement.remove_reader(leg, query)

    def _end_run(self, query: Query) -> None:
        """Stop a query, keeping its run readable."""
        if not isinstance(query, TreeQuery):
            for source, window, condition in zip(self._sources(query), query.windows, query.conditions, strict=True):
                if not isinstance(source, TableSource):
                    source.log.end_run(window, condition, self._committer.seq)
        self._stop(query)

    def _release(self, query: Query) -> None:
        """Free a query, or an earlier version, that can no longer be read."""
        if isinstance(query, JoinQuery):
            query.release()
            self._committer.joiner.release(query.group)
        if isinstance(query, TreeQuery):
            query.log.close()


def _needs(reader: Query, query: Query) -> bool:
    """Whether a query cannot go on while one that it reads by name is paused."""
    return not isinstance(reader, TreeQuery) or reader.tree_plan.needs(query.name.lower())
