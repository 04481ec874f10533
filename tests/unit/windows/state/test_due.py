"""State buffers: whatever they look at, they find the same rows due, in the same order."""

from __future__ import annotations

import random

import numpy as np
import pytest

from eddy.base.compile import ensure
from windows.state.due import Buffer, Calendar, Fifo, Scan, Unscheduled

ensure()

BUFFERS = {"fifo": Fifo, "calendar": Calendar, "scan": Scan}


def run(buffer: Buffer, seed: int, spread: int, step: int, in_order: bool, removed: float) -> None:
    """Random rows against a sorted list of (end, order of coming, slot)."""
    rng = random.Random(seed)
    ends = np.zeros(16, np.int64)
    free: list[int] = []
    high = 0
    live: list[tuple[int, int, int]] = []
    clock, number, last = -(10**6), 0, -(10**7)
    for turn in range(120):
        coming = []
        if turn < 100:
            for _ in range(rng.choice([0, 1, 3, 60])):
                slot = free.pop() if free else high
                high = max(high, slot + 1)
                if high > len(ends):
                    ends = np.concatenate([ends, np.zeros(len(ends), np.int64)])
                end = clock + 1 + rng.randrange(spread)
                if in_order:
                    end = last = max(end, last)
                ends[slot] = end
                live.append((end, number, slot))
                coming.append(slot)
                number += 1
        buffer.add(np.array(coming, np.int64), ends)
        gone = [entry for entry in live if rng.random() < removed]
        rng.shuffle(gone)
        buffer.remove(np.array([slot for _, _, slot in gone], np.int64), ends)
        live = [entry for entry in live if entry not in set(gone)]
        clock += rng.choice([0, 1, step, 3 * step, rng.randrange(spread)]) if turn < 110 else 2 * spread
        due = sorted(entry for entry in live if entry[0] <= clock)
        assert buffer.due(clock, ends).tolist() == [slot for _, _, slot in due]
        live = [entry for entry in live if entry[0] > clock]
        free += [slot for _, _, slot in due + gone]
        assert buffer.n_rows == len(live) and sorted(buffer.slots().tolist()) == sorted(slot for _, _, slot in live)
    assert buffer.n_rows == 0 and buffer.bytes <= type(buffer)().bytes


@pytest.mark.parametrize("removed", [0.0, 0.1])
@pytest.mark.parametrize(("spread", "step"), [(10, 1), (1000, 3), (10**9, 10**4), (50, 1000)])
@pytest.mark.parametrize("name", BUFFERS)
def test_every_buffer_finds_the_rows_that_are_due_by_end_then_by_coming(
    name: str, spread: int, step: int, removed: float
) -> None:
    for seed in range(5):
        run(BUFFERS[name](), seed, spread, step, name == "fifo", removed)


def test_a_fifo_refuses_ends_out_of_order() -> None:
    with pytest.raises(AssertionError, match="in order"):
        Fifo().add(np.array([0, 1]), np.array([5, 4]))


def test_a_calendar_looks_at_little_more_than_what_is_due_and_a_scan_at_everything() -> None:
    looked = {}
    rng = np.random.default_rng(1)
    lives = rng.integers(1, 100_000, (400, 100))
    for name in ("calendar", "scan"):
        buffer = BUFFERS[name]()
        ends = np.zeros(40_000, np.int64)
        for turn in range(400):
            slots = np.arange(100 * turn, 100 * turn + 100)
            ends[slots] = 100 * turn + lives[turn]
            buffer.add(slots, ends)
            buffer.due(100 * turn, ends)
        looked[name] = buffer.looked_at
    assert looked["calendar"] < 100_000 < 3_000_000 < looked["scan"]


def test_an_edge_that_sends_its_ends_has_nothing_due() -> None:
    buffer = Unscheduled()
    buffer.add(np.array([0]), np.array([5]))
    assert len(buffer.due(10, np.array([5]))) == 0 and buffer.bytes == 0
