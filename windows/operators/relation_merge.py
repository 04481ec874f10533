"""LMERGE of relations: the rows of the input that decides (semantics 36).

A running query has taken the whole of a commit, so its word counts for the instant `T` too; a window over a stream stands where
the stream's front is. After each commit the input with the largest point decides, the first named of several, and the output has
its rows, by value:

    the same decides    its changes, event by event; as in EXCEPT ALL copies of a value are a stack: the oldest stay
    another decides     the difference of the two, by value, as one event at the end of the commit: what both have stays (L10)
    nobody does         all inputs are paused: the rows stay as they are

So a row of the deciding input gives a row and its end takes one back; what else happens is the work of points.

The live rows of every input are kept, for it may decide next; those of a paused one only while they are the output.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from filters.values.vector import Array
from lineage.schema import Type
from windows.delta import LAST, Delta, empty
from windows.operators.operator import InputState, MergeOperator
from windows.operators.set_operation import EXCEPT_ALL, SetOperator
from windows.state.coded import CodedRows
from windows.state.due import Calendar
from windows.state.rows import LiveRows, RowEvents

_NOBODY = -1
_NONE = np.zeros(0, np.int64)
_NO_EVENTS = (RowEvents(_NONE, _NONE, _NONE, _NONE), _NONE)


class RelationMerge(SetOperator, MergeOperator):
    """LMERGE of relations of equal columns."""

    def __init__(self, types: Sequence[Type], n_inputs: int) -> None:
        super().__init__(EXCEPT_ALL, types, [_live_rows() for _ in range(n_inputs)])
        #: the input whose rows are the output; -1 before the first
        self.leader = _NOBODY
        self._points: tuple[int | None, ...] = (None,) * n_inputs
        self._states: tuple[InputState, ...] = (InputState.CHANGES,) * n_inputs
        #: how often another input has begun to decide
        self.switches = 0

    def stand(self, points: Sequence[int | None], states: Sequence[InputState]) -> None:
        self._points, self._states = tuple(points), tuple(states)

    def process(self, inputs: Sequence[Delta], upto: int) -> Delta:
        known = [point for point in self._points if point is not None]
        leader = self._points.index(max(known)) if known else self.leader
        retired = []
        applied: list[tuple[RowEvents, Array]] = []
        for k, (delta, state) in enumerate(zip(inputs, self._states, strict=True)):
            paused = state is InputState.NOTHING
            if state is InputState.WHOLE or (paused and k != leader and len(self._rows[k])):
                retired.append(self._rows[k])
                self._rows[k] = CodedRows(_live_rows(), self._values)
            applied.append(_NO_EVENTS if paused else self._rows[k].apply(delta, upto))
        found = self._changed(leader, applied, upto)
        for rows in retired:
            self._values.release(rows.codes(rows.rows.live()))
        return self._settled(found)

    def _changed(self, leader: int, applied: Sequence[tuple[RowEvents, Array]], upto: int) -> Delta:
        """The changes of the output in a commit after which an input decides."""
        if leader == _NOBODY:
            return empty(self.types)
        events, codes = applied[leader]
        if leader != self.leader or self._states[leader] is InputState.WHOLE:
            self.switches += self.leader not in (_NOBODY, leader)
            self.leader = leader
            events, codes = self._difference(upto)
        return self._walked([events], [codes])

    def _difference(self, upto: int) -> tuple[RowEvents, Array]:
        """The changes from what is shown to the rows of the deciding input: one event."""
        self._reserve(0)
        rows = self._rows[self.leader]
        due = np.bincount(rows.codes(rows.rows.live()), minlength=len(self._by_code))
        more = due - self._by_code[:, 3]
        codes = np.flatnonzero(more)
        signs = np.repeat(np.sign(more[codes]), np.abs(more[codes]))
        codes = np.repeat(codes, np.abs(more[codes]))
        n = len(codes)
        return RowEvents(np.full(n, upto, np.int64), np.full(n, LAST, np.int64), codes, signs), codes

    def stats(self) -> dict[str, int]:
        return {**super().stats(), "switches": self.switches}

    def check(self) -> None:
        self._values.check()
        for rows in self._rows:
            rows.check()
        shown = self._by_code[:, 3]
        due = np.zeros(len(shown), np.int64)
        if self.leader != _NOBODY:
            rows = self._rows[self.leader]
            due[:] = np.bincount(rows.codes(rows.rows.live()), minlength=len(shown))
        assert (due == shown).all(), "the rows of the deciding input are shown"
        self._numbers.check(self._by_id[:, 1])
        assert np.count_nonzero(self._by_id[:, 1]) == self._n_shown == shown.sum(), "copies shown are counted"


def _live_rows() -> LiveRows:
    return LiveRows(Calendar(), by_id=True)
