"""`explain` of a query of any kind, submitted or not."""

from __future__ import annotations

from typing import Any

from eddy.base.plans import JoinPlan, Plan, TreePlan
from eddy.catalog.catalog import Catalog
from eddy.inspect.explain import explain_join, explain_plan
from eddy.inspect.explain_tree import explain_tree
from eddy.joins.join_query import JoinQuery
from eddy.joins.joiner import Joiner
from eddy.operators.tree_query import TreeQuery
from eddy.query import Query
from eddy.routing.base import Policy


def explained_plan(
    plan: Plan | JoinPlan | TreePlan, catalog: Catalog, policy: Policy, joiner: Joiner, expiry: str
) -> dict[str, Any]:  # fmt: skip
    """The explanation of a plan that is not submitted."""
    if isinstance(plan, TreePlan):
        return explain_tree(plan, catalog, policy, expiry, None)
    if isinstance(plan, JoinPlan):
        return explain_join(plan, catalog, policy, joiner.find(plan.join, plan.windows))
    source = catalog.sources[plan.stream]
    return explain_plan(plan, source, policy, source.placement.legs.get((plan.window, plan.condition)))


def explained_query(query: Query, catalog: Catalog, policy: Policy) -> dict[str, Any]:
    """The explanation of a submitted query."""
    if isinstance(query, TreeQuery):
        found = explain_tree(query.tree_plan, catalog, policy, query.expiry, query)
    elif isinstance(query, JoinQuery):
        found = explain_join(query.join_plan, catalog, policy, query.group)
        found["shared_with"] -= query.slot is not None
    else:
        found = explain_plan(query.plan, catalog.sources[query.stream], policy, query.leg)
    return {"query": query.name, "id": query.id, "state": query.state, **found}
