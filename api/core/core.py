"""The engine's thread: executes every call and read of the service, one after another.

    handlers -> inbox -> [this thread: execute, read watched changes] -> writer (durable) -> callers and subscribers

A group is the content of the inbox, up to a bound; its records are written together and its answers released together, in order.
So a client with an answer can rely on everything before it, and a read after a write sees it.

Every call carries its time on the timeline `arrival` (`api/core/arrival.py`), which calls made here advance. Commits without a
record (the demo's) use up numbers: a record reserves more of them, so that no number is given twice after a restart.

An error before anything has changed refuses its call (`eddy/base/checking.py`), an error in a read ends that read, and any other
error stops the service.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import orjson

from api.base.limits import Limits
from api.core.admission import admit
from api.core.arrival import ArrivalClock, monotonic_us, wall_us
from api.core.calls import Call, Done, apply, decode, unreadable
from api.core.holdings import Holdings, load_holdings
from api.core.inbox import ClosedError, Inbox, InboxItem, Told
from api.core.meter import Meter
from api.core.parts import ChangePart
from api.core.snapshot_rhythm import SnapshotRhythm
from api.core.watches import Reader, Watches
from api.core.writer import Group, GroupWriter
from eddy import EddyError, Engine, Query
from eddy.base.checking import came_late, changed_nothing, changing, checking
from eddy.catalog.definitions import ARRIVAL
from storage.definition_catalog import CatalogEntry
from storage.directory import DataDirectory

_log = logging.getLogger("eddy.core")

#: Items and bytes of one group: bounds how long the first waits for the last.
GROUP_ITEMS = 256
GROUP_BYTES = 16 << 20
#: Kinds of calls after which changes of queries can no longer be read.
CANCELLING = frozenset({"cancel", "cancel_many"})
#: Microseconds between two ticks of the timeline `arrival`.
TICK_US = 100_000
#: Numbers of commits that are reserved at a time for those that are not recorded.
RESERVE = 65_536


EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class News(NamedTuple):
    """The effects of a group of calls, for subscribers."""

    parts: list[ChangePart]
    #: queries that came, with those who follow their tags
    came: list[tuple[Query, list[Reader]]]
    #: watched queries that were cancelled
    gone: list[Query]
    #: the last commit, and the clock of each timeline then
    seq: int
    times: dict[str, Any]


Publish = Callable[[News], None]


class Clock:
    """The clocks of the engine: the time of the current call, and the wall time of its arrival."""

    __slots__ = ("now_us", "wall_us")

    def __init__(self) -> None:
        self.now_us = 0
        self.wall_us = 0

    def __call__(self) -> np.datetime64:
        return np.datetime64(self.now_us, "us")

    def wall(self) -> np.datetime64:
        return np.datetime64(self.wall_us, "us")


def arrived_us(engine: Engine) -> int:
    """Return the clock of the timeline of arrivals; 0 if there is none."""
    time = engine.times().get(ARRIVAL)
    return 0 if time is None else (time - EPOCH) // timedelta(microseconds=1)


def carry_out(holdings: Holdings, clock: Clock, call: Call) -> Done:
    """Execute a call at its own clock, after the commits before it."""
    clock.now_us = max(clock.now_us, call.at_us)
    holdings.engine.skip_to(call.seq)
    return apply(holdings, call)


class Core:
    """Owner of the engine and of the thread that uses it."""

    def __init__(
        self, holdings: Holdings, clock: Clock, directory: DataDirectory | None, limits: Limits,
        publish: Publish, dispatch: Callable[[Callable[[], None]], None], now_us: Callable[[], int] = wall_us,
        monotonic: Callable[[], int] = monotonic_us,
    ) -> None:  # fmt: skip
        self.holdings = holdings
        self.limits = limits
        self.inbox = Inbox(limits.queue_calls, limits.queue_bytes, limits.queue_reads)
        self.watches = Watches(holdings.engine)
        self.writer = GroupWriter(directory, self._fail)
        self._clock = clock
        self._durable = directory is not None
        self._publish = publish
        #: has something called by whoever waits for answers: callers are told there, and news are published there
        self._dispatch = dispatch
        self.arrival = ArrivalClock(clock.now_us, now_us, monotonic)
        self._thread = threading.Thread(target=self._run, name="eddy-engine", daemon=True)
        self._next_tick_us = 0
        #: commits up to this number are not given again after a restart
        self._vouched = holdings.engine.seq
        #: queries that came in the group, with those who follow their tags
        self._came: list[tuple[Query, list[Reader]]] = []
        #: changes that were read ahead of a cancel, of the group that is being executed
        self._parts: list[ChangePart] = []
        #: written since the last snapshot
        self._bytes = 0
        self._calls = 0
        self._rhythm = SnapshotRhythm()
        #: whether a snapshot is made when the thread ends
        self._last_snapshot = True
        #: why the engine does nothing any more; None while it works
        self.failure: BaseException | None = None
        #: called once when it fails
        self.on_failure: Callable[[BaseException], None] = lambda error: None
        #: bugs that ended a call before it had changed anything, and those that ended a read
        self.bad_calls = 0
        self.bad_reads = 0
        #: nanoseconds that the thread worked
        self.busy_ns = 0
        self.meter = Meter(self._metered(holdings.engine.totals()))

    @property
    def engine(self) -> Engine:
        return self.holdings.engine

    def pace(self) -> dict[str, Any]:
        """Return totals and rates of the service; for the engine's thread."""
        totals = self.engine.totals()
        seconds, of = self.meter.look(self._metered(totals))
        streams = {name: of[f"stream {name}"] for name in totals["streams"]}
        inputs = {
            merge: {name: one | {"rate": of[f"input {merge}/{name}"]} for name, one in found.items()}
            for merge, found in totals["inputs"].items()
        }
        return {
            "seq": totals["seq"],
            "n_queries": totals["queries"],
            "bytes": totals["bytes"],
            "timelines": self.engine.times(),
            "streams": totals["streams"],
            "inputs": inputs,
            "tables": {name: {"rows": rows} for name, rows in totals["tables"].items()},
            "queue": {"calls": self.inbox.calls, "bytes": self.inbox.bytes, "refused": self.inbox.refused},
            "rates": {
                "seconds": seconds,
                "rows": sum(streams.values()),
                "commits": of["commits"],
                "busy": of["busy"],
                "streams": streams,
            },
        }

    def _metered(self, totals: Mapping[str, Any]) -> dict[str, float]:
        """Return the counters that only grow, by the names of their rates."""
        streams = {f"stream {name}": counts["rows"] for name, counts in totals["streams"].items()}
        inputs = {
            f"input {merge}/{name}": one["rows"] for merge, found in totals["inputs"].items() for name, one in found.items()
        }
        return {"commits": totals["seq"], "busy": self.busy_ns / 1e9, **streams, **inputs}

    # ---- from any thread

    def start(self) -> None:
        self.writer.start()
        self._thread.start()

    def put(self, what: Call | Callable[[Core], Any], told: Told, then: Callable[[Any], Any] | None = None) -> None:
        """Queue a call or a read, or raise if there is no room; `then` converts the result in the engine's thread."""
        n_bytes = len(what.body) + 256 if isinstance(what, Call) else 0
        self.inbox.put(InboxItem(what, told, n_bytes, then))

    def stop(self, *, snapshot: bool = True) -> None:
        """Execute the queued calls, save a snapshot and end; return when all is written."""
        self._last_snapshot = snapshot
        self.inbox.close(ClosedError("the service is stopping", hint="try again when it is back"))
        self._thread.join()
        self.writer.stop()

    # ---- the thread

    def _run(self) -> None:
        while True:
            items = self.inbox.take(GROUP_ITEMS, GROUP_BYTES, TICK_US / 1e6)
            began = time.thread_time_ns()
            try:
                tick = self._tick()
            except Exception as broken:
                _log.exception("a bug in a tick")
                self._fail(broken)
                tick = None
            if tick is not None:
                items.insert(0, tick)
            if items:
                self.writer.put(self.work(items))
            elif self.inbox.closed is not None:
                break
            self.busy_ns += time.thread_time_ns() - began
        if self._last_snapshot and self._durable and self.failure is None and self._calls:
            self.writer.put(Group(snapshot=self._dumped()))

    def work(self, items: Sequence[InboxItem]) -> Group:
        """Execute queued calls and reads; replies are released after the group is durable."""
        group = Group()
        outcomes: list[tuple[Told, Any, BaseException | None]] = []
        for item in items:
            result, error = None, self.failure
            if error is None:
                try:
                    if isinstance(item.what, Call):
                        result = self._execute(item.what, group)
                    else:
                        result = self._look(item.what, self)
                    if item.then is not None:
                        result = self._look(item.then, result)
                except Exception as broken:
                    error = broken
            outcomes.append((item.told, result, error))
        try:
            news = self._settle(group)
        except Exception as broken:
            _log.exception("a bug after a group")
            self._fail(broken)
            news = News([], [], [], self.engine.seq, {})

        def tell(failure: BaseException | None) -> None:
            # what is wrong with the disk is nothing that a caller did: they are told that the service has failed
            failed = failure and (self.failure or failure)
            for told, result, error in outcomes:
                told(None if failed is not None else result, failed or error)
            if failure is None:
                self._publish(news)

        group.release = lambda failure: self._dispatch(partial(tell, failure))
        return group

    def _settle(self, group: Group) -> News:
        """Add definitions, and a snapshot if one is due, to a group; return its news."""
        gone = self.watches.cancelled(self.holdings.touched) if self.failure is None else []
        parts, self._parts = self._parts + (self.watches.collect() if self.failure is None else []), []
        came, self._came = self._came, []
        self._reserve(group)
        for name, kind in self.holdings.touched.items():
            group.dropped.append((kind, name))
            definition = self.holdings.definitions.get(name)
            if definition is not None:
                group.defined.append(definition)
        self.holdings.touched.clear()
        if self._snapshot_due():
            group.snapshot = self._rhythm.made(self._calls, self._bytes, self._dumped)
            self._bytes = self._calls = 0
        return News(parts, came, gone, self.engine.seq, self._times())

    def _dumped(self) -> list[Any] | None:
        """Return the parts of a snapshot; None if none can be made, as the journal holds everything."""
        try:
            return self.holdings.dump()
        except EddyError:
            _log.exception("no snapshot can be made")
            return None

    def _look(self, look: Callable[[Any], Any], at: Any) -> Any:
        """Execute a read; an error in it is counted and raised to its caller."""
        try:
            return look(at)
        except EddyError:
            raise
        except Exception:
            self.bad_reads += 1
            _log.exception("a bug in a read: %r", look)
            raise

    def _execute(self, call: Call, group: Group) -> Any:
        """Execute a call. An error before anything has changed refuses the call; any other ends the service, because its
        half-done work is not on disk."""
        before = self.holdings.mark
        try:
            done = self._execute_recorded(call, group)
        except Exception as error:
            unchanged = self.holdings.mark == before
            if unchanged and isinstance(error, EddyError) and not came_late(error):
                raise
            _log.exception("a bug: %r", call)
            if unchanged and changed_nothing(error):
                self.bad_calls += 1
                raise unreadable(error) from error
            self._fail(error)
            raise
        for bug in done.bugs:
            self.bad_calls += 1
            _log.error("a bug in a part of %r", call, exc_info=bug)
        return done.result

    def _execute_recorded(self, call: Call, group: Group) -> Done:
        """Execute a call at the clock of now, and add its record to the group."""
        known = self.holdings.n_touched
        with checking:
            # never back: what the journal holds must be replayed with the clocks it was made with
            now, self._clock.wall_us = self.arrival.read()
            call.at_us = max(now, self._clock.now_us)
            call.seq = self.engine.seq
            admit(call, self.holdings, self.limits)
            record = call.encode()
        if call.kind in CANCELLING:
            self._parts += self.watches.collect()
        done = carry_out(self.holdings, self._clock, call)
        if done.changed and call.journaled and self._durable:
            if "skipped" in call.header:
                record = call.encode()
            group.records.append(record)
            self._bytes += sum(map(len, record))
            self._calls += 1
            self._vouched = self.engine.seq
        if self.holdings.n_touched > known and self.watches.follows_tags:
            with changing:
                self._follow(call.seq, group)
        return done

    def _follow(self, after: int, group: Group) -> None:
        """Subscribe readers of a tag to queries that were defined with it."""
        wanted = [
            query
            for name in sorted(self.holdings.touched)
            if (found := self.holdings.definitions.get(name)) is not None and found.kind == "query"
            if (query := self.engine.query(name)) not in self.watches and self.watches.wants(query)
        ]
        unlogged = [query.name for query in wanted if query.unread]
        if unlogged:
            self._execute_recorded(Call("read", {"queries": unlogged}), group)
        self._came += [(query, self.watches.arrived(query, after)) for query in wanted]

    def _reserve(self, group: Group) -> None:
        """Add a record that reserves commit numbers, if commits without a record have passed the last reserved one."""
        if self._durable and self.engine.seq > self._vouched:
            reserved = Call("reserve", {}, at_us=self._clock.now_us, seq=self.engine.seq + RESERVE)
            group.records.append(reserved.encode())
            self._vouched = reserved.seq

    def _times(self) -> dict[str, Any]:
        return {} if self.failure is not None else self.engine.times()

    def _tick(self) -> InboxItem | None:
        """Return a call that advances the timeline `arrival`; None if it is not time yet or nobody could notice."""
        now, _ = self.arrival.read()
        if now < self._next_tick_us or self.failure is not None or self.inbox.closed is not None:
            return None
        self._next_tick_us = now + TICK_US
        if not self.engine.has_arrivals:
            return None
        reached = arrived_us(self.engine)
        self.arrival.reach(reached)
        call = Call("advance", {"timeline": ARRIVAL, "time": max(now, reached) // 1000})
        return InboxItem(call, lambda result, error: None)

    def _snapshot_due(self) -> bool:
        if not self._durable or self.failure is not None or self.writer.saving:
            return False
        return self._rhythm.due(self._calls, self._bytes, self.writer.saving_seconds)

    def _fail(self, error: BaseException) -> None:
        """Stop the service: nothing is executed or acknowledged any more."""
        if self.failure is None:
            self.failure = ClosedError("the service has failed and stops", detail=str(error), hint="see its log; start it again")
            self.inbox.close(self.failure)
            self.on_failure(error)


def recover(directory: DataDirectory, make: Callable[[Clock], Engine]) -> tuple[Holdings, Clock]:
    """Return the state of a data directory: its newest snapshot and the calls since, or definitions alone after a discard."""
    clock = Clock()
    found = directory.recover()
    for note in found.notes:
        _log.warning("%s", note)
    if found.snapshot is not None:
        holdings = load_holdings(found.snapshot.parts, clock, clock.wall)
        # what the journal holds was let in then, and is not judged again
        holdings.engine.limit(max_ahead=None)
    else:
        holdings = Holdings(make(clock))
    if found.discarded:
        clock.now_us = wall_us()
        for kept in directory.catalog.definitions():
            name, definition = orjson.loads(kept.definition)
            header = {"name": name, "definition": definition}
            carry_out(holdings, clock, Call(_REMAKE[kept.kind], header, at_us=clock.now_us))
        directory.save_snapshot(directory.durable, holdings.dump())
    for record in found.records:
        carry_out(holdings, clock, decode(record.payload))
    clock.now_us = max(clock.now_us, arrived_us(holdings.engine))
    _reconcile(directory, holdings)
    holdings.touched.clear()
    return holdings, clock


#: Calls that make something again from its definition.
_REMAKE = {"stream": "create_stream", "merge": "create_merge", "table": "create_table", "query": "put_query"}


def _reconcile(directory: DataDirectory, holdings: Holdings) -> None:
    """Update the catalog from the journal, if a crash came between the two."""
    known = {(one.kind, one.name): orjson.loads(one.definition) for one in directory.catalog.definitions()}
    right = {(one.kind, name): [one.name, one.definition] for name, one in holdings.definitions.items()}
    number = directory.durable
    put = [
        CatalogEntry(kind, name, orjson.dumps(definition).decode(), number)
        for (kind, name), definition in right.items()
        if known.get((kind, name)) != definition
    ]
    drop = [key for key in known if key not in right]
    if put or drop:
        directory.define(number, put, drop)
