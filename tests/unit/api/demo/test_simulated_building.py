"""The demo's building: the same from any seed and tick, and alive enough to be worth watching."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from api.demo.simulated_building import DAY_TICKS, FAULT, KINDS, ROOMS, TICK_MS, SimulatedBuilding, hour_of, uniform

NOON = DAY_TICKS // 2
DAY = range(1000 * DAY_TICKS, 1001 * DAY_TICKS)


def same(one: dict[str, dict[str, Any]], other: dict[str, dict[str, Any]]) -> bool:
    return all(np.array_equal(one[stream][column], other[stream][column]) for stream in one for column in one[stream])


@pytest.fixture(scope="module")
def day() -> list[dict[str, dict[str, Any]]]:
    """What arrives on one day, every third tick of it."""
    building = SimulatedBuilding()
    return [building.rows(tick) for tick in DAY[::3]]


def test_a_tick_is_the_same_whoever_makes_it_and_whatever_was_made_before() -> None:
    one, other = SimulatedBuilding(7), SimulatedBuilding(7)
    for tick in range(DAY.start, DAY.start + 5):
        one.rows(tick)
    assert same(one.rows(DAY.start + 700), other.rows(DAY.start + 700))
    assert not same(one.rows(DAY.start + 700), SimulatedBuilding(8).rows(DAY.start + 700))


def test_rows_lie_in_their_tick_in_order_of_time() -> None:
    building = SimulatedBuilding()
    for tick in (0, NOON, DAY.start + 17):
        for rows in building.rows(tick).values():
            assert np.all((rows["ts"] >= tick * TICK_MS) & (rows["ts"] < (tick + 1) * TICK_MS))
            assert np.all(np.diff(rows["ts"]) >= 0)
            assert len(set(rows["sensor"])) == len(rows["sensor"]) == len(rows["room"]) == len(rows["value"])


def test_a_day_is_at_most_a_few_hundred_rows_a_second(day: list[dict[str, dict[str, Any]]]) -> None:
    rate = np.mean([sum(len(rows["sensor"]) for rows in tick.values()) for tick in day]) * 1000 / TICK_MS
    assert 150 < rate < 1000


def test_it_is_dark_and_still_at_night_and_neither_at_noon(day: list[dict[str, dict[str, Any]]]) -> None:
    night = [rows for tick, rows in zip(DAY[::3], day) if hour_of(tick) < 5]
    noon = [rows for tick, rows in zip(DAY[::3], day) if 11 < hour_of(tick) < 15]
    assert np.mean([np.median(rows["demo_light"]["value"]) for rows in night]) < 10
    assert np.mean([np.median(rows["demo_light"]["value"]) for rows in noon]) > 200
    assert 10 * np.mean([len(rows["demo_motion"]["value"]) for rows in night]) < np.mean(
        [len(rows["demo_motion"]["value"]) for rows in noon]
    )


def test_somebody_in_a_room_is_seen_heard_and_has_light() -> None:
    building = SimulatedBuilding()
    tick = DAY.start + NOON
    here = building.occupied(tick)
    assert 3 < here.sum() < len(ROOMS)
    for kind in ("light", "sound"):
        values, room = building.values(kind, tick), building.sensors[kind].room
        assert values[here[room]].mean() > values[~here[room]].mean() + (10 if kind == "sound" else 100)
    moved = {name for t in range(tick, tick + 4) for name in building.rows(t)["demo_motion"]["room"]}
    assert moved & {ROOMS[n].name for n in np.flatnonzero(here)}


def test_some_sensors_fall_silent_some_are_stuck_and_packets_get_lost() -> None:
    building = SimulatedBuilding()
    slots = range(DAY.start // FAULT, DAY.start // FAULT + 20)
    n_sensors = len(building.sensors["temperature"].ids)
    lost = silent = stuck = 0
    for slot in slots:
        ticks = [building.rows(slot * FAULT + n)["demo_temperature"] for n in range(0, FAULT, 8)]
        seen = [dict(zip(rows["sensor"].tolist(), rows["value"].tolist())) for rows in ticks]
        for sensor in building.sensors["temperature"].ids.tolist():
            values = [one[sensor] for one in seen if sensor in one]
            silent += not values
            stuck += len(values) > 5 and len(set(values)) == 1
            lost += 0 < len(values) < len(ticks)
    assert silent and stuck and lost
    assert silent + stuck < 0.1 * n_sensors * len(slots), "most work"


def test_the_table_has_every_sensor_with_its_room_and_floor() -> None:
    building = SimulatedBuilding()
    table = building.table()
    every = {int(id_) for kind in KINDS for id_ in building.sensors[kind].ids}
    assert set(table["sensor"]) == every and len(table["sensor"]) == len(every)
    floors = {room.name: room.floor for room in ROOMS}
    assert [floors[room] for room in table["room"]] == table["floor"]
    assert all(sensor // 1000 == floor for sensor, floor in zip(table["sensor"], table["floor"]))


def test_hashes_are_spread_evenly() -> None:
    numbers = uniform(3, 5, np.arange(20_000), 11)
    assert 0 <= numbers.min() and numbers.max() < 1
    assert np.allclose(np.histogram(numbers, 10, (0, 1))[0], 2000, rtol=0.1)
    assert abs(np.corrcoef(numbers[:-1], numbers[1:])[0, 1]) < 0.03
