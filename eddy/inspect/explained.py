"""`explain` of a query of any kind, submitted or not."""

from __future__ import annotations

from typing import Any

from eddy.base.plans import JoinPlan, Plan, TreePlan
from eddy.catalog.catalog import Catalog
from eddy.inspect import explain as explaining
from eddy.inspect.explain_merge import merge_facts
from eddy.inspect.explain_tree import explain_tree
from eddy.joins.join_query import JoinQuery
from eddy.joins.joiner import Joiner
from eddy.merges.cases import explain_merge
from eddy.merges.merge_intake import MergeIntake
from eddy.operators.tree_query import TreeQuery
from eddy.query import Query
from eddy.routing.base import Policy


def explained_plan(
    plan: Plan | JoinPlan | TreePlan, catalog: Catalog, policy: Policy, joiner: Joiner, expiry: str
) -> dict[str, Any]:  # fmt: skip
    """The explanation of a plan that is not submitted."""
    facts = merge_facts(plan, catalog)
    if isinstance(plan, TreePlan):
        return explain_tree(plan, catalog, policy, expiry, None) | facts
    if isinstance(plan, JoinPlan):
        return explaining.explain_join(plan, catalog, policy, joiner.find(plan.join, plan.windows)) | facts
    source = catalog.sources[plan.stream]
    return explaining.explain_plan(plan, source, policy, source.placement.legs.get((plan.window, plan.condition))) | facts


def explained_query(query: Query, catalog: Catalog, policy: Policy) -> dict[str, Any]:
    """The explanation of a submitted query."""
    if isinstance(query, TreeQuery):
        plan: Plan | JoinPlan | TreePlan = query.tree_plan
        found = explain_tree(query.tree_plan, catalog, policy, query.expiry, query)
    elif isinstance(query, JoinQuery):
        plan = query.join_plan
        found = explaining.explain_join(query.join_plan, catalog, policy, query.group)
        found["shared_with"] -= query.slot is not None
    else:
        plan = query.plan
        return explaining.explain_query(query, catalog.sources[query.stream], policy) | merge_facts(plan, catalog)
    return {"query": query.name, "id": query.id, "state": query.state, **found, **merge_facts(plan, catalog)}


def explained_name(name: Query | int | str, catalog: Catalog, policy: Policy) -> dict[str, Any]:
    """The explanation of a submitted query, or of a merged stream."""
    source = catalog.sources.get(name.lower()) if isinstance(name, str) else None
    if source is not None and isinstance(source.intake, MergeIntake):
        return explain_merge(source.intake.stream) | {"state": source.intake.stats()}
    return explained_query(catalog.query(name), catalog, policy)
