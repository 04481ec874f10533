"""Encoders of a program's rows into the body of a request.

Tables (pyarrow, pandas, polars, anything with an Arrow stream) and columns that are arrays go as an Arrow IPC stream, which keeps
units and NaN; lists and dicts go as JSON. JSON has no NaN and no infinities: rows that hold such go as Arrow too. Rows of several
streams are one JSON object or, if those of any stream have to go as Arrow, Arrow streams one after the other, each with the name
of its stream in its metadata.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from lineage.errors import RowError

JSON = "application/json"
NDJSON = "application/x-ndjson"
ARROW = "application/vnd.apache.arrow.stream"
#: Where an Arrow stream says which stream its rows are for.
STREAM = "stream"

_HINT = "rows are a dict of columns, a list of dicts, or an Arrow, pandas or polars table"
_ARRAYS = ("__arrow_c_array__", "__arrow_c_stream__", "__arrow_array__", "__array__")


class Body(NamedTuple):
    """The bytes of a request and their media type."""

    content: bytes
    media: str


def encode(rows: Any) -> Body:
    """Rows as a body.

    >>> encode({"a": [1, 2]})
    Body(content=b'{"a":[1,2]}', media='application/json')
    """
    if isinstance(rows, Mapping):
        if any(_is_array(column) for column in rows.values()):
            return _arrow(_table(rows))
        plain: Any = {name: _column(column) for name, column in rows.items()} or []
        return _json_or_arrow(plain, lambda: rows)
    if isinstance(rows, Sequence) and not isinstance(rows, str | bytes):
        for n, row in enumerate(rows):
            if not isinstance(row, Mapping):
                raise RowError(f"{_show(row)} is not a dict", code="not_rows", hint=_HINT, row=n)
        plain = [dict(row) for row in rows]
        return _json_or_arrow(plain, lambda: _columns_of(plain))
    return _arrow(_frame(rows))


def encode_many(rows: Mapping[str, Any]) -> Body:
    """Rows of several streams as one body.

    >>> encode_many({"s": [{"a": 1}], "t": {"a": [2]}})
    Body(content=b'{"s":[{"a":1}],"t":{"a":[2]}}', media='application/json')
    """
    bodies = {stream: encode(given) for stream, given in rows.items()}
    if all(body.media == JSON for body in bodies.values()):
        return Body(b"{" + b",".join(to_json(stream) + b":" + body.content for stream, body in bodies.items()) + b"}", JSON)
    tables = {stream: _as_table(given).replace_schema_metadata({STREAM: stream}) for stream, given in rows.items()}
    return Body(b"".join(_arrow(table).content for table in tables.values()), ARROW)


def encode_adjusts(rows: Any) -> Body:
    """Adjusts of an input of a merged stream as a body.

    >>> encode_adjusts([{"a": 1}])
    Body(content=b'{"adjust":{"a":1}}', media='application/x-ndjson')
    """
    listed = rows if isinstance(rows, Sequence) else _as_table(rows).to_pylist()
    return Body(b"\n".join(to_json({"adjust": row}) for row in listed), NDJSON)


def _as_table(rows: Any) -> Any:
    """Convert rows of any kind to a pyarrow table."""
    if isinstance(rows, Mapping):
        return _table(rows)
    if isinstance(rows, Sequence) and not isinstance(rows, str | bytes):
        return _table(_columns_of([dict(row) for row in rows]))
    return _frame(rows)


def to_json(value: Any) -> bytes:
    """A value as JSON; times are ISO 8601. Raises `ValueError` for numbers that JSON does not have."""
    return json.dumps(value, allow_nan=False, separators=(",", ":"), default=_plain).encode()


def _json_or_arrow(plain: Any, columns: Callable[[], Mapping[str, Any]]) -> Body:
    try:
        return Body(to_json(plain), JSON)
    except ValueError:
        return _arrow(_table(columns()))


def _columns_of(rows: list[dict[str, Any]]) -> dict[str, list[Any]]:
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: [row.get(name) for row in rows] for name in names}


def _column(values: Any) -> Any:
    """Return a column as a list; any other value is left as it is, for the service to judge."""
    return list(values) if isinstance(values, Sequence) and not isinstance(values, str | bytes) else values


def _plain(value: Any) -> Any:
    """Convert a value that JSON lacks to one that it has."""
    if hasattr(value, "isoformat"):
        return value.isoformat()
    if hasattr(value, "item"):  # a number of numpy
        return value.item()
    raise RowError(f"{_show(value)} has no place in a row", code="bad_value", hint="numbers, texts, booleans, times and None")


def _is_array(column: Any) -> bool:
    return any(hasattr(column, name) for name in _ARRAYS)


def _table(columns: Mapping[str, Any]) -> Any:
    import pyarrow as pa

    arrays: dict[str, Any] = {}
    for name, column in columns.items():
        try:
            arrays[str(name)] = column if isinstance(column, pa.ChunkedArray) else pa.array(column)
        except (pa.ArrowException, TypeError, ValueError) as error:
            fact = f'column "{name}" cannot be read as one type'
            raise RowError(fact, code="bad_value", detail=str(error).split("\n", 1)[0], column=str(name)) from None
    try:
        return pa.table(arrays)
    except (pa.ArrowException, ValueError) as error:
        raise RowError("the columns do not make a table", code="ragged_columns", detail=str(error)) from None


def _frame(rows: Any) -> Any:
    """Convert a table of any library to a pyarrow table."""
    import pyarrow as pa

    if isinstance(rows, pa.Table):
        return rows
    pandas = sys.modules.get("pandas")
    try:
        if pandas is not None and isinstance(rows, pandas.DataFrame):
            # not through its Arrow stream, which would add the index as a column
            return pa.Table.from_pandas(rows, preserve_index=False).replace_schema_metadata(None)
        if isinstance(rows, pa.RecordBatchReader):
            return rows.read_all()
        if hasattr(rows, "__arrow_c_stream__"):
            return pa.RecordBatchReader.from_stream(rows).read_all()
        if hasattr(rows, "__arrow_c_array__"):
            return pa.Table.from_batches([pa.record_batch(rows)])
    except (pa.ArrowException, TypeError) as error:
        fact = f"the {type(rows).__name__} cannot be read as a table"
        raise RowError(fact, code="not_rows", detail=str(error).split("\n", 1)[0], hint=_HINT) from None
    raise RowError(f"{_show(rows)} is not a set of rows", code="not_rows", hint=_HINT)


def _arrow(table: Any) -> Body:
    import pyarrow as pa

    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return Body(sink.getvalue().to_pybytes(), ARROW)


def _show(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
