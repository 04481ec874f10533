"""What the language has and the engine does not run yet, refused by name with its place in the text."""

from __future__ import annotations

from queries.syntax import ParsedQuery
from queries.tree import Block, Distinct, GroupBy, Node, SetOperation, ToStream, walk
from windows.spec import WindowKind

_LATER = "it comes with a later version"


def check_runs(parsed: ParsedQuery, node: Node) -> Block:
    """The block that a bound query is; raises `QueryError` for one that this engine cannot run."""
    if not isinstance(node, Block):
        fact = f"{_say(node)} is not supported yet"
        raise parsed.source.error(fact, parsed.query.start, parsed.query.end, "not_supported", _LATER)
    if node.join is None and node.window.kind is WindowKind.ROWS:
        what = "a PARTITION BY window" if node.window.partition else "a ROWS window"
        hint = f"{_LATER}; [RANGE 5 MINUTES] works now, and ROWS in a join of streams"
        fact = f"{what} over one stream is not supported yet"
        raise parsed.source.error(fact, *node.inputs[0].window_span, "not_supported", hint)
    return node


def _say(node: Node) -> str:
    """The topmost operator, as a user writes it."""
    for part in walk(node):
        if isinstance(part, GroupBy):
            return "an aggregate" if part.scalar else "GROUP BY"
        if isinstance(part, Distinct):
            return "DISTINCT"
        if isinstance(part, SetOperation | ToStream):
            return part.kind.upper()
    return "a query over other queries, or with SLIDE,"
