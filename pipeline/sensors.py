"""A building of sensors, in the manner of the Intel Berkeley lab.

Every sensor reports once an epoch, at its own moment of it, unless the packet is lost or the sensor is silent. A reading is a
pure function of (seed, sensor, epoch):

    day and night   temperature and light follow the hour; humidity goes against temperature
    rooms           ten sensors each; people come and go by the quarter of an hour, most on weekdays from 8 to 18
    drift           every sensor's temperature runs away from the truth by a little each day, and its battery sinks
    lost packets    2 to 22 % by sensor, 60 % more in bad stretches of 64 epochs; light is missing in 3 % of the rest
    failures        in 1 % of the stretches of 256 epochs a sensor fails half-way: half of them fall silent, the others show
                    122.15 degrees and a humidity below zero
    outliers        one reading in 1,250 has the largest temperature or a humidity of -8983.13

`tests/reference/sensor_rows.py` is the twin in plain Python.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lineage.errors import SchemaError
from pipeline.draft import Declared
from pipeline.hashing import Chance, rounded

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

READINGS = Declared(
    {
        "ts": "timestamp",
        "sensor": "int",
        "room": "string",
        "epoch": "int",
        "temperature": "float",
        "humidity": "float",
        "light": "float",
        "voltage": "float",
        "sound": "float",
        "motion": "bool",
    },
    time="ts",
)

DAY_US = 86_400_000_000
_TAU = "6.283185307179586D"


@dataclass(frozen=True, slots=True)
class SensorNetwork:
    """The settings of generated sensors. `start_us` is the first moment of the first epoch."""

    sensors: int
    epochs: int
    epoch_us: int
    start_us: int

    def __post_init__(self) -> None:
        if self.sensors < 1 or self.epochs < 1 or self.epoch_us < 1000 or self.start_us < 0:
            raise SchemaError(
                "there is nothing to generate",
                hint="it takes a sensor and a whole epoch at least, epochs of a millisecond or more, a start in 1970 or later",
            )

    def epochs_of_chunk(self, chunk_rows: int) -> int:
        """Whole epochs in one file, about `chunk_rows` rows."""
        return max(1, chunk_rows // self.sensors)

    def n_chunks(self, chunk_rows: int) -> int:
        return -(-self.epochs // self.epochs_of_chunk(chunk_rows))


def readings(spark: SparkSession, building: SensorNetwork, seed: int, chunk_rows: int) -> DataFrame:
    """The stream of readings: one partition for each chunk, each in the order of time."""
    chunk_ids = building.epochs_of_chunk(chunk_rows) * building.sensors
    n_chunks = building.n_chunks(chunk_rows)
    ids = spark.range(0, n_chunks * chunk_ids, 1, n_chunks).where(f"id < {building.sensors * building.epochs}L")
    return reading_rows(ids, building, seed).sortWithinPartitions("ts", "sensor")


def reading_rows(ids: DataFrame, building: SensorNetwork, seed: int) -> DataFrame:
    """The readings of some ids; an id is epoch x sensors + number of the sensor from 0."""
    chance = Chance(seed)
    sent = (
        ids.selectExpr(f"id % {building.sensors}L + 1L AS sensor", f"id div {building.sensors}L AS epoch")
        .selectExpr("*", "(sensor - 1L) div 10L AS room_number", "epoch div 256L AS stretch")
        .selectExpr(
            "*", f"{_failed(chance)} AS failed", f"{chance.uniform('silent', 'sensor', 'stretch')} < 0.5D AS falls_silent"
        )
        .where(f"NOT (failed AND falls_silent) AND {chance.uniform('lost', 'sensor', 'epoch')} >= {_loss(chance)}")
    )
    seen = (
        sent.selectExpr("*", f"{_moment(chance, building)} AS us")
        .selectExpr("*", f"(us % {DAY_US}L) / {DAY_US}.0D AS hour", f"(us div {DAY_US}L + 3L) % 7L < 5L AS weekday")
        .selectExpr("*", f"{_busy(chance)} AS busy", f"(us - {building.start_us}L) / {DAY_US}.0D AS age")
        .selectExpr("*", f"{_air(chance)} AS air", f"{chance.uniform('outlier', 'sensor', 'epoch')} AS strange")
    )
    return seen.selectExpr(
        "timestamp_micros(us) AS ts",
        "sensor",
        "concat('F', room_number div 20L + 1L, '-', lpad(CAST(room_number % 20L + 1L AS STRING), 2, '0')) AS room",
        "epoch",
        f"CASE WHEN failed THEN 122.15D WHEN strange < 0.0004D THEN 385.57D ELSE {rounded('air', 100)} END AS temperature",
        f"CASE WHEN failed THEN -3.92D WHEN strange >= 0.9996D THEN -8983.13D ELSE {rounded(_damp(chance), 100)} END AS humidity",
        f"CASE WHEN {chance.uniform('dark', 'sensor', 'epoch')} >= 0.03D THEN {rounded(_light(chance), 100)} END AS light",
        f"{rounded(_voltage(chance), 1000)} AS voltage",
        f"{rounded(_sound(chance), 10)} AS sound",
        f"{_motion(chance)} AS motion",
    )


def _moment(chance: Chance, building: SensorNetwork) -> str:
    """When a packet is sent: a sensor has its place in the epoch, and wavers by a twentieth of it."""
    phase = f"floor({chance.uniform('phase', 'sensor')} * {building.epoch_us * 0.95}D)"
    waver = f"floor({chance.uniform('waver', 'sensor', 'epoch')} * {building.epoch_us * 0.05}D)"
    return f"{building.start_us}L + epoch * {building.epoch_us}L + {phase} + {waver}"


def _failed(chance: Chance) -> str:
    """A sensor that fails does so somewhere in a stretch, and is replaced at its end."""
    begins = f"floor({chance.uniform('fails at', 'sensor', 'stretch')} * 256.0D)"
    return f"({chance.uniform('fails', 'sensor', 'stretch')} < 0.01D AND epoch % 256L >= {begins})"


def _loss(chance: Chance) -> str:
    own = f"0.02D + 0.2D * {chance.uniform('reach', 'sensor')}"
    bad = f"{chance.uniform('bad air', 'sensor', 'epoch div 64L')} < 0.03D"
    return f"({own} + IF({bad}, 0.6D, 0.0D))"


def _busy(chance: Chance) -> str:
    """1 while there are people in the room, else 0."""
    share = f"IF(weekday AND hour >= {8 / 24}D AND hour < {18 / 24}D, 0.6D, 0.02D)"
    return f"IF({chance.uniform('busy', 'room_number', 'us div 900000000L')} < {share}, 1.0D, 0.0D)"


def _air(chance: Chance) -> str:
    """The temperature as the sensor feels it; it peaks at 15:00."""
    room = f"3.0D * ({chance.uniform('climate', 'room_number')} - 0.5D)"
    drift = f"0.04D * ({chance.uniform('drift', 'sensor')} - 0.5D) * age"
    day = f"2.5D * sin({_TAU} * (hour - 0.375D))"
    return f"19.5D + {room} + {day} + 0.8D * busy + {drift} + 0.15D * {chance.noise('air', 'sensor', 'epoch')}"


def _damp(chance: Chance) -> str:
    return f"45.0D - 1.5D * (air - 20.0D) + 0.5D * {chance.noise('damp', 'sensor', 'epoch')}"


def _light(chance: Chance) -> str:
    """Daylight from 6 to 18 by how near a window is, and lamps where people are."""
    sun = f"greatest(0.0D, sin({_TAU} * (hour - 0.25D)))"
    window = chance.uniform("window", "sensor")
    return f"greatest(0.0D, 600.0D * {window} * {sun} + 300.0D * busy + 3.0D * {chance.noise('light', 'sensor', 'epoch')})"


def _voltage(chance: Chance) -> str:
    new = f"2.95D - 0.05D * {chance.uniform('battery', 'sensor')}"
    return f"IF(failed, 2.2D, greatest(2.3D, {new} - 0.004D * age + 0.002D * (air - 20.0D)))"


def _sound(chance: Chance) -> str:
    talk = f"18.0D * busy * {chance.uniform('talk', 'sensor', 'epoch')}"
    return f"32.0D + {talk} + 1.5D * {chance.noise('sound', 'sensor', 'epoch')}"


def _motion(chance: Chance) -> str:
    return f"{chance.uniform('motion', 'sensor', 'epoch')} < IF(busy > 0.0D, 0.5D, 0.001D)"
