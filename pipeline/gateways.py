"""Several gateways that send the readings of one building: physically different presentations of one logical stream.

    gw1, gw2, ..    a stream each: `arrived`, the moment at which the gateway sends the row, and the columns of `readings`

The logical rows are those of `pipeline/sensors.py` with the same seed and building. What a gateway makes of a reading is a pure
function of (seed, gateway, sensor, epoch):

    missing       a share never comes
    disorder      a share comes late, up to `delay_us` after its time; the others at once
    duplicates    a share comes twice, the second time up to `delay_us` after the first
    stalls        time is cut into stretches of ten stalls; in a share of them the gateway is silent for one stall, and then sends
                  what has piled up, in order

So `arrived` never lies before `ts`, and, stalls aside, at most twice `delay_us` behind it. A stream is in the order of `arrived`.

`tests/reference/gateway_rows.py` is the twin in plain Python.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lineage.errors import SchemaError
from pipeline.draft import Declared
from pipeline.hashing import Chance
from pipeline.sensors import READINGS, SensorNetwork, reading_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: The stream of one gateway.
GATEWAY = Declared({"arrived": "timestamp", **READINGS.columns}, time="arrived")
#: Stalls that a stretch would have room for.
_STRETCH = 10
_MOST = 16


@dataclass(frozen=True, slots=True)
class Gateways:
    """How many gateways there are, and how they present readings; shares are between 0 and 1."""

    n: int
    disorder: float
    delay_us: int
    duplicates: float
    missing: float
    stalls: float
    stall_us: int

    def __post_init__(self) -> None:
        if not 1 <= self.n <= _MOST:
            raise SchemaError(f"{self.n} gateways", hint=f"1 to {_MOST}")
        shares = {"disorder": self.disorder, "duplicates": self.duplicates, "missing": self.missing, "stalls": self.stalls}
        for name, share in shares.items():
            if not 0 <= share <= 1:
                raise SchemaError(f"{name} is {share:g}", hint="a share of the readings, between 0 and 1")
        if self.delay_us < 1 or self.stall_us < 1:
            raise SchemaError("a delay and a stall take some time", hint="a microsecond or more")

    def names(self) -> list[str]:
        return [f"gw{number}" for number in range(1, self.n + 1)]

    def merge(self) -> dict[str, Any]:
        """The options of a merged stream over the gateways: what any of them gives in time is kept.

        A gateway is late by `delay_us` at most, its duplicates aside. The same once more is for those who push the rows of a
        while together, gateway after gateway (`pipeline/merge_targets.py`).
        """
        return {"time": "ts", "unique": ["sensor"], "missing": "any", "lateness": 2 * self.delay_us / 1000}


def gateway_rows(
    spark: SparkSession, building: SensorNetwork, gateways: Gateways, seed: int, number: int, chunk_rows: int
) -> DataFrame:  # fmt: skip
    """The stream of the n-th gateway: one partition for each chunk, each in the order of arrival."""
    chance = Chance(seed)
    n_chunks = building.n_chunks(chunk_rows)
    span_us = building.epochs_of_chunk(chunk_rows) * building.epoch_us
    ids = spark.range(0, building.sensors * building.epochs, 1, n_chunks)
    keys = (f"{number}L", "sensor", "epoch")

    def drawn(purpose: str, share: float) -> str:
        return f"{chance.uniform(purpose, *keys)} < {share!r}D"

    def delay(purpose: str) -> str:
        return f"CAST(floor({chance.uniform(purpose, *keys)} * {gateways.delay_us}.0D) AS BIGINT)"

    late = f"IF({drawn('gateway late', gateways.disorder)}, {delay('gateway delay')}, 0L)"
    twice = drawn("gateway twice", gateways.duplicates)
    stretch_us = _STRETCH * gateways.stall_us
    stretch = f"(came - {building.start_us}L) div {stretch_us}L"
    stalls = f"{chance.uniform('gateway stall', f'{number}L', stretch)} < {gateways.stalls!r}D"
    released = f"{building.start_us}L + {stretch} * {stretch_us}L + {gateways.stall_us}L"
    return (
        reading_rows(ids, building, seed)
        .where(f"NOT ({drawn('gateway misses', gateways.missing)})")
        .selectExpr("*", f"explode(IF({twice}, array(0L, 1L), array(0L))) AS copy")
        .selectExpr("*", f"unix_micros(ts) + {late} + copy * (1L + {delay('gateway again')}) AS came")
        .selectExpr("*", f"IF({stalls}, greatest(came, {released}), came) AS sent")
        .selectExpr(
            "timestamp_micros(sent) AS arrived",
            *READINGS.columns,
            "copy",
            "came",
            f"CAST(least((sent - {building.start_us}L) div {span_us}L, {n_chunks - 1}L) AS INT) AS chunk",
        )  # fmt: skip
        .repartitionById(n_chunks, "chunk")
        .sortWithinPartitions("arrived", "came", "ts", "sensor", "copy")
    )
