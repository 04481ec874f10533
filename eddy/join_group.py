"""The queries that join the same streams in the same way: they share one walk over the stored rows.

Queries of a group differ in the widths of their windows, in the conditions on single inputs, in their births and in what they
select (`Join.key`); windows that count rows count alike (`stems/row_ends.py`). A commit finds each match of a group once,
whatever the number of queries, and the filters over matches say who wants it (`eddy/match_filters.py`).

    + of a commit    combinations with a row that came in it; found at the first input, in the order of FROM, that has such a row
    - of a commit    combinations for which some query's part ended in it; for that query, found at the first such input

Who wants a match that began: queries all of whose windows hold its rows when the last of them starts (semantics 26). Those of
them that hold the rows at the end of the commit too are shown. A row that was displaced is older than any window. Slots number
the queries of the group.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from eddy.legs import put_bit
from eddy.match_filters import ALIVE, ALIVE_TOO, ENDED, MatchBatch, MatchFilters
from eddy.outputs import Outputs
from eddy.policies.base import Ledger, Policy
from eddy.source import Source
from eddy.walk import PART_ROWS, Combinations, Reach, Walker
from filters.bank import Prepared
from lineage.bits import slots_of, words
from lineage.elements import FOREVER
from lineage.kernels import kernel
from lineage.slots import Slots, resized
from queries.joins import Join

if TYPE_CHECKING:
    from eddy.join_query import JoinQuery

#: Bits of the matrix of a part at most, as for rows (`eddy/committer.py`).
_MAX_BITS = 1 << 25
#: The age of a row that was displaced.
_DISPLACED = 2**63 - 1
#: A guess of the cost of a probe until it is measured.
_PROBE_COST_NS = 50.0


@kernel("int64(int64[:,::1], int64[:,::1], int64, int64[::1], int64[::1], int64[::1])")
def live_matches(times: np.ndarray, starts: np.ndarray, n: int, widths: np.ndarray, latest: np.ndarray, rows: np.ndarray) -> int:
    """List the matches whose rows all live when the last of them starts, in windows of these widths; returns how many.

    `times` and `starts` are `[inputs, matches]`; `latest` gets the latest start of each match listed.
    """
    kept = 0
    for i in range(n):
        start = starts[0, i]
        for k in range(1, len(widths)):
            start = max(start, starts[k, i])
        alive = True
        for k in range(len(widths)):
            alive &= start - times[k, i] < widths[k]
        latest[kept] = start
        rows[kept] = i
        kept += alive
    return kept


@dataclass(slots=True)
class Matches:
    """Matches with the times of their rows `[inputs, matches]` and their latest starts."""

    found: Combinations
    times: np.ndarray
    latest: np.ndarray

    def __len__(self) -> int:
        return len(self.latest)

    def take(self, rows: np.ndarray) -> Matches:
        return Matches(self.found.take(rows), self.times[:, rows], self.latest[rows])


@dataclass(frozen=True, slots=True)
class Part:
    """Matches of one sign made ready to be listed for the queries of a mask."""

    found: Combinations
    prepared: Prepared
    mask: np.ndarray
    #: when each takes effect
    times: np.ndarray
    #: whether they are results to be counted, and changes to be shown: a match may end in the commit in which it began
    counted: bool
    shown: bool


class JoinGroup:
    """The queries of one join, and how their matches are found."""

    def __init__(
        self, join: Join, sources: list[Source], counts: tuple[tuple[int, tuple[int, ...]], ...], policy: Policy
    ) -> None:
        self.join = join
        #: by input, how many rows a window holds, 0 if it does not count, and of which keys
        self.counts = counts
        self.sources = sources
        #: by input, when newer rows displace others; None where windows do not count
        self.ends = [source.row_ends.hold(*count) if count[0] else None for source, count in zip(sources, counts, strict=True)]
        self.timeline = sources[0].timeline
        self.name = ", ".join(source.name for source in sources)
        self.column_names = _column_names(sources)
        self.walker = Walker(join, sources)
        self._policy = policy
        self.ledger = Ledger()
        for name in self.stem_names():
            self.ledger.add(name, _PROBE_COST_NS)
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
        #: window widths by input -> the slots that have them
        self._classes: list[tuple[list[int], np.ndarray]] = []
        self._filters = MatchFilters(sources, 64)
        #: counts changes of the queries, and what the filters were derived from
        self._version = 0
        self._derived: tuple[int, ...] = ()
        self._buffer = np.zeros((2, n_inputs, PART_ROWS), np.int64)

    @property
    def key(self) -> tuple[object, ...]:
        """What the queries of the group have in common."""
        return self.join.key, self.counts

    def release(self) -> None:
        """Nobody reads it any more."""
        self.walker.release()
        for source, ends in zip(self.sources, self.ends, strict=True):
            if ends is not None:
                source.row_ends.release(ends)

    def stem_names(self) -> list[str]:
        """By input, the name of the SteM through which it is probed (semantics 23)."""
        names = []
        for k, source in enumerate(self.sources):
            columns: list[int] = []
            for edge in self.join.equalities:
                if k in (edge.left, edge.right) and not columns:
                    columns = [column.position for column in edge.key(k)]
            for band in self.join.bands:
                if k in (band.left, band.right) and not columns:
                    columns = [(band.left_column if k == band.left else band.right_column).position]
            key = ",".join(source.schema.names[column] for column in columns)
            names.append(f"stem:{source.name}.{key}" if columns else f"stem:{source.name}")
        return names

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
        """A query begins to run; returns its slot, None if no match can satisfy it."""
        if any(leg.slot is None for leg in query.legs):
            return None
        slot = self.slots.take()
        for k, (leg, window) in enumerate(zip(query.legs, query.windows, strict=True)):
            assert leg.slot is not None
            self._leg_slots[k, slot] = leg.slot
            self._widths[k, slot] = window.width_us
            self._births[k, slot] = births[k]
        put_bit(self.active, slot, True)
        self.outputs.add(slot, query.id, 0)
        self.ledger.predicates[:] += 1
        self._version += 1
        return slot

    def remove(self, query: JoinQuery, slot: int) -> None:
        """A query runs no more."""
        put_bit(self.active, slot, False)
        self.outputs.remove(slot, query.id, None)
        self.slots.give_back(slot)
        self.ledger.predicates[:] -= 1
        self._version += 1
        if self.slots.taken * 4 <= self.slots.n_words * 64:
            self.slots.shrink(int(slots_of(self.active)[-1]) if self.slots.taken else -1)

    def _derive(self) -> None:
        """Bring the filters up to date with the queries and with the streams' predicates."""
        state = (self._version, *(source.bank.version for source in self.sources), *(s.version for s in self.sources))
        if state == self._derived:
            return
        self._derived = state
        active = slots_of(self.active)
        self._filters = MatchFilters(self.sources, len(self.results))
        self._filters.derive(active, self._leg_slots, self._widths, self._births, [ends is not None for ends in self.ends])
        vectors, which = np.unique(self._widths[:, active].T, axis=0, return_inverse=True)
        self._classes = []
        for number, vector in enumerate(vectors.tolist()):
            mask = np.zeros_like(self.active)
            for slot in active[which.ravel() == number].tolist():
                put_bit(mask, slot, True)
            self._classes.append((vector, mask))

    # ---- matches that began

    def begun(self, starts: list[int], before: int, after: int, batch_rows: int) -> Iterator[Part]:
        """Matches with a row at or behind `starts`, the ends of the stores before a commit that took the clock to `after`."""
        if not self.slots.taken:
            return
        self._derive()
        ends = [source.store.end for source in self.sources]
        lows = [min(self._oldest(k, before, starts[k]), end) for k, end in enumerate(ends)]
        for first in range(len(self.sources)):
            reach = [Reach(min(low, start), start) for low, start in zip(lows[:first], starts)]
            reach += [Reach(low, end) for low, end in zip(lows[first:], ends[first:])]
            for low in range(max(starts[first], lows[first]), ends[first], batch_rows):
                positions = np.arange(low, min(ends[first], low + batch_rows))
                for found in self._walk(first, positions, reach):
                    yield from self._begun_parts(found, reach, after)

    def _oldest(self, k: int, clock: int, taken: int) -> int:
        """A position of an input below which no window holds a row at a clock, when the rows before `taken` were there."""
        source, ends = self.sources[k], self.ends[k]
        first = max(source.store.first_after(clock - int(self._filters.widest()[k])), source.store.watermark)
        return first if ends is None else max(first, ends.first_alive(taken))

    def _ages(self, found: Combinations, times: np.ndarray, clock: np.ndarray | int, taken: list[int]) -> np.ndarray:
        """How old the rows of matches are at a clock, `[inputs, matches]`, when the rows before `taken` were there."""
        ages: np.ndarray = clock - times
        for k, ends in enumerate(self.ends):
            if ends is not None:
                ages[k, ends.ends_at(found.at(k), taken[k]) <= clock] = _DISPLACED
        return ages

    def _taken(self) -> list[int]:
        """By input, the end of the stream's rows."""
        return [source.store.end for source in self.sources]

    def _walk(self, first: int, positions: np.ndarray, reach: list[Reach]) -> Iterator[Combinations]:
        part_rows = max(64, min(PART_ROWS, _MAX_BITS // len(self.results)))
        n_inputs = len(self.sources)

        def keep(found: Combinations, added: int) -> Combinations:
            """What some query may still want; of whole matches that is seen when they are listed."""
            bound = [k for k, column in enumerate(found.positions) if column is not None]
            if len(bound) == n_inputs or not len(found) or not any(self._filters.stored(k) for k in bound):
                return found
            return self._wanted(found, bound)

        yield from self.walker.walk(first, positions, self._order(first), reach, keep, self._visited, part_rows)

    def _wanted(self, found: Combinations, bound: list[int]) -> Combinations:
        """The combinations that some query wants by what is stored with their rows."""
        n = len(found)
        batch = self._filters.batch(n)
        for k in bound:
            batch.add_stored(k, found.at(k))
        union = np.empty(words(n), np.uint64)
        if batch.prepare().wanted(self.active, union):
            return found
        return found.take(np.flatnonzero(np.unpackbits(union.view(np.uint8), bitorder="little")[:n]))

    def _begun_parts(self, found: Combinations, reach: list[Reach], after: int) -> Iterator[Part]:
        matches = self._live(found)
        if not len(matches):
            return
        prepared = self._prepare(matches, reach, matches.latest)
        ages = self._ages(matches.found, matches.times, after, self._taken())
        if (ages.max(axis=1) < self._filters.narrowest()).all():
            yield Part(matches.found, prepared, self.active, matches.latest, True, True)
            return
        yield Part(matches.found, prepared, self.active, matches.latest, True, False)
        shown = matches.take(np.flatnonzero((ages < self._filters.widest()[:, None]).all(axis=0)))
        if len(shown):
            prepared = self._prepare(shown, reach, np.full(len(shown), after))
            yield Part(shown.found, prepared, self.active, shown.latest, False, True)

    def _live(self, found: Combinations) -> Matches:
        """The matches that live in some query's windows when they begin."""
        n = len(found)
        times, starts = self._lives(found)
        latest, rows = np.empty(n, np.int64), np.empty(n, np.int64)
        kept = live_matches(times, starts, n, self._filters.widest(), latest, rows)
        if kept < n:
            return Matches(found.take(rows[:kept]), times[:, rows[:kept]], latest[:kept])
        return Matches(found, times[:, :n], latest)

    def _lives(self, found: Combinations) -> tuple[np.ndarray, np.ndarray]:
        """Effective times and starts of the rows of matches, `[inputs, matches]`; valid until the next call."""
        times, starts = self._buffer
        for k, source in enumerate(self.sources):
            source.gatherer.lives(found.at(k), times[k], starts[k])
        return times, starts

    def _prepare(self, matches: Matches, reach: list[Reach], clock: np.ndarray) -> Prepared:
        """Matches ready to be listed for the queries whose windows hold their rows at the clock."""
        batch = self._filters.batch(len(matches))
        ages = self._ages(matches.found, matches.times, clock, self._taken())
        for k in range(len(self.sources)):
            self._add_input(batch, matches, k, reach[k].low)
            batch.add_age(k, ages[k], ALIVE)
        return batch.prepare()

    def _add_input(self, batch: MatchBatch, matches: Matches, k: int, low: int) -> None:
        batch.add_stored(k, matches.found.at(k))
        batch.add_birth(k, matches.found.at(k), low)

    # ---- matches that ended

    def ended(self, starts: list[int], before: int, after: int, batch_rows: int) -> Iterator[Part]:
        """Matches alive at `before`, of rows in front of `starts`, that are not at `after`; by window class."""
        taken = self._taken()
        displacing = starts != taken and any(ends is not None for ends in self.ends)
        if not self.slots.taken or (before == after and not displacing):
            return
        self._derive()
        n_inputs = len(self.sources)
        for first in range(n_inputs):
            early = [
                self._oldest(k, after, taken[k]) if k < first else self._oldest(k, before, starts[k]) for k in range(n_inputs)
            ]
            lows = [min(low, start) for low, start in zip(early, starts)]
            reach = [Reach(low, end) for low, end in zip(lows, starts)]
            leaving = self._leaving(first, lows[first], starts[first], after)
            for at in range(0, len(leaving), batch_rows):
                for found in self._walk(first, leaving[at : at + batch_rows], reach):
                    yield from self._ended_parts(found, first, lows, starts, before, after)

    def _leaving(self, k: int, low: int, start: int, after: int) -> np.ndarray:
        """Positions of an input from `low` on, in front of `start`, of the rows that leave some window by a clock."""
        stop = min(self.sources[k].store.first_after(after - int(self._filters.narrowest()[k])), start)
        aged = np.arange(low, max(low, stop))
        ends = self.ends[k]
        if ends is None:
            return aged
        displaced = ends.displaced_by(start, self.sources[k].store.end)
        return np.union1d(aged, displaced[(low <= displaced) & (displaced < start)])

    def _ended_parts(
        self, found: Combinations, first: int, lows: list[int], starts: list[int], before: int, after: int
    ) -> Iterator[Part]:
        n = len(found)
        times, _ = self._lives(found)
        matches = Matches(found, times[:, :n], np.zeros(n, np.int64))
        batch = self._filters.batch(n)
        then = self._ages(found, matches.times, before, starts)
        now = self._ages(found, matches.times, after, self._taken())
        for k in range(len(self.sources)):
            self._add_input(batch, matches, k, lows[k])
            batch.add_age(k, then[k], ALIVE)
            if k <= first:
                batch.add_age(k, now[k], ENDED if k == first else ALIVE_TOO)
        prepared = batch.prepare()
        displaced = self._displaced(found)
        for widths, mask in self._classes:
            ends = np.minimum((matches.times + np.array(widths)[:, None]).min(axis=0), displaced)
            if ((before <= ends) & (ends <= after)).any():
                yield Part(found, prepared, mask, ends, False, True)

    def _displaced(self, found: Combinations) -> np.ndarray:
        """When the first row of each match is displaced."""
        earliest = np.full(len(found), FOREVER)
        for k, ends in enumerate(self.ends):
            if ends is not None:
                np.minimum(earliest, ends.ends_at(found.at(k), self.sources[k].store.end), out=earliest)
        return earliest

    # ---- routing

    def _order(self, first: int) -> list[int]:
        """The order in which the other inputs are added, by the policy where there is a choice."""
        if len(self.sources) == 2:
            return [1 - first]
        bound, order = {first}, []
        while len(bound) < len(self.sources):
            ready = np.array(self.walker.ready(bound), np.int32)
            order.append(int(self._policy.route(self.ledger, ready)[0]) if len(ready) > 1 else int(ready[0]))
            bound.add(order[-1])
        return order

    def _visited(self, added: int, rows_in: int, rows_out: int, ns: int) -> None:
        ledger, modules = self.ledger, np.array([added])
        taken, returned = np.array([rows_in]), np.array([rows_out])
        ledger.measure(added, rows_in, ns)
        cleared = (taken - returned) * ledger.predicates[modules]
        ledger.record(modules, taken, returned, cleared, sampled=False)
        self._policy.visited(ledger, modules, taken, returned)

    # ---- upkeep

    def check(self, members: dict[int, JoinQuery]) -> None:
        """All invariants; `members` are the queries on the slots."""
        self.slots.check(set(members))
        assert set(slots_of(self.active).tolist()) == set(members), "the active slots are those of queries"
        for slot, query in members.items():
            assert self.outputs.readers(slot) == [(query.id, 0)], "a slot lists its query"
            assert self._leg_slots[:, slot].tolist() == [leg.slot for leg in query.legs], "a slot knows the legs of its query"
            assert self._widths[:, slot].tolist() == [window.width_us for window in query.windows], "a slot knows its windows"
            assert self.counts == tuple((w.rows, w.partition) for w in query.windows), "windows of a group count alike"
        assert (self.ledger.predicates == len(members)).all(), "every query has a predicate on every SteM"


def _column_names(sources: list[Source]) -> list[str]:
    """The columns of all inputs; names that several have are told apart by the stream, streams by their number."""
    common = Counter(name for source in sources for name in source.schema.names)
    found = []
    seen: Counter[str] = Counter()
    for source in sources:
        seen[source.name] += 1
        prefix = source.name if seen[source.name] == 1 else f"{source.name}#{seen[source.name]}"
        found += [name if common[name] == 1 else f"{prefix}.{name}" for name in source.schema.names]
    return found
