"""Queries of one template against the same queries with a template each, step by step.

Two engines get the same calls: in one, queries that differ in constants and conditions are seats of one run of operators; in the
other every query has operators of its own (`sharing=False`). Answers, changes with their times, commit parts, results and errors
have to agree after every step, whatever comes and goes.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import numpy as np
import pytest

from eddy import Commit, Engine
from eddy.operators.replanning import ReplanPace
from tests.reference.comparison import compared
from tests.reference.reloading import reloaded
from tests.reference.seeds import seeds

COLUMNS = {"g": "string", "k": "int", "x": "float", "n": "int", "ts": "timestamp[ms]"}
#: Conditions with constants: intervals, several attributes, residuals, never, everything.
CONDITIONS = [
    "k < {i}", "k = {i}", "x >= {f}", "x >= {f} AND k < {i}", "k + n > {i}", "g LIKE '{t}%'", "k < {i} OR x > {f}", "x IS NULL",
    "k < {i} AND k > 5", "k <> {i}", "g = '{t}'", "true",
]  # fmt: skip
#: Texts above them: `{w}` is the condition, `{r}` a window's length.
RELATIONS = {
    "distinct": "SELECT DISTINCT g FROM s [RANGE {r} MILLISECONDS] WHERE {w}",
    "except": "SELECT g, k FROM s [RANGE {r} MILLISECONDS] WHERE {w} EXCEPT SELECT g, k FROM o [RANGE 7 MILLISECONDS] WHERE {v}",
    "except all": "SELECT g FROM s [RANGE {r} MILLISECONDS] WHERE {w} EXCEPT ALL"
    " SELECT g FROM o [RANGE 7 MILLISECONDS] WHERE {v}",
    "intersect": "SELECT k FROM s [RANGE {r} MILLISECONDS] WHERE {w} INTERSECT SELECT k FROM o [RANGE 7 MILLISECONDS] WHERE {v}",
    "intersect all": "SELECT k FROM s [RANGE 9 MILLISECONDS] WHERE {w} INTERSECT ALL SELECT k FROM o [RANGE 7 MILLISECONDS]",
    "union": "SELECT k FROM s [RANGE {r} MILLISECONDS] WHERE {w} UNION SELECT k FROM o [RANGE 7 MILLISECONDS] WHERE {v}",
    "union all": "SELECT k FROM s [RANGE {r} MILLISECONDS] WHERE {w} UNION ALL SELECT k FROM o [RANGE 7 MILLISECONDS] WHERE {v}",
    "median": "SELECT g, MEDIAN(x) AS m, FIRST(k) AS f, LAST(n) AS l FROM s [RANGE {r} MILLISECONDS] WHERE {w} GROUP BY g",
    "having": "SELECT g, COUNT(DISTINCT k) AS c FROM s [RANGE {r} MILLISECONDS] WHERE {w} GROUP BY g"
    " HAVING COUNT(DISTINCT k) > {i} OR MEDIAN(x) < {f}",
    "scalar": "SELECT MEDIAN(x) AS m, COUNT(*) FILTER (WHERE k > 1) AS c, SUM(n) AS s FROM s [RANGE {r} MILLISECONDS] WHERE {w}",
    "computed": "SELECT g, m + {i} AS p, 1 / (c - {i}) AS q FROM (SELECT g, MEDIAN(x) AS m, COUNT(*) AS c"
    " FROM s [RANGE {r} MILLISECONDS] WHERE {w} GROUP BY g) AS r WHERE g <> '{t}'",
    "slide": "SELECT g, k FROM s [RANGE {r} MILLISECONDS SLIDE 4 MILLISECONDS] WHERE {w}",
    "tumble": "SELECT window_end, g, COUNT(*) AS c FROM TUMBLE(s, ts, 5 MILLISECONDS) WHERE {w} GROUP BY window_end, g",
    "hop": "SELECT window_start, MEDIAN(k) AS m FROM HOP(s, ts, 3 MILLISECONDS, 9 MILLISECONDS) WHERE {w} GROUP BY window_start",
    "rows": "SELECT g, MEDIAN(x) AS m FROM s [ROWS 4] WHERE {w} GROUP BY g",
    "newest by key": "SELECT DISTINCT k, n FROM s [PARTITION BY k ROWS 2] WHERE {w}",
    "join": "SELECT DISTINCT a.g FROM s [RANGE {r} MILLISECONDS] a, o [RANGE 7 MILLISECONDS] b WHERE a.k = b.k AND a.n < {i}",
    "derived join": "SELECT a.g, b.c FROM (SELECT DISTINCT g FROM s [RANGE {r} MILLISECONDS] WHERE {w}) AS a,"
    " (SELECT g, COUNT(*) AS c FROM o [RANGE 7 MILLISECONDS] GROUP BY g) AS b WHERE a.g = b.g AND b.c < {i}",
    "table": "SELECT d.g, t.word FROM (SELECT DISTINCT g, k FROM s [RANGE {r} MILLISECONDS] WHERE {w}) AS d, t WHERE d.k = t.k",
    "live table": "SELECT d.g, u.word FROM (SELECT DISTINCT g, k FROM s [RANGE {r} MILLISECONDS] WHERE {w}) AS d, u"
    " WHERE d.k = u.k",
    "keyed": "SELECT g, MEDIAN(x) AS m FROM d [RANGE {r} MILLISECONDS] WHERE {w} GROUP BY g",
    "window of changes": "SELECT k, COUNT(*) AS c FROM (ISTREAM (SELECT DISTINCT k FROM s [RANGE {r} MILLISECONDS] WHERE {w}))"
    " [ROWS 3] AS i GROUP BY k",
}  # fmt: skip
STREAMS = {
    "istream": "ISTREAM (SELECT g, COUNT(*) AS c FROM s [RANGE {r} MILLISECONDS] WHERE {w} GROUP BY g HAVING COUNT(*) > {i})",
    "dstream": "DSTREAM (SELECT DISTINCT k FROM s [RANGE {r} MILLISECONDS] WHERE {w})",
    "rstream": "RSTREAM (SELECT DISTINCT g FROM s [RANGE {r} MILLISECONDS] WHERE {w})",
    "rstream of steps": "RSTREAM (SELECT DISTINCT g FROM s [RANGE {r} MILLISECONDS SLIDE 4 MILLISECONDS] WHERE {w})",
}
FAMILIES = RELATIONS | STREAMS


def plain(values: Any) -> tuple[Any, ...]:
    """Values that are equal iff SQL finds them the same."""
    return tuple("nan" if isinstance(value, float) and math.isnan(value) else value for value in values)


class Pair:
    """An engine with templates, and one in which every query has its own."""

    def __init__(self, seed: int, families: list[str]) -> None:
        self.rng = rng = np.random.default_rng(seed)
        self.families = families
        self.engines = [Engine(sharing=sharing) for sharing in (True, False)]
        for engine in self.engines:
            if seed % 4 == 3:
                engine._lives.pace = ReplanPace(every=3, rest=0, rotates=True)
            for name in "so":
                engine.create_stream(name, COLUMNS, time="ts", lateness=3 if seed % 3 == 0 else 0)
            engine.create_stream("d", COLUMNS, time="ts", key="k")
            for name, retroactive in (("t", False), ("u", True)):
                engine.create_table(name, {"k": "int", "word": "string"}, key="k", retroactive=retroactive)
            engine.submit("SELECT * FROM s [RANGE 20 MILLISECONDS]", name="keeper")
        self.parts: list[Counter[Any]] = [Counter(), Counter()]
        self.listens = bool(seed % 2)
        self.expiry = str(rng.choice(["auto", "auto", "auto", "negative", "piggyback", "direct", "update-pattern"]))
        self.emit = str(rng.choice(["commit", "commit", "event"]))
        self.window = int(rng.choice([3, 10, 25]))
        self.clock = 0
        self.n_queries = 0
        self.live: dict[str, str] = {}
        self.paused: dict[str, str] = {}
        self.n_together = 0
        self.listen()

    def listen(self) -> None:
        for engine, parts in zip(self.engines, self.parts):
            if self.listens:
                engine.on_commit(listener(parts))

    def each(self, call: str, *args: Any, **options: Any) -> None:
        for engine in self.engines:
            getattr(engine, call)(*args, **options)

    def text(self, family: str) -> str:
        rng = self.rng
        words = {"i": int(rng.integers(0, 5)), "f": float(rng.integers(0, 5)) / 2, "t": str(rng.choice(["u", "v", "it''s", ""]))}
        w, v = (str(each).format(**words) for each in rng.choice(CONDITIONS, 2))
        return FAMILIES[family].format(w=w, v=v, r=self.window, **words)

    def submit(self) -> None:
        name, family = f"q_{self.n_queries}", str(self.rng.choice(self.families))
        self.n_queries += 1
        history = "window" if self.rng.random() < 0.3 else "new"
        text = self.text(family)
        for engine, sharing in zip(self.engines, (True, False)):
            # the + of a DISTINCT value has the time from which it stands where values are counted, as where sums are shared; an
            # operator that hands values over gives that of the last hand-over
            counted = family == "distinct" and self.expiry == "auto" and not sharing
            engine.submit(text, name=name, history=history, emit=self.emit, expiry="direct" if counted else self.expiry)
        self.each("changes", name, since="now")
        self.live[name] = family

    def rows(self) -> dict[str, list[Any]]:
        rng = self.rng
        n = int(rng.integers(1, 9))
        times = np.sort(self.clock + rng.integers(0, int(rng.choice([1, 2, 4, 20])), n))
        if rng.random() < 0.1:
            times = times - 4
        self.clock = max(self.clock, int(times[-1]))

        def some(values: list[Any]) -> list[Any]:
            return [None if rng.random() < 0.1 else values[int(rng.integers(len(values)))] for _ in range(n)]

        return {
            "g": some(["u", "v", "it's", "w"]), "k": some(list(range(6))), "x": some([0.5, -2.0, 1.0, -0.0, 0.0, math.nan, 1.5]),
            "n": some([0, 1, -5, 2**62, 3]), "ts": times.tolist(),
        }  # fmt: skip

    def step(self) -> None:
        rng = self.rng
        what = rng.random()
        if what < 0.25 or not self.live:
            self.submit()
        elif what < 0.6:
            name = str(rng.choice(["s", "s", "s", "o", "d"]))
            rows = self.rows()
            if name == "d":
                rows["k"] = [0 if value is None else value for value in rows["k"]]
            self.each("push", name, rows)
        elif what < 0.65:
            self.each("push_many", {"s": self.rows(), "o": self.rows()})
        elif what < 0.72:
            self.clock += int(rng.integers(0, 12))
            self.each("advance", self.clock)
        elif what < 0.78:
            self.each("upsert", str(rng.choice(["t", "u"])), [{"k": int(rng.integers(5)), "word": str(rng.choice(["a", "b"]))}])
        elif what < 0.86:
            name = str(rng.choice(list(self.live)))
            del self.live[name]
            self.each("cancel", name)
        elif what < 0.9:
            name = str(rng.choice(list(self.live)))
            self.paused[name] = self.live.pop(name)
            self.each("pause", name)
        elif what < 0.94:
            name = str(rng.choice(list(self.live)))
            self.each("replace", name, self.text(self.live[name]))
        elif what < 0.97 and self.paused:
            name = str(rng.choice(list(self.paused)))
            self.live[name] = self.paused.pop(name)
            self.each("resume", name)
        elif what > 0.99:
            self.engines = [reloaded(engine) for engine in self.engines]
            self.listen()

    def compare(self) -> None:
        self.engines[0].check()
        stats = [engine.stats()["queries"] for engine in self.engines]
        for name in (*self.live, *self.paused):
            sql = self.engines[0].queries[name].sql
            answers = [Counter(plain(row.values()) for row in engine.answer(name).to_pylist()) for engine in self.engines]
            assert answers[0] == answers[1], (name, sql)
            counts = [(found[name]["results"], found[name]["errors"]) for found in stats]
            assert counts[0] == counts[1], (name, sql)
            compared(2)
        plans = [self.engines[0].explain(name) for name in self.live]
        self.n_together += sum(plan.get("template", {"queries": 1})["queries"] > 1 for plan in plans)

    def compare_changes(self) -> None:
        for name in (*self.live, *self.paused):
            logs = [
                Counter(
                    (change.seq, change.time, change.sign, *plain(change.row.values()))
                    for change in engine.changes(name, since=0)
                )
                for engine in self.engines
            ]
            assert logs[0] == logs[1], (name, self.engines[0].queries[name].sql, logs[0] - logs[1], logs[1] - logs[0])
            compared()
        assert self.parts[0] == self.parts[1]


def listener(parts: Counter[Any]) -> Any:
    def take(commit: Commit) -> None:
        ids, offsets, rows = commit.row_lists()
        columns = [column.to_pylist() for column in commit.columns.values()]
        times, signs = commit.time.to_pylist(), commit.sign.tolist()
        for k, query in enumerate(ids.tolist()):
            for row in rows[offsets[k] : offsets[k + 1]].tolist():
                parts[commit.seq, query, signs[row], times[row], plain(column[row] for column in columns)] += 1

    return take


def run(seed: int, families: list[str], n_steps: int) -> int:
    """Take random steps on both engines; returns how often a query was found beside another one in its template."""
    pair = Pair(seed, families)
    for _ in range(n_steps):
        pair.step()
        pair.compare()
    pair.compare_changes()
    return pair.n_together


@pytest.mark.parametrize("family", FAMILIES)
def test_queries_of_a_template_are_as_queries_alone(family: str) -> None:
    assert sum(run(seed, [family], 40) for seed in range(4)) > 20


@pytest.mark.slow
@pytest.mark.parametrize("seed", seeds(range(7_000, 7_080), 8))
def test_queries_of_several_templates_are_as_queries_alone(seed: int) -> None:
    families = np.random.default_rng(seed).choice(list(FAMILIES), 3, replace=False)
    assert run(seed, [str(family) for family in families], 70) > 10
