"""The inputs of a merged stream: what each has promised, how far it has come, and what it gave.

    said       the largest point that was told: a row below it is refused
    implied    the point that follows from its rows and the declared order; a row below it may still come
               strict   t + 1 us        ordered   t        None   largest time - lateness        any   nothing
    last       its newest time, against which a declared order is judged

Points are judged after a whole push. An input that is attached again is a new one: it has promised nothing yet.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from eddy.base.description import MergedStream
from eddy.streams.timeline import ascending
from lineage.elements import BEGINNING
from lineage.errors import ConflictError, EddyError, NotFoundError, RowError, did_you_mean
from lineage.schema import check_name
from lineage.times import MIN_US, to_iso
from lmerge.cases.outcomes import CHANGED, IGNORED, KNOWN, NEW, OUTCOMES, REPEATED, SETTLED
from lmerge.merge import Merge

#: Inputs that a merge remembers at most, those that were detached with them.
MAX_INPUTS = 1024
#: What helps an input that says what it said it would not.
BELOW_HINT = "leave it out; an input that is detached and attached again has said nothing yet"
#: What a row that an input gave may have come to.
ROW_OUTCOMES = [NEW, KNOWN, REPEATED, SETTLED, IGNORED]


@dataclass(slots=True, eq=False)
class MergeInput:
    """One input, from its attachment on."""

    name: str
    #: its number in the merge
    number: int
    said: int = BEGINNING
    implied: int = BEGINNING
    #: its largest time, and its newest
    largest: int = BEGINNING
    last: int = BEGINNING
    #: rows by what became of them
    outcomes: np.ndarray = field(default_factory=lambda: np.zeros(len(OUTCOMES), np.int64))
    contradictions: int = 0
    #: how far it moved the merge's point, in all
    led_us: int = 0

    @property
    def point(self) -> int:
        return max(self.said, self.implied)

    def check_said(self, times: np.ndarray, column: str) -> None:
        """Raise if a row is below the point that the input said."""
        if len(times) and int(times.min()) < self.said:
            row = int(np.argmax(times < self.said))
            fact = f'input "{self.name}" said that no row before {to_iso(self.said)} would come'
            detail = f"the row has {to_iso(int(times[row]))}"
            raise RowError(fact, code="below_point", detail=detail, hint=BELOW_HINT, row=row, column=column)

    def check_order(self, times: np.ndarray, order: str | None, column: str) -> None:
        """Raise if a row is against the declared order."""
        if not len(times) or order not in ("strict", "ordered"):
            return
        before = np.concatenate([[self.last], times[:-1]])
        wrong = times <= before if order == "strict" else times < before
        if wrong.any():
            row = int(np.argmax(wrong))
            raise RowError(
                f'the rows of input "{self.name}" are not in order',
                code="out_of_order",
                detail=f"{to_iso(int(times[row]))} comes after {to_iso(int(before[row]))}",
                hint=f'the merge was declared with order="{order}"; order=None takes rows in any order',
                row=row,
                column=column,
            )

    def imply(self, times: np.ndarray, order: str | None, lateness_us: int) -> int | None:
        """The point that follows from some more rows; None if it is not a later one."""
        self.last = int(times[-1])
        self.largest = max(self.largest, self.last if ascending(times) else int(times.max()))
        if order == "any":
            return None
        implied = self.largest + 1 if order == "strict" else self.largest - lateness_us
        if implied <= self.point:
            return None
        self.implied = implied
        return implied

    def count(self, outcomes: np.ndarray) -> np.ndarray:
        """Count what became of some rows; returns those counts."""
        found = np.bincount(outcomes, minlength=len(OUTCOMES))
        self.outcomes += found
        return found


class MergeInputs:
    """The inputs of one merged stream by name."""

    __slots__ = ("_stream", "_merge", "attached", "detached", "gaps", "n_gaps")

    def __init__(self, stream: MergedStream, merge: Merge) -> None:
        self._stream = stream
        self._merge = merge
        #: by name in lower case, in the order in which ties are decided
        self.attached: dict[str, MergeInput] = {}
        #: names that were attached once, with their last number of rows
        self.detached: dict[str, str] = {}
        #: the last times that no input told about, from the merge's point to where the next input began
        self.gaps: list[tuple[int, int]] = []
        self.n_gaps = 0
        for name in stream.inputs:
            self.attached[name.lower()] = MergeInput(name, merge.attach(None))

    def find(self, name: object) -> MergeInput:
        """The attached input of that name, in any case."""
        found = self.attached.get(name.lower()) if isinstance(name, str) else None
        if found is not None:
            return found
        of = self._stream.name
        if isinstance(name, str) and name.lower() in self.detached:
            fact = f'input "{name}" of merge "{of}" is detached'
            raise ConflictError(fact, code="detached", hint="attach it again, as a new input")
        known = [one.name for one in self.attached.values()]
        hint = did_you_mean(str(name), known) or f"its inputs: {', '.join(known[:10])}"
        raise NotFoundError(f'merge "{of}" has no input "{name}"', code="unknown_input", hint=hint)

    def check_attach(self, name: object) -> str:
        """Raise if no input of that name can be attached."""
        checked = check_name(name, "input")
        if checked.lower() in self.attached:
            fact = f'input "{checked}" of merge "{self._stream.name}" is attached'
            raise ConflictError(fact, code="attached", hint="detach it first: attached again it is a new input")
        if len(self.attached) + len(self.detached) >= MAX_INPUTS and checked.lower() not in self.detached:
            raise EddyError(
                f"a merge has {MAX_INPUTS} inputs at most", code="too_many_inputs", hint="name an input as it was named"
            )
        return checked

    def attach(self, name: str, since: int) -> None:
        """Attach an input that is right from a time on."""
        merge = self._merge
        waits = any(map(self.joined, self.attached.values()))
        if not waits and BEGINNING < merge.stable < since:
            self.gaps = [*self.gaps[-9:], (merge.stable, since)]
            self.n_gaps += 1
        self.detached.pop(name.lower(), None)
        self.attached[name.lower()] = MergeInput(name, merge.attach(since))

    def detach(self, of: MergeInput) -> None:
        self._merge.detach(of.number)
        del self.attached[of.name.lower()]
        self.detached[of.name.lower()] = of.name

    def joined(self, of: MergeInput) -> bool:
        """Whether an input has a say."""
        return self._merge.joined(of.number)

    def leader(self) -> MergeInput | None:
        """The input that last moved the merge's point; None if none did or it left."""
        number = self._merge.leader
        return next((one for one in self.attached.values() if one.number == number), None)

    def without_point(self) -> list[str]:
        """The names of inputs that gave no point yet, or else of those with the least."""
        low = min((one.point for one in self.attached.values()), default=BEGINNING)
        return [one.name for one in self.attached.values() if one.point == low]

    def totals(self) -> dict[str, dict[str, Any]]:
        """Return the rows that each input gave, and how far its point is behind the largest."""
        newest = max((one.point for one in self.attached.values()), default=BEGINNING)
        return {
            one.name: {
                "rows": int(one.outcomes[ROW_OUTCOMES].sum()),
                "stable_lag_us": None if one.point == BEGINNING else newest - one.point,
            }
            for one in self.attached.values()
        }

    def stats(self) -> dict[str, dict[str, Any]]:
        """Counts of each input."""
        led = sum(one.led_us for one in self.attached.values())
        return {one.name: totals | self._of(one, led) for one, totals in zip(self.attached.values(), self.totals().values())}

    def _of(self, one: MergeInput, led: int) -> dict[str, Any]:
        counts = one.outcomes.tolist()
        return {
            "joined": self.joined(one),
            "new": counts[NEW],
            "known": counts[KNOWN],
            "duplicates": counts[REPEATED],
            "settled": counts[SETTLED] + counts[IGNORED],
            "adjusted": counts[CHANGED],
            "contradictions": one.contradictions,
            "stable": None if one.point < MIN_US else to_iso(one.point),
            "leads": one.led_us / led if led else 0.0,
        }
