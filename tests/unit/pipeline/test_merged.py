"""Slices of several streams are cuts of one order, wherever the cuts are."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa
import pytest

from pipeline.dataset import Dataset, times_of
from pipeline.merged import MergedSlices, Slice
from tests.unit.pipeline.streams import market, write_market


def flat(slices: Iterable[Slice]) -> list[tuple[int, int, int]]:
    """The rows of slices as (time, stream, number), each slice merged as `push_many` would."""
    found = []
    for some in slices:
        rows = []
        for n, stream in enumerate(some.start):
            if stream in some.rows:
                times = times_of(some.rows[stream], "ts").tolist()
                rows += [(time, n, some.start[stream] + at) for at, time in enumerate(times)]
        assert len(rows) == some.n_rows
        assert (some.first_us, some.last_us) == (min(rows)[0], max(rows)[0])
        found += sorted(rows)
    return found


def expected(dataset: Dataset) -> list[tuple[int, int, int]]:
    rows = []
    for n, stream in enumerate(dataset.streams):
        times = [time for batch in dataset.batches(stream) for time in times_of(batch, "ts").tolist()]
        rows += [(time, n, at) for at, time in enumerate(times)]
    return sorted(rows)


@pytest.mark.parametrize("slice_rows", [1, 3, 64, 100_000])
@pytest.mark.parametrize("batch_rows", [1, 7, 1000])
@pytest.mark.parametrize("span_us", [None, 1, 250_000, 2_000_000])
def test_slices_follow_the_order_of_all_rows(tmp_path: Path, slice_rows: int, batch_rows: int, span_us: int | None) -> None:
    dataset = write_market(tmp_path / "d", market(slice_rows * batch_rows, 300, 40), chunk_rows=70)
    slices = list(MergedSlices(dataset, slice_rows=slice_rows, batch_rows=batch_rows, span_us=span_us))
    assert flat(slices) == expected(dataset)
    assert all(batch.num_rows <= max(slice_rows, 1) or span_us for some in slices for batch in some.rows.values())
    if span_us is not None:
        assert all(some.last_us - some.first_us < span_us for some in slices)


@pytest.mark.parametrize("cut", [0, 1, 5, 11, -1])
def test_a_walk_that_begins_at_the_end_of_a_slice_goes_on_with_the_next(tmp_path: Path, cut: int) -> None:
    dataset = write_market(tmp_path / "d", market(3, 200, 150), chunk_rows=64)
    slices = list(MergedSlices(dataset, slice_rows=16))
    position = slices[cut].start
    rest = list(MergedSlices(dataset, start=position, slice_rows=5, time_only=True))
    assert flat(rest) == expected(dataset)[sum(position.values()) :]
    assert rest[0].start == position
    assert rest[-1].end == {"trades": 200, "quotes": 150}
    assert all(batch.schema.names == ["ts"] for some in rest for batch in some.rows.values())


def test_rows_are_whole(tmp_path: Path) -> None:
    tables = market(5, 120, 0)
    dataset = write_market(tmp_path / "d", tables, chunk_rows=50)
    read = pa.Table.from_batches([some.rows["trades"] for some in MergedSlices(dataset, slice_rows=17)])
    assert read.slice(0, 1).to_pylist() == tables["trades"].slice(0, 1).to_pylist()
    assert read.drop_columns("price").equals(tables["trades"].drop_columns("price"))


def test_no_rows_are_no_slices(tmp_path: Path) -> None:
    assert list(MergedSlices(write_market(tmp_path / "d", market(1, 0, 0)))) == []
