"""Properties of the inputs of a merge, and the case that they allow: the more is known, the cheaper (L III-C, IV-G).

| case | order of starts | elements | payload and start | gaps |
|---|---|---|---|---|
| R0 | strict: no two are equal | inserts | | may be |
| R1 | same: equal ones in the same order in all inputs | inserts | | none (L7) |
| R2 | ordered: they never fall | inserts | a key; if not, its bag form | may be |
| R3 | any | any | a key | may be |
| R4 | any | any | any | may be |

A property is declared by a user, enforced (`Cleanse` puts an input in order), or inferred from the tree of a query: `INFERRED`
has the words for that. What holds for a merge is what holds for all of its inputs.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from typing import NamedTuple

from lineage.errors import EddyError

#: Orders of the starts of one input, from none to the most that can be known.
ORDERS = ("none", "ordered", "same", "strict")
CASES = ("R0", "R1", "R2", "R3", "R4")
MISSING = ("leader", "any")


class InputProperties(NamedTuple):
    """What is known of the elements of an input."""

    order: str = "none"
    #: No adjusts come.
    insert_only: bool = False
    #: No two events have payload and start in common.
    key: bool = False
    #: Whether no event is missing; None if nobody has said.
    gap_free: bool | None = None

    def words(self) -> str:
        """The properties as a list of words."""
        words = [{"none": "", "ordered": "ordered", "same": "ordered in the same way", "strict": "strictly ordered"}[self.order]]
        words += (
            ["insert only"] * self.insert_only
            + ["payload and start are a key"] * self.key
            + ["gap free"] * (self.gap_free is True)
        )
        return ", ".join(word for word in words if word) or "none"


class CaseChoice(NamedTuple):
    """The case of a merge, with the reason that `explain` gives."""

    case: str
    #: The form of R2 for inputs without a key.
    bag: bool
    properties: InputProperties
    why: str


class Inferred(NamedTuple):
    """Properties that follow from the kind of a query, and from what of it."""

    properties: InputProperties
    why: str


#: What each kind of query gives, however it is cut into commits: the vocabulary of inference.
INFERRED: dict[str, Inferred] = {
    "aggregate under SLIDE": Inferred(InputProperties("strict", True, True, True), "one row at each boundary"),
    "stream": Inferred(InputProperties("same", True, False, True), "the rows of a stream come in its order and stay"),
    "ISTREAM": Inferred(InputProperties("same", True, False, True), "the rows of ISTREAM come in order and stay"),
    "groups under SLIDE": Inferred(
        InputProperties("ordered", True, True, True), "a row for each group at each boundary, in any order"
    ),
    "groups": Inferred(InputProperties("none", False, True, True), "the row of a group ends when the group changes"),
    "DISTINCT": Inferred(InputProperties("none", False, True, True), "a value is there once, and ends with its last row"),
    "EXCEPT": Inferred(InputProperties("none", False, True, True), "a value is there once, and ends when the other side has it"),
    "bag": Inferred(InputProperties("none", False, False, True), "equal rows may be there several times, and may end early"),
}


def infer(kind: str) -> Inferred:
    """The properties of the answers of a kind of query, a word of `INFERRED`."""
    return INFERRED[kind]


def cleanse_properties(properties: InputProperties) -> InputProperties:
    """What holds after Cleanse: inserts in one order, which depends on the events alone."""
    order = "strict" if properties.order == "strict" else "same"
    return properties._replace(order=order, insert_only=True)


def shared_properties(inputs: Iterable[InputProperties]) -> InputProperties:
    """What holds for every one of some inputs; there is at least one."""
    return reduce(_both, inputs)


def _both(one: InputProperties, other: InputProperties) -> InputProperties:
    known = {one.gap_free, other.gap_free}
    return InputProperties(
        min(one.order, other.order, key=ORDERS.index),
        one.insert_only and other.insert_only,
        one.key and other.key,
        False if False in known else None if None in known else True,
    )


def choose_case(properties: InputProperties, case: str = "auto", *, missing: str = "leader") -> CaseChoice:
    """The case that properties allow, the cheapest for `auto`; a case by name that they do not allow is refused.

    R1 by name says that equal starts come in the same order and that nothing is missing, which nobody can see from outside.
    """
    if case != "auto" and case not in CASES:
        raise EddyError(f'unknown case "{case}"', code="unknown_case", hint=f"One of auto, {', '.join(CASES)}.")
    if missing not in MISSING:
        raise EddyError(f'unknown word "{missing}" for missing', code="bad_policy", hint=f"One of {', '.join(MISSING)}.")
    if case == "auto":
        case = next(one for one in CASES if not _lacking(one, properties, named=False))
        why = _reason(case, properties)
    else:
        lacking = _lacking(case, properties, named=True)
        if lacking:
            fits = next(one for one in CASES if not _lacking(one, properties, named=False))
            raise EddyError(
                f"case {case} needs inputs that are {' and '.join(lacking)}",
                code="bad_case",
                detail=f"known of these inputs: {properties.words()}",
                hint=f'Declare it if it holds, or take {fits}, which case="auto" chooses.',
            )
        why = "asked for by name"
    if missing == "any" and case == "R4":
        raise EddyError(
            'missing="any" needs events that can be told apart',
            code="bad_case",
            detail="in a bag (R4) nobody can say which copy of an event is missing",
            hint='Declare what makes two rows one event, or take missing="leader".',
        )
    return CaseChoice(case, case == "R2" and not properties.key, properties, why)


def _lacking(case: str, properties: InputProperties, *, named: bool) -> list[str]:
    """The properties that a case needs and that are not there, as words."""
    lacking = []
    if case in ("R0", "R1", "R2"):
        order = {"R0": "strict", "R1": "ordered" if named else "same", "R2": "ordered"}[case]
        if ORDERS.index(properties.order) < ORDERS.index(order):
            lacking.append(InputProperties(order).words())
        if not properties.insert_only:
            lacking.append("insert only")
    if case == "R1" and (properties.gap_free is False or not (named or properties.gap_free)):
        lacking.append("gap free")
    if case == "R3" and not properties.key:
        lacking.append("unique in payload and start")
    return lacking


def _reason(case: str, properties: InputProperties) -> str:
    """Why a case was chosen, and not one that is cheaper."""
    if case == "R0":
        return "no two events start together, and none changes"
    if case == "R1":
        return "events come in the same order everywhere, and none changes"
    if case == "R2":
        return "events come in order of their starts, and none changes" + ("" if properties.key else "; equal ones are counted")
    cheaper = "events may change" if not properties.insert_only else "events come in any order"
    return (
        f"{cheaper}, and payload and start are a key" if case == "R3" else f"{cheaper}, and equal ones may be there several times"
    )
