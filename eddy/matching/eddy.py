"""The eddy: sends each batch through the modules of its stream, in an order that the policy chooses batch by batch.

A batch visits the modules some query still needs, each once: runs of grouped filters in one kernel call, predicate modules in
between. Every row keeps its lineage, so after the last visit the bits left are exactly the results, whatever the route:

    bits(row) = active & AND over modules of what the module admits        (AND commutes)

Two layouts (`lineage/batch.py`). Row-major, for small batches, and for the policies of the paper also for large ones while
there are at most 64 slots: each row skips modules that none of its queries needs any more, and visits are counted.
Query-major, for large batches: all rows at once. Every `SAMPLE_EVERY` batches a few rows go row-major first, only to keep
the statistics of a policy that learns fresh.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np

from eddy.lives.leaving import LeavingBatch
from eddy.routing.base import Policy
from eddy.streams.legs import join_disjuncts, join_disjuncts_rows
from eddy.streams.modules import Route
from eddy.streams.source import Source
from filters.expressions.residual import TRUE, PredicateModule
from filters.index.candidates import CandidateIndex, count_pairs
from lineage.batch import Lineage, TupleBatch
from lineage.bits import count_ones, trailing_zeros, words
from lineage.kernels import kernel
from stems.frame import PageFrame
from stems.row_store import Page

#: Batches between two samples of the policy's statistics, a prime so that no caller's rhythm meets it, and the rows of a sample
#: and words of their bits at most.
SAMPLE_EVERY = 509
SAMPLE_ROWS = 64
SAMPLE_WORDS = 2048
#: Visits of which a sample takes the shortest for the cost of a filter.
VISITS_TIMED = 3
#: Filters that a sample orders by what earlier ones left; with more, by what each clears alone.
MAX_PROFILED = 8
MAX_PROFILED_WORDS = 32
#: Up to this many rows results are counted and listed row-major.
FEW_ROWS = 16
#: Up to this many rows `match_rows` searches for ranks itself.
SEARCHED_ROWS = 64
#: From this many rows on a batch is matched query-major (experiments/bench latency).
QUERY_MAJOR_ROWS = 256


@kernel("void(uint64[:,::1], int64, uint64[::1], int64[::1])")
def count_results(rows_of: np.ndarray, n_words: int, active: np.ndarray, results: np.ndarray) -> None:
    """Add the rows of each slot of the mask to its count of results."""
    for word in range(len(active)):
        left = active[word]
        while left:
            slot = word * 64 + np.int64(trailing_zeros(left))
            left &= left - np.uint64(1)
            found = np.int64(0)
            for w in range(n_words):
                found += np.int64(count_ones(rows_of[slot, w]))
            results[slot] += found


@kernel("void(uint64[:,::1], int64, int64, int64[::1])")
def count_results_rows(lin: np.ndarray, n_rows: int, n_words: int, results: np.ndarray) -> None:
    """`count_results` for few row-major rows."""
    for i in range(n_rows):
        for w in range(n_words):
            x = lin[i, w]
            while x:
                results[w * 64 + np.int64(trailing_zeros(x))] += 1
                x &= x - np.uint64(1)


class Eddy:
    """Routes the batches of every source of an engine."""

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self.lineage = Lineage()
        self._trial = Lineage()
        self._scratch = np.zeros(64, np.uint64)
        #: modules that the rows of the batch do not visit yet
        self._later: set[int] = set()
        #: nanoseconds spent choosing routes and sampling for it
        self.routing_ns = 0
        self.batches = 0

    def match(self, source: Source, page: Page, batch: TupleBatch) -> Lineage:
        """Match new rows of a page; results are counted, and outcomes and region ids kept with the rows.

        The lineage returned is valid until the next call.
        """
        lineage, n_rows = self.lineage, batch.n_rows
        modules, placement = source.modules, source.placement
        self.batches += 1
        route = modules.route
        if route is None or not route.left or route.version != modules.version:
            route = self._choose(source)
        route.left -= 1
        by_query = n_rows >= QUERY_MAJOR_ROWS and not (self.policy.per_row and placement.slots.n_words == 1)
        if route.explored:
            modules.unsampled -= 1
            if modules.unsampled <= 0 and page.n_rows >= FEW_ROWS:
                began = time.perf_counter_ns()
                self._take_sample(source, page, route, by_query)
                self.routing_ns += time.perf_counter_ns() - began
        lineage.begin(n_rows, placement.slots.n_words, by_query)
        self._later = source.deferral.choose(self.policy, page.base + batch.first + n_rows) if modules.any_asked else set()
        if not placement.legs and len(self._later) == len(modules.by_text):
            # joins alone read the stream: their matches are matched, its rows only keep what tells them apart
            if placement.keeps_ids:
                self._keep_ids(source, page, batch, modules.bank.ranks(batch))
            return lineage
        if route.plain and n_rows <= FEW_ROWS:
            modules.bank.row_major(batch, route.filters, placement.active, lineage.lin, results=placement.results)
            modules.count_rows(n_rows, self.policy)
            return lineage
        if placement.slots.taken:
            if by_query:
                self._query_major(source, page, batch, route)
            else:
                self._row_major(source, page, batch, route)
        elif not by_query:
            lineage.lin[:n_rows] = 0
        if placement.indexes:
            self._candidates(source, [batch])
            count_pairs(lineage.pair_slot, lineage.n_pairs, placement.sparse_results)
        return lineage

    def _choose(self, source: Source) -> Route:
        """A route for the next batches, and whether their rows need grouped filters only."""
        began = time.perf_counter_ns()
        route = source.modules.choose(self.policy)
        route.plain = source.placement.plain
        if len(route.modules) > 1:
            self.routing_ns += time.perf_counter_ns() - began
        return route

    def match_again(self, source: Source, batch: LeavingBatch) -> Lineage:
        """Match stored rows that leave windows, from the region ids and outcomes kept with them; nothing is computed or counted
        anew."""
        lineage, n_rows = self.lineage, batch.n_rows
        modules, placement = source.modules, source.placement
        lineage.begin(n_rows, placement.slots.n_words, True)
        if placement.slots.taken:
            ranks = modules.bank.stored_ranks(((page.ids, at, stop) for page, at, stop in batch.pieces), n_rows)
            prepared = modules.bank.prepare(ranks, n_rows, batch.has_nulls, modules.ready_filters())
            if not modules.any_asked and not placement.clauses.n_clauses:
                lineage.unlisted = prepared
            else:
                rows_of = lineage.rows_of(n_rows)
                prepared.fill(placement.active, rows_of)
                for module in modules.by_text.values():
                    outcomes = [stored_outcome(page, module.number, at, stop) for page, at, stop in batch.pieces]
                    module.restrict(rows_of, n_rows, np.concatenate(outcomes))
                self._join_disjuncts(source, rows_of, n_rows)
        if placement.indexes:
            self._candidates(source, [TupleBatch(page.cells, page.nulls, at, stop - at) for page, at, stop in batch.pieces])
        return lineage

    # ---- query-major

    def _query_major(self, source: Source, page: Page, batch: TupleBatch, route: Route) -> None:
        modules, placement = source.modules, source.placement
        bank, n_rows = modules.bank, batch.n_rows
        filters = route.filters[route.filters >= 0] if modules.any_asked else route.filters
        if placement.keeps_ids:
            ranks = bank.ranks(batch)
            self._keep_ids(source, page, batch, ranks)
            prepared = bank.prepare(ranks, n_rows, batch.has_nulls, filters)
        else:
            prepared = bank.prepare_rows(batch, filters)
        if not modules.any_asked and not placement.clauses.n_clauses:
            self.lineage.unlisted = prepared
            return
        rows_of = self.lineage.rows_of(n_rows)
        prepared.fill(placement.active, rows_of, np.zeros(0, np.int32))
        frame = PageFrame(page, source.schema, source.dictionaries, slice(batch.first, batch.first + n_rows))
        for run in modules.runs(route.modules, self._later):
            if isinstance(run, PredicateModule):
                if len(self._scratch) < words(n_rows):
                    self._scratch = np.zeros(words(n_rows), np.uint64)
                began = time.perf_counter_ns()
                outcomes, rows_in, rows_out = run.query_major(rows_of, n_rows, frame, self._scratch)
                source.store.outcomes.keep(page, batch.first, run.number, outcomes)
                self._visited(source, run, rows_in, rows_out, time.perf_counter_ns() - began)
            else:
                prepared.fill(placement.active, rows_of, run, fresh=False)
        self._join_disjuncts(source, rows_of, n_rows)
        count_results(rows_of, words(n_rows), placement.active, placement.results)

    def _join_disjuncts(self, source: Source, rows_of: np.ndarray, n_rows: int) -> None:
        if source.placement.clauses.n_clauses:
            join_disjuncts(rows_of, words(n_rows), *source.placement.clauses.arrays())

    # ---- row-major

    def _row_major(self, source: Source, page: Page, batch: TupleBatch, route: Route) -> None:
        modules, placement = source.modules, source.placement
        bank, n_rows = modules.bank, batch.n_rows
        lin, active = self.lineage.lin, placement.active
        ranks = None
        if placement.keeps_ids or n_rows > SEARCHED_ROWS:
            ranks = bank.ranks(batch)
            if placement.keeps_ids:
                self._keep_ids(source, page, batch, ranks)
        if not modules.any_asked:
            bank.row_major(batch, route.filters, active, lin, ranks)
        else:
            frame = PageFrame(page, source.schema, source.dictionaries, slice(batch.first, batch.first + n_rows))
            bank.row_major(batch, np.zeros(0, np.int32), active, lin, ranks)
            for run in modules.runs(route.modules, self._later):
                if isinstance(run, PredicateModule):
                    began = time.perf_counter_ns()
                    outcomes, rows_in, rows_out = run.row_major(lin, n_rows, frame)
                    source.store.outcomes.keep(page, batch.first, run.number, outcomes)
                    self._visited(source, run, rows_in, rows_out, time.perf_counter_ns() - began)
                else:
                    bank.row_major(batch, run, active, lin, ranks, fresh=False)
        if placement.clauses.n_clauses:
            join_disjuncts_rows(lin, n_rows, *placement.clauses.arrays(), placement.legs_mask)
        if n_rows <= FEW_ROWS:
            count_results_rows(lin, n_rows, lin.shape[1], placement.results)
        else:
            count_results(self.lineage.to_query_major(), words(n_rows), active, placement.results)
        modules.count_rows(n_rows, self.policy)

    def _take_sample(self, source: Source, page: Page, route: Route, count_visits: bool) -> None:
        """Send the newest rows of a page through the filters, only to measure the cost and selectivity of each.

        As in A-Greedy: all filters are tried on the same rows, the best one is applied, the others are tried on what it
        left, and so on, so a filter's gain is known for the place it deserves. Beyond `MAX_PROFILED` filters, or with very
        many queries, of which hardly any row is rid of all, one round.
        `count_visits`: the batch itself counts none, so the sample stands for it.
        """
        modules, placement = source.modules, source.placement
        modules.samples += 1
        modules.unsampled = min(SAMPLE_EVERY, 4**modules.samples)
        # with many queries few rows say enough, and each costs more
        n_rows = min(page.n_rows, max(FEW_ROWS, min(SAMPLE_ROWS, SAMPLE_WORDS // placement.slots.n_words)))
        batch = TupleBatch(page.cells, page.nulls, page.n_rows - n_rows, n_rows)
        bank, ledger = modules.bank, modules.ledger
        left = sorted(f for f in route.filters.tolist() if f >= 0)
        if not left:
            return
        visits = bank.visits.copy()

        def visit(f: int, lin: np.ndarray) -> int:
            """Bits that a filter clears, of all."""
            before = int(bank.visits[f, 2])
            bank.row_major(batch, np.array([f], np.int32), placement.active, lin)
            return int(bank.visits[f, 2]) - before

        trial = self._trial
        trial.begin(n_rows, placement.slots.n_words, False)
        visit(left[0], trial.lin)  # the first call of a kernel is slower than the others
        gains, admitted = {}, {}
        for f in left:
            shortest = 1 << 62
            # the shortest of a few: on a busy machine one that takes a microsecond may be interrupted for a thousand
            for _ in range(VISITS_TIMED):
                began = time.perf_counter_ns()
                gains[f] = visit(f, trial.lin)
                shortest = min(shortest, time.perf_counter_ns() - began)
            ledger.measure(modules.filter_module[f], n_rows, shortest)
            admitted[f] = trial.lin[:n_rows].copy()
        current = placement.active
        while left:
            best = max(left, key=lambda f: gains[f] / max(float(ledger.cost_ns[modules.filter_module[f]]), 1.0))
            ledger.profile(modules.filter_module[best], gains[best] / n_rows)
            left.remove(best)
            if len(left) > MAX_PROFILED or placement.slots.n_words > MAX_PROFILED_WORDS:
                continue
            # bits only go, so what a filter clears of those left follows from what it admits of all
            current = current & admitted[best]
            for f in left:
                gains[f] = int(np.bitwise_count(current & ~admitted[f]).sum())
        bank.visits[:] = visits
        if count_visits:
            filters = route.filters[route.filters >= 0]
            bank.row_major(batch, filters, placement.active, trial.lin)
            modules.counted_rows += n_rows
            modules.learn(self.policy)

    def _visited(self, source: Source, module: PredicateModule, rows_in: int, rows_out: int, ns: int) -> None:
        """Record a visit of a predicate module: rows in, rows out, and its time."""
        if rows_in:
            source.modules.visited(module.number, rows_in, rows_out, ns, self.policy)
            if source.placement.held:
                source.deferral.tried(module, rows_in, rows_out, self.policy)

    def _keep_ids(self, source: Source, page: Page, batch: TupleBatch, ranks: np.ndarray) -> None:
        n_rows = batch.n_rows
        for f, filter_ in enumerate(source.modules.bank.filters):
            if filter_.n_predicates:
                filter_.write_ids(ranks[f], source.store.ids_of(page, f)[batch.first : batch.first + n_rows])

    # ---- candidates

    def _candidates(self, source: Source, batches: Sequence[TupleBatch]) -> None:
        """Append the pairs of all candidate indexes, of batches whose rows are numbered behind each other."""
        lineage = self.lineage
        for index in source.placement.indexes.values():
            index.learn_strings()
        base = 0
        for batch in batches:
            begin = lineage.n_pairs
            for index in source.placement.indexes.values():
                have = lineage.n_pairs
                while (found := self._pairs(source, index, batch, have)) < 0:
                    lineage.more_pairs()
                lineage.n_pairs += found
            if base:
                lineage.pair_row[begin : lineage.n_pairs] += base
            base += batch.n_rows

    def _pairs(self, source: Source, index: CandidateIndex, batch: TupleBatch, have: int) -> int:
        """Append the pairs of an index; returns their number, or -1 if there is too little room."""
        lineage = self.lineage
        return index.match(batch, source.placement.float_columns, lineage.pair_slot[have:], lineage.pair_row[have:])


def stored_outcome(page: Page, module: int, at: int, stop: int) -> np.ndarray:
    """Whether a predicate module, by its number, is true on stored rows of a page."""
    held = page.outcomes.get(module)
    return np.zeros(stop - at, np.bool_) if held is None else held[at:stop] == TRUE
