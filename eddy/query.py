"""A running query: its text, its columns, its leg, and the stretches of time in which it ran."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from filters.predicate import Condition
from filters.vector import ListFrame, Vector
from lineage.times import to_datetime
from queries.bound import OutputColumn
from queries.joins import Join
from windows.spec import WindowSpec

if TYPE_CHECKING:
    from eddy.changes import Changes
    from eddy.engine import Engine
    from eddy.legs import Leg


@dataclass(slots=True, eq=False)
class Kept:
    """The rows of an answer at a pause: all columns of the stream, the starts of their lives, their row numbers."""

    vectors: list[Vector]
    starts: np.ndarray
    row_numbers: np.ndarray
    n_rows: int
    #: when they were taken back; set by resume
    ended: int = 0

    def frame(self) -> ListFrame:
        return ListFrame(self.vectors, self.n_rows)

    def times(self) -> np.ndarray:
        return np.full(self.n_rows, self.ended)

    def numbers(self) -> np.ndarray:
        return self.row_numbers


#: What most queries have: no predicate module. One object for all of them.
NO_MODULES: Mapping[str, int] = {}


@dataclass(slots=True, eq=False)
class Run:
    """A stretch in which a query ran: commits after `after` up to `until` (None: still running)."""

    after: int
    until: int | None
    #: the first position of the stream's rows that count
    born: int
    #: numbers of its predicate modules by their text, to read stored outcomes after the modules have gone
    modules: Mapping[str, int]
    #: rows of an earlier run's answer that its first commit takes back
    taken_back: Kept | None = None

    def covers(self, seq: int) -> bool:
        return self.after < seq and (self.until is None or seq <= self.until)


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


class Query:
    """A standing query; `engine.submit` makes it. Its methods are those of the engine, for this query."""

    __slots__ = (
        "_engine", "id", "name", "sql", "tags", "plan", "leg", "runs", "kept", "complete_since_us", "_results_before",
        "_results_at_start", "errors", "__weakref__",
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

    @property
    def stream(self) -> str:
        """The stream's name in lower case."""
        return self.plan.stream

    @property
    def streams(self) -> tuple[str, ...]:
        """The names of the streams it reads, in lower case, by input."""
        return (self.plan.stream,)

    @property
    def windows(self) -> tuple[WindowSpec, ...]:
        """The windows of its inputs."""
        return (self.plan.window,)

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
        self.runs.append(run)
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
        return None if self.complete_since_us is None else to_datetime(self.complete_since_us)

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
