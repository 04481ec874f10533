"""The kernels of merges against their twins, the conditions of the paper, and themselves under another cut."""

from __future__ import annotations

from typing import Any

import pytest

from tests.reference.merge_trials import draw_trial, run_beside_twin, run_compatible, run_cut_anew
from tests.reference.seeds import seeds

DEFAULT: dict[str, Any] = {}
CASES = [("R0", DEFAULT), ("R1", DEFAULT), ("R2", DEFAULT), ("R2", {"bag": True}), ("R3", DEFAULT), ("R4", DEFAULT)]
IDS = ["R0", "R1", "R2", "R2 bag", "R3", "R4"]


@pytest.mark.parametrize("seed", seeds(range(200), 20))
@pytest.mark.parametrize(("case", "words"), CASES, ids=IDS)
def test_a_kernel_gives_what_its_twin_gives_element_by_element(seed: int, case: str, words: dict[str, Any]) -> None:
    run_beside_twin(draw_trial(seed, case, words=words))


@pytest.mark.parametrize("seed", seeds(range(400), 30))
@pytest.mark.parametrize("case", ["R3", "R4"])
def test_a_kernel_gives_what_its_twin_gives_under_every_policy(seed: int, case: str) -> None:
    run_beside_twin(draw_trial(seed, case))


@pytest.mark.parametrize("seed", seeds(range(100), 10))
@pytest.mark.parametrize(("case", "words"), CASES, ids=IDS)
def test_after_every_element_the_output_follows_its_inputs(seed: int, case: str, words: dict[str, Any]) -> None:
    run_compatible(draw_trial(seed, case, words=words, size=12))


@pytest.mark.parametrize("seed", seeds(range(100), 10))
@pytest.mark.parametrize("case", ["R3", "R4"])
def test_after_every_element_the_output_follows_its_inputs_under_every_policy(seed: int, case: str) -> None:
    run_compatible(draw_trial(seed, case, size=12))


@pytest.mark.parametrize("seed", seeds(range(100), 10))
@pytest.mark.parametrize("case", ["R3", "R4"])
def test_the_output_does_not_depend_on_how_pushes_are_cut(seed: int, case: str) -> None:
    run_cut_anew(draw_trial(seed, case), seed)
