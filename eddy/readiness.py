"""What the language has and the engine does not run yet, refused by name with its place in the text."""

from __future__ import annotations

from queries.bound import Block
from queries.syntax import ParsedQuery
from windows.spec import WindowKind

_LATER = "it comes with a later version"


def check_runs(parsed: ParsedQuery, bound: Block) -> None:
    """Raise `QueryError` for a bound query that this engine cannot run."""
    if bound.join is None and bound.window.kind is WindowKind.ROWS:
        what = "a PARTITION BY window" if bound.window.partition else "a ROWS window"
        hint = f"{_LATER}; [RANGE 5 MINUTES] works now, and ROWS in a join of streams"
        raise parsed.error_at_window(0, f"{what} over one stream is not supported yet", "not_supported", hint)
