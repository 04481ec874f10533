"""Does the audit of joins have teeth? Each mutant of the naive model breaks one rule; DuckDB must notice within a few seeds.

A mutant that survives means a rule of joins that random scripts would not notice the model, or later the engine, losing.
The rules of the clock are not here: DuckDB is given the times the model found. `test_mutants.py` has them.
"""

from __future__ import annotations

import functools
import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from tests.model.mutants import ClosedWindow, WindowFromStart
from tests.reference import matching, naive, tables
from tests.reference.audit import audit
from tests.reference.breaking import Breaks
from tests.reference.changes import Change
from tests.reference.comparison import Mismatch
from tests.reference.driver import replay
from tests.reference.join_steps import make_join_script
from tests.reference.lives import UNBOUNDED, Part, Window, displace
from tests.reference.matching import Condition, Meaning, Result, Rows
from tests.reference.naive import Naive, Query
from tests.reference.player import Player
from tests.reference.script import Script, as_python
from tests.reference.shrinking import shrink
from tests.reference.tables import Table, Version
from tests.reference.timelines import Stream, Taken
from tests.reference.twin import Twin
from tests.reference.values import Row, canonical, canonical_row

pytestmark = pytest.mark.slow

#: Scripts a mutant may survive before the test fails, and their length.
N_SEEDS = 120
N_STEPS = 30


class NoBirth(Naive):
    """A query sees rows taken before its submit."""

    def _first_seen(self, query: Query, stream: Stream) -> int:
        return stream.stored_from


class EndlessStore(Naive):
    """With history a query sees every row there ever was."""

    def _settle_store(self) -> None:
        """Nothing is let go."""


class HistoryIsNew(Naive):
    """history="window" is ignored."""

    def submit(self, meaning: Meaning, history: str = "new", emit: str = "commit") -> int:
        number = super().submit(meaning, history, emit)
        if history == "window" and self.queries[number].streams:
            query = self.queries[number]
            query.results, query.parts = [], [[] if k in query.streams else parts for k, parts in enumerate(query.parts)]
            self.commits[self.seq] = {}
        return number


class NoPairWithItself(Naive):
    """(x, x) is missing from a self-join."""

    def results_of(self, query: Query) -> list[Result]:
        def once(result: Result) -> bool:
            seen = [(query.meaning.inputs[k].source, result.parts[k].number) for k in query.streams]
            return len(seen) == len(set(seen))

        return [result for result in super().results_of(query) if once(result)]


class NullJoinsNull(Naive):
    """A condition that is NULL lets a match through."""

    def _passes(self, condition: Condition, rows: Rows) -> bool:
        return condition.holds(rows) is not False


class OneRowMore(Naive):
    """ROWS n holds n + 1."""

    def _displace(self, window: Window, parts: list[Part]) -> None:
        displace(window if window.rows is None else replace(window, rows=window.rows + 1), parts)


class NoPartitions(Naive):
    """PARTITION BY is ignored."""

    def _displace(self, window: Window, parts: list[Part]) -> None:
        displace(replace(window, partition=()), parts)


class NullIsNoKey(Naive):
    """Rows with NULL in their partition's key are never displaced."""

    def _displace(self, window: Window, parts: list[Part]) -> None:
        displace(window, [part for part in parts if None not in window.key(part.row)])


class ZeroHasASign(Naive):
    """-0.0 and 0.0 are two keys of a partition."""

    def _displace(self, window: Window, parts: list[Part]) -> None:
        signed = [{c: str(v) if isinstance(v, float) else canonical_row([v]) for c, v in part.row.items()} for part in parts]
        copies = [Part(p.number, row, p.seq, p.start, p.end) for p, row in zip(parts, signed, strict=True)]
        displace(window, copies)
        for part, copy in zip(parts, copies, strict=True):
            part.end = copy.end


class RowsWithoutRange(Naive):
    """ROWS n RANGE w is ROWS n."""

    def part_of(self, query: Query, k: int, position: int, taken: Taken) -> Part:
        window = query.meaning.inputs[k].window
        part = super().part_of(query, k, position, taken)
        part.end = UNBOUNDED if window and window.rows else part.end
        return part


class RowsFromThePast(Naive):
    """ROWS n counts only from the second row of a commit on: the last row before it is never displaced by the first."""

    def _displace(self, window: Window, parts: list[Part]) -> None:
        came = [part for part in parts if part.seq == self.seq]
        displace(window, [part for part in parts if part not in came[:1]])


class DisplacedAtOnce(Naive):
    """A displaced row is gone from the start of the commit on, not from the start of the row that displaces it."""

    def _displace(self, window: Window, parts: list[Part]) -> None:
        before = self.clocks[-1].get("main", -math.inf)
        ends = [part.end for part in parts]
        displace(window, parts)
        for part, end in zip(parts, ends, strict=True):
            part.end = part.end if part.end == end else min(part.end, before)


class EveryTableIsRetroactive(Naive):
    """A non-retroactive table changes the results there are."""

    def bind(self, meaning: Meaning, history: str, born: int) -> Query:
        query = super().bind(meaning, history, born)
        return query if query.is_stream else replace(query, frozen={})


class NoTableIsRetroactive(Naive):
    """A retroactive table does not."""

    def bind(self, meaning: Meaning, history: str, born: int) -> Query:
        query = super().bind(meaning, history, born)
        tables = {k: self.tables[item.source] for k, item in enumerate(meaning.inputs) if k not in query.streams}
        return replace(query, frozen=tables) if query.streams else query


class DeleteIsIgnored(Naive):
    """Deleted rows stay in the table."""

    def delete(self, table: str, keys: Sequence[Sequence[object]]) -> None:
        super().delete(table, [])


class TableChangesAreLate(Naive):
    """A version takes effect one microsecond after the clock."""

    def version_part(self, query: Query, version: Version) -> Part:
        part = super().version_part(query, version)
        part.start += 1
        return part


class ReplaceIsSilent(Naive):
    """replace takes nothing back."""

    def replace(self, number: int, meaning: Meaning) -> None:
        super().replace(number, meaning)
        self.commits[self.seq] = {}


class ReplaceStartsEmpty(Naive):
    """A replaced query sees no row from before its replace."""

    def open_in_commit(self, number: int, query: Query, before: list[tuple[object, ...]]) -> None:
        query.born = self.seq
        super().open_in_commit(number, query, before)


class ResumeTakesNothingBack(Naive):
    """The answer that was kept over a pause is not taken back."""

    def resume(self, number: int) -> None:
        super().resume(number)
        self.commits[self.seq] = {}


class EndsAreLeftOver(Naive):
    """Ends are told by the commit after the one that reaches them."""

    def _now(self, timeline: str) -> float:
        return self.clocks[-1].get(timeline, -math.inf)


class PlusBeforeMinus(Naive):
    """+ comes before -."""

    def net_changes(self, pluses: list[Change], minuses: list[Change]) -> list[Change]:
        return sorted(super().net_changes(pluses, minuses), key=lambda change: (-change.sign, change.time))


MUTANTS: list[type[Naive]] = [
    ClosedWindow, WindowFromStart, NoBirth, EndlessStore, HistoryIsNew, NoPairWithItself, NullJoinsNull, OneRowMore, NoPartitions,
    NullIsNoKey, ZeroHasASign, RowsWithoutRange, RowsFromThePast, DisplacedAtOnce, EveryTableIsRetroactive, NoTableIsRetroactive,
    DeleteIsIgnored, TableChangesAreLate, ReplaceIsSilent, ReplaceStartsEmpty, ResumeTakesNothingBack, EndsAreLeftOver,
    PlusBeforeMinus,
]  # fmt: skip


def story(script: Script, model: Callable[[], Naive] = Naive) -> list[object]:
    """All a reader sees of a run: the answers after each step, in some order, and all changes."""
    player = Player(script, model)
    seen: list[object] = []
    for step in script.steps:
        player.do(step)
        seen.append({label: Counter(player.model.answer(number)) for label, number in player.numbers.items()})
    return [*seen, player.model.commits]


@functools.cache
def true_stories() -> list[list[object]]:
    """The stories of the unbroken model; asked for before anything is patched."""
    return [story(make_join_script(seed, N_STEPS)) for seed in range(N_SEEDS)]


def assert_noticed(what: str | None, model: Callable[[], Naive] = Naive) -> None:
    """DuckDB notices the mutant. Seeds on which its story is the true one are passed over: nobody could notice."""
    for seed, true_story in enumerate(true_stories()):
        script = make_join_script(seed, N_STEPS)
        if story(script, model) != true_story:
            try:
                audit(script, model)
            except Mismatch:
                return
    pytest.fail(f"{what} Nobody noticed in {N_SEEDS} seeds")


@pytest.mark.long
@pytest.mark.parametrize("mutant", MUTANTS)
def test_the_audit_notices_a_mutant_of_the_model(mutant: type[Naive]) -> None:
    assert_noticed(mutant.__doc__, mutant)


# -- mutants of the parts, by patches --------------------------------------------------------------------------------

#: what is broken -> a function that breaks it
PATCHES = breaks = Breaks()


@breaks("a match ends with the last of its parts")
def _latest_end(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (matching, naive):
        monkeypatch.setattr(module, "life", lambda parts: (max(p.start for p in parts), max(p.end for p in parts)))


@breaks("a match starts with the first of its parts")
def _earliest_start(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (matching, naive):
        monkeypatch.setattr(module, "life", lambda parts: (min(p.start for p in parts), min(p.end for p in parts)))


@breaks("the first of a match's stream rows says how a non-retroactive table was")
def _first_arrival(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matching, "arrival", lambda parts: min(part.seq for part in parts))


@breaks("rows from before the submit meet a non-retroactive table as it was when they came")
def _old_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    exact = Naive.part_of

    def stamped(model: Naive, query: Query, k: int, position: int, taken: Taken) -> Part:
        part = exact(model, query, k, position, taken)
        part.row = {**part.row, "came": taken.seq}
        return part

    monkeypatch.setattr(Naive, "part_of", stamped)
    monkeypatch.setattr(matching, "arrival", lambda parts: max(part.row["came"] for part in parts))


@breaks("a second row of a key stands beside the first")
def _no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    exact = Table.upsert

    def beside(table: Table, rows: Sequence[Row], seq: int) -> None:
        table.current.clear()
        exact(table, rows, seq)

    monkeypatch.setattr(Table, "upsert", beside)


@breaks("-0.0 and 0.0 are two keys of a table")
def _signed_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    def signed(value: object) -> object:
        return "-0.0" if isinstance(value, float) and str(value) == "-0.0" else canonical(value)

    monkeypatch.setattr(tables, "canonical_row", lambda values: tuple(map(signed, values)))


@breaks("NaN is another key each time")
def _nan_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "canonical_row", lambda values: tuple(object() if v != v else v for v in values))


@pytest.mark.long
@pytest.mark.parametrize("what", PATCHES)
def test_the_audit_notices_a_patch_of_the_model(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    true_stories()
    PATCHES[what](monkeypatch)
    assert_noticed(what)


# -- the driver ------------------------------------------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.parametrize("mutant", [ClosedWindow, NoPairWithItself, OneRowMore, EveryTableIsRetroactive, ReplaceIsSilent])
def test_the_driver_notices_too_and_shrinks_the_script(mutant: type[Naive]) -> None:
    """What the engine will be compared by: here the mutant plays the engine."""
    play = functools.partial(Twin, mutant)
    seed = next(s for s, true in enumerate(true_stories()) if story(make_join_script(s, N_STEPS), mutant) != true)
    small = shrink(make_join_script(seed, N_STEPS), play)
    assert len(small.steps) <= 7, as_python(small)
    with pytest.raises(Mismatch):
        replay(small, play, use_duckdb=False)
