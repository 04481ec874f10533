"""A replay into an engine gives what one push of all rows gives, whatever the pace and the cuts."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from eddy import Engine
from pipeline.dataset import Dataset, DatasetError
from pipeline.merged import Position, Slice
from pipeline.pace import ReplayPace
from pipeline.replay import Moved, ReplayProgress, replay
from pipeline.targets import EngineTarget
from tests.unit.pipeline.streams import BEGIN_US, SECOND, market, write_market

QUERIES = {
    "dear": "SELECT ts, symbol, price FROM trades [RANGE 20 SECONDS] WHERE price > 15",
    "volume": "SELECT symbol, SUM(size) AS n FROM trades [RANGE 10 SECONDS] GROUP BY symbol",
    "under": "SELECT t.symbol, price, bid FROM trades [RANGE 5 SECONDS] AS t, quotes [RANGE 5 SECONDS] AS q "
    "WHERE t.symbol = q.symbol AND price < bid",
    "opened": "SELECT ts, symbol FROM quotes WHERE open",
}


def submitted(engine: Engine) -> Engine:
    for name, sql in QUERIES.items():
        engine.submit(sql, name=name)
    return engine


def answers(engine: Engine) -> dict[str, list[str]]:
    return {name: sorted(map(repr, engine.answer(name).to_pylist())) for name in QUERIES}


def pushed_at_once(tables: dict[str, pa.Table], dataset: Dataset) -> dict[str, list[str]]:
    engine = Engine()
    EngineTarget(engine, dataset)
    submitted(engine).push_many(tables)
    return answers(engine)


@pytest.mark.parametrize("slice_rows", [1, 10, 10_000])
def test_a_replay_gives_the_answers_of_one_push_of_all_rows(tmp_path: Path, slice_rows: int) -> None:
    tables = market(1, 400, 300)
    dataset = write_market(tmp_path / "d", tables)
    engine = Engine()
    target = EngineTarget(engine, dataset)
    submitted(engine)
    found = replay(dataset, target, ReplayPace(None), slice_rows=slice_rows)
    assert answers(engine) == pushed_at_once(tables, dataset)
    assert all(answers(engine).values())
    assert (found.rows, found.before, found.late, found.total) == (700, 0, 0, 700)
    assert found.position == {"trades": 400, "quotes": 300}


def test_rows_are_taken_when_they_are_due_and_not_before(tmp_path: Path) -> None:
    dataset = write_market(tmp_path / "d", market(2, 200, 200))
    now = 1000.0

    def sleep(seconds: float) -> None:
        nonlocal now
        now += seconds

    taken: list[tuple[float, Slice]] = []

    class Watching(EngineTarget):
        def take(self, some: Slice) -> int:
            taken.append((now, some))
            return super().take(some)

    replay(dataset, Watching(Engine(), dataset), ReplayPace(10.0, clock=lambda: now, sleep=sleep))
    first_us = taken[0][1].first_us
    for at, some in taken:
        due = [1000 + (time_us - first_us) / SECOND / 10 for time_us in (some.first_us, some.last_us)]
        # a second of the data in a slice at most, a tenth of a second on the clock
        assert due[1] <= at + 1e-6 and at - due[0] <= 0.1 + 1e-6
    assert taken[-1][1].last_us - first_us > 50 * SECOND


class Keeping:
    """A target that keeps rows and position, and can fail before or after it has taken a slice, as a connection can."""

    def __init__(self, dataset: Dataset) -> None:
        self.at: Position = dict.fromkeys(dataset.streams, 0)
        self.rows: list[str] = []
        self.calls = 0
        #: calls that end in an error, and whether the slice is taken all the same
        self.failing: dict[int, bool] = {}
        #: rows that somebody else sends before a call
        self.other: dict[int, Slice] = {}

    def position(self) -> Position:
        return dict(self.at)

    def take(self, some: Slice) -> int:
        self.calls += 1
        other = self.other.pop(self.calls, None)
        if other is not None:
            self._keep(other)
        if self.at != some.start:
            raise Moved
        taken = self.failing.get(self.calls)
        if taken is not False:
            self._keep(some)
        if taken is not None:
            raise KeyboardInterrupt
        return 0

    def _keep(self, some: Slice) -> None:
        assert self.at == some.start
        self.at = some.end
        for stream, rows in some.rows.items():
            self.rows += [repr((stream, row)) for row in rows.to_pylist()]


def all_rows(tables: dict[str, pa.Table]) -> list[str]:
    return sorted(repr((stream, row)) for stream, table in tables.items() for row in table.to_pylist())


@pytest.mark.parametrize("taken", [True, False])
def test_a_replay_that_was_stopped_anywhere_goes_on_without_loss_or_duplicate(tmp_path: Path, taken: bool) -> None:
    tables = market(3, 120, 90)
    dataset = write_market(tmp_path / "d", tables)
    target = Keeping(dataset)
    target.failing = dict.fromkeys([1, 2, 5, 9], taken)
    stops = 0
    while True:
        try:
            found = replay(dataset, target, ReplayPace(None), slice_rows=10 + stops)
            break
        except KeyboardInterrupt:
            stops += 1
    assert stops == 4
    assert found.before + found.rows == 210
    assert sorted(target.rows) == all_rows(tables)


def test_a_replay_goes_on_behind_rows_that_somebody_else_sent_meanwhile(tmp_path: Path) -> None:
    from pipeline.merged import MergedSlices

    tables = market(4, 100, 100)
    dataset = write_market(tmp_path / "d", tables)
    target = Keeping(dataset)
    # before our third slice of ten comes another replay's, of twenty-five
    start = list(MergedSlices(dataset, slice_rows=10))[2].start
    target.other = {3: next(MergedSlices(dataset, start=start, slice_rows=25))}
    found = replay(dataset, target, ReplayPace(None), slice_rows=10)
    assert sorted(target.rows) == all_rows(tables)
    assert found.before + found.rows == 200 and found.before > 0


def test_a_truncated_chunk_stops_the_replay_with_its_name_and_what_came_before_is_told(tmp_path: Path) -> None:
    dataset = write_market(tmp_path / "d", market(5, 300, 0))
    path = tmp_path / "d" / "trades" / "chunk=000002.parquet"
    path.write_bytes(path.read_bytes()[:100])
    progress = ReplayProgress(0)
    engine = Engine()
    with pytest.raises(DatasetError, match=r"chunk=000002\.parquet"):
        replay(dataset, EngineTarget(engine, dataset), ReplayPace(None), progress=progress)
    assert progress.position == {"trades": 200, "quotes": 0}
    assert engine.stats()["streams"]["trades"]["rows"] == 200
    assert progress.time_us is not None and progress.time_us >= BEGIN_US
