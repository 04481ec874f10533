"""One stream's part of a timeline's log: the rows of each commit, and the queries that may ask for them.

Nothing of a commit is copied: the log is the ends of the row store after each commit, and rows are kept for as long as the log
reaches back (`eddy/history/retention.py`).
"""

from __future__ import annotations

from eddy.base.result_log import CommitEnds
from eddy.streams.modules import Modules
from eddy.streams.placement import Placement
from filters.expressions.predicate import Condition
from windows.spec import WindowSpec


class StreamLog:
    """The log of one stream."""

    __slots__ = ("_placement", "_modules", "ends", "first", "gone", "row_bytes", "paused")

    def __init__(self, placement: Placement, modules: Modules, n_columns: int) -> None:
        self._placement = placement
        self._modules = modules
        #: the ends of the store after the commits that brought rows and are still logged
        self.ends = CommitEnds()
        #: rows from this position on may be kept for the log
        self.first = 0
        #: commits up to this one are no longer logged
        self.gone = 0
        #: what a row takes in the log, as it was when the log was last looked at
        self.row_bytes = 9 * n_columns + 24
        #: (window, last commit) of runs that ended but can still be read in the log
        self.paused: list[tuple[WindowSpec, int]] = []

    @property
    def read(self) -> bool:
        """Whether some query, running or paused, derives its changes from the log."""
        placement = self._placement
        return bool(placement.legs or placement.n_logged_joins or self.paused)

    def end_at(self, seq: int) -> int:
        """The end of the store after a commit that is still logged."""
        end = self.ends.at(seq)
        return self.ends.start if end is None else end

    def end_run(self, window: WindowSpec, condition: Condition, until: int) -> None:
        """A run over this window and condition ends after a commit, but can still be read."""
        self.paused.append((window, until))
        self._modules.end_run(condition, until)

    def drop(self, gone: int) -> None:
        """Commits up to `gone` are no longer logged."""
        self.ends.drop(gone)
        self.first = max(self.first, self.ends.start)
        self.gone = gone
        if self.paused:
            self.paused = [(window, until) for window, until in self.paused if until > gone]
            self._modules.log_dropped(gone)
