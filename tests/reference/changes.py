"""Changes of a commit and how they net."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass

from tests.reference.values import Value


@dataclass(frozen=True)
class Change:
    """One change of a commit: `sign` +1 or -1, the event time at which it takes effect, and the value."""

    sign: int
    time: int
    value: Value


def net(pluses: list[Change], minuses: list[Change]) -> list[Change]:
    """Net by value, - before +: of n plus and m minus of a value the latest |n - m| of the larger side remain.

    >>> net([Change(1, 6, ("v",))], [Change(-1, 5, ("v",)), Change(-1, 7, ("v",))])
    [Change(sign=-1, time=7, value=('v',))]
    """
    both: dict[Value, tuple[list[Change], list[Change]]] = defaultdict(lambda: ([], []))
    for change in pluses + minuses:
        both[change.value][change.sign < 0].append(change)
    keep: Counter[int] = Counter()
    for plus, minus in both.values():
        larger = plus if len(plus) > len(minus) else minus
        keep.update(map(id, sorted(larger, key=lambda c: c.time)[min(len(plus), len(minus)) :]))
    return sorted((c for c in minuses + pluses if keep[id(c)]), key=lambda c: (c.sign, c.time))
