"""Retractions: keys of a stream whose live rows are ended, in the order of the stream (semantics 34).

A retraction is an input of its stream like a row: it waits with the reorder buffer, is released at its time, and moves the clock.
So it travels as a row does, marked by its number, until the commit that takes it; there it is taken out of the rows and
given to the column of ends (`stems/own_ends.py`). A late one takes effect at once and is never dropped.

Merged streams retract single rows, by position, without a key (semantics 36): such a retraction is planned for its time, and any
commit of the timeline that reaches that takes it along (`with_due`).

    number of a retraction by key = RETRACTION        of the row at a position = ROW_RETRACTION - position
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from eddy.base.checking import changing
from eddy.base.description import Receipt
from eddy.streams.table_keys import given_keys, key_cells
from eddy.streams.timeline import ROW_RETRACTION, Rows, Timeline, merge
from lineage.errors import ConflictError
from lineage.ingest import Ingested, Ingestor
from lineage.schema import Schema, Type
from stems.newest_rows import RETRACTION
from stems.own_ends import Retractions, RowRetractions, TakenOut

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


def row_retraction(positions: np.ndarray) -> np.ndarray:
    """The numbers that mark retractions of single rows, by their positions; the inverse is itself."""
    return ROW_RETRACTION - positions


def with_due(timeline: Timeline, released: Released, clock: int) -> Released:
    """The rows of a call that takes the clock to `clock`, with the planned retractions of single rows that are due by then."""
    for source in timeline.keyed:
        due = source.intake.due(clock, source.schema)
        if due is None:
            continue
        at = next((k for k, (other, _) in enumerate(released) if other is source), len(released))
        rows = due if at == len(released) else merge(due, released[at][1])
        released = [*released[:at], (source, rows), *released[at + 1 :]]
    return released


def take_out(released: Released, clock: int) -> tuple[Released, dict[Source, TakenOut]]:
    """The rows of a commit that begins at a clock, without retractions; and the retractions by stream."""
    rows_of: Released = []
    found: dict[Source, TakenOut] = {}
    for source, rows in released:
        if source.own_ends is None or isinstance(rows.numbers, int):
            rows_of.append((source, rows))
            continue
        marked = rows.numbers < 0
        if marked.any():
            at = np.flatnonzero(marked)
            found[source] = _taken_out(source, rows.take(at), clock, at - np.arange(len(at)))
            rows = rows.take(np.flatnonzero(~marked))
        if rows.n_rows:
            rows_of.append((source, rows))
    return rows_of, found


def _taken_out(source: Source, taken: Rows, clock: int, rows_before: np.ndarray) -> TakenOut:
    """The retractions that some rows stand for."""
    assert isinstance(taken.times, np.ndarray) and isinstance(taken.numbers, np.ndarray)
    starts = np.maximum(taken.times, clock)
    by_key, by_row = np.flatnonzero(taken.numbers == RETRACTION), np.flatnonzero(taken.numbers <= ROW_RETRACTION)
    keyed, single = None, None
    if len(by_key):
        key = _key(source)
        some = taken.take(by_key)
        cells = [key_cells(some.cells[column], source.schema.columns[column].type) for column in key]
        keyed = Retractions(cells, [some.nulls[column] for column in key], starts[by_key], rows_before[by_key])
    if len(by_row):
        single = RowRetractions(row_retraction(taken.numbers[by_row]), starts[by_row], rows_before[by_row])
    return TakenOut(keyed, single)
