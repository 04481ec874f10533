"""The row judged by a trace, and the first predicate that refuses it.

A stored row is judged by what is stored with it, outcomes of user functions included. A row given as a dict is checked and
judged as if it came now, at the end of its stream and the clock as it is; its user functions are called, nothing else happens.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping
from typing import Any, SupportsIndex

import numpy as np

from eddy.streams.source import Source
from filters.expressions.evaluate import true_rows
from filters.expressions.expression import columns_of, user_functions_of
from filters.expressions.predicate import Atom, Condition, IndexAtom
from filters.expressions.residual import NOT_TRUE
from filters.expressions.wording import say_atom
from filters.values.intervals import float_key
from filters.values.vector import Frame, ListFrame, Vector
from lineage.dictionary import Dictionary
from lineage.elements import FOREVER
from lineage.errors import NotFoundError, RowError
from lineage.ingest import Ingestor
from lineage.schema import Type
from stems.frame import PageFrame, interval_rows


class Subject:
    """The judged row: its columns, its effective time and the start of its life."""

    def __init__(self, source: Source, frame: Frame, describe: Any, sent: int | None, position: int | None) -> None:
        self.source = source
        self.frame = frame
        self.describe = describe
        #: None for a row that is not stored
        self.position = position
        #: the row as it was given, if it is not stored
        self.given: Mapping[str, Any] = {}
        intake, now = source.intake, source.timeline.now
        if position is not None:
            starts, times = source.store.elements_at(np.array([position]), 0)
            self.time, self.start = int(times[0]), int(starts[0])
            self.late = sent is not None and sent != self.time
        else:
            self.late = sent is not None and sent < intake.front
            self.time = max(now if sent is None else sent, intake.front)
            self.start = max(self.time, now)
        #: what a reader is shown: of a stored row the effective time, of another the one it carries
        self.shown_time = self.time if position is not None else sent

    @property
    def dropped(self) -> bool:
        """Whether the stream would drop the row."""
        return self.position is None and self.late and self.source.intake.drop_late

    @property
    def own_end(self) -> int:
        """The end in the row's own column; FOREVER if it is NULL or the stream has none."""
        column = self.source.readable.end
        cell = None if column is None else self.frame.column(column).cell(0)
        return FOREVER if cell is None else int(cell)

    def holds(self, atom: Atom, modules: Mapping[str, int]) -> bool:
        if isinstance(atom, IndexAtom):
            if self.position is not None:
                page, at, stop = next(iter(self.source.store.slices(self.position, self.position + 1)))
                dictionary = self.source.dictionaries[atom.position]
                return bool(interval_rows(atom.intervals, self.source.store, page, at, stop, atom.position, dictionary)[0])
            return atom.intervals.holds(_order_key_of(self.frame.column(atom.position)))
        number = modules.get(str(atom))
        if self.position is not None and number is not None and user_functions_of(atom.expression):
            # a function is not called again; if the row never reached it, something else refused the row
            page, at, _ = next(iter(self.source.store.slices(self.position, self.position + 1)))
            outcome = page.outcomes.get(number)
            return outcome is None or bool(outcome[at] != NOT_TRUE)
        return bool(true_rows(atom.expression, self.frame)[0])

    def first_refusal(self, condition: Condition, modules: Mapping[str, int]) -> dict[str, Any] | None:
        """The first predicate that is not true, with the values it saw; None if all are true."""
        schema = self.source.schema
        if condition.never:
            return {"predicate": "the condition", "reason": "no row can satisfy it", "values": {}}
        for atom in condition.single():
            if not self.holds(atom, modules):
                return {"predicate": say_atom(atom, schema), "reason": "not true", "values": self._values([atom])}
        for clause in condition.clauses:
            if not any(self.holds(atom, modules) for atom in clause):
                shown = " OR ".join(say_atom(atom, schema) for atom in clause)
                return {"predicate": shown, "reason": "none is true", "values": self._values(list(clause))}
        return None

    def _values(self, atoms: list[Atom]) -> dict[str, Any]:
        names = self.source.schema.names
        positions: dict[int, None] = {}
        for atom in atoms:
            found = [atom.position] if isinstance(atom, IndexAtom) else [ref.position for ref in columns_of(atom.expression)]
            positions.update(dict.fromkeys(found))
        return {names[position]: self.frame.column(position).to_pylist()[0] for position in positions}


def subject_of(source: Source, row: SupportsIndex | Mapping[str, Any]) -> Subject:
    """The row with that number, or the given dict as a row; raises if there is none."""
    if isinstance(row, Mapping):
        return _given(source, row)
    if isinstance(row, SupportsIndex) and not isinstance(row, bool | np.bool_):
        return _stored(source, operator.index(row))
    raise RowError(f"{row!r} is not a row", hint="a row number, or a dict of column values")


def _stored(source: Source, row: int) -> Subject:
    position = source.store.find_row(row)
    if position is None:
        waiting = (
            "it waits for stragglers" if 0 <= row < source.intake.next_row else f"{source.intake.next_row} rows were accepted"
        )
        raise NotFoundError(f'row {row} of stream "{source.name}" is not held', code="unknown_row", detail=waiting)
    page, at, _ = next(iter(source.store.slices(position, position + 1)))
    frame = PageFrame(page, source.schema, source.dictionaries, np.array([at]))
    values = {name: frame.column(i).to_pylist()[0] for i, name in enumerate(source.schema.names)}
    sent = None if source.time_column is None else int(frame.column(source.time_column).values[0])
    return Subject(source, frame, {"number": row, "values": values}, sent, position)


def _given(source: Source, row: Mapping[str, Any]) -> Subject:
    # strings of a row that is not pushed must not enter the stream's dictionaries
    own = [None if dictionary is None else Dictionary() for dictionary in source.dictionaries]
    taken = Ingestor(source.schema, source.time_column, own).take([dict(row)])
    vectors = []
    for i, column in enumerate(source.schema.columns):
        nulls = taken.nulls[i]
        dictionary = own[i]
        values = np.asarray(taken.cells[i])
        values = values.astype(np.bool_) if column.type is Type.BOOL else values
        vectors.append(Vector(column.type, values, nulls, None if dictionary is None else dictionary.as_array()))
    values_out = {name: vector.to_pylist()[0] for name, vector in zip(source.schema.names, vectors, strict=True)}
    sent = None if source.time_column is None else int(vectors[source.time_column].values[0])
    subject = Subject(source, ListFrame(vectors, 1), {"number": None, "values": values_out}, sent, None)
    subject.given = row
    return subject


def _order_key_of(vector: Vector) -> Any:
    """The order key of a vector's first value; None for NULL."""
    value = vector.cell(0)
    if value is None or isinstance(value, str):
        return value
    return float_key(float(value)) if vector.type is Type.FLOAT else int(value)
