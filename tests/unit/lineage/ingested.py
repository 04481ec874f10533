"""Ingesting one column, or a whole call, and reading the cells back as Python values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from lineage.dictionary import SMALL, Dictionary
from lineage.errors import RowError
from lineage.ingest import Ingested, Ingestor
from lineage.schema import Schema

READINGS = {"sensor": "int", "room": "string", "temp": "float", "ok": "bool", "ts": "timestamp"}
#: Both sides of the border between the loop over rows and the array conversions.
LENGTHS = [1, SMALL + 1]


def ingestor(columns: dict[str, str], time: str | None = None) -> Ingestor:
    schema = Schema.parse(columns, "s")
    dictionaries = [Dictionary() if column.type.value == "string" else None for column in schema.columns]
    return Ingestor(schema, None if time is None else schema.position(time), dictionaries)


def values(taken: Ingested, into: Ingestor, position: int) -> list[Any]:
    """A column as Python values, read as the engine does: assigned into 64-bit cells first."""
    column = into.schema.columns[position]
    cells = np.full(taken.n_rows, -1, np.int64)
    if column.type.value == "float":
        cells.view(np.float64)[:] = taken.cells[position]
        out: list[Any] = cells.view(np.float64).tolist()
    else:
        cells[:] = taken.cells[position]
        out = cells.tolist()
    if column.type.value == "bool":
        out = [bool(value) for value in out]
    nulls = taken.nulls[position]
    if column.type.value == "string":
        strings = dict(into._strings)[position].strings
        out = [None if nulls is not None and nulls[row] else strings[code] for row, code in enumerate(out)]
    if nulls is not None:
        assert nulls.any() and len(nulls) == taken.n_rows
        assert not cells[nulls.astype(bool)].any(), "the cell below a NULL is not 0"
        out = [None if null else value for value, null in zip(out, nulls)]
    return out


def take(kind: str, column: Any) -> list[Any]:
    into = ingestor({"x": kind})
    return values(into.take({"x": column}), into, 0)


def refused(kind: str, column: Any) -> RowError:
    into = ingestor({"x": kind})
    with pytest.raises(RowError) as caught:
        into.take({"x": column})
    assert caught.value.column == "x"
    return caught.value
