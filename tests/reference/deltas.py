"""What `windows/delta.py` promises of every delta."""

from __future__ import annotations

from lineage.elements import FOREVER
from windows.delta import SCHEDULED, Delta


def check_delta(delta: Delta, upto: int) -> None:
    """Assert what the module promises of one delta; which ids are alive is its reader's to check."""
    for times, ranks in ((delta.plus.times, delta.plus.ranks), (delta.minus.times, delta.minus.ranks)):
        later = (times[1:] > times[:-1]) | ((times[1:] == times[:-1]) & (ranks[1:] >= ranks[:-1]))
        assert later.all(), "events of a part are in order of time and rank"
        assert (times <= upto).all(), "nothing happens after the commit's clock"
        assert (ranks >= SCHEDULED).all(), "a rank is a number of the commit's order, or SCHEDULED"
    assert (delta.plus.ends > delta.plus.times).all(), "no life is empty"
    assert (delta.plus.ends <= FOREVER).all(), "an end is a time or FOREVER"
    assert all(len(column) == len(delta.plus) for column in delta.plus.columns), "every column has every row"
