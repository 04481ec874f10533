"""What R0, R1 and R2 share: inserts and stables only, in order of starts, of which only the newest is remembered.

    header    the merge's point and leader, the newest start, how many events of it are out, how many starts there were, ..

An insert below the merge's point is settled (L6); one before the newest start is known. An input that has not joined is not
listened to: its early starts would shut out what the others still owe.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lineage.elements import BEGINNING, FOREVER
from lineage.errors import EddyError
from lineage.kernels import Number, inline
from lmerge.cases.inputs import IN, JOINED, OUT, OUTCOME, POINT, STATE, Counters, Inputs, join_waiting
from lmerge.cases.merged import N_OUT_ROWS, OUT_END, OUT_KIND, OUT_NODE, OUT_OLD, OUT_PAYLOAD, OUT_START, Merged, as_merged
from lmerge.cases.outcomes import IGNORED, KNOWN, MOVED, NEW, SETTLED
from lmerge.cases.policies import FIRST, LAZY, Policies
from lmerge.streams.elements import ADJUST, INSERT, STABLE, ElementBatch

POINT_OUT, LEAD, NEWEST, GIVEN, ROUND, N_OUT, LAG, PROBED = range(8)
_N_HEADER = 8

#: An insert at the newest start, of which the case has to say whether it is new.
AT_NEWEST = -1


@inline
def place_insert(inputs: Number, number: Number, header: Number, start: Number) -> Number:
    """Return the outcome of an insert, if it is not one at the newest start; a later start becomes the newest."""
    outcome = np.int64(AT_NEWEST)
    if inputs[number, STATE] != JOINED:
        outcome = np.int64(IGNORED)
    elif start < header[POINT_OUT]:
        outcome = np.int64(SETTLED)
    elif start < header[NEWEST]:
        outcome = np.int64(KNOWN)
    elif start > header[NEWEST]:
        header[NEWEST] = start
        header[GIVEN] = 0
        header[ROUND] += 1
    return outcome


@inline
def give_insert(
    batch: Number, i: Number, out: Number, outcomes: Number, inputs: Number, number: Number, header: Number, outcome: Number
) -> None:  # fmt: skip
    """Count an insert, and give it out if it is new."""
    _, starts, payloads, _, ends = batch
    outcomes[i] = outcome
    inputs[number, IN + INSERT] += 1
    inputs[number, OUTCOME + outcome] += 1
    if outcome == NEW:
        n = header[N_OUT]
        out[OUT_KIND, n] = INSERT
        out[OUT_START, n] = starts[i]
        out[OUT_PAYLOAD, n] = payloads[i]
        out[OUT_OLD, n] = 0
        out[OUT_END, n] = ends[i]
        out[OUT_NODE, n] = i
        header[N_OUT] = n + 1
        inputs[number, OUT + INSERT] += 1


@inline
def take_point(
    time: Number, i: Number, out: Number, outcomes: Number, inputs: Number, number: Number, header: Number
) -> None:  # fmt: skip
    """Take a stable point."""
    time = min(time, FOREVER)
    inputs[number, POINT] = max(inputs[number, POINT], time)
    reached = time - header[LAG] if time < FOREVER else time
    outcome = IGNORED
    if inputs[number, STATE] == JOINED and reached > header[POINT_OUT]:
        outcome = MOVED
        n = header[N_OUT]
        for row in range(len(out)):
            out[row, n] = 0
        out[OUT_KIND, n] = STABLE
        out[OUT_END, n] = reached
        out[OUT_NODE, n] = -1
        header[N_OUT] = n + 1
        inputs[number, OUT + STABLE] += 1
        header[POINT_OUT] = reached
        header[LEAD] = number
        join_waiting(inputs, reached)
    outcomes[i] = outcome
    inputs[number, IN + STABLE] += 1
    inputs[number, OUTCOME + outcome] += 1


class OrderedMerge:
    """A merge of inputs in order of their starts."""

    __slots__ = ("_inputs", "_header")

    case = ""
    capacity = 0

    def __init__(self, policies: Policies) -> None:
        if (policies.insert, policies.adjust) != (FIRST, LAZY):
            raise EddyError(
                f'{self.case} gives out an event when the first input does: only insert="first" and adjust="lazy"',
                code="bad_policy",
                hint="R3 has the other policies",
            )
        self._inputs = Inputs()
        self._header = np.zeros(_N_HEADER, np.int64)
        self._header[[POINT_OUT, LEAD, NEWEST, LAG]] = BEGINNING, -1, BEGINNING, policies.lag

    @property
    def stable(self) -> int:
        return int(self._header[POINT_OUT])

    @property
    def leader(self) -> int:
        return int(self._header[LEAD])

    @property
    def n_live(self) -> int:
        return 0

    @property
    def bytes(self) -> int:
        return self._header.nbytes + self._inputs.bytes

    @property
    def counters(self) -> Counters:
        return self._inputs.counters(None)

    def counters_of(self, number: int) -> Counters:
        return self._inputs.counters(number)

    @property
    def work(self) -> dict[str, int]:
        return {"probed": int(self._header[PROBED])}

    def attach(self, since: int | None = None) -> int:
        return self._inputs.attach(since, self.stable)

    def detach(self, number: int) -> None:
        self._inputs.detach(number)
        if self.leader == number:
            self._header[LEAD] = -1

    def joined(self, number: int) -> bool:
        return self._inputs.joined(number)

    def point(self, number: int) -> int:
        return self._inputs.point(number)

    def push(self, number: int, batch: ElementBatch) -> Merged:
        self._inputs.known(number)
        if (batch.kinds == ADJUST).any():
            raise EddyError(
                f"an adjust is not possible in case {self.case}",
                code="bad_case",
                hint="R3 and R4 take inputs that change what they said",
            )
        n = len(batch.kinds)
        out, outcomes = np.empty((N_OUT_ROWS, n), np.int64), np.empty(n, np.int8)
        self._header[N_OUT] = 0
        self._merge(number, batch, out, outcomes)
        return as_merged(out, int(self._header[N_OUT]), outcomes, np.full(n, -1), np.zeros(0, np.int64))

    def _merge(self, number: int, batch: ElementBatch, out: np.ndarray, outcomes: np.ndarray) -> Any:
        """Merge the elements of an input."""
        raise NotImplementedError

    def check(self) -> None:
        """Assert that the inputs are right."""
        self._inputs.check(self.stable)
