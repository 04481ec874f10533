"""The clock rules of semantics 1 to 6 through the engine, by small tables.

Times are milliseconds unless said otherwise. `drive` runs a list of steps and checks the answer after each one.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import numpy as np
import pytest

from eddy import Engine, NotFoundError, Query, RowError
from tests.unit.eddy.digest import at, digest, signed, values

V = {"v": "int", "ts": "timestamp[us]"}


def make(*streams: tuple[str, dict[str, Any]], **options: Any) -> Engine:
    engine = Engine(**options)
    for name, settings in streams:
        engine.create_stream(name, {"v": "int", "ts": "timestamp"}, **{"time": "ts", **settings})
    return engine


def push(engine: Engine, stream: str, *rows: tuple[int, int]) -> Any:
    """Push (ts, v) pairs."""
    return engine.push(stream, {"v": [v for _, v in rows], "ts": [ts for ts, _ in rows]})


def held(query: Query) -> list[int]:
    return sorted(values(query.answer()))


def test_a_window_holds_exactly_the_rows_with_t_minus_w_below_t() -> None:
    """[RANGE w] at T: T - w < t <= T, to the microsecond."""
    engine = Engine()
    engine.create_stream("s", V, time="ts")
    query = engine.submit("SELECT v FROM s [RANGE 10 MICROSECONDS]")
    engine.push("s", {"v": list(range(1, 31)), "ts": list(range(1, 31))})
    assert held(query) == list(range(21, 31))
    for now in range(31, 45):
        engine.advance(timedelta_time(now))
        assert held(query) == [t for t in range(1, 31) if now - 10 < t <= now]


def timedelta_time(us: int) -> Any:
    return at(0) + timedelta(microseconds=us)


@pytest.mark.parametrize(("window", "width"), [("[NOW]", 1), ("[RANGE 1 MILLISECOND]", 1000), ("[RANGE 5 SECONDS]", 5_000_000)])
def test_a_row_leaves_at_t_plus_w_and_not_a_microsecond_earlier(window: str, width: int) -> None:
    engine = Engine()
    engine.create_stream("s", V, time="ts")
    query = engine.submit(f"SELECT v FROM s {window}")
    engine.push("s", {"v": [1], "ts": [1_000_000]})
    engine.advance(timedelta_time(1_000_000 + width - 1))
    assert held(query) == [1]
    engine.advance(timedelta_time(1_000_000 + width))
    assert held(query) == []
    last = list(query.changes(0))[-1]
    assert (last.sign, last.time) == (-1, timedelta_time(1_000_000 + width))


def test_an_unbounded_window_never_lets_a_row_go() -> None:
    engine = make(("s", {}))
    query = engine.submit("SELECT v FROM s [RANGE UNBOUNDED]")
    push(engine, "s", (1, 1))
    engine.advance("9999-12-31T23:59:59Z")
    assert held(query) == [1]


def test_times_before_1970_are_times_like_others() -> None:
    engine = make(("s", {}))
    query = engine.submit("SELECT v FROM s [RANGE 1 SECOND]")
    push(engine, "s", (-2000, 1), (-1500, 2), (-1000, 3))
    assert held(query) == [2, 3]
    engine.advance(-500)
    assert held(query) == [3]


def test_a_push_sorts_its_rows_by_time_and_keeps_ties_in_order() -> None:
    engine = make(("s", {}))
    query = engine.submit("SELECT v FROM s [RANGE 1 HOUR]")
    receipt = push(engine, "s", (3000, 1), (1000, 2), (3000, 3), (2000, 4), (1000, 5))
    assert receipt.late == 0
    assert values(query.answer()) == [2, 5, 4, 1, 3]


def test_ties_with_the_front_are_not_late() -> None:
    engine = make(("s", {"late": "drop"}))
    query = engine.submit("SELECT v FROM s [RANGE 1 HOUR]")
    push(engine, "s", (1000, 1))
    assert push(engine, "s", (1000, 2), (1000, 3)).late == 0
    assert values(query.answer()) == [1, 2, 3]


def test_a_late_row_is_counted_and_taken_at_the_front() -> None:
    engine = make(("s", {}))
    query = engine.submit("SELECT v, ts FROM s [RANGE 5 SECONDS]")
    push(engine, "s", (10_000, 1))
    assert push(engine, "s", (2000, 2)).late == 1
    assert engine.stats()["streams"]["s"]["late"] == 1
    # its column keeps what was sent; its life is that of the front
    assert query.answer().to_pydict() == {"v": [1, 2], "ts": [at(10_000), at(2000)]}
    engine.advance(14_999)
    assert held(query) == [1, 2]
    engine.advance(15_000)
    assert held(query) == []
    assert signed(query.changes(0)) == [(10_000, 1, 1), (10_000, 1, 2), (15_000, -1, 1), (15_000, -1, 2)]


def test_a_condition_on_the_time_of_a_late_row_sees_what_was_sent() -> None:
    engine = make(("s", {}))
    query = engine.submit("SELECT v FROM s [RANGE 5 SECONDS] WHERE ts < TIMESTAMP '1970-01-01T00:00:05Z'")
    push(engine, "s", (10_000, 1))
    push(engine, "s", (2000, 2))
    assert held(query) == [2]


def test_a_late_row_is_dropped_where_the_stream_says_so() -> None:
    engine = make(("s", {"late": "drop"}))
    query = engine.submit("SELECT v FROM s [RANGE 1 HOUR]")
    push(engine, "s", (10_000, 1))
    receipt = push(engine, "s", (2000, 2), (10_000, 3))
    assert (receipt.accepted, receipt.late) == (1, 1)
    stats = engine.stats()["streams"]["s"]
    assert (stats["late"], stats["dropped"], stats["rows"]) == (1, 1, 2)
    assert held(query) == [1, 3]


def test_lateness_is_judged_against_the_front_before_the_push() -> None:
    engine = make(("s", {}))
    assert push(engine, "s", (10_000, 1), (2000, 2)).late == 0
    assert push(engine, "s", (20_000, 3), (9999, 4), (10_000, 5)).late == 1


def test_rows_wait_for_stragglers_up_to_the_lateness() -> None:
    engine = make(("s", {"lateness": 1000}))
    query = engine.submit("SELECT v FROM s [RANGE 1 HOUR]")
    waiting = lambda: engine.stats()["streams"]["s"]["waiting"]  # noqa: E731
    push(engine, "s", (5000, 1))
    assert (values(query.answer()), waiting()) == ([], 1)
    assert push(engine, "s", (4500, 2)).late == 0
    assert (values(query.answer()), waiting()) == ([], 2)
    push(engine, "s", (5999, 3))  # releases up to 4999
    assert (values(query.answer()), waiting()) == ([2], 2)
    push(engine, "s", (6000, 4))  # releases up to 5000, the bound included
    assert (values(query.answer()), waiting()) == ([2, 1], 2)
    assert push(engine, "s", (4999, 5)).late == 1  # the front is 5000; at the front it does not wait
    assert (values(query.answer()), waiting()) == ([2, 1, 5], 2)


def test_waiting_rows_leave_in_order_of_time_then_acceptance() -> None:
    engine = make(("s", {"lateness": 1000}))
    query = engine.submit("SELECT v FROM s [RANGE 1 HOUR]")
    for ts, v in ((500, 1), (300, 2), (500, 3), (300, 4), (400, 5)):
        push(engine, "s", (ts, v))
    engine.advance(500)
    assert values(query.answer()) == [2, 4, 5, 1, 3]
    assert [engine.trace("s", n)["row"]["values"]["v"] for n in range(5)] == [1, 2, 3, 4, 5]


def test_advance_releases_every_stream_of_its_timeline_up_to_its_time() -> None:
    engine = make(("s", {"lateness": 10_000}), ("u", {"lateness": 500}))
    queries = [engine.submit(f"SELECT v FROM {name} [RANGE 1 HOUR]") for name in ("s", "u")]
    push(engine, "s", (1000, 1), (2000, 2), (3000, 3))
    push(engine, "u", (2400, 4), (2500, 5))
    assert [values(query.answer()) for query in queries] == [[], []]
    engine.advance(2450)
    assert [values(query.answer()) for query in queries] == [[1, 2], [4]]
    assert [signed(query.changes(0)) for query in queries] == [[(1000, 1, 1), (2000, 1, 2)], [(2400, 1, 4)]]
    assert push(engine, "s", (2449, 6)).late == 1
    assert push(engine, "s", (2450, 7)).late == 0


def test_an_idle_streams_rows_wait_for_advance_however_far_the_others_go() -> None:
    engine = make(("s", {"lateness": 1000}), ("u", {}))
    query = engine.submit("SELECT v FROM s [RANGE 1 HOUR]")
    push(engine, "s", (5000, 1))
    push(engine, "u", (100_000, 2))
    assert values(query.answer()) == []
    engine.advance(100_000)
    assert values(query.answer()) == [1]
    assert signed(query.changes(0)) == [(100_000, 1, 1)]


def test_advance_below_the_clock_does_nothing() -> None:
    engine = make(("s", {"lateness": 1000}), ("u", {}))
    engine.submit("SELECT v FROM s [RANGE 1 SECOND]")
    push(engine, "u", (10_000, 1))
    push(engine, "s", (9000, 2))
    before = digest(engine)
    engine.advance(9999)
    assert digest(engine) == before


def test_advance_to_the_clock_releases_what_waits_up_to_it() -> None:
    engine = make(("s", {"lateness": 1000}), ("u", {}))
    query = engine.submit("SELECT v FROM s [RANGE 10 SECONDS]")
    push(engine, "u", (10_000, 1))
    push(engine, "s", (9000, 2))
    engine.advance(10_000)
    assert values(query.answer()) == [2]


def test_a_row_older_than_the_last_advance_is_late_on_every_stream_also_one_made_later() -> None:
    engine = make(("s", {}))
    engine.advance(5000)
    engine.create_stream("u", {"v": "int", "ts": "timestamp"}, time="ts", late="drop")
    assert push(engine, "s", (4999, 1)).late == 1
    assert push(engine, "u", (4999, 1)).late == 1
    assert push(engine, "u", (5000, 1)).late == 0


def test_a_push_on_one_stream_expires_the_windows_of_the_others() -> None:
    engine = make(("s", {}), ("u", {}))
    query = engine.submit("SELECT v FROM s [RANGE 1 SECOND]")
    push(engine, "s", (1000, 1))
    cursor = query.changes("now")
    push(engine, "u", (1999, 2))
    assert held(query) == [1]
    push(engine, "u", (2000, 3))
    assert held(query) == []
    assert signed(cursor) == [(2000, -1, 1)]


def test_a_lagging_row_takes_effect_at_once_its_start_is_the_clock() -> None:
    engine = make(("s", {}), ("u", {}))
    query = engine.submit("SELECT v FROM s [RANGE 5 SECONDS]")
    push(engine, "u", (10_000, 0))
    receipt = push(engine, "s", (7000, 1))
    assert receipt.late == 0, "its own stream has not passed it"
    assert held(query) == [1]
    engine.advance(12_000)
    assert held(query) == []
    assert signed(query.changes(0)) == [(10_000, 1, 1), (12_000, -1, 1)]


def test_a_lagging_row_whose_life_is_over_is_never_shown() -> None:
    engine = make(("s", {}), ("u", {}))
    query = engine.submit("SELECT v FROM s [RANGE 5 SECONDS]")
    stream = engine.submit("SELECT v FROM s")
    heard = []
    engine.on_commit(lambda commit: heard.extend(commit.counts()[0].tolist()))
    push(engine, "u", (10_000, 0))
    push(engine, "s", (5000, 1))  # [10 s, 10 s): empty
    assert held(query) == [] and list(query.changes(0)) == []
    assert heard == [stream.id]
    push(engine, "s", (5001, 2))
    assert held(query) == [2]


def test_a_lagging_row_counts_for_a_query_without_window_at_the_clock() -> None:
    engine = make(("s", {}), ("u", {}))
    query = engine.submit("SELECT v FROM s")
    push(engine, "u", (10_000, 0))
    push(engine, "s", (1, 1))
    assert signed(query.changes(0)) == [(10_000, 1, 1)]


def test_the_clock_never_goes_back() -> None:
    engine = make(("s", {}), ("u", {}))
    query = engine.submit("SELECT v FROM u [RANGE 1 HOUR]")
    times = []
    for stream, ts in (("s", 1000), ("u", 500), ("s", 900), ("u", 1500), ("s", 1200)):
        push(engine, stream, (ts, 1))
        times.append(query.answer().schema.metadata[b"time"].decode())
    assert times == ["1970-01-01T00:00:01Z"] * 3 + ["1970-01-01T00:00:01.500000Z"] * 2


def test_two_timelines_have_clocks_of_their_own() -> None:
    engine = make(("s", {}), ("u", {"timeline": "other"}))
    first, second = (engine.submit(f"SELECT v FROM {name} [RANGE 1 SECOND]") for name in ("s", "u"))
    push(engine, "s", (1000, 1))
    push(engine, "u", (500_000, 2))
    assert (held(first), held(second)) == ([1], [2])
    engine.advance(100_000)
    assert (held(first), held(second)) == ([], [2])
    engine.advance(600_000, timeline="other")
    assert held(second) == []
    clocks = engine.stats()["timelines"]
    assert (clocks["main"]["time"], clocks["other"]["time"]) == (at(100_000), at(600_000))


def test_commits_of_all_timelines_share_one_numbering() -> None:
    engine = make(("s", {}), ("u", {"timeline": "other"}))
    query = engine.submit("SELECT v FROM u [RANGE 1 HOUR]")
    push(engine, "s", (1, 1))
    push(engine, "u", (1, 2))
    engine.advance(5)
    push(engine, "u", (1, 3))
    assert [change.seq for change in query.changes(0)] == [2, 4]


def test_a_push_that_spans_several_windows_shows_only_what_is_alive_at_its_end() -> None:
    engine = make(("s", {}))
    query = engine.submit("SELECT v FROM s [RANGE 2 SECONDS]")
    heard: list[tuple[int, list[int]]] = []
    engine.on_commit(lambda commit: heard.append((int(commit.sign[0]), commit.columns["v"].to_pylist())))
    push(engine, "s", (1000, 1))
    heard.clear()
    push(engine, "s", *[(1000 * k, k) for k in range(2, 11)])
    assert held(query) == [9, 10]
    assert signed(query.changes(1)) == [(3000, -1, 1), (9000, 1, 9), (10_000, 1, 10)]
    assert heard[0] == (-1, [1])


def test_one_push_and_one_row_a_push_give_the_same_answers() -> None:
    rng = np.random.default_rng(3)
    rows = [(int(t), v) for v, t in enumerate(np.sort(rng.integers(0, 20_000, 60)))]
    whole, single = make(("s", {})), make(("s", {}))
    queries = [engine.submit("SELECT v FROM s [RANGE 3 SECONDS] WHERE v % 3 > 0") for engine in (whole, single)]
    push(whole, "s", *rows)
    for one in rows:
        push(single, "s", one)
    assert held(queries[0]) == held(queries[1])
    net: dict[int, int] = {}
    for _, sign, v in signed(queries[1].changes(0)):
        net[v] = net.get(v, 0) + sign
    assert sorted(v for v, n in net.items() if n) == held(queries[0])


def test_ends_come_before_arrivals_of_the_same_instant() -> None:
    engine = make(("s", {}))
    query = engine.submit("SELECT v FROM s [RANGE 1 SECOND]")
    signs = []
    engine.on_commit(lambda commit: signs.extend(commit.sign.tolist()))
    push(engine, "s", (1000, 1))
    push(engine, "s", (2000, 2))
    assert signs == [1, -1, 1]
    assert signed(query.changes(1)) == [(2000, -1, 1), (2000, 1, 2)]


def test_a_value_that_leaves_and_comes_in_one_commit_nets_to_nothing() -> None:
    engine = make(("s", {}))
    query = engine.submit("SELECT v FROM s [RANGE 1 SECOND]")
    push(engine, "s", (1000, 7))
    push(engine, "s", (2000, 7))
    assert held(query) == [7]
    assert list(query.changes(1)) == []


class Clock:
    def __init__(self, now: Any) -> None:
        self.now = now

    def __call__(self) -> Any:
        return self.now


def arrivals(clock: Clock) -> tuple[Engine, Query]:
    engine = Engine(clock=clock)
    engine.create_stream("s", {"v": "int"})
    return engine, engine.submit("SELECT v FROM s [RANGE 1 SECOND]")


def test_rows_without_a_time_take_that_of_the_clock() -> None:
    clock = Clock(5000)
    engine, query = arrivals(clock)
    engine.push("s", {"v": [1, 2]})
    clock.now = 5999
    engine.push("s", {"v": [3]})
    assert held(query) == [1, 2, 3]
    clock.now = 6000
    engine.push("s", {"v": [4]})
    assert held(query) == [3, 4]
    assert signed(query.changes(0)) == [(5000, 1, 1), (5000, 1, 2), (5999, 1, 3), (6000, -1, 1), (6000, -1, 2), (6000, 1, 4)]


def test_a_clock_that_steps_back_makes_no_row_late_and_moves_no_window() -> None:
    clock = Clock(5000)
    engine, query = arrivals(clock)
    engine.push("s", {"v": [1]})
    clock.now = 1000
    assert engine.push("s", {"v": [2]}).late == 0
    assert held(query) == [1, 2]
    assert signed(query.changes(0)) == [(5000, 1, 1), (5000, 1, 2)]
    engine.advance(6000, timeline="arrival")
    assert held(query) == []
    assert engine.push("s", {"v": [3]}).late == 0
    assert signed(query.changes(2)) == [(6000, -1, 1), (6000, -1, 2), (6000, 1, 3)]
    engine.check()


def test_a_clock_may_give_datetimes() -> None:
    engine, query = arrivals(Clock(at(5000)))
    engine.push("s", {"v": [1]})
    assert query.answer().schema.metadata[b"time"] == b"1970-01-01T00:00:05Z"


def test_the_arrival_timeline_is_moved_by_advance_with_no_row() -> None:
    engine, query = arrivals(Clock(5000))
    engine.push("s", {"v": [1]})
    engine.advance(5999, timeline="arrival")
    assert held(query) == [1]
    engine.advance(6000, timeline="arrival")
    assert held(query) == []


def test_without_a_clock_the_wall_clock_is_taken() -> None:
    engine = Engine()
    engine.create_stream("s", {"v": "int"})
    query = engine.submit("SELECT v FROM s [RANGE 1 HOUR]")
    engine.push("s", {"v": [1]})
    assert query.answer().schema.metadata[b"time"] > b"2024"


def test_the_clock_is_not_asked_for_streams_with_a_time() -> None:
    def broken() -> Any:
        raise AssertionError("nobody may ask")

    engine = make(("s", {}), clock=broken)
    assert push(engine, "s", (1, 1)).accepted == 1
    engine.advance(5)
    assert engine.stats()["timelines"]["main"]["time"] == at(5)


@pytest.mark.parametrize("time", [float("inf"), float("-inf"), float("nan"), "tomorrow", None, True, [], 10**18])
def test_advance_to_no_time_is_refused(time: Any) -> None:
    engine = make(("s", {}))
    push(engine, "s", (1, 1))
    before = digest(engine)
    with pytest.raises(RowError) as error:
        engine.advance(time)
    assert error.value.code in ("bad_value", "time_out_of_range") and error.value.hint
    assert digest(engine) == before


def test_advance_of_an_unknown_timeline_is_refused() -> None:
    engine = make(("s", {}))
    before = digest(engine)
    with pytest.raises(NotFoundError, match='timeline "mian" does not exist') as error:
        engine.advance(5, timeline="mian")
    assert error.value.hint == 'did you mean "main"?'
    assert digest(engine) == before


def test_the_time_of_an_answer_is_empty_before_the_first_row() -> None:
    engine = make(("s", {}))
    query = engine.submit("SELECT v FROM s [RANGE 1 SECOND]")
    assert query.answer().schema.metadata == {b"time": b"", b"seq": b"0"}
    push(engine, "s", (1500, 1))
    assert query.answer().schema.metadata == {b"time": b"1970-01-01T00:00:01.500000Z", b"seq": b"1"}
    engine.advance(2000)
    assert query.answer().schema.metadata == {b"time": b"1970-01-01T00:00:02Z", b"seq": b"2"}
