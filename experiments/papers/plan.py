"""Checks of a plan before it runs, and the names of its nodes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from experiments.papers.machine.node import PlanNode
from experiments.papers.machine.operator import QueuedOperator
from experiments.papers.machine.timed_source import TimedSource
from experiments.papers.operators.delta_star import QueuedDeltaStar
from experiments.papers.operators.distinct import QueuedDistinct
from experiments.papers.operators.overwriting import OverwritingAggregate
from experiments.papers.operators.recipient import QueuedRecipient
from experiments.papers.operators.temporal import TemporalAggregate
from lineage.errors import EddyError

_ENDS_TRAVEL = ("negative", "negative+message", "piggyback")


def distinct(child: PlanNode) -> QueuedOperator:
    """The form of distinct that an input allows: delta-star where ends are known, else two tables (U 5.4.1)."""
    return QueuedDeltaStar(child) if child.ends_known else QueuedDistinct(child)


def name_nodes(nodes: Sequence[PlanNode]) -> None:
    """Name the operators by their kind, the second of a kind with its number; sources have names."""
    kinds: Counter[str] = Counter()
    for node in nodes:
        if isinstance(node, TimedSource):
            continue
        if node.name:
            raise EddyError(f'"{node.name}" is in a plan already', code="conflict", hint="an operator belongs to one pipeline")
        kinds[node.kind] += 1
        node.name = node.kind if kinds[node.kind] == 1 else f"{node.kind}#{kinds[node.kind]}"


def check_plan(root: QueuedRecipient, expiry: str, compresses: bool) -> None:
    """Refuse plans whose answers would be wrong."""
    nodes = list(root.walk())
    readers = Counter(id(below) for node in nodes for below in node.inputs)
    for node in nodes:
        if isinstance(node, QueuedOperator) and readers[id(node)] > 1:
            raise EddyError(f'"{node.name}" has two readers', code="bad_plan", hint="only a source may be read twice")
        for below in node.inputs:
            if isinstance(node, QueuedDeltaStar) and not below.ends_known:
                raise EddyError("delta-star stands above rows that may end prematurely", code="bad_plan", hint="use Distinct")
            if isinstance(node, TemporalAggregate) and not below.ends_known:
                raise EddyError(
                    "a temporal aggregate stands above rows that may end prematurely", code="bad_plan", hint="use GroupBy"
                )
            if isinstance(below, OverwritingAggregate) and not isinstance(node, QueuedRecipient):
                raise EddyError(
                    "only the recipient may stand above an overwriting aggregate", code="bad_plan", hint="use GroupBy"
                )
    travels = expiry in _ENDS_TRAVEL
    if compresses and travels:
        raise EddyError(
            f'streams are not compressed under "{expiry}"', code="bad_option", hint='"input", "direct" or "update-pattern"'
        )
    if travels and any(isinstance(node, TemporalAggregate) for node in nodes):
        raise EddyError(
            "a temporal aggregate reads rows with known ends only", code="bad_option", hint='"direct" or "update-pattern"'
        )
