"""The script of the recorded run (`recorded_run.py`): what is defined, what is asked, and some hundred steps of a fixed seed.

Values are small, so that groups, ties, NULL and matches are common, and every sum of them is exact in a float. Nothing is drawn
but by `random()`, which gives the same numbers on every machine and version.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from tests.reference.script import Advance, Delete, Push, Retract, StreamPlan, TablePlan, Tick, Upsert
from tests.reference.values import Row
from tests.reference.workload import MS

T = TypeVar("T")

START = 1_704_067_200_000 * MS  # 2024-01-01
SECOND = 1000 * MS


@dataclass(frozen=True)
class Ask:
    """Queries, started in one call if there are several: definitions as the service takes them."""

    definitions: list[dict[str, Any]]
    #: whether a service cannot run them: they call functions of the user, or read rows that are timed as they arrive
    embedded: bool = False


@dataclass(frozen=True)
class Rewrite:
    """Another text for a running query."""

    name: str
    sql: str


@dataclass(frozen=True)
class Act:
    """cancel, pause or resume a query."""

    verb: str
    name: str


@dataclass(frozen=True)
class Trace:
    """Why a row did or did not match."""

    stream: str
    row: int


@dataclass(frozen=True)
class Refused:
    """A request that the service refuses."""

    method: str
    path: str
    body: dict[str, Any]


@dataclass(frozen=True)
class Look:
    """Everything is read; `formats`: answers in all of them."""

    formats: bool = False


@dataclass(frozen=True)
class Restart:
    """The service stops and starts again from its snapshot; `killed`: from what was on disk before it stopped."""

    killed: bool


Step = Push | Retract | Advance | Tick | Upsert | Delete | Ask | Rewrite | Act | Trace | Refused | Look | Restart


def _stream(name: str, columns: dict[str, str], **options: Any) -> StreamPlan:
    plain: dict[str, Any] = {"time": "ts", "lateness_us": 0, "late": "adjust", "timeline": "main"}
    return StreamPlan(name, {**columns, "ts": "timestamp[us]"}, **{**plain, **options})


STREAMS = [
    _stream("readings", {"sensor": "int", "room": "string", "temp": "float", "ok": "bool"}, keep_us=60 * SECOND),
    _stream("events", {"sensor": "int", "kind": "string", "level": "int"}, keep_us=60 * SECOND),
    _stream("slow", {"sensor": "int", "level": "int"}, lateness_us=300 * MS),
    _stream("strict", {"sensor": "int", "level": "int"}, lateness_us=200 * MS, late="drop"),
    _stream("orders", {"id": "int", "item": "string", "qty": "int", "until": "timestamp[us]"}, key=("id",), end="until"),
    _stream("places", {"id": "int", "room": "string"}, key=("id",), keep_us=60 * SECOND),
    _stream("quotes", {"symbol": "string", "price": "float", "size": "int"}, timeline="market"),
    _stream("articles", {"symbol": "string", "title": "string"}, timeline="market"),
]
#: Rows are timed as they arrive: only where the clock is the test's own.
ARRIVING = StreamPlan("arriving", {"sensor": "int", "level": "int"}, None, 0, "adjust", "arrival")
TABLES = [
    TablePlan("sensors", {"sensor": "int", "room": "string", "floor": "int"}, ("sensor",), True),
    TablePlan("limits", {"room": "string", "high": "float"}, ("room",), False),
]

READ, EVENT, SLOW = "readings [RANGE 4 SECONDS]", "events [RANGE 3 SECONDS]", "slow [RANGE 2 SECONDS]"
ORDER, PLACE = "orders [RANGE 5 SECONDS]", "places [RANGE 6 SECONDS]"

FILTERS = {
    "f_all": "SELECT * FROM readings",
    "f_warm": "SELECT sensor, temp FROM readings [RANGE 5 SECONDS] WHERE temp > 20",
    "f_room": "SELECT sensor, room, temp, ts FROM readings [RANGE 2 SECONDS] WHERE room = :room AND temp BETWEEN :low AND :high",
    "f_or": f"SELECT sensor, temp FROM {READ} WHERE room = 'lab' OR temp < 5",
    "f_like": f"SELECT UPPER(room) AS room, temp / 2 AS half FROM {READ} WHERE room LIKE 'h%'",
    "f_sum": "SELECT sensor, ok, temp * 2 + sensor AS x FROM readings WHERE temp * 2 + sensor > 30 AND NOT ok",
    "f_null": f"SELECT sensor, COALESCE(room, 'none') AS room FROM {READ} WHERE room IS NULL OR ok IS NULL",
    "f_in": "SELECT sensor, CASE WHEN temp > 15 THEN 'warm' ELSE 'cold' END AS word FROM readings WHERE sensor IN (1, 3, 5)",
    "f_rows": "SELECT sensor, temp FROM readings [ROWS 4] WHERE temp > 10",
    "f_newest": "SELECT sensor, temp FROM readings [PARTITION BY sensor ROWS 2]",
    "f_recent": "SELECT sensor, kind FROM events [ROWS 6 RANGE 2 SECONDS]",
    "f_now": "SELECT sensor, kind, level FROM events [NOW] WHERE level > 1",
    "f_ever": "SELECT sensor, temp FROM readings [RANGE UNBOUNDED] WHERE sensor = 2 AND temp > 25",
    "f_slow": f"SELECT sensor, level, ts FROM {SLOW} WHERE level > 0",
    "f_strict": "SELECT sensor, level, ts FROM strict WHERE level > 0",
    "f_quotes": "SELECT symbol, price FROM quotes [RANGE 3 SECONDS] WHERE price > 12",
}
JOINS = {
    "j_two": f"SELECT r.sensor, r.temp, e.kind FROM {READ} r, {EVENT} e WHERE r.sensor = e.sensor AND r.temp > 10",
    "j_three": f"SELECT r.sensor, e.level, s.level AS slow FROM {READ} r, {EVENT} e, {SLOW} s "
    "WHERE r.sensor = e.sensor AND e.sensor = s.sensor AND r.temp > 12",
    "j_band": f"SELECT r.sensor, r.temp, e.level FROM {READ} r, {EVENT} e WHERE r.sensor = e.sensor AND "
    "e.ts BETWEEN r.ts - INTERVAL 500 MILLISECONDS AND r.ts",
    "j_self": "SELECT a.sensor, b.sensor AS other, a.room FROM readings [RANGE 1 SECOND] a, readings [RANGE 1 SECOND] b "
    "WHERE a.room = b.room AND a.sensor < b.sensor",
    "j_key": f"SELECT r.sensor, e.level FROM {READ} r, {EVENT} e WHERE r.sensor % 3 = e.level AND r.ok",
    "j_rows": "SELECT r.sensor, r.temp, e.kind FROM readings [ROWS 5] r, events [ROWS 4] e WHERE r.sensor = e.sensor",
    "j_news": "SELECT q.symbol, q.price, a.title FROM quotes [RANGE 2 SECONDS] q, articles [RANGE 6 SECONDS] a "
    "WHERE q.symbol = a.symbol AND q.price > 10",
    "j_more": f"SELECT r.sensor, r.temp FROM {READ} r, {EVENT} e WHERE r.sensor = e.sensor AND r.temp > e.level * 8",
}
WITH_TABLES = {
    "t_live": f"SELECT s.room, r.temp FROM {READ} r JOIN sensors s ON r.sensor = s.sensor WHERE r.temp > 8",
    "t_frozen": f"SELECT r.sensor, r.temp, l.high FROM {READ} r, limits l WHERE r.room = l.room AND r.temp > l.high",
    "t_both": f"SELECT r.sensor, s.floor, l.high FROM {READ} r, sensors s, limits l "
    "WHERE r.sensor = s.sensor AND s.room = l.room",
    "t_stream": "SELECT r.sensor, s.room FROM readings r, sensors s WHERE r.sensor = s.sensor AND r.temp > 15",
    "t_joined": f"SELECT r.sensor, e.kind, s.room FROM {READ} r, {EVENT} e, sensors s "
    "WHERE r.sensor = e.sensor AND e.sensor = s.sensor",
    "t_alone": "SELECT sensor, room FROM sensors WHERE floor > 1",
    "t_floors": "SELECT floor, COUNT(*) AS n FROM sensors GROUP BY floor",
    "t_groups": f"SELECT s.floor, COUNT(*) AS n, MAX(r.temp) AS top FROM {READ} r, sensors s "
    "WHERE r.sensor = s.sensor GROUP BY s.floor",
    "t_frozen_groups": f"SELECT l.high, COUNT(*) AS n FROM {READ} r, limits l WHERE r.room = l.room GROUP BY l.high",
}
TREES = {
    "g_room": f"SELECT room, COUNT(*) AS n, AVG(temp) AS mean, SUM(temp) AS total FROM {READ} GROUP BY room",
    "g_having": f"SELECT sensor, MAX(temp) AS top, MIN(temp) AS low FROM {READ} GROUP BY sensor HAVING COUNT(*) > 2",
    "g_one": "SELECT COUNT(*) AS n, SUM(level) AS levels FROM events [RANGE 2 SECONDS]",
    "g_some": f"SELECT room, COUNT(*) FILTER (WHERE temp > 15) AS warm, COUNT(DISTINCT sensor) AS n FROM {READ} GROUP BY room",
    "g_middle": f"SELECT kind, MEDIAN(level) AS middle, FIRST(sensor) AS first, LAST(sensor) AS last FROM {EVENT} GROUP BY kind",
    "g_join": f"SELECT e.kind, COUNT(*) AS n, SUM(r.temp) AS total FROM {READ} r, {EVENT} e WHERE r.sensor = e.sensor "
    "GROUP BY e.kind",
    "g_rows": "SELECT room, COUNT(*) AS n, MAX(temp) AS top FROM readings [ROWS 8] GROUP BY room",
    "g_slow": f"SELECT level, COUNT(*) AS n FROM {SLOW} GROUP BY level",
    "d_rooms": f"SELECT DISTINCT room FROM {READ}",
    "d_join": f"SELECT DISTINCT r.room, e.kind FROM {READ} r, {EVENT} e WHERE r.sensor = e.sensor",
    "s_except": f"SELECT sensor FROM {READ} EXCEPT SELECT sensor FROM {EVENT}",
    "s_except_all": f"SELECT sensor FROM {READ} EXCEPT ALL SELECT sensor FROM {EVENT}",
    "s_union": f"SELECT sensor FROM {READ} WHERE temp > 20 UNION SELECT sensor FROM {EVENT}",
    "s_union_all": f"SELECT sensor, level FROM {EVENT} UNION ALL SELECT sensor, level FROM {SLOW}",
    "s_intersect": f"SELECT sensor FROM {READ} INTERSECT SELECT sensor FROM {EVENT}",
    "s_intersect_all": f"SELECT sensor FROM {READ} INTERSECT ALL SELECT sensor FROM {EVENT}",
    "s_join": f"SELECT m.sensor, e.kind FROM (SELECT sensor FROM {READ} EXCEPT ALL SELECT sensor FROM {SLOW}) AS m, {EVENT} e "
    "WHERE m.sensor = e.sensor",
    "w_tumble": "SELECT window_end, room, SUM(temp) AS total FROM TUMBLE(readings, 2 SECONDS) GROUP BY window_end, room",
    "w_hop": "SELECT window_start, window_end, COUNT(*) AS n FROM HOP(events, 1 SECOND, 3 SECONDS) "
    "GROUP BY window_start, window_end",
    "w_slide": "SELECT COUNT(*) AS n, MAX(window_end) AS until FROM readings [RANGE 3 SECONDS SLIDE 1 SECOND]",
    "w_rows": "SELECT sensor, kind FROM events [RANGE 2 SECONDS SLIDE 2 SECONDS] WHERE level > 0",
    "i_came": f"ISTREAM (SELECT DISTINCT sensor FROM {READ} WHERE temp > 20)",
    "i_left": f"DSTREAM (SELECT sensor, level FROM {EVENT})",
    "i_whole": "RSTREAM (SELECT room, COUNT(*) AS n FROM readings [RANGE 1 SECOND] GROUP BY room)",
    "with_two": f"WITH hot AS (SELECT COUNT(*) AS n FROM {READ} WHERE temp > 20), every AS (SELECT COUNT(*) AS n FROM {READ}) "
    "SELECT hot.n AS hot, every.n AS rows FROM hot, every",
}
#: Queries that read queries, in this order.
NAMED = {
    "n_tops": f"SELECT room, MAX(temp) AS top FROM {READ} GROUP BY room",
    "n_alarms": "ISTREAM (SELECT room, top FROM n_tops WHERE top > 20)",
    "n_count": "SELECT COUNT(*) AS n FROM n_tops WHERE top > 15",
    "n_hour": "SELECT room, COUNT(*) AS n FROM n_alarms [RANGE 3 SECONDS] GROUP BY room",
    "n_join": f"SELECT t.room, t.top, r.sensor FROM n_tops t, {READ} r WHERE t.room = r.room AND r.temp = t.top",
    "n_newest": "SELECT sensor, COUNT(*) AS n FROM f_newest GROUP BY sensor",
}
KEYED = {
    "k_orders": f"SELECT id, item, qty FROM {ORDER} WHERE qty > 1",
    "k_items": f"SELECT item, COUNT(*) AS n, SUM(qty) AS qty FROM {ORDER} GROUP BY item",
    "k_places": "SELECT id, room FROM places [RANGE UNBOUNDED]",
    "k_rooms": f"SELECT DISTINCT room FROM {PLACE}",
    "k_join": f"SELECT p.room, e.kind, e.level FROM {PLACE} p, {EVENT} e WHERE p.id = e.sensor",
    "k_pairs": f"SELECT o.id, o.item, p.room FROM {ORDER} o, {PLACE} p WHERE o.id = p.id",
    "k_missing": f"SELECT id FROM {ORDER} EXCEPT SELECT id FROM {PLACE}",
    "k_rows": "SELECT id, item FROM orders [ROWS 3]",
    "k_steps": "SELECT item, COUNT(*) AS n FROM orders [RANGE 2 SECONDS SLIDE 1 SECOND] GROUP BY item",
}
#: Only where functions can be registered, or the clock be set.
EMBEDDED = {
    "u_near": f"SELECT r.sensor, e.sensor AS other FROM {READ} r, {EVENT} e WHERE near(r.sensor, e.sensor) AND r.temp > 20",
    "u_folded": f"SELECT folded(kind) AS kind, COUNT(*) AS n FROM {EVENT} GROUP BY folded(kind)",
    "u_filter": "SELECT sensor, kind FROM events WHERE near(level, sensor)",
    "a_rows": "SELECT sensor, level FROM arriving [RANGE 500 MILLISECONDS]",
    "a_groups": "SELECT level, COUNT(*) AS n FROM arriving [RANGE 1 SECOND] GROUP BY level",
}
PARAMS = {"f_room": {"room": "hall", "low": 5, "high": 22.5}}
OPTIONS: dict[str, dict[str, Any]] = {
    "f_or": {"emit": "event"}, "j_key": {"emit": "event"}, "t_live": {"emit": "event"}, "s_except": {"emit": "event"},
    "g_having": {"emit": "event", "expiry": "negative"}, "d_rooms": {"emit": "event"}, "k_items": {"emit": "event"},
    "d_join": {"expiry": "direct"}, "s_union": {"expiry": "input"}, "g_join": {"expiry": "negative+message"},
    "s_intersect": {"expiry": "piggyback"}, "s_except_all": {"expiry": "update-pattern"}, "k_missing": {"expiry": "direct"},
}  # fmt: skip
#: Whose changes nobody reads before the last look but one.
UNREAD = ["f_like", "j_self", "t_both", "g_some", "s_join", "k_pairs"]
#: Asked in the midst of the run, of rows that are stored.
LATER = {
    "l_warm": ("SELECT sensor, temp FROM readings [RANGE 5 SECONDS] WHERE temp > 18", "window"),
    "l_join": (JOINS["j_two"].replace("> 10", "> 5"), "window"),
    "l_groups": (TREES["g_room"], "window"),
    "l_distinct": (TREES["d_join"], "new"),
    "l_places": (f"SELECT room, COUNT(*) AS n FROM {PLACE} GROUP BY room", "window"),
    "l_steps": (TREES["w_slide"], "window"),
}
#: Another text for some, with the same columns.
REPLACED = {
    "f_warm": "SELECT sensor, temp FROM readings [RANGE 3 SECONDS] WHERE temp BETWEEN 10 AND 22",
    "j_two": JOINS["j_two"].replace("> 10", "> 18"),
    "t_live": WITH_TABLES["t_live"].replace("> 8", "> 16"),
    "g_room": TREES["g_room"].replace("GROUP", "WHERE temp > 10 GROUP"),
    "d_rooms": "SELECT DISTINCT room FROM readings [RANGE 2 SECONDS] WHERE ok",
    "k_orders": KEYED["k_orders"].replace("> 1", "> 0"),
}
PAUSED = ["f_or", "j_band", "t_groups", "g_one", "k_join", "i_came", "w_slide", "s_except_all"]


def named(queries: dict[str, str], tag: str = "all") -> list[dict[str, Any]]:
    """Definitions of queries by their names."""
    return [
        {"name": name, "sql": sql, "tags": [] if name in UNREAD else [tag], **OPTIONS.get(name, {})}
        | ({"params": PARAMS[name]} if name in PARAMS else {})
        for name, sql in queries.items()
    ]


def crowd() -> list[dict[str, Any]]:
    """Many queries of a few forms: filters that an index finds by their key, and groups that share their work."""
    by_key = {f"c_sensor{n}": f"SELECT room, temp FROM {READ} WHERE sensor = {n % 8} AND temp > {n}" for n in range(24)}
    cuts = {f"c_temp{n}": f"SELECT sensor FROM readings WHERE temp > {n}.5 AND temp < {n + 6}" for n in range(0, 24, 2)}
    groups = {
        f"c_group{n}": f"SELECT room, COUNT(*) AS n, SUM(temp) AS x FROM {READ} WHERE temp > {2 * n} GROUP BY room"
        for n in range(8)
    }
    return named({**by_key, **cuts, **groups}, "crowd")


@dataclass
class _Maker:
    """Draws rows and steps; time goes on by up to a second a step."""

    rng: random.Random
    now: int = START
    n_pushes: int = 0
    plans: dict[str, StreamPlan] = field(default_factory=lambda: {plan.name: plan for plan in STREAMS})

    def pick(self, choices: Sequence[T]) -> T:
        return choices[int(self.rng.random() * len(choices))]

    def value(self, column: str, time: int) -> Any:
        match column:
            case "sensor" | "id":
                return self.pick(range(8))
            case "room":
                return self.pick(["lab", "hall", "Hut", "roof", "", None])
            case "temp" | "price":
                return self.pick([None, -0.0, 0.25, *(n / 2 for n in range(8, 56))])
            case "ok":
                return self.pick([True, True, False, None])
            case "kind":
                return self.pick(["Open", "open", "shut", None])
            case "level" | "qty" | "size":
                return self.pick([0, 1, 1, 2, 3, None])
            case "item" | "symbol":
                return self.pick(["ACME", "IBM", "é", "a,\"b'"])
            case "title":
                return self.pick(["up", "down\n", "same"])
            case "until":
                return self.pick([None, None, time + 400 * MS, time + 1500 * MS, time + 1, time])
        raise KeyError(column)

    def rows(self, stream: str) -> list[Row]:
        plan = self.plans[stream]
        late = 250 * MS if plan.lateness_us else 0
        if self.rng.random() < 0.15:
            late = 900 * MS  # beyond any lateness
        times = [
            self.now + int(self.rng.random() * 400) * MS - int(self.rng.random() * late)
            for _ in range(self.pick([1, 1, 2, 3, 5, 8]))
        ]
        if not late:
            times.sort()
        found = [{name: self.value(name, time) for name in plan.columns if name != "ts"} | {"ts": time} for time in times]
        self.now = max([self.now, *times])
        return found

    def push(self) -> Step:
        self.n_pushes += 1
        form = ["dicts", "columns", "arrow", "ndjson", "csv"][self.n_pushes % 5]
        name = self.pick(
            ["readings", "readings", "readings", "events", "events", "orders", "places", "slow", "strict", "quotes", "articles"]
        )
        if self.rng.random() < 0.15 and self.plans[name].timeline == "main":
            return Push({name: self.rows(name) for name in ("readings", "events", "slow")}, self.pick(["dicts", "columns"]), True)
        return Push({name: self.rows(name)}, form, False)

    def step(self) -> Step:
        self.now += self.pick([0, 0, 20, 100, 300, 600]) * MS
        kind = self.rng.random()
        if kind < 0.72:
            return self.push()
        if kind < 0.80:
            keys = [(self.pick(range(8)),) for _ in range(self.pick([1, 2, 3]))]
            return Retract(self.pick(["orders", "places"]), keys, self.now + self.pick([-200, 0, 0, 50]) * MS)
        if kind < 0.87:
            table = self.pick(TABLES)
            values = {"floor": lambda: self.pick([1, 2, 3, None]), "high": lambda: self.pick([5.0, 12.5, 20.0, None])}
            keys = {self.pick(range(8)) if table.name == "sensors" else self.pick(["lab", "hall", "roof", ""]) for _ in range(2)}
            rows = [
                {
                    table.key[0]: key,
                    **{n: values[n]() if n in values else self.value(n, 0) for n in table.columns if n != table.key[0]},
                }
                for key in sorted(keys, key=str)
            ]
            return Upsert(table.name, rows)
        if kind < 0.91:
            return Delete(*self.pick([("sensors", [(self.pick(range(8)),)]), ("limits", [(self.pick(["lab", "hall"]),)])]))
        if kind < 0.96:
            self.now += self.pick([1, 500, 1000, 2500]) * MS
        return Advance(self.now, self.pick(["main", "main", "market"]))

    def arrive(self) -> Iterator[Step]:
        """Rows of the stream that is timed as they arrive, and a clock that goes on."""
        yield Tick(self.now)
        yield Push({"arriving": [{"sensor": self.pick(range(4)), "level": self.value("level", 0)}]}, "dicts", False)

    def some(self, n: int) -> Iterator[Step]:
        for _ in range(n):
            yield self.step()
            if self.rng.random() < 0.1:
                yield from self.arrive()


def make_script() -> Iterator[Step]:
    """The steps, always the same."""
    maker = _Maker(random.Random(16))
    yield Upsert("sensors", [{"sensor": n, "room": ["lab", "hall", "roof"][n % 3], "floor": n % 3} for n in range(6)])
    yield Upsert("limits", [{"room": "lab", "high": 10.0}, {"room": "hall", "high": 5.5}])
    yield Advance(START, "main")
    for queries in (FILTERS, JOINS, WITH_TABLES, TREES, NAMED, KEYED):
        for definition in named(queries):
            yield Ask([definition])
    yield Ask(named(EMBEDDED), embedded=True)
    yield from maker.some(50)
    yield Look()
    yield Ask(crowd())
    yield from maker.some(40)
    yield Refused("PUT", "/v1/queries/wrong", {"sql": "SELECT nothing FROM readings"})
    yield Refused("PUT", "/v1/queries/f_warm", {"sql": "SELECT room FROM readings [RANGE 3 SECONDS]", "tags": ["all"]})
    yield Refused("POST", "/v1/streams/readings/rows", {"sensor": "one", "ts": 0})
    yield Refused("DELETE", "/v1/queries/n_tops", {})
    for name in PAUSED:
        yield Act("pause", name)
    yield Look()
    yield from maker.some(25)
    yield Restart(killed=False)
    yield from (Rewrite(name, sql) for name, sql in REPLACED.items())
    yield from maker.some(30)
    yield Look()
    for name in PAUSED[:-1]:
        yield Act("resume", name)
    for name, (sql, history) in LATER.items():
        yield Ask([{"name": name, "sql": sql, "tags": ["all"], "history": history}])
    yield from maker.some(40)
    yield from (Trace("readings", row) for row in (3, 40, 120))
    yield Restart(killed=True)
    yield from maker.some(30)
    yield Look(formats=True)
    yield Act("resume", PAUSED[-1])
    for name in ("f_or", "j_two", "t_frozen", "g_room", "n_hour", "k_items", "s_union", "c_group3", "c_sensor7"):
        yield Act("cancel", name)
    yield from maker.some(40)
    yield Advance(maker.now + 20 * SECOND, "main")
    yield Advance(maker.now + 20 * SECOND, "market")
    yield Look(formats=True)
