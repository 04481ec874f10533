"""R0: starts rise strictly, so the newest start says it all (the paper's §IV-A, with L6).

Invariant: the event at the newest start is out.
"""

from __future__ import annotations

import numpy as np

from lineage.kernels import kernel
from lmerge.cases.ordered import AT_NEWEST, GIVEN, OrderedMerge, give_insert, place_insert, take_point
from lmerge.cases.outcomes import KNOWN, NEW
from lmerge.streams.elements import STABLE, ElementBatch


@kernel("void(int64, UniTuple(int64[::1], 5), int64[:,::1], int8[::1], int64[:,::1], int64[::1])")
def merge_r0(
    number: int, batch: tuple[np.ndarray, ...], out: np.ndarray, outcomes: np.ndarray, inputs: np.ndarray, header: np.ndarray
) -> None:  # fmt: skip
    """Merge the elements of an input."""
    kinds, starts, _, _, ends = batch
    for i in range(len(kinds)):
        if kinds[i] == STABLE:
            take_point(ends[i], i, out, outcomes, inputs, number, header)
        else:
            outcome = place_insert(inputs, number, header, starts[i])
            if outcome == AT_NEWEST:
                outcome = np.int64(NEW if header[GIVEN] == 0 else KNOWN)
                header[GIVEN] = 1
            give_insert(batch, i, out, outcomes, inputs, number, header, outcome)


class R0Merge(OrderedMerge):
    """A merge of the case R0."""

    __slots__ = ()

    case = "R0"

    def _merge(self, number: int, batch: ElementBatch, out: np.ndarray, outcomes: np.ndarray) -> None:
        merge_r0(number, tuple(batch), out, outcomes, self._inputs.rows, self._header)
