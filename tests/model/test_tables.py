"""Random queries over streams and tables: the engine, the naive model and DuckDB after every step; and mutants of the engine."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from eddy.joins.joiner import Joiner
from eddy.joins.table_group import Counting, TableGroup
from eddy.joins.walk import Walker
from eddy.reading.table_reader import TableReader
from eddy.streams.marks import Marks
from stems.table import Versions
from tests.reference.driver import replay, subject
from tests.reference.limits import log_commits, make_small
from tests.reference.script import Script, Submit
from tests.reference.seeds import seeds
from tests.reference.stream_joins import make_table_script

#: Scripts that a mutant may survive before the test fails, and their length.
N_SEEDS = 40
N_STEPS = 30


def forget_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """The log is cut after almost every commit, so versions go as soon as no row of a stream asks for them."""
    make_small(monkeypatch)
    log_commits(monkeypatch, 2)


@pytest.mark.parametrize("seed", seeds(range(16), 6))
def test_a_seed_of_tables_passes(seed: int) -> None:
    script = make_table_script(seed, 30)
    assert script.tables and any(isinstance(step, Submit) for step in script.steps)
    replay(script, subject)


@pytest.mark.parametrize("seed", [6033, 6053])
def test_a_seed_that_failed_passes(seed: int) -> None:
    """6033, 6053: a stream whose windows never end kept no regions with its rows, so commits had no matches of it."""
    script = make_table_script(seed, 40)
    assert script.tables
    replay(script, subject, use_duckdb=False)


@pytest.mark.parametrize("seed", [9502, 9530])
def test_a_seed_that_failed_with_small_limits_passes(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """9502, 9530: a window that holds rows for ever began, in commits, with its first query and not with one that looks back."""
    forget_soon(monkeypatch)
    script = make_table_script(seed, 60, windows_only=True)
    assert script.tables
    replay(script, subject, use_duckdb=False)


@pytest.mark.parametrize("seed", range(100, 108))
def test_a_seed_of_tables_passes_when_every_limit_is_small_and_versions_go_soon(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    forget_soon(monkeypatch)
    script = make_table_script(seed, 40, windows_only=True)
    assert script.steps
    replay(script, subject, use_duckdb=False)


@pytest.mark.slow
@pytest.mark.parametrize("seed", seeds(range(1_000, 1_030), 3))
def test_a_longer_seed_of_tables_passes(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    if seed % 2:
        forget_soon(monkeypatch)
    script = make_table_script(seed, 80, windows_only=bool(seed % 2))
    assert sum(isinstance(step, Submit) for step in script.steps) >= 1
    replay(script, subject, use_duckdb=seed % 4 == 0)


def test_the_seeds_hold_queries_of_every_kind() -> None:
    kinds: Counter[tuple[bool, bool, bool]] = Counter()
    counting: Counter[tuple[bool, bool]] = Counter()
    for seed in range(60):
        script = make_table_script(seed, 30)
        tables = {table.name: table for table in script.tables}
        for step in script.steps:
            if isinstance(step, Submit):
                sources = [item.source for item in step.spec.meaning.inputs]
                retroactive = any(tables[name].retroactive for name in sources if name in tables)
                kinds[step.spec.is_stream, any(name not in tables for name in sources), retroactive] += 1
                windows = [item.window for item in step.spec.meaning.inputs if item.window is not None and item.window.rows]
                if windows and any(name in tables for name in sources):
                    counting[any(window.partition for window in windows), retroactive] += 1
    assert min(kinds[kind] for kind in ((True, True, False), (True, True, True), (False, True, False), (False, True, True))) > 10
    assert min(kinds[False, False, False], kinds[False, False, True]) > 3
    assert len(counting) == 4 and min(counting.values()) > 10, "windows that count rows beside tables of either kind"


# -- mutants of the engine ---------------------------------------------------------------------------------------------

Patch = Callable[[pytest.MonkeyPatch], None]
MUTANTS: dict[str, tuple[Patch, bool]] = {}


def breaks(what: str, soon: bool = False) -> Callable[[Patch], Patch]:
    """Register a mutant; `soon`: it shows when versions go soon."""

    def add(patch: Patch) -> Patch:
        MUTANTS[what] = patch, soon
        return patch

    return add


@breaks("every table counts as it was")
def _all_frozen(monkeypatch: pytest.MonkeyPatch) -> None:
    exact = TableGroup.__init__

    def init(self: TableGroup, join: Any, sources: Any, *others: Any) -> None:
        before = [source.readable for source in sources]
        for source, readable in zip(sources, before, strict=True):
            source.readable = replace(readable, retroactive=False)
        exact(self, join, sources, *others)
        for source, readable in zip(sources, before, strict=True):
            source.readable = readable

    monkeypatch.setattr(TableGroup, "__init__", init)


@breaks("a version counts in the commit that ends it")
def _closed_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        Versions, "counts", lambda self, at, commit: (self.opened_at(at) <= commit) & (commit <= self.closed_at(at))
    )


@breaks("a frozen table counts as it is")
def _as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Marks, "commits_of", lambda self, positions, opened: np.full(len(positions), self._commits[-1]))


@breaks("a frozen table counts as it was when the first of the rows came")
def _first_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("eddy.joins.table_group.np", SimpleNamespace(**{**vars(np), "max": np.min}))


@breaks("a mark counts for the row before it too")
def _mark_too_early(monkeypatch: pytest.MonkeyPatch) -> None:
    exact = Marks.note
    monkeypatch.setattr(Marks, "note", lambda self, commit, end: exact(self, commit, max(0, end - 1)))
    monkeypatch.setattr(Marks, "check", lambda self, end: None)


@breaks("versions count before they are written")
def _later_versions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Versions, "opened_at", lambda self, at: np.zeros(len(at), np.int64))


@breaks("an upsert leaves the old row")
def _beside(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Versions, "find", lambda self, keys: np.full(len(keys), -1))
    monkeypatch.setattr(Versions, "check", lambda self: None)


@breaks("of two rows with one key in one upsert the first counts")
def _first_of_each(monkeypatch: pytest.MonkeyPatch) -> None:
    def first(keys: Any) -> np.ndarray:
        columns = keys.columns if len(keys.columns) else keys.words[None]
        return np.sort(np.unique(columns, axis=1, return_index=True)[1])

    monkeypatch.setattr("eddy.streams.table_source.last_of_each", first)


@breaks("what was there before the query is not matched")
def _untried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("eddy.joins.join_query.recall", lambda source, leg, first: None)


@breaks("an index of a table begins with the next version")
def _no_recall(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Walker, "recall", lambda self, births: None)


@breaks("a query over tables alone begins empty")
def _no_opening(monkeypatch: pytest.MonkeyPatch) -> None:
    exact = TableReader.begun

    def begun(self: TableReader, record: Any, by_event: bool = False) -> Any:
        return [] if self._run.after == record.seq - 1 else exact(self, record, by_event)

    monkeypatch.setattr(TableReader, "begun", begun)


@breaks("a change ends results once for each input")
def _ended_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    def of(self: Counting, versions: Versions, k: int, positions: np.ndarray) -> np.ndarray:
        counts = versions.counts(positions, self.commit)
        if self.ended_by is not None and k == self.first:
            counts &= versions.closed_at(positions) == self.ended_by
        return counts

    monkeypatch.setattr(Counting, "of", of)


@breaks("a change of a table is not in its commit")
def _silent_change(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Joiner, "begin_change", lambda self, table, commit: [])


@breaks("versions that a change ends stay in commits")
def _nothing_leaves(monkeypatch: pytest.MonkeyPatch) -> None:
    exact = TableGroup.leaves
    monkeypatch.setattr(
        TableGroup, "leaves", lambda self, before, after: self._rows_moved(before, after) and exact(self, before, after)
    )


@breaks("what tables hold is not in the commit that begins a query")
def _opens_empty(monkeypatch: pytest.MonkeyPatch) -> None:
    exact = TableGroup.begun

    def begun(self: TableGroup, *given: Any) -> Any:
        self._opening.clear()
        return exact(self, *given)

    monkeypatch.setattr(TableGroup, "begun", begun)


@breaks("a version counts for a query only after its birth")
def _born(monkeypatch: pytest.MonkeyPatch) -> None:
    exact = TableGroup.add

    def add(self: TableGroup, query: Any, births: tuple[int, ...]) -> int | None:
        return exact(self, query, tuple(source.store.end for source in self.sources))

    monkeypatch.setattr(TableGroup, "add", add)


@breaks("rows of streams do not keep versions", soon=True)
def _versions_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Marks, "oldest", property(lambda self: self._commits[-1]))


@breaks("the log does not keep versions", soon=True)
def _log_keeps_none(monkeypatch: pytest.MonkeyPatch) -> None:
    exact = Versions.forget
    monkeypatch.setattr(Versions, "forget", lambda self, commit: exact(self, commit + 2))


def _notices(script: Script) -> bool:
    try:
        replay(script, subject, use_duckdb=False)
    except AssertionError:
        # a difference or a broken invariant; anything else would be a mutant that no longer fits the call it stands for
        return True
    return False


@pytest.mark.long
@pytest.mark.parametrize("what", MUTANTS)
def test_the_driver_notices_a_mutant(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    patch, soon = MUTANTS[what]
    if soon:
        forget_soon(monkeypatch)
    patch(monkeypatch)
    noticed = any(_notices(make_table_script(seed, N_STEPS, windows_only=soon)) for seed in range(N_SEEDS))
    assert noticed, f"{what}: nobody noticed in {N_SEEDS} seeds"
