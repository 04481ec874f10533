"""How a query with operators is run, as data: its operators, what flows on each edge between them, and what each keeps."""

from __future__ import annotations

from typing import Any

from eddy.catalog import Catalog
from eddy.explain import explain_join, explain_plan
from eddy.operation import Operation
from eddy.policies.base import Policy
from eddy.query import JoinPlan, TreePlan
from eddy.shared_operation import SharedOperation
from eddy.strategies import SCANNING, SENDING
from eddy.tree_query import TreeQuery
from queries.tree import Block, NamedQuery, Node, SetOperation, ToStream, walk
from windows import patterns


def explain_tree(plan: TreePlan, catalog: Catalog, policy: Policy, expiry: str, query: TreeQuery | None) -> dict[str, Any]:
    """The plan that a query has or would get."""
    nodes = list(dict.fromkeys(walk(plan.root)))
    numbers = {node: k for k, node in enumerate(nodes)}
    blocks = {f"block {numbers[node]}": _block(plan, node, catalog, policy) for node in nodes if isinstance(node, Block)}
    operation = None if query is None else query.operation
    return {
        "kind": "stream" if plan.is_stream else "relation",
        "streams": [catalog.input(name).name for name in plan.streams],
        "queries": list(plan.queries),
        "timeline": plan.timeline,
        "columns": {column.name: column.type.value for column in plan.outputs},
        "operators": [_operator(node, numbers) for node in nodes],
        "blocks": blocks,
        "modules": list(dict.fromkeys(module for block in blocks.values() for module in block["modules"])),
        "policy": policy.name,
        "expiry": expiry,
        "update_pattern": plan.root.update_pattern,
        "edges": [_edge(node, above, numbers, expiry) for above in nodes for node in above.children]
        + [_edge(plan.root, None, numbers, expiry)],
        "storage": {"own": _own_state(operation), "bytes": 0 if operation is None else operation.bytes},
        **({"shared": operation.path} if isinstance(operation, SharedOperation) else {}),
        "defaults": list(plan.defaults),
    }


def _own_state(operation: Operation | SharedOperation | None) -> str:
    return "what was last shown" if isinstance(operation, SharedOperation) else "operators and answer"


def _block(plan: TreePlan, block: Block, catalog: Catalog, policy: Policy) -> dict[str, Any]:
    found = plan.blocks[block]
    if isinstance(found, JoinPlan):
        return explain_join(found, catalog, policy, None)
    source = catalog.sources[found.stream]
    return explain_plan(found, source, policy, source.held.get((found.window, found.condition)))


def _name(node: Node, numbers: dict[Node, int]) -> str:
    return f"{_word(node)} {numbers[node]}"


def _word(node: Node) -> str:
    if isinstance(node, SetOperation):
        return f"{node.kind} all" if node.all else node.kind
    if isinstance(node, ToStream):
        return node.kind
    if isinstance(node, NamedQuery):
        return f"query {node.name}"
    words = {"Block": "block", "JoinNode": "join", "GroupBy": "group-by"}
    name = type(node).__name__
    return words.get(name, name.lower())


def _operator(node: Node, numbers: dict[Node, int]) -> dict[str, Any]:
    return {
        "name": _name(node, numbers),
        "inputs": [_name(child, numbers) for child in node.children],
        "cases": list(node.cases),
        "columns": [column.name for column in node.columns],
    }


def _edge(node: Node, above: Node | None, numbers: dict[Node, int], expiry: str) -> dict[str, Any]:
    return {
        "from": _name(node, numbers),
        "to": "result" if above is None else _name(above, numbers),
        "update_pattern": node.update_pattern,
        "ends_known": node.ends_known,
        "ends": _ends(node, expiry),
    }


def _ends(node: Node, expiry: str) -> str:
    """How the reader of an edge learns of ends."""
    if node.is_stream or node.update_pattern == patterns.MONOTONIC:
        return "none"
    if not node.ends_known or node.update_pattern == patterns.STRICT or expiry in SENDING:
        return "each as a negative row"
    if expiry in SCANNING:
        return "by scanning a list"
    return "from a FIFO" if node.update_pattern == patterns.WEAKEST else "from a calendar"
