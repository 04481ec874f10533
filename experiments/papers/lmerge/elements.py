"""One element of a physical stream, as a Python tuple; `lmerge/streams/elements.py` has the same as columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from lineage.elements import FOREVER
from lmerge.streams.elements import ADJUST, INSERT, STABLE, ElementBatch


class PhysicalElement(NamedTuple):
    """An insert, an adjust or a stable, by its kind."""

    kind: int
    start: int
    payload: int
    old: int
    end: int

    def __str__(self) -> str:
        end = "inf" if self.end == FOREVER else str(self.end)
        if self.kind == STABLE:
            return f"stable({end})"
        if self.kind == INSERT:
            return f"insert({self.payload}, {self.start}, {end})"
        old = "inf" if self.old == FOREVER else str(self.old)
        return f"adjust({self.payload}, {self.start}, {old}, {end})"


def insert(payload: int, start: int, end: int) -> PhysicalElement:
    """An event that lives during [start, end)."""
    return PhysicalElement(INSERT, start, payload, 0, end)


def adjust(payload: int, start: int, old: int, end: int) -> PhysicalElement:
    """Another end for the event (payload, [start, old)); end = start removes it."""
    return PhysicalElement(ADJUST, start, payload, old, end)


def stable(point: int) -> PhysicalElement:
    """The promise that nothing before a point changes any more."""
    return PhysicalElement(STABLE, 0, 0, 0, point)


def batch_of(elements: Iterable[PhysicalElement]) -> ElementBatch:
    """Elements as columns."""
    table = np.array(list(elements), dtype=np.int64).reshape(-1, 5)
    return ElementBatch(*(np.ascontiguousarray(table[:, k]) for k in range(5)))


def elements_of(batch: ElementBatch) -> Iterator[PhysicalElement]:
    """Columns as elements."""
    for row in zip(*(column.tolist() for column in batch)):
        yield PhysicalElement(*row)
