"""Running joins in a commit: every group finds the matches that began and ended, once for all its queries.

Joins come after the rows of the whole commit are stored, so how rows were cut into slices and pushes cannot matter: what a
commit changes follows from the ends of the stores and the clock before and after it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from eddy.joins.join_group import Before, JoinGroup, counts_of
from eddy.joins.join_query import JoinQuery
from eddy.joins.match_rows import MatchRows
from eddy.joins.table_group import TableGroup
from eddy.matching.row_lists import ListBuffers
from eddy.routing.base import Policy
from eddy.streams.source import Source
from eddy.streams.table_source import TableSource
from eddy.streams.timeline import Timeline
from queries.joins import Join
from windows.spec import WindowSpec

#: Takes the matches of a part and their sign.
Deliver = Callable[[JoinGroup, MatchRows, int], None]


class Joiner:
    """The join groups of one engine."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self.groups: dict[tuple[object, ...], JoinGroup] = {}

    def route_by(self, policy: Policy) -> None:
        """Use another policy from the next batch on."""
        self._policy = policy
        for group in self.groups.values():
            group.probes.policy = policy

    def group(
        self, join: Join, sources: list[Source], windows: Sequence[WindowSpec], timeline: Timeline, looking_back: int | None
    ) -> JoinGroup:  # fmt: skip
        """The group of a join over windows with the same row counts, made if it is new; to be given back by `release`.

        `looking_back`: the id of the query it is for, if that query may see older rows.
        """
        tables = any(isinstance(source, TableSource) for source in sources)
        owner = looking_back if tables else None
        # each row of a stream without a window counts once, also where no table is beside it
        once = any(window.is_stream for window in windows)
        group = self.find(join, windows, owner)
        if group is None:
            if tables or once:
                group = TableGroup(join, sources, windows, self._policy, timeline, owner)
            else:
                group = JoinGroup(join, sources, counts_of(windows), self._policy)
            self.groups[group.key] = group
        group.n_users += 1
        return group

    def find(self, join: Join, windows: Sequence[WindowSpec], owner: int | None = None) -> JoinGroup | None:
        """The group of a join over windows with the same row counts, or None; with `owner` the group of that query alone."""
        key = (join.key, counts_of(windows), any(window.is_stream for window in windows))
        return self.groups.get(key if owner is None else (*key, owner))

    def release(self, group: JoinGroup) -> None:
        """Give back a group; it is removed with its last user."""
        group.n_users -= 1
        if not group.n_users:
            group.release()
            del self.groups[group.key]

    def begin(self, timeline: Timeline, commit: int) -> list[tuple[JoinGroup, Before]]:
        """The groups that a commit on a timeline may concern, and their state before it."""
        groups = [group for group in self.groups.values() if group.timeline is timeline and group.slots.taken]
        return [(group, group.before(commit)) for group in groups]

    def begin_opening(self, query: JoinQuery, commit: int) -> list[tuple[JoinGroup, Before]]:
        """The group of a query whose opening commit may begin matches: of tables alone, whose rows are there at once."""
        return [(query.group, query.group.before(commit))] if query.opens and query.slot is not None else []

    def begin_change(self, table: TableSource, commit: int) -> list[tuple[JoinGroup, Before]]:
        """The groups, on any timeline, that a change of a table may concern, and their state before the commit."""
        groups = [group for group in self.groups.values() if isinstance(group, TableGroup) and group.reacts_to(table)]
        return [(group, group.before(commit)) for group in groups if group.slots.taken]

    def run(
        self, begun: list[tuple[JoinGroup, Before]], clock: int, after: int, batch_rows: int, buffers: ListBuffers,
        deliver: Deliver | None,
    ) -> None:  # fmt: skip
        """Find the changes of a commit from one clock to another, - before + for each group.

        Without listeners, matches that began are only counted.
        """
        for group, before in begun:
            if deliver is not None and group.leaves(before, after):
                parts = group.ended(before, clock, after, batch_rows)
                rows = MatchRows(group, parts, buffers)
                deliver(group, rows, -1)
                if rows.asked:
                    for part in parts:
                        deliver(group, MatchRows(group, parts, buffers, part), -1)
            parts = group.begun(before, after, batch_rows)
            for part in parts:
                rows = MatchRows(group, parts, buffers, part)
                if deliver is not None:
                    deliver(group, rows, 1)
                rows.finish()

    def check(self, queries: list[JoinQuery]) -> None:
        """Assert all invariants of the groups; `queries` are those of the engine."""
        for key, group in self.groups.items():
            members = [query for query in queries if query.group is group]
            assert group.key == key and group.n_users == len(members) > 0, "a group has users"
            group.check({query.slot: query for query in members if query.slot is not None})
        assert all(self.groups.get(query.group.key) is query.group for query in queries), "a query is in its group"
