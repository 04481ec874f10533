"""Building the operators of a template: at its start, and again for every new choice, over the same cores."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from eddy.operators.core import Core
from eddy.operators.replanning import Built
from eddy.operators.stage import Stage
from eddy.operators.stages import Builder
from eddy.operators.template import Template
from eddy.planning.plan_choice import Choice
from eddy.reading.stream_feed import Feed
from lineage.identity import ById
from queries.nodes import Block, NamedQuery


class TemplateBuilder:
    """Builds the stages of one template; `named` finds the stage of a query read by name."""

    def __init__(
        self, template: Template, blocks: Sequence[Block], cores: Sequence[Core], named: Callable[[NamedQuery], Stage]
    ) -> None:  # fmt: skip
        """`blocks` are those of the first query, `cores` its own."""
        self._template = template
        self._numbers = ById((block, number) for number, block in enumerate(blocks))
        self._cores = list(cores)
        self._named = named

    def feed(self, block: Block, sends_ends: bool) -> Feed:
        """A feed of a block of all queries, for the stages being built."""
        number, template = self._numbers[block], self._template
        found = self._cores[number].feed(sends_ends, template.seats)
        for seat, member in template.members.items():
            found.add(seat, member.cores[number].query)
        template.feeds.append((number, found))
        return found

    def build(self, choice: Choice, again: bool) -> Built:
        """The stages of a choice, not opened yet; `again`: the queries have run with other stages before."""
        template = self._template
        template.feeds.clear()
        builder = Builder(
            choice.form.root, self.feed, self._named, choice.strategies, template.seats, template.selects, again
        )  # fmt: skip
        if template.emit == "event" or builder.looks_inside:
            builder.root.show_events()
        return Built(choice, builder.root, builder.recipient(template.emit), builder.stages, builder.live)
