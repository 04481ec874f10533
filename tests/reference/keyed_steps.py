"""Draws scripts of queries over streams with keys and ends of their own: of one input and of several, with tables or without."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

from tests.reference.functions import FUNCTIONS
from tests.reference.join_steps import POLICIES, random_sources
from tests.reference.join_workload import KEYS, TABLE_KEYS
from tests.reference.script import Push, Retract, Script, Step, StreamPlan, TablePlan
from tests.reference.steps import BATCH_ROWS
from tests.reference.stream_joins import StreamJoinMaker
from tests.reference.workload import MS

#: From a row's time to its end.
LENGTHS = [-MS, 0, 1, MS, MS, 2 * MS, 5 * MS, 30 * MS, None]


def keyed_streams(rng: random.Random, streams: list[StreamPlan]) -> list[StreamPlan]:
    """Most of the streams with a key, an end or both, the first one always; where rows wait, so do retractions."""
    kinds = [(True, True), (True, True), (True, False), (False, True), (False, False)]
    found = []
    for k, stream in enumerate(streams):
        keyed, ends = rng.choice(kinds[: 4 if k == 0 else 5])
        lateness = rng.choice([0, 0, MS, 5 * MS])
        key = rng.choice(TABLE_KEYS) if keyed else ()
        found.append(replace(stream, key=key, end="at" if ends else None, lateness_us=lateness))
    return found


class KeyedMaker(StreamJoinMaker):
    """Rows with ends around their times, and retractions."""

    def __init__(self, rng: random.Random, streams: list[StreamPlan], tables: list[TablePlan]) -> None:
        super().__init__(rng, streams, tables)
        self.plans = {stream.name: stream for stream in streams}

    def push(self, n_rows: int | None = None, many: bool | None = None) -> Push:
        step = super().push(n_rows, many)
        for name, rows in step.batches.items():
            for row in rows:
                length = self.rng.choice(LENGTHS)
                if self.plans[name].end:
                    row["at"] = None if length is None else row["ts"] + length
        return step

    def retract(self) -> Step:
        keyed = [stream for stream in self.plans.values() if stream.key]
        if not keyed:
            return self.advance()
        stream = self.rng.choice(keyed)
        keys = [tuple(self.rng.choice(KEYS[column]) for column in stream.key) for _ in range(self.rng.choice([0, 1, 1, 2, 4]))]
        behind = self.rng.choice([-3 * MS, -1, 0, 0, 0, 1, MS, 3 * MS])
        return Retract(stream.name, keys, max(self.center.values()) + behind)

    def any(self) -> Step:
        makers: list[tuple[int, Callable[[], Step]]] = [(60, self.retract), (300, super().any)]
        return self.rng.choices([maker for _, maker in makers], [weight for weight, _ in makers])[0]()


def make_keyed_script(seed: int, n_steps: int) -> Script:
    """The script of a seed: the same for ever, as long as the generators do not change."""
    rng = random.Random(seed)
    streams, tables = random_sources(rng)
    streams = keyed_streams(rng, streams)
    if rng.random() < 0.5:
        tables = []
    maker = KeyedMaker(rng, streams, tables)
    steps: list[Step] = [maker.upsert() for _ in tables]
    steps += [maker.submit() for _ in range(rng.randint(2, 4))]
    steps += [maker.any() for _ in range(n_steps)]
    return Script(streams, rng.choice(POLICIES), rng.choice(BATCH_ROWS), steps, tables, tuple(FUNCTIONS))
