"""Shared forms: the queries whose aggregates can share one set of sums.

A query is of a shared form if it groups the rows of one plain stream in a window that the clock ends, by columns and over
columns, and all its aggregates can be read from shared sums (`windows/shared/measures.py`). What is left of its text is

    SharedForm    window, keys and value columns, and the attribute whose regions tell conditions apart: queries that agree in it
                  have one set of sums
    condition     one interval on that attribute, or every row: a range of regions; anything else is listed
    Face          aggregates, HAVING and select list: what the query shows of a group

A face keeps all keys of the group: then no two groups show equal rows, and a group's change is net by itself. Queries of single
events (`emit="event"`, ISTREAM and its like), with a forced expiry word, MEDIAN, FIRST, LAST, DISTINCT, FILTER or computed
arguments have operators of their own (`eddy/operators/stages.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from eddy.base.plans import Plan, TreePlan
from filters.expressions.expression import ColumnRef, Expression, user_functions_of
from filters.expressions.predicate import Condition
from lineage.schema import Type
from queries.nodes import Aggregate, Block, GroupBy, Select
from windows.aggregates.aggregate import AggregateKind
from windows.shared.planes import ValueColumn
from windows.spec import WindowKind, WindowSpec

_SUMMED = frozenset({"sum", "avg", "variance", "stddev"})
_SPREAD = frozenset({"variance", "stddev"})
_SHARED = _SUMMED | {"count", "min", "max"}


class ShownAggregate(NamedTuple):
    """One aggregate of a face, over a value column of the form; `column` None: over rows."""

    kind: AggregateKind
    column: int | None
    type: Type


@dataclass(frozen=True, slots=True)
class Face:
    """The output of a query for a group: a row of keys and aggregates, if `having` is true, as `columns`."""

    aggregates: tuple[ShownAggregate, ...]
    having: Expression | None
    #: None: keys and aggregates as they are
    columns: tuple[Expression, ...] | None
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SharedForm:
    """The common part of queries that share one set of sums, beside the stream."""

    window: WindowSpec
    #: columns of the stream
    keys: tuple[int, ...]
    #: (column of the stream, what is asked of it)
    values: tuple[tuple[int, ValueColumn], ...]
    #: the column of the stream whose regions tell the conditions apart; None: there is one region
    attribute: int | None


@dataclass(frozen=True, slots=True)
class Shareable:
    """A query of a shared form; `listed`: its condition is more than one interval."""

    form: SharedForm
    face: Face
    plan: Plan
    listed: bool


def shareable(plan: TreePlan) -> Shareable | None:
    """The shared form of a query's plan; None if the query needs operators of its own."""
    root = plan.root
    grouped = root.child if isinstance(root, Select) else root
    if not isinstance(grouped, GroupBy) or not isinstance(grouped.child, Block):
        return None
    block = plan.blocks[grouped.child]
    if not isinstance(block, Plan) or block.window.kind not in (WindowKind.RANGE, WindowKind.NOW) or block.condition.never:
        return None
    columns = [column.expression for column in block.outputs if isinstance(column.expression, ColumnRef)]
    if len(columns) < len(block.outputs):
        return None
    values = _values(grouped.aggregates, columns)
    face = None if values is None else _face(root, grouped, list(values))
    if values is None or face is None:
        return None
    listed, attribute = _regions(block.condition)
    keys = tuple(column.position for column in columns[: grouped.n_keys])
    asked = tuple((columns[place].position, value) for place, value in values.items())
    return Shareable(SharedForm(block.window, keys, asked, attribute), face, block, listed)


def _values(aggregates: tuple[Aggregate, ...], columns: Sequence[Expression]) -> dict[int, ValueColumn] | None:
    """The value column of each argument, by its place; None if shared sums cannot give an aggregate."""
    kinds: dict[int, set[str]] = {}
    for aggregate in aggregates:
        if aggregate.kind not in _SHARED or aggregate.distinct or aggregate.filter is not None:
            return None
        if aggregate.argument is not None:
            kinds.setdefault(aggregate.argument, set()).add(aggregate.kind)
    found = {}
    for place, asked in sorted(kinds.items()):
        type_ = columns[place].type
        if (asked & _SPREAD and type_ is not Type.FLOAT) or (asked & {"min", "max"} and type_ is Type.STRING):
            return None
        # of texts only those that are not NULL are counted, whatever they are
        type_ = Type.INT if type_ is Type.STRING else type_
        found[place] = ValueColumn(type_, bool(asked & _SUMMED), bool(asked & _SPREAD), "min" in asked, "max" in asked)
    return found


def _face(root: object, grouped: GroupBy, places: list[int]) -> Face | None:
    aggregates = tuple(
        ShownAggregate(AggregateKind(item.kind), None if item.argument is None else places.index(item.argument), item.type)
        for item in grouped.aggregates
    )
    if not isinstance(root, Select):
        return Face(aggregates, None, None, grouped.names)
    columns = tuple(column.expression for column in root.columns)
    shown = {column.position for column in columns if isinstance(column, ColumnRef)}
    expressions = columns if root.condition is None else (*columns, root.condition)
    if not shown.issuperset(range(grouped.n_keys)) or any(user_functions_of(each) for each in expressions):
        return None
    return Face(aggregates, root.condition, columns, tuple(column.name for column in root.columns))


def _regions(condition: Condition) -> tuple[bool, int | None]:
    """Whether the condition's rows must be listed; else the attribute of its only interval, None for every row."""
    if condition.residuals or condition.clauses or len(condition.conjuncts) > 1:
        return True, None
    if not condition.conjuncts:
        return False, None
    (atom,) = condition.conjuncts
    spans, null = atom.intervals.spans, atom.intervals.null
    apart = null and not (spans and spans[-1][1] is None)
    return (False, atom.position) if len(spans) + apart == 1 else (True, None)
