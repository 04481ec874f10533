"""`explain` and LMerge: the case of a merged stream, and the case that a query would have as an input of a merge."""

from __future__ import annotations

from typing import Any

from eddy.base.plans import JoinPlan, Plan, TreePlan
from eddy.catalog.catalog import Catalog
from eddy.merges.cases import explain_merge
from eddy.merges.merge_intake import MergeIntake
from filters.expressions.expression import columns_of
from lmerge.streams.properties import choose_case, infer
from queries.nodes import Distinct, GroupBy, Node, Select, SetOperation, Slide, ToStream


def merge_facts(plan: Plan | JoinPlan | TreePlan, catalog: Catalog) -> dict[str, Any]:
    """The LMerge case of a query as an input, with its properties and the reason, and the merged streams that it reads."""
    inferred = infer(_kind(plan))
    chosen = choose_case(inferred.properties)
    names = (plan.stream,) if isinstance(plan, Plan) else plan.streams
    intakes = [catalog.sources[name].intake for name in names if name in catalog.sources]
    merges = {one.stream.name: explain_merge(one.stream) for one in intakes if isinstance(one, MergeIntake)}
    shown = {"case": chosen.case, "properties": chosen.properties.words(), "why": f"{inferred.why}: {chosen.why}"}
    return {"lmerge": shown, **({"merges": merges} if merges else {})}


def _kind(plan: Plan | JoinPlan | TreePlan) -> str:
    """The kind of a query, a word of `lmerge/streams/properties.py`."""
    if isinstance(plan, TreePlan):
        return _kind_of(plan.root)
    is_stream = plan.window.is_stream if isinstance(plan, Plan) else plan.is_stream
    return "stream" if is_stream else "bag"


def _kind_of(node: Node) -> str:
    if isinstance(node, ToStream):
        return "ISTREAM"
    if node.is_stream:
        return "stream"
    if isinstance(node, Select):
        return _kind_of(node.child) if _keeps_key(node) else "bag"
    if isinstance(node, GroupBy):
        if isinstance(node.child, Slide) or (isinstance(node.child, Select) and isinstance(node.child.child, Slide)):
            return "aggregate under SLIDE" if node.scalar else "groups under SLIDE"
        return "groups"
    if isinstance(node, Distinct):
        return "DISTINCT"
    if isinstance(node, SetOperation) and not node.all:
        return "EXCEPT" if node.kind == "except" else "DISTINCT"
    return "bag"


def _keeps_key(node: Select) -> bool:
    """Whether rows that differ below still do: all columns that tell groups or values apart are selected as they are."""
    child = node.child
    n_keys = child.n_keys if isinstance(child, GroupBy) else len(child.columns)
    shown = {
        ref.position for column in node.columns for ref in columns_of(column.expression) if column.expression == ref
    }  # fmt: skip
    return set(range(n_keys)) <= shown
