"""Draws scripts in which tables change and stand beside relations: those that are not retroactive count as they were.

DuckDB is not asked: which copy of a value came when is nothing that a bag of rows tells.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from tests.reference.script import TablePlan
from tests.reference.steps import BATCH_ROWS
from tests.reference.window_script import Step, WindowScript
from tests.reference.window_steps import EXPIRIES, POLICIES, TABLE_COLUMNS, WindowStepMaker, random_sources


def make_frozen_script(seed: int, n_steps: int, plain: bool = True, rewrites: int = 4) -> WindowScript:
    """The script of a seed; `plain`: no stream has a key or an end."""
    rng = random.Random(seed)
    streams, _ = random_sources(rng, plain)
    tables = [
        TablePlan("t0", dict(TABLE_COLUMNS), ("k",), False),
        TablePlan("t1", dict(TABLE_COLUMNS), ("k",), rng.random() < 0.5),
    ]
    maker = WindowStepMaker(rng, streams, tables)
    maker.trees.frozen = True
    steps: list[Step] = [maker.start(), *(maker.upsert() for _ in range(4))]
    steps += [maker.open() for _ in range(4)]
    makers: list[tuple[int, Callable[[], Step]]] = [
        (60, maker.push), (15, maker.advance), (40, maker.upsert), (12, maker.delete), (10, maker.open),
        (rewrites, maker.rewrite), (6, maker.act),
    ]  # fmt: skip
    weights = [weight for weight, _ in makers]
    steps += [rng.choices([make for _, make in makers], weights)[0]() for _ in range(n_steps)]
    steps.append(maker.finish())
    drawn = {"policy": rng.choice(POLICIES), "expiry": rng.choice(EXPIRIES), "batch_rows": rng.choice(BATCH_ROWS)}
    return WindowScript(streams, tables, steps=steps, **drawn)
