"""The membership of one query in a shared group, in place of operators of its own (`eddy/operators/template.py`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from eddy.base.result_log import LoggedCommit
from eddy.base.results import Results
from eddy.operators.core import Core, StreamCore
from eddy.operators.shared.shared_changes import Projected
from eddy.operators.shared.shared_form import Shareable
from eddy.operators.shared.shared_group import SharedGroup
from eddy.streams.timeline import effect_time

if TYPE_CHECKING:
    from eddy.operators.tree_query import TreeQuery


class SharedOperation:
    """A member of a group, over a core that has its leg."""

    __slots__ = ("query", "core", "face", "listed", "group", "number", "errors")

    def __init__(self, query: TreeQuery, shareable: Shareable, core: StreamCore, group: SharedGroup) -> None:
        self.query = query
        self.core = core
        self.face = shareable.face
        self.listed = shareable.listed
        self.group = group
        #: values that could not be computed when it was last read
        self.errors = 0
        leg = core.query.leg
        assert leg is not None and leg.slot is not None, "a core that runs, of a condition that can be true"
        self.number = group.join(self, shareable, leg.slot, core.query.born, query.log.read or query.log.open)

    @property
    def cores(self) -> list[Core]:
        return [self.core]

    @property
    def n_results(self) -> int:
        """The number of results so far, in commits in which it was watched."""
        return int(self.group.members.results[self.number])

    @property
    def missed(self) -> int | None:
        """Extents that its rows were too late for; None without any."""
        return int(self.group.members.missed[self.number]) if self.group.window.slide else None

    @property
    def logged(self) -> bool:
        return bool(self.group.members.logged[self.number])

    @property
    def path(self) -> str:
        return self.group.sums.path(self.number)

    def read(self) -> None:
        """Note that its changes have a reader from now on."""
        self.group.log(self.number)

    def open(self, record: LoggedCommit) -> Results:
        """The first answer, in the commit that opens the query."""
        found = self.answer(record.after)
        self.group.members.results[self.number] += len(found)
        return found

    def answer(self, clock: int) -> Results:
        """The rows of its groups, as + at the clock."""
        groups, measures = self.group.answer(self.number)
        # one row of constants, for all groups
        parameters = [vector.take(np.zeros(len(groups), np.int64)) for vector in self.group.members.parameters_of(self.number)]
        shown = Projected(self.group, self.face, groups, measures, clock, parameters)
        rows = np.flatnonzero(shown.stands)
        columns = shown.columns(rows)
        self.errors = shown.errors
        return Results(columns, np.full(len(rows), effect_time(clock)), 1)

    def stop(self, seq: int) -> None:
        """Stop running, after commit `seq`."""
        self.group.leave(self.number)
        self.core.stop(seq)

    @property
    def bytes(self) -> int:
        return self.group.sums.own_bytes(self.number)

    def check(self) -> None:
        assert self.group.members.operations[self.number] is self, "a group knows its members"
