"""Scripts of joins with what the engine runs so far: streams, ROWS windows in joins only."""

from __future__ import annotations

import random
from dataclasses import replace

from tests.reference.functions import FUNCTIONS
from tests.reference.join_steps import POLICIES, JoinStepMaker, random_sources
from tests.reference.script import Script, Step, Submit
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
            if len(windows) > 1 or windows[0] is None or windows[0].rows is None:
                return spec
            self.made.remove(spec)


def make_stream_join_script(seed: int, n_steps: int) -> Script:
    """The script of a seed: the same for ever, as long as the generators do not change."""
    rng = random.Random(seed)
    streams = random_sources(rng)[0]
    maker = StreamJoinMaker(rng, streams, [])
    steps: list[Step] = [maker.submit() for _ in range(rng.randint(1, 4))]
    steps += [maker.any() for _ in range(n_steps)]
    return Script(streams, rng.choice(POLICIES), rng.choice(BATCH_ROWS), steps, [], tuple(FUNCTIONS))


def make_relation_join_script(seed: int, n_steps: int) -> Script:
    """The same without queries that give a stream: answers of relations do not depend on how long the log is."""
    script = make_stream_join_script(seed, n_steps)
    return replace(script, steps=[step for step in script.steps if not (isinstance(step, Submit) and step.spec.is_stream)])
