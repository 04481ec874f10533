"""Tracing: why a row did or did not match, by trying the leaves of each query on it, slowly and without side effects.

A row is **matched** by a query if some leaf of it takes the row: a block of its tree, or of a query that it reads by name, over
the row's stream (`eddy/inspect/trace_leaves.py`). A leaf takes a row if

    its condition     is true of the row: WHERE, and what ON says of it
    its life          in the leaf's window was not empty: the row was there at some moment since the query was submitted or
                      resumed (`eddy/inspect/trace_lives.py`), or will be shown when its step closes. A row that has left the
                      window since then did match; one that came before the query, without history, or while it was paused, did
                      not
    its partners      if the leaf joins streams and tables, it was part of a combination (`eddy/inspect/join_trace.py`)

Else it is `refused`, by the first predicate that is not true or for a reason, or, if it only misses a partner, `waiting`. Of
several leaves the best verdict counts. What stands above the leaves (groups, HAVING, DISTINCT, set operators, steps) is told
in `above` (`eddy/inspect/trace_above.py`) and changes no verdict.

Everything follows from the tree of the query, stored rows and the answer. A row given as a dict is judged as if it came now.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any, SupportsIndex

import numpy as np

from eddy.catalog.catalog import Catalog
from eddy.inspect.join_trace import waits_for
from eddy.inspect.trace_above import above
from eddy.inspect.trace_leaves import Leaf, Since, begun_later, leaves_of
from eddy.inspect.trace_lives import commit_at, commit_of, there
from eddy.inspect.trace_rows import Allowance
from eddy.inspect.trace_subject import Subject, subject_of
from eddy.joins.join_query import JoinQuery, JoinRun
from eddy.lives.window_rows import WindowRows
from eddy.query import Query
from eddy.streams.source import Source
from lineage.elements import FOREVER
from lineage.times import to_datetime

#: Leaves of one query that are judged, and of those that take the row the ones above which it is told what stands: names that are
#: read twice, by queries that are read twice, are soon many.
MAX_LEAVES = 1_000
MAX_TOLD = 16
_EMPTY = "its life is empty: "


def trace(source: Source, row: SupportsIndex | Mapping[str, Any], queries: list[Query], catalog: Catalog) -> dict[str, Any]:
    """The verdict of each query on a row: by query name, `matched` or the first reason against it."""
    subject = subject_of(source, row)
    allowance = Allowance()
    verdicts = {query.name: _judge(subject, query, catalog, allowance) for query in queries}
    return {
        "stream": source.name,
        "row": subject.describe,
        "late": subject.late,
        "time": None if subject.shown_time is None else to_datetime(subject.shown_time),
        "matched": [name for name, verdict in verdicts.items() if verdict["matched"]],
        "refused": {name: verdict["refused"] for name, verdict in verdicts.items() if verdict.get("refused") is not None},
        "waiting": {name: verdict["waiting"] for name, verdict in verdicts.items() if verdict.get("waiting") is not None},
        "above": {name: verdict["above"] for name, verdict in verdicts.items() if verdict.get("above")},
    }


def _judge(subject: Subject, query: Query, catalog: Catalog, allowance: Allowance) -> dict[str, Any]:
    """The best verdict of a query's leaves, and the nodes above the leaves that take the row."""
    if not query.running:
        return _refusal("the query is paused")
    if subject.dropped:
        return _refusal("the row is late, and the stream drops late rows")
    leaves = list(islice(leaves_of(query, subject.source, catalog), MAX_LEAVES))
    if not leaves:
        return _refusal("the query by which it would come is paused")
    known: dict[object, dict[str, Any]] = {}
    verdicts = []
    for leaf in leaves:
        # what reads a query by name in several places has its leaves as often
        key = leaf.query, leaf.steps, leaf.by_event, leaf.through, leaf.rewritten
        if key not in known:
            known[key] = _judge_leaf(subject, leaf)
        verdicts.append(known[key])
    taking = [leaf for leaf, verdict in zip(leaves, verdicts) if verdict["matched"] and (leaf.path or leaf.through)]
    if taking:
        return {"matched": True, "above": [above(subject, leaf, catalog, allowance) for leaf in taking[:MAX_TOLD]]}
    return next(
        (verdict for kind in ("matched", "waiting", "refused") for verdict in verdicts if verdict.get(kind)), verdicts[0]
    )  # fmt: skip


def _refusal(reason: str) -> dict[str, Any]:
    return {"matched": False, "refused": {"predicate": None, "reason": reason}}


# ---- leaves


def _judge_leaf(subject: Subject, leaf: Leaf) -> dict[str, Any]:
    query = leaf.query
    later = begun_later(leaf, subject)
    refused = None
    inputs = []
    for k, born, modules in _inputs(query, subject.source):
        if subject.position is not None and subject.position < born:
            return _refusal(_before(leaf))
        found = subject.first_refusal(leaf.conditions[k], modules)
        refused = refused or found
        if found is None:
            inputs.append(k)
    if not inputs:
        return {"matched": False, "refused": refused}
    if subject.own_end <= subject.start:
        return _refusal(_EMPTY + "its own end is not after its start")
    if leaf.join is not None:
        if query.is_stream and later:
            return _refusal(_before(leaf))
        living = [k for k in inputs if query.windows[k].is_stream or subject.time + query.windows[k].width_us > subject.start]
        if not living:
            return _refusal(_EMPTY + "it had left the window when it came")
        waits = waits_for(leaf, living, subject, later)
        return {"matched": waits is None, "waiting": waits}
    reason = _life_refusal(subject, leaf, later)
    return {"matched": True} if reason is None else _refusal(reason)


def _inputs(query: Query, source: Source) -> list[tuple[int, int, Mapping[str, int]]]:
    """The inputs of a block over a stream: number, first position that counts, predicate modules."""
    run = query.runs[-1]
    if not isinstance(query, JoinQuery):
        return [(0, run.born, run.modules)]
    assert isinstance(run, JoinRun)
    return [(k, run.births[k], run.modules_of[k]) for k, read in enumerate(query.sources) if read is source]


def _before(leaf: Leaf) -> str:
    again = len(leaf.owner.runs) > 1 or leaf.owner.lost_until
    return f"the row came before the query was {'resumed' if again else 'submitted'}"


# ---- lives


def _life_refusal(subject: Subject, leaf: Leaf, later: Sequence[Since]) -> str | None:
    """The reason why a row was never in a leaf over its stream alone; None if it was. `later`: runs that began after it came."""
    (window,) = leaf.query.windows
    width = FOREVER if window.is_stream or leaf.steps is not None else window.width_us
    if subject.time + width <= subject.start:
        return _EMPTY + "it had left the window when it came"
    if window.is_stream:
        return _before(leaf) if later else None
    instant = max([subject.start, *(one.clock for one in later)])
    if leaf.steps is not None:
        slide = leaf.steps.slide_us
        # what a run that began later was shown first was the step that had closed by then
        first = max([(subject.start // slide + 1) * slide, *(one.clock // slide * slide for one in later)])
        if first > (subject.time + leaf.steps.width_us) // slide * slide:
            return _no_step(subject, leaf, bool(later))
        instant = max(first, instant)
    if subject.position is None:
        return None if subject.own_end > instant else _EMPTY + "its own end comes before its step closes"
    return _was_there(subject, leaf, later, width, instant)


def _no_step(subject: Subject, leaf: Leaf, later: bool) -> str:
    assert leaf.steps is not None
    slide = leaf.steps.slide_us
    if later:
        return "the steps that held it were over before the query was submitted"
    if (subject.time // slide + 1) * slide > (subject.time + leaf.steps.width_us) // slide * slide:
        return _EMPTY + "its time lies between two steps of the window"
    return _EMPTY + "every step that could hold it had closed when it came"


def _was_there(subject: Subject, leaf: Leaf, later: Sequence[Since], width: int, instant: int) -> str | None:
    """The reason why a stored row was not there at the first instant that counts; None if it was."""
    source, query = subject.source, leaf.query
    assert subject.position is not None
    position = np.array([subject.position])
    ends = query.group.ends[0] if isinstance(query, JoinQuery) else None
    if leaf.by_event and not later and leaf.steps is None:
        # ISTREAM and DSTREAM are told of it in the event in which it came
        return None
    commit = max([commit_of(source, subject.position), *(one.commit for one in later)])
    if instant > max([subject.start, *(one.clock for one in later)]):
        commit = commit_at(source.timeline.log, instant)
    if there(source, width, ends, position, np.array([instant]), np.array([commit]))[0]:
        return None
    if later:
        return "it had left the window before the query was submitted"
    if leaf.steps is not None:
        return _EMPTY + "it was ended before its step closed"
    if commit <= source.timeline.log.gone:
        return "it was ended at the instant at which it came, and the log no longer tells whether an answer showed it before"
    scheduled = int(WindowRows(source, width, ends).scheduled(position)[0])
    by = "the clock" if scheduled <= instant else "what came at the same instant"
    return f"{_EMPTY}{by} ended it when it came"
