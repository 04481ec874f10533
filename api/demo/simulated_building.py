"""The readings of the demo's sensors, as a pure function of (seed, tick).

    tick        500 ms of real time; tick n covers the event times [500 n, 500 n + 500) ms since 1970
    day         1,200 ticks: a day of the building passes in ten minutes, though its rows carry the real time. So time limits
                hold, windows in a query mean what they say, and day and night still come while somebody watches

Nothing is remembered from one tick to the next: whatever lasts (a visit, a fault, a heating that runs wild) lasts for a slot of
ticks, and a hash of (seed, what, sensor or room, slot) says whether it happens. So any tick can be made without those before it,
and a demo that was stopped goes on as if it had not been.

A room with somebody in it has its lamp on, is louder and a little warmer, and its motion sensor fires. Some leave the lamp on.
A sensor may fall silent, get stuck or send nonsense for a minute; packets get lost. Motion sensors send only when they see some.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

TICK_MS = 500
DAY_TICKS = 1_200
#: Ticks that one visit, one fault, one run of a heating lasts.
VISIT, FAULT, HEATING = 24, 120, 240


class DemoRoom(NamedTuple):
    """A room; `busy` is the chance that somebody is in it at the busiest hour."""

    name: str
    floor: int
    busy: float
    #: degrees when nobody is there, averaged over a day
    warmth: float
    #: how much of the daylight comes in
    window: float
    #: busiest at noon, not all day long
    lunch: bool = False


ROOMS = (
    DemoRoom("lobby", 0, 0.8, 19.5, 1.0),
    DemoRoom("reception", 0, 0.7, 20.5, 0.7),
    DemoRoom("cafe", 0, 0.9, 21.0, 0.9, lunch=True),
    DemoRoom("kitchen", 0, 0.8, 22.5, 0.4, lunch=True),
    DemoRoom("mailroom", 0, 0.3, 19.0, 0.1),
    DemoRoom("workshop", 0, 0.5, 18.5, 0.5),
    DemoRoom("library", 1, 0.4, 20.0, 0.6),
    DemoRoom("studio", 1, 0.5, 21.0, 0.8),
    DemoRoom("office_north", 1, 0.7, 21.0, 0.6),
    DemoRoom("office_south", 1, 0.7, 22.0, 1.0),
    DemoRoom("meeting_oak", 1, 0.4, 20.5, 0.5),
    DemoRoom("meeting_elm", 1, 0.4, 20.5, 0.5),
    DemoRoom("lab", 2, 0.6, 20.0, 0.3),
    DemoRoom("clean_room", 2, 0.4, 19.0, 0.0),
    DemoRoom("cold_store", 2, 0.15, 5.0, 0.0),
    DemoRoom("server_room", 2, 0.1, 23.0, 0.0),
    DemoRoom("darkroom", 2, 0.2, 20.0, 0.0),
    DemoRoom("archive", 2, 0.15, 18.0, 0.1),
    DemoRoom("boardroom", 3, 0.3, 20.5, 0.9),
    DemoRoom("lounge", 3, 0.6, 21.5, 0.9, lunch=True),
    DemoRoom("terrace", 3, 0.4, 15.0, 1.4),
    DemoRoom("office_east", 3, 0.7, 21.0, 0.8),
    DemoRoom("office_west", 3, 0.7, 21.5, 0.8),
    DemoRoom("quiet_room", 3, 0.3, 20.5, 0.4),
)
KINDS = ("light", "temperature", "sound", "motion")
#: Sensors of each kind in every room.
PER_ROOM = {"light": 2, "temperature": 2, "sound": 1, "motion": 1}
#: Digits after the point that a sensor sends.
_DIGITS = {"light": 1, "temperature": 2, "sound": 1, "motion": 2}

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
_U = np.uint64


class Sensors(NamedTuple):
    """All sensors of a kind, ordered by their moment within a tick."""

    ids: Ints
    #: number of the room of each
    room: Ints
    rooms: list[str]
    #: milliseconds from the beginning of a tick
    offset_ms: Ints


def uniform(seed: int, what: int, of: Ints, when: Ints | int) -> Floats:
    """Return numbers in [0, 1) that look random: a hash (splitmix64) of all arguments."""
    with np.errstate(over="ignore"):
        x = of.astype(_U) * _U(0x9E3779B97F4A7C15) + np.asarray(when, np.int64).astype(_U) * _U(0xD1B54A32D192ED03)
        x = x + _U((seed * 0x2545F4914F6CDD1D + what * 0xA0761D6478BD642F) % 2**64)
        x = (x ^ (x >> _U(30))) * _U(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> _U(27))) * _U(0x94D049BB133111EB)
    return np.asarray((x ^ (x >> _U(31))) >> _U(11), np.float64) / 2.0**53


def _noise(seed: int, what: int, of: Ints, when: int) -> Floats:
    """Return about normal numbers with a deviation of 1."""
    return 2.0 * sum((uniform(seed, what + n, of, when) for n in range(3)), start=np.full(len(of), -1.5))


def hour_of(tick: int) -> float:
    """Return the hour of the building's day, 0 to 24."""
    return tick % DAY_TICKS * 24.0 / DAY_TICKS


class SimulatedBuilding:
    """The building of one seed."""

    def __init__(self, seed: int = 0) -> None:
        self.seed = seed
        self._rooms = np.arange(len(ROOMS))
        self._busy = np.array([room.busy for room in ROOMS])
        self._lunch = np.array([room.lunch for room in ROOMS])
        self._warmth = np.array([room.warmth for room in ROOMS])
        self._window = np.array([room.window for room in ROOMS])
        self.sensors = {kind: self._install(kind) for kind in KINDS}

    def _install(self, kind: str) -> Sensors:
        first = sum(PER_ROOM[other] for other in KINDS[: KINDS.index(kind)]) + 1
        # 2304: floor 2, its third room, fourth sensor
        on_floor = [sum(other.floor == room.floor for other in ROOMS[:n]) for n, room in enumerate(ROOMS)]
        ids = np.array(
            [ROOMS[n].floor * 1000 + on_floor[n] * 100 + first + k for n in self._rooms for k in range(PER_ROOM[kind])]
        )
        room = np.repeat(self._rooms, PER_ROOM[kind])
        offset = (uniform(self.seed, 1, ids, 0) * TICK_MS).astype(np.int64)
        order = np.argsort(offset, kind="stable")
        names = [ROOMS[n].name for n in room[order]]
        return Sensors(ids[order], room[order], names, offset[order])

    def table(self) -> dict[str, list[Any]]:
        """Return the rows of the table of sensors."""
        kinds = [(kind, n) for kind in KINDS for n in np.argsort(self.sensors[kind].ids)]
        return {
            "sensor": [int(self.sensors[kind].ids[n]) for kind, n in kinds],
            "kind": [kind for kind, _ in kinds],
            "room": [self.sensors[kind].rooms[n] for kind, n in kinds],
            "floor": [ROOMS[self.sensors[kind].room[n]].floor for kind, n in kinds],
        }

    def occupied(self, tick: int) -> NDArray[np.bool_]:
        """Return in which rooms somebody is."""
        slot, hour = self._slots(VISIT, tick), hour_of(tick)
        work = np.sin(np.pi * (hour - 6.5) / 13) if 6.5 < hour < 19.5 else 0.0
        lunch = np.exp(-(((hour - 12.5) / 1.2) ** 2))
        share = 0.01 + self._busy * np.where(self._lunch, max(0.25 * work, lunch), work)
        return uniform(self.seed, 2, self._rooms, slot) < share

    def _slots(self, length: int, tick: int) -> Ints:
        """Return the number of each room's slot; rooms do not change at the same time."""
        return (tick + self._rooms * 7) // length

    def values(self, kind: str, tick: int) -> Floats:
        """Return the readings of the sensors of a kind, without faults."""
        seed, sensors, hour = self.seed, self.sensors[kind], hour_of(tick)
        here = self.occupied(tick)
        noise = _noise(seed, 10, sensors.ids, tick)
        found: Any
        if kind == "light":
            sun = max(0.0, np.sin(np.pi * (hour - 6) / 14)) * (0.7 + 0.3 * np.sin(tick / 90))
            forgotten = uniform(seed, 3, self._rooms, self._slots(VISIT, tick)) < 0.06
            lux = 420 * sun * self._window + np.where(here | forgotten, 340.0, 2.0)
            found = np.maximum(lux[sensors.room] * (0.9 + 0.2 * uniform(seed, 4, sensors.ids, 0)) + 3 * noise, 0.0)
        elif kind == "temperature":
            slot, at = np.divmod(tick + self._rooms * 7, HEATING)
            wild = uniform(seed, 5, self._rooms, slot) < 0.07
            heat = np.where(wild, 9.0 * np.minimum(at, HEATING - at) / (HEATING / 2), 0.0)
            celsius = self._warmth + 2.2 * np.sin(np.pi * (hour - 9) / 12) + 0.8 * here + heat
            found = celsius[sensors.room] + 0.6 * uniform(seed, 6, sensors.ids, 0) - 0.3 + 0.08 * noise
        elif kind == "sound":
            talk = np.where(here, 14 + 8 * uniform(seed, 7, self._rooms, tick // 4), 0.0)
            bang = np.where(uniform(seed, 8, self._rooms, tick) < 0.0008, 32.0, 0.0)
            found = (31 + talk + bang)[sensors.room] + 1.5 * noise
        else:
            found = 0.3 + 0.7 * uniform(seed, 9, sensors.ids, tick)
        return np.asarray(np.round(found, _DIGITS[kind]), np.float64)

    def rows(self, tick: int) -> dict[str, dict[str, Any]]:
        """Return the rows of a tick as columns, by stream: `demo_light` and so on."""
        return {f"demo_{kind}": self._sent(kind, tick) for kind in KINDS}

    def _sent(self, kind: str, tick: int) -> dict[str, Any]:
        seed, sensors, ids = self.seed, self.sensors[kind], self.sensors[kind].ids
        values = self.values(kind, tick)
        slot = tick // FAULT
        fault = np.where(uniform(seed, 20, ids, slot) < 0.02, uniform(seed, 21, ids, slot), 1.0)
        silent, stuck, wild = fault < 0.4, (fault >= 0.4) & (fault < 0.8), (fault >= 0.8) & (fault < 1.0)
        if stuck.any():
            values = np.where(stuck, self.values(kind, slot * FAULT), values)
        values = np.where(wild, np.round(values * (4 * uniform(seed, 22, ids, tick) - 1), 1), values)
        sent = ~silent & (uniform(seed, 23, ids, tick) >= 0.015)
        if kind == "motion":
            chance = np.where(self.occupied(tick), 0.6, 0.0005)
            sent &= uniform(seed, 24, ids, tick) < chance[sensors.room]
        chosen = np.flatnonzero(sent)
        return {
            "sensor": ids[chosen],
            "room": [sensors.rooms[n] for n in chosen],
            "value": values[chosen],
            "ts": tick * TICK_MS + sensors.offset_ms[chosen],
        }
