"""The outcomes of a condition that reads one column of texts, kept for each text: LIKE and its like look at a text once.

A stream repeats its texts, so most rows need a look-up by code. Only texts that rows bring are tried, and only while there are at
most `MAX_TEXTS`: a byte each. Nothing is kept of a condition that cannot be computed for some text, for failures are counted row
by row.
"""

from __future__ import annotations

import numpy as np

from filters.expressions.evaluate import true_rows
from filters.expressions.expression import Expression, columns_of, user_functions_of
from filters.values.vector import Frame, ListFrame, Vector
from lineage.dictionary import Dictionary
from lineage.schema import Type

#: Texts of a column for which outcomes are kept.
MAX_TEXTS = 1 << 14

_UNKNOWN, _TRUE, _NOT_TRUE = range(3)


class TextOutcomes:
    """The outcomes of one condition by text: entry 0 for NULL, entry 1 for code 0."""

    __slots__ = ("_expression", "_position", "_fails", "_strings", "_table")

    def __init__(self, expression: Expression, position: int) -> None:
        self._expression = expression
        self._position = position
        self._fails = False
        #: the texts whose codes stand for entries; compacting a dictionary makes a new list
        self._strings: list[str] | None = None
        self._table = np.zeros(0, np.uint8)

    @classmethod
    def of(cls, expression: Expression) -> TextOutcomes | None:
        """Those of a condition that reads one column of texts and nothing else; None for another."""
        reads = columns_of(expression)
        if [ref.type for ref in reads] != [Type.STRING] or user_functions_of(expression):
            return None
        return cls(expression, reads[0].position)

    def __reduce__(self) -> tuple[type[TextOutcomes], tuple[Expression, int]]:
        """Whoever loads it tries the texts again."""
        return TextOutcomes, (self._expression, self._position)

    def rows(self, frame: Frame) -> np.ndarray | None:
        """For which rows of a frame the condition is true; None if it has to be computed."""
        found = None if self._fails else frame.texts(self._position)
        if found is None or len(found[0]) > MAX_TEXTS:
            return None
        dictionary, entries = found
        self._make_room(dictionary)
        outcomes = self._table[entries]
        if not outcomes.all():
            self._learn(dictionary, np.unique(entries[outcomes == _UNKNOWN]))
            if self._fails:
                return None
            outcomes = self._table[entries]
        inside: np.ndarray = outcomes == _TRUE
        return inside

    def _make_room(self, dictionary: Dictionary) -> None:
        n = len(dictionary) + 1
        if self._strings is not dictionary.strings:
            self._strings, self._table = dictionary.strings, np.zeros(0, np.uint8)
        if len(self._table) < n:
            table = np.zeros(max(n, 2 * len(self._table)), np.uint8)
            table[: len(self._table)] = self._table
            self._table = table

    def _learn(self, dictionary: Dictionary, entries: np.ndarray) -> None:
        """Try texts by their entries."""
        missing = entries == 0
        vector = Vector(Type.STRING, np.where(missing, 0, entries - 1), missing, dictionary.as_array())
        frame = ListFrame([vector] * (self._position + 1))
        outcomes = true_rows(self._expression, frame)
        self._fails = frame.errors > 0
        if not self._fails:
            self._table[entries] = np.where(outcomes, _TRUE, _NOT_TRUE)
