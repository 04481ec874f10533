"""When an output may still follow its inputs, whatever they say next: the conditions of the LMerge paper (L III-D).

With the stable points L of the output and L_m of input m, for every payload and start Vs (R3):

    C1    L <= max L_m
    C2    what the output may hold: at most one event
              half frozen    if some input holds one that is half frozen with L <= L_m, or frozen with L <= its end
              frozen         if some input holds the same event frozen
    C3    what it must hold, where Vs < L:
              some input holds it frozen with end Ve      a half-frozen one if L <= Ve, else the same event
              none does, but some half frozen             a half-frozen one, and L <= the largest L_m of those inputs

The paper prints L_m <= L in C2 (erratum L1 of `docs/papers.md`). An unfrozen event of an input asks for nothing.

In a bag (R4) the output holds, of every start below L, those events of the leading input that end below L, and as many others as
it has. Where the union of the inputs counts (`missing="any"`), the output holds of every start below L what some input gave in
time, and nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from lmerge.streams.table import FROZEN, HALF_FROZEN, EventKey, freeze_state

_NOTHING: Sequence[int] = ()


class Presented(NamedTuple):
    """What a stream has said: its stable point, and the ends of its events by start and payload, ascending."""

    stable: int
    events: Mapping[EventKey, Sequence[int]]


class Breach(NamedTuple):
    """A condition that does not hold, and for which event."""

    condition: str
    #: None for C1, which speaks of all events.
    key: EventKey | None
    why: str


class _Claim(NamedTuple):
    """What an input says of one payload and start."""

    end: int
    stable: int
    state: int


def find_breach(inputs: Sequence[Presented], output: Presented) -> Breach | None:
    """The first condition of C1 to C3 that does not hold, None if the output is compatible. Payload and start are a key."""
    if output.stable > max(one.stable for one in inputs):
        return Breach("C1", None, f"the output is stable up to {output.stable}, no input is")
    for key in sorted({key for one in (*inputs, output) for key in one.events}):
        said = [
            _Claim(end, one.stable, freeze_state(key[0], end, one.stable))
            for one in inputs
            for end in one.events.get(key, _NOTHING)
        ]
        ends = output.events.get(key, _NOTHING)
        if len(ends) > 1:
            return Breach("C2", key, f"the output holds {len(ends)} events")
        end = ends[0] if ends else None
        breach = _unsupported(key, said, end, output.stable) or _lacking(key, said, end, output.stable)
        if breach:
            return breach
    return None


def _unsupported(key: EventKey, said: Sequence[_Claim], end: int | None, stable: int) -> Breach | None:
    """C2: what the output holds must have the support of an input."""
    state = None if end is None else freeze_state(key[0], end, stable)
    if state == HALF_FROZEN and not any(
        (one.state == HALF_FROZEN and stable <= one.stable) or (one.state == FROZEN and stable <= one.end) for one in said
    ):
        return Breach("C2", key, f"half frozen with end {end}, and no input could lead there")
    if state == FROZEN and not any(one.state == FROZEN and one.end == end for one in said):
        return Breach("C2", key, f"frozen with end {end}, and in no input")
    return None


def _lacking(key: EventKey, said: Sequence[_Claim], end: int | None, stable: int) -> Breach | None:
    """C3: what inputs have frozen must be in the output, or it must still be possible to get there."""
    start = key[0]
    if stable <= start:
        return None
    half = end is not None and freeze_state(start, end, stable) == HALF_FROZEN
    frozen = [one.end for one in said if one.state == FROZEN]
    for asked in frozen:
        if not ((stable <= asked and half) or (asked < stable and end == asked)):
            return Breach("C3", key, f"an input has it frozen with end {asked}, the output has end {end}")
    leading = [one.stable for one in said if one.state == HALF_FROZEN]
    if not frozen and leading and not (half and stable <= max(leading)):
        return Breach("C3", key, f"an input has it half frozen, the output has end {end}")
    return None


def find_count_breach(leader: Presented, output: Presented) -> Breach | None:
    """The first event of a bag for which the output does not agree with the input that leads, None if it does everywhere."""
    if output.stable > leader.stable:
        return Breach("C1", None, f"the output is stable up to {output.stable}, the leading input up to {leader.stable}")
    for key in sorted({*leader.events, *output.events}):
        if key[0] >= output.stable:
            continue
        wanted, ends = leader.events.get(key, _NOTHING), output.events.get(key, _NOTHING)
        if [end for end in wanted if end < output.stable] != [end for end in ends if end < output.stable]:
            return Breach("counts", key, f"the leading input has the ends {wanted}, the output {ends}: other events are frozen")
        if len(wanted) != len(ends):
            return Breach("counts", key, f"the leading input has {len(wanted)} events, the output {len(ends)}")
    return None


def find_union_breach(inputs: Sequence[Presented], output: Presented) -> Breach | None:
    """The first start and payload below the output's stable point that is in it and in no input, or the other way round.

    What an input gave after the output had passed it is not to be in the tables of the inputs.
    """
    if output.stable > max(one.stable for one in inputs):
        return Breach("C1", None, f"the output is stable up to {output.stable}, no input is")
    given = {key for one in inputs for key in one.events}
    for key in sorted(given | output.events.keys()):
        ends = output.events.get(key, _NOTHING)
        if len(ends) > 1:
            return Breach("C2", key, f"the output holds {len(ends)} events")
        if key[0] < output.stable and ends and key not in given:
            return Breach("C2", key, "it is in no input")
        if key[0] < output.stable and not ends:
            return Breach("C3", key, "an input gave it in time, and the output has it not")
    return None
