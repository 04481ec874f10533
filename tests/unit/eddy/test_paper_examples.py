"""The examples of the three window papers as plain SQL: the engine's answer is right at every time, under every strategy.

What the papers show of queues, messages and late answers is in `tests/unit/experiments/papers`; here the same rows are pushed one
at a time, T0, T1, .. as microseconds, and the answer is read at each.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from eddy import Engine
from tests.reference.workload import to_datetime

EXPIRIES = ("input", "negative", "negative+message", "piggyback", "direct", "update-pattern", "auto")
Row = tuple[Any, ...]


def engine_with(expiry: str, *names: str, **options: Any) -> Engine:
    engine = Engine(expiry=expiry)
    columns = {"v": "int", "id": "int", "ts": "timestamp[us]"} | ({"until": "timestamp[us]"} if "end" in options else {})
    for name in names:
        engine.create_stream(name, columns, time="ts", **options)
    return engine


def answers(engine: Engine, sql: str, rows: Mapping[str, Sequence[Row]], upto: int, first: int = 0) -> list[list[Any]]:
    """The first column of the answer at each time: (time, v, id, until), and (time, None, id) for a retraction."""
    query = engine.submit(sql)
    found = []
    for time in range(first, upto + 1):
        for name, given in rows.items():
            for at, v, *rest in given:
                if at != time:
                    continue
                if v is None:
                    engine.retract(name, rest[:1], to_datetime(time))
                else:
                    row = {"v": [v], "ts": [time], "id": [rest[0] if rest else None]}
                    engine.push(name, row | ({"until": [rest[1]]} if len(rest) > 1 else {}))
        engine.advance(to_datetime(time))
        found.append(sorted(query.answer().column(0).to_pylist()))
    engine.check()
    return found


@pytest.mark.parametrize("expiry", EXPIRIES)
def test_q1_counts_favourite_items_right_at_every_time(expiry: str) -> None:
    """N Figures 2, 4 and 9: with one exact answer a commit no strategy is late."""
    engine = engine_with(expiry, "sales")
    engine.create_table("favourites", {"v": "int"}, key=["v"])
    engine.upsert("favourites", {"v": [4, 5]})
    sales = [(0, 4), (1, 5), (2, 1), (3, 4), (4, 5), (5, 2), (6, 1), (7, 5), (8, 1), (10, 4)]
    sql = "SELECT COUNT(*) AS n FROM sales [RANGE 5 MICROSECONDS] JOIN favourites ON sales.v = favourites.v"
    assert answers(engine, sql, {"sales": sales}, 9) == [[n] for n in (1, 2, 2, 3, 4, 3, 2, 3, 2, 1)]


@pytest.mark.parametrize("expiry", EXPIRIES)
def test_w_distinct(expiry: str) -> None:
    """N Figure 5: values 1 and 4 come twice, and stay when the first of them expires."""
    engine = engine_with(expiry, "s")
    rows = {"s": [(1, 1), (3, 4), (4, 1), (5, 5), (6, 4)]}
    found = answers(engine, "SELECT DISTINCT v FROM s [RANGE 6 MICROSECONDS]", rows, 12)
    assert found[5:] == [[1, 4, 5]] * 5 + [[4, 5], [4], []]


@pytest.mark.parametrize("expiry", EXPIRIES)
def test_w_minus(expiry: str) -> None:
    """N Figure 6: 1 is taken back at T6, 5 is shown at T8, when the right one expires."""
    engine = engine_with(expiry, "s", "r")
    rows = {"s": [(3, 2), (4, 1), (5, 3), (7, 5)], "r": [(2, 5), (6, 1)]}
    sql = "SELECT v FROM s [RANGE 6 MICROSECONDS] EXCEPT ALL SELECT v FROM r [RANGE 6 MICROSECONDS]"
    assert answers(engine, sql, rows, 8, first=2) == [[], [2], [1, 2], [1, 2, 3], [2, 3], [2, 3], [2, 3, 5]]


@pytest.mark.parametrize("expiry", EXPIRIES)
def test_q2_has_no_maximum_once_the_row_that_all_joined_is_over(expiry: str) -> None:
    """N Figure 7: a row at T1 joins three; at T6 all three results end."""
    engine = engine_with(expiry, "s1", "s2")
    rows = {"s1": [(1, 6, 10)], "s2": [(2, 6, 30), (3, 6, 50), (4, 6, 40)]}
    sql = "SELECT MAX(s2.id) AS m FROM s1 [RANGE 5 MICROSECONDS] JOIN s2 [RANGE 5 MICROSECONDS] ON s1.v = s2.v"
    assert answers(engine, sql, rows, 6, first=1) == [[None], [30], [50], [50], [50], [None]]


@pytest.mark.parametrize("expiry", EXPIRIES)
def test_the_aggregate_of_the_mixed_model(expiry: str) -> None:
    """G Figures 3 and 4: three rows that overlap, with their ends; and no group when they are over."""
    rows = {"s": [(1, 1, 0, 6), (2, 2, 0, 8), (4, 4, 0, 9)]}
    sums = [1, 3, 3, 7, 7, 6, 6, 4]
    scalar = answers(engine_with(expiry, "s", end="until"), "SELECT SUM(v) AS s FROM s [RANGE UNBOUNDED]", rows, 9, first=1)
    assert scalar == [[n] for n in sums] + [[None]]
    sql = "SELECT SUM(v) AS s FROM s [RANGE UNBOUNDED] GROUP BY id"
    grouped = answers(engine_with(expiry, "s", end="until"), sql, rows, 9, first=1)
    assert grouped == [[n] for n in sums] + [[]]


@pytest.mark.parametrize(("key", "ends"), [(1, 8), (2, 6)])
@pytest.mark.parametrize("expiry", EXPIRIES)
def test_distinct_of_the_mixed_model_goes_by_the_key(expiry: str, key: int, ends: int) -> None:
    """G Figure 5: two rows of one value with different ends; which of them is retracted decides how long the value stays."""
    engine = engine_with(expiry, "s", key=["id"], end="until")
    rows = {"s": [(2, 2, 1, 6), (3, 2, 2, 8), (4, None, key)]}
    found = answers(engine, "SELECT DISTINCT v FROM s [RANGE UNBOUNDED]", rows, 9, first=2)
    assert found == [[2] if time < ends else [] for time in range(2, 10)]


@pytest.mark.parametrize("expiry", EXPIRIES)
def test_minus_of_the_mixed_model(expiry: str) -> None:
    """G Figure 6: a 1 on the right from 3 to 6, and a 2 that comes too late to matter."""
    engine = engine_with(expiry, "s", "r", end="until")
    rows = {"s": [(1, 1, 0, 9), (2, 2, 0, 7)], "r": [(3, 1, 0, 6), (8, 2, 0, 12)]}
    sql = "SELECT v FROM s [RANGE UNBOUNDED] EXCEPT ALL SELECT v FROM r [RANGE UNBOUNDED]"
    assert answers(engine, sql, rows, 9, first=1) == [[1], [1, 2], [2], [2], [2], [1, 2], [1], [1], []]


def test_one_phenomenon_in_three_models_of_streams_has_one_answer() -> None:
    """G Figure 1: positive and negative rows, a window over equal lives, rows with their ends."""
    lives = [(1, 7, 1), (3, 8, 2), (4, 7, 3)]
    signed = [(time, v, id) for time, v, id in lives] + [(time + 5, None, id) for time, _, id in lives]
    given = {
        "signed": (engine_with("auto", "s", key=["id"]), "s [RANGE UNBOUNDED]", signed),
        "window": (engine_with("auto", "s"), "s [RANGE 5 MICROSECONDS]", lives),
        "temporal": (engine_with("auto", "s", end="until"), "s [RANGE UNBOUNDED]", [(*row, row[0] + 5) for row in lives]),
    }
    found = {
        model: answers(engine, f"SELECT v FROM {source}", {"s": rows}, 10) for model, (engine, source, rows) in given.items()
    }
    assert found["window"] == [[], [7], [7], [7, 8], [7, 7, 8], [7, 7, 8], [7, 8], [7, 8], [7], [], []]
    assert found["signed"] == found["temporal"] == found["window"]


@pytest.mark.parametrize("expiry", EXPIRIES)
def test_results_of_a_join_end_in_another_order_than_they_came(expiry: str) -> None:
    """U Figures 1 and 5: u was first and joins last; its result is the younger one and ends first."""
    engine = engine_with(expiry, "w1", "w2")
    rows = {"w1": [(1, 1), (4, 2)], "w2": [(5, 2), (6, 1)]}
    sql = "SELECT w1.v FROM w1 [RANGE 10 MICROSECONDS] JOIN w2 [RANGE 10 MICROSECONDS] ON w1.v = w2.v"
    found = answers(engine, sql, rows, 14)
    assert found[5:] == [[2]] + [[1, 2]] * 5 + [[2]] * 3 + [[]]


LINKS = "abc"
WINDOW = "[RANGE 7 MICROSECONDS]"
#: U Figures 6 and 8: v is the source address, id the protocol, ftp is 1.
QUERIES = {
    "1": f"SELECT a.v FROM a {WINDOW} JOIN b {WINDOW} ON a.v = b.v WHERE a.id = 1 AND b.id = 1",
    "2": f"SELECT DISTINCT v FROM a {WINDOW}",
    "3": f"SELECT v FROM a {WINDOW} EXCEPT ALL SELECT v FROM b {WINDOW}",
    "4": f"SELECT x.v FROM (SELECT DISTINCT v FROM a {WINDOW}) AS x JOIN (SELECT DISTINCT v FROM b {WINDOW}) AS y ON x.v = y.v",
    "5": f"SELECT n.v FROM (SELECT v FROM a {WINDOW} EXCEPT ALL SELECT v FROM b {WINDOW}) AS n"
    f" JOIN c {WINDOW} ON n.v = c.v WHERE c.id = 1",
}


def recomputed(query: str, windows: dict[str, list[tuple[int, int]]]) -> Counter[int]:
    """The one-time query over the windows, by hand."""
    ftp = {name: [v for v, protocol in rows if protocol == 1] for name, rows in windows.items()}
    values = {name: [v for v, _ in rows] for name, rows in windows.items()}
    match query:
        case "1":
            return Counter(a for a in ftp["a"] for b in ftp["b"] if a == b)
        case "2":
            return Counter(set(values["a"]))
        case "3":
            return Counter(values["a"]) - Counter(values["b"])
        case "4":
            return Counter(set(values["a"]) & set(values["b"]))
    left = Counter(values["a"]) - Counter(values["b"])
    return Counter(v for v in left.elements() for c in ftp["c"] if v == c)


@pytest.mark.parametrize("expiry", EXPIRIES)
@pytest.mark.parametrize("query", QUERIES)
def test_the_five_queries_of_the_update_pattern_paper(query: str, expiry: str) -> None:
    rng = random.Random(1)
    rows: dict[str, list[Row]] = {
        name: [(time, rng.randrange(4), rng.randrange(2)) for time in range(k, 40, 1 + k)] for k, name in enumerate(LINKS)
    }
    found = answers(engine_with(expiry, *LINKS), QUERIES[query], rows, 50)
    for time, answer in enumerate(found):
        windows = {name: [(v, p) for at, v, p in given if at <= time < at + 7] for name, given in rows.items()}
        assert Counter(answer) == recomputed(query, windows), time
    assert len({tuple(answer) for answer in found}) > 4
