"""Two gateways of the demo that hear the same air sensors of one floor, and what each sends, as a pure function of (seed, tick).

Both hear every reading, but send it in their own way: some are lost, some are sent a tick later, some twice, and those of a tick
come in an order of their own. The second gateway stalls now and then: for a slot of ticks it sends nothing, and after it all that
it has heard meanwhile. A slot that stalls is never followed by another one, so what a gateway holds back is bounded.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from api.demo.simulated_building import ROOMS, TICK_MS, Ints, SimulatedBuilding, uniform

FLOOR = 1
GATEWAYS = ("north", "south")
#: Ticks that a stall lasts, and how many of the slots that may stall do.
STALL = 40
_STALLS = 0.5
#: Parts of the readings that a gateway loses, sends a tick later, and sends twice.
_LOST, _DELAYED, _REPEATED = 0.02, 0.2, 0.05
#: Over how many ticks, and in how many steps, the air of a room follows the people in it.
_MEMORY, _STEPS = 120, 6


class BuildingGateways:
    """The gateways of one building."""

    def __init__(self, building: SimulatedBuilding) -> None:
        self._building = building
        self._rooms = np.array([n for n, room in enumerate(ROOMS) if room.floor == FLOOR])
        self._ids: Ints = FLOOR * 1000 + np.arange(len(self._rooms)) * 100 + 7
        self._offset_ms = (uniform(building.seed, 30, self._ids, 0) * TICK_MS).astype(np.int64)

    def table(self) -> dict[str, list[Any]]:
        """Return the rows of the table of sensors."""
        names = [ROOMS[n].name for n in self._rooms]
        return {"sensor": self._ids.tolist(), "kind": ["air"] * len(names), "room": names, "floor": [FLOOR] * len(names)}

    def values(self, tick: int) -> NDArray[np.float64]:
        """Return the carbon dioxide that each sensor measures, in parts per million."""
        seen = [self._building.occupied(tick - step * _MEMORY // _STEPS)[self._rooms] for step in range(_STEPS)]
        noise = uniform(self._building.seed, 31, self._ids, tick)
        return np.asarray(np.round(420 + 900 * np.mean(seen, axis=0) + 20 * noise, 0), np.float64)

    def stalls(self, gateway: str, tick: int) -> bool:
        """Return whether a gateway sends nothing in a tick."""
        slot = tick // STALL
        return gateway == GATEWAYS[1] and slot % 2 == 1 and bool(self._chance(32, gateway, np.array([0]), slot)[0] < _STALLS)

    def rows(self, gateway: str, tick: int) -> dict[str, Any]:
        """Return the rows that a gateway sends in a tick, as columns."""
        if self.stalls(gateway, tick):
            return self._columns([])
        first = tick - STALL if tick % STALL == 0 and self.stalls(gateway, tick - 1) else tick
        heard = []
        for at in range(first, tick + 1):
            heard += [(at - 1, self._sent(gateway, at - 1, delayed=True)), (at, self._sent(gateway, at, delayed=False))]
        return self._columns(heard)

    def _chance(self, what: int, gateway: str, of: Ints, when: int) -> NDArray[np.float64]:
        return uniform(self._building.seed, what + 10 * GATEWAYS.index(gateway), of, when)

    def _sent(self, gateway: str, tick: int, *, delayed: bool) -> Ints:
        """Return the sensors of which a gateway sends the reading of a tick, at once or a tick later, in its order."""
        kept = self._chance(33, gateway, self._ids, tick) >= _LOST
        kept &= (self._chance(34, gateway, self._ids, tick) < _DELAYED) == delayed
        copies = kept * (1 + (self._chance(35, gateway, self._ids, tick) < _REPEATED))
        sent = np.repeat(np.arange(len(self._ids)), copies)
        return sent[np.argsort(self._chance(36, gateway, sent, tick), kind="stable")]

    def _columns(self, heard: list[tuple[int, Ints]]) -> dict[str, Any]:
        ticks = np.array([tick for tick, sent in heard for _ in sent], np.int64)
        sensors = np.concatenate([np.zeros(0, np.int64), *(sent for _, sent in heard)])
        values = [self.values(tick)[sent] for tick, sent in heard if len(sent)]
        return {
            "sensor": self._ids[sensors],
            "room": [ROOMS[n].name for n in self._rooms[sensors]],
            "value": np.concatenate([np.zeros(0), *values]),
            "ts": ticks * TICK_MS + self._offset_ms[sensors],
        }
