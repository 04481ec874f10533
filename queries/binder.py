"""From a syntax tree to the tree of nodes that gives its answer: names, parameters, types.

`bind` walks the syntax tree once; with a parsed query at hand a plain one takes some tens of microseconds, so thousands of
queries that differ in their parameters cost one parse. The recursion is bounded by `syntax.MAX_HEIGHT` for expressions,
`MAX_LEVELS` and `MAX_SELECTS` for queries. Parts that read no column are computed here (`filters.expressions.evaluate.fold`).

Of a SELECT the inputs are bound first (`queries/inputs.py`), then the condition: all ON conditions and WHERE in one conjunction,
for only inner joins exist. Then the select list (`queries/output_columns.py`), or the groups (`queries/grouping.py`), and
`queries/select_nodes.py` puts the three together. Set operators are in `queries/sets.py`. A WITH name is bound once, where it is
defined, and its node stands wherever the name is read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from filters.expressions.expression import TRUE, Expression, FunctionCall, Literal, UserFunction
from queries.bound import NOWHERE, BoundInput, Readable
from queries.grouping import GroupBinder
from queries.inputs import Derived, Input, InputBinder
from queries.literals import check_params
from queries.nodes import Distinct, Node, ToStream
from queries.output_columns import bind_outputs
from queries.scalars import Known, ScalarBinder
from queries.scope import Scope
from queries.select_nodes import conjunction, read_inputs
from queries.sets import combine, stream_error
from queries.sql_text import SqlText
from queries.syntax import (
    MAX_LEVELS,
    MAX_SELECTS,
    ParsedQuery,
    QuerySyntax,
    SelectQuery,
    SetQuery,
    StreamQuery,
    Syntax,
    WithQuery,
)

_NO_PARAMS: Mapping[str, object] = {}
_NO_FUNCTIONS: Mapping[str, UserFunction] = {}
_NO_LITERALS: Mapping[str, Literal] = {}
_NO_NAMES: Mapping[str, Derived] = {}


def bind(
    parsed: ParsedQuery,
    lookup: Callable[[str], Readable | None],
    params: Mapping[str, object] | None = None,
    functions: Mapping[str, UserFunction] | None = None,
    known_names: Callable[[], list[str]] | None = None,
    literals: Mapping[str, Literal] | None = None,
) -> Node:
    """Give a parsed query its meaning over the streams, tables and running queries `lookup` knows.

    `lookup` takes a name in any case; `functions` has lower-case names; `known_names` is asked only for a hint. The tree names
    what it reads as the text does. `literals` stand for parameters in expressions. Raises `QueryError`.
    """
    given = params or _NO_PARAMS
    if given:
        check_params(parsed, given)
    inputs = InputBinder(parsed.source, lookup, given, known_names)
    known = Known(given, literals or _NO_LITERALS, functions or _NO_FUNCTIONS)
    return _QueryBinder(parsed.source, inputs, known).bind(parsed.query, _NO_NAMES).node


class _QueryBinder:
    """Binds the queries of one text."""

    def __init__(self, source: SqlText, inputs: InputBinder, known: Known) -> None:
        self._source = source
        self._inputs = inputs
        self._known = known

    def bind(self, query: QuerySyntax, names: Mapping[str, Derived]) -> Derived:
        """A query that sees these WITH names, given in lower case."""
        if isinstance(query, SelectQuery):
            return self._select(query, names)
        if isinstance(query, SetQuery):
            left, right = self.bind(query.left, names), self.bind(query.right, names)
            node = combine(self._source, query, left, right)
            return self._bounded(query, Derived(node, max(left.levels, right.levels), left.n_selects + right.n_selects))
        if isinstance(query, StreamQuery):
            return self._stream(query, self.bind(query.query, names))
        return self._with(query, names)

    def _with(self, query: WithQuery, names: Mapping[str, Derived]) -> Derived:
        known = dict(names)
        for item in query.names:
            known[item.name.lower()] = self.bind(item.query, known)
        return self.bind(query.query, known)

    def _stream(self, query: StreamQuery, inner: Derived) -> Derived:
        word = query.kind.upper()
        if inner.node.is_stream:
            if query.kind == "istream":
                return inner
            fact = f"{word} needs a relation, and {inner.stream} has no window"
            raise self._source.error(fact, query.start, query.end, "missing_window", "a stream only gains rows: leave it out")
        span = (query.start, query.end)
        return Derived(ToStream(query.kind, inner.node), inner.levels, inner.n_selects, f"what {word} gives", span)

    def _select(self, query: SelectQuery, names: Mapping[str, Derived]) -> Derived:
        inputs, derived = self._inputs.bind(query, names, lambda inner: self.bind(inner, names))
        scalars = ScalarBinder(self._source, Scope(self._source, inputs), self._known)
        defaults: list[str] = []
        stream, span = _find_stream(inputs, defaults)
        what = "GROUP BY" if query.group_by else "an aggregate" if query.is_grouped else "DISTINCT"
        if stream and (query.is_grouped or query.distinct):
            raise stream_error(self._source, stream, span, what)
        node: Node
        if query.is_grouped:
            node = GroupBinder(query, inputs, scalars).bind(self._condition(query, scalars), defaults)
        else:
            columns = bind_outputs(query, scalars, defaults)
            node = read_inputs(inputs, self._condition(query, scalars), columns, defaults)
        if query.distinct:
            node = Distinct(node)
        levels = 1 + max([inner.levels for inner in derived], default=0)
        return self._bounded(query, Derived(node, levels, 1 + sum([inner.n_selects for inner in derived]), stream, span))

    def _condition(self, query: SelectQuery, scalars: ScalarBinder) -> Expression | None:
        """All ON conditions and WHERE."""
        conjuncts: list[Expression] = []
        for number, item in enumerate(query.from_items):
            if item.on is not None:
                scalars.scope.visible = number + 1
                conjuncts.extend(_bind_conjuncts(item.on, "ON", scalars))
        scalars.scope.visible = len(query.from_items)
        if query.condition is not None:
            conjuncts.extend(_bind_conjuncts(query.condition, "WHERE", scalars))
        return conjunction(conjuncts)

    def _bounded(self, query: QuerySyntax, derived: Derived) -> Derived:
        """The same, within the bounds of a query whose names are read wherever they stand."""
        if derived.levels > MAX_LEVELS:
            fact = f"queries stand inside each other deeper than {MAX_LEVELS} levels"
            hint = "submit an inner one by itself, with a name"
            raise self._source.error(fact, query.start, query.end, "query_too_deep", hint)
        if derived.n_selects > MAX_SELECTS:
            fact = f"the query has more than {MAX_SELECTS} SELECTs, those of WITH counted wherever they are read"
            hint = "submit a part by itself, with a name"
            raise self._source.error(fact, query.start, query.end, "query_too_large", hint)
        return derived


def _find_stream(inputs: tuple[Input, ...], defaults: list[str]) -> tuple[str, tuple[int, int]]:
    """The input that makes a SELECT a stream, in words, and where it stands; nothing if it is a relation."""
    for item in inputs:
        if isinstance(item, BoundInput):
            if item.window.is_stream:
                defaults.append("no window: each row counts once, as it comes")
                return f'stream "{item.name}"', item.span
        elif item.node.is_stream:
            return f'{item.kind} "{item.alias}", which is a stream,', item.span
    return "", NOWHERE


def _bind_conjuncts(node: Syntax, what: str, scalars: ScalarBinder) -> tuple[Expression, ...]:
    scalars.clause = what
    condition = scalars.fold(scalars.bind_bool(node, what))
    if condition == TRUE:
        return ()
    return condition.args if isinstance(condition, FunctionCall) and condition.op == "and" else (condition,)
