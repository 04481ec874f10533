"""What R0, R1 and R2 share: inserts and stables only, in order of starts, of which only the newest is remembered.

An insert below the merge's point is settled (L6); one before the newest start is known. An input that has not joined is not
listened to: its early starts would shut out what the others still owe.
"""

from __future__ import annotations

import numpy as np

from lineage.elements import BEGINNING
from lineage.errors import EddyError
from lineage.kernels import Number, inline
from lmerge.cases.case_merge import CaseMerge
from lmerge.cases.header import GIVEN, NEWEST, PHASE, POINT_OUT, ROUND
from lmerge.cases.inputs import IN, JOINED, OUTCOME, STATE, count_stable
from lmerge.cases.merged import write_output
from lmerge.cases.outcomes import IGNORED, KNOWN, MOVED, NEW, SETTLED
from lmerge.cases.points import IDLE, begin_stable, end_stable
from lmerge.cases.policies import FIRST, LAZY, Policies
from lmerge.streams.elements import INSERT

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
    outcomes[i] = outcome
    inputs[number, IN + INSERT] += 1
    inputs[number, OUTCOME + outcome] += 1
    if outcome == NEW:
        write_output(out, header, inputs, number, INSERT, batch[1][i], batch[2][i], 0, batch[4][i], i)


@inline
def take_point(
    time: Number, i: Number, out: Number, outcomes: Number, inputs: Number, number: Number, header: Number
) -> None:  # fmt: skip
    """Take a stable point."""
    outcomes[i] = IGNORED
    begin_stable(inputs, number, header, time)
    if header[PHASE] != IDLE:
        outcomes[i] = MOVED
        end_stable(out, header, inputs, number)
    count_stable(inputs, number, outcomes[i])


class OrderedMerge(CaseMerge):
    """A merge of inputs in order of their starts."""

    __slots__ = ()

    takes_adjusts = False

    def __init__(self, policies: Policies) -> None:
        if (policies.insert, policies.adjust) != (FIRST, LAZY):
            raise EddyError(
                f'{self.case} gives out an event when the first input does: only insert="first" and adjust="lazy"',
                code="bad_policy",
                hint="R3 has the other policies",
            )
        super().__init__(policies)
        self._header[[NEWEST, ROUND]] = BEGINNING, 1
