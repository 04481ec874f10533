"""Random scripts whose queries all have `emit="event"`: the engine and the naive model after every step."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.reference.driver import replay, subject
from tests.reference.history_steps import make_history_script, submits
from tests.reference.player import Player
from tests.reference.row_steps import make_row_script
from tests.reference.script import Script, with_events
from tests.reference.seeds import seeds
from tests.reference.stream_joins import make_stream_join_script, make_table_script

MAKERS: dict[str, Callable[[int, int], Script]] = {
    "one stream": make_history_script,
    "windows that count rows": make_row_script,
    "joins": make_stream_join_script,
    "tables": make_table_script,
}


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kind", MAKERS)
def test_a_seed_with_changes_by_instant_passes(kind: str, seed: int) -> None:
    script = with_events(MAKERS[kind](300 + seed, 30))
    assert submits(script) and all(step.emit == "event" for step in submits(script))
    replay(script, subject, use_duckdb=False)


@pytest.mark.slow
@pytest.mark.parametrize("seed", seeds(range(6), 1))
@pytest.mark.parametrize("kind", MAKERS)
def test_a_longer_seed_with_changes_by_instant_passes(kind: str, seed: int) -> None:
    script = with_events(MAKERS[kind](1300 + seed, 80))
    assert submits(script)
    replay(script, subject, use_duckdb=False)


@pytest.mark.parametrize("kind", MAKERS)
def test_the_seeds_show_rows_that_come_and_go_inside_a_commit(kind: str) -> None:
    """Without them the two ways to emit would not differ."""
    more = 0
    for seed in range(300, 306):
        counts = []
        for script in (MAKERS[kind](seed, 40), with_events(MAKERS[kind](seed, 40))):
            player = Player(script)
            for step in script.steps:
                player.do(step)
            counts.append(sum(len(changes) for commit in player.model.commits.values() for changes in commit.values()))
        more += counts[1] > counts[0]
    assert more >= 1
