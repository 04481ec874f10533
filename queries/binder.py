"""From a syntax tree to a bound query: names, parameters, types.

`bind` walks the tree once; with a parsed query at hand it takes some tens of microseconds, so thousands of queries that
differ in their parameters cost one parse. The recursion is bounded by `syntax.MAX_HEIGHT`. Parts that read no column are
computed here (`filters.evaluate.fold`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from filters.evaluate import fold
from filters.expression import ColumnRef, Expression, Literal, UserFunction
from lineage.errors import did_you_mean
from lineage.schema import Schema, Type
from queries.bound import BoundQuery, OutputColumn
from queries.literals import check_params, param_value, param_window
from queries.scalars import ScalarBinder
from queries.syntax import Item, ParsedQuery, Star, Syntax, WindowParam

_NO_PARAMS: Mapping[str, object] = {}
_NO_FUNCTIONS: Mapping[str, UserFunction] = {}


def bind(
    parsed: ParsedQuery,
    lookup: Callable[[str], Schema | None],
    params: Mapping[str, object] | None = None,
    functions: Mapping[str, UserFunction] | None = None,
    known_names: Callable[[], list[str]] | None = None,
) -> BoundQuery:
    """Give a parsed query its meaning over the streams `lookup` knows.

    `lookup` takes a name in any case; `functions` has lower-case names; `known_names` is asked only for a hint. The bound
    query names its stream as the text does. Raises `QueryError`.
    """
    source, item = parsed.source, parsed.from_item
    given = params or _NO_PARAMS
    schema = lookup(item.name)
    if schema is None:
        hint = did_you_mean(item.name, known_names() if known_names else [])
        raise source.error(f'stream "{item.name}" does not exist', item.start, item.end, "unknown_stream", hint)
    if given:
        check_params(parsed, given)
    scalars = ScalarBinder(source, schema, item.name, item.alias, given, functions or _NO_FUNCTIONS)
    window = item.window
    if isinstance(window, WindowParam):
        window = param_window(source, window, param_value(source, window, window.name, given))
    defaults: list[str] = []
    if window.is_stream:
        defaults.append("no window: each row counts once, as it comes")
    columns = _bind_columns(parsed, scalars, defaults)
    condition = None if parsed.condition is None else _bind_condition(parsed.condition, scalars)
    return BoundQuery(item.name, window, condition, columns, tuple(defaults))


def _bind_condition(node: Syntax, scalars: ScalarBinder) -> Expression | None:
    condition = _fold(scalars.bind_bool(node, "WHERE"), scalars)
    return None if condition == Literal(Type.BOOL, True) else condition


def _bind_columns(parsed: ParsedQuery, scalars: ScalarBinder, defaults: list[str]) -> tuple[OutputColumn, ...]:
    columns: list[OutputColumn] = []
    taken: set[str] = set()
    for number, item in enumerate(parsed.items, start=1):
        if isinstance(item, Star):
            if item.qualifier is not None:
                scalars.check_qualifier(item, item.qualifier)
            found = [OutputColumn(ref.name, ref) for ref in scalars.all_columns()]
        else:
            found = [_bind_item(item, number, scalars, defaults)]
        for column in found:
            lowered = column.name.lower()
            if lowered in taken:
                fact = f'two columns are called "{column.name}"'
                raise parsed.source.error(fact, item.start, item.end, "duplicate_column", "give one another name: expr AS name")
            taken.add(lowered)
        columns.extend(found)
    return tuple(columns)


def _bind_item(item: Item, number: int, scalars: ScalarBinder, defaults: list[str]) -> OutputColumn:
    expression = _fold(scalars.bind(item.expression), scalars)
    name = item.alias or (expression.name if isinstance(expression, ColumnRef) else f"expr_{number}")
    if expression.type is Type.INTERVAL:
        hint = "an interval only moves a timestamp: ts - INTERVAL '5' MINUTE"
        raise scalars.source.error("a column cannot be an interval", item.start, item.end, "type_mismatch", hint)
    if expression.type is Type.NULL:
        defaults.append(f'column "{name}" is NULL of type int')
        expression = Literal(Type.INT, None)
    return OutputColumn(name, expression)


def _fold(expression: Expression, scalars: ScalarBinder) -> Expression:
    """Compute constant parts; the flag spares the walk for the many queries that have none."""
    if not scalars.has_constant_call:
        return expression
    return fold(expression)
