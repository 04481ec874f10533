"""The join of windows: all combinations of live rows that meet the condition, one for each while all its parts live.

    +      when the last of its parts begins: it looks up the live rows of the other side with its key
    end    the earliest scheduled end of its parts; a part that ends before that ends its combinations by a -, one that ends as
           scheduled does so only if the output sends ends

Two inputs meet in a `PairJoin`, or in a `FrozenJoin` (`windows/operators/frozen_join.py`) if the second is a table that counts
as it was; more are a cascade: the combinations so far are one side of the next. The rows of each side hang in a list by key
code. The kernel (`windows/operators/pair_walk.py`) walks the events of both sides in order (ends of either side before
beginnings), so that a combination exists exactly as long as all its parts do, whatever stands in one commit. It stops when its
room for pairs is full: the condition is then computed on those, and it goes on. Ids pair the slots of the parts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from filters.expressions.evaluate import true_rows
from filters.expressions.expression import Expression, user_functions_of
from filters.values.vector import Array, Frame, Vector
from lineage.growth import LEAST, fitted, fitted_rows
from lineage.schema import Type
from windows.delta import Delta, Minus, Plus, empty, merged_order, no_minus
from windows.operators.frozen_join import FrozenJoin, Stamps
from windows.operators.join_keys import KeyPair, key_columns, key_types
from windows.operators.operator import Child, Operator
from windows.operators.pair_walk import BEGUN, ENDED, EVENT, PART_PAIRS, list_pairs, walk_pairs
from windows.operators.seats import Seats
from windows.state.rows import LiveRows, RowEvents
from windows.state.stored import StoredRows
from windows.state.values import ValueCodes

#: No row.
_NONE = -1


def paired(left: Array, right: Array) -> Array:
    """Return one number for a pair of numbers >= 0; it is below (the larger + 1) squared."""
    found: Array = np.where(left < right, right * right + left, left * left + left + right)
    return found


class PairFrame(Frame):
    """The columns of pairs of rows; a column is gathered when first read."""

    __slots__ = ("_sides", "_slots", "_width")

    def __init__(self, sides: Sequence[StoredRows], width: int, slots: Sequence[Array]) -> None:
        super().__init__(len(slots[0]))
        self._sides = sides
        self._slots = slots
        #: columns of the left side
        self._width = width

    def column(self, position: int) -> Vector:
        side = int(position >= self._width)
        return self._sides[side].column(position - side * self._width, self._slots[side])


class PairJoin(Operator):
    """The join of two inputs by equal keys and a condition over the columns of both, left ones first."""

    def __init__(
        self,
        types: Sequence[Sequence[Type]],
        pairs: Sequence[KeyPair],
        condition: Expression | None,
        rows: Sequence[LiveRows],
        *,
        sends_ends: bool = False,
        seats: Seats | None = None,
    ) -> None:
        left, right = types
        self.types = (*left, *right)
        self.sends_ends = sends_ends
        self._seats = seats
        self._condition = condition
        #: a condition without user functions says of a pair that ends what it said when it began
        self._repeatable = condition is None or not user_functions_of(condition)
        #: what the key of each side is
        self._keyed = [[pair.left for pair in pairs], [pair.right for pair in pairs]]
        self._keys = ValueCodes(key_types(pairs))
        self._sides = [StoredRows(side, live) for side, live in zip(types, rows, strict=True)]
        self._width = len(left)
        #: by slot of each side: the code of its key, (next, previous) in the list of its key
        self._codes = [np.zeros(LEAST, np.int64) for _ in range(2)]
        self._links = [np.zeros((LEAST, 2), np.int64) for _ in range(2)]
        #: by code: the first row of each side
        self._first = np.full((LEAST, 2), _NONE, np.int64)
        #: pairs looked at, and those that met the condition
        self.n_tried = 0
        self.n_met = 0

    def process(self, inputs: Sequence[Delta], upto: int) -> Delta:
        events = [self._applied(side, delta, upto) for side, delta in enumerate(inputs)]
        self._first = fitted_rows(self._first, self._keys.capacity, _NONE)
        found = self._walked(events)
        for side, stored in enumerate(self._sides):
            self._keys.release(self._codes[side][events[side].ended])
            stored.settle()
            self._fit(side)
        if len(self._keys) == 0:
            self._first = np.full((LEAST, 2), _NONE, np.int64)
        return found

    def _applied(self, side: int, delta: Delta, upto: int) -> RowEvents:
        """Apply a side's delta; return the events of the rows whose key can match."""
        plus = delta.plus
        keys, usable, errors = key_columns(self._keyed[side], self._keys.types, plus.columns, len(plus), self._seats)
        self.errors += errors
        if not usable.all():
            plus = plus.take(usable)
            keys = [key.take(usable) for key in keys]
        stored = self._sides[side]
        slots, events = stored.apply(Delta(plus, delta.minus), upto)
        self._fit(side)
        self._codes[side][slots] = self._keys.encode(keys, len(plus))
        return events

    def _fit(self, side: int) -> None:
        capacity = self._sides[side].rows.capacity
        self._codes[side] = fitted(self._codes[side], capacity)
        self._links[side] = np.ascontiguousarray(fitted(self._links[side].T, capacity).T)

    def _walked(self, events: Sequence[RowEvents]) -> Delta:
        signed = [(side, event, sign) for sign in (-1, 1) for side, event in enumerate(events)]
        picked = [np.flatnonzero(event.signs == sign) for _, event, sign in signed]
        runs = [(event.times[rows], event.ranks[rows]) for (_, event, _), rows in zip(signed, picked)]
        order = merged_order(runs)
        times = np.concatenate([times for times, _ in runs])[order]
        ranks = np.concatenate([ranks for _, ranks in runs])[order]
        slots = np.concatenate([event.slots[rows] for (_, event, _), rows in zip(signed, picked)])[order]
        sides = np.concatenate([np.full(len(rows), side, np.int64) for (side, _, _), rows in zip(signed, picked)])[order]
        signs = np.concatenate([np.full(len(rows), sign, np.int64) for (_, _, sign), rows in zip(signed, picked)])[order]
        begun, ended = self._pairs(times, sides, slots, signs)
        plus = self._plus(begun, times[begun[2]], ranks[begun[2]])
        return Delta(plus, Minus(paired(ended[0], ended[1]), times[ended[2]], ranks[ended[2]]))

    def _pairs(self, times: Array, sides: Array, slots: Array, signs: Array) -> tuple[Array, Array]:
        """Return (left, right, event) of the pairs that begin and meet the condition, and of the pairs that end."""
        state = np.array([0, _NONE, 0, 0], np.int64)
        room = min(PART_PAIRS, 16 + 4 * len(slots))
        part = np.empty((2, 3, room), np.int64)
        begun, ended = [], []
        lefts, rights = self._sides
        while state[EVENT] < len(slots):
            walk_pairs(
                times, sides, slots, signs, self.sends_ends, self._codes[0], self._codes[1], lefts.rows.ends, rights.rows.ends,
                self._first, self._links[0], self._links[1], part[0], part[1], state,
            )  # fmt: skip
            begun.append(self._met(part[0, :, : state[BEGUN]], count=True))
            left = part[1, :, : state[ENDED]]
            ended.append(self._met(left, count=False) if self._repeatable else left.copy())
        none = np.zeros((3, 0), np.int64)
        return np.concatenate([none, *begun], axis=1), np.concatenate([none, *ended], axis=1)

    def _met(self, pairs: Array, *, count: bool) -> Array:
        """Return a copy of the pairs on which the condition is TRUE."""
        if self._condition is None or pairs.shape[1] == 0:
            met = pairs.copy()
        else:
            frame = PairFrame(self._sides, self._width, (pairs[0], pairs[1]))
            met = pairs[:, true_rows(self._condition, frame)]
            self.errors += frame.errors * count
            if count and self._seats is not None and frame.failures is not None:
                self._seats.fail(self._sides[0].column(0, pairs[0]).values, frame.failures)
        if count:
            self.n_tried += pairs.shape[1]
            self.n_met += met.shape[1]
        return met

    def _plus(self, pairs: Array, times: Array, ranks: Array) -> Plus:
        left, right = self._sides
        ends = np.minimum(left.rows.ends[pairs[0]], right.rows.ends[pairs[1]])
        return Plus(paired(pairs[0], pairs[1]), times, ranks, ends, [*left.take(pairs[0]), *right.take(pairs[1])])

    def sweep(self, dead: Array, now: int) -> None:
        for side in self._sides:
            side.kill(dead)
        self.process([empty(self.types[: self._width]), empty(self.types[self._width :])], now)

    def answer(self, children: Sequence[Child], now: int) -> Delta:
        slots = self._sides[0].rows.live()
        state = np.array([0, _NONE, 0, 0], np.int64)
        part = np.empty((3, PART_PAIRS), np.int64)
        found = [np.zeros((3, 0), np.int64)]
        while state[EVENT] < len(slots):
            list_pairs(slots, self._codes[0], self._first, self._links[1], part, state)
            found.append(self._met(part[:, : state[BEGUN]], count=False))
        pairs = np.concatenate(found, axis=1)
        n = pairs.shape[1]
        return Delta(self._plus(pairs, np.full(n, now, np.int64), np.zeros(n, np.int64)), no_minus())

    @property
    def bytes(self) -> int:
        arrays = (*self._codes, *self._links, self._first)
        return self._keys.bytes + sum(side.bytes for side in self._sides) + sum(array.nbytes for array in arrays)

    def stats(self) -> dict[str, int]:
        rows = sum(map(len, self._sides))
        return {**super().stats(), "rows": rows, "keys": len(self._keys), "tried": self.n_tried, "met": self.n_met}

    def check(self) -> None:
        self._keys.check()
        for side, stored in enumerate(self._sides):
            stored.check()
            listed = []
            for code, slot in enumerate(self._first[:, side].tolist()):
                while slot >= 0:
                    assert self._codes[side][slot] == code, "a row hangs in the list of its key"
                    listed.append(slot)
                    slot = int(self._links[side][slot, 0])
            assert sorted(listed) == stored.rows.live().tolist(), "every live row hangs in one list"


@dataclass(frozen=True, slots=True)
class JoinStep:
    """One more input of a join."""

    #: (over the columns of the inputs before, over those of this one)
    pairs: tuple[KeyPair, ...]
    #: over the columns of the inputs up to this one; None: equal keys are enough
    condition: Expression | None = None
    #: whether the input is a table that counts as it was when the combination of those before came
    frozen: bool = False
    #: of a frozen one, the columns that say when that was
    stamps: Stamps | None = None


class JoinOperator(Operator):
    """The join of several inputs in the order given: step k adds input k + 1. Its columns are the inputs' columns in order."""

    def __init__(
        self,
        types: Sequence[Sequence[Type]],
        steps: Sequence[JoinStep],
        rows: Callable[[int], LiveRows],
        between: Callable[[], LiveRows],
        *,
        sends_ends: bool = False,
        is_stream: bool = False,
        seats: Seats | None = None,
    ) -> None:
        """`rows(k)` keeps input k, `between()` the combinations of the first inputs; `is_stream`: the first counts row by row."""
        assert len(types) == len(steps) + 1 >= 2, "a step for each input but the first"
        assert not is_stream or all(step.frozen for step in steps), "a stream meets tables as they were"
        self.sends_ends = sends_ends
        self._joins: list[PairJoin | FrozenJoin] = []
        left: tuple[Type, ...] = tuple(types[0])
        for k, step in enumerate(steps):
            sides = [between() if k else rows(0), rows(k + 1)]
            join: PairJoin | FrozenJoin
            if step.frozen:
                join = FrozenJoin(
                    (left, types[k + 1]), step.pairs, step.condition, sides, sends_ends=sends_ends, is_stream=is_stream,
                    stamps=step.stamps, seats=seats,
                )  # fmt: skip
            else:
                join = PairJoin((left, types[k + 1]), step.pairs, step.condition, sides, sends_ends=sends_ends, seats=seats)
            self._joins.append(join)
            left = join.types
        self.types = left

    def process(self, inputs: Sequence[Delta], upto: int) -> Delta:
        found = inputs[0]
        for join, delta in zip(self._joins, inputs[1:], strict=True):
            found = join.process([found, delta], upto)
        self.errors = sum(join.errors for join in self._joins)
        return found

    def sweep(self, dead: Array, now: int) -> None:
        for join in self._joins:
            join.sweep(dead, now)

    def answer(self, children: Sequence[Child], now: int) -> Delta:
        return self._joins[-1].answer((), now)

    @property
    def bytes(self) -> int:
        return sum(join.bytes for join in self._joins)

    def stats(self) -> dict[str, int]:
        parts = [join.stats() for join in self._joins]
        return {name: sum(part[name] for part in parts) for name in parts[0]}

    def check(self) -> None:
        for join in self._joins:
            join.check()
