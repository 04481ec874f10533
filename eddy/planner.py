"""From a text and its parameters to a plan: parse, bind, normal form, remembering what can serve again.

The last thousand texts keep their parse and, if they have one, their prepared form (`queries/prepared.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from eddy.catalog import Catalog
from eddy.query import JoinPlan, Plan
from filters.predicate import normalise
from lineage.errors import EddyError, QueryError
from queries.binder import bind
from queries.bound import BoundQuery
from queries.joins import Join
from queries.parser import parse
from queries.prepared import Prepared, prepare
from queries.split import split
from queries.syntax import ParsedQuery
from windows.spec import WindowKind

#: Texts that are remembered.
_TEXTS = 1024
_NO_PARAMS: Mapping[str, Any] = {}


@dataclass(slots=True)
class _Text:
    """What is known of one text."""

    parsed: ParsedQuery
    #: the prepared form and the plan it was made with
    prepared: tuple[Prepared, Plan] | None = None


class Planner:
    """Makes the plans of one engine."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._texts: dict[str, _Text] = {}

    def plan(self, sql: str, params: Mapping[str, Any] | None) -> Plan | JoinPlan:
        """The plan of a query; raises `QueryError`, and then nothing has changed."""
        if not isinstance(sql, str):
            raise QueryError(f"a query is a text, not {type(sql).__name__}", code="not_a_text", hint='"SELECT ... FROM stream"')
        if params is not None and not isinstance(params, Mapping):
            raise EddyError("params is not a mapping", code="bad_option", hint='{"low": 5} for :low')
        text = self._text(sql)
        if text.prepared is not None:
            prepared, plan = text.prepared
            # the stream of that name may be another one by now
            if prepared.readable is self._catalog.readable(plan.stream):
                condition = prepared.condition(params or _NO_PARAMS)
                if condition is not None:
                    return Plan(plan.stream, plan.window, condition, plan.outputs, plan.defaults)
        return self._bind(text, params)

    def _bind(self, text: _Text, params: Mapping[str, Any] | None) -> Plan | JoinPlan:
        catalog, parsed = self._catalog, text.parsed
        bound = bind(parsed, catalog.readable, params, catalog.functions, catalog.input_names)
        join = bound.join
        if join is None and (bound.window.kind is WindowKind.ROWS or bound.inputs[0].readable.pattern != "monotonic"):
            # more than the clock ends its rows: that is told by a group, here of one input
            join = split(bound.condition, [bound.stream], [len(bound.inputs[0].schema)])
        if join is not None:
            return self._join(parsed, bound, join)
        source = catalog.sources[bound.stream.lower()]
        outputs = source.shared_outputs(bound.columns)
        plan = Plan(source.name.lower(), bound.window, normalise(bound.condition), outputs, bound.defaults)
        prepared = prepare(parsed, bound)
        text.prepared = None if prepared is None else (prepared, plan)
        return plan

    def _join(self, parsed: ParsedQuery, bound: BoundQuery, join: Join) -> JoinPlan:
        streams = [(k, self._catalog.sources[name]) for k, name in enumerate(join.names) if name in self._catalog.sources]
        for number, source in streams:
            first = streams[0][1].timeline
            if source.timeline is not first:
                fact = f'"{source.name}" is on timeline "{source.timeline.name}", not on "{first.name}"'
                raise parsed.error_at_input(number, fact, "two_timelines", "a query reads streams of one timeline")
        conditions = tuple(normalise(own, clauses_apart=False) for own in join.own)
        return JoinPlan(
            join.names, tuple(item.window for item in bound.inputs), conditions, join,
            bound.columns, bound.update_pattern, bound.defaults,
        )  # fmt: skip

    def _text(self, sql: str) -> _Text:
        found = self._texts.get(sql)
        if found is None:
            found = _Text(parse(sql))
            if len(self._texts) >= _TEXTS:
                del self._texts[next(iter(self._texts))]
            self._texts[sql] = found
        return found
