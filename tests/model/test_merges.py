"""Random scripts over merged streams of every case and policy: beside the naive model and a plain stream of what entered."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from eddy import Engine
from tests.reference.merge_model import Options
from tests.reference.merge_steps import POLICIES, draw_options, run
from tests.reference.seeds import seeds


@pytest.mark.parametrize("seed", seeds(range(24), 6))
def test_a_seed_of_merged_streams_passes(seed: int) -> None:
    assert run(seed, 60, draw_options(random.Random(seed))).met["entered"] >= 0


@pytest.mark.parametrize("policy", sorted(set(POLICIES)))
def test_every_policy_enters_and_takes_back_as_the_model_says(policy: str) -> None:
    met: Counter[str] = Counter()
    for seed, missing in enumerate(["leader", "any"]):
        options = Options(("a", "b", "c"), ("k", "v", "g"), end="until", missing=missing, policy=policy, lateness=5_000)
        met += run(seed + 50, 60, options).met
    assert met["entered"] > 20 and met["known"] and met["settled"]


@pytest.mark.parametrize("seed", seeds(range(500, 508), 3))
def test_a_seed_passes_with_the_engine_dumped_and_loaded_in_between(seed: int) -> None:
    assert run(seed, 40, draw_options(random.Random(seed)), reloads=True).met["entered"] >= 0


@pytest.mark.long
@pytest.mark.parametrize("seed", seeds(range(1_000, 1_060), 6))
def test_a_longer_seed_of_merged_streams_passes(seed: int) -> None:
    assert run(seed, 150, draw_options(random.Random(seed)), reloads=seed % 4 == 0).met["entered"] >= 0


def test_the_seeds_meet_every_outcome() -> None:
    met: Counter[str] = Counter()
    for seed in (2, 5, 9, 20, 26, 32, 50, 51):
        met += run(seed, 60, draw_options(random.Random(seed))).met
    assert {"new", "known", "repeated", "settled", "entered", "end"} <= {word for word, n in met.items() if n}


def test_pushes_cut_in_any_way_give_the_same_rows_where_points_are_said() -> None:
    """Points that follow from rows are judged after a whole push, so they are said here."""
    rng = random.Random(3)
    rows = [{"k": rng.randint(0, 4), "ts": 1_000 + rng.randint(0, 50)} for _ in range(60)]
    found = []
    for cut in (1, 7, 60):
        engine = Engine()
        engine.create_merge("m", {"k": "int", "ts": "timestamp"}, time="ts", inputs=("a", "b"), unique=True, order="any")
        engine.submit("SELECT k, ts FROM m", name="all")
        for first in range(0, len(rows), cut):
            engine.push("m", rows[first : first + cut], input="a")
        engine.push("m", rows[::-1], input="b")
        engine.stable("m", "a", 2_000)
        found.append([change.row for change in engine.changes("all", since=0)])
        engine.check()
    assert found[0] == found[1] == found[2] and len(found[0]) == len({(row["k"], row["ts"]) for row in rows})
