"""The cost of a row in each window operator: the figures of `windows/measured_costs.py`.

    python -m experiments.operator_costs

Each operator takes commits of `ROWS` rows whose windows hold `LIVE`, once with many rows a commit and once with none, which gives
the share of the row and that of the commit. Thread CPU time; the median of the commits counts.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from filters.expressions.expression import ColumnRef, FunctionCall, Literal
from filters.values.vector import Vector
from lineage.elements import FOREVER
from lineage.schema import Type
from windows.aggregates.aggregate import AggregateKind, AggregateSpec
from windows.delta import SCHEDULED, Delta, Minus, Plus, empty, no_minus
from windows.operators.distinct import DeltaStar, distinct
from windows.operators.group_by import GroupByOperator
from windows.operators.intersect import IntersectStar
from windows.operators.join import PairJoin
from windows.operators.join_keys import KeyPair
from windows.operators.operator import Operator
from windows.operators.select import SelectOperator
from windows.operators.set_operation import EXCEPT_ALL, INTERSECT, SetOperator
from windows.state.due import Buffer, Calendar, Fifo, Scan, Unscheduled
from windows.state.rows import LiveRows

ROWS, LIVE, COMMITS = 4096, 65536, 60
TYPES = (Type.INT, Type.INT)


def deltas(sends: bool, weak: bool, values: int, seed: int = 1) -> Iterator[tuple[Delta, int]]:
    """Commits of one edge and their clocks; a row is alive for LIVE microseconds, or up to twice that."""
    rng = np.random.default_rng(seed)
    pending: list[tuple[np.ndarray, np.ndarray]] = []
    for commit in range(10**6):
        first = commit * ROWS
        ids = np.arange(first, first + ROWS)
        lives = rng.integers(1, 2 * LIVE, ROWS) if weak else np.full(ROWS, LIVE)
        ends = ids + lives
        columns = [Vector(Type.INT, rng.integers(0, values, ROWS)) for _ in TYPES]
        known = np.full(ROWS, FOREVER) if sends else ends
        minus = no_minus()
        upto = first + ROWS - 1
        if sends:
            pending.append((ids, ends))
            old, times = np.concatenate([p[0] for p in pending]), np.concatenate([p[1] for p in pending])
            due = times <= upto
            pending = [(old[~due], times[~due])]
            order = np.argsort(times[due], kind="stable")
            minus = Minus(old[due][order], times[due][order], np.full(int(due.sum()), SCHEDULED))
        yield Delta(Plus(ids, ids, np.arange(ROWS), known, columns), minus), upto


def per_commit(
    process: Callable[[list[Delta], int], object], feeds: Sequence[Iterator[tuple[Delta, int]]]
) -> tuple[float, float]:
    """ns of a row with its end, and of a commit without rows."""
    spent, idle, upto = [], [], 0
    for _ in range(COMMITS):
        given = [next(feed) for feed in feeds]
        upto = given[0][1]
        began = time.thread_time_ns()
        process([delta for delta, _ in given], upto)
        spent.append(time.thread_time_ns() - began)
    nothing = [empty(TYPES) for _ in feeds]
    for _ in range(COMMITS):
        began = time.thread_time_ns()
        process(nothing, upto)
        idle.append(time.thread_time_ns() - began)
    rest = float(np.median(idle))
    return (float(np.median(spent[COMMITS // 2 :])) - rest) / (ROWS * len(feeds)), rest


def main() -> None:
    """Print the table."""
    #: name, buffer, whether rows are found by id, whether their ends are sent, whether they end in another order
    buffers: list[tuple[str, Buffer, bool, bool, bool]] = [
        ("fifo", Fifo(), False, False, False), ("calendar", Calendar(), False, False, True), ("list", Scan(), False, False, True),
        ("hash", Unscheduled(), True, True, True), ("calendar, by id", Calendar(), True, False, True),
    ]  # fmt: skip
    for name, buffer, by_id, sends, weak in buffers:
        rows = LiveRows(buffer, by_id=by_id)

        def step(given: list[Delta], upto: int, rows: LiveRows = rows) -> None:
            rows.apply(given[0], upto)
            rows.settle()

        show(f"rows in a {name}", step, [deltas(sends, weak, 1000)])
    for values in (100, 100_000):
        operators: list[tuple[str, Operator, int]] = [
            ("minus", SetOperator(EXCEPT_ALL, TYPES, [_fifo(), _fifo()]), 2),
            ("intersect", SetOperator(INTERSECT, TYPES, [_fifo(), _fifo()]), 2),
            ("intersect-star", IntersectStar(TYPES, Calendar(), Calendar()), 2),
            ("distinct", distinct(TYPES, _fifo()), 1),
            ("delta-star", DeltaStar(TYPES, Calendar()), 1),
            ("group-by", GroupByOperator(TYPES, 1, [AggregateSpec(AggregateKind.SUM, 1, Type.INT)], _fifo(), per_event=False), 1),
        ]
        for name, operator, n in operators:
            show(f"{name}, values to {values}", operator.process, [deltas(False, False, values, seed) for seed in range(n)])
    for partners, values in (("0.6", 100_000), ("6", 10_000)):
        join = PairJoin([TYPES, TYPES], [KeyPair.of_columns((TYPES, TYPES), 0, 0)], None, [_fifo(), _fifo()])
        show(f"join, about {partners} partners a row", join.process, [deltas(False, False, values, seed) for seed in range(2)])
    condition = FunctionCall(Type.BOOL, ">", (ColumnRef(Type.INT, "a", 0), Literal(Type.INT, 500)))
    chosen = SelectOperator(condition, [ColumnRef(Type.INT, "a", 0)])
    show("select", chosen.process, [deltas(False, False, 1000)])


def _fifo() -> LiveRows:
    return LiveRows(Fifo(), by_id=False)


def show(name: str, process: Callable[[list[Delta], int], object], feeds: Sequence[Iterator[tuple[Delta, int]]]) -> None:
    row, commit = per_commit(process, feeds)
    print(f"{name:32} {row:8.1f} ns a row {commit / 1000:8.1f} us a commit")


if __name__ == "__main__":
    main()
