"""Adjusts of a merged stream, checked: rows that name an event of an input and its new end (semantics 36).

    columns     those of the identity, the time, and the end; for a bag also `old_` and the name of the end column

Without an end column an event takes one instant, and to adjust it is to remove it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from eddy.merges.merge_inputs import BELOW_HINT, MergeInput
from eddy.merges.merge_intake import MergeIntake
from eddy.streams.source import Source
from lineage.elements import FOREVER
from lineage.errors import ConflictError, RowError
from lineage.ingest import Ingested, Ingestor
from lineage.schema import Column, Schema
from lineage.times import to_iso


def check_adjusts(
    source: Source, intake: MergeIntake, of: MergeInput, rows: Any, beside: Ingested | None = None
) -> np.ndarray:  # fmt: skip
    """The times, payloads, old and new ends of checked adjusts; raises, and changes nothing, if one is of no event of the input.

    The payloads have a reference each. `beside` are rows that the input gives in the same call, with codes of their texts.
    """
    if not intake.keeps_events:
        fact = f'merge "{source.name}" of case {intake.stream.case} takes no adjusts'
        raise ConflictError(fact, code="no_adjusts", hint='create_merge(.., case="R3", unique=..) keeps a record of events')
    ingestor = _ingestor(source, intake)
    checked = ingestor.check(rows)
    # texts get codes even if the adjusts are refused: nobody sees those
    ingestor.commit(checked)
    n, n_identity = checked.n_rows, len(intake.identity)
    times = np.ascontiguousarray(checked.cells[n_identity], np.int64)
    end = intake.end_column
    ends = times if end is None else _ends(checked, n_identity + 1)
    olds = _ends(checked, n_identity + 2) if end is not None and intake.stream.unique is None else np.zeros(n, np.int64)
    if end is None:
        olds = times + 1
    _refuse(
        ends < times, "the event would end before it begins", "bad_end", source, end, ends, "an end at the time removes the event"
    )
    if (ends < of.said).any():
        fact = f'input "{of.name}" said that nothing would change before {to_iso(of.said)}'
        _refuse(ends < of.said, fact, "below_point", source, end, ends, BELOW_HINT)
    payloads = intake.codes.encode(checked.cells[:n_identity], checked.nulls[:n_identity], n)
    unknown = intake.unknown_events(of, times, payloads, olds)
    if beside is not None:
        unknown &= ~intake.among(beside, times, payloads, olds)
    if unknown.any():
        intake.codes.release(payloads)
        fact = f'input "{of.name}" has given no such event'
        names = [source.schema.names[k] for k in (*intake.identity, intake.time_column)]
        hint = f"an adjust names an event that this input gave, and that is not settled, by {', '.join(names)}"
        _refuse(unknown, fact, "unknown_event", source, intake.time_column, times, hint)
    return np.stack([times, payloads, olds, ends])


def _ingestor(source: Source, intake: MergeIntake) -> Ingestor:
    """An ingestor for the columns of adjusts."""
    columns = [source.schema.columns[k] for k in (*intake.identity, intake.time_column)]
    dictionaries = [source.dictionaries[k] for k in (*intake.identity, intake.time_column)]
    if intake.end_column is not None:
        end = source.schema.columns[intake.end_column]
        columns.append(end)
        if intake.stream.unique is None:
            columns.append(Column(f"old_{end.name}", end.type, end.unit))
    return Ingestor(Schema(tuple(columns)), len(intake.identity), [*dictionaries, None, None])


def _ends(checked: Ingested, column: int) -> np.ndarray:
    """A column of ends; NULL is none."""
    ends, null = np.asarray(checked.cells[column], np.int64), checked.nulls[column]
    return ends if null is None else np.where(null, FOREVER, ends)


def _refuse(
    wrong: np.ndarray, fact: str, code: str, source: Source, column: int | None, values: np.ndarray, hint: str
) -> None:  # fmt: skip
    """Raise if some row is wrong, and name the first."""
    if wrong.any():
        row = int(np.argmax(wrong))
        named = None if column is None else source.schema.names[column]
        raise RowError(fact, code=code, detail=f"the row has {to_iso(int(values[row]))}", hint=hint, row=row, column=named)
