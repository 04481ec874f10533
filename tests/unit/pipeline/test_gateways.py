"""Gateways present one logical stream; replayed as the inputs of a merge they give it back."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from eddy import Engine
from lineage.errors import EddyError, SchemaError
from pipeline.dataset import ARROW_TYPES, Dataset
from pipeline.draft import Draft
from pipeline.gateways import GATEWAY, Gateways, gateway_rows
from pipeline.merge_targets import EngineMergeTarget, MergeOptions
from pipeline.pace import ReplayPace
from pipeline.replay import replay
from pipeline.sensors import READINGS, SensorNetwork, readings
from tests.reference.gateway_rows import gateway_stream
from tests.reference.sensor_rows import reading
from tests.unit.pipeline.writing import write_chunk

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

MONDAY = 1_709_510_400_000_000
SECOND = 1_000_000
BUILDING = SensorNetwork(sensors=12, epochs=60, epoch_us=31 * SECOND, start_us=MONDAY)
COMPLETE = Gateways(3, disorder=0.3, delay_us=7 * SECOND, duplicates=0.2, missing=0.0, stalls=0.0, stall_us=45 * SECOND)
SLOPPY = Gateways(3, disorder=0.3, delay_us=7 * SECOND, duplicates=0.2, missing=0.1, stalls=0.3, stall_us=45 * SECOND)


def rows_of(frame: DataFrame) -> list[dict[str, Any]]:
    """Rows with their times in microseconds, in the order of partitions."""
    times = ["unix_micros(arrived) AS arrived", "unix_micros(ts) AS ts"]
    others = [name for name in GATEWAY.columns if name not in ("arrived", "ts")]
    rows: list[dict[str, Any]] = frame.selectExpr(*times, *others).toArrow().to_pylist()
    return rows


def logical(seed: int) -> list[dict[str, Any]]:
    """The rows that all gateways present, in order."""
    found = (reading(BUILDING, seed, number) for number in range(BUILDING.sensors * BUILDING.epochs))
    return sorted((row for row in found if row is not None), key=lambda row: (row["ts"], row["sensor"]))


def write(path: Path, gateways: Gateways, seed: int) -> Dataset:
    """A dataset of the twin's rows."""
    schema = pa.schema([(name, ARROW_TYPES[word]) for name, word in GATEWAY.columns.items()])
    with Draft(path, kind="gateways", seed=seed, parameters={"merge": gateways.merge()}) as draft:
        for number, name in enumerate(gateways.names(), 1):
            write_chunk(draft, 0, pa.Table.from_pylist(gateway_stream(BUILDING, gateways, seed, number), schema), name)
        return draft.publish(dict.fromkeys(gateways.names(), GATEWAY), {})


def replayed(dataset: Dataset) -> tuple[list[dict[str, Any]], Mapping[str, Any], int]:
    """The rows of the merged stream in their order, its statistics, and how many rows were settled."""
    with Engine() as engine:
        target = EngineMergeTarget(engine, dataset, "floor")
        engine.submit(f"SELECT {', '.join(READINGS.columns)} FROM floor [RANGE 1 DAY]", name="all")
        found = replay(dataset, target, ReplayPace(None), span_us=target.options.span_us)
        assert found.rows == found.total
        answer = engine.answer("all")
        rows = answer.set_column(0, "ts", answer["ts"].cast(pa.int64())).to_pylist()
        return rows, engine.stats()["streams"]["floor"]["merge"]["inputs"], found.late


@pytest.mark.spark
@pytest.mark.parametrize("gateways", [COMPLETE, SLOPPY])
def test_gateways_equal_their_twin_under_any_cut(spark: SparkSession, gateways: Gateways) -> None:
    for number in (1, 3):
        twin = gateway_stream(BUILDING, gateways, 7, number)
        for chunk_rows, n_chunks in ((10**6, 1), (150, 5)):
            frame = gateway_rows(spark, BUILDING, gateways, 7, number, chunk_rows)
            assert frame.rdd.getNumPartitions() == n_chunks
            assert rows_of(frame) == twin


@pytest.mark.spark
def test_the_logical_stream_is_that_of_the_sensors(spark: SparkSession) -> None:
    plain = readings(spark, BUILDING, 7, 10**6).selectExpr("unix_micros(ts) AS ts", "sensor", "temperature").toArrow().to_pylist()
    for number in (1, 2):
        given = rows_of(gateway_rows(spark, BUILDING, COMPLETE, 7, number, 10**6))
        distinct = {(row["ts"], row["sensor"]): row["temperature"] for row in given}
        assert distinct == {(row["ts"], row["sensor"]): row["temperature"] for row in plain}
        assert len(given) > len(plain)


@pytest.mark.parametrize("seed", [1, 2])
def test_a_gateway_differs_as_it_was_asked_to(seed: int) -> None:
    rows = logical(seed)
    streams = [gateway_stream(BUILDING, SLOPPY, seed, number) for number in (1, 2, 3)]
    for stream in streams:
        keys = [(row["ts"], row["sensor"]) for row in stream]
        assert len(set(keys)) / len(rows) == pytest.approx(0.9, abs=0.05)
        assert len(keys) / len(set(keys)) == pytest.approx(1.2, abs=0.06)
        assert all(row["arrived"] >= row["ts"] for row in stream)
        assert [row["arrived"] for row in stream] == sorted(row["arrived"] for row in stream)
        assert all(row["arrived"] <= row["ts"] + (14 + 45) * SECOND for row in stream)
    assert any(row["arrived"] > row["ts"] + 14 * SECOND for stream in streams for row in stream), "one of them stalls"
    assert len({tuple((row["ts"], row["sensor"]) for row in stream) for stream in streams}) == 3


@pytest.mark.parametrize("seed", [1, 2])
def test_a_replay_into_a_merge_gives_the_logical_stream_back(tmp_path: Path, seed: int) -> None:
    rows, inputs, settled = replayed(write(tmp_path / "d", COMPLETE, seed))
    assert sorted(rows, key=lambda row: (row["ts"], row["sensor"])) == logical(seed)
    assert all(one["contradictions"] == 0 for one in inputs.values())
    # only second copies come too late
    assert settled + sum(one["duplicates"] for one in inputs.values()) == sum(one["rows"] for one in inputs.values()) - 3 * len(
        rows
    )


def test_what_any_gateway_has_is_there_where_none_stalls(tmp_path: Path) -> None:
    missing = Gateways(3, disorder=0.3, delay_us=7 * SECOND, duplicates=0.2, missing=0.3, stalls=0.0, stall_us=45 * SECOND)
    rows, _, _ = replayed(write(tmp_path / "d", missing, 3))
    given = {(row["ts"], row["sensor"]) for number in (1, 2, 3) for row in gateway_stream(BUILDING, missing, 3, number)}
    assert {(row["ts"], row["sensor"]) for row in rows} == given and len(rows) == len(given) < len(logical(3))


def test_stalls_lose_only_what_no_other_gateway_had_in_time(tmp_path: Path) -> None:
    rows, inputs, settled = replayed(write(tmp_path / "d", SLOPPY, 4))
    found = {(row["ts"], row["sensor"]) for row in rows}
    assert len(found) == len(rows) and settled == sum(one["settled"] for one in inputs.values()) > 0
    assert found <= {(row["ts"], row["sensor"]) for row in logical(4)} and len(found) > 0.97 * len(logical(4))


def test_a_dataset_that_is_not_meant_to_be_merged_is_refused(tmp_path: Path) -> None:
    dataset = write(tmp_path / "d", COMPLETE, 1)
    plain = Dataset(dataset.path, "sensors", 0, {}, dataset.streams, {})
    with pytest.raises(EddyError, match="not meant to be merged"):
        MergeOptions(plain, "floor", "replay")


@pytest.mark.parametrize(
    ("changed", "fact"), [({"n": 0}, "0 gateways"), ({"n": 17}, "17"), ({"missing": 1.5}, "missing"), ({"delay_us": 0}, "delay")]
)  # fmt: skip
def test_gateways_that_cannot_be_are_refused(changed: dict[str, Any], fact: str) -> None:
    options = {"n": 2, "disorder": 0.1, "delay_us": 1, "duplicates": 0.1, "missing": 0.1, "stalls": 0.1, "stall_us": 1}
    with pytest.raises(SchemaError, match=fact):
        Gateways(**(options | changed))  # type: ignore[arg-type]
