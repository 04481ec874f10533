"""Windows over the rows of a stream: in steps, by time and by number, against their definitions."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable

import numpy as np
import pytest

from eddy.base.compile import ensure
from lineage.elements import FOREVER
from lineage.schema import Type
from tests.reference.deltas import check_delta
from tests.unit.windows.histories import Bags, Value, at, columns, rows_of
from windows.delta import SCHEDULED, Delta, Minus, Plus, no_minus
from windows.operators.operator import Operator
from windows.operators.slide import SlideOperator
from windows.operators.window import WindowOperator
from windows.spec import WindowSpec

ensure()

TYPES = (Type.INT, Type.STRING)
Bag = Counter[Value]
#: (start, rank, effective time, value)
Row = tuple[int, int, int, Value]


def random_rows(seed: int, lag: int = 0) -> list[Row]:
    rng = random.Random(seed)
    clock = rng.choice([-500, 0, 3])
    rows = []
    for rank in range(60):
        clock += rng.choice([0, 0, 1, 1, 2, 9, 30])
        rows.append((clock, rank, clock - rng.choice([0, 0, lag]), (rng.choice([None, 1, 2]), rng.choice(["a", "b"]))))
    return rows


def deltas(rows: list[Row], cut: int | None) -> Iterable[tuple[Delta, int]]:
    rng = random.Random(cut)
    start = 0
    while start < len(rows):
        stop = min(len(rows), start + (1 if cut is None else rng.choice([1, 2, 7, 30])))
        part = rows[start:stop]
        clock = part[-1][0]
        if stop < len(rows) and cut is not None:
            clock = rng.choice([clock, rows[stop][0]])
        yield stream(part, start), clock
        start = stop
    yield stream([], start), clock + 3
    yield stream([], start), clock + 1000


def stream(rows: list[Row], first: int) -> Delta:
    n = len(rows)
    starts = np.array([row[0] for row in rows], np.int64)
    ranks = np.array([row[1] for row in rows], np.int64)
    effective = np.array([row[2] for row in rows], np.int64)
    values = columns(TYPES, [row[3] for row in rows])
    ends = np.full(n, FOREVER, np.int64)
    return Delta(Plus(np.arange(first, first + n), starts, ranks, ends, values, effective), no_minus())


def compare(operator: Operator, rows: list[Row], cut: int | None, expected: Callable[[tuple[int, int]], Bag]) -> Bags:
    """After every event of input and output the output is what the definition says."""
    output = Bags(operator.sends_ends)
    keys = {(time, rank) for time, rank, _, _ in rows}
    for delta, upto in deltas(rows, cut):
        found = operator.process([delta], upto)
        operator.check()
        output.read(found, upto)
        keys.add((upto, 2**40))
        answer = operator.answer([], upto)
        check_delta(answer, upto)
        assert Counter(rows_of(answer.plus.columns, len(answer.plus))) == output.bag()
        assert set(answer.plus.ids.tolist()) == set(output.live)
    keys |= {key for key, _ in output.states[1:]}
    ordered = sorted(keys)
    for key, bag in zip(ordered, at(output.states, ordered)):
        assert +bag == +expected(key), f"after {key}"
    return output


STEPS = [(10, 10), (20, 5), (7, 3), (3, 10), (1, 1)]


@pytest.mark.parametrize("bounds", [False, True])
@pytest.mark.parametrize(("width", "slide"), STEPS)
def test_rows_are_shown_in_the_extents_of_the_last_boundary(width: int, slide: int, bounds: bool) -> None:
    for seed in range(6):
        rows = random_rows(seed, lag=[0, 4, 25][seed % 3])

        def extent(key: tuple[int, int], rows: list[Row] = rows) -> Bag:
            boundary = key[0] // slide * slide
            ends = (boundary - width, boundary) if bounds else ()
            return Counter((*value, *ends) for start, _, t, value in rows if boundary - width <= t and start < boundary)

        operator = SlideOperator(TYPES, width, slide, bounds=bounds)
        output = compare(operator, rows, [None, seed][seed % 2], extent)
        assert output.dropped == output.premature == 0
        assert all(rank == SCHEDULED for (_, rank), _ in output.states[1:]), "all happens at boundaries"
        missed = sum(len(range(t // slide * slide + slide, min(start, t + width) + 1, slide)) for start, _, t, _ in rows)
        assert operator.missed == missed
        assert operator.bytes == SlideOperator(TYPES, width, slide, bounds=bounds).bytes


@pytest.mark.parametrize("bounds", [False, True])
@pytest.mark.parametrize(("width", "slide"), STEPS)
def test_a_row_that_ends_early_is_shown_no_more(width: int, slide: int, bounds: bool) -> None:
    for seed in range(8):
        rng = random.Random(seed)
        rows = random_rows(seed, lag=[0, 4][seed % 2])
        clock, n = rows[-1][0] + 1000, len(rows)
        # an end of its own, and a - that comes with an arrival or with the clock, which may find it gone
        own = [row[0] + rng.choice([1, 2, 5, 11, 40, 10**6]) for row in rows]
        instants = [row[0] + rng.choice([1, 2, 5, 11, 40, 10**6]) for row in rows]
        taken = sorted((at, rng.choice([SCHEDULED, 2 * n]), k) for k, at in enumerate(instants) if at < clock)

        def extent(
            key: tuple[int, int], rows: list[Row] = rows, own: list[int] = own, taken: list[tuple[int, int, int]] = taken
        ) -> Bag:
            boundary = key[0] // slide * slide
            gone = {k for at, rank, k in taken if (at, rank) <= key} | {k for k, at in enumerate(own) if at <= key[0]}
            ends = (boundary - width, boundary) if bounds else ()
            return Counter(
                (*value, *ends)
                for k, (start, _, t, value) in enumerate(rows)
                if boundary - width <= t and start < boundary and k not in gone
            )

        operator, output = SlideOperator(TYPES, width, slide, bounds=bounds, ends_early=True), Bags(False)
        keys = {(at, rank) for at, rank, _ in taken} | {(at, SCHEDULED) for at in own if at < clock}
        at_once = [None, seed][seed // 2 % 2]
        before = -(10**9)
        for delta, upto in deltas(rows, at_once):
            delta.plus.ends = np.array([own[k] for k in delta.plus.ids.tolist()], np.int64)
            delta.minus = explicit([item for item in taken if before < item[0] <= upto])
            before = upto
            output.read(operator.process([delta], upto), upto)
            operator.check()
            keys.add((upto, 2**40))
        ordered = sorted(keys | {key for key, _ in output.states[1:]})
        for key, bag in zip(ordered, at(output.states, ordered)):
            assert bag == extent(key), f"seed {seed}, at {key}"
        assert output.dropped == 0


def explicit(taken: list[tuple[int, int, int]]) -> Minus:
    times, ranks, ids = (np.array([item[k] for item in taken], np.int64) for k in range(3))
    return Minus(ids, times, ranks)


def newest(rows: list[Row], key: tuple[int, int], spec: WindowSpec) -> Bag:
    """The rows of a window by its definition."""
    by_key: dict[Value, list[Row]] = {}
    for row in rows:
        if (row[0], row[1]) <= key:
            by_key.setdefault(tuple(row[3][position] for position in spec.partition), []).append(row)
    found = [row for group in by_key.values() for row in (group[-spec.rows :] if spec.rows else group)]
    return Counter(value for _, _, t, value in found if key[0] < t + spec.width_us)


@pytest.mark.parametrize("sends_ends", [False, True])
@pytest.mark.parametrize(
    "spec",
    [
        WindowSpec.range(12),
        WindowSpec.now(),
        WindowSpec.unbounded(),
        WindowSpec.newest(1),
        WindowSpec.newest(5),
        WindowSpec.newest(3, width_us=6),
        WindowSpec.newest(2, [0]),
        WindowSpec.newest(2, [0, 1], 15),
    ],
    ids=str,
)
def test_a_window_holds_the_newest_rows_in_its_range(spec: WindowSpec, sends_ends: bool) -> None:
    for seed in range(6):
        rows = random_rows(seed)
        operator = WindowOperator(TYPES, spec, sends_ends=sends_ends)
        output = compare(operator, rows, [None, seed][seed % 2], lambda key, rows=rows: newest(rows, key, spec))
        assert output.dropped == 0
        if spec.width_us < FOREVER:
            assert operator.bytes == WindowOperator(TYPES, spec).bytes
