"""Filters over matches: the conditions of a join's queries, and which queries want which combination of rows.

A match is a row of a virtual stream, and what its queries demand of it is one interval on each of its **attributes**, as in a
grouped filter (`filters/index/grouped.py`), whatever it comes from:

    region      of a stored row on one column of its stream         rank by the region id kept with the row, or by the
                                                                    value of a table's version
    outcome     of a predicate module on a stored row                1 where it was true
    age         of a row when the match began or at a clock         number of window widths that it has outlived, by its
                                                                    position: rows are stored in order of time
    birth       position of a row                                   number of births not after it

    query q wants match m   iff   low[a, q] <= rank(a, m) < high[a, q]   for every attribute a of the route

So matches are matched and listed by the kernels that match rows (`filters/index/matching.py`). The bounds on regions are those
of the streams' own banks, looked up by the slot of each query's leg, and derived anew, where there are any, when a predicate has
come or
gone: nothing is
kept per match, and 4 bytes per filtered attribute with a stored row, however many queries there are.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from eddy.streams.source import Source
from filters.expressions.residual import TRUE
from filters.index.bank import Layout, Places, Pool, Prepared
from filters.index.cuts import NO_LIMIT
from filters.index.matching import BoundArrays
from filters.index.regions import find_rank
from lineage.bits import words
from lineage.kernels import kernel

#: Bounds that are compared one by one, several positions at a time, instead of searched.
FEW_BOUNDS = 32

#: The bounds of an age: alive at one clock, alive at a second one, not alive at a clock.
ALIVE, ALIVE_TOO, ENDED = 0, 1, 2


@kernel("void(int64[::1], int64[::1], int32[::1])")
def count_up_to(bounds: np.ndarray, positions: np.ndarray, ranks: np.ndarray) -> None:
    """`ranks[i]` = the number of ascending bounds that are at most position i."""
    if len(bounds) <= FEW_BOUNDS:
        for i in range(len(positions)):
            ranks[i] = 0
        for k in range(len(bounds)):
            bound = bounds[k]
            for i in range(len(positions)):
                ranks[i] += np.int32(bound <= positions[i])
        return
    for i in range(len(positions)):
        ranks[i] = find_rank(positions[i], bounds, 0, len(bounds))


class Region:
    """The region of an input's row on one column."""

    __slots__ = ("source", "filter", "n_regions")

    def __init__(self, source: Source, filter_: int) -> None:
        self.source = source
        self.filter = filter_
        self.n_regions = source.modules.bank.filters[filter_].n_regions

    def ranks(self, positions: np.ndarray, out: np.ndarray) -> None:
        self.source.ranks_at(self.filter, positions, out)


class Outcome:
    """Whether a predicate module is true on an input's row."""

    __slots__ = ("source", "module", "n_regions")

    def __init__(self, source: Source, module: int) -> None:
        self.source = source
        self.module = module
        self.n_regions = 3

    def ranks(self, positions: np.ndarray, out: np.ndarray) -> None:
        np.equal(self.source.gatherer.outcomes(self.module, positions), TRUE, out=out, casting="unsafe")


class MatchFilters:
    """The bounds of one join's queries on the attributes of its matches; makes batches of matches ready."""

    def __init__(self, sources: Sequence[Source], n_slots: int) -> None:
        """Make filters without predicates; `derive` fills them."""
        self._sources = list(sources)
        self.low = np.zeros((0, n_slots), np.int32)
        self.high = np.full((0, n_slots), NO_LIMIT, np.int32)
        #: by input, its regions and outcomes, each with its number
        self._stored: list[list[tuple[int, Region | Outcome]]] = []
        #: by input, the window widths, ascending, and the numbers of the three bounds of the age; no numbers where positions tell
        self.widths: list[np.ndarray] = []
        self._ages: list[list[int]] = []
        #: by input, the births, ascending, and the number of the attribute
        self.births: list[np.ndarray] = []
        self._births: list[int] = []
        self._regions: list[int] = []
        self._multi = np.zeros((0, 4), np.int64), np.zeros((0, 2), np.int32)
        #: by route and words of a batch, the route as kernels take it, and where the sets of its attributes lie
        self._places: dict[tuple[tuple[int, ...], int], tuple[np.ndarray, Places]] = {}
        self._pool = Pool()

    def bounds(self) -> BoundArrays:
        return self.low, self.high, *self._multi

    # ---- the queries

    def derive(
        self, active: np.ndarray, leg_slots: np.ndarray, widths: np.ndarray, births: np.ndarray, counted: Sequence[bool]
    ) -> None:
        """Set all bounds from the slots of the legs, the window widths and the births of the queries, `[inputs, slots]` each.

        `active` lists the slots that have a query, `counted` says by input whether the windows count rows too.
        """
        bounds = _Bounds(leg_slots.shape[1], active)
        self._stored, self._ages, self._births = [], [], []
        self.widths, self.births = [], []
        for k, source in enumerate(self._sources):
            slots = leg_slots[k, active]
            self._stored.append(bounds.of_bank(source, slots) + bounds.of_modules(source, slots))
            self.widths.append(np.unique(widths[k, active]))
            self._ages.append(bounds.of_ages(self.widths[k], widths[k, active]) if len(self.widths[k]) > 1 or counted[k] else [])
            self.births.append(np.unique(births[k, active]))
            n_births = len(self.births[k])
            self._births.append(bounds.add(np.searchsorted(self.births[k], births[k, active]) + 1, n_births + 1, n_births + 1))
        self.low, self.high, multi, multi_ranks = bounds.arrays()
        self._multi = multi, multi_ranks
        self._regions = bounds.regions
        self._places = {}

    # ---- batches of matches

    def batch(self, n_rows: int) -> MatchBatch:
        """A batch of `n_rows` matches to be made ready; valid until the next call."""
        return MatchBatch(self, n_rows)

    def stored(self, k: int) -> list[tuple[int, Region | Outcome]]:
        """The attributes of an input's rows, with their numbers."""
        return self._stored[k]

    def has_regions(self, k: int) -> bool:
        """Whether some query has bounds on the regions of an input's rows."""
        return any(isinstance(attribute, Region) for _, attribute in self._stored[k])

    def outcomes(self, k: int) -> list[tuple[int, np.ndarray]]:
        """The predicate modules of an input's rows, each with the mask of the slots that have it."""
        return [
            (attribute.module, np.packbits(self.low[number] == 1, bitorder="little").view(np.uint64))
            for number, attribute in self._stored[k]
            if isinstance(attribute, Outcome)
        ]

    def age(self, k: int, bound: int) -> int | None:
        """The number of the attribute for the age of an input's row against one of three bounds; None where positions tell."""
        return self._ages[k][bound] if self._ages[k] else None

    def birth(self, k: int) -> int:
        return self._births[k]

    def places(self, route: tuple[int, ...], n_words: int) -> tuple[np.ndarray, Places]:
        """The attributes of a route, and the places of their sets in a batch of `n_words` words."""
        found = self._places.get((route, n_words))
        if found is None:
            regions = [0] * len(self._regions)
            for number in route:
                regions[number] = self._regions[number]
            found = self._places[route, n_words] = np.array(route, np.int32), Places(regions, n_words)
        return found

    @property
    def pool(self) -> Pool:
        return self._pool


class MatchBatch:
    """A batch of matches; attributes are added one by one, then `prepare` makes it ready to be matched."""

    __slots__ = ("_filters", "_n_rows", "_ranks", "_route")

    def __init__(self, filters: MatchFilters, n_rows: int) -> None:
        self._filters = filters
        self._n_rows = n_rows
        self._ranks: list[np.ndarray] = []
        self._route: list[int] = []

    def add_stored(self, k: int, positions: np.ndarray, outcomes: bool = True) -> None:
        """Add the attributes stored with an input's rows; without `outcomes` only those known of every row."""
        for number, attribute in self._filters.stored(k):
            if not outcomes and isinstance(attribute, Outcome):
                continue
            ranks = np.empty(self._n_rows, np.int32)
            attribute.ranks(positions, ranks)
            self._add(number, ranks)

    def add_birth(self, k: int, positions: np.ndarray, lowest: int) -> None:
        """Add the positions of an input's rows; `lowest` is at or below all of them."""
        births = self._filters.births[k]
        if lowest < births[-1]:
            ranks = np.empty(len(positions), np.int32)
            count_up_to(births, positions, ranks)
            self._add(self._filters.birth(k), ranks)

    def add_age(self, k: int, ranks: np.ndarray, bound: int) -> None:
        """Add the number of window widths that an input's rows have outlived; only queries within the bound want them."""
        number = self._filters.age(k, bound)
        if number is not None:
            self._add(number, ranks)

    def _add(self, number: int, ranks: np.ndarray) -> None:
        self._route.append(number)
        self._ranks.append(ranks)

    def prepare(self) -> Prepared:
        """The batch made ready, with all attributes added."""
        filters = self._filters
        route, places = filters.places(tuple(self._route), words(self._n_rows))
        layout = Layout(places, self._n_rows, filters.pool)
        for number, ranks in zip(self._route, self._ranks, strict=True):
            layout.build_sets(number, ranks)
        return Prepared(filters, layout, route, True)


class _Bounds:
    """A collector of the queries' bounds, attribute by attribute."""

    def __init__(self, n_slots: int, active: np.ndarray) -> None:
        self._n_slots = n_slots
        self._active = active
        self._low: list[np.ndarray] = []
        self._high: list[np.ndarray] = []
        self.regions: list[int] = []
        #: predicates of several intervals (filter and slot are those in the bank, which nobody reads), and their ranks
        self._multi = [np.zeros((0, 4), np.int64)]
        self._multi_ranks = [np.zeros((0, 2), np.int32)]
        self._n_multi = self._n_ranks = 0

    def add(self, low: np.ndarray | int, high: np.ndarray | int, n_regions: int) -> int:
        """Add an attribute with these bounds of the active slots; returns its number."""
        lows, highs = np.zeros(self._n_slots, np.int32), np.full(self._n_slots, NO_LIMIT, np.int32)
        lows[self._active], highs[self._active] = low, high
        self._low.append(lows)
        self._high.append(highs)
        self.regions.append(n_regions)
        return len(self.regions) - 1

    def of_bank(self, source: Source, slots: np.ndarray) -> list[tuple[int, Region | Outcome]]:
        """Add the filters of a stream that have predicates of the legs on these slots."""
        bank = source.modules.bank
        _, _, multi, multi_ranks = bank.bounds()
        found: list[tuple[int, Region | Outcome]] = []
        for f in range(len(bank.filters)):
            low, high = bank.low[f, slots], bank.high[f, slots]
            several = high > NO_LIMIT
            if (low != 0).any() or (high != NO_LIMIT).any():
                high[several] += self._n_multi
                region = Region(source, f)
                found.append((self.add(low, high, region.n_regions), region))
        if found and len(multi):
            self._multi.append(multi + np.array([0, 0, self._n_ranks, self._n_ranks]))
            self._multi_ranks.append(multi_ranks)
            self._n_multi += len(multi)
            self._n_ranks += len(multi_ranks)
        return found

    def of_modules(self, source: Source, slots: np.ndarray) -> list[tuple[int, Region | Outcome]]:
        """Add the predicate modules of the legs on these slots."""
        found: list[tuple[int, Region | Outcome]] = []
        for module in source.modules.by_text.values():
            has = (module.interested[slots >> 6] >> (slots & 63).astype(np.uint64)) & np.uint64(1)
            if has.any():
                low = has.astype(np.int32)
                outcome = Outcome(source, module.number)
                found.append((self.add(low, np.where(low, 2, NO_LIMIT), outcome.n_regions), outcome))
        return found

    def of_ages(self, distinct: np.ndarray, widths: np.ndarray) -> list[int]:
        """Add the bounds on age: a row is alive for a query while it has outlived no width up to the query's own."""
        outlived = np.searchsorted(distinct, widths) + 1
        n_regions = len(distinct) + 1
        return [self.add(0, outlived, n_regions), self.add(0, outlived, n_regions), self.add(outlived, n_regions, n_regions)]

    def arrays(self) -> BoundArrays:
        multi, ranks = np.concatenate(self._multi), np.concatenate(self._multi_ranks)
        return np.array(self._low, np.int32), np.array(self._high, np.int32), multi, ranks
