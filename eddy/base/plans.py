"""Plans of queries, the positions and commits at which queries begin and end, and answers kept over a pause."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from eddy.base.results import Results
from filters.expressions.predicate import Condition
from filters.values.vector import ListFrame, Vector
from lineage.identity import ById
from queries.bound import Block, OutputColumn
from queries.forms import Forms
from queries.joins import Join
from queries.nodes import GroupBy, NamedQuery, Node
from queries.refill import Refill
from queries.tree import walk
from windows.spec import WindowSpec


@dataclass(slots=True, eq=False)
class Kept:
    """The rows of an answer at a pause: all columns of the stream, the starts of their lives, their row numbers."""

    vectors: list[Vector]
    starts: np.ndarray
    row_numbers: np.ndarray
    n_rows: int

    def frame(self) -> ListFrame:
        return ListFrame(self.vectors, self.n_rows)


@dataclass(frozen=True, slots=True)
class Birth:
    """When a query without history was submitted or resumed: the ends of all streams then, by their number."""

    ends: Mapping[int, int]

    def end_of(self, stream: int) -> int:
        """The first position of a stream that the query sees; 0 for a stream created later."""
        return self.ends.get(stream, 0)


#: What most queries have: no predicate module. One object for all of them.
NO_MODULES: Mapping[str, int] = {}


@dataclass(slots=True, eq=False)
class QueryRun:
    """An uninterrupted run of a query: commits after `after` up to `until` (None: still running).

    If a commit opened the run (submit with history, resume, replace), that commit adds the first answer and takes back the
    previous one, net, all at the commit's time.
    """

    after: int
    until: int | None
    #: the first position of the stream's rows that count
    born: int
    #: numbers of its predicate modules by their text, to read stored outcomes after the modules have gone
    modules: Mapping[str, int]
    #: the clock of the commit that opened it; None if none did
    opened_us: int | None = None
    #: the answer before that commit, which it takes back; None once the log no longer holds the commit
    taken_back: Results | None = None

    def covers(self, seq: int) -> bool:
        """Whether the run includes a commit."""
        return self.after < seq and (self.until is None or seq <= self.until)

    def opened_in(self, seq: int) -> bool:
        return self.opened_us is not None and seq == self.after + 1

    def forget_taken_back(self) -> None:
        self.taken_back = None


@dataclass(frozen=True, slots=True)
class Plan:
    """The plan of a query over one stream; small, and shared where possible, for there are thousands of queries."""

    #: the stream's name in lower case
    stream: str
    window: WindowSpec
    condition: Condition
    outputs: tuple[OutputColumn, ...]
    #: what was assumed for the user, in words
    defaults: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class JoinPlan:
    """The plan of a query over several inputs."""

    #: the names of the streams and tables in lower case, the windows and the conditions of the inputs
    streams: tuple[str, ...]
    windows: tuple[WindowSpec, ...]
    conditions: tuple[Condition, ...]
    join: Join
    outputs: tuple[OutputColumn, ...]
    update_pattern: str
    defaults: tuple[str, ...]

    @property
    def is_stream(self) -> bool:
        """Whether results are only added: a stream without a window joined with tables."""
        return any(window.is_stream for window in self.windows)


@dataclass(frozen=True, slots=True)
class Trees:
    """The trees of a query with operators, and how their blocks run."""

    #: the tree as it was written, before selections were pushed down: with as many blocks as its forms, in the same order
    written: Node
    forms: Forms
    #: how each of its blocks is run
    blocks: ById[Block, Plan | JoinPlan]

    @property
    def root(self) -> Node:
        """The tree as it was written, with its selections pushed down."""
        return self.forms.forms[0].root


@dataclass(frozen=True, slots=True, eq=False)
class TreeShape:
    """What plans of queries with operators have in common whose texts differ in constants only; one object for all of them.

    `trees` are those of one of them, with its constants as lifted literals (`queries/lifting.py`): their values are those of no
    other, all else is the same for all.
    """

    trees: Trees
    #: makes the trees of a plan from its constants; its blocks have no conditions yet in `trees`
    refill: Refill
    #: the names of the streams and tables, and of the queries, that it reads, in lower case
    streams: tuple[str, ...]
    queries: tuple[str, ...]
    timeline: str
    outputs: tuple[OutputColumn, ...]
    defaults: tuple[str, ...]

    @property
    def root(self) -> Node:
        return self.trees.root


class TreePlan:
    """The plan of a query with operators: a shape and its constants. Its own trees are made when somebody asks for them."""

    __slots__ = ("shape", "constants", "_trees")

    def __init__(self, shape: TreeShape, constants: tuple[Any, ...]) -> None:
        self.shape = shape
        #: the values of the lifted literals, by their number
        self.constants = constants
        self._trees: Trees | None = None

    @property
    def trees(self) -> Trees:
        if self._trees is None:
            self._trees = self.shape.refill(self.constants)
        return self._trees

    @property
    def written(self) -> Node:
        return self.trees.written

    @property
    def forms(self) -> Forms:
        return self.trees.forms

    @property
    def blocks(self) -> ById[Block, Plan | JoinPlan]:
        """How each block of the forms is run."""
        return self.trees.blocks

    @property
    def root(self) -> Node:
        """The tree as it was written, with its selections pushed down."""
        return self.trees.root

    @property
    def streams(self) -> tuple[str, ...]:
        return self.shape.streams

    @property
    def queries(self) -> tuple[str, ...]:
        return self.shape.queries

    @property
    def timeline(self) -> str:
        return self.shape.timeline

    @property
    def outputs(self) -> tuple[OutputColumn, ...]:
        return self.shape.outputs

    @property
    def defaults(self) -> tuple[str, ...]:
        return self.shape.defaults

    @property
    def is_stream(self) -> bool:
        return self.shape.root.is_stream

    def needs(self, query: str) -> bool:
        """Whether it reads a query (a name in lower case) elsewhere than in a merge: it cannot go on while that is paused."""
        read = [node for node in walk(self.shape.root) if isinstance(node, NamedQuery) and node.name.lower() == query]
        return not all(node.merged for node in read)

    @property
    def opens(self) -> bool:
        """Whether the first answer may have rows even without history: from tables, other queries, or an aggregate without
        groups."""
        return any(
            (isinstance(node, GroupBy) and node.scalar)
            or (isinstance(node, NamedQuery) and not node.is_stream)
            or (isinstance(node, Block) and all(item.is_table for item in node.inputs))
            for node in walk(self.shape.root)
        )
