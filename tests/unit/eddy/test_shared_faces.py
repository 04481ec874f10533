"""Queries that show the same sums in their own way: constants, names, windows in steps, DISTINCT; as each alone would."""

from __future__ import annotations

import math
from typing import Any

import pytest

from eddy import Engine
from eddy.matching.commit import Commit
from eddy.operators.shared.shared_group import SharedGroup
from eddy.query import Query

SPAN = "[RANGE 10 MILLISECONDS]"
STEPS = "[RANGE 10 MILLISECONDS SLIDE 5 MILLISECONDS]"


@pytest.fixture
def engine() -> Engine:
    engine = Engine()
    columns = {"g": "string", "a": "int", "x": "float", "ts": "timestamp[ms]"}
    engine.create_stream("s", columns, time="ts")
    engine.create_stream("other", columns, time="ts")
    return engine


def push(engine: Engine, *rows: tuple[str, int, float, int], stream: str = "s") -> None:
    engine.push(stream, dict(zip(("g", "a", "x", "ts"), map(list, zip(*rows)), strict=True)))


def groups(engine: Engine) -> list[SharedGroup]:
    return list(engine._committer.templates.shared)


def n_faces(engine: Engine) -> int:
    (group,) = groups(engine)
    return len(group.readers().faces)


def rows(query: Query) -> list[tuple[Any, ...]]:
    return sorted(tuple(row.values()) for row in query.answer().to_pylist())


def signed(query: Query) -> list[tuple[Any, ...]]:
    """Milliseconds of the time, sign and values of all changes."""
    return [(round(change.time.timestamp() * 1000), change.sign, *change.row.values()) for change in query.changes(since=0)]


# ---- constants


def test_queries_that_differ_in_constants_are_one_face(engine: Engine) -> None:
    text = f"SELECT g, SUM(x) * :by AS s, :tag AS tag FROM s {SPAN} WHERE a < 9 GROUP BY g HAVING COUNT(*) >= :least"
    given = [{"by": 2, "tag": "two", "least": 1}, {"by": 3, "tag": "three", "least": 2}, {"by": 0, "tag": "none", "least": 1}]
    queries = [engine.submit(text, params=params) for params in given]
    push(engine, ("u", 1, 1.5, 0), ("u", 1, 1.0, 1), ("v", 1, 4.0, 1))
    assert n_faces(engine) == 1
    assert [rows(query) for query in queries] == [
        [("u", 5.0, "two"), ("v", 8.0, "two")], [("u", 7.5, "three")], [("u", 0.0, "none"), ("v", 0.0, "none")]
    ]  # fmt: skip


def test_the_type_of_a_constant_is_part_of_the_face(engine: Engine) -> None:
    for least in (1, 1.5, 2):
        engine.submit(f"SELECT g, COUNT(*) AS n FROM s {SPAN} GROUP BY g HAVING AVG(x) > {least}")
    push(engine, ("u", 1, 1.0, 0))
    assert n_faces(engine) == 2


@pytest.mark.parametrize(
    "column",
    [
        "CASE WHEN COUNT(*) > 5 THEN {} ELSE 0 END", "COUNT(*) IN (1, {})", "CAST(COUNT(*) AS string) LIKE '{}%'",
        "ROUND(AVG(x), {})", "POWER(AVG(x), {})", "STRFTIME(MAX(ts), '%H {}')", "SUBSTR(CAST(COUNT(*) AS string), {})",
        "SUM(x) + LENGTH('{}')",
    ],
)  # fmt: skip
def test_patterns_formats_lists_units_and_branches_keep_their_constants(engine: Engine, column: str) -> None:
    queries = [engine.submit(f"SELECT g, {column.format(k)} AS c FROM s {SPAN} GROUP BY g") for k in (1, 2)]
    twins = [engine.submit(query.sql, expiry="direct") for query in queries]
    push(engine, ("u", 1, 2.25, 0), ("u", 1, 0.5, 1))
    # what is constant altogether is a constant like any other
    assert n_faces(engine) == (1 if "LENGTH" in column else 2)
    assert [rows(query) for query in queries] == [rows(twin) for twin in twins]


def test_constants_may_be_null_nan_and_zeros_of_either_sign(engine: Engine) -> None:
    text = f"SELECT g, :c * MIN(x) AS c, :d AS d FROM s {SPAN} GROUP BY g HAVING MIN(x) <= :d"
    values = [math.nan, -0.0, 0.0, math.inf]
    queries = [engine.submit(text, params={"c": value, "d": value}) for value in values]
    none = engine.submit(f"SELECT g, CAST(NULL AS float) * MIN(x) AS c, CAST(NULL AS float) AS d FROM s {SPAN} GROUP BY g")
    push(engine, ("u", 1, -2.0, 0))
    found = [tuple(map(repr, row)) for query in queries for row in rows(query)]
    assert found == [("'u'", "nan", "nan"), ("'u'", "0.0", "-0.0"), ("'u'", "-0.0", "0.0"), ("'u'", "-inf", "inf")]
    assert rows(none) == [("u", None, None)]


def test_a_constant_that_cannot_be_divided_by_is_counted_for_its_query_alone(engine: Engine) -> None:
    queries = [engine.submit(f"SELECT g, COUNT(*) / {by} AS c FROM s {SPAN} GROUP BY g") for by in (0, 2)]
    push(engine, ("u", 1, 1.0, 0))
    assert [rows(query) for query in queries] == [[("u", None)], [("u", 0.5)]]
    assert [engine.stats()["queries"][query.name]["errors"] for query in queries] == [1, 0]


def test_a_query_that_takes_the_place_of_a_cancelled_one_has_its_own_constants(engine: Engine) -> None:
    text = f"SELECT g, COUNT(*) + :c AS c FROM s {SPAN} WHERE a < 5 GROUP BY g"
    first, second = (engine.submit(text, params={"c": c}) for c in (100, 200))
    push(engine, ("u", 1, 1.0, 0))
    first.cancel()
    third = engine.submit(text, params={"c": 300})
    assert (rows(second), rows(third)) == ([("u", 201)], [])
    push(engine, ("u", 1, 1.0, 1))
    assert (rows(second), rows(third)) == ([("u", 202)], [("u", 301)])
    engine.check()


def test_listeners_get_each_query_under_the_names_that_it_gave(engine: Engine) -> None:
    named: dict[int, list[str]] = {}
    for name in ("n", "m", "n"):
        query = engine.submit(f"SELECT g, COUNT(*) AS {name} FROM s {SPAN} WHERE a < {len(named) + 2} GROUP BY g")
        named[query.id] = ["g", name]
    found: dict[int, list[str]] = {}

    def listen(commit: Commit) -> None:
        if commit.n_rows:
            ids, offsets, numbers = commit.row_lists()
            assert offsets[-1] == len(numbers) == commit.counts()[1].sum() and numbers.max() < commit.n_rows == len(commit.time)
            found.update(dict.fromkeys(ids.tolist(), list(commit.columns)))

    engine.on_commit(listen)
    push(engine, ("u", 1, 1.0, 0), ("v", 0, 1.0, 0))
    assert found == named and n_faces(engine) == 1


# ---- conditions


def test_conditions_on_texts_functions_and_several_columns_count_the_rows_of_each(engine: Engine) -> None:
    engine.register("odd", lambda value: value % 2 == 1, returns="bool")
    texts = ["g LIKE 'u%'", "odd(a)", "odd(a) OR g = 'v'", "x > 1 AND a > 1", "x + a > 4", "g LIKE 'u%' AND odd(a)"]
    queries = [engine.submit(f"SELECT COUNT(*) AS n, MAX(a) AS h FROM s {SPAN} WHERE {text}") for text in texts]
    push(engine, ("u", 1, 1.5, 0), ("v", 2, 2.5, 1), ("uu", 3, 0.5, 2))
    assert [query.answer().to_pylist() for query in queries] == [
        [{"n": n, "h": h}] for n, h in [(2, 3), (2, 3), (3, 3), (1, 2), (1, 2), (2, 3)]
    ]
    engine.advance(12)
    assert [query.answer().to_pylist()[0]["n"] for query in queries] == [0] * 6
    assert len(groups(engine)) == 2, "x + a is a column, whose intervals tell conditions apart"


# ---- windows in steps


@pytest.mark.parametrize("source", [f"s {STEPS}", "TUMBLE(s, 5 MILLISECONDS)", "HOP(s, 5 MILLISECONDS, 10 MILLISECONDS)"])
def test_several_boundaries_in_one_commit_show_the_net_change(engine: Engine, source: str) -> None:
    bound = "" if "RANGE" in source else ", window_end"
    text = f"SELECT g{bound}, COUNT(*) AS n FROM {source} WHERE a < 5 GROUP BY g{bound}"
    shared, own = engine.submit(text), engine.submit(text, expiry="direct")
    for t in (1, 4, 9, 23, 24, 60):
        push(engine, ("u", 1, 1.0, t), ("v", 1, 1.0, t))
    assert len(groups(engine)) == 1 and rows(shared) == rows(own)
    assert sorted(signed(shared)) == sorted(signed(own)) and len(signed(own)) == 4


def test_an_extent_is_shown_again_though_no_row_left_or_joined_it(engine: Engine) -> None:
    hop = "HOP(s, 5 MILLISECONDS, 20 MILLISECONDS)"
    text = f"SELECT window_end, COUNT(*) AS n FROM {hop} WHERE a < 5 GROUP BY window_end"
    shared, own = engine.submit(text), engine.submit(text, expiry="direct")
    push(engine, ("u", 1, 1.0, 1))
    for now in (5, 10, 15, 20, 25):
        engine.advance(now)
        assert rows(shared) == rows(own) and len(rows(own)) == (now <= 20)
    assert signed(shared) == signed(own)


def test_what_an_extent_showed_is_known_by_query_while_others_come_and_go(engine: Engine) -> None:
    text = "SELECT window_end, COUNT(*) AS n, {c} AS c FROM TUMBLE(s, 5 MILLISECONDS) WHERE a < {c} GROUP BY window_end"
    queries = [engine.submit(text.format(c=c)) for c in (2, 3, 4)]
    twins = [engine.submit(query.sql, expiry="direct") for query in queries]
    push(engine, ("u", 1, 1.0, 1), ("u", 2, 1.0, 2))
    engine.advance(6)
    queries.pop(0).cancel()
    twins.pop(0).cancel()
    queries.append(engine.submit(text.format(c=5)))
    twins.append(engine.submit(text.format(c=5), expiry="direct"))
    push(engine, ("u", 4, 1.0, 7))
    engine.advance(11)
    assert [signed(query) for query in queries] == [signed(twin) for twin in twins]
    assert [len(signed(query)) for query in queries] == [2, 2, 1]


def test_rows_that_lag_join_from_the_next_boundary_on_and_are_counted_as_missed(engine: Engine) -> None:
    shared, own = (engine.submit(f"SELECT COUNT(*) AS n FROM s {STEPS} WHERE a < 5", expiry=word) for word in ("auto", "direct"))
    push(engine, ("u", 1, 1.0, 1))
    push(engine, ("u", 1, 1.0, 12), stream="other")
    push(engine, ("u", 1, 1.0, 3), ("u", 9, 1.0, 4), ("u", 1, 1.0, 8))
    found = []
    for query in (shared, own):
        (holds,) = (entry["holds"] for entry in query.explain()["operators"] if "missed" in entry.get("holds", {}))
        found.append(holds["missed"])
    assert found[0] == found[1] > 0
    for now in (15, 20):
        engine.advance(now)
        assert rows(shared) == rows(own)


def test_a_query_over_extents_that_looks_back_sees_the_stored_rows(engine: Engine) -> None:
    engine.submit("SELECT a FROM s [RANGE 60 MILLISECONDS]")
    text = f"SELECT g, COUNT(*) AS n FROM s {STEPS} GROUP BY g"
    push(engine, ("u", 1, 1.0, 3), ("u", 1, 1.0, 8), ("v", 1, 1.0, 11))
    shared = engine.submit(text, history="window")
    own = engine.submit(text, history="window", expiry="direct")
    assert rows(shared) == rows(own) == [("u", 2)]
    assert shared.complete_since == own.complete_since
    engine.advance(15)
    assert rows(shared) == rows(own) == [("u", 1), ("v", 1)]
    engine.check()


def test_extents_that_are_read_by_name_get_operators_of_their_own_and_show_no_change(engine: Engine) -> None:
    text = "SELECT window_end, COUNT(*) AS n FROM TUMBLE(s, 5 MILLISECONDS) GROUP BY window_end"
    shared, own = engine.submit(text, name="counts"), engine.submit(text, expiry="direct")
    push(engine, ("u", 1, 1.0, 1), ("u", 1, 1.0, 6))
    above = engine.submit("ISTREAM (SELECT n FROM counts)")
    push(engine, ("u", 1, 1.0, 7), ("u", 1, 1.0, 12))
    assert not groups(engine) and signed(shared) == signed(own)
    assert [row["n"] for row in above.answer().to_pylist()] == [2]


# ---- DISTINCT


def test_a_distinct_value_has_the_time_from_which_it_stands(engine: Engine) -> None:
    query = engine.submit(f"SELECT DISTINCT g FROM s {SPAN} WHERE a < 5")
    push(engine, ("u", 1, 1.0, 1), ("u", 1, 1.0, 4), ("u", 9, 1.0, 5))
    # it went at 14 and stands again from 16 on
    push(engine, ("v", 1, 1.0, 12), ("u", 1, 1.0, 16), ("u", 1, 1.0, 18))
    assert signed(query) == [(1, 1, "u"), (12, 1, "v")]
    push(engine, ("w", 1, 1.0, 40), ("u", 1, 1.0, 41), ("u", 1, 1.0, 43))
    assert sorted(signed(query)[2:]) == [(22, -1, "v"), (40, 1, "w")]
    engine.advance(50)
    push(engine, ("w", 1, 1.0, 60), ("u", 1, 1.0, 62), ("u", 1, 1.0, 63))
    assert sorted(signed(query)[4:]) == [(50, -1, "w"), (60, 1, "w")]


def test_a_value_that_ends_as_it_comes_again_stands_from_then_on_unless_a_boundary_shows_both() -> None:
    for window, since in ((SPAN, 11), ("[RANGE 5 MILLISECONDS SLIDE 5 MILLISECONDS]", 5)):
        found = []
        for word in ("auto", "direct"):
            engine = Engine()
            engine.create_stream("s", {"g": "string", "ts": "timestamp[ms]"}, time="ts")
            query = engine.submit(f"SELECT DISTINCT g FROM s {window}", expiry=word)
            engine.push("s", {"g": ["u", "u"], "ts": [1, 6 if "SLIDE" in window else 11]})
            if "SLIDE" in window:
                engine.advance(11)
            found.append(signed(query))
        assert found[0] == found[1] == [(since, 1, "u")]


def test_a_distinct_query_is_logged_for_those_who_read_it(engine: Engine) -> None:
    queries = [engine.submit(f"SELECT DISTINCT g, {c} AS rule FROM s {SPAN} WHERE a < {c}") for c in range(1, 40)]
    push(engine, ("u", 0, 1.0, 0))
    assert signed(queries[3]) == [(0, 1, "u", 4)] and signed(queries[-1]) == []
    assert n_faces(engine) == 1 and rows(queries[-1]) == [("u", 39)]
