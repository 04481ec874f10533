"""Mutants of the state of an engine: whatever is left out of a dump is missed by the random scripts, or where these cannot ask
for it (what walks leave out anyway, texts whose changes were read), by a look at all that the engine holds."""

from __future__ import annotations

from array import array
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from eddy.base.change_log import ChangeLog
from eddy.base.plans import QueryRun
from eddy.base.result_log import CommitEnds, ResultLog
from eddy.operators.shared.shared_members import Members
from eddy.query import Query
from eddy.streams.marks import Marks
from eddy.streams.stored import Stored
from eddy.streams.stream_log import StreamLog
from eddy.streams.timeline import Intake, Timeline
from stems.hash_index import HashIndex
from stems.own_ends import OwnEnds
from stems.row_ends import RowEnds
from stems.row_store import Page
from stems.table import Versions
from stems.tombstones import Tombstones
from tests.model.test_shared_groups import Pair
from tests.model.test_state_seeds import replay, replay_pair, replay_trees
from tests.reference.frozen_steps import make_frozen_script
from tests.reference.history_steps import make_history_script
from tests.reference.keyed_steps import make_keyed_script
from tests.reference.row_steps import make_row_script
from tests.reference.steps import make_script
from tests.reference.stream_joins import make_stream_join_script, make_table_script
from tests.reference.window_steps import make_window_script
from tests.unit.eddy.state import test_dump
from windows.state.rows import LiveRows

#: Scripts that a mutant may survive before the test fails, and their length.
N_SEEDS = 30
N_STEPS = 30

Change = Callable[[Any], Any]


def put(value: Any) -> Change:
    return lambda old: value


KINDS: dict[str, Callable[[int], object]] = {
    "filters": lambda seed: replay(make_script(seed, N_STEPS), seed),
    "history": lambda seed: replay(make_history_script(seed, N_STEPS), seed),
    "rows": lambda seed: replay(make_row_script(seed, N_STEPS), seed),
    "joins": lambda seed: replay(make_stream_join_script(seed, N_STEPS), seed),
    "tables": lambda seed: replay(make_table_script(seed, N_STEPS), seed),
    "keyed": lambda seed: replay(make_keyed_script(seed, N_STEPS), seed),
    "trees": lambda seed: replay_trees(make_window_script(seed, N_STEPS), seed),
    "frozen": lambda seed: replay_trees(make_frozen_script(seed, N_STEPS), seed),
    "shared": lambda seed: replay_pair(Pair(seed), seed),
    "look": lambda seed: test_dump.test_all_that_an_engine_holds_is_there_again_and_shared_as_it_was("auto"),
}

MUTANTS: dict[str, tuple[type, str, Change, str]] = {
    "rows that wait": (Intake, "_waiting", put([]), "filters"),
    "the front of a stream": (Intake, "front", lambda front: front - 1, "filters"),
    "the number of the next row": (Intake, "next_row", put(0), "filters"),
    "the clock": (Timeline, "now", lambda now: now - 1, "filters"),
    "the log of commits": (ResultLog, "_seqs", lambda seqs: array("q", [seq + 1 for seq in seqs]), "filters"),
    "births": (QueryRun, "born", put(0), "history"),
    "what a query may see": (Query, "birth", put(None), "history"),
    "kept answers": (Query, "kept", put(None), "filters"),
    "earlier texts": (Query, "earlier", put(()), "look"),
    "ends of the store by commit": (StreamLog, "ends", put(CommitEnds()), "filters"),
    "the rows that later queries may see": (Stored, "first", put(0), "history"),
    "when rows leave windows that count them": (RowEnds, "_lowest_alive", lambda position: position + 3, "rows"),
    "how far an index reaches back": (HashIndex, "since", put(0), "joins"),
    "deleted versions": (Tombstones, "_pages", put({}), "look"),
    "when tables changed": (Marks, "_ends", lambda ends: [end + 1 for end in ends], "tables"),
    "closed versions": (Versions, "_closings", put([]), "tables"),
    "ends of their own": (OwnEnds, "_lowest_alive", lambda position: position + 2, "keyed"),
    "changes of operators": (ChangeLog, "_parts", put({}), "trees"),
    "rows that operators keep": (LiveRows, "ends", lambda ends: ends + 1, "trees"),
    "what was shown": (Members, "logged", np.zeros_like, "shared"),
}


@pytest.mark.long
@pytest.mark.parametrize("name", MUTANTS)
def test_what_is_left_out_is_noticed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    kind, attribute, change, scripts = MUTANTS[name]
    told: Any = kind.__getstate__

    def changed(self: Any) -> Any:
        held = getattr(self, attribute)
        setattr(self, attribute, change(held))
        try:
            state = told(self)
            # some tell their attributes themselves
            return {**state} if isinstance(state, dict) else state
        finally:
            setattr(self, attribute, held)

    monkeypatch.setattr(kind, "__getstate__", changed, raising=False)
    noticed(KINDS[scripts])


@pytest.mark.long
@pytest.mark.parametrize("scripts", ["filters", "joins"])
def test_a_row_that_is_left_out_is_noticed(scripts: str, monkeypatch: pytest.MonkeyPatch) -> None:
    told = Page.__getstate__

    def changed(self: Page) -> tuple[object, ...]:
        state = [*told(self)]
        state[4] = np.array(state[4])
        if self.n_rows:
            state[4][0, -1] += 1
        return tuple(state)

    monkeypatch.setattr(Page, "__getstate__", changed)
    noticed(KINDS[scripts])


def noticed(run: Callable[[int], object]) -> None:
    """Some script fails."""
    for seed in range(N_SEEDS):
        try:
            run(seed)
        except Exception:
            return
    raise AssertionError(f"{N_SEEDS} scripts passed")
