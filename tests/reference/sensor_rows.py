"""The readings of `pipeline/sensors.py` in plain Python, one id at a time."""

from __future__ import annotations

import math
from typing import Any

from pipeline.sensors import DAY_US, SensorNetwork
from tests.reference.drawing import Draws, rounded


def reading(building: SensorNetwork, seed: int, number: int) -> dict[str, Any] | None:
    """The reading of an id, its time in microseconds; None if it never came."""
    draws = Draws(seed)
    epoch, place = divmod(number, building.sensors)
    sensor, room = place + 1, place // 10
    stretch = epoch // 256
    failed = draws.uniform("fails", sensor, stretch) < 0.01 and epoch % 256 >= math.floor(
        draws.uniform("fails at", sensor, stretch) * 256
    )
    if failed and draws.uniform("silent", sensor, stretch) < 0.5:
        return None
    loss = 0.02 + 0.2 * draws.uniform("reach", sensor)
    if draws.uniform("bad air", sensor, epoch // 64) < 0.03:
        loss += 0.6
    if draws.uniform("lost", sensor, epoch) < loss:
        return None

    phase = math.floor(draws.uniform("phase", sensor) * (building.epoch_us * 0.95))
    waver = math.floor(draws.uniform("waver", sensor, epoch) * (building.epoch_us * 0.05))
    us = building.start_us + epoch * building.epoch_us + phase + waver
    hour = us % DAY_US / DAY_US
    age = (us - building.start_us) / DAY_US
    weekday = (us // DAY_US + 3) % 7 < 5
    working = weekday and 8 / 24 <= hour < 18 / 24
    busy = 1.0 if draws.uniform("busy", room, us // 900_000_000) < (0.6 if working else 0.02) else 0.0

    air = 19.5 + 3.0 * (draws.uniform("climate", room) - 0.5)
    air += 2.5 * math.sin(math.tau * (hour - 0.375)) + 0.8 * busy
    air += 0.04 * (draws.uniform("drift", sensor) - 0.5) * age + 0.15 * draws.noise("air", sensor, epoch)
    strange = draws.uniform("outlier", sensor, epoch)
    humidity = 45.0 - 1.5 * (air - 20.0) + 0.5 * draws.noise("damp", sensor, epoch)
    sun = max(0.0, math.sin(math.tau * (hour - 0.25)))
    light = 600.0 * draws.uniform("window", sensor) * sun + 300.0 * busy + 3.0 * draws.noise("light", sensor, epoch)
    voltage = 2.95 - 0.05 * draws.uniform("battery", sensor) - 0.004 * age + 0.002 * (air - 20.0)
    sound = 32.0 + 18.0 * busy * draws.uniform("talk", sensor, epoch) + 1.5 * draws.noise("sound", sensor, epoch)
    return {
        "ts": us,
        "sensor": sensor,
        "room": f"F{room // 20 + 1}-{room % 20 + 1:02}",
        "epoch": epoch,
        "temperature": 122.15 if failed else 385.57 if strange < 0.0004 else rounded(air, 100),
        "humidity": -3.92 if failed else -8983.13 if strange >= 0.9996 else rounded(humidity, 100),
        "light": rounded(max(0.0, light), 100) if draws.uniform("dark", sensor, epoch) >= 0.03 else None,
        "voltage": 2.2 if failed else rounded(max(2.3, voltage), 1000),
        "sound": rounded(sound, 10),
        "motion": draws.uniform("motion", sensor, epoch) < (0.5 if busy else 0.001),
    }
