"""Shared forms: the queries whose answers can be read from one set of sums.

A query is of a shared form if it groups the rows of one plain stream in a window that the clock ends, by columns and over
columns, and all its aggregates can be read from shared sums (`windows/shared/measures.py`). DISTINCT groups by all its columns
and shows nothing else. What is left of its text is

    SharedForm    window, keys and value columns, and the attribute whose regions tell conditions apart: queries that agree in it
                  have one set of sums
    condition     one interval on that attribute, or every row: a range of regions; anything else is listed
    Face          aggregates, HAVING and select list without their constants: what the query shows of a group
    parameters    the constants of its face (`filters/expressions/parameters.py`), and the names of its columns

A face is computed over a frame of

    keys of the group, aggregates, bounds of the extent (TUMBLE and HOP, where a key is one), parameters

It shows all keys: then no two groups show equal rows, and a group's change is net by itself. Queries of single events
(`emit="event"`, ISTREAM and its like), with a forced expiry word, MEDIAN, FIRST, LAST, DISTINCT aggregates, FILTER or computed
arguments have operators of their own (`eddy/operators/stages.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from eddy.base.plans import Plan, TreePlan
from filters.expressions.expression import ColumnRef, Expression, Literal, replace_columns, user_functions_of
from filters.expressions.parameters import is_parameter, lift
from filters.expressions.predicate import Condition
from lineage.schema import Type
from queries.nodes import BOUNDS, Aggregate, Block, Distinct, GroupBy, Node, Select, Slide
from windows.aggregates.aggregate import AggregateKind
from windows.shared.planes import ValueColumn
from windows.spec import WindowKind, WindowSpec

_SUMMED = frozenset({"sum", "avg", "variance", "stddev"})
_SPREAD = frozenset({"variance", "stddev"})
_SHARED = _SUMMED | {"count", "min", "max"}
_WINDOWS = (WindowKind.RANGE, WindowKind.NOW, WindowKind.SLIDE)


class ShownAggregate(NamedTuple):
    """One aggregate of a face, over a value column of the form; `column` None: over rows."""

    kind: AggregateKind
    column: int | None
    type: Type


@dataclass(frozen=True, slots=True)
class Face:
    """The output of a query for a group: `columns` over its frame, if `having` is true."""

    aggregates: tuple[ShownAggregate, ...]
    having: Expression | None
    columns: tuple[Expression, ...]
    #: the types of its parameters
    parameters: tuple[Type, ...]


@dataclass(frozen=True, slots=True)
class SharedForm:
    """The common part of queries that share one set of sums, beside the stream."""

    #: RANGE, NOW or SLIDE
    window: WindowSpec
    #: columns of the stream
    keys: tuple[int, ...]
    #: (column of the stream, what is asked of it)
    values: tuple[tuple[int, ValueColumn], ...]
    #: the column of the stream whose regions tell the conditions apart; None: there is one region
    attribute: int | None
    #: whether a bound of the extent is a key, so that each extent has groups of its own
    by_extent: bool = False
    #: whether a group is shown, with nothing beside its keys, for as long as it has rows
    distinct: bool = False

    @property
    def scalar(self) -> bool:
        """Whether there is one group, which is always shown."""
        return not self.keys and not self.by_extent


@dataclass(frozen=True, slots=True)
class Shareable:
    """A query of a shared form; `listed`: its condition is more than one interval."""

    form: SharedForm
    face: Face
    plan: Plan
    listed: bool
    parameters: tuple[Literal, ...]
    names: tuple[str, ...]


class _Input(NamedTuple):
    """What is grouped: by its place the column of the stream or the constant, or the bound of the extent (0: start, 1: end)."""

    columns: tuple[Expression | int, ...]
    window: WindowSpec
    plan: Plan


def shareable(plan: TreePlan) -> Shareable | None:
    """The shared form of a query's plan; None if the query needs operators of its own."""
    root = plan.root
    if isinstance(root, Distinct):
        found = _input(root.child, plan)
        # its values are groups of which nothing is shown but that they have rows
        return None if found is None else _shared(root, _grouped(root), found, distinct=True)
    grouped = root.child if isinstance(root, Select) else root
    if not isinstance(grouped, GroupBy):
        return None
    found = _input(grouped.child, plan)
    return None if found is None else _shared(root, grouped, found, distinct=False)


def _grouped(root: Distinct) -> GroupBy:
    return GroupBy(root.child, len(root.columns), (), False, tuple(column.name for column in root.columns))


def _input(node: Node, plan: TreePlan) -> _Input | None:
    """The rows below the groups: those of a block, or of the extents of a block; None if they are none of these."""
    if isinstance(node, Block):
        return _of_block(node, plan, None)
    shown: Sequence[Expression] | None = None
    if isinstance(node, Select):
        if node.condition is not None:
            return None
        shown, node = [column.expression for column in node.columns], node.child
    if not isinstance(node, Slide) or node.of_query or not isinstance(node.child, Block):
        return None
    below = _of_block(node.child, plan, node.window)
    if below is None:
        return None
    columns = (*below.columns, *range(len(BOUNDS))) if node.bounds else below.columns
    if shown is None:
        return below._replace(columns=columns)
    places = [column.position for column in shown if isinstance(column, ColumnRef)]
    return below._replace(columns=tuple(columns[place] for place in places)) if len(places) == len(shown) else None


def _of_block(block: Block, plan: TreePlan, slid: WindowSpec | None) -> _Input | None:
    found = plan.blocks[block]
    if not isinstance(found, Plan) or found.condition.never:
        return None
    window = slid or found.window
    columns = tuple(column.expression for column in found.outputs)
    plain = all(isinstance(column, ColumnRef) or is_parameter(column) for column in columns)
    return _Input(columns, window, found) if plain and window.kind in _WINDOWS else None


def _shared(root: Node, grouped: GroupBy, rows: _Input, distinct: bool) -> Shareable | None:
    n_keys, columns = grouped.n_keys, rows.columns
    bounds = [at for at, column in enumerate(columns) if isinstance(column, int)]
    if any(at >= n_keys for at in bounds) or any(isinstance(column, Literal) for column in columns[n_keys:]):
        return None
    values = _values(grouped.aggregates, columns)
    if values is None:
        return None
    keys = [at for at in range(n_keys) if isinstance(columns[at], ColumnRef)]
    aggregates = tuple(
        ShownAggregate(AggregateKind(item.kind), None if item.argument is None else list(values).index(item.argument), item.type)
        for item in grouped.aggregates
    )
    by_extent = bool(bounds)
    shown = _moved(root, grouped, columns, keys)
    if shown is None or not (keys or by_extent or grouped.scalar):
        return None
    n_cells = len(keys) + len(aggregates)
    found: list[Literal] = []
    first = n_cells + len(BOUNDS) * by_extent
    having = None if shown.having is None else lift(shown.having, first, found)
    outputs = tuple(lift(column, first, found, True) for column in shown.columns)
    face = Face(aggregates, having, outputs, tuple(literal.type for literal in found))
    listed, attribute = _regions(rows.plan.condition)
    asked = tuple((_stored(columns[place]), value) for place, value in values.items())
    form = SharedForm(rows.window, tuple(_stored(columns[at]) for at in keys), asked, attribute, by_extent, distinct)
    names = tuple(column.name for column in root.columns)
    return Shareable(form, face, rows.plan, listed, tuple(found), names)


def _column(type_: Type, place: int) -> ColumnRef:
    """A column of the frame of a face; what the query calls it is not part of the face."""
    return ColumnRef(type_, f"c{place}", place)


def _stored(column: Expression | int) -> int:
    assert isinstance(column, ColumnRef), "a column of the stream"
    return column.position


class _FaceParts(NamedTuple):
    having: Expression | None
    columns: tuple[Expression, ...]


def _moved(root: Node, grouped: GroupBy, columns: Sequence[Expression | int], keys: Sequence[int]) -> _FaceParts | None:
    """HAVING and select list over the frame of a face; None if two groups might show equal rows."""
    n_keys, n_cells = grouped.n_keys, len(keys) + len(grouped.aggregates)

    def moved(column: ColumnRef) -> Expression:
        place = column.position
        if place >= n_keys:
            return _column(column.type, place - n_keys + len(keys))
        key = columns[place]
        if isinstance(key, int):
            return _column(column.type, n_cells + key)
        return _column(column.type, keys.index(place)) if isinstance(key, ColumnRef) else key

    refs = [_column(column.type, at) for at, column in enumerate(grouped.columns)]
    having = root.condition if isinstance(root, Select) else None
    outputs = [column.expression for column in root.columns] if isinstance(root, Select) else refs
    expressions = outputs if having is None else [*outputs, having]
    if any(user_functions_of(each) for each in expressions):
        return None
    shown = tuple(replace_columns(each, moved) for each in outputs)
    places = {column.position for column in shown if isinstance(column, ColumnRef)}
    extents = {n_cells + key for key in columns[:n_keys] if isinstance(key, int)}
    if not places.issuperset(range(len(keys))) or (extents and not places & extents):
        return None
    return _FaceParts(None if having is None else replace_columns(having, moved), shown)


def _values(aggregates: tuple[Aggregate, ...], columns: Sequence[Expression | int]) -> dict[int, ValueColumn] | None:
    """The value column of each argument, by its place; None if shared sums cannot give an aggregate."""
    kinds: dict[int, set[str]] = {}
    for aggregate in aggregates:
        if aggregate.kind not in _SHARED or aggregate.distinct or aggregate.filter is not None:
            return None
        if aggregate.argument is not None:
            kinds.setdefault(aggregate.argument, set()).add(aggregate.kind)
    found = {}
    for place, asked in sorted(kinds.items()):
        column = columns[place]
        if not isinstance(column, ColumnRef):
            return None
        type_ = column.type
        if (asked & _SPREAD and type_ is not Type.FLOAT) or (asked & {"min", "max"} and type_ is Type.STRING):
            return None
        # of texts only those that are not NULL are counted, whatever they are
        type_ = Type.INT if type_ is Type.STRING else type_
        found[place] = ValueColumn(type_, bool(asked & _SUMMED), bool(asked & _SPREAD), "min" in asked, "max" in asked)
    return found


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
