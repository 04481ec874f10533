"""Building the operators of one query: at its start, and again for every new choice, over the same cores."""

from __future__ import annotations

from collections.abc import Callable

from eddy.base.plans import JoinPlan, Plan
from eddy.operators.core import Core
from eddy.operators.operation import Stage
from eddy.operators.replanning import Built
from eddy.operators.stages import Builder
from eddy.operators.tree_query import TreeQuery
from eddy.planning.plan_choice import Choice
from eddy.reading.stream_feed import Feed
from queries.bound import Block
from queries.nodes import NamedQuery


class QueryBuilder:
    """Builds the stages of one query; `start_core` makes the core of a block, `named` finds the stage of a query read by name."""

    def __init__(
        self, query: TreeQuery, start_core: Callable[[TreeQuery, Plan | JoinPlan, bool], Core],
        named: Callable[[NamedQuery], Stage],
    ) -> None:  # fmt: skip
        self._query = query
        self._start_core = start_core
        self._named = named
        #: of each block of the query's text, once it is read
        self.cores: dict[Block, Core] = {}

    def feed(self, block: Block, sends_ends: bool) -> Feed:
        """A feed of a block for the stages being built."""
        core = self.cores.get(block)
        if core is not None:
            return core.feed_anew(sends_ends)
        core = self.cores[block] = self._start_core(self._query, self._query.tree_plan.blocks[block], sends_ends)
        return core.feed

    def build(self, choice: Choice, again: bool) -> Built:
        """The stages of a choice, not opened yet; `again`: the query has run with other stages before."""
        query = self._query
        builder = Builder(choice.form.root, self.feed, self._named, choice.strategies, again)
        if query.emit == "event" or builder.looks_inside:
            builder.root.show_events()
        return Built(choice, builder.root, builder.recipient(query.emit), builder.stages, builder.live)
