"""Queries that come and go for ever: bytes and slots come back, and no query ever sees a row of another."""

from __future__ import annotations

import random
from datetime import timedelta
from typing import Any

import numpy as np
import pytest

from eddy import Commit, Engine, Query
from tests.unit.eddy.digest import values

COLUMNS = {"tag": "int", "key": "int", "a": "float", "b": "int", "room": "string", "ts": "timestamp"}
#: Tags of one query: a range of its own.
SPAN = 50
RANGES = 200

KINDS = {
    "bits": "SELECT tag FROM s [RANGE :w] WHERE tag >= :lo AND tag < :hi AND a > :x",
    "clause": "SELECT tag FROM s [RANGE :w] WHERE tag >= :lo AND tag < :hi AND (a > :x OR b < :k)",
    "residual": "SELECT tag FROM s [RANGE :w] WHERE tag >= :lo AND tag < :hi AND a + b > :x",
    "key": "SELECT tag FROM s [RANGE :w] WHERE key = :k AND tag >= :lo AND tag < :hi AND a > :x",
    "stream": "SELECT tag FROM s WHERE tag >= :lo AND tag < :hi AND a > :x",
}


def admits(kind: str, p: dict[str, Any], rows: dict[str, np.ndarray]) -> np.ndarray:
    """The same conditions by numpy."""
    inside = (rows["tag"] >= p["lo"]) & (rows["tag"] < p["hi"])
    match kind:
        case "clause":
            return inside & ((rows["a"] > p["x"]) | (rows["b"] < p["k"]))
        case "residual":
            return inside & (rows["a"] + rows["b"] > p["x"])
        case "key":
            return inside & (rows["key"] == p["k"]) & (rows["a"] > p["x"])
    return inside & (rows["a"] > p["x"])


class Churn:
    """An engine with a base set of queries, a flow of rows, and churn queries that check every row they get."""

    def __init__(self, seed: int, kinds: list[str], peak: int) -> None:
        self.rng = random.Random(seed)
        self.kinds, self.peak = kinds, peak
        self.engine = Engine(log_rows=2000, seed=seed)
        self.engine.create_stream("s", COLUMNS, time="ts")
        for k in range(10):
            self.engine.submit(f"SELECT tag FROM s [RANGE {k + 1} SECONDS] WHERE a > {k} AND b < {90 + k}", name=f"base{k}")
            self.engine.submit(f"SELECT room FROM s [RANGE 2 SECONDS] WHERE a + b > {k} OR room = 'r{k}'", name=f"either{k}")
        numpy = np.random.default_rng(seed)
        self.rows = {
            "tag": numpy.integers(0, SPAN * RANGES, 4096), "key": numpy.integers(0, 8, 4096),
            "a": numpy.integers(0, 20, 4096) / 2,
            "b": numpy.integers(0, 100, 4096), "room": np.array([f"r{k % 12}" for k in range(4096)], object),
        }  # fmt: skip
        self.now = 0
        self.live: dict[int, tuple[Query, str, dict[str, Any], int]] = {}
        self.free = list(range(RANGES))
        self.cycles = self.listed = self.most_slots = 0
        self.most_candidates = 0
        self.engine.on_commit(self.listen)

    def listen(self, commit: Commit) -> None:
        queries, offsets, rows = commit.row_lists()
        came = int(commit.sign[0]) > 0
        columns = commit.columns
        part = {name: columns[name].to_numpy(zero_copy_only=False) for name in ("tag", "key", "a", "b")}
        got = {int(q): rows[offsets[k] : offsets[k + 1]].copy() for k, q in enumerate(queries)}
        for number, (_, kind, params, _) in self.live.items():
            wanted = np.flatnonzero(admits(kind, params, part))
            mine = got.get(number, np.zeros(0, np.int32))
            self.listed += len(mine)
            if came:
                assert mine.tolist() == wanted.tolist(), f"query {number} {kind} {params}"
            else:
                assert set(mine.tolist()) <= set(wanted.tolist()), f"query {number} {kind} {params}"
        known = {query.id for query in self.engine.queries.values()}
        assert set(got) <= known, "a query that has gone is listed"

    def push(self, n_rows: int, step: int, first: int = 0) -> None:
        """Rows of one instant: all that came are alive at the end of the commit."""
        self.now += step
        cut = slice(first, first + n_rows)
        self.engine.push("s", {**{name: column[cut] for name, column in self.rows.items()}, "ts": np.full(n_rows, self.now)})

    def submit(self) -> None:
        place = self.free.pop(self.rng.randrange(len(self.free)))
        kind = self.rng.choice(self.kinds)
        params: dict[str, Any] = {"lo": place * SPAN, "hi": place * SPAN + SPAN, "x": self.rng.randrange(10) / 2}
        if kind != "stream":
            params["w"] = timedelta(milliseconds=self.rng.choice([1, 50, 400, 1000, 3000]))
        if kind in ("key", "clause"):
            params["k"] = self.rng.randrange(8)
        query = self.engine.submit(KINDS[kind], params=params)
        self.live[query.id] = (query, kind, params, place)
        source = self.engine._catalog.sources["s"]
        self.most_slots = max(self.most_slots, source.placement.slots.taken)
        self.most_candidates = max(self.most_candidates, source.placement.sparse_slots.taken)

    def cancel(self, number: int) -> None:
        query, _, _, place = self.live.pop(number)
        query.cancel()
        self.free.append(place)
        self.cycles += 1

    def run(self, n_cycles: int) -> None:
        stop = self.cycles + n_cycles
        while self.cycles < stop:
            while len(self.live) < self.peak:
                self.submit()
            self.push(self.rng.choice([1, 10, 64]), 50, self.rng.randrange(4000))
            leaving = self.rng.sample(sorted(self.live), self.rng.choice([10, 20, self.peak if self.rng.random() < 0.2 else 40]))
            for number in leaving:
                self.cancel(number)
            if self.rng.random() < 0.02:
                self.engine.check()

    def settle(self) -> int:
        """All churn queries go, time passes every window, the log is filled in the same way; the bytes then."""
        for number in list(self.live):
            self.cancel(number)
        for _ in range(8):
            self.push(4096, 1000)
        self.now += 60_000
        self.engine.advance(self.now)
        for _ in range(3):
            self.push(1500, 1000)
        self.engine.advance(self.now)
        self.engine.check()
        return int(self.engine.stats()["bytes"])


def churn(n_cycles: int, kinds: list[str], peak: int) -> Churn:
    run = Churn(11, kinds, peak)
    run.run(400)
    baseline = run.settle()
    run.run(n_cycles)
    assert run.settle() == baseline, run.engine.stats()["streams"]["s"]["bytes"]
    assert run.listed > n_cycles / 40, "rows flow"
    source = run.engine._catalog.sources["s"]
    words = max(1, -(-run.most_slots // 64))
    assert source.placement.slots.n_words <= 1 << (words - 1).bit_length()
    assert run.engine.stats()["streams"]["s"]["slots"] == 10 + 3 * 10, "two disjuncts and a leg for each of the ten with a clause"
    stream = run.engine.stats()["streams"]["s"]
    assert stream["candidates"] == stream["bytes"]["candidates"] == 0
    assert len(source.modules.by_text) == 10 and stream["windows"] == 10 and stream["legs"] == 20
    return run


@pytest.mark.slow
def test_bytes_and_slots_come_back_after_ten_thousand_queries() -> None:
    run = churn(10_000, ["bits", "clause", "residual", "key", "key", "key", "stream"], 150)
    assert run.most_candidates > 0, "the candidate index was in use"


@pytest.mark.long
def test_bytes_and_slots_come_back_after_a_hundred_thousand_queries() -> None:
    churn(100_000, ["bits", "clause", "residual", "key", "key", "key", "stream"], 150)


@pytest.mark.parametrize("kind", KINDS)
def test_bytes_come_back_for_each_kind_of_query(kind: str) -> None:
    churn(600, [kind], 100)


@pytest.mark.parametrize(
    "shape", ["room = :r", "room IN (:r, 'x')", "room = :r AND tag > 3", "room > :r", "room = :r OR a > 3", "room LIKE :r"]
)
def test_bytes_come_back_after_conditions_on_strings_nobody_sends(shape: str) -> None:
    run = Churn(3, ["bits"], 5)
    bytes_after = []
    for turn in range(3):
        queries = [
            run.engine.submit(f"SELECT tag FROM s WHERE {shape}", params={"r": f"turn {turn}, unheard of {k:03}"})
            for k in range(100)
        ]
        run.push(100, 10)
        run.engine.check()
        for query in queries:
            query.cancel()
        bytes_after.append((run.settle(), run.engine.stats()["streams"]["s"]["bytes"]))
    for after in bytes_after[1:]:
        assert after == bytes_after[0]
    stream = run.engine.stats()["streams"]["s"]
    assert stream["candidates"] == stream["bytes"]["candidates"] == 0


def test_a_slot_used_again_does_not_inherit_stored_rows() -> None:
    engine = Engine()
    engine.create_stream("s", COLUMNS, time="ts")
    old = engine.submit("SELECT tag FROM s [RANGE 1 HOUR] WHERE tag < 100")
    assert old.leg is not None
    slot = old.leg.slot
    engine.push("s", {"tag": [1, 2], "ts": [1000, 1000]})
    old.cancel()
    new = engine.submit("SELECT tag FROM s [RANGE 1 HOUR] WHERE tag < 200")
    assert new.leg is not None and new.leg.slot == slot
    assert values(new.answer()) == [] and engine.stats()["queries"][new.name]["results"] == 0
    left: list[int] = []
    engine.on_commit(lambda commit: left.extend(commit.counts()[1].tolist()) if int(commit.sign[0]) < 0 else None)
    engine.push("s", {"tag": [3], "ts": [2000]})
    assert values(new.answer()) == [3]
    engine.advance(100_000_000)
    assert left == [1] and values(new.answer()) == []
    assert [(c.sign, c.row["tag"]) for c in new.changes(0)] == [(1, 3), (-1, 3)]


def test_the_index_of_candidates_comes_at_64_and_goes_with_its_last_query() -> None:
    engine = Engine()
    engine.create_stream("s", COLUMNS, time="ts")
    queries = [engine.submit("SELECT tag FROM s WHERE key = :k", params={"k": k}) for k in range(63)]

    def places() -> tuple[int, int, bool]:
        """In the filters, in the index of candidates, and whether there is one."""
        stream = engine.stats()["streams"]["s"]
        return stream["slots"], stream["candidates"], stream["bytes"]["candidates"] > 0

    assert places() == (63, 0, False)
    engine.push("s", {"key": [5], "ts": [1]})
    queries.append(engine.submit("SELECT tag FROM s WHERE key = 63"))
    assert places() == (0, 64, True)
    engine.push("s", {"key": [5, 63], "ts": [1, 1]})
    assert [engine.stats()["queries"][queries[k].name]["results"] for k in (5, 6, 63)] == [2, 0, 1]
    for query in queries:
        query.cancel()
        engine.check()
    assert places() == (0, 0, False)


def test_queries_on_several_keys_keep_all_their_keys_while_the_index_grows() -> None:
    """Asks for results only: where an entry was lost, a cancel would not come back."""
    engine = Engine()
    engine.create_stream("s", COLUMNS, time="ts")
    params = [{"a": 4 * k, "b": 4 * k + 2} for k in range(150)]
    queries = []
    for k, given in enumerate(params):
        if k == 63:
            # 63 pairs and one key: the hash has 127 keys, and grows between the two keys of the next pair
            engine.submit("SELECT tag FROM s [RANGE 1 HOUR] WHERE key = 999")
        queries.append(engine.submit("SELECT key FROM s [RANGE 1 HOUR] WHERE key IN (:a, :b)", params=given))
    engine.push("s", {"key": np.arange(600), "ts": np.full(600, 1000)})
    results = {query.name: engine.stats()["queries"][query.name]["results"] for query in queries}
    assert results == dict.fromkeys(results, 2)
    engine.check()
