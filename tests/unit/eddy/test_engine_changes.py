"""The change stream of a query: cursors, snapshots, commits, and what the log has dropped."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pyarrow as pa
import pytest

from eddy import Change, EddyError, Engine, GoneError
from tests.unit.eddy.digest import at, make_engine, row, signed, values


def test_a_change_has_its_commit_time_sign_and_row() -> None:
    engine = make_engine()
    query = engine.submit("SELECT sensor, temp FROM readings [RANGE 5 SECONDS]")
    engine.push("readings", [row(1000, sensor=1, temp=None)])
    engine.advance(400_000)
    assert list(engine.changes(query, since=0)) == [
        Change(1, at(1000), 1, {"sensor": 1, "temp": None}),
        Change(2, at(6000), -1, {"sensor": 1, "temp": None}),
    ]


def test_a_snapshot_is_the_answer_as_plus_rows_and_then_goes_on() -> None:
    engine = make_engine()
    query = engine.submit("SELECT sensor FROM readings [RANGE 5 SECONDS]")
    engine.push("readings", [row(1000, sensor=1)])
    engine.push("readings", [row(7000, sensor=2)])
    engine.push("readings", [row(8000, sensor=3)])
    cursor = query.changes()
    assert [(change.seq, change.sign, change.row["sensor"]) for change in cursor] == [(3, 1, 2), (3, 1, 3)]
    engine.push("readings", [row(12_000, sensor=4)])
    assert signed(cursor) == [(12_000, -1, 2), (12_000, 1, 4)]
    assert list(cursor) == []


def test_an_empty_snapshot_goes_on_with_what_comes() -> None:
    engine = make_engine()
    query = engine.submit("SELECT sensor FROM readings [RANGE 5 SECONDS]")
    cursor = query.changes("snapshot")
    assert list(cursor) == []
    engine.push("readings", [row(1000, sensor=1)])
    assert signed(cursor) == [(1000, 1, 1)]


def test_a_snapshot_is_taken_when_it_is_first_read_and_no_commit_is_seen_twice() -> None:
    engine = make_engine()
    query = engine.submit("SELECT sensor FROM readings [RANGE 1 HOUR]")
    engine.push("readings", [row(1000, sensor=1)])
    cursor = query.changes("snapshot")
    engine.push("readings", [row(1000, sensor=2)])
    assert [value for _, _, value in signed(cursor)] == [1, 2]
    assert list(cursor) == []


def test_now_gives_only_what_comes_after() -> None:
    engine = make_engine()
    query = engine.submit("SELECT sensor FROM readings [RANGE 5 SECONDS]")
    engine.push("readings", [row(1000, sensor=1)])
    cursor = query.changes("now")
    engine.push("readings", [row(2000, sensor=2)])
    assert signed(cursor) == [(2000, 1, 2)]


def test_a_number_gives_what_comes_after_that_commit() -> None:
    engine = make_engine()
    query = engine.submit("SELECT sensor FROM readings [RANGE 1 HOUR]")
    for k in range(1, 6):
        engine.push("readings", [row(1000 * k, sensor=k)])
    for since in range(6):
        assert [change.seq for change in query.changes(since)] == list(range(since + 1, 6))
    assert list(query.changes(99)) == []


def test_a_cursor_iterated_twice_goes_on() -> None:
    engine = make_engine()
    query = engine.submit("SELECT sensor FROM readings [RANGE 1 HOUR]")
    cursor = query.changes(0)
    for k in range(3):
        engine.push("readings", [row(1000, sensor=k)])
        assert [change.row["sensor"] for change in cursor] == [k]
        assert cursor.seq == k + 1
    assert list(cursor) == []


def test_a_cursor_left_in_the_middle_goes_on_where_it_stopped() -> None:
    engine = make_engine()
    query = engine.submit("SELECT sensor FROM readings [RANGE 1 HOUR]")
    for k in range(4):
        engine.push("readings", [row(1000, sensor=k)])
    cursor = query.changes(0)
    for change in cursor:
        assert change.row["sensor"] == 0
        break
    assert [change.row["sensor"] for change in cursor] == [1, 2, 3]


def test_two_cursors_do_not_disturb_each_other() -> None:
    engine = make_engine()
    query = engine.submit("SELECT sensor FROM readings [RANGE 1 HOUR]")
    first, second = query.changes(0), query.changes(0)
    engine.push("readings", [row(1000, sensor=1)])
    assert len(list(first)) == 1
    engine.push("readings", [row(1000, sensor=2)])
    assert len(list(second)) == 2
    assert len(list(first)) == 1


def test_arrow_gives_one_table_with_seq_time_and_sign_before_the_columns() -> None:
    engine = make_engine()
    query = engine.submit("SELECT room, temp FROM readings [RANGE 5 SECONDS]")
    engine.push("readings", [row(1000, room="a"), row(2000, room=None)])
    engine.advance(6500)
    cursor = query.changes(0)
    table = cursor.arrow()
    assert table.schema.names == ["seq", "time", "sign", "room", "temp"]
    assert table.schema.types == [pa.int64(), pa.timestamp("us", "UTC"), pa.int8(), pa.string(), pa.float64()]
    assert table.to_pydict() == {
        "seq": [1, 1, 2], "time": [at(1000), at(2000), at(6000)], "sign": [1, 1, -1], "room": ["a", None, "a"],
        "temp": [20.0] * 3,
    }  # fmt: skip
    assert cursor.arrow().num_rows == 0
    assert cursor.arrow().schema == table.schema


def test_signs_sum_to_the_answer_at_every_commit() -> None:
    engine = make_engine()
    query = engine.submit("SELECT sensor FROM readings [RANGE 3 SECONDS] WHERE temp > 0")
    total: Counter[Any] = Counter()
    cursor = query.changes()
    for k in range(40):
        engine.push("readings", [row(500 * k, sensor=k % 3, temp=float(k % 4)), row(500 * k + 100, sensor=1)])
        for change in cursor:
            total[change.row["sensor"]] += change.sign
        assert +total == Counter(values(query.answer()))
        assert min(total.values(), default=0) >= 0


def test_within_a_commit_minus_comes_before_plus_each_in_order_of_time() -> None:
    engine = make_engine()
    query = engine.submit("SELECT sensor FROM readings [RANGE 1 SECOND]")
    engine.push("readings", [row(1000, sensor=1), row(1500, sensor=2)])
    engine.push("readings", [row(2600, sensor=4), row(2400, sensor=3)])
    assert signed(query.changes(1)) == [(2000, -1, 1), (2500, -1, 2), (2400, 1, 3), (2600, 1, 4)]


def test_netting_keeps_the_latest_starts_and_the_latest_ends_of_a_value() -> None:
    engine = make_engine()
    query = engine.submit("SELECT room FROM readings [RANGE 1 SECOND]")
    engine.push("readings", [row(1000), row(1100), row(1200)])
    engine.push("readings", [row(2500)])
    # three "a" end at 2000, 2100, 2200 and one starts at 2500: one pair nets, the earliest end goes
    assert signed(query.changes(1)) == [(2100, -1, "a"), (2200, -1, "a")]


def test_values_net_as_distinct_compares_them() -> None:
    engine = make_engine()
    query = engine.submit("SELECT temp, room FROM readings [RANGE 1 SECOND]")
    for value in (float("nan"), None, -0.0):
        base = query.answer().schema.metadata[b"time"]
        start = 0 if not base else engine.stats()["timelines"]["main"]["time"].timestamp() * 1000 + 5000
        engine.push("readings", [row(start, temp=value, room=None)])
        seq = engine.stats()["seq"]
        engine.push("readings", [row(start + 1000, temp=0.0 if value == 0 else value, room=None)])
        assert list(query.changes(seq)) == []


def test_a_stream_query_has_only_plus() -> None:
    engine = make_engine()
    query = engine.submit("SELECT sensor FROM readings")
    engine.push("readings", [row(1000, sensor=1), row(1000, sensor=1)])
    engine.advance(1_000_000_000)
    assert signed(query.changes(0)) == [(1000, 1, 1), (1000, 1, 1)]


def test_the_answer_of_a_stream_query_is_its_newest_thousand_results() -> None:
    engine = make_engine()
    query = engine.submit("SELECT sensor FROM readings WHERE sensor % 2 = 0")
    engine.push("readings", {"sensor": list(range(3000)), "ts": [1000] * 3000})
    engine.push("readings", {"sensor": [3000, 3001], "ts": [2000, 2000]})
    assert values(query.answer()) == list(range(1002, 3001, 2))
    assert len(list(query.changes(0))) == 1501


def test_what_the_log_dropped_is_gone_and_the_error_says_from_where_on_it_holds() -> None:
    engine = make_engine(log_rows=10)
    query = engine.submit("SELECT sensor FROM readings [RANGE 1 HOUR]")
    slow = query.changes(0)
    for k in range(30):
        engine.push("readings", [row(1000, sensor=k)])
    with pytest.raises(GoneError) as error:
        query.changes(5)
    assert error.value.code == "gone"
    assert error.value.hint == 'start again with since="snapshot"'
    assert "commit 20" in error.value.detail
    with pytest.raises(GoneError):
        list(slow)
    assert [change.row["sensor"] for change in query.changes(20)] == list(range(20, 30))
    assert [change.seq for change in query.changes(0)] == list(range(21, 31))
    assert len(list(query.changes("snapshot"))) == 30


def test_a_query_younger_than_what_is_gone_lost_nothing() -> None:
    engine = make_engine(log_rows=10)
    engine.submit("SELECT sensor FROM readings [RANGE 1 HOUR]")
    for k in range(30):
        engine.push("readings", [row(1000, sensor=k)])
    young = engine.submit("SELECT sensor FROM readings [RANGE 1 HOUR]")
    engine.push("readings", [row(1000, sensor=99)])
    assert [change.row["sensor"] for change in young.changes(3)] == [99]


def test_a_stream_querys_answer_is_bounded_by_the_log() -> None:
    engine = make_engine(log_rows=10)
    query = engine.submit("SELECT sensor FROM readings")
    for k in range(100):
        engine.push("readings", [row(1000, sensor=k)])
    assert values(query.answer()) == list(range(90, 100))


@pytest.mark.parametrize("since", [-1, "later", 1.5, None, True, []])
def test_a_bad_since_is_refused(since: Any) -> None:
    engine = make_engine()
    query = engine.submit("SELECT sensor FROM readings")
    with pytest.raises(EddyError) as error:
        query.changes(since)
    assert error.value.code == "bad_option"
    assert error.value.hint == '"snapshot", "now" or the number of a commit'


def test_changes_of_a_query_are_independent_of_when_they_are_read() -> None:
    engine = make_engine()
    query = engine.submit("SELECT sensor FROM readings [RANGE 2 SECONDS] WHERE temp * sensor > 10")
    eager, found = query.changes(0), []
    for k in range(20):
        engine.push("readings", [row(300 * k, sensor=k, temp=float(k % 5))])
        found += list(eager)
    assert list(query.changes(0)) == found


def test_names_that_repeat_in_an_answer_are_refused_or_kept_apart() -> None:
    engine = make_engine()
    with pytest.raises(EddyError) as error:
        engine.submit("SELECT sensor, temp AS sensor FROM readings")
    assert error.value.code == "duplicate_column"


def test_the_log_drops_rows_of_a_query_without_a_window_and_all_invariants_still_hold() -> None:
    engine = Engine(log_rows=20_000)
    engine.create_stream("ticks", {"price": "int"})
    query = engine.submit("SELECT price FROM ticks WHERE price >= 10")
    for _ in range(12):
        engine.push("ticks", {"price": list(range(5_000))})
        engine.check()
    assert engine.stats()["streams"]["ticks"]["held"] < 60_000, "rows went"
    assert query.answer().column("price").to_pylist() == list(range(4_000, 5_000))


def test_changes_of_operators_are_the_same_as_a_table() -> None:
    engine = Engine()
    engine.create_stream("s", {"a": "int", "ts": "timestamp"}, time="ts")
    engine.submit("SELECT COUNT(*) AS n FROM s [RANGE 1 SECOND]", name="q")
    one_by_one, table = engine.changes("q", "now"), engine.changes("q", "now")
    for time in (0, 300, 1200):
        engine.push("s", {"a": [1], "ts": [time]})
    found = [(change.seq, change.sign, change.row["n"]) for change in one_by_one]
    assert [change[1:] for change in found] == [(-1, 0), (1, 1), (-1, 1), (1, 2)]
    assert [(row["seq"], row["sign"], row["n"]) for row in table.arrow().to_pylist()] == found
