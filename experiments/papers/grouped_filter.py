"""The paper's per-tuple grouped filter: the slow twin of the engine's filters, and the baseline of the benchmarks.

CACQ (section 3.2) keeps, per attribute, an ordered map of the constants of `>` predicates, one for `<`, a hash table for
`=` and one for `<>`; a tuple walks them and marks the queries it satisfies. Here predicates are `Intervals`, whose
half-open bounds make `>` and `>=` one kind:

    spans of a slot                        kept in                        a key marks the slot when
    [lo, )                                 ordered map by lo              lo <= key
    [, hi)                                 ordered map by hi              key < hi
    points                                 hash by point                  key is a point
    everything but points                  hash by point, and a set       key is no point
    [lo, hi)                               ordered map by lo              lo <= key < hi
    [, ), nothing                          a set, nowhere                 always, never
    any other union                        a list                         some span holds it

    match(key)[slot] = 1  iff  slot has no predicate here, or its intervals hold the key (None: NULL)

Cost of a match: proportional to the queries satisfied, plus the ranges with lo <= key, plus the list. `ReferenceEddy`
routes one row at a time through one such filter per attribute.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from bitarray import bitarray
from bitarray.util import zeros
from sortedcontainers import SortedDict

from filters.values.intervals import Intervals, Key, successor

#: Constant -> slot -> the spans of the slot's predicate; a dict, or a SortedDict where order matters.
_Index = Any


class ReferenceFilter:
    """All queries' predicates on one attribute, matched one key at a time.

    >>> from filters.values.intervals import compare
    >>> from lineage.schema import Type
    >>> reference = ReferenceFilter(3)
    >>> reference.add(0, compare(Type.INT, ">", 7))
    >>> reference.add(2, compare(Type.INT, "=", 8))
    >>> reference.match(8).to01(), reference.match(7).to01(), reference.match(None).to01()
    ('111', '010', '010')
    """

    def __init__(self, n_slots: int = 0) -> None:
        #: the predicate of every slot that has one
        self._intervals: dict[int, Intervals] = {}
        #: 1 for slots without a predicate here
        self._without = bitarray(n_slots)
        self._without.setall(True)
        #: 1 for slots whose predicate holds NULL
        self._null = zeros(n_slots)
        #: 1 for slots whose predicate holds every key, or every key but the points in `_but`
        self._every = zeros(n_slots)
        self._from: _Index = SortedDict()
        self._below: _Index = SortedDict()
        self._ranges: _Index = SortedDict()
        self._points: _Index = {}
        self._but: _Index = {}
        #: one entry under None
        self._unions: _Index = {}

    @property
    def n_slots(self) -> int:
        return len(self._without)

    def grow(self, n_slots: int) -> None:
        """Make room for slots below `n_slots`."""
        more = n_slots - self.n_slots
        if more > 0:
            self._without.extend(bitarray("1") * more)
            self._null.extend(zeros(more))
            self._every.extend(zeros(more))

    def add(self, slot: int, intervals: Intervals) -> None:
        """Give a slot without a predicate its predicate."""
        assert slot not in self._intervals, f"slot {slot} already has a predicate"
        self.grow(slot + 1)
        self._intervals[slot] = intervals
        self._without[slot] = False
        self._null[slot] = intervals.null
        self._every[slot] = _everything_but(intervals) is not None
        for index, key in self._places(intervals):
            index.setdefault(key, {})[slot] = intervals.spans

    def remove(self, slot: int) -> None:
        """Take a slot's predicate away, if it has one."""
        intervals = self._intervals.pop(slot, None)
        if intervals is None:
            return
        self._without[slot] = True
        self._null[slot] = self._every[slot] = False
        for index, key in self._places(intervals):
            del index[key][slot]
            if not index[key]:
                del index[key]

    def check(self) -> None:
        """Assert that every index holds predicates of the slots that have one, and nothing else."""
        places = {(id(index), key, slot) for slot, held in self._intervals.items() for index, key in self._places(held)}
        indexes = (self._from, self._below, self._ranges, self._points, self._but, self._unions)
        assert all(slots for index in indexes for slots in index.values()), "a constant without a slot"
        assert {(id(index), key, slot) for index in indexes for key, slots in index.items() for slot in slots} == places
        assert [slot for slot, without in enumerate(self._without) if not without] == sorted(self._intervals)

    def _places(self, intervals: Intervals) -> Iterator[tuple[_Index, Key]]:
        """Where a predicate is kept: index and key, none for everything and nothing."""
        spans = intervals.spans
        points = Intervals(spans).points()
        holes = _everything_but(intervals)
        if holes is not None:
            yield from ((self._but, key) for key in holes)
        elif points is not None:
            yield from ((self._points, key) for key in points)
        elif len(spans) == 1:
            ((low, high),) = spans
            if high is None:
                yield self._from, low
            elif low is None:
                yield self._below, high
            else:
                yield self._ranges, low
        elif spans:
            yield self._unions, None

    def match(self, key: Key | None) -> bitarray:
        """The slots a value satisfies, as bits."""
        if key is None:
            return self._without | self._null
        found = self._without | self._every
        for slot in self._but.get(key, ()):
            found[slot] = False
        for slot in self._points.get(key, ()):
            found[slot] = True
        for low in self._from.irange(maximum=key):
            for slot in self._from[low]:
                found[slot] = True
        for high in self._below.irange(minimum=key, inclusive=(False, True)):
            for slot in self._below[high]:
                found[slot] = True
        for low in self._ranges.irange(maximum=key):
            for slot, ((_, high),) in self._ranges[low].items():
                if key < high:
                    found[slot] = True
        for slot in self._unions.get(None, ()):
            if self._intervals[slot].holds(key):
                found[slot] = True
        return found


def _everything_but(intervals: Intervals) -> list[Key] | None:
    """The points missing from a set that holds all other keys; None for other sets."""
    spans = intervals.spans
    if not spans or spans[0][0] is not None or spans[-1][1] is not None:
        return None
    holes = []
    for (_, end), (start, _) in zip(spans, spans[1:], strict=False):
        if end is None or start != successor(end):
            return None
        holes.append(end)
    return holes


class ReferenceEddy:
    """Conjunctions over several attributes, one row at a time, as the paper's eddy runs them.

    A row starts with all queries and visits the attributes in the order given; it leaves when no query is left.
    """

    def __init__(self, attributes: Sequence[str]) -> None:
        self.attributes = tuple(attributes)
        self.filters = {name: ReferenceFilter() for name in self.attributes}
        #: 1 for slots in use
        self._active = bitarray()
        #: visits of rows to filters so far
        self.visits = 0

    def add(self, slot: int, conjuncts: Mapping[str, Intervals]) -> None:
        """Put a query, a set of values per attribute it constrains, in a free slot."""
        if slot >= len(self._active):
            self._active.extend(zeros(slot + 1 - len(self._active)))
        assert not self._active[slot], f"slot {slot} is in use"
        self._active[slot] = True
        for name in self.attributes:
            self.filters[name].grow(len(self._active))
        for name, intervals in conjuncts.items():
            self.filters[name].add(slot, intervals)

    def remove(self, slot: int) -> None:
        """Free a slot."""
        self._active[slot] = False
        for reference in self.filters.values():
            reference.remove(slot)

    def match(self, row: Mapping[str, Key | None], order: Sequence[str] | None = None) -> bitarray:
        """The queries that want a row of order keys (None: NULL)."""
        found = self._active.copy()
        for name in self.attributes if order is None else order:
            if not found.any():
                break
            found &= self.filters[name].match(row[name])
            self.visits += 1
        return found
