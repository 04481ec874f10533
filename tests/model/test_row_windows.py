"""Random queries over one stream with windows that count rows: the engine, the naive model and DuckDB after every step."""

from __future__ import annotations

import functools
from collections import Counter
from dataclasses import replace

import pytest

from eddy import Engine
from tests.reference.driver import replay, subject
from tests.reference.history_steps import submits
from tests.reference.limits import make_small, settle_always
from tests.reference.lives import UNBOUNDED
from tests.reference.row_steps import make_row_script
from tests.reference.script import Crowd, Replace, Submit
from tests.reference.seeds import seeds


@pytest.mark.parametrize("seed", seeds(range(12), 5))
def test_a_seed_of_windows_that_count_rows_passes(seed: int) -> None:
    script = make_row_script(seed, 40)
    assert submits(script)
    replay(script, subject)


@pytest.mark.parametrize("seed", range(100, 106))
def test_a_seed_of_windows_that_count_rows_passes_when_every_limit_is_small(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    make_small(monkeypatch)
    script = make_row_script(seed, 40)
    assert submits(script)
    replay(script, subject, use_duckdb=False)


@pytest.mark.parametrize("seed", range(200, 206))
def test_a_seed_of_windows_that_count_rows_passes_when_the_log_holds_hardly_a_commit(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Then rows are forgotten as soon as no window holds them."""
    settle_always(monkeypatch)
    script = make_row_script(seed, 40)
    # the answer of a stream query reaches no further back than the log
    kept = [
        step for step in script.steps if not isinstance(step, Crowd) and not (isinstance(step, Submit) and step.spec.is_stream)
    ]
    assert any(isinstance(step, Submit) for step in kept)
    replay(
        replace(script, steps=kept),
        functools.partial(Engine, log_rows=1 + seed % 5, log_bytes=1 + seed % 3 * 200),
        use_duckdb=False,
    )


@pytest.mark.long
@pytest.mark.parametrize("seed", seeds(range(1_000, 1_020), 3))
def test_a_longer_seed_of_windows_that_count_rows_passes(seed: int) -> None:
    script = make_row_script(seed, 100)
    assert submits(script)
    replay(script, subject, use_duckdb=seed % 4 == 0)


def test_the_seeds_hold_windows_of_every_kind() -> None:
    kinds: Counter[tuple[bool, bool]] = Counter()
    histories = replaced = crowds = 0
    for seed in range(12):
        script = make_row_script(seed, 40)
        replaced += sum(isinstance(step, Replace) for step in script.steps)
        crowds += sum(isinstance(step, Crowd) for step in script.steps)
        for step in submits(script):
            window = step.spec.meaning.inputs[0].window
            if window is not None and window.rows is not None:
                kinds[bool(window.partition), window.width < UNBOUNDED] += 1
                histories += step.history == "window"
    assert len(kinds) == 4 and min(kinds.values()) > 10, "ROWS with and without PARTITION BY, with and without RANGE"
    assert histories > 20 and replaced > 10 and crowds > 0
