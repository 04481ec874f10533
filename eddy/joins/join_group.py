"""Groups of queries that join the same streams in the same way and share one walk over the stored rows.

Queries of a group differ in the widths of their windows, in the conditions on single inputs, in their births and in what they
select (`Join.key`); windows that count rows count alike (`stems/row_ends.py`). A commit finds each match of a group once,
whatever the number of queries, and the filters over matches say who wants it (`eddy/matching/match_filters.py`).

    + of a commit    combinations with a row that came in it; found at the first input, in the order of FROM, that has such a row
    - of a commit    combinations for which some query's part ended in it; for that query, found at the first such input

Who wants a match that began: queries all of whose windows hold its rows at the end of the commit. That its life is not empty
(semantics 26) follows; what comes and goes inside a commit is not shown, and not searched for. Where the queries of a group have
one window length the reach of the walk alone says so. A row that something else than the clock ended
(`eddy/lives/early_ends.py`) is older than any window. Slots number the queries of the group.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from eddy.joins.group_windows import GroupWindows
from eddy.joins.probes import PROBE_COST_NS, Probes, input_labels
from eddy.joins.walk import PART_ROWS, Combinations, Reach, Rows, Walker, n_rows
from eddy.lives.early_ends import CommitPoint, EarlyEnds, merged
from eddy.matching.match_filters import ALIVE, ALIVE_TOO, ENDED, MatchBatch, MatchFilters, count_up_to
from eddy.routing.base import Policy
from eddy.streams.outputs import Outputs
from eddy.streams.source import Source
from filters.expressions.residual import NOT_TRUE, TRUE, UNTRIED, PredicateModule
from filters.index.bank import Prepared
from lineage.bits import clear_bit, set_bit, slots_of, words
from lineage.elements import FOREVER
from lineage.slots import Slots, resized
from queries.joins import Join
from stems.frame import RowsFrame
from windows.spec import WindowSpec

if TYPE_CHECKING:
    from eddy.joins.join_query import JoinQuery

#: Bits of the matrix of a part at most, as for rows (`eddy/commit/committer.py`).
_MAX_BITS = 1 << 25
#: Batches of an input, all of which were wanted, until it is asked again.
ASK_EVERY = 16
#: After every commit there is.
_LATEST = 2**62

#: By input, how many rows a window holds, 0 if it does not count, and of which keys.
Counts = tuple[tuple[int, tuple[int, ...]], ...]


@dataclass(frozen=True, slots=True)
class Part:
    """Matches of one sign made ready to be listed for the queries of a mask."""

    found: Combinations
    prepared: Prepared
    mask: np.ndarray
    #: of matches that ended: by input, the window width of those queries
    widths: list[int] | None
    #: when all of them take effect, if it is not their rows that say so
    at: int | None = None
    #: the clock after the commit: no end is later, but of matches that no query of the mask has
    upto: int = FOREVER


class Before(NamedTuple):
    """The state of a group before a commit, by input: the ends of the stores, and the oldest row in some window."""

    #: the number of the commit that is to come
    commit: int
    ends: list[int]
    oldest: list[int]


class JoinGroup:
    """The queries of one join, and the search for their matches."""

    #: whether its queries are streams
    is_stream = False

    def __init__(self, join: Join, sources: list[Source], counts: Counts, policy: Policy) -> None:
        self.join = join
        self.counts = counts
        self.sources = sources
        #: by input, what ends rows besides the clock; None where nothing does
        self.ends = [
            None if self.is_stream else EarlyEnds.of(source, *count) for source, count in zip(sources, counts, strict=True)
        ]
        self.timeline = sources[0].timeline
        self.name = ", ".join(source.name for source in sources)
        self.column_names = _column_names(sources)
        self.walker = Walker(join, sources)
        self.probes = Probes(join, sources, self.walker, policy)
        #: queries that run in it or can be read, paused ones included
        self.n_users = 0
        n_inputs = len(sources)
        self.slots = Slots(self._assign, self._resize)
        self.outputs = Outputs()
        self.active = np.zeros(1, np.uint64)
        self.results = np.zeros(64, np.int64)
        self._leg_slots = np.zeros((n_inputs, 64), np.int32)
        self._widths = np.zeros((n_inputs, 64), np.int64)
        self._births = np.zeros((n_inputs, 64), np.int64)
        #: queries by slot
        self._members: dict[int, JoinQuery] = {}
        #: counts changes of the queries
        self._version = 0
        self._windows = GroupWindows()
        self._match_filters = MatchFilters(sources, 64)
        #: what the filters were derived from: the queries, and the predicates of those streams whose regions they look at
        self._filtered = (-1, 0)
        self._region_sources: list[Source] = []
        #: by input, batches until it is asked again which of them anybody wants
        self._unasked = [0] * n_inputs

    @property
    def key(self) -> tuple[object, ...]:
        """The common properties of the group's queries."""
        return self.join.key, self.counts, self.is_stream

    def release(self) -> None:
        """Give back all indexes: the group has no query any more."""
        self.walker.release()
        for ends in self.ends:
            if ends is not None:
                ends.release()

    def recall(self, births: Sequence[int]) -> None:
        """Make the indexes hold the rows from these positions on, by input, and the ends of all stored rows."""
        self.walker.recall(births)
        for ends in self.ends:
            if ends is not None:
                ends.recall()

    # ---- queries

    def _assign(self, slot: int) -> None:
        self.results[slot] = 0

    def _resize(self, n_words: int) -> None:
        n = n_words * 64
        self.active = resized(self.active, n_words, 0)
        self.results = resized(self.results, n, 0)
        self.outputs.resize(n)
        self._leg_slots, self._widths, self._births = (
            np.array([resized(row, n, 0) for row in held]) for held in (self._leg_slots, self._widths, self._births)
        )

    def add(self, query: JoinQuery, births: tuple[int, ...]) -> int | None:
        """Add a running query; returns its slot, None if no match can satisfy it."""
        if any(leg.slot is None for leg in query.legs):
            return None
        slot = self.slots.take()
        for k, (leg, window) in enumerate(zip(query.legs, query.windows, strict=True)):
            assert leg.slot is not None
            self._leg_slots[k, slot] = leg.slot
            self._widths[k, slot] = window.width_us
            self._births[k, slot] = births[k]
        set_bit(self.active, slot)
        self._members[slot] = query
        self.outputs.add(slot, query.id, 0)
        for source, stem in self._first_stems():
            source.deferral.add_stem(stem, PROBE_COST_NS)
        self.probes.ledger.predicates[:] += 1
        self._version += 1
        return slot

    def remove(self, query: JoinQuery, slot: int) -> None:
        """Remove a query that stops running."""
        clear_bit(self.active, slot)
        del self._members[slot]
        self.outputs.remove(slot, query.id, None)
        for source, stem in self._first_stems():
            source.deferral.remove_stem(stem)
        self.slots.give_back(slot)
        self.probes.ledger.predicates[:] -= 1
        self._version += 1
        self.slots.shrink()

    def _first_stems(self) -> list[tuple[Source, str]]:
        """By input, the SteM that its rows probe first; none for a single input."""
        orders = [(source, self.walker.order(k)) for k, source in enumerate(self.sources)]
        return [(source, self.probes.ledger.names[order[0]]) for source, order in orders if order]

    @property
    def _filters(self) -> MatchFilters:
        """The filters over matches, brought up to date with the queries and the streams' predicates on demand."""
        # each only grows
        state = self._version, sum(source.modules.bank.version for source in self._region_sources)
        if state != self._filtered and self.slots.taken:
            self._unasked = [0] * len(self.sources)
            found = self._match_filters = MatchFilters(self.sources, len(self.results))
            counted = [ends is not None for ends in self.ends]
            found.derive(slots_of(self.active), self._leg_slots, self._widths, self._births, counted)
            self._region_sources = [source for k, source in enumerate(self.sources) if found.has_regions(k)]
            self._filtered = self._version, sum(source.modules.bank.version for source in self._region_sources)
        return self._match_filters

    # ---- matches

    def before(self, commit: int) -> Before:
        """Record the state of the inputs before a commit."""
        self._windows.derive(self._version, self.active, self._widths, self._members)
        return Before(commit, self._taken(), [self._oldest(k, self.timeline.now) for k in range(len(self.sources))])

    def _taken(self) -> list[int]:
        """By input, the end of the stream's rows."""
        return [source.store.end for source in self.sources]

    def _oldest(self, k: int, clock: int) -> int:
        """A position of an input below which no window holds a row, at that clock."""
        window, store, ends = self._windows.widest[k], self.sources[k].store, self.ends[k]
        return window.oldest if ends is None else max(
            store.watermark,
            store.first_after(clock - window.window.width_us),
            ends.first_alive(CommitPoint(clock, store.end, _LATEST)),
        )  # fmt: skip

    def begun(self, before: Before, after: int, batch_rows: int) -> Iterator[Part]:
        """Matches with a new row of a commit that moved the clock to `after`."""
        starts, ends = before.ends, self._taken()
        if starts == ends:
            return
        self._try_deferred(before, batch_rows)
        lows = [min(self._oldest(k, after), end) for k, end in enumerate(ends)]
        for first in range(len(self.sources)):
            begin = max(starts[first], lows[first])
            if begin < ends[first]:
                reach = self._reach(first, lows, starts, ends)
                for found in self._walk(first, Reach(begin, ends[first]), reach, batch_rows):
                    self._count_partners(found, first, min(batch_rows, ends[first] - begin))
                    batch = self._batch(found, reach)
                    for k in range(len(self.sources)):
                        self._add_age(batch, found, k, reach[k].low, CommitPoint(after, ends[k], before.commit), ALIVE)
                    yield Part(found, batch.prepare(), self.active, None)

    @staticmethod
    def _reach(first: int, lows: list[int], starts: list[int], ends: list[int]) -> list[Reach]:
        """The positions of each input that a walk from `first` may use, so that it finds each new match once."""
        reach = [Reach(min(low, start), start) for low, start in zip(lows[:first], starts)]
        return reach + [Reach(low, end) for low, end in zip(lows[first:], ends[first:])]

    def ended(self, before: Before, clock: int, after: int, batch_rows: int) -> Iterator[Part]:
        """Matches of older rows that were alive at the clock before a commit and are not after it; by window class."""
        n_inputs, taken = len(self.sources), self._taken()
        for first in range(n_inputs):
            leaving = self._leaving(first, before, after)
            if n_rows(leaving):
                lows = [self._oldest(k, after) if k < first else before.oldest[k] for k in range(n_inputs)]
                reach = [Reach(min(low, end), end) for low, end in zip(lows, before.ends)]
                for found in self._walk(first, leaving, reach, batch_rows):
                    batch = self._batch(found, reach)
                    for k in range(n_inputs):
                        stood = CommitPoint(clock, before.ends[k], before.commit - 1)
                        self._add_age(batch, found, k, reach[k].low, stood, ALIVE)
                        if k <= first:
                            now = CommitPoint(after, taken[k], before.commit)
                            self._add_age(batch, found, k, reach[k].low, now, ENDED if k == first else ALIVE_TOO)
                    prepared = batch.prepare()
                    for widths, mask in self._windows.classes:
                        yield Part(found, prepared, mask, widths, upto=after)

    def leaves(self, before: Before, after: int) -> bool:
        """Whether older rows left some window in a commit."""
        return any(n_rows(self._leaving(k, before, after)) for k in range(len(self.sources)))

    def _leaving(self, k: int, before: Before, after: int) -> Rows:
        """Positions of an input that left at least one query's window in this commit, by time or early end."""
        low, window, end = before.oldest[k], self._windows.narrowest[k], before.ends[k]
        store, ends = self.sources[k].store, self.ends[k]
        if ends is None:
            return Reach(low, min(window.oldest, end))
        aged = np.arange(low, max(low, min(store.first_after(after - window.window.width_us), end)))
        stood = CommitPoint(self.timeline.now, end, before.commit - 1)
        ended = ends.ended_between(stood, CommitPoint(after, store.end, before.commit))
        return merged([aged, *(rows[(low <= rows) & (rows < end)] for rows in ended)])

    def _walk(self, first: int, rows: Rows, reach: list[Reach], batch_rows: int) -> Iterator[Combinations]:
        """Walk from rows of an input, a batch at a time."""
        part_rows = max(64, min(PART_ROWS, _MAX_BITS // len(self.results)))
        if len(self.sources) == 1:
            # nothing is probed, so what comes out is as large as what goes in
            batch_rows = min(batch_rows, part_rows)
        for at in range(0, n_rows(rows), batch_rows):
            some: Rows
            if isinstance(rows, Reach):
                some = Reach(rows.low + at, min(rows.hi, rows.low + at + batch_rows))
            else:
                some = rows[at : at + batch_rows]
            yield from self.walker.walk(first, some, self.probes.order(first), reach, self._keep, self.probes.visited, part_rows)

    def _keep(self, found: Combinations, added: int) -> Combinations:
        """Keep the partial matches that some query may still want; whole matches are filtered when they are listed."""
        bound, n_found = found.inputs, len(found)
        if len(bound) == len(self.sources) or not n_found:
            return found
        # where all is wanted, it is asked now and then only
        self._unasked[added] -= 1
        if self._unasked[added] > 0:
            return found
        batch = self._filters.batch(n_found)
        for k in bound:
            batch.add_stored(k, found.at(k))
        union = np.empty(words(n_found), np.uint64)
        if batch.prepare().wanted(self.active, union):
            self._unasked[added] = ASK_EVERY
            return found
        return found.take(np.flatnonzero(np.unpackbits(union.view(np.uint8), bitorder="little")[:n_found]))

    # ---- functions that wait for a partner

    def _try_deferred(self, before: Before, batch_rows: int) -> None:
        """Call the deferred functions, for rows of new matches that some of their queries may want.

        Matches that come and go inside the commit are included: a reader of changes nets them.
        """
        modules = [
            (k, source.modules.by_number[module], mask)
            for k, source in enumerate(self.sources)
            if source.modules.by_text
            for module, mask in self._filters.outcomes(k)
            if source.deferral.pending(module)
        ]
        if not modules:
            return
        ends = [source.store.end for source in self.sources]
        for first in range(len(self.sources)):
            begin = before.ends[first]
            reach = self._reach(first, before.oldest, before.ends, ends)
            for low in range(begin, ends[first], batch_rows):
                span = Reach(low, min(ends[first], low + batch_rows))
                order = self.probes.order(first)
                for found in self.walker.walk(first, span, order, reach, lambda held, added: held):
                    prepared = self._batch(found, reach, outcomes=False).prepare()
                    for k, module, mask in modules:
                        self._try(found, prepared, k, module, mask)

    def _try(self, found: Combinations, prepared: Prepared, k: int, module: PredicateModule, mask: np.ndarray) -> None:
        """Call a function for an input's rows that it has not seen, in matches wanted so far."""
        source, positions = self.sources[k], found.at(k)
        untried = source.gatherer.outcomes(module.number, positions) == UNTRIED
        if not untried.any():
            return
        union = np.empty(words(len(found)), np.uint64)
        if not prepared.wanted(mask & self.active, union):
            untried &= np.unpackbits(union.view(np.uint8), bitorder="little")[: len(found)].view(np.bool_)
        rows = np.unique(positions[untried])
        if len(rows):
            began = time.perf_counter_ns()
            frame = RowsFrame([source.gatherer], [source.dictionaries], [rows])
            outcomes = module.outcome(frame, np.ones(len(rows), np.bool_))
            source.modules.ledger.measure(module.number, len(rows), time.perf_counter_ns() - began)
            source.store.outcomes.put(module.number, rows, np.where(outcomes, TRUE, NOT_TRUE))
            source.deferral.tried(module, len(rows), int(np.count_nonzero(outcomes)), self.probes.policy)

    def _count_partners(self, found: Combinations, first: int, rows_in: int) -> None:
        """Report to the first input's stream, now and then, how many of its rows found a partner."""
        deferral = self.sources[first].deferral
        if len(self.sources) > 1 and deferral.counts():
            stem = self.walker.order(first)[0]
            n_found = min(rows_in, len(np.unique(found.at(first))))
            deferral.probed(
                self.probes.ledger.names[stem], rows_in, n_found, float(self.probes.ledger.cost_ns[stem]), self.probes.policy
            )

    # ---- attributes of matches

    def _batch(self, found: Combinations, reach: list[Reach], outcomes: bool = True) -> MatchBatch:
        """A batch of matches with the attributes stored with their rows and, for young queries, their births."""
        batch = self._filters.batch(len(found))
        for k in range(len(self.sources)):
            batch.add_stored(k, found.at(k), outcomes)
            batch.add_birth(k, found.at(k), reach[k].low)
        return batch

    def _add_age(self, batch: MatchBatch, found: Combinations, k: int, low: int, at: CommitPoint, bound: int) -> None:
        """Add the age of an input's rows, none of them before `low`, at the given point."""
        ends, widths = self.ends[k], self._filters.widths[k]
        if len(widths) > 1 or ends is not None:
            store = self.sources[k].store
            lows = np.full(len(widths), max(low, store.watermark))
            # the wider a window, the earlier the first row that is alive in it
            alive = store.first_after_each(at.clock - widths, lows)[::-1]
            ranks = np.empty(len(found), np.int32)
            count_up_to(np.ascontiguousarray(alive), found.at(k), ranks)
            np.subtract(len(widths), ranks, out=ranks)
            if ends is not None:
                ranks[ends.ends_at(found.at(k), at) <= at.clock] = len(widths)
            batch.add_age(k, ranks, bound)

    def nothing(self) -> Part:
        """A part without matches."""
        rows: dict[int, Rows] = {k: np.zeros(0, np.int64) for k in range(len(self.sources))}
        return Part(Combinations(rows, 0), self._filters.batch(0).prepare(), self.active, None)

    def lives(self, found: Combinations) -> tuple[np.ndarray, np.ndarray]:
        """The times of the rows of matches by input, and the latest start of each match."""
        lives = [source.gatherer.lives(found.at(k)) for k, source in enumerate(self.sources)]
        return np.array([times for times, _ in lives]), np.max([starts for _, starts in lives], axis=0)

    def numbers(self, found: Combinations) -> np.ndarray:
        """The row numbers of matches, `[matches, inputs]`; of a single input `[matches]`."""
        columns = [source.store.numbers_at(found.at(k)) for k, source in enumerate(self.sources)]
        return columns[0] if len(columns) == 1 else np.column_stack(columns)

    def early_ends(self, found: Combinations) -> np.ndarray:
        """The earliest end of each match's rows other than by the clock."""
        earliest = np.full(len(found), FOREVER)
        for k, ends in enumerate(self.ends):
            if ends is not None:
                now = CommitPoint(self.timeline.now, self.sources[k].store.end, _LATEST)
                np.minimum(earliest, ends.ends_at(found.at(k), now), out=earliest)
        return earliest

    # ---- upkeep

    def check(self, members: dict[int, JoinQuery]) -> None:
        """Assert all invariants; `members` are the queries on the slots."""
        self.slots.check(set(members))
        assert set(slots_of(self.active).tolist()) == set(members), "the active slots are those of queries"
        for slot, query in members.items():
            assert self.outputs.readers(slot) == [(query.id, 0)], "a slot lists its query"
            assert self._leg_slots[:, slot].tolist() == [leg.slot for leg in query.legs], "a slot knows the legs of its query"
            assert self._widths[:, slot].tolist() == [window.width_us for window in query.windows], "a slot knows its windows"
            assert self.counts == counts_of(query.windows), "windows of a group count alike"
        assert (self.probes.ledger.predicates == len(members)).all(), "every query has a predicate on every SteM"


def counts_of(windows: Sequence[WindowSpec]) -> Counts:
    """The row counts and partitions of windows."""
    return tuple((window.rows, window.partition) for window in windows)


def _column_names(sources: list[Source]) -> list[str]:
    """The column names of all inputs; names that several have get the stream's name, streams their number."""
    common = Counter(name for source in sources for name in source.schema.names)
    found = []
    for source, prefix in zip(sources, input_labels(sources), strict=True):
        found += [name if common[name] == 1 else f"{prefix}.{name}" for name in source.schema.names]
    return found
