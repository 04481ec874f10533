"""Queries that share their aggregates: who shares, on which path, what is logged for whom, and how they come to own operators."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import eddy.operators.shared.shared_group
import eddy.operators.shared.shared_members
from eddy import Engine
from eddy.matching.commit import Commit
from eddy.operators.shared.shared_group import SharedGroup
from eddy.operators.shared.shared_operation import SharedOperation
from eddy.operators.template import Member
from eddy.operators.tree_query import TreeQuery
from eddy.query import Query
from lineage.errors import GoneError

TEXT = "SELECT g, COUNT(*) AS n, SUM(x) AS total FROM s [RANGE 10 MILLISECONDS] WHERE a < :c GROUP BY g"


@pytest.fixture
def engine() -> Engine:
    engine = Engine()
    engine.create_stream("s", {"g": "string", "a": "int", "x": "int", "ts": "timestamp[ms]"}, time="ts")
    return engine


def push(engine: Engine, *rows: tuple[str, int, int, int]) -> None:
    engine.push("s", dict(zip(("g", "a", "x", "ts"), map(list, zip(*rows)), strict=True)))


def operation(query: Query) -> SharedOperation | Member | None:
    assert isinstance(query, TreeQuery)
    return query.operation


def groups(engine: Engine) -> list[SharedGroup]:
    return list(engine._committer.templates.shared)


def rows(table: Any) -> list[tuple[Any, ...]]:
    return sorted(tuple(row.values()) for row in table.to_pylist())


@pytest.mark.parametrize(
    "text",
    [
        "SELECT g, MEDIAN(x) AS m FROM s [RANGE 1 SECOND] GROUP BY g",
        "SELECT g, COUNT(DISTINCT x) AS m FROM s [RANGE 1 SECOND] GROUP BY g",
        "SELECT g, COUNT(*) FILTER (WHERE a > 1) AS m FROM s [RANGE 1 SECOND] GROUP BY g",
        "SELECT COUNT(*) AS m FROM s [RANGE 1 SECOND] GROUP BY g",
        "SELECT g, MIN(g) AS m FROM s [RANGE 1 SECOND] GROUP BY g",
        "SELECT g, SUM(x + 1) AS m FROM s [RANGE 1 SECOND] GROUP BY g",
        "SELECT g, COUNT(*) AS m FROM s [ROWS 5] GROUP BY g",
        "SELECT g, COUNT(*) AS m FROM s [RANGE UNBOUNDED] GROUP BY g",
        "ISTREAM (SELECT g, COUNT(*) AS m FROM s [RANGE 1 SECOND] GROUP BY g)",
        "SELECT g, COUNT(*) AS m FROM s [RANGE 1 SECOND] WHERE a < 1 AND a > 2 GROUP BY g",
    ],
)
def test_what_shared_sums_do_not_have_is_left_to_operators(engine: Engine, text: str) -> None:
    assert isinstance(operation(engine.submit(text)), Member)
    assert not groups(engine)


def test_single_events_and_a_forced_expiry_word_are_left_to_operators(engine: Engine) -> None:
    assert isinstance(operation(engine.submit(TEXT, params={"c": 1}, emit="event")), Member)
    assert isinstance(operation(engine.submit(TEXT, params={"c": 1}, expiry="negative")), Member)


def test_queries_that_differ_in_condition_aggregates_and_having_have_one_group(engine: Engine) -> None:
    engine.submit(TEXT, params={"c": 3})
    engine.submit(TEXT, params={"c": 5})
    engine.submit("SELECT AVG(x) AS m, g FROM s [RANGE 10 MILLISECONDS] WHERE a >= 2 GROUP BY g HAVING COUNT(*) > 1")
    (group,) = groups(engine)
    assert len(group.members) == 3
    engine.submit(TEXT.replace("10", "20"), params={"c": 3})
    assert len(groups(engine)) == 2


def test_explain_says_which_path_a_query_is_on(engine: Engine) -> None:
    first = engine.submit(TEXT, params={"c": 5})
    push(engine, ("u", 1, 1, 0))
    young = engine.submit(TEXT, params={"c": 6})
    listed = engine.submit(TEXT.replace("a < :c", "a < 3 OR a > 7"))
    assert [query.explain()["shared"] for query in (first, young, listed)] == ["region path", "young", "pair path"]
    engine.advance(20)
    assert young.explain()["shared"] == "region path"
    assert "shared" not in engine.submit(TEXT, params={"c": 1}, expiry="direct").explain()


def test_a_query_with_history_is_settled_at_once_and_makes_those_who_do_not_look_back_young(engine: Engine) -> None:
    engine.submit("SELECT a FROM s [RANGE 10 MILLISECONDS]")
    push(engine, ("u", 1, 1, 0), ("v", 2, 2, 1))
    new = engine.submit(TEXT, params={"c": 9})
    push(engine, ("u", 3, 4, 2))
    old = engine.submit(TEXT, params={"c": 3}, history="window")
    assert [query.explain()["shared"] for query in (new, old)] == ["young", "region path"]
    assert rows(new.answer()) == [("u", 1, 4)]
    assert rows(old.answer()) == [("u", 1, 1), ("v", 1, 2)]
    engine.advance(11)
    assert rows(new.answer()) == [("u", 1, 4)] and rows(old.answer()) == []
    engine.check()


def test_the_last_member_takes_the_group_with_it(engine: Engine) -> None:
    queries = [engine.submit(TEXT, params={"c": c}) for c in (1, 2)]
    push(engine, ("u", 0, 1, 0))
    assert engine.stats()["streams"]["s"]["bytes"]["aggregates"] > 0
    queries[0].cancel()
    queries[1].pause()
    assert not groups(engine) and engine.stats()["streams"]["s"]["bytes"]["aggregates"] == 0
    assert rows(queries[1].answer()) == [("u", 1, 1)]


def test_group_codes_are_let_go_of_with_their_last_row(engine: Engine) -> None:
    engine.submit(TEXT, params={"c": 9})
    for t in range(0, 2000, 20):
        push(engine, *((f"group {t} {k}", 1, 1, t) for k in range(20)))
    (group,) = groups(engine)
    assert len(group.codes) == 20 and group.sums.n_groups <= 128


def test_room_for_groups_follows_their_number(engine: Engine) -> None:
    query = engine.submit(TEXT, params={"c": 9})
    query.changes(since="now")
    push(engine, *((f"group {k}", 1, k, k % 9) for k in range(5000)))
    (group,) = groups(engine)
    size = group.bytes
    push(engine, ("group 5", 1, 2, 14), ("u", 1, 1, 15))
    assert group.sums.n_groups >= 5000
    push(engine, ("group 7", 1, 2, 30))
    for t in range(31, 71):
        push(engine, (f"v {t}", 1, 2, t))
    assert group.sums.n_groups <= 1024 and group.bytes < size / 3
    assert rows(query.answer()) == [(f"v {t}", 1, 2) for t in range(61, 71)]
    assert signed(query.changes(since=0))[-2:] == [(-1, "v 60", 1, 2), (1, "v 70", 1, 2)]
    engine.check()


def late_reader(engine: Engine) -> tuple[Query, list[Query]]:
    """A query behind as many as are logged from their start."""
    early = [engine.submit(TEXT, params={"c": c}) for c in range(eddy.operators.shared.shared_members._LOGGED)]
    return engine.submit(TEXT, params={"c": 50}), early


def signed(changes: Any) -> list[tuple[Any, ...]]:
    return [(change.sign, *change.row.values()) for change in changes]


def test_the_first_queries_have_a_whole_log_and_later_ones_from_their_first_reader_on(engine: Engine) -> None:
    late, early = late_reader(engine)
    push(engine, ("u", 0, 7, 0))
    assert signed(early[5].changes(since=0)) == [(1, "u", 1, 7)]
    cursor = late.changes(since=0)
    assert signed(cursor) == []
    push(engine, ("u", 0, 1, 1))
    assert signed(cursor) == [(-1, "u", 1, 7), (1, "u", 2, 8)]
    assert signed(late.changes(since=0)) == [(-1, "u", 1, 7), (1, "u", 2, 8)]


def test_a_cursor_from_before_the_first_reader_is_told_that_the_log_is_gone(engine: Engine) -> None:
    late, early = late_reader(engine)
    push(engine, ("u", 0, 7, 0))
    push(engine, ("u", 0, 7, 0))
    assert signed(early[3].changes(since=1)) == [(-1, "u", 1, 7), (1, "u", 2, 14)]
    with pytest.raises(GoneError):
        late.changes(since=1)
    assert signed(late.changes(since="snapshot")) == [(1, "u", 2, 14)]
    assert signed(late.changes(since=2)) == []


def test_a_query_that_was_read_stays_logged_over_pause_resume_and_replace(engine: Engine) -> None:
    late, _ = late_reader(engine)
    cursor = late.changes(since="now")
    push(engine, ("u", 0, 7, 0))
    late.pause()
    late.resume()
    push(engine, ("v", 0, 1, 1))
    engine.replace(late, TEXT, params={"c": 40})
    push(engine, ("v", 0, 1, 2))
    # resumed it is as new
    assert signed(cursor) == [(1, "u", 1, 7), (-1, "u", 1, 7), (1, "v", 1, 1), (-1, "v", 1, 1), (1, "v", 2, 2)]


def test_an_unread_query_that_is_paused_has_no_log_of_that_time(engine: Engine) -> None:
    late, _ = late_reader(engine)
    push(engine, ("u", 0, 7, 0))
    late.pause()
    assert signed(late.changes(since=0)) == []
    assert rows(late.answer()) == [("u", 1, 7)]


def test_a_listener_gets_all_queries_of_a_face_in_one_part_of_each_sign(engine: Engine) -> None:
    late, early = late_reader(engine)
    push(engine, ("u", 0, 7, 0))
    found: list[tuple[int, list[int], list[Any]]] = []

    def listen(commit: Commit) -> None:
        if commit.n_rows:
            ids, _, numbers = commit.row_lists()
            assert commit.counts()[1].sum() == len(numbers)
            totals = commit.columns["total"].to_pylist()
            found.append((int(commit.sign[0]), ids.tolist(), sorted({totals[row] for row in numbers.tolist()})))

    remove = engine.on_commit(listen)
    push(engine, ("u", 30, 1, 1))
    assert found == [(-1, [late.id], [7]), (1, [late.id], [8])]
    found.clear()
    push(engine, ("u", 0, 1, 2))
    everybody = [*(query.id for query in early[1:]), late.id]
    assert [(sign, sorted(ids)) for sign, ids, _ in found] == [(-1, everybody), (1, everybody)]
    remove()
    push(engine, ("u", 0, 1, 3))
    (group,) = groups(engine)
    assert (group.members.watched == group.members.logged).all() and group.members.logged.sum() == len(early)
    engine.check()


def test_a_query_that_is_read_by_name_gets_operators_of_its_own_and_shows_no_change(engine: Engine) -> None:
    shared = engine.submit(TEXT, params={"c": 9}, name="totals")
    push(engine, ("u", 1, 1, 0), ("v", 1, 1, 1))
    above = engine.submit("ISTREAM (SELECT g, total FROM totals WHERE total > 1)")
    assert isinstance(operation(shared), Member)
    push(engine, ("u", 1, 1, 2), ("u", 1, 1, 3))
    assert [row["total"] for row in above.answer().to_pylist()] == [2, 3]
    assert signed(shared.changes(since=0)) == [(1, "u", 1, 1), (1, "v", 1, 1), (-1, "u", 1, 1), (1, "u", 3, 3)]
    engine.advance(11)
    assert rows(shared.answer()) == [("u", 2, 2)]
    assert engine.stats()["queries"]["totals"]["results"] == 4
    engine.check()


def test_too_many_groups_give_every_member_operators_of_its_own_within_the_commit(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(eddy.operators.shared.shared_group, "_ROOM", 2000)
    twin = engine.submit(TEXT, params={"c": 9}, expiry="direct")
    query = engine.submit(TEXT, params={"c": 9})
    push(engine, ("u", 1, 1, 0), ("v", 1, 1, 1))
    assert isinstance(operation(query), SharedOperation)
    push(engine, ("u", 1, 5, 2), *((f"{k}", 1, k, 4) for k in range(2500)), ("v", 1, 5, 10))
    assert isinstance(operation(query), Member) and not groups(engine)
    assert rows(query.answer()) == rows(twin.answer())
    logs = [
        sorted((change.seq, change.time, change.sign, *change.row.values()) for change in each.changes(since=0))
        for each in (query, twin)
    ]
    assert logs[0] == logs[1] and len(logs[0]) > 2500
    engine.check()


def test_sums_of_shared_ints_beyond_64_bits_are_null_and_counted(engine: Engine) -> None:
    query = engine.submit(TEXT, params={"c": 9})
    push(engine, ("u", 1, 2**62, 0), ("u", 1, 2**62, 1))
    assert rows(query.answer()) == [("u", 2, None)]
    assert engine.stats()["queries"][query.name]["errors"] == 1
    push(engine, ("u", 1, -1, 2))
    assert rows(query.answer()) == [("u", 3, 2**63 - 1)]


def test_shared_float_sums_do_not_drift() -> None:
    engine = Engine()
    engine.create_stream("s", {"a": "int", "x": "float", "ts": "timestamp[ms]"}, time="ts")
    query = engine.submit("SELECT SUM(x) AS total FROM s [RANGE 10 MILLISECONDS] WHERE a < 5")
    rng = np.random.default_rng(1)
    for t in range(200):
        x = rng.uniform(-1, 1, 50) * 10.0 ** rng.integers(-8, 13, 50)
        engine.push("s", {"a": np.zeros(50, np.int64), "x": x, "ts": np.full(50, t)})
    engine.advance(300)
    assert query.answer().to_pylist() == [{"total": None}]
    engine.push("s", {"a": [0, 0], "x": [0.1, 0.2], "ts": [300, 300]})
    assert query.answer().to_pylist() == [{"total": 0.1 + 0.2}]
