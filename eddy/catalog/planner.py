"""Planning of query texts: parse, bind, normal form.

The last thousand texts keep their parse and, if they have one, their prepared form (`queries/prepared.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from eddy.base.plans import JoinPlan, Plan, TreePlan
from eddy.catalog.catalog import Catalog
from eddy.catalog.definitions import MAIN
from filters.expressions.predicate import normalise
from lineage.errors import EddyError, QueryError
from queries.binder import bind
from queries.bound import Block, BoundInput, OutputColumn
from queries.forms import forms_of
from queries.guards import check_length
from queries.joins import Join
from queries.nodes import LMerge, NamedQuery, Node, Slide, Window, column_refs
from queries.parser import parse
from queries.prepared import PreparedQuery, prepare
from queries.split import split
from queries.sql_text import SqlText
from queries.syntax import ParsedQuery
from queries.tree import defaults_of, leaves, mapped, union_bits, walk
from windows.spec import WindowKind, WindowSpec

#: Texts that are remembered.
_TEXTS = 1024
#: Bits of an id that UNION ALLs may take: rows of a stream keep 2**42 numbers of their own.
MAX_UNION_BITS = 20
_NO_PARAMS: Mapping[str, Any] = {}


@dataclass(slots=True)
class _Text:
    """A query text with its parse and prepared form."""

    parsed: ParsedQuery
    #: the prepared form and the plan it was made with
    prepared: tuple[PreparedQuery, Plan] | None = None


class Planner:
    """Makes the plans of one engine."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._texts: dict[str, _Text] = {}

    def __getstate__(self) -> dict[str, object]:
        """All but the parsed texts, which are parsed again when needed."""
        return {"_catalog": self._catalog, "_texts": {}}

    def over(self, catalog: Catalog) -> Planner:
        """A planner over another catalog, which shares the parsed texts."""
        other = Planner(catalog)
        other._texts = self._texts
        return other

    def plan(self, sql: str, params: Mapping[str, Any] | None) -> Plan | JoinPlan | TreePlan:
        """The plan of a query; raises `QueryError` and changes nothing if the text is wrong."""
        if not isinstance(sql, str):
            raise QueryError(f"a query is a text, not {type(sql).__name__}", code="not_a_text", hint='"SELECT ... FROM stream"')
        if params is not None and not isinstance(params, Mapping):
            raise EddyError("params is not a mapping", code="bad_option", hint='{"low": 5} for :low')
        check_length(SqlText(sql))
        text = self._text(sql)
        if text.prepared is not None:
            prepared, plan = text.prepared
            # the stream of that name may be another one by now
            if prepared.readable is self._catalog.readable(plan.stream):
                condition = prepared.condition(params or _NO_PARAMS)
                if condition is not None:
                    return Plan(plan.stream, plan.window, condition, plan.outputs, plan.defaults)
        return self._bind(text, params)

    def _bind(self, text: _Text, params: Mapping[str, Any] | None) -> Plan | JoinPlan | TreePlan:
        catalog, parsed = self._catalog, text.parsed
        node = bind(parsed, catalog.readable, params, catalog.functions, catalog.input_names)
        if not isinstance(node, Block):
            return self._tree(parsed, node)
        plan = self._block(parsed, node, clauses_apart=True)
        if isinstance(plan, Plan):
            prepared = prepare(parsed, node)
            text.prepared = None if prepared is None else (prepared, plan)
        return plan

    def _block(self, parsed: ParsedQuery, block: Block, clauses_apart: bool) -> Plan | JoinPlan:
        """The plan of a block; `clauses_apart`: disjunctions over several attributes may have slots of their own."""
        join = block.join
        if join is None and block.inputs[0].ends_early:
            # more than the clock ends its rows: that is told by a group, here of one input
            join = split(block.condition, [block.stream], [len(block.inputs[0].schema)])
        if join is not None:
            return self._join(parsed, block, join)
        source = self._catalog.sources[block.stream.lower()]
        outputs = source.shared_outputs(block.columns)
        condition = normalise(block.condition, clauses_apart=clauses_apart)
        return Plan(source.name.lower(), block.window, condition, outputs, block.defaults)

    def _join(self, parsed: ParsedQuery, bound: Block, join: Join) -> JoinPlan:
        self._check_timeline(parsed, bound)
        conditions = tuple(normalise(own, clauses_apart=False) for own in join.own)
        return JoinPlan(
            join.names, tuple(item.window for item in bound.inputs), conditions, join,
            bound.columns, bound.update_pattern, bound.defaults,
        )  # fmt: skip

    def _tree(self, parsed: ParsedQuery, bound: Node) -> TreePlan:
        timeline = self._check_timeline(parsed, bound)
        if union_bits(bound) > MAX_UNION_BITS:
            fact = "UNION ALLs stand above each other in too many levels"
            hint = "write them in one: a UNION ALL b UNION ALL c"
            raise parsed.source.error(fact, 0, len(parsed.source.text), "query_too_deep", hint)
        written = mapped(bound, _with_extent)
        forms = forms_of(written)
        root = forms.forms[0].root
        blocks = {node: self._block(parsed, node, clauses_apart=False) for node in walk(root) if isinstance(node, Block)}
        read = list(leaves(root))
        return TreePlan(
            root if written == root else written, forms, blocks,
            tuple(dict.fromkeys(leaf.name.lower() for leaf in read if isinstance(leaf, BoundInput))),
            tuple(dict.fromkeys(leaf.name.lower() for leaf in read if isinstance(leaf, NamedQuery))),
            timeline,
            tuple(OutputColumn(ref.name, ref) for ref in column_refs(root.columns)),
            defaults_of(root),
        )  # fmt: skip

    def _check_timeline(self, parsed: ParsedQuery, node: Node) -> str:
        """The name of the timeline that all inputs of a tree are on; raises if there are several."""
        first: tuple[str, str] | None = None
        for leaf in leaves(node):
            line = self._catalog.timeline_name(leaf.name)
            if line is None:
                continue
            if first is not None and line != first[1]:
                fact = f'"{leaf.name}" is on timeline "{line}", not on "{first[1]}"'
                raise parsed.source.error(fact, *leaf.span, "two_timelines", "a query reads streams of one timeline")
            first = first or (leaf.name, line)
        return MAIN if first is None else first[1]

    def _text(self, sql: str) -> _Text:
        found = self._texts.get(sql)
        if found is None:
            found = _Text(parse(sql))
            if len(self._texts) >= _TEXTS:
                del self._texts[next(iter(self._texts))]
            self._texts[sql] = found
        return found


def _with_extent(node: Node) -> Node:
    """The block below a SLIDE with a window long enough for the extent shown, which stays until the next boundary.

    The blocks below a merge of streams have the window that stands over it; where rows are counted, or where there is none, they
    give each row as it comes.
    """
    if isinstance(node, LMerge) and node.is_stream and not node.windowed:
        return _held(node, WindowSpec.timed())
    if not isinstance(node, Slide | Window):
        return node
    if isinstance(node.child, LMerge) and node.child.windowed:
        return replace(node, child=_held(node.child, _kept(node.window)))
    if isinstance(node, Window) or node.of_query:
        return node
    assert isinstance(node.child, Block), "a stream as it is pushed is a block"
    return replace(node, child=_holding(node.child, _kept(node.window)))


def _kept(window: WindowSpec) -> WindowSpec:
    """The window of a stream that holds the rows of a window above it."""
    if window.kind is WindowKind.ROWS:
        return WindowSpec.timed()
    return WindowSpec.kept(window) if window.kind is WindowKind.SLIDE else window


def _held(merge: LMerge, window: WindowSpec) -> LMerge:
    inputs = tuple(_holding(item, window) if isinstance(item, Block) else item for item in merge.inputs)
    return replace(merge, inputs=inputs)


def _holding(block: Block, window: WindowSpec) -> Block:
    return replace(block, inputs=(replace(block.inputs[0], window=window),))
