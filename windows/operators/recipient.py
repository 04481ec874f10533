"""Where the changes of queries arrive: their answers, and the net changes of each commit. Rows begin with their seat.

    emit="commit"   the net change of the whole commit by value, - before +
    emit="event"    one net change set for each instant of the commit, in event-time order, - before + in each
    a stream        every row as it comes; the answer of a seat is its newest 1,000

Between operators an end names an id, from here on a value: the value is found by the row that has the id.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from filters.values.vector import Array, Vector
from lineage.schema import Type
from windows.delta import Delta, Plus, concatenated, empty, no_minus, no_plus
from windows.state.coded import CodedRows
from windows.state.netting import Netting, group_stops
from windows.state.rows import LiveRows
from windows.state.values import ValueCodes

#: How many rows of a stream are its answer.
NEWEST = 1000


@dataclass(slots=True)
class SignedRows:
    """Signed rows, in the order in which they are shown."""

    times: Array
    #: +1 or -1
    signs: Array
    columns: list[Vector]

    def __len__(self) -> int:
        return len(self.times)


class Recipient:
    """The answers of queries that are relations."""

    __slots__ = ("types", "_rows", "_by_instant", "_netting", "_nothing", "_shares")

    def __init__(
        self, types: Sequence[Type], rows: LiveRows, *, emit: str = "commit", values: ValueCodes | None = None
    ) -> None:  # fmt: skip
        """`values`: the value codes of the root operator, shared if it keeps them."""
        assert emit in ("commit", "event"), f"no such way to emit: {emit}"
        self.types = tuple(types)
        self._rows = CodedRows(rows, ValueCodes(types) if values is None else values)
        self._shares = values is not None
        self._by_instant = emit == "event"
        self._netting = Netting()
        none = no_plus(types)
        #: what a commit shows that changed nothing
        self._nothing = SignedRows(none.times, none.times, none.columns)

    def process(self, delta: Delta, upto: int) -> SignedRows:
        """Apply the root's delta of a commit; return the net changes of the answer."""
        events, codes = self._rows.apply(delta, upto)
        if not len(events):
            return self._nothing
        stops = group_stops(events.times) if self._by_instant else np.full(min(1, len(events)), len(events), np.int64)
        values = self._rows.values
        places = self._netting.remaining(codes, events.signs, stops, values.capacity)
        found = SignedRows(events.times[places], events.signs[places], values.take(codes[places]))
        self._rows.settle()
        if not len(self._rows):
            self._netting.shrink()
        return found

    def answer(self, seat: int) -> tuple[Array, list[Vector]]:
        """Ids and columns of the live rows of a seat, in order of id."""
        live = self._rows.rows
        slots = live.live()
        slots = slots[self._rows.values.column(0, self._rows.codes(slots)).values == seat]
        slots = slots[np.argsort(live.ids[slots], kind="stable")]
        return live.ids[slots], self._rows.take(slots)

    def sweep(self, dead: Array, now: int) -> None:
        """Forget the rows of the seats marked in `dead`."""
        self._rows.kill(dead)
        self.process(empty(self.types), now)

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def bytes(self) -> int:
        return self._rows.bytes + (0 if self._shares else self._rows.values.bytes) + self._netting.bytes

    def check(self) -> None:
        self._rows.check()


class StreamRecipient:
    """The answers of queries that are streams."""

    __slots__ = ("types", "_newest", "_room")

    def __init__(self, types: Sequence[Type]) -> None:
        self.types = tuple(types)
        #: the newest rows of each seat, and some that are no longer among them
        self._newest = empty(types).plus
        self._room = NEWEST

    def process(self, delta: Delta, upto: int) -> SignedRows:
        """Every row of a commit, as it comes."""
        assert not len(delta.minus), "a stream takes nothing back"
        plus = delta.plus
        self._newest = concatenated(self.types, [Delta(self._newest, no_minus()), Delta(plus, no_minus())]).plus
        if len(self._newest) > self._room:
            self._newest = _newest_of_seats(self._newest)
            n_seats = len(np.unique(self._newest.columns[0].values))
            self._room = NEWEST if n_seats < 2 else 2 * len(self._newest)
        return SignedRows(plus.times, np.ones(len(plus), np.int64), plus.columns)

    def answer(self, seat: int) -> tuple[Array, list[Vector]]:
        """Ids and columns of the newest rows of a seat by (time, id)."""
        found = self._newest.take(np.flatnonzero(self._newest.columns[0].values == seat)[-NEWEST:])
        found = found.take(np.lexsort((found.ids, found.times)))
        return found.ids, found.columns

    def sweep(self, dead: Array, now: int) -> None:
        """Forget the rows of the seats marked in `dead`."""
        self._newest = self._newest.take(~dead[self._newest.columns[0].values])

    def __len__(self) -> int:
        return len(self._newest)

    @property
    def bytes(self) -> int:
        return self._newest.bytes

    def check(self) -> None:
        assert len(self._newest) <= self._room, "only the newest are kept"


def _newest_of_seats(plus: Plus) -> Plus:
    """The newest rows of each seat, in their order."""
    seats = plus.columns[0].values
    order = np.argsort(seats, kind="stable")
    _, first, counts = np.unique(seats[order], return_index=True, return_counts=True)
    behind = np.repeat(first + counts, counts) - np.arange(len(order))
    return plus.take(np.sort(order[behind <= NEWEST]))
