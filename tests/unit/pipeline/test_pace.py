"""Rows are due by the clock, and nothing adds up."""

from __future__ import annotations

import pytest

from lineage.errors import EddyError
from pipeline.pace import ReplayPace, parse_speed


class Clock:
    """A clock that only sleeping and `now +=` move."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        assert seconds > 0
        # as a machine's does, a little too long
        self.now += seconds + 0.001


def test_rows_are_due_at_their_distance_from_the_first_over_the_speed() -> None:
    clock = Clock()
    pace = ReplayPace(60.0, clock=clock, sleep=clock.sleep)
    pace.begin(5_000_000)
    for second in range(0, 6000, 7):
        pace.wait(5_000_000 + second * 1_000_000)
        # a thousand sleeps, and never more than one of them too late
        assert 0 <= clock.now - (100.0 + second / 60) <= 0.0011


def test_a_replay_that_was_slow_catches_up_and_says_how_far_it_was_behind() -> None:
    clock = Clock()
    pace = ReplayPace(1.0, clock=clock, sleep=clock.sleep)
    pace.begin(0)
    pace.wait(1_000_000)
    clock.now += 10
    pace.wait(2_000_000)
    assert pace.lag == pytest.approx(9.001)
    pace.wait(50_000_000)
    assert pace.lag == pytest.approx(0.001)
    assert pace.max_lag == pytest.approx(9.001)
    assert clock.now == pytest.approx(150.001)


def test_without_a_speed_nothing_waits() -> None:
    clock = Clock()
    pace = ReplayPace(None, clock=clock, sleep=clock.sleep)
    pace.begin(0)
    pace.wait(10**15)
    assert (clock.now, pace.lag) == (100.0, 0.0)


@pytest.mark.parametrize("text", ["", "fast", "0", "0x", "-1x", "60 x", "1e9", "x", "1000000000000x"])
def test_what_is_no_speed_is_refused(text: str) -> None:
    with pytest.raises(EddyError, match="is no speed"):
        parse_speed(text)
