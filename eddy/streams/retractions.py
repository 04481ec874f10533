"""Retractions: keys of a stream whose live rows are ended, in the order of the stream (semantics 34).

A retraction is an input of its stream like a row: it waits with the reorder buffer, is released at its time, and moves the clock.
So it travels as a row does, marked by its number, until the commit that takes it; there it is taken out of the rows and
given to the column of ends (`stems/own_ends.py`). A late one takes effect at once and is never dropped.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from eddy.base.checking import changing
from eddy.base.description import Receipt
from eddy.streams.table_keys import given_keys, key_cells
from eddy.streams.timeline import Rows
from lineage.errors import ConflictError
from lineage.ingest import Ingested, Ingestor
from lineage.schema import Schema, Type
from stems.newest_rows import RETRACTION
from stems.own_ends import Retractions

if TYPE_CHECKING:
    from eddy.streams.source import Source

Released = list[tuple["Source", Rows]]


def check_keys(source: Source, keys: Any) -> Ingested:
    """The checked keys of a retraction, in the order of the key columns; changes nothing."""
    key = _key(source)
    if not key:
        raise ConflictError(
            f'stream "{source.name}" has no key', code="no_key", hint="create_stream(..., key=...) makes its rows retractable"
        )
    return _ingestor(source).check(given_keys(keys, [source.schema.names[position] for position in key]))


def _key(source: Source) -> tuple[int, ...]:
    """The key columns of a stream; none if it has no key."""
    own = source.own_ends
    return () if own is None or own.keys is None else own.keys.columns


def _ingestor(source: Source) -> Ingestor:
    """An ingestor for the key columns alone. Texts new to the stream get codes: a waiting row may bring them."""
    key = _key(source)
    columns = tuple(source.schema.columns[position] for position in key)
    return Ingestor(Schema(columns), None, [source.dictionaries[position] for position in key])


@changing
def accept(source: Source, checked: Ingested, time_us: int) -> tuple[Rows | None, Receipt]:
    """Put checked keys among the waiting rows of a stream; returns the rows that this releases, and the receipt."""
    _ingestor(source).commit(checked)
    n = checked.n_rows
    if not n:
        return None, Receipt(0, 0, None, None)
    cells = [np.zeros(n, np.float64 if column.type is Type.FLOAT else np.int64) for column in source.schema.columns]
    nulls: list[np.ndarray | None] = [np.ones(n, np.bool_) for _ in cells]
    for position, given, null in zip(_key(source), checked.cells, checked.nulls, strict=True):
        cells[position], nulls[position] = given, null
    late = n if time_us < source.intake.front else 0
    return source.intake.accept_retractions(cells, nulls, n, time_us), Receipt(n, late, None, None)


def take_out(released: Released, clock: int) -> tuple[Released, dict[Source, Retractions]]:
    """The rows of a commit that begins at a clock, without retractions; and the retractions by stream."""
    rows_of: Released = []
    found: dict[Source, Retractions] = {}
    for source, rows in released:
        key = _key(source)
        if not key or isinstance(rows.numbers, int):
            rows_of.append((source, rows))
            continue
        marked = rows.numbers == RETRACTION
        if marked.any():
            at = np.flatnonzero(marked)
            taken = rows.take(at)
            assert isinstance(taken.times, np.ndarray)
            cells = [key_cells(taken.cells[column], source.schema.columns[column].type) for column in key]
            nulls = [taken.nulls[column] for column in key]
            found[source] = Retractions(cells, nulls, np.maximum(taken.times, clock), at - np.arange(len(at)))
            rows = rows.take(np.flatnonzero(~marked))
        if rows.n_rows:
            rows_of.append((source, rows))
    return rows_of, found
