"""Rows as users push them, in whatever form, as one array of cells per column.

    Ingestor(schema, time_column, dictionaries).take(rows) -> Ingested(n_rows, cells, nulls)

A push is all or none: every column is checked before the first new string enters a dictionary, and an error has changed
nothing. Names match exactly or in any case; a column that is not given is NULL in every row; an unknown one is an error.
The first bad row of the first bad column, in the schema's order, is the one that is reported.

Cost: a few hundred nanoseconds a column for one row and for arrays that need no conversion, whatever their length. A
contiguous int64 or float64 array comes out as the same object: the caller copies it at once into its own memory.
`lineage/ingest_columns.py` says how one column is converted, `lineage/ingest_types.py` what the types take.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain, repeat
from operator import itemgetter
from typing import Any

import numpy as np
import pyarrow as pa

from lineage.dictionary import SMALL, Dictionary, EncodingPlan
from lineage.errors import LimitError, RowError, did_you_mean
from lineage.ingest_columns import Converter
from lineage.ingest_types import StringConverter, make_converter
from lineage.schema import Schema, Type
from lineage.times import show

Array = np.ndarray[Any, Any]

#: Rows of one call.
MAX_ROWS = 10_000_000

_PLAIN = {Type.INT: np.dtype(np.int64), Type.FLOAT: np.dtype(np.float64)}

_ROWS_HINT = "rows are a dict of columns, a list of dicts, or an Arrow, pandas or polars table"


class _Absent:
    """Stands for the values of a column that the call does not give."""


_ABSENT = _Absent()


class Ingested:
    """Checked rows. `cells[c]` assigns exactly into 64-bit cells (through a float64 view for floats); 0 below NULL."""

    __slots__ = ("cells", "n_rows", "nulls")

    def __init__(self, n_rows: int, cells: list[Array], nulls: list[Array | None]) -> None:
        self.n_rows = n_rows
        self.cells = cells
        #: True where the row is NULL; None iff no row of the column is
        self.nulls = nulls


class Ingestor:
    """Takes the rows of one stream or table.

    >>> schema = Schema.parse({"sensor": "int", "ts": "timestamp"}, "readings")
    >>> taken = Ingestor(schema, 1, [None, None]).take([{"sensor": 7, "ts": "1970-01-01T00:00:01Z"}, {"ts": 2000}])
    >>> taken.n_rows, taken.cells[1].tolist(), taken.nulls[0].tolist(), taken.nulls[1]
    (2, [1000000, 2000000], [False, True], None)
    """

    __slots__ = (
        "_converters", "_converts", "_get", "_lower", "_names", "_no_nulls", "_plain", "_strings", "_time_column", "schema",
    )  # fmt: skip

    def __init__(self, schema: Schema, time_column: int | None, dictionaries: Sequence[Dictionary | None]) -> None:
        self.schema = schema
        self._time_column = time_column
        self._names = schema.names
        self._lower = {name.lower(): i for i, name in enumerate(schema.names)}
        self._converters: list[Converter] = [
            make_converter(column, i == time_column, dictionaries[i]) for i, column in enumerate(schema.columns)
        ]
        self._converts: list[Callable[[Any], tuple[Any, Array | None]]] = [converter.convert for converter in self._converters]
        #: the dtype whose arrays are taken as they are; None where each value has to be looked at
        self._plain = [_PLAIN.get(column.type) for column in schema.columns]
        self._strings = [(i, c.dictionary) for i, c in enumerate(self._converters) if isinstance(c, StringConverter)]
        self._no_nulls: list[Array | None] = [None] * len(schema)
        # all columns of a dict at once; with one name itemgetter gives the bare value
        self._get: Callable[[Any], Sequence[Any]] | None = itemgetter(*self._names) if len(self._names) > 1 else None

    def take(self, rows: Any) -> Ingested:
        """Check and convert the rows of one call; raises `RowError` or `LimitError`, and then nothing has changed."""
        checked = self.check(rows)
        self.commit(checked)
        return checked

    def commit(self, checked: Ingested) -> None:
        """Let the strings of checked rows into the dictionaries; cannot fail."""
        for i, dictionary in self._strings:
            plan: Any = checked.cells[i]
            if isinstance(plan, EncodingPlan):
                checked.cells[i] = dictionary.commit(plan)

    def check(self, rows: Any) -> Ingested:
        """Check and convert the rows of one call, changing nothing; strings have no codes before `commit`."""
        if type(rows) is dict:
            if self._get is not None and len(rows) == len(self._names):
                try:
                    columns = self._get(rows)
                except KeyError:
                    columns = self._by_position(rows.items())
                return self._take_columns(columns)
            return self._take_columns(self._by_position(rows.items()))
        if type(rows) is list:
            return self._take_columns(self._from_dicts(rows))
        return self._take_columns(self._by_position(_columns_of(rows)))

    def _take_columns(self, columns: Sequence[Any]) -> Ingested:
        cells: list[Any] = []
        nulls = self._no_nulls.copy()
        n_rows = -1
        for convert, plain, values in zip(self._converts, self._plain, columns):
            if type(values) is np.ndarray and values.dtype is plain and values.ndim == 1:
                cell, null = values, None
            else:
                cell, null = convert(values)
            if len(cell) != n_rows:
                if n_rows >= 0:
                    raise self._ragged(cells, cell)
                n_rows = len(cell)
                if n_rows > MAX_ROWS:
                    raise _too_many(n_rows)
            if null is not None:
                nulls[len(cells)] = null
            cells.append(cell)
        return Ingested(n_rows, cells, nulls)

    def _by_position(self, pairs: Iterable[tuple[Any, Any]]) -> list[Any]:
        """The values of each column of the schema, NULLs for those not given."""
        columns: list[Any] = [_ABSENT] * len(self._names)
        n_rows = -1
        for name, values in pairs:
            at = self._find(name, None)
            if columns[at] is not _ABSENT:
                raise self._twice(at, None)
            columns[at] = values
            if n_rows < 0:
                n_rows = _length(values)
        if self._time_column is not None and columns[self._time_column] is _ABSENT:
            name = self._names[self._time_column]
            raise RowError(
                f'the time column "{name}" is missing', code="missing_time", hint="every row needs a time", column=name
            )
        return [_nulls(max(n_rows, 0)) if values is _ABSENT else values for values in columns]

    def _from_dicts(self, rows: list[Any]) -> list[Any]:
        if len(rows) == 1 and type(rows[0]) is dict and len(rows[0]) == len(self._names) and self._get is not None:
            try:
                return [[value] for value in self._get(rows[0])]
            except KeyError:
                pass
        if len(rows) > MAX_ROWS:
            raise _too_many(len(rows))
        if set(map(type, rows)) - {dict}:
            rows = [_as_dict(row, i) for i, row in enumerate(rows)]
        names = self._names
        if len(rows) <= SMALL:
            try:
                columns = [[row[name] for row in rows] for name in names]
            except KeyError:
                pass
            else:
                if sum(map(len, rows)) == len(rows) * len(names):
                    return columns
        keys = set(chain.from_iterable(rows))
        if not keys <= set(names):
            rows = self._renamed(rows)
            keys = set(chain.from_iterable(rows))
        required = None if self._time_column is None else names[self._time_column]
        # a time that no row has is NULL in row 0, not a column that is missing
        return [
            list(map(dict.get, rows, repeat(name))) if name in keys or name == required else _nulls(len(rows)) for name in names
        ]

    def _renamed(self, rows: list[dict[Any, Any]]) -> list[dict[Any, Any]]:
        """The same rows with the schema's spelling of each name."""
        renamed = []
        for i, row in enumerate(rows):
            new: dict[Any, Any] = {}
            for name, value in row.items():
                at = self._find(name, i)
                if self._names[at] in new:
                    raise self._twice(at, i)
                new[self._names[at]] = value
            renamed.append(new)
        return renamed

    def _find(self, name: object, row: int | None) -> int:
        at = self._lower.get(name.lower()) if isinstance(name, str) else None
        if at is None:
            text = name if isinstance(name, str) else str(name)
            hint = did_you_mean(text, list(self._names))
            raise RowError(f"column {show(text)} does not exist", code="unknown_column", hint=hint, row=row, column=text)
        return at

    def _twice(self, at: int, row: int | None) -> RowError:
        name = self._names[at]
        hint = "names are not case-sensitive"
        return RowError(f'column "{name}" is given twice', code="duplicate_column", hint=hint, row=row, column=name)

    def _ragged(self, cells: list[Any], cell: Any) -> RowError:
        name = self._names[len(cells)]
        return RowError(
            f'column "{name}" has {len(cell)} values, the columns before it have {len(cells[0])}',
            code="ragged_columns",
            hint="all columns of a call have the same length; NULL is None",
            column=name,
        )


def _length(values: Any) -> int:
    """How many values a column has; -1 for what is no column, which its converter then refuses."""
    try:
        return len(values)
    except TypeError:
        return -1


def _nulls(n_rows: int) -> Any:
    return [None] * n_rows if n_rows <= SMALL else pa.nulls(n_rows)


def _too_many(n_rows: int) -> LimitError:
    return LimitError(f"{n_rows} rows in one call, more than {MAX_ROWS}", code="too_many_rows", hint="push them in parts")


def _as_dict(row: object, i: int) -> dict[Any, Any]:
    if isinstance(row, Mapping):
        return dict(row)
    raise RowError(f"{show(row)} is not a dict", code="not_rows", hint=_ROWS_HINT, row=i)


def _columns_of(rows: Any) -> Iterable[tuple[Any, Any]]:
    """(name, values) of each column of a table in any accepted form."""
    if isinstance(rows, Mapping):
        return rows.items()
    if isinstance(rows, (pa.Table, pa.RecordBatch)):
        if rows.num_rows > MAX_ROWS:
            raise _too_many(rows.num_rows)
        return zip(rows.schema.names, rows.columns)
    pandas = sys.modules.get("pandas")
    if pandas is not None and isinstance(rows, pandas.DataFrame):
        # not through its Arrow stream, which would add the index as a column
        return [(name, rows.iloc[:, i]) for i, name in enumerate(rows.columns)]
    try:
        if isinstance(rows, pa.RecordBatchReader):
            return _columns_of(_read_stream(rows))
        if hasattr(rows, "__arrow_c_stream__"):
            return _columns_of(_read_stream(pa.RecordBatchReader.from_stream(rows)))
        if hasattr(rows, "__arrow_c_array__"):
            return _columns_of(pa.record_batch(rows))
    except pa.ArrowException as error:
        fact = f"the {type(rows).__name__} cannot be read as a table"
        raise RowError(fact, code="not_rows", detail=str(error), hint=_ROWS_HINT) from None
    raise RowError(f"{show(rows)} is not a set of rows", code="not_rows", hint=_ROWS_HINT)


def _read_stream(reader: Any) -> Any:
    """Read an Arrow stream into a table, and no further than the limit."""
    batches = []
    n_rows = 0
    for batch in reader:
        n_rows += batch.num_rows
        if n_rows > MAX_ROWS:
            raise _too_many(n_rows)
        batches.append(batch)
    return pa.Table.from_batches(batches, reader.schema)
