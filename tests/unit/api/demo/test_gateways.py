"""The demo's gateways: physically different, together complete, one silent now and then, and the merged stream unmoved."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from api.demo.definitions import AIR, MERGE
from api.demo.gateways import GATEWAYS, STALL, BuildingGateways
from api.demo.simulated_building import TICK_MS, SimulatedBuilding
from eddy import Engine

TICKS = range(80_000, 80_000 + 8 * STALL)


@pytest.fixture(scope="module")
def gateways() -> BuildingGateways:
    return BuildingGateways(SimulatedBuilding())


@pytest.fixture(scope="module")
def stalls(gateways: BuildingGateways) -> set[int]:
    return {tick for tick in TICKS if gateways.stalls("south", tick)}


def readings(rows: dict[str, Any]) -> list[tuple[int, int, float]]:
    return list(zip(rows["sensor"].tolist(), rows["ts"].tolist(), rows["value"].tolist()))


def test_one_gateway_stalls_now_and_then_and_never_twice_in_a_row(gateways: BuildingGateways, stalls: set[int]) -> None:
    assert 0 < len(stalls) < len(TICKS)
    assert not any(gateways.stalls("north", tick) for tick in TICKS)
    slots = {tick // STALL for tick in stalls}
    assert len(stalls) == STALL * len(slots) and not any(slot + 1 in slots for slot in slots)
    assert all(len(gateways.rows("south", tick)["sensor"]) == 0 for tick in stalls)


def test_a_tick_is_the_same_whoever_makes_it(gateways: BuildingGateways) -> None:
    other = BuildingGateways(SimulatedBuilding())
    assert [readings(gateways.rows(name, 81_234)) for name in GATEWAYS] == [
        readings(other.rows(name, 81_234)) for name in GATEWAYS
    ]
    assert readings(gateways.rows("north", 81_234)) != readings(gateways.rows("south", 81_234))


def test_both_present_the_same_readings_with_losses_repetitions_and_disorder(gateways: BuildingGateways) -> None:
    sent = {name: [one for tick in TICKS for one in readings(gateways.rows(name, tick))] for name in GATEWAYS}
    for found in sent.values():
        assert len(found) > len(set(found)), "some come twice"
        assert [at for _, at, _ in found] != sorted(at for _, at, _ in found), "not in order"
    north, south = (set(sent[name]) for name in GATEWAYS)
    assert 0.9 < len(north & south) / len(north | south) < 1, "each lost some that the other has"
    for sensor, at in {(sensor, at) for sensor, at, _ in north | south}:
        assert at // TICK_MS in range(TICKS.start - 1, TICKS.stop) and sensor // 1000 == 1


def test_the_merged_stream_does_not_notice_a_stall(gateways: BuildingGateways, stalls: set[int]) -> None:
    engine = Engine()
    options = {name: value for name, value in AIR.items() if name != "columns"}
    engine.create_merge(MERGE, AIR["columns"], **options)
    query = engine.submit("SELECT window_end, COUNT(*) AS n FROM TUMBLE(demo_air, 10 SECONDS) GROUP BY window_end")
    for tick in TICKS:
        for name in GATEWAYS:
            engine.push(MERGE, gateways.rows(name, tick), input=name)
    engine.check()
    counts = [int(change.row["n"]) for change in engine.changes(query, since=0) if change.sign > 0]
    full = 6 * 10_000 // TICK_MS
    assert len(counts) > 10 and all(0.85 * full < n <= full for n in counts[1:-1])
    # below full only by what both lost, or the one that went on
    assert np.mean(counts[1:-1]) > 0.95 * full
    inputs = engine.merge_stats(MERGE)["inputs"]
    assert inputs["south"]["settled"] > 50, "what came after a stall was over"
    assert inputs["north"]["duplicates"] > 0 and inputs["south"]["known"] > 500
