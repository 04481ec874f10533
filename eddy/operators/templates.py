"""The running templates, by timeline, and the changes of their queries in each commit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator

from eddy.base.result_log import LoggedCommit
from eddy.lives.ranks import Ranks
from eddy.operators.seat_rows import SeatChanges
from eddy.operators.shared.extent_ends import ExtentEnds
from eddy.operators.shared.shared_groups import SharedGroups
from eddy.operators.stage import CommitStep
from eddy.operators.template import Member, Template
from eddy.streams.source import Source
from eddy.streams.timeline import Timeline
from windows.operators.operator import TimedOperator

#: What an operator keeps of one row at most, on average: its slot, its cells, its place in tables that have just doubled.
_STATE_BYTES = 256


class Templates:
    """Runs the operators of an engine's queries, and the aggregates that queries share, after each commit."""

    def __init__(self) -> None:
        #: the templates that run on each timeline that has any, by key, in the order in which they started
        self.running: dict[Timeline, dict[Hashable, Template]] = {}
        self.shared = SharedGroups()
        #: by source, how many rows operators may keep for one of it; and what each template adds to that
        self._keepers: Counter[Source] = Counter()
        self._added: dict[Template, Counter[Source]] = {}

    def __contains__(self, timeline: Timeline) -> bool:
        """Whether any query with operators runs on a timeline."""
        return timeline in self.running or timeline in self.shared

    def __iter__(self) -> Iterator[Template]:
        for templates in self.running.values():
            yield from templates.values()

    def find(self, timeline: Timeline, key: Hashable) -> Template | None:
        """The running template with a key."""
        return self.running.get(timeline, {}).get(key)

    def add(self, member: Member) -> None:
        """Run a query's operators from the next commit on."""
        template = member.template
        self.running.setdefault(template.timeline, {})[template.key] = template
        self._charge(template)

    def remove(self, member: Member) -> None:
        """Run a query's operators no more; the last query takes its template with it."""
        template = member.template
        if not template.members:
            templates = self.running[template.timeline]
            del templates[template.key]
            if not templates:
                del self.running[template.timeline]
        self._charge(template)

    def _charge(self, template: Template) -> None:
        """Count anew how many rows a template keeps for a row of each source."""
        # those that come to nothing go
        self._keepers -= self._added.pop(template, Counter())
        member = next(iter(template.members.values()), None)
        if member is not None:
            read, kept = Counter(source for core in member.cores for source in core.sources), template.kept_per_row
            added = self._added[template] = Counter({source: n * kept for source, n in read.items()})
            self._keepers.update(added)

    def row_bytes(self, source: Source) -> int:
        """The bytes that all operators keep for one row of a source: at most, if as many queries have it as had others lately."""
        return _STATE_BYTES * self._keepers.get(source, 0)

    @property
    def bytes(self) -> int:
        """The bytes of the operators and change logs of all running queries."""
        return self.shared.bytes + sum(template.bytes + template.log_bytes for template in self)

    def log_bytes(self, timeline: Timeline) -> int:
        """The bytes of the change logs of the queries with operators of their own on a timeline."""
        return sum(template.log_bytes for template in self.running.get(timeline, {}).values())

    def timed(self, timeline: Timeline) -> list[TimedOperator | ExtentEnds]:
        """What has rows that end by the clock, but not with a window of a stream."""
        found: list[TimedOperator | ExtentEnds] = []
        extents = dict.fromkeys(self.shared.extents(timeline))
        for template in self.running.get(timeline, {}).values():
            found += template.timed
            extents.update(dict.fromkeys(template.extents))
        return found + [ExtentEnds(source, window) for source, window in extents]

    def run(self, timeline: Timeline, record: LoggedCommit, ranks: Ranks) -> Iterator[tuple[Template, SeatChanges]]:
        """The changes of each template in a commit that was just logged; also written to the queries' logs."""
        step, templates = CommitStep(record, ranks), list(self.running.get(timeline, {}).values())
        for template in templates:
            changes = template.take(step)
            if changes is not None:
                if template.log.n_logged:
                    template.log.append(record.seq, *changes.by_seat())
                yield template, changes
        for template in templates:
            template.forget()
        for template in templates:
            template.reconsider(record)
            if template.crowds():
                self._charge(template)
