"""GROUP BY, aggregates and HAVING.

A grouped SELECT becomes three nodes:

    the rows       keys, then the arguments and filters of the aggregates, as columns      `queries/select_nodes.py`
    GroupBy        one row a group: keys, then aggregates
    Select         HAVING and the select list over those; left out if they add nothing

While the select list and HAVING are bound, an aggregate is a column behind all columns of the inputs (its *place*); then each
expression is put over the columns of the groups: what equals a key is that key, an aggregate's place is its column, and any
other column of an input is an error. Aggregates, keys and arguments that are written twice are computed once.

A key is an expression, a name of the select list where no column has that name, or the number of an item, as in DuckDB.
"""

from __future__ import annotations

from dataclasses import dataclass

from filters.expressions.expression import TRUE, ColumnRef, Expression, FunctionCall, Literal, UserCall
from lineage.errors import QueryError
from lineage.schema import Type
from queries.bound import OutputColumn
from queries.inputs import Input
from queries.nodes import Aggregate, GroupBy, Node
from queries.output_columns import bind_outputs
from queries.scalars import ScalarBinder
from queries.select_nodes import read_inputs, select
from queries.syntax import Aggregated, Constant, Convert, Item, Name, Param, SelectQuery, Star, Syntax

_NUMBERS = ("sum", "avg", "stddev", "variance", "median")
#: Types of results that are not the type of the argument.
_RESULTS = {"count": Type.INT, "avg": Type.FLOAT, "stddev": Type.FLOAT, "variance": Type.FLOAT, "median": Type.FLOAT}
_UNGROUPED = "put it into GROUP BY, or into an aggregate such as MAX or LAST"


@dataclass(frozen=True, slots=True)
class _Wanted:
    """One aggregate over expressions of the inputs."""

    kind: str
    argument: Expression | None
    distinct: bool
    filter: Expression | None
    type: Type


class GroupBinder:
    """Binds one grouped SELECT over the inputs in the scope of `scalars`."""

    def __init__(self, query: SelectQuery, inputs: tuple[Input, ...], scalars: ScalarBinder) -> None:
        self._query = query
        self._inputs = inputs
        self._scalars = scalars
        #: position of the first aggregate's place
        self._places = sum(len(item.schema) for item in inputs)
        #: in the order of their columns; dicts for their order without repetition
        self._wanted: dict[_Wanted, int] = {}
        self._keys: dict[Expression, int] = {}

    def bind(self, condition: Expression | None, defaults: list[str]) -> Node:
        """The node of the whole SELECT but its DISTINCT; `condition` is that of WHERE and ON."""
        query, scalars = self._query, self._scalars
        keys = [self._bind_key(node) for node in query.group_by]
        scalars.aggregate, scalars.clause = self._bind_aggregate, "the select list"
        columns = bind_outputs(query, scalars, defaults)
        having = self._bind_having()
        scalars.aggregate = None
        # keys in the order in which the select list shows them: then it often adds nothing
        shown = [column.expression for column in columns]
        self._keys = {key: at for at, key in enumerate(dict.fromkeys([key for key in shown if key in keys] + keys))}
        child_columns, aggregates = self._child_columns()
        child = read_inputs(self._inputs, condition, child_columns, defaults)
        self._check_unbounded(child)
        outputs = tuple(OutputColumn(column.name, self._over_groups(column.expression)) for column in columns)
        over = None if having is None else self._over_groups(having)
        scalar = not query.group_by
        refs = self._group_refs(aggregates)
        if over is None and [column.expression for column in outputs] == refs:
            return GroupBy(child, len(self._keys), aggregates, scalar, tuple(column.name for column in outputs))
        names = tuple(ref.name for ref in refs)
        return select(GroupBy(child, len(self._keys), aggregates, scalar, names), over, outputs)

    # -- keys

    def _bind_key(self, node: Syntax) -> Expression:
        scalars = self._scalars
        scalars.clause = "GROUP BY"
        chosen = node
        if isinstance(node, Constant) and node.literal.type is Type.INT:
            found = self._numbered(node)
            if isinstance(found, ColumnRef):
                return found
            chosen = found
        elif isinstance(node, Name) and node.qualifier is None and not scalars.scope.has(node.name):
            chosen = _aliases(self._query).get(node.name.lower(), node)
        key = scalars.fold(scalars.bind(chosen))
        if key.type is Type.INTERVAL:
            raise self._error(node, "a key cannot be an interval", "type_mismatch", "an interval only moves a timestamp")
        return Literal(Type.INT, None) if key.type is Type.NULL else key

    def _numbered(self, node: Constant) -> Syntax | ColumnRef:
        """The item of the select list with that number, from 1."""
        items: list[Syntax | ColumnRef] = []
        for item in self._query.items:
            if isinstance(item, Star):
                items.extend(self._scalars.scope.columns(item))
            else:
                items.append(item.expression)
        number = node.literal.value
        assert isinstance(number, int)
        if not 1 <= number <= len(items):
            fact = f"GROUP BY {number}: the select list has {len(items)} column{'' if len(items) == 1 else 's'}"
            raise self._error(node, fact, "bad_group", "a number is the place of a column in the select list, from 1")
        return items[number - 1]

    # -- aggregates

    def _bind_aggregate(self, node: Aggregated) -> Expression:
        """The place of an aggregate."""
        scalars = self._scalars
        outside, known = (scalars.aggregate, scalars.clause), scalars.aliases
        scalars.aggregate, scalars.clause, scalars.aliases = None, "an aggregate", {}
        argument = None if node.arg is None else scalars.fold(scalars.bind(node.arg))
        condition = None
        if node.filter is not None:
            scalars.clause = "FILTER"
            condition = scalars.fold(scalars.bind_bool(node.filter, "FILTER"))
            if condition.type is Type.NULL:
                condition = Literal(Type.BOOL, None)
        (scalars.aggregate, scalars.clause), scalars.aliases = outside, known
        wanted = self._want(node, argument, None if condition == TRUE else condition)
        number = self._wanted.setdefault(wanted, len(self._wanted))
        return ColumnRef(wanted.type, "", self._places + number)

    def _want(self, node: Aggregated, argument: Expression | None, condition: Expression | None) -> _Wanted:
        kind = node.name
        if argument is None:
            return _Wanted(kind, None, False, condition, Type.INT)
        if argument.type is Type.NULL:
            argument = Literal(Type.INT, None)
        if kind == "sum" and argument.type is Type.BOOL:
            argument = FunctionCall(Type.INT, "cast", (argument,))
        if argument.type is Type.INTERVAL or (kind in _NUMBERS and not argument.type.numeric):
            wanted = "a number" if kind in _NUMBERS else "a value"
            fact = f"{kind.upper()} needs {wanted}, not a value of type {argument.type.value}"
            assert node.arg is not None
            raise self._error(node.arg, fact, "type_mismatch", "MIN, MAX, FIRST, LAST and COUNT take any column")
        if kind == "count" and not node.distinct and isinstance(argument, Literal) and argument.value is not None:
            argument = None
        type_ = _RESULTS.get(kind) or (argument.type if argument is not None else Type.INT)
        return _Wanted(kind, argument, node.distinct, condition, type_)

    def _bind_having(self) -> Expression | None:
        query, scalars = self._query, self._scalars
        if query.having is None:
            return None
        scalars.clause, scalars.aliases = "HAVING", _aliases(query)
        condition = scalars.fold(scalars.bind_bool(query.having, "HAVING"))
        scalars.aliases = {}
        return None if condition == TRUE else condition

    def _child_columns(self) -> tuple[tuple[OutputColumn, ...], tuple[Aggregate, ...]]:
        """Return the columns that the groups read, and the aggregates over them."""
        columns = [OutputColumn(f"key_{at + 1}", key) for key, at in self._keys.items()]
        place: dict[Expression, int] = {}

        def column(expression: Expression | None) -> int | None:
            if expression is None:
                return None
            if expression not in place:
                place[expression] = len(columns)
                columns.append(OutputColumn(f"value_{len(place)}", expression))
            return place[expression]

        aggregates = [
            Aggregate(item.kind, column(item.argument), item.distinct, column(item.filter), item.type) for item in self._wanted
        ]
        return tuple(columns), tuple(aggregates)

    def _check_unbounded(self, child: Node) -> None:
        """Refuse aggregates that would keep every row for ever."""
        if not child.grows:
            return
        for node in _aggregated_in(self._query):
            if node.name == "median" or node.distinct:
                what = "MEDIAN" if node.name == "median" else "COUNT(DISTINCT ..)"
                fact = f"{what} cannot be kept over [RANGE UNBOUNDED]"
                hint = "it would keep every value for ever: choose [RANGE 5 MINUTES], [ROWS 100] or [NOW]"
                raise self._error(node, fact, "unbounded_aggregate", hint)

    # -- over the groups

    def _group_refs(self, aggregates: tuple[Aggregate, ...]) -> list[ColumnRef]:
        """The columns of the GroupBy as expressions above it."""
        keys = [ColumnRef(key.type, f"key_{at + 1}", at) for key, at in self._keys.items()]
        first = len(keys)
        return [*keys, *(self._aggregate_ref(item.type, first, at) for at, item in enumerate(aggregates))]

    def _aggregate_ref(self, kind: Type, n_keys: int, number: int) -> ColumnRef:
        return ColumnRef(kind, f"aggregate_{number + 1}", n_keys + number)

    def _over_groups(self, expression: Expression) -> Expression:
        """An expression over the inputs and the places, put over the columns of the groups."""
        at = self._keys.get(expression)
        if at is not None:
            return ColumnRef(expression.type, f"key_{at + 1}", at)
        if isinstance(expression, Literal):
            return expression
        if isinstance(expression, ColumnRef):
            if expression.position < self._places:
                raise self._ungrouped(expression)
            return self._aggregate_ref(expression.type, len(self._keys), expression.position - self._places)
        args = tuple([self._over_groups(arg) for arg in expression.args])
        if isinstance(expression, UserCall):
            return UserCall(expression.type, expression.function, args)
        return FunctionCall(expression.type, expression.op, args)

    def _ungrouped(self, column: ColumnRef) -> QueryError:
        """The error for a column that differs inside a group, at the first place where it stands."""
        query, scope = self._query, self._scalars.scope
        places: list[Syntax | Star] = []
        for item in query.items:
            places.extend([item] if isinstance(item, Star) else _outside_aggregates(item.expression))
        if query.having is not None:
            places.extend(_outside_aggregates(query.having))
        for place in places:
            if isinstance(place, Star):
                found = column in scope.columns(place)
            else:
                known = isinstance(place, Name) and (place.qualifier is not None or scope.has(place.name))
                found = known and isinstance(place, Name) and scope.column(place) == column
            if found:
                fact = f'column "{column.name}" is neither grouped nor aggregated'
                return self._scalars.source.error(fact, place.start, place.end, "not_grouped", _UNGROUPED)
        raise AssertionError(f"{column} stands nowhere")

    def _error(self, node: Syntax, fact: str, code: str, hint: str) -> QueryError:
        return self._scalars.source.error(fact, node.start, node.end, code, hint)


def _aliases(query: SelectQuery) -> dict[str, Syntax]:
    return {item.alias.lower(): item.expression for item in query.items if isinstance(item, Item) and item.alias is not None}


def _parts(node: Syntax) -> tuple[Syntax, ...]:
    if isinstance(node, Constant | Param | Name):
        return ()
    if isinstance(node, Convert):
        return (node.arg,)
    if isinstance(node, Aggregated):
        return tuple(part for part in (node.arg, node.filter) if part is not None)
    return node.args


def _outside_aggregates(node: Syntax) -> list[Syntax]:
    """All nodes of an expression that are evaluated for a group, not for a row of it; in the order of the text."""
    found: list[Syntax] = []
    stack = [node]
    while stack:
        part = stack.pop()
        if not isinstance(part, Aggregated):
            found.append(part)
            stack.extend(reversed(_parts(part)))
    return found


def _aggregated_in(query: SelectQuery) -> list[Aggregated]:
    """All aggregates of the select list and HAVING."""
    stack = [item.expression for item in query.items if isinstance(item, Item)]
    if query.having is not None:
        stack.append(query.having)
    found: list[Aggregated] = []
    while stack:
        part = stack.pop()
        if isinstance(part, Aggregated):
            found.append(part)
        stack.extend(_parts(part))
    return sorted(found, key=lambda node: node.start)
