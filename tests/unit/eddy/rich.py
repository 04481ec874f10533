"""An engine with something of everything: streams that wait and that are keyed, tables, and a query of each kind."""

from __future__ import annotations

from typing import Any

import numpy as np

from eddy import Engine

W = "[RANGE 1 SECONDS]"
SUMS = "COUNT(*) AS n, SUM(a) AS s, AVG(a) AS v, MIN(a) AS i, STDDEV(a) AS d, MEDIAN(b) AS m"
TEXTS = "MAX(g) AS x, FIRST(g) AS f, LAST(g) AS l, COUNT(DISTINCT g) AS c, COUNT(*) FILTER (WHERE b > 3) AS h"

#: By name; a query reads only those before it.
QUERIES = {
    "window": f"SELECT k, a FROM s {W} WHERE a > 0.5",
    "stream": "SELECT g, a FROM s WHERE a > 0.2 AND g LIKE 'u%'",
    "residual": f"SELECT UPPER(g) AS u, STRFTIME(ts, '%S') AS y FROM s {W} WHERE (k = 1 OR a < 0.3) AND a * b > 0.1",
    "equality": f"SELECT s.k, t.v FROM s {W}, t {W} WHERE s.k = t.k AND s.a < t.v",
    "several columns": f"SELECT s.k, t.v FROM s {W}, t {W} WHERE s.k = t.k AND s.g = t.w",
    "band": f"SELECT s.k, t.v FROM s {W}, t {W} WHERE s.a < t.v AND s.a > t.v - 0.05",
    "three": f"SELECT s.k, t.v, u.v AS w FROM s {W}, t {W}, t [RANGE 300 MILLISECONDS] AS u WHERE s.k = t.k AND t.w = u.w "
    "AND t.v < 0.2",
    "rows": "SELECT k, a FROM s [ROWS 20]",
    "rows by key": "SELECT k, a FROM s [PARTITION BY k ROWS 3]",
    "rows by key in time": "SELECT k, a FROM s [PARTITION BY k ROWS 2 RANGE 1 SECOND] WHERE a > 0.1",
    "frozen table": "SELECT s.k, rooms.floor FROM s, rooms WHERE s.g = rooms.g",
    "live table": f"SELECT s.k, limits.hi FROM s {W}, limits WHERE s.k = limits.k AND s.a > limits.hi",
    "table alone": "SELECT g, floor FROM rooms WHERE floor > 1",
    "own ends": "SELECT k, v FROM keyed [RANGE 1 SECOND]",
    "keyed join": "SELECT keyed.k, keyed.v, t.w FROM keyed [RANGE 1 SECOND], t [RANGE 2 SECONDS] WHERE keyed.k = t.k",
    "grouped": f"SELECT k, {SUMS} FROM s {W} GROUP BY k",
    "texts": f"SELECT k, {TEXTS} FROM s {W} GROUP BY k",
    "shared": f"SELECT g, SUM(a) AS s FROM s {W} WHERE b < 3 GROUP BY g",
    "shared too": f"SELECT g, SUM(a) AS s FROM s {W} WHERE b < 5 GROUP BY g",
    "shared extremes": f"SELECT g, SUM(a) AS s, MAX(a) AS m FROM s {W} WHERE b < 6 GROUP BY g HAVING SUM(a) > 2",
    "slide": "SELECT g, COUNT(*) AS n FROM s [RANGE 1 SECOND SLIDE 100 MILLISECONDS] GROUP BY g",
    "hop": "SELECT window_end, k, COUNT(*) AS n FROM HOP(s, INTERVAL '100 milliseconds', INTERVAL '500 milliseconds') "
    "GROUP BY window_end, k",
    "distinct": f"SELECT DISTINCT g, k FROM s {W}",
    "except": f"SELECT k FROM s {W} EXCEPT SELECT k FROM t {W}",
    "except all": f"SELECT k, g FROM s {W} EXCEPT ALL SELECT k, w FROM t {W}",
    "union all": f"SELECT k FROM s {W} UNION ALL SELECT k FROM t {W}",
    "intersect": f"SELECT k FROM s {W} INTERSECT ALL SELECT k FROM t {W}",
    "changed": f"ISTREAM (SELECT k, COUNT(*) AS n FROM s {W} GROUP BY k)",
    "dstream": f"DSTREAM (SELECT k, a FROM s {W} WHERE a > 0.5)",
    "rstream": "RSTREAM (SELECT COUNT(*) AS n FROM s [RANGE 1 SECOND SLIDE 500 MILLISECONDS])",
    "named": "SELECT k, n FROM grouped WHERE n > 2",
    "named join": f"SELECT grouped.k, t.v FROM grouped, t {W} WHERE grouped.k = t.k",
    "named stream": "SELECT DISTINCT k FROM changed [RANGE 300 MILLISECONDS]",
    "joined operators": f"SELECT a.k FROM s {W} AS a, (SELECT DISTINCT k FROM t {W}) AS b WHERE a.k = b.k",
    "window over a stream": f"SELECT a.k, COUNT(*) AS n FROM (ISTREAM (SELECT k, a FROM s {W} WHERE a > 0.3)) "
    "[RANGE 2 SECONDS] AS a GROUP BY a.k",
    "frozen beside groups": f"SELECT x.k, rooms.floor FROM (SELECT g, k, COUNT(*) AS n FROM s {W} GROUP BY g, k) AS x, rooms "
    "WHERE x.g = rooms.g",
    "with": f"WITH c AS (SELECT k, COUNT(*) AS n FROM s {W} GROUP BY k) SELECT a.k, b.n FROM c AS a, c AS b WHERE a.k = b.n",
    "arrival": "SELECT x, COUNT(*) AS n FROM arriving [RANGE 10 SECONDS] GROUP BY x",
    "derived key": f"SELECT s.k, t.v FROM s {W}, t {W} WHERE s.k % 4 = t.k AND UPPER(s.g) = UPPER(t.w)",
    "derived key of a table": f"SELECT s.k, limits.hi FROM s {W}, limits WHERE s.b = limits.k + 1",
    "merged": "SELECT m3.k, m4.v FROM m3 [RANGE 1 SECOND], m4 [RANGE 1 SECOND] WHERE m3.k = m4.k",
    "derived key of operators": f"SELECT a.k FROM s {W} AS a, (SELECT DISTINCT k FROM t {W}) AS b WHERE a.b = b.k % 4",
    "counted": f"SELECT k, COUNT(*) AS n FROM t {W} GROUP BY k",
    "recounted": f"SELECT k, COUNT(*) AS n FROM s {W} WHERE a > 0.1 GROUP BY k",
    "merge of relations": "SELECT k, n FROM LMERGE(counted, recounted) AS r WHERE n > 1",
    "altered": f"ISTREAM (SELECT k, COUNT(*) AS n FROM t {W} GROUP BY k)",
    "merge of streams": "SELECT k, n FROM LMERGE(changed, altered) [PARTITION BY k ROWS 5] AS r",
}  # fmt: skip

#: Merged streams of each case, by name.
MERGED = {"k": "int", "v": "float", "g": "string", "ts": "timestamp"}
MERGES: dict[str, dict[str, Any]] = {
    "m0": {"order": "strict"},
    "m1": {"order": "ordered", "case": "R1"},
    "m2": {"order": "ordered", "unique": True},
    "m3": {"unique": ["k"], "end": "until", "policy": "first", "lateness": 200},
    "m4": {"lateness": 200},
}

#: Those whose changes are shown by instant.
EVENTS = ("window", "equality", "rows", "grouped", "except", "hop")


def name_of(kind: str) -> str:
    return kind.replace(" ", "_")


def make_engine(**options: Any) -> Engine:
    """The streams and tables; no query, no row of a stream."""
    engine = Engine(clock=clock, **options)
    columns = {"g": "string", "k": "int", "a": "float", "b": "int", "ok": "bool", "ts": "timestamp"}
    engine.create_stream("s", columns, time="ts", lateness=50, keep=5_000)
    engine.create_stream("t", {"k": "int", "v": "float", "w": "string", "ts": "timestamp"}, time="ts")
    own = {"k": "int", "v": "float", "until": "timestamp", "ts": "timestamp"}
    engine.create_stream("keyed", own, time="ts", key="k", end="until")
    engine.create_stream("arriving", {"x": "int"})
    for name, options in MERGES.items():
        engine.create_merge(name, own if options.get("end") else MERGED, time="ts", timeline="gateways", **options)
    engine.create_table("rooms", {"g": "string", "floor": "int"}, key="g")
    engine.create_table("limits", {"k": "int", "hi": "float"}, key="k", retroactive=True)
    engine.upsert("rooms", {"g": ["u", "v", "w"], "floor": [1, 2, 3]})
    engine.upsert("limits", {"k": [0, 1, 2, 3], "hi": [0.1, 0.5, 0.7, 0.9]})
    return engine


def clock() -> int:
    """That of the streams without a time column, which `feed` moves on itself."""
    return 5_000


def submit_all(engine: Engine) -> None:
    """A query of each kind, some with history or single events, and so many with a key that they are found by candidates."""
    for number, (kind, sql) in enumerate(QUERIES.items()):
        history = "window" if number % 3 == 0 else "new"
        engine.submit(sql, name=name_of(kind), emit="event" if kind in EVENTS else "commit", history=history, tags=["rich"])
    for number in range(20):
        engine.submit(f"SELECT g, SUM(a) AS s FROM s {W} WHERE b < {number / 3} GROUP BY g", name=f"shared_{number}")
    for number in range(70):
        engine.submit("SELECT k, a FROM s [RANGE 1 SECONDS] WHERE k = :k AND a > :a", params={"k": number, "a": number / 70})
    engine.changes("shared", since="now")


def feed(engine: Engine, seed: int, first: int, last: int) -> list[Any]:
    """Rows and table changes from one step to another, a tenth of a second each; what the calls returned."""
    found: list[Any] = []
    for step in range(first, last):
        rng = np.random.default_rng([seed, step])
        at, n = step * 100, 12
        times = np.sort(at + rng.integers(0, 100, n))
        rows = {"g": rng.choice(["u", "v", "w", f"u{step}"], n), "k": rng.integers(0, 12, n), "a": rng.random(n).round(3)}
        rows |= {"b": rng.integers(0, 8, n), "ok": rng.random(n) < 0.5, "ts": times - rng.integers(0, 60, n)}
        found.append(engine.push("s", rows))
        texts = rng.choice(["u", "v", "x"], n)
        found.append(engine.push("t", {"k": rng.integers(0, 12, n), "v": rng.random(n).round(3), "w": texts, "ts": times}))
        own = times[:6] + rng.integers(1, 3_000, 6)
        keyed = {"k": rng.integers(0, 9, 6), "v": rng.random(6), "until": own, "ts": times[:6]}
        found.append(engine.push("keyed", keyed))
        found.append(engine.push("arriving", {"x": rng.integers(0, 3, 4)}))
        for gateway in ("gw1", "gw2"):
            rows = {"k": np.arange(6), "v": np.arange(6) / (2 if gateway == "gw1" else 3), "ts": at + np.arange(6) * 10}
            for name, options in MERGES.items():
                more = {"until": rows["ts"] + 50 * (step % 5 + 1)} if options.get("end") else {"g": texts[:6]}
                found.append(engine.push(name, rows | more, input=gateway))
        if step % 3 == 0:
            found.append(engine.upsert("rooms", {"g": ["u"], "floor": [step]}))
            found.append(engine.upsert("limits", {"k": [step % 4], "hi": [0.3]}))
            found.append(engine.retract("keyed", [3, 4, 50], at + 120))
        if step % 7 == 0:
            found.append(engine.delete("limits", [2]))
        if step % 11 == 10:
            engine.advance(at + 400)
    return found
