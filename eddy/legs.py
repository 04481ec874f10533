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

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from filters.predicate import Condition
from lineage.bits import ONE, U64, clear_bit, set_bit
from lineage.kernels import kernel
from windows.spec import WindowSpec

if TYPE_CHECKING:
    from eddy.query import Query


@dataclass(slots=True, eq=False)
class WindowClass:
    """The legs of one stream with one window. `oldest`: the first position whose rows are still in the window."""

    number: int
    window: WindowSpec
    oldest: int
    #: bits of its dense slots, disjuncts included
    mask: np.ndarray
    n_legs: int = 0


@dataclass(slots=True, eq=False)
class Leg:
    condition: Condition
    window: WindowClass
    #: the name of the query it was first made for
    label: str
    #: the bit position in its page; None when no row can satisfy the condition
    slot: int | None = None
    #: the column of the candidate index it is placed in; None when it is dense
    index_column: int | None = None
    #: per clause, the slots of its disjuncts
    disjuncts: tuple[list[int], ...] = ()
    queries: list[Query] = field(default_factory=list)

    @property
    def key(self) -> tuple[WindowSpec, Condition]:
        """What makes two legs the same."""
        return self.window.window, self.condition

    @property
    def dense(self) -> bool:
        return self.slot is not None and self.index_column is None


@kernel("void(uint64[:,::1], int64, int32[::1], int64[::1], int32[::1])")
def join_disjuncts(
    rows_of: np.ndarray, n_words: int, clause_slot: np.ndarray, clause_at: np.ndarray, disjuncts: np.ndarray
) -> None:
    """Leave a leg only the rows some disjunct of each of its clauses has, query-major."""
    for c in range(len(clause_slot)):
        for w in range(n_words):
            either = U64(0)
            for k in range(clause_at[c], clause_at[c + 1]):
                either |= rows_of[disjuncts[k], w]
            rows_of[clause_slot[c], w] &= either


@kernel("void(uint64[:,::1], int64, int32[::1], int64[::1], int32[::1], uint64[::1])")
def join_disjuncts_rows(
    lin: np.ndarray, n_rows: int, clause_slot: np.ndarray, clause_at: np.ndarray, disjuncts: np.ndarray, legs: np.ndarray
) -> None:
    """The same row-major; afterwards only bits of legs are left."""
    for i in range(n_rows):
        for c in range(len(clause_slot)):
            either = False
            for k in range(clause_at[c], clause_at[c + 1]):
                bit = disjuncts[k]
                either |= (lin[i, bit >> 6] >> U64(bit & 63)) & ONE != 0
            if not either:
                slot = clause_slot[c]
                lin[i, slot >> 6] &= ~(ONE << U64(slot & 63))
        for w in range(len(legs)):
            lin[i, w] &= legs[w]


class Clauses:
    """The disjunctions of all dense legs of a stream, as the kernels take them."""

    def __init__(self) -> None:
        self.slot = np.zeros(0, np.int32)
        self.at = np.zeros(1, np.int64)
        self.disjuncts = np.zeros(0, np.int32)

    def rebuild(self, legs: list[Leg]) -> None:
        slots, at, disjuncts = [], [0], []
        for leg in legs:
            for clause in leg.disjuncts:
                slots.append(leg.slot)
                disjuncts.extend(clause)
                at.append(len(disjuncts))
        self.slot = np.array(slots, np.int32)
        self.at = np.array(at, np.int64)
        self.disjuncts = np.array(disjuncts, np.int32)


def put_bit(mask: np.ndarray, slot: int, on: bool) -> None:
    (set_bit if on else clear_bit)(mask, slot)
