"""Replanning of a running template: a cheaper choice replaces the current one between two commits.

Every `ReplanPace.every` commits the stages' counts become flows, and the cheapest choice is compared with the one in use. If it
is better by the margin, the operators are built anew over the same blocks and opened with the blocks' rows as they are after the
commit, with the starts that those had. Nothing of that is seen outside: the answer is the same rows, and no change is logged.

    exact        contents by value, counts, sums, extremes, scheduled ends; FIRST and LAST over one stream, whose rows come back
                 in the order in which they came
    not kept     ids of results, and which of several equal rows came first: nothing outside depends on them

What cannot be built from the rows that are alive keeps its choice for ever (`fixed_reason`): a stream, whose past is gone; an
extent that is shown; a table as it was; what a user function said; the order of rows of several streams. So does a query that
another one reads by name, for that knows its rows by their ids. After a change nothing is decided for a few times: what was just
built has to be seen at work.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from eddy.base.result_log import LoggedCommit
from eddy.operators.stage import Stage
from eddy.planning.flows import Flow, Flows, alive_of
from eddy.planning.plan_choice import Choice, chosen
from eddy.planning.strategies import Strategies
from filters.expressions.expression import Expression, user_functions_of
from lineage.identity import ById
from queries.forms import Form
from queries.nodes import Block, GroupBy, JoinNode, LMerge, Node, Select, Slide, ToStream, Window
from queries.tree import walk
from windows.operators.recipient import Recipient, StreamRecipient
from windows.state.rows import LiveRows


@dataclass(frozen=True, slots=True)
class ReplanPace:
    """How often a choice is reconsidered, and how much cheaper another must be."""

    #: commits between two decisions
    every: int = 256
    #: how many times as cheap another choice must be; pulling a negation up gained 1.2 on its best workload
    margin: float = 1.2
    #: decisions that are left out after a change
    rest: int = 3
    #: for tests: the next candidate each time, whatever it costs
    rotates: bool = False


@dataclass(slots=True)
class Built:
    """The stages of a choice."""

    choice: Choice
    root: Stage
    recipient: Recipient | StreamRecipient
    #: by node: its stage, and what some reader keeps of its rows
    stages: ById[Node, Stage]
    live: ById[Node, LiveRows]


class Replanner:
    """The measured flows of one template, and the choice that runs."""

    def __init__(
        self, forms: tuple[Form, ...], word: str, pace: ReplanPace, build: Callable[[Choice, bool], Built],
        readers: Callable[[], list[str]],
    ) -> None:  # fmt: skip
        self.forms = forms
        self.pace = pace
        self._build = build
        #: the queries that read one of its own by name
        self._readers = readers
        #: why the choice is never changed; empty if it may be
        self.fixed = fixed_reason(forms[0].root) if word == "auto" else f'expiry is "{word}"'
        self.flows = Flows()
        self.n_changes = 0
        self._rest = 0
        self._n_commits = 0.0
        self._elapsed_us = 0.0
        self._until = pace.every
        self.built = build(first_choice(forms, word, self.flows, pace), False)

    def step(self, record: LoggedCommit) -> Built | None:
        """Count one commit; returns new stages, not opened yet, if another choice is better now."""
        self._n_commits += 1
        self._elapsed_us += record.after - record.before
        self._until -= 1
        if self._until > 0:
            return None
        self._until = self.pace.every
        self.flows = self.seen_now()
        self._forget()
        if self.fixed or self._readers():
            return None
        if self._rest:
            self._rest -= 1
            return None
        choice = self._next()
        if choice == self.built.choice:
            return None
        self.n_changes += 1
        self._rest = 0 if self.pace.rotates else self.pace.rest
        self.built = self._build(choice, True)
        # new stages have counted nothing yet
        self._n_commits = self._elapsed_us = 0.0
        return self.built

    def seen_now(self) -> Flows:
        """The flows, updated with the recent counts of the stages."""
        found = self.flows.copy()
        if self._n_commits:
            form = self.built.choice.form
            found.see(form, ById((node, self._flow(node)) for node in form.nodes if node in self.built.stages))
        return found

    def _flow(self, node: Node) -> Flow:
        counts, n = self.built.stages[node].counts, self._n_commits
        rate = counts.plus / n
        live = self.built.live.get(node)
        if live is not None:
            size = float(len(live))
        elif isinstance(node, Block):
            size = alive_of(node, rate, self._elapsed_us / n)
        else:
            size = sum(self._flow(child).size for child in node.children if child in self.built.stages)
        return Flow(rate, counts.premature / n, size)

    def _forget(self) -> None:
        """Halve the counts, so that recent commits weigh more."""
        self._n_commits /= 2
        self._elapsed_us /= 2
        for stage in self.built.stages.values():
            stage.counts.halve()

    def _next(self) -> Choice:
        if not self.pace.rotates:
            return chosen(self.forms, self.flows, self.built.choice, self.pace.margin)
        every = rotation(self.forms)
        at = every.index(self.built.choice) if self.built.choice in every else -1
        return every[(at + 1) % len(every)]


def first_choice(forms: tuple[Form, ...], word: str, flows: Flows, pace: ReplanPace) -> Choice:
    """The choice for the start of a query, before any row was counted."""
    return chosen(forms, flows, None, pace.margin) if word == "auto" else Choice(forms[0], Strategies(word, forms[0].facts))


def rotation(forms: tuple[Form, ...]) -> list[Choice]:
    """Every form with every strategy, all edges of a form alike."""
    found = []
    for form in forms:
        nodes = frozenset(range(len(form.nodes)))
        plain = Strategies("auto", form.facts)
        blocks = frozenset(number for number, node in enumerate(form.nodes) if isinstance(node, Block))
        for strategies in (plain, replace(plain, scanning=nodes), replace(plain, sending=blocks)):
            found.append(Choice(form, strategies))
    return found


def fixed_reason(root: Node) -> str:
    """The reason why the operators of a tree cannot be rebuilt from live rows; empty if they can."""
    for node in walk(root):
        if node.is_stream or isinstance(node, ToStream | Window):
            return "a stream has no past to build from"
        if isinstance(node, LMerge):
            return "a merge shows what an input gave that may be paused now"
        if isinstance(node, Slide):
            return "an extent that is shown is not built anew"
        if isinstance(node, JoinNode) and any(node.frozen):
            return "a table counts as it was when a row came"
        if any(user_functions_of(expression) for expression in _expressions(node)):
            return "a user function may say another thing next time"
        if node.grows:
            return "it holds more and more rows"
        if isinstance(node, GroupBy) and any(item.kind in ("first", "last") for item in node.aggregates):
            if not _over_one_stream(node.child):
                return "FIRST and LAST depend on the order in which rows of several inputs came"
    return ""


def _over_one_stream(node: Node) -> bool:
    while isinstance(node, Select):
        node = node.child
    return isinstance(node, Block) and len(node.inputs) == 1 and not node.inputs[0].is_table


def _expressions(node: Node) -> list[Expression]:
    if not isinstance(node, Block | Select | JoinNode):
        return []
    found = [column.expression for column in node.columns]
    return found if node.condition is None else [*found, node.condition]
