"""`explain` of queries with operators: the operators, the flow on each edge, and the state of each, as data.

plan        the form of the tree that runs and what every form would cost; rewrites that were taken or refused, and why;
            whether the choice may change
operators   of that form, each with its cases, what it is expected to cost (ns a commit, and the rows handled that the
            update-patterns paper counts) and, where it runs, what it holds
edges       pattern, `ends_known`, strategy, what rows are kept in, and rows a commit: begun, ended early, alive
"""

from __future__ import annotations

from typing import Any

from eddy.base.plans import JoinPlan, TreePlan
from eddy.catalog.catalog import Catalog
from eddy.inspect.explain import explain_join, explain_plan
from eddy.inspect.explain_merge import explain_lmerge
from eddy.operators.merge_stage import MergeStage
from eddy.operators.replanning import Replanner, ReplanPace, first_choice, fixed_reason
from eddy.operators.shared.shared_operation import SharedOperation
from eddy.operators.stage import OperatorStage
from eddy.operators.template import Member
from eddy.operators.template_key import blocks_of
from eddy.operators.tree_query import TreeQuery
from eddy.planning.flows import Flows
from eddy.planning.plan_choice import Choice, choice_ns, edge_ns, load_of, node_ns, operator_of, strategies_for
from eddy.planning.strategies import Strategies
from eddy.routing.base import Policy
from queries.forms import Form
from queries.nodes import Block, LMerge, Node, Slide
from queries.tree import word_of
from windows.costs import OPERATORS, Upkeep, operator_cost
from windows.state.calendar import Calendar

#: How the reader of an edge learns of ends, by what it keeps rows in.
_ENDS = {
    "none": "none", "hash": "each as a negative row", "list": "by scanning a list", "fifo": "from a FIFO",
    "calendar": "from a calendar",
}  # fmt: skip
EARLY = ", early ones as negative rows"


def explain_tree(plan: TreePlan, catalog: Catalog, policy: Policy, expiry: str, query: TreeQuery | None) -> dict[str, Any]:
    """The plan of a query, or of a text not submitted."""
    operation = None if query is None else query.operation
    missed = operation.missed if isinstance(operation, SharedOperation) else None
    shown = _Shown(plan, expiry, operation.template.replanner if isinstance(operation, Member) else None, missed)
    # the form that runs is that of the template's first query; blocks stand in the same order in all of them
    running = (node for node in shown.nodes if isinstance(node, Block))
    own = dict(zip((id(node) for node in shown.blocks), blocks_of(plan), strict=True))
    blocks = {f"block {shown.numbers[id(node)]}": _block(plan, own[id(node)], catalog, policy) for node in running}
    return {
        "kind": "stream" if plan.is_stream else "relation",
        "streams": [catalog.input(name).name for name in plan.streams],
        "queries": list(plan.queries),
        "timeline": plan.timeline,
        "columns": {column.name: column.type.value for column in plan.outputs},
        "plan": shown.plan(),
        "operators": [shown.operator(node, catalog) for node in shown.nodes],
        "blocks": blocks,
        "modules": list(dict.fromkeys(module for block in blocks.values() for module in block["modules"])),
        "policy": policy.name,
        "expiry": expiry,
        "update_pattern": plan.root.update_pattern,
        "edges": [shown.edge(node, above) for above in shown.nodes for node in above.children] + [shown.edge(shown.root, None)],
        "storage": {
            "own": "what was last shown" if isinstance(operation, SharedOperation) else "operators and answer",
            "bytes": 0 if operation is None else operation.bytes,
        },
        **({"shared": operation.path} if isinstance(operation, SharedOperation) else {}),
        **({"template": _template(operation)} if isinstance(operation, Member) else {}),
        "defaults": list(plan.defaults),
    }


def _template(member: Member) -> dict[str, Any]:
    """How many queries run together, on which seat of theirs this one is, and what their operators hold."""
    return {"queries": len(member.template.members), "seat": member.seat, "bytes": member.template.bytes}


def _block(plan: TreePlan, block: Block, catalog: Catalog, policy: Policy) -> dict[str, Any]:
    found = plan.blocks[block]
    if isinstance(found, JoinPlan):
        return explain_join(found, catalog, policy, None)
    source = catalog.sources[found.stream]
    return explain_plan(found, source, policy, source.placement.held.get((found.window, found.condition)))


class _Shown:
    """The choice that is shown: the running one, or the first one of a text not submitted."""

    def __init__(self, plan: TreePlan, expiry: str, replanner: Replanner | None, missed: int | None) -> None:
        self._plan = plan
        #: of a window in steps that is shared, the extents that rows were too late for
        self._missed = missed
        self._replanner = replanner
        self._expiry = expiry
        self._flows = Flows() if replanner is None else replanner.seen_now()
        forms = plan.forms.forms if replanner is None else replanner.forms
        self.forms = forms
        self.blocks = [node for node in forms[0].nodes if isinstance(node, Block)]
        self.choice = first_choice(forms, expiry, self._flows, ReplanPace()) if replanner is None else replanner.built.choice
        self.root = self.choice.form.root
        self.nodes = self.choice.form.nodes
        self.numbers = {id(node): k for k, node in enumerate(self.nodes)}

    def plan(self) -> dict[str, Any]:
        """The forms, their costs, and the reasons for taking or refusing each."""
        replanner = self._replanner
        choices = [self.choice if form == self.choice.form else Choice(form, self._strategies(form)) for form in self.forms]
        fixed = fixed_reason(self._plan.root) if self._expiry == "auto" else f'expiry is "{self._expiry}"'
        pace = ReplanPace() if replanner is None else replanner.pace
        return {
            "form": self.choice.form.name,
            "cost_ns": {choice.form.name: round(choice_ns(choice, self._flows)) for choice in choices},
            "rewrites": [
                {"rewrite": found.name, "at": found.where, "refused": found.refused or None}
                for found in self._plan.forms.rewrites
            ],
            "changes": 0 if replanner is None else replanner.n_changes,
            "decided": f"every {pace.every} commits" if not fixed else f"never: {fixed}",
        }

    def _strategies(self, form: Form) -> Strategies:
        return strategies_for(form, self._flows) if self._expiry == "auto" else Strategies(self._expiry, form.facts)

    def operator(self, node: Node, catalog: Catalog) -> dict[str, Any]:
        strategies = self.choice.strategies
        operator = operator_of(node, strategies)
        found: dict[str, Any] = {
            "name": self._name(node),
            "inputs": [self._name(child) for child in node.children],
            "cases": list(strategies.cases(node)),
            "columns": [column.name for column in node.columns],
        }
        if not operator:
            return found
        found["as"] = operator
        stage = None if self._replanner is None else self._replanner.built.stages.get(node)
        if isinstance(node, LMerge):
            found["merge"] = explain_lmerge(node, catalog, stage if isinstance(stage, MergeStage) else None)
        if isinstance(stage, OperatorStage):
            found["holds"] = stage.operator.stats()
        elif isinstance(node, Slide) and self._missed is not None:
            found["holds"] = {"missed": self._missed}
        found["cost_ns"] = round(node_ns(node, self.choice, self._flows))
        paper = "intersect" if operator == "intersect-star" else operator
        if paper in OPERATORS:
            word = {"hash": "negative", "list": "direct"}.get(strategies.structure(node.children[0]), "update-pattern")
            patterns = [child.update_pattern for child in node.children]
            load = load_of(node, self.choice.form, self._flows)
            found["paper_cost"] = round(operator_cost(word, paper, patterns, load, Upkeep()))
        return found

    def edge(self, node: Node, above: Node | None) -> dict[str, Any]:
        strategies = self.choice.strategies
        structure = strategies.structure(node)
        flow = self._flows.flow(self.choice.form, node)
        found: dict[str, Any] = {
            "from": self._name(node),
            "to": "result" if above is None else self._name(above),
            "update_pattern": node.update_pattern,
            "ends_known": node.ends_known,
            "strategy": strategies.strategy(node),
            "ends": _ENDS[structure]
            + (EARLY if structure in ("list", "fifo", "calendar") and strategies.ends_early(node) else ""),
            "cost_ns": round(edge_ns(node, self.choice, self._flows)),
            "rows": {"begun": round(flow.rate, 2), "ended_early": round(flow.premature, 2), "alive": round(flow.size)},
            "seen": self._flows.is_seen(self.choice.form, node),
        }
        live = None if self._replanner is None else self._replanner.built.live.get(node)
        if live is not None and isinstance(live.buffer, Calendar):
            found["partitions"] = live.buffer.n_partitions
        return found

    def _name(self, node: Node) -> str:
        return f"{word_of(node)} {self.numbers[id(node)]}"
