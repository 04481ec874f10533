"""Checking of submitted queries before the first of them starts.

Of several queries in a call, later ones may read earlier ones: they are planned one after the other, over a copy of the catalog
that holds the earlier ones as if they ran. Nothing of the engine changes here, and a `Ready` query starts without an error.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from eddy.base.log_bounds import LogBounds
from eddy.base.plans import JoinPlan, Plan, TreePlan
from eddy.base.results import NETTING
from eddy.catalog.catalog import Catalog
from eddy.catalog.definitions import MAIN
from eddy.catalog.planner import Planner
from eddy.joins.join_query import JoinQuery
from eddy.operators.tree_query import TreeQuery
from eddy.query import Query, QueryHost
from eddy.streams.timeline import Timeline
from lineage.errors import EddyError

#: Words of contract 5 for how ends are found.
EXPIRY = ("input", "negative", "negative+message", "piggyback", "direct", "update-pattern", "auto")


class Asked(NamedTuple):
    """The arguments of one `submit`."""

    sql: str
    name: str | None = None
    params: Mapping[str, Any] | None = None
    tags: Sequence[str] = ()
    history: str = "new"
    emit: str = "commit"
    expiry: str | None = None


@dataclass(slots=True)
class Ready:
    """A checked query with a free name, ready to start."""

    asked: Asked
    number: int
    name: str
    plan: Plan | JoinPlan | TreePlan


def prepare(engine: QueryHost, asked: Sequence[Asked], catalog: Catalog, planner: Planner) -> list[Ready]:
    """Check and plan all queries of a call; raises the first error, with the query's place as `item` if there are several."""
    if len(asked) == 1:
        return [_ready(asked[0], catalog, planner)]
    catalog = catalog.draft()
    planner = planner.over(catalog)
    found: list[Ready] = []
    for n, one in enumerate(asked):
        try:
            found.append(_ready(one, catalog, planner))
        except Exception as error:
            error.item = n  # type: ignore[attr-defined]  # the answer says which one it was
            raise
        catalog.add_query(_stand_in(engine, found[-1], catalog))
    return found


def _ready(asked: Asked, catalog: Catalog, planner: Planner) -> Ready:
    if asked.history not in ("new", "window"):
        raise EddyError(f"history is {asked.history!r}", code="bad_option", hint='"new" or "window"')
    if not isinstance(asked.emit, str) or asked.emit not in NETTING:
        raise EddyError(f"emit is {asked.emit!r}", code="bad_option", hint='"commit" or "event"')
    if asked.expiry is not None:
        check_expiry(asked.expiry)
    number, name = catalog.new_query(asked.name)
    if not isinstance(asked.tags, list | tuple) or not all(isinstance(tag, str) for tag in asked.tags):
        raise EddyError("tags is not a list of strings", code="bad_option")
    return Ready(asked, number, name, planner.plan(asked.sql, asked.params))


def check_expiry(word: str) -> None:
    """Raise if `word` is not an expiry strategy."""
    if word not in EXPIRY:
        raise EddyError(f"expiry is {word!r}", code="bad_option", hint=f"one of {', '.join(EXPIRY)}")


def _stand_in(engine: QueryHost, ready: Ready, catalog: Catalog) -> Query:
    """A query object for planning later queries that read this one by name; it never runs."""
    plan, about = ready.plan, (engine, ready.number, ready.name, ready.asked.sql, ())
    if isinstance(plan, Plan):
        return _Plain(*about, plan)
    if isinstance(plan, TreePlan):
        return _Tree(*about, plan, Timeline(plan.timeline), LogBounds(1, 1))
    return _Join(*about, plan, catalog)


class _Plain(Query):
    __slots__ = ()

    @property
    def running(self) -> bool:
        return True


class _Tree(TreeQuery):
    __slots__ = ()

    @property
    def running(self) -> bool:
        return True


class _Join(JoinQuery):
    __slots__ = ()

    def __init__(
        self, engine: QueryHost, id_: int, name: str, sql: str, tags: tuple[str, ...], plan: JoinPlan, catalog: Catalog
    ) -> None:  # fmt: skip
        Query.__init__(self, engine, id_, name, sql, tags, Plan("", plan.windows[0], plan.conditions[0], plan.outputs, ()))
        self.join_plan = plan
        lines = [catalog.sources[stream].timeline for stream in plan.streams if stream in catalog.sources]
        self._timeline = lines[0] if lines else Timeline(MAIN)

    @property
    def timeline(self) -> Timeline:
        return self._timeline

    @property
    def running(self) -> bool:
        return True

    @property
    def is_stream(self) -> bool:
        return self.join_plan.is_stream
