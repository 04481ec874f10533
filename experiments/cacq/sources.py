"""Does it matter over how many sources a set of queries is spread?

200 queries with one predicate each, on a random column of a random source; sources take turns, a push each. With more sources a
row has fewer queries, filters have fewer predicates to share, and the engine keeps more of everything. The paper counts rows
taken in a second; `out_per_s` is in the CSV as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from eddy import Engine
from experiments.bench.base.timing import take_turns
from experiments.drawing import COLOURS, MARKERS, Figure, powers_of_two
from experiments.experiment import Check, Experiment, Parameter, Row, Setting, Step, Verdict, column, slope

QUERIES = 200
SOURCES = {True: (1, 2, 4, 8, 16, 32), False: (1, 2, 4, 8, 16, 32, 64, 128)}
COLUMNS = 5
BATCH_ROWS = 1024
SECONDS = {True: 0.8, False: 3.0}
_OPS = ("<", "<=", ">", ">=")


class SpreadEngine:
    """An engine with so many sources."""

    def __init__(self, n_sources: int, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.names = [f"s{i}" for i in range(n_sources)]
        self.n_pairs = 0
        self.engine = Engine(seed=0)
        columns = {f"c{i}": "float" for i in range(COLUMNS)}
        for name in self.names:
            self.engine.create_stream(name, columns)
        for k in range(QUERIES):
            # every source has a query, as long as there are enough
            source = k if k < n_sources else int(rng.integers(n_sources))
            condition = f"c{rng.integers(COLUMNS)} {_OPS[rng.integers(len(_OPS))]} {rng.uniform(0, 100):.6f}"
            self.engine.submit(f"SELECT * FROM s{source} WHERE {condition}")
        self.engine.on_commit(self._take)
        self._batches = [{name: rng.uniform(0, 100, BATCH_ROWS) for name in columns} for _ in range(17)]
        self._pushes = 0

    def _take(self, commit: object) -> None:
        self.n_pairs += len(commit.row_lists()[2])  # type: ignore[attr-defined]  # a Commit

    def push(self, number: int) -> None:
        """A push to the source whose turn it is; contents rotate by another number, so that each source sees all."""
        self.engine.push(self.names[self._pushes % len(self.names)], self._batches[self._pushes % len(self._batches)])
        self._pushes += 1


def _measure(n_sources: int, setting: Setting) -> list[Row]:
    spread = SpreadEngine(n_sources, setting.seed)
    for i in range(2 * n_sources):
        spread.push(i)
    seconds = take_turns({"engine": spread.push}, 64, SECONDS[setting.quick]).median("engine")
    before, n = spread.n_pairs, 8 * n_sources
    for i in range(n):
        spread.push(i)
    pairs = (spread.n_pairs - before) / n
    return [
        {"sources": n_sources, "queries": QUERIES, "batch_rows": BATCH_ROWS, "seed": setting.seed,
         "in_per_s": BATCH_ROWS / seconds, "out_per_s": pairs / seconds, "pairs_per_row": pairs / BATCH_ROWS}
    ]  # fmt: skip


def steps(setting: Setting) -> Sequence[Step]:
    return [partial(_measure, n, setting) for n in SOURCES[setting.quick]]


def judge(rows: Sequence[Row]) -> Verdict:
    rate = column(rows, "in_per_s")
    return Verdict(
        (
            Check.at_least("rows/s with any number of sources, the least, against one source", min(rate) / rate[0], 0.7),
            Check.at_least("rows/s against sources, slope of logarithms", slope(column(rows, "sources"), rate), -0.1),
        ),
        "With more sources every row has fewer queries to satisfy, so fewer pairs have to be listed: rows are taken "
        "faster, where the paper's engine, whose cost is in routing and scheduling, slows down a little.",
    )


def draw(figure: Figure, rows: Sequence[Row]) -> None:
    axes = figure.add_subplot()
    rate = np.array(column(rows, "in_per_s"))
    x = column(rows, "sources")
    axes.plot(x, rate / rate[0], color=COLOURS[0], marker=MARKERS[0], label="rows taken in")
    axes.axhline(0.7, color="black", linewidth=1, linestyle=":", label="bar of the verdict")
    powers_of_two(axes, x)
    axes.set_ylim(0, max(1.2, 1.1 * float(max(rate / rate[0]))))
    axes.set_xlabel(f"sources, {QUERIES} queries in all")
    axes.set_ylabel("rows/s against one source")
    axes.legend()


EXPERIMENT = Experiment(
    name="sources",
    question="Does it matter over how many sources the queries are spread?",
    figure="CACQ, performance without joins: tuples per second against number of sources",
    expected="nearly flat: more sources cost a little",
    parameters=(
        Parameter("queries", f"{QUERIES}, one predicate each, on a random column of a random source", ours=False),
        Parameter("sources", f"1 to {SOURCES[False][-1]}, quick {SOURCES[True][-1]}"),
        Parameter("rows", f"{COLUMNS} columns, uniform in [0, 100); {BATCH_ROWS:,} a push"),
    ),
    columns={
        "sources": "number of sources", "queries": "in all", "batch_rows": "rows a push", "seed": "of rows and queries",
        "in_per_s": "rows a CPU second, all sources together", "out_per_s": "(row, query) pairs a CPU second",
        "pairs_per_row": "queries that a row satisfies on average",
    },
    steps=steps, judge=judge, draw=draw,
    caption="Rows that all sources together are rid of in a second of CPU time, as a multiple of what one source with "
    "all the queries reaches. Flat or rising is good.",
)  # fmt: skip
