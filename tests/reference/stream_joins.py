"""Scripts of joins of streams alone, and of streams with tables; one input in some, with windows of any kind."""

from __future__ import annotations

import random
from dataclasses import replace

from tests.reference.functions import FUNCTIONS
from tests.reference.join_steps import POLICIES, JoinStepMaker, random_sources
from tests.reference.join_workload import ANY_EDGES, Edges
from tests.reference.script import Script, Step, StreamPlan, Submit, TablePlan
from tests.reference.steps import BATCH_ROWS
from tests.reference.workload import Spec


class StreamJoinMaker(JoinStepMaker):
    """Draws queries of every size."""

    def draw_spec(self, n_inputs: int | None = None, like: Spec | None = None) -> Spec:
        if n_inputs is None and self.rng.random() < 0.85:
            n_inputs = self.rng.choice([1, 2, 2, 2, 3, 3, 4, 5])
        return super().draw_spec(n_inputs, like)


class TableJoinMaker(StreamJoinMaker):
    """Most queries read a table and a stream, and most of those streams have a window; all of them if `windows_only`."""

    def __init__(self, rng: random.Random, streams: list[StreamPlan], tables: list[TablePlan], windows_only: bool) -> None:
        super().__init__(rng, streams, tables)
        self._windows_only = windows_only
        self._names = {table.name for table in tables}

    def draw_spec(self, n_inputs: int | None = None, like: Spec | None = None) -> Spec:
        while True:
            spec = super().draw_spec(n_inputs, like)
            read = {item.source for item in spec.meaning.inputs}
            mixed = bool(read & self._names) and bool(read - self._names)
            if not (spec.is_stream and self._windows_only) and (
                self.rng.random() < 0.2 or (mixed and (not spec.is_stream or self.rng.random() < 0.3))
            ):
                return spec
            self.made.remove(spec)


def make_stream_join_script(seed: int, n_steps: int) -> Script:
    """The script of a seed: the same for ever, as long as the generators do not change."""
    rng = random.Random(seed)
    streams = random_sources(rng)[0]
    return _script(StreamJoinMaker(rng, streams, []), streams, [], n_steps)


def make_table_script(seed: int, n_steps: int, windows_only: bool = False, edges: Edges = ANY_EDGES) -> Script:
    """The same with one or two tables; `windows_only`: no query gives a stream."""
    rng = random.Random(seed)
    streams, tables = [], []
    while not tables:
        streams, tables = random_sources(rng)
    maker = TableJoinMaker(rng, streams, tables, windows_only)
    maker.edges = edges
    return _script(maker, streams, tables, n_steps)


def _script(maker: StreamJoinMaker, streams: list[StreamPlan], tables: list[TablePlan], n_steps: int) -> Script:
    rng = maker.rng
    steps: list[Step] = [maker.upsert() for _ in tables]
    steps += [maker.submit() for _ in range(rng.randint(1, 4))]
    steps += [maker.any() for _ in range(n_steps)]
    return Script(streams, rng.choice(POLICIES), rng.choice(BATCH_ROWS), steps, tables, tuple(FUNCTIONS))


def make_relation_join_script(seed: int, n_steps: int) -> Script:
    """The same without queries that give a stream: answers of relations do not depend on how long the log is."""
    script = make_stream_join_script(seed, n_steps)
    return replace(script, steps=[step for step in script.steps if not (isinstance(step, Submit) and step.spec.is_stream)])
