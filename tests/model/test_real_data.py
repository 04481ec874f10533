"""Real sensor readings through the engine, compared with DuckDB at several times. Skipped where the data are not at hand."""

from __future__ import annotations

import os
import pathlib
import random
from collections import Counter

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from eddy import Engine

DATA = pathlib.Path(os.environ.get("EDDY_DATA", pathlib.Path(__file__).parents[2].parent / "shared" / "data"))
LAB = DATA / "intel_lab.parquet"
COLUMNS = {
    "ts": "timestamp", "epoch": "int", "moteid": "int", "temperature": "float", "humidity": "float", "light": "float",
    "voltage": "float",
}  # fmt: skip
CONDITIONS = [
    "moteid = {m} AND temperature > {t}",
    "temperature BETWEEN {t} AND {t} + 1.5 AND humidity < 40",
    "light IS NULL OR light > {l}",
    "NOT (moteid IN ({m}, {m} + 1, 7) OR voltage > 2.5)",
    "temperature * 1.8 + 32 > {l} AND moteid <> {m}",
    "humidity < 0 OR temperature > 100 OR moteid = {m}",
]


@pytest.mark.skipif(not LAB.exists(), reason=f"no real data at {LAB.name}; set EDDY_DATA to its folder")
def test_the_readings_of_a_lab_give_duckdbs_answers() -> None:
    table = pq.read_table(LAB).slice(0, 60_000)
    draw = random.Random(7)
    engine = Engine(log_rows=20_000)
    engine.create_stream("lab", COLUMNS, time="ts")
    queries = []
    for _ in range(90):
        where = draw.choice(CONDITIONS).format(m=draw.randint(1, 54), t=draw.randint(15, 30), l=draw.randint(50, 400))
        minutes = draw.choice([1, 5, 20, 60])
        text = f"SELECT ts, moteid, temperature FROM lab [RANGE {minutes} MINUTES] WHERE {where}"
        queries.append((engine.submit(text), minutes, where))
    base = duckdb.connect()
    taken = 0
    while taken < table.num_rows:
        size = draw.choice([1, 100, 5_000, 9_999])
        engine.push("lab", table.slice(taken, size))
        taken = min(taken + size, table.num_rows)
        if draw.random() < 0.3:
            continue
        engine.check()
        base.register("seen", table.slice(0, taken))
        for query, minutes, where in draw.sample(queries, 12):
            now = "(SELECT max(ts) FROM seen)"
            expected = base.execute(
                f"SELECT epoch_us(ts), moteid, temperature FROM seen WHERE ts > {now} - INTERVAL {minutes} MINUTES AND ({where})"
            ).fetchall()
            found = query.answer()
            micros = found["ts"].cast(pa.int64()).to_pylist()
            rows = list(zip(micros, found["moteid"].to_pylist(), found["temperature"].to_pylist(), strict=True))
            assert Counter(rows) == Counter(expected), query.sql
