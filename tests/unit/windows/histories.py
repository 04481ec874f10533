"""Random histories of edges, their cutting into commits, and what deltas mean event by event: what operators are compared with.

A history is what happens on some edges in event order. It can be cut into commits anywhere. `Bags` reads the deltas of one edge
back, one event at a time, and says which values are there after each: an operator is right iff, after every event, the bag of its
output is the function of the bags of its inputs that it stands for.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from filters.values.vector import DTYPES, Vector
from lineage.elements import FOREVER
from lineage.schema import Type
from tests.reference.deltas import check_delta
from windows.delta import SCHEDULED, Delta, Minus, Plus
from windows.operators.operator import Operator

Value = tuple[Any, ...]
Key = tuple[int, int]


@dataclass
class Change:
    """What one event does to one edge."""

    ended: list[int] = field(default_factory=list)
    #: (id, end, value)
    begun: list[tuple[int, int, Value]] = field(default_factory=list)


@dataclass
class History:
    """Arrivals with their times, one change for each edge."""

    types: list[tuple[Type, ...]]
    #: (time, one change for each edge); the rank of an arrival is its number
    arrivals: list[tuple[int, list[Change]]]
    #: whether edges carry scheduled ends as explicit ones
    sends_ends: bool = False


def column(type: Type, cells: Sequence[Any]) -> Vector:
    if type is Type.STRING:
        return Vector.of_strings(list(cells))
    nulls = np.array([cell is None for cell in cells], np.bool_)
    # what is under NULL means nothing
    values = np.array([1 if cell is None else cell for cell in cells], DTYPES[type])
    return Vector(type, values, nulls if nulls.any() else None)


def columns(types: Sequence[Type], rows: Sequence[Value]) -> list[Vector]:
    return [column(type, [row[k] for row in rows]) for k, type in enumerate(types)]


def plain(cell: Any) -> Any:
    """A cell as Python compares it the way values must."""
    if isinstance(cell, float):
        return "NaN" if cell != cell else cell + 0.0
    return cell


def rows_of(vectors: Sequence[Vector], n_rows: int) -> list[Value]:
    cells = []
    for vector in vectors:
        # times as microseconds
        cells.append([plain(vector.cell(row)) for row in range(n_rows)])
    return [tuple(column[row] for column in cells) for row in range(n_rows)]


def random_history(
    seed: int,
    *,
    n_edges: int = 1,
    types: Sequence[Type] = (Type.INT,),
    values: Callable[[random.Random], Value] | None = None,
    n_arrivals: int = 40,
    known: float = 0.5,
    premature: float = 0.3,
    in_order: bool = False,
    sends_ends: bool = False,
) -> History:
    """Arrivals that begin and end rows of small ids and values; all rows have ended by the last one or will.

    `known`: how many rows have a scheduled end; `premature`: how often one of those ends before; `in_order`: no end overtakes.
    """
    rng = random.Random(seed)
    draw = values or (lambda rng: (rng.choice([None, 1, 2, 3]),))
    live: list[dict[int, int]] = [{} for _ in range(n_edges)]
    latest = [0] * n_edges
    clock = rng.choice([-1000, 0, 10**15])
    arrivals = []
    for number in range(n_arrivals):
        clock += rng.choice([0, 0, 1, 2, 15])
        last = number == n_arrivals - 1
        changes = []
        for edge in range(n_edges):
            here = live[edge]
            for id in [id for id, end in here.items() if end <= clock]:
                del here[id]
            change = Change()
            for id, end in list(here.items()):
                chance = premature if end < FOREVER else 0.15
                if (end == FOREVER and last) or rng.random() < chance * 0.5:
                    change.ended.append(id)
                    del here[id]
            for _ in range(0 if last else rng.choice([0, 1, 1, 2])):
                id = rng.choice([id for id in range(30) if id not in here])
                end = clock + rng.randrange(1, 40) if rng.random() < known else FOREVER
                if in_order:
                    end = latest[edge] = max(clock + 20, latest[edge])
                here[id] = end
                change.begun.append((id, end, draw(rng)))
            changes.append(change)
        arrivals.append((clock, changes))
    return History([tuple(types)] * n_edges, arrivals, sends_ends)


def commits(history: History, seed: int | None) -> Iterable[tuple[list[Delta], int]]:
    """The history cut into commits: anywhere by a seed, or one for each arrival; then one in which all ends pass."""
    rng = random.Random(seed)
    live: list[dict[int, int]] = [{} for _ in history.types]
    start = 0
    n = len(history.arrivals)
    while start < n:
        stop = start + 1 if seed is None else min(n, start + rng.choice([1, 1, 2, 5, 20]))
        clock = history.arrivals[stop - 1][0]
        if stop < n and seed is not None:
            clock = rng.choice([clock, clock, history.arrivals[stop][0], (clock + history.arrivals[stop][0]) // 2])
        yield [_delta(history, edge, start, stop, clock, live[edge]) for edge in range(len(history.types))], clock
        if seed is not None and rng.random() < 0.2:
            yield [_delta(history, edge, stop, stop, clock, live[edge]) for edge in range(len(history.types))], clock
        start = stop
    clock += 1000
    yield [_delta(history, edge, n, n, clock, live[edge]) for edge in range(len(history.types))], clock


def _delta(history: History, edge: int, start: int, stop: int, clock: int, live: dict[int, int]) -> Delta:
    minus: list[tuple[int, int, int]] = []
    plus: list[tuple[int, int, int, int, Value]] = []

    def pass_ends(upto: int) -> None:
        for id, end in sorted(live.items(), key=lambda item: item[1]):
            if end <= upto:
                del live[id]
                if history.sends_ends:
                    minus.append((id, end, SCHEDULED))

    for rank in range(start, stop):
        time, changes = history.arrivals[rank]
        pass_ends(time)
        for id in changes[edge].ended:
            del live[id]
            minus.append((id, time, rank))
        for id, end, value in changes[edge].begun:
            live[id] = end
            plus.append((id, time, rank, end, value))
    pass_ends(clock)
    rows = [row[4] for row in plus]
    begun = np.array([row[:4] for row in plus], np.int64).reshape(-1, 4).T
    ended = np.array(minus, np.int64).reshape(-1, 3).T
    return Delta(
        Plus(*map(np.ascontiguousarray, begun), columns(history.types[edge], rows)), Minus(*map(np.ascontiguousarray, ended))
    )


class Bags:
    """An edge read back: which values are there after each event."""

    def __init__(self, sends_ends: bool) -> None:
        self._sends_ends = sends_ends
        #: id -> (value, end)
        self.live: dict[int, tuple[Value, int]] = {}
        #: (time, rank) -> the bag after that event
        self.states: list[tuple[Key, Counter[Value]]] = [((-(2**63), 0), Counter())]
        #: ends that were neither scheduled nor of a row that is there
        self.dropped = 0
        #: ids that ended before their scheduled end
        self.premature = 0
        #: everything that happened: (time, rank, sign, value)
        self.events: list[tuple[int, int, int, Value]] = []

    def read(self, delta: Delta, upto: int) -> None:
        check_delta(delta, upto)
        rows = rows_of(delta.plus.columns, len(delta.plus))
        events: list[tuple[int, int, int, int, Value | None, int]] = [
            (time, rank, 0, id, None, 0)
            for id, time, rank in zip(
                delta.minus.ids.tolist(), delta.minus.times.tolist(), delta.minus.ranks.tolist(), strict=True
            )
        ]
        plus = zip(
            delta.plus.ids.tolist(),
            delta.plus.times.tolist(),
            delta.plus.ranks.tolist(),
            delta.plus.ends.tolist(),
            rows,
            strict=True,
        )
        events += [(time, rank, 1, id, row, end) for id, time, rank, end, row in plus]
        events.sort(key=lambda event: event[:3])
        for time, rank, is_plus, id, row, end in events:
            self._pass_ends(time)
            if not is_plus:
                if id in self.live:
                    self.premature += time < self.live[id][1] < FOREVER
                    self.events.append((time, rank, -1, self.live.pop(id)[0]))
                else:
                    self.dropped += 1
            else:
                assert id not in self.live, f"id {id} begins while it is alive, at {time, rank}"
                assert row is not None
                self.live[id] = (row, end)
                self.events.append((time, rank, 1, row))
            self._note((time, rank))
        self._pass_ends(upto)
        if self._sends_ends:
            assert all(end > upto for _, end in self.live.values()), "a scheduled end was not sent"

    def _pass_ends(self, upto: int) -> None:
        if self._sends_ends:
            return
        for id, (_, end) in sorted(self.live.items(), key=lambda item: item[1][1]):
            if end <= upto:
                self.events.append((end, SCHEDULED, -1, self.live.pop(id)[0]))
                self._note((end, SCHEDULED))

    def _note(self, key: Key) -> None:
        assert key >= self.states[-1][0], "events come in order"
        if key == self.states[-1][0]:
            self.states.pop()
        self.states.append((key, Counter(value for value, _ in self.live.values())))

    def bag(self) -> Counter[Value]:
        return Counter(value for value, _ in self.live.values())


def at(states: list[tuple[Key, Counter[Value]]], keys: Iterable[Key]) -> list[Counter[Value]]:
    """The bag after each of some ascending events."""
    found, k = [], 0
    for key in keys:
        while k + 1 < len(states) and states[k + 1][0] <= key:
            k += 1
        found.append(states[k][1])
    return found


def compare(
    operator: Operator,
    history: History,
    seed: int | None,
    function: Callable[[list[Counter[Value]]], Counter[Value]],
    since: Key = (-(2**63), 0),
) -> tuple[list[Bags], Bags]:
    """Run an operator over a history cut by `seed`; after each event from `since` on its output is the function of its inputs."""
    inputs = [Bags(history.sends_ends) for _ in history.types]
    output = Bags(operator.sends_ends)
    for deltas, upto in commits(history, seed):
        found = operator.process(deltas, upto)
        operator.check()
        for edge, delta in zip(inputs, deltas):
            edge.read(delta, upto)
        output.read(found, upto)
        standing = operator.answer(
            [partial(standing_delta, edge, types, upto) for edge, types in zip(inputs, history.types)], upto
        )
        check_delta(standing, upto)
        assert Counter(rows_of(standing.plus.columns, len(standing.plus))) == output.bag(), (
            "the answer is what the deltas amount to"
        )
        assert set(standing.plus.ids.tolist()) == set(output.live), "the answer has the ids of the deltas"
    keys = sorted({key for edge in [*inputs, output] for key, _ in edge.states if key >= since})
    bags = [at(edge.states, keys) for edge in inputs]
    for key, found_bag, *input_bags in zip(keys, at(output.states, keys), *bags):
        assert +found_bag == +function(input_bags), f"after {key}"
    return inputs, output


def standing_delta(edge: Bags, types: Sequence[Type], now: int) -> Delta:
    """The live rows of an input as + at one instant."""
    n = len(edge.live)
    ids = np.array(list(edge.live), np.int64)
    ends = np.array([end for _, end in edge.live.values()], np.int64)
    rows = [tuple(float("nan") if cell == "NaN" else cell for cell in value) for value, _ in edge.live.values()]
    none = np.zeros(0, np.int64)
    plus = Plus(ids, np.full(n, now, np.int64), np.zeros(n, np.int64), ends, columns(types, rows))
    return Delta(plus, Minus(none, none, none))
