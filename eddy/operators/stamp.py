"""Stamps: rows with the number of their commit as a last column, for joins with tables as they were then (semantics 15).

Rows that were there before the query came in the commit that opened it (semantics 16).
"""

from __future__ import annotations

from eddy.base.result_log import LoggedCommit
from eddy.operators.stage import CommitStep, Stage
from filters.values.vector import Array, Vector
from lineage.schema import Type
from windows.delta import Delta, Plus
from windows.operators.frozen_join import CommitNumber


class StampStage(Stage):
    """The rows of a stage, each with its commit number."""

    def __init__(self, child: Stage, commit: CommitNumber) -> None:
        super().__init__()
        self._child = child
        self._commit = commit

    @property
    def types(self) -> tuple[Type, ...]:
        return (*self._child.types, Type.INT)

    @property
    def sends_ends(self) -> bool:
        return self._child.sends_ends

    @property
    def children(self) -> list[Stage]:
        return [self._child]

    def _process(self, step: CommitStep) -> Delta:
        return self._stamped(self._child.delta(step), step.record)

    def _open(self, record: LoggedCommit, seats: Array) -> Delta:
        return self._stamped(self._child.opened(record, seats), record)

    def answer(self, record: LoggedCommit) -> Delta:
        return self._stamped(self._child.answer(record), record)

    def _stamped(self, delta: Delta, record: LoggedCommit) -> Delta:
        self._commit.seq = record.seq
        plus = delta.plus
        stamp = Vector.constant(Type.INT, record.seq, len(plus))
        return Delta(
            Plus(plus.ids, plus.times, plus.ranks, plus.ends, [*plus.columns, stamp], plus.effective), delta.minus
        )  # fmt: skip
