"""`explain` of queries without operators: shared modules, route, update pattern, state, as data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from eddy.base.plans import JoinPlan, Plan
from eddy.catalog.catalog import Catalog
from eddy.catalog.definitions import MAIN
from eddy.joins.join_group import JoinGroup
from eddy.routing.base import Policy
from eddy.streams.legs import Leg
from eddy.streams.source import Source
from eddy.streams.table_source import TableSource
from filters.expressions.predicate import Condition, IndexAtom
from filters.expressions.wording import say_atom, say_condition, say_expression
from filters.index.candidates import key_columns
from windows.patterns import MONOTONIC, OPERATORS, STREAM_CASES, STRICT
from windows.spec import WindowSpec


def explain_plan(plan: Plan, source: Source, policy: Policy, leg: Leg | None) -> dict[str, Any]:
    """The plan of a query over one stream; `leg` is the leg it is on or would share."""
    condition = plan.condition
    pattern = plan.window.update_pattern
    operators = [
        {"name": name, "predicate": predicate, "predicates": predicates}
        for name, predicate, predicates in _modules(source, condition)
    ]
    return {
        "kind": "stream" if plan.window.is_stream else "relation",
        "stream": source.name,
        "timeline": source.timeline.name,
        "window": plan.window.say(source.schema.names),
        "columns": {column.name: column.type.value for column in plan.outputs},
        "condition": say_condition(condition, source.schema),
        "operators": operators,
        "modules": [operator["name"] for operator in operators],
        "policy": policy.name,
        "matched_by": _placement(source, condition, leg),
        "shared_with": len(leg.queries) - (1 if leg.queries else 0) if leg is not None else 0,
        "update_pattern": pattern,
        "edges": [_edge(source, plan.window, plan.window.is_stream, True)],
        "storage": _state(plan, source),
        "defaults": list(plan.defaults),
    }


def explain_join(plan: JoinPlan, catalog: Catalog, policy: Policy, group: JoinGroup | None) -> dict[str, Any]:
    """The plan of a query over several inputs; `group` is the group it is in or would join."""
    sources = [catalog.input(name) for name in plan.streams]
    streams = [source for source in sources if not isinstance(source, TableSource)]
    if len(sources) == len(streams) == 1:
        return _explain_alone(plan, streams[0], policy, group)
    inputs = list(zip(sources, plan.windows, plan.conditions, strict=True))
    filters = [name for source, _, condition in inputs for name, _, _ in _modules(source, condition)]
    return {
        "kind": "stream" if plan.is_stream else "relation",
        "streams": [source.name for source in streams],
        "tables": {
            source.name: _say_table(source, plan.is_stream, bool(streams))
            for source in sources
            if isinstance(source, TableSource)
        },
        "timeline": streams[0].timeline.name if streams else MAIN,
        "windows": [window.say(source.schema.names) for source, window, _ in inputs if not isinstance(source, TableSource)],
        "columns": {column.name: column.type.value for column in plan.outputs},
        "conditions": [say_condition(condition, source.schema) for source, _, condition in inputs],
        "modules": [*filters, *_stems(plan, sources)],
        "residuals": [str(residual.expression) for residual in plan.join.residuals],
        "policy": policy.name,
        "shared_with": 0 if group is None else group.slots.taken,
        "routes": {} if group is None else group.probes.routes(),
        "virtual_sources": [] if group is None else group.probes.virtual_sources(),
        "update_pattern": plan.update_pattern,
        "edges": [
            *(_edge(source, window, plan.is_stream, bool(streams), "join") for source, window, _ in inputs),
            _said("join", "result", plan.update_pattern, STREAM_CASES if plan.is_stream else OPERATORS["join"].cases),
        ],
        "storage": {
            "own": "nothing",
            "shared": "the rows of its inputs and their SteMs",
            "rows_held": {source.name: source.store.end - source.store.watermark for source in sources},
            "bytes": {source.name: source.store.bytes() + source.stems.bytes() for source in sources},
        },
        "defaults": [*plan.defaults, *_lagging(streams)],
    }


def _lagging(streams: list[Source]) -> list[str]:
    """A remark on each stream that always lags: it waits longer for late rows than another input (semantics 2)."""
    least = min((source.intake.lateness_us for source in streams), default=0)
    waiting = dict.fromkeys(source.name for source in streams if source.intake.lateness_us > least)
    return [f"{name} has more lateness than another input: its rows always lag" for name in waiting]


def _explain_alone(plan: JoinPlan, source: Source, policy: Policy, group: JoinGroup | None) -> dict[str, Any]:
    """The plan of a query over one stream that runs as a group of one input, shown as for any query over one stream."""
    alone = Plan(plan.streams[0], plan.windows[0], plan.conditions[0], plan.outputs, plan.defaults)
    return explain_plan(alone, source, policy, None) | {
        "matched_by": "a group of one input: more than the clock ends its rows",
        "shared_with": 0 if group is None else group.slots.taken,
        "update_pattern": plan.update_pattern,
        "edges": [_edge(source, plan.windows[0], False, True)],
    }


def _counts_as_it_was(table: TableSource, is_stream: bool, with_streams: bool) -> bool:
    return with_streams and (is_stream or not table.retroactive)


def _say_table(table: TableSource, is_stream: bool, with_streams: bool) -> str:
    if _counts_as_it_was(table, is_stream, with_streams):
        return "as it was when the last of the result's stream rows came"
    return "as it is: a change begins and ends results at once"


def _said(below: str, above: str, pattern: str, cases: Sequence[str]) -> dict[str, Any]:
    """An edge, with the possible effects of a + or a - that comes over it."""
    return {"from": below, "to": above, "update_pattern": pattern, "ends_known": pattern != STRICT, "cases": list(cases)}


def _edge(source: Source, window: WindowSpec, is_stream: bool, with_streams: bool, to: str = "result") -> dict[str, Any]:
    """The edge from an input."""
    own = source.readable
    live = isinstance(source, TableSource) and not _counts_as_it_was(source, is_stream, with_streams)
    cases: Sequence[str]
    if is_stream:
        pattern, cases = MONOTONIC, STREAM_CASES
    elif live:
        pattern, cases = STRICT, OPERATORS["join with a live table"].cases
    elif own.is_table:
        # a change of it does nothing to results that are there
        pattern, cases = MONOTONIC, ()
    else:
        pattern, cases = own.window_pattern(window), own.window_cases(window)
    return _said(source.name, to, pattern, cases)


def _stems(plan: JoinPlan, sources: list[Source]) -> list[str]:
    """The SteMs that the join probes."""
    found: dict[str, None] = {}
    for edge in plan.join.equalities:
        for side in (edge.left, edge.right):
            key = ",".join(column.say(sources[side].schema.names) for column in edge.key(side))
            found[f"{sources[side].stem_kind}:{sources[side].name}.{key}"] = None
    for band in plan.join.bands:
        for side, column in ((band.left, band.left_column), (band.right, band.right_column)):
            found[f"{sources[side].stem_kind}:{sources[side].name}.{sources[side].schema.names[column.position]}"] = None
    return list(found)


def _modules(source: Source, condition: Condition) -> list[tuple[str, str, int]]:
    """(name, predicate, number of other slots there) of each module that the condition needs."""
    found = []
    derived = source.placement.derived
    on_columns = {} if derived is None else derived.on_columns(condition, source.modules.by_text)
    for atom in condition.atoms():
        value = None if isinstance(atom, IndexAtom) else on_columns.get(str(atom))
        if isinstance(atom, IndexAtom):
            found.append((f"filter:{source.name}.{atom.name}", say_atom(atom, source.schema), _others(source, atom.position)))
        elif value is not None:
            column = source.derived.columns.get(value)
            others = 0 if column is None else _others(source, column.position)
            found.append((f"filter:{source.name}.{say_expression(value)}", say_atom(atom, source.schema), others))
        else:
            module = source.modules.by_text.get(str(atom))
            name = module.name if module is not None else "predicate module"
            found.append((name, say_atom(atom, source.schema), 0 if module is None else len(module.slots)))
    return found


def _others(source: Source, position: int) -> int:
    f = source.modules.bank.index(position)
    return 0 if f is None else source.modules.bank.filters[f].n_predicates


def _placement(source: Source, condition: Condition, leg: Leg | None) -> str:
    if condition.never:
        return "nothing: no row can satisfy the condition"
    if leg is not None and leg.index_column is not None:
        return f"candidates by {source.schema.names[leg.index_column]}"
    if leg is None and any(column in source.placement.indexes for column in key_columns(condition, source.schema)):
        return "candidates"
    return "a bit in the filters of its stream"


def _state(plan: Plan, source: Source) -> dict[str, Any]:
    needed = "nothing" if plan.window.is_stream else "the stream's rows, shared"
    return {"own": "nothing", "shared": needed, "rows_held": source.store.end - source.store.watermark}
