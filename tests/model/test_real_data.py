"""Real sensor readings through the engine, compared with DuckDB at several times. Skipped where the data are not at hand."""

from __future__ import annotations

import os
import pathlib
import random
from collections import Counter

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from eddy import Engine
from experiments.cacq.lab import QUERIES, sql
from tests.reference.comparison import compared

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


@pytest.mark.skipif(not LAB.exists(), reason=f"no real data at {LAB.name}; set EDDY_DATA to its folder")
@pytest.mark.parametrize("missing", ["leader", "any"])
def test_a_lab_presented_by_three_gateways_gives_the_answers_of_the_plain_stream(missing: str) -> None:
    """Each gateway shuffles within a second or so and repeats some readings; none has a gap, so both words give all of them.

    The queries are those of the lab experiment, and some with windows.
    """
    table = pq.read_table(LAB).slice(0, 20_000)
    rows = {name: table.column(name).to_numpy(zero_copy_only=False) for name in table.column_names}
    times = rows["ts"].astype("datetime64[us]").astype(np.int64)
    first = np.unique(np.column_stack([times, rows["epoch"], rows["moteid"]]), axis=0, return_index=True)[1]
    # what names a reading is its mote, its epoch and its time
    rows = {name: column[np.sort(first)] for name, column in rows.items()}
    times = times[np.sort(first)]
    plain, merged = Engine(log_rows=1_000_000), Engine(log_rows=1_000_000)
    plain.create_stream("readings", COLUMNS, time="ts", lateness=2_000)
    unique = ["moteid", "epoch"]
    merged.create_merge("readings", COLUMNS, time="ts", inputs=("a", "b", "c"), unique=unique, missing=missing, lateness=2_000)
    texts = [
        "SELECT moteid, COUNT(*) AS n, AVG(temperature) AS t, MAX(light) AS l FROM readings [RANGE 5 MINUTES] GROUP BY moteid",
        "SELECT moteid, temperature FROM readings [RANGE 1 MINUTE] WHERE temperature > 20",
        "SELECT COUNT(*) AS n FROM readings [RANGE 10 MINUTES SLIDE 1 MINUTE]",
        *map(sql, QUERIES),
    ]
    for engine in (plain, merged):
        for text in texts:
            engine.submit(text)
    rng = np.random.default_rng(5)
    orders = []
    for _ in "abc":
        order = np.argsort(times + rng.integers(0, 900_000, len(times)) * (rng.random(len(times)) < 0.2), kind="stable")
        orders.append(np.sort(np.concatenate([np.arange(len(order)), rng.integers(0, len(order), len(order) // 10)])))
        orders[-1] = order[orders[-1]]
    for part in range(8):
        for name, order in zip("abc", orders, strict=True):
            some = order[part * len(order) // 8 : (part + 1) * len(order) // 8]
            merged.push("readings", {column: values[some] for column, values in rows.items()}, input=name)
    plain.push("readings", rows)
    end = (int(times.max()) + 1_000_000) / 1_000
    plain.advance(end)
    merged.advance(end)
    merged.check()
    counts = [engine.stats()["streams"]["readings"]["rows"] for engine in (plain, merged)]
    assert counts[0] == counts[1] == len(times)
    for query in plain.queries:
        ours, theirs = (Counter(map(repr, engine.answer(query).to_pylist())) for engine in (merged, plain))
        assert ours == theirs, query
        compared()
    for query in list(plain.queries)[-len(QUERIES) :]:
        # a stream: all that it gave, by its time
        ours, theirs = (
            Counter((change.time, *change.row.values()) for change in engine.changes(query, 0)) for engine in (merged, plain)
        )
        assert ours == theirs and ours, query
        compared()
