"""Datasets of several streams, for tests of what reads them: small, with many equal times, the same for the same seed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from pipeline.dataset import ARROW_TYPES, Dataset
from pipeline.draft import Declared, Draft, chunk_name

TRADES = {"ts": "timestamp", "symbol": "string", "price": "float", "size": "int"}
QUOTES = {"ts": "timestamp", "symbol": "string", "bid": "float", "open": "bool"}
#: The last minute of 2023, when all of it happens.
BEGIN_US = 1_704_067_140_000_000
SECOND = 1_000_000


def market(seed: int, n_trades: int, n_quotes: int, *, seconds: int = 60) -> dict[str, pa.Table]:
    """Trades and quotes in the order of time, some NULL and NaN among them."""
    draw = np.random.default_rng(seed)

    def times(n: int) -> np.ndarray:
        return np.sort(BEGIN_US + draw.integers(0, 4 * seconds, n) * SECOND // 4)

    def symbols(n: int) -> list[str]:
        return [f"S{number}" for number in draw.integers(0, 5, n).tolist()]

    def floats(n: int) -> pa.Array:
        values = np.round(draw.uniform(10, 20, n), 2)
        values[draw.random(n) < 0.02] = np.nan
        return pa.array(values, mask=draw.random(n) < 0.05)

    made = {
        "trades": (TRADES, [times(n_trades), symbols(n_trades), floats(n_trades), draw.integers(1, 9, n_trades)]),
        "quotes": (QUOTES, [times(n_quotes), symbols(n_quotes), floats(n_quotes), draw.random(n_quotes) < 0.5]),
    }
    found = {}
    for name, (columns, values) in made.items():
        arrays = [
            (value if isinstance(value, pa.Array) else pa.array(value)).cast(ARROW_TYPES[word])
            for value, word in zip(values, columns.values(), strict=True)
        ]
        found[name] = pa.table(arrays, names=list(columns))
    return found


def write_market(out: Path, tables: dict[str, pa.Table], chunk_rows: int = 100) -> Dataset:
    """A dataset of such tables, cut into files of so many rows."""
    with Draft(out, kind="stocks", seed=0, parameters={}) as draft:
        for name, table in tables.items():
            (draft.folder / name).mkdir()
            for number, first in enumerate(range(0, table.num_rows, chunk_rows)):
                pq.write_table(table.slice(first, chunk_rows), draft.folder / name / chunk_name(number))
        words = {"trades": TRADES, "quotes": QUOTES}
        return draft.publish({name: Declared(words[name], "ts") for name in tables}, {})
