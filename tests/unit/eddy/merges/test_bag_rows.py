"""Copies of equal rows of a bag: each ends once, at its own end, however the others of its time change."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from eddy import Engine
from eddy.state.dump import dump_state, load_state
from tests.reference.comparison import compared
from tests.reference.seeds import seeds

COLUMNS = {"a": "int", "ts": "timestamp", "te": "timestamp"}


def make() -> Engine:
    engine = Engine()
    engine.create_merge("m", COLUMNS, time="ts", end="te", inputs=("x", "y"), order="any")
    engine.submit("SELECT ts, te FROM m [RANGE UNBOUNDED]", name="alive")
    return engine


def alive(engine: Engine) -> list[int]:
    """The times of the rows in the answer, in milliseconds."""
    return sorted(int(row["ts"].timestamp() * 1000) for row in engine.answer("alive").to_pylist())


def test_two_copies_that_end_early_one_after_the_other_are_both_gone() -> None:
    engine = make()
    engine.push("m", {"a": [1, 1], "ts": [10, 10], "te": [100, 100]}, input="x")
    engine.stable("m", "x", 20)
    assert alive(engine) == [10, 10]
    engine.adjust("m", {"a": [1], "ts": [10], "old_te": [100], "te": [50]}, input="x")
    engine.stable("m", "x", 60)
    assert alive(engine) == [10]
    engine.adjust("m", {"a": [1], "ts": [10], "old_te": [100], "te": [80]}, input="x")
    engine.stable("m", "x", 90)
    assert alive(engine) == []
    engine.check()


class Copies:
    """The copies of each time, as R4 has them: the ends that the deciding input tells, and those that are out."""

    def __init__(self) -> None:
        self.told: dict[int, list[int]] = {}
        self.out: dict[int, list[int]] = {}
        self.point = 0

    def reach(self, point: int) -> None:
        """Let the point pass: ends that it would freeze become those that are told, the smallest for the smallest."""
        for start, told in self.told.items():
            if start >= point:
                continue
            if start not in self.out:
                self.out[start] = list(told)
                continue
            mine, shown = Counter(told), Counter(self.out[start])
            lacking = sorted(end for end in (mine - shown).elements() if end >= self.point)
            extra = sorted(end for end in (shown - mine).elements() if end >= self.point)
            for new, old in zip(lacking, extra, strict=True):
                if min(new, old) < point:
                    self.out[start].remove(old)
                    self.out[start].append(new)
        self.point = point

    def alive(self) -> list[int]:
        return sorted(start for start, ends in self.out.items() for end in ends if end > self.point)


@pytest.mark.parametrize("seed", seeds(range(200), 20))
def test_every_copy_ends_once_and_where_its_input_told_last(seed: int) -> None:
    """One input says all points; the other one repeats what it gives, in part."""
    rng, engine, copies = random.Random(seed), make(), Copies()
    for _ in range(40):
        point = copies.point
        if rng.random() < 0.5:
            start, n = point + rng.choice([0, 1, 1, 2, 5]), rng.choice([1, 2, 3])
            rows = {"a": [1] * n, "ts": [start] * n, "te": [start + rng.choice([5, 5, 9])] * n}
            engine.push("m", rows, input="x")
            copies.told.setdefault(start, []).extend(rows["te"])
            if rng.random() < 0.5:
                engine.push("m", {name: values[:2] for name, values in rows.items()}, input="y")
        live = [(start, end) for start, ends in copies.told.items() for end in ends if end >= point]
        if live and rng.random() < 0.6:
            start, old = rng.choice(live)
            end = max(start + 1, point) + rng.choice([0, 1, 2, 6])
            engine.adjust("m", {"a": [1], "ts": [start], "old_te": [old], "te": [end]}, input="x")
            copies.told[start].remove(old)
            copies.told[start].append(end)
        copies.reach(point + rng.choice([0, 1, 1, 3]))
        engine.stable("m", "x", copies.point)
        assert alive(engine) == copies.alive()
        compared()
        if rng.random() < 0.1:
            engine = load_state([bytes(part) for part in dump_state(engine)])
    engine.check()
