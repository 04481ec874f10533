"""A table of events and presentations of it: what every contestant of `eddy bench lmerge` takes.

Two events start at every instant. An end is uniform within twice the mean life, which makes as many live events as the setting
says. The manner of a presentation:

    any       elements up to 20 instants late; 30 % of the events have a provisional end, which is adjusted soon after
    bag       the same, and a quarter of the events have payload and start in common with another
    ordered   inserts in order of their starts, those of one start in one order: what all of R0 to R3 take (R0: one a start)

A stable says what is 25 instants back, and comes after so many elements that they make up the given share.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lmerge.streams.elements import ADJUST, INSERT, STABLE, ElementBatch

_DISORDER = 20.0
_REVISED = 0.3
#: How much too late a provisional end is, and how many instants after the last insert of a start its adjust comes at the latest.
_LATER, _SOON = 7, 3.0
#: Instants by which a stable is behind the elements around it.
_BEHIND = 25
_FIRST = 1000


class MergeSetting(NamedTuple):
    """What is presented and how."""

    manner: str = "any"
    n_inputs: int = 2
    n_live: int = 10_000
    #: stables per element
    stables: float = 0.01
    n_events: int = 60_000
    #: elements a push
    n_elements: int = 1024
    #: events that start at one instant
    together: int = 2


class MergeWorkload(NamedTuple):
    """Pushes in order: (input, elements). The first ones fill the merge with live events and are not clocked."""

    setting: MergeSetting
    pushes: list[tuple[int, ElementBatch]]
    n_filling: int

    @property
    def n_clocked(self) -> int:
        """Elements of all pushes that are clocked."""
        return sum(len(batch.kinds) for _, batch in self.pushes[self.n_filling :])

    def cut(self, n_filling: int, n_clocked: int) -> MergeWorkload:
        """Return the workload with that many clocked pushes only."""
        return self._replace(pushes=self.pushes[: n_filling + n_clocked], n_filling=n_filling)


def make_workload(setting: MergeSetting) -> MergeWorkload:
    """Return presentations of one table, pushed in turn."""
    rng = np.random.default_rng(3)
    n, together = setting.n_events, setting.together
    starts = np.arange(n) // together + _FIRST
    payloads = rng.integers(0, 4, n) if setting.manner == "bag" else np.arange(n) % 401 * 7919 + np.arange(n) % together
    ends = starts + rng.integers(1, 2 * setting.n_live // together, n)
    streams = [_present(rng, setting, starts, payloads, ends) for _ in range(setting.n_inputs)]
    size, n_elements = setting.n_elements, max(len(stream.kinds) for stream in streams)
    pushes = [
        (number, ElementBatch(*(column[at : at + size].copy() for column in stream)))
        for at in range(0, n_elements, size)
        for number, stream in enumerate(streams)
        if at < len(stream.kinds)
    ]
    # twice the mean life of elements have gone by when as many events end as begin
    filling = setting.n_inputs * min(-(-2 * setting.n_live * n_elements // n) // size + 1, n_elements // size // 2)
    return MergeWorkload(setting, pushes, filling)


def _present(
    rng: np.random.Generator, setting: MergeSetting, starts: np.ndarray, payloads: np.ndarray, ends: np.ndarray
) -> ElementBatch:
    """Return one presentation of a table."""
    n, zeros = len(starts), np.zeros(len(starts), np.int64)
    elements_an_instant = float(setting.together)
    if setting.manner == "ordered":
        parts = [(starts.astype(float), np.full(n, INSERT), starts, payloads, zeros, ends)]
    else:
        revised = rng.random(n) < _REVISED
        at = starts + rng.uniform(0, _DISORDER, n)
        first = np.where(revised, ends + _LATER, ends)
        again = starts[revised]
        k = len(again)
        elements_an_instant *= 1 + _REVISED
        later = again + _DISORDER + rng.uniform(0, _SOON, k)
        parts = [
            (at, np.full(n, INSERT), starts, payloads, zeros, first),
            (later, np.full(k, ADJUST), again, payloads[revised], first[revised], ends[revised]),
        ]
    step = max(1, round(1 / setting.stables / elements_an_instant))
    points = np.arange(_FIRST + _BEHIND, int(starts[-1]) + _BEHIND, step)
    zeros = np.zeros(len(points), np.int64)
    parts.append((points + 0.5, np.full(len(points), STABLE), zeros, zeros, zeros, points - _BEHIND))
    order = np.argsort(np.concatenate([part[0] for part in parts]), kind="stable")
    return ElementBatch(*(np.concatenate([part[c] for part in parts])[order].astype(np.int64) for c in range(1, 6)))
