"""When snapshots are made: by clocks and counts that are given, and in a service that is killed."""

from __future__ import annotations

from pathlib import Path

import pytest

from api.base.limits import Limits
from api.core.calls import Call
from api.core.core import Core, recover
from api.core.inbox import InboxItem
from api.core.snapshot_rhythm import EARLY_BYTES, EARLY_CALLS, EARLY_SECONDS, EASE, MOST_BYTES, MOST_CALLS, SnapshotRhythm
from eddy import Engine
from storage.directory import DataDirectory
from storage.disk import LocalDisk


class Times:
    """A clock that a test moves."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now


def run(rate: float, seconds: int, *, held_up: float = 0.0, bytes_a_call: int = 100) -> list[tuple[int, int]]:
    """(second, calls since the one before) of each snapshot of a service with so many calls a second."""
    times = Times()
    rhythm = SnapshotRhythm(times)
    found = []
    calls = 0.0

    def make() -> None:
        times.now += held_up

    while times.now < 1000 + seconds:
        times.now += 1
        calls += rate
        if rhythm.due(int(calls), int(calls) * bytes_a_call, 0.0):
            found.append((int(times.now - 1000), int(calls)))
            rhythm.made(int(calls), int(calls) * bytes_a_call, make)
            calls = 0
    return found


@pytest.mark.parametrize("rate", [0.5, 5, 10, 100, 1000])
def test_a_kill_after_28_minutes_replays_at_most_half_of_the_calls(rate: float) -> None:
    made = run(rate, 28 * 60)
    assert made and made[0][0] <= max(EARLY_SECONDS, EARLY_CALLS / rate) + 1
    left = rate * 28 * 60 - sum(calls for _, calls in made)
    assert left <= sum(calls for _, calls in made) + rate and left <= MOST_CALLS


def test_a_service_that_is_not_called_makes_none() -> None:
    times = Times()
    rhythm = SnapshotRhythm(times)
    for _ in range(1000):
        times.now += 3600
        assert not rhythm.due(0, 0, 0.0)
    assert rhythm.due(EARLY_CALLS, 0, 0.0)
    rhythm.made(EARLY_CALLS, 0, lambda: None)
    times.now += 1e9
    assert not rhythm.due(EARLY_CALLS - 1, 0, 0.0)


def test_they_come_ever_more_seldom_until_the_journal_asks_for_them() -> None:
    day = run(10, 86_400)  # the ticks of a service whose rows are timed as they arrive
    calls = [calls for _, calls in day]
    assert len(day) < 15 and max(calls) == MOST_CALLS == calls[-1]
    assert all(b >= a for a, b in zip(calls, calls[1:]))


def test_large_ones_take_a_small_part_of_the_time() -> None:
    made = run(50_000, 3600, held_up=10.0)
    gaps = [b - a for (a, _), (b, _) in zip(made, made[1:])]
    assert made and min(gaps) >= EASE * 10


def test_the_time_to_write_one_counts_as_well() -> None:
    times = Times()
    rhythm = SnapshotRhythm(times)
    rhythm.made(1, 1, lambda: None)
    times.now += 99
    assert not rhythm.due(MOST_CALLS, 0, 5.0)
    times.now += 1
    assert rhythm.due(MOST_CALLS, 0, 5.0)


def test_bytes_count_as_calls_do() -> None:
    times = Times()
    rhythm = SnapshotRhythm(times)
    assert rhythm.due(1, MOST_BYTES, 0.0) and not rhythm.due(1, EARLY_BYTES, 0.0)
    times.now += EARLY_SECONDS
    assert rhythm.due(1, EARLY_BYTES, 0.0) and not rhythm.due(1, EARLY_BYTES - 1, 0.0)
    rhythm.made(1, 3 * EARLY_BYTES, lambda: None)
    times.now += EARLY_SECONDS
    assert not rhythm.due(1, 3 * EARLY_BYTES - 1, 0.0) and rhythm.due(1, 3 * EARLY_BYTES, 0.0)


def test_a_service_that_is_killed_replays_only_what_came_after_its_first_snapshot(tmp_path: Path) -> None:
    directory = DataDirectory.open(LocalDisk(tmp_path))
    holdings, clock = recover(directory, lambda clock: Engine(clock=clock))
    core = Core(holdings, clock, directory, Limits(), lambda news: None, lambda do: do())
    times = Times()
    core._rhythm = SnapshotRhythm(times)
    errors: list[BaseException | None] = []
    calls = [Call("create_stream", {"name": "s", "definition": {"columns": {"a": "int"}}})]
    calls += [Call("push", {"stream": "s", "media": "application/json"}, b'{"a": 1}') for _ in range(EARLY_CALLS + 9)]
    for call in calls:
        times.now += EARLY_SECONDS / EARLY_CALLS
        group = core.work([InboxItem(call, lambda result, error: errors.append(error), 1)])
        core.writer.write(group)
        group.release(None)
    assert core.writer._saving is not None
    core.writer._saving.join()
    assert errors == [None] * len(calls) and core.writer.snapshots == 1
    directory.close()  # as a kill leaves it: nothing more is written
    again = DataDirectory.open(LocalDisk(tmp_path))
    found = again.recover()
    assert found.snapshot is not None and len(list(found.records)) == 10
    again.close()
