"""The shared groups of an engine, by stream and form, and their changes in each commit."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from eddy.base.result_log import LoggedCommit
from eddy.operators.core import StreamCore
from eddy.operators.shared.shared_changes import CellRows, FaceChanges, changes_by_face
from eddy.operators.shared.shared_form import Shareable, SharedForm
from eddy.operators.shared.shared_group import SharedGroup
from eddy.operators.shared.shared_operation import SharedOperation
from eddy.operators.tree_query import TreeQuery
from eddy.streams.source import Source
from eddy.streams.timeline import Timeline
from windows.spec import WindowSpec

#: The group, the names of the columns, the rows of a part, and their sign.
Part = tuple[SharedGroup, tuple[str, ...], CellRows, int]


class SharedGroups:
    """All shared groups of one engine; applies commits to them."""

    def __init__(self) -> None:
        self._groups: dict[Timeline, dict[tuple[Source, SharedForm], SharedGroup]] = {}
        #: gives a member operators of its own, as it was after a commit; set by whoever starts queries
        self.make_own: Callable[[TreeQuery, LoggedCommit], None] | None = None

    def __contains__(self, timeline: Timeline) -> bool:
        return timeline in self._groups

    def __iter__(self) -> Iterator[SharedGroup]:
        for groups in self._groups.values():
            yield from groups.values()

    @property
    def bytes(self) -> int:
        """The bytes of all groups and of their members' logs."""
        return sum(group.bytes + sum(member.query.log.bytes for member in group.members.operations.values()) for group in self)

    def join(self, query: TreeQuery, shareable: Shareable, core: StreamCore) -> SharedOperation:
        """Make a query a member of the group of its form."""
        (source,) = core.sources
        groups = self._groups.setdefault(query.timeline, {})
        group = groups.get((source, shareable.form))
        if group is None:
            group = groups[source, shareable.form] = SharedGroup(shareable.form, source)
        return SharedOperation(query, shareable, core, group)

    def tidy(self, timeline: Timeline, group: SharedGroup) -> None:
        """Remove a group whose last member has left."""
        if group.members:
            return
        groups = self._groups[timeline]
        del groups[group.source, group.form]
        if not groups:
            del self._groups[timeline]

    def extents(self, timeline: Timeline) -> list[tuple[Source, WindowSpec]]:
        """The windows in steps that show each extent by rows of its own."""
        groups = self._groups.get(timeline, {}).values()
        return [(group.source, group.form.window) for group in groups if group.form.by_extent]

    def run(self, timeline: Timeline, record: LoggedCommit, before_seq: int, listening: bool) -> Iterator[Part]:
        """Apply a logged commit to all shared aggregates; yields the parts for listeners, and writes the members' logs."""
        for group in list(self._groups.get(timeline, {}).values()):
            if not group.admit(record):
                assert self.make_own is not None, "somebody starts queries"
                for member in list(group.members.operations.values()):
                    self.make_own(member.query, LoggedCommit(before_seq, record.before, record.before))
                continue
            group.watch_all(listening)
            moves = group.take(record)
            if moves is not None and group.members.watched.any():
                for changes in changes_by_face(group, moves):
                    self._log(group, changes, record)
                    if listening:
                        yield from self._parts(group, changes)
            group.settle()

    def _parts(self, group: SharedGroup, changes: FaceChanges) -> Iterator[Part]:
        """The changes of a face for listeners: a part has one set of column names."""
        ids = group.readers().ids
        for names, first, last in changes.named:
            for sign in (-1, 1):
                rows = CellRows(changes, sign, ids, first, last)
                if rows.n_rows:
                    yield group, names, rows, sign

    def _log(self, group: SharedGroup, changes: FaceChanges, record: LoggedCommit) -> None:
        readers = group.readers()
        group.members.results[readers.numbers] += np.diff(changes.lists(1)[0])
        for place, parts in changes.logged().items():
            number = int(readers.numbers[place])
            log = group.members.operations[number].query.log
            log.append(record.seq, parts)
            if log.gives_up(record.seq):
                group.members.log(number, False)
