"""The key of a template: what of a query stands above the conditions of its blocks, with the constants taken out.

    key         forms, blocks (streams, windows, select lists), `emit`, expiry word: queries with equal keys are one template
    not in it   conditions of blocks, names of outputs, constants of selections above that can be columns
                (`filters/expressions/parameters.py`)
    constants   those, in the order of the forms' nodes; their types are in the key

A query that reads others by name, or a merge, is a template of its own: what it reads has no seats.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, NamedTuple

from eddy.base.plans import Plan, TreePlan
from filters.expressions.expression import ColumnRef, Expression, Literal, replace_columns
from filters.expressions.parameters import lift
from lineage.identity import ById
from lineage.schema import Type
from queries.nodes import (
    Block,
    Distinct,
    GroupBy,
    JoinNode,
    LMerge,
    NamedQuery,
    Node,
    Select,
    SetOperation,
    Slide,
    ToStream,
    Window,
)

#: The position of the first constant, where an expression reads it as a column: behind all columns there can be.
FIRST_CONSTANT = 1 << 20


class LiftedSelect(NamedTuple):
    """The expressions of a selection, which read constants as columns."""

    condition: Expression | None
    columns: tuple[Expression, ...]


class LiftedPlan(NamedTuple):
    """A plan with its constants taken out."""

    key: Hashable
    #: by selection of any form
    selects: ById[Node, LiftedSelect]
    types: tuple[Type, ...]
    constants: tuple[Any, ...]


def lifted(plan: TreePlan, emit: str, word: str, query: int, sharing: bool) -> LiftedPlan:
    """The key of the template of a query, by its number, and what the key does not say; without `sharing` it has its own."""
    lifting = _Lift(plan)
    forms = tuple(tuple(lifting.node(node) for node in lifting.entered(form.nodes)) for form in plan.forms.forms)
    blocks = tuple(_block(plan, block) for block in lifting.blocks)
    own = query if lifting.reads_queries or not sharing else None
    types = tuple(literal.type for literal in lifting.constants)
    key = (emit, word, plan.timeline, forms, blocks, types, own)
    return LiftedPlan(key, lifting.selects, types, tuple(literal.value for literal in lifting.constants))


def blocks_of(plan: TreePlan) -> list[Block]:
    """The blocks of a plan, each once, in an order that is the same for all plans of a template."""
    return [node for node in plan.forms.forms[0].nodes if isinstance(node, Block)]


def _block(plan: TreePlan, block: Block) -> Hashable:
    found = plan.blocks[block]
    columns = tuple(_nameless(column.expression) for column in found.outputs)
    facts = (block.update_pattern, block.ends_known, block.is_stream)
    if isinstance(found, Plan):
        return found.stream, found.window, columns, facts
    return found.streams, found.windows, columns, facts


def _nameless(expression: Expression) -> Expression:
    """An expression that does not say what the columns are called."""
    return replace_columns(expression, lambda ref: ColumnRef(ref.type, "", ref.position))


class _Lift:
    """Takes the constants out of the nodes of a plan, one after the other."""

    def __init__(self, plan: TreePlan) -> None:
        self.blocks = blocks_of(plan)
        self.constants: list[Literal] = []
        self.selects: ById[Node, LiftedSelect] = ById()
        self.reads_queries = False
        self._block_numbers = ById((block, number) for number, block in enumerate(self.blocks))
        self._numbers: ById[Node, int] = ById()

    def entered(self, nodes: tuple[Node, ...]) -> tuple[Node, ...]:
        """The nodes of a form, which from now on are known by their numbers."""
        self._numbers = ById((node, number) for number, node in enumerate(nodes))
        return nodes

    def node(self, node: Node) -> Hashable:
        """A node without its constants; children are numbers."""
        children = tuple(self._numbers[child] for child in node.children)
        match node:
            case Block():
                return "block", self._block_numbers[node]
            case Select(condition=condition, columns=columns):
                return "select", children, self._select(node, condition, [column.expression for column in columns])
            case GroupBy(n_keys=n_keys, aggregates=aggregates, scalar=scalar):
                return "group", children, n_keys, aggregates, scalar
            case Distinct():
                return "distinct", children
            case SetOperation(kind=kind, all=counts):
                return kind, counts, children
            case Slide(window=window, bounds=bounds, of_query=of_query):
                return "slide", children, window, bounds, of_query
            case Window(window=window):
                return "window", children, window
            case ToStream(kind=kind):
                return kind, children
            case JoinNode(frozen=frozen, condition=condition, join=join, columns=columns):
                shown = tuple(_nameless(column.expression) for column in columns)
                met = None if condition is None else _nameless(condition)
                return "join", children, frozen, met, join.equalities, shown
            case NamedQuery() | LMerge():
                self.reads_queries = True
                return "named"

    def _select(self, node: Node, condition: Expression | None, columns: list[Expression]) -> Hashable:
        found = self.selects.get(node)
        if found is None:
            met = None if condition is None else lift(condition, FIRST_CONSTANT, self.constants)
            shown = tuple(lift(column, FIRST_CONSTANT, self.constants, whole=True) for column in columns)
            found = self.selects[node] = LiftedSelect(met, shown)
        met = None if found.condition is None else _nameless(found.condition)
        return met, tuple(_nameless(column) for column in found.columns)
