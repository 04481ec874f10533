"""R0: starts rise strictly, so the newest start says it all (the paper's §IV-A, with L6): R1 without positions.

Invariant: the event at the newest start is out.
"""

from __future__ import annotations

from lmerge.cases.r1 import R1Merge


class R0Merge(R1Merge):
    """A merge of the case R0."""

    __slots__ = ()

    case = "R0"
    counts = False
