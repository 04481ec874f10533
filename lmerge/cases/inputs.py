"""The inputs of a merge: which have a say, how far each has come, and what each has given.

    free       no input has this number
    waiting    attached `since` a time that the merge's point has not reached: what it gives counts, its stables do not (L8)
    joined     its stables move the merge's point, and it decides what they freeze

An input that is attached when none is joined joins at once; what lies between the merge's point and its `since` is then a gap,
which nobody will tell about. One that waits goes on waiting when the last joined one leaves. What an input gave is cleared when
it leaves, so its number is free (L9).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lineage.elements import BEGINNING
from lineage.errors import EddyError
from lineage.growth import fitted_rows
from lineage.kernels import Number, inline
from lmerge.cases.outcomes import KNOWN, OUTCOMES, REPEATED, SETTLED, UNKNOWN
from lmerge.streams.elements import ADJUST, INSERT, STABLE

FREE, WAITING, JOINED = range(3)

#: Fields of an input: its state, since when it is right, its last stable, the largest start it gave and how many events it has
#: that are not below its own point, a start before which all it has is out (for one policy each), the start up to which its
#: position is not known, its position and of which start that is (R1); then counters.
STATE, SINCE, POINT, TOP, N_UNFROZEN, ENTERED, BAR, POSITION, OF_ROUND = range(9)
#: elements in and out, by kind; outcomes; events taken back; gaps
IN = 9
OUT = IN + 3
OUTCOME = OUT + 3
REMOVED = OUTCOME + len(OUTCOMES)
GAPS = REMOVED + 1
N_INPUT_FIELDS = GAPS + 1


class Counters(NamedTuple):
    """What was given to a merge and what it gave, of one input or of all there have been."""

    inserts: int
    adjusts: int
    stables: int
    #: outputs that elements of this input caused
    inserts_out: int
    adjusts_out: int
    stables_out: int
    #: inserts of events that another input, or the same one, had given
    known: int
    repeated: int
    #: inserts and adjusts below the merge's point, of events it has no record of
    settled: int
    #: adjusts of nothing
    unknown: int
    #: events given out and taken back
    removed: int
    #: times at which this input joined though the merge had not come to where it begins
    gaps: int


#: A tally counts up to so many elements in one number: 7 bits for each outcome, and how many are adjusts.
TALLIED = 64
_TALLY_BITS = 7


@inline
def tallied(kind: Number, outcome: Number) -> Number:
    """Return what an insert or adjust adds to a tally."""
    return (np.int64(1) << (_TALLY_BITS * outcome)) + (kind << 56)


@inline
def count_tally(inputs: Number, number: Number, tally: Number) -> None:
    """Count the elements of a tally."""
    n = np.int64(0)
    for outcome in range(len(OUTCOMES)):
        part = (tally >> (_TALLY_BITS * outcome)) & 127
        inputs[number, OUTCOME + outcome] += part
        n += part
    n_adjusts = tally >> 56
    inputs[number, IN + INSERT] += n - n_adjusts
    inputs[number, IN + ADJUST] += n_adjusts


@inline
def count_stable(inputs: Number, number: Number, outcome: Number) -> None:
    inputs[number, IN + STABLE] += 1
    inputs[number, OUTCOME + outcome] += 1


@inline
def join_waiting(inputs: Number, stable: Number) -> None:
    """Let the inputs join that the merge's point has reached."""
    for number in range(len(inputs)):
        if inputs[number, STATE] == WAITING and inputs[number, SINCE] <= stable:
            inputs[number, STATE] = JOINED


@inline
def has_most(inputs: Number, number: Number, field: Number) -> Number:
    """Whether no joined input has more in a field."""
    most = True
    for other in range(len(inputs)):
        if inputs[other, STATE] == JOINED and inputs[other, field] > inputs[number, field]:
            most = False
    return most


class Inputs:
    """The inputs of a merge by number; a row of `rows` each."""

    __slots__ = ("rows", "_left")

    def __init__(self) -> None:
        self.rows = np.zeros((0, N_INPUT_FIELDS), np.int64)
        #: counters of inputs that left
        self._left = np.zeros(N_INPUT_FIELDS, np.int64)

    def attach(self, since: int | None, stable: int) -> int:
        """Return the number of a new input of a merge whose point is `stable`."""
        free = np.flatnonzero(self.rows[:, STATE] == FREE)
        number = int(free[0]) if len(free) else len(self.rows)
        if number == len(self.rows):
            self.rows = fitted_rows(self.rows, number + 1)
        row = self.rows[number]
        row[:] = 0
        row[[POINT, TOP, ENTERED, BAR]] = BEGINNING
        row[SINCE] = BEGINNING if since is None else since
        late = row[SINCE] > stable
        row[STATE] = WAITING if late and self.n_joined else JOINED
        row[GAPS] = late and row[STATE] == JOINED and stable > BEGINNING
        return number

    def detach(self, number: int) -> None:
        """Free the number of an input; inputs behind the last that is attached have no row."""
        self._left += self.rows[self.known(number)]
        self.rows[number, STATE] = FREE
        attached = np.flatnonzero(self.rows[:, STATE] != FREE)
        self.rows = fitted_rows(self.rows, int(attached.max(initial=-1)) + 1)

    def known(self, number: int) -> int:
        """Return the number if an input has it."""
        if not 0 <= number < len(self.rows) or self.rows[number, STATE] == FREE:
            raise EddyError(f"no input has the number {number}", code="unknown_input", hint="attach gives one its number")
        return number

    def joined(self, number: int) -> bool:
        return bool(self.rows[self.known(number), STATE] == JOINED)

    @property
    def n_joined(self) -> int:
        return int(np.count_nonzero(self.rows[:, STATE] == JOINED))

    def point(self, number: int) -> int:
        return int(self.rows[self.known(number), POINT])

    def counters(self, number: int | None) -> Counters:
        """Return the counters of an input, or of all there have been."""
        row = self._left + self.rows[self.rows[:, STATE] != FREE].sum(0) if number is None else self.rows[self.known(number)]
        elements = [field + kind for field in (IN, OUT) for kind in (INSERT, ADJUST, STABLE)]
        outcomes = [OUTCOME + outcome for outcome in (KNOWN, REPEATED, SETTLED, UNKNOWN)]
        return Counters._make(row[[*elements, *outcomes, REMOVED, GAPS]].tolist())

    @property
    def bytes(self) -> int:
        return self.rows.nbytes + self._left.nbytes

    def check(self, stable: int) -> None:
        """Assert that counters add up and that whoever waits has reason to."""
        rows = self.rows[self.rows[:, STATE] != FREE]
        assert (rows[:, IN:OUT].sum(1) == rows[:, OUTCOME:REMOVED].sum(1)).all(), "every element has an outcome"
        assert (rows[rows[:, STATE] == WAITING][:, SINCE] > stable).all(), "an input joins when the point has reached it"
