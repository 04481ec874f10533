"""NiagaraCQ's two plans for stocks and articles (CACQ, figure of the alternative plans), as compiled code.

    PushDown     quotes -> selections -> Split -> a join for every query, whose tables of articles are one shared table
    PullUp       quotes, articles -> one join -> selections -> Split

Without lineage the place of a tuple in the plan says whose it is, so Split copies it for every query that wants it: PushDown a
quote, which the query's join keeps, PullUp a joined tuple. Both deliver joined tuples by query. What is kind to them: symbols are
coded once a row for all joins of PushDown, articles are referred to by their time and never copied, PullUp has the bare
kernel's SteM, PushDown its walks, and all buffers are kept. One window length: other windows would be other joins.
"""

from __future__ import annotations

import numpy as np

from experiments.bench.base.workloads import Batch
from experiments.bench.joins import kernels
from experiments.bench.joins.join_workload import TIMES, JoinWorkload
from experiments.bench.joins.matches import Copies, TakeCopies, ignore
from experiments.bench.joins.selections import PriceSelection
from experiments.bench.joins.stem import PART, SymmetricStem, make_walk, ring_rows, table_places


class PullUp:
    """One join, selections above it."""

    def __init__(self, workload: JoinWorkload, selection: PriceSelection) -> None:
        self.workload = workload
        self.n_pushes = 0
        self._selection = selection
        self._stem = SymmetricStem(workload)
        #: symbol, bits of the price, time of the stored quotes, a ring
        self._quotes = np.zeros((ring_rows(workload), 3), np.int64)
        self._joined = np.zeros((PART, 4), np.int64)
        self._prices = np.zeros(PART, np.int64)
        self._cursor = np.zeros(workload.n_queries, np.int64)
        self._offsets = np.zeros(workload.n_queries + 1, np.int64)
        self._copies = np.empty((workload.n_queries * PART, 4), np.int64)

    def push(self, take: TakeCopies = ignore) -> None:
        """The next push, its results given in parts."""
        stream, batch = self.workload.push(self.n_pushes)
        self.n_pushes += 1
        if stream == 0:
            prices = batch["price"].view(np.int64)
            kernels.put_quotes(batch["symbol"], prices, batch[TIMES[0]], self._quotes, self._stem.ends[0])
        for stocks, articles in self._stem.matches(stream, batch):
            n = len(stocks)
            joined, prices = self._joined[:n], self._prices[:n]
            kernels.join_tuples(stocks, articles, self._quotes, self._stem.times[1], joined, prices)
            starts, ends, members = self._selection.apply(prices.view(np.float64))
            kernels.split_tuples(joined, starts, ends, members, self._cursor, self._offsets, self._copies)
            take(Copies(self._offsets, self._copies[: self._offsets[-1]]))


class PushDown:
    """Selections below, a join for every query."""

    def __init__(self, workload: JoinWorkload, selection: PriceSelection) -> None:
        assert workload.n_streams == 2 and workload.one_window, "two streams, one window"
        self.workload = workload
        self.n_pushes = 0
        self._selection = selection
        n_queries, n_rows, n_ring = workload.n_queries, workload.n_rows, ring_rows(workload)
        self._symbols = np.full((table_places(workload), 2), -1, np.int64)
        self._n_codes = 0
        self._codes = np.zeros(n_rows, np.int32)
        # the shared table of articles
        self._article_heads = np.full((1, workload.n_keys), -1, np.int32)
        self._article_links = np.full((1, n_ring), -1, np.int32)
        self._article_times = np.zeros(n_ring, np.int64)
        self._n_articles = np.zeros(1, np.int64)
        self._article_low = 0
        # every query's own table of quotes
        self._heads = np.full((n_queries, workload.n_keys), -1, np.int32)
        self._links = np.full((n_queries, n_ring), -1, np.int32)
        self._quotes = np.zeros((n_queries, n_ring, 3), np.int64)
        self._tails = np.zeros(n_queries, np.int64)
        self._lows = np.zeros(n_queries, np.int64)
        # what Split hands to each join
        self._sizes = np.zeros(n_queries, np.int64)
        self._queued_codes = np.zeros((n_queries, n_rows), np.int32)
        self._queued_lows = np.zeros((n_queries, n_rows), np.int32)
        self._walk = make_walk(n_rows)
        self._offsets = np.zeros(n_queries + 1, np.int64)
        self._copies = np.empty((n_queries * n_rows, 4), np.int64)

    def push(self, take: TakeCopies = ignore) -> None:
        """The next push and its results."""
        stream, batch = self.workload.push(self.n_pushes)
        self.n_pushes += 1
        self._n_codes = kernels.encode_symbols(batch["symbol"], self._symbols, self._codes, self._n_codes)
        if stream == 0:
            self._take_quotes(batch)
        else:
            sizes = np.array([len(self._codes)])
            kernels.put(batch[TIMES[1]], self._article_times, int(self._n_articles[0]))
            kernels.build_quotes(sizes, self._codes[None, :], self._n_articles, self._article_heads, self._article_links)
        while (n := self._probe(stream, batch)) > len(self._copies):
            self._copies = np.empty((2 * n, 4), np.int64)
        take(Copies(self._offsets, self._copies[:n]))

    def _take_quotes(self, batch: Batch) -> None:
        times, lows = batch[TIMES[0]], self._walk.lows
        self._article_low = kernels.find_lows(
            times, self.workload.window_us, self._article_times, self._article_low, int(self._n_articles[0]), lows
        )
        kernels.split_quotes(
            batch["symbol"], batch["price"].view(np.int64), times, self._codes, lows, *self._selection.apply(batch["price"]),
            self._tails, self._sizes, self._quotes, self._queued_codes, self._queued_lows,
        )  # fmt: skip
        kernels.build_quotes(self._sizes, self._queued_codes, self._tails, self._heads, self._links)

    def _probe(self, stream: int, batch: Batch) -> int:
        if stream == 0:
            return kernels.probe_articles(
                self._sizes, self._queued_codes, self._queued_lows, self._tails, self._quotes,
                self._article_heads[0], self._article_links[0], self._article_times, self._walk, self._offsets, self._copies,
            )  # fmt: skip
        return kernels.probe_quotes(
            self._codes, batch[TIMES[1]], self.workload.window_us, self._lows, self._tails, self._heads, self._links,
            self._quotes, self._walk, self._offsets, self._copies,
        )  # fmt: skip
