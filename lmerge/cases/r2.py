"""R2: equal starts in any order, so the events of the newest start are kept (the paper's §IV-C, with L6), as a set or a bag.

    set    payload and start are a key: an event is known if its payload is among those of the newest start
    bag    (payload, end) may come several times: how often each input gave it, and how often it is out

    rows[r]    round, payload, end, copies out, then those of each input; a row counts only in the round of the newest start

Invariant: less than half of the rows are of this round. Nothing is cleared when a new start begins; the round says what is old.
"""

from __future__ import annotations

import numpy as np

from lineage.growth import LEAST, fitted
from lineage.kernels import Number, inline, kernel
from lmerge.cases.header import LACKS, PROBED, ROUND, ROWS
from lmerge.cases.ordered import AT_NEWEST, OrderedMerge, give_insert, place_insert, take_point
from lmerge.cases.outcomes import KNOWN, NEW
from lmerge.cases.policies import Policies
from lmerge.streams.elements import STABLE, ElementBatch, hash_event

_OF_ROUND, _PAYLOAD, _END, _COPIES, _FIELDS = range(5)

#: Places of `sizes`: the round that is counted, rows of it, the most that a round has had, rounds since the last look.
_COUNTED, _N_ROWS, _MOST, _SINCE = range(4)
#: Rounds after which it is time to look whether there are too many rows.
_LOOK = 256


@inline
def find_row(rows: Number, header: Number, payload: Number, end: Number) -> Number:
    """Return the row of an event of this round, or the row that is free for it."""
    mask = np.int64(len(rows) - 1)
    at = hash_event(end, payload) & mask
    header[PROBED] += 1
    while rows[at, _OF_ROUND] == header[ROUND] and (rows[at, _PAYLOAD] != payload or rows[at, _END] != end):
        at = (at + 1) & mask
        header[PROBED] += 1
    return at


@inline
def claim_row(rows: Number, sizes: Number, at: Number, this_round: Number, payload: Number, end: Number) -> None:
    """Make a row that of a new event of this round."""
    for field in range(_COPIES, rows.shape[1]):
        rows[at, field] = 0
    rows[at, _OF_ROUND] = this_round
    rows[at, _PAYLOAD] = payload
    rows[at, _END] = end
    if sizes[_COUNTED] != this_round:
        sizes[_COUNTED] = this_round
        sizes[_N_ROWS] = 0
        sizes[_SINCE] += 1
    sizes[_N_ROWS] += 1
    sizes[_MOST] = max(sizes[_MOST], sizes[_N_ROWS])


@kernel(
    "int64(int64, int64, UniTuple(int64[::1], 5), int64[:,::1], int8[::1], int64[:,::1], int64[::1], int64[:,::1], int64[::1], "
    "boolean)"
)
def merge_r2(
    number: int, done: int, batch: tuple[np.ndarray, ...], out: np.ndarray, outcomes: np.ndarray, inputs: np.ndarray,
    header: np.ndarray, rows: np.ndarray, sizes: np.ndarray, is_bag: bool,
) -> int:  # fmt: skip
    """Merge the elements `done ..` of an input; returns how many are done, fewer where rows are lacking."""
    kinds, starts, payloads, _, ends = batch
    for i in range(done, len(kinds)):
        if kinds[i] == STABLE:
            take_point(ends[i], i, out, outcomes, inputs, number, header)
        else:
            if sizes[_COUNTED] == header[ROUND] and 2 * sizes[_N_ROWS] + 2 > len(rows):
                header[LACKS] = ROWS
                return i
            outcome = place_insert(inputs, number, header, starts[i])
            if outcome == AT_NEWEST:
                outcome = np.int64(KNOWN)
                end = ends[i] if is_bag else 0
                at = find_row(rows, header, payloads[i], end)
                if rows[at, _OF_ROUND] != header[ROUND]:
                    claim_row(rows, sizes, at, header[ROUND], payloads[i], end)
                    if not is_bag:
                        outcome = np.int64(NEW)
                if is_bag:
                    rows[at, _FIELDS + number] += 1
                    if rows[at, _FIELDS + number] > rows[at, _COPIES]:
                        rows[at, _COPIES] += 1
                        outcome = np.int64(NEW)
            give_insert(batch, i, out, outcomes, inputs, number, header, outcome)
    return len(kinds)


@kernel("void(int64[:,::1], int64[:,::1], int64[::1])")
def move_rows(rows: np.ndarray, to: np.ndarray, header: np.ndarray) -> None:
    """Move the rows of this round into an empty table."""
    for row in range(len(rows)):
        if rows[row, _OF_ROUND] == header[ROUND]:
            at = find_row(to, header, rows[row, _PAYLOAD], rows[row, _END])
            for field in range(rows.shape[1]):
                to[at, field] = rows[row, field]


class R2Merge(OrderedMerge):
    """A merge of the case R2, of sets or bags."""

    __slots__ = ("_is_bag", "_rows", "_sizes")

    case = "R2"

    def __init__(self, policies: Policies, is_bag: bool) -> None:
        super().__init__(policies)
        self._is_bag = is_bag
        self._rows = np.zeros((LEAST, _FIELDS), np.int64)
        self._sizes = np.zeros(4, np.int64)

    @property
    def n_live(self) -> int:
        return int(self._sizes[_N_ROWS]) if self._sizes[_COUNTED] == self._header[ROUND] else 0

    @property
    def bytes(self) -> int:
        return super().bytes + self._rows.nbytes + self._sizes.nbytes

    def _clear(self, number: int) -> None:
        if self._is_bag:
            self._rows[:, _FIELDS + number] = 0

    def _fit_inputs(self) -> None:
        self._rows = fitted(self._rows, _FIELDS + len(self._inputs.rows) * self._is_bag)

    def _merge(
        self, number: int, done: int, batch: ElementBatch, out: np.ndarray, outcomes: np.ndarray, taken: np.ndarray
    ) -> int:  # fmt: skip
        state = (self._inputs.rows, self._header, self._rows, self._sizes)
        return merge_r2(number, done, tuple(batch), out, outcomes, *state, self._is_bag)

    def _make_room(self, lacks: int) -> None:
        self._resize(2 * len(self._rows))

    def _end_push(self) -> np.ndarray:
        if self._sizes[_SINCE] >= _LOOK:
            self._sizes[_SINCE] = 0
            if 16 * self._sizes[_MOST] < len(self._rows) > LEAST:
                self._resize(len(self._rows) // 2)
            self._sizes[_MOST] = self.n_live
        return super()._end_push()

    def _resize(self, n_rows: int) -> None:
        rows = np.zeros((n_rows, self._rows.shape[1]), np.int64)
        move_rows(self._rows, rows, self._header)
        self._rows = rows

    def check(self) -> None:
        super().check()
        rows = self._rows[self._rows[:, _OF_ROUND] == self._header[ROUND]]
        assert len(rows) == self.n_live, "every row of this round is counted"
        assert 2 * len(rows) <= len(self._rows), "half of the rows are free"
        if self._is_bag:
            assert (rows[:, _FIELDS:].max(1, initial=0) <= rows[:, _COPIES]).all(), "what an input gave is out"
