"""Which user functions of a stream run only for rows that have met a partner.

A function that only joins ask for may be called before a row probes the SteMs or after: for rows that find nobody the call is
saved, but what it would have refused probes. The policy decides batch by batch, as an eddy does, by an order over the functions
and the SteMs that the stream's rows probe: functions that come after a SteM are **deferred**. Their outcome stays `UNTRIED` with
the stored row, which is CACQ's `done` bit, until a match asks for it; then it is kept, so a function is called at most once a
row.

Here a SteM counts as returning the rows that found a partner, not the matches: what a function would have to look at.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

from eddy.routing.base import Ledger, Policy

if TYPE_CHECKING:
    from eddy.streams.source import Source
    from filters.expressions.residual import PredicateModule

#: Functions of one stream that may be deferred; further ones run before the build (semantics 26).
MAX_DEFERRED = 8
#: Batches between two counts of the rows that found a partner.
COUNT_EVERY = 8


class Deferral:
    """The choice for one stream."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._ledger = Ledger()
        #: module names -> numbers in the ledger
        self._numbers: dict[str, int] = {}
        #: the SteMs that the stream's rows probe first, and how many queries have them do so
        self._stems: Counter[int] = Counter()
        #: module number -> the end of the rows for which it was deferred
        self._until: dict[int, int] = {}
        self._uncounted = 0
        #: queries that read outcomes of rows for which no match may have asked: nothing is deferred while there are any
        self.n_readers = 0

    def functions(self) -> list[PredicateModule]:
        """The functions that only joins ask for."""
        source = self._source
        found = [
            module
            for module in source.modules.by_text.values()
            if module.declared_cost_us and not (module.interested & source.placement.legs_mask).any()
        ]
        return found[:MAX_DEFERRED]

    def choose(self, policy: Policy, end: int) -> set[int]:
        """The numbers of the modules that the rows up to `end`, which are about to be matched, do not visit yet."""
        functions = self.functions()
        if not functions or not self._stems or self.n_readers:
            return set()
        ledger = self._ledger
        numbers = {}
        for module in functions:
            number = self._number(module.name)
            numbers[number] = module.number
            ledger.predicates[number] = len(module.slots)
            ledger.cost_ns[number] = self._source.modules.ledger.cost_ns[module.number]
        route = policy.route(ledger, np.array(sorted([*numbers, *self._stems]), np.int32)).tolist()
        first = min(route.index(stem) for stem in self._stems)
        later = {numbers[number] for number in route[first:] if number in numbers}
        self._until.update(dict.fromkeys(later, end))
        return later

    def add_stem(self, name: str, cost_ns: float) -> None:
        """A query has the rows of the stream probe a SteM."""
        number = self._number(name)
        if not self._stems[number]:
            self._ledger.cost_ns[number] = cost_ns
        self._stems[number] += 1
        self._ledger.predicates[number] += 1

    def remove_stem(self, name: str) -> None:
        """Such a query has gone."""
        number = self._number(name)
        self._stems[number] -= 1
        self._ledger.predicates[number] -= 1
        if not self._stems[number]:
            del self._stems[number]

    def pending(self, module: int) -> bool:
        """Whether rows held may not have met a module yet."""
        return self._until.get(module, 0) > self._source.store.watermark

    def counts(self) -> bool:
        """Whether it is time to count the rows of a batch that found a partner."""
        self._uncounted -= 1
        if self._uncounted > 0 or not self.functions():
            return False
        self._uncounted = COUNT_EVERY
        return True

    def probed(self, stem: str, rows_in: int, rows_out: int, cost_ns: float, policy: Policy) -> None:
        """So many rows of the stream probed a SteM first, of which some found a partner."""
        number = self._number(stem)
        self._ledger.cost_ns[number] = cost_ns
        self._learn(number, rows_in, rows_out, policy)

    def tried(self, module: PredicateModule, rows_in: int, rows_out: int, policy: Policy) -> None:
        """A function looked at rows and found some true."""
        self._learn(self._number(module.name), rows_in, rows_out, policy)

    def _learn(self, number: int, rows_in: int, rows_out: int, policy: Policy) -> None:
        if rows_in:
            ledger, modules = self._ledger, np.array([number])
            taken, returned = np.array([rows_in]), np.array([rows_out])
            ledger.record(modules, taken, returned, (taken - returned) * ledger.predicates[modules])
            policy.visited(ledger, modules, taken, returned)

    def _number(self, name: str) -> int:
        found = self._numbers.get(name)
        if found is None:
            found = self._numbers[name] = self._ledger.add(name, 1.0)
        return found
