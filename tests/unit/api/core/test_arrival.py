"""The clock of arrivals: it goes as the monotonic clock does, whatever is done to the wall's, running and across restarts."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from api.base.limits import Limits
from api.core.arrival import ArrivalClock
from api.core.calls import Call
from api.core.core import Core, recover
from api.core.inbox import InboxItem
from eddy import EddyError, Engine
from storage.directory import DataDirectory
from tests.reference.simulated_disk import SimulatedDisk

SECOND = 1_000_000
DAY = 86_400 * SECOND
HOUR_MS = 3_600_000
START = 1_700_000_000 * SECOND


class Clocks:
    """A wall clock that can be put, and one that cannot."""

    def __init__(self) -> None:
        self.wall_us = START
        self.monotonic_us = 5 * SECOND

    def wall(self) -> int:
        return self.wall_us

    def monotonic(self) -> int:
        return self.monotonic_us

    def wait(self, seconds: float) -> None:
        self.wall_us += int(seconds * SECOND)
        self.monotonic_us += int(seconds * SECOND)

    def put(self, days: float) -> None:
        self.wall_us += int(days * DAY)


class Running:
    """A service on a disk that can be ended and started again, with ticks whenever it is looked at."""

    def __init__(self, clocks: Clocks) -> None:
        self.clocks = clocks
        self.disk = SimulatedDisk(1)
        self.start()

    def start(self) -> None:
        self.directory = DataDirectory.open(self.disk)
        holdings, clock = recover(self.directory, lambda clock: Engine(clock=clock, wall=clock.wall))
        holdings.engine.limit(max_ahead=HOUR_MS)
        self.core = Core(
            holdings, clock, self.directory, Limits(), lambda news: None, lambda do: do(), self.clocks.wall, self.clocks.monotonic
        )  # fmt: skip

    def restart(self, *, snapshot: bool) -> None:
        if snapshot:
            self.directory.save_snapshot(self.directory.durable, self.core.holdings.dump())
        self.directory.close()
        # another process, whose monotonic clock starts anywhere
        self.clocks.monotonic_us = 3 * SECOND
        self.start()

    def ask(self, kind: str, body: bytes = b"", **header: Any) -> Any:
        told: list[Any] = []
        items = [InboxItem(Call(kind, header, body), lambda result, error: told.extend((result, error)))]
        tick = self.core._tick()
        group = self.core.work(items if tick is None else [tick, *items])
        self.core.writer.write(group)
        group.release(None)
        if told[1] is not None:
            raise told[1]
        return told[0]

    def push(self, n: int) -> Any:
        return self.ask("push", b'{"n": %d}' % n, stream="s", media="application/json")

    def rows(self) -> list[int]:
        """What a window of 5 s holds, after a tick."""
        tick = self.core._tick()
        if tick is not None:
            group = self.core.work([tick])
            self.core.writer.write(group)
        found: list[int] = self.core.engine.answer("q").column("n").to_pylist()
        return found


@pytest.fixture
def running() -> Running:
    found = Running(Clocks())
    found.ask("create_stream", name="s", definition={"columns": {"n": "int"}, "key": "n"})
    found.ask("submit", definition={"sql": "SELECT n FROM s [RANGE 5 SECONDS]", "name": "q"})
    return found


def test_it_starts_at_the_wall_or_at_what_was_recorded() -> None:
    clocks = Clocks()
    assert ArrivalClock(0, clocks.wall, clocks.monotonic).read() == (START, START)
    assert ArrivalClock(START + DAY, clocks.wall, clocks.monotonic).read() == (START + DAY, START)


@pytest.mark.parametrize("days", [-2, 400])
def test_it_goes_on_as_if_nobody_had_put_the_wall_and_says_so(days: int, caplog: pytest.LogCaptureFixture) -> None:
    clocks = Clocks()
    clock = ArrivalClock(0, clocks.wall, clocks.monotonic)
    clocks.wait(1)
    assert clock.read()[0] == START + SECOND and clock.steps == 0
    with caplog.at_level(logging.WARNING):
        clocks.put(days)
        clocks.wait(1)
        assert [clock.read()[0] for _ in range(3)] == [START + 2 * SECOND] * 3
        assert clock.steps == 1
        clocks.put(-days)
        assert clock.read() == (START + 2 * SECOND, START + 2 * SECOND)
    assert clock.steps == 2 and f"{days * 86400:+d}" in caplog.text


@pytest.mark.parametrize("snapshot", [False, True])
@pytest.mark.parametrize("restarts", [False, True])
@pytest.mark.parametrize("days", [-2, 400])
def test_a_window_of_5_s_is_empty_after_6_s_wherever_the_wall_is_put(
    days: int, restarts: bool, snapshot: bool, running: Running
) -> None:  # fmt: skip
    for n, step in enumerate([0, days, -days, days, 0]):
        running.clocks.put(step)
        if restarts:
            running.restart(snapshot=snapshot)
        running.push(n)
        assert n in running.rows()
        running.clocks.wait(4)
        assert n in running.rows()
        running.clocks.wait(2)
        assert running.rows() == []
    if not restarts:
        assert running.core.arrival.steps == 3


def test_calls_that_are_replayed_give_the_answers_they_gave(running: Running) -> None:
    running.push(1)
    running.clocks.put(400)
    running.clocks.wait(2)
    running.push(2)
    before = running.core.engine.times(), running.rows()
    running.directory.close()
    directory = DataDirectory.open(running.disk)
    holdings, _ = recover(directory, lambda clock: Engine(clock=clock, wall=clock.wall))
    assert (holdings.engine.times(), holdings.engine.answer("q").column("n").to_pylist()) == before


def test_who_moves_the_timeline_ahead_does_not_freeze_its_windows(running: Running) -> None:
    running.push(1)
    ahead = (START + 50 * 60 * SECOND) // 1000
    running.ask("retract", b'{"keys": [7], "time": %d}' % ahead, stream="s")
    running.clocks.wait(0.2)
    running.push(2)
    assert running.rows() == [2]
    running.clocks.wait(6)
    assert running.rows() == []


def test_times_are_held_against_the_wall_and_not_against_arrivals(running: Running) -> None:
    running.ask("create_stream", name="e", definition={"columns": {"ts": "timestamp"}, "time": "ts"})
    running.clocks.put(400)
    ahead = running.clocks.wall_us // 1000 + HOUR_MS
    running.ask("push", b'{"ts": %d}' % ahead, stream="e", media="application/json")
    # it was let in then: whatever the wall says at the next start, it is there
    running.clocks.put(-400)
    running.restart(snapshot=True)
    running.ask("push", b'{"ts": %d}' % (START // 1000), stream="e", media="application/json")
    with pytest.raises(EddyError) as refused:
        running.ask("push", b'{"ts": %d}' % ahead, stream="e", media="application/json")
    assert refused.value.code == "too_far_ahead"
    running.restart(snapshot=False)
    assert running.core.engine.stats()["streams"]["e"]["rows"] == 2
