"""The queries of a setting by other means: the papers' operators one row at a time, dicts, and DuckDB recomputing the answer."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable

import numpy as np
import pyarrow as pa

from experiments.bench.windows.window_workload import GAP_US, TEXTS, RotatingRows, WindowSetting
from experiments.papers.buffers import Values
from experiments.papers.executor import Pipeline
from experiments.papers.machine.node import PlanNode
from experiments.papers.machine.row_aggregates import RowAggregate
from experiments.papers.machine.timed_source import TimedRow, TimedSource
from experiments.papers.operators.distinct import QueuedDistinct
from experiments.papers.operators.group_by import QueuedGroupBy
from experiments.papers.operators.join import QueuedJoin
from experiments.papers.operators.minus import QueuedMinus
from experiments.papers.operators.project import QueuedProject
from experiments.papers.operators.select import QueuedSelect
from windows.spec import WindowSpec


class PipelineTwin:
    """The papers' way: an operator takes one row or end at a time (`experiments/papers`)."""

    def __init__(self, setting: WindowSetting, expiry: str) -> None:
        self._sources: list[TimedSource] = []
        self._window = WindowSpec.range(setting.n_window * GAP_US)
        self._rows = RotatingRows(setting)
        self.n_pushed = 0
        self.pipeline = Pipeline(self._plan(setting.operator, setting.selectivity), expiry, start_us=0)

    def _plan(self, operator: str, selectivity: int) -> PlanNode:
        def chosen(condition: Callable[[Values], bool]) -> PlanNode:
            source = TimedSource(f"s{len(self._sources)}", self._window)
            self._sources.append(source)
            return QueuedSelect(source, condition)

        counted = chosen(lambda row: row[1] < selectivity)  # type: ignore[operator]  # values are of any type
        if operator == "distinct":
            return QueuedDistinct(QueuedProject(counted, _key))
        if operator == "group-by":
            return QueuedGroupBy(counted, [0], [RowAggregate("SUM", 1)])
        if operator == "except":
            rest = chosen(lambda row: row[1] >= 95)  # type: ignore[operator]  # values are of any type
            return QueuedMinus(QueuedProject(counted, _key), QueuedProject(rest, _key), duplicates=False)
        others = chosen(lambda row: row[1] >= 50)  # type: ignore[operator]  # values are of any type
        return QueuedJoin(QueuedDistinct(QueuedProject(counted, _key)), others, [0], [0])

    def push(self, number: int) -> None:
        """The next batch, whatever the number."""
        batch = self._rows.next()
        rows = [TimedRow(*row) for row in zip(batch["ts"].tolist(), zip(batch["k"].tolist(), batch["v"].tolist()))]
        for source in self._sources:
            self.pipeline.feed(source, rows)
        self.pipeline.run(rows[-1].time_us)
        self.n_pushed += len(rows)

    def counts(self) -> dict[str, float]:
        """Of all operators, for each row fed: ends that came in, rows probed for a match, messages sent."""
        counters = [operator.counters for operator in self.pipeline.operators.values()]
        return {
            "ends": sum(counter.n_ends for counter in counters) / self.n_pushed,
            "probes": sum(counter.probes for counter in counters) / self.n_pushed,
            "messages": sum(sum(counter.emitted.values()) for counter in counters) / self.n_pushed,
        }

    def answer(self) -> list[Values]:
        """Exact at the time of the last row."""
        self.pipeline.settle()
        return self.pipeline.answer


def _key(row: Values) -> Values:
    return row[:1]


class DictTwin:
    """One query as written by hand: dicts of counts and sums, and a deque by which rows leave."""

    def __init__(self, setting: WindowSetting) -> None:
        assert setting.operator in ("distinct", "except", "group-by"), "a join is not written in ten lines"
        self._setting = setting
        self._rows = RotatingRows(setting)
        self._live: deque[tuple[int, int, int]] = deque()
        self._left: Counter[int] = Counter()
        self._right: Counter[int] = Counter()
        self._sums: Counter[int] = Counter()
        #: changes of the answer, of either sign
        self.n_results = 0

    def push(self, number: int) -> None:
        batch = self._rows.next()
        width, live, change = self._setting.n_window * GAP_US, self._live, self._change
        for time, k, v in zip(batch["ts"].tolist(), batch["k"].tolist(), batch["v"].tolist()):
            while live and live[0][0] <= time:
                _, old_k, old_v = live.popleft()
                change(old_k, old_v, -1)
            live.append((time + width, k, v))
            change(k, v, 1)

    def _change(self, k: int, v: int, sign: int) -> None:
        left, right = self._left, self._right
        before = self._shown(k)
        if v < self._setting.selectivity:
            left[k] += sign
            self._sums[k] += sign * v
        if v >= 95:
            right[k] += sign
        self.n_results += self._shown(k) != before

    def _shown(self, k: int) -> object:
        operator = self._setting.operator
        if operator == "except":
            return self._left[k] > 0 and not self._right[k]
        if operator == "distinct":
            return self._left[k] > 0
        return (self._left[k] > 0, self._sums[k])

    def answer(self) -> list[Values]:
        keys = [k for k, n in self._left.items() if n > 0]
        if self._setting.operator == "group-by":
            return [(k, self._sums[k]) for k in keys]
        return [(k,) for k in keys if self._setting.operator == "distinct" or not self._right[k]]


class DuckTwin:
    """The answer computed again from the rows of the window after every batch."""

    def __init__(self, setting: WindowSetting) -> None:
        self._rows = RotatingRows(setting)
        self._n_window = setting.n_window
        self._sql = TEXTS[setting.operator].format(w="", p=setting.selectivity)
        self._columns = {name: np.zeros(0, np.int64) for name in ("k", "v")}
        import duckdb  # only who asks for peers needs it

        self._connection = duckdb.connect(":memory:", config={"threads": 1})
        self._answer: pa.Table | None = None

    def push(self, number: int) -> None:
        batch = self._rows.next()
        self._columns = {name: np.append(self._columns[name], batch[name])[-self._n_window :] for name in self._columns}
        self._connection.register("s", pa.table(self._columns))
        self._answer = self._connection.sql(self._sql).to_arrow_table()

    def answer(self) -> list[Values]:
        assert self._answer is not None, "a batch has been pushed"
        return list(zip(*(column.to_pylist() for column in self._answer.columns)))
