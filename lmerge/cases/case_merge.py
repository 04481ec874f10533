"""What all cases share: inputs that come and go, the point and its leader, counters, and the shell of a push.

A kernel that lacks something says so in the header and returns how many elements it has done. Python makes room and calls it
again.
"""

from __future__ import annotations

import numpy as np

from lineage.elements import BEGINNING
from lineage.errors import EddyError
from lineage.growth import fitted
from lmerge.cases.due import NO_NODE
from lmerge.cases.header import (
    DECIDED,
    DENOMINATOR,
    INSERTS,
    LACKS,
    LEAD,
    LOOKED,
    N_HEADER,
    N_OUT,
    PASSED,
    POINT_OUT,
    PROBED,
    ROOM,
)
from lmerge.cases.inputs import Counters, Inputs
from lmerge.cases.merged import N_OUT_ROWS, Merged, as_merged
from lmerge.cases.policies import Policies
from lmerge.streams.elements import ADJUST, ElementBatch

#: Room for outputs beside one for each element.
_SPARE = 16
#: No nodes.
NOTHING = np.zeros(0, np.int64)
_WORK = {"probed": PROBED, "looked": LOOKED, "decided": DECIDED, "passed": PASSED}


class CaseMerge:
    """A merge of any case."""

    __slots__ = ("_inputs", "_header")

    case = ""
    takes_adjusts = True

    def __init__(self, policies: Policies) -> None:
        self._inputs = Inputs()
        self._header = np.zeros(N_HEADER, np.int64)
        self._header[[POINT_OUT, LEAD]] = BEGINNING, -1
        self._header[INSERTS : DENOMINATOR + 1] = policies

    @property
    def stable(self) -> int:
        return int(self._header[POINT_OUT])

    @property
    def leader(self) -> int:
        return int(self._header[LEAD])

    @property
    def n_live(self) -> int:
        return 0

    @property
    def capacity(self) -> int:
        return 0

    @property
    def bytes(self) -> int:
        return self._header.nbytes + self._inputs.bytes

    @property
    def counters(self) -> Counters:
        return self._inputs.counters(None)

    def counters_of(self, number: int) -> Counters:
        return self._inputs.counters(number)

    @property
    def work(self) -> dict[str, int]:
        return {word: int(self._header[at]) for word, at in _WORK.items()}

    def attach(self, since: int | None = None) -> int:
        number = self._inputs.attach(since, self.stable)
        self._fit_inputs()
        return number

    def detach(self, number: int) -> None:
        self._clear(self._inputs.known(number))
        self._inputs.detach(number)
        if self.leader == number:
            self._header[LEAD] = -1
        self._fit_inputs()

    def joined(self, number: int) -> bool:
        return self._inputs.joined(number)

    def point(self, number: int) -> int:
        return self._inputs.point(number)

    def push(self, number: int, batch: ElementBatch) -> Merged:
        self._inputs.known(number)
        if not self.takes_adjusts and (batch.kinds == ADJUST).any():
            raise EddyError(
                f"an adjust is not possible in case {self.case}",
                code="bad_case",
                hint="R3 and R4 take inputs that change what they said",
            )
        n = len(batch.kinds)
        out = np.empty((N_OUT_ROWS, n + _SPARE), np.int64)
        outcomes, taken = np.empty(n, np.int8), self._room_for_nodes(n)
        header = self._header
        header[N_OUT] = 0
        done = 0
        while (done := self._merge(number, done, batch, out, outcomes, taken)) < n:
            if header[LACKS] == ROOM:
                out = fitted(out, 2 * out.shape[1])
            else:
                self._make_room(int(header[LACKS]))
        return as_merged(out, int(header[N_OUT]), outcomes, taken, self._end_push())

    def _room_for_nodes(self, n: int) -> np.ndarray:
        """Return room for the node of each pushed element; none has one where the kernel writes nothing there."""
        return np.full(n, NO_NODE)

    def _merge(
        self, number: int, done: int, batch: ElementBatch, out: np.ndarray, outcomes: np.ndarray, taken: np.ndarray
    ) -> int:  # fmt: skip
        """Merge elements `done ..`; returns how many are done."""
        raise NotImplementedError

    def _make_room(self, lacks: int) -> None:
        """Make more of what a kernel lacks."""
        raise NotImplementedError

    def _end_push(self) -> np.ndarray:
        """Let state follow what is alive; returns the nodes that were let go of."""
        return NOTHING

    def _clear(self, number: int) -> None:
        """Forget what an input that leaves has given."""

    def _fit_inputs(self) -> None:
        """Let state have a place for each input."""

    def check(self) -> None:
        """Assert the invariants of the inputs."""
        self._inputs.check(self.stable)
