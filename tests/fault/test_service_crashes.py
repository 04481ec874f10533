"""A service that loses its power anywhere holds, when it is back, every call that it acknowledged and nothing that it refused.

A script of calls runs once on a disk that records every operation. Then, for crash points of that disk and seeds that decide
what of the unsynced data survives, a new service is opened on what is left. What it holds must be what the first n calls make,
for some n that no acknowledgement contradicts; and it must go on from there as if nothing had happened.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

import orjson
import pytest

from api.base.limits import Limits
from api.core.calls import Call
from api.core.core import Clock, Core, carry_out, recover
from api.core.holdings import Holdings
from api.core.inbox import InboxItem
from eddy import EddyError, Engine
from storage.directory import DataDirectory
from tests.reference.comparison import compared
from tests.reference.seeds import seeds
from tests.reference.simulated_disk import DiskState, SimulatedDisk

JSON = "application/json"


def script(seed: int, n_calls: int) -> list[Call]:
    """Calls of every kind, some of them refused, over streams and a table."""
    chance = random.Random(seed)
    timed = {"a": "int", "b": "string", "ts": "timestamp"}
    table = {"columns": {"a": "int", "r": "string"}, "key": "a", "retroactive": True}
    calls = [
        Call("create_stream", {"name": "s", "definition": {"columns": timed, "time": "ts"}}),
        Call("create_stream", {"name": "late", "definition": {"columns": timed, "time": "ts", "lateness": 500}}),
        Call("create_stream", {"name": "now", "definition": {"columns": {"a": "int"}}}),
        Call("create_table", {"name": "t", "definition": table}),
    ]
    texts = [
        "SELECT a FROM s [RANGE 2 SECONDS] WHERE a > 3",
        "SELECT b, COUNT(*) AS n, SUM(a) AS x FROM s [RANGE 2 SECONDS] GROUP BY b",
        "SELECT s.a, t.r FROM s [RANGE 1 SECOND], t WHERE s.a = t.a",
        "SELECT s.a FROM s [RANGE 1 SECOND] s, late [RANGE 2 SECONDS] l WHERE s.a = l.a",
        "SELECT a FROM s [RANGE 2 SECONDS] EXCEPT SELECT a FROM late [RANGE 2 SECONDS]",
        "SELECT COUNT(*) AS n FROM now [RANGE 1 SECOND]",
        "SELECT nothing FROM s",
    ]
    names: list[str] = []
    clock = 0
    for n in range(n_calls):
        kind = chance.choices(
            ["push", "push_many", "now", "upsert", "delete", "submit", "cancel", "pause", "resume", "replace", "advance", "read"],
            [8, 2, 2, 2, 1, 4, 1, 1, 1, 1, 2, 1],
        )[0]  # fmt: skip
        clock += chance.choice([0, 10, 100, 700])
        name = chance.choice(names) if names else "none"
        if kind == "push":
            rows = [{"a": chance.randrange(8), "b": chance.choice("xyz"), "ts": clock + i} for i in range(chance.randrange(1, 4))]
            header: dict[str, Any] = {"stream": "s", "media": JSON}
            if chance.random() < 0.3:
                header["key"] = f"k{chance.randrange(n + 1)}"
            if chance.random() < 0.2:
                rows.insert(0, {"a": "bad", "b": "x", "ts": clock})
                header["bad"] = chance.choice(["skip", "refuse"])
            calls.append(Call("push", header, orjson.dumps(rows)))
        elif kind == "push_many":
            bundle = {"s": [{"a": chance.randrange(8), "ts": clock}], "late": {"a": [chance.randrange(8)], "ts": [clock]}}
            calls.append(Call("push_many", {}, orjson.dumps(bundle)))
        elif kind == "now":
            calls.append(Call("push", {"stream": "now", "media": JSON}, b'{"a": 1}'))
        elif kind == "upsert":
            rows = [{"a": chance.randrange(8), "r": chance.choice("uvw")}]
            calls.append(Call("upsert", {"table": "t", "media": JSON}, orjson.dumps(rows)))
        elif kind == "delete":
            calls.append(Call("delete", {"table": "t"}, orjson.dumps({"keys": [chance.randrange(8)]})))
        elif kind == "submit":
            names.append(f"q{len(names) + 1}")
            definition = {"name": names[-1], "sql": chance.choice(texts), "history": chance.choice(["new", "window"])}
            calls.append(Call("submit", {"definition": definition}))
        elif kind == "replace":
            calls.append(
                Call("put_query", {"name": name, "definition": {"sql": "SELECT a FROM s [RANGE 3 SECONDS] WHERE a > 1"}})
            )
        elif kind == "advance":
            calls.append(Call("advance", {"timeline": "main", "time": clock}))
        elif kind == "read":
            calls.append(Call("read", {"queries": [name]}))
        else:
            calls.append(Call(kind, {"query": name}))
    return calls


def copy(call: Call) -> Call:
    return Call(call.kind, dict(call.header), call.body)


def held(holdings: Holdings) -> dict[str, Any]:
    """Everything that a client could see of a service."""
    engine = holdings.engine
    stats = engine.stats()
    return {
        "seq": engine.seq,
        "times": engine.times(),
        "definitions": dict(holdings.definitions),
        "receipts": list(holdings.receipts.items()),
        "streams": {name: (one["rows"], one["late"], one["waiting"]) for name, one in stats["streams"].items()},
        "merges": {
            name: {fact: value for fact, value in one["merge"].items() if fact != "bytes"}
            for name, one in stats["streams"].items()
            if "merge" in one
        },
        "tables": {name: one["rows"] for name, one in stats["tables"].items()},
        "answers": {
            query.name: (query.id, query.state, engine.answer(query).to_pylist(), engine.stats(query)["results"])
            for query in engine.queries.values()
        },
    }


def with_changes(holdings: Holdings) -> dict[str, Any]:
    """The same, and what cursors read; reading changes what is logged, so this comes last."""
    found = held(holdings)
    found["changes"] = {
        query.name: [tuple(change.row.items()) + (change.seq, change.sign) for change in holdings.engine.changes(query, 0)]
        for query in holdings.engine.queries.values()
    }
    return found


class Outside:
    """The world around a service: a clock that only moves by calls, and what was told."""

    def __init__(self) -> None:
        self.now_us = 1_000_000
        #: for each call whether it was acknowledged or refused, as they were told
        self.told: list[bool] = []

    def clock(self) -> int:
        self.now_us += 30_000
        return self.now_us

    def wall(self) -> int:
        return self.now_us


def run(calls: list[Call], disk: SimulatedDisk, group: int, snapshot_every: int, note: Callable[[int], None]) -> None:
    """A service on a disk, without threads; `note` hears how many calls were told, when they are."""
    outside = Outside()
    directory = DataDirectory.open(disk, segment_bytes=2048)
    holdings, clock = recover(directory, lambda clock: Engine(clock=clock))
    core = Core(holdings, clock, directory, Limits(), lambda news: None, lambda do: do(), outside.wall, outside.clock)
    for first in range(0, len(calls), group):
        items = [
            InboxItem(copy(call), lambda result, error: outside.told.append(error is None))
            for call in calls[first : first + group]
        ]
        done = core.work(items)
        core.writer.write(done)
        done.release(None)
        core.writer.define(done)
        note(len(outside.told))
        if snapshot_every and (first // group) % snapshot_every == snapshot_every - 1:
            directory.save_snapshot(directory.durable, holdings.dump())


def prefixes(calls: list[Call]) -> Iterator[dict[str, Any]]:
    """What the first n calls make, for every n from 0 on."""
    clock, outside = Clock(), Outside()
    outside.clock()  # read once when a service starts
    holdings = Holdings(Engine(clock=clock))
    yield held(holdings)
    for call in map(copy, calls):
        call.at_us, call.seq = max(outside.clock(), clock.now_us), holdings.engine.seq
        try:
            carry_out(holdings, clock, call)
        except EddyError:
            pass
        yield held(holdings)


def check(calls: list[Call], seed: int, points: int, group: int, snapshot_every: int) -> int:
    """Crash at some points; returns how many were tried."""
    disk = SimulatedDisk(seed, recording=True)
    told: list[tuple[int, int]] = [(0, 0)]
    run(calls, disk, group, snapshot_every, lambda n: told.append((len(disk.points), n)))
    expected = list(prefixes(calls))
    chance = random.Random(seed)
    chosen = range(len(disk.points)) if points >= len(disk.points) else sorted(chance.sample(range(len(disk.points)), points))
    for point in chosen:
        acknowledged = max(n for at, n in told if at <= point)
        state: DiskState = disk.points[point]
        left = state.after_power_loss(chance.randrange(1 << 30)) if chance.random() < 0.8 else state.after_kill()
        directory = DataDirectory.open(left, segment_bytes=2048)
        holdings, clock = recover(directory, lambda clock: Engine(clock=clock))
        found = held(holdings)
        holdings.engine.check()
        compared()
        fits = [n for n in range(acknowledged, len(expected)) if expected[n] == found]
        assert fits, f"crash at {point} of {len(disk.points)}: not what {acknowledged} or more calls make"
        known = {(one.kind, one.name) for one in directory.catalog.definitions()}
        assert known == {(one.kind, name) for name, one in holdings.definitions.items()}, "the catalog follows"
        go_on(holdings, clock, calls, fits[0])
    return len(chosen)


def go_on(holdings: Holdings, clock: Clock, calls: list[Call], n: int) -> None:
    """The rest of the calls do to a service that came back what they do to one that never went."""
    twin_clock, outside = Clock(), Outside()
    outside.clock()
    twin = Holdings(Engine(clock=twin_clock))
    for i, call in enumerate(calls):
        at_us = max(outside.clock(), twin_clock.now_us)
        for one, its_clock in ((twin, twin_clock), (holdings, clock)):
            if one is holdings and i < n:
                continue
            again = copy(call)
            again.at_us, again.seq = at_us, one.engine.seq
            try:
                carry_out(one, its_clock, again)
            except EddyError:
                pass
    compared()
    assert with_changes(twin) == with_changes(holdings)


@pytest.mark.parametrize("seed", range(4))
def test_a_service_holds_what_it_acknowledged_wherever_it_crashes(seed: int) -> None:
    chance = random.Random(seed)
    assert check(script(seed, 40), seed, 20, chance.choice([1, 3, 7]), chance.choice([0, 2, 5])) == 20


def _tells_before_it_syncs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(DataDirectory, "sync", lambda directory: None)
    monkeypatch.setattr(DataDirectory, "define", lambda directory, number, put, drop: None)
    monkeypatch.setattr(DataDirectory, "save_snapshot", lambda directory, number, parts: None)


def _records_only_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    append = DataDirectory.append

    def some(directory: DataDirectory, kind: int, *parts: Any) -> int:
        return directory.last if b'"submit"' in bytes(parts[0]) else append(directory, kind, *parts)

    monkeypatch.setattr(DataDirectory, "append", some)


def _forgets_which_rows_were_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    encode = Call.encode

    def forgetful(call: Call) -> tuple[bytes, bytes]:
        header = {name: value for name, value in call.header.items() if name not in ("skipped", "bad")}
        return encode(Call(call.kind, header, call.body, at_us=call.at_us, seq=call.seq))

    monkeypatch.setattr(Call, "encode", forgetful)


def _replays_at_another_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    encode = Call.encode

    def late(call: Call) -> tuple[bytes, bytes]:
        return encode(Call(call.kind, call.header, call.body, at_us=call.at_us + 5_000_000, seq=call.seq))

    monkeypatch.setattr(Call, "encode", late)


@pytest.mark.slow
@pytest.mark.parametrize(
    "mutant", [_tells_before_it_syncs, _records_only_rows, _forgets_which_rows_were_skipped, _replays_at_another_clock]
)
def test_a_service_that_cheats_is_caught(mutant: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch) -> None:
    mutant(monkeypatch)
    with pytest.raises((AssertionError, EddyError)):
        for seed in range(4):
            check(script(seed, 40), seed, 20, 3, 0)


@pytest.mark.long
@pytest.mark.parametrize("seed", seeds(range(100, 104), 1))
def test_a_service_holds_what_it_acknowledged_at_many_more_crash_points(seed: int) -> None:
    chance = random.Random(seed)
    assert check(script(seed, 60), seed, 80, chance.choice([1, 3, 7]), chance.choice([0, 2, 5])) == 80
