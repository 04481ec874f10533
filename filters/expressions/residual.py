"""A predicate module: one boolean expression no index serves, shared by every query that has it.

Expressions over several columns, LIKE, and registered Python functions. A module is evaluated on the rows that some
interested query still wants, once for all of them, and its outcome is one byte a row, kept with the row: the outcome of a
user function is never computed again. `UNTRIED`, `TRUE` and `NOT_TRUE` are its values.
"""

from __future__ import annotations

import numpy as np

from filters.expressions.evaluate import true_rows
from filters.expressions.expression import Expression, user_functions_of
from filters.expressions.text_outcomes import TextOutcomes
from filters.values.vector import Frame
from lineage.bits import clear_bit, has_bit, set_bit, slots_of, words
from lineage.kernels import kernel
from lineage.slots import resized

U64 = np.uint64

#: Outcomes as they are stored.
UNTRIED, TRUE, NOT_TRUE = 0, 1, 2


@kernel("void(uint64[:,::1], int64, int32[::1], uint64[::1])")
def union_rows(rows_of: np.ndarray, n_words: int, slots: np.ndarray, out: np.ndarray) -> None:
    """The rows that any of the slots still wants."""
    for w in range(n_words):
        out[w] = 0
    for s in range(len(slots)):
        for w in range(n_words):
            out[w] |= rows_of[slots[s], w]


@kernel("void(uint64[:,::1], int64, int32[::1], uint64[::1])")
def intersect_rows(rows_of: np.ndarray, n_words: int, slots: np.ndarray, allowed: np.ndarray) -> None:
    """Leave the slots only the allowed rows."""
    for s in range(len(slots)):
        for w in range(n_words):
            rows_of[slots[s], w] &= allowed[w]


@kernel("void(uint64[:,::1], int64, uint64[::1], boolean[::1])")
def wanted_rows(lin: np.ndarray, n_rows: int, interested: np.ndarray, wanted: np.ndarray) -> None:
    """Which rows any interested query still wants, row-major."""
    for i in range(n_rows):
        some = U64(0)
        for w in range(len(interested)):
            some |= lin[i, w] & interested[w]
        wanted[i] = some != 0


@kernel("int64(uint64[:,::1], int64, uint64[::1], boolean[::1], boolean[::1])")
def refuse_rows(lin: np.ndarray, n_rows: int, interested: np.ndarray, wanted: np.ndarray, outcome: np.ndarray) -> int:
    """Take interested queries off the rows without a true outcome; returns how many wanted rows some query still wants."""
    left = 0
    for i in range(n_rows):
        some = U64(0)
        for w in range(len(interested)):
            if not outcome[i]:
                lin[i, w] &= ~interested[w]
            some |= lin[i, w]
        left += wanted[i] and some != 0
    return left


class PredicateModule:
    """One shared expression and the slots that have it."""

    __slots__ = ("number", "name", "expression", "text", "interested", "slots", "declared_cost_us", "errors", "_by_text")

    def __init__(self, number: int, name: str, expression: Expression, n_words: int) -> None:
        self.number = number
        self.name = name
        self.expression = expression
        self.text = str(expression)
        self.interested = np.zeros(n_words, np.uint64)
        #: the slots that have it, ascending
        self.slots = np.zeros(0, np.int32)
        functions = user_functions_of(expression)
        #: declared cost of the user functions in it; 0 when there is none
        self.declared_cost_us = sum(function.cost for function in functions)
        #: values that could not be computed
        self.errors = 0
        #: not None iff it reads one column of texts and nothing else
        self._by_text = TextOutcomes.of(expression)

    def add(self, slot: int) -> None:
        set_bit(self.interested, slot)
        self.slots = np.sort(np.append(self.slots, np.int32(slot)))

    def remove(self, slot: int) -> None:
        clear_bit(self.interested, slot)
        self.slots = self.slots[self.slots != slot]

    def on_assign(self, slot: int) -> None:
        """A slot has a new owner, which does not have the expression yet."""
        if has_bit(self.interested, slot):
            self.remove(slot)

    def check(self, placed: set[int]) -> None:
        """`placed` are the slots that have the expression."""
        assert set(self.slots.tolist()) == placed == set(slots_of(self.interested).tolist()), f"interest in {self.name}"

    def resize(self, n_words: int) -> None:
        self.interested = resized(self.interested, n_words, 0)

    def outcome(self, frame: Frame, wanted: np.ndarray) -> np.ndarray:
        """For each row of the frame whether the expression is true; rows not wanted are not looked at and are not."""
        known = None if self._by_text is None else self._by_text.rows(frame)
        if known is not None:
            both: np.ndarray = known & wanted
            return both
        rows = np.flatnonzero(wanted)
        result = np.zeros(frame.n_rows, np.bool_)
        if len(rows) == frame.n_rows:
            before = frame.errors
            result = true_rows(self.expression, frame)
            self.errors += frame.errors - before
        elif len(rows):
            part = frame.select(rows)
            result[rows] = true_rows(self.expression, part)
            self.errors += part.errors
        return result

    def query_major(self, rows_of: np.ndarray, n_rows: int, frame: Frame, scratch: np.ndarray) -> tuple[np.ndarray, int, int]:
        """Apply to query-major bits; returns the outcomes to store, rows looked at, rows left."""
        n_words = words(n_rows)
        union_rows(rows_of, n_words, self.slots, scratch)
        wanted = np.unpackbits(scratch[:n_words].view(np.uint8), bitorder="little")[:n_rows].view(np.bool_)
        outcome = self.outcome(frame, wanted)
        self.restrict(rows_of, n_rows, outcome)
        return _stored(wanted, outcome), int(np.count_nonzero(wanted)), int(np.count_nonzero(outcome))

    def restrict(self, rows_of: np.ndarray, n_rows: int, outcome: np.ndarray) -> None:
        """Leave interested queries only the rows with a true outcome, query-major."""
        n_words = words(n_rows)
        allowed = np.zeros(n_words * 64, np.uint8)
        allowed[:n_rows] = outcome
        intersect_rows(rows_of, n_words, self.slots, np.packbits(allowed, bitorder="little").view(np.uint64))

    def row_major(self, lin: np.ndarray, n_rows: int, frame: Frame) -> tuple[np.ndarray, int, int]:
        """Apply to row-major bits; returns the outcomes to store, rows looked at, rows left."""
        wanted = np.zeros(n_rows, np.bool_)
        wanted_rows(lin, n_rows, self.interested, wanted)
        outcome = self.outcome(frame, wanted)
        left = refuse_rows(lin, n_rows, self.interested, wanted, outcome)
        return _stored(wanted, outcome), int(np.count_nonzero(wanted)), left


def _stored(wanted: np.ndarray, outcome: np.ndarray) -> np.ndarray:
    return np.where(outcome, TRUE, np.where(wanted, NOT_TRUE, UNTRIED)).astype(np.uint8)
