"""Draws scripts over single streams with history: `keep`, `submit(history="window")` and `replace`.

Apart from `steps.py`, so that the seeds of its scripts keep their meaning.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

from tests.reference.oracle import Question
from tests.reference.script import Crowd, Replace, Script, Step, StreamPlan, Submit
from tests.reference.steps import BATCH_ROWS, POLICIES, StepMaker, random_streams
from tests.reference.workload import MS, WINDOWS, QuerySpec, random_query


def random_kept_streams(rng: random.Random) -> list[StreamPlan]:
    """The streams of `steps.py`, some of which keep their rows."""
    return [replace(stream, keep_us=rng.choice([None, None, 0, MS, 20 * MS, 1_000 * MS])) for stream in random_streams(rng)]


class HistoryStepMaker(StepMaker):
    """Queries that see what is stored, and queries that get another text."""

    def __init__(self, rng: random.Random, streams: list[StreamPlan]) -> None:
        super().__init__(rng, streams)
        #: the text that each query has now, by label
        self.texts: dict[int, QuerySpec] = {}

    def submit(self, depth: int | None = None, stream: str | None = None, crowd: bool = False) -> Submit:
        step = super().submit(depth, stream, crowd)
        self.texts[step.label] = self.specs[-1]
        return replace(step, history=self.rng.choice(["new", "window", "window"]))

    def replace(self) -> Step:
        running = [label for label, state in self.states.items() if state == "running"]
        if not running:
            return self.submit()
        label = self.rng.choice(running)
        self.texts[label] = self.instead_of(self.texts[label])
        return Replace(label, self.texts[label])

    def instead_of(self, old: QuerySpec) -> QuerySpec:
        """A text with the columns of `old`: itself, or with another window, condition or stream."""
        rng = self.rng
        kind = rng.choice(["same", "window", "window", "condition", "condition", "condition"])
        windows = [window for window in WINDOWS if (window[1] is None) == old.is_stream]
        if kind == "same":
            return old
        if kind == "window" or old.params:
            return old.with_window(*rng.choice(windows))
        columns = set(self.streams[old.stream].columns)
        stream = (
            old.stream if rng.random() < 0.7 else rng.choice([s.name for s in self.streams.values() if set(s.columns) == columns])
        )
        while True:
            made = random_query(rng, stream, self.streams[stream].columns, [self.center[stream]])
            if not made.params:
                return with_outputs(made.with_window(*rng.choice(windows)), old)

    def any(self) -> Step:
        makers: list[tuple[int, Callable[[], Step]]] = [(20, self.replace), (180, super().any)]
        return self.rng.choices([maker for _, maker in makers], [weight for weight, _ in makers])[0]()


def with_outputs(spec: QuerySpec, old: QuerySpec) -> QuerySpec:
    """The query `spec` with the columns of `old`; neither has parameters."""
    listed = old.sql[: old.sql.index(_source(old))]
    question = None
    if spec.question is not None and old.question is not None:
        question = Question(spec.question.aliases, old.question.outputs, spec.question.condition)
    return replace(
        spec,
        sql=listed + spec.sql[spec.sql.index(_source(spec)) :],
        question=question,
        meaning=replace(spec.meaning, select=old.meaning.select),
        names=old.names,
        types=old.types,
    )


def _source(spec: QuerySpec) -> str:
    return f" FROM {spec.stream}{' ' + spec.window if spec.window else ''}"


def make_history_script(seed: int, n_steps: int) -> Script:
    """The script of a seed: the same for ever, as long as the generators do not change."""
    rng = random.Random(seed)
    streams = random_kept_streams(rng)
    maker = HistoryStepMaker(rng, streams)
    steps: list[Step] = [maker.submit() for _ in range(rng.randint(1, 4))]
    steps += [maker.any() for _ in range(n_steps)]
    return Script(streams, rng.choice(POLICIES), rng.choice(BATCH_ROWS), steps)


def submits(script: Script) -> list[Submit]:
    """Every submit of a script, those of crowds included."""
    found = [step for step in script.steps if isinstance(step, Submit)]
    return found + [member for step in script.steps if isinstance(step, Crowd) for member in step.members]
