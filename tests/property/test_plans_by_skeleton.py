"""A text planned by its skeleton has the plan, or the error, that it has when it is parsed and bound by itself."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from typing import Any

import pytest

from eddy import Engine
from eddy.catalog import planner as planning
from eddy.catalog.planner import Planner
from lineage.errors import EddyError
from queries.lifting import Lifted, Lifting
from tests.reference.comparison import compared
from tests.reference.functions import FUNCTIONS
from tests.reference.join_workload import Source as JoinSource
from tests.reference.join_workload import random_join
from tests.reference.plans import VALUES, differing, other_literals
from tests.reference.seeds import seeds
from tests.reference.tree_sql import as_sql
from tests.reference.window_steps import random_sources, tree_maker
from tests.reference.workload import random_query

COLUMNS = {
    "id": "int",
    "x": "float",
    "s": "string",
    "ok": "bool",
    "at": "timestamp[us]",
    "ts": "timestamp",
    "n": "int",
    "y": "float",
}


def new_engine() -> Engine:
    engine = Engine()
    engine.register("risky", lambda *given: None, returns="int")
    for name, function in FUNCTIONS.items():
        engine.register(name, function.fn, returns=function.returns)
    return engine


def outcome(plan: Callable[[], Any]) -> Any:
    try:
        return plan()
    except EddyError as error:
        return {name: getattr(error, name, None) for name in ("fact", "code", "hint", "line", "column", "excerpt")}


def same_plans(planner: Planner, sql: str, params: dict[str, Any]) -> bool:
    """Assert that a text has one plan; whether it has any."""
    compared()
    found, expected = outcome(lambda: planner.plan(sql, params)), outcome(lambda: planner.plan_afresh(sql, params))
    place = differing(found, expected)
    assert place is None, f"{sql!r} {params!r}\n{place}"
    return not isinstance(expected, dict)


def drawn(rng: random.Random, params: dict[str, Any]) -> dict[str, Any]:
    """The parameters, some of them with other values, and now and then one too many or too few."""
    found = {name: rng.choice(VALUES) if rng.random() < 0.4 else value for name, value in params.items()}
    if found and rng.random() < 0.05:
        del found[next(iter(found))]
    return {**found, "more": 1} if rng.random() < 0.03 else found


def try_texts(rng: random.Random, planner: Planner, asked: Iterable[tuple[str, dict[str, Any]]]) -> None:
    """Compare texts, and the same with other literals, in one planner that comes to know them all."""
    for sql, params in asked:
        n_planned = int(same_plans(planner, sql, params))
        for n in range(12):
            other = other_literals(rng, sql, rng.choice([0.2, 0.5, 1.0]), rng.choice([0.0, 0.0, 0.1, 0.4]))
            n_planned += same_plans(planner, other, drawn(rng, params) if n % 2 else params)
        assert n_planned, sql


@pytest.mark.parametrize("seed", seeds(range(40), 6))
def test_conditions_over_one_stream_are_planned_alike(seed: int) -> None:
    rng = random.Random(seed)
    engine = new_engine()
    engine.create_stream("r", COLUMNS, time="ts", key=["id"] if seed % 3 == 2 else None)
    planner = engine._lives._planner
    made = [random_query(rng, "r", COLUMNS, [1_700_000_000_000_000]) for _ in range(25)]
    try_texts(rng, planner, [(spec.sql, spec.params) for spec in made])


@pytest.mark.parametrize("seed", seeds(range(40), 6))
def test_joins_are_planned_alike(seed: int) -> None:
    rng = random.Random(seed)
    engine = new_engine()
    sources = [JoinSource("r", COLUMNS, False), JoinSource("q", COLUMNS, False), JoinSource("t", COLUMNS, True)]
    for name in "rq":
        engine.create_stream(name, COLUMNS, time="ts")
    engine.create_table("t", COLUMNS, key=["id"])
    planner = engine._lives._planner
    made = [random_join(rng, sources, [1_700_000_000_000_000]) for _ in range(20)]
    try_texts(rng, planner, [(spec.sql, spec.params) for spec in made])


@pytest.mark.parametrize("seed", seeds(range(60), 8))
def test_trees_are_planned_alike(seed: int) -> None:
    rng = random.Random(seed)
    engine = Engine()
    streams, tables = random_sources(rng)
    for stream in streams:
        engine.create_stream(stream.name, stream.columns, time="ts", key=stream.key or None, end=stream.end)
    for table in tables:
        engine.create_table(table.name, table.columns, key=list(table.key), retroactive=table.retroactive)
    trees = tree_maker(rng, streams, tables)
    try_texts(rng, engine._lives._planner, [(as_sql(trees.query()), {}) for _ in range(16)])


PAIRS: list[tuple[str, list[str]]] = [
    ("SELECT id FROM r WHERE x > {} + {} AND id <> {}", ["2", "3", "0", "2.5"]),
    ("SELECT id FROM r WHERE x > {} AND x < {}", ["1", "2", "5", "5.0"]),
    ("SELECT id FROM r WHERE id = {} AND id = {}", ["1", "2", "1.0", "1.5"]),
    ("SELECT id FROM r WHERE id BETWEEN {} AND {} OR {} BETWEEN 3 AND id", ["1", "3", "9", "3.5"]),
    ("SELECT id FROM r WHERE -x < -{} AND id > - {} AND y = -{}", ["1", "0", "0.0", "9223372036854775808"]),
    ("SELECT id, {} AS one FROM r WHERE {} = {} AND s = {}", ["1", "'a'", "2", "'b'"]),
    ("SELECT id FROM r WHERE ts > {} AND ts <= {} AND s = {}", ["'2024-05-01'", "'2024-05-01 00:00:00'", "'a'", "1"]),
    ("SELECT id FROM r WHERE ts > TIMESTAMP {} AND ts < TIMESTAMP {}", ["'2024-05-01'", "'2024-05-02'", "'a'"]),
    ("SELECT id FROM r WHERE s LIKE {} ESCAPE {}", ["'a%'", "'!'", "'ab'", "1"]),
    ("SELECT id FROM r WHERE s IN ({}, {}, NULL) OR id NOT IN ({}, 7)", ["1", "'a'", "'b'", "7"]),
    ("SELECT id FROM r [ROWS {}] WHERE x > {}", ["1", "2", "0", "1.5"]),
    ("SELECT id FROM r [RANGE {} SECONDS] WHERE ts > {}", ["1", "2", "'2024-05-01'", "'1'"]),
    ("SELECT id FROM r [RANGE INTERVAL {} SECOND] WHERE s = {}", ["'1'", "'2'", "5"]),
    ("SELECT id FROM r WHERE ts - INTERVAL {} MINUTE > {}", ["'1'", "'2'", "'2024-05-01'", "3"]),
    ("SELECT EXTRACT(hour FROM ts) AS h FROM r WHERE DATE_TRUNC({}, ts) = {}", ["'day'", "'hour'", "'2024-05-01'"]),
    ("SELECT STRFTIME(ts, {}) AS f FROM r WHERE SUBSTR(s, {}) = {}", ["'%Y'", "'%q'", "1", "2", "'a'"]),
    ("SELECT x + {} AS z FROM r WHERE CASE WHEN x > {} THEN {} ELSE x END > {}", ["1", "2", "1.0", "'a'"]),
    ("SELECT COALESCE(id, {}) AS z FROM r WHERE NULLIF(id, {}) > {}", ["1", "2", "1.5", "'a'"]),
    ("SELECT COUNT(*) AS n FROM r [NOW] GROUP BY {} HAVING x > {}", ["1", "2", "'a'"]),
    ("SELECT x > {} AS big, COUNT(*) AS n FROM r [NOW] GROUP BY x > {} HAVING COUNT(*) > {}", ["1", "2", "1.0"]),
    ("SELECT x, COUNT(*) AS n FROM r [NOW] GROUP BY x, x > {} HAVING x > {}", ["1", "2", "1.0", ".5", "0.5"]),
    ("SELECT x, COUNT(*) AS n FROM r [NOW] GROUP BY x, x > .5 HAVING x > {}", ["1", "0.5", "2"]),
    ("SELECT SUM(x * {}) AS a, SUM(x * {}) AS b FROM r [NOW] HAVING SUM(x * {}) > {}", ["1", "2", "1.0"]),
    ("SELECT COUNT({}) AS a, COUNT(*) FILTER (WHERE x > {}) AS b FROM r [NOW] WHERE id = {}", ["1", "2", "'a'"]),
    ("SELECT id FROM r [NOW] WHERE x > {} UNION SELECT id FROM r [NOW] WHERE x > {}", ["1", "2", "1.0"]),
    ("SELECT {} AS a FROM r [NOW] UNION ALL SELECT {} AS a FROM r [NOW]", ["1", "2.5", "'a'", "NULL"]),
    ("SELECT a.id FROM r [NOW] AS a, r [NOW] AS b WHERE a.id - b.id < {} AND a.x = b.x AND a.x > {}", ["1", "2", "2.5"]),
    ("SELECT a.id FROM r [NOW] AS a, r [NOW] AS b WHERE a.ts < b.ts + INTERVAL {} SECOND AND a.n + {} = b.n", ["'1'", "1", "2"]),
    ("SELECT a.id FROM r [NOW] AS a, r [NOW] AS b WHERE a.x + b.x > {} AND a.id = b.id AND b.id = {}", ["1", "2", "1.0"]),
    ("WITH w AS (SELECT id, x FROM r [NOW] WHERE x > {}) SELECT a.id FROM w AS a, w AS b WHERE a.id = b.id AND a.x < {}", ["1"]),
    ("SELECT id FROM (SELECT DISTINCT id, n FROM r [NOW] WHERE n > {}) AS u WHERE id > {} AND {} < n", ["1", "2", "1.5"]),
    ("SELECT id FROM r WHERE risky(id, {}) > {} AND s || {} = {}", ["1", "2", "'a'", "'b'"]),
]  # fmt: skip


@pytest.mark.parametrize("text", [text for text, _ in PAIRS])
def test_literals_in_special_places_are_planned_alike(text: str) -> None:
    rng = random.Random(text)
    engine = new_engine()
    engine.create_stream("r", COLUMNS, time="ts")
    planner = engine._lives._planner
    literals = dict(PAIRS)[text]
    names = ["p", "q", "o", "v"]
    for _ in range(150):
        wanted = [rng.choice(literals) for _ in range(text.count("{}"))]
        params: dict[str, Any] = {}
        for at, name in enumerate(names[: len(wanted)]):
            if rng.random() < 0.25:
                wanted[at] = f":{name}"
                params[name] = rng.choice(VALUES)
        same_plans(planner, text.format(*wanted), params)


def _no_reads(lifted: Lifted) -> Any:
    return lifted.plain().value


def _no_sameness(values: Any, fixed: Any) -> None:
    return None


def _no_pins(lifting: Lifting, slots: Any, taken: Any) -> tuple[int, ...]:
    lifted = {slot for slot, _ in lifting.constants}
    return tuple(slot for slot in range(len(slots)) if slot not in lifted)


@pytest.mark.long
@pytest.mark.parametrize(
    ("where", "name", "wrong"),
    [
        (Lifted, "read", _no_reads),
        (planning, "sameness", _no_sameness),
        (Lifting, "pinned", _no_pins),
        (planning, "NEGATIVE", -1),
        (planning._Reading, "fits", lambda reading, catalog: True),
    ],
)
def test_a_planner_that_takes_texts_for_alike_that_are_not_is_found_out(
    monkeypatch: pytest.MonkeyPatch, where: Any, name: str, wrong: Any
) -> None:
    monkeypatch.setattr(where, name, wrong)
    if where is Lifted:
        monkeypatch.setattr(Lifted, "value", property(wrong))
    with pytest.raises((AssertionError, TypeError)):
        for text, _ in PAIRS:
            test_literals_in_special_places_are_planned_alike(text)
        engine = new_engine()
        engine.create_stream("r", COLUMNS, time="ts")
        same_plans(engine._lives._planner, "SELECT id FROM r WHERE id > 1", {})
        engine.drop("r")
        engine.create_stream("r", {"x": "int", "id": "string"})
        same_plans(engine._lives._planner, "SELECT id FROM r WHERE id > 1", {})
