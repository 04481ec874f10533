"""From a syntax tree to a bound query: names, parameters, types.

`bind` walks the tree once; with a parsed query at hand it takes some tens of microseconds, so thousands of queries that
differ in their parameters cost one parse. The recursion is bounded by `syntax.MAX_HEIGHT`. Parts that read no column are
computed here (`filters.evaluate.fold`).

The inputs are bound first (`queries/inputs.py`), then the select list (`queries/outputs.py`) and the condition: all ON
conditions and WHERE in one conjunction, for only inner joins exist. Over several inputs it is also split (`queries/split.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from filters.expression import TRUE, Call, Expression, UserFunction
from lineage.schema import Type
from queries.bound import Block, BoundInput, Readable
from queries.inputs import bind_inputs
from queries.joins import Join
from queries.literals import check_params
from queries.outputs import bind_outputs
from queries.scalars import ScalarBinder
from queries.scope import Scope
from queries.split import split
from queries.syntax import ParsedQuery, Syntax

_NO_PARAMS: Mapping[str, object] = {}
_NO_FUNCTIONS: Mapping[str, UserFunction] = {}


def bind(
    parsed: ParsedQuery,
    lookup: Callable[[str], Readable | None],
    params: Mapping[str, object] | None = None,
    functions: Mapping[str, UserFunction] | None = None,
    known_names: Callable[[], list[str]] | None = None,
) -> Block:
    """Give a parsed query its meaning over the streams and tables `lookup` knows.

    `lookup` takes a name in any case; `functions` has lower-case names; `known_names` is asked only for a hint. The bound
    query names its inputs as the text does. Raises `QueryError`.
    """
    given = params or _NO_PARAMS
    if given:
        check_params(parsed, given)
    inputs = bind_inputs(parsed, lookup, given, known_names)
    scalars = ScalarBinder(parsed.source, Scope(parsed.source, inputs), given, functions or _NO_FUNCTIONS)
    defaults: list[str] = []
    if any(item.window.is_stream for item in inputs):
        defaults.append("no window: each row counts once, as it comes")
    columns = bind_outputs(parsed, scalars, defaults)
    condition = _bind_condition(parsed, scalars)
    join = None
    if len(inputs) > 1 or inputs[0].is_table:
        join = split(condition, [item.name for item in inputs], [len(item.schema) for item in inputs])
        defaults.extend(_say_products(join, inputs))
    return Block(inputs, condition, columns, join, tuple(defaults))


def _bind_condition(parsed: ParsedQuery, scalars: ScalarBinder) -> Expression | None:
    conjuncts: list[Expression] = []
    for number, item in enumerate(parsed.from_items):
        if item.on is not None:
            scalars.scope.visible = number + 1
            conjuncts.extend(_bind_conjuncts(item.on, "ON", scalars))
    scalars.scope.visible = len(parsed.from_items)
    if parsed.condition is not None:
        conjuncts.extend(_bind_conjuncts(parsed.condition, "WHERE", scalars))
    if len(conjuncts) < 2:
        return conjuncts[0] if conjuncts else None
    return Call(Type.BOOL, "and", tuple(conjuncts))


def _bind_conjuncts(node: Syntax, what: str, scalars: ScalarBinder) -> tuple[Expression, ...]:
    condition = scalars.fold(scalars.bind_bool(node, what))
    if condition == TRUE:
        return ()
    return condition.args if isinstance(condition, Call) and condition.op == "and" else (condition,)


def _say_products(join: Join, inputs: tuple[BoundInput, ...]) -> list[str]:
    """A remark for inputs that nothing joins: allowed, but rarely meant."""
    parts = [", ".join(inputs[number].alias for number in part) for part in join.parts()]
    if len(parts) == 1:
        return []
    return [f"no condition joins {' with '.join(parts)}: every combination of their rows counts"]
