"""The case of LMerge that the declared properties of a merged stream allow (semantics 36)."""

from __future__ import annotations

from eddy.base.description import MergedStream
from lineage.errors import EddyError, SchemaError
from lmerge.streams.properties import CaseChoice, InputProperties, choose_case

#: Cases that keep no record of who gave what: insert only, in order, given out as they come.
ORDERED_CASES = ("R0", "R1", "R2")
#: Policies that need no such record.
_PLAIN_POLICIES = ("stable", "first")


def declared_properties(order: str | None, unique: bool, has_end: bool, policy: str) -> InputProperties:
    """The properties of the inputs of a merged stream; an order is of use only where no record of events is needed."""
    known = order if order in ("strict", "ordered") and policy in _PLAIN_POLICIES else "none"
    return InputProperties(known, not has_end, unique)


def declared_case(case: str, order: str | None, unique: bool, has_end: bool, policy: str, missing: str) -> CaseChoice:
    """The case of a merged stream; one by name that its properties do not allow is refused."""
    if case == "R4" and unique:
        fact = "case R4 is for bags, and unique says that equal rows are one event"
        raise SchemaError(fact, code="bad_case", hint='leave out unique, or take R3, which case="auto" chooses')
    try:
        return choose_case(declared_properties(order, unique, has_end, policy), case, missing=missing)
    except EddyError as error:
        raise SchemaError(error.fact, code=error.code, detail=error.detail, hint=error.hint) from None


def explain_merge(stream: MergedStream) -> dict[str, object]:
    """The case of a merged stream with its properties and the reason, for `explain`."""
    chosen = declared_case(
        "auto", stream.order, stream.unique is not None, stream.end is not None, stream.policy, stream.missing
    )  # fmt: skip
    by_name = stream.case != chosen.case
    return {
        "merge": stream.name,
        "kind": stream.kind,
        "case": stream.case,
        "properties": chosen.properties.words(),
        "why": "named when it was created" if by_name else chosen.why,
        "inputs": list(stream.inputs),
        "policy": stream.policy,
        "missing": stream.missing if stream.case not in ORDERED_CASES else "any",
    }
