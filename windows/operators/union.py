"""UNION ALL: the rows of several inputs, merged in event order. No state; input k of n has the ids `id * n + k`.

Rows of one event come in the order of their ends: those of inputs that end alike then still end as they came, also where many
begin at once, at a boundary or with the query.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from filters.values.vector import Array, end_to_end
from lineage.schema import Type
from windows.delta import Delta, Minus, Plus, merged_order
from windows.operators.operator import Child, Operator


class UnionAll(Operator):
    """UNION ALL of inputs with the same columns."""

    def __init__(self, types: Sequence[Type], *, sends_ends: bool = False) -> None:
        self.types = tuple(types)
        self.sends_ends = sends_ends

    def process(self, inputs: Sequence[Delta], upto: int) -> Delta:
        pluses = [delta.plus for delta in inputs]
        times = np.concatenate([plus.times for plus in pluses])
        ranks = np.concatenate([plus.ranks for plus in pluses])
        ends = np.concatenate([plus.ends for plus in pluses])
        order = _as_they_end(merged_order([(plus.times, plus.ranks) for plus in pluses]), times, ranks, ends)
        plus = Plus(
            _numbered([plus.ids for plus in pluses])[order],
            times[order],
            ranks[order],
            ends[order],
            [end_to_end(type, [p.columns[k] for p in pluses]).take(order) for k, type in enumerate(self.types)],
            np.concatenate([p.effective_times for p in pluses])[order] if any(p.effective is not None for p in pluses) else None,
        )
        minuses = [delta.minus for delta in inputs]
        order = merged_order([(minus.times, minus.ranks) for minus in minuses])
        minus = Minus(
            _numbered([minus.ids for minus in minuses])[order],
            np.concatenate([minus.times for minus in minuses])[order],
            np.concatenate([minus.ranks for minus in minuses])[order],
        )
        return Delta(plus, minus)

    def answer(self, children: Sequence[Child], now: int) -> Delta:
        return self.process([child() for child in children], now)

    @property
    def bytes(self) -> int:
        return 0

    def check(self) -> None:
        """There is no state."""


def _as_they_end(order: Array, times: Array, ranks: Array, ends: Array) -> Array:
    """Return an order of rows by event, and by scheduled end within an event."""
    t, r, e = times[order], ranks[order], ends[order]
    if not ((t[1:] == t[:-1]) & (r[1:] == r[:-1]) & (e[1:] < e[:-1])).any():
        return order
    return order[np.lexsort((e, r, t))]


def _numbered(ids: Sequence[Array]) -> Array:
    """Return the output ids of one input's ids: `id * n + k`."""
    most = 2**63 // len(ids) - 1
    assert all(len(part) == 0 or (part.min() >= -most and part.max() < most) for part in ids), (
        "ids leave room for the input's number"
    )
    return np.concatenate([part * len(ids) + k for k, part in enumerate(ids)])
