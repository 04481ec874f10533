"""Run a script on the naive model alone and audit it by DuckDB: the answer after each step, and at the times in between.

After each step, for every query that is not cancelled:

    the answer           = DuckDB's over the rows taken, at T
    the answer at time t = DuckDB's, at ends, starts and midpoints between them, from T before the step on
    sum of all changes   = the answer                       - before +, by time, none before T of the commit before
    a paused query       = the answer it had

What DuckDB may see is not asked from the model but kept here, from the steps: how many rows each stream had taken when a
query was submitted, resumed or replaced, and which rows were stored (`Stored`).
"""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from tests.reference.comparison import Mismatch, same
from tests.reference.lives import UNBOUNDED, Window
from tests.reference.naive import NEWEST, Naive
from tests.reference.oracle import Oracle, View
from tests.reference.script import Act, Advance, Delete, Push, Replace, Script, Step, Submit, Upsert
from tests.reference.timelines import Stream
from tests.reference.values import Value
from tests.reference.workload import Spec

#: Times asked about after a step, besides T.
MAX_TIMES = 8


@dataclass
class Audited:
    """One query as the audit follows it."""

    number: int
    spec: Spec
    history: str
    #: the last commit before its submit or resume
    born: int
    view: View
    #: T when it was opened; None if there was none
    opened_at: int | None
    cursor: int
    #: its answer at the pause; None iff running
    kept: Counter[Value] | None = None
    #: all changes, summed; of a stream query `newest` holds the values in order
    total: Counter[Value] = field(default_factory=Counter)
    newest: list[Value] = field(default_factory=list)
    #: the commit DuckDB was last asked about, and when the query was opened then
    asked: tuple[int, int] = (-1, -1)


class Audit:
    """The model, DuckDB, and what the steps say a query may see."""

    def __init__(self, script: Script, make_model: Callable[[], Naive] = Naive) -> None:
        self.model = make_model()
        self.oracle = Oracle()
        self.rng = random.Random(len(script.steps))
        self.queries: dict[int, Audited] = {}
        #: by stream: the rows from here on are stored
        self.stored: dict[str, int] = {}
        self.n_asked = 0
        for s in script.streams:
            self.model.create_stream(
                s.name, time=s.time, lateness=s.lateness_us, late=s.late, timeline=s.timeline, keep=s.keep_us
            )
            self.oracle.create_stream(s.name, s.columns)
            self.stored[s.name] = 0
        for t in script.tables:
            self.model.create_table(t.name, key=t.key, retroactive=t.retroactive)
            self.oracle.create_table(t.name, t.columns)

    def do(self, step: Step) -> None:
        """Run one step, then compare all queries."""
        before, commit = self.model.T.get("main"), self.model.seq
        match step:
            case Push():
                self.model.push_many(step.batches)
            case Advance():
                self.model.advance(step.time, step.timeline)
            case Upsert():
                self.model.upsert(step.table, step.rows)
            case Delete():
                self.model.delete(step.table, step.keys)
            case Submit():
                number = self.model.submit(step.spec.meaning, step.history)
                view = self._view(step.spec, step.history, commit)
                query = Audited(number, step.spec, step.history, commit, view, before, commit)
                self.queries[step.label] = query
            case Replace():
                self._replace(self.queries.get(step.label), step.spec, before)
            case Act():
                self._act(step, before)
            case _:
                raise TypeError(f"no audit of {step}")
        if self.model.seq != commit:
            for stream in self.model.streams.values():
                self.stored[stream.name] = self._stored(stream)
        for label, query in self.queries.items():
            self._compare(f"query {label}: {query.spec.sql} {query.spec.params or ''}", query, before)

    def _replace(self, query: Audited | None, spec: Spec, before: int | None) -> None:
        if query is None or query.kept is not None:
            return
        self.model.replace(query.number, spec.meaning)
        query.spec, query.opened_at = spec, before
        query.view = self._view(spec, query.history, query.born)
        query.newest.clear()

    def _act(self, step: Act, before: int | None) -> None:
        query = self.queries.get(step.label)
        if query is None or (step.verb != "cancel" and (query.kept is not None) != (step.verb == "resume")):
            return
        if step.verb == "pause":
            query.kept = Counter(self.model.answer(query.number))
        if step.verb == "resume":
            query.kept, query.born, query.opened_at = None, self.model.seq, before
            query.newest.clear()
        getattr(self.model, step.verb)(query.number)
        if step.verb == "resume":
            query.view = self._view(query.spec, query.history, query.born)
        if step.verb == "cancel":
            del self.queries[step.label]

    # -- what a query may see ----------------------------------------------------------------------------------------

    def _view(self, spec: Spec, history: str, born: int) -> View:
        """What a query opened just now may see: what is stored and, unless it has its history, came after its birth."""
        seen = []
        for item in spec.meaning.inputs:
            taken = self.model.streams[item.source].taken if item.source in self.model.streams else []
            after_birth = next((i for i, entry in enumerate(taken) if entry.seq > born), len(taken))
            if item.window is None:
                seen.append(len(taken))
            else:
                seen.append(max(self.stored[item.source], 0 if history == "window" else after_birth))
        return View(seen, self.model.seq)

    def _stored(self, stream: Stream) -> int:
        """The first row that is still wanted by `keep` or a running query; what was let go does not come back."""
        windows = [Window(stream.keep)] if stream.keep else []
        for query in self.queries.values():
            if query.kept is None:
                windows += [i.window for i in query.spec.meaning.inputs if i.source == stream.name and i.window]
        for position in range(self.stored[stream.name], len(stream.taken)):
            if any(self._holds(window, stream, position) for window in windows):
                return position
        return len(stream.taken)

    def _holds(self, window: Window, stream: Stream, position: int) -> bool:
        entry = stream.taken[position]
        if entry.t + window.width <= self.model.T[stream.timeline]:
            return False
        newer = stream.taken[position + 1 :]
        key = window.key(entry.row)
        return window.rows is None or sum(window.key(other.row) == key for other in newer) < window.rows

    # -- comparison --------------------------------------------------------------------------------------------------

    def _compare(self, what: str, query: Audited, before: int | None) -> None:
        answer = Counter(self.model.answer(query.number))
        self._compare_changes(what, query, before)
        if query.kept is not None:
            same(f"paused answer of {what}", answer, query.kept)
            return
        summed = Counter(query.newest[-NEWEST:]) if query.spec.is_stream else query.total
        same(f"sum of changes of {what}", +summed, answer)
        state = (self.model.seq, query.view.opened)
        if query.spec.question is None or query.asked == state:
            return
        query.asked = state
        meaning, question = query.spec.meaning, query.spec.question
        self.oracle.load(self.model, [item.source for item in meaning.inputs])
        same(f"answer of {what}", answer, self.oracle.answer(self.model, meaning, query.view, question))
        self.n_asked += 1
        times = [] if query.spec.is_stream else self._times(query, before)
        if times:
            found = self.oracle.answers(self.model, meaning, query.view, question, times)
            for time, expected in zip(times, found, strict=True):
                same(f"answer at {time} of {what}", Counter(self.model.answer_at(query.number, time)), expected)

    def _compare_changes(self, what: str, query: Audited, before: int | None) -> None:
        found = [(seq, c.sign, c.time, c.value) for seq, c in self.model.changes(query.number, query.cursor)]
        query.cursor = self.model.seq
        order = [entry[:3] for entry in found]
        if order != sorted(order):
            raise Mismatch(f"changes of {what} are not ordered by (seq, sign, time): {order}")
        now = self.model.T.get("main")
        if any((before is not None and time < before) or (now is not None and time > now) for _, _, time, _ in found):
            raise Mismatch(f"changes of {what} are not between {before} and {now}: {found}")
        for _, sign, _, value in found:
            query.total[value] += sign
            query.newest.append(value)

    def _times(self, query: Audited, before: int | None) -> list[int]:
        """Starts and ends of rows and versions from T before the step on, and midpoints, as many as can be asked."""
        now = self.model.T.get("main")
        if now is None:
            return []
        edges = {now, now + 1}
        for item, first in zip(query.spec.meaning.inputs, query.view.seen_from, strict=True):
            if item.window is None:
                continue
            for entry in self.model.streams[item.source].taken[first:]:
                edges |= {entry.start} if item.window.width == UNBOUNDED else {entry.start, entry.t + int(item.window.width)}
        earliest = max(time for time in (before, query.opened_at, min(edges)) if time is not None)
        ordered = sorted(edge for edge in edges if edge >= earliest)
        middles = [(a + b) // 2 for a, b in itertools.pairwise(ordered)]
        asked = sorted({*ordered, *middles})
        return sorted(self.rng.sample(asked, min(len(asked), MAX_TIMES)))


def audit(script: Script, make_model: Callable[[], Naive] = Naive) -> int:
    """Run a script and compare after each step; returns how many times DuckDB was asked."""
    run = Audit(script, make_model)
    try:
        for number, step in enumerate(script.steps):
            try:
                run.do(step)
            except Exception as error:
                error.add_note(f"at step {number}: {type(step).__name__}")
                raise
    finally:
        run.oracle.close()
    return run.n_asked
