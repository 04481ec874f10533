"""The check that one query text may replace another under the same id: same columns, same kind."""

from __future__ import annotations

from eddy.base.plans import JoinPlan, Plan, TreePlan
from eddy.query import Query
from lineage.errors import ConflictError


def check_replaces(query: Query, plan: Plan | JoinPlan | TreePlan) -> None:
    """Raise `ConflictError` if the plan's columns or kind differ from those of `query`."""
    if not query.running:
        raise ConflictError(f'query "{query.name}" is paused', code="paused", hint="resume it first")
    is_stream = plan.window.is_stream if isinstance(plan, Plan) else plan.is_stream
    if is_stream != query.is_stream:
        kind = "a stream" if is_stream else "a relation"
        raise ConflictError(
            f'query "{query.name}" is a {query.kind}, and the new text gives {kind}',
            code="other_kind",
            hint="write a window behind each stream" if is_stream else "leave out the window, or submit a new query",
        )
    have = [(column.name, column.type.value) for column in query.outputs]
    new = [(column.name, column.type.value) for column in plan.outputs]
    if have == new:
        return
    differing = [f"column {k + 1} is {_say(new, k)}, not {_say(have, k)}" for k in range(max(len(have), len(new)))
                 if have[k : k + 1] != new[k : k + 1]]  # fmt: skip
    raise ConflictError(
        f'the new text of query "{query.name}" has other columns',
        code="other_columns",
        detail="; ".join(differing),
        hint="name them with AS and CAST their types, or submit a new query",
    )


def _say(columns: list[tuple[str, str]], k: int) -> str:
    return f"{columns[k][0]} {columns[k][1]}" if k < len(columns) else "there"
