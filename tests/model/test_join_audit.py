"""The naive model's joins against DuckDB, after every step and at the times in between, on random scripts.

What is compared is in `tests/reference/audit.py`. The engine is not in it: this is the test of what it will be tested by.
"""

from __future__ import annotations

from collections import Counter

import pytest

from tests.reference.audit import audit
from tests.reference.driver import replay
from tests.reference.join_steps import make_join_script
from tests.reference.naive import Query
from tests.reference.player import Player
from tests.reference.script import Act, Delete, Push, Replace, Script, Submit, Upsert, as_python
from tests.reference.seeds import seeds
from tests.reference.twin import Twin

N_STEPS = 30


@pytest.mark.parametrize("seed", range(16))
def test_the_model_gives_duckdbs_answers_at_every_time(seed: int) -> None:
    assert audit(make_join_script(seed, N_STEPS)) > 0


@pytest.mark.slow
@pytest.mark.parametrize("seed", seeds(range(1_000, 1_030), 5))
def test_the_model_gives_duckdbs_answers_in_many_long_runs(seed: int) -> None:
    assert audit(make_join_script(seed, 2 * N_STEPS)) > 0


@pytest.mark.parametrize("seed", range(100, 106))
def test_the_driver_runs_joins_against_whatever_plays_the_engine(seed: int) -> None:
    """The twin is the model behind the engine's calls, so nothing may differ; DuckDB is asked too."""
    script = make_join_script(seed, N_STEPS)
    assert any(len(step.spec.meaning.inputs) > 1 for step in script.steps if isinstance(step, Submit))
    replay(script, Twin)


def test_a_seed_always_gives_the_same_script() -> None:
    assert as_python(make_join_script(3, N_STEPS)) == as_python(make_join_script(3, N_STEPS))
    assert as_python(make_join_script(3, N_STEPS)) != as_python(make_join_script(4, N_STEPS))


def test_the_scripts_reach_every_kind_of_join_with_answers_that_are_not_empty() -> None:
    met: Counter[str] = Counter()
    for seed in range(80):
        met.update(_kinds(make_join_script(seed, N_STEPS)))
    kinds = [f"{n} inputs" for n in range(1, 6)]
    kinds += ["self-join", "row with itself", "frozen table", "retroactive table", "table alone", "stream with table"]
    kinds += ["RANGE", "ROWS", "PARTITION BY", "RANGE and ROWS", "windows differ", "history", "incomplete history"]
    kinds += ["late", "lagging", "tie across streams", "taken back by a table", "- by replace", "+ by replace", "- by resume"]
    assert {kind: met[kind] for kind in kinds if met[kind] < 3} == {}


def _kinds(script: Script) -> set[str]:
    """What a run of the script on the model shows."""
    player = Player(script)
    met: set[str] = set()
    model = player.model
    for step in script.steps:
        done = model.seq
        n_late = sum(stream.n_late for stream in model.streams.values())
        player.do(step)
        if isinstance(step, Push):
            met |= {"late"} if sum(stream.n_late for stream in model.streams.values()) > n_late else set()
            starts = [{e.start for e in stream.taken if e.seq == model.seq} for stream in model.streams.values()]
            met |= {"tie across streams"} if sum(map(len, starts)) > len(set().union(*starts)) else set()
        if isinstance(step, Submit) and step.history == "window":
            query = model.queries[player.numbers[step.label]]
            if query.streams and query.results:
                incomplete = query.complete_since is None or query.complete_since > model.T["main"]
                met |= {"history", "incomplete history"} if incomplete else {"history"}
        signs = {change.sign for changes in model.commits.get(done + 1, {}).values() for change in changes}
        met |= {f"{'-' if sign < 0 else '+'} by replace" for sign in signs if isinstance(step, Replace)}
        met |= {"- by resume" for sign in signs if isinstance(step, Act) and sign < 0}
        met |= {"taken back by a table" for sign in signs if isinstance(step, Upsert | Delete) and sign < 0}
        for query in model.queries.values():
            met |= _kinds_of(query) if query.results and query.kept is None else set()
    lagging = [entry.t < entry.start for stream in model.streams.values() for entry in stream.taken]
    return met | {"lagging" for lags in lagging if lags}


def _kinds_of(query: Query) -> set[str]:
    inputs = query.meaning.inputs
    met = {f"{len(inputs)} inputs"}
    windows = [item.window for item in inputs if item.window]
    moving = [k for k in range(len(inputs)) if k not in query.streams and k not in query.frozen]
    pairs = [(i, j) for i in query.streams for j in query.streams if i < j and inputs[i].source == inputs[j].source]
    facts = {
        "self-join": pairs,
        "row with itself": any(r.parts[i].number == r.parts[j].number for r in query.results for i, j in pairs),
        "frozen table": query.frozen and not query.is_stream,
        "retroactive table": moving and query.streams,
        "table alone": not query.streams,
        "stream with table": query.is_stream and query.frozen,
        "RANGE": any(window.rows is None for window in windows),
        "ROWS": any(window.rows and not window.partition for window in windows),
        "PARTITION BY": any(window.partition for window in windows),
        "RANGE and ROWS": any(window.rows and window.width < float("inf") for window in windows),
        "windows differ": len(set(windows)) > 1,
    }
    return met | {fact for fact, holds in facts.items() if holds}
