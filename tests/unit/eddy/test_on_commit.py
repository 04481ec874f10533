"""The bulk way out: parts, row lists, counts, and listeners that misbehave."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from eddy import Commit, ConflictError, EddyError, Engine
from tests.unit.eddy.digest import at, make_engine, row, values


def lists_of(commit: Commit) -> dict[int, list[int]]:
    """Sensors by query id of one part."""
    queries, offsets, rows = commit.row_lists()
    assert len(offsets) == len(queries) + 1 and offsets[0] == 0 and offsets[-1] == len(rows)
    assert (np.diff(offsets) > 0).all(), "queries without rows are not listed"
    sensors = commit.columns["sensor"].to_pylist()
    return {int(q): [sensors[r] for r in rows[offsets[k] : offsets[k + 1]]] for k, q in enumerate(queries)}


def test_a_commit_lists_the_rows_of_each_query_once() -> None:
    engine = make_engine()
    low = engine.submit("SELECT sensor FROM readings [RANGE 5 SECONDS] WHERE sensor < 3")
    high = engine.submit("SELECT room FROM readings WHERE sensor > 1")
    engine.submit("SELECT room FROM readings WHERE sensor > 100")
    seen: list[Any] = []

    def listen(commit: Commit) -> None:
        counts = dict(zip(*(part.tolist() for part in commit.counts()), strict=True))
        seen.append((commit.seq, commit.stream, commit.part, commit.last, commit.sign.tolist(), lists_of(commit), counts))
        assert commit.n_rows == len(commit.sign) == len(commit.time) == len(commit.rows)

    engine.on_commit(listen)
    engine.push("readings", [row(1000, sensor=k) for k in range(5)])
    assert seen == [(1, "readings", 0, True, [1] * 5, {low.id: [0, 1, 2], high.id: [2, 3, 4]}, {low.id: 3, high.id: 3})]
    seen.clear()
    engine.advance(6000)
    assert [(sign, lists) for _, _, _, _, sign, lists, _ in seen] == [([-1] * 5, {low.id: [0, 1, 2]})]


def test_time_is_the_start_or_the_end_of_a_life_and_rows_are_the_numbers_of_the_stream() -> None:
    engine = make_engine()
    engine.create_stream("other", {"ts": "timestamp"}, time="ts")
    engine.submit("SELECT sensor FROM readings [RANGE 5 SECONDS]")
    seen: list[Any] = []
    engine.on_commit(lambda commit: seen.append((commit.time.to_pylist(), commit.rows.tolist())))
    engine.push("readings", [row(2000), row(1000)])
    engine.push("other", {"ts": [5500]})
    engine.push("readings", [row(3000)])  # lags: it starts at 5500
    engine.advance(8000)
    assert seen == [([at(1000), at(2000)], [1, 0]), ([at(5500)], [2]), ([at(6000), at(7000), at(8000)], [1, 0, 2])]


def test_columns_are_those_of_the_stream_with_nulls() -> None:
    engine = make_engine()
    engine.submit("SELECT sensor FROM readings")
    seen: list[Any] = []
    engine.on_commit(lambda commit: seen.append({name: column.to_pylist() for name, column in commit.columns.items()}))
    engine.push("readings", [row(1000, room="x"), row(1000, room=None, temp=None)])
    assert seen == [
        {"sensor": [1, 1], "room": ["x", None], "temp": [20.0, None], "ok": [True, True], "ts": [at(1000), at(1000)]},
    ]


@pytest.mark.parametrize("batch_rows", [1, 7, 64, 4096])
def test_a_large_commit_comes_in_parts_and_only_the_last_says_so(batch_rows: int) -> None:
    engine = make_engine(batch_rows=batch_rows)
    query = engine.submit("SELECT sensor FROM readings [RANGE 5 SECONDS] WHERE sensor > 10")
    other = engine.submit("SELECT sensor FROM readings [RANGE 7 SECONDS]")
    parts: list[tuple[int, int, bool]] = []
    total: Counter[int] = Counter()

    def listen(commit: Commit) -> None:
        parts.append((commit.seq, commit.part, commit.last))
        for q, n in zip(*(part.tolist() for part in commit.counts()), strict=True):
            total[q] += n * int(commit.sign[0])

    engine.on_commit(listen)
    engine.push("readings", [row(1000, sensor=k) for k in range(100)])
    assert (total[query.id], total[other.id]) == (89, 100)
    engine.push("readings", [row(6500, sensor=k) for k in range(50)])
    engine.advance(1_000_000)
    for seq in (1, 2, 3):
        mine = [(part, last) for s, part, last in parts if s == seq]
        assert [part for part, _ in mine] == list(range(len(mine)))
        assert [last for _, last in mine] == [False] * (len(mine) - 1) + [True]
    if batch_rows == 7:
        assert len([part for part in parts if part[0] == 1]) == 15
    assert +total == Counter()


def test_a_listener_sees_the_commit_before_cursors_and_answers_do() -> None:
    """Inside the callback nothing can be read; after the call everything can."""
    engine = make_engine()
    query = engine.submit("SELECT sensor FROM readings [RANGE 1 HOUR]")
    seqs = []
    engine.on_commit(lambda commit: seqs.append(commit.seq))
    engine.push("readings", [row(1)])
    assert seqs == [1] == [change.seq for change in query.changes(0)]


def test_remove_ends_the_calls_and_may_be_called_again() -> None:
    engine = make_engine()
    engine.submit("SELECT sensor FROM readings")
    seen: list[str] = []
    remove = engine.on_commit(lambda commit: seen.append("first"))
    engine.on_commit(lambda commit: seen.append("second"))
    engine.push("readings", [row(1)])
    remove()
    remove()
    engine.push("readings", [row(1)])
    assert seen == ["first", "second", "second"]


def test_removing_one_of_two_registrations_of_a_listener_leaves_the_other() -> None:
    engine = make_engine()
    engine.submit("SELECT sensor FROM readings")
    seen: list[int] = []
    listen: Callable[[Commit], None] = lambda commit: seen.append(1)  # noqa: E731
    remove = engine.on_commit(listen)
    engine.on_commit(listen)
    engine.push("readings", [row(1)])
    assert len(seen) == 2
    remove()
    remove()
    engine.push("readings", [row(1)])
    assert len(seen) == 3


def test_a_listener_may_remove_itself_while_it_is_called() -> None:
    engine = make_engine()
    engine.submit("SELECT sensor FROM readings")
    seen = []

    def once(commit: Commit) -> None:
        seen.append(commit.seq)
        remove()

    remove = engine.on_commit(once)
    engine.push("readings", [row(1)])
    engine.push("readings", [row(1)])
    assert seen == [1]


def test_a_listener_must_be_callable() -> None:
    with pytest.raises(EddyError) as error:
        make_engine().on_commit("print")  # type: ignore[arg-type]  # what is tested
    assert error.value.code == "bad_option"


def test_a_listener_that_raises_leaves_a_whole_commit_and_its_error_reaches_the_caller() -> None:
    engine = make_engine(batch_rows=10)
    query = engine.submit("SELECT sensor FROM readings [RANGE 5 SECONDS]")
    total = []

    def broken(commit: Commit) -> None:
        raise ValueError(f"part {commit.part}")

    engine.on_commit(broken)
    engine.on_commit(lambda commit: total.append(int(commit.counts()[1].sum()) * int(commit.sign[0])))
    with pytest.raises(ValueError, match="part 0"):
        engine.push("readings", [row(1000, sensor=k) for k in range(35)])
    assert sum(total) == 35, "the other listener was told everything"
    assert sorted(values(query.answer())) == list(range(35))
    assert len(list(query.changes(0))) == 35
    engine.check()
    with pytest.raises(ValueError):
        engine.advance(6000)
    assert sum(total) == 0 and values(query.answer()) == []
    engine.check()


def test_after_an_error_of_a_listener_the_next_commit_is_fine() -> None:
    engine = make_engine()
    query = engine.submit("SELECT sensor FROM readings [RANGE 1 HOUR]")

    def broken(commit: Commit) -> None:
        raise RuntimeError("once")

    remove = engine.on_commit(broken)
    with pytest.raises(RuntimeError):
        engine.push("readings", [row(1, sensor=1)])
    remove()
    engine.push("readings", [row(1, sensor=2)])
    assert values(query.answer()) == [1, 2]


def test_an_interrupt_inside_a_listener_leaves_an_engine_that_is_whole() -> None:
    engine = make_engine(batch_rows=10)
    query = engine.submit("SELECT sensor FROM readings [RANGE 1 HOUR]")

    def interrupted(commit: Commit) -> None:
        raise KeyboardInterrupt

    remove = engine.on_commit(interrupted)
    with pytest.raises(KeyboardInterrupt):
        engine.push("readings", [row(1000, sensor=k) for k in range(35)])
    remove()
    engine.check()
    engine.push("readings", [row(1000, sensor=99)])
    assert len(values(query.answer())) in (1, 36), "the commit of the interrupt counts whole or not at all"
    assert len(list(query.changes(0))) == len(values(query.answer()))


CALLS: dict[str, Callable[[Engine, Any], Any]] = {
    "push": lambda engine, query: engine.push("readings", [row(5)]),
    "push_many": lambda engine, query: engine.push_many({"readings": [row(5)]}),
    "advance": lambda engine, query: engine.advance(5_000_000),
    "submit": lambda engine, query: engine.submit("SELECT * FROM readings"),
    "cancel": lambda engine, query: engine.cancel(query),
    "pause": lambda engine, query: engine.pause(query),
    "resume": lambda engine, query: engine.resume(query),
    "answer": lambda engine, query: query.answer(),
    "changes": lambda engine, query: query.changes(),
    "stats": lambda engine, query: engine.stats(),
    "check": lambda engine, query: engine.check(),
    "explain": lambda engine, query: query.explain(),
    "trace": lambda engine, query: engine.trace("readings", 0),
    "create_stream": lambda engine, query: engine.create_stream("t", {"v": "int"}),
    "drop": lambda engine, query: engine.drop("readings"),
    "register": lambda engine, query: engine.register("f", abs, returns="int"),
    "on_commit": lambda engine, query: engine.on_commit(print),
    "close": lambda engine, query: engine.close(),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_listener_that_calls_the_engine_gets_an_error_and_the_commit_is_whole(name: str) -> None:
    engine = make_engine()
    query = engine.submit("SELECT sensor FROM readings [RANGE 1 HOUR]")
    errors: list[ConflictError] = []

    def call_back(commit: Commit) -> None:
        with pytest.raises(ConflictError) as error:
            CALLS[name](engine, query)
        errors.append(error.value)

    remove = engine.on_commit(call_back)
    engine.push("readings", [row(1000, sensor=7)])
    remove()
    assert [(error.code, "on_commit" in error.hint) for error in errors] == [("engine_busy", True)]
    assert values(query.answer()) == [7]
    assert engine.stats()["seq"] == 1
    engine.check()


def test_the_error_of_a_listener_that_calls_back_reaches_the_caller_of_the_push() -> None:
    engine = make_engine()
    query = engine.submit("SELECT sensor FROM readings [RANGE 1 HOUR]")
    engine.on_commit(lambda commit: query.cancel())
    with pytest.raises(ConflictError) as error:
        engine.push("readings", [row(1000, sensor=7)])
    assert error.value.code == "engine_busy"
    assert values(query.answer()) == [7]


@pytest.mark.parametrize("blocked_in", ["listener", "function"])
def test_a_second_thread_gets_an_error_and_disturbs_nothing(blocked_in: str) -> None:
    engine = make_engine()
    inside, leave = threading.Event(), threading.Event()

    def block(*_: Any) -> bool:
        inside.set()
        assert leave.wait(20)
        return True

    engine.register("block", block if blocked_in == "function" else lambda value: True, returns="bool")
    query = engine.submit("SELECT sensor FROM readings [RANGE 1 HOUR] WHERE block(sensor)")
    if blocked_in == "listener":
        engine.on_commit(block)
    failures: list[BaseException] = []

    def work() -> None:
        try:
            engine.push("readings", [row(1000, sensor=7)])
        except BaseException as error:
            failures.append(error)

    worker = threading.Thread(target=work)
    worker.start()
    try:
        assert inside.wait(20)
        for call in CALLS.values():
            with pytest.raises(ConflictError) as error:
                call(engine, query)
            assert error.value.code == "engine_busy"
    finally:
        leave.set()
        worker.join(20)
    assert not worker.is_alive() and failures == []
    assert values(query.answer()) == [7]
    assert (engine.stats()["seq"], list(engine.streams)) == (1, ["readings"])
    engine.check()


def test_the_engine_can_be_used_by_one_thread_after_another() -> None:
    engine = make_engine()
    query = engine.submit("SELECT sensor FROM readings [RANGE 1 HOUR]")
    for k in range(3):
        worker = threading.Thread(target=engine.push, args=("readings", [row(1000, sensor=k)]))
        worker.start()
        worker.join(20)
    assert values(query.answer()) == [0, 1, 2]


def test_a_listener_on_a_stream_nobody_reads_is_not_called() -> None:
    engine = make_engine()
    seen: list[int] = []
    engine.on_commit(lambda commit: seen.append(commit.seq))
    engine.push("readings", [row(1)])
    engine.advance(100)
    assert seen == []


@pytest.mark.parametrize("n_queries", [3, 70, 300])
@pytest.mark.parametrize("n_rows", [1, 16, 17, 200, 700])
def test_row_lists_and_counts_are_what_the_conditions_say(n_queries: int, n_rows: int) -> None:
    """All layouts: few and many rows, few and many queries, keys in a candidate index."""
    engine = make_engine()
    bounds = {engine.submit("SELECT * FROM readings WHERE sensor < :n", params={"n": k * 7}).id: k * 7 for k in range(n_queries)}
    keys = {engine.submit("SELECT * FROM readings WHERE sensor = :n", params={"n": k}).id: k for k in range(n_queries)}
    sensors = np.random.default_rng(n_rows).integers(0, 400, n_rows)
    seen: dict[int, list[int]] = {}
    counted: dict[int, int] = {}

    def listen(commit: Commit) -> None:
        counted.update(zip(*(part.tolist() for part in commit.counts()), strict=True))
        seen.update(lists_of(commit))

    engine.on_commit(listen)
    engine.push("readings", {"sensor": sensors, "ts": np.full(n_rows, 1000)})
    expected = {q: sensors[sensors < n].tolist() for q, n in bounds.items()} | {
        q: sensors[sensors == n].tolist() for q, n in keys.items()
    }
    assert seen == {q: rows for q, rows in expected.items() if rows}
    assert counted == {q: len(rows) for q, rows in seen.items()}
    assert engine.stats()["streams"]["readings"]["candidates"] == (n_queries if n_queries > 64 else 0)


def test_counts_may_be_asked_before_or_without_row_lists() -> None:
    for first in ("counts", "row_lists"):
        engine = make_engine()
        query = engine.submit("SELECT * FROM readings WHERE sensor > 5")
        found: list[Any] = []

        def listen(commit: Commit, first: str = first, found: list[Any] = found) -> None:
            getattr(commit, first)()
            found.append((commit.counts()[0].tolist(), commit.counts()[1].tolist(), commit.row_lists()[2].tolist()))

        engine.on_commit(listen)
        engine.push("readings", [row(1, sensor=k) for k in (9, 1, 8)])
        assert found == [([query.id], [2], [0, 2])]
