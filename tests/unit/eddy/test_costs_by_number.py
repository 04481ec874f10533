"""What it costs to submit, pause, resume, replace or cancel a query does not depend on how many others run.

Counted as lines of Python that run: what kernels and copies of memory take is for the benchmarks
(`experiments/bench/cases/numbers.py`).
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from types import FrameType
from typing import Any

import pytest

from eddy import Engine, Query

#: `{k}` is another number for each query.
FORMS: dict[str, tuple[str, dict[str, Any]]] = {
    "same aggregate": ("SELECT n, COUNT(*) AS c FROM a [RANGE 1 HOUR] GROUP BY n", {}),
    "aggregate": ("SELECT n, SUM(i) AS c FROM a [RANGE 1 HOUR] WHERE i > {k} GROUP BY n", {}),
    "listed aggregate": ("SELECT n, SUM(i) AS c FROM a [RANGE 1 HOUR] WHERE i + i > {k} GROUP BY n", {}),
    "interval": ("SELECT i FROM a WHERE i > {k}", {}),
    "text": ("SELECT i FROM a WHERE i > {k} AND n LIKE '%{k}%'", {}),
    "several intervals": ("SELECT i FROM a WHERE i <> {k}", {}),
    "named": ("SELECT i FROM a WHERE i > {k}", {"name": "named{k}", "tags": ["all", "tag{k}"]}),
    "key": ("SELECT i FROM a WHERE i = {k}", {}),
    "either": ("SELECT i FROM a WHERE i > {k} OR n = 'x{k}'", {}),
    "same text": ("SELECT i FROM a [RANGE 1 HOUR] WHERE i > 3", {}),
    "width": ("SELECT i FROM a [RANGE {k} SECONDS]", {}),
    "history": ("SELECT i FROM a [RANGE 1 HOUR] WHERE i > {k}", {"history": "window"}),
    "join": ("SELECT a.i, b.v FROM a [RANGE {k} SECONDS], b [RANGE 1 HOUR] WHERE a.i = b.i AND a.i > {k}", {}),
    "table": ("SELECT a.i, t.w FROM a [RANGE 1 HOUR], t WHERE a.i = t.i AND a.i > {k}", {}),
    "distinct": ("SELECT DISTINCT n FROM a [RANGE {k} SECONDS]", {}),
    "rows": ("SELECT i FROM a [ROWS {k}]", {}),
    "rows where": ("SELECT i FROM a [ROWS {k}] WHERE i > {k}", {}),
    "rows of keys": ("SELECT i FROM a [PARTITION BY n ROWS {k} RANGE 1 HOUR]", {}),
    "rows with history": ("SELECT i FROM a [ROWS {k}]", {"history": "window"}),
    "rows of keys with history": ("SELECT i FROM a [PARTITION BY n ROWS {k}]", {"history": "window"}),
    "aggregate of rows": ("SELECT COUNT(*) AS c FROM a [ROWS {k}]", {}),
    "keyed rows": ("SELECT v FROM ks [ROWS {k}]", {}),
}
#: Calls that look at others, and why.
GROWING = {
    # sums that members share are made anew for one that looks back
    "same aggregate": {"replace"}, "aggregate": {"replace"},
    # a slot that gets an owner is told to every predicate module
    "listed aggregate": {"submit", "resume", "replace"}, "text": {"submit", "resume", "replace"},
}  # fmt: skip
FEW, MANY = 24, 96
#: Lines that one call may take more among many than among few, less than one for each of those: searches take a few more steps.
SLACK = 60


class Counting:
    """Counts lines of Python."""

    def __init__(self) -> None:
        self.lines = 0

    def of(self, call: Callable[[], Any]) -> Any:
        """Count the lines that a call takes, and give what it gives."""
        was = sys.gettrace()
        sys.settrace(self._trace)
        try:
            return call()
        finally:
            sys.settrace(was)

    def _trace(self, frame: FrameType, event: str, arg: Any) -> Any:
        self.lines += event == "line"
        return self._trace


def fill(form: str, n: int) -> tuple[Engine, list[Query]]:
    engine = Engine()
    engine.create_stream("a", {"i": "int", "n": "string"})
    engine.create_stream("b", {"i": "int", "v": "int"})
    engine.create_stream("ks", {"i": "int", "v": "int"}, key="i")
    engine.create_table("t", {"i": "int", "w": "int"}, key="i")
    return engine, [submit(engine, form, k) for k in range(1, n + 1)]


def submit(engine: Engine, form: str, k: int) -> Query:
    sql, options = FORMS[form]
    given: dict[str, Any] = {
        name: [tag.format(k=k) for tag in value] if name == "tags" else value.format(k=k) for name, value in options.items()
    }
    return engine.submit(sql.format(k=k), **given)


def push(engine: Engine) -> None:
    engine.push("a", {"i": [1, 20, 300], "n": ["x", "y", "x"]})
    engine.push("b", {"i": [1, 20], "v": [1, 2]})
    engine.push("ks", {"i": [1, 2, 1], "v": [1, 2, 3]})


def lines_of(form: str, n: int) -> dict[str, int]:
    """The lines of each call among n queries, the least of two: a call in which room is made for more is none of them."""
    engine, queries = fill(form, n)
    found: dict[str, list[int]] = {}

    def count(name: str, call: Callable[..., Any], *given: Any) -> Any:
        # whatever a commit puts off is part of the next call
        push(engine)
        counting = Counting()
        result = counting.of(partial(call, *given))
        found.setdefault(name, []).append(counting.lines)
        return result

    for k in range(2):
        queries.append(count("submit", submit, engine, form, 1000 + k))
        query = queries[n // 2 + k]
        count("pause", query.pause)
        count("resume", query.resume)
        count("replace", engine.replace, query, query.sql + " ")
        # the first and the last
        count("cancel", queries.pop(-k).cancel)
    return {name: min(lines) for name, lines in found.items() if name not in GROWING.get(form, ())}


@pytest.mark.parametrize("form", FORMS)
def test_the_work_of_a_call_does_not_grow_with_the_queries_that_run(form: str) -> None:
    few, many = lines_of(form, FEW), lines_of(form, MANY)
    grown = {name: (few[name], many[name]) for name in few if many[name] > few[name] + SLACK}
    assert not grown, "lines among few and among many"
