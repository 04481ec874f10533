"""The measurement of the throughput cases: check the first batch, then let engine and bare kernels take turns."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Protocol

from experiments.bench.base.bare import Layout, RowLists
from experiments.bench.base.driver import EngineDriver, assert_same
from experiments.bench.base.lines import Bar, Line, Measure
from experiments.bench.base.options import Options
from experiments.bench.base.paper import per_tuple_seconds
from experiments.bench.base.timing import take_turns
from experiments.bench.base.workloads import Workload

_PAPER_SECONDS = 0.2


class Bare(Protocol):
    def layouts(self) -> dict[str, Layout]: ...


def measure(case: str, work: str, workload: Workload, bare: Bare, bar: float | None, options: Options) -> Line:
    """The engine's line; the bar is a share of the bare kernels' speed."""
    driver = EngineDriver(workload)
    layouts = bare.layouts()
    for layout in layouts.values():
        assert_same(driver.lists_of(workload.batches[0]), layout(workload.batches[0]))

    def run_layout(layout: Layout, i: int) -> RowLists:
        return layout(workload.batches[i])

    contestants: dict[str, Callable[[int], object]] = {"engine": driver.push}
    contestants |= {f"bare {name}": partial(run_layout, layout) for name, layout in layouts.items()}
    n_pairs = driver.n_pairs
    driver.push(0)
    n_pairs = driver.n_pairs - n_pairs
    before = driver.routing()
    rounds = take_turns(contestants, len(workload.batches), options.seconds)
    share = driver.routing_share(before)
    best = rounds.fastest("bare")
    of_bare = rounds.ratio("engine", best)
    seconds = rounds.median("engine")
    measures = {
        "rows_per_s": Measure(workload.n_rows / seconds, "/s"),
        "pairs_per_s": Measure(n_pairs / seconds, "/s"),
        "bare_rows_per_s": Measure(workload.n_rows / rounds.median(best), "/s"),
        "of_bare": Measure(of_bare, "%"),
        "times_paper": Measure(per_tuple_seconds(workload, _PAPER_SECONDS) * workload.n_rows / seconds, "x"),
        "routing": Measure(share, "%"),
    }
    setting: dict[str, int | str] = {"queries": workload.n_queries, "rows": workload.n_rows, "bare": best}
    return Line(case, work, measures, None if bar is None else Bar.at_least(of_bare, bar, "%"), setting)
