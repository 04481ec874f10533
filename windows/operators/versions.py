"""The versions of a table's rows that an operator may still look up, by key, each with the commits in which it counts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from filters.expressions.expression import Expression
from filters.values.vector import Array
from lineage.growth import LEAST, fitted
from lineage.schema import Type
from stems.commit_spans import CommitSpans
from windows.delta import Delta
from windows.operators.join_keys import key_columns
from windows.operators.pair_walk import BEGUN, EVENT, PART_PAIRS, list_pairs, walk_pairs
from windows.operators.seats import Seats
from windows.state.rows import LiveRows, RowEvents
from windows.state.stored import StoredRows
from windows.state.values import ValueCodes

_NONE = -1


class KeyedVersions:
    """Versions of a table's rows in lists by key; `keys` are shared with the rows that look them up."""

    __slots__ = ("stored", "_keyed", "_keys", "_seats", "_codes", "_links", "_first", "_spans", "_errors")

    def __init__(
        self, types: Sequence[Type], keyed: Sequence[Expression], keys: ValueCodes, rows: LiveRows, seats: Seats | None
    ) -> None:  # fmt: skip
        self.stored = StoredRows(types, rows)
        self._seats = seats
        #: what the key of a version is
        self._keyed = keyed
        self._keys = keys
        #: values of keys that could not be computed, not yet asked for
        self._errors = 0
        #: by slot: the code of its key, (next, previous) in the list of its key, the commits in which it counts
        self._codes = np.zeros(LEAST, np.int64)
        self._links = np.zeros((LEAST, 2), np.int64)
        self._spans = CommitSpans(LEAST)
        #: by code: nothing, the first version
        self._first = np.full((LEAST, 2), _NONE, np.int64)

    def apply(self, delta: Delta, upto: int, opened: Array | int, closed: int) -> RowEvents:
        """Add a delta's new versions with the commits they count in, remove ended ones; return the events."""
        plus = delta.plus
        keys, usable, errors = key_columns(self._keyed, self._keys.types, plus.columns, len(plus), self._seats)
        self._errors += errors
        if not usable.all():
            assert isinstance(opened, int), "versions that were kept before can be met"
            plus, keys = plus.take(usable), [key.take(usable) for key in keys]
        slots, events = self.stored.apply(Delta(plus, delta.minus), upto)
        self._fit()
        self._codes[slots] = self._keys.encode(keys, len(plus))
        self._spans.put(slots, opened, closed)
        self._fit_first()
        self._hang(events)
        return events

    def take_errors(self) -> int:
        """Return and reset the number of keys that could not be computed."""
        found, self._errors = self._errors, 0
        return found

    def _hang(self, events: RowEvents) -> None:
        """Link begun versions into the list of their key and unlink ended ones: a walk whose other side is empty."""
        none, room = np.zeros(1, np.int64), np.empty((3, 1), np.int64)
        walk_pairs(
            events.times, np.ones(len(events), np.int64), events.slots, events.signs, False, none, self._codes, none,
            self.stored.rows.ends, self._first, np.zeros((1, 2), np.int64), self._links, room, room,
            np.array([0, _NONE, 0, 0], np.int64),
        )  # fmt: skip

    def partners(self, codes: Array) -> Iterator[tuple[Array, Array]]:
        """(places among `codes`, slots) of the versions with these keys, in parts."""
        self._fit_first()
        state = np.array([0, _NONE, 0, 0], np.int64)
        places = np.arange(len(codes))
        while state[EVENT] < len(codes):
            found = np.empty((3, min(PART_PAIRS, 16 + 4 * len(codes))), np.int64)
            list_pairs(places, codes, self._first, self._links, found, state)
            n = state[BEGUN]
            yield found[0, :n], found[1, :n]

    def counts(self, slots: Array, commits: Array) -> Array:
        """For each (version, commit) pair, whether the version counts in the commit."""
        return self._spans.counts(slots, commits)

    def opened(self, slots: Array) -> Array:
        """The commits that opened versions."""
        return self._spans.opened(slots)

    def settle(self) -> None:
        """End the commit: free the slots and keys of versions that ended in it."""
        self._keys.release(self._codes[self.stored.rows.ended])
        self.stored.settle()
        self._fit()

    def _fit(self) -> None:
        capacity = self.stored.rows.capacity
        self._codes = fitted(self._codes, capacity)
        self._links = np.ascontiguousarray(fitted(self._links.T, capacity).T)
        self._spans.fit(capacity)

    def _fit_first(self) -> None:
        self._first = np.ascontiguousarray(fitted(self._first.T, self._keys.capacity, _NONE).T)

    @property
    def bytes(self) -> int:
        """The bytes of the versions, without the shared keys."""
        return self.stored.bytes + sum(held.nbytes for held in (self._codes, self._links, self._first)) + self._spans.bytes

    def check(self) -> None:
        self.stored.check()
        listed = []
        for code, slot in enumerate(self._first[:, 1].tolist()):
            while slot >= 0:
                assert self._codes[slot] == code, "a version hangs in the list of its key"
                listed.append(slot)
                slot = int(self._links[slot, 0])
        assert sorted(listed) == self.stored.rows.live().tolist(), "every version hangs in one list"
