"""The calls of an engine on merged streams that a service needs beside the library's: rows, adjusts and points of an input in one
call, screening of its rows, and what is known of a merge."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from eddy.base.checking import changing, checking
from eddy.base.description import MergedStream, MergeReceipt
from eddy.catalog.catalog import describe
from eddy.merges.adjusts import check_adjusts
from eddy.merges.element_lines import ElementLines, at_places, check_points, split_lines
from eddy.merges.merge_inputs import MergeInput
from eddy.merges.merge_intake import MergeIntake, check_order
from eddy.merging import MergeCalls
from eddy.streams.screening import screen, without
from eddy.streams.source import Source
from lineage.elements import BEGINNING
from lineage.errors import RowError
from lineage.ingest import Ingested


class MergeElements(MergeCalls):
    """More calls on merged streams; a part of `Engine`."""

    def push_elements(self, name: str, lines: Sequence[Any], input: str) -> MergeReceipt:
        """Take rows, adjusts and points of one input: all of them, or none and an error (`eddy/merges/element_lines.py`)."""
        with self._turn:
            with checking:
                source, intake = self._catalog.merge(name)
                of = intake.inputs.find(input)
                time = source.schema.names[intake.time_column]
                found = split_lines(lines, time)
                with at_places([found.point_place]):
                    self._check_ahead(found.point, source.timeline, 0, time)
                checked = self._check_lines(source, intake, of, found)
                # texts of rows get codes even if an adjust is refused: nobody sees those
                source.ingestor.commit(checked)
                adjusts = self._check_adjusts(source, intake, of, found, checked)
            receipts = [self._give(source, intake, of, checked), self._change(source, intake, of, adjusts)]
            if found.point > BEGINNING:
                receipts.append(self._say(source, intake, of, found.point))
            counts = np.array([receipt[:3] for receipt in receipts]).sum(axis=0).tolist()
            return receipts[-1]._replace(accepted=counts[0], duplicate=counts[1], settled=counts[2])

    def _check_lines(self, source: Source, intake: MergeIntake, of: MergeInput, found: ElementLines) -> Ingested:
        """The rows of a call, checked."""
        with at_places(found.row_places):
            checked = source.ingestor.check(found.rows)
            self._check_times(source, checked)
            intake.check_rows(of, checked)
            check_order(intake, of, checked, source.schema)
            if found.point > BEGINNING:
                times = np.asarray(checked.cells[intake.time_column], np.int64)
                check_points(times, found.before_rows, "no smaller time would come", source.schema.names[intake.time_column])
        self._cap.charge_rows(source, checked.n_rows)
        return checked

    def _check_adjusts(
        self, source: Source, intake: MergeIntake, of: MergeInput, found: ElementLines, rows: Ingested
    ) -> np.ndarray | None:  # fmt: skip
        """The adjusts of a call, checked; they may be of its own rows. None if there are none."""
        if not found.adjusts:
            return None
        with at_places(found.adjust_places):
            adjusts = check_adjusts(source, intake, of, found.adjusts, rows)
            column = source.schema.names[intake.time_column if intake.end_column is None else intake.end_column]
            check_points(adjusts[3], found.before_adjusts, "nothing would change before it", column)
        return adjusts

    @changing
    def _give(self, source: Source, intake: MergeIntake, of: MergeInput, checked: Ingested) -> MergeReceipt:
        entering, receipt = intake.give(of, checked, source.expiry.over_until())
        if checked.n_rows:
            self._run(source, entering, source.timeline.now)
        return receipt

    @changing
    def _change(self, source: Source, intake: MergeIntake, of: MergeInput, adjusts: np.ndarray | None) -> MergeReceipt:
        """Take checked adjusts; those of rows that were settled when they came are settled too."""
        if adjusts is None:
            return intake.receipt()
        unknown = intake.unknown_events(of, adjusts[0], adjusts[1], adjusts[2])
        intake.codes.release(adjusts[1][unknown])
        entering, receipt = intake.change(of, np.ascontiguousarray(adjusts[:, ~unknown]))
        self._run(source, entering, source.timeline.now)
        return receipt._replace(settled=receipt.settled + int(np.count_nonzero(unknown)))

    @changing
    def _say(self, source: Source, intake: MergeIntake, of: MergeInput, point: int) -> MergeReceipt:
        joined, now = intake.inputs.joined(of), source.timeline.now
        entering = intake.say(of, point)
        self._run(source, entering, max(now, point - intake.stream.lag_us) if joined else now)
        return intake.receipt()

    def screen_input(self, name: str, rows: Any, input: str) -> tuple[Any, list[RowError]]:
        """Split rows into the rows that an input of a merged stream may give, and the errors of the others; changes nothing."""
        with self._turn:
            source, intake = self._catalog.merge(name)
            of, order = intake.inputs.find(input), intake.stream.order

            def check(some: Any) -> Ingested:
                checked = source.ingestor.check(some)
                self._check_times(source, checked)
                intake.check_rows(of, checked)
                return checked

            good, errors = screen(rows, check)
            if order not in ("strict", "ordered"):
                return good, errors
            times = np.asarray(check(good).cells[intake.time_column], np.int64)
            before = np.maximum.accumulate(np.concatenate([[of.last], times]))[:-1]
            wrong = np.flatnonzero(times <= before if order == "strict" else times < before)
            if not len(wrong):
                return good, errors
            bad = {error.row for error in errors}
            places = [place for place in range(len(times) + len(bad)) if place not in bad]
            column = source.schema.names[intake.time_column]
            fact = f'the rows of input "{of.name}" are not in order'
            late = [RowError(fact, code="out_of_order", row=places[one], column=column) for one in wrong.tolist()]
            return without(good, wrong.tolist()), sorted([*errors, *late], key=lambda error: error.row or 0)

    # ---- facts

    def merge(self, name: str) -> MergedStream:
        """The merged stream of that name, in any case."""
        with self._turn:
            found = describe(self._catalog.merge(name)[0])
            assert isinstance(found, MergedStream), "its intake is one of a merge"
            return found

    def merge_stats(self, name: str) -> dict[str, Any]:
        """Counts of a merged stream and of each of its inputs."""
        with self._turn:
            return self._catalog.merge(name)[1].stats()

    def given_until(self, name: str, input: str) -> int:
        """The largest time that an input of a merged stream has given, in microseconds."""
        with self._turn:
            return self._catalog.merge(name)[1].inputs.find(input).largest

    def entered(self, name: str, time_us: int) -> bool:
        """Whether all rows of a merged stream up to a time, in microseconds, have entered it or are settled."""
        with self._turn:
            return self._catalog.merge(name)[1].passed(time_us)
