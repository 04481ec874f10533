"""The stored rows that count for members of a shared group, as bits for many members at once.

They are told by what is kept with each row, as `match_again` of the eddy tells them: the region ids of the grouped filters, and
the outcomes of predicate modules. Nothing is computed anew, and no member is looked at by itself. A held leg has no disjunctions:
those are predicate modules as well. Rows from before a member's birth are cut off at the end.
"""

from __future__ import annotations

import numpy as np

from eddy.operators.shared.shared_members import Members
from eddy.streams.source import Source
from filters.expressions.residual import TRUE
from filters.index.bank import Pool
from filters.values.vector import Array
from lineage.bits import mask_of, words
from windows.shared.pair_sums import count_from_birth

#: Rows for which the bits of all slots are found together, a multiple of the bits of a word.
_STEP = 1 << 13


class MemberRows:
    """Finds the rows of members of one group, in the store of its stream."""

    __slots__ = ("_source", "_members", "_listed", "_pool")

    def __init__(self, source: Source, members: Members) -> None:
        self._source = source
        self._members = members
        #: a version of the members, and its listed ones
        self._listed = -1, np.zeros(0, np.int64)
        self._pool = Pool()

    def listed(self) -> Array:
        """The numbers of the members whose rows are listed one by one."""
        if self._listed[0] != self._members.version:
            self._listed = self._members.version, np.flatnonzero(self._members.listed)
        return self._listed[1]

    def bits(self, numbers: Array, positions: Array) -> Array:
        """The rows at these positions that count for some members, `[member, word of rows]`."""
        found = np.zeros((len(numbers), words(len(positions))), np.uint64)
        slots = self._members.slots[numbers]
        wanted = mask_of(slots, self._source.placement.slots.n_words)
        for first in range(0, len(positions), _STEP):
            part = positions[first : first + _STEP]
            found[:, first >> 6 : (first >> 6) + words(len(part))] = self._of_slots(wanted, part)[slots]
        count_from_birth(found, self._members.born[numbers], positions)
        return found

    def _of_slots(self, wanted: Array, positions: Array) -> Array:
        """The rows that satisfy the condition of each slot in a mask, `[slot, word of rows]`; valid until the next call."""
        source, modules, n_rows = self._source, self._source.modules, len(positions)
        route = np.flatnonzero((modules.bank.interested & wanted).any(axis=1)).astype(np.int32)
        ranks = self._pool.array("ranks", len(modules.bank.filters) * n_rows, np.int32)
        ranks = ranks[: len(modules.bank.filters) * n_rows].reshape(-1, n_rows)
        for f in route.tolist():
            source.ranks_at(f, positions, ranks[f])
        shape = len(wanted) * 64, words(n_rows)
        rows_of = self._pool.array("rows", shape[0] * shape[1], np.uint64)[: shape[0] * shape[1]].reshape(shape)
        modules.bank.prepare(ranks, n_rows, True, route).fill(wanted, rows_of)
        for module in modules.by_text.values():
            if (module.interested & wanted).any():
                module.restrict(rows_of, n_rows, source.gatherer.outcomes(module.number, positions) == TRUE)
        return rows_of

    def count(self, positions: Array, weights: Array) -> tuple[Array, Array]:
        """Add up the weights of the rows of each member: the members, and their sums."""
        numbers = np.array(sorted(self._members.operations), np.int64)
        bits = self.bits(numbers, positions)
        counted = np.unpackbits(bits.view(np.uint8), axis=1, bitorder="little")[:, : len(positions)]
        return numbers, counted.astype(np.int64) @ weights
