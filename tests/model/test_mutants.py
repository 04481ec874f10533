"""Does the driver have teeth? Each mutant breaks one rule; the driver must notice within a few seeds.

Two families: mutants of the model, played by `Twin` against the unbroken model, which show that the driver's comparison
and its workload reach the rule; and mutants of the engine, which patch one point of it and show the same for the code
that users run. A mutant that survives means a rule no test would notice losing.
"""

from __future__ import annotations

import functools
import importlib
from typing import Any

import numpy as np
import pytest

from tests.model.mutants import ClosedWindow, WindowFromStart
from tests.reference.breaking import Breaks, leave_it_to_the_answers
from tests.reference.changes import Change, net
from tests.reference.comparison import Mismatch
from tests.reference.driver import replay, subject
from tests.reference.harness import MakeEngine
from tests.reference.limits import make_small
from tests.reference.matching import Condition, Meaning, Result, Rows
from tests.reference.naive import Naive, Query
from tests.reference.script import as_python
from tests.reference.seeds import amount
from tests.reference.shrinking import shrink
from tests.reference.steps import make_script
from tests.reference.timelines import Receipt, Stream
from tests.reference.twin import Twin
from tests.reference.values import Row, canonical_row

pytestmark = pytest.mark.slow

#: Scripts a mutant may survive before the test fails, and their length.
N_SEEDS = 40
N_STEPS = 40


def first_failure(make_engine: MakeEngine, n_seeds: int = N_SEEDS) -> tuple[int, BaseException] | None:
    """The first seed on which the driver notices, with what it noticed; None if the mutant survives all."""
    for seed in range(n_seeds):
        try:
            replay(make_script(seed, N_STEPS), make_engine, use_duckdb=False)
        except Exception as error:
            return seed, error
    return None


# -- mutants of the model --------------------------------------------------------------------------------------------


class IgnoresBirth(Naive):
    """A query sees rows taken before it was submitted."""

    def _first_seen(self, query: Query, stream: Stream) -> int:
        return 0


class ReusesSlotDirty(Naive):
    """A new query inherits what the last cancelled one on its stream had."""

    def cancel(self, number: int) -> None:
        self.left = self.queries[number]
        super().cancel(number)

    def submit(self, meaning: Meaning, history: str = "new", emit: str = "commit") -> int:
        number = super().submit(meaning, history, emit)
        left: Query | None = getattr(self, "left", None)
        if left and left.meaning.inputs[0].source == meaning.inputs[0].source:
            results = [Result(r.parts, canonical_row(meaning.select([r.parts[0].row])), r.gone) for r in left.results]
            self.queries[number].results = results
        return number


class NoLateAdjust(Naive):
    """A late row keeps the time that was sent."""

    def _adjusted(self, t: int, front: int) -> int:
        return t


class NeverDrops(Naive):
    """late="drop" is ignored."""

    def create_stream(self, name: str, *, late: str = "adjust", **options: Any) -> None:
        super().create_stream(name, **options)


class NoLateness(Naive):
    """Rows never wait for stragglers."""

    def create_stream(self, name: str, *, lateness: int = 0, **options: Any) -> None:
        super().create_stream(name, **options)


class LaggingStartsInThePast(Naive):
    """A lagging row starts at its own time."""

    def _start(self, t: int, clock: int | None) -> int:
        return t


class NullPasses(Naive):
    """A condition that is NULL lets the row through."""

    def _passes(self, condition: Condition, rows: Rows) -> bool:
        return condition.holds(rows) is not False


class NoNetting(Naive):
    """Changes of equal value stand side by side."""

    def net_changes(self, pluses: list[Change], minuses: list[Change]) -> list[Change]:
        return sorted(minuses + pluses, key=lambda c: (c.sign, c.time))


class EarliestRemain(Naive):
    """Of changes that net, the earliest remain."""

    def net_changes(self, pluses: list[Change], minuses: list[Change]) -> list[Change]:
        def turned(changes: list[Change]) -> list[Change]:
            return [Change(c.sign, -c.time, c.value) for c in changes]

        return sorted(turned(net(turned(pluses), turned(minuses))), key=lambda c: (c.sign, c.time))


class PlusBeforeMinus(Naive):
    """+ comes before -."""

    def net_changes(self, pluses: list[Change], minuses: list[Change]) -> list[Change]:
        return sorted(net(pluses, minuses), key=lambda c: (-c.sign, c.time))


class AdvanceKeepsRowsWaiting(Naive):
    """advance moves the clock but releases nothing."""

    def advance(self, time: int, timeline: str = "main") -> bool:
        kept = {stream.name: stream.waiting for stream in self.streams.values()}
        for stream in self.streams.values():
            stream.waiting = []
        done = super().advance(time, timeline)
        for stream in self.streams.values():
            stream.waiting = kept[stream.name]
        return done


class AdvanceGoesBack(Naive):
    """advance below T is a commit."""

    def advance(self, time: int, timeline: str = "main") -> bool:
        return super().advance(max(time, self.T.get(timeline, time)), timeline)


class LatenessJudgedRowByRow(Naive):
    """A row is late against the rows before it in the same push."""

    def accept_rows(self, stream: Stream, rows: list[Row]) -> Receipt:
        first, late = stream.n_accepted, 0
        for row in rows:
            late += super().accept_rows(stream, [row]).late
            if stream.lateness == 0 and stream.waiting:
                stream.released = max(t for t, _, _ in stream.waiting)
        accepted = stream.n_accepted - first
        return Receipt(accepted, late, *((first, first + accepted - 1) if accepted else (None, None)))


class OneTimeline(Naive):
    """A push on one timeline expires windows on all."""

    def create_stream(self, name: str, *, timeline: str = "main", **options: Any) -> None:
        super().create_stream(name, timeline="main", **options)


class PauseForgets(Naive):
    """A paused query has no answer."""

    def pause(self, number: int) -> None:
        self.queries[number].kept = []


class ResumeTakesNothingBack(Naive):
    """The kept answer is not taken back."""

    def resume(self, number: int) -> None:
        super().resume(number)
        self.commits[self.seq] = {}


class ResumeKeepsItsBirth(Naive):
    """A resumed query goes on where it was."""

    def resume(self, number: int) -> None:
        results = self.queries[number].results
        super().resume(number)
        self.queries[number].results = results


class KeepsAllResults(Naive):
    """A stream query's answer is not cut to the newest 1,000."""

    def alive(self, number: int) -> list[Result]:
        query = self.queries[number]
        return query.results if query.is_stream else super().alive(number)


class StreamRowsExpire(Naive):
    """A row that lags does not count for a stream query."""

    def results_of(self, query: Query) -> list[Result]:
        def lags(result: Result) -> bool:
            taken = self.streams[query.meaning.inputs[0].source].taken[result.parts[0].number]
            return taken.t < taken.start

        return [result for result in super().results_of(query) if not (query.is_stream and lags(result))]


MODEL_MUTANTS: list[type[Naive]] = [
    IgnoresBirth, ReusesSlotDirty, ClosedWindow, WindowFromStart, NoLateAdjust, NeverDrops, NoLateness,
    LaggingStartsInThePast, NullPasses, NoNetting, EarliestRemain, PlusBeforeMinus, AdvanceKeepsRowsWaiting, AdvanceGoesBack,
    LatenessJudgedRowByRow, OneTimeline, PauseForgets, ResumeTakesNothingBack, ResumeKeepsItsBirth, KeepsAllResults,
    StreamRowsExpire,
]  # fmt: skip


def test_the_unbroken_model_passes() -> None:
    assert first_failure(Twin, n_seeds=amount(5, long=15)) is None


@pytest.mark.long
@pytest.mark.parametrize("mutant", MODEL_MUTANTS)
def test_the_driver_notices_a_mutant_of_the_model(mutant: type[Naive]) -> None:
    noticed = first_failure(functools.partial(Twin, mutant))
    assert noticed is not None, f"{mutant.__doc__} Nobody noticed in {N_SEEDS} seeds"
    assert isinstance(noticed[1], Mismatch), f"seed {noticed[0]} failed by {noticed[1]!r}, not by a comparison"


def test_a_failing_script_shrinks_to_a_few_steps_that_still_fail() -> None:
    make = functools.partial(Twin, ClosedWindow)
    noticed = first_failure(make)
    assert noticed is not None
    script = make_script(noticed[0], N_STEPS)
    small = shrink(script, make)
    assert len(small.steps) <= 4, as_python(small)
    with pytest.raises(Mismatch):
        replay(small, make, use_duckdb=False)


# -- mutants of the engine -------------------------------------------------------------------------------------------

#: what is broken -> a function that breaks it
ENGINE_MUTANTS = breaks = Breaks()


def module(path: str) -> Any:
    return importlib.import_module(path)


@breaks("a query sees rows taken before its birth")
def _births(monkeypatch: pytest.MonkeyPatch) -> None:
    lifecycle = module("eddy.lifecycle")
    made = lifecycle.QueryRun

    def unborn(*args: Any, **options: Any) -> Any:
        run = made(*args, **options)
        run.born = 0
        return run

    monkeypatch.setattr(lifecycle, "QueryRun", unborn)


@breaks("a row at the old end of its window is still in it")
def _boundary(monkeypatch: pytest.MonkeyPatch) -> None:
    store = module("stems.row_store").RowStore
    exact = store.first_after
    monkeypatch.setattr(store, "first_after", lambda self, time: exact(self, time - 1))


@breaks("a late row keeps the time that was sent")
def _no_adjust(monkeypatch: pytest.MonkeyPatch) -> None:
    intake = module("eddy.streams.timeline").Intake

    def sorted_only(self: Any, rows: Any, times: Any) -> Any:
        return rows.take(np.argsort(times, kind="stable")), int(np.count_nonzero(times < self.front))

    monkeypatch.setattr(intake, "_order", sorted_only)


@breaks("late rows are never dropped")
def _no_drop(monkeypatch: pytest.MonkeyPatch) -> None:
    source = module("eddy.streams.source")
    made = source.Intake
    monkeypatch.setattr(source, "Intake", lambda lateness, drop, **options: made(lateness, False, **options))


@breaks("rows do not wait for stragglers")
def _no_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    source = module("eddy.streams.source")
    made = source.Intake
    monkeypatch.setattr(source, "Intake", lambda lateness, drop, **options: made(0, drop, **options))


@breaks("advance releases nothing")
def _no_release(monkeypatch: pytest.MonkeyPatch) -> None:
    intake = module("eddy.streams.timeline").Intake

    def front_only(self: Any, time: int) -> None:
        self.front = max(self.front, time)

    monkeypatch.setattr(intake, "advance", front_only)


@breaks("a lagging row starts at its own time")
def _no_lag(monkeypatch: pytest.MonkeyPatch) -> None:
    store = module("stems.row_store").RowStore
    exact = store.append

    def early(self: Any, cells: Any, nulls: Any, first: int, last: int, times: Any, taken_at: int, rows: Any) -> Any:
        return exact(self, cells, nulls, first, last, times, -(2**62), rows)

    monkeypatch.setattr(store, "append", early)


@breaks("x < c admits x = c")
def _wrong_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    predicate = module("filters.expressions.predicate")
    exact = predicate.compare
    wrong = {"<": "<="}
    monkeypatch.setattr(predicate, "compare", lambda type_, op, value: exact(type_, wrong.get(op, op), value))


@breaks("NULL satisfies <>")
def _null_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    predicate = module("filters.expressions.predicate")
    exact = predicate.compare

    def with_null(type_: Any, op: str, value: Any) -> Any:
        found = exact(type_, op, value)
        return type(found)(found.spans, True) if op == "<>" else found

    monkeypatch.setattr(predicate, "compare", with_null)


@breaks("NOT turns < into >")
def _wrong_negation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(module("filters.expressions.predicate").NEGATED, "<", ">")


@breaks("the disjuncts of an OR are not looked at")
def _no_or(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("join_disjuncts", "join_disjuncts_rows"):
        monkeypatch.setattr(module("eddy.matching.eddy"), name, lambda *args: None)


@breaks("changes of equal value stand side by side")
def _no_net(monkeypatch: pytest.MonkeyPatch) -> None:
    results = module("eddy.base.results")
    monkeypatch.setattr(results, "uncancelled", lambda *sides: tuple(np.arange(len(columns[0])) for columns in sides))


@breaks("a stream query's answer is not cut to its newest")
def _no_newest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module("eddy.reading.stream_reader"), "NEWEST", 1 << 40)


@breaks("listeners are not told what a resumed query takes back")
def _silent_resume(monkeypatch: pytest.MonkeyPatch) -> None:
    committer = module("eddy.commit.committer").Committer
    exact = committer.show

    def silent(self: Any, query: Any, timeline: Any, parts: Any) -> Any:
        return exact(self, query, timeline, ())

    monkeypatch.setattr(committer, "show", silent)


@breaks("the predicates of a cancelled query stay on its slot")
def _dirty_slot(monkeypatch: pytest.MonkeyPatch) -> None:
    bank = module("filters.index.bank").FilterBank
    monkeypatch.setattr(bank, "remove", lambda self, slot, position, *rest: self.index(position))
    leave_it_to_the_answers(monkeypatch)


@breaks("a candidate index still finds cancelled queries")
def _dirty_index(monkeypatch: pytest.MonkeyPatch) -> None:
    index = module("filters.index.candidates").CandidateIndex
    make_small(monkeypatch, {"MIN_CANDIDATES"})
    monkeypatch.setattr(index, "remove", lambda self, *args: None)
    leave_it_to_the_answers(monkeypatch)


@pytest.mark.long
@pytest.mark.parametrize("what", ENGINE_MUTANTS)
def test_the_driver_notices_a_mutant_of_the_engine(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    ENGINE_MUTANTS[what](monkeypatch)
    noticed = first_failure(subject)
    assert noticed is not None, f"{what}: nobody noticed in {N_SEEDS} seeds"
    assert isinstance(noticed[1], AssertionError), f"the patch itself fails: {noticed[1]!r}"
