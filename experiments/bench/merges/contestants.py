"""Contestants of `eddy bench lmerge` behind one face: each takes the pushes of a workload in order.

They all merge as the product does by default: the first insert of an event goes out, other ends lazily.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from experiments.bench.merges import bare_r3, bare_r4
from experiments.bench.merges.merge_workload import MergeSetting
from experiments.papers.lmerge import elements_of, make_slow_merge
from experiments.papers.lmerge.elements import PhysicalElement, batch_of
from lmerge.merge import make_merge
from lmerge.streams.cleanse import Cleanse
from lmerge.streams.elements import ADJUST, STABLE, ElementBatch

#: Room of the bare kernels: nodes, and for each node places of the table, entries of the calendar, and ends for each input.
_NODES = 1 << 15
_PLACES, _DUES, _ENDS = 4, 4, 2
_BUCKETS, _SHIFT = 1 << 13, 4


class BenchedMerge(Protocol):
    """A merge that takes elements and gives elements."""

    def push(self, number: int, batch: ElementBatch) -> object:
        """Take elements of an input."""

    def given(self) -> ElementBatch:
        """Return what the last push gave out."""


class ProductMerge:
    """A case of `lmerge/`."""

    def __init__(self, setting: MergeSetting, case: str, bag: bool = False) -> None:
        self.merge = make_merge(case, bag=bag)
        for _ in range(setting.n_inputs):
            self.merge.attach()
        self._given = batch_of([])

    def push(self, number: int, batch: ElementBatch) -> None:
        self._given = self.merge.push(number, batch).elements

    def given(self) -> ElementBatch:
        return self._given


class BareMerge:
    """A bare kernel with arrays that are large enough."""

    def __init__(self, setting: MergeSetting, case: str) -> None:
        width = setting.n_inputs
        table, free = np.full(_PLACES * _NODES, -1, np.int32), np.arange(_NODES, dtype=np.int32)
        n_dues = _DUES * _NODES
        calendar = (
            np.full(_BUCKETS, -1, np.int32),
            np.zeros(n_dues, np.int32),
            np.zeros(n_dues, np.int32),
            np.zeros(n_dues, np.int64),
            np.arange(n_dues, dtype=np.int32),
        )
        n_ends = _ENDS * _NODES * (width + 1)
        self._sizes = np.array([0, _NODES, n_dues, n_ends])
        # room for a push, and for all that one stable may change
        self._out = tuple(np.zeros(setting.n_elements + _NODES, np.int64) for _ in range(5))
        starts, payloads, shown, dues = (np.zeros(_NODES, np.int64) for _ in range(4))
        shared = (table, free, calendar, _SHIFT, self._sizes, self._out)
        self._merge: Callable[..., int] = bare_r3.merge if case == "R3" else bare_r4.merge
        self._state: tuple[Any, ...]
        if case == "R3":
            self._state = ((starts, payloads, shown, dues), np.zeros((_NODES, width), np.int64), *shared)
        else:
            bags = (
                np.zeros((_NODES, width + 1), np.int32),
                np.zeros((_NODES, width + 1), np.int32),
                np.zeros(n_ends, np.int64),
                np.zeros(n_ends, np.int32),
                np.zeros(n_ends, np.int32),
                np.arange(n_ends, dtype=np.int32),
            )
            self._state = ((starts, payloads, dues), bags, *shared)
        self._n_out = 0

    def push(self, number: int, batch: ElementBatch) -> None:
        self._n_out = self._merge(number, tuple(batch), *self._state)

    def given(self) -> ElementBatch:
        kinds, starts, payloads, olds, ends = (column[: self._n_out].copy() for column in self._out)
        # what a kind has not is left as it was
        starts[kinds == STABLE] = payloads[kinds == STABLE] = 0
        return ElementBatch(kinds, starts, payloads, np.where(kinds == ADJUST, olds, 0), ends)


class TwinMerge:
    """The printed algorithm, one element at a time."""

    def __init__(self, setting: MergeSetting, case: str) -> None:
        self.merge = make_slow_merge(case)
        for _ in range(setting.n_inputs):
            self.merge.attach()
        self._given: list[PhysicalElement] = []

    def push(self, number: int, batch: ElementBatch) -> None:
        self._given = []
        for element in elements_of(batch):
            self._given += self.merge.push(number, element).out

    def given(self) -> ElementBatch:
        return batch_of(self._given)


class CleansedMerge:
    """Each input put in order, then R1: the paper's baseline."""

    def __init__(self, setting: MergeSetting) -> None:
        self.cleanses = [Cleanse() for _ in range(setting.n_inputs)]
        self.merge = make_merge("R1")
        for _ in self.cleanses:
            self.merge.attach()
        self._given = batch_of([])

    def push(self, number: int, batch: ElementBatch) -> None:
        self._given = self.merge.push(number, self.cleanses[number].push(batch)).elements

    def given(self) -> ElementBatch:
        return self._given
