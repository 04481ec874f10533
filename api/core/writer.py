"""The writer's thread: makes groups of calls durable, then releases their answers.

The engine's thread hands over groups; each is written in one go:

    append every record of the group   ->  one sync  ->  release: callers are told, changes go to subscribers

so no answer and no change leaves before all that it depends on is on disk. While one group is synced the engine works on the
next; at most `MAX_GROUPS` wait. After a failed write nothing is released any more, and the service stops: what was acknowledged
is on disk, what was not is told so.

Snapshots are written beside, by a thread of their own; the journal's number up to which they go is known when their group is
written. The catalog follows after the release: it is derived, and is put right at the next start if it lags.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

from api.base.timings import Timings
from api.core.holdings import Definition
from storage.definition_catalog import CatalogEntry
from storage.directory import DataDirectory

_log = logging.getLogger("eddy.writer")

#: Groups that wait to be written.
MAX_GROUPS = 4
#: Kind of the only records there are: calls.
CALL = 1


@dataclass(slots=True)
class Group:
    """The results of one round of the engine's thread: records, definitions, a snapshot, and the answers to release."""

    #: of calls that changed something, as buffers
    records: list[Sequence[Any]] = field(default_factory=list)
    #: called once all is durable, or with the error if it will never be
    release: Callable[[BaseException | None], None] = lambda error: None
    #: definitions that came or changed, and names that went
    defined: list[Definition] = field(default_factory=list)
    dropped: list[tuple[str, str]] = field(default_factory=list)
    #: parts of a snapshot as of the end of the group
    snapshot: list[Any] | None = None


class GroupWriter:
    """Writes groups in order; without a data directory it only releases them."""

    def __init__(self, directory: DataDirectory | None, failed: Callable[[BaseException], None]) -> None:
        self._directory = directory
        self._failed = failed
        self._groups: queue.Queue[Group | None] = queue.Queue(MAX_GROUPS)
        self._thread = threading.Thread(target=self._run, name="eddy-writer", daemon=True)
        self._saving: threading.Thread | None = None
        #: why nothing is written any more
        self.failure: BaseException | None = None
        self.groups = 0
        self.records = 0
        self.bytes = 0
        self.snapshots = 0
        #: how long it took to write the last one
        self.saving_seconds = 0.0
        #: how long it took to make groups durable
        self.syncs = Timings()

    def start(self) -> None:
        self._thread.start()

    def put(self, group: Group) -> None:
        """Queue a group; wait while too many are queued."""
        self._groups.put(group)

    def stop(self) -> None:
        """Write the queued groups and end."""
        self._groups.put(None)
        self._thread.join()
        if self._saving is not None:
            self._saving.join()

    @property
    def saving(self) -> bool:
        """Return whether a snapshot is being written."""
        return self._saving is not None and self._saving.is_alive()

    def _run(self) -> None:
        while (group := self._groups.get()) is not None:
            if self.failure is None:
                try:
                    self.write(group)
                except BaseException as error:  # whatever it is: nothing may be released any more
                    self.failure = error
                    _log.exception("what was accepted cannot be written")
                    self._failed(error)
            group.release(self.failure)
            if self.failure is None:
                self.define(group)

    def write(self, group: Group) -> None:
        """Make a group durable."""
        self.groups += 1
        directory = self._directory
        if directory is None:
            return
        if group.records:
            began = time.monotonic()
            for buffers in group.records:
                directory.append(CALL, *buffers)
                self.bytes += sum(map(len, buffers))
            directory.sync()
            self.syncs.add(time.monotonic() - began)
            self.records += len(group.records)
        if group.snapshot is not None:
            if self._saving is not None:
                self._saving.join()
            number = directory.last
            self._saving = threading.Thread(target=self._save, args=(number, group.snapshot), name="eddy-snapshot", daemon=True)
            self._saving.start()

    def _save(self, number: int, parts: list[Any]) -> None:
        assert self._directory is not None
        began = time.monotonic()
        try:
            self._directory.save_snapshot(number, parts)
            self.snapshots += 1
        except Exception as error:  # the journal still has everything: say so, and try again with the next one
            _log.error("the snapshot could not be written: %s", error)
        self.saving_seconds = time.monotonic() - began

    def define(self, group: Group) -> None:
        """Update the catalog with the definitions of a written group."""
        if self._directory is None or not (group.defined or group.dropped):
            return
        number = self._directory.durable
        put = [
            CatalogEntry(one.kind, one.name.lower(), orjson.dumps([one.name, one.definition]).decode(), number)
            for one in group.defined
        ]
        try:
            self._directory.define(number, put, group.dropped)
        except Exception as error:  # derived: the next start puts it right
            _log.error("the catalog could not be written: %s", error)
