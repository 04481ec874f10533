"""The row store against a plain list of rows."""

from __future__ import annotations

import random
from bisect import bisect_right
from dataclasses import dataclass

import numpy as np
import pytest

from lineage.schema import Schema
from stems.row_store import PAGE_ROWS, Page, RowStore

SCHEMA = Schema.parse({"a": "int", "x": "float", "s": "string"}, "t")


@dataclass
class Row:
    a: int
    x: float
    s: int
    nulls: tuple[int, int, int]
    time: int
    start: int
    number: int


class Both:
    """A store and the list of all rows it ever took."""

    def __init__(self, seed: int = 0) -> None:
        self.rng = np.random.default_rng(seed)
        self.store = RowStore(SCHEMA)
        self.rows: list[Row] = []
        self.clock = 0
        #: the page that took the last rows
        self.page = Page([False, True, False], len(SCHEMA))

    def push(
        self, n_rows: int, *, nulls: bool = False, step: int = 1, taken_at: int | None = None, one_time: bool = False,
        numbers: int | np.ndarray | None = None, first: int = 0,
    ) -> None:  # fmt: skip
        """Append rows as a commit does, in as many parts as pages need."""
        rng, store = self.rng, self.store
        size = first + n_rows
        a, x, s = rng.integers(-(2**62), 2**62, size), rng.random(size), rng.integers(0, 50, size)
        masks = [(rng.random(size) < 0.3).astype(np.uint8) if nulls and c != 1 else None for c in range(3)]
        times: np.ndarray | int = self.clock + np.sort(rng.integers(0, step + 1, n_rows))
        if one_time:
            times = self.clock + step
        taken_at = -(2**62) if taken_at is None else taken_at
        numbers = len(self.rows) if numbers is None else numbers
        done = 0
        while done < n_rows:
            count = min(n_rows - done, store.room())
            part = times if isinstance(times, int) else times[done : done + count]
            named = numbers + done if isinstance(numbers, int) else numbers[done : done + count]
            page, at = store.append([a, x, s], masks, first + done, first + done + count, part, taken_at, named)
            assert at == page.n_rows - count
            self.page = page
            done += count
        for i in range(n_rows):
            time = times if isinstance(times, int) else int(times[i])
            held = tuple(0 if mask is None else int(mask[first + i]) for mask in masks)
            number = numbers + i if isinstance(numbers, int) else int(numbers[i])
            row = Row(int(a[first + i]), float(x[first + i]), int(s[first + i]), held, time, max(time, taken_at), number)  # type: ignore[arg-type]
            self.rows.append(row)
        self.clock = self.rows[-1].time if self.rows else 0
        store.check()
        assert store.end == len(self.rows)

    def check_rows(self, first: int, last: int) -> None:
        """Positions first..last hold what was put there."""
        position = first
        for page, at, stop in self.store.slices(first, last):
            expected = self.rows[position : position + stop - at]
            assert page.base + at == position
            assert page.cells[0, at:stop].tolist() == [row.a for row in expected]
            assert page.floats[1, at:stop].tolist() == [row.x for row in expected]
            assert page.cells[2, at:stop].tolist() == [row.s for row in expected]
            nulls = np.zeros((3, stop), np.uint8) if page.nulls is None else page.nulls
            assert nulls[:, at:stop].T.tolist() == [list(row.nulls) for row in expected]
            assert page.times[at:stop].tolist() == [row.time for row in expected]
            lives = page.elements(slice(at, stop), 7)
            assert lives.starts.tolist() == [row.start for row in expected] == lives.times(1).tolist()
            assert lives.ends.tolist() == [row.time + 7 for row in expected] == lives.times(-1).tolist()
            assert page.rows_of(at, stop).tolist() == [row.number for row in expected]
            position += stop - at
        assert position == last


def test_rows_go_over_page_borders_and_stay_where_they_are() -> None:
    both = Both()
    for n_rows in (1, 100, PAGE_ROWS - 102, 1, 5, 2 * PAGE_ROWS, 3):
        both.push(n_rows)
    both.check_rows(0, both.store.end)
    both.check_rows(PAGE_ROWS - 1, PAGE_ROWS + 1)
    assert [(at, stop) for _, at, stop in both.store.slices(5, 9)] == [(5, 9)]
    assert list(both.store.slices(7, 7)) == []
    assert len(list(both.store.slices(0, both.store.end))) == 4


def test_only_the_rows_asked_for_are_taken_from_a_column() -> None:
    both = Both()
    both.push(10, first=7, nulls=True)
    both.push(PAGE_ROWS, first=3)
    both.check_rows(0, both.store.end)


def test_room_is_that_of_the_last_page() -> None:
    both = Both()
    assert both.store.room() == PAGE_ROWS
    both.push(PAGE_ROWS - 5)
    assert both.store.room() == 5
    both.push(5)
    assert both.store.room() == PAGE_ROWS


def test_null_bytes_appear_with_the_first_null_of_a_page() -> None:
    both = Both()
    both.push(100)
    page = both.page
    assert page.nulls is None and both.store.nulls_of(page).shape == (1, 1)
    both.push(50, nulls=True)
    assert page.nulls is not None and both.store.nulls_of(page) is page.nulls
    both.push(PAGE_ROWS)
    assert both.page.nulls is None, "the next page has none"
    both.check_rows(0, both.store.end)


def test_starts_appear_when_a_row_lags_behind_the_clock() -> None:
    both = Both()
    both.push(100, step=50, taken_at=0)
    page = both.page
    assert page.starts is None
    both.push(50, step=100, taken_at=both.clock + 60)
    assert page.starts is not None
    both.push(50, step=10, taken_at=both.clock)
    both.push(20, one_time=True, taken_at=both.clock + 1000)
    both.check_rows(0, both.store.end)


def test_a_row_at_the_clock_does_not_lag() -> None:
    both = Both()
    both.push(10, one_time=True, step=5, taken_at=5)
    assert both.page.starts is None
    both.push(10, one_time=True, step=0, taken_at=6)
    assert both.page.starts is not None
    both.check_rows(0, 20)


def test_row_numbers_are_kept_only_when_they_leave_their_order() -> None:
    both = Both()
    both.push(100, numbers=1000)
    page = both.page
    both.push(50, numbers=1100)
    assert page.row_numbers is None and page.row_shift == 1000
    both.check_rows(0, 150)
    both.push(10, numbers=2000)
    assert page.row_numbers is not None
    both.push(5, numbers=np.array([1160, 3, 2, 1, 0]))
    both.push(5, numbers=5000)
    both.check_rows(0, both.store.end)
    both.push(PAGE_ROWS, numbers=6000)
    assert both.page.row_numbers is None, "the next page has its own shift"
    both.check_rows(0, both.store.end)


def test_an_array_of_row_numbers_on_a_fresh_page_is_right() -> None:
    both = Both()
    both.push(6, numbers=np.array([5, 4, 3, 2, 1, 0]))
    both.check_rows(0, 6)


def test_find_row_gives_the_position_of_a_number_that_is_held() -> None:
    both = Both()
    rng = np.random.default_rng(1)
    both.push(200, numbers=0)
    both.push(PAGE_ROWS, numbers=200)
    both.push(300, numbers=200 + PAGE_ROWS + rng.permutation(300))
    both.push(100, numbers=10**6)
    place = {row.number: position for position, row in enumerate(both.rows)}
    for number in [*rng.integers(0, len(both.rows), 300).tolist(), 10**6, 10**6 + 99]:
        assert both.store.find_row(number) == place.get(number)
    for missing in (-1, 10**6 + 100, 10**6 - 1):
        assert both.store.find_row(missing) is None
    both.store.forget(150)
    assert both.store.find_row(149) is None and both.store.find_row(150) == 150
    both.store.forget(PAGE_ROWS + 220)
    assert both.store.find_row(170) is None
    for position in range(PAGE_ROWS + 210, PAGE_ROWS + 230):
        assert both.store.find_row(both.rows[position].number) == (position if position >= PAGE_ROWS + 220 else None)


def test_first_after_is_the_first_row_of_a_later_time_with_ties() -> None:
    both = Both()
    rng = random.Random(3)
    assert both.store.first_after(0) == 0
    while len(both.rows) < 3 * PAGE_ROWS:
        both.push(rng.randint(1, 5000), step=rng.choice([0, 1, 7]))
    times = [row.time for row in both.rows]
    borders = [times[PAGE_ROWS * k + step] for k in (1, 2) for step in (-1, 0, 1)]
    for time in [-1, times[0], times[-1], times[-1] + 1, *borders, *range(times[-1] + 2)]:
        assert both.store.first_after(time) == bisect_right(times, time)
    both.store.forget(PAGE_ROWS + 10)
    assert both.store.first_after(times[2 * PAGE_ROWS]) == bisect_right(times, times[2 * PAGE_ROWS])
    assert both.store.first_after(-1) == PAGE_ROWS, "what was given back is not looked at"


def test_a_search_for_many_times_goes_on_from_where_each_begins() -> None:
    both = Both(3)
    for _ in range(5):
        both.push(PAGE_ROWS // 2 + 77, step=300)
    both.store.forget(PAGE_ROWS + 5)
    times = [row.time for row in both.rows]
    rng = np.random.default_rng(1)
    lows = rng.integers(PAGE_ROWS + 5, len(times) + 1, 400)
    wanted = rng.integers(-5, times[-1] + 5, 400)
    found = both.store.first_after_each(wanted, lows)
    expected = [max(int(low), bisect_right(times, int(time))) for low, time in zip(lows, wanted)]
    assert found.tolist() == expected


def test_first_after_is_right_when_room_was_made_but_not_used() -> None:
    both = Both()
    both.push(2 * PAGE_ROWS, step=100)
    both.store.forget(PAGE_ROWS)
    both.store.room()
    times = [row.time for row in both.rows]
    for time in (times[PAGE_ROWS], 75, times[-1], times[-1] + 1):
        assert both.store.first_after(time) == bisect_right(times, time)


def test_time_at_is_the_time_of_a_position() -> None:
    both = Both()
    both.push(PAGE_ROWS + 50, step=1000)
    both.store.forget(PAGE_ROWS)
    for position in (PAGE_ROWS, PAGE_ROWS + 49):
        assert both.store.time_at(position) == both.rows[position].time


def test_forget_gives_whole_pages_back_and_uses_them_again_clean() -> None:
    both = Both()
    both.push(PAGE_ROWS, nulls=True, taken_at=10**6, numbers=np.arange(PAGE_ROWS)[::-1])
    first = both.page
    both.store.ids_of(first, 0)[:3] = [1, 2, 3]
    both.store.outcomes.keep(first, 0, 7, np.ones(3, np.bool_))
    both.push(PAGE_ROWS)
    second = both.page
    both.push(10)
    both.store.forget(PAGE_ROWS - 1)
    assert next(both.store.slices(0, both.store.end))[0] is first, "one row of it is still held"
    both.store.forget(PAGE_ROWS)
    assert [page for page, _, _ in both.store.slices(0, both.store.end)] == [second, both.page]
    both.push(PAGE_ROWS)
    again = both.page
    assert again is first, "fresh memory is slow, so pages are used again"
    assert again.nulls is None and again.starts is None and again.row_numbers is None and again.ids is None and not again.outcomes
    both.check_rows(PAGE_ROWS, both.store.end)


def test_a_store_of_one_page_has_none_to_spare() -> None:
    both = Both()
    both.push(PAGE_ROWS + 10)
    both.store.forget(PAGE_ROWS)
    assert not both.store._spare


def test_a_store_that_forgot_everything_starts_a_page_at_any_position() -> None:
    both = Both()
    both.push(100)
    both.store.forget(100)
    both.store.check()
    assert both.store.bytes() == 0 and list(both.store.slices(0, 100)) == [] and both.store.first_after(-1) == 100
    both.push(PAGE_ROWS + 30)
    both.store.forget(100 + PAGE_ROWS)
    both.push(20)
    both.check_rows(100 + PAGE_ROWS, both.store.end)
    assert both.store.find_row(100 + PAGE_ROWS) == 100 + PAGE_ROWS


def test_the_watermark_never_goes_back_nor_beyond_the_end() -> None:
    both = Both()
    both.push(10)
    both.store.forget(5)
    for watermark in (4, 11):
        with pytest.raises(AssertionError, match="the watermark only moves forward, up to the end"):
            both.store.forget(watermark)


def test_bytes_are_those_of_what_each_page_keeps_for_the_rows_held() -> None:
    both = Both()
    store = both.store
    assert store.bytes() == 0 and store.row_bytes() == 8 * 4
    both.push(100)
    assert store.bytes() == 100 * 32
    both.push(20, nulls=True)
    assert store.bytes() == 120 * (32 + 3)
    both.push(5, taken_at=10**6)
    assert store.bytes() == 125 * (32 + 3 + 8)
    both.push(5, numbers=10**6)
    assert store.bytes() == 130 * (32 + 3 + 8 + 8)
    page = both.page
    store.ids_of(page, 1)[:2] = [4, 5]
    store.outcomes.keep(page, 0, 3, np.ones(2, np.bool_))
    assert store.bytes() == 130 * (32 + 3 + 8 + 8 + 4 * 2 + 1)
    store.forget(30)
    assert store.bytes() == 100 * (32 + 3 + 8 + 8 + 4 * 2 + 1)
    both.push(PAGE_ROWS)
    store.forget(PAGE_ROWS)
    assert store.bytes() == 130 * 32


def test_ids_and_outcomes_are_kept_where_rows_were_appended() -> None:
    both = Both()
    store = both.store
    both.push(100)
    page = both.page
    store.ids_of(page, 0)[10:13] = [7, 8, 9]
    store.ids_of(page, 2)[20:22] = [5, 6]
    assert page.ids is not None and page.ids.shape == (3, PAGE_ROWS) and page.ids.dtype == np.int32
    assert page.ids[0, 9:14].tolist() == [0, 7, 8, 9, 0] and page.ids[2, 20:23].tolist() == [5, 6, 0] and not page.ids[1].any()
    store.outcomes.keep(page, 5, 3, np.array([True, False, True]))
    store.outcomes.keep(page, 50, 3, np.array([True]))
    assert np.flatnonzero(page.outcomes[3]).tolist() == [5, 7, 50] and list(page.outcomes) == [3]


def test_codes_in_use_are_those_of_rows_above_the_watermark() -> None:
    both = Both()
    both.push(PAGE_ROWS + 500)
    assert both.store.used_codes(2).tolist() == sorted({row.s for row in both.rows})
    both.store.forget(PAGE_ROWS + 490)
    assert both.store.used_codes(2).tolist() == sorted({row.s for row in both.rows[PAGE_ROWS + 490 :]})
    both.store.forget(PAGE_ROWS + 500)
    assert both.store.used_codes(2).tolist() == []


def test_recode_gives_rows_held_their_new_codes_and_others_a_harmless_one() -> None:
    both = Both()
    both.push(PAGE_ROWS + 200)
    both.store.forget(100)
    used = both.store.used_codes(2)
    new_code = np.full(50, -1, np.int64)
    new_code[used[::2]] = np.arange(len(used[::2]))
    both.store.recode(2, new_code)
    for row in both.rows:
        row.s = max(0, int(new_code[row.s]))
    both.check_rows(100, both.store.end)
    both.check_rows(0, 100)


@pytest.mark.parametrize("seed", range(3))
def test_any_mix_of_pushes_and_forgetting_holds_the_right_rows(seed: int) -> None:
    rng = random.Random(seed)
    both = Both(seed)
    number = 0
    for _ in range(25):
        n_rows = rng.choice([1, 3, 100, 5000, PAGE_ROWS])
        number += rng.choice([0, 0, 10])
        both.push(
            n_rows, nulls=rng.random() < 0.3, step=rng.choice([0, 5]), one_time=rng.random() < 0.2, numbers=number,
            taken_at=both.clock + rng.choice([-5, 0, 3]),
        )  # fmt: skip
        number += n_rows
        if rng.random() < 0.4:
            both.store.forget(rng.randint(both.store.watermark, both.store.end))
            both.store.check()
    both.check_rows(both.store.watermark, both.store.end)
