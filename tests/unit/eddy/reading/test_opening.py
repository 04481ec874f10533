"""`history="window"`, `keep` and `complete_since`, worked out by hand. Times are milliseconds."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import numpy as np
import pytest

from eddy import Commit, Engine, GoneError
from eddy.streams.deferral import Deferral
from tests.unit.eddy.digest import at, make_engine, row, signed, values

HOT = "SELECT sensor FROM readings [RANGE 10 SECONDS] WHERE temp > :low"


class Heard:
    """What a listener gets: (commit, sign, time, rows by query) of each part, and whether the last part said so."""

    def __init__(self, engine: Engine) -> None:
        self.parts: list[tuple[int, int, list[int], dict[int, list[Any]]]] = []
        self.last = True
        engine.on_commit(self._listen)

    def _listen(self, commit: Commit) -> None:
        self.last = commit.last
        queries, offsets, rows = commit.row_lists()
        if not commit.n_rows:
            return
        values = next(iter(commit.columns.values())).to_pylist()
        lists = {int(q): [values[r] for r in rows[offsets[k] : offsets[k + 1]]] for k, q in enumerate(queries)}
        times = [round(time.timestamp() * 1000) for time in commit.time.to_pylist()]
        self.parts.append((commit.seq, int(commit.sign[0]), times, lists))


# -- what is seen ----------------------------------------------------------------------------------------------------


def test_a_query_with_history_sees_at_once_what_the_window_of_another_holds() -> None:
    engine = make_engine()
    engine.submit("SELECT * FROM readings [RANGE 10 SECONDS]")
    engine.push("readings", [row(1000, sensor=1, temp=5.0), row(5000, sensor=2, temp=30.0), row(6000, sensor=3, temp=40.0)])
    query = engine.submit(HOT, params={"low": 20}, history="window")
    assert values(query.answer()) == [2, 3]
    assert [(c.seq, *change) for c, change in zip(query.changes(0), signed(query.changes(0)), strict=True)] == [
        (2, 6000, 1, 2),
        (2, 6000, 1, 3),
    ], "the submit is a commit, and takes effect at T"
    assert signed(query.changes("snapshot")) == [(6000, 1, 2), (6000, 1, 3)]
    assert query.complete_since == at(6000)
    engine.advance(15_000)
    assert signed(query.changes(2)) == [(15_000, -1, 2)]
    engine.check()


def test_without_history_nothing_is_seen_and_the_submit_is_no_commit() -> None:
    engine = make_engine()
    engine.submit("SELECT * FROM readings [RANGE 10 SECONDS]")
    engine.push("readings", [row(1000)])
    query = engine.submit(HOT, params={"low": 0}, history="new")
    assert values(query.answer()) == [] and engine.stats()["seq"] == 1
    assert query.complete_since == at(11_000)


def test_a_stream_query_with_history_sees_only_later_rows_and_its_submit_is_a_commit() -> None:
    engine = Engine()
    engine.create_stream("s", {"v": "int", "ts": "timestamp"}, time="ts", keep=10_000)
    engine.push("s", {"v": [1], "ts": [1000]})
    query = engine.submit("SELECT v FROM s", history="window")
    assert (engine.stats()["seq"], values(query.answer()), query.complete_since) == (2, [], at(1000))
    engine.push("s", {"v": [2], "ts": [1000]})
    assert values(query.answer()) == [2] and signed(query.changes(0)) == [(1000, 1, 2)]


def test_what_was_never_kept_stays_gone_although_the_log_still_has_it() -> None:
    engine = make_engine()
    reader = engine.submit("SELECT sensor FROM readings")
    engine.push("readings", [row(1000, sensor=1)])
    engine.submit("SELECT sensor FROM readings [RANGE 1 HOUR]")
    engine.push("readings", [row(2000, sensor=2)])
    assert values(reader.answer()) == [1, 2], "the row store holds the first row for the log"
    query = engine.submit("SELECT sensor FROM readings [RANGE 1 HOUR]", history="window")
    assert values(query.answer()) == [2], "but no window held it"
    assert query.complete_since == at(3_601_000)


def test_what_is_stored_is_settled_by_commits_of_any_timeline() -> None:
    engine = make_engine()
    engine.create_stream("other", {"v": "int", "ts": "timestamp"}, time="ts", timeline="plant")
    wide = engine.submit("SELECT * FROM readings [RANGE 1 HOUR]")
    engine.submit("SELECT * FROM readings [RANGE 5 SECONDS]")
    engine.push("readings", [row(1000, sensor=1), row(9000, sensor=2)])
    wide.cancel()
    text = "SELECT sensor FROM readings [RANGE 1 HOUR]"
    first = engine.submit(text, history="window")
    assert values(first.answer()) == [1, 2], "nothing was settled since"
    first.cancel()
    engine.push("other", {"v": [1], "ts": [1]})
    assert values(engine.submit(text, history="window").answer()) == [2]


def test_rows_that_wait_are_seen_when_they_are_taken() -> None:
    engine = Engine()
    engine.create_stream("s", {"v": "int", "ts": "timestamp"}, time="ts", lateness=5000, keep=timedelta(minutes=1))
    engine.push("s", {"v": [1, 2], "ts": [1000, 6000]})
    query = engine.submit("SELECT v FROM s [RANGE 1 MINUTE]", history="window")
    assert values(query.answer()) == [1]
    engine.advance(6000)
    assert values(query.answer()) == [1, 2]
    assert [(c.seq, c.sign, c.row["v"]) for c in query.changes(0)] == [(2, 1, 1), (3, 1, 2)]


@pytest.mark.parametrize("where", ["temp > 20", "temp > 20 AND room = 'b'", "temp > 20 OR sensor = 1", "temp * 2 > 40",
                                   "room LIKE 'b%'", "temp IS NULL", "FALSE"])  # fmt: skip
@pytest.mark.parametrize("batch_rows", [1, 4096])
def test_old_rows_leave_for_a_listener_as_new_ones_do(where: str, batch_rows: int) -> None:
    """A query that was always there and one that saw the same rows by history are told the same ends."""
    engine = make_engine(batch_rows=batch_rows)
    always = engine.submit(f"SELECT sensor FROM readings [RANGE 1 SECOND] WHERE {where}")
    engine.submit("SELECT sensor FROM readings [RANGE 1 SECOND] WHERE temp > 50 AND sensor > 3", name="other_cuts")
    rows = [row(1000 + k, sensor=k % 7, temp=None if k % 5 == 0 else k / 3, room="ab"[k % 2]) for k in range(400)]
    engine.push("readings", rows)
    engine.push("readings", rows[-20:])
    always.pause()  # its predicates go, and the new ones have to be found anew
    late = engine.submit(f"SELECT sensor FROM readings [RANGE 1 SECOND] WHERE {where}", history="window")
    again = engine.submit(f"SELECT sensor, temp FROM readings [RANGE 1 SECOND] WHERE {where}", history="window")
    heard = Heard(engine)
    expected = values(always.answer())
    assert values(late.answer()) == values(again.answer()) == expected
    engine.check()
    engine.advance(5000)
    left = [lists for _, sign, _, lists in heard.parts if sign < 0]
    for query in (late, again):
        assert sorted(value for lists in left for value in lists.get(query.id, [])) == sorted(expected)
    assert values(late.answer()) == []


def test_two_queries_on_one_leg_have_different_births() -> None:
    engine = make_engine()
    heard = Heard(engine)
    engine.submit("SELECT * FROM readings [RANGE 1 HOUR]", name="holder")
    engine.push("readings", [row(1000, sensor=1, temp=50.0)])
    young = engine.submit(HOT, params={"low": 20})
    engine.push("readings", [row(2000, sensor=2, temp=50.0)])
    old = engine.submit(HOT, params={"low": 20}, history="window")
    assert young.leg is old.leg
    assert (values(young.answer()), values(old.answer())) == ([2], [1, 2])
    heard.parts.clear()
    engine.advance(20_000)
    lists = [part[3] for part in heard.parts]
    assert [value for one in lists for value in one.get(young.id, [])] == [2]
    assert [value for one in lists for value in one.get(old.id, [])] == [1, 2]
    engine.check()


def test_candidates_see_old_rows_too() -> None:
    engine = Engine()
    engine.create_stream("s", {"k": "int", "v": "int", "ts": "timestamp"}, time="ts", keep=60_000)
    engine.push("s", {"k": np.arange(100) % 10, "v": np.arange(100), "ts": np.full(100, 1000)})
    queries = [
        engine.submit(
            "SELECT v FROM s [RANGE 1 MINUTE] WHERE k = :k AND v >= :low", params={"k": k % 10, "low": k}, history="window"
        )
        for k in range(80)
    ]
    assert engine.stats()["streams"]["s"]["candidates"] > 0
    heard = Heard(engine)
    assert [values(query.answer()) for query in (queries[3], queries[72])] == [list(range(3, 100, 10)), [72, 82, 92]]
    engine.advance(61_000)
    left = heard.parts[0][3]
    assert left[queries[72].id] == [2, 2, 2] and len(left) == 80
    engine.check()


def test_a_listener_gets_what_a_query_sees_at_once() -> None:
    engine = make_engine()
    engine.submit("SELECT * FROM readings [RANGE 10 SECONDS]")
    engine.push("readings", [row(1000, sensor=1, temp=30.0), row(2000, sensor=2, temp=5.0), row(3000, sensor=3, temp=30.0)])
    heard = Heard(engine)
    query = engine.submit(HOT, params={"low": 20}, history="window")
    assert heard.parts == [(2, 1, [3000, 3000], {query.id: [1, 3]})] and heard.last


def test_user_functions_are_called_once_a_row_whoever_asks_and_however_often() -> None:
    engine = make_engine()
    called: list[int] = []

    def odd(value: int) -> bool:
        called.append(value)
        return value % 2 == 1

    engine.register("odd", odd, returns="bool")
    engine.submit("SELECT * FROM readings [RANGE 1 HOUR]")
    engine.push("readings", [row(1000, sensor=k, temp=float(k)) for k in range(6)])
    text = "SELECT sensor FROM readings [RANGE 1 HOUR] WHERE odd(sensor) AND temp > :low"
    query = engine.submit(text, params={"low": 2}, history="window")
    assert values(query.answer()) == [3, 5] and sorted(called) == [3, 4, 5], "only where the cheaper predicate holds"
    wider = engine.submit(text, params={"low": 0}, history="window")
    assert values(wider.answer()) == [1, 3, 5] and sorted(called) == [1, 2, 3, 4, 5]
    query.pause()
    wider.cancel()
    query.resume()
    assert values(query.answer()) == [3, 5] and len(called) == 5


def test_outcomes_under_a_number_that_is_used_again_are_not_taken_for_those_of_another_expression() -> None:
    engine = make_engine()
    engine.submit("SELECT * FROM readings [RANGE 1 HOUR]")
    gone = engine.submit("SELECT sensor FROM readings [RANGE 1 HOUR] WHERE temp + sensor > 0")
    engine.push("readings", [row(1000, sensor=k, temp=1.0) for k in range(4)])
    gone.cancel()
    query = engine.submit("SELECT sensor FROM readings [RANGE 1 HOUR] WHERE temp + sensor > 2", history="window")
    assert values(query.answer()) == [2, 3]


def test_a_paused_query_reads_its_outcomes_while_others_use_its_predicates_no_more() -> None:
    engine = make_engine()
    first = engine.submit("SELECT sensor FROM readings [RANGE 1 HOUR] WHERE temp + sensor > 2")
    engine.push("readings", [row(1000, sensor=k, temp=1.0) for k in range(4)])
    first.pause()
    other = engine.submit("SELECT sensor FROM readings [RANGE 1 HOUR] WHERE temp + sensor < 2", history="window")
    engine.push("readings", [row(2000, sensor=7, temp=1.0)])
    assert signed(first.changes(0)) == [(1000, 1, 2), (1000, 1, 3)]
    assert values(other.answer()) == [0]
    first.resume()
    assert signed(first.changes(1)) == [(2000, -1, 2), (2000, -1, 3)]


# -- keep ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("keep", [10_000, 10_000.0, timedelta(seconds=10), np.timedelta64(10, "s")])
def test_keep_stores_rows_without_any_query(keep: Any) -> None:
    engine = Engine()
    made = engine.create_stream("s", {"v": "int", "ts": "timestamp"}, time="ts", keep=keep)
    assert made.keep_us == engine.streams["s"].keep_us == 10_000_000
    engine.push("s", {"v": [1, 5, 11], "ts": [1000, 5000, 11_000]})
    whole = engine.submit("SELECT v FROM s [RANGE 10 SECONDS]", history="window")
    part = engine.submit("SELECT v FROM s [RANGE 50 SECONDS]", history="window")
    assert values(whole.answer()) == values(part.answer()) == [5, 11]
    assert (whole.complete_since, part.complete_since) == (at(11_000), at(51_000))


def test_keep_lets_go_of_what_is_older() -> None:
    engine = Engine()
    engine.create_stream("s", {"v": "int", "ts": "timestamp"}, time="ts", keep=1000)
    for k in range(200):
        engine.push("s", {"v": np.arange(1000), "ts": np.full(1000, 100 * k)})
    engine.advance(20_000)
    held = engine.stats()["streams"]["s"]["held"]
    assert held == 9 * 1000, "nobody reads the stream: no log is kept for it"
    assert engine.submit("SELECT v FROM s [RANGE 1 HOUR]", history="window").answer().num_rows == held


def test_a_stream_that_keeps_nothing_says_so() -> None:
    engine = make_engine()
    assert engine.streams["readings"].keep_us is None


# -- complete_since --------------------------------------------------------------------------------------------------


def test_complete_since_is_the_end_of_the_last_row_that_is_missing() -> None:
    engine = make_engine()
    engine.push("readings", [row(5000)])
    engine.advance(7000)
    since = {
        w: engine.submit(f"SELECT * FROM readings [RANGE {w}]").complete_since for w in ("10 SECONDS", "2 SECONDS", "UNBOUNDED")
    }
    assert since == {"10 SECONDS": at(15_000), "2 SECONDS": at(7000), "UNBOUNDED": None}


def test_complete_since_knows_of_rows_that_are_long_forgotten() -> None:
    engine = make_engine(log_rows=10)
    query = engine.submit("SELECT * FROM readings [RANGE 1 SECOND]")
    engine.push("readings", [row(1000 + k // 100) for k in range(40_000)])
    query.cancel()
    engine.advance(100_000)
    assert engine.stats()["streams"]["readings"]["held"] == 0
    text = "SELECT * FROM readings [RANGE 1 HOUR]"
    assert engine.submit(text, history="window").complete_since == at(1399 + 3_600_000)
    engine.push("readings", [row(200_000)])
    assert engine.submit(text, history="window").complete_since == at(200_000 + 3_600_000 - (200_000 - 1399))


def test_complete_since_beyond_all_dates_is_none() -> None:
    engine = make_engine()
    engine.push("readings", [row(1000)])
    query = engine.submit("SELECT * FROM readings [RANGE :w]", params={"w": timedelta(days=3_650_000)})
    assert query.complete_since is None


# -- joins -----------------------------------------------------------------------------------------------------------


def pair(**options: Any) -> Engine:
    engine = Engine()
    for name in ("a", "b"):
        engine.create_stream(name, {"k": "int", "v": "int", "ts": "timestamp"}, time="ts", **options)
    return engine


@pytest.mark.parametrize("on", ["a.k = b.k", "a.k BETWEEN b.k - 0 AND b.k + 0", "a.k >= b.k AND a.k * 1 <= b.k"])
def test_a_join_with_history_is_whole_and_ends_as_it_would_have(on: str) -> None:
    engine = pair(keep=100_000)
    engine.push("a", {"k": [1, 2], "v": [10, 20], "ts": [1000, 1000]})
    engine.push("b", {"k": [1, 3], "v": [11, 33], "ts": [4000, 4000]})
    engine.advance(7000)
    query = engine.submit(f"SELECT a.v, b.v AS w FROM a [RANGE 10 SECONDS], b [RANGE 5 SECONDS] WHERE {on}", history="window")
    assert signed(query.changes(0)) == signed(query.changes("snapshot")) == [(7000, 1, 10)]
    assert query.complete_since == at(7000)
    engine.push("a", {"k": [3], "v": [30], "ts": [7000]})
    engine.advance(9000)
    assert sorted(signed(query.changes(4))) == [(7000, 1, 30), (9000, -1, 10), (9000, -1, 30)]
    engine.check()


def test_indexes_made_before_know_the_old_rows_of_a_later_join() -> None:
    engine = pair(keep=100_000)
    engine.push("a", {"k": [1], "v": [10], "ts": [1000]})
    text = "SELECT a.v FROM a [RANGE 1 MINUTE], b [RANGE 1 MINUTE] WHERE a.k = b.k"
    young = engine.submit(text)
    engine.push("b", {"k": [1], "v": [11], "ts": [2000]})
    old = engine.submit(text, history="window")
    assert (values(young.answer()), values(old.answer())) == ([], [10])
    engine.check()


def test_a_join_with_history_has_outcomes_of_its_own_conditions() -> None:
    engine = pair(keep=100_000)
    engine.push_many({"a": {"k": [1, 1, 1], "v": [1, 2, 3], "ts": [1000] * 3}, "b": {"k": [1], "v": [5], "ts": [1000]}})
    query = engine.submit(
        "SELECT a.v FROM a [RANGE 1 MINUTE], b [RANGE 1 MINUTE] WHERE a.k = b.k AND a.v + a.k > 2 AND (a.v = 3 OR b.v + b.k > 7)",
        history="window",
    )
    assert values(query.answer()) == [3]


def test_a_listener_gets_the_matches_of_a_join_opened_with_history_and_their_ends() -> None:
    engine = pair(keep=100_000)
    engine.push_many({"a": {"k": [1, 2], "v": [10, 20], "ts": [1000] * 2}, "b": {"k": [1, 2], "v": [11, 22], "ts": [2000] * 2}})
    heard = Heard(engine)
    query = engine.submit(
        "SELECT a.v FROM a [RANGE 10 SECONDS], b [RANGE 5 SECONDS] WHERE a.k = b.k AND b.v > 11", history="window"
    )
    assert heard.parts == [(2, 1, [2000], {query.id: [2]})] and heard.last
    engine.push("b", {"k": [1], "v": [12], "ts": [3000]})
    engine.advance(7000)
    listed = [(seq, sign, lists[query.id]) for seq, sign, _, lists in heard.parts if query.id in lists]
    assert listed == [(2, 1, [2]), (3, 1, [1]), (4, -1, [2])]
    engine.check()


def test_a_wider_window_that_comes_later_takes_no_match_from_a_narrower_one() -> None:
    engine = pair()
    text = "SELECT a.v FROM a [RANGE :w], b [RANGE :w] WHERE a.k = b.k"
    narrow = engine.submit(text, params={"w": timedelta(seconds=5)})
    heard = Heard(engine)
    engine.push("a", {"k": [1], "v": [1], "ts": [1000]})
    wide = engine.submit(text, params={"w": timedelta(seconds=10)})
    engine.push("b", {"k": [1], "v": [1], "ts": [2000]})
    engine.advance(6000)
    listed = [(sign, lists) for _, sign, _, lists in heard.parts if lists]
    assert listed == [(1, {narrow.id: [1]}), (-1, {narrow.id: [1]})] and values(wide.answer()) == []


def test_a_function_that_waited_for_a_partner_is_called_for_a_later_join_that_finds_one(monkeypatch: pytest.MonkeyPatch) -> None:
    def defer_all(self: Deferral, policy: object, end: int) -> set[int]:
        numbers = {module.number for module in self.functions()}
        self._until.update(dict.fromkeys(numbers, end))
        return numbers

    monkeypatch.setattr(Deferral, "choose", defer_all)
    engine = pair(keep=100_000)
    engine.create_stream("c", {"k": "int", "v": "int", "ts": "timestamp"}, time="ts", keep=100_000)
    called: list[int] = []

    def odd(value: int) -> bool:
        called.append(value)
        return value % 2 == 1

    engine.register("odd", odd, returns="bool")
    text = "SELECT a.v FROM a [RANGE 1 MINUTE], {0} [RANGE 1 MINUTE] WHERE a.k = {0}.k AND odd(a.v)"
    engine.submit(text.format("b"))
    engine.push("b", {"k": [1000], "v": [0], "ts": [1000]})
    engine.push("a", {"k": [1000, 1, 1, 2], "v": [0, 1, 2, 3], "ts": [1000] * 4})
    assert called == [0], "the others found nobody"
    engine.push("c", {"k": [1, 2], "v": [0, 0], "ts": [1000] * 2})
    later = engine.submit(text.format("c"), history="window")
    assert sorted(values(later.answer())) == [1, 3]
    assert sorted(called) == [0, 1, 2, 3], "once a row"
    engine.check()


# -- tables ----------------------------------------------------------------------------------------------------------


def with_table(retroactive: bool) -> Engine:
    engine = Engine()
    engine.create_stream("s", {"k": "int", "v": "int", "ts": "timestamp"}, time="ts", keep=100_000)
    engine.create_table("t", {"k": "int", "name": "string"}, key="k", retroactive=retroactive)
    engine.upsert("t", {"k": [1], "name": ["first"]})
    engine.push("s", {"k": [1], "v": [10], "ts": [1000]})
    engine.upsert("t", {"k": [1], "name": ["second"]})
    return engine


TABLE = "SELECT s.v, t.name FROM s [RANGE 1 MINUTE], t WHERE s.k = t.k"


def test_old_rows_meet_a_non_retroactive_table_as_it_is_at_the_submit() -> None:
    engine = with_table(False)
    query = engine.submit(TABLE, history="window")
    assert signed(query.changes(0), "name") == [(1000, 1, "second")]
    engine.upsert("t", {"k": [1], "name": ["third"]})
    engine.push("s", {"k": [1], "v": [20], "ts": [2000]})
    assert sorted(values(query.answer(), "name")) == ["second", "third"]
    engine.delete("t", [1])
    engine.advance(61_000)
    assert signed(query.changes(5), "name") == [(2000, 1, "third"), (61_000, -1, "second")]
    engine.check()


def test_old_rows_meet_a_retroactive_table_as_it_is() -> None:
    engine = with_table(True)
    query = engine.submit(TABLE, history="window")
    engine.upsert("t", {"k": [1], "name": ["third"]})
    assert signed(query.changes(0), "name") == [(1000, 1, "second"), (1000, -1, "second"), (1000, 1, "third")]


def test_replaced_rows_meet_a_non_retroactive_table_as_it_is_at_the_replace() -> None:
    engine = with_table(False)
    query = engine.submit(TABLE, history="window")
    engine.upsert("t", {"k": [1], "name": ["third"]})
    engine.replace(query, TABLE)
    assert signed(query.changes(4), "name") == [(1000, -1, "second"), (1000, 1, "third")]
    engine.replace(query, "SELECT 1 AS v, name FROM t")
    assert [(c.sign, *c.row.values()) for c in query.changes(6)] == [(-1, 10, "third"), (1, 1, "third")]
    engine.check()


# -- pause and resume ------------------------------------------------------------------------------------------------


def test_a_resumed_query_sees_its_history_again_and_the_difference_is_net() -> None:
    engine = Engine()
    engine.create_stream("s", {"v": "int", "ts": "timestamp"}, time="ts", keep=100_000)
    query = engine.submit("SELECT v FROM s [RANGE 50 SECONDS]", history="window")
    engine.push("s", {"v": [1, 2], "ts": [1000, 4000]})
    query.pause()
    heard = Heard(engine)
    engine.push("s", {"v": [3], "ts": [52_000]})
    assert values(query.answer()) == [1, 2]
    query.resume()
    assert values(query.answer()) == [2, 3]
    assert signed(query.changes(2)) == [(52_000, -1, 1), (52_000, 1, 3)], "2 stays"
    assert heard.parts == [(4, -1, [52_000], {query.id: [1]}), (4, 1, [52_000], {query.id: [3]})] and heard.last
    assert query.complete_since == at(52_000)
    engine.advance(54_000)
    assert signed(query.changes(4)) == [(54_000, -1, 2)]


def test_equal_values_of_other_rows_net_at_a_resume() -> None:
    engine = Engine()
    engine.create_stream("s", {"v": "int", "ts": "timestamp"}, time="ts", keep=100_000)
    query = engine.submit("SELECT v FROM s [RANGE 5 SECONDS]", history="window")
    engine.push("s", {"v": [1, 1], "ts": [1000, 1000]})
    query.pause()
    engine.push("s", {"v": [1], "ts": [52_000]})
    query.resume()
    assert signed(query.changes(2)) == [(52_000, -1, 1)], "two were there, one is"


def test_a_resumed_query_without_history_begins_anew() -> None:
    engine = Engine()
    engine.create_stream("s", {"v": "int", "ts": "timestamp"}, time="ts", keep=100_000)
    query = engine.submit("SELECT v FROM s [RANGE 50 SECONDS]")
    engine.push("s", {"v": [1], "ts": [1000]})
    query.pause()
    query.resume()
    assert values(query.answer()) == [] and signed(query.changes(0)) == [(1000, 1, 1), (1000, -1, 1)]


def test_a_cursor_from_before_a_run_that_the_log_has_dropped_is_told_so() -> None:
    engine = make_engine(log_rows=10)
    query = engine.submit("SELECT sensor FROM readings [RANGE 1 SECOND]")
    engine.push("readings", [row(1000, sensor=k) for k in range(5)])
    cursor = query.changes("now")
    engine.push("readings", [row(2500, sensor=6)])
    query.pause()
    other = engine.submit("SELECT sensor FROM readings [RANGE 1 SECOND]")
    for k in range(5):
        engine.push("readings", [row(10_000 + 5000 * k)] * 20)
        engine.advance(11_000 + 5000 * k)
    query.resume()
    with pytest.raises(GoneError):
        list(cursor)
    assert signed(query.changes(0)) == [(31_000, -1, 6)]
    assert other.answer().num_rows == 0


# -- memory ----------------------------------------------------------------------------------------------------------


def test_rows_go_when_a_query_with_a_large_window_has_gone() -> None:
    engine = make_engine(log_rows=1000)
    engine.submit("SELECT sensor FROM readings [RANGE 1 SECOND]")

    def flow(first: int) -> tuple[int, int]:
        for k in range(first, first + 40):
            engine.push("readings", [row(1000 * k, sensor=s) for s in range(500)])
        engine.advance(1000 * (first + 39))
        streams = engine.stats()["streams"]["readings"]
        return streams["held"], streams["bytes"]["rows"]

    before = flow(0)
    large = engine.submit("SELECT sensor FROM readings [RANGE 1 HOUR] WHERE temp + sensor > 3 AND temp > 1", history="window")
    assert flow(40)[0] > 20_000
    large.cancel()
    assert flow(80) == before
    engine.check()


def test_what_a_resumed_query_took_back_goes_with_the_log() -> None:
    engine = make_engine(log_rows=100)
    query = engine.submit("SELECT sensor FROM readings [RANGE 1 HOUR]", history="window")
    engine.push("readings", [row(1000, sensor=k) for k in range(50)])
    query.pause()
    query.resume()
    assert query.runs[-1].taken_back is not None
    for k in range(10):
        engine.push("readings", [row(2000 + k)] * 50)
    engine.advance(3000)
    assert query.runs[-1].taken_back is None
