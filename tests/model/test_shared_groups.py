"""Aggregates that queries share against the same queries with operators of their own, step by step.

Two engines get the same calls; in one every query is forced onto operators by its expiry word. Answers, changes with their times,
commit parts and results have to agree after every step. Other scripts run beside the model of the whole language and DuckDB.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import numpy as np
import pytest

from eddy import Commit, Engine
from tests.reference.seeds import seeds
from tests.reference.shared_steps import make_shared_script
from tests.reference.window_harness import WindowHarness

COLUMNS = {"g": "string", "k": "int", "a": "float", "b": "int", "x": "float", "n": "int", "ts": "timestamp[ms]"}
AGGREGATES = [
    "COUNT(x) AS cx", "SUM(n) AS sn", "SUM(x) AS sx", "AVG(x) AS ax", "AVG(n) AS an", "MIN(x) AS lx",
    "MAX(n) AS hn", "COUNT(g) AS cg", "VARIANCE(x) AS vx", "MIN(n) AS ln", "STDDEV(x) AS dx",
]  # fmt: skip
KEYS = ["", "g", "k", "g, k"]
BOUNDS = ["window_start", "window_end", "window_start, window_end"]
#: What is asked of a group, with constants: they are columns by query.
COMPUTED = [
    "SUM(n) * {0} AS p", "{1} AS p", "'rule {2}' AS p", "MAX(n) / {2} AS p", "AVG(x) + {0} AS p", "COUNT(*) % {2} AS p",
    "CASE WHEN COUNT(*) > {2} THEN {0} ELSE {1} END AS p", "CAST(NULL AS int) AS p", "MIN(x) * -0.0 AS p", "COUNT(x) > {2} AS p",
    "NULLIF(COUNT(*), {2}) AS p", "CAST('nan' AS float) + {0} AS p", "'a' || CAST(COUNT(*) AS string) || '{2}' AS p",
    "ROUND(AVG(x), {2}) AS p", "COALESCE(SUM(n), {2}) AS p",
]  # fmt: skip
HAVING = ["COUNT(*) > {2}", "AVG(x) > {0}", "SUM(n) <> {2}", "MIN(x) <= {1} AND COUNT(x) >= {2}", "MAX(n) = NULL", "{2} > 1"]
#: What is grouped: a window that moves with the clock, in steps, in steps with holes, and extents that are keys.
WINDOWS = [
    "s [RANGE 10 MILLISECONDS]", "s [RANGE 25 MILLISECONDS]", "s [RANGE 10 MILLISECONDS SLIDE 4 MILLISECONDS]",
    "s [RANGE 4 MILLISECONDS SLIDE 10 MILLISECONDS]", "TUMBLE(s, 7 MILLISECONDS)", "HOP(s, 4 MILLISECONDS, 10 MILLISECONDS)",
    "HOP(s, 10 MILLISECONDS, 4 MILLISECONDS)",
]  # fmt: skip
CONDITIONS = [
    "", "a < {0}", "a >= {0}", "a >= {0} AND a < {1}", "b < {2}", "a IS NULL", "a < {0} OR a > {1}", "a + b > {0}", "b <> {2}",
    "a < {0} AND b > {2}", "a = {0}", "g = 'u' OR b > {2}", "a IS NULL OR a >= {0}", "g LIKE 'u%' AND a < {0}",
    "b = {2} AND a < {0}", "b = {2}", "b IN (1, {2})",
]  # fmt: skip
CALLS = ["odd(b) AND a >= {0}", "odd(b) OR g = 'w'", "odd(b)"]


class Pair:
    """An engine whose aggregates are shared, and one whose queries have their own operators."""

    def __init__(self, seed: int, functions: bool = False) -> None:
        """`functions`: conditions may call a registered function; such engines cannot be dumped."""
        self.rng = np.random.default_rng(seed)
        self.conditions = CONDITIONS + CALLS * functions
        self.engines = [Engine(), Engine(expiry="direct")]
        for engine in self.engines:
            engine.create_stream("s", COLUMNS, time="ts", lateness=3 if seed % 3 == 0 else 0)
            if functions:
                engine.register("odd", lambda value: value is not None and value % 2 == 1, returns="bool")
            engine.create_stream("other", {"y": "int", "ts": "timestamp[ms]"}, time="ts")
        self.parts: list[Counter[Any]] = [Counter(), Counter()]
        self.clock = 0
        self.n_queries = 0
        self.live: list[str] = []
        self.paused: list[str] = []
        self.keys = str(self.rng.choice(KEYS))
        self.window = WINDOWS[seed % len(WINDOWS)]
        self.distinct = 0.8 if seed % 3 == 1 else 0.1
        self.template = self.draw_template()
        self.n_shared = 0

    def each(self, call: str, *args: Any, **options: Any) -> None:
        for engine in self.engines:
            getattr(engine, call)(*args, **options)

    def text(self) -> str:
        """A query that mostly differs from the others in its condition, its constants and the names of its columns alone."""
        rng = self.rng
        template = self.template if rng.random() < 0.75 else self.draw_template()
        low, high = np.sort(rng.integers(0, 10, 2))
        condition = self.conditions[int(rng.integers(len(self.conditions)))] if rng.random() < 0.5 else "a < {0}"
        where = f" WHERE {condition}" if condition else ""
        name = "c_too" if rng.random() < 0.2 else "c"
        constants = float(low), float(high), int(rng.integers(0, 5))
        return template.format(*constants, where=where.format(*constants), name=name)

    def draw_template(self) -> str:
        rng = self.rng
        window, keys = str(rng.choice(WINDOWS)), [key for key in str(rng.choice(KEYS)).split(", ") if key]
        if rng.random() < 0.7:
            window, keys = self.window, [key for key in self.keys.split(", ") if key]
        # the bounds of an extent are columns of a window in steps, and may be keys
        bound = [str(rng.choice(BOUNDS))] if window.endswith(")") and rng.random() < 0.8 else []
        if rng.random() < self.distinct:
            shown = [*(keys or ["g"]), *bound, *(["{2} AS rule"] if rng.random() < 0.3 else [])]
            return f"SELECT DISTINCT {', '.join(shown)} FROM {window}{{where}}"
        n = int(rng.integers(1, 4))
        aggregates = [str(each) for each in rng.choice(AGGREGATES, n, replace=False)]
        if rng.random() < 0.6:
            aggregates.append(str(rng.choice(COMPUTED)))
        having = f" HAVING {rng.choice(HAVING)}" if rng.random() < 0.4 else ""
        shown = [*keys, *bound, "COUNT(*) AS {name}", *aggregates]
        grouped = f" GROUP BY {', '.join([*keys, *bound])}" if keys or bound else ""
        return f"SELECT {', '.join(shown)} FROM {window}{{where}}{grouped}{having}"

    def submit(self) -> None:
        name = f"q_{self.n_queries}"
        self.n_queries += 1
        self.each("submit", self.text(), name=name, history="window" if self.rng.random() < 0.25 else "new")
        # what nobody reads is not logged for long
        self.each("changes", name, since="now")
        self.live.append(name)
        self.n_shared += "shared" in self.engines[0].explain(name)

    def push(self) -> None:
        rng = self.rng
        n = int(rng.integers(1, 9))
        step = int(rng.choice([0, 1, 3, 30]))
        times = np.sort(self.clock + rng.integers(0, step + 1, n))
        if rng.random() < 0.1:
            times = times - 5
        self.clock = max(self.clock, int(times[-1]))

        def some(values: list[Any]) -> list[Any]:
            return [None if rng.random() < 0.1 else values[int(rng.integers(len(values)))] for _ in range(n)]

        rows = {
            "g": some(["u", "v", "w"]), "k": some([1, 2]), "a": some([float(v) for v in range(10)] + [math.nan]),
            "b": some(list(range(5))), "x": some([0.5, -2.0, 1024.25, -0.0, 0.0, math.inf, 3.0, 7.5]),
            "n": some([0, 1, -5, 2**62, 7]), "ts": times.tolist(),
        }  # fmt: skip
        self.each("push", "s", rows)

    def step(self) -> None:
        rng, live = self.rng, self.live
        what = rng.random()
        if what < 0.2 or not live:
            self.submit()
        elif what < 0.65:
            self.push()
        elif what < 0.78:
            self.clock += int(rng.integers(0, 15))
            self.each("advance", self.clock)
        elif what < 0.83:
            self.each("push", "other", {"y": [1], "ts": [self.clock + 2]})
            self.clock += 2
        elif what < 0.89:
            name = live.pop(int(rng.integers(len(live))))
            self.each("cancel", name)
        elif what < 0.94:
            name = live.pop(int(rng.integers(len(live))))
            self.each("pause", name)
            self.paused.append(name)
        elif what < 0.97:
            name = live[int(rng.integers(len(live)))]
            text = self.engines[0].queries[name].sql
            for old, new in (("< 1.0", "< 4.0"), ("< 3.0", "< 7.0"), (">= 2.0", "< 5.0"), ("< 8.0", ">= 1.0")):
                text = text.replace(old, new)
            self.each("replace", name, text)
        elif self.paused:
            name = self.paused.pop()
            self.each("resume", name)
            live.append(name)

    def compare(self) -> None:
        for name in [*self.live, *self.paused]:
            answers = [counted(engine.answer(name).to_pylist()) for engine in self.engines]
            assert answers[0] == answers[1], (name, self.engines[0].queries[name].sql)

    def compare_changes(self) -> None:
        for name in [*self.live, *self.paused]:
            logs = [
                Counter((change.seq, change.time, change.sign, *plain(change.row)) for change in engine.changes(name, since=0))
                for engine in self.engines
            ]
            assert logs[0] == logs[1], (name, self.engines[0].queries[name].sql, logs[0] - logs[1], logs[1] - logs[0])
        assert self.parts[0] == self.parts[1]

    def listen(self) -> None:
        for engine, parts in zip(self.engines, self.parts):
            engine.on_commit(listener(parts))


def plain(row: dict[str, Any]) -> tuple[Any, ...]:
    """Values that are equal iff SQL finds them the same, floats to twelve digits."""
    return tuple(
        value if not isinstance(value, float) else "nan" if math.isnan(value) else float(f"{value + 0.0:.9g}")
        for value in row.values()
    )


def counted(rows: list[dict[str, Any]]) -> Counter[tuple[Any, ...]]:
    return Counter(plain(row) for row in rows)


def listener(parts: Counter[Any]) -> Any:
    def take(commit: Commit) -> None:
        ids, offsets, rows = commit.row_lists()
        columns = {name: column.to_pylist() for name, column in commit.columns.items()}
        times, signs = commit.time.to_pylist(), commit.sign.tolist()
        for k, query in enumerate(ids.tolist()):
            for row in rows[offsets[k] : offsets[k + 1]].tolist():
                shown = tuple(columns), plain({name: column[row] for name, column in columns.items()})
                parts[commit.seq, query, signs[row], times[row], shown] += 1

    return take


@pytest.mark.parametrize("seed", seeds(range(24), 8))
def test_shared_aggregates_equal_operators_of_their_own(seed: int) -> None:
    pair = Pair(seed, functions=seed % 3 == 0)
    if seed % 2:
        pair.listen()
    for _ in range(45):
        pair.step()
        pair.compare()
        pair.engines[0].check()
    pair.compare_changes()
    assert pair.n_shared > 0


# -- against the model and DuckDB


def run(seed: int, n_steps: int, use_duckdb: bool = False) -> Counter[str]:
    """Replay a script; returns by which paths its queries got their sums at some time."""
    script = make_shared_script(seed, n_steps)
    harness = WindowHarness(script, Engine)
    paths: Counter[str] = Counter()
    try:
        for step in script.steps:
            harness.do(step)
            for query in harness.followed.values():
                paths[harness.engine.explain(query.handle).get("shared", "own")] += 1
        if use_duckdb:
            harness.ask_duckdb()
    except AssertionError as error:
        error.add_note(f"seed {seed}, {n_steps} steps")
        raise
    finally:
        harness.close()
    return paths


@pytest.mark.parametrize("seed", seeds(range(300, 318), 6))
def test_shared_aggregates_are_the_models_and_duckdbs(seed: int) -> None:
    paths = run(seed, 30, use_duckdb=seed % 3 == 0)
    assert paths.total() - paths["own"] > 50


@pytest.mark.slow
@pytest.mark.parametrize("seed", seeds(range(2_000, 2_025), 4))
def test_one_of_many_seeds_of_shared_aggregates_passes(seed: int) -> None:
    paths = run(seed, 60, use_duckdb=seed % 8 == 0)
    assert paths.total() - paths["own"] > 50


def test_the_seeds_have_young_queries_and_settled_ones_on_both_paths() -> None:
    paths: Counter[str] = Counter()
    for seed in range(330, 336):
        paths += run(seed, 30)
    assert min(paths[path] for path in ("region path", "pair path", "young")) > 50, paths
