"""Tracing above the leaves: the nodes that a matched row passes, told step by step from below; no verdict changes.

    step        a window in steps: whether the row's step is open, or when it was shown
    where       a condition over what stands below that is not true of the row, with the values it saw
    group       the group that the row belongs to, and `row`: what the group is now, None while it has no rows
    having      the condition over the group that is not true, with its values
    distinct    whether a row with its values is shown
    side        of which set operator it is on which side
    join        that the row meets others there; what it becomes is not followed
    stream      ISTREAM, DSTREAM or RSTREAM, and window: a window over the rows of a stream that a query makes
    answer      whether a row with its values is in the answer, where a set operator decides that

Beside these a leaf says through which queries it is read by name, and when the row left its window if it has. Told are values as
they are now, for a row that is not pushed without it, found in stored rows (`eddy/inspect/trace_rows.py`) and the answer, for as
long as the row can be followed: functions of the user are not called, and above a join or a condition that is not true nothing
is known.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from eddy.catalog.catalog import Catalog
from eddy.inspect.trace_leaves import Leaf, PathStep
from eddy.inspect.trace_lives import LATEST, standing
from eddy.inspect.trace_rows import LOOKED_AT, Allowance, TracedRows, aggregated, rows_like, rows_now, selected
from eddy.inspect.trace_subject import Subject
from eddy.joins.join_query import JoinQuery
from eddy.lives.window_rows import WindowRows
from eddy.operators.readers import make_reader
from eddy.query import Query
from filters.expressions.evaluate import evaluate, true_rows
from filters.expressions.expression import ColumnRef, Expression, columns_of, replace_columns, user_functions_of
from filters.expressions.wording import say_expression
from filters.values.vector import ListFrame, Vector
from lineage.schema import Type
from lineage.times import to_datetime, to_iso
from queries.nodes import (
    BOUNDS,
    Aggregate,
    Block,
    Distinct,
    GroupBy,
    JoinNode,
    LMerge,
    Node,
    Select,
    SetOperation,
    Slide,
    ToStream,
    Window,
)

_MANY = f"not looked up: a trace reads at most {LOOKED_AT:,} rows, of all queries together"

Facts = list[dict[str, Any]]


def above(subject: Subject, leaf: Leaf, catalog: Catalog, allowance: Allowance) -> dict[str, Any]:
    """The leaf in words, the queries by whose names it is read, and the facts of the nodes above it."""
    found: dict[str, Any] = {"leaf": _say_leaf(leaf, subject)}
    if leaf.through:
        found["through"] = [query.name for query in leaf.through]
    left = _left(subject, leaf)
    if left is not None:
        found["left"] = to_datetime(left)
    found["facts"] = _Climb(subject, leaf, catalog, allowance).facts()
    return found


def _say_leaf(leaf: Leaf, subject: Subject) -> str:
    """The streams and tables of a leaf with their windows."""
    query = leaf.query
    if leaf.steps is not None:
        return f"{subject.source.name} {leaf.steps}"
    sources = query.sources if isinstance(query, JoinQuery) else [subject.source]
    parts = []
    for source, window in zip(sources, query.windows):
        plain = window.is_stream or source.readable.is_table
        parts.append(source.name if plain else f"{source.name} {window.say(source.schema.names)}")
    return ", ".join(parts)


def _left(subject: Subject, leaf: Leaf) -> int | None:
    """The time at which a stored row left the window of a leaf over its stream alone; None if it has not."""
    query = leaf.query
    if subject.position is None or leaf.join is not None or leaf.steps is not None or query.windows[0].is_stream:
        return None
    rows = WindowRows(subject.source, query.windows[0].width_us, query.group.ends[0] if isinstance(query, JoinQuery) else None)
    end = int(rows.lives(np.array([subject.position]), standing(subject.source, LATEST)).ends[0])
    return end if end <= subject.source.timeline.now else None


class _Climb:
    """Follows a row from a leaf to the root."""

    def __init__(self, subject: Subject, leaf: Leaf, catalog: Catalog, allowance: Allowance) -> None:
        self._subject = subject
        self._leaf = leaf
        self._catalog = catalog
        self._allowance = allowance
        self._facts: Facts = []
        #: the row as the step below gives it, one cell a column; None once it is not known
        self._values: list[Vector] | None = None

    def facts(self) -> Facts:
        self._values = self._evaluated([column.expression for column in self._leaf.query.outputs], self._subject.frame)
        if self._leaf.join is not None:
            self._values = None
        for step in self._leaf.path:
            self._take(step)
        self._tell_answer()
        return self._facts

    def _evaluated(self, expressions: Sequence[Expression], frame: Any) -> list[Vector] | None:
        if any(user_functions_of(expression) for expression in expressions) or self._leaf.join is not None:
            return None
        return [evaluate(expression, frame) for expression in expressions]

    def _take(self, step: PathStep) -> None:
        match step.node:
            case Slide() as node:
                self._tell_step(node)
            case Select() as node:
                self._tell_condition(node)
            case GroupBy() as node:
                self._tell_group(node)
            case Distinct():
                self._facts.append({"distinct": "rows with equal values are one"})
            case SetOperation() as node:
                word = node.kind.upper() + (" ALL" if node.all else "")
                self._facts.append({"side": f"{'left' if step.child == 0 else 'right'} of {word}"})
            case LMerge() as node:
                self._facts.append({"side": f"input {node.names[step.child]} of LMERGE({', '.join(node.names)})"})
            case JoinNode() as node:
                others = [name for at, name in enumerate(node.aliases) if at != step.child]
                self._facts.append({"join": f"with {', '.join(others)}"})
                self._values = None
            case ToStream() as node:
                self._facts.append({"stream": node.kind.upper()})
            case Window() as node:
                names = [column.name for column in node.child.columns]
                self._facts.append({"window": node.window.say(names)})

    # ---- windows in steps

    def _tell_step(self, node: Slide) -> None:
        if node.of_query:
            self._facts.append({"window": str(node.window)})
            self._values = None if node.bounds else self._values
            return
        subject, now = self._subject, self._subject.source.timeline.now
        slide, width = node.window.slide_us, node.window.width_us
        first, last = (subject.start // slide + 1) * slide, (subject.time + width) // slide * slide
        if first > now:
            shown, said = first, f"open until {to_iso(first)}"
        else:
            shown = min(last, now // slide * slide)
            said = f"closed at {to_iso(first)}"
            said += f", over since {to_iso(last + slide)}" if last + slide <= now else ""
        self._facts.append({"step": said})
        if node.bounds and self._values is not None:
            self._values = [*self._values, *(Vector.constant(Type.TIMESTAMP, at, 1) for at in (shown - width, shown))]

    # ---- conditions and groups

    def _tell_condition(self, node: Select) -> None:
        values = self._values
        if values is None:
            return
        expressions = [column.expression for column in node.columns]
        if any(user_functions_of(each) for each in [*expressions, *([] if node.condition is None else [node.condition])]):
            self._values = None
            return
        if node.condition is not None and not true_rows(node.condition, ListFrame(values, 1))[0]:
            word = "having" if isinstance(node.child, GroupBy) else "where"
            seen = {said(node.child, ref.position): values[ref.position] for ref in columns_of(node.condition)}
            shown = say_expression(_named(node.condition, node.child))
            shown = shown[1:-1] if shown.startswith("(") and shown.endswith(")") else shown
            told = ", ".join(f"{name} is {_say_cell(vector)}" for name, vector in seen.items())
            self._facts.append({word: f"{shown} is not true" + (f", {told}" if told else "")})
            self._values = None
            return
        self._values = selected(Select(node.child, None, node.columns), TracedRows(values, 1)).columns

    def _tell_group(self, node: GroupBy) -> None:
        values, self._values = self._values, None
        if values is None:
            return
        names = [said(node.child, at) for at in range(node.n_keys)]
        fact: dict[str, Any] = {"group": {name: vector.to_pylist()[0] for name, vector in zip(names, values)}}
        self._facts.append(fact)
        refused = self._allowance.n_refused
        found = rows_now(node.child, self._leaf, self._subject.source, self._allowance)
        if found is None:
            if self._allowance.n_refused > refused:
                fact["row"] = _MANY
            return
        columns, rows = found.columns, np.arange(found.n_rows)
        if node.n_keys:
            rows = np.flatnonzero(rows_like(columns[: node.n_keys], values[: node.n_keys]))
        if node.n_keys and not len(rows):
            fact["row"] = None
            return
        cells = [vector.cell(0) for vector in values[: node.n_keys]]
        cells += [aggregated(item, columns, rows) for item in node.aggregates]
        made = [_constant(column.type, cell) for column, cell in zip(node.columns, cells)]
        words = [*names, *(said(node, node.n_keys + at) for at in range(len(node.aggregates)))]
        fact["row"] = {word: vector.to_pylist()[0] for word, vector in zip(words, made)}
        self._values = made

    # ---- the answer

    def _tell_answer(self) -> None:
        """Look up the row in the answer, where DISTINCT or a set operator decides whether it is shown."""
        told = [fact for fact in self._facts if "distinct" in fact or "side" in fact]
        path = self._leaf.path
        if not told or self._values is None or path[-1].node.is_stream:
            return
        shown = self._is_shown(path[-1].query)
        if "side" in told[-1]:
            words = ("no row with its values is shown", "a row with its values is shown")
            self._facts.append({"answer": _MANY if shown is None else words[shown]})
        elif self._subject.position is None:
            told[-1]["distinct"] = _MANY if shown is None else ("its value is new", "its value stands already")[shown]
        else:
            told[-1]["distinct"] = _MANY if shown is None else ("its value is not shown", "its value is shown")[shown]

    def _is_shown(self, query: Query) -> bool | None:
        assert self._values is not None
        now = self._catalog.timeline_of(query).now
        found = make_reader(query, self._catalog).answer(now)
        if not self._allowance.take(len(found)):
            return None
        if not found.columns:
            return len(found) > 0
        return bool(rows_like(found.columns, self._values).any())


# ---- words


def said(node: Node, at: int) -> str:
    """The text of a node's column."""
    if isinstance(node, GroupBy):
        return said(node.child, at) if at < node.n_keys else _say_aggregate(node.aggregates[at - node.n_keys], node.child)
    if isinstance(node, Slide):
        n_columns = len(node.child.columns)
        return said(node.child, at) if at < n_columns else BOUNDS[at - n_columns].name
    if isinstance(node, Block):
        return say_expression(node.columns[at].expression)
    if isinstance(node, Select):
        return say_expression(_named(node.columns[at].expression, node.child))
    return node.columns[at].name


def _named(expression: Expression, child: Node) -> Expression:
    """An expression over a child's columns, with their texts as names."""
    return replace_columns(expression, lambda ref: ColumnRef(ref.type, said(child, ref.position), ref.position))


def _say_aggregate(item: Aggregate, child: Node) -> str:
    inside = "*" if item.argument is None else said(child, item.argument)
    shown = f"{item.kind.upper()}({'DISTINCT ' if item.distinct else ''}{inside})"
    return shown if item.filter is None else f"{shown} FILTER (WHERE {said(child, item.filter)})"


def _say_cell(vector: Vector) -> str:
    (value,) = vector.to_pylist()
    return "NULL" if value is None else repr(value) if isinstance(value, str) else str(value)


def _constant(type_: Type, cell: Any) -> Vector:
    """A vector of one cell; NULL for a sum beyond 64 bits, as in an answer."""
    if type_ is Type.INT and cell is not None and not -(2**63) <= cell < 2**63:
        cell = None
    return Vector.constant(type_, cell, 1)
