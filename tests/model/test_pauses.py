"""After a pause very many rows end: the call is cut into commits, each of which is exact at its own time (semantics 11)."""

from __future__ import annotations

import tracemalloc
from collections import Counter
from typing import Any

import numpy as np
import pytest

from eddy import Engine
from tests.reference.limits import cut_ends
from tests.reference.script import Advance
from tests.reference.seeds import seeds
from tests.reference.window_harness import WindowHarness
from tests.reference.window_steps import EXPIRIES, make_window_script

MINUTE = 60_000_000
#: Ends of a commit, where a call is cut as the engine ships.
STEP = 4_096

#: Over a stream s with an `end` column in some, whose rows end in one way or another; the last reads the first by its name.
QUERIES = [
    "SELECT k, v FROM s [RANGE 10 SECONDS] WHERE v > 1",
    "SELECT DISTINCT k FROM s [RANGE 10 SECONDS]",
    "SELECT k FROM s [RANGE 10 SECONDS] EXCEPT SELECT k FROM s [RANGE 7 SECONDS] WHERE v > 2",
    "SELECT k, SUM(v) AS total FROM s [RANGE 10 SECONDS] GROUP BY k",
    "SELECT k, v FROM s [RANGE 10 SECONDS SLIDE 1 SECOND]",
    "SELECT k, window_end, COUNT(*) AS n FROM HOP(s, INTERVAL '2 seconds', INTERVAL '10 seconds') GROUP BY k, window_end",
    "SELECT a.v FROM (ISTREAM (SELECT k, v FROM s [RANGE UNBOUNDED])) [RANGE 10 SECONDS] AS a",
    "SELECT a.k, b.v FROM s [RANGE 10 SECONDS] AS a, (SELECT DISTINCT k, v FROM s [RANGE 5 SECONDS]) AS b WHERE a.k = b.k",
    "SELECT DISTINCT n.k FROM named AS n",
]
NAMED = "SELECT k, v FROM s [RANGE 10 SECONDS]"


def create(engine: Engine, **options: Any) -> None:
    engine.create_stream("s", {"k": "int", "v": "int", "until": "timestamp[us]", "ts": "timestamp[us]"}, time="ts", **options)
    engine.submit(NAMED, name="named")


def push(engine: Engine, n_rows: int = 60) -> None:
    """So many rows within nine seconds; their own ends, where they count, within another minute."""
    rng = np.random.default_rng(4)
    times = np.sort(rng.integers(0, 9_000_000, n_rows))
    own = times + rng.integers(1, MINUTE, n_rows)
    engine.push("s", {"k": rng.integers(0, 6, n_rows), "v": rng.integers(0, 5, n_rows), "until": own, "ts": times})


def clocks(engine: Engine, since: int) -> list[tuple[int, int]]:
    """Number and clock of the commits after one."""
    log = engine._catalog.timelines["main"].log
    return [(record.seq, record.after) for record in log.after(since)]


def changes_by_commit(engine: Engine, query: Any, since: int) -> dict[int, Counter[Any]]:
    found: dict[int, Counter[Any]] = {}
    for change in engine.changes(query, since=since):
        found.setdefault(change.seq, Counter())[change.sign, tuple(change.row.values())] += 1
    return found


@pytest.mark.parametrize("expiry", ["update-pattern", "input", "negative", "piggyback"])
@pytest.mark.parametrize("own_ends", [False, True])
@pytest.mark.parametrize("sql", QUERIES)
def test_a_pause_is_as_many_commits_as_its_ends_ask_for_and_each_is_as_if_called_alone(
    sql: str, own_ends: bool, expiry: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    engines, queries = [], []
    for _ in range(2):
        engine = Engine(expiry=expiry)
        create(engine, **({"end": "until"} if own_ends else {}))
        queries.append(engine.submit(sql))
        push(engine)
        engines.append(engine)
    cut, whole = engines
    before = cut.stats()["seq"]
    cut_ends(monkeypatch, 20, 6)
    cut.advance(np.datetime64(3 * MINUTE, "us"))
    monkeypatch.undo()
    made = clocks(cut, before)
    assert len(made) >= 5
    for seq, clock in made:
        whole.advance(np.datetime64(clock, "us"))
        assert whole.stats()["seq"] == seq
    assert changes_by_commit(cut, queries[0], before) == changes_by_commit(whole, queries[1], before)
    assert cut.answer(queries[0]).num_rows == 0
    cut.check()


@pytest.mark.parametrize("own_ends", [False, True])
def test_the_cuts_are_the_same_under_every_strategy(own_ends: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    cut_ends(monkeypatch, 50, 20)
    for expiry in EXPIRIES:
        engine = Engine(expiry=expiry)
        create(engine, **({"end": "until"} if own_ends else {}))
        for sql in QUERIES:
            engine.submit(sql)
        push(engine)
        before = engine.stats()["seq"]
        engine.advance(np.datetime64(3 * MINUTE, "us"))
        found.append(clocks(engine, before))
    assert len(found[0]) > 5 and all(made == found[0] for made in found)


@pytest.mark.parametrize("seed", seeds(range(300, 324), 8))
def test_random_queries_are_right_at_every_cut(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The model is taken to the clock of each commit, and has the answer that the changes up to it sum to."""
    script = make_window_script(seed, 15, plain=True)
    harness = WindowHarness(script, Engine)
    for step in script.steps:
        harness.do(step)
    engine, before = harness.engine, harness.engine.stats()["seq"]
    cut_ends(monkeypatch, 8, 4)
    engine.advance(np.datetime64(int(harness.model.now) + 10 * MINUTE, "us"))
    made = clocks(engine, before)
    relations = {label: query for label, query in harness.followed.items() if not query.tree.is_stream}
    for seq, clock in made:
        harness.player.do(Advance(clock, "main"))
        for label, query in relations.items():
            for change in engine.changes(query.handle, since=seq - 1):
                if change.seq == seq:
                    harness.add(query, change.sign, harness.value(query, change))
            expected = harness.model.answer(harness.player.numbers[label])
            harness.same_bag(query, f"changes up to {seq}", list(query.total.elements()), expected)
    assert relations
    engine.check()


@pytest.mark.parametrize("sql", [sql for sql in QUERIES if "HOP" not in sql and "AS b" not in sql])
def test_memory_does_not_double_and_no_commit_ends_more_than_a_step(sql: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What an instant ends is not parted: rows that HOP shows at a boundary, matches of one row."""
    n_rows, step = 40_000, 1000
    cut_ends(monkeypatch, 10 * step, step)
    engine = Engine(log_rows=step)
    create(engine)
    query = engine.submit(sql.replace("SLIDE 1 SECOND", "SLIDE 50 MILLISECONDS"))
    push(engine, n_rows)
    before = engine.stats()["seq"]
    per_commit: Counter[int] = Counter()
    engine.on_commit(lambda part: per_commit.update({part.seq: len(part.time)}))
    tracemalloc.start()
    try:
        engine.advance(np.datetime64(3 * MINUTE, "us"))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(clocks(engine, before)) >= n_rows // step
    assert peak < 100 * n_rows, "less than the rows and what a query keeps of them take"
    # `named` ends its rows too
    assert max(per_commit.values()) <= 3 * step
    assert engine.answer(query).num_rows == 0


@pytest.mark.parametrize(
    ("sql", "times"),
    [
        ("SELECT DISTINCT k FROM s [RANGE 10 SECONDS]", 1.4),
        # both inputs' events stand side by side while they are walked
        ("SELECT k FROM s [RANGE 10 SECONDS] EXCEPT SELECT k FROM s [RANGE 10 SECONDS] WHERE v > 3", 1.6),
        ("SELECT k FROM s [RANGE 10 SECONDS] EXCEPT ALL SELECT k FROM s [RANGE 10 SECONDS] WHERE v > 3", 1.6),
        ("SELECT k FROM s [RANGE 10 SECONDS] WHERE v < 3 UNION SELECT k FROM s [RANGE 10 SECONDS] WHERE v > 3", 1.6),
        ("SELECT k, SUM(v) AS total FROM s [RANGE 10 SECONDS] GROUP BY k", 1.5),
        ("SELECT k, v FROM s [RANGE 10 SECONDS SLIDE 10 SECONDS]", 1.3),
        ("SELECT k, SUM(v) AS total FROM s [RANGE 10 SECONDS SLIDE 10 SECONDS] GROUP BY k", 1.3),
    ],
)
def test_memory_hardly_grows_when_all_rows_end_at_one_instant(sql: str, times: float) -> None:
    """What is one instant cannot be cut."""
    n_rows, rng = 1 << 15, np.random.default_rng(5)
    tracemalloc.start()
    try:
        engine = Engine(log_rows=1000)
        engine.create_stream("s", {"k": "int", "v": "int", "ts": "timestamp[us]"}, time="ts")
        query = engine.submit(sql)
        for _ in range(8):
            n = n_rows // 8
            engine.push("s", {"k": rng.integers(0, n_rows // 4, n), "v": rng.integers(0, 5, n), "ts": np.full(n, 1)})
        # what slides is shown at its boundary
        engine.advance(np.datetime64(MINUTE // 6, "us"))
        before, _ = tracemalloc.get_traced_memory()
        tracemalloc.reset_peak()
        engine.advance(np.datetime64(MINUTE, "us"))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < times * before
    assert engine.answer(query).num_rows == 0
    engine.check()


MILLION = {
    "plain": "SELECT k, v FROM s [RANGE 10 SECONDS]",
    "distinct": "SELECT DISTINCT k FROM s [RANGE 10 SECONDS]",
    "groups": "SELECT k, COUNT(*) AS n, SUM(v) AS total FROM s [RANGE 10 SECONDS] GROUP BY k",
    "difference": "SELECT k FROM s [RANGE 10 SECONDS] EXCEPT SELECT k FROM s [RANGE 10 SECONDS] WHERE v = 3",
}


@pytest.mark.slow
@pytest.mark.parametrize("expiry", ["auto", "negative", "piggyback", "input"])
def test_a_million_ends_after_a_pause_are_commits_cut_at_instants_each_exact_at_its_own_time(expiry: str) -> None:
    n_rows, n_keys, width = 1_100_000, 30_000, 10_000_000
    rng = np.random.default_rng(7)
    times = np.sort(rng.integers(0, width, n_rows) // 5 * 5)
    keys, values = rng.integers(0, n_keys, n_rows), rng.integers(0, 1000, n_rows)
    with Engine(expiry=expiry) as engine:
        engine.create_stream("s", {"k": "int", "v": "int", "ts": "timestamp[us]"}, time="ts")
        queries = {kind: engine.submit(sql) for kind, sql in MILLION.items()}
        for part in np.array_split(np.arange(n_rows), 50):
            engine.push("s", {"k": keys[part], "v": values[part], "ts": times[part]})
        before = engine.stats()["seq"]
        # what each query was told, as arrays by key: copies, or count and sum
        shown = {kind: np.zeros((n_keys, 2), np.int64) for kind in MILLION}
        shown["plain"][:, 0] = np.bincount(keys, minlength=n_keys)
        shown["distinct"][:, 0] = 1
        shown["groups"][:] = np.stack([np.bincount(keys, minlength=n_keys), np.bincount(keys, values, n_keys)], axis=1)
        shown["difference"][:, 0] = _without(keys, values, n_keys)
        assert {kind: engine.answer(query).num_rows for kind, query in queries.items() if kind != "plain"} == {
            kind: np.count_nonzero(shown[kind][:, 0]) for kind in MILLION if kind != "plain"
        }
        by_id = {query.id: kind for kind, query in queries.items()}
        sizes: Counter[int] = Counter()
        checked: list[tuple[int, int]] = []

        def listen(part: Any) -> None:
            ids, offsets, rows = part.row_lists()
            columns = {name: column.to_numpy(zero_copy_only=False) for name, column in part.columns.items()}
            for at, id in enumerate(ids.tolist()):
                kind, listed = by_id[id], rows[offsets[at] : offsets[at + 1]]
                measures = [np.ones(len(listed), np.int64)] * 2
                if kind == "groups":
                    measures = [columns["n"][listed], columns["total"][listed]]
                for column, measure in enumerate(measures if kind == "groups" else measures[:1]):
                    np.add.at(shown[kind][:, column], columns["k"][listed], part.sign[listed] * measure)
                sizes[part.seq] += len(listed) * (kind == "plain")
            if part.last:
                clock = clocks(engine, part.seq - 1)[0][1]
                check_shown(shown, clock - width)
                checked.append((part.seq, clock))

        def check_shown(told: dict[str, np.ndarray], gone: int) -> None:
            first = int(np.searchsorted(times, gone, "right"))
            k, v = keys[first:], values[first:]
            counts = np.bincount(k, minlength=n_keys)
            assert (told["plain"][:, 0] == counts).all()
            assert (told["distinct"][:, 0] == (counts > 0)).all()
            assert (told["groups"] == np.stack([counts, np.bincount(k, v, n_keys)], axis=1)).all()
            assert (told["difference"][:, 0] == _without(k, v, n_keys)).all()

        engine.on_commit(listen)
        engine.advance(np.datetime64(3 * MINUTE, "us"))
        made = clocks(engine, before)
        assert len(made) > 1_000_000 // STEP and checked == made
        assert sorted({clock for _, clock in made}) == [clock for _, clock in made]
        # an instant is never parted: so many rows more
        assert max(sizes.values()) <= STEP + np.bincount(times // 5).max()
        assert sum(sizes.values()) == n_rows and not any(told.any() for told in shown.values())
        engine.check()


def _without(keys: np.ndarray, values: np.ndarray, n_keys: int) -> np.ndarray:
    """1 for each key that has a row, and none whose value is 3."""
    found: np.ndarray = (np.bincount(keys, minlength=n_keys) > 0) & (np.bincount(keys[values == 3], minlength=n_keys) == 0)
    return found
