"""A call that ends very many rows is several commits, cut by the rows and the queries alone (semantics 11)."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from eddy import Engine
from tests.reference.limits import cut_ends

SECOND = 1_000_000

Seen = list[tuple[int, int, int]]
CutAfter = Callable[[int], None]


def make(windows: list[str], batch_rows: int = 4096, policy: str = "auto") -> tuple[Engine, list[Any], Seen]:
    """An engine with a query per window, and what its listener sees: (commit, sign, rows)."""
    engine = Engine(batch_rows=batch_rows, policy=policy)
    engine.create_stream("s", {"v": "int", "ts": "timestamp[us]"}, time="ts")
    seen: Seen = []
    engine.on_commit(lambda part: seen.append((part.seq, 1 if part.added else -1, int(part.counts()[1].sum()))))
    return engine, [engine.submit(f"SELECT v, ts FROM s {window} WHERE v >= 0") for window in windows], seen


def push(engine: Engine, times: list[int]) -> None:
    engine.push("s", {"v": list(range(len(times))), "ts": times})


@pytest.fixture
def cut_after(monkeypatch: pytest.MonkeyPatch) -> CutAfter:
    """Cut commits after so many ends."""
    return lambda n: cut_ends(monkeypatch, n)


def test_an_advance_over_too_many_ends_is_cut_at_instants(cut_after: CutAfter) -> None:
    cut_after(3)
    engine, (query,), seen = make(["[RANGE 1 SECOND]"])
    push(engine, [0, 1, 2, 3, 4, 5, 6])
    seen.clear()
    engine.advance(10_000)
    engine.check()
    assert [(seq, sign, n) for seq, sign, n in seen] == [(2, -1, 3), (3, -1, 3), (4, -1, 1)]
    assert engine.answer(query).num_rows == 0 and engine.stats()["seq"] == 4
    times = [(change.seq, change.sign, change.time.microsecond) for change in engine.changes(query, since=1)]
    assert times == [(2, -1, 0), (2, -1, 1), (2, -1, 2), (3, -1, 3), (3, -1, 4), (3, -1, 5), (4, -1, 6)]


def test_rows_that_a_count_displaces_do_not_cut_a_call(cut_after: CutAfter) -> None:
    cut_after(3)
    engine, _, _ = make([])
    query = engine.submit("SELECT v FROM s [ROWS 1]")
    push(engine, list(range(20)))
    push(engine, list(range(20, 40)))
    assert engine.stats()["seq"] == 2 and engine.answer(query).num_rows == 1


def test_ends_of_one_instant_stay_in_one_commit(cut_after: CutAfter) -> None:
    cut_after(2)
    engine, _, seen = make(["[RANGE 1 SECOND]"])
    push(engine, [0, 5, 5, 5, 5, 9])
    seen.clear()
    engine.advance(10_000)
    assert seen == [(2, -1, 5), (3, -1, 1)], "the second end is one of four at the same instant"


def test_a_call_with_just_so_many_ends_is_one_commit(cut_after: CutAfter) -> None:
    cut_after(4)
    engine, _, seen = make(["[RANGE 1 SECOND]"])
    push(engine, [0, 1, 2, 3])
    seen.clear()
    engine.advance(10_000)
    assert seen == [(2, -1, 4)]


def test_every_window_length_that_a_query_has_counts_its_own_ends(cut_after: CutAfter) -> None:
    cut_after(3)
    engine, _, seen = make(["[RANGE 1 SECOND]", "[RANGE 2 SECONDS]", "[RANGE 2 SECONDS]", "", "[RANGE UNBOUNDED]"])
    push(engine, [0, 1])
    seen.clear()
    engine.advance(10_000)
    # the first commit: row 0 leaves one second, then two seconds of two queries, and row 1 leaves one second
    assert [(seq, n) for seq, _, n in seen] == [(2, 4), (3, 2)], "a row that leaves one window of two queries ends once"


def test_rows_of_the_call_itself_come_and_go_at_their_instants(cut_after: CutAfter) -> None:
    cut_after(2)
    engine, (query,), _ = make(["[RANGE 1 SECOND]"])
    push(engine, [k * SECOND for k in range(7)])
    engine.check()
    assert engine.stats()["seq"] == 3
    assert engine.answer(query).column("v").to_pylist() == [6]
    records = [(change.seq, change.sign, change.row["v"]) for change in engine.changes(query, since=0)]
    assert records == [(1, 1, 2), (2, -1, 2), (2, 1, 4), (3, -1, 4), (3, 1, 6)]
    assert engine.push("s", {"v": [9], "ts": [7 * SECOND]}) == (1, 0, 7, 7, 0)


@pytest.mark.parametrize("seed", range(5))
def test_the_cuts_do_not_depend_on_batches_or_routes(seed: int, cut_after: CutAfter) -> None:
    """Commits, answers and changes are the same for any batch size and policy, and sum to those of uncut calls."""
    cut_after(5)
    windows = ["[RANGE 3 SECONDS]", "[RANGE 1 SECOND]", "[NOW]", ""]

    def run(batch_rows: int, policy: str) -> tuple[list[Any], list[Any]]:
        rng = random.Random(seed)
        engine, queries, _ = make(windows, batch_rows, policy)
        answers = []
        clock = 0
        for _ in range(25):
            if rng.random() < 0.25:
                clock += rng.randrange(5 * SECOND)
                engine.advance(np.datetime64(clock, "us"))
            else:
                times = [clock + rng.randrange(-SECOND, 4 * SECOND) for _ in range(rng.randrange(1, 25))]
                clock = max([clock, *times])
                push(engine, times)
            engine.check()
            answers.append([engine.answer(query).to_pylist() for query in queries])
        logged = [[(c.seq, c.time, c.sign, tuple(c.row.values())) for c in engine.changes(query, since=0)] for query in queries]
        return answers, logged

    expected = run(4096, "auto")
    for batch_rows, policy in ((1, "lottery"), (7, "random"), (64, "greedy")):
        assert run(batch_rows, policy) == expected
    cut = max(record[0] for changes in expected[1] for record in changes)
    cut_after(10**6)
    whole = run(4096, "auto")
    assert whole[0] == expected[0], "answers after a call do not depend on how it was cut"
    assert cut > max(record[0] for changes in whole[1] for record in changes), "some call was cut"


def test_streams_of_a_timeline_are_cut_together(cut_after: CutAfter) -> None:
    cut_after(2)
    engine = Engine()
    for name in "ab":
        engine.create_stream(name, {"ts": "timestamp[us]"}, time="ts")
    queries = [engine.submit(f"SELECT ts FROM {name} [RANGE 1 SECOND]") for name in "ab"]
    engine.push_many({"a": {"ts": [0, 2, 4]}, "b": {"ts": [1, 3]}})
    engine.advance(10_000)
    engine.check()
    ended = [[(c.seq, c.time.microsecond) for c in engine.changes(query, since=1)] for query in queries]
    assert ended == [[(2, 0), (3, 2), (4, 4)], [(2, 1), (3, 3)]]
