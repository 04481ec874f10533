"""The contestants of `eddy bench windows` against each other. Never a time."""

from __future__ import annotations

import numpy as np
import pytest

from experiments.bench.base.options import Options
from experiments.bench.cases import calendar, windows
from experiments.bench.windows.filter_driver import FilterDriver
from experiments.bench.windows.pause import PAUSES, pause
from experiments.bench.windows.twins import PipelineTwin
from experiments.bench.windows.window_driver import WindowDriver
from experiments.bench.windows.window_workload import TEXTS, WindowSetting
from windows.state.due import Calendar, Fifo

QUICK = Options(rows=256, seconds=0.0)


@pytest.mark.parametrize("operator", TEXTS)
def test_pipeline_dicts_and_duckdb_have_the_engines_answer(operator: str) -> None:
    windows.check_twins(WindowSetting(operator).small())


@pytest.mark.parametrize("operator", TEXTS)
def test_ends_travel_under_negative_and_not_under_direct(operator: str) -> None:
    ends = {}
    for word in ("negative", "direct"):
        twin = PipelineTwin(WindowSetting(operator).small(), word)
        for number in range(6):
            twin.push(number)
        ends[word] = twin.counts()["ends"]
    assert ends["negative"] > ends["direct"]


def test_a_scan_looks_at_more_rows_than_a_pattern_asks_for_and_negatives_at_none() -> None:
    looked = {}
    for word in ("input", "negative", "update-pattern"):
        driver = WindowDriver(WindowSetting("except", n_window=2000, n_rows=100), word)
        before = driver.n_looked_at()
        for number in range(10):
            driver.push(number)
        looked[word] = driver.n_looked_at() - before
    assert looked["negative"] < looked["update-pattern"] < looked["input"] / 3


def test_lines_name_their_setting_and_their_bars() -> None:
    setting = WindowSetting("distinct", n_window=500, n_rows=256, n_lengths=2)
    words = windows._words(setting, QUICK)
    assert [line.setting["expiry"] for line in words] == list(windows.WORDS)
    assert all(line.measures["state"].value > 0 for line in words)
    for at_once in (False, True):
        (paused,) = windows._pause("distinct", 3000, at_once)
        assert paused.bar is not None and paused.measures["commits"].value == 1
        assert paused.bar.text.endswith("%" if at_once else "ms")
    filters = windows._filters(16, QUICK)
    assert [line.bar is None for line in filters] == [True, False]


def test_every_row_of_a_pause_ends() -> None:
    for sql in PAUSES.values():
        assert len(pause(sql, 1000).commits) == 1


def test_signed_filters_deliver_as_many_ends_as_beginnings_once_windows_are_full() -> None:
    driver = FilterDriver(8, 4, 1000)
    for number in range(20):
        driver.push(number)
    began, ended = driver.n_pairs[1], driver.n_pairs[-1]
    assert began > 0 and abs(began - ended) < began / 5


@pytest.mark.parametrize("spread", calendar.SPREADS)
def test_a_turnover_keeps_as_many_rows_as_its_window(spread: float) -> None:
    run = calendar.Turnover(Calendar(), 2000, 100, spread)
    assert 1999 <= run.buffer.n_rows <= 2000 * (1 + spread) + 100
    assert np.array_equal(np.unique(run.buffer.slots()), np.sort(run.buffer.slots()))
    assert calendar.Turnover(Fifo(), 2000, 100, 0.0).buffer.n_rows == 1999, "the row that is due has left"
