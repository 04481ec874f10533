"""Stocks and posts, for real: how often are user functions called at the fan-out of real data?

Hourly bars of AAPL and BAC join the posts that name them within six hours; three queries select bars by a user function. How
many posts a bar meets is the world's choice here. PullUp would call each function for every match, which arithmetic counts; the
eddy calls it at most once for a bar.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from eddy import Engine
from experiments.drawing import COLOURS, MARKERS, Figure
from experiments.experiment import Check, Experiment, Parameter, Row, Setting, Step, Verdict, column

BARS, POSTS = "stock_hourly.parquet", "stock_posts.parquet"
SYMBOLS = ("AAPL", "BAC")
WINDOW_HOURS = 6
FUNCTIONS = 3
#: Months from January 2014 on.
MONTHS = {True: 12, False: 24}
_HOUR = 3_600_000_000


class CountingFunction:
    """The user function `volume > bound`, which counts its calls."""

    def __init__(self, bound: float) -> None:
        self._bound = bound
        self.n_calls = 0

    def __call__(self, volume: float) -> bool:
        self.n_calls += 1
        return volume > self._bound


def _read(path: Path, symbol: str, columns: Sequence[str], start: int, stop: int) -> dict[str, np.ndarray]:
    """Rows of the symbols between two times, in order; times as microseconds."""
    table = pq.read_table(path, columns=["ts", symbol, *columns])
    times = table["ts"].cast(pa.timestamp("us")).cast("int64")
    names = table[symbol].cast("string")
    keep = pc.and_(pc.is_in(names, pa.array(SYMBOLS)), pc.and_(pc.greater_equal(times, start), pc.less(times, stop)))
    found = {"at": times, "symbol": names} | {name: table[name] for name in columns}
    kept = {name: values.filter(keep).to_numpy(zero_copy_only=False) for name, values in found.items()}
    order = np.argsort(kept["at"], kind="stable")
    return {name: values[order] for name, values in kept.items()}


def _month(number: int) -> int:
    """The first microsecond of a month, counted from January 2014."""
    return int(np.datetime64(f"{2014 + number // 12}-{number % 12 + 1:02d}-01", "us").astype(np.int64))


def matches_of(bars: dict[str, np.ndarray], posts: dict[str, np.ndarray]) -> int:
    """Pairs of a bar and a post with one symbol that are in their windows together."""
    found = 0
    for symbol in SYMBOLS:
        at, times = bars["at"][bars["symbol"] == symbol], posts["at"][posts["symbol"] == symbol]
        near = WINDOW_HOURS * _HOUR
        found += int((np.searchsorted(times, at + near) - np.searchsorted(times, at - near, "right")).sum())
    return found


def calls_of(bars: dict[str, np.ndarray], posts: dict[str, np.ndarray]) -> int:
    """Calls of functions by the eddy for some bars and posts."""
    functions = [CountingFunction(bound) for bound in (1e6, 3e6, 1e7)[:FUNCTIONS]]
    engine = Engine(seed=0)
    engine.create_stream("bars", {"symbol": "string", "volume": "int", "at": "timestamp[us]"}, time="at")
    engine.create_stream("posts", {"symbol": "string", "at": "timestamp[us]"}, time="at")
    window = f"[RANGE {WINDOW_HOURS} HOURS]"
    for k, function in enumerate(functions):
        engine.register(f"picky_{k}", function, returns="bool", cost=300.0)
        engine.submit(f"SELECT b.symbol FROM bars {window} b, posts {window} p WHERE b.symbol = p.symbol AND picky_{k}(b.volume)")
    first, last = min(bars["at"][0], posts["at"][0]), max(bars["at"][-1], posts["at"][-1])
    for start in range(int(first), int(last) + 1, _HOUR):
        hour = {}
        for name, columns in (("bars", bars), ("posts", posts)):
            low, high = np.searchsorted(columns["at"], [start, start + _HOUR])
            if high > low:
                hour[name] = {key: values[low:high] for key, values in columns.items()}
        if hour:
            engine.push_many(hour)
    return sum(function.n_calls for function in functions)


def _step(number: int, setting: Setting) -> list[Row]:
    assert setting.data is not None, "checked before it is run"
    start, stop = _month(number), _month(number + 1)
    bars = _read(setting.data / BARS, "symbol", ["volume"], start, stop)
    posts = _read(setting.data / POSTS, "ticker", [], start, stop)
    if not len(bars["at"]) or not len(posts["at"]):
        return []
    calls, matches = calls_of(bars, posts), matches_of(bars, posts)
    n_bars = len(bars["at"])
    return [
        {"month": f"{2014 + number // 12}-{number % 12 + 1:02d}", "bars": n_bars, "posts": len(posts["at"]),
         "functions": FUNCTIONS, "window_hours": WINDOW_HOURS,
         "matches_per_bar": matches / n_bars, "eddy_calls_per_bar": calls / n_bars,
         "pull_up_calls_per_bar": FUNCTIONS * matches / n_bars, "seed": setting.seed}
    ]  # fmt: skip


def steps(setting: Setting) -> Sequence[Step]:
    return [partial(_step, number, setting) for number in range(MONTHS[setting.quick])]


def judge(rows: Sequence[Row]) -> Verdict:
    eddy, pull_up = column(rows, "eddy_calls_per_bar"), column(rows, "pull_up_calls_per_bar")
    return Verdict(
        (
            Check.at_most("calls of the eddy for a bar and function, the most in a month", max(eddy) / FUNCTIONS, 1.0),
            Check.at_least("calls of PullUp against the eddy's, over all months", sum(pull_up) / sum(eddy), 2.0),
        ),
        f"A bar meets {min(column(rows, 'matches_per_bar')):.1f} to {max(column(rows, 'matches_per_bar')):.1f} "
        "posts on average, by month.",
    )


def draw(figure: Figure, rows: Sequence[Row]) -> None:
    axes = figure.add_subplot()
    found = sorted(rows, key=lambda row: float(row["matches_per_bar"]))
    x = column(found, "matches_per_bar")
    for k, (name, label) in enumerate((("eddy_calls_per_bar", "eddy"), ("pull_up_calls_per_bar", "PullUp"))):
        axes.plot(x, column(found, name), color=COLOURS[k * 2], marker=MARKERS[k * 2], linestyle="", label=label)
    axes.axhline(FUNCTIONS, color="black", linewidth=1, linestyle=":", label="one call a bar and function")
    axes.set_xlim(left=0)
    axes.set_ylim(bottom=0)
    axes.set_xlabel(f"posts that a bar meets within {WINDOW_HOURS} hours (a point is a month)")
    axes.set_ylabel("calls of functions a bar")
    axes.legend()


EXPERIMENT = Experiment(
    name="news",
    question="Stocks and posts, for real: how often are user functions called?",
    figure="CACQ, performance study: articles per quote, user functions; on hourly bars and posts",
    expected="the eddy calls a function at most once a bar, PullUp once for every post that the bar meets",
    parameters=(
        Parameter("rows", f"{BARS} and {POSTS}: {' and '.join(SYMBOLS)}, 24 months from January 2014, quick 12"),
        Parameter("queries", f"{FUNCTIONS} user functions of a bar's volume; windows of {WINDOW_HOURS} hours"),
    ),
    columns={
        "month": "the rows that are joined", "bars": "hourly bars", "posts": "posts that name a symbol",
        "functions": "number of queries",
        "window_hours": "windows of both streams", "matches_per_bar": "posts that a bar meets",
        "eddy_calls_per_bar": "calls of functions, counted", "pull_up_calls_per_bar": "functions times matches",
        "seed": "has no effect: the rows are real",
    },
    steps=steps, judge=judge, draw=draw,
    caption="Each point is a month. The more posts a bar meets, the more often PullUp asks the same question; the "
    "eddy asks once.",
    by="counts",
    files=(BARS, POSTS),
)  # fmt: skip
