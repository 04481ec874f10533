"""`explain` and LMerge: the case of a merged stream or of LMERGE in a query, and the case that a query would have as an input."""

from __future__ import annotations

from typing import Any

from eddy.base.plans import JoinPlan, Plan, TreePlan
from eddy.catalog.catalog import Catalog
from eddy.joins.join_query import JoinQuery
from eddy.merges.cases import explain_merge
from eddy.merges.merge_intake import MergeIntake
from eddy.operators.merge_stage import MergeStage
from eddy.operators.tree_query import TreeQuery
from filters.expressions.expression import columns_of
from lineage.elements import BEGINNING
from lineage.times import to_datetime
from lmerge.streams.properties import choose_case, infer, shared_properties
from queries.nodes import Distinct, GroupBy, LMerge, NamedQuery, Node, Select, SetOperation, Slide, ToStream

_INSTANT = "; who gave it is known for the instant of the largest point, where rows may be taken back"


def merge_facts(plan: Plan | JoinPlan | TreePlan, catalog: Catalog) -> dict[str, Any]:
    """The LMerge case of a query as an input, with its properties and the reason, and the merged streams that it reads."""
    inferred = infer(_kind(plan))
    chosen = choose_case(inferred.properties)
    names = (plan.stream,) if isinstance(plan, Plan) else plan.streams
    intakes = [catalog.sources[name].intake for name in names if name in catalog.sources]
    merges = {one.stream.name: explain_merge(one.stream) for one in intakes if isinstance(one, MergeIntake)}
    shown = {"case": chosen.case, "properties": chosen.properties.words(), "why": f"{inferred.why}: {chosen.why}"}
    return {"lmerge": shown, **({"merges": merges} if merges else {})}


def explain_lmerge(node: LMerge, catalog: Catalog, stage: MergeStage | None) -> dict[str, Any]:
    """LMERGE in a query: its case with properties and the reason, and, where it runs, the point of each input and who decides."""
    kinds = ["stream" if node.is_stream else _input_kind(item, catalog) for item in node.inputs]
    inferred = [infer(kind).properties for kind in kinds]
    # copies are told apart by their rank, and an input lacks rows while it lags or is paused
    chosen = choose_case(shared_properties(inferred)._replace(key=True, gap_free=False))
    found: dict[str, Any] = {
        "inputs": list(node.names),
        "kind": "stream" if node.is_stream else "relation",
        "case": chosen.case,
        "properties": chosen.properties.words(),
        "why": f"{chosen.why}; the k-th of equal rows of one time is one event" + (_INSTANT if node.is_stream else ""),
        "policy": "first",
        "missing": "leader",
        "differs": f"from {node.names[0]} only where that lags or is paused",
    }
    if stage is not None:
        points = {name: None if point in (None, BEGINNING) else to_datetime(point) for name, point in stage.points().items()}
        leader = stage.operator.leader
        found |= {"points": points, "deciding": None if leader < 0 else node.names[leader]}
    return found


def _input_kind(node: Node, catalog: Catalog) -> str:
    """The kind of a relation in LMERGE, a word of `lmerge/streams/properties.py`; a window over a stream is a bag."""
    if not isinstance(node, NamedQuery):
        return "bag"
    query = catalog.query(node.name)
    if isinstance(query, TreeQuery):
        return _kind(query.tree_plan)
    return _kind(query.join_plan if isinstance(query, JoinQuery) else query.plan)


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
