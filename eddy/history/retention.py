"""How far back the log of a timeline reaches: what is kept for nothing but to be read, and what is let go of.

    kept for the log    commits, what queries with operators logged, and rows of streams that no window holds any more but that
                        some query may be asked about: those that came, or left its window, in a commit that is logged

Commits go from the oldest on until what is kept is within the bounds, but never the newest one: it can always be read, with all
rows that it took, ended or changed. Between two looks at a log it may grow by an eighth of its bounds.

A stream that is read by operators alone has no log: they were fed, and keep by themselves what they need. Of it, and of a
timeline on which nobody can ask for changes, only the newest bit is kept.
"""

from __future__ import annotations

from collections.abc import Iterable

from eddy.base.log_bounds import LogBounds
from eddy.base.result_log import MAX_COMMITS, UNREAD_BYTES, ResultLog
from eddy.history.needed_rows import n_needless, n_only_logged, row_bytes, settle
from eddy.streams.source import Source
from eddy.streams.table_source import TableSource
from eddy.streams.timeline import Rows, Timeline

#: A log is cut back when it is above its bounds by the 2**-3rd part: cutting costs more than a small push.
_SLACK_SHIFT = 3
#: Rows of a stream without a log that go when they are more than this, and than that part of the rows held.
_SLACK_ROWS = 4096


class Retention:
    """Bounds the logs of an engine's timelines."""

    def __init__(self, bounds: LogBounds) -> None:
        self.bounds = bounds

    def crowded(self, timeline: Timeline, released: Iterable[tuple[Source, Rows]]) -> bool:
        """Whether a commit that took these rows calls for a trim; to be asked once, when all is logged."""
        log, bounds, found = timeline.log, self.bounds, False
        for source, rows in released:
            taken = source.store.end - source.log.first
            if source.placement.legs or source.log.read:
                log.charged += rows.n_rows * source.log.row_bytes
                found |= taken > bounds.rows + (bounds.rows >> _SLACK_SHIFT)
            elif taken > _SLACK_ROWS:
                found |= taken > (source.store.end - source.store.watermark) >> _SLACK_SHIFT
        return found or log.charged + log.changes.added > bounds.bytes >> _SLACK_SHIFT

    def crowded_by(self, table: TableSource, log: ResultLog) -> bool:
        """The same for the versions of a table."""
        bounds = self.bounds
        too_many = table.versions.n_closed_since(log.gone) > bounds.rows + (bounds.rows >> _SLACK_SHIFT)
        return too_many or log.changes.added > bounds.bytes >> _SLACK_SHIFT

    def trim(self, timeline: Timeline, seq: int) -> None:
        """Bound the log after commit `seq`, and forget rows that neither a window nor the log needs."""
        log, sources = timeline.log, timeline.sources
        drop = max(0, len(log) - MAX_COMMITS)
        for source in sources:
            if not source.log.read:
                source.log.first = source.store.end
            elif source.store.end - source.log.first > self.bounds.rows:
                # commits go until what is left holds no more than the bound, but never the one just made
                drop = max(drop, log.n_until(source.log.ends.reaching(source.store.end - self.bounds.rows)))
        for table in timeline.tables:
            if table.versions.n_closed_since(log.gone) > self.bounds.rows:
                gone = table.versions.commit_with(table.versions.n_closed_until(seq) - self.bounds.rows)
                drop = max(drop, log.n_until(gone))
        if not log.changes.logs and not timeline.tables and not _logged(timeline):
            drop = len(log)
        bound = self._most_bytes(timeline)
        _forget(timeline, _fitting(timeline, min(drop, len(log) - 1), bound), UNREAD_BYTES)
        if len(log) == 1 and bytes_kept(timeline) > bound:
            # the newest commit alone is too much: it goes with the next one
            log.charged = self.bounds.bytes

    def _most_bytes(self, timeline: Timeline) -> int:
        """What a log may hold: hardly anything if there are only aggregates that nobody has read."""
        read = timeline.tables or _logged(timeline) or any(not log.unread for log in timeline.log.changes.logs)
        return self.bounds.bytes if read else min(self.bounds.bytes, UNREAD_BYTES)

    def forget_log(self, timeline: Timeline) -> None:
        """Give up the whole log, and all rows that are in no window now."""
        _forget(timeline, len(timeline.log), 0)


def row_bytes_spared(timeline: Timeline) -> int:
    """The bytes of rows that are forgotten if the whole log is, at least."""
    gone = timeline.log.gone_with(len(timeline.log))
    return sum(source.store.row_bytes() * n_needless(source, gone) for source in timeline.sources)


def bytes_kept(timeline: Timeline) -> int:
    """What is kept for nothing but the log of a timeline."""
    return timeline.log.bytes + _row_bytes(timeline, 0)


def _logged(timeline: Timeline) -> list[Source]:
    """The streams whose rows are kept for the log."""
    return [source for source in timeline.sources if source.log.read]


def _fitting(timeline: Timeline, drop: int, bound: int) -> int:
    """How many commits have to go, at least `drop`, so that no more bytes are kept for the log; never the newest."""
    log = timeline.log
    held = sum(
        row_bytes(source) * (source.store.end - source.store.watermark) for source in (*timeline.sources, *timeline.tables)
    )
    if log.bytes + held <= bound or drop >= len(log) - 1 or log.bytes + _row_bytes(timeline, drop) <= bound:
        return drop
    commits = log.bytes_from()
    # all from `most` on fit, those below `drop` do not
    most = len(log) - 1
    while drop < most:
        middle = (drop + most) // 2
        if int(commits[middle]) + _row_bytes(timeline, middle) <= bound:
            most = middle
        else:
            drop = middle + 1
    return drop


def _row_bytes(timeline: Timeline, drop: int) -> int:
    """The bytes of rows, and of old versions of tables' rows, that only the log holds if its oldest commits are gone."""
    log = timeline.log
    gone, clock = log.gone_with(drop), log.clock_before(drop, timeline.now)
    versions = sum(row_bytes(table) * table.versions.n_closed_since(gone) for table in timeline.tables)
    return versions + sum(row_bytes(source) * n_only_logged(source, gone, clock) for source in _logged(timeline))


def _forget(timeline: Timeline, n_commits: int, spared_bytes: int) -> None:
    """Forget the oldest commits, and the rows that neither a window nor the rest of the log needs; of streams without a log some
    bytes of the newest rows are spared."""
    log = timeline.log
    log.drop(n_commits)
    clock = log.clock_before(0, timeline.now)
    for source in timeline.sources:
        source.log.drop(log.gone)
        settle(source, clock, 0 if source.log.read else spared_bytes // row_bytes(source))
    for table in timeline.tables:
        table.forget_versions()
