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

import numpy as np

from eddy.legs import join_disjuncts, join_disjuncts_rows
from eddy.policies.base import Policy
from eddy.source import Route, Source
from filters.candidates import count_pairs
from filters.residual import TRUE, PredicateModule
from lineage.batch import Lineage, TupleBatch
from lineage.bits import count_ones, trailing_zeros, words
from lineage.kernels import kernel
from stems.frame import PageFrame
from stems.row_store import Page

#: Batches between two samples of the policy's statistics, and the rows of a sample.
SAMPLE_EVERY = 256
SAMPLE_ROWS = 64
#: Filters that a sample orders by what earlier ones left; with more, by what each clears alone.
MAX_PROFILED = 8
#: Rows after which the visits counted by kernels are handed to the policy.
LEARN_ROWS = 64
#: Up to this many rows results are counted and listed row-major.
FEW_ROWS = 16
#: Up to this many rows `match_rows` searches for ranks itself.
SEARCHED_ROWS = 64
#: From this many rows on a batch is matched query-major (experiments/bench latency).
QUERY_MAJOR_ROWS = 256


@kernel("void(uint64[:,::1], int64, int32[::1], int64[::1])")
def count_results(rows_of: np.ndarray, n_words: int, slots: np.ndarray, results: np.ndarray) -> None:
    """Add each slot's rows to its count of results."""
    for s in range(len(slots)):
        found = np.int64(0)
        for w in range(n_words):
            found += np.int64(count_ones(rows_of[slots[s], w]))
        results[slots[s]] += found


@kernel("void(uint64[:,::1], int64, int64, int64[::1])")
def count_results_rows(lin: np.ndarray, n_rows: int, n_words: int, results: np.ndarray) -> None:
    """The same row-major, for few rows."""
    for i in range(n_rows):
        for w in range(n_words):
            x = lin[i, w]
            while x:
                results[w * 64 + np.int64(trailing_zeros(x))] += 1
                x &= x - np.uint64(1)


class Selection:
    """The legs that a batch is matched for: all of a source's, or those of some window classes."""

    __slots__ = ("active", "slots", "class_on")

    def __init__(self, active: np.ndarray, slots: np.ndarray, class_on: np.ndarray) -> None:
        #: bits of the dense slots, disjuncts included, and the same as a list
        self.active = active
        self.slots = slots
        #: 1 for each window class that is on
        self.class_on = class_on


class Eddy:
    """Routes the batches of every source of an engine."""

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self.lineage = Lineage()
        self._sample = Lineage()
        self._trial = Lineage()
        self._scratch = np.zeros(64, np.uint64)
        #: nanoseconds spent choosing routes and sampling for it
        self.routing_ns = 0
        self.batches = 0

    def match(self, source: Source, page: Page, batch: TupleBatch, selected: Selection) -> Lineage:
        """Match new rows of a page for the selected legs; results are counted, and outcomes and region ids kept with the
        rows. The lineage returned is valid until the next call.
        """
        lineage, n_rows = self.lineage, batch.n_rows
        self.batches += 1
        route = source.route
        if route is None or not route.left or route.version != source.version:
            route = self._choose(source)
        route.left -= 1
        by_query = n_rows >= QUERY_MAJOR_ROWS and not (self.policy.per_row and source.slots.n_words == 1)
        if route.explored:
            source.unsampled -= 1
            if source.unsampled <= 0 and page.n_rows >= FEW_ROWS:
                began = time.perf_counter_ns()
                self._take_sample(source, page, selected, route, by_query)
                self.routing_ns += time.perf_counter_ns() - began
        if n_rows <= FEW_ROWS and source.plain:
            lineage.begin(n_rows, source.slots.n_words, False)
            source.bank.few_rows(batch, route.filters, selected.active, lineage.lin, source.results)
            source.counted_rows += n_rows
            source.unlearned_rows += n_rows
            if source.unlearned_rows >= LEARN_ROWS:
                self.learn(source)
            return lineage
        lineage.begin(n_rows, source.slots.n_words, by_query)
        if by_query and len(selected.slots):
            self._query_major(source, page, batch, selected, route)
        elif len(selected.slots):
            self._row_major(source, page, batch, selected, route)
        elif not by_query:
            lineage.lin[:n_rows] = 0
        if source.indexes:
            self._candidates(source, batch, selected.class_on)
            count_pairs(lineage.pair_slot, lineage.n_pairs, source.sparse_results)
        return lineage

    def _choose(self, source: Source) -> Route:
        """Ask the policy for a route, unless there is nothing to choose."""
        ready = source.ready_modules()
        route = Route(source.version, ready, source.filter_of[ready], 1 << 30, False)
        if len(ready) > 1:
            began = time.perf_counter_ns()
            route.modules = self.policy.route(source.ledger, ready).copy()
            route.filters = source.filter_of[route.modules]
            route.left = self.policy.serves
            route.explored = self.policy.learns
            self.routing_ns += time.perf_counter_ns() - began
        source.route = route
        return route

    def match_again(self, source: Source, page: Page, batch: TupleBatch, selected: Selection) -> Lineage:
        """Match stored rows from the region ids and outcomes kept with them; nothing is computed or counted anew."""
        lineage, at, n_rows = self.lineage, batch.first, batch.n_rows
        lineage.begin(n_rows, source.slots.n_words, True)
        if len(selected.slots):
            ranks = source.bank.stored_ranks(page.ids, at, n_rows)
            route = source.filter_of[source.ready_modules()]
            prepared = source.bank.prepare(ranks, n_rows, batch.has_nulls, route[route >= 0])
            if not source.has_modules and not source.n_clauses:
                lineage.unlisted = prepared
            else:
                rows_of = lineage.rows_of(n_rows)
                prepared.fill(selected.slots, rows_of)
                for module in source.modules.values():
                    module.restrict(rows_of, n_rows, _stored_outcome(page, module, at, n_rows))
                self._join_disjuncts(source, rows_of, n_rows)
        if source.indexes:
            self._candidates(source, batch, selected.class_on)
        return lineage

    # ---- query-major

    def _query_major(self, source: Source, page: Page, batch: TupleBatch, selected: Selection, route: Route) -> None:
        bank, n_rows = source.bank, batch.n_rows
        filters = route.filters[route.filters >= 0] if source.has_modules else route.filters
        if source.keeps_ids:
            ranks = bank.ranks(batch)
            self._keep_ids(source, page, batch, ranks)
            prepared = bank.prepare(ranks, n_rows, batch.has_nulls, filters)
        else:
            prepared = bank.prepare_rows(batch, filters)
        if not source.has_modules and not source.n_clauses:
            self.lineage.unlisted = prepared
            return
        rows_of = self.lineage.rows_of(n_rows)
        prepared.fill(selected.slots, rows_of, np.zeros(0, np.int32))
        frame = PageFrame(page, source.schema, source.dictionaries, slice(batch.first, batch.first + n_rows))
        for run in self._runs(source, route.modules):
            if isinstance(run, PredicateModule):
                if len(self._scratch) < words(n_rows):
                    self._scratch = np.zeros(words(n_rows), np.uint64)
                began = time.perf_counter_ns()
                outcomes, rows_in, rows_out = run.query_major(rows_of, n_rows, frame, self._scratch)
                source.store.keep_outcome(page, batch.first, run.number, outcomes)
                self._visited(source, run.number, rows_in, rows_out, 0, time.perf_counter_ns() - began)
            else:
                prepared.fill(selected.slots, rows_of, run, fresh=False)
        self._join_disjuncts(source, rows_of, n_rows)
        count_results(rows_of, words(n_rows), selected.slots, source.results)

    def _join_disjuncts(self, source: Source, rows_of: np.ndarray, n_rows: int) -> None:
        if source.n_clauses:
            clauses = source.clause_arrays()
            join_disjuncts(rows_of, words(n_rows), clauses.slot, clauses.at, clauses.disjuncts)

    # ---- row-major

    def _row_major(self, source: Source, page: Page, batch: TupleBatch, selected: Selection, route: Route) -> None:
        bank, n_rows = source.bank, batch.n_rows
        lin, active = self.lineage.lin, selected.active
        ranks = None
        if source.keeps_ids or n_rows > SEARCHED_ROWS:
            ranks = bank.ranks(batch)
            if source.keeps_ids:
                self._keep_ids(source, page, batch, ranks)
        if not source.has_modules:
            bank.row_major(batch, route.filters, active, lin, ranks)
        else:
            frame = PageFrame(page, source.schema, source.dictionaries, slice(batch.first, batch.first + n_rows))
            bank.row_major(batch, np.zeros(0, np.int32), active, lin, ranks)
            for run in self._runs(source, route.modules):
                if isinstance(run, PredicateModule):
                    began = time.perf_counter_ns()
                    outcomes, rows_in, rows_out = run.row_major(lin, n_rows, frame)
                    source.store.keep_outcome(page, batch.first, run.number, outcomes)
                    self._visited(source, run.number, rows_in, rows_out, 0, time.perf_counter_ns() - began)
                else:
                    bank.row_major(batch, run, active, lin, ranks, fresh=False)
        if source.n_clauses:
            clauses = source.clause_arrays()
            join_disjuncts_rows(lin, n_rows, clauses.slot, clauses.at, clauses.disjuncts, source.legs_mask)
        if n_rows <= FEW_ROWS:
            count_results_rows(lin, n_rows, lin.shape[1], source.results)
        else:
            count_results(self.lineage.to_query_major(), words(n_rows), selected.slots, source.results)
        source.counted_rows += n_rows
        source.unlearned_rows += n_rows
        if source.unlearned_rows >= LEARN_ROWS:
            self.learn(source)

    def _take_sample(self, source: Source, page: Page, selected: Selection, route: Route, count_visits: bool) -> None:
        """Send the newest rows of a page through the filters, only to see what each filter costs and clears.

        As in A-Greedy: all filters are tried on the same rows, the best one is applied, the others are tried on what it
        left, and so on, so a filter's gain is known for the place it deserves. Beyond `MAX_PROFILED` filters one round.
        `count_visits`: the batch itself counts none, so the sample stands for it.
        """
        source.samples += 1
        source.unsampled = min(SAMPLE_EVERY, 4**source.samples)
        n_rows = min(page.n_rows, SAMPLE_ROWS)
        batch = TupleBatch(page.cells, page.nulls, page.n_rows - n_rows, n_rows)
        bank, ledger = source.bank, source.ledger
        left = sorted(f for f in route.filters.tolist() if f >= 0)
        if not left:
            return
        visits = bank.visits.copy()

        def visit(f: int, lin: np.ndarray, fresh: bool) -> int:
            """Bits that a filter clears."""
            before = int(bank.visits[f, 2])
            bank.row_major(batch, np.array([f], np.int32), selected.active, lin, fresh=fresh)
            return int(bank.visits[f, 2]) - before

        current, trial = self._sample, self._trial
        current.begin(n_rows, source.slots.n_words, False)
        trial.begin(n_rows, source.slots.n_words, False)
        visit(left[0], trial.lin, True)  # the first call of a kernel is slower than the others
        gains = {}
        for f in left:
            began = time.perf_counter_ns()
            cleared = visit(f, trial.lin, True)
            ledger.measure(source.filter_module[f], n_rows, time.perf_counter_ns() - began)
            gains[f] = cleared
        bank.row_major(batch, np.zeros(0, np.int32), selected.active, current.lin)
        while left:
            best = max(left, key=lambda f: gains[f] / max(ledger.cost_ns[source.filter_module[f]], 1.0))
            ledger.profile(source.filter_module[best], gains[best] / n_rows)
            left.remove(best)
            if len(left) > MAX_PROFILED:
                continue
            visit(best, current.lin, False)
            for f in left:
                trial.lin[:n_rows] = current.lin[:n_rows]
                gains[f] = visit(f, trial.lin, False)
        bank.visits[:] = visits
        if count_visits:
            filters = route.filters[route.filters >= 0]
            bank.row_major(batch, filters, selected.active, trial.lin)
            source.counted_rows += n_rows
            self.learn(source)

    # ---- statistics

    def learn(self, source: Source) -> None:
        """Hand the visits that kernels counted to the ledger and the policy."""
        source.unlearned_rows = 0
        visits = source.bank.visits
        for f, (rows_in, rows_out, cleared) in enumerate(visits.tolist()):
            if rows_in:
                self._visited(source, source.filter_module[f], rows_in, rows_out, cleared, None)
        visits[:] = 0

    def _visited(self, source: Source, module: int, rows_in: int, rows_out: int, cleared: int, ns: int | None) -> None:
        ledger = source.ledger
        if ns is not None:
            cleared = (rows_in - rows_out) * int(ledger.predicates[module])
            ledger.measure(module, rows_in, ns)
        ledger.record(module, rows_in, rows_out, cleared, sampled=ns is None and self.policy.learns)
        if rows_in:
            self.policy.visited(ledger, module, rows_in, rows_out)

    def _runs(self, source: Source, route: np.ndarray) -> list[np.ndarray | PredicateModule]:
        """The route cut into runs of filters and single predicate modules."""
        runs: list[np.ndarray | PredicateModule] = []
        filters: list[int] = []
        for number in route.tolist():
            f = int(source.filter_of[number])
            if f >= 0:
                filters.append(f)
                continue
            if filters:
                runs.append(np.array(filters, np.int32))
                filters = []
            runs.append(source.module_by_number[number])
        if filters:
            runs.append(np.array(filters, np.int32))
        return runs

    def _keep_ids(self, source: Source, page: Page, batch: TupleBatch, ranks: np.ndarray) -> None:
        n_rows = batch.n_rows
        for f, filter_ in enumerate(source.bank.filters):
            if filter_.n_predicates:
                source.store.keep_ids(page, batch.first, n_rows, f, filter_.id_array()[ranks[f, :n_rows]])

    # ---- candidates

    def _candidates(self, source: Source, batch: TupleBatch, class_on: np.ndarray) -> None:
        lineage = self.lineage
        indexes = list(source.indexes.values())
        for index in indexes:
            index.learn_strings()
        done = 0
        while done < len(indexes):
            have = lineage.n_pairs
            found = indexes[done].match(
                batch, source.float_columns, source.sparse_class, class_on, lineage.pair_slot[have:], lineage.pair_row[have:]
            )
            if found < 0:
                # too little room: start again with more, the pairs of earlier indexes would be lost by growing
                lineage.more_pairs()
                lineage.n_pairs = done = 0
                continue
            lineage.n_pairs += found
            done += 1


def _stored_outcome(page: Page, module: PredicateModule, at: int, n_rows: int) -> np.ndarray:
    held = page.outcomes.get(module.number)
    return np.zeros(n_rows, np.bool_) if held is None else held[at : at + n_rows] == TRUE
