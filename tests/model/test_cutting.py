"""Random cutting of a time-ordered input into commits: push, push_many and advance, batches of any size. Nothing changes.

ISTREAM, DSTREAM, RSTREAM    the same rows at the same times
emit="event"                 the same changes, net by value at each instant (an instant may be cut in two)
answer                       the same after all of it
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from eddy import Engine
from tests.reference.operators import ToStream, Tree, exact, parameters
from tests.reference.payload import encode
from tests.reference.script import Advance, Push
from tests.reference.seeds import seeds
from tests.reference.tree_sql import as_sql
from tests.reference.tree_workload import TreeMaker, _may_be_shown_whole
from tests.reference.values import Row, canonical, canonical_row
from tests.reference.window_harness import WindowHarness
from tests.reference.window_script import WindowScript
from tests.reference.window_steps import EXPIRIES, ordered_rows, random_sources, tree_maker
from tests.reference.workload import to_datetime

Changes = list[Counter[Any]]


def draw_trees(rng: random.Random, maker: TreeMaker) -> list[Tree]:
    """One of each kind of stream, and a relation to be read event by event."""
    trees: list[Tree] = []
    while len(trees) < 4:
        tree = maker.relation(rng.choice([1, 2, 3]))
        kind = ["istream", "dstream", "rstream", "relation"][len(trees)]
        if exact(tree) and (kind != "rstream" or _may_be_shown_whole(tree)):
            trees.append(tree if kind == "relation" else ToStream(kind, tree))
    return trees


def commits(rng: random.Random | None, rows: list[tuple[str, Row]]) -> Iterator[Push | Advance]:
    """The rows one by one, or cut by chance; time goes on between them too."""
    names = sorted({name for name, _ in rows})
    while rows:
        size = 1 if rng is None else rng.choice([1, 1, 2, 5, 20])
        if rng is not None and rng.random() < 0.4:
            # as many as one stream has before another one comes
            size = next((k for k, (name, _) in enumerate(rows) if name != rows[0][0]), len(rows))
        part, rows = rows[:size], rows[size:]
        batches = {name: [row for other, row in part if other == name] for name in names}
        yield Push({name: batch for name, batch in batches.items() if batch}, "dicts", many=len({n for n, _ in part}) > 1)
        if rng is not None and rows and rng.random() < 0.3:
            low, high = part[-1][1]["ts"], rows[0][1]["ts"]
            yield Advance(rng.choice([low, high, (low + high) // 2]), "main")


def run(script: WindowScript, trees: list[Tree], rows: list[tuple[str, Row]], rng: random.Random | None) -> Changes:
    """Everything that the queries said, and their answers."""
    harness = WindowHarness(script, Engine)
    engine = harness.engine
    queries = [
        engine.submit(
            as_sql(tree), params=parameters(tree) or None, emit="event", expiry=None if rng is None else rng.choice(EXPIRIES)
        )
        for tree in trees
    ]
    for query in queries:
        engine.changes(query, since="now")
    for step in commits(rng, rows):
        if isinstance(step, Advance):
            engine.advance(to_datetime(step.time))
        else:
            payloads = {name: encode(batch, script.columns[name], "dicts") for name, batch in step.batches.items()}
            if step.many:
                engine.push_many(payloads)
            else:
                ((name, payload),) = payloads.items()
                engine.push(name, payload)
    engine.advance(to_datetime(rows[-1][1]["ts"] + 100_000))
    engine.check()
    found: Changes = []
    for tree, query in zip(trees, queries, strict=True):
        net: Counter[Any] = Counter()
        for change in engine.changes(query, since=0):
            net[canonical(change.time), canonical_row(change.row[name] for name in tree.columns)] += change.sign
        found.append(Counter({key: n for key, n in net.items() if n}))
        found.append(Counter(canonical_row(row.values()) for row in query.answer().to_pylist()))
    harness.close()
    return found


def compare(seed: int, plain: bool) -> None:
    rng = random.Random(seed)
    drawn, _ = random_sources(rng, plain=plain)
    streams = [replace(stream, lateness_us=0) for stream in drawn]
    trees = draw_trees(rng, tree_maker(rng, streams, []))
    rows = ordered_rows(rng, streams, 40)
    whole = run(WindowScript(streams, []), trees, rows, None)
    for _ in range(2):
        script = WindowScript(streams, [], batch_rows=rng.choice([1, 2, 7, 64, 4096]))
        again = run(script, trees, rows, rng)
        for place, (one, other) in enumerate(zip(whole, again, strict=True)):
            assert other == one, as_sql(trees[place // 2])
    assert sum(map(len, whole)) > 0


@pytest.mark.parametrize("seed", seeds(range(20), 8))
def test_the_cutting_of_rows_into_commits_changes_nothing(seed: int) -> None:
    compare(seed, plain=True)


@pytest.mark.parametrize("seed", seeds(range(100, 112), 5))
def test_nor_does_it_where_rows_have_keys_and_ends(seed: int) -> None:
    compare(seed, plain=False)
