"""The join with a table that counts as it was when the row came: a row meets the versions of that commit, and keeps them.

    +      the row looks up the versions with its key that counted in the commit in which it came (semantics 15)
    end    of a combination: that of the row; the table ends none, and brings none to rows that were there before

So only the table's side can be looked up, and rows of the other side that met nobody are not kept. A combination holds its
version's columns: the version may be gone long before. What came in the commit that changes the table meets it as changed.

A row shown later than it came, by a window that slides, carries the commit in which it did: a **stamp**, a column of its own. For
such rows versions that are closed are kept as long as the window may show rows of their time. A stream's rows are joined as they
come, and nothing of them is kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from filters.expressions.evaluate import true_rows
from filters.expressions.expression import Expression
from filters.values.vector import Array, Frame, Vector, end_to_end
from lineage.growth import LEAST, fitted
from lineage.kernels import kernel
from lineage.numbers import Numbers
from lineage.schema import Type
from stems.commit_spans import OPEN
from windows.delta import Delta, Minus, Plus, empty, no_minus
from windows.operators.join_keys import KeyPair, key_columns, key_types
from windows.operators.operator import Child, Operator
from windows.operators.seats import Seats
from windows.operators.versions import KeyedVersions
from windows.state.cells import Cells
from windows.state.due import Fifo
from windows.state.rows import LiveRows, RowEvents
from windows.state.stored import StoredRows
from windows.state.values import ValueCodes

_NONE = -1
#: Before every end: nothing is due.
_NEVER = -(2**63)


@dataclass(slots=True)
class CommitNumber:
    """The number of the running commit: set by the stage that stamps rows, read by frozen joins."""

    seq: int = 0


@dataclass(frozen=True, slots=True)
class Stamps:
    """The left columns that hold the commit of a row."""

    #: columns of the left side; the latest counts
    positions: tuple[int, ...]
    #: how long after it came a row may be shown for the first time
    keep_us: int
    commit: CommitNumber


@kernel("void(int64[::1], int64[::1], int64[::1], int64[::1])")
def chain_pairs(numbers: np.ndarray, slots: np.ndarray, first: np.ndarray, following: np.ndarray) -> None:
    """Hang each combination in the list of its row."""
    for k in range(len(numbers)):
        following[numbers[k]] = first[slots[k]]
        first[slots[k]] = numbers[k]


@kernel("int64(int64[::1], int64[::1], int64[::1], int64[:,::1])")
def list_chains(slots: np.ndarray, first: np.ndarray, following: np.ndarray, found: np.ndarray) -> int:
    """(combination, place of its row among `slots`) of all combinations of some rows; there is room."""
    n = np.int64(0)
    for k in range(len(slots)):
        number = first[slots[k]]
        while number >= 0:
            found[0, n] = number
            found[1, n] = k
            n += 1
            number = following[number]
    return int(n)


class ProbeFrame(Frame):
    """The columns of rows beside those of the versions they meet."""

    __slots__ = ("_left", "_rows", "_right", "_slots")

    def __init__(self, left: Sequence[Vector], rows: Array, right: StoredRows, slots: Array) -> None:
        super().__init__(len(rows))
        self._left = left
        self._rows = rows
        self._right = right
        self._slots = slots

    def column(self, position: int) -> Vector:
        width = len(self._left)
        if position < width:
            return self._left[position].take(self._rows)
        return self._right.column(position - width, self._slots)


class Combined:
    """The live combinations of a frozen join: each has its row, by slot, and the columns of its version."""

    __slots__ = ("left", "_cells", "_owner", "_following", "_first", "_counts", "_numbers", "n_live")

    def __init__(self, left_types: Sequence[Type], right_types: Sequence[Type], rows: LiveRows) -> None:
        #: the rows that met any version
        self.left = StoredRows(left_types, rows)
        self._cells = Cells(right_types)
        self._reset()

    def _reset(self) -> None:
        self._cells = Cells(self._cells.types)
        #: by combination: the slot of its row + 1, 0 if the number is free; the next of its row
        self._owner = np.zeros(LEAST, np.int64)
        self._following = np.zeros(LEAST, np.int64)
        #: by slot of a row: its first combination, and how many it has
        self._first = np.full(LEAST, _NONE, np.int64)
        self._counts = np.zeros(LEAST, np.int64)
        self._numbers = Numbers()
        self.n_live = 0

    def apply(self, delta: Delta, rows: Array, columns: Sequence[Vector], upto: int) -> tuple[Array, RowEvents]:
        """Add combinations, given by their row in the delta (ascending) and the columns of their version; return their numbers
        and the events of their left rows."""
        having, place, counts = np.unique(rows, return_inverse=True, return_counts=True)
        slots, events = self.left.apply(Delta(delta.plus.take(having), delta.minus), upto)
        self._fit()
        if self._numbers.reserve(len(rows), self._owner):
            self._fit_numbers()
        numbers = self._numbers.take(len(rows))
        self._first[slots] = _NONE
        self._counts[slots] = counts
        self._owner[numbers] = slots[place] + 1
        self._cells.put(numbers, columns)
        chain_pairs(numbers, slots[place], self._first, self._following)
        self.n_live += len(numbers)
        return numbers, events

    def of(self, slots: Array) -> tuple[Array, Array]:
        """The combinations of rows, and for each the place of its row."""
        found = np.empty((2, int(self._counts[slots].sum())), np.int64)
        n = list_chains(slots, self._first, self._following, found)
        return found[0, :n], found[1, :n]

    def settle(self, ended: Array) -> None:
        """The commit is done: the combinations that ended in it are forgotten, with their rows."""
        self.left.settle()
        self.n_live -= len(ended)
        if not self.n_live:
            self._reset()
            return
        self._fit()
        self._owner[ended] = 0
        self._numbers.give(ended)
        if self._numbers.shrink(len(ended), self._owner, self.n_live):
            self._fit_numbers()
        if self._cells.many_texts(self.n_live):
            self._cells.compact_texts(self.numbers())

    def numbers(self) -> Array:
        """All combinations."""
        return np.flatnonzero(self._owner)

    def standing(self, now: int) -> Delta:
        """All combinations, as + at one instant."""
        numbers = self.numbers()
        slots = self._owner[numbers] - 1
        n = len(numbers)
        columns = [*self.left.take(slots), *self._cells.take(numbers)]
        ends = self.left.rows.ends[slots]
        return Delta(Plus(numbers, np.full(n, now, np.int64), np.zeros(n, np.int64), ends, columns), no_minus())

    def _fit(self) -> None:
        capacity = self.left.rows.capacity
        self._first = fitted(self._first, capacity, _NONE)
        self._counts = fitted(self._counts, capacity)

    def _fit_numbers(self) -> None:
        self._owner = fitted(self._owner, self._numbers.capacity)
        self._following = fitted(self._following, self._numbers.capacity)
        self._cells.fit(self._numbers.capacity)

    @property
    def bytes(self) -> int:
        arrays = (self._owner, self._following, self._first, self._counts)
        return self.left.bytes + self._cells.bytes + self._numbers.bytes + sum(array.nbytes for array in arrays)

    def check(self) -> None:
        self.left.check()
        self._cells.check()
        self._numbers.check(self._owner)
        live = self.left.rows.live()
        numbers, places = self.of(live)
        assert sorted(numbers.tolist()) == self.numbers().tolist(), "every combination hangs in one list"
        assert (self._owner[numbers] - 1 == live[places]).all(), "a combination hangs in the list of its row"
        assert len(numbers) == self.n_live and (self._counts[live] > 0).all(), "only rows that met a version are kept"


class FrozenJoin(Operator):
    """Rows of the left with the versions on the right: equal keys, and a condition over the columns of both, left ones first."""

    def __init__(
        self,
        types: Sequence[Sequence[Type]],
        pairs: Sequence[KeyPair],
        condition: Expression | None,
        rows: Sequence[LiveRows],
        *,
        sends_ends: bool = False,
        is_stream: bool = False,
        stamps: Stamps | None = None,
        seats: Seats | None = None,
    ) -> None:
        """`is_stream`: rows of the left count once, and end nothing; without `stamps` they come when they begin."""
        left, right = types
        self._left_types = tuple(left)
        self._seats = seats
        self.types = (*left, *right)
        self.sends_ends = sends_ends
        self._right_types = tuple(right)
        self._condition = condition
        #: what the key of a row of the left is
        self._keyed = [pair.left for pair in pairs]
        self._keys = ValueCodes(key_types(pairs))
        self._stamps = stamps
        own = [pair.right for pair in pairs]
        self._open = KeyedVersions(right, own, self._keys, rows[1], seats)
        kept = LiveRows(Fifo(), by_id=False)
        self._closed = None if stamps is None else KeyedVersions(right, own, self._keys, kept, seats)
        self._combined = None if is_stream else Combined(left, right, rows[0])
        #: ids of a stream's rows
        self._next = 0
        #: pairs looked at, and those that met the condition
        self.n_tried = 0
        self.n_met = 0

    def process(self, inputs: Sequence[Delta], upto: int) -> Delta:
        left, right = inputs
        self._change(right, upto)
        rows, columns = self._met(left.plus)
        if self._combined is None:
            ids = np.arange(self._next, self._next + len(rows))
            self._next += len(rows)
            found = Delta(self._plus(left.plus, rows, ids, columns), no_minus())
        else:
            found = self._kept(self._combined, left, rows, columns, upto)
        if self._closed is not None:
            # only now: the clock may have passed the time of rows that came in this commit
            self._closed.apply(empty(self._right_types), upto, 0, 0)
        for versions in self._sides():
            versions.settle()
        return found

    def _sides(self) -> list[KeyedVersions]:
        return [self._open] if self._closed is None else [self._open, self._closed]

    def _change(self, right: Delta, upto: int) -> None:
        """Take the table's changes; versions that closed are kept for rows that came before and are shown later."""
        if self._stamps is None:
            self._open.apply(right, upto, 0, OPEN)
            self.errors += self._open.take_errors()
            return
        assert self._closed is not None
        seq = self._stamps.commit.seq
        slots = self._open.apply(right, upto, seq, OPEN).ended
        self.errors += self._open.take_errors()
        n = len(slots)
        times, ends = np.full(n, upto, np.int64), np.full(n, upto + self._stamps.keep_us, np.int64)
        past = Plus(slots, times, np.zeros(n, np.int64), ends, self._open.stored.take(slots))
        self._closed.apply(Delta(past, no_minus()), _NEVER, self._open.opened(slots), seq)

    def _met(self, plus: Plus) -> tuple[Array, list[Vector]]:
        """The (row, version) pairs that satisfy key and condition: places of rows, columns of versions."""
        keys, usable, errors = key_columns(self._keyed, self._keys.types, plus.columns, len(plus), self._seats)
        self.errors += errors
        rows = np.flatnonzero(usable)
        codes = self._keys.encode([key.take(rows) for key in keys], len(rows))
        found = [(rows[at], versions.stored.take(slots)) for versions, at, slots in self._partners(plus, rows, codes)]
        self._keys.release(codes)
        met = np.concatenate([np.zeros(0, np.int64), *(at for at, _ in found)])
        order = np.argsort(met, kind="stable")
        vectors = [end_to_end(type, [part[k] for _, part in found]).take(order) for k, type in enumerate(self._right_types)]
        return met[order], vectors

    def _partners(self, plus: Plus, rows: Array, codes: Array) -> Iterator[tuple[KeyedVersions, Array, Array]]:
        """Yield matching (versions, places among `rows`, slots of versions), in parts."""
        came = None
        if self._stamps is not None:
            came = np.max([plus.columns[position].values[rows] for position in self._stamps.positions], axis=0)
        for versions in self._sides():
            for at, slots in versions.partners(codes):
                if came is not None:
                    counts = versions.counts(slots, came[at])
                    at, slots = at[counts], slots[counts]
                self.n_tried += len(at)
                if self._condition is not None and len(at):
                    frame = ProbeFrame(plus.columns, rows[at], versions.stored, slots)
                    true = true_rows(self._condition, frame)
                    self.errors += frame.errors
                    if self._seats is not None and frame.failures is not None:
                        self._seats.fail(plus.columns[0].values[rows[at]], frame.failures)
                    at, slots = at[true], slots[true]
                self.n_met += len(at)
                if len(at):
                    yield versions, at, slots

    def _kept(self, combined: Combined, left: Delta, rows: Array, columns: list[Vector], upto: int) -> Delta:
        numbers, events = combined.apply(left, rows, columns, upto)
        plus = self._plus(left.plus, rows, numbers, columns)
        gone = np.flatnonzero(events.signs < 0)
        ended, at = combined.of(events.slots[gone])
        events_at = gone[at]
        times = events.times[events_at]
        sent = np.ones(len(ended), np.bool_)
        if not self.sends_ends:
            sent = times < combined.left.rows.ends[events.slots[events_at]]
        minus = Minus(ended[sent], times[sent], events.ranks[events_at][sent])
        combined.settle(ended)
        return Delta(plus, minus)

    def _plus(self, plus: Plus, rows: Array, ids: Array, columns: list[Vector]) -> Plus:
        own = [column.take(rows) for column in plus.columns]
        return Plus(ids, plus.times[rows], plus.ranks[rows], plus.ends[rows], [*own, *columns])

    def sweep(self, dead: Array, now: int) -> None:
        if self._combined is not None:
            self._combined.left.kill(dead)
        for versions in self._sides():
            versions.stored.kill(dead)
        self.process([empty(self._left_types), empty(self._right_types)], now)

    def answer(self, children: Sequence[Child], now: int) -> Delta:
        return empty(self.types) if self._combined is None else self._combined.standing(now)

    @property
    def bytes(self) -> int:
        own = 0 if self._combined is None else self._combined.bytes
        return own + self._keys.bytes + sum(versions.bytes for versions in self._sides())

    def stats(self) -> dict[str, int]:
        rows = sum(len(versions.stored) for versions in self._sides())
        rows += 0 if self._combined is None else len(self._combined.left)
        return {**super().stats(), "rows": rows, "keys": len(self._keys), "tried": self.n_tried, "met": self.n_met}

    def check(self) -> None:
        self._keys.check()
        for versions in self._sides():
            versions.check()
        if self._combined is not None:
            self._combined.check()
