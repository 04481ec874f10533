"""Which of the four cases happened: what came into an operator at an event, and what went out because of it.

Scheduled ends of an instant count as one -. An event that brought both a + and a - (of an edge that an operator made) says of its
consequences only that one of the two caused them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from tests.unit.windows.histories import Bags, Change, Key, Value
from windows.delta import Delta

SIGN = {1: "+", -1: "-"}
Happened = tuple[int, int, int, Value]


@dataclass
class Cases:
    """Cases of one operator: those of events with one cause, and for every consequence all the cases it could be."""

    certain: set[str] = field(default_factory=set)
    possible: list[set[str]] = field(default_factory=list)

    def note(self, came: Iterable[Happened], went: Iterable[Happened], by_instant: bool = False) -> None:
        """What went out at each event, or at each instant where a whole instant is answered for."""
        causes: dict[object, set[int]] = {}
        for time, rank, sign, _ in came:
            causes.setdefault(time if by_instant else (time, rank), set()).add(sign)
        for time, rank, sign, value in went:
            signs = causes.get(time if by_instant else (time, rank), set())
            assert signs, f"{SIGN[sign]} {value} at {time, rank} came of nothing"
            found = {f"{SIGN[cause]}->{SIGN[sign]}" for cause in signs}
            self.possible.append(found)
            if len(found) == 1:
                self.certain |= found

    def unlisted(self, listed: Iterable[str]) -> list[set[str]]:
        """Consequences that no listed case explains."""
        allowed = set(listed)
        return [found for found in self.possible if not found & allowed]


class Watched:
    """An operator's edges read back, and its cases."""

    def __init__(self, sends_ends: Sequence[bool], output_sends_ends: bool) -> None:
        self.inputs = [Bags(sends) for sends in sends_ends]
        self.output = Bags(output_sends_ends)

    def read(self, deltas: Sequence[Delta], found: Delta, upto: int) -> None:
        for edge, delta in zip(self.inputs, deltas, strict=True):
            edge.read(delta, upto)
        self.output.read(found, upto)

    def cases(self, by_instant: bool = False, since: Key = (-(2**63), -1)) -> Cases:
        cases = Cases()
        came = [event for edge in self.inputs for event in edge.events]
        cases.note(came, [event for event in self.output.events if event[:2] >= since], by_instant)
        return cases


def one_at_a_time(arrivals: list[tuple[int, list[Change]]]) -> list[tuple[int, list[Change]]]:
    """The same, each row that begins and each that ends an event of its own."""
    found = []
    for time, changes in arrivals:
        for edge, change in enumerate(changes):
            alone = [Change(ended=[id]) for id in change.ended] + [Change(begun=[row]) for row in change.begun]
            found += [(time, [part if k == edge else Change() for k in range(len(changes))]) for part in alone]
    return found
