"""Legs: the distinct (condition, window) pairs that the queries of one stream have, and where each is matched.

A leg is one FROM item. Queries that ask for the same rows of the same stream in the same window share one leg, whatever
they select, and each keeps its own birth. A leg is placed

    dense     on a slot of the stream's filter bank: a bit in the batch's matrix
    sparse    on a slot of a candidate index, when it fixes a key that many others fix too
    nowhere   when no row can satisfy it

A disjunction over several attributes takes, beside the leg's slot, one slot per disjunct (CACQ's extra bit), and the leg's bit
survives only if one of them does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from eddy.streams.derived_filters import DerivedPredicate
from filters.expressions.predicate import Atom, Condition, IndexAtom
from lineage.bits import ONE, U64
from lineage.kernels import kernel
from lineage.slots import resized
from windows.spec import WindowSpec


class LegReader(Protocol):
    """A query on a leg: its id, and the first position of the stream that counts for it."""

    id: int

    @property
    def born(self) -> int: ...


#: In place of the slot of a clause that has gone.
NO_SLOT = -1


@dataclass(slots=True, eq=False)
class WindowClass:
    """The legs of one stream with the same window.

    `oldest`: the first position whose rows are still in the window; it moves only if the clock ends them, for what a window
    that counts rows holds is told by `stems/row_ends.py`.
    """

    number: int
    window: WindowSpec
    oldest: int
    #: legs whose rows are listed, and legs that joins hold
    n_legs: int = 0
    n_held: int = 0
    #: how often the log can be read by one of the latter
    n_logged: int = 0


#: Queries of a leg that are held in a tuple.
FEW_QUERIES = 8


@dataclass(slots=True, eq=False)
class Leg:
    condition: Condition
    window: WindowClass
    #: the name of the query it was first made for
    label: str
    #: the first position whose stored ids and outcomes serve it
    since: int
    #: the bit position in its page; None when no row can satisfy the condition
    slot: int | None = None
    #: the column of the candidate index it is placed in; None when it is dense
    index_column: int | None = None
    #: per clause, the slots of its disjuncts
    disjuncts: tuple[list[int], ...] = ()
    #: what of its condition is an interval of a derived column
    derived: tuple[DerivedPredicate, ...] = ()
    #: in the order in which they came: a tuple of few, for most legs have one, or the keys of a dict
    queries: tuple[LegReader, ...] | dict[LegReader, None] = ()
    #: inputs of joins that read it; such a leg is matched but not listed
    n_joins: int = 0

    @property
    def key(self) -> tuple[WindowSpec, Condition]:
        """The window and condition, which identify a leg."""
        return self.window.window, self.condition

    def single(self) -> list[Atom]:
        """The atoms that must each be true, without those that are predicates on derived columns."""
        found = self.condition.single()
        if not self.derived:
            return list(found)
        texts = {text for one in self.derived for text in one.texts}
        return [atom for atom in found if isinstance(atom, IndexAtom) or str(atom) not in texts]

    def add(self, query: LegReader) -> None:
        """Add a query."""
        if isinstance(self.queries, dict):
            self.queries[query] = None
        elif len(self.queries) < FEW_QUERIES:
            self.queries = (*self.queries, query)
        else:
            self.queries = dict.fromkeys((*self.queries, query))

    def remove(self, query: LegReader) -> None:
        """Remove a query."""
        if isinstance(self.queries, dict):
            del self.queries[query]
        else:
            self.queries = tuple([other for other in self.queries if other is not query])

    def some_query(self) -> LegReader:
        """The youngest query of the leg; finding the first in a dict would pass all entries removed before it."""
        return next(reversed(self.queries))

    @property
    def dense(self) -> bool:
        return self.slot is not None and self.index_column is None


@kernel("void(uint64[:,::1], int64, int32[::1], int64[::1], int32[::1])")
def join_disjuncts(
    rows_of: np.ndarray, n_words: int, clause_slot: np.ndarray, clause_at: np.ndarray, disjuncts: np.ndarray
) -> None:
    """Keep of each leg's rows only those with a true disjunct in each of its clauses; query-major."""
    for c in range(len(clause_slot)):
        if clause_slot[c] == NO_SLOT:
            continue
        for w in range(n_words):
            either = U64(0)
            for k in range(clause_at[c], clause_at[c + 1]):
                either |= rows_of[disjuncts[k], w]
            rows_of[clause_slot[c], w] &= either


@kernel("void(uint64[:,::1], int64, int32[::1], int64[::1], int32[::1], uint64[::1])")
def join_disjuncts_rows(
    lin: np.ndarray, n_rows: int, clause_slot: np.ndarray, clause_at: np.ndarray, disjuncts: np.ndarray, legs: np.ndarray
) -> None:
    """`join_disjuncts` for row-major bits; afterwards only bits of legs are left."""
    for i in range(n_rows):
        for c in range(len(clause_slot)):
            either = clause_slot[c] == NO_SLOT
            for k in range(clause_at[c], clause_at[c + 1]):
                if either:
                    break
                bit = disjuncts[k]
                either |= (lin[i, bit >> 6] >> U64(bit & 63)) & ONE != 0
            if not either:
                slot = clause_slot[c]
                lin[i, slot >> 6] &= ~(ONE << U64(slot & 63))
        for w in range(len(legs)):
            lin[i, w] &= legs[w]


class Clauses:
    """The disjunctions of all dense legs of a stream, as arrays for the kernels.

    Clause c of leg `slot[c]` has the disjuncts `disjuncts[at[c]:at[c + 1]]`. A removed clause stays as an empty one, and all are
    laid out anew when more than half are empty, so a change costs as much as it changes.
    """

    __slots__ = ("slot", "at", "disjuncts", "n_clauses", "_n_laid", "_legs")

    def __init__(self) -> None:
        self.slot = np.zeros(8, np.int32)
        self.at = np.zeros(9, np.int64)
        self.disjuncts = np.zeros(16, np.int32)
        #: clauses of legs that are there, and all that are laid out
        self.n_clauses = 0
        self._n_laid = 0
        #: where the first clause of each leg is
        self._legs: dict[Leg, int] = {}

    def add(self, leg: Leg) -> None:
        assert leg.slot is not None
        self._legs[leg] = self._n_laid
        self.n_clauses += len(leg.disjuncts)
        for slots in leg.disjuncts:
            c = self._n_laid
            start = int(self.at[c])
            while c + 1 >= len(self.at):
                self.slot = resized(self.slot, 2 * len(self.slot), 0)
                self.at = resized(self.at, len(self.slot) + 1, 0)
            while start + len(slots) > len(self.disjuncts):
                self.disjuncts = resized(self.disjuncts, 2 * len(self.disjuncts), 0)
            self.slot[c] = leg.slot
            self.disjuncts[start : start + len(slots)] = slots
            self.at[c + 1] = start + len(slots)
            self._n_laid += 1

    def remove(self, leg: Leg) -> None:
        first = self._legs.pop(leg)
        self.n_clauses -= len(leg.disjuncts)
        self.slot[first : first + len(leg.disjuncts)] = NO_SLOT
        if self._n_laid > 8 and 2 * self.n_clauses < self._n_laid:
            legs, self._legs = list(self._legs), {}
            self.slot, self.at, self.disjuncts = np.zeros(8, np.int32), np.zeros(9, np.int64), np.zeros(16, np.int32)
            self.n_clauses = self._n_laid = 0
            for one in legs:
                self.add(one)

    def arrays(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return self.slot[: self._n_laid], self.at, self.disjuncts

    def check(self) -> None:
        for leg, first in self._legs.items():
            for c, slots in enumerate(leg.disjuncts, first):
                assert self.slot[c] == leg.slot, "a clause names its leg"
                assert self.disjuncts[self.at[c] : self.at[c + 1]].tolist() == slots, "a clause lists its disjuncts"
        filled = int(np.count_nonzero(self.slot[: self._n_laid] != NO_SLOT))
        assert filled == self.n_clauses == sum(len(leg.disjuncts) for leg in self._legs), "every clause belongs to a leg"


@kernel("void(uint64[::1], int32[::1], int64, int64)")
def claim_slot(active: np.ndarray, slot_class: np.ndarray, slot: int, number: int) -> None:
    """Match rows for a slot from now on, for the window class with that number."""
    active[slot >> 6] |= ONE << U64(slot & 63)
    slot_class[slot] = number
