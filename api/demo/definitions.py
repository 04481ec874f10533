"""The definitions of the demo: four streams, a merged one, a table and a few hundred queries, all tagged `demo`.

Most are the same question about every room, as people really ask; the others show what the language has: groups, joins of streams
and with a table, windows in steps, set operations, ISTREAM and DSTREAM, queries over queries. A query that reads another comes
after it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from api.demo.gateways import GATEWAYS
from api.demo.simulated_building import KINDS, ROOMS, DemoRoom

TAG = "demo"
TIMELINE = "demo"
STREAMS = tuple(f"demo_{kind}" for kind in KINDS)
MERGE = "demo_air"
TABLE = "demo_sensors"

STREAM: dict[str, Any] = {
    "columns": {"sensor": "int", "room": "string", "value": "float", "ts": "timestamp"},
    "time": "ts",
    "timeline": TIMELINE,
}
#: The clock of a merged stream is as far as its gateways have come, so it has a timeline of its own.
AIR: dict[str, Any] = {
    "columns": STREAM["columns"],
    "time": "ts",
    "inputs": list(GATEWAYS),
    "unique": True,
    "missing": "any",
    "lateness": 2_000,
    "timeline": MERGE,
}
SENSORS: dict[str, Any] = {
    "columns": {"sensor": "int", "kind": "string", "room": "string", "floor": "int"},
    "key": "sensor",
}

Definition = tuple[str, dict[str, Any]]


def queries() -> list[Definition]:
    """Return (name, definition) of every query; a query stands after those it reads."""
    return [*_overview(), *(found for room in ROOMS for found in _of_room(room)), *_levels(), *_floors(), *_air(), *_of_queries()]


def _query(name: str, sql: str, *tags: str, **params: Any) -> Definition:
    definition: dict[str, Any] = {"sql": sql, "tags": [TAG, *tags]}
    if params:
        definition["params"] = params
    return f"demo_{name}", definition


def _of_room(room: DemoRoom) -> Iterator[Definition]:
    """Yield the queries about one room."""
    name, tag = room.name, f"floor-{room.floor}"
    yield _query(
        f"hot_{name}",
        "SELECT sensor, value AS celsius FROM demo_temperature [RANGE 30 SECONDS] WHERE room = :room AND value > :limit",
        tag, "temperature", room=name, limit=room.warmth + 2.8,
    )  # fmt: skip
    yield _query(
        f"cold_{name}",
        "SELECT sensor, value AS celsius FROM demo_temperature [RANGE 30 SECONDS] WHERE room = :room AND value < :limit",
        tag, "temperature", room=name, limit=room.warmth - 2.0,
    )  # fmt: skip
    yield _query(
        f"climate_{name}",
        "SELECT COUNT(*) AS readings, AVG(value) AS mean, MIN(value) AS coldest, MAX(value) AS hottest "
        "FROM demo_temperature [RANGE 1 MINUTE] WHERE room = :room",
        tag, "temperature", room=name,
    )  # fmt: skip
    yield _query(
        f"loud_{name}",
        "SELECT value AS decibel, ts FROM demo_sound [RANGE 10 SECONDS] WHERE room = :room AND value > :limit",
        tag, "sound", room=name, limit=50,
    )  # fmt: skip
    yield _query(
        f"talk_{name}",
        "SELECT m.ts AS moved, m.value AS strength, s.value AS decibel "
        "FROM demo_motion [RANGE 2 SECONDS] m, demo_sound [RANGE 2 SECONDS] s "
        "WHERE m.room = s.room AND m.room = :room AND s.value > 48",
        tag, "motion", "join", room=name,
    )  # fmt: skip
    yield _query(
        f"light_{name}",
        "SELECT window_end, AVG(value) AS lux, COUNT(*) AS readings FROM TUMBLE(demo_light, 10 SECONDS) "
        "WHERE room = :room GROUP BY window_end",
        tag, "light", "per-minute", room=name,
    )  # fmt: skip
    yield _query(
        f"visits_{name}",
        "SELECT COUNT(*) AS movements, MAX(value) AS strongest, LAST(ts) AS newest "
        "FROM demo_motion [RANGE 1 MINUTE] WHERE room = :room",
        tag, "motion", room=name,
    )  # fmt: skip
    yield _query(
        f"jump_{name}",
        "SELECT sensor, value AS celsius, ts FROM demo_temperature WHERE room = :room AND (value > :high OR value < :low)",
        tag, "temperature", "alarm", room=name, high=room.warmth + 6, low=room.warmth - 5,
    )  # fmt: skip


def _levels() -> Iterator[Definition]:
    """Yield the same query at many levels: one index answers all of them."""
    for celsius in range(16, 32):
        sql = "SELECT sensor, room, value AS celsius FROM demo_temperature [RANGE 10 SECONDS] WHERE value > :level"
        yield _query(f"above_{celsius}_degrees", sql, "level", "temperature", level=celsius)
    for decibel in range(34, 66, 2):
        sql = "SELECT room, value AS decibel, ts FROM demo_sound WHERE value > :level"
        yield _query(f"above_{decibel}_decibel", sql, "level", "sound", level=decibel)
    for lux in range(50, 850, 50):
        sql = "SELECT DISTINCT room FROM demo_light [RANGE 5 SECONDS] WHERE value > :level"
        yield _query(f"above_{lux}_lux", sql, "level", "light", level=lux)


def _floors() -> Iterator[Definition]:
    """Yield joins of streams with the table of sensors, floor by floor."""
    for floor in sorted({room.floor for room in ROOMS}):
        tag = f"floor-{floor}"
        for kind, value in (("temperature", "celsius"), ("light", "lux"), ("sound", "decibel")):
            yield _query(
                f"{kind}_floor_{floor}",
                f"SELECT r.room, AVG(r.value) AS {value}, COUNT(*) AS readings "
                f"FROM demo_{kind} [RANGE 20 SECONDS] r, demo_sensors s "
                "WHERE r.sensor = s.sensor AND s.floor = :floor GROUP BY r.room",
                tag, kind, "join", floor=floor,
            )  # fmt: skip
        yield _query(
            f"busy_floor_{floor}",
            "SELECT DISTINCT m.room FROM demo_motion [RANGE 15 SECONDS] m, demo_sensors s "
            "WHERE m.sensor = s.sensor AND s.floor = :floor",
            tag, "motion", "join", floor=floor,
        )  # fmt: skip
        yield _query(
            f"alarm_floor_{floor}",
            "ISTREAM(SELECT DISTINCT t.room FROM demo_temperature [RANGE 30 SECONDS] t, demo_sensors s "
            "WHERE t.sensor = s.sensor AND s.floor = :floor AND t.value > 27)",
            tag, "temperature", "alarm", floor=floor,
        )  # fmt: skip


def _air() -> Iterator[Definition]:
    """Yield the queries about the air of a floor, which two gateways bring."""
    yield _query(
        "air_rooms",
        "SELECT room, ROUND(AVG(value), 0) AS ppm, MAX(value) AS highest, COUNT(*) AS readings "
        "FROM demo_air [RANGE 30 SECONDS] GROUP BY room",
        "overview", "air", "merged",
    )  # fmt: skip
    yield _query("stuffy", "SELECT DISTINCT room FROM demo_air [RANGE 10 SECONDS] WHERE value > 1000", "air", "alarm", "merged")
    yield _query(
        "air_readings",
        "SELECT window_end, COUNT(*) AS readings FROM TUMBLE(demo_air, 10 SECONDS) GROUP BY window_end",
        "air", "merged", "per-minute",
    )  # fmt: skip


def _overview() -> Iterator[Definition]:
    """Yield the queries about the whole building."""
    yield _query(
        "rooms",
        "SELECT room, ROUND(AVG(value), 1) AS celsius, MIN(value) AS coldest, MAX(value) AS hottest, COUNT(*) AS readings "
        "FROM demo_temperature [RANGE 1 MINUTE] GROUP BY room",
        "overview", "temperature",
    )  # fmt: skip
    yield _query("occupied", "SELECT DISTINCT room FROM demo_motion [RANGE 15 SECONDS]", "overview", "motion")
    yield _query(
        "brightness",
        "SELECT room, ROUND(AVG(value), 0) AS lux FROM demo_light [RANGE 10 SECONDS] GROUP BY room",
        "overview", "light",
    )  # fmt: skip
    yield _query(
        "noise",
        "SELECT room, ROUND(MAX(value), 0) AS decibel FROM demo_sound [RANGE 10 SECONDS] GROUP BY room HAVING MAX(value) > 45",
        "overview", "sound",
    )  # fmt: skip
    yield _query(
        "floors",
        "SELECT s.floor, ROUND(AVG(t.value), 1) AS celsius, COUNT(*) AS readings "
        "FROM demo_temperature [RANGE 1 MINUTE] t, demo_sensors s WHERE t.sensor = s.sensor GROUP BY s.floor",
        "overview", "temperature", "join",
    )  # fmt: skip
    yield _query(
        "every_minute",
        "SELECT window_start, window_end, COUNT(*) AS readings, ROUND(AVG(value), 2) AS celsius, "
        "ROUND(STDDEV(value), 2) AS spread "
        "FROM TUMBLE(demo_temperature, 1 MINUTE) GROUP BY window_start, window_end",
        "overview", "temperature", "per-minute",
    )  # fmt: skip
    yield _query(
        "rooms_every_minute",
        "SELECT room, window_end, ROUND(AVG(value), 1) AS celsius FROM TUMBLE(demo_temperature, 1 MINUTE) "
        "GROUP BY room, window_end",
        "temperature", "per-minute",
    )  # fmt: skip
    yield _query(
        "movements_hopping",
        "SELECT room, window_end, COUNT(*) AS movements FROM HOP(demo_motion, 10 SECONDS, 1 MINUTE) GROUP BY room, window_end",
        "motion", "per-minute",
    )  # fmt: skip
    yield _query(
        "lamp_forgotten",
        "SELECT room FROM demo_light [RANGE 8 SECONDS] WHERE value > 280 AND room <> 'terrace' "
        "EXCEPT SELECT room FROM demo_motion [RANGE 12 SECONDS]",
        "overview", "light", "alarm",
    )  # fmt: skip
    yield _query(
        "silent_sensors",
        "SELECT sensor, room FROM demo_sensors WHERE kind = 'temperature' "
        "EXCEPT SELECT sensor, room FROM demo_temperature [RANGE 5 SECONDS]",
        "overview", "fault", "alarm",
    )  # fmt: skip
    yield _query(
        "stuck_sensors",
        "SELECT sensor, room, MAX(value) AS celsius, COUNT(*) AS readings FROM demo_temperature [RANGE 8 SECONDS] "
        "GROUP BY sensor, room HAVING COUNT(*) > 10 AND MIN(value) = MAX(value)",
        "overview", "fault", "alarm",
    )  # fmt: skip
    yield _query(
        "wild_sensors",
        "SELECT sensor, room, COUNT(*) AS readings, STDDEV(value) AS spread FROM demo_temperature [RANGE 10 SECONDS] "
        "GROUP BY sensor, room HAVING STDDEV(value) > 4",
        "overview", "fault", "alarm",
    )  # fmt: skip
    yield _query(
        "sensors_disagree",
        "SELECT a.room, a.sensor AS one, b.sensor AS other, a.value AS celsius, b.value AS against "
        "FROM demo_temperature [PARTITION BY sensor ROWS 1] a, demo_temperature [PARTITION BY sensor ROWS 1] b "
        "WHERE a.room = b.room AND a.sensor < b.sensor AND ABS(a.value - b.value) > 2.5",
        "overview", "fault", "join",
    )  # fmt: skip
    yield _query(
        "newest",
        "SELECT sensor, room, value AS celsius, ts FROM demo_temperature [PARTITION BY sensor ROWS 1]",
        "overview", "temperature",
    )  # fmt: skip
    yield _query(
        "someone_enters",
        "ISTREAM(SELECT DISTINCT room FROM demo_motion [RANGE 15 SECONDS])",
        "overview", "motion", "alarm",
    )  # fmt: skip
    yield _query(
        "someone_left",
        "DSTREAM(SELECT DISTINCT room FROM demo_motion [RANGE 15 SECONDS])",
        "overview", "motion",
    )  # fmt: skip
    yield _query(
        "heard_and_seen",
        "SELECT room FROM demo_motion [RANGE 5 SECONDS] INTERSECT SELECT room FROM demo_sound [RANGE 5 SECONDS] WHERE value > 46",
        "overview", "motion", "sound",
    )  # fmt: skip
    yield _query(
        "seen_not_heard",
        "SELECT room FROM demo_motion [RANGE 10 SECONDS] EXCEPT SELECT room FROM demo_sound [RANGE 10 SECONDS] WHERE value > 44",
        "overview", "motion", "sound",
    )  # fmt: skip
    yield _query(
        "moving_in_the_dark",
        "SELECT m.room, m.ts AS moved, l.value AS lux FROM demo_motion [RANGE 3 SECONDS] m, demo_light [RANGE 3 SECONDS] l "
        "WHERE m.room = l.room AND l.value < 20",
        "overview", "motion", "light", "alarm", "join",
    )  # fmt: skip
    yield _query(
        "bang",
        "SELECT s.room, s.value AS decibel, s.ts, d.floor FROM demo_sound s, demo_sensors d "
        "WHERE s.sensor = d.sensor AND s.value > 58",
        "overview", "sound", "alarm", "join",
    )  # fmt: skip


def _of_queries() -> Iterator[Definition]:
    """Yield queries over the answers of other queries."""
    yield _query("rooms_occupied", "SELECT COUNT(*) AS rooms FROM demo_occupied", "overview", "motion")
    yield _query(
        "too_warm_and_occupied",
        "SELECT r.room, r.celsius FROM demo_rooms r, demo_occupied o WHERE r.room = o.room AND r.celsius > 22.5",
        "overview", "alarm", "join",
    )  # fmt: skip
    yield _query(
        "heating_for_nobody",
        "SELECT room FROM demo_rooms WHERE celsius > 23 EXCEPT SELECT room FROM demo_occupied",
        "overview", "alarm",
    )  # fmt: skip
    yield _query(
        "entries_a_minute",
        "SELECT room, COUNT(*) AS entries FROM demo_someone_enters [RANGE 1 MINUTE] GROUP BY room",
        "overview", "motion",
    )  # fmt: skip
