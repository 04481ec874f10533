"""One test per point of the semantics page about joins, operators and windows in steps, named after the point.

As `tests/unit/test_semantics.py`, which has the others; the last test holds both to the whole list. Times are milliseconds.
"""

from __future__ import annotations

import ast
import math
import re
from collections import Counter
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from eddy import EddyError, Engine, QueryError
from tests.unit.test_semantics import EPOCH, V, held, make, push

ROOT = Path(__file__).resolve().parents[2]
#: Points whose words are about parts that only tests of those parts can see.
ELSEWHERE = {
    32: ["tests/unit/experiments/papers/test_errata.py::test_a_flag_speaks_for_scheduled_ends_only",
         "tests/unit/experiments/papers/test_errata.py::test_a_premature_end_is_not_a_join_message",
         "tests/unit/experiments/papers/test_exactness.py::test_premature_ends_travel_under_every_strategy"],
    33: ["tests/unit/experiments/papers/test_update_patterns_figures.py::test_query_4_keeps_the_results_of_distinct_once"],
    36: ["tests/model/test_merges.py::test_a_seed_of_merged_streams_passes",
         "tests/model/test_lmerge.py::test_a_seed_of_merges_in_from_passes",
         "tests/unit/eddy/test_lmerge.py::test_what_the_stream_that_moves_the_point_lacks_is_taken_back_at_the_clock"],
}  # fmt: skip


def rows(query: Any) -> list[tuple[Any, ...]]:
    return sorted((tuple(row.values()) for row in query.answer().to_pylist()), key=repr)


def said(query: Any, since: int = 0) -> list[tuple[float, int, tuple[Any, ...]]]:
    return [((c.time - EPOCH) / timedelta(milliseconds=1), c.sign, tuple(c.row.values())) for c in query.changes(since)]


def test_point_07_an_extent_holds_the_rows_before_its_boundary_and_is_shown_from_it_on() -> None:
    engine = make(s={}, other={})
    query = engine.submit("SELECT v FROM s [RANGE 10 MILLISECONDS SLIDE 5 MILLISECONDS]")
    tumble = engine.submit("SELECT v, window_start, window_end FROM TUMBLE(s, 5 MILLISECONDS)")
    holes = engine.submit("SELECT v FROM HOP(s, 10 MILLISECONDS, 2 MILLISECONDS)")
    push(engine, "s", (101, 1), (104, 2), (105, 3), (109, 4))
    found = []
    for now in (109, 110, 114, 115, 120):
        engine.advance(now)
        found.append((held(query), [row[0] for row in rows(tumble)], held(holes)))
    assert found == [
        ([1, 2], [1, 2], []), ([1, 2, 3, 4], [3, 4], [4]), ([1, 2, 3, 4], [3, 4], [4]), ([3, 4], [], [4]), ([], [], []),
    ]  # fmt: skip
    (_, start, end), *_ = (tuple(c.row.values()) for c in tumble.changes(0))
    assert (start - EPOCH, end - EPOCH) == (timedelta(milliseconds=100), timedelta(milliseconds=105))
    # a row that lags joins from the next boundary on
    push(engine, "other", (127, 0))
    push(engine, "s", (121, 5))
    assert held(query) == []
    engine.advance(130)
    assert held(query) == [5]
    missed = {"slide 0": 1, "slide 1": 1}  # the boundary at 125, of the window in brackets and of the tumbling one
    for shown in (query.explain(), tumble.explain()):
        found = {entry["name"]: entry["holds"]["missed"] for entry in shown["operators"] if "missed" in entry.get("holds", {})}
        assert found and found.items() <= missed.items()


def test_point_10_rows_that_queries_share_end_for_each_by_its_own_windows() -> None:
    engine = make(a={}, b={})
    widths = [(5, 50), (50, 5), (20, 20), (20, 20)]
    queries = [
        engine.submit(f"SELECT a.v FROM a [RANGE {x} MILLISECONDS] JOIN b [RANGE {y} MILLISECONDS] ON a.v = b.v")
        for x, y in widths
    ]
    push(engine, "a", (100, 1))
    push(engine, "b", (102, 1))
    ends = {k: min(100 + x, 102 + y) for k, (x, y) in enumerate(widths)}
    for now in range(102, 125):
        engine.advance(now)
        assert [held(query) for query in queries] == [[1] if now < ends[k] else [] for k in range(4)]


def test_point_14_a_self_join_pairs_a_row_with_itself() -> None:
    engine = make()
    query = engine.submit("SELECT x.v, y.v AS w FROM s [RANGE 9 MILLISECONDS] x JOIN s [RANGE 9 MILLISECONDS] y ON x.v <= y.v")
    push(engine, "s", (100, 1), (101, 2))
    assert rows(query) == [(1, 1), (1, 2), (2, 2)]


def test_point_15_a_table_counts_as_it_was_or_sends_changes_for_live_rows() -> None:
    engine = make()
    for name, retroactive in (("frozen", False), ("live", True)):
        engine.create_table(name, {"v": "int", "n": "int"}, key="v", retroactive=retroactive)
        engine.upsert(name, {"v": [1], "n": [10]})
    queries = {
        name: engine.submit(f"SELECT s.v, n FROM s [RANGE 50 MILLISECONDS] JOIN {name} ON s.v = {name}.v")
        for name in ("frozen", "live")
    }
    push(engine, "s", (100, 1))
    seq = int(queries["live"].answer().schema.metadata[b"seq"])
    for name in queries:
        engine.upsert(name, {"v": [1], "n": [20]})
    assert said(queries["frozen"], seq) == []
    assert said(queries["live"], seq) == [(100, -1, (1, 10)), (100, 1, (1, 20))]
    engine.advance(150)
    assert said(queries["frozen"])[-1] == (150, -1, (1, 10)) and said(queries["live"])[-1] == (150, -1, (1, 20))


def test_point_16_history_is_what_is_stored_and_a_named_query_counts_whole() -> None:
    engine = make(s={"keep": 20})
    by_name = engine.submit("SELECT v FROM s [RANGE 100 MILLISECONDS]", name="all_of_it")
    push(engine, "s", (100, 1), (140, 2), (150, 3))
    later = {
        history: engine.submit("SELECT COUNT(*) AS n FROM s [RANGE 100 MILLISECONDS]", history=history)
        for history in ("new", "window")
    }
    named = engine.submit("SELECT COUNT(*) AS n FROM all_of_it AS q")
    # rows stay for the largest window of a query
    assert {history: rows(query) for history, query in later.items()} == {"new": [(0,)], "window": [(3,)]}
    assert rows(named) == [(3,)] and len(by_name.answer()) == 3
    assert later["window"].complete_since is not None
    engine.advance(205)
    assert (rows(later["window"]), rows(named)) == ([(2,)], [(2,)])


def test_point_17_a_scalar_aggregate_always_has_one_row_and_an_empty_group_none() -> None:
    engine = make()
    scalar = engine.submit("SELECT COUNT(*) AS n, SUM(v) AS s, MIN(v) AS m FROM s [RANGE 10 MILLISECONDS]")
    grouped = engine.submit("SELECT v, COUNT(*) AS n FROM s [RANGE 10 MILLISECONDS] GROUP BY v")
    assert (rows(scalar), rows(grouped)) == ([(0, None, None)], [])
    push(engine, "s", (100, 7), (101, None))
    assert rows(scalar) == [(2, 7, 7)] and rows(grouped) == [(7, 1), (None, 1)]
    engine.advance(200)
    assert (rows(scalar), rows(grouped)) == ([(0, None, None)], [])


@pytest.mark.parametrize(
    ("word", "copies"),
    [
        ("EXCEPT ALL", lambda n, m: max(0, n - m)), ("EXCEPT", lambda n, m: int(n > 0 and m == 0)),
        ("INTERSECT ALL", min), ("INTERSECT", lambda n, m: int(n > 0 and m > 0)),
        ("UNION ALL", lambda n, m: n + m), ("UNION", lambda n, m: int(n + m > 0)),
    ],
)  # fmt: skip
def test_point_18_set_operators_are_functions_of_two_counts(word: str, copies: Any) -> None:
    engine = make(a={}, b={})
    query = engine.submit(f"SELECT v FROM a [RANGE 1 HOUR] {word} SELECT v FROM b [RANGE 1 HOUR]")
    counts = {(n, m): 10 * n + m for n in range(4) for m in range(4)}
    given = {name: [(1, v) for pair, v in counts.items() for _ in range(pair[k])] for k, name in enumerate("ab")}
    # NULLs equal each other: twice on the left, once on the right
    push(engine, "a", *given["a"], (1, None), (1, None))
    push(engine, "b", *given["b"], (1, None))
    assert Counter(held(query)) == +Counter({**{v: copies(*pair) for pair, v in counts.items()}, None: copies(2, 1)})


def test_point_18_null_keys_never_join() -> None:
    engine = make(a={}, b={})
    query = engine.submit("SELECT a.v FROM a [RANGE 1 HOUR] JOIN b [RANGE 1 HOUR] ON a.v = b.v")
    push(engine, "a", (1, None), (1, 1))
    push(engine, "b", (1, None), (1, 1))
    assert held(query) == [1]


def test_point_19_streams_say_the_net_of_each_event_and_the_answer_once_the_clock_has_passed() -> None:
    engine = make()
    over = "SELECT DISTINCT v FROM s [RANGE 10 MILLISECONDS]"
    plus, minus, whole = (engine.submit(f"{word} ({over})") for word in ("ISTREAM", "DSTREAM", "RSTREAM"))
    push(engine, "s", (100, 1), (105, 1), (105, 2))
    assert said(whole) == [(100, 1, (1,))]  # 105 has not passed
    engine.advance(120)
    # at 110 another row takes the value over, which is no change
    assert said(plus) == [(100, 1, (1,)), (105, 1, (2,))]
    assert sorted(said(minus)) == [(115, 1, (1,)), (115, 1, (2,))]
    assert sorted(said(whole)) == [(100, 1, (1,)), (105, 1, (1,)), (105, 1, (2,))]
    again = make()
    (one_commit,) = [again.submit(f"ISTREAM ({over})")]
    push(again, "s", (100, 1))
    push(again, "s", (105, 1))
    push(again, "s", (105, 2))
    again.advance(120)
    assert said(one_commit) == said(plus)


def test_point_20_aggregates_are_exact_for_ints_and_as_duckdb_says_elsewhere() -> None:
    engine = make()
    query = engine.submit(
        "SELECT SUM(v) AS s, MEDIAN(v) AS m, STDDEV(v) AS d, FIRST(x) AS f, LAST(x) AS l, MAX(x) AS top FROM s [RANGE 1 HOUR]"
    )
    ints = [2**53, 1, 2, 3]
    nan = math.nan
    engine.push("s", {"v": ints, "x": [None, 1.0, nan, None], "ts": [1, 1, 2, 2]})
    (row,) = rows(query)
    mean = sum(ints) / 4
    assert row[:2] == (2**53 + 6, 2.5)
    assert row[2] == pytest.approx(math.sqrt(sum((v - mean) ** 2 for v in ints) / 3), rel=1e-9)
    assert row[3] is None and row[4] is None and math.isnan(row[5])  # FIRST and LAST take NULLs, NaN is above all
    engine.push("s", {"v": [2**63 - 1], "ts": [3]})
    assert rows(query)[0][0] is None and engine.stats()["queries"][query.name]["errors"] == 1


def test_point_24_expiry_and_emit_belong_to_a_query_with_the_engine_s_default() -> None:
    engine = Engine(expiry="negative")
    engine.create_stream("s", V, time="ts")
    sql = "SELECT DISTINCT v FROM s [RANGE 10 MILLISECONDS]"
    queries = [engine.submit(sql), engine.submit(sql, expiry="direct", emit="event")]
    assert [query.explain()["expiry"] for query in queries] == ["negative", "direct"]
    push(engine, "s", (100, 1), (120, 2))
    assert said(queries[0]) == [(120, 1, (2,))]
    assert said(queries[1]) == [(100, 1, (1,)), (110, -1, (1,)), (120, 1, (2,))]
    for call in (lambda: engine.submit(sql, expiry="soon"), lambda: Engine(expiry="soon")):
        with pytest.raises(EddyError) as error:
            call()
        assert error.value.code == "bad_option" and "update-pattern" in f"{error.value.fact} {error.value.hint}"


def test_point_23_stems_and_tables_have_the_same_names_in_stats_explain_and_fixed() -> None:
    def rows_in(first: str) -> dict[str, int]:
        engine = Engine(policy=f"fixed:{first}")
        for name in "ab":
            engine.create_stream(name, V, time="ts")
        engine.create_table("t", {"k": "int"}, key="k")
        query = engine.submit("SELECT a.v FROM a [NOW], b [NOW], t WHERE a.v = b.v AND a.v = t.k")
        engine.push_many({name: {"v": range(n), "ts": [1] * n} for name, n in (("a", 4), ("b", 2))})
        modules = engine.stats()["modules"]
        assert set(modules) == set(query.explain()["modules"])
        return {name: module["rows_in"] for name, module in modules.items()}

    by_stem, by_table = rows_in("stem:b.v,table:t.k"), rows_in("table:t.k,stem:b.v")
    assert {"stem:a.v", "stem:b.v", "table:t.k"} == set(by_stem) and by_stem["stem:b.v"] == 4
    assert (by_table["table:t.k"], by_table["stem:b.v"]) == (6, 0)  # the table is empty


def test_point_26_at_most_eight_functions_of_a_stream_wait_for_a_partner() -> None:
    engine = Engine(policy="fixed:stem:b.v")
    for name in "ab":
        engine.create_stream(name, V, time="ts")
    called: Counter[str] = Counter()
    for k in range(9):
        engine.register(f"f{k}", lambda v, k=k: bool(called.update([f"f{k}"])) or True, returns="bool", cost=500.0)
    asked = " AND ".join(f"f{k}(a.v)" for k in range(9))
    query = engine.submit(f"SELECT a.v FROM a [RANGE 1 HOUR], b [RANGE 1 HOUR] WHERE a.v = b.v AND {asked}")
    push(engine, "b", (1, 1))
    push(engine, "a", (1, 1), (1, 2), (1, 3))
    assert held(query) == [1] and sorted(called.values()) == [1] * 8 + [3]


def test_point_26_a_match_counts_when_its_life_is_not_empty() -> None:
    engine = make(a={}, b={})
    query = engine.submit("SELECT a.v FROM a [RANGE 10 MILLISECONDS] JOIN b [RANGE 30 MILLISECONDS] ON a.v = b.v")
    push(engine, "a", (100, 1))
    push(engine, "b", (109, 1))  # 9 after: alive for one more
    push(engine, "b", (110, 1))  # 10 after: the row is over
    push(engine, "a", (105, 1))  # lags: starts at 110, lives to 115, and meets both
    assert said(query) == [(109, 1, (1,)), (110, -1, (1,)), (110, 1, (1,)), (110, 1, (1,))]


def test_point_27_two_partners_that_die_together_give_one_minus() -> None:
    engine = make(a={}, b={})
    query = engine.submit("SELECT a.v FROM a [RANGE 10 MILLISECONDS] JOIN b [RANGE 10 MILLISECONDS] ON a.v = b.v", emit="event")
    counted = engine.submit("SELECT COUNT(*) AS n FROM a [RANGE 10 MILLISECONDS] JOIN b [RANGE 10 MILLISECONDS] ON a.v = b.v")
    engine.push_many({name: {"v": [1, 2], "ts": [100, 101 + k]} for k, name in enumerate("ab")})
    engine.advance(200)
    assert said(query) == [(100, 1, (1,)), (102, 1, (2,)), (110, -1, (1,)), (111, -1, (2,))]
    assert rows(counted) == [(0,)]


@pytest.mark.parametrize(
    ("sql", "says"),
    [
        ("SELECT x.v FROM (SELECT DISTINCT v FROM s [RANGE 1 HOUR]) [RANGE 1 HOUR] AS x", "ISTREAM"),
        ("SELECT s.v FROM s [RANGE UNBOUNDED] JOIN b [RANGE 1 HOUR] ON s.v = b.v", "UNBOUNDED"),
        ("SELECT COUNT(*) AS n FROM s", "RANGE"),
        ("SELECT v FROM s [RANGE 1 HOUR] ORDER BY v", "ORDER BY"),
        ("SELECT s.v FROM s [RANGE 1 HOUR] LEFT JOIN b [RANGE 1 HOUR] ON s.v = b.v", "LEFT"),
        ("SELECT SUM(v) OVER () AS n FROM s [RANGE 1 HOUR]", "OVER"),
    ],
)
def test_the_language_refuses_by_name_what_it_does_not_have(sql: str, says: str) -> None:
    """Contract 4: every error names the fact, the line and column, and a hint."""
    with pytest.raises(QueryError) as error:
        make(s={}, b={}).submit(sql)
    assert says in f"{error.value.fact} {error.value.hint}" and error.value.line == 1 and error.value.column > 1


def test_a_query_is_not_cancelled_while_another_reads_it() -> None:
    """Contract 2: refused, and the readers are listed."""
    engine = make()
    below = engine.submit("SELECT v FROM s [RANGE 1 HOUR]", name="below")
    above = engine.submit("SELECT COUNT(*) AS n FROM below AS q", name="above")
    with pytest.raises(EddyError) as error:
        below.cancel()
    assert error.value.code == "in_use" and error.value.detail == "queries: above"
    above.cancel()
    below.cancel()


def test_every_point_of_the_semantics_has_a_test() -> None:
    found = set()
    for name in ("test_semantics.py", "test_semantics_windows.py"):
        for node in ast.parse((ROOT / "tests" / "unit" / name).read_text()).body:
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_point_"):
                found.add(int(node.name.split("_")[2]))
    for named in (test for tests in ELSEWHERE.values() for test in tests):
        path, _, test = named.partition("::")
        assert f"def {test}(" in (ROOT / path).read_text(), named
    assert sorted(found | set(ELSEWHERE)) == [*range(1, 35), 36]


def test_points_of_later_work_say_that_they_are_not_built_yet() -> None:
    text = (ROOT / "docs" / "semantics.md").read_text()
    points = dict(re.findall(r"^(\d+)\. (.*?)(?=^\d+\. |^## )", text, re.MULTILINE | re.DOTALL))
    assert all("not built yet" in points[str(n)].lower() for n in (35, 37, 38, 39))
    built = {n for n, point in points.items() if "not built yet" not in point.lower()}
    assert built == {str(n) for n in (*range(1, 35), 36)} - {"2", "9"}  # which name one part each that comes later
