"""R1: equal starts come in one order: an input's position within the newest start says it all (the paper's §IV-B, L6, L7).

    position    how many events of the newest start an input has given; it counts only in the round of that start
    bar         where an input that came late begins to count: its position within the start that was the newest then is not known

Invariant: as many events of the newest start are out as the input that is furthest in it has given. Inputs without gaps only.
"""

from __future__ import annotations

import numpy as np

from lineage.kernels import kernel
from lmerge.cases.header import GIVEN, NEWEST, ROUND
from lmerge.cases.inputs import BAR, OF_ROUND, POSITION
from lmerge.cases.ordered import AT_NEWEST, OrderedMerge, give_insert, place_insert, take_point
from lmerge.cases.outcomes import KNOWN, NEW
from lmerge.streams.elements import STABLE, ElementBatch


@kernel("int64(int64, UniTuple(int64[::1], 5), int64[:,::1], int8[::1], int64[:,::1], int64[::1], boolean)")
def merge_r1(
    number: int, batch: tuple[np.ndarray, ...], out: np.ndarray, outcomes: np.ndarray, inputs: np.ndarray, header: np.ndarray,
    counts: bool,
) -> int:  # fmt: skip
    """Merge the elements of an input; returns how many they are. Where nothing counts, one event of a start is out."""
    kinds, starts, _, _, ends = batch
    for i in range(len(kinds)):
        if kinds[i] == STABLE:
            take_point(ends[i], i, out, outcomes, inputs, number, header)
        else:
            outcome = place_insert(inputs, number, header, starts[i])
            if outcome == AT_NEWEST:
                outcome = np.int64(KNOWN)
                if inputs[number, OF_ROUND] != header[ROUND]:
                    inputs[number, OF_ROUND] = header[ROUND]
                    inputs[number, POSITION] = 0
                if starts[i] > inputs[number, BAR]:
                    if inputs[number, POSITION] == header[GIVEN]:
                        outcome = np.int64(NEW)
                        header[GIVEN] += 1
                    inputs[number, POSITION] += counts
            give_insert(batch, i, out, outcomes, inputs, number, header, outcome)
    return len(kinds)


class R1Merge(OrderedMerge):
    """A merge of the case R1."""

    __slots__ = ()

    case = "R1"
    #: whether a start has several events, which come in one order
    counts = True

    def attach(self, since: int | None = None) -> int:
        number = super().attach(since)
        if since is not None and self.counts:
            self._inputs.rows[number, BAR] = self._header[NEWEST]
        return number

    def _merge(
        self, number: int, done: int, batch: ElementBatch, out: np.ndarray, outcomes: np.ndarray, taken: np.ndarray
    ) -> int:  # fmt: skip
        return merge_r1(number, tuple(batch), out, outcomes, self._inputs.rows, self._header, self.counts)

    def check(self) -> None:
        super().check()
        rows = self._inputs.rows
        now = rows[:, OF_ROUND] == self._header[ROUND]
        assert (rows[now, POSITION] <= self._header[GIVEN]).all(), "what an input gave is out"
