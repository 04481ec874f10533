"""`replace`: another text under the same id, in one commit. Worked out by hand; times are milliseconds."""

from __future__ import annotations

from typing import Any

import pytest

from eddy import ConflictError, Engine, GoneError, NotFoundError
from tests.unit.eddy.digest import at, digest, make_engine, row, signed, values
from tests.unit.eddy.reading.test_opening import Heard, pair

HOT = "SELECT sensor FROM readings [RANGE 10 SECONDS] WHERE temp > :low"


def filled(**options: Any) -> Engine:
    engine = make_engine(**options)
    engine.submit("SELECT * FROM readings [RANGE 1 MINUTE]", name="holder")
    return engine


def test_one_commit_takes_the_old_answer_to_the_new_one() -> None:
    engine = filled()
    query = engine.submit(HOT, params={"low": 20}, name="hot")
    engine.push("readings", [row(1000, sensor=1, temp=25.0), row(1000, sensor=2, temp=15.0), row(2000, sensor=3, temp=35.0)])
    heard = Heard(engine)
    engine.replace("hot", "SELECT sensor FROM readings [RANGE 5 SECONDS] WHERE temp < 30")
    assert engine.queries["hot"] is query and query.sql.endswith("temp < 30")
    assert values(query.answer()) == [1, 2]
    assert [(c.seq, c.sign, c.row["sensor"]) for c in query.changes(1)] == [(2, -1, 3), (2, 1, 2)]
    assert signed(query.changes(1)) == [(2000, -1, 3), (2000, 1, 2)]
    assert heard.parts == [(2, -1, [2000], {query.id: [3]}), (2, 1, [2000], {query.id: [2]})] and heard.last
    engine.advance(6000)
    assert signed(query.changes(2)) == [(6000, -1, 1), (6000, -1, 2)]
    assert heard.parts[2:] == [(3, -1, [6000, 6000], {query.id: [1, 2]})]
    engine.check()


def test_changes_over_a_replacement_sum_up() -> None:
    engine = filled()
    query = engine.submit(HOT, params={"low": 20})
    cursor = query.changes(0)
    engine.push("readings", [row(1000, sensor=k, temp=10.0 * k) for k in range(6)])
    for low in (40, 0, 15, 30):
        engine.replace(query, HOT, params={"low": low})
        engine.push("readings", [row(1000, sensor=9, temp=32.0)])
    total: dict[int, int] = {}
    seqs = []
    for change in cursor:
        seqs.append(change.seq)
        total[change.row["sensor"]] = total.get(change.row["sensor"], 0) + change.sign
    assert seqs == sorted(seqs)
    assert sorted(sensor for sensor, n in total.items() for _ in range(n)) == sorted(values(query.answer()))
    assert sorted(values(query.answer())) == [4, 5, 9, 9, 9, 9]


def test_the_new_text_sees_what_came_since_the_birth_as_far_as_it_is_stored() -> None:
    engine = Engine()
    engine.create_stream("s", {"v": "int", "ts": "timestamp"}, time="ts", keep=1_000_000)
    engine.push("s", {"v": [1], "ts": [1000]})
    new = engine.submit("SELECT v FROM s [RANGE 10 SECONDS]")
    window = engine.submit("SELECT v FROM s [RANGE 10 SECONDS]", history="window")
    engine.push("s", {"v": [2], "ts": [2000]})
    engine.advance(50_000)
    for query in (new, window):
        assert values(query.answer()) == []
        engine.replace(query, "SELECT v FROM s [RANGE 500 SECONDS]")
    assert (values(new.answer()), values(window.answer())) == ([2], [1, 2])
    assert (new.complete_since, window.complete_since) == (at(501_000), at(50_000))


def test_the_birth_is_known_long_after_the_log_has_dropped_it() -> None:
    engine = Engine(log_rows=10)
    for name in ("a", "b"):
        engine.create_stream(name, {"v": "int", "ts": "timestamp"}, time="ts", keep=1_000_000)
    engine.push_many({name: {"v": [-1, -2], "ts": [1000, 1000]} for name in ("a", "b")})
    query = engine.submit("SELECT v FROM a [RANGE 1 SECOND]")
    for k in range(100):
        engine.push_many({"a": {"v": [k], "ts": [1000]}, "b": {"v": [1000 + k], "ts": [1000]}})
    engine.advance(1000)
    engine.replace(query, "SELECT v FROM b [RANGE 1 SECOND]")
    assert values(query.answer()) == list(range(1000, 1100))


def test_the_same_text_changes_no_answer() -> None:
    engine = filled()
    query = engine.submit(HOT, params={"low": 20})
    engine.push("readings", [row(1000, sensor=1, temp=25.0)])
    heard = Heard(engine)
    engine.replace(query, HOT, params={"low": 20})
    assert values(query.answer()) == [1] and list(query.changes(1)) == [] and heard.parts == []
    engine.check()


def test_other_columns_of_the_same_rows_are_changes_by_value_but_not_by_row() -> None:
    engine = filled()
    query = engine.submit("SELECT sensor AS n FROM readings [RANGE 10 SECONDS]")
    engine.push("readings", [row(1000, sensor=1), row(1000, sensor=0)])
    heard = Heard(engine)
    engine.replace(query, "SELECT 1 - sensor AS n FROM readings [RANGE 10 SECONDS]")
    assert list(query.changes(1)) == [] and heard.parts == []
    engine.replace(query, "SELECT sensor + 5 AS n FROM readings [RANGE 10 SECONDS]")
    assert sorted(signed(query.changes(2))) == [(1000, -1, 0), (1000, -1, 1), (1000, 1, 5), (1000, 1, 6)]
    assert heard.parts == []


def test_a_query_may_move_to_another_stream_and_timeline_and_back() -> None:
    engine = filled()
    engine.create_stream("other", {"sensor": "int", "ts": "timestamp"}, time="ts", timeline="plant", keep=60_000)
    query = engine.submit(HOT, params={"low": 0})
    cursor = query.changes(0)
    engine.push("readings", [row(1000, sensor=1)])
    engine.replace(query, "SELECT sensor FROM other [RANGE 1 SECOND]")
    engine.push("other", {"sensor": [7], "ts": [500]})
    engine.advance(1500, timeline="plant")
    engine.push("readings", [row(2000, sensor=2)])
    engine.replace(query, HOT, params={"low": 0})
    got = [(c.seq, round(c.time.timestamp() * 1000), c.sign, c.row["sensor"]) for c in cursor]
    assert got == [(1, 1000, 1, 1), (2, 0, -1, 1), (3, 500, 1, 7), (4, 1500, -1, 7), (6, 2000, 1, 1), (6, 2000, 1, 2)]
    engine.check()


def test_a_stream_that_was_replaced_may_be_dropped_and_its_changes_are_gone() -> None:
    engine = filled()
    engine.create_stream("other", {"sensor": "int", "ts": "timestamp"}, time="ts")
    query = engine.submit("SELECT sensor FROM other [RANGE 1 HOUR]")
    engine.push("other", {"sensor": [7], "ts": [500]})
    cursor = query.changes(0)
    engine.replace(query, HOT, params={"low": 0})
    engine.drop("other")
    with pytest.raises(GoneError):
        list(cursor)
    assert signed(query.changes(0)) == [(500, -1, 7)]
    engine.create_stream("other", {"sensor": "int", "ts": "timestamp"}, time="ts")
    engine.replace(query, "SELECT sensor FROM other [RANGE 1 HOUR]")
    engine.push("other", {"sensor": [8], "ts": [600]})
    assert values(query.answer()) == [8], "a stream of the same name is another stream"


def test_a_replaced_stream_query_starts_with_an_empty_answer() -> None:
    engine = filled()
    query = engine.submit("SELECT sensor FROM readings")
    engine.push("readings", [row(1000, sensor=1)])
    engine.replace(query, "SELECT sensor FROM readings WHERE sensor > 1")
    assert values(query.answer()) == []
    engine.push("readings", [row(1000, sensor=2)])
    assert values(query.answer()) == [2]
    assert [(c.seq, c.sign, c.row["sensor"]) for c in query.changes(0)] == [(1, 1, 1), (3, 1, 2)]


# -- joins -----------------------------------------------------------------------------------------------------------

JOIN = "SELECT a.v FROM a [RANGE 10 SECONDS], b [RANGE 10 SECONDS] WHERE a.k = b.k"


def test_a_join_takes_the_place_of_a_filter_and_a_filter_that_of_a_join() -> None:
    engine = pair()
    query = engine.submit("SELECT v FROM a [RANGE 10 SECONDS]")
    cursor = query.changes(0)
    holder = engine.submit("SELECT v FROM b [RANGE 10 SECONDS]")
    heard = Heard(engine)
    engine.push_many({"a": {"k": [1, 2], "v": [10, 20], "ts": [1000, 1000]}, "b": {"k": [2], "v": [22], "ts": [2000]}})
    engine.replace(query, JOIN)
    assert values(query.answer()) == [20] and query.update_pattern == "weak"
    engine.push("b", {"k": [1], "v": [11], "ts": [3000]})
    assert sorted(values(query.answer())) == [10, 20]
    engine.replace(query, "SELECT v FROM a [RANGE 2500 MILLISECONDS] WHERE v > 10")
    assert values(query.answer()) == [20] and query.update_pattern == "weakest"
    assert signed(cursor) == [(1000, 1, 10), (1000, 1, 20), (2000, -1, 10), (3000, 1, 10), (3000, -1, 10)]
    mine = [(seq, sign, lists[query.id]) for seq, sign, _, lists in heard.parts if query.id in lists]
    assert mine == [(1, 1, [1, 2]), (2, -1, [1, 2]), (2, 1, [2]), (3, 1, [1]), (4, -1, [1, 2]), (4, 1, [2])], "by key"
    engine.advance(3500)
    assert values(query.answer()) == []
    engine.check()
    assert holder.running


def test_the_indexes_of_a_replaced_join_go_with_the_log() -> None:
    engine = Engine(log_rows=20)
    for name in ("a", "b"):
        engine.create_stream(name, {"k": "int", "v": "int", "ts": "timestamp"}, time="ts")
    query = engine.submit(JOIN)
    engine.push_many({name: {"k": [1], "v": [1], "ts": [1000]} for name in ("a", "b")})
    engine.replace(query, "SELECT v FROM a [RANGE 1 SECOND]")
    assert signed(query.changes(0)) == [(1000, 1, 1)], "the log reads the join still"
    assert list(engine.stats()["streams"]["b"]["stems"]) == ["k"]
    for k in range(10):
        engine.push("a", {"k": [1] * 10, "v": [2] * 10, "ts": [2000 + 1000 * k] * 10})
    engine.advance(20_000)
    assert query.earlier == () and engine.stats()["streams"]["b"]["stems"] == {}
    engine.check()


def test_the_indexes_of_all_texts_go_with_a_cancel() -> None:
    engine = pair()
    query = engine.submit(JOIN)
    engine.push("a", {"k": [1], "v": [1], "ts": [1000]})
    engine.replace(query, "SELECT a.v FROM a [RANGE 1 SECOND], b [RANGE 1 SECOND] WHERE a.v = b.v")
    engine.push("a", {"k": [1], "v": [1], "ts": [1000]})
    query.cancel()
    assert all(stream["stems"] == {} for stream in engine.stats()["streams"].values())
    engine.advance(10_000_000)
    engine.check()


def test_replacing_for_ever_leaves_nothing_behind() -> None:
    engine = make_engine(log_rows=100)
    engine.submit("SELECT sensor FROM readings [RANGE 1 SECOND]", name="holder")
    query = engine.submit(HOT, params={"low": 0})
    texts = [HOT, HOT.replace("temp > :low", "temp + sensor > :low"), HOT.replace("temp > :low", "temp > :low OR sensor = 3")]

    def turn(first: int) -> int:
        for k in range(first, first + 300):
            engine.replace(query, texts[k % 3], params={"low": k % 100})
            engine.push("readings", [row(1000 * k, sensor=s) for s in range(10)])
        engine.replace(query, HOT, params={"low": 5})
        for k in range(first + 300, first + 330):
            engine.push("readings", [row(1000 * k, sensor=s) for s in range(10)])
        engine.advance(1000 * (first + 330))
        engine.check()
        return int(engine.stats()["bytes"])

    first = turn(0)
    assert turn(330) == turn(660) == first
    stats = engine.stats()
    assert stats["streams"]["readings"]["legs"] == 2 and list(stats["modules"]) == ["filter:readings.temp"]
    assert len(query.earlier) <= 2


# -- what is refused -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "code", "says"),
    [
        ("SELECT sensor AS s FROM readings [NOW]", "other_columns", "column 1 is s int, not sensor int"),
        ("SELECT temp AS sensor FROM readings [NOW]", "other_columns", "column 1 is sensor float, not sensor int"),
        ("SELECT sensor, temp FROM readings [NOW]", "other_columns", "column 2 is temp float, not there"),
        ("SELECT sensor FROM readings", "other_kind", "is a relation, and the new text gives a stream"),
        ("SELECT tempp FROM readings [NOW]", "unknown_column", "tempp"),
        ("SELECT sensor FROM reading [NOW]", "unknown_stream", "reading"),
    ],
)
def test_a_text_that_does_not_fit_is_refused_and_changes_nothing(text: str, code: str, says: str) -> None:
    engine = filled()
    query = engine.submit(HOT, params={"low": 0})
    engine.push("readings", [row(1000)])
    before = digest(engine)
    with pytest.raises(Exception) as error:
        engine.replace(query, text)
    assert getattr(error.value, "code", None) == code and says in str(error.value)
    assert getattr(error.value, "hint", "")
    assert digest(engine) == before


def test_a_stream_query_is_not_replaced_by_a_relation() -> None:
    engine = filled()
    query = engine.submit("SELECT sensor FROM readings")
    with pytest.raises(ConflictError, match="is a stream, and the new text gives a relation"):
        engine.replace(query, "SELECT sensor FROM readings [NOW]")


def test_a_paused_or_cancelled_query_is_not_replaced() -> None:
    engine = filled()
    query = engine.submit(HOT, params={"low": 0}, name="hot")
    query.pause()
    with pytest.raises(ConflictError, match='query "hot" is paused') as paused:
        engine.replace(query, HOT, params={"low": 1})
    assert paused.value.hint == "resume it first"
    query.resume()
    engine.replace(query, HOT, params={"low": 1})
    query.cancel()
    before = digest(engine)
    with pytest.raises(NotFoundError, match="it was cancelled"):
        engine.replace(query, HOT, params={"low": 1})
    with pytest.raises(NotFoundError, match='did you mean "holder"'):
        engine.replace("holde", HOT, params={"low": 1})
    assert digest(engine) == before


def test_a_replaced_query_can_be_paused_resumed_and_read() -> None:
    engine = filled()
    query = engine.submit(HOT, params={"low": 20}, history="window")
    engine.push("readings", [row(1000, sensor=1, temp=15.0), row(1000, sensor=2, temp=30.0)])
    engine.replace(query, HOT, params={"low": 10})
    query.pause()
    engine.push("readings", [row(2000, sensor=3, temp=30.0)])
    assert values(query.answer()) == [1, 2]
    query.resume()
    assert values(query.answer()) == [1, 2, 3]
    assert [(c.sign, c.row["sensor"]) for c in query.changes(0)] == [(1, 2), (1, 1), (1, 3)]
