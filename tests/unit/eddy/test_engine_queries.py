"""Submitting queries and what a query says about itself; pause, resume, cancel."""

from __future__ import annotations

from typing import Any

import pytest

from eddy import ConflictError, EddyError, NotFoundError, Query
from tests.unit.eddy.digest import at, digest, make_engine, row, signed, values


def test_a_query_tells_what_it_is() -> None:
    engine = make_engine()
    sql = "SELECT sensor, temp * 2 AS twice, room FROM readings [RANGE 5 MINUTES] WHERE temp > :max"
    query = engine.submit(sql, name="hot", params={"max": 30}, tags=["a", "b"])
    assert isinstance(query, Query)
    assert (query.id, query.name, query.sql, query.kind, query.state) == (1, "hot", sql, "relation", "running")
    assert query.columns == {"sensor": "int", "twice": "float", "room": "string"}
    assert query.update_pattern == "weakest"
    assert query.tags == ("a", "b")


@pytest.mark.parametrize(
    ("window", "kind", "pattern"),
    [
        ("", "stream", "monotonic"),
        ("[RANGE UNBOUNDED]", "relation", "monotonic"),
        ("[RANGE 5 SECONDS]", "relation", "weakest"),
        ("[NOW]", "relation", "weakest"),
    ],
)
def test_the_window_decides_kind_and_update_pattern(window: str, kind: str, pattern: str) -> None:
    query = make_engine().submit(f"SELECT * FROM readings {window}")
    assert (query.kind, query.update_pattern) == (kind, pattern)


def test_ids_go_up_and_are_not_used_again() -> None:
    engine = make_engine()
    first = engine.submit("SELECT * FROM readings")
    engine.cancel(first)
    assert engine.submit("SELECT * FROM readings").id > first.id


def test_a_query_is_named_by_itself_its_id_or_its_name() -> None:
    engine = make_engine()
    query = engine.submit("SELECT sensor FROM readings [RANGE 1 HOUR]", name="hot")
    engine.push("readings", [row(1000, sensor=4)])
    assert values(engine.answer(query)) == values(engine.answer(query.id)) == values(engine.answer("HOT")) == [4]


@pytest.mark.parametrize("wrong", ["hott", 99, None, 1.5, "", [], {}])
def test_an_unknown_query_is_not_found(wrong: Any) -> None:
    engine = make_engine()
    engine.submit("SELECT * FROM readings", name="hot")
    before = digest(engine)
    for call in (engine.answer, engine.changes, engine.cancel, engine.pause, engine.resume):
        with pytest.raises(NotFoundError) as error:
            call(wrong)
        assert error.value.code == "unknown_query"
        assert "hot" in error.value.hint
    assert digest(engine) == before


def test_true_is_not_the_id_of_the_first_query() -> None:
    engine = make_engine()
    engine.submit("SELECT * FROM readings")
    with pytest.raises(NotFoundError):
        engine.cancel(True)


def test_a_query_of_another_engine_is_not_found() -> None:
    engine, other = make_engine(), make_engine()
    engine.submit("SELECT * FROM readings")
    with pytest.raises(NotFoundError):
        engine.answer(other.submit("SELECT * FROM readings"))


@pytest.mark.parametrize("tags", ["one", [1], 5])
def test_tags_are_a_list_of_strings(tags: Any) -> None:
    engine = make_engine()
    before = digest(engine)
    with pytest.raises(EddyError) as error:
        engine.submit("SELECT * FROM readings", tags=tags)
    assert error.value.code == "bad_option"
    assert digest(engine) == before


def test_complete_since_is_now_for_a_stream_that_has_had_no_rows() -> None:
    engine = make_engine()
    assert engine.submit("SELECT * FROM readings [RANGE 5 SECONDS]").complete_since is None
    engine.advance(7000)
    assert engine.submit("SELECT * FROM readings [RANGE 5 SECONDS]").complete_since == at(7000)


def test_complete_since_is_a_window_later_when_rows_came_before() -> None:
    engine = make_engine()
    engine.submit("SELECT * FROM readings [RANGE 1 HOUR]")
    engine.push("readings", [row(10_000)])
    assert engine.submit("SELECT * FROM readings [RANGE 5 SECONDS]").complete_since == at(15_000)
    assert engine.submit("SELECT * FROM readings").complete_since == at(10_000)
    assert engine.submit("SELECT * FROM readings [RANGE UNBOUNDED]").complete_since is None


def test_complete_since_holds_what_it_says() -> None:
    """From then on the answer is that of a query that was always there."""
    engine = make_engine()
    old = engine.submit("SELECT sensor FROM readings [RANGE 5 SECONDS]")
    engine.push("readings", [row(10_000, sensor=1)])
    new = engine.submit("SELECT sensor FROM readings [RANGE 5 SECONDS]")
    engine.push("readings", [row(12_000, sensor=2)])
    assert (values(old.answer()), values(new.answer())) == ([1, 2], [2])
    engine.advance(new.complete_since)
    assert values(old.answer()) == values(new.answer()) == [2]


def test_a_query_sees_only_rows_taken_after_its_submit() -> None:
    engine = make_engine()
    engine.submit("SELECT sensor FROM readings [RANGE 1 HOUR]")
    engine.push("readings", [row(1000, sensor=1)])
    query = engine.submit("SELECT sensor FROM readings [RANGE 1 HOUR]")
    assert values(query.answer()) == []
    engine.push("readings", [row(1000, sensor=2)])
    assert values(query.answer()) == [2]


def test_a_row_that_waits_at_the_submit_is_taken_after_it() -> None:
    engine = make_engine()
    engine.create_stream("slow", {"v": "int", "ts": "timestamp"}, time="ts", lateness=1000)
    engine.push("slow", {"v": [1], "ts": [5000]})
    query = engine.submit("SELECT v FROM slow [RANGE 1 HOUR]")
    engine.advance(5000)
    assert values(query.answer()) == [1]


def test_a_submit_is_no_commit() -> None:
    engine = make_engine()
    engine.push("readings", [row(1)])
    query = engine.submit("SELECT * FROM readings")
    assert query.answer().schema.metadata[b"seq"] == b"1"
    query.cancel()
    assert engine.stats()["seq"] == 1


def test_identical_queries_share_one_leg_and_keep_their_births() -> None:
    engine = make_engine()
    sql = "SELECT sensor FROM readings [RANGE 1 HOUR] WHERE temp > 10 AND sensor < 5"
    first = engine.submit(sql)
    engine.push("readings", [row(1000, sensor=1)])
    second = engine.submit("SELECT room FROM readings [RANGE 60 MINUTES] WHERE sensor < 5 AND temp > 10.0")
    assert second.leg is first.leg
    assert engine.stats()["streams"]["readings"]["legs"] == 1
    assert engine.stats()["streams"]["readings"]["slots"] == 1
    assert first.explain()["shared_with"] == 1
    engine.push("readings", [row(2000, sensor=2, room="b"), row(2000, sensor=9, room="c")])
    assert values(first.answer()) == [1, 2]
    assert values(second.answer()) == ["b"]
    assert [engine.stats()["queries"][q.name]["results"] for q in (first, second)] == [2, 1]
    heard: dict[int, int] = {}
    engine.on_commit(lambda commit: heard.update(zip(*(part.tolist() for part in commit.counts()), strict=True)))
    engine.advance(1_000_000_000)
    assert heard == {first.id: 1, second.id: 1} or sum(heard.values()) == 3
    engine.check()


def test_the_births_of_identical_queries_hold_when_their_rows_leave() -> None:
    engine = make_engine()
    first = engine.submit("SELECT sensor FROM readings [RANGE 5 SECONDS]")
    engine.push("readings", [row(1000, sensor=1)])
    second = engine.submit("SELECT sensor FROM readings [RANGE 5 SECONDS]")
    engine.push("readings", [row(2000, sensor=2)])
    left: dict[int, int] = {}

    def listen(commit: Any) -> None:
        for query, count in zip(*(part.tolist() for part in commit.counts()), strict=True):
            left[query] = left.get(query, 0) + count

    engine.on_commit(listen)
    engine.advance(100_000)
    assert left == {first.id: 2, second.id: 1}
    assert signed(first.changes(2)) == [(6000, -1, 1), (7000, -1, 2)]
    assert signed(second.changes(2)) == [(7000, -1, 2)]


def test_a_shared_leg_stays_until_its_last_query_goes() -> None:
    engine = make_engine()
    queries = [engine.submit("SELECT sensor FROM readings [RANGE 1 HOUR] WHERE temp > 10") for _ in range(3)]
    engine.push("readings", [row(1000, sensor=1)])
    engine.cancel(queries[0])
    engine.pause(queries[1])
    engine.push("readings", [row(1000, sensor=2)])
    assert values(queries[2].answer()) == [1, 2]
    assert engine.stats()["streams"]["readings"]["legs"] == 1
    engine.cancel(queries[2])
    assert engine.stats()["streams"]["readings"]["legs"] == 0
    assert engine.stats()["streams"]["readings"]["slots"] == 0
    engine.check()


def test_identical_predicates_are_stored_once() -> None:
    engine = make_engine()
    engine.register("risky", lambda temp: temp > 10, returns="bool")
    for width in range(1, 11):
        engine.submit(f"SELECT * FROM readings [RANGE {width} SECONDS] WHERE temp > 10 AND temp * sensor > 4 AND risky(temp)")
    source = engine._catalog.sources["readings"]
    modules = engine.stats()["modules"]
    assert len(source.modules.by_text) == 1 and len(source.derived.columns) == 1
    assert {name: entry["predicates"] for name, entry in modules.items()} == dict.fromkeys(modules, 10)
    assert [filter_.n_cuts for filter_ in source.modules.bank.filters] == [1, 1]


def test_cancel_takes_effect_at_once_and_frees_what_was_the_querys_own() -> None:
    engine = make_engine()
    other = engine.submit("SELECT sensor FROM readings [RANGE 1 HOUR] WHERE temp < 0")
    query = engine.submit("SELECT sensor FROM readings [RANGE 1 HOUR] WHERE temp > 0", name="hot")
    engine.push("readings", [row(1000)])
    cursor = query.changes("now")
    stats = engine.stats()
    engine.cancel(query)
    assert query.state == "cancelled"
    assert "hot" not in engine.queries
    assert engine.stats()["bytes"] <= stats["bytes"] - stats["queries"]["hot"]["own_bytes"]
    heard = []
    engine.on_commit(lambda commit: heard.extend(commit.counts()[0].tolist()))
    engine.push("readings", [row(1000)])
    engine.advance(100_000_000)
    assert heard == []
    for call in (query.answer, query.changes, query.explain, query.pause, query.resume, lambda: list(cursor)):
        with pytest.raises(NotFoundError) as error:
            call()
        assert error.value.code == "unknown_query"
        assert error.value.hint == "it was cancelled"
    assert values(other.answer()) == []


def test_cancelling_twice_is_an_error_that_changes_nothing() -> None:
    engine = make_engine()
    query = engine.submit("SELECT * FROM readings")
    engine.submit("SELECT * FROM readings WHERE temp > 4")
    query.cancel()
    before = digest(engine)
    with pytest.raises(NotFoundError):
        query.cancel()
    assert digest(engine) == before


def test_a_cancelled_name_can_be_taken_again() -> None:
    engine = make_engine()
    old = engine.submit("SELECT sensor FROM readings [RANGE 1 HOUR]", name="hot")
    engine.push("readings", [row(1, sensor=1)])
    engine.cancel(old)
    new = engine.submit("SELECT sensor FROM readings [RANGE 1 HOUR]", name="HOT")
    engine.push("readings", [row(1, sensor=2)])
    assert values(engine.answer("hot")) == [2] == values(new.answer())


def test_a_paused_query_keeps_its_last_answer_while_rows_come_and_go() -> None:
    engine = make_engine()
    query = engine.submit("SELECT sensor, room FROM readings [RANGE 5 SECONDS] WHERE temp > 0")
    engine.push("readings", [row(1000, sensor=1, room="x")])
    engine.pause(query)
    assert query.state == "paused"
    engine.push("readings", [row(2000, sensor=2)])
    engine.advance(1_000_000)
    assert query.answer().to_pydict() == {"sensor": [1], "room": ["x"]}
    assert engine.stats()["queries"][query.name]["state"] == "paused"
    engine.check()


def test_a_paused_query_has_no_changes_and_no_rows_in_commits() -> None:
    engine = make_engine()
    query = engine.submit("SELECT sensor FROM readings [RANGE 5 SECONDS]")
    engine.push("readings", [row(1000, sensor=1)])
    engine.pause(query)
    cursor = query.changes("now")
    heard = []
    engine.on_commit(lambda commit: heard.extend(commit.counts()[0].tolist()))
    engine.push("readings", [row(2000)])
    engine.advance(100_000)
    assert list(cursor) == [] and heard == []


def test_resume_is_a_commit_that_takes_the_kept_answer_back() -> None:
    engine = make_engine()
    query = engine.submit("SELECT sensor FROM readings [RANGE 5 SECONDS]")
    engine.push("readings", [row(1000, sensor=1), row(2000, sensor=2)])
    cursor = query.changes()
    assert signed(cursor) == [(1000, 1, 1), (2000, 1, 2)]
    engine.pause(query)
    engine.push("readings", [row(3000, sensor=3)])
    parts = []
    engine.on_commit(lambda commit: parts.append((commit.sign.tolist(), commit.columns["sensor"].to_pylist(), commit.last)))
    seq = engine.stats()["seq"]
    engine.resume(query)
    assert engine.stats()["seq"] == seq + 1
    assert parts == [([-1, -1], [1, 2], True)]
    assert values(query.answer()) == []
    engine.push("readings", [row(3000, sensor=4)])
    assert values(query.answer()) == [4]
    assert signed(cursor) == [(3000, -1, 1), (3000, -1, 2), (3000, 1, 4)]
    engine.check()


def test_a_resumed_stream_query_begins_with_an_empty_answer_and_takes_nothing_back() -> None:
    engine = make_engine()
    query = engine.submit("SELECT sensor FROM readings")
    engine.push("readings", [row(1000, sensor=1)])
    cursor = query.changes()
    assert len(list(cursor)) == 1
    engine.pause(query)
    assert values(query.answer()) == [1]
    engine.resume(query)
    engine.push("readings", [row(1000, sensor=2)])
    assert signed(cursor) == [(1000, 1, 2)]
    assert values(query.answer()) == [2]


def test_pausing_twice_and_resuming_what_runs_are_errors_that_change_nothing() -> None:
    engine = make_engine()
    query = engine.submit("SELECT * FROM readings [RANGE 1 HOUR]")
    engine.push("readings", [row(1000)])
    before = digest(engine)
    with pytest.raises(ConflictError) as error:
        query.resume()
    assert error.value.code == "not_paused"
    assert digest(engine) == before
    query.pause()
    before = digest(engine)
    with pytest.raises(ConflictError) as error:
        query.pause()
    assert error.value.code == "already_paused"
    assert digest(engine) == before


def test_a_paused_query_can_be_cancelled() -> None:
    engine = make_engine()
    query = engine.submit("SELECT * FROM readings [RANGE 1 HOUR]")
    engine.push("readings", [row(1000)])
    query.pause()
    query.cancel()
    assert query.state == "cancelled" and not engine.queries
    engine.drop("readings")


def test_results_are_counted_over_pauses() -> None:
    engine = make_engine()
    query = engine.submit("SELECT * FROM readings WHERE temp > 10")
    engine.push("readings", [row(1), row(1), row(1, temp=0.0)])
    query.pause()
    engine.push("readings", [row(1)])
    query.resume()
    engine.push("readings", [row(1)])
    assert engine.stats()["queries"][query.name]["results"] == 3
