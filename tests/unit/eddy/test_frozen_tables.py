"""Tables that are not retroactive beside what operators make: they count as they were when the row came (semantics 15, 16)."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest

from eddy import Engine
from tests.reference.window_steps import EXPIRIES

T0 = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)


def at(seconds: float) -> dt.datetime:
    return T0 + dt.timedelta(seconds=seconds)


def engine(retroactive: bool = False, **options: Any) -> Engine:
    made = Engine()
    made.create_stream("s", {"ts": "timestamp[us]", "k": "int", "x": "int"}, time="ts", **options)
    made.create_table("t", {"k": "int", "n": "int"}, key=["k"], retroactive=retroactive)
    made.create_table("u", {"k": "int", "n": "int"}, key=["k"])
    made.upsert("t", [{"k": 1, "n": 10}])
    made.upsert("u", [{"k": 1, "n": 100}])
    return made


def push(made: Engine, seconds: float, k: int, x: int = 0) -> None:
    made.push("s", [{"ts": at(seconds), "k": k, "x": x}])


def answer(query: Any) -> list[tuple[Any, ...]]:
    table = query.answer()
    return sorted(zip(*(column.to_pylist() for column in table.columns), strict=True))


def test_a_group_meets_the_table_as_it_was_when_its_row_began() -> None:
    made = engine()
    query = made.submit(
        "SELECT r.k, r.c, t.n FROM (SELECT k, COUNT(*) AS c FROM s [RANGE 10 SECONDS] GROUP BY k) AS r, t WHERE r.k = t.k"
    )
    push(made, 1, 1)
    made.upsert("t", [{"k": 1, "n": 11}])
    assert answer(query) == [(1, 1, 10)]
    push(made, 2, 1)
    assert answer(query) == [(1, 2, 11)]
    made.delete("t", [1])
    assert answer(query) == [(1, 2, 11)]
    made.advance(at(11))
    assert answer(query) == []


def test_rows_without_a_version_meet_none_later() -> None:
    made = engine()
    query = made.submit("SELECT r.k, t.n FROM (SELECT DISTINCT k FROM s [RANGE 10 SECONDS]) AS r, t WHERE r.k = t.k")
    push(made, 1, 2)
    made.upsert("t", [{"k": 2, "n": 20}])
    assert answer(query) == []
    push(made, 12, 2)
    assert answer(query) == [(2, 20)]


def test_two_tables_and_one_twice_each_count_as_they_were() -> None:
    made = engine()
    query = made.submit(
        "SELECT r.k, a.n, b.n, u.n FROM (SELECT k, SUM(x) AS x FROM s [RANGE 10 SECONDS] GROUP BY k) AS r, t AS a, t AS b, u"
        " WHERE r.k = a.k AND a.k = b.k AND u.k = b.k"
    )
    push(made, 1, 1)
    made.upsert("t", [{"k": 1, "n": 11}])
    made.upsert("u", [{"k": 1, "n": 101}])
    assert answer(query) == [(1, 10, 10, 100)]
    push(made, 2, 1, x=5)
    assert answer(query) == [(1, 11, 11, 101)]


def test_what_a_live_table_brings_meets_the_other_table_as_it_was() -> None:
    made = engine(retroactive=True)
    query = made.submit(
        "SELECT r.k, t.n, u.n FROM (SELECT DISTINCT k FROM s [RANGE 10 SECONDS]) AS r, t, u WHERE r.k = t.k AND r.k = u.k"
    )
    push(made, 1, 1)
    made.upsert("u", [{"k": 1, "n": 101}])
    made.upsert("t", [{"k": 1, "n": 11}])
    assert answer(query) == [(1, 11, 100)]


def test_a_row_of_a_window_that_slides_meets_the_table_as_it_was_when_it_arrived() -> None:
    made = engine()
    query = made.submit("SELECT r.k, t.n FROM TUMBLE(s, INTERVAL '10' SECONDS) AS r, t WHERE r.k = t.k")
    push(made, 1, 1)
    made.upsert("t", [{"k": 1, "n": 11}])
    push(made, 2, 1)
    made.upsert("t", [{"k": 1, "n": 12}])
    made.advance(at(10))
    assert answer(query) == [(1, 10), (1, 11)]


def test_versions_that_no_row_can_ask_for_are_let_go_of() -> None:
    made = engine()
    text = "SELECT r.k, t.n FROM TUMBLE(s, INTERVAL '{}' SECONDS) AS r, t WHERE r.k = t.k"
    short, long = (made.submit(text.format(seconds)) for seconds in (1, 3600))
    sizes = []
    for second in range(1, 400):
        push(made, second, 1)
        made.upsert("t", [{"k": 1, "n": second}])
        sizes.append([query.explain()["storage"]["bytes"] for query in (short, long)])
    assert {size for size, _ in sizes[10:]} == {sizes[10][0]}, "those of a second, whatever came before"
    assert sizes[-1][1] > 4 * sizes[10][1], "an hour keeps them all"


def test_tables_alone_count_as_they_are() -> None:
    made = engine()
    query = made.submit("SELECT r.m, u.n FROM (SELECT MAX(n) AS m FROM t) AS r, u")
    made.upsert("u", [{"k": 1, "n": 101}])
    assert answer(query) == [(10, 101)]


@pytest.mark.parametrize("retroactive", [False, True])
def test_a_stream_that_a_query_makes_meets_the_table_as_it_was_when_its_row_was_taken(retroactive: bool) -> None:
    made = engine(retroactive)
    query = made.submit("SELECT r.x, t.n FROM (SELECT k, x FROM s) AS r, t WHERE r.k = t.k")
    push(made, 1, 1, x=1)
    made.upsert("t", [{"k": 1, "n": 11}])
    push(made, 2, 1, x=2)
    made.delete("t", [1])
    push(made, 3, 1, x=3)
    assert query.kind == "stream"
    assert answer(query) == [(1, 10), (2, 11)]


def test_rows_from_before_the_submit_meet_the_table_as_it_is_at_the_submit() -> None:
    made = engine(keep=dt.timedelta(minutes=1))
    push(made, 1, 1)
    made.upsert("t", [{"k": 1, "n": 11}])
    query = made.submit(
        "SELECT r.k, t.n FROM (SELECT DISTINCT k FROM s [RANGE 10 SECONDS]) AS r, t WHERE r.k = t.k", history="window"
    )
    assert answer(query) == [(1, 11)]
    made.upsert("t", [{"k": 1, "n": 12}])
    assert answer(query) == [(1, 11)]


@pytest.mark.parametrize("expiry", EXPIRIES)
@pytest.mark.parametrize("named", [False, True])
def test_a_value_that_is_handed_over_keeps_its_version_under_every_strategy(expiry: str, named: bool) -> None:
    made = engine()
    if named:
        made.submit("SELECT DISTINCT k FROM s [RANGE 10 SECONDS]", name="v", expiry=expiry)
    source = "v" if named else "(SELECT DISTINCT k FROM s [RANGE 10 SECONDS])"
    query = made.submit(f"SELECT r.k, t.n FROM {source} AS r, t WHERE r.k = t.k", expiry=expiry)
    push(made, 1, 1)
    push(made, 5, 1)
    made.upsert("t", [{"k": 1, "n": 11}])
    made.advance(at(12))
    assert answer(query) == [(1, 10)]
    made.advance(at(15))
    assert answer(query) == []


def test_a_new_reader_of_a_query_gets_the_versions_that_its_rows_met() -> None:
    made = engine()
    made.submit("SELECT r.k AS k, t.n AS n FROM (SELECT DISTINCT k FROM s [RANGE 10 SECONDS]) AS r, t WHERE r.k = t.k", name="v")
    push(made, 1, 1)
    made.upsert("t", [{"k": 1, "n": 11}])
    reader = made.submit("SELECT COUNT(*) AS c, MAX(n) AS n FROM v")
    assert answer(reader) == [(1, 10)]
    made.advance(at(20))
    assert answer(reader) == [(0, None)]
