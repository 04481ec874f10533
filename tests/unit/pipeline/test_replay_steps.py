"""Micro-batches go as far as the clock and the number of rows allow, through the whole dataset."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.dataset import Dataset
from pipeline.merged import MergedSlices, Position
from pipeline.replay_steps import ReplaySteps
from tests.unit.pipeline.streams import SECOND, market, write_market

END = {"trades": 400, "quotes": 250}


@pytest.fixture
def dataset(tmp_path: Path) -> Dataset:
    return write_market(tmp_path / "d", market(6, **{f"n_{name}": rows for name, rows in END.items()}))


def places(dataset: Dataset) -> list[Position]:
    """Every position of the merged order."""
    return [dict.fromkeys(END, 0), *(some.end for some in MergedSlices(dataset, slice_rows=1))]


@pytest.mark.parametrize("max_rows", [1, 7, 64, 10_000])
def test_steps_lead_through_the_dataset_in_the_merged_order(dataset: Dataset, max_rows: int) -> None:
    steps = ReplaySteps(dataset, max_rows, None)
    at = steps.begin()
    known = [sum(place.values()) for place in places(dataset)]
    while (after := steps.next(at, max_rows)) != at:
        n_rows = sum(after.values()) - sum(at.values())
        # one row of each stream at least
        assert 0 < n_rows <= max(max_rows, len(END))
        assert sum(after.values()) in known or max_rows > 1
        at = after
    assert at == END == steps.end()


def test_a_step_from_another_place_goes_on_from_there(dataset: Dataset) -> None:
    steps = ReplaySteps(dataset, 50, None)
    first = steps.next(steps.begin(), 50)
    steps.next(first, 50)
    assert steps.next(first, 50) == ReplaySteps(dataset, 50, None).next(first, 50)


def test_without_a_bound_the_next_step_is_the_end(dataset: Dataset) -> None:
    steps = ReplaySteps(dataset, 10, None)
    assert steps.next(steps.begin(), None) == END


def test_with_a_speed_only_what_is_due_is_given(dataset: Dataset) -> None:
    now = 50.0
    steps = ReplaySteps(dataset, 1000, 10.0, clock=lambda: now)
    at = steps.begin()
    first_us = min(stored.first or 0 for stored in dataset.streams.values())
    rows = list(MergedSlices(dataset, slice_rows=1))
    for _ in range(30):
        at = steps.next(at, 1000)
        rest = next(MergedSlices(dataset, start=at, slice_rows=1), None)
        due_us = first_us + (now - 50.0) * 10 * SECOND
        if rest is not None:
            # what is left is not due, or shares a slice of the walk with a row that is not
            assert rest.first_us > due_us - 6 * SECOND
        assert all(some.last_us <= due_us for some in rows if sum(some.end.values()) <= sum(at.values()))
        now += 0.25
    assert at == END
