"""Random queries over streams with keys and ends of their own: the engine, the naive model and DuckDB after every step.

DuckDB is given the rows and the retractions and works out by itself when each row ends (`tests/reference/oracle.py`).
"""

from __future__ import annotations

import functools
from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import eddy.lives.early_ends
import eddy.lives.window_rows
import eddy.streams.retractions
from eddy import Engine
from stems.own_ends import OwnEnds, TakenOut
from tests.reference.breaking import Breaks, leave_it_to_the_answers
from tests.reference.comparison import Mismatch
from tests.reference.driver import replay, subject
from tests.reference.keyed_steps import make_keyed_script
from tests.reference.limits import make_small, settle_always
from tests.reference.player import Player
from tests.reference.script import Replace, Retract, Script, Submit, with_events
from tests.reference.seeds import seeds
from tests.reference.timelines import Stream
from tests.reference.twin import Twin


def without_streams(script: Script) -> Script:
    """Without queries that give a stream: answers of relations do not depend on how long the log is."""
    return replace(
        script, steps=[step for step in script.steps if not (isinstance(step, Submit | Replace) and step.spec.is_stream)]
    )


@pytest.mark.parametrize("seed", seeds(range(16), 4))
def test_a_seed_of_keyed_streams_passes(seed: int) -> None:
    script = make_keyed_script(seed, 40)
    assert any(isinstance(step, Submit) for step in script.steps)
    replay(with_events(script) if seed % 3 == 0 else script, subject, use_duckdb=seed % 2 == 0)


@pytest.mark.parametrize("seed", range(100, 106))
def test_a_seed_of_keyed_streams_passes_when_every_limit_is_small(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    make_small(monkeypatch)
    script = make_keyed_script(seed, 40)
    assert any(isinstance(step, Submit) for step in script.steps)
    replay(script, subject, use_duckdb=False)


@pytest.mark.parametrize("seed", range(200, 210))
def test_a_seed_of_keyed_streams_passes_when_the_log_holds_hardly_a_commit(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Then rows are forgotten as soon as no window holds them."""
    settle_always(monkeypatch)
    script = without_streams(make_keyed_script(seed, 40))
    assert any(isinstance(step, Submit) for step in script.steps)
    replay(script, functools.partial(Engine, log_rows=1 + seed % 5, log_bytes=1 + seed % 3 * 200), use_duckdb=False)


@pytest.mark.slow
@pytest.mark.parametrize("seed", seeds(range(1_000, 1_030), 3))
def test_a_longer_seed_of_keyed_streams_passes(seed: int) -> None:
    script = make_keyed_script(seed, 70)
    assert any(isinstance(step, Submit) for step in script.steps)
    replay(with_events(script) if seed % 3 == 0 else script, subject, use_duckdb=seed % 2 == 0)


def test_the_seeds_hold_ends_of_every_kind() -> None:
    met: Counter[str] = Counter()
    for seed in range(16):
        script = make_keyed_script(seed, 40)
        met["retractions"] += sum(isinstance(step, Retract) for step in script.steps)
        player = Player(script)
        for step in script.steps:
            waiting = sum(len(stream.waiting) for stream in player.model.streams.values())
            done = player.model.seq
            player.do(step)
            changes = player.model.commits.get(done + 1, {}).values()
            if isinstance(step, Retract):
                met["taken back by a retraction"] += any(change.sign < 0 for found in changes for change in found)
                met["retractions that wait"] += sum(len(s.waiting) for s in player.model.streams.values()) > waiting
        for stream in player.model.streams.values():
            met["rows over when they came"] += stream.n_over
            met["unknown keys"] += stream.n_unknown
            met["ended early"] += sum(a < b for a, b in zip(stream.own_ends, stream.scheduled, strict=True))
    least = {"retractions": 30, "taken back by a retraction": 5, "retractions that wait": 3, "rows over when they came": 30,
             "unknown keys": 10, "ended early": 50}  # fmt: skip
    assert {kind: met[kind] for kind in least if met[kind] < least[kind]} == {}


#: what is broken -> a function that breaks it
MUTANTS = breaks = Breaks()


@breaks("an end is read as it is, not as it was")
def _no_past(monkeypatch: pytest.MonkeyPatch) -> None:
    exact = OwnEnds.ends_at
    monkeypatch.setattr(OwnEnds, "ends_at", lambda self, positions, commit: exact(self, positions, 2**62))


@breaks("retractions come before the rows of their commit")
def _first(monkeypatch: pytest.MonkeyPatch) -> None:
    exact = eddy.streams.retractions.take_out

    def early(released, clock):  # type: ignore[no-untyped-def]  # as the original
        rows, found = exact(released, clock)
        keyed = {of: taken.by_key for of, taken in found.items()}
        return rows, {of: TakenOut(r and r._replace(rows_before=np.zeros_like(r.rows_before)), None) for of, r in keyed.items()}

    monkeypatch.setattr("eddy.commit.committer.take_out", early)


@breaks("a retraction ends a row at its own time, also where the stream lags")
def _behind(monkeypatch: pytest.MonkeyPatch) -> None:
    exact = eddy.streams.retractions.take_out
    monkeypatch.setattr("eddy.commit.committer.take_out", lambda released, clock: exact(released, -(2**62)))


@breaks("listeners are not told of rows that were replaced or retracted")
def _silent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(OwnEnds, "lowered_in", lambda self, commit: np.zeros(0, np.int64))


@breaks("listeners are not told of rows that end by themselves")
def _unscheduled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        eddy.lives.early_ends.EarlyEnds, "_scheduled_between", lambda self, index, before, after: np.zeros(0, np.int64)
    )


@breaks("a row that was over when it came is shown without a window")
def _over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(OwnEnds, "alive_at_first", lambda self, positions: np.ones(len(positions), np.bool_))


@breaks("rows that are over are forgotten although the log can still show them")
def _forgetful(monkeypatch: pytest.MonkeyPatch) -> None:
    exact = OwnEnds.move_to
    monkeypatch.setattr(OwnEnds, "move_to", lambda self, clock, commit: exact(self, 2**61, 2**62))


@pytest.mark.slow
@pytest.mark.parametrize("what", MUTANTS)
def test_random_keyed_streams_notice_what_is_broken(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    MUTANTS[what](monkeypatch)
    leave_it_to_the_answers(monkeypatch)
    settle_always(monkeypatch)
    for seed in range(20):
        try:
            replay(make_keyed_script(seed, 40), Engine, use_duckdb=False)
        except AssertionError:
            return
    pytest.fail(f"{what}: nobody noticed in 20 seeds")


#: what the model gets wrong -> a method of its streams, and what stands in its place
WRONG: dict[str, tuple[str, Any]] = {
    "a row of the same key replaces nothing, and nothing is retracted": ("lower", lambda self, key, time: False),
    "what is retracted stays until the next instant": ("lower", lambda self, key, time: LOWER(self, key, time + 1)),
    "a row that is over when it came replaces nothing": (
        "enter",
        lambda self, row, start: ENTER(
            _without_key(self) if self.end and (row[self.end] or start + 1) <= start else self, row, start
        ),
    ),
}
LOWER, ENTER = Stream.lower, Stream.enter


def _without_key(stream: Stream) -> Stream:
    """The same stream, which takes no notice of keys; its lists are shared."""
    return replace(stream, key=())


@pytest.mark.slow
@pytest.mark.parametrize("what", WRONG)
def test_duckdb_notices_what_the_model_gets_wrong(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The model plays the engine, so that only DuckDB can tell."""
    monkeypatch.setattr(Stream, *WRONG[what])
    for seed in range(16):
        try:
            replay(make_keyed_script(seed, 40), Twin, use_duckdb=True)
        except Mismatch as error:
            assert "DuckDB" in str(error)
            return
    pytest.fail(f"{what}: DuckDB did not notice in 16 seeds")
