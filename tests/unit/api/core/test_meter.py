"""Rates: over a second at least, shared by whoever asks."""

from __future__ import annotations

from api.core.meter import Meter


class Time:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_rate_is_the_growth_since_the_look_before() -> None:
    time = Time()
    meter = Meter({"rows": 1000}, time)
    time.now += 2
    assert meter.look({"rows": 1200}) == (2.0, {"rows": 100.0})
    time.now += 4
    assert meter.look({"rows": 1240}) == (4.0, {"rows": 10.0})


def test_whoever_asks_often_does_not_shorten_the_span_for_others() -> None:
    time = Time()
    meter = Meter({"rows": 0}, time)
    for n in range(1, 101):
        time.now += 0.125
        seconds, rates = meter.look({"rows": 25 * n})
        assert abs(rates["rows"] - 200.0) < 1e-6
        assert n < 16 or 1.0 <= seconds <= 2.0


def test_a_counter_that_is_new_or_starts_again_counts_from_0() -> None:
    time = Time()
    meter = Meter({"old": 50}, time)
    time.now += 1
    assert meter.look({"old": 10, "new": 5}).of == {"old": 0.0, "new": 5.0}
