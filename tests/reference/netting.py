"""The slow twin of `windows/state/netting.py` and of `net_by_instant`: values compared one by one, in Python."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

from filters.values.vector import Vector

#: A change as it is shown: its time, its sign, its values.
Shown = tuple[int, int, tuple[Any, ...]]


def folded(cell: Any) -> Any:
    """A cell as Python compares it the way SQL's DISTINCT does: NULL = NULL, NaN = NaN, -0.0 = 0.0."""
    return ("NaN",) if isinstance(cell, float) and math.isnan(cell) else cell


def uncancelled_slow(minus: Sequence[Vector], plus: Sequence[Vector]) -> tuple[list[int], list[int]]:
    """The rows of either side that remain: the earliest of each value have a counterpart."""
    sides = [[tuple(folded(column.cell(row)) for column in side) for row in range(len(side[0]))] for side in (minus, plus)]
    both = Counter(sides[0]) & Counter(sides[1])
    found: tuple[list[int], list[int]] = ([], [])
    for keys, rows in zip(sides, found):
        left = both.copy()
        for row, key in enumerate(keys):
            if left[key]:
                left[key] -= 1
            else:
                rows.append(row)
    return found


def net_by_instant_slow(changes: Sequence[Shown]) -> list[Shown]:
    """What remains at each instant, - before +; changes are all - in the order in which they came, then all +."""
    found = []
    for time in sorted({time for time, _, _ in changes}):
        for sign in (-1, 1):
            mine = [values for at, its_sign, values in changes if (at, its_sign) == (time, sign)]
            others = Counter(tuple(map(folded, values)) for at, its_sign, values in changes if (at, its_sign) == (time, -sign))
            for values in mine:
                key = tuple(map(folded, values))
                if others[key]:
                    others[key] -= 1
                else:
                    found.append((time, sign, values))
    return found
