"""`complete_since` of queries with operators: from then on a query that came late has the answer of one that was always there."""

from __future__ import annotations

import datetime as dt
import random

import pytest

from eddy import Engine
from tests.reference.operators import Tree, exact, parameters
from tests.reference.payload import encode
from tests.reference.script import Advance, Push
from tests.reference.seeds import seeds
from tests.reference.tree_sql import as_sql
from tests.reference.values import canonical_row
from tests.reference.window_script import Retract, written_keys
from tests.reference.window_steps import WindowStepMaker, random_sources
from tests.reference.workload import to_datetime


def set_up(seed: int) -> tuple[Engine, WindowStepMaker]:
    rng = random.Random(seed)
    streams, _ = random_sources(rng, plain=True)
    engine = Engine()
    for s in streams:
        options = {"key": list(s.key)} if s.key else {}
        options |= {"end": s.end} if s.end else {}
        lateness, keep = dt.timedelta(microseconds=s.lateness_us), dt.timedelta(milliseconds=rng.choice([1, 3, 1000]))
        engine.create_stream(s.name, dict(s.columns), time="ts", lateness=lateness, late=s.late, keep=keep, **options)
    return engine, WindowStepMaker(rng, streams, [])


def take(engine: Engine, maker: WindowStepMaker) -> None:
    step = maker.rng.choice([maker.push, maker.push, maker.push, maker.advance, maker.retract])()
    match step:
        case Push(batches):
            engine.push_many({name: encode(rows, maker.streams[name].columns, "dicts") for name, rows in batches.items()})
        case Retract(stream, keys, time):
            engine.retract(stream, written_keys(keys), to_datetime(time))
        case Advance(time):
            engine.advance(to_datetime(time))


def submitted(engine: Engine, tree: Tree, history: str) -> object:
    return engine.submit(as_sql(tree), params=parameters(tree) or None, history=history)


def bag(engine: Engine, query: object) -> list[object]:
    table = engine.answer(query)
    return sorted(map(repr, map(canonical_row, zip(*(column.to_pylist() for column in table.columns), strict=True))))


@pytest.mark.parametrize("seed", seeds(range(16), 6))
def test_a_query_that_came_late_has_the_whole_answer_once_it_says_so(seed: int) -> None:
    engine, maker = set_up(seed)
    trees = [tree for tree in (maker.trees.query(stream=False) for _ in range(7)) if exact(tree)]
    early = [submitted(engine, tree, "new") for tree in trees]
    for _ in range(maker.rng.choice([3, 8])):
        take(engine, maker)
    late = [submitted(engine, tree, maker.rng.choice(["new", "window"])) for tree in trees]
    n_compared = 0
    for _ in range(18):
        take(engine, maker)
        now = engine.stats()["timelines"]["main"]["time"]
        for tree, first, second in zip(trees, early, late, strict=True):
            if second.complete_since is not None and second.complete_since <= now:
                assert bag(engine, second) == bag(engine, first), as_sql(tree)
                n_compared += 1
    assert n_compared > 0
