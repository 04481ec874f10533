"""Stocks and articles by symbol, and further streams with a symbol (CACQ, experiments against NiagaraCQ).

    stocks (symbol, price, quoted)   articles (symbol, published)   ratings, filings, orders (symbol, their time)

    SELECT .. FROM stocks [RANGE w] s, articles [RANGE w] a WHERE s.symbol = a.symbol AND s.price > :c

Push `i` gives stream `i % n_streams` its next rows, one each microsecond, all after those of push `i - 1`:

    time       0 ...... n_rows ...... 2 n_rows ...... 3 n_rows
    push       0 stocks | 1 articles  | 2 stocks      | ..

So no stream lags, a row's time tells its number, and a window of `n_streams * window_rows` microseconds holds `window_rows` rows
a stream, up to a push more or less. A row finds `window_rows / n_keys` rows in every other stream. Contents rotate, time goes on.

With a derived key the condition is `s.symbol % n_keys = a.symbol`: the same matches, found by an expression.

The first query takes every quote, as the union of the paper's queries does: the rows that survive do not depend on the number of
queries. With several window lengths the first query has the longest, which is that of one length; the others go down to half of
it: state and chain walks are the same, and a quarter of the (match, query) pairs is gone.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass

import numpy as np

from experiments.bench.base.workloads import DOMAIN, Batch

STREAMS = ("stocks", "articles", "ratings", "filings", "orders")
#: The time column of each stream; no two streams share a name, for results hold all of them.
TIMES = ("quoted", "published", "rated", "filed", "ordered")
_ALIASES = ("s", "a", "r", "f", "o")
_N_CONTENTS = 16
CONDITION = "s.price > :c"


@dataclass(frozen=True, slots=True)
class PriceQuery:
    """`price > constant`, over windows of one length."""

    constant: float
    window_us: int


@dataclass(frozen=True, slots=True)
class JoinWorkload:
    queries: list[PriceQuery]
    n_keys: int
    #: rows a stream that the longest window holds
    window_rows: int
    #: rows a push
    n_rows: int
    #: of each stream, columns without the time
    contents: list[list[Batch]]
    #: whether the key of stocks is an expression, of the same value
    derived_key: bool = False

    @property
    def n_queries(self) -> int:
        return len(self.queries)

    @property
    def n_streams(self) -> int:
        return len(self.contents)

    @property
    def window_us(self) -> int:
        """The longest window."""
        return max(query.window_us for query in self.queries)

    @property
    def one_window(self) -> bool:
        return len({query.window_us for query in self.queries}) == 1

    @property
    def constants(self) -> np.ndarray:
        return np.array([query.constant for query in self.queries])

    @property
    def n_filling(self) -> int:
        """Pushes until every window is full and rows leave."""
        return self.n_streams * (self.window_rows // self.n_rows + 2)

    def columns(self, stream: int) -> dict[str, str]:
        prices = {"price": "float"} if stream == 0 else {}
        return {"symbol": "int", **prices, TIMES[stream]: "timestamp[us]"}

    def push(self, number: int) -> tuple[int, Batch]:
        """The stream and the rows of a push."""
        stream = number % self.n_streams
        rotating = self.contents[stream]
        times = np.arange(number * self.n_rows, (number + 1) * self.n_rows)
        return stream, {**rotating[number // self.n_streams % len(rotating)], TIMES[stream]: times}

    def row_numbers(self, times: np.ndarray) -> np.ndarray:
        """The numbers, each in its stream, of the rows with these times."""
        found: np.ndarray = times // (self.n_rows * self.n_streams) * self.n_rows + times % self.n_rows
        return found


def stocks_and_articles(
    n_queries: int,
    *,
    n_rows: int = 4096,
    n_keys: int = 10_000,
    window_rows: int = 10_000,
    n_streams: int = 2,
    n_windows: int = 1,
    quiet: bool = False,
    derived_key: bool = False,
    seed: int = 9,
) -> JoinWorkload:
    """Queries with distinct constants and `n_windows` window lengths over `n_streams` streams.

    `quiet`: every second symbol is in stocks only, the others have twice the rows in the other streams.
    """
    rng = np.random.default_rng(seed)
    constants = rng.uniform(0, DOMAIN, n_queries).tolist()
    constants[0] = 0.0
    longest = n_streams * window_rows
    queries = [PriceQuery(c, longest - longest * (q % n_windows) // (2 * n_windows)) for q, c in enumerate(constants)]
    contents: list[list[Batch]] = [[] for _ in range(n_streams)]
    for stream, batches in enumerate(contents):
        for _ in range(_N_CONTENTS):
            symbols = rng.integers(0, n_keys, n_rows)
            batch: Batch = {"symbol": symbols // 2 * 2 if quiet and stream else symbols}
            if stream == 0:
                # in (0, DOMAIN]: above the first constant
                batch["price"] = DOMAIN - rng.uniform(0, DOMAIN, n_rows)
            batches.append(batch)
    return JoinWorkload(queries, n_keys, window_rows, n_rows, contents, derived_key)


def sql(workload: JoinWorkload, query: PriceQuery, condition: str = CONDITION) -> str:
    """The text; its parameter `c` is the constant. Queries with one window share one object, so that its parse is cached."""
    n = workload.n_streams
    outputs = ["s.symbol", "s.price", *(f"{alias}.{time}" for alias, time in zip(_ALIASES[:n], TIMES))]
    inputs = [f"{stream} [RANGE {query.window_us} MICROSECONDS] {alias}" for stream, alias in zip(STREAMS, _ALIASES[:n])]
    key = f"s.symbol % {workload.n_keys}" if workload.derived_key else "s.symbol"
    edges = [f"{key} = {alias}.symbol" for alias in _ALIASES[1:n]]
    return sys.intern(f"SELECT {', '.join(outputs)} FROM {', '.join(inputs)} WHERE {' AND '.join([*edges, condition])}")
