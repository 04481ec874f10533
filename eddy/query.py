"""Query handles: text, output columns, leg, and the runs of a query.

A `Query` stays the same object for good: when `replace` gives it another text, the earlier version with its runs stays readable
beside it, for as long as the log reaches back so far.
"""

from __future__ import annotations

import copy
from datetime import datetime
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa

from eddy.base.plans import Birth, Kept, Plan, QueryRun
from eddy.streams.legs import Leg
from eddy.streams.timeline import Timeline
from filters.expressions.predicate import Condition
from lineage.schema import Column, Schema
from lineage.times import MAX_US, to_datetime
from queries.bound import OutputColumn, QueryProperties, Readable
from windows.patterns import STRICT
from windows.spec import WindowSpec

if TYPE_CHECKING:
    from eddy.changes import Changes


class QueryHost(Protocol):
    """The engine's calls that a query forwards to."""

    def answer(self, query: Query) -> pa.Table: ...
    def changes(self, query: Query, since: str | int = "snapshot") -> Changes: ...
    def cancel(self, query: Query) -> None: ...
    def pause(self, query: Query) -> None: ...
    def resume(self, query: Query) -> None: ...
    def explain(self, query: Query) -> dict[str, Any]: ...


class Query:
    """A standing query, made by `engine.submit`; its methods are the engine's, for this query."""

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
        engine: QueryHost,
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
        self.runs: list[QueryRun] = []
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
        """The query's own timeline; None: the timeline of its stream."""
        return None

    @property
    def readable(self) -> Readable:
        """The query's description for queries that read it by name."""
        schema = Schema(tuple(Column(column.name, column.type) for column in self.outputs))
        facts = QueryProperties(
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
        """Whether a - may come for a result with a known end, in queries that read this one by name."""
        return False

    @property
    def unread(self) -> bool:
        """Whether no reader has asked for changes yet; they need not be logged."""
        return False

    @property
    def levels(self) -> int:
        """The depth of the longest chain of queries that read each other by name, from this one down."""
        return 1

    @property
    def ordered(self) -> bool:
        """Whether result rows have an order of their own."""
        return True

    @property
    def union_bits(self) -> int:
        """The number of bits of row ids that UNION ALL takes."""
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
        """Whether the first answer may have rows even without history; the submit is then a commit."""
        return False

    @property
    def windows(self) -> tuple[WindowSpec, ...]:
        """The windows of its inputs."""
        return (self.plan.window,)

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """The condition on each input alone."""
        return (self.plan.condition,)

    @property
    def running(self) -> bool:
        return self.leg is not None

    @property
    def is_stream(self) -> bool:
        """Whether results are only added, never taken back."""
        return self.window.is_stream

    @property
    def window(self) -> WindowSpec:
        return self.plan.window

    @property
    def outputs(self) -> tuple[OutputColumn, ...]:
        return self.plan.outputs

    @property
    def born(self) -> int:
        """The first position of the stream that counts in the current run."""
        return self.runs[-1].born

    def begin(self, leg: Leg, run: QueryRun, leg_results: int) -> None:
        """Start a run on a leg that has given `leg_results` results so far."""
        self.leg = leg
        # not appended: that leaves room for more, of which most queries never have any
        self.runs = self.runs + [run]
        self._results_at_start = leg_results
        self.kept = None

    def end(self, until: int, leg_results: int) -> None:
        """End the current run, after commit `until`."""
        assert self.leg is not None
        self.runs[-1].until = until
        self._results_before = self.results(leg_results)
        self.leg = None

    def results(self, leg_results: int) -> int:
        """The number of results so far, given the leg's count."""
        return self._results_before + (leg_results - self._results_at_start if self.running else 0)

    # ---- texts that were replaced

    def become(self, other: Query) -> Query:
        """Take over the text and plan of `other`, which never ran; returns the earlier version as a query of its own."""
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
        """Drop an earlier version that can no longer be read."""
        self.earlier = tuple(one for one in self.earlier if one is not version)
        self.lost_until = max(self.lost_until, version.runs[-1].until or 0)

    def forget_runs(self, gone: int) -> None:
        """Drop the runs that ended by commit `gone`, the last one that is no longer logged."""
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
        """The time from which the answer misses no row from before the submit; None if that time never comes."""
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
