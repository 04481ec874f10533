"""Which case of LMerge the declared properties of a merged stream allow, and which they choose (semantics 36)."""

from __future__ import annotations

from typing import NamedTuple

#: From the simplest to the most general.
CASES = ("R0", "R1", "R2", "R3", "R4")
#: Cases that keep no record of who gave what: insert only, in order, given out as they come.
ORDERED_CASES = ("R0", "R1", "R2")


class Declared(NamedTuple):
    """The properties that a merged stream is declared with."""

    order: str | None
    unique: bool
    has_end: bool
    policy: str


class Chosen(NamedTuple):
    """A case, and why."""

    case: str
    why: str


def chosen(declared: Declared) -> Chosen:
    """The simplest case that the properties allow; R1 is chosen by name alone."""
    for case in ("R0", "R2", "R3", "R4"):
        if not allowed(case, declared):
            return Chosen(case, _WHY[case])
    raise AssertionError("some case is always allowed")


def allowed(case: str, declared: Declared) -> str:
    """Why the properties do not allow a case; empty if they do."""
    if case in ORDERED_CASES:
        if declared.has_end:
            return f"{case} takes inserts alone, and rows with an end may be adjusted"
        if declared.order not in (("strict",) if case == "R0" else ("strict", "ordered")):
            return f"{case} needs inputs whose times rise" + (" strictly" if case == "R0" else "")
        if declared.policy not in ("stable", "first"):
            return f'{case} keeps no record of who gave what, which policy="{declared.policy}" needs'
    if case == "R3" and not declared.unique:
        return "R3 needs rows that can be told apart: unique"
    if case == "R4" and declared.unique:
        return "R4 is for bags, and unique says that equal rows are one event"
    return ""


_WHY = {
    "R0": "the times of every input rise strictly, so a time names an event",
    "R2": "the times of every input rise, so only the rows of the newest time are kept",
    "R3": "inputs come in any order or are adjusted, and unique tells their events apart",
    "R4": "inputs come in any order or are adjusted, and equal rows are several events",
}
