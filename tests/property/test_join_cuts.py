"""Cutting the same rows into other commits gives the same lives (`semantics.md` 3 and 25), on the naive model.

One `push_many` of everything, pieces of it, or a row at a time in merged order: no stream lags, so every match must live from
the same start to the same end. What only the finer cut shows are lives that are empty in event time: a row displaced by the
next commit of its own instant.
"""

from __future__ import annotations

import random
from collections import Counter

import pytest

from tests.reference.comparison import compared
from tests.reference.join_workload import Source, random_join, random_row, random_table_rows
from tests.reference.naive import Naive
from tests.reference.values import Row
from tests.reference.workload import COLUMNS, MS, Spec

STREAMS = ("s0", "s1", "s2")
KEY = ("id",)


def _lives(specs: list[Spec], table: list[Row], rows: list[tuple[str, Row]], cuts: list[int]) -> list[Counter[object]]:
    """The matches of each query with their lives, when the rows come in pieces that end at `cuts`."""
    naive = Naive()
    for name in STREAMS:
        naive.create_stream(name, time="ts")
    naive.create_table("t0", key=KEY)
    naive.create_table("t1", key=KEY, retroactive=True)
    for name in ("t0", "t1"):
        naive.upsert(name, table)
    numbers = [naive.submit(spec.meaning) for spec in specs]
    for first, last in zip([0, *cuts], [*cuts, len(rows)], strict=True):
        naive.push_many({name: [row for source, row in rows[first:last] if source == name] for name in STREAMS})
    naive.advance(rows[-1][1]["ts"])
    found = [[(r.value, r.start, r.end) for r in naive.queries[number].results if r.start < r.end] for number in numbers]
    return [Counter(lives) for lives in found]


@pytest.mark.parametrize("seed", range(40))
def test_any_cut_of_the_same_rows_gives_the_same_lives(seed: int) -> None:
    rng = random.Random(seed)
    sources = [Source(name, {**COLUMNS, "ts": "timestamp[us]"}, False) for name in STREAMS]
    sources += [Source(name, dict(COLUMNS), True) for name in ("t0", "t1")]
    specs = [random_join(rng, sources, [0, 20 * MS]) for _ in range(4)]
    table = random_table_rows(rng, KEY, 4)
    times = sorted(rng.randrange(30) * MS for _ in range(40))
    # push_many merges by (time, order of the mapping, row), so that is the order of single rows too
    rows = sorted(((rng.choice(STREAMS), random_row(rng, time)) for time in times), key=lambda e: (e[1]["ts"], e[0]))
    whole = _lives(specs, table, rows, [])
    compared(2 * len(specs))
    assert _lives(specs, table, rows, list(range(1, len(rows)))) == whole
    assert _lives(specs, table, rows, sorted(rng.sample(range(1, len(rows)), 5))) == whole
