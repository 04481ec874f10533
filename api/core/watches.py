"""The queries with subscribers, on the side of the engine: their changes are read once for all subscribers.

The engine's listener names the queries that a commit touched, so other watched queries cost nothing. Changes are read from the
engine's log at the end of a group of calls, by one cursor a query. Without a watch there is no listener.

Only the engine's thread uses this module.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable

import numpy as np

from api.core.parts import ChangePart, parts_of
from eddy import Changes, Commit, Engine, NotFoundError, Query

#: Stands for a subscription; here only its identity counts.
Reader = Hashable


class Watches:
    """The watched queries and their readers."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._cursors: dict[int, Changes] = {}
        #: the numbers of watched queries by their name in lower case; of one that went another may have the name already
        self._by_name: dict[str, set[int]] = {}
        #: who watches a query, by its number; never empty
        self._readers: dict[int, set[Reader]] = {}
        #: which queries somebody watches
        self._watching: dict[Reader, set[int]] = {}
        #: the tags whose queries somebody wants as they come
        self._tags: dict[Reader, frozenset[str]] = {}
        self._dirty: set[int] = set()
        #: by number of query: whether it is watched
        self._watched = np.zeros(1024, np.bool_)
        self._remove: Callable[[], None] | None = None

    def __len__(self) -> int:
        return len(self._cursors)

    def __contains__(self, query: object) -> bool:
        return isinstance(query, Query) and query.id in self._cursors

    @property
    def follows_tags(self) -> bool:
        """Return whether a reader follows a tag, and so queries that do not exist yet."""
        return bool(self._tags)

    def wants(self, query: Query) -> bool:
        """Return whether a reader follows one of a query's tags."""
        return any(tags.intersection(query.tags) for tags in self._tags.values())

    def add(self, reader: Reader, queries: Iterable[Query], tags: frozenset[str]) -> None:
        """Add a reader of some queries, and of future queries with some tags."""
        self._watching[reader] = set()
        if tags:
            self._tags[reader] = tags
        for query in queries:
            self._watch(reader, query, "now")

    def arrived(self, query: Query, after: int) -> list[Reader]:
        """Watch a new query for the readers of its tags, from commit `after` on, and return these readers."""
        readers = [reader for reader, tags in self._tags.items() if tags.intersection(query.tags)]
        for reader in readers:
            self._watch(reader, query, after)
        return readers

    def _watch(self, reader: Reader, query: Query, since: int | str) -> None:
        id_ = query.id
        self._watching[reader].add(id_)
        readers = self._readers.setdefault(id_, set())
        readers.add(reader)
        if id_ in self._cursors:
            return
        self._cursors[id_] = self._engine.changes(query, since)
        self._by_name.setdefault(query.name.lower(), set()).add(id_)
        if id_ >= len(self._watched):
            self._watched = np.concatenate([self._watched, np.zeros(max(id_, len(self._watched)), np.bool_)])
        self._watched[id_] = True
        if since != "now":
            self._dirty.add(id_)
        if self._remove is None:
            self._remove = self._engine.on_commit(self._note)

    def remove(self, reader: Reader) -> None:
        """Remove a reader."""
        self._tags.pop(reader, None)
        self.pause(reader)
        self._watching.pop(reader, None)

    def pause(self, reader: Reader) -> None:
        """Stop reading for a reader that has fallen behind."""
        for id_ in self._watching.get(reader, ()):
            readers = self._readers[id_]
            readers.discard(reader)
            if not readers:
                self._forget(id_)
        if reader in self._watching:
            self._watching[reader] = set()

    def resume(self, reader: Reader, queries: Iterable[Query]) -> None:
        """Read again for a reader that has caught up with these queries."""
        if reader in self._watching:
            for query in queries:
                self._watch(reader, query, "now")

    def _forget(self, id_: int) -> None:
        name = self._cursors[id_].query.name.lower()
        self._by_name[name].discard(id_)
        if not self._by_name[name]:
            del self._by_name[name]
        del self._cursors[id_], self._readers[id_]
        self._watched[id_] = False
        self._dirty.discard(id_)
        if not self._cursors and self._remove is not None:
            self._remove()
            self._remove = None

    def _note(self, commit: Commit) -> None:
        ids, _ = commit.counts()
        known = ids[ids < len(self._watched)]
        self._dirty.update(known[self._watched[known]].tolist())

    def collect(self) -> list[ChangePart]:
        """Return the changes of watched queries since the last call, by commit."""
        parts: list[ChangePart] = []
        for id_ in sorted(self._dirty):
            cursor = self._cursors[id_]
            parts += parts_of(id_, cursor.query.name, cursor.arrow())
        self._dirty.clear()
        parts.sort(key=lambda part: part.seq)  # stable: by query within a commit
        return parts

    def cancelled(self, names: Iterable[str]) -> list[Query]:
        """Return the watched queries that are gone, of the names given in lower case, and stop watching them."""
        gone = []
        for id_ in sorted(id_ for name in names for id_ in self._by_name.get(name, ())):
            query = self._cursors[id_].query
            try:
                self._engine.query(query)
            except NotFoundError:
                gone.append(query)
                for reader in self._readers[id_]:
                    self._watching[reader].discard(id_)
                self._forget(id_)
        return gone
