"""The engine itself at every instant at which something may happen, 1 us before and after it and half-way to the next.

Rows come one by one, in order of time; between them only `advance` moves time, to each of those instants. The model named them in
a first run. After every step the engine, the model and, at the end, DuckDB agree (`tests/reference/window_harness.py`).
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from itertools import pairwise

import pytest

from eddy import Engine
from tests.reference.operators import Tree
from tests.reference.script import Advance, Push, Upsert
from tests.reference.seeds import amount, seeds
from tests.reference.tree_workload import VALUES, _may_be_shown_whole
from tests.reference.values import Row
from tests.reference.window_harness import replay
from tests.reference.window_model import WindowModel
from tests.reference.window_player import WindowPlayer
from tests.reference.window_script import Open, Retract, Step, WindowScript
from tests.reference.window_steps import EXPIRIES, _makes_streams, ordered_rows, random_row, random_sources, tree_maker

#: Timed steps: what comes from outside, in order of time.
Timed = list[tuple[int, Step]]
#: How long after the last row: all windows have passed.
AFTER = 40_000


def draw_trees(rng: random.Random, script: WindowScript, made: Timed, n: int) -> list[Tree]:
    """Trees whose answers change, or that emit something."""
    maker = tree_maker(rng, script.streams, script.tables)
    found: list[Tree] = []
    while len(found) < n:
        tree = maker.query(rng.choice([1, 2, 3, 3]))
        if not _makes_streams(tree) or (tree.is_stream and _may_be_shown_whole(tree)):
            (opening,) = played(script, [Open(0, tree)], made).openings
            found += [tree] if len(opening.answers) + len(opening.emitted) > 2 else []
    return found


def played(script: WindowScript, opened: list[Step], made: Timed) -> WindowModel:
    player = WindowPlayer(script)
    for step in (Advance(-1, "main"), *opened, *(step for _, step in made), Advance(made[-1][0] + AFTER, "main")):
        player.do(step)
    return player.model


def draw_input(rng: random.Random, script: WindowScript, n: int) -> Timed:
    """Rows, some of one instant, retractions where streams have keys, and upserts where there are tables."""
    made: Timed = []
    keyed = [stream for stream in script.streams if stream.key]
    for name, row in ordered_rows(rng, script.streams, n):
        time: int = row["ts"]
        made.append((time, Push({name: [row]}, "dicts", many=False)))
        if rng.random() < 0.2:
            # values that are there come again, in the same instant
            stream = next(stream for stream in script.streams if stream.name == name)
            again: Row = {**random_row(rng, stream, time), **{key: row[key] for key in ("k", "n", "g")}}
            made.append((time, Push({name: [again]}, "dicts", many=False)))
        if keyed and rng.random() < 0.3:
            made.append((time, Retract(rng.choice(keyed).name, [(rng.choice(VALUES["id"]),)], time)))
        if script.tables and rng.random() < 0.15:
            table = rng.choice(script.tables)
            values = {name: rng.choice(VALUES[name]) for name in table.columns}
            made.append((time, Upsert(table.name, [{**values, "k": rng.randrange(3)}])))
    return made


def instants(model: WindowModel) -> list[int]:
    """The times of all events of a model, 1 us before and after each, and half-way between two."""
    end = int(model.now)
    times = sorted({int(event.time) for event in model.events if event.time >= 0} | {0, end})
    around = {time + by for time in times for by in (-1, 0, 1)} | {(a + b) // 2 for a, b in pairwise(times)}
    return sorted(time for time in around if 0 <= time <= end)


def check(seed: int, plain: bool, expiry: str, n_rows: int = 9) -> Counter[str]:
    """One random history under one word; returns how many steps of each kind there were."""
    rng = random.Random(seed)
    drawn, tables = random_sources(rng, plain=plain)
    script = WindowScript([replace(stream, lateness_us=0) for stream in drawn], tables, expiry=expiry)
    emits = ["commit", "event"]
    made = draw_input(rng, script, n_rows)
    opened: list[Step] = [Open(k, tree, emit=emits[k % 2]) for k, tree in enumerate(draw_trees(rng, script, made, 3))]
    points = instants(played(script, opened, made))
    steps: list[Step] = [Advance(-1, "main"), *opened]
    # an instant is looked at after what came in it; 1 us before, nothing of it has happened
    merged = [(time, 0, k, step) for k, (time, step) in enumerate(made)]
    merged += [(time, 1, k, Advance(time, "main")) for k, time in enumerate(points)]
    steps += [step for _, _, _, step in sorted(merged, key=lambda entry: entry[:3])]
    replay(replace(script, steps=steps), Engine, use_duckdb=True)
    return Counter(type(step).__name__ for step in steps)


@pytest.mark.parametrize("expiry", EXPIRIES)
@pytest.mark.parametrize(("seed", "plain"), [(0, True), (1, False), (2, False)][: amount(2, long=3)])
@pytest.mark.slow
def test_answers_are_exact_at_every_instant_and_beside_it(seed: int, plain: bool, expiry: str) -> None:
    counts = check(seed, plain, expiry)
    assert counts["Advance"] > 3 * counts["Push"]


@pytest.mark.slow
@pytest.mark.parametrize("seed", seeds(range(100, 130), 6))
def test_one_of_many_histories_is_exact_at_every_instant_and_beside_it(seed: int) -> None:
    counts = check(seed, seed % 3 == 0, EXPIRIES[seed % len(EXPIRIES)], n_rows=14)
    assert counts["Advance"] > 3 * counts["Push"]
