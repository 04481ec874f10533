"""GROUP BY: one row for each group that has rows, and always one without GROUP BY (semantics 17).

    output at an event = {(key, aggregates over the live rows with that key)}      NULL = NULL and NaN = NaN in keys

A group's row has the group's code for its id: a change is a - and a + of that id at the event that made it. Whatever its
inputs' ends, a group's own end is not known before it comes, so every end travels.

`per_event`: whether each event shows what it changed (ISTREAM, emit="event"); without it a group is read once a commit, at the
last event that touched it, and only the net change travels. `by_value`: whether rows that begin in one event have no order of
their own, so that FIRST and LAST take them by value (`windows/state/value_order.py`).

The work per row is in the parts (`windows/aggregates/`): the events of a commit become steps, every part walks them once and
notes what it was at each reading, and groups whose row differs from the one shown give the output.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from filters.values.vector import Array, Vector
from lineage.elements import FOREVER
from lineage.growth import LEAST, fitted
from lineage.kernels import kernel
from lineage.schema import Type
from windows.aggregates.aggregate import AggregateSpec
from windows.aggregates.state import AggregateState
from windows.aggregates.steps import AggregateSteps, number_readings
from windows.delta import SCHEDULED, Delta, Minus, Plus, empty, no_minus
from windows.operators.operator import Child, Operator
from windows.operators.seats import Seats
from windows.state.rows import LiveRows, RowEvents
from windows.state.value_order import ordered
from windows.state.values import ValueCodes


@kernel("void(int64[::1], int64[::1], int64[::1])")
def number_events(times: np.ndarray, ranks: np.ndarray, events: np.ndarray) -> None:
    """Number the events: equal numbers iff time and rank are equal."""
    number = np.int64(0)
    for k in range(len(times)):
        if k > 0 and (times[k] != times[k - 1] or ranks[k] != ranks[k - 1]):
            number += 1
        events[k] = number


@kernel(
    "void(int64[::1], int64[::1], boolean, int64[:,::1], uint8[:,::1], int64[:,::1], uint8[:,::1], uint8[::1], int64[::1],"
    "int64[::1], int64[::1])"
)
def list_changes(
    groups: np.ndarray, rows: np.ndarray, scalar: bool, cells: np.ndarray, nulls: np.ndarray, shown: np.ndarray,
    shown_nulls: np.ndarray, exists: np.ndarray, minus: np.ndarray, plus: np.ndarray, counts: np.ndarray,
) -> None:  # fmt: skip
    """List the readings at which a group's row ends, and at which one begins; `counts` is how many of each."""
    n_minus, n_plus = np.int64(0), np.int64(0)
    for k in range(len(groups)):
        group = groups[k]
        stands = scalar or rows[k] > 0
        same = stands and exists[group] != 0
        if same:
            for a in range(len(cells)):
                same &= cells[a, k] == shown[a, group] and nulls[a, k] == shown_nulls[a, group]
        if not same:
            if exists[group] != 0:
                minus[n_minus] = k
                n_minus += 1
            if stands:
                plus[n_plus] = k
                n_plus += 1
                for a in range(len(cells)):
                    shown[a, group] = cells[a, k]
                    shown_nulls[a, group] = nulls[a, k]
        exists[group] = stands
    counts[0], counts[1] = n_minus, n_plus


class GroupByOperator(Operator):
    """Aggregates by the first `n_keys` columns of the input; with no keys one row over all, from the first commit on."""

    sends_ends = True

    def __init__(
        self, types: Sequence[Type], n_keys: int, aggregates: Sequence[AggregateSpec], rows: LiveRows, *,
        per_event: bool = True, by_value: bool = False, seats: Seats | None = None, scalar: bool = False,
    ) -> None:  # fmt: skip
        """With `seats` the first key is the seat; a `scalar` aggregate then has no other key, and a row for each open seat."""
        self.types = (*types[:n_keys], *(aggregate.type for aggregate in aggregates))
        self._of = tuple(types)
        self._n_keys = n_keys
        self._rows = rows
        self._per_event = per_event
        self._by_value = by_value
        self._seats = seats
        self._scalar = scalar or n_keys == 0
        #: codes of groups; a scalar aggregate without seats has one, 0
        self._keys = ValueCodes(types[:n_keys])
        #: of a scalar aggregate, by seat: the code of its group, which has one reference; -1: the seat is not open
        self._open = np.full(LEAST, -1, np.int64)
        self._state = AggregateState(types, aggregates)
        #: a number above that of all events so far
        self._event = 1
        self._reset()
        #: groups that are read in the next commit whether a row comes or not: the rows of scalar aggregates that are not sent yet
        self._opening = np.zeros(1 if n_keys == 0 else 0, np.int64)
        if n_keys == 0:
            none = np.zeros(1, np.int64)
            _, self._shown[:, :1], self._shown_nulls[:, :1] = self._state.walk(AggregateSteps(none, none, none, none, 1))

    def open(self, seats: Array) -> None:
        """Give each of these seats its row of a scalar aggregate with the next commit."""
        if self._scalar and self._seats is not None:
            self._opening = self._keys.encode([Vector(Type.INT, seats)], len(seats))
            self._open = fitted(self._open, self._seats.capacity, -1)
            self._open[seats] = self._opening

    def _reset(self) -> None:
        n = len(self._state.aggregates)
        #: the group of each live row, by slot
        self._group_of = np.zeros(LEAST, np.int64)
        #: whether a group has a row in the output, and which
        self._exists = np.zeros(LEAST, np.uint8)
        self._shown = np.zeros((n, LEAST), np.int64)
        self._shown_nulls = np.zeros((n, LEAST), np.uint8)
        #: the last event that touched a group, while steps are numbered
        self._seen = np.zeros(LEAST, np.int64)

    def process(self, inputs: Sequence[Delta], upto: int) -> Delta:
        (delta,) = inputs
        if self._by_value:
            delta = Delta(ordered(delta.plus), delta.minus)
        slots, events = self._rows.apply(delta, upto)
        if len(events) == 0 and not len(self._opening):
            return empty(self.types)
        columns = delta.plus.columns
        if self._n_keys == 0:
            groups = np.zeros(len(slots), np.int64)
        elif self._scalar:
            groups = self._open[columns[0].values]
        else:
            groups = self._keys.encode(columns[: self._n_keys], len(slots))
        self._hold()
        self._group_of[slots] = groups
        self._state.enter(slots, groups, columns)
        opening, self._opening = self._opening, self._opening[:0]
        if len(opening):
            events = _preceded(events, len(opening), upto)
        steps = self._steps(events, opening)
        rows, cells, nulls = self._state.walk(steps)
        if self._seats is not None and self._state.errors > self.errors:
            read = steps.groups[steps.readings >= 0]
            self._seats.fail(self._keys.column(0, read).values, self._state.failures)
        found = self._output(events, steps, rows, cells, nulls)
        self._settle(events.ended)
        return found

    def show_events(self) -> None:
        self._per_event = True

    def _hold(self) -> None:
        n_groups, n_slots = self._keys.capacity, self._rows.capacity
        self._state.hold(n_groups, n_slots)
        self._group_of = fitted(self._group_of, n_slots)
        self._exists = fitted(self._exists, n_groups)
        self._shown = fitted(self._shown, n_groups)
        self._shown_nulls = fitted(self._shown_nulls, n_groups)
        self._seen = fitted(self._seen, n_groups)

    def _steps(self, events: RowEvents, opening: Array) -> AggregateSteps:
        groups = np.concatenate([opening, self._group_of[events.slots[len(opening) :]]])
        numbers = np.zeros(len(events), np.int64)
        if self._per_event:
            number_events(events.times, events.ranks, numbers)
        readings = np.empty(len(events), np.int64)
        n = number_readings(groups, numbers, self._seen, self._event, readings)
        self._event += int(numbers[-1]) + 1
        return AggregateSteps(events.slots, events.signs, groups, readings, n)

    def _output(self, events: RowEvents, steps: AggregateSteps, rows: Array, cells: Array, nulls: Array) -> Delta:
        read = np.flatnonzero(steps.readings >= 0)
        groups = steps.groups[read]
        ended, begun, counts = np.empty(len(read), np.int64), np.empty(len(read), np.int64), np.zeros(2, np.int64)
        list_changes(
            groups, rows, self._scalar, cells, nulls, self._shown, self._shown_nulls, self._exists, ended, begun, counts
        )  # fmt: skip
        ended, begun = ended[: counts[0]], begun[: counts[1]]
        at = read[ended]
        minus = Minus(groups[ended], events.times[at], events.ranks[at])
        at = read[begun]
        ends = np.full(len(begun), FOREVER, np.int64)
        columns = self._columns(groups[begun], cells[:, begun], nulls[:, begun])
        return Delta(Plus(groups[begun], events.times[at], events.ranks[at], ends, columns), minus)

    def _columns(self, groups: Array, cells: Array, nulls: Array) -> list[Vector]:
        values = [self._state.vector(k, np.ascontiguousarray(cells[k]), nulls[k]) for k in range(len(cells))]
        return [*self._keys.take(groups), *values]

    def _settle(self, ended: Array) -> None:
        """Release the slots, codes and texts of the rows that ended."""
        self._state.leave(ended)
        if not self._scalar:
            self._keys.release(self._group_of[ended])
        self._rows.settle()
        self.errors = self._state.errors
        if len(self._rows) == 0:
            shown, shown_nulls, exists = self._shown, self._shown_nulls, self._exists
            self._state.clear()
            self._reset()
            if self._scalar:
                self._shown, self._shown_nulls, self._exists = shown, shown_nulls, exists
                self._hold()
        elif self._state.many_texts(len(self._rows)):
            self._state.forget_texts(self._rows.live(), self._shown)

    def sweep(self, dead: Array, now: int) -> None:
        slots = self._rows.live()
        self._rows.kill(slots[dead[self._keys.column(0, self._group_of[slots]).values]])
        self.process([empty(self._of)], now)
        if self._scalar:
            closed = self._open[dead[: len(self._open)]]
            closed = closed[closed >= 0]
            self._open[dead[: len(self._open)]] = -1
            self._exists[closed] = 0
            self._keys.release(closed)
            self._hold()

    def answer(self, children: Sequence[Child], now: int) -> Delta:
        groups = np.zeros(1, np.int64) if self._n_keys == 0 else np.flatnonzero(self._exists)
        n = len(groups)
        columns = self._columns(groups, self._shown[:, groups], self._shown_nulls[:, groups])
        times = np.full(n, now, np.int64)
        return Delta(Plus(groups, times, np.zeros(n, np.int64), np.full(n, FOREVER, np.int64), columns), no_minus())

    @property
    def bytes(self) -> int:
        arrays = (self._group_of, self._exists, self._shown, self._shown_nulls, self._seen)
        return sum(array.nbytes for array in arrays) + self._keys.bytes + self._rows.bytes + self._state.bytes

    def stats(self) -> dict[str, int]:
        return {**super().stats(), "rows": len(self._rows), "groups": len(self._keys)}

    def check(self) -> None:
        self._rows.check()
        self._keys.check()
        live = self._rows.live()
        counts = np.bincount(self._group_of[live], minlength=len(self._exists))
        if not self._scalar:
            assert ((counts > 0) == (self._exists != 0)).all(), "a group has a row iff it has rows"
            assert (self._keys.references(self._keys.live()) == counts[self._keys.live()]).all(), "every row holds its group"
        elif self._n_keys:
            opened = np.sort(self._open[self._open >= 0])
            assert opened.tolist() == np.flatnonzero(self._exists).tolist() == self._keys.live().tolist(), (
                "an open seat has its row"
            )


def _preceded(events: RowEvents, n: int, upto: int) -> RowEvents:
    """Put events in front that read groups and change nothing."""
    at = events.times[0] if len(events) else upto
    none = np.zeros(n, np.int64)
    return RowEvents(
        np.concatenate([np.full(n, at, np.int64), events.times]),
        np.concatenate([np.full(n, SCHEDULED, np.int64), events.ranks]),
        np.concatenate([none, events.slots]),
        np.concatenate([none, events.signs]),
    )
