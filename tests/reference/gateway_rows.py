"""What the gateways of `pipeline/gateways.py` make of a reading, in plain Python."""

from __future__ import annotations

import math
from typing import Any

from pipeline.gateways import Gateways
from pipeline.sensors import SensorNetwork
from tests.reference.drawing import Draws
from tests.reference.sensor_rows import reading


def gateway_stream(building: SensorNetwork, gateways: Gateways, seed: int, number: int) -> list[dict[str, Any]]:
    """The rows of one gateway, in order; times in microseconds."""
    draws = Draws(seed)
    placed = []
    for row in (reading(building, seed, id_) for id_ in range(building.sensors * building.epochs)):
        if row is None:
            continue
        keys = (number, row["sensor"], row["epoch"])
        if draws.uniform("gateway misses", *keys) < gateways.missing:
            continue
        came = row["ts"]
        if draws.uniform("gateway late", *keys) < gateways.disorder:
            came += math.floor(draws.uniform("gateway delay", *keys) * gateways.delay_us)
        moments = [came]
        if draws.uniform("gateway twice", *keys) < gateways.duplicates:
            moments.append(came + 1 + math.floor(draws.uniform("gateway again", *keys) * gateways.delay_us))
        for copy, moment in enumerate(moments):
            stretch, within = divmod(moment - building.start_us, 10 * gateways.stall_us)
            silent = draws.uniform("gateway stall", number, stretch) < gateways.stalls
            sent = moment + max(0, gateways.stall_us - within) if silent else moment
            placed.append(((sent, moment, row["ts"], row["sensor"], copy), {"arrived": sent, **row}))
    return [row for _, row in sorted(placed, key=lambda pair: pair[0])]
