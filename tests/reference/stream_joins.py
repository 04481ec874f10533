"""Scripts of joins with what the engine runs so far: streams over [RANGE w] and [NOW], tables; no history, no replacement."""

from __future__ import annotations

import random
from dataclasses import replace

from tests.reference.functions import FUNCTIONS
from tests.reference.join_steps import POLICIES, JoinStepMaker, random_sources
from tests.reference.script import Script, Step, StreamPlan, Submit, TablePlan
from tests.reference.steps import BATCH_ROWS
from tests.reference.workload import Spec


class StreamJoinMaker(JoinStepMaker):
    """Draws again until a query is one that runs."""

    def _spec(self, n_inputs: int | None = None, like: Spec | None = None) -> Spec:
        if n_inputs is None and self.rng.random() < 0.85:
            n_inputs = self.rng.choice([1, 2, 2, 2, 3, 3, 4, 5])
        while True:
            spec = super()._spec(n_inputs, like)
            windows = [item.window for item in spec.meaning.inputs]
            if all(window is None or window.rows is None for window in windows):
                return spec
            self.made.remove(spec)

    def submit(self, n_inputs: int | None = None) -> Step:
        step = super().submit(n_inputs)
        return replace(step, history="new") if isinstance(step, Submit) else step

    def replace(self) -> Step:
        return self.submit()


def make_stream_join_script(seed: int, n_steps: int) -> Script:
    """The script of a seed: the same for ever, as long as the generators do not change."""
    rng = random.Random(seed)
    streams = [replace(stream, keep_us=None) for stream in random_sources(rng)[0]]
    return _script(rng, streams, [], n_steps)


def make_table_script(seed: int, n_steps: int) -> Script:
    """The same with one or two tables."""
    rng = random.Random(seed)
    streams, tables = [], []
    while not tables:
        streams, tables = random_sources(rng)
    return _script(rng, [replace(stream, keep_us=None) for stream in streams], tables, n_steps)


def _script(rng: random.Random, streams: list[StreamPlan], tables: list[TablePlan], n_steps: int) -> Script:
    maker = StreamJoinMaker(rng, streams, tables)
    steps: list[Step] = [maker.upsert() for _ in tables]
    steps += [maker.submit() for _ in range(rng.randint(1, 4))]
    steps += [maker.any() for _ in range(n_steps)]
    return Script(streams, rng.choice(POLICIES), rng.choice(BATCH_ROWS), steps, tables, tuple(FUNCTIONS))
