"""Where a call that ends very many rows is cut into several commits (semantics 11).

An end is a row leaving a window length that some query has. A call with more than `MAX_ENDS` of them is cut at the instant of
the last of each `MAX_ENDS`; all ends and arrivals up to that instant make a commit of their own. So the cut follows from the
rows and the queries alone, never from the size of batches or the way in which rows expire.

Windows that count rows are left out: whom a row displaces from `[PARTITION BY k ROWS n]` is known once it is stored, not before,
and only groups (`eddy/join_group.py`) have such windows, whose ends are found when they are read.
"""

from __future__ import annotations

from eddy.source import Source
from eddy.timeline import Rows

#: Ends of one commit, but for those of one instant.
MAX_ENDS = 1_000_000

Released = list[tuple[Source, Rows]]


def first_cut(sources: list[Source], released: Released, after: int) -> int | None:
    """The clock at which the first of several commits ends; None when one commit up to `after` will do."""
    arriving = dict(released)
    most = 0
    for source in sources:
        new_rows = arriving[source].n_rows if source in arriving else 0
        most += source.expiry.most_ends(new_rows)
    if most <= MAX_ENDS or _ends_until(sources, arriving, after) <= MAX_ENDS:
        return None
    # the smallest instant with so many ends: below it they are too few
    low, high = sources[0].timeline.now, after
    while low < high:
        middle = (low + high) // 2
        if _ends_until(sources, arriving, middle) >= MAX_ENDS:
            high = middle
        else:
            low = middle + 1
    return low if low < after else None


def split_at(released: Released, clock: int) -> tuple[Released, Released]:
    """The rows up to an instant, and the later ones."""
    earlier, later = [], []
    for source, rows in released:
        at = rows.count_until(clock)
        first, rest = rows.split(at)
        if first.n_rows:
            earlier.append((source, first))
        if rest.n_rows:
            later.append((source, rest))
    return earlier, later


def _ends_until(sources: list[Source], arriving: dict[Source, Rows], clock: int) -> int:
    found = 0
    for source in sources:
        for window in source.expiry.windows():
            dead_until = clock - window.window.width_us
            found += max(0, source.store.first_after(dead_until) - window.oldest)
            if source in arriving:
                found += arriving[source].count_until(dead_until)
    return found
