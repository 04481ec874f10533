"""Moments of a trace: when rows begin, and their lives as known then.

A **moment** is an instant of a commit, after all its events (semantics 5). What begins at a moment `(s, c)`, a row, a combination
of rows, an extent, is there if each of its rows is:

    end > s      the end as it stood after commit c; a row that a later commit ended at the same instant was there

The commit of a row is unknown once it is no longer logged: such rows count as brought by the last of those commits. If such a row
came and ended at one instant, it counts as never there.
"""

from __future__ import annotations

import numpy as np

from eddy.base.result_log import ResultLog
from eddy.lives.early_ends import CommitPoint, EarlyEnds
from eddy.lives.window_rows import WindowRows
from eddy.streams.source import Source
from lineage.elements import BEGINNING

#: After every commit there is.
LATEST = 2**62


def commit_of(source: Source, position: int) -> int:
    """The commit that brought a row of a stream."""
    return source.timeline.log.gone if position < source.log.ends.start else source.log.ends.reaching(position + 1)


def commits_of(source: Source, positions: np.ndarray) -> np.ndarray:
    """The commits that brought rows of a stream."""
    found, places = np.unique(positions, return_inverse=True)
    commits: np.ndarray = np.array([commit_of(source, position) for position in found.tolist()], np.int64)[places]
    return commits


def clock_after(log: ResultLog, commit: int) -> int:
    """The clock after a commit; the earliest one in the log if the commit is no longer logged."""
    n = log.n_until(commit)
    if n:
        return log.clock_after(n - 1)
    return log.clock_before(0, BEGINNING) if log.gone else BEGINNING


def commit_at(log: ResultLog, time: int) -> int:
    """The commit of a trace in which the clock reached a time; beyond all commits if it has not."""
    found = log.reaching(time)
    return LATEST if found is None else found


def standing(source: Source, commit: int) -> CommitPoint:
    """The state of a stream after a commit."""
    if commit >= LATEST:
        return CommitPoint(BEGINNING, source.store.end, LATEST)
    commit = max(commit, source.timeline.log.gone)
    return CommitPoint(BEGINNING, source.end_at(commit), commit)


def there(
    source: Source, width_us: int, ends: EarlyEnds | None, positions: np.ndarray, instants: np.ndarray, commits: np.ndarray
) -> np.ndarray:
    """For each row, whether it was alive in the window at its instant, which is not before it came."""
    rows = WindowRows(source, width_us, ends)
    last = rows.lives(positions, standing(source, LATEST)).ends
    found: np.ndarray = last > instants
    if ends is None:
        return found
    # ended at that very instant: by the clock, in that commit, or in a later one
    ties = np.flatnonzero(last == instants)
    for commit in np.unique(commits[ties]).tolist():
        of_commit = ties[commits[ties] == commit]
        found[of_commit] = rows.lives(positions[of_commit], standing(source, commit)).ends > instants[of_commit]
    return found
