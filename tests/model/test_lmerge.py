"""Random scripts over `FROM LMERGE(..)` beside the naive model, and what breaks it must be noticed."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

import eddy.operators.merge_stage
import windows.operators.stream_merge
from eddy.operators.merge_stage import InputStage
from tests.reference.breaking import leave_it_to_the_answers
from tests.reference.lmerge_steps import run
from tests.reference.mutants import mutated
from tests.reference.seeds import seeds
from windows.operators.relation_merge import RelationMerge
from windows.operators.stream_merge import StreamMerge


@pytest.mark.parametrize("seed", seeds(range(60), 6))
def test_a_seed_of_merges_in_from_passes(seed: int) -> None:
    assert run(seed, 60)["entered"] >= 0


@pytest.mark.parametrize("seed", seeds(range(500, 530), 3))
def test_a_seed_passes_with_the_engine_dumped_and_loaded_in_between(seed: int) -> None:
    assert run(seed, 50, reloads=True)["entered"] >= 0


@pytest.mark.slow
@pytest.mark.parametrize("seed", seeds(range(1_000, 1_040), 4))
def test_a_longer_seed_of_merges_in_from_passes(seed: int) -> None:
    assert run(seed, 150, reloads=seed % 4 == 0)["entered"] >= 0


@pytest.mark.slow
def test_the_seeds_meet_everything() -> None:
    met: Counter[str] = Counter()
    for seed in range(2_000, 2_012):
        met += run(seed, 60)
    streams = {f"leader {name}" for name in ("a", "b", "d", "na", "nb")}
    chosen = {f"chosen {name}" for name in ("a", "b", "ra", "rb", "rd", "rk", "wa", "wb")}
    assert {"entered", "known", "settled", "taken back", "paused", *streams, *chosen} <= {word for word, n in met.items() if n}


#: What is broken -> (module or class, function, expression, changed).
MUTANTS: dict[str, tuple[Any, str, str, str]] = {
    "the last named of equal points decides": (
        StreamMerge,
        "process",
        "self._points.index(after)",
        "len(self._points) - 1 - self._points[::-1].index(after)",
    ),
    "the point goes back": (StreamMerge, "process", "max([before, *(point", "max([*(point"),
    "rows below the point enter": (
        StreamMerge,
        "process",
        "(rows.own > before) & (rows.own < after) & own",
        "(rows.own < after) & own",
    ),
    "rows of all streams enter": (StreamMerge, "process", "& (rows.own < after) & own", "& (rows.own < after)"),
    "rows at the point of others do not enter": (
        StreamMerge,
        "process",
        "instant = np.flatnonzero(rows.own == after)",
        "instant = np.flatnonzero((rows.own == after) & (rows.inputs == self.leader))",
    ),
    "nothing is taken back": (StreamMerge, "_decided", "if not self._n_standing:", "if True:"),
    "the oldest is taken back": (StreamMerge, "_decided", '"stable")[::-1]', '"stable")'),
    "copies are not counted": (
        windows.operators.stream_merge,
        "give_copies",
        "counts[code, inputs[k]] > shown[code]",
        "shown[code] == 0",
    ),
    "copies of all inputs count together": (
        windows.operators.stream_merge,
        "give_copies",
        "counts[code, inputs[k]] += 1",
        "counts[code] += 1",
    ),
    "the instant is kept when the point moves": (StreamMerge, "process", "self._begin()", "pass"),
    "rows are held by their starts": (
        StreamMerge,
        "process",
        "rows.plus(kept, ids, self.takes_back)",
        "rows.plus(kept, ids, False)",
    ),
    "the last named relation decides": (
        RelationMerge,
        "process",
        "self._points.index(max(known))",
        "len(self._points) - 1 - self._points[::-1].index(max(known))",
    ),
    "another relation is shown with the next change only": (
        RelationMerge,
        "_changed",
        "if leader != self.leader or",
        "if self.leader == -1 or",
    ),
    "a relation that comes back is not read whole": (
        InputStage,
        "_process",
        "self._comes_back and not self.node.is_stream",
        "False",
    ),
    "a paused query has a say": (eddy.operators.merge_stage, "_point", "now if foot.runs else None", "now"),
    "a stream stands at the clock": (eddy.operators.merge_stage, "_point", "min(front, clock)", "clock"),
}


@pytest.mark.slow
@pytest.mark.parametrize("what", MUTANTS)
def test_a_broken_merge_is_noticed(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    where, name, old, new = MUTANTS[what]
    leave_it_to_the_answers(monkeypatch)
    monkeypatch.setattr(where, name, mutated(where, name, old, new))
    with pytest.raises((AssertionError, ValueError, IndexError)):
        for seed in range(40):
            run(seed, 60)
