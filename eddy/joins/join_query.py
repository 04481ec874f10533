"""Queries that run in a join group: their legs, births, and the group whose walks they share.

It has several inputs, or one whose rows are ended by more than the clock.

Every input holds a leg on its stream (`Source.hold`): the stream's rows are matched for it and kept as long as its window
says. The group with the indexes it needs, and the ends of rows, stay over a pause, for the log can still be read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from eddy.base.plans import JoinPlan, Plan, QueryRun
from eddy.history.recall import recall
from eddy.joins.join_group import JoinGroup
from eddy.query import Query, QueryHost
from eddy.streams.legs import Leg
from eddy.streams.timeline import Timeline
from filters.expressions.predicate import Condition
from windows.spec import WindowSpec


@dataclass(slots=True, eq=False)
class JoinRun(QueryRun):
    """A run of a join; by input, the first position that counts and the predicate modules."""

    births: tuple[int, ...] = ()
    modules_of: tuple[Mapping[str, int], ...] = ()


class JoinQuery(Query):
    """A standing query over several inputs; `plan` is that of its first input alone, `join_plan` the whole."""

    #: its attributes are slots of `Query`: a query may become one of several inputs, or of one again
    __slots__ = ()

    def __init__(
        self, engine: QueryHost, id_: int, name: str, sql: str, tags: tuple[str, ...], join_plan: JoinPlan, group: JoinGroup
    ) -> None:
        plan = Plan(
            join_plan.streams[0], join_plan.windows[0], join_plan.conditions[0], join_plan.outputs, join_plan.defaults
        )  # fmt: skip
        super().__init__(engine, id_, name, sql, tags, plan)
        self.join_plan = join_plan
        self.group = group
        self.sources = group.sources
        #: empty while it does not run
        self.legs: list[Leg] = []
        #: its slot in the group; None while it does not run, or when no match can satisfy it
        self.slot: int | None = None

    @property
    def timeline(self) -> Timeline:
        return self.group.timeline

    @property
    def streams(self) -> tuple[str, ...]:
        return self.join_plan.streams

    @property
    def windows(self) -> tuple[WindowSpec, ...]:
        return self.join_plan.windows

    @property
    def conditions(self) -> tuple[Condition, ...]:
        return self.join_plan.conditions

    @property
    def running(self) -> bool:
        return bool(self.legs)

    @property
    def is_stream(self) -> bool:
        return False

    @property
    def update_pattern(self) -> str:
        return self.join_plan.update_pattern

    def start(self, seq: int, births: tuple[int, ...], listed: bool = True) -> None:
        """Run from the next commit on; `births` are the first positions that count, by input. A query that is not `listed` takes
        no part in the group's walks."""
        plan = self.join_plan
        self.legs = [
            source.placement.hold(window, condition, self.name, listed)
            for source, window, condition in zip(self.sources, plan.windows, plan.conditions, strict=True)
        ]
        for source, leg, born in zip(self.sources, self.legs, births, strict=True):
            recall(source, leg, born)
        self.group.recall(births)
        modules = tuple(
            source.modules.numbers_of(condition) for source, condition in zip(self.sources, plan.conditions, strict=True)
        )
        self.runs.append(JoinRun(seq, None, births[0], modules[0], births=births, modules_of=modules))
        self.slot = self.group.add(self, births) if listed else None
        self._results_at_start = self._group_results()
        self.kept = None

    def stop(self, until: int, listed: bool = True) -> None:
        """Stop running, after commit `until`."""
        self.runs[-1].until = until
        self._results_before = self.results(self._group_results())
        if self.slot is not None:
            self.group.remove(self, self.slot)
            self.slot = None
        for source, leg in zip(self.sources, self.legs, strict=True):
            source.placement.let_go(leg, listed)
        self.legs = []

    def release(self) -> None:
        """Free resources held over pauses, once the query is cancelled; a join without tables has none."""

    def _group_results(self) -> int:
        """The group's result count on the query's slot."""
        return 0 if self.slot is None else int(self.group.results[self.slot])

    def n_results(self) -> int:
        """The number of matches so far."""
        return self.results(self._group_results())
