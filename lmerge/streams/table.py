"""The temporal table that a physical stream stands for: a bag of events (payload, [Vs, Ve)), and what of it is frozen.

    reconstitute    the table that elements make; two streams are equivalent iff they make the same one
    freeze states   with the stable point Vc:   unfrozen     Vc <= Vs          may still change or go
                                                half frozen  Vs < Vc <= Ve     stays, its end may still change
                                                frozen       Ve < Vc           stays as it is (strict, semantics 4)
    find_fault      the first element that breaks a promise of its own stream

All of it is columns: 400,000 elements take a few sorts. The events of a table are in order of (start, payload, end), each once
with the number of its copies.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from lineage.elements import BEGINNING
from lmerge.streams.elements import ADJUST, INSERT, STABLE, ElementBatch

UNFROZEN, HALF_FROZEN, FROZEN = 0, 1, 2

#: (start, payload): what the conditions speak of.
EventKey = tuple[int, int]


class Fault(NamedTuple):
    """An element that breaks a promise of its own stream."""

    #: Its place among the elements looked at.
    position: int
    why: str


class TemporalTable(NamedTuple):
    """Events with the number of their copies, and the stable point of the stream that they come from."""

    payloads: np.ndarray
    starts: np.ndarray
    ends: np.ndarray
    counts: np.ndarray
    stable: int

    def events(self) -> Counter[tuple[int, int, int]]:
        """How often each (payload, start, end) is there."""
        rows = zip(self.payloads.tolist(), self.starts.tolist(), self.ends.tolist())
        return Counter(dict(zip(rows, self.counts.tolist())))

    def by_key(self) -> Mapping[EventKey, Sequence[int]]:
        """The ends of the events of each start and payload, ascending."""
        ends: dict[EventKey, list[int]] = {}
        for start, payload, end, count in zip(*(c.tolist() for c in (self.starts, self.payloads, self.ends, self.counts))):
            ends.setdefault((start, payload), []).extend([end] * count)
        return ends

    def states(self) -> np.ndarray:
        """The freeze state of each event."""
        half: np.ndarray = (self.starts < self.stable).astype(np.int64)
        return half + (half & (self.ends < self.stable))


def freeze_state(start: int, end: int, point: int) -> int:
    """What a stable point has done to an event."""
    return UNFROZEN if point <= start else HALF_FROZEN if point <= end else FROZEN


def empty_table() -> TemporalTable:
    """The table of a stream that has said nothing."""
    none = np.zeros(0, np.int64)
    return TemporalTable(none, none, none, none, BEGINNING)


def reconstitute(batches: Iterable[ElementBatch], before: TemporalTable | None = None) -> TemporalTable:
    """The table that the elements of a stream make, after those that made the table before. The stream must be valid."""
    old = before or empty_table()
    batch = joined_batches(batches)
    payloads, starts, ends, signs, _ = _signed(batch, old)
    order, first = _groups(starts, payloads, ends)
    counts = np.add.reduceat(signs[order], first) if len(first) else signs
    assert (counts >= 0).all(), "an element of the stream adjusts an event that is not there"
    kept = order[first[counts > 0]] if len(first) else order
    points = batch.ends[batch.kinds == STABLE]
    stable = max(old.stable, int(points.max())) if len(points) else old.stable
    return TemporalTable(payloads[kept], starts[kept], ends[kept], counts[counts > 0], stable)


def find_fault(batches: Iterable[ElementBatch], before: TemporalTable | None = None, *, key: bool = False) -> Fault | None:
    """The first element that its stream may not hold, None if the stream is valid; with a key payload and start are unique.

    The table before is that of the elements that came earlier.
    """
    old = before or empty_table()
    batch = joined_batches(batches)
    said = np.where(batch.kinds == STABLE, batch.ends, BEGINNING)
    points = np.maximum.accumulate(np.concatenate([[old.stable], said]))[:-1]
    inserts, adjusts = batch.kinds == INSERT, batch.kinds == ADJUST
    found = [
        _first(inserts & (batch.ends <= batch.starts), "an insert whose life is empty"),
        _first(adjusts & (batch.ends < batch.starts), "an adjust whose end lies before its start"),
        _first(inserts & (batch.starts < points), "an insert that starts below the stable point"),
        _first(adjusts & (batch.olds < points), "an adjust of an end below the stable point"),
        _first(adjusts & (batch.ends < points), "an adjust to an end below the stable point"),
        _adjust_of_nothing(batch, old),
        _second_of_a_key(batch, old) if key else None,
    ]
    return min((fault for fault in found if fault), key=lambda fault: fault.position, default=None)


def joined_batches(batches: Iterable[ElementBatch]) -> ElementBatch:
    """The elements of several batches as one."""
    parts = list(batches)
    if not parts:
        return ElementBatch(*(np.zeros(0, np.int64) for _ in range(5)))
    return parts[0] if len(parts) == 1 else ElementBatch(*(np.concatenate(columns) for columns in zip(*parts)))


def _signed(batch: ElementBatch, old: TemporalTable) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Payload, start, end, sign and position of what elements take from a table and put into it; first the table itself."""
    gone = np.flatnonzero(batch.kinds == ADJUST)
    come = np.flatnonzero((batch.kinds != STABLE) & (batch.ends > batch.starts))
    both = np.concatenate([gone, come])
    return (
        np.concatenate([old.payloads, batch.payloads[both]]),
        np.concatenate([old.starts, batch.starts[both]]),
        np.concatenate([old.ends, batch.olds[gone], batch.ends[come]]),
        np.concatenate([old.counts, np.full(len(gone), -1), np.ones(len(come), np.int64)]),
        np.concatenate([np.full(len(old.starts), -1), both]),
    )


def _groups(*columns: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """An order that puts equal rows together, the first column first, rows as they come; and where each group begins in it."""
    order = np.lexsort(columns[::-1])
    changes = np.zeros(len(order), bool)
    changes[:1] = True
    for column in columns:
        changes[1:] |= np.diff(column[order]) != 0
    return order, np.flatnonzero(changes)


def _first(wrong: np.ndarray, why: str) -> Fault | None:
    """The first element of those that are wrong."""
    positions = np.flatnonzero(wrong)
    return Fault(int(positions[0]), why) if len(positions) else None


def _running(signs: np.ndarray, order: np.ndarray, first: np.ndarray) -> np.ndarray:
    """Sums of signs within their groups, up to and with each row, in that order."""
    sums = np.cumsum(signs[order])
    lengths = np.diff(np.append(first, len(order)))
    running: np.ndarray = sums - np.repeat(sums[first] - signs[order][first], lengths)
    return running


def _adjust_of_nothing(batch: ElementBatch, old: TemporalTable) -> Fault | None:
    """The first adjust of an event that is not there."""
    payloads, starts, ends, signs, positions = _signed(batch, old)
    # by position within equal events; what an adjust takes comes before what it puts there
    turn = np.lexsort((signs, positions))
    order, first = _groups(starts[turn], payloads[turn], ends[turn])
    order = turn[order]
    wrong = order[_running(signs, order, first) < 0]
    return Fault(int(positions[wrong].min()), "an adjust of an event that is not there") if len(wrong) else None


def _second_of_a_key(batch: ElementBatch, old: TemporalTable) -> Fault | None:
    """The first insert of a payload and start that are there already."""
    changing = np.flatnonzero((batch.kinds == INSERT) | ((batch.kinds == ADJUST) & (batch.ends == batch.starts)))
    payloads = np.concatenate([old.payloads, batch.payloads[changing]])
    starts = np.concatenate([old.starts, batch.starts[changing]])
    signs = np.concatenate([old.counts, np.where(batch.kinds[changing] == INSERT, 1, -1)])
    positions = np.concatenate([np.full(len(old.starts), -1), changing])
    order, first = _groups(starts, payloads)
    wrong = order[_running(signs, order, first) > 1]
    wrong = wrong[positions[wrong] >= 0]
    return Fault(int(positions[wrong].min()), "an insert of a payload and start that are there already") if len(wrong) else None
