"""Rows that leave windows of many lengths: batches, segments, and the parts that listeners get, against a look at every row."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eddy import Commit, Engine
from eddy.base.compile import ensure
from eddy.lives import leaving
from eddy.lives.leaving import lay_out_segments
from stems.row_store import PAGE_ROWS

ensure()

#: A row as the twin knows it: its number, its time in microseconds, k and v.
Row = tuple[int, int, int, int]


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 12), st.integers(0, 12)), min_size=1, max_size=6), st.integers(1, 15), st.randoms())
def test_batches_hold_each_row_once_and_segments_all_that_left_a_window(
    steps: list[tuple[int, int]], limit: int, rng: random.Random
) -> None:
    first = np.cumsum([step for step, _ in steps])
    last = first + [n for _, n in steps]
    numbers = np.array(rng.sample(range(9), len(steps)))
    everything = sorted({at for low, high in zip(first, last) for at in range(low, high)})
    stretches, totals = np.empty((len(steps), 2), np.int64), np.zeros(5, np.int64)
    at = int(first[0])
    seen: list[int] = []
    left: dict[int, list[int]] = {number: [] for number in numbers.tolist()}
    while at < max(everything, default=-1) + 1:
        segments = np.zeros((9, 4), np.int64)
        n = lay_out_segments(numbers, first, last, at, limit, segments, stretches, totals)
        position, begin, stop, shift = segments.T
        at = int(totals[0])
        batch = [row for low, high in stretches[:n].tolist() for row in range(low, high)]
        assert len(batch) == totals[1] and 0 < len(batch) <= limit, "a batch is bounded"
        part: list[int] = []
        for number in numbers.tolist():
            mine = batch[begin[number] : stop[number]]
            assert mine == list(range(position[number], position[number] + len(mine))), "a segment is a stretch of positions"
            assert not mine or begin[number] + shift[number] == len(part), "segments follow each other in the part"
            part += mine
            left[number] += mine
        assert len(part) == totals[2] and max(stop - begin) == totals[3]
        assert totals[4] == (at > max(everything)), "the last batch is known to be"
        seen += batch
    assert seen == everything
    assert left == {number: list(range(low, high)) for number, low, high in zip(numbers.tolist(), first, last)}


class Listener:
    """What queries lost, as (row number, end) by query, in the last call."""

    def __init__(self, engine: Engine) -> None:
        self.left: dict[int, Counter[tuple[int, int]]] = {}
        self.n_parts = 0
        self.longest = 0
        self.values: dict[int, tuple[Any, Any]] = {}
        engine.on_commit(self._take)

    def _take(self, part: Commit) -> None:
        if part.added or not part.n_rows:
            return
        self.n_parts += 1
        self.longest = max(self.longest, part.n_rows)
        ends = [int(time.timestamp() * 1_000_000 + 0.5) for time in part.time.to_pylist()]
        numbers, k, v = part.rows.tolist(), part.columns["k"].to_pylist(), part.columns["v"].to_pylist()
        assert part.n_rows == len(ends) == len(numbers) == len(k) and (part.sign == -1).all()
        queries, offsets, rows = part.row_lists()
        assert len(set(queries.tolist())) == len(queries), "a part lists a query once"
        for j, query in enumerate(queries.tolist()):
            mine = rows[offsets[j] : offsets[j + 1]].tolist()
            assert mine == sorted(set(mine)) and mine
            lost = self.left.setdefault(query, Counter())
            for row in mine:
                lost[numbers[row], ends[row]] += 1
                self.values[numbers[row]] = (k[row], v[row])
        counts = dict(zip(*(found.tolist() for found in part.counts()), strict=True))
        assert counts == dict(zip(queries.tolist(), np.diff(offsets).tolist()))


#: Conditions by text: on bits, with predicate modules, with disjunctions, and (`k = c`, of many) by a candidate index.
PLAIN: dict[str, Callable[[int, int], bool]] = {
    "v < 5": lambda k, v: v < 5,
    "v >= 3 AND k < 6": lambda k, v: v >= 3 and k < 6,
    "v <> 4": lambda k, v: v != 4,
    "k >= 0": lambda k, v: True,
}
OTHERS: dict[str, Callable[[int, int], bool]] = {
    "v % 3 = k % 3": lambda k, v: v % 3 == k % 3,
    "v = 2 OR k > 4": lambda k, v: v == 2 or k > 4,
}


def _check(seed: int, batch_rows: int, conditions: dict[str, Callable[[int, int], bool]], keyed: bool, n_widths: int) -> Listener:
    rng = random.Random(seed)
    engine = Engine(batch_rows=batch_rows)
    engine.create_stream("s", {"k": "int", "v": "int", "ts": "timestamp[us]"}, time="ts")
    widths = rng.sample(range(1, 400), n_widths)
    running: dict[int, tuple[Callable[[int, int], bool], int, int]] = {}
    rows: list[Row] = []
    listener = Listener(engine)

    def submit(text: str, holds: Callable[[int, int], bool]) -> None:
        width = rng.choice(widths)
        query = engine.submit(f"SELECT v FROM s [RANGE {width} MICROSECONDS] WHERE {text}")
        running[query.id] = holds, width, len(rows)

    for _ in range(3 * n_widths):
        submit(*rng.choice(list(conditions.items())))
    clock = 0
    for step in range(40):
        if step % 5 == 4:
            submit(*rng.choice(list(conditions.items())))
        if keyed:
            for key in range(80 if step == 0 else 3):
                value = (key + step) % 80
                submit(f"k = {value}", lambda k, v, value=value: k == value)  # type: ignore[misc]  # mypy knows no lambda's default
        if step % 7 == 6:
            query = rng.choice(sorted(running))
            engine.cancel(query)
            del running[query]
        listener.left.clear()
        before = clock
        held = list(rows)
        if rng.random() < 0.7:
            clock += rng.choice([0, 1, 5, 60])
            times = sorted(rng.randint(clock, clock + 20) for _ in range(rng.choice([1, 3, 40, 90])))
            new = [(len(rows) + i, time, rng.randrange(80 if keyed else 8), rng.randrange(8)) for i, time in enumerate(times)]
            rows += new
            engine.push("s", {"k": [row[2] for row in new], "v": [row[3] for row in new], "ts": times})
            clock = times[-1]
        else:
            clock += rng.choice([1, 30, 200])
            engine.advance(np.datetime64(clock, "us"))
        for query, (holds, width, born) in running.items():
            expected = Counter(
                (number, time + width)
                for number, time, k, v in held
                if number >= born and before < time + width <= clock and holds(k, v)
            )
            assert listener.left.get(query, Counter()) == expected
        assert set(listener.left) <= set(running)
    engine.check()
    assert listener.values and all(rows[number][2:] == value for number, value in listener.values.items())
    return listener


@pytest.mark.parametrize("batch_rows", [1, 7, 4096])
@pytest.mark.parametrize("keyed", [False, True])
@pytest.mark.parametrize("others", [False, True])
@pytest.mark.slow
def test_each_query_loses_what_left_its_window_since_its_birth_at_its_end(batch_rows: int, keyed: bool, others: bool) -> None:
    conditions = PLAIN | OTHERS if others else PLAIN
    for seed in range(3):
        _check(seed, batch_rows, conditions, keyed, n_widths=6)


def test_parts_are_bounded_whatever_the_number_of_window_lengths(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _check(5, 4096, PLAIN, False, 8).longest > 64
    monkeypatch.setattr(leaving, "MAX_PART_ROWS", 64)
    assert _check(5, 4096, PLAIN, False, 8).longest <= 64


def _fill(n_lengths: int, n_rows: int) -> tuple[Engine, Listener, list[int]]:
    engine = Engine()
    engine.create_stream("s", {"k": "int", "v": "int", "ts": "timestamp[us]"}, time="ts")
    ids = [engine.submit(f"SELECT v FROM s [RANGE {5000 + 300 * k} MICROSECONDS] WHERE v < 50").id for k in range(n_lengths)]
    listener = Listener(engine)
    for at in range(0, n_rows, 4096):
        times = np.arange(at, min(at + 4096, n_rows))
        engine.push("s", {"k": times % 7, "v": times % 100, "ts": times})
    return engine, listener, ids


def test_the_rows_that_leave_windows_of_many_lengths_are_one_part_also_across_pages() -> None:
    engine, listener, ids = _fill(16, 3 * 4096)
    listener.n_parts = 0
    listener.left.clear()
    assert PAGE_ROWS == 4 * 4096
    for at in range(3, 6):
        times = np.arange(at * 4096, (at + 1) * 4096)
        engine.push("s", {"k": times % 7, "v": times % 100, "ts": times})
    assert listener.n_parts == 3, "one a push"
    for k, query in enumerate(ids):
        width = 5000 + 300 * k
        gone = range(max(0, 3 * 4096 - width), 6 * 4096 - width)
        assert listener.left[query] == Counter((row, row + width) for row in gone if row % 100 < 50)


def test_a_window_that_only_operators_read_has_no_part_of_its_own() -> None:
    engine, listener, (query,) = _fill(1, 1000)
    engine.submit("SELECT DISTINCT k, v FROM s [RANGE 9 SECONDS]", name="operators")
    engine.push("s", {"k": [1], "v": [1], "ts": [1000]})
    engine.cancel(query)
    listener.left.clear()
    listener.n_parts = 0
    engine.advance(np.datetime64(8_000_000, "us"))
    assert listener.n_parts == 0
    engine.advance(np.datetime64(20_000_000, "us"))
    assert listener.n_parts == 1, "what DISTINCT gave up"
