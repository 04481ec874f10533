"""The choice of a query's form and of its edges' expiry strategies: the cheapest of few candidates (U 5.4).

    candidates    the forms of the tree (`queries/forms.py`), each with the strategies that are cheapest for it: edge by edge a
                  list that is scanned instead of a calendar, block by block every end sent instead of none
    cost          ns a commit (`windows/measured_costs.py`), of what flows (`eddy/planning/flows.py`)

A choice depends on counts of rows and commits only, never on a clock: the same calls lead to the same choices. Ties and small
differences go to what runs already.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from eddy.planning.flows import Flow, Flows
from eddy.planning.strategies import Strategies
from queries.forms import Form
from queries.nodes import Block, Distinct, GroupBy, JoinNode, LMerge, Node, Select, SetOperation, ToStream
from windows import patterns
from windows.costs import Load
from windows.measured_costs import SENT_MATCH, SENT_ROW, kept_ns, operator_ns


@dataclass(frozen=True, slots=True)
class Choice:
    """A form and its strategies."""

    form: Form
    strategies: Strategies


def operator_of(node: Node, strategies: Strategies) -> str:
    """The name under which the costs of a node's operator are listed; empty for a node that runs in the shared eddy."""
    match node:
        case Select():
            return "select"
        case JoinNode():
            return "join"
        case Distinct():
            return "delta-star" if strategies.is_star(node) else "distinct"
        case GroupBy():
            return "group-by"
        case SetOperation(kind=kind, all=counts):
            if kind == "union":
                return "union" if counts else "distinct"
            if kind == "intersect":
                return "intersect-star" if strategies.is_star(node) else "intersect"
            return "minus"
        case LMerge(is_stream=is_stream):
            return "union" if is_stream else "distinct"
        case ToStream():
            return "stream"
    return "window" if node.children else ""


def load_of(node: Node, form: Form, flows: Flows) -> Load:
    """The expected work of a node, per commit."""
    inputs = [flows.flow(form, child) for child in node.children]
    out = flows.flow(form, node)
    return Load(
        tuple(flow.rate for flow in inputs), tuple(flow.size for flow in inputs), out.rate, out.size,
        tuple(max(1.0, flow.size) for flow in (*inputs, out)[:2]), out.premature,
    )  # fmt: skip


def node_ns(node: Node, choice: Choice, flows: Flows) -> float:
    """The cost of one node, per commit, with the state it keeps of its inputs."""
    operator = operator_of(node, choice.strategies)
    if isinstance(node, Block):
        return _sent_ns(node, choice, flows)
    if not operator:
        return 0.0
    cost = operator_ns(operator, load_of(node, choice.form, flows))
    if operator in ("select", "union", "delta-star", "intersect-star"):
        return cost
    return cost + sum(edge_ns(child, choice, flows) for child in node.children)


def _sent_ns(block: Block, choice: Choice, flows: Flows) -> float:
    """The cost of making a block send ends; 0 for a block whose rows end early, which sends them in any case."""
    if not choice.strategies.asks_for_ends(block) or choice.form.facts[block].pattern == patterns.STRICT:
        return 0.0
    return flows.flow(choice.form, block).rate * (SENT_ROW if len(block.inputs) == 1 else SENT_MATCH)


def edge_ns(node: Node, choice: Choice, flows: Flows) -> float:
    """The cost for a reader to keep a node's rows, per commit."""
    strategies = choice.strategies
    flow = flows.flow(choice.form, node)
    return kept_ns(strategies.structure(node), flow.rate, flow.size, by_id=strategies.ends_early(node))


def choice_ns(choice: Choice, flows: Flows) -> float:
    """The cost of a choice, per commit: every node once, and the answer."""
    root: Flow = flows.flow(choice.form, choice.form.root)
    answer = operator_ns("result", Load((root.rate,), (root.size,))) + edge_ns(choice.form.root, choice, flows)
    return answer + sum(node_ns(node, choice, flows) for node in choice.form.nodes)


def strategies_for(form: Form, flows: Flows) -> Strategies:
    """The cheapest strategies of a form."""
    found = Strategies("auto", form.facts)
    scanning = set()
    for node in form.nodes:
        flow = flows.flow(form, node)
        early = found.ends_early(node)
        costs = {kind: kept_ns(kind, flow.rate, flow.size, by_id=early) for kind in ("calendar", "list")}
        # a list costs more the more is alive: not on a guess
        seen = flows.is_seen(form, node)
        if seen and found.structure(node) == "calendar" and costs["list"] < costs["calendar"]:
            scanning.add(form.facts[node].number)
    found = replace(found, scanning=frozenset(scanning))
    best = choice_ns(Choice(form, found), flows)
    for node in form.nodes:
        if isinstance(node, Block) and not found.sends(node) and found.structure(node) != "none":
            tried = replace(found, sending=found.sending | {form.facts[node].number})
            cost = choice_ns(Choice(form, tried), flows)
            if cost < best:
                found, best = tried, cost
    return found


def candidates(forms: tuple[Form, ...], flows: Flows) -> list[tuple[float, Choice]]:
    """Every form with its cheapest strategies, and the cost."""
    found = []
    for form in forms:
        choice = Choice(form, strategies_for(form, flows))
        found.append((choice_ns(choice, flows), choice))
    return found


def chosen(forms: tuple[Form, ...], flows: Flows, current: Choice | None, margin: float) -> Choice:
    """The cheapest choice, or the current one (at first: as written) if that costs at most `margin` times as much."""
    found = candidates(forms, flows)
    best_ns, best = min(found, key=lambda item: item[0])
    if current is None:
        current = found[0][1]
    return best if choice_ns(current, flows) > margin * best_ns else current
