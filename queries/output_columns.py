"""The output columns of a query and their names.

A column is called by its AS, else by the name of the column it is, else `expr_n` for the n-th item. Over several inputs names
may repeat: `SELECT *`, `SELECT a.x, b.x`. As in DuckDB's `CREATE TABLE AS` the first keeps the name and later ones get the
first free of `x_1`, `x_2`, ...; a name the user wrote with AS is never changed (DuckDB would), so two of those are an error, and
so is any repetition over one input. Names are not case-sensitive.
"""

from __future__ import annotations

from collections.abc import Sequence

from filters.expressions.expression import ColumnRef, Expression, Literal
from lineage.schema import Type
from queries.bound import OutputColumn
from queries.scalars import ScalarBinder
from queries.syntax import Item, SelectQuery, Star


def bind_outputs(query: SelectQuery, scalars: ScalarBinder, defaults: list[str]) -> tuple[OutputColumn, ...]:
    """Bind the select list; assumptions made for the user are added to `defaults`."""
    several = len(query.from_items) > 1
    written: set[str] = set()
    if several:
        written = {item.alias.lower() for item in query.items if isinstance(item, Item) and item.alias is not None}
    columns: list[OutputColumn] = []
    taken: set[str] = set()
    for number, item in enumerate(query.items, start=1):
        for name, expression in _bind_item(item, number, scalars):
            chosen = name
            if several and (isinstance(item, Star) or item.alias is None):
                chosen = _free_name(name, taken | written)
                if chosen != name:
                    defaults.append(f'a second column "{name}" is called "{chosen}"')
            lowered = chosen.lower()
            if lowered in taken:
                fact = f'two columns are called "{chosen}"'
                raise scalars.source.error(fact, item.start, item.end, "duplicate_column", "give one another name: expr AS name")
            taken.add(lowered)
            if expression.type is Type.NULL:
                defaults.append(f'column "{chosen}" is NULL of type int')
                expression = Literal(Type.INT, None)
            columns.append(OutputColumn(chosen, expression))
    return tuple(columns)


def _bind_item(item: Item | Star, number: int, scalars: ScalarBinder) -> Sequence[tuple[str, Expression]]:
    """Return the columns of one item and their default names."""
    if isinstance(item, Star):
        return [(column.name, column) for column in scalars.scope.columns(item)]
    expression = scalars.fold(scalars.bind(item.expression))
    if expression.type is Type.INTERVAL:
        hint = "an interval only moves a timestamp: ts - INTERVAL '5' MINUTE"
        raise scalars.source.error("a column cannot be an interval", item.start, item.end, "type_mismatch", hint)
    return [(item.alias or _name(expression, number), expression)]


def _name(expression: Expression, number: int) -> str:
    # the place of an aggregate has no name of its own (`queries/grouping.py`)
    return (expression.name if isinstance(expression, ColumnRef) else "") or f"expr_{number}"


def _free_name(name: str, taken: set[str]) -> str:
    """The name, or the first of name_1, name_2, ... that nothing else is called."""
    chosen, count = name, 0
    while chosen.lower() in taken:
        count += 1
        chosen = f"{name}_{count}"
    return chosen
