"""Draws scripts: `make_script(seed, n)` a whole one, `StepMaker` a step at a time."""

from __future__ import annotations

import random
from collections.abc import Callable

from tests.reference.naive import NEWEST
from tests.reference.script import Act, Advance, Crowd, Leave, Push, Script, Step, StreamPlan, Submit, Tick
from tests.reference.workload import COLUMNS, MS, WINDOWS, QuerySpec, random_query, random_rows, random_times

POLICIES = ["auto", "random", "lottery", "backpressure", "greedy", "fixed:filter:m1.id,filter:m1.n"]
BATCH_ROWS = [1, 2, 3, 7, 64, 100, 4096, 8192]


def random_streams(rng: random.Random) -> list[StreamPlan]:
    """Stream m1 on timeline main and, as drawn, a second one there, one on another timeline, one without time."""
    streams = []
    for name, timeline in (("m1", "main"), ("m2", "main"), ("o1", "other")):
        lateness = rng.choice([0, 0, 1, 5 * MS, 50 * MS])
        unit = rng.choice(["timestamp", "timestamp[us]", "timestamp[ms]"])
        streams.append(StreamPlan(name, {**COLUMNS, "ts": unit}, "ts", lateness, rng.choice(["adjust", "drop"]), timeline))
    streams.append(StreamPlan("arr", dict(COLUMNS), None, 0, "adjust", "arrival"))
    return streams[:1] + [stream for stream in streams[1:] if rng.random() < 0.55]


class StepMaker:
    """Draws steps one by one; keeps the middle of each stream's times, so that they move on, lag and run late."""

    def __init__(self, rng: random.Random, streams: list[StreamPlan]) -> None:
        self.rng = rng
        self.streams = {stream.name: stream for stream in streams}
        base = rng.choice([0, 1_700_000_000_000 * MS, -10 * MS])
        self.center = dict.fromkeys(self.streams, base)
        #: whether many queries may come at once
        self.crowded = rng.random() < 0.2
        self.now = base
        #: by label: "running" or "paused"; cancelled queries are not in it
        self.states: dict[int, str] = {}
        #: streams with a query without window: more rows than its answer holds must come at times
        self.followed_streams: list[str] = []
        #: every query made so far
        self.specs: list[QuerySpec] = []
        self._n_queries = 0

    def push(self, n_rows: int | None = None, many: bool | None = None) -> Push:
        rng = self.rng
        if many is None:
            many = rng.random() < 0.2
        if many:  # the streams of one commit share a timeline
            timeline = rng.choice(list(self.streams.values())).timeline
            names = [name for name, stream in self.streams.items() if stream.timeline == timeline]
            names = rng.sample(names, rng.randint(1, len(names)))
        else:
            names = [rng.choice([*self.streams, "m1"])]
        if n_rows is None and self.followed_streams and not self.crowded and rng.random() < 0.04:
            n_rows, names, many = NEWEST + 200, [rng.choice(self.followed_streams)], False
        batches = {}
        for name in names:
            n = rng.choice([0, 1, 2, 3, 5, 8, 20, 20 if self.crowded else 60, 60, 300]) if n_rows is None else n_rows
            batches[name] = random_rows(rng, n, self._times(name, n))
        return Push(batches, rng.choice(["columns", "dicts", "arrow"]), many)

    def _times(self, name: str, n: int) -> list[int] | None:
        stream = self.streams[name]
        if stream.time is None:
            return None
        self.center[name] += self.rng.choice([0, 0, 1, MS, 4 * MS, 4 * MS, 15 * MS, 30 * MS, 400 * MS])
        if self.rng.random() < 0.25:
            self.center[name] = max(self.center[other] for other in self.streams)
        return random_times(self.rng, n, self.center[name], self.rng.choice([1, MS, MS]))

    def advance(self) -> Advance:
        timeline = self.streams[self.rng.choice(list(self.streams))].timeline
        ahead = self.rng.choice([-5 * MS, 0, 1, 999, MS, 5 * MS, 5 * MS, 20 * MS, 300 * MS, 1_000 * MS, 130_000 * MS])
        if timeline == "arrival":
            self.now += max(0, ahead)
            return Advance(self.now, timeline)
        latest = max(self.center[name] for name, stream in self.streams.items() if stream.timeline == timeline)
        return Advance(latest + ahead, timeline)

    def tick(self) -> Tick:
        self.now += self.rng.choice([-MS, 0, 1, MS, 5 * MS, 900 * MS])
        return Tick(self.now)

    def submit(self, depth: int | None = None, stream: str | None = None, crowd: bool = False) -> Submit:
        """A new query, or an old one again, as it was or over another window: equal queries share what they can."""
        rng = self.rng
        label = self._n_queries
        self._n_queries += 1
        self.states[label] = "running"
        spec = rng.choice(self.specs) if self.specs and rng.random() < 0.2 else None
        if spec is not None and rng.random() < 0.5:
            spec = spec.with_window(*rng.choice(WINDOWS))
        if spec is None:
            stream = stream or rng.choice([*self.streams, "m1", "m1"])
            instants = [self.center[stream] + rng.choice([0, MS, -MS]) for _ in range(3)]
            spec = random_query(rng, stream, self.streams[stream].columns, instants, depth, crowd)
        self.specs.append(spec)
        if spec.is_stream:
            self.followed_streams.append(spec.stream)
        return Submit(label, spec)

    def crowd(self, n_queries: int | None = None) -> Crowd:
        return Crowd([self.submit(stream="m1", crowd=True) for _ in range(n_queries or self.rng.choice([10, 70, 110]))])

    def leave(self) -> Leave:
        """Cancel a good part of what runs."""
        labels = [label for label in self.states if self.rng.random() < 0.6]
        for label in labels:
            del self.states[label]
        return Leave(labels)

    def act(self, verbs: list[str] | None = None) -> Act | Tick:
        """Cancel, pause or resume some query that is in a state for it; a tick if there is none."""
        verb = self.rng.choice(verbs or ["cancel", "pause", "resume", "resume"])
        needed = {"cancel": ("running", "paused"), "pause": ("running",), "resume": ("paused",)}[verb]
        fitting = [label for label, state in self.states.items() if state in needed]
        if not fitting:
            return self.tick()
        label = self.rng.choice(fitting)
        if verb == "cancel":
            del self.states[label]
        else:
            self.states[label] = "paused" if verb == "pause" else "running"
        return Act(verb, label)

    def any(self) -> Step:
        makers: list[tuple[int, Callable[[], Step]]] = [
            (100, self.push), (30, self.advance), (10, self.tick), (40, self.submit), (30, self.act),
            (10 if self.crowded and len(self.states) < 60 else 0, self.crowd), (5, self.leave),
        ]  # fmt: skip
        return self.rng.choices([maker for _, maker in makers], [weight for weight, _ in makers])[0]()


def make_script(seed: int, n_steps: int) -> Script:
    """The script of a seed: the same for ever, as long as the generators do not change."""
    rng = random.Random(seed)
    streams = random_streams(rng)
    maker = StepMaker(rng, streams)
    steps: list[Step] = [maker.submit() for _ in range(rng.randint(1, 4))]
    steps += [maker.any() for _ in range(n_steps)]
    return Script(streams, rng.choice(POLICIES), rng.choice(BATCH_ROWS), steps)
