"""What does a wider lineage cost, in time and in bytes?

Speed: 16 queries stay, while the slots that rows carry bits for grow from 64 to thousands, most of them free: the last query's
slot keeps the width. Pushes of 128 rows go row by row, each row with all its bits, as in the paper; pushes of 4,096 rows go
query by query, and free slots cost nothing.

Storage: bytes that a stored row takes, by our own arithmetic and by the engine's account, against what a row would take with
the paper's bits in it: one for each query, two for each operator.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from eddy import Engine
from experiments.bench.base import workloads
from experiments.bench.base.workloads import ATTRIBUTES, STREAM, sql
from experiments.drawing import COLOURS, MARKERS, Figure, powers_of_two
from experiments.experiment import Check, Experiment, Parameter, Row, Setting, Step, Value, Verdict, column, where

QUERIES = 16
WIDTHS = {True: (64, 256, 1024, 4096, 16_384), False: (64, 256, 1024, 4096, 16_384, 65_536)}
BATCHES = (128, 4096)
#: CPU seconds of measuring, in so many rounds.
SECONDS = {True: 0.5, False: 2.0}
ROUNDS = 9
STORED = (1, 16, 64, 256, 1024, 4096)
STORED_ROWS = 16_384
#: Number of queries up to which no filter gives up its table for want of room.
TABLES = 1024


def wide_engine(widths: Sequence[int]) -> tuple[Engine, dict[int, Any]]:
    """An engine with `QUERIES` queries, one of them in the last slot of each width; those, by width."""
    engine = Engine(seed=0, batch_rows=max(BATCHES))
    engine.create_stream(STREAM, {f"c{i}": "float" for i in range(ATTRIBUTES)})
    text = f"SELECT c0 FROM {STREAM} WHERE c0 > :low AND c1 < :high"
    kept = {width - 1: width for width in widths} | dict.fromkeys(range(QUERIES - len(widths)), 0)
    found = []
    last: dict[int, Any] = {}
    for i in range(max(widths)):
        # of the base queries only the constants differ
        low = float(i % 89) + i / max(widths)
        query = engine.submit(text, params={"low": low, "high": 100 - low / 2})
        if i in kept:
            last |= {kept[i]: query} if kept[i] else {}
        else:
            found.append(query)
    for query in found:
        engine.cancel(query)
    return engine, last


def rows_per_second(engine: Engine, batch_rows: int, seconds: float, seed: int) -> float:
    """The median over rounds, by CPU time; batches rotate."""
    rng = np.random.default_rng(seed)
    batches = [{f"c{i}": rng.uniform(0, 100, batch_rows) for i in range(ATTRIBUTES)} for _ in range(16)]
    rates = []
    for _ in range(ROUNDS):
        n = 0
        began = time.thread_time()
        while (spent := time.thread_time() - began) < seconds / ROUNDS or not n:
            engine.push(STREAM, batches[n % len(batches)])
            n += 1
        rates.append(n * batch_rows / spent)
    return float(np.median(rates))


def _list(commit: Any) -> None:
    commit.row_lists()


def _speed(setting: Setting) -> list[Row]:
    engine, last = wide_engine(WIDTHS[setting.quick])
    remove = engine.on_commit(_list)
    rows: list[Row] = []
    for width in sorted(last, reverse=True):
        for batch_rows in BATCHES:
            rate = rows_per_second(engine, batch_rows, SECONDS[setting.quick], setting.seed)
            rows.append(_row("speed", setting.seed, QUERIES, width=width, batch_rows=batch_rows, rows_per_s=rate))
        # the query moves to the lowest free slot, and the width is halved as far as the next one allows
        engine.cancel(last[width])
        engine.submit(f"SELECT c0 FROM {STREAM} WHERE c0 > :low", params={"low": 50 + width / 1e6})
    remove()
    return rows[::-1]


def _row(part: str, seed: int, queries: int, **more: Value) -> Row:
    empty = ("width", "batch_rows", "rows_per_s", "stored_rows", "predicted_bytes", "accounted_bytes", "predicted_filters",
             "accounted_filters", "paper_bytes")  # fmt: skip
    row: Row = {"part": part, "seed": seed, "queries": queries}
    return row | {name: more.get(name, "") for name in empty}


def _storage(n_queries: int, setting: Setting) -> list[Row]:
    workload = workloads.filters(n_queries, STORED_ROWS, floats=True, n_batches=1, seed=setting.seed)
    engine = Engine(seed=0)
    engine.create_stream(STREAM, {**workload.columns, "ts": "timestamp[us]"}, time="ts")
    for query in workload.queries:
        text, params = sql(query)
        engine.submit(text.replace(f"FROM {STREAM}", f"FROM {STREAM} [RANGE 1 HOUR]"), params=params)
    engine.push(STREAM, {**workload.batches[0], "ts": np.arange(STORED_ROWS)})
    stats = engine.stats()["streams"][STREAM]
    filters = stats["filters"]
    n_columns = len(workload.columns) + 1
    words = max(1, 1 << (-(-stats["slots"] // 64) - 1).bit_length())
    # a cell of eight bytes for each column and for the time of effect, a region id of four for each filter
    predicted = 8 * (n_columns + 1) + 4 * filters["filters"]
    # a region has a row of bits; a cut between two regions its value and an id; a predicate its two bounds
    n_cuts = filters["regions"] - 2 * filters["filters"]
    tables = filters["regions"] * 8 * words + 16 * n_cuts + 8 * filters["predicates"]
    return [
        _row(
            "storage",
            setting.seed,
            n_queries,
            stored_rows=stats["held"],
            predicted_bytes=predicted,
            accounted_bytes=stats["bytes"]["rows"] / stats["held"],
            predicted_filters=tables,
            accounted_filters=stats["bytes"]["filters"],
            paper_bytes=8 * (n_columns + 1) + (n_queries + 2 * filters["filters"]) / 8,
        )  # fmt: skip
    ]


def steps(setting: Setting) -> Sequence[Step]:
    return [partial(_speed, setting), *(partial(_storage, n, setting) for n in STORED)]


def judge(rows: Sequence[Row]) -> Verdict:
    checks = []
    for batch_rows in BATCHES:
        found = sorted(where(rows, part="speed", batch_rows=batch_rows), key=lambda row: float(row["width"]))
        width, rate = column(found, "width"), column(found, "rows_per_s")
        if batch_rows == BATCHES[0]:
            per_bit = [(rate[i] - rate[i + 1]) / (width[i + 1] - width[i]) for i in range(len(rate) - 1)]
            checks += [
                Check.at_least("row by row: speed at the narrowest against the widest", rate[0] / rate[-1], 2.0),
                Check.at_most(
                    "row by row: rows/s lost a bit, at the widest against the steepest", per_bit[-1] / max(per_bit), 0.5
                ),
            ]
        else:
            checks.append(Check.at_most("query by query: speed at the narrowest against the widest", rate[0] / rate[-1], 1.5))
    stored = where(rows, part="storage")
    off = max(abs(float(row["predicted_bytes"]) / float(row["accounted_bytes"]) - 1) for row in stored)
    checks.append(Check.at_most("bytes of a stored row: largest error of the prediction", off, 0.01))
    tables = [row for row in stored if float(row["queries"]) <= TABLES]
    off = max(abs(float(row["predicted_filters"]) / float(row["accounted_filters"]) - 1) for row in tables)
    checks.append(Check.at_most(f"bytes of the filters up to {TABLES:,} queries: largest error", off, 0.01))
    growth = float(stored[-1]["accounted_bytes"]) / float(stored[1]["accounted_bytes"])
    between = f"{stored[1]['queries']} to {stored[-1]['queries']:,} queries"
    checks.append(Check.at_most(f"bytes of a stored row, growth from {between}", growth, 1.01))
    return Verdict(
        tuple(checks),
        "Large batches carry bits query by query and touch only the queries there are; stored rows keep a region id "
        "for each filtered column instead of bits, so the state of a window does not know the number of queries.",
    )


def draw(figure: Figure, rows: Sequence[Row]) -> None:
    left, right = figure.subplots(1, 2)
    for k, batch_rows in enumerate(BATCHES):
        found = sorted(where(rows, part="speed", batch_rows=batch_rows), key=lambda row: float(row["width"]))
        rate = np.array(column(found, "rows_per_s"))
        label = f"{batch_rows:,} rows a push, {'row by row (the paper)' if not k else 'query by query'}"
        left.plot(column(found, "width"), 100 * rate / rate[0], color=COLOURS[k], marker=MARKERS[k], label=label)
    left.xaxis.set_major_formatter("{x:,.0f}")
    left.tick_params(axis="x", labelrotation=30)
    left.set_xlabel("bits of lineage a row")
    left.set_ylabel("speed, % of that at 64 bits")
    left.set_ylim(0, 130)
    left.legend(loc="upper right", fontsize=8)
    left.set_title(f"{QUERIES} queries, wider and wider lineage", fontsize=10)
    stored = where(rows, part="storage")
    x = column(stored, "queries")
    right.plot(x, column(stored, "paper_bytes"), color=COLOURS[1], marker=MARKERS[1], label="with the paper's bits (predicted)")
    right.plot(x, column(stored, "predicted_bytes"), color=COLOURS[2], linestyle="--", label="with region ids (predicted)")
    accounted = column(stored, "accounted_bytes")
    right.plot(x, accounted, color=COLOURS[0], marker=MARKERS[0], linestyle="", label="with region ids (accounted)")
    powers_of_two(right, x)
    right.set_ylim(0, max(column(stored, "paper_bytes")) * 1.1)
    right.set_xlabel("queries")
    right.set_ylabel("bytes a stored row")
    right.legend(loc="upper left", fontsize=8)
    right.set_title("storage", fontsize=10)


EXPERIMENT = Experiment(
    name="width",
    question="What does a wider lineage cost, in time and in bytes?",
    figure="CACQ, storage overhead: tuple throughput against bits of tuple state; table of storage",
    expected="throughput falls with the bits a row carries, less and less steeply; storage is what arithmetic says",
    parameters=(
        Parameter("queries", f"{QUERIES}, few as in the paper"),
        Parameter("bits", f"64 to {WIDTHS[False][-1]:,}, quick {WIDTHS[True][-1]:,}"),
        Parameter("rows", "five columns, uniform in [0, 100)"),
        Parameter("rows a push", "128 (row by row) and 4,096 (query by query)"),
        Parameter("stored rows", f"{STORED_ROWS:,}, queries that compare each of five columns with probability 0.5"),
    ),
    columns={
        "part": "speed or storage", "seed": "of rows and queries", "queries": "number of queries",
        "width": "speed: slots of the lineage", "batch_rows": "speed: rows a push", "rows_per_s": "speed: rows a CPU second",
        "stored_rows": "storage: rows that windows hold", "predicted_bytes": "storage: of a stored row, by arithmetic",
        "accounted_bytes": "storage: of a stored row, by the engine's account",
        "predicted_filters": "storage: of all grouped filters, by arithmetic",
        "accounted_filters": "storage: of all grouped filters, by the engine's account",
        "paper_bytes": "storage: of a stored row that carries a bit a query and two an operator",
    },
    steps=steps, judge=judge, draw=draw,
    caption="Left: rows that carry all their bits get slower as the bits get more, and the curve flattens; batches "
    "that go query by query do not care. Right: a stored row takes the same bytes whatever the number of queries.",
    size=(10.0, 4.5),
)  # fmt: skip
