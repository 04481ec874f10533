"""What a client sends: rows in canonical values, written as columns, dicts or Arrow."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from tests.reference.oracle import arrow_type
from tests.reference.values import Row
from tests.reference.workload import MS, to_datetime


def encode(rows: list[Row], columns: dict[str, str], form: str) -> Any:
    """Rows as a client would send them; datetimes where a bare number of the column's unit would lose digits."""
    if form == "arrow":
        schema = pa.schema([(name, arrow_type(declared)) for name, declared in columns.items()])
        return pa.Table.from_pylist(rows, schema=schema)
    units = {name: 1 if "[us]" in declared else MS for name, declared in columns.items() if declared.startswith("timestamp")}
    whole = {name: all(row[name] is None or row[name] % unit == 0 for row in rows) for name, unit in units.items()}

    def sent(name: str, value: Any) -> Any:
        if value is None or name not in units:
            return value
        return value // units[name] if whole[name] else to_datetime(value)

    if form == "dicts":
        return [{name: sent(name, value) for name, value in row.items() if value is not None} for row in rows]
    used = [name for name in columns if name == "ts" or not rows or any(row[name] is not None for row in rows)]
    return {name: [sent(name, row[name]) for row in rows] for name in used or list(columns)}
