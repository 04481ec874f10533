"""A failing script made small: steps, rows, queries and streams are removed while it still fails."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from tests.reference.driver import replay
from tests.reference.harness import MakeEngine
from tests.reference.script import Crowd, Delete, Leave, Push, Replace, Script, Submit, Upsert


def shrink(script: Script, make_engine: MakeEngine, budget: int = 400) -> Script:
    """A smaller script that fails with the same kind of error; at most `budget` replays."""

    def error_of(candidate: Script) -> str | None:
        nonlocal budget
        budget -= 1
        try:
            replay(candidate, make_engine, use_duckdb=False)
        except Exception as error:
            return f"{type(error).__name__}:{str(error).split(' ')[0]}"
        return None

    kind = error_of(script)
    if kind is None:
        return script
    shrunk = True
    while shrunk and budget > 0:
        shrunk = False
        for candidate in _smaller(script):
            if budget <= 0:
                break
            if error_of(candidate) == kind:
                script, shrunk = candidate, True
                break
    return script


def _smaller(script: Script) -> Iterator[Script]:
    """Candidates: halves of the steps away, single steps away, halves of a push away, fewer streams."""
    steps = script.steps
    for part in _parts(steps):
        yield replace(script, steps=part)
    for i, step in enumerate(steps):
        if isinstance(step, Push):
            for smaller in _smaller_pushes(step):
                yield replace(script, steps=[*steps[:i], smaller, *steps[i + 1 :]])
        if isinstance(step, Upsert):
            for rows in _parts(step.rows):
                yield replace(script, steps=[*steps[:i], Upsert(step.table, rows), *steps[i + 1 :]])
        if isinstance(step, Crowd):
            for members in _parts(step.members):
                yield replace(script, steps=[*steps[:i], Crowd(members), *steps[i + 1 :]])
        if isinstance(step, Leave):
            for labels in _parts(step.labels):
                yield replace(script, steps=[*steps[:i], Leave(labels), *steps[i + 1 :]])
    specs = [step.spec for step in steps if isinstance(step, Submit | Replace)]
    specs += [member.spec for step in steps if isinstance(step, Crowd) for member in step.members]
    used = {item.source for spec in specs for item in spec.meaning.inputs}
    used |= {name for step in steps if isinstance(step, Push) for name in step.batches}
    used |= {step.table for step in steps if isinstance(step, Upsert | Delete)}
    if not {stream.name for stream in script.streams} | {table.name for table in script.tables} <= used:
        streams = [stream for stream in script.streams if stream.name in used]
        yield replace(script, streams=streams, tables=[table for table in script.tables if table.name in used])
    if script.batch_rows != 4096:
        yield replace(script, batch_rows=4096)
    if script.policy != "auto":
        yield replace(script, policy="auto")


def _parts(items: list[Any]) -> Iterator[list[Any]]:
    """The list without one of its halves, quarters, ..., single items."""
    size = len(items) // 2
    while size:
        for first in range(0, len(items), size):
            yield items[:first] + items[first + size :]
        size //= 2


def _smaller_pushes(step: Push) -> Iterator[Push]:
    for name, rows in step.batches.items():
        if len(step.batches) > 1:
            yield replace(step, batches={other: batch for other, batch in step.batches.items() if other != name})
        for part in _parts(rows):
            yield replace(step, batches={**step.batches, name: part})
    if step.many and len(step.batches) == 1:
        yield replace(step, many=False)
    if step.form != "dicts":
        yield replace(step, form="dicts")
