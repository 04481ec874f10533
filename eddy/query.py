"""A running query: its text, its columns, its leg, and the stretches of time in which it ran.

Whoever holds a `Query` holds it for good: when `replace` gives it another text, it stays the same object, and what it was, its
runs included, stays readable beside it as an earlier version for as long as the log reaches so far back.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from filters.expressions.predicate import Condition
from filters.values.vector import ListFrame, Vector
from lineage.schema import Column, Schema
from lineage.times import MAX_US, to_datetime
from queries.bound import Block, OutputColumn, QueryFacts, Readable
from queries.forms import Forms
from queries.joins import Join
from queries.nodes import GroupBy, NamedQuery, Node
from queries.tree import walk
from windows.patterns import STRICT
from windows.spec import WindowSpec

if TYPE_CHECKING:
    from eddy.changes import Changes
    from eddy.engine import Engine
    from eddy.reading.reader import Results
    from eddy.streams.legs import Leg
    from eddy.streams.timeline import Timeline


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
        """The position before which the query sees nothing; a stream that came later had no rows."""
        return self.ends.get(stream, 0)


#: What most queries have: no predicate module. One object for all of them.
NO_MODULES: Mapping[str, int] = {}


@dataclass(slots=True, eq=False)
class Run:
    """A stretch in which a query ran: commits after `after` up to `until` (None: still running).

    If it was opened in a commit (submit with history, resume, replace), the first one gives it what it sees at once as + and
    takes back what it had, net, all at the time of that commit.
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
        return self.after < seq and (self.until is None or seq <= self.until)

    def opened_in(self, seq: int) -> bool:
        return self.opened_us is not None and seq == self.after + 1

    def forget_taken_back(self) -> None:
        self.taken_back = None


@dataclass(frozen=True, slots=True)
class Plan:
    """What is left of a query's text once it is bound: few and shared objects, for there are thousands of queries."""

    #: the stream's name in lower case
    stream: str
    window: WindowSpec
    condition: Condition
    outputs: tuple[OutputColumn, ...]
    #: what was assumed for the user, in words
    defaults: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class JoinPlan:
    """What is left of the text of a query over several inputs."""

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
        """Whether its results are only added: a stream without a window, with tables."""
        return any(window.is_stream for window in self.windows)


@dataclass(frozen=True, slots=True)
class TreePlan:
    """What is left of the text of a query with operators."""

    #: the tree as it was written, before selections were pushed down: with as many blocks as its forms, in the same order
    written: Node
    forms: Forms
    #: how each of its blocks is run
    blocks: Mapping[Block, Plan | JoinPlan]
    #: the names of the streams and tables, and of the queries, that it reads, in lower case
    streams: tuple[str, ...]
    queries: tuple[str, ...]
    timeline: str
    outputs: tuple[OutputColumn, ...]
    defaults: tuple[str, ...]

    @property
    def root(self) -> Node:
        """The tree as it was written, with its selections pushed down."""
        return self.forms.forms[0].root

    @property
    def is_stream(self) -> bool:
        return self.root.is_stream

    @property
    def opens(self) -> bool:
        """Whether it may have rows at once, whatever its history: of tables, of other queries, or the one row without groups."""
        return any(
            (isinstance(node, GroupBy) and node.scalar)
            or (isinstance(node, NamedQuery) and not node.is_stream)
            or (isinstance(node, Block) and all(item.is_table for item in node.inputs))
            for node in walk(self.root)
        )


class Query:
    """A standing query; `engine.submit` makes it. Its methods are those of the engine, for this query."""

    __slots__ = (
        "_engine", "id", "name", "sql", "tags", "plan", "leg", "runs", "kept", "complete_since_us", "_results_before",
        "_results_at_start", "errors", "birth", "earlier", "lost_until", "emit", "expiry", "__weakref__",
        # of a join
        "join_plan", "legs", "sources", "group", "slot",
        # of a query with tables
        "_tables", "_table_legs",
        # of a query with operators
        "tree_plan", "_timeline", "operation", "log",
    )  # fmt: skip

    def __init__(
        self,
        engine: Engine,
        id_: int,
        name: str,
        sql: str,
        tags: tuple[str, ...],
        plan: Plan,
    ) -> None:
        self._engine = engine
        self.id = id_
        self.name = name
        self.sql = sql
        self.tags = tags
        self.plan = plan
        #: None while paused or after cancel
        self.leg: Leg | None = None
        #: the stretches in which it ran that the log still reaches, oldest first; never empty
        self.runs: list[Run] = []
        #: the answer it keeps while paused
        self.kept: Kept | None = None
        self.complete_since_us: int | None = None
        self._results_before = 0
        self._results_at_start = 0
        #: output values that could not be computed when it was last read
        self.errors = 0
        #: what it may see: rows from its birth on, or, if None, all that is stored (`history="window"`)
        self.birth: Birth | None = None
        #: what it was under earlier texts, as far as the log reaches; they do not run
        self.earlier: tuple[Query, ...] = ()
        #: of the runs that it no longer has, the last commit
        self.lost_until = 0
        #: whether its changes are net over a "commit" or over each "event"
        self.emit = "commit"
        #: how ends are found, a word of contract 5
        self.expiry = "auto"

    @property
    def stream(self) -> str:
        """The stream's name in lower case."""
        return self.plan.stream

    @property
    def streams(self) -> tuple[str, ...]:
        """The names of the streams it reads, in lower case, by input."""
        return (self.plan.stream,)

    @property
    def timeline(self) -> Timeline | None:
        """The timeline that it is on; None: that of its stream."""
        return None

    @property
    def readable(self) -> Readable:
        """What a query that reads it by name has to know."""
        schema = Schema(tuple(Column(column.name, column.type) for column in self.outputs))
        facts = QueryFacts(
            self.is_stream, self.update_pattern, self.ends_known, self.ends_early, self.levels, self.union_bits, self.ordered,
            paused=not self.running,
        )  # fmt: skip
        return Readable(schema, query=facts)

    @property
    def ends_known(self) -> bool:
        """Whether every result's end is known when it begins."""
        return self.update_pattern != STRICT

    @property
    def ends_early(self) -> bool:
        """Whether a - may come for a result whose end is known, to who reads it by name."""
        return False

    @property
    def unread(self) -> bool:
        """Whether its changes may go unlogged, for nobody has asked for them yet."""
        return False

    @property
    def levels(self) -> int:
        """How many running queries stand above each other, itself with them."""
        return 1

    @property
    def ordered(self) -> bool:
        """Whether its rows come in an order of their own."""
        return True

    @property
    def union_bits(self) -> int:
        """Bits that UNION ALLs take of the ids of its rows."""
        return 0

    @property
    def reads(self) -> tuple[str, ...]:
        """The names of the running queries it reads, in lower case."""
        return ()

    @property
    def column_names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.outputs)

    @property
    def opens(self) -> bool:
        """Whether it may have rows at once, whatever its history: its submit is then a commit."""
        return False

    @property
    def windows(self) -> tuple[WindowSpec, ...]:
        """The windows of its inputs."""
        return (self.plan.window,)

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """The conditions of its inputs alone."""
        return (self.plan.condition,)

    @property
    def running(self) -> bool:
        return self.leg is not None

    @property
    def is_stream(self) -> bool:
        """Whether its results are only added, never taken back."""
        return self.window.is_stream

    @property
    def window(self) -> WindowSpec:
        return self.plan.window

    @property
    def outputs(self) -> tuple[OutputColumn, ...]:
        return self.plan.outputs

    @property
    def born(self) -> int:
        """The first position of the stream's rows that count now."""
        return self.runs[-1].born

    def begin(self, leg: Leg, run: Run, leg_results: int) -> None:
        """Start to run on a leg that has had `leg_results` results so far."""
        self.leg = leg
        # not appended: that leaves room for more, of which most queries never have any
        self.runs = self.runs + [run]
        self._results_at_start = leg_results
        self.kept = None

    def end(self, until: int, leg_results: int) -> None:
        """Stop running, after a commit."""
        assert self.leg is not None
        self.runs[-1].until = until
        self._results_before = self.results(leg_results)
        self.leg = None

    def results(self, leg_results: int) -> int:
        """Results so far, given those of the leg."""
        return self._results_before + (leg_results - self._results_at_start if self.running else 0)

    # ---- texts that were replaced

    def become(self, other: Query) -> Query:
        """Take over the text and plan of `other`, which never ran; returns what this one was."""
        version = copy.copy(self)
        version.earlier = ()
        for name in ("sql", "plan", "join_plan", "legs", "sources", "group", "slot", "_tables", "_table_legs",
            "tree_plan", "_timeline", "operation", "log"):  # fmt: skip
            if hasattr(other, name):
                setattr(self, name, getattr(other, name))
            elif hasattr(self, name):
                delattr(self, name)
        self.__class__ = other.__class__
        self.runs = []
        self.earlier = (*self.earlier, version)
        return version

    def forget_version(self, version: Query) -> None:
        """An earlier version can no longer be read."""
        self.earlier = tuple(one for one in self.earlier if one is not version)
        self.lost_until = max(self.lost_until, version.runs[-1].until or 0)

    def forget_runs(self, gone: int) -> None:
        """Commits up to `gone` are no longer logged."""
        past = [run.until for run in self.runs if run.until is not None and run.until <= gone]
        if past:
            self.runs = [run for run in self.runs if run.until is None or run.until > gone]
            self.lost_until = max(self.lost_until, *past)

    @property
    def kind(self) -> str:
        """ "relation" (+ and -) or "stream" (only +)."""
        return "stream" if self.is_stream else "relation"

    @property
    def state(self) -> str:
        if self.running:
            return "running"
        return "paused" if self.kept is not None else "cancelled"

    @property
    def columns(self) -> dict[str, str]:
        """The output columns and their types."""
        return {column.name: column.type.value for column in self.outputs}

    @property
    def update_pattern(self) -> str:
        return self.plan.window.update_pattern

    @property
    def complete_since(self) -> datetime | None:
        """From when on the answer misses nothing that came before the submit; None if that time never comes."""
        since = self.complete_since_us
        # windows may be so long that their end has no date
        return None if since is None or since > MAX_US else to_datetime(since)

    def answer(self) -> pa.Table:
        return self._engine.answer(self)

    def changes(self, since: str | int = "snapshot") -> Changes:
        return self._engine.changes(self, since)

    def cancel(self) -> None:
        self._engine.cancel(self)

    def pause(self) -> None:
        self._engine.pause(self)

    def resume(self) -> None:
        self._engine.resume(self)

    def explain(self) -> dict[str, Any]:
        return self._engine.explain(self)

    def __repr__(self) -> str:
        text = " ".join(self.sql.split())
        shown = text if len(text) <= 60 else text[:57] + "..."
        return f"<Query {self.id} {self.name!r} {self.state} {self.kind}: {shown}>"
