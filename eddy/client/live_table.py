"""The answer of a relation, kept up to date by its signed changes.

    with LiveTable(client, "hot") as table:
        table.rows()

A thread reads changes and applies whole commits to a bag of rows: a row is in it as often as its signs sum to. What a reader
sees is the answer at one commit, `seq`, always. After a gap, or when the bag turns out wrong, it starts again from a snapshot and
shows the old answer until the new one is whole. Numbers that JSON does not have (NaN, infinities) are NULL in it, as in the
service's JSON.
"""

from __future__ import annotations

import math
import threading
import time
from collections import Counter
from collections.abc import Iterable
from typing import Any

from eddy.client.changes import arrow_table
from eddy.client.client import Client, Driver
from eddy.client.facts import Change, Query
from eddy.client.following import ChangeCursor, Committed, End, Message
from eddy.client.problems import UnreachableError
from lineage.errors import ConflictError, EddyError, GoneError

#: Seconds that `close` waits for the thread.
JOIN = 10.0
#: Seconds before it starts again.
RESYNC_DELAY = 0.05
#: Times that `verify` begins anew because the table did.
TRIES = 5

Row = tuple[Any, ...]


class Bag:
    """Rows with their counts; `seq` is the commit of the answer."""

    def __init__(self) -> None:
        self.counts: dict[Row, int] = {}
        self.seq = 0

    def apply(self, commit: Committed) -> bool:
        """Apply a commit; return False if a row's count would fall below 0, so that the bag is wrong."""
        if commit.snapshot:
            self.counts = {}
        touched = set()
        for change in commit.changes:
            row = tuple(change.row.values())
            self.counts[row] = self.counts.get(row, 0) + change.sign
            touched.add(row)
        self.seq = commit.seq
        # signs within a commit come in any order: only their sum counts
        for row in touched:
            if self.counts[row] < 0:
                return False
            if not self.counts[row]:
                del self.counts[row]
        return True

    def before(self, changes: Iterable[Change]) -> dict[Row, int]:
        """Return the counts before some changes."""
        counts = Counter(self.counts)
        for change in changes:
            counts[tuple(change.row.values())] -= change.sign
        return {row: n for row, n in counts.items() if n}


class LiveTable:
    """The live answer of a query."""

    def __init__(self, client: Client, query: Query | int | str, *, slow: str = "block") -> None:
        self.query = client.query(query)
        if self.query.kind != "relation":
            fact = f'query "{self.query.name}" is a stream: its results come and never leave'
            raise ConflictError(fact, code="not_a_relation", hint="read them with changes(), or give the query a window")
        self._client = client
        self._slow = slow
        self._bag: Bag | None = None
        self._changed = threading.Condition()
        self._error: EddyError | None = None
        self._closing = False
        self._again = False
        self._driver: Driver[None] | None = None
        #: changes since somebody began to verify, for each who does
        self._records: list[list[Change]] = []
        self._snapshots = 0
        self._thread = threading.Thread(target=self._work, name=f"eddy-live-{self.query.name}", daemon=True)
        self._thread.start()

    # ---- the thread

    def _work(self) -> None:
        while True:
            driver = self._client._follow(ChangeCursor([self.query.name], (), "snapshot", self._slow))
            with self._changed:
                if self._closing:
                    return
                self._driver, self._again = driver, False
            try:
                if self._read(driver):
                    return
            except GoneError:
                pass  # it has been away for too long, and begins anew
            except EddyError as error:
                self._fail(error)
                return
            except BaseException as error:
                # whoever waits must not wait for a thread that has gone
                self._fail(EddyError(f"the live table broke: {error!r}", code="broken"))
                raise
            finally:
                driver.close()
            with self._changed:
                self._changed.wait_for(lambda: self._closing, RESYNC_DELAY)

    def _read(self, driver: Driver[None]) -> bool:
        """Apply messages; return True at the end of the query, False to start again."""
        for message in driver:
            if not self._take(message):
                return False
        with self._changed:
            if self._closing:
                return True
            return not self._again

    def _take(self, message: Message) -> bool:
        with self._changed:
            if isinstance(message, Committed):
                bag = self._bag
                if bag is None:
                    bag = self._bag = Bag()
                self._snapshots += message.snapshot
                for record in self._records:
                    record += message.changes
                sound = bag.apply(message)
                self._changed.notify_all()
                return sound
            if isinstance(message, End):
                self._error = GoneError(f'query "{self.query.name}" has ended: {message.reason}', code="ended")
                self._changed.notify_all()
                return True
            # a gap: either the answer follows by itself, or it has to be asked for
            return message.snapshot

    def _fail(self, error: EddyError) -> None:
        with self._changed:
            self._error = error
            self._changed.notify_all()

    # ---- reading

    @property
    def resyncs(self) -> int:
        """Return how often it has started again from a snapshot."""
        with self._changed:
            return max(0, self._snapshots - 1)

    @property
    def seq(self) -> int:
        """Return the commit of the shown answer."""
        with self._changed:
            return self._now().seq

    def rows(self) -> list[dict[str, Any]]:
        """The rows of the answer, in no order."""
        names = list(self.query.columns)
        with self._changed:
            return [dict(zip(names, row)) for row, n in self._now().counts.items() for _ in range(n)]

    def arrow(self) -> Any:
        """The answer as a pyarrow.Table, with its `seq` in the metadata."""
        with self._changed:
            bag = self._now()
            rows, seq = [row for row, n in bag.counts.items() for _ in range(n)], bag.seq
        table = arrow_table(list(self.query.columns.items()), rows)
        return table.replace_schema_metadata({"seq": str(seq)})

    def __len__(self) -> int:
        with self._changed:
            return sum(self._now().counts.values())

    def _now(self) -> Bag:
        """Return the bag, once there is one; with the lock held."""
        if self._bag is None:
            self._await(lambda: self._bag is not None, self._client.timeout, "the first answer")
        assert self._bag is not None
        return self._bag

    def wait(self, seq: int, timeout: float | None = None) -> None:
        """Wait until it shows commit `seq` or a later one."""
        seconds = self._client.timeout if timeout is None else timeout
        with self._changed:
            self._await(lambda: self._bag is not None and self._bag.seq >= seq, seconds, f"commit {seq}")

    def _await(self, holds: Any, seconds: float, what: str) -> None:
        """Wait until a condition holds; with the lock held."""
        deadline = time.monotonic() + seconds
        while not holds():
            if self._error is not None:
                raise self._error
            if self._closing:
                raise ConflictError("the live table is closed", code="closed")
            left = deadline - time.monotonic()
            if left <= 0:
                raise UnreachableError(f"{what} did not come within {seconds:.0f} s", code="timeout")
            self._changed.wait(left)

    # ---- checking

    def verify(self, timeout: float | None = None) -> bool:
        """Compare with the service's own answer at the same commit; on a difference start again and return False."""
        for _ in range(TRIES):
            found = self._compare(timeout)
            if found is not None:
                break
        else:
            raise UnreachableError("the live table began anew again and again", code="unsettled")
        if not found:
            self.resync()
        return found

    def _compare(self, timeout: float | None) -> bool | None:
        """Return whether the bag equals the answer; None if it started again meanwhile."""
        record: list[Change] = []
        with self._changed:
            self._now()
            self._records.append(record)
            snapshots = self._snapshots
        try:
            answer = self._client.answer(self.query)
            seq = int(answer.schema.metadata[b"seq"])
            self.wait(seq, timeout)
            with self._changed:
                if self._snapshots != snapshots:
                    return None
                # commits that the answer does not have yet are taken back
                held = self._now().before(change for change in record if change.seq > seq)
        finally:
            with self._changed:
                self._records = [one for one in self._records if one is not record]
        columns = [column.to_pylist() for column in answer.columns]
        return held == Counter(tuple(map(_as_json, row)) for row in zip(*columns))

    def resync(self) -> None:
        """Start again from a snapshot."""
        with self._changed:
            self._again = True
            driver = self._driver
        if driver is not None:
            driver.stop()

    # ---- life

    def close(self) -> None:
        """Stop reading; returns within `JOIN` seconds."""
        with self._changed:
            self._closing = True
            driver = self._driver
            self._changed.notify_all()
        if driver is not None:
            driver.stop()
        self._thread.join(JOIN)

    def __enter__(self) -> LiveTable:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def _as_json(value: Any) -> Any:
    """Return a value in the form that the changes have."""
    return None if isinstance(value, float) and not math.isfinite(value) else value
