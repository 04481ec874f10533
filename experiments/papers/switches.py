"""Setting the switches of a plan: which operator finds due rows how, and whose ends travel.

All operators alike, but for `update-pattern` with frequent premature ends (U 5.4.3):

    above a negation (or another strict leaf)    all ends come as negatives, rows are kept by hash
    the negation itself                          its own rows by the clock, a negative for every result
    below it                                     by the clock
"""

from __future__ import annotations

from experiments.papers.machine.node import PlanNode
from experiments.papers.machine.operator import QueuedOperator
from experiments.papers.machine.strategy import Maintenance, Mode, clock_mode, mode_of, negative_mode
from experiments.papers.machine.timed_source import TimedSource
from experiments.papers.operators.minus import QueuedMinus
from windows import patterns


def set_switches(root: PlanNode, expiry: str, maintenance: Maintenance) -> None:
    """Open every node of the plan."""
    modes: dict[int, Mode] = {}
    sends: dict[int, bool] = {}
    if expiry == "update-pattern" and maintenance.frequent_premature:
        _by_negation(root, False, maintenance, modes, sends)
    else:
        mode = mode_of(expiry, maintenance)
        for node in root.walk():
            modes[id(node)] = mode
            sends[id(node)] = mode.sends_ends
    for node in root.walk():
        if isinstance(node, TimedSource):
            node.open(sends[id(node)])
        elif isinstance(node, QueuedOperator):
            node.open(modes[id(node)], maintenance)


def _by_negation(node: PlanNode, told: bool, maintenance: Maintenance, modes: dict[int, Mode], sends: dict[int, bool]) -> None:
    """Set the modes of a node and of the nodes below; `told`: its reader must be sent every end."""
    if isinstance(node, TimedSource):
        # a source with several readers sends ends if one of them needs them; the others drop them
        sends[id(node)] = sends.get(id(node), False) or told
        return
    if isinstance(node, QueuedMinus):
        modes[id(node)] = clock_mode(maintenance, sends_ends=told)
        below = False
    else:
        below = told or any(_makes_strict(lower) for lower in node.walk() if lower is not node)
        modes[id(node)] = negative_mode() if below else clock_mode(maintenance, sends_ends=False)
    for lower in node.inputs:
        _by_negation(lower, below, maintenance, modes, sends)


def _makes_strict(node: PlanNode) -> bool:
    return isinstance(node, QueuedMinus) or (isinstance(node, TimedSource) and node.pattern == patterns.STRICT)
