"""Queries that run in another way after every commit: the same answers and changes as the model's, and as under every word."""

from __future__ import annotations

import datetime as dt
import random
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from eddy import Engine, Query
from eddy.operators.replanning import ReplanPace
from eddy.operators.tree_query import TreeQuery
from tests.reference.seeds import seeds
from tests.reference.window_harness import replay
from tests.reference.window_script import Open
from tests.reference.window_steps import make_window_script

START = dt.datetime(2024, 1, 1)
WORDS = ["negative", "direct", "update-pattern", "input", "negative+message", "piggyback"]


def rotating(**options: Any) -> Engine:
    """An engine that builds the operators of every query it can anew after each commit, in the next way there is."""
    engine = Engine(**{**options, "expiry": "auto"})
    engine._lives.pace = ReplanPace(every=1, rotates=True)
    return engine


@pytest.mark.parametrize("plain", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_a_seed_passes_when_every_commit_is_followed_by_another_plan(seed: int, plain: bool) -> None:
    script = make_window_script(400 + seed, 20, plain=plain)
    steps = [replace(step, expiry=None) if isinstance(step, Open) else step for step in script.steps]
    replay(replace(script, steps=steps), rotating)


#: steps of a script by its seed; what failed is `CASE` now, for the generator has grown and the seed draws other steps
FAILED_ONCE = {500_018: 25}


@pytest.mark.parametrize("seed", FAILED_ONCE)
def test_a_seed_that_failed_once_passes(seed: int) -> None:
    script = make_window_script(seed, FAILED_ONCE[seed])
    steps = [replace(step, expiry=None) if isinstance(step, Open) else step for step in script.steps]
    replay(replace(script, steps=steps), rotating)


#: What failed once: a window in steps that is read by its name gave its rows in another order than they came.
BELOW = "SELECT r1.g AS c0, (r1.n / 2) AS c1 FROM s0 [RANGE 4 MILLISECONDS SLIDE 2 MILLISECONDS] AS r1"
ABOVE = (
    "SELECT r4.c1 AS c0, r4.c2 AS c1 FROM (SELECT CASE WHEN r1.c1 IS NULL THEN 0 ELSE 0 END AS c0 FROM v2 AS r1) AS r2, "
    "(SELECT r3.k AS c0, (r3.n - 3) AS c1, r3.g AS c2 FROM s1 [RANGE 8 MILLISECONDS] AS r3) AS r4 "
    "WHERE (r2.c0 = r4.c1) AND ((r4.c2 = '') OR (r2.c0 >= r4.c0))"
)
NAMES = {"s0": ("n", "g", "ts"), "s1": ("k", "n", "g", "until", "ts")}
#: rows pushed together, or the time that is advanced to; `ABOVE` is submitted where None stands
CASE: list[dict[str, list[tuple[Any, ...]]] | float | None] = [
    -10.0,
    -9.001,
    -9.0,
    {
        "s1": [
            (0, 1, "a", -6000, -9000),
            (1, 3, "b", -8999, -9000),
            (0, 2, "a", -8000, -9000),
            (0, 2, "a", -7500, -8500),
            (0, 0, "a", -8499, -8500),
            (1, None, "a", None, -7500),
        ]
    },
    {"s0": [(0, "b", -7000), (1, None, -3000), (None, None, -1500), (0, "", -500), (3, "", 1000), (1, "b", 1000)]},
    {"s0": [(None, None, 8500)]},
    None,
    13.5,
    {"s0": [(3, "", 15000), (1, None, 15000), (1, "", 15000), (2, None, 15000), (None, "a", 15000), (0, "a", 15000)]},
    14.5,
    {"s0": [(None, "", 15586), (None, "a", 21993), (3, None, 23922)]},
    {"s0": [(2, "", 24810), (None, "", 22974), (1, "a", 23755), (0, None, 25921), (2, "a", 24978), (1, "", 24741)]},
    {"s1": [(None, 0, None, 25922, 25922)]},
    {"s1": [(1, 0, "a", 31000, 28000), (1, None, "a", 31000, 30000), (1, 3, None, None, 31000), (1, 1, "a", None, 34000)]},
    {
        "s1": [
            (1, 0, "a", 35000, 34000),
            (2, 3, "a", 37000, 34000),
            (1, 1, "a", None, 34000),
            (2, 2, "a", 35000, 34000),
            (1, 2, "a", 37000, 34000),
            (2, None, None, None, 34000),
        ]
    },
    {
        "s0": [(3, "a", 34202), (None, "a", 35047), (None, "a", 35105), (None, "a", 35385), (2, None, 35487), (1, "a", 35569)],
        "s1": [
            (None, 0, "b", 35001, 35000),
            (1, 0, None, 38000, 35000),
            (1, 3, "a", 37000, 36000),
            (None, 1, "a", 37000, 36000),
            (2, 2, None, 37000, 37000),
        ],
    },
    37.0,
    {
        "s1": [
            (0, 2, "b", 42423, 39423),
            (0, 0, "b", 42467, 39467),
            (2, None, "b", 39754, 39753),
            (None, 1, "", None, 40182),
            (1, None, "b", 40226, 40226),
            (1, 1, "a", 40282, 40282),
            (0, 3, "a", None, 40761),
            (0, 3, None, 40997, 40996),
        ]
    },
    {
        "s0": [
            (3, "b", 40000),
            (2, None, 40000),
            (None, "a", 40000),
            (0, "a", 40000),
            (None, "b", 40000),
            (2, "b", 40000),
            (1, "a", 40000),
            (2, None, 40000),
        ]
    },
    {"s0": [(1, "b", 43500)]},
    48.5,
    {
        "s1": [
            (1, 1, "a", 51001, 51000),
            (1, 1, "", 54000, 51000),
            (1, 1, "a", 54000, 52000),
            (None, 1, "a", None, 52000),
            (1, 1, "b", None, 54000),
            (None, 0, "a", 54001, 54000),
            (2, 2, None, None, 55000),
            (1, 0, "a", 57000, 57000),
        ],
        "s0": [(3, "a", 57000), (0, "a", 58000), (2, None, 60000)],
    },
    {"s0": [(1, None, 68500)], "s1": [(0, 0, None, 68500, 68500), (None, 0, None, 69500, 68500), (0, 0, "a", 70500, 68500)]},
    {
        "s1": [
            (0, 1, None, 71501, 71500),
            (0, 2, "a", 75500, 72500),
            (2, 1, "a", None, 74500),
            (None, 0, None, 75000, 75000),
            (2, None, "a", 75501, 75500),
            (2, 1, "a", None, 75500),
        ],
        "s0": [(1, "a", 73881), (3, "a", 76482)],
    },
    81.482,
    181.482,
]


def run_case(engine: Engine) -> tuple[Query, Query]:
    """Take the steps; the queries below and above."""
    types = {"k": "int", "n": "int", "g": "string", "until": "timestamp[us]", "ts": "timestamp[us]"}
    keep = dt.timedelta(seconds=1000)
    lateness, late = dt.timedelta(microseconds=1), "drop"
    engine.create_stream("s0", {name: types[name] for name in NAMES["s0"]}, time="ts", lateness=lateness, late=late, keep=keep)
    engine.create_stream("s1", {name: types[name] for name in NAMES["s1"]}, time="ts", keep=keep, end="until")
    below = engine.submit(BELOW, name="v2")
    for step in CASE:
        if isinstance(step, dict):
            engine.push_many({name: [dict(zip(NAMES[name], row, strict=True)) for row in rows] for name, rows in step.items()})
        elif step is None:
            above = engine.submit(ABOVE, history="window", emit="event")
        else:
            engine.advance(step)
        engine.check()
    return below, above


@pytest.mark.parametrize("word", WORDS)
def test_a_window_in_steps_that_is_read_by_its_name_gives_its_rows_in_the_order_in_which_they_came(word: str) -> None:
    rotated, plain = rotating(policy="random", batch_rows=1), Engine(expiry=word)
    found, expected = run_case(rotated), run_case(plain)
    for query, same in zip(found, expected, strict=True):
        assert list(rotated.changes(query, 0)) == list(plain.changes(same, 0))
    came: dict[dt.datetime, list[tuple[Any, ...]]] = {}
    for change in rotated.changes(found[0], 0):
        if change.sign > 0:
            came.setdefault(change.time, []).append(tuple(change.row.values()))
    sent = sorted((row for step in CASE if isinstance(step, dict) for row in step.get("s0", ())), key=lambda row: row[2])
    assert len(came) == 8
    for rows in came.values():
        # each of them is found behind the one before
        waiting = iter([(g, None if n is None else n / 2) for n, g, _ in sent])
        assert all(row in waiting for row in rows), rows


@pytest.mark.slow
@pytest.mark.parametrize("seed", seeds(range(30), 8))
def test_one_of_many_seeds_passes_when_every_commit_is_followed_by_another_plan(seed: int) -> None:
    script = make_window_script(3_000 + seed, 40)
    steps = [replace(step, expiry=None) if isinstance(step, Open) else step for step in script.steps]
    replay(replace(script, steps=steps), rotating)


A, B = "SELECT i, s FROM a [RANGE 40 MILLISECONDS]", "SELECT i, s FROM b [RANGE 25 MILLISECONDS]"
QUERIES = {
    "join over minus": f"SELECT m.i, c.x FROM ({A} EXCEPT ALL {B}) AS m, c [RANGE 30 MILLISECONDS] AS c WHERE m.i = c.i",
    "join over a set minus": f"SELECT m.s, c.x FROM ({A} EXCEPT {B}) AS m, c [RANGE 30 MILLISECONDS] AS c WHERE m.i = c.i",
    "count over join over minus": f"SELECT m.s, COUNT(*) AS n, SUM(c.x) AS x FROM ({A} EXCEPT ALL {B}) AS m, "
    "c [RANGE 50 MILLISECONDS] AS c WHERE m.i = c.i GROUP BY m.s",
    "distinct over a join of queries": "SELECT DISTINCT l.i FROM (SELECT DISTINCT i, s FROM a [RANGE 40 MILLISECONDS]) AS l, "
    "b [RANGE 30 MILLISECONDS] AS r WHERE l.s = r.s",
    "distinct over a join": "SELECT DISTINCT l.i FROM a [RANGE 40 MILLISECONDS] AS l, b [RANGE 9 MILLISECONDS] AS r "
    "WHERE l.i = r.i",
    "distinct over union all": f"SELECT DISTINCT s FROM ({A} UNION ALL {B}) AS u WHERE i > 1",
    "minus over rows": "SELECT i FROM a [ROWS 7] EXCEPT SELECT i FROM k [RANGE 50 MILLISECONDS]",
    "first and last of a stream": "SELECT s, FIRST(i) AS f, LAST(i) AS l, MEDIAN(i) AS m "
    "FROM a [RANGE 40 MILLISECONDS] GROUP BY s",
    "a live table": f"SELECT m.i, t.s FROM ({A} EXCEPT {B}) AS m, t WHERE m.i = t.i",
    "a frozen table in a block": "SELECT DISTINCT u.s FROM a [RANGE 40 MILLISECONDS] AS a, u WHERE a.i = u.i",
    "a query by name": "SELECT i, COUNT(*) AS n FROM kept GROUP BY i",
}  # fmt: skip


def make(engine: Engine, emit: str = "commit") -> tuple[Engine, dict[str, Query]]:
    columns = {"ts": "timestamp", "i": "int", "s": "string", "x": "int"}
    for name in "abc":
        engine.create_stream(name, columns, time="ts")
    engine.create_stream("k", columns, time="ts", key=["i"])
    engine.create_table("t", {"i": "int", "s": "string"}, key=["i"], retroactive=True)
    engine.create_table("u", {"i": "int", "s": "string"}, key=["i"], retroactive=False)
    engine.upsert("u", [{"i": i, "s": str(i % 3)} for i in range(4)])
    engine.submit("SELECT DISTINCT i, s FROM a [RANGE 40 MILLISECONDS]", name="kept", expiry="update-pattern")
    return engine, {name: engine.submit(sql, emit=emit) for name, sql in QUERIES.items()}


def feed(rng: random.Random, engines: list[Engine], at: int) -> None:
    """One random call, the same to all."""
    stream, time = rng.choice("abck"), START + dt.timedelta(milliseconds=at)
    kind = rng.random()
    if kind < 0.1:
        row = {"i": rng.randrange(6), "s": rng.choice("pq")}
        for engine in engines:
            engine.upsert("t", [row])
    elif kind < 0.2:
        for engine in engines:
            engine.advance(time)
    else:
        rows = []
        for _ in range(rng.randrange(1, 5)):
            rows.append({"ts": time, "i": rng.randrange(6), "s": rng.choice(["p", "q", None]), "x": rng.randrange(9)})
        for engine in engines:
            engine.push(stream, rows)


def changes(query: Query, engine: Engine, since: int) -> dict[int, Counter[Any]]:
    found: dict[int, Counter[Any]] = {}
    for change in engine.changes(query, since=since):
        found.setdefault(change.seq, Counter())[(change.sign, tuple(change.row.values()))] += 1
    return found


@pytest.mark.parametrize(("seed", "emit"), [(0, "commit"), (1, "event"), (2, "commit")])
def test_every_word_and_every_plan_gives_the_same_answers_and_changes(seed: int, emit: str) -> None:
    rng = random.Random(seed)
    word = WORDS[seed % len(WORDS)]
    sides = [make(rotating(), emit), make(Engine(expiry=word), emit), make(Engine(), emit)]
    for step in range(40):
        feed(rng, [engine for engine, _ in sides], 4 * step)
        for engine, _ in sides:
            engine.check()
        for name in QUERIES:
            answers = [Counter(map(str, engine.answer(queries[name]).to_pylist())) for engine, queries in sides]
            assert answers[0] == answers[1] == answers[2], f"{name} under {word} at step {step}"
    for name in QUERIES:
        told = [changes(queries[name], engine, 0) for engine, queries in sides]
        assert told[0] == told[1] == told[2], name
    rotated = sides[0][1]
    for name, query in rotated.items():
        assert isinstance(query, TreeQuery) and query.operation is not None
        assert query.operation.template.replanner.n_changes > 10, name


def test_every_form_is_run() -> None:
    ran: set[str] = set()
    engine, queries = make(rotating())
    rng = random.Random(1)
    for at in range(12):
        feed(rng, [engine], at)
        ran |= {query.explain()["plan"]["form"] for query in queries.values()}
    assert ran == {"as written", "negation pulled up", "distinct pushed down"}


def test_a_query_that_is_read_by_name_stays_as_it_is() -> None:
    engine = rotating()
    engine.create_stream("a", {"ts": "timestamp", "i": "int"}, time="ts")
    below = engine.submit("SELECT DISTINCT i FROM a [RANGE 40 MILLISECONDS]", name="below")
    above = engine.submit("SELECT COUNT(*) AS n FROM below")
    for at in range(10):
        engine.push("a", [{"ts": START + dt.timedelta(milliseconds=at), "i": at % 3}])
    assert isinstance(below, TreeQuery) and below.operation is not None
    assert below.operation.template.replanner.n_changes == 0
    assert engine.answer(above).to_pylist() == [{"n": 3}]
    engine.cancel(above)
    engine.push("a", [{"ts": START + dt.timedelta(milliseconds=20), "i": 7}])
    assert below.operation.template.replanner.n_changes == 1
