"""Why a row did or did not match: each query's predicates tried one by one on one row, slowly and without side effects.

A stored row is judged by what is stored with it, outcomes of user functions included. A row given as a dict is checked and
judged as if it were pushed now; its user functions are called, nothing else happens.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping
from typing import Any, SupportsIndex

import numpy as np

from eddy.join_query import JoinQuery, JoinRun
from eddy.join_trace import waits_for
from eddy.query import Query
from eddy.source import Source
from filters.evaluate import true_rows
from filters.expression import columns_of, user_functions_of
from filters.predicate import Atom, Condition, IndexAtom
from filters.residual import NOT_TRUE
from filters.vector import Frame, ListFrame, Vector
from filters.wording import say_atom
from lineage.dictionary import Dictionary
from lineage.errors import NotFoundError, RowError
from lineage.ingest import Ingestor
from lineage.schema import Type
from lineage.times import to_datetime
from stems.frame import PageFrame, interval_rows


def trace(source: Source, row: SupportsIndex | Mapping[str, Any], queries: list[Query]) -> dict[str, Any]:
    """The verdict of each query on a row: by query name, `matched` or what refused it first."""
    if isinstance(row, Mapping):
        subject: _Subject = _given(source, row)
    elif isinstance(row, SupportsIndex) and not isinstance(row, bool | np.bool_):
        subject = _stored(source, operator.index(row))
    else:
        raise RowError(f"{row!r} is not a row", hint="a row number, or a dict of column values")
    verdicts = {query.name: _judge(subject, query) for query in queries}
    return {
        "stream": source.name,
        "row": subject.describe,
        "late": subject.late,
        "time": None if subject.time is None else to_datetime(subject.time),
        "matched": [name for name, verdict in verdicts.items() if verdict["matched"]],
        "refused": {name: verdict["refused"] for name, verdict in verdicts.items() if verdict["refused"] is not None},
        "waiting": {name: verdict["waiting"] for name, verdict in verdicts.items() if verdict.get("waiting") is not None},
    }


class _Subject:
    """The row that is judged."""

    def __init__(self, source: Source, frame: Frame, describe: Any, time: int | None, late: bool, position: int | None) -> None:
        self.source = source
        self.frame = frame
        self.describe = describe
        self.time = time
        self.late = late
        #: None for a row that is not stored
        self.position = position
        #: the row as it was given, if it is not stored
        self.given: Mapping[str, Any] = {}

    def holds(self, atom: Atom, modules: Mapping[str, int]) -> bool:
        if isinstance(atom, IndexAtom):
            if self.position is not None:
                page, at, stop = next(iter(self.source.store.slices(self.position, self.position + 1)))
                dictionary = self.source.dictionaries[atom.position]
                return bool(interval_rows(atom.intervals, self.source.store, page, at, stop, atom.position, dictionary)[0])
            return atom.intervals.holds(order_key_of(self.frame.column(atom.position)))
        number = modules.get(str(atom))
        if self.position is not None and number is not None and user_functions_of(atom.expression):
            # a function is not called again; if the row never reached it, something else refused the row
            page, at, _ = next(iter(self.source.store.slices(self.position, self.position + 1)))
            outcome = page.outcomes.get(number)
            return outcome is None or bool(outcome[at] != NOT_TRUE)
        return bool(true_rows(atom.expression, self.frame)[0])


def order_key_of(vector: Vector) -> Any:
    """The order key of a vector's first value; None for NULL."""
    from filters.intervals import float_key

    value = vector.cell(0)
    if value is None or isinstance(value, str):
        return value
    return float_key(float(value)) if vector.type is Type.FLOAT else int(value)


def _stored(source: Source, row: int) -> _Subject:
    position = source.store.find_row(row)
    if position is None:
        waiting = (
            "it waits for stragglers" if 0 <= row < source.intake.next_row else f"{source.intake.next_row} rows were accepted"
        )
        raise NotFoundError(f'row {row} of stream "{source.name}" is not held', code="unknown_row", detail=waiting)
    page, at, _ = next(iter(source.store.slices(position, position + 1)))
    frame = PageFrame(page, source.schema, source.dictionaries, np.array([at]))
    values = {name: frame.column(i).to_pylist()[0] for i, name in enumerate(source.schema.names)}
    time = int(page.times[at])
    late = source.time_column is not None and frame.column(source.time_column).cell(0) != time
    return _Subject(source, frame, {"number": row, "values": values}, time, late, position)


def _given(source: Source, row: Mapping[str, Any]) -> _Subject:
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
    frame = ListFrame(vectors, 1)
    values_out = {name: vector.to_pylist()[0] for name, vector in zip(source.schema.names, vectors, strict=True)}
    time = None if source.time_column is None else int(vectors[source.time_column].values[0])
    late = time is not None and time < source.intake.front
    subject = _Subject(source, frame, {"number": None, "values": values_out}, time, late, None)
    subject.given = row
    return subject


def _judge(subject: _Subject, query: Query) -> dict[str, Any]:
    if not query.running:
        return _refusal("the query is paused")
    if subject.position is None and subject.late and subject.source.intake.drop_late:
        return _refusal("the row is late, and the stream drops late rows")
    if isinstance(query, JoinQuery):
        return _judge_join(subject, query)
    if subject.position is not None and subject.position < query.born:
        return _refusal("the row came before the query was submitted")
    refused = _first_refusal(subject, query.plan.condition, query.runs[-1].modules)
    return {"matched": refused is None, "refused": refused}


def _judge_join(subject: _Subject, query: JoinQuery) -> dict[str, Any]:
    """At each input over the row's stream: refused, waiting for a partner, or part of a match; the best of them counts."""
    run = query.runs[-1]
    assert isinstance(run, JoinRun)
    refused = waiting = None
    for k, source in enumerate(query.sources):
        if source is not subject.source:
            continue
        if subject.position is not None and subject.position < run.births[k]:
            return _refusal("the row came before the query was submitted")
        found = _first_refusal(subject, query.join_plan.conditions[k], run.modules_of[k])
        if found is not None:
            refused = refused or found
            continue
        waits = waits_for(query, k, subject.position, subject.given)
        if waits is None:
            return {"matched": True, "refused": None}
        if len(query.sources) == 1:
            return _refusal("its life is empty: it had left the window when it came")
        waiting = waiting or waits
    return {"matched": False, "refused": None if waiting is not None else refused, "waiting": waiting}


def _refusal(reason: str) -> dict[str, Any]:
    return {"matched": False, "refused": {"predicate": None, "reason": reason}}


def _first_refusal(subject: _Subject, condition: Condition, modules: Mapping[str, int]) -> dict[str, Any] | None:
    """The first predicate that is not true, with the values it saw."""
    if condition.never:
        return {"predicate": "the condition", "reason": "no row can satisfy it", "values": {}}
    for atom in condition.single():
        if not subject.holds(atom, modules):
            return {"predicate": say_atom(atom, subject.source.schema), "reason": "not true", "values": _values(subject, [atom])}
    for clause in condition.clauses:
        if not any(subject.holds(atom, modules) for atom in clause):
            shown = " OR ".join(say_atom(atom, subject.source.schema) for atom in clause)
            return {"predicate": shown, "reason": "none is true", "values": _values(subject, list(clause))}
    return None


def _values(subject: _Subject, atoms: list[Atom]) -> dict[str, Any]:
    names = subject.source.schema.names
    positions: dict[int, None] = {}
    for atom in atoms:
        found = [atom.position] if isinstance(atom, IndexAtom) else [column.position for column in columns_of(atom.expression)]
        positions.update(dict.fromkeys(found))
    return {names[position]: subject.frame.column(position).to_pylist()[0] for position in positions}
