"""Sums of a running query do not drift: numbers of all magnitudes come and go, and every answer is that of its window alone.

Under `auto` aggregates are shared between queries: by regions where the condition is an interval, by pairs where it is not. Under
the other words each query has its own operator.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from eddy import Engine
from tests.reference.workload import to_datetime

EXPIRIES = ("auto", "update-pattern")
SQL = "SELECT COUNT(*) AS n, SUM(x) AS s, AVG(x) AS a, VARIANCE(x) AS v, STDDEV(x) AS d FROM s [RANGE {} MICROSECONDS]{}"
#: condition -> which rows it takes, by c
CONDITIONS = {"": range(10), " WHERE c < 6": range(6), " WHERE c < 2 OR c > 6 OR x IS NULL": (0, 1, 7, 8, 9)}
#: how the queries of these conditions have their sums, where they are shared
PATHS = ["region path", "region path", "pair path"]


def mixed(n_rows: int, seed: int) -> np.ndarray:
    """Magnitudes from 1e-8 to 1e12, of both signs; long runs of small numbers follow large ones."""
    rng = np.random.default_rng(seed)
    exponents = np.where(np.arange(n_rows) // 7000 % 2 == 0, rng.uniform(-8, 12, n_rows), rng.uniform(-8, -4, n_rows))
    found: np.ndarray = rng.choice([-1.0, 1.0], n_rows) * rng.uniform(1, 10, n_rows) * 10.0 ** np.minimum(exponents, 11)
    return found


def check_answer(row: dict[str, float], window: np.ndarray) -> None:
    """Within the bounds of semantics 20 of values computed anew."""
    exact, scale, n = math.fsum(window), math.fsum(np.abs(window)), len(window)
    assert row["n"] == n
    assert abs(row["s"] - exact) <= 1e-12 * scale
    assert abs(row["a"] - exact / n) <= 1e-12 * scale / n
    variance = math.fsum((window - exact / n) ** 2) / (n - 1)
    assert row["v"] == pytest.approx(variance, rel=1e-9, abs=0)
    assert row["d"] == pytest.approx(math.sqrt(variance), rel=1e-9, abs=0)


def run(n_rows: int, width: int, n_commit: int, seed: int, expiry: str) -> int:
    """Rows a microsecond apart; returns how many instants were compared."""
    values, chosen = mixed(n_rows, seed), np.random.default_rng(seed).integers(0, 10, n_rows)
    compared = 0
    with Engine(expiry=expiry) as engine:
        engine.create_stream("s", {"x": "float", "c": "int", "ts": "timestamp[us]"}, time="ts")
        queries = [engine.submit(SQL.format(width, condition)) for condition in CONDITIONS]
        taken = [np.isin(chosen, list(wanted)) for wanted in CONDITIONS.values()]
        for start in range(0, n_rows, n_commit):
            times = np.arange(start, min(start + n_commit, n_rows))
            engine.push("s", {"x": values[times], "c": chosen[times], "ts": times})
            come = int(times[-1]) + 1
            if come % 1000 == 0:
                seen = slice(max(0, come - width), come)
                for query, takes in zip(queries, taken):
                    check_answer(query.answer().to_pylist()[0], values[seen][takes[seen]])
                compared += 1
        if expiry == "auto":
            assert [engine.explain(query)["shared"] for query in queries] == PATHS
        engine.advance(to_datetime(n_rows + width))
        nothing = {"n": 0, "s": None, "a": None, "v": None, "d": None}
        for query in queries:
            assert query.answer().to_pylist() == [nothing], "an emptied window is what it was before the first row"
        engine.push("s", {"x": [0.1, 0.2], "c": [0, 1], "ts": [n_rows + width + 1] * 2})
        for query in queries:
            (again,) = query.answer().to_pylist()
            assert (again["s"], again["a"]) == (0.1 + 0.2, (0.1 + 0.2) / 2), "and nothing of those that were is left"
        engine.check()
    return compared


@pytest.mark.parametrize("expiry", EXPIRIES)
@pytest.mark.parametrize(("width", "n_commit"), [(700, 250), (3000, 1000), (40, 8)])
def test_sums_of_forty_thousand_rows_do_not_drift(width: int, n_commit: int, expiry: str) -> None:
    assert run(40_000 if n_commit > 8 else 8_000, width, n_commit, 1, expiry) >= 8


@pytest.mark.parametrize("expiry", ["input", "negative", "negative+message", "piggyback", "direct"])
def test_nor_do_they_however_ends_are_found(expiry: str) -> None:
    assert run(20_000, 700, 250, 4, expiry) == 20


@pytest.mark.long
@pytest.mark.parametrize("expiry", EXPIRIES)
@pytest.mark.parametrize(("width", "n_commit"), [(5000, 1000), (20_000, 500)])
def test_sums_of_a_million_rows_do_not_drift(width: int, n_commit: int, expiry: str) -> None:
    assert run(1_000_000, width, n_commit, 2, expiry) == 1000


@pytest.mark.parametrize("expiry", EXPIRIES)
def test_sums_of_groups_do_not_drift_either(expiry: str) -> None:
    """Groups that empty and come again, next to others that never do; rows also end before their time."""
    n_rows, width = 30_000, 900
    values, keys = mixed(n_rows, 3), np.random.default_rng(3).integers(0, 5, n_rows)
    # key 4 comes only now and then, so that its group is often empty
    keys[(keys == 4) & (np.arange(n_rows) // 3000 % 2 == 1)] = 3
    with Engine(expiry=expiry) as engine:
        engine.create_stream("s", {"k": "int", "x": "float", "ts": "timestamp[us]"}, time="ts")
        ranged = engine.submit(f"SELECT k, SUM(x) AS s FROM s [RANGE {width} MICROSECONDS] GROUP BY k")
        newest = engine.submit("SELECT k, SUM(x) AS s FROM s [PARTITION BY k ROWS 50] GROUP BY k")
        n_groups = set()
        for start in range(0, n_rows, 500):
            times = np.arange(start, start + 500)
            engine.push("s", {"k": keys[times], "x": values[times], "ts": times})
            come = start + 500
            seen = np.arange(max(0, come - width), come)
            for query, rows in ((ranged, seen), (newest, np.arange(come))):
                sums = {row["k"]: row["s"] for row in query.answer().to_pylist()}
                assert set(sums) == set(keys[rows].tolist())
                for key, found in sums.items():
                    window = values[rows[keys[rows] == key]][-50 if query is newest else -n_rows :]
                    assert abs(found - math.fsum(window)) <= 1e-12 * math.fsum(np.abs(window))
            n_groups.add(len(ranged.answer()))
        assert n_groups == {4, 5}
