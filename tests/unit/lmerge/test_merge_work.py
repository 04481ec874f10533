"""Table IV of the LMerge paper by counters: what an element costs depends on its case, not on how many events are alive.

Work is what kernels look at: places of tables, nodes, buckets of calendars. A merge is filled with events that stay alive, then
the same stretch of elements is pushed, and its work is counted.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from lmerge.merge import Merge, make_merge
from lmerge.streams.elements import INSERT, STABLE, ElementBatch

_STRETCH = 4_000
_LONG = 10_000_000

#: Every case, R3 and R4 also under the policies that count or list events at stables.
SETTINGS: list[tuple[str, dict[str, Any]]] = [
    ("R0", {}),
    ("R1", {}),
    ("R2", {}),
    ("R2", {"bag": True}),
    *((case, {"insert": word}) for case in ("R3", "R4") for word in ("first", "stable", "unfrozen")),
    *((case, {"insert": "half-frozen", "lag": 40}) for case in ("R3", "R4")),
    *((case, {"insert": "fraction:1", "adjust": "every"}) for case in ("R3", "R4")),
]
IDS = [" ".join([case, *map(str, words.values())]) for case, words in SETTINGS]


def _inserts(starts: np.ndarray, ends: np.ndarray, every: int, behind: int) -> ElementBatch:
    """Inserts in order of their starts, and a stable after every so many of them."""
    kinds, zeros = np.full(len(starts), INSERT), np.zeros(len(starts), np.int64)
    at = np.arange(every, len(starts) + 1, every)
    points = starts[at - 1] - behind
    columns = (
        np.insert(kinds, at, STABLE),
        np.insert(starts, at, 0),
        np.insert(zeros + 7, at, 0),
        zeros,
        np.insert(ends, at, points),
    )
    return ElementBatch(*(np.resize(column, len(columns[0])).astype(np.int64) for column in columns))


def _fill(merge: Merge, numbers: list[int], n_live: int, behind: int) -> None:
    """Let so many events be alive for long: half frozen where the stables come close behind, else unfrozen for a while."""
    starts = np.arange(n_live) - n_live
    for number in numbers:
        merge.push(number, _inserts(starts, starts + _LONG, max(1, n_live // 4), behind))


def work_of(case: str, words: dict[str, Any], n_live: int, n_inputs: int = 2) -> float:
    """Work for each element of a stretch while so many events are alive."""
    merge = make_merge(case, **words)
    numbers = [merge.attach() for _ in range(n_inputs)]
    _fill(merge, numbers, n_live, 1)
    before, n = sum(merge.work.values()), 0
    starts = np.arange(_STRETCH)
    stretch = _inserts(starts, starts + 30, 20, 5)
    for at in range(0, len(stretch.kinds), 100):
        for number in numbers:
            part = ElementBatch(*(column[at : at + 100].copy() for column in stretch))
            merge.push(number, part)
            n += len(part.kinds)
    merge.check()
    assert case in ("R0", "R1", "R2") or merge.n_live >= n_live, "they are alive all the time"
    return (sum(merge.work.values()) - before) / n


@pytest.mark.parametrize(("case", "words"), SETTINGS, ids=IDS)
def test_work_for_an_element_does_not_grow_with_what_is_alive_or_half_frozen(case: str, words: dict[str, Any]) -> None:
    few, many = work_of(case, words, 100), work_of(case, words, 20_000)
    # a calendar is laid out anew a few times, whatever it holds; a scan at every stable would be 1,000 for each element
    assert many < 2 * few + 12, f"{few:.1f} with 100 events alive, {many:.1f} with 20,000"


@pytest.mark.parametrize(("case", "words"), SETTINGS, ids=IDS)
def test_work_for_an_element_does_not_grow_with_the_number_of_inputs(case: str, words: dict[str, Any]) -> None:
    few, many = work_of(case, words, 100, n_inputs=2), work_of(case, words, 100, n_inputs=8)
    assert many < 1.5 * few + 3, f"{few:.1f} with 2 inputs, {many:.1f} with 8"


def test_the_ordered_cases_look_at_nothing_but_the_newest_start() -> None:
    assert work_of("R0", {}, 1_000) == work_of("R1", {}, 1_000) == 0
    assert work_of("R2", {}, 1_000) <= 2
