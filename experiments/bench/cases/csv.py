"""A CSV of 19 columns pushed as `eddy push` does, against the same rows from parquet: CPU seconds of client and service.

Both go the whole way but for the network: the file is read in parts, each becomes a body, and the call is carried out as the
service carries it out. Turns alternate; the median of the ratios of a turn counts.
"""

from __future__ import annotations

import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq

from api.commands.row_files import FilePart, OpenedFile, open_rows
from api.core.calls import Call, apply
from api.core.holdings import Holdings
from eddy import Engine
from eddy.client.rows import encode
from experiments.bench.base.lines import Bar, Line, Measure
from experiments.bench.base.machine import Machine
from experiments.bench.base.options import Options, Step

#: How many times the CPU time of parquet a CSV may take.
BAR = 4.0
ROWS = 200_000
TURNS = 5


def table_of(n_rows: int, seed: int = 3) -> pa.Table:
    """Rows of a time, six ints, seven floats, three texts and two bools; a tenth of the numbers is missing."""
    draw = np.random.default_rng(seed)

    def holed(values: Any) -> pa.Array:
        return pa.array(values, mask=draw.random(n_rows) < 0.1)

    texts = np.array([f"station {n}" for n in range(500)])
    columns: dict[str, Any] = {"ts": pa.array(1_700_000_000_000_000 + np.arange(n_rows) * 1_000_000).cast(pa.timestamp("us"))}
    columns |= {f"i{n}": holed(draw.integers(0, 10**6, n_rows)) for n in range(6)}
    columns |= {f"f{n}": holed(np.round(draw.normal(20, 5, n_rows), 3)) for n in range(7)}
    columns |= {f"s{n}": pa.array(texts[draw.integers(0, len(texts), n_rows)]) for n in range(3)}
    columns |= {f"b{n}": pa.array(draw.random(n_rows) < 0.5) for n in range(2)}
    return pa.table(columns)


def types_of(table: pa.Table) -> dict[str, str]:
    words = {"t": "timestamp", "i": "int", "f": "float", "s": "string", "b": "bool"}
    return {name: words[name[0]] for name in table.column_names}


def write(folder: Path, table: pa.Table) -> dict[str, Path]:
    """Write the table in both formats; a missing value of the CSV is NA."""
    paths = {"csv": folder / "rows.csv", "parquet": folder / "rows.parquet"}
    pq.write_table(table, paths["parquet"])
    texts = [pc.cast(column, pa.string()).fill_null("NA") for column in table.columns]
    options = pyarrow.csv.WriteOptions(quoting_style="none")
    pyarrow.csv.write_csv(pa.table(texts, names=table.column_names), paths["csv"], options)
    return paths


def pushed(path: Path, types: dict[str, str]) -> tuple[float, list[dict[str, Any]]]:
    """CPU seconds of pushing a file, and the answer of a query over its rows."""
    holdings = Holdings(Engine(seed=0))
    holdings.engine.create_stream("rows", types, time="ts")
    holdings.engine.submit(
        "SELECT * FROM rows [RANGE UNBOUNDED] WHERE i0 < 1000 OR f0 IS NULL AND f1 IS NULL AND f2 IS NULL", name="some"
    )
    began = time.process_time()
    opened = open_rows(str(path), None)
    for part in opened.parts:
        body, media = (part.body, part.media) if part.table is None else encode(part.table)
        apply(holdings, Call("push", _header(opened, part, media), body))
    return time.process_time() - began, holdings.engine.answer("some").to_pylist()


def _header(opened: OpenedFile, part: FilePart, media: str) -> dict[str, Any]:
    texts = opened.form.texts() if opened.form is not None else {}
    return {"stream": "rows", "media": media} | ({"csv": texts} if texts else {})


def measure(n_rows: int, n_turns: int) -> list[Line]:
    """The line of one size."""
    machine = Machine()
    table = table_of(n_rows)
    types = types_of(table)
    with tempfile.TemporaryDirectory(prefix="eddy-bench-") as folder:
        paths = write(Path(folder), table)
        pushed(paths["csv"], types)
        turns = []
        for _ in range(n_turns):
            found = {name: pushed(path, types) for name, path in paths.items()}
            assert found["csv"][1] == found["parquet"][1], "the CSV gave other rows than the same rows from parquet"
            turns.append((found["csv"][0], found["parquet"][0]))
            machine.look()
    seconds = np.array(turns)
    ratio = float(np.median(seconds[:, 0] / seconds[:, 1]))
    measures = {
        "csv_rows_per_cpu_s": Measure(n_rows / float(np.median(seconds[:, 0])), "/s"),
        "parquet_rows_per_cpu_s": Measure(n_rows / float(np.median(seconds[:, 1])), "/s"),
        "times_parquet": Measure(ratio, "x"),
        "machine": Measure(machine.slowness, "x"),
    }
    setting = {"rows": n_rows, "columns": table.num_columns}
    return [Line("csv", f"{n_rows:,} rows of {table.num_columns} columns", measures, Bar.at_most(ratio, BAR, "x"), setting)]


def steps(options: Options) -> list[Step]:
    return [partial(measure, ROWS, TURNS)]
