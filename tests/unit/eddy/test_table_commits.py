"""What `on_commit` brings of queries with tables, and how their results are counted."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from eddy import Engine
from tests.reference.limits import make_small
from tests.unit.eddy.test_join_commits import Heard, probes
from tests.unit.eddy.test_joins import push
from tests.unit.eddy.test_tables import JOINED, delete, make, upsert


def results(engine: Engine, query: Any) -> int:
    found: int = engine.stats()["queries"][query.name]["results"]
    return found


def seen(heard: Heard) -> list[tuple[int, int, list[tuple[float, list[int]]]]]:
    """(sign, query, (time, numbers) of its matches) of each part since the last time."""
    return [
        (part["sign"], query, sorted((part["times"][row], part["numbers"][row]) for row in rows))
        for part in heard.take()
        for query, rows in part["lists"].items()
    ]


def test_a_row_that_meets_a_frozen_table_comes_and_leaves_with_it() -> None:
    engine = make()
    query = engine.submit(JOINED)
    heard = Heard(engine)
    upsert(engine, (1, "a"), (2, "b"))
    assert heard.parts == [], "a change of it begins nothing"
    push(engine, "s", (1, 10, 1000), (3, 11, 1000))
    (part,) = heard.take()
    assert part["stream"] == "s, t" and part["columns"] == {
        "s.k": [1], "v": [10], "ts": part["columns"]["ts"], "t.k": [1], "name": ["a"],
    }  # fmt: skip
    assert (part["times"], part["numbers"], part["lists"]) == ([1.0], [[0, 0]], {query.id: [0]})
    upsert(engine, (1, "c"))
    delete(engine, 1)
    assert heard.take() == []
    engine.advance(11_000)
    (part,) = heard.take()
    assert (part["sign"], part["times"], part["columns"]["name"]) == (-1, [11.0], ["a"]), "as it came, so it leaves"
    assert results(engine, query) == 1


def test_a_change_of_a_live_table_is_in_its_commit_at_the_clock() -> None:
    engine = make(retroactive=True)
    query = engine.submit(JOINED)
    heard = Heard(engine)
    push(engine, "s", (1, 10, 1000), (1, 11, 5000))
    assert heard.take() == []
    upsert(engine, (1, "a"))
    assert seen(heard) == [(1, query.id, [(5.0, [0, 0]), (5.0, [1, 0])])]
    engine.advance(11_000)
    assert seen(heard) == [(-1, query.id, [(11.0, [0, 0])])]
    upsert(engine, (1, "b"), (2, "c"))
    assert seen(heard) == [(-1, query.id, [(11.0, [1, 0])]), (1, query.id, [(11.0, [1, 1])])]
    delete(engine, 1, 2)
    assert seen(heard) == [(-1, query.id, [(11.0, [1, 1])])]
    engine.advance(30_000)
    assert seen(heard) == [], "what the table took back does not leave again"
    assert results(engine, query) == 3


def test_a_row_displaced_by_a_newer_one_leaves_with_its_version() -> None:
    engine = make(retroactive=True)
    query = engine.submit("SELECT s.v, t.name FROM s [PARTITION BY k ROWS 1], t WHERE s.k = t.k")
    upsert(engine, (1, "a"), (2, "b"))
    push(engine, "s", (1, 10, 1000), (2, 20, 1000))
    heard = Heard(engine)
    push(engine, "s", (1, 11, 1000))
    assert seen(heard) == [(-1, query.id, [(1.0, [0, 0])]), (1, query.id, [(1.0, [2, 0])])]
    upsert(engine, (1, "c"))
    assert seen(heard) == [(-1, query.id, [(1.0, [2, 0])]), (1, query.id, [(1.0, [2, 2])])]


@pytest.mark.parametrize("retroactive", [False, True])
def test_without_a_window_matches_only_come(retroactive: bool) -> None:
    engine = make(retroactive)
    query = engine.submit("SELECT s.v, t.name FROM s, t WHERE s.k = t.k AND s.v > 10")
    heard = Heard(engine)
    upsert(engine, (1, "a"))
    push(engine, "s", (1, 10, 1000), (1, 11, 2000))
    assert seen(heard) == [(1, query.id, [(2.0, [1, 0])])]
    upsert(engine, (1, "b"))
    engine.advance(10**9)
    assert heard.take() == [] and results(engine, query) == 1


def test_what_tables_hold_is_in_the_first_commit_of_a_query_for_it_alone() -> None:
    engine = make()
    upsert(engine, (1, "a"), (2, "b"))
    heard = Heard(engine)
    low = engine.submit("SELECT name FROM t WHERE k < 2")
    assert seen(heard) == [(1, low.id, [(0.0, 0)])]
    every = engine.submit("SELECT k FROM t")
    (part,) = heard.take()
    assert part["lists"] == {every.id: [0, 1]} and part["columns"] == {"k": [1, 2], "name": ["a", "b"]}
    engine.advance(7000)
    upsert(engine, (1, "c"), (3, "d"))
    minus, plus = heard.take()
    assert (minus["sign"], minus["times"], minus["lists"]) == (-1, [7.0], {low.id: [0], every.id: [0]}), "found once"
    assert (plus["numbers"], plus["lists"]) == ([2, 3], {low.id: [0], every.id: [0, 1]})
    assert (results(engine, low), results(engine, every)) == (2, 4)


def test_queries_that_join_alike_share_one_group_whatever_their_conditions() -> None:
    engine = make(retroactive=True)
    upsert(engine, (1, "abc"), (2, "xyz"), (3, "abz"))
    engine.register("short", lambda name: len(name) < 3, returns="bool")
    conditions = ["", " AND t.k < 3", " AND t.name LIKE 'ab%'", " AND t.name = 'xyz'", " AND short(t.name)", " AND s.v > 1"]
    queries = [engine.submit(JOINED + condition) for condition in conditions]
    queries.append(engine.submit(JOINED.replace("10", "20")))
    assert engine.explain(queries[0])["shared_with"] == 6 and engine.explain(JOINED + " AND s.v = 3")["shared_with"] == 7
    assert engine.explain(queries[0])["routes"] == {"s": ["table:t.k"], "t": ["stem:s.k"]}
    heard = Heard(engine)
    push(engine, "s", (1, 1, 1000), (2, 2, 1000), (3, 3, 1000))
    engine.check()
    (part,) = heard.take()
    by_query = [sorted(part["columns"]["v"][row] for row in part["lists"].get(query.id, [])) for query in queries]
    assert by_query == [[1, 2, 3], [1, 2], [1, 3], [2], [], [2, 3], [1, 2, 3]]
    upsert(engine, (2, "ab"))
    minus, plus = heard.take()
    assert sorted(minus["lists"]) == [queries[n].id for n in (0, 1, 3, 5, 6)]
    assert sorted(plus["lists"]) == [queries[n].id for n in (0, 1, 2, 4, 5, 6)]
    assert [results(engine, query) for query in queries] == [4, 3, 3, 1, 1, 3, 4]
    stream = engine.submit("SELECT s.v, t.name FROM s, t WHERE s.k = t.k")
    assert engine.explain(stream)["shared_with"] == 0, "without a window the table counts in another way"
    for query in (*queries, stream):
        query.cancel()
        engine.check()
    assert not engine.stats()["modules"] and engine.explain(JOINED)["shared_with"] == 0


def test_a_predicate_that_comes_later_finds_versions_that_were_there() -> None:
    engine = make(retroactive=True)
    upsert(engine, *((k, f"n{k}") for k in range(100)))
    engine.submit(JOINED + " AND t.k < 50")
    heard = Heard(engine)
    push(engine, "s", *((k, k, 1000) for k in range(100)))
    (part,) = heard.take()
    assert part["n_rows"] == 50
    late = engine.submit(JOINED + " AND t.k >= 80")
    push(engine, "s", *((k, k, 1000) for k in range(100)))
    lists = [(part["lists"], part["columns"]["t.k"]) for part in heard.take()]
    assert sorted(keys[row] for of, keys in lists for row in of.get(late.id, [])) == list(range(80, 100))


def test_a_resumed_query_takes_its_answer_back_and_begins_anew() -> None:
    engine = make(retroactive=True)
    joined, alone = engine.submit(JOINED), engine.submit("SELECT name FROM t")
    upsert(engine, (1, "a"))
    push(engine, "s", (1, 10, 1000))
    for query in (joined, alone):
        query.pause()
    upsert(engine, (1, "b"))
    heard = Heard(engine)
    joined.resume()
    assert seen(heard) == [(-1, joined.id, [(1.0, [0, 0])])]
    alone.resume()
    assert seen(heard) == [(-1, alone.id, [(1.0, 0)]), (1, alone.id, [(1.0, 1)])]


def test_results_are_counted_when_nobody_listens() -> None:
    engine = make(retroactive=True)
    query, stream = engine.submit(JOINED), engine.submit("SELECT s.v, t.name FROM s, t WHERE s.k = t.k")
    upsert(engine, (1, "a"))
    push(engine, "s", (1, 10, 1000), (1, 11, 1000))
    upsert(engine, (1, "b"))
    assert (results(engine, query), results(engine, stream)) == (4, 2)
    query.pause()
    push(engine, "s", (1, 10, 1000))
    query.resume()
    push(engine, "s", (1, 10, 1000))
    assert (results(engine, query), results(engine, stream)) == (5, 4)


def test_versions_that_left_are_not_searched_for_when_nobody_asks() -> None:
    engine = make(retroactive=True)
    engine.submit(JOINED)
    upsert(engine, (1, "a"))
    push(engine, "s", (1, 10, 1000))
    heard = Heard(engine, skip_left=True)
    before = probes(engine)
    delete(engine, 1)
    assert heard.take() == [] and probes(engine) == before
    upsert(engine, (1, "b"))
    Heard(engine)
    before = probes(engine)
    delete(engine, 1)
    assert probes(engine) > before, "now somebody asks"


def test_a_listener_that_fails_does_not_stop_the_change() -> None:
    engine = make(retroactive=True)
    query = engine.submit(JOINED)
    push(engine, "s", (1, 10, 1000))

    def fail(commit: Any) -> None:
        raise OSError("full")

    remove = engine.on_commit(fail)
    with pytest.raises(OSError, match="full"):
        engine.upsert("t", {"k": [1], "name": ["a"]})
    remove()
    engine.check()
    assert query.answer().to_pylist() == [{"v": 10, "name": "a"}]
    assert engine.delete("t", [1]).deleted == 1, "and the failure is over"


def test_many_versions_of_a_key_come_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    make_small(monkeypatch, {"PART_ROWS"})
    engine = Engine(batch_rows=16)
    engine.create_stream("s", {"k": "int", "ts": "timestamp"}, time="ts")
    engine.create_table("t", {"n": "int", "k": "int"}, key="n", retroactive=True)
    query = engine.submit("SELECT t.n FROM s [RANGE 1 MINUTE], t WHERE s.k = t.k")
    heard = Heard(engine)
    engine.upsert("t", {"n": np.arange(500), "k": np.zeros(500, np.int64)})
    engine.push("s", {"k": [0], "ts": [1000]})
    parts = heard.take()
    assert len(parts) > 3 and sorted(n for part in parts for n in part["columns"]["n"]) == list(range(500))
    engine.delete("t", np.arange(0, 500, 2))
    left = [n for part in heard.take() for n in part["columns"]["n"] if part["sign"] < 0]
    assert sorted(left) == list(range(0, 500, 2)) and results(engine, query) == 500
