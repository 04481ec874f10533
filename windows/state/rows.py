"""The live rows of one input, by slot, and the events of a commit in exact order.

    slot     a small number that is a row's own while it lives; arrays of an operator's state are indexed by it
    events   every + and -, explicit or scheduled, of a commit and of all that is due by its clock, each for a row that was there

`apply` gives the + rows of a delta slots and walks explicit changes and due ends together in event order: an id leads to the row
that has it at that event, an end of a row that is gone is dropped. Slots of rows that ended are used again only after `settle`:
what an operator keeps for a row can be read until the whole commit is done. Capacity follows the number of live rows
(`lineage/numbers.py`).

Ids are looked up in a hash table, which an input that never ends a row explicitly does without (`by_id=False`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from filters.values.vector import Array
from lineage.elements import FOREVER
from lineage.growth import LEAST, fitted
from lineage.hash_table import delete_entry, entry_of, hash_of, move_entries, number_of, table_shift
from lineage.kernels import Number, inline, kernel
from lineage.numbers import Numbers
from stems.keys import mix
from windows.delta import SCHEDULED, Delta, merged_order
from windows.state.due import Buffer, Fifo

U64 = np.uint64

_NOTHING = np.zeros(0, np.int64)

#: Places of `counts`: events, rows that ended by an explicit - and are still in the buffer, ends of rows not there.
_EVENTS, _EARLY, _DROPPED = 0, 1, 2


@dataclass(slots=True)
class RowEvents:
    """The beginnings and ends of an input's rows in one commit, in event order."""

    times: Array
    ranks: Array
    slots: Array
    #: +1 or -1
    signs: Array

    def __len__(self) -> int:
        return len(self.slots)

    @property
    def ended(self) -> Array:
        return self.slots[self.signs < 0]


@inline
def _hash_id(id: Number) -> Number:
    return np.int64(mix(U64(id)) >> U64(32))


@inline
def _find_id(id: Number, ids: Number, table: Number, shift: Number) -> Number:
    """Return the place of an id in the table, or a free one."""
    h = _hash_id(id)
    mask = np.int64(len(table) - 1)
    at = h >> shift
    while table[at] != 0 and (hash_of(table[at]) != h or ids[number_of(table[at])] != id):
        at = (at + 1) & mask
    return at


@kernel(
    "void(int64[::1], int64[::1], int64[::1], int64[::1], int64[::1], int64[::1], int64, boolean,"
    "int64[::1], int64[::1], uint8[::1], int64[::1], int64[:,::1], int64[::1], int64[::1])"
)
def walk_events(
    order: np.ndarray, times: np.ndarray, ranks: np.ndarray, due: np.ndarray, minus_ids: np.ndarray, plus_slots: np.ndarray,
    upto: int, by_id: bool, ids: np.ndarray, ends: np.ndarray, alive: np.ndarray, table: np.ndarray, found: np.ndarray,
    early: np.ndarray, counts: np.ndarray,
) -> None:  # fmt: skip
    """Apply due ends, explicit ends and beginnings (numbered through in that sequence) in the order given.

    `found` gets times, ranks, slots and signs: the fields of `RowEvents`.
    """
    shift = table_shift(table)
    n = np.int64(0)
    n_early = np.int64(0)
    dropped = np.int64(0)
    n_due = len(due)
    n_minus = len(minus_ids)
    for k in range(len(order)):
        place = order[k]
        sign = np.int64(-1)
        slot = np.int64(-1)
        if place < n_due:
            if alive[due[place]]:
                slot = due[place]
                if by_id:
                    delete_entry(table, _find_id(ids[slot], ids, table, shift), shift)
        elif place < n_due + n_minus:
            at = _find_id(minus_ids[place - n_due], ids, table, shift)
            if table[at] != 0:
                slot = number_of(table[at])
                delete_entry(table, at, shift)
                if ends[slot] > upto:
                    early[n_early] = slot
                    n_early += 1
            else:
                dropped += 1
        else:
            slot = plus_slots[place - n_due - n_minus]
            sign = np.int64(1)
            if by_id:
                table[_find_id(ids[slot], ids, table, shift)] = entry_of(_hash_id(ids[slot]), slot)
        if slot >= 0:
            alive[slot] = sign > 0
            found[0, n] = times[place]
            found[1, n] = ranks[place]
            found[2, n] = slot
            found[3, n] = sign
            n += 1
    counts[_EVENTS] = n
    counts[_EARLY] = n_early
    counts[_DROPPED] = dropped


@kernel("void(int64[::1], int64[::1], int64[::1])")
def forget_ids(slots: np.ndarray, ids: np.ndarray, table: np.ndarray) -> None:
    """Take the ids of live rows out of the table."""
    shift = table_shift(table)
    for k in range(len(slots)):
        delete_entry(table, _find_id(ids[slots[k]], ids, table, shift), shift)


def _joined(parts: list[Array]) -> Array:
    """Concatenate arrays; a copy only if there are several."""
    filled = [part for part in parts if len(part)]
    return np.ascontiguousarray(filled[0]) if len(filled) == 1 else np.concatenate(parts)


class LiveRows:
    """The rows of one input that are alive."""

    __slots__ = ("buffer", "ids", "ends", "alive", "n_live", "dropped", "_by_id", "_table", "_numbers", "_ended", "_killed")

    def __init__(self, buffer: Buffer, *, by_id: bool = True) -> None:
        #: finds the rows that are due
        self.buffer = buffer
        self._by_id = by_id
        #: explicit ends that met no row
        self.dropped = 0
        self._reset()

    def _reset(self) -> None:
        self.n_live = 0
        self.ids = np.zeros(LEAST, np.int64)
        #: scheduled ends, FOREVER where there is none
        self.ends = np.zeros(LEAST, np.int64)
        self.alive = np.zeros(LEAST, np.uint8)
        #: from an id to the slot of the live row that has it
        self._table = np.zeros(2 * LEAST, np.int64)
        #: the slots
        self._numbers = Numbers()
        #: slots of rows that ended since the last `settle`
        self._ended: Array = np.zeros(0, np.int64)
        #: slots of rows that end with the next `apply`
        self._killed: Array = _NOTHING

    @property
    def capacity(self) -> int:
        """The size of arrays by slot: every slot is below it."""
        return self._numbers.capacity

    def __len__(self) -> int:
        return self.n_live

    def apply(self, delta: Delta, upto: int) -> tuple[Array, RowEvents]:
        """Apply a delta; return the slots of its + rows, and all events up to the clock `upto`."""
        assert not len(self._ended), "the last commit is settled"
        assert self._by_id or not len(delta.minus), "an input whose rows are not known by id ends none"
        plus, minus = delta.plus, delta.minus
        slots = self._enter(plus.ids, plus.ends) if len(plus) else _NOTHING
        due = self.buffer.due(upto, self.ends)
        due_times = self.ends[due]
        if len(self._killed):
            due_times = np.concatenate([due_times, np.full(len(self._killed), upto, np.int64)])
            due, self._killed = np.concatenate([due, self._killed]), _NOTHING
        if not (len(slots) or len(minus) or len(due)):
            return slots, RowEvents(_NOTHING, _NOTHING, _NOTHING, _NOTHING)
        due_ranks = np.full(len(due), SCHEDULED, np.int64)
        runs = [(due_times, due_ranks), (minus.times, minus.ranks), (plus.times, plus.ranks)]
        order = merged_order(runs)
        n = len(order)
        found = np.empty((4, n), np.int64)
        early = np.empty(len(minus), np.int64)
        counts = np.zeros(3, np.int64)
        walk_events(
            order, _joined([times for times, _ in runs]), _joined([ranks for _, ranks in runs]), due, minus.ids,
            slots, upto, self._by_id, self.ids, self.ends, self.alive, self._table, found, early, counts,
        )  # fmt: skip
        n, n_early, dropped = counts.tolist()
        self.dropped += dropped
        early = early[:n_early]
        self.buffer.remove(early[self.ends[early] < FOREVER], self.ends)
        events = RowEvents(*found[:, :n])
        # where nothing begins all of them ended: no copy
        self._ended = events.ended if len(slots) else events.slots
        self.n_live += len(slots) - len(self._ended)
        return slots, events

    def end(self, slots: Array, upto: int) -> None:
        """End rows in the commit that was last applied, by their own operator."""
        # those due by `upto` have been found, and are among the ended already; so are those that a - ended
        early = slots[(self.ends[slots] > upto) & (self.alive[slots] != 0)]
        if self._by_id:
            forget_ids(early, self.ids, self._table)
        self.alive[early] = 0
        self.buffer.remove(early[self.ends[early] < FOREVER], self.ends)
        self._ended = np.concatenate([self._ended, early])
        self.n_live -= len(early)

    def kill(self, slots: Array) -> None:
        """End live rows with the next `apply`, at its clock, whatever their ends."""
        self.buffer.remove(slots[self.ends[slots] < FOREVER], self.ends)
        self._killed = slots

    @property
    def ended(self) -> Array:
        """The slots of the rows that ended since the last `settle`."""
        return self._ended

    def _enter(self, ids: Array, ends: Array) -> Array:
        """Give slots to rows that begin."""
        if self._numbers.reserve(len(ids), self.alive):
            self._fit()
        slots = self._numbers.take(len(ids))
        self.ids[slots] = ids
        self.ends[slots] = ends
        scheduled = slots[ends < FOREVER]
        if isinstance(self.buffer, Fifo) and not self.buffer.fits(scheduled, self.ends):
            # a query that is opened among others brings rows that end before theirs
            self.buffer = self.buffer.as_calendar(self.ends)
        self.buffer.add(scheduled, self.ends)
        return slots

    def _fit(self) -> None:
        """Resize the arrays to the new capacity."""
        self.ids = fitted(self.ids, self.capacity)
        self.ends = fitted(self.ends, self.capacity)
        self.alive = fitted(self.alive, self.capacity)
        if self._by_id:
            table = np.zeros(2 * self.capacity, np.int64)
            move_entries(self._table, table)
            self._table = table

    def settle(self) -> None:
        """End the commit: free the slots of rows that ended in it."""
        if not len(self._ended):
            return
        if self.n_live == 0:
            self._reset()
            return
        self._numbers.give(self._ended)
        if self._numbers.shrink(len(self._ended), self.alive, self.n_live):
            self._fit()
        self._ended = np.zeros(0, np.int64)

    def live(self) -> Array:
        """Return the slots of all live rows, ascending."""
        return np.flatnonzero(self.alive)

    @property
    def bytes(self) -> int:
        arrays = (self.ids, self.ends, self.alive, self._table)
        return sum(array.nbytes for array in arrays) + self._numbers.bytes + self.buffer.bytes

    def check(self) -> None:
        """Assert the invariants; O(rows)."""
        live = self.live()
        assert len(live) == self.n_live, "rows are counted"
        assert not len(self._ended), "what ended is settled"
        self._numbers.check(self.alive)
        waiting = self.buffer.slots()
        assert (self.alive[waiting] != 0).all(), "only live rows wait for their end"
        if self._by_id:
            assert len(set(self.ids[live].tolist())) == len(live), "an id names one live row"
            entries = self._table[self._table != 0]
            assert sorted((entries & 0xFFFFFFFF) - 1) == live.tolist(), "the table leads to every live row once"
