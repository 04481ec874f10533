"""Screening: the rows of a call that would be refused, for callers who would rather lose bad rows than the whole call.

A check says only which row is the first bad one. So rows are checked by stretches: a bad row is taken out and its stretch is
checked again, which makes `STRETCH` checks a bad row, however many rows there are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from lineage.errors import LimitError, RowError
from lineage.ingest_columns import arrow_datetimes

#: Rows that are checked together.
STRETCH = 256
#: Bad rows of one call; with more, something else is wrong than a few rows.
MAX_BAD = 10_000


def screen(rows: Any, check: Callable[[Any], object]) -> tuple[Any, list[RowError]]:
    """The rows that `check` takes, in the form in which they came, and the errors of the others in order.

    An error that is not about one row is raised.
    """
    try:
        check(rows)
        return rows, []
    except RowError:
        pass
    rows, n_rows = _counted(rows)
    if n_rows < 0:
        check(rows)  # says which column has another length
    good: list[int] = []
    errors: list[RowError] = []
    for first in range(0, n_rows, STRETCH):
        left = list(range(first, min(first + STRETCH, n_rows)))
        while left:
            try:
                check(_take(rows, left))
                break
            except RowError as error:
                if error.row is None:
                    raise
                error.row = left.pop(error.row)
                errors.append(error)
                if len(errors) > MAX_BAD:
                    fact = f"more than {MAX_BAD} rows of the call are bad"
                    raise LimitError(fact, code="too_many_bad_rows", detail=str(errors[0])) from None
        good += left
    if not errors:
        return rows, []
    return _take(rows, good), sorted(errors, key=lambda error: error.row or 0)


def without(rows: Any, numbers: list[int]) -> Any:
    """The rows without the given numbers."""
    rows, n_rows = _counted(rows)
    bad = set(numbers)
    return _take(rows, [i for i in range(n_rows) if i not in bad])


def _counted(rows: Any) -> tuple[Any, int]:
    """Rows as lists, and their number; -1 if columns have different lengths."""
    if isinstance(rows, pa.Table | pa.RecordBatch):
        rows = dict(zip(rows.schema.names, rows.columns, strict=True))
    if not isinstance(rows, Mapping):
        return rows, len(rows)
    rows = {name: _listed(values) for name, values in rows.items()}
    lengths = set(map(len, rows.values()))
    return rows, -1 if len(lengths) > 1 else max(lengths, default=0)


def _listed(column: Any) -> list[Any]:
    """The values of a column; Arrow times as numpy's, for Python's have other bounds."""
    if not isinstance(column, pa.Array | pa.ChunkedArray):
        return list(column) if isinstance(column, Sequence) else [column]
    if isinstance(column, pa.ChunkedArray):
        return [value for chunk in column.chunks for value in _listed(chunk)]
    if pa.types.is_dictionary(column.type):
        # a text that many rows have is made once
        entries = _listed(column.dictionary)
        return [None if n is None else entries[n] for n in column.indices.to_pylist()]
    if pa.types.is_timestamp(column.type) or pa.types.is_date(column.type):
        missing = column.is_null().to_pylist()
        return [None if null else time for null, time in zip(missing, arrow_datetimes(column), strict=True)]
    values: list[Any] = column.to_pylist()
    return values


def _take(rows: Any, numbers: list[int]) -> Any:
    if isinstance(rows, Mapping):
        return {name: [values[i] for i in numbers] for name, values in rows.items()}
    return [rows[i] for i in numbers]
