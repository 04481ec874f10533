"""UNION ALL: the rows of several inputs, merged in event order. No state; input k of n has the ids `id * n + k`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from filters.vector import Array
from lineage.schema import Type
from windows.delta import Delta, Minus, Plus, end_to_end, merged_order
from windows.operator import Child, Operator


class UnionAll(Operator):
    """Inputs with the same columns side by side."""

    def __init__(self, types: Sequence[Type], *, sends_ends: bool = False) -> None:
        self.types = tuple(types)
        self.sends_ends = sends_ends

    def process(self, inputs: Sequence[Delta], upto: int) -> Delta:
        pluses = [delta.plus for delta in inputs]
        order = merged_order([(plus.times, plus.ranks) for plus in pluses])
        plus = Plus(
            _numbered([plus.ids for plus in pluses])[order],
            np.concatenate([plus.times for plus in pluses])[order],
            np.concatenate([plus.ranks for plus in pluses])[order],
            np.concatenate([plus.ends for plus in pluses])[order],
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


def _numbered(ids: Sequence[Array]) -> Array:
    """Ids of each input, told apart by their remainder."""
    most = 2**63 // len(ids) - 1
    assert all(len(part) == 0 or (part.min() >= -most and part.max() < most) for part in ids), (
        "ids leave room for the input's number"
    )
    return np.concatenate([part * len(ids) + k for k, part in enumerate(ids)])
