"""LMERGE of streams: each row that several streams present once, as soon as one of them gives it (semantics 36).

    event       (values, time t, k): the k-th of equal rows of one time is one event, in whatever streams it comes
    point       of a stream how far it has come: it gives no more rows with a smaller time
    V           the largest point of the inputs, judged after each commit; it never goes back

The rows of a stream come in order of their times, and none lies behind its point. So after a commit all rows with t < V are
decided for good, and no row has t > V. What is left open is the instant V alone, and that is all that the operator keeps:

    counts[v, i]   copies of value v with t = V that input i has given         shown[v]   copies that stand

In a commit that moves V from V0 to V the input whose point is V decides, the first named of several:

    t < V0         settled: nothing enters
    t = V0         as many copies stand as that input has: what it lacks is taken back, the newest first, at the clock
    V0 < t < V     its rows enter, as they are; those of the others present the same, or are missing in it
    t = V          a row enters that is the k-th of its values in its input, where fewer than k stand

Where V does not move, the last holds for V0, and all other rows are settled.
An input that is paused, or comes back, has given nothing (L9). Cost: O(rows of the commit); rows of other times than V0 and V
are not looked at one by one.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from filters.values.vector import Array, Vector, end_to_end
from lineage.elements import BEGINNING, FOREVER
from lineage.growth import LEAST, fitted, fitted_rows, room_for
from lineage.kernels import kernel
from lineage.schema import Type
from windows.delta import LAST, Delta, Minus, Plus, empty, merged_order, no_minus
from windows.operators.operator import Child, InputState, MergeOperator
from windows.state.values import ValueCodes

_NONE = np.zeros(0, np.int64)


@kernel("void(int64[::1], int64[::1], int64[:,::1], int64[::1], uint8[::1])")
def give_copies(codes: np.ndarray, inputs: np.ndarray, counts: np.ndarray, shown: np.ndarray, given: np.ndarray) -> None:
    """Count rows of one time in their order; mark those that are a copy more than stands."""
    for k in range(len(codes)):
        code = codes[k]
        counts[code, inputs[k]] += 1
        if counts[code, inputs[k]] > shown[code]:
            shown[code] += 1
            given[k] = 1


class StreamMerge(MergeOperator):
    """LMERGE of streams of equal columns."""

    def __init__(self, types: Sequence[Type], n_inputs: int, *, takes_back: bool) -> None:
        """`takes_back`: a window above ends rows that are taken back, and holds rows by their times."""
        self.types = tuple(types)
        self._n_inputs = n_inputs
        self.takes_back = takes_back
        #: V, and the input that moved it last; -1 before
        self.point = BEGINNING
        self.leader = -1
        self._points: tuple[int | None, ...] = (None,) * n_inputs
        #: numbers of rows given, and of rows below V, rows that stood already and rows taken back
        self._n_rows = 0
        self.settled = 0
        self.known = 0
        self.taken_back = 0
        self._begin()

    def _begin(self) -> None:
        """Keep nothing: no row of the instant V has come."""
        self._values = ValueCodes(self.types)
        #: by code: copies that each input has given, and that stand
        self._counts = np.zeros((LEAST, self._n_inputs), np.int64)
        self._shown = np.zeros(LEAST, np.int64)
        #: ids and codes of the rows that stand, in their order, and how many there are
        self._standing = np.zeros((2, LEAST), np.int64)
        self._n_standing = 0

    def stand(self, points: Sequence[int | None], states: Sequence[InputState]) -> None:
        self._points = tuple(points)
        for k, (point, state) in enumerate(zip(points, states, strict=True)):
            if point is None or state is InputState.WHOLE:
                self._counts[:, k] = 0

    def reach(self, points: Sequence[int | None]) -> None:
        """Begin after what the inputs have given: nothing before their points is looked at."""
        self.point = max((point for point in points if point is not None), default=BEGINNING)

    def process(self, inputs: Sequence[Delta], upto: int) -> Delta:
        before = self.point
        after = max([before, *(point for point in self._points if point is not None)])
        pluses = [delta.plus for delta in inputs]
        order = merged_order([(plus.times, plus.ranks) for plus in pluses])
        rows = _Rows(pluses, self.types, order)
        given = np.zeros(len(order), np.uint8)
        minus = no_minus()
        if after > before:
            self.leader = self._points.index(after)
            self.point = after
            own = rows.inputs == self.leader
            self._enter(rows, np.flatnonzero((rows.own == before) & own), given)
            minus = self._decided(upto)
            self._begin()
            given[(rows.own > before) & (rows.own < after) & own] = 1
        instant = np.flatnonzero(rows.own == after)
        codes = self._enter(rows, instant, given)
        kept = np.flatnonzero(given)
        ids = np.arange(self._n_rows, self._n_rows + len(kept))
        self._n_rows += len(kept)
        stands = given[instant] == 1
        self._note(ids[np.searchsorted(kept, instant[stands])], codes[stands])
        n_settled = int(np.count_nonzero(rows.own < before))
        self.settled += n_settled
        self.known += len(order) - len(kept) - n_settled
        return Delta(rows.plus(kept, ids, self.takes_back), minus)

    def _enter(self, rows: _Rows, places: Array, given: Array) -> Array:
        """Count rows of the instant V, and mark those that enter; returns the codes of their values."""
        if not len(places):
            return _NONE
        codes = self._values.encode(rows.columns(places), len(places))
        self._counts = fitted_rows(self._counts, self._values.capacity)
        self._shown = fitted(self._shown, self._values.capacity)
        entering = np.zeros(len(places), np.uint8)
        give_copies(codes, rows.inputs[places], self._counts, self._shown, entering)
        given[places] = entering
        return codes

    def _note(self, ids: Array, codes: Array) -> None:
        """Note rows that stand at V."""
        first, self._n_standing = self._n_standing, self._n_standing + len(ids)
        self._standing = fitted(self._standing, room_for(self._n_standing, self._standing.shape[1]))
        self._standing[:, first : self._n_standing] = ids, codes

    def _decided(self, upto: int) -> Minus:
        """Take back the newest of the standing rows of V of which the deciding input has fewer."""
        if not self._n_standing:
            return no_minus()
        ids, codes = self._standing[:, : self._n_standing]
        lacking = np.maximum(self._shown - self._counts[:, self.leader], 0)
        # rows that came in this commit are those of the deciding input: it lacks none of them
        newest = np.argsort(codes, kind="stable")[::-1]
        codes = codes[newest]
        place = np.arange(len(codes)) - np.searchsorted(-codes, -codes, "left")
        gone = np.sort(newest[place < lacking[codes]])
        self.taken_back += len(gone)
        if not self.takes_back:
            return no_minus()
        return Minus(ids[gone], np.full(len(gone), upto, np.int64), np.full(len(gone), LAST, np.int64))

    def answer(self, children: Sequence[Child], now: int) -> Delta:
        """Return an empty delta: a stream has no past rows for a new reader."""
        return empty(self.types)

    @property
    def bytes(self) -> int:
        arrays = (self._counts, self._shown, self._standing)
        return self._values.bytes + sum(array.nbytes for array in arrays)

    def stats(self) -> dict[str, int]:
        counted = {"settled": self.settled, "known": self.known, "taken_back": self.taken_back}
        return {**super().stats(), "rows": self._n_standing, "out": self._n_rows, **counted}

    def check(self) -> None:
        self._values.check()
        ids, codes = self._standing[:, : self._n_standing]
        assert (np.bincount(codes, minlength=len(self._shown)) == self._shown).all(), "the copies that stand are counted"
        assert (np.diff(ids) > 0).all(), "rows that stand are in the order in which they came"


class _Rows:
    """The rows of all inputs in one commit, in event order."""

    def __init__(self, pluses: Sequence[Plus], types: Sequence[Type], order: Array) -> None:
        self._pluses = pluses
        self._order = order
        self._columns = [end_to_end(type, [plus.columns[k] for plus in pluses]) for k, type in enumerate(types)]
        self.inputs = np.repeat(np.arange(len(pluses)), [len(plus) for plus in pluses])[order]
        #: their own times
        self.own = np.concatenate([plus.effective_times for plus in pluses])[order]

    def columns(self, places: Array) -> list[Vector]:
        rows = self._order[places]
        return [column.take(rows) for column in self._columns]

    def plus(self, places: Array, ids: Array, timed: bool) -> Plus:
        """Some of the rows, with these ids; `timed`: with their own times."""
        rows = self._order[places]
        times = np.concatenate([plus.times for plus in self._pluses])[rows]
        ranks = np.concatenate([plus.ranks for plus in self._pluses])[rows]
        own = self.own[places]
        effective = own if timed and (own != times).any() else None
        return Plus(ids, times, ranks, np.full(len(ids), FOREVER, np.int64), self.columns(places), effective)
