"""The algorithms of the LMerge paper, one element at a time on sorted containers: slow twins of the kernels of `lmerge/`.

They are the printed algorithms with the errata of `docs/papers.md` corrected, and with the policies, joins, leaves and missing
elements of its section V.

>>> from experiments.papers.lmerge import adjust, insert, make_slow_merge, stable
>>> merge = make_slow_merge("R3")
>>> one, two = merge.attach(), merge.attach()
>>> for number, element in [(one, insert(7, 6, 10)), (two, insert(7, 6, 12)), (one, adjust(7, 6, 10, 15)), (one, stable(11))]:
...     print(*merge.push(number, element).out)
insert(7, 6, 10)
<BLANKLINE>
<BLANKLINE>
adjust(7, 6, 10, 15) stable(11)
"""

from __future__ import annotations

from experiments.papers.lmerge.cleanse import SlowCleanse
from experiments.papers.lmerge.elements import PhysicalElement, adjust, batch_of, elements_of, insert, stable
from experiments.papers.lmerge.in2t import SlowR3
from experiments.papers.lmerge.in3t import SlowR4
from experiments.papers.lmerge.merge import SlowMerge, Taken
from experiments.papers.lmerge.ordered import SlowR0, SlowR1, SlowR2, SlowR2Bag
from experiments.papers.lmerge.policies import policy_of
from experiments.papers.lmerge.r3_minus import SlowR3Minus


def make_slow_merge(
    case: str, *, bag: bool = False, insert: str = "first", adjust: str = "lazy", missing: str = "leader", lag: int = 0
) -> SlowMerge:
    """The slow twin of `lmerge.merge.make_merge`; `R3-` is a case of its own here."""
    if case in ("R3", "R4"):
        return (SlowR3 if case == "R3" else SlowR4)(policy=policy_of(insert, adjust, missing), lag=lag)
    kinds = {"R0": SlowR0, "R1": SlowR1, "R2": SlowR2Bag if bag else SlowR2, "R3-": SlowR3Minus}
    return kinds[case](lag=lag)


__all__ = [
    "PhysicalElement",
    "SlowCleanse",
    "SlowMerge",
    "SlowR0",
    "SlowR1",
    "SlowR2",
    "SlowR2Bag",
    "SlowR3",
    "SlowR3Minus",
    "SlowR4",
    "Taken",
    "adjust",
    "batch_of",
    "elements_of",
    "insert",
    "make_slow_merge",
    "stable",
]
