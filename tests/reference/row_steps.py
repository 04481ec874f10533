"""Draws scripts over single streams whose windows mostly count rows; otherwise those of `history_steps.py`."""

from __future__ import annotations

import random
from dataclasses import replace

from tests.reference.history_steps import HistoryStepMaker, random_kept_streams
from tests.reference.lives import Window
from tests.reference.script import Script, Step, Submit
from tests.reference.steps import BATCH_ROWS, POLICIES
from tests.reference.workload import MS, QuerySpec

ROW_WINDOWS: list[tuple[str, Window]] = [
    ("[ROWS 1]", Window(rows=1)),
    ("[ROWS 2]", Window(rows=2)),
    ("[ROWS 10]", Window(rows=10)),
    ("[ROWS 500]", Window(rows=500)),
    ("[ROWS 3 RANGE 5 MILLISECONDS]", Window(5 * MS, 3)),
    ("[ROWS 20 RANGE 1 SECOND]", Window(1_000 * MS, 20)),
    ("[PARTITION BY id ROWS 1]", Window(rows=1, partition=("id",))),
    ("[PARTITION BY id ROWS 4]", Window(rows=4, partition=("id",))),
    ("[PARTITION BY x ROWS 2 RANGE 20 MILLISECONDS]", Window(20 * MS, 2, ("x",))),
    ("[PARTITION BY s, ok ROWS 3]", Window(rows=3, partition=("s", "ok"))),
]


class RowStepMaker(HistoryStepMaker):
    """Three of four relations count rows."""

    def _counting(self, spec: QuerySpec) -> QuerySpec:
        if spec.is_stream or self.rng.random() < 0.25:
            return spec
        return spec.with_window(*self.rng.choice(ROW_WINDOWS))

    def submit(self, depth: int | None = None, stream: str | None = None, crowd: bool = False) -> Submit:
        step = super().submit(depth, stream, crowd)
        spec = self.specs[-1] = self.texts[step.label] = self._counting(self.specs[-1])
        return replace(step, spec=spec)

    def instead_of(self, old: QuerySpec) -> QuerySpec:
        return self._counting(super().instead_of(old))


def make_row_script(seed: int, n_steps: int) -> Script:
    """The script of a seed: the same for ever, as long as the generators do not change."""
    rng = random.Random(seed)
    streams = random_kept_streams(rng)
    maker = RowStepMaker(rng, streams)
    steps: list[Step] = [maker.submit() for _ in range(rng.randint(1, 4))]
    steps += [maker.any() for _ in range(n_steps)]
    return Script(streams, rng.choice(POLICIES), rng.choice(BATCH_ROWS), steps)
