"""Generated rows: equal to their twins, the same under any cut, and like what they are meant to be like."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest

from lineage.errors import SchemaError
from pipeline.chunks import write_chunks
from pipeline.dataset import Dataset
from pipeline.draft import Draft
from pipeline.sensors import READINGS, SensorNetwork, readings
from pipeline.stocks import STREAMS, Market, stream_rows
from tests.reference.drawing import xxhash64
from tests.reference.sensor_rows import reading
from tests.reference.stock_rows import article, quote, trade

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

MONDAY = 1_709_510_400_000_000
BUILDING = SensorNetwork(sensors=23, epochs=700, epoch_us=31_000_000, start_us=MONDAY + 7 * 3_600_000_000)
MARKET = Market(symbols=40, days=7, trades=900, quotes=1100, articles=200, start_us=MONDAY)


def rows_of(frame: DataFrame) -> list[dict[str, Any]]:
    """Rows with their times in microseconds, in the order of partitions."""
    rows: list[dict[str, Any]] = frame.selectExpr("unix_micros(ts) AS ts", *frame.columns[1:]).toArrow().to_pylist()
    return rows


def test_the_hash_of_the_twin_is_xxh64() -> None:
    assert xxhash64(1, 2) == -8198029865082835910 % 2**64


@pytest.mark.spark
def test_readings_equal_those_of_the_twin(spark: SparkSession) -> None:
    ids = range(BUILDING.sensors * BUILDING.epochs)
    twin = [row for number in ids if (row := reading(BUILDING, 7, number)) is not None]
    assert rows_of(readings(spark, BUILDING, 7, 5000)) == sorted(twin, key=lambda row: (row["ts"], row["sensor"]))


@pytest.mark.spark
@pytest.mark.parametrize(("stream", "twin"), [("trades", trade), ("quotes", quote), ("articles", article)])
def test_the_market_equals_its_twin(spark: SparkSession, stream: str, twin: Any) -> None:
    rows = (twin(MARKET, 11, number) for number in range(MARKET.n_ids(stream)))
    assert rows_of(stream_rows(spark, MARKET, 11, stream, 2000)) == [row for row in rows if row is not None]


@pytest.mark.spark
def test_readings_are_the_same_for_any_number_of_partitions(spark: SparkSession) -> None:
    whole = rows_of(readings(spark, BUILDING, 7, 10**6))
    assert len(whole) > 10_000
    for chunk_rows, n_chunks in ((700, 24), (3000, 6), (9000, 2)):
        frame = readings(spark, BUILDING, 7, chunk_rows)
        assert frame.rdd.getNumPartitions() == n_chunks
        assert rows_of(frame) == whole


@pytest.mark.spark
@pytest.mark.parametrize("stream", STREAMS)
def test_the_market_is_the_same_for_any_number_of_partitions(spark: SparkSession, stream: str) -> None:
    whole = rows_of(stream_rows(spark, MARKET, 11, stream, 10**6))
    assert rows_of(stream_rows(spark, MARKET, 11, stream, 311)) == whole
    assert rows_of(stream_rows(spark, MARKET, 12, stream, 10**6)) != whole


@pytest.mark.spark
def test_chunks_are_read_back_in_order_and_whole(spark: SparkSession, tmp_path: Path) -> None:
    frame = readings(spark, BUILDING, 7, 3000)
    with Draft(tmp_path / "d", kind="sensors", seed=7, parameters={}) as draft:
        write_chunks(frame, draft, "readings", READINGS)
        draft.publish({"readings": READINGS}, {})
    dataset = Dataset.open(tmp_path / "d")
    read = pa.Table.from_batches(dataset.batches("readings"))
    assert len(dataset.stream("readings").chunks) == 6
    assert read.set_column(0, "ts", read["ts"].cast(pa.int64())).to_pylist() == rows_of(frame)
    assert sorted(path.name for path in (tmp_path / "d").iterdir()) == ["dataset.json", "readings"]


@pytest.mark.spark
def test_a_building_has_days_losses_failures_and_outliers(spark: SparkSession) -> None:
    building = SensorNetwork(sensors=200, epochs=1440, epoch_us=60_000_000, start_us=MONDAY)
    table = readings(spark, building, 3, 1 << 20).toArrow()
    column = {name: table[name].to_numpy() for name in table.column_names}
    hour = table["ts"].cast(pa.int64()).to_numpy() // 3_600_000_000 % 24
    assert 0.8 < len(table) / (200 * 1440) < 0.92
    shown = column["temperature"]
    assert np.median(shown[hour == 15]) - np.median(shown[hour == 3]) > 4
    assert np.nanmedian(column["light"][hour == 12]) > 100 > 5 > np.nanmedian(column["light"][hour == 1])
    assert 0.02 < table["light"].null_count / len(table) < 0.04
    assert 0 < (shown == 122.15).sum() < len(table) * 0.01 and (shown == 385.57).sum() > 0
    assert column["humidity"].min() == -8983.13
    assert column["motion"][(hour >= 9) & (hour < 17)].mean() > 0.2 > 0.05 > column["motion"][hour < 6].mean()
    assert len(set(table["room"].to_pylist())) == 20


@pytest.mark.spark
def test_a_market_has_an_opening_burst_and_hot_symbols(spark: SparkSession) -> None:
    market = Market(symbols=300, days=1, trades=50_000, quotes=0, articles=0, start_us=MONDAY)
    table = stream_rows(spark, market, 3, "trades", 1 << 20).toArrow()
    minutes = (table["ts"].cast(pa.int64()).to_numpy() - MONDAY) // 60_000_000 - 14 * 60 - 30
    a_minute = np.bincount(minutes)
    assert a_minute[0] > 5 * a_minute[60:300].max() and len(a_minute) == 390
    counts = [n for _, n in Counter(table["symbol"].to_pylist()).most_common()]
    assert len(counts) > 250 and counts[0] > 5 * counts[20] > counts[100]
    assert stream_rows(spark, market, 3, "quotes", 1 << 20).count() == 0


def test_what_cannot_be_generated_is_refused() -> None:
    with pytest.raises(SchemaError, match="nothing to generate"):
        SensorNetwork(sensors=0, epochs=1, epoch_us=1000, start_us=0)
    with pytest.raises(SchemaError, match="nothing to generate"):
        Market(symbols=26**4 + 1, days=1, trades=1, quotes=1, articles=1, start_us=MONDAY)
    with pytest.raises(SchemaError, match="Monday"):
        Market(symbols=1, days=1, trades=1, quotes=1, articles=1, start_us=MONDAY + 86_400_000_000)
