"""The texts of one column of an operator's state, under codes of its own.

Vectors of one column come with different dictionaries: each stream has one, each text function makes some. Here a text has one
code whatever dictionary it came with. A translation is kept for each of the last few dictionaries, by their identity (an array
of strings is never rewritten, only longer arrays share its memory), and filled only for codes that occur: O(rows) and one look-up
per text that is new, never O(dictionary).
"""

from __future__ import annotations

import numpy as np

from filters.values.vector import Array, Vector
from lineage.dictionary import Dictionary
from lineage.schema import Type

#: Dictionaries whose translation is kept.
REMEMBERED = 4


class Texts:
    """Codes of texts, and the vectors they came in.

    >>> texts = Texts()
    >>> texts.encode(Vector.of_strings(["b", "a"])).tolist(), texts.encode(Vector.of_strings(["a", None])).tolist()
    ([0, 1], [1, 0])
    """

    __slots__ = ("_dictionary", "_translations")

    def __init__(self) -> None:
        self._dictionary = Dictionary()
        #: (the memory of a dictionary, code -> our code or -1), the last used at the end
        self._translations: list[tuple[Array, Array]] = []

    def __getstate__(self) -> tuple[Dictionary]:
        """Leave out the translations, which are made again when needed."""
        return (self._dictionary,)

    def __setstate__(self, state: tuple[Dictionary]) -> None:
        (self._dictionary,) = state
        self._translations = []

    def __len__(self) -> int:
        return len(self._dictionary)

    def encode(self, vector: Vector) -> Array:
        """Return our codes of a vector's texts; 0 under NULL."""
        assert vector.dictionary is not None, "a string vector has a dictionary"
        codes = vector.values
        if vector.nulls is not None:
            valid = ~vector.nulls
            found = np.zeros(len(codes), np.int64)
            found[valid] = self._translated(codes[valid], vector.dictionary)
            return found
        return self._translated(codes, vector.dictionary)

    def _translated(self, codes: Array, dictionary: Array) -> Array:
        if len(codes) == 0:
            return np.zeros(0, np.int64)
        table = self._table(dictionary)
        found = table[codes]
        missing = found < 0
        if missing.any():
            fresh = np.unique(codes[missing])
            table[fresh] = [self._dictionary.code(text) for text in dictionary[fresh].tolist()]
            found = table[codes]
        return found

    def _table(self, dictionary: Array) -> Array:
        memory = dictionary if dictionary.base is None else dictionary.base
        for at, (known, table) in enumerate(self._translations):
            if known is memory:
                self._translations.append(self._translations.pop(at))
                return table
        table = np.full(len(memory), -1, np.int64)
        self._translations.append((memory, table))
        del self._translations[:-REMEMBERED]
        return table

    def since(self, code: int) -> list[str]:
        """Return the texts from this code on."""
        return self._dictionary.strings[code:]

    def vector(self, codes: Array, nulls: Array | None) -> Vector:
        return Vector(Type.STRING, codes, nulls, self._dictionary.as_array())

    def compact(self, used: Array) -> Array:
        """Forget all texts but those of these codes; returns the new code of each old one, -1 for forgotten texts."""
        self._translations.clear()
        return self._dictionary.compact(used)

    @property
    def bytes(self) -> int:
        return self._dictionary.bytes + sum(table.nbytes for _, table in self._translations)

    def check(self) -> None:
        self._dictionary.check()
        for memory, table in self._translations:
            for code in np.flatnonzero(table >= 0).tolist():
                assert self._dictionary.strings[int(table[code])] == memory[code], "a translation keeps the text"
