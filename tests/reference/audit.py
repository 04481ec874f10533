"""Run a script on the naive model alone and audit it by DuckDB: the answer after each step, and at the times in between.

After each step, for every query that is not cancelled:

    the answer           = DuckDB's over the rows taken, at T
    the answer at time t = DuckDB's, at ends, starts and midpoints between them, from T before the step on
    sum of all changes   = the answer                       - before +, by time, none before T of the commit before
    a paused query       = the answer it had

What DuckDB may see is not asked from the model but kept here, from the steps: how many rows each stream had taken when a
query was submitted, resumed or replaced, and which rows were stored.
"""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from tests.reference.comparison import Mismatch, same
from tests.reference.lives import UNBOUNDED, Window
from tests.reference.naive import NEWEST, Naive
from tests.reference.oracle import Oracle, View
from tests.reference.player import Player
from tests.reference.script import Act, Delete, Replace, Script, Step, Submit, Upsert
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
        self.player = Player(script, make_model)
        self.model = self.player.model
        self.oracle = Oracle()
        self.rng = random.Random(len(script.steps))
        self.queries: dict[int, Audited] = {}
        #: by stream: the rows from here on are stored
        self.stored = {stream.name: 0 for stream in script.streams}
        self.n_asked = 0
        for stream in script.streams:
            self.oracle.create_stream(stream.name, stream.columns)
        for table in script.tables:
            self.oracle.create_table(table.name, table.columns, table.key)

    def do(self, step: Step) -> None:
        """Run one step, then compare all queries."""
        before, commit = self.model.T.get("main"), self.model.seq
        answers = {label: Counter(self.model.answer(query.number)) for label, query in self.queries.items()}
        if self.player.do(step):
            self._follow(step, before, commit, answers)
        if self.model.seq != commit:
            for stream in self.model.streams.values():
                self.stored[stream.name] = self._stored(stream)
        for label, query in self.queries.items():
            self._compare(f"query {label}: {query.spec.sql} {query.spec.params or ''}", query, before)

    def _follow(self, step: Step, before: int | None, commit: int, answers: Mapping[int, Counter[Value]]) -> None:
        """Note what the step means for the tables and for what the queries may see; `answers` are those before it."""
        match step:
            case Upsert():
                self.oracle.upsert(step.table, step.rows, self.model.seq, before)
            case Delete():
                self.oracle.delete(step.table, step.keys, self.model.seq, before)
            case Submit():
                view = self._view(step.spec, step.history, commit)
                number = self.player.numbers[step.label]
                self.queries[step.label] = Audited(number, step.spec, step.history, commit, view, before, commit)
            case Replace():
                query = self.queries[step.label]
                query.spec, query.opened_at = step.spec, before
                query.view = self._view(step.spec, query.history, query.born)
                query.newest.clear()
            case Act("cancel"):
                del self.queries[step.label]
            case Act("pause"):
                self.queries[step.label].kept = answers[step.label]
            case Act("resume"):
                query = self.queries[step.label]
                query.kept, query.born, query.opened_at = None, commit, before
                query.view = self._view(query.spec, query.history, commit)
                query.newest.clear()

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
        for item in meaning.inputs:
            if item.source in self.model.streams:
                self.oracle.load(item.source, self.model.streams[item.source].taken)
        self.n_asked += 1
        now = self.model.T.get("main")
        if query.spec.is_stream or now is None:
            same(f"answer of {what}", answer, self.oracle.answer(self.model, meaning, query.view, question))
            return
        times = [now, *self._times(query, before, now)]
        found = self.oracle.answers(self.model, meaning, query.view, question, times)
        same(f"answer of {what}", answer, found[0])
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

    def _times(self, query: Audited, before: int | None, now: int) -> list[int]:
        """Starts and ends of rows from T before the step on, and midpoints between them, but `now`: some of them."""
        edges = {now, now + 1}
        for item, first in zip(query.spec.meaning.inputs, query.view.seen_from, strict=True):
            if item.window is None:
                continue
            for entry in self.model.streams[item.source].taken[first:]:
                edges |= {entry.start} if item.window.width == UNBOUNDED else {entry.start, entry.t + int(item.window.width)}
        earliest = max(time for time in (before, query.opened_at, min(edges)) if time is not None)
        ordered = sorted(edge for edge in edges if edge >= earliest)
        middles = [(a + b) // 2 for a, b in itertools.pairwise(ordered)]
        asked = sorted({*ordered, *middles} - {now})
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
