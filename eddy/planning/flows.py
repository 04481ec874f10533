"""Rates of rows through the nodes of a query's tree, per commit: measured where stages run, estimated elsewhere.

    rate        rows that begin
    premature   rows that end before they are scheduled to, or have no scheduled end
    size        rows alive

A node of a form that does not run has the flow of the node of the first form with the same rows, if that was seen; else that of
its inputs times its *share*: the part of what comes in that goes out, as it was last seen of the node or of one like it, or a
default before anything was. Shares are kept from one form to another: a form that was tried and left is not tried again for a
guess.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from lineage.identity import ById
from queries.forms import Form
from queries.nodes import Block, Distinct, GroupBy, JoinNode, LMerge, Node, Select, SetOperation
from windows.spec import WindowKind


@dataclass(frozen=True, slots=True)
class Flow:
    """The rows on one edge, per commit."""

    rate: float
    premature: float
    size: float


@dataclass(frozen=True, slots=True)
class OutputShare:
    """The output of a node relative to its largest possible output: rate, size, and the share that ends early."""

    rate: float
    size: float
    premature: float


#: A stream of which nothing is known.
DEFAULT = Flow(100.0, 0.0, 1000.0)
#: Partners that a row is expected to find in a join of which nothing is known.
_PARTNERS = 1.0


def default_share(node: Node, inputs: Sequence[Flow]) -> OutputShare:
    """The share assumed for a node before anything was measured."""
    match node:
        case Select(condition=condition):
            share = 1.0 if condition is None else 0.5
            return OutputShare(share, share, 0.0)
        case JoinNode():
            rate, size = potential(node, inputs)
            found = _PARTNERS * sum(flow.rate for flow in inputs)
            return OutputShare(found / max(rate, 1e-9), min(1.0, max(flow.size for flow in inputs) / max(size, 1e-9)), 0.0)
        case Distinct():
            return OutputShare(0.5, 0.5, 0.0)
        case SetOperation(kind=kind, all=counts):
            if kind == "union" and counts:
                return OutputShare(1.0, 1.0, 0.0)
            return OutputShare(0.5, 0.5, 0.25 if kind == "except" else 0.0)
        case GroupBy():
            return OutputShare(1.0, 0.1, 1.0)
        case LMerge(inputs=merged):
            return OutputShare(1 / len(merged), 1 / len(merged), 0.0)
    return OutputShare(1.0, 1.0, 0.0)


def potential(node: Node, inputs: Sequence[Flow]) -> tuple[float, float]:
    """The largest rate and size that a node could have."""
    if isinstance(node, JoinNode):
        sizes = [max(flow.size, 1.0) for flow in inputs]
        whole = math.prod(sizes)
        return sum(flow.rate * whole / size for flow, size in zip(inputs, sizes)), whole
    if isinstance(node, SetOperation) and node.kind != "union":
        return inputs[0].rate, inputs[0].size
    return sum(flow.rate for flow in inputs), sum(flow.size for flow in inputs)


class Flows:
    """Measured flows of the form that runs, and estimates for the other forms."""

    def __init__(self) -> None:
        #: by node of the first form, or of another one if no node of the first has its rows
        self.seen: ById[Node, Flow] = ById()
        self._shares: ById[Node, OutputShare] = ById()
        #: what was estimated since the last look
        self._estimated: ById[Node, Flow] = ById()

    def copy(self) -> Flows:
        found = Flows()
        found.seen, found._shares = ById(self.seen.items()), ById(self._shares.items())
        return found

    def see(self, form: Form, flows: ById[Node, Flow]) -> None:
        """Record the measured flows of a form's stages."""
        self._estimated = ById()
        self.seen = ById((form.standing_for(node), flows[node]) for node in form.nodes if node in flows)
        for node in form.nodes:
            flow, inputs = flows.get(node), [flows.get(child) for child in node.children]
            if flow is not None and inputs and None not in inputs:
                rate, size = potential(node, [found for found in inputs if found is not None])
                if rate > 0 and size > 0:
                    share = OutputShare(flow.rate / rate, flow.size / size, flow.premature / max(flow.rate, 1e-9))
                    self._shares[form.part_like(node)] = share

    def flow(self, form: Form, node: Node) -> Flow:
        """The measured or estimated flow out of a node of a form."""
        found = self.seen.get(form.standing_for(node)) or self._estimated.get(node)
        if found is None:
            found = self._estimated[node] = self._estimate(form, node)
        return found

    def is_seen(self, form: Form, node: Node) -> bool:
        return form.standing_for(node) in self.seen

    def _estimate(self, form: Form, node: Node) -> Flow:
        if not node.children:
            return DEFAULT
        inputs = [self.flow(form, child) for child in node.children]
        share = self._shares.get(form.part_like(node)) or default_share(node, inputs)
        rate, size = potential(node, inputs)
        return Flow(share.rate * rate, share.premature * share.rate * rate, share.size * size)


def alive_of(block: Block, rate: float, elapsed_us: float) -> float:
    """Estimated live rows of a block over one stream without a buffer: rate times window width (Little's law)."""
    window = block.inputs[0].window
    if len(block.inputs) > 1 or not window.ends or elapsed_us <= 0:
        return DEFAULT.size
    alive = rate * window.width_us / elapsed_us
    return min(alive, window.rows) if window.kind is WindowKind.ROWS else alive
