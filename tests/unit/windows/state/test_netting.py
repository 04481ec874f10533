"""Changes of equal values cancel as the slow twin says, for rows of every type and for each instant alone."""

from __future__ import annotations

import math
import random
from typing import Any

import numpy as np
import pytest

from eddy.base.compile import ensure
from eddy.base.results import Results, net, net_by_instant
from filters.values.vector import Vector, strings_array
from lineage.schema import Type
from tests.reference.netting import net_by_instant_slow, uncancelled_slow
from windows.state.netting import uncancelled

ensure()

POOLS: dict[Type, list[Any]] = {
    Type.INT: [None, 0, 1, -1, 2**62],
    Type.FLOAT: [None, 0.0, -0.0, 1.5, math.nan, -math.nan, math.inf],
    Type.STRING: [None, "", "a", "b", "ä"],
    Type.BOOL: [None, True, False],
    Type.TIMESTAMP: [None, 0, 10**15],
    Type.NULL: [None],
}


def column(type: Type, cells: list[Any], rng: random.Random) -> Vector:
    """A vector of cells; texts under a dictionary of its own, in which one text stands twice."""
    nulls = np.array([cell is None for cell in cells], np.bool_)
    mask = nulls if nulls.any() or rng.random() < 0.5 else None
    if type is Type.NULL:
        return Vector.constant(type, None, len(cells))
    if type is Type.STRING:
        texts = ["", "a", "b", "ä", "a", *(f"never {k}" for k in range(rng.choice([0, 100])))]
        rng.shuffle(texts)
        places = [rng.choice([k for k, text in enumerate(texts) if text == cell] or [10**6]) for cell in cells]
        return Vector(type, np.array(places, np.int64), mask, strings_array(texts))
    dtype = {Type.FLOAT: np.float64, Type.BOOL: np.bool_}.get(type, np.int64)
    return Vector(type, np.array([rng.choice([0, 1]) if cell is None else cell for cell in cells], dtype), mask)


def drawn(types: list[Type], n_rows: int, sign: int, rng: random.Random) -> Results:
    """Rows in order of time, of few distinct values and times."""
    rows = [[rng.choice(POOLS[type]) for type in types] for _ in range(max(1, n_rows // 3))]
    picked = [rng.choice(rows) for _ in range(n_rows)] if rng.random() < 0.5 else None
    cells = [[row[k] for row in picked] if picked else rng.choices(POOLS[type], k=n_rows) for k, type in enumerate(types)]
    times = np.sort(np.array([rng.randrange(4) for _ in range(n_rows)], np.int64))
    return Results([column(type, cells[k], rng) for k, type in enumerate(types)], times, sign)


def shown(results: Results) -> list[tuple[int, int, str]]:
    """Rows as text: a NaN is not equal to itself, and -0.0 must stay what it is."""
    cells = zip(*(column.to_pylist() for column in results.columns), strict=True)
    return [(*signed, repr(row)) for signed, row in zip(zip(results.times.tolist(), results.signs.tolist()), cells, strict=True)]


@pytest.mark.parametrize("seed", range(60))
def test_what_remains_is_what_the_slow_twin_finds(seed: int) -> None:
    rng = random.Random(seed)
    types = rng.choices(list(POOLS), k=rng.randint(1, 3))
    minus = drawn(types, rng.choice([1, 2, 17, 60, 5000]), -1, rng)
    plus = drawn(types, rng.choice([1, 3, 20, 70]), 1, rng)
    left, came = uncancelled(minus.columns, plus.columns)
    assert (left.tolist(), came.tolist()) == uncancelled_slow(minus.columns, plus.columns)
    parts = [minus.take(left), plus.take(came)]
    assert [shown(part) for part in net(minus, plus)] == [shown(part) for part in parts if len(part)]


@pytest.mark.parametrize("seed", range(60))
def test_instants_are_netted_each_alone(seed: int) -> None:
    rng = random.Random(seed)
    types = rng.choices(list(POOLS), k=rng.randint(1, 3))
    minus = drawn(types, rng.choice([0, 1, 17, 60]), -1, rng)
    plus = drawn(types, rng.choice([0, 1, 20, 70]), 1, rng)
    changes = []
    for part in (minus, plus):
        cells = [[column.cell(row) for column in part.columns] for row in range(len(part))]
        changes += [(int(time), int(part.sign), tuple(row)) for time, row in zip(part.times, cells, strict=True)]
    expected = [(time, sign, repr(row)) for time, sign, row in net_by_instant_slow(changes)]
    found = [
        (int(time), int(sign), repr(tuple(column.cell(row) for column in part.columns)))
        for part in net_by_instant(minus, plus)
        for row, (time, sign) in enumerate(zip(part.times, part.signs, strict=True))
    ]
    assert found == expected


def test_one_side_alone_stays_as_it_is() -> None:
    rows = Results([Vector(Type.INT, np.array([1, 1]))], np.array([3, 4]), 1)
    assert net(None, rows) == [rows] and net(rows.take(slice(0)), rows) == [rows]
    assert net(rows, rows) == [] == net_by_instant(rows, rows)
    assert net(None, rows.take(slice(0))) == []
