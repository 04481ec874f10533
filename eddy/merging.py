"""The calls of an engine on merged streams: their definition, their inputs, and what these give (semantics 36)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from eddy.base.checking import changing, checking
from eddy.base.description import MergedStream, MergeReceipt
from eddy.base.turn import Turn
from eddy.catalog.catalog import Catalog
from eddy.catalog.merge_definition import merge_definition
from eddy.commit.committer import Committer
from eddy.commit.state_cap import StateCap
from eddy.merges.adjusts import check_adjusts
from eddy.merges.merge_intake import check_order
from eddy.streams.source import Source
from eddy.streams.timeline import Rows, Timeline
from lineage.ingest import Ingested
from lineage.times import to_us

#: The right call where a plain one was made.
PUSH_HINT = 'push("{0}", rows, input=..) gives it the rows of one input'
RETRACT_HINT = 'adjust("{0}", rows, input=..) ends or removes rows of one input'


class MergeCalls:
    """The calls on merged streams; a part of `Engine`, which has what they need."""

    _turn: Turn
    _catalog: Catalog
    _committer: Committer
    _cap: StateCap

    # the engine's own; declared here for their types alone
    def _check_times(self, source: Source, checked: Ingested) -> None:
        raise NotImplementedError

    def _check_ahead(self, time_us: int, timeline: Timeline, row: int | None = None, column: str | None = None) -> None:
        raise NotImplementedError

    def create_merge(
        self,
        name: str,
        columns: Mapping[str, str],
        *,
        time: str,
        inputs: Any = ("gw1", "gw2"),
        unique: Any = False,
        missing: str = "leader",
        key: Any = None,
        end: Any = None,
        case: str = "auto",
        policy: str = "stable",
        order: str | None = None,
        lateness: Any = 0,
        lag: Any = 0,
        timeline: str = "main",
        keep: Any = None,
    ) -> MergedStream:
        """Declare a stream whose rows several inputs give, each all of them; see the contract for the options."""
        with self._turn:
            with checking:
                stream = merge_definition(
                    name, columns, time=time, inputs=inputs, unique=unique, missing=missing, key=key, end=end, case=case,
                    policy=policy, order=order, lateness=lateness, lag=lag, timeline=timeline, keep=keep,
                )  # fmt: skip
            self._catalog.create_merge(stream, self._committer.seq)
            return stream

    def _push_input(self, name: str, rows: Any, of: str) -> MergeReceipt:
        """Push rows of one input of a merged stream: all of them, or none and an error."""
        with self._turn:
            with checking:
                source, intake = self._catalog.merge(name)
                given_by = intake.inputs.find(of)
                checked = source.ingestor.check(rows)
                self._check_times(source, checked)
                intake.check_rows(given_by, checked)
                check_order(intake, given_by, checked, source.schema)
                self._cap.charge_rows(source, checked.n_rows)
            with changing:
                source.ingestor.commit(checked)
                entering, receipt = intake.give(given_by, checked, source.expiry.over_until())
            self._run(source, entering, source.timeline.now)
            return receipt

    def adjust(self, name: str, rows: Any, input: str) -> MergeReceipt:
        """Change the ends of events that an input has given, or remove them; all of them, or none and an error.

        Rows name the event by the columns of its identity and its time, and its new `end`: the time itself removes it. For a
        merge without `unique` the old end is named too, as `old_` and the name of the end column.
        """
        with self._turn:
            with checking:
                source, intake = self._catalog.merge(name)
                given_by = intake.inputs.find(input)
                adjusts = check_adjusts(source, intake, given_by, rows)
            with changing:
                entering, receipt = intake.change(given_by, adjusts)
            self._run(source, entering, source.timeline.now)
            return receipt

    def stable(self, name: str, input: str, time: Any) -> MergeReceipt:
        """Promise that an input gives no more rows with a smaller time; a smaller promise than before does nothing."""
        with self._turn:
            with checking:
                source, intake = self._catalog.merge(name)
                said_by, point = intake.inputs.find(input), to_us(time)
                self._check_ahead(point, source.timeline, column=source.schema.names[intake.time_column])
            joined = intake.inputs.joined(said_by)
            with changing:
                entering = intake.say(said_by, point)
            now = source.timeline.now
            self._run(source, entering, max(now, point - intake.stream.lag_us) if joined else now)
            return intake.receipt()

    def attach(self, name: str, input: str, since: Any = None) -> None:
        """Attach an input to a merged stream, with all rows from a time on; without `since` from the largest time given so far.

        It has a say once the merge's own point is there; with no other input, at once.
        """
        with self._turn:
            with checking:
                source, intake = self._catalog.merge(name)
                checked = intake.inputs.check_attach(input)
                since_us = intake.largest if since is None else to_us(since)
                self._check_ahead(since_us, source.timeline)
            with changing:
                intake.inputs.attach(checked, since_us)

    def detach(self, name: str, input: str) -> None:
        """Detach an input from a merged stream: it has no say any more, and what only it gave does not count."""
        with self._turn:
            with checking:
                _, intake = self._catalog.merge(name)
                given_by = intake.inputs.find(input)
            with changing:
                intake.inputs.detach(given_by)

    def _run(self, source: Source, entering: Rows | None, clock: int) -> None:
        """Commit the rows that enter a merged stream."""
        self._committer.run(source.timeline, [] if entering is None else [(source, entering)], clock, False)
