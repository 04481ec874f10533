"""Keys: cells of one or several columns, brought to a form in which equal keys are equal integers.

The form is that of the *stored* column: its cells, with floats folded to order keys (NaN = NaN, -0.0 = 0.0). A probing row's
cells are brought to it exactly, or found to equal no stored value at all:

    stored <- probing      key
    the same type          the cell; floats folded
    string <- string       the code of the same text in the stored column's dictionary (`CodeTranslation`)
    float  <- int          the float of that value, if there is one
    int    <- float        the int of that value, if there is one (not for NaN, infinities, fractions)

NULL equals nothing. A key of several columns is found by a 64-bit hash of them and then compared column by column.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lineage.dictionary import Dictionary
from lineage.kernels import Number, inline, kernel
from lineage.memory import bits_of, float_of
from lineage.order_keys import order_key
from lineage.schema import Type

U64 = np.uint64

#: How a probing cell becomes a key of the stored column.
SAME = 0
FLOAT = 1
CODE = 2
INT_TO_FLOAT = 3
FLOAT_TO_INT = 4

#: The hash of no column.
_HASH = U64(0x9E3779B97F4A7C15)

#: Floats from here on are beyond int64.
_INT_LIMIT = 2.0**63

_NO_TRANSLATION = np.zeros(0, np.int64)
_NO_BYTES = np.zeros(0, np.uint8)
_NO_ROWS = np.zeros(0, np.int32)
_NO_COLUMNS = np.zeros((0, 0), np.int64)


@kernel("void(int64[::1], uint8[::1], boolean, int32[::1], boolean, int64, int64, int64[::1], int64[::1], uint8[::1])")
def fold_column(
    cells: np.ndarray, nulls: np.ndarray, no_nulls: bool, rows: np.ndarray, every_row: bool, n: int, kind: int,
    translation: np.ndarray, keys: np.ndarray, usable: np.ndarray,
) -> None:  # fmt: skip
    """Keys of the rows listed; clears `usable` where a row's cell equals no stored value."""
    # a loop for each kind: one that asks for the kind of every cell is not vectorized
    for j in range(n):
        i = U64(j) if every_row else U64(rows[j])
        keys[j] = cells[i]
        usable[j] &= no_nulls or nulls[i] == 0
    if kind == FLOAT:
        for j in range(n):
            keys[j] = order_key(keys[j], True)
    elif kind == CODE:
        for j in range(n):
            key = translation[U64(keys[j])] if usable[j] else np.int64(-1)
            keys[j] = key
            usable[j] &= key >= 0
    elif kind == INT_TO_FLOAT:
        for j in range(n):
            value = np.float64(keys[j])
            # 2**63 itself is no int64, and converting it back is undefined
            usable[j] &= value < _INT_LIMIT and np.int64(value if value < _INT_LIMIT else 0.0) == keys[j]
            keys[j] = order_key(bits_of(value), True)
    elif kind == FLOAT_TO_INT:
        for j in range(n):
            value = float_of(keys[j])
            inside = value >= -_INT_LIMIT and value < _INT_LIMIT
            keys[j] = np.int64(value if inside else 0.0)
            usable[j] &= inside and np.float64(keys[j]) == value


@inline
def mix(h: Number) -> Number:
    """Every bit depends on those below and above."""
    h = (h ^ (h >> U64(32))) * U64(0xD6E8FEB86659FD93)
    h = (h ^ (h >> U64(32))) * U64(0xD6E8FEB86659FD93)
    return h ^ (h >> U64(32))


@kernel("void(int64[:,::1], int64, int64[::1])")
def hash_columns(columns: np.ndarray, n: int, words: np.ndarray) -> None:
    """One word for the columns of each key."""
    for j in range(n):
        words[j] = np.int64(_HASH)
    # column by column, so that many rows are hashed at a time
    for k in range(len(columns)):
        for j in range(n):
            words[j] = np.int64(mix(U64(words[j]) ^ U64(columns[k, j])) + _HASH)


@dataclass(slots=True)
class Keys:
    """The keys of some rows, as the kernels take them."""

    #: the key, or the hash of one of several columns
    words: np.ndarray
    #: `[columns, keys]`; empty for one column
    columns: np.ndarray
    #: 0 where a key equals nothing; empty iff all can be used
    usable: np.ndarray

    def __len__(self) -> int:
        return len(self.words)


class CodeTranslation:
    """From the codes of a probing column's dictionary to those of the stored column's, -1 for texts that it does not have.

    `table[code]` is right for the first `n_probing` and `n_stored` texts of the two; `refresh` looks at the new ones of either
    side only. Compacting a dictionary gives it a new list of strings, which `refresh` notices and starts again.
    """

    __slots__ = ("_probing", "_stored", "_lists", "_table", "_n_stored")

    def __init__(self, probing: Dictionary, stored: Dictionary) -> None:
        self._probing = probing
        self._stored = stored
        self._restart()

    def _restart(self) -> None:
        self._lists = (self._probing.strings, self._stored.strings)
        self._table = np.zeros(0, np.int64)
        self._n_stored = 0

    def refresh(self) -> np.ndarray:
        """The table for all texts of both dictionaries as they are now."""
        probing, stored = self._probing, self._stored
        if self._lists[0] is not probing.strings or self._lists[1] is not stored.strings:
            self._restart()
        known = len(self._table)
        if known and self._n_stored < len(stored):
            for code in range(self._n_stored, len(stored)):
                at = probing.find(stored.strings[code])
                if 0 <= at < known:
                    self._table[at] = code
        self._n_stored = len(stored)
        if known < len(probing):
            fresh = [stored.find(text) for text in probing.strings[known:]]
            self._table = np.concatenate([self._table, np.array(fresh, np.int64)])
        return self._table

    def bytes(self) -> int:
        return self._table.nbytes


class KeyFolding:
    """How columns of one stream become keys of the columns of an index: of its own rows (`of_stored`) or of probing ones."""

    __slots__ = ("_kinds", "_translations")

    def __init__(self, kinds: list[int], translations: list[CodeTranslation | None]) -> None:
        self._kinds = kinds
        self._translations = translations

    @classmethod
    def of_stored(cls, types: Sequence[Type]) -> KeyFolding:
        """Stored rows, by the types of the key columns, or probing rows of the same types and dictionaries (a self-join)."""
        kinds = [FLOAT if type_ is Type.FLOAT else SAME for type_ in types]
        return cls(kinds, [None] * len(kinds))

    @classmethod
    def of_probing(
        cls, probing: Sequence[tuple[Type, Dictionary | None]], stored: Sequence[tuple[Type, Dictionary | None]]
    ) -> KeyFolding:
        """Probing rows, by type and dictionary of each key column on both sides."""
        kinds = []
        translations: list[CodeTranslation | None] = []
        for (type_, dictionary), (stored_type, stored_dictionary) in zip(probing, stored, strict=True):
            translation = None
            if type_ is stored_type:
                kind = FLOAT if type_ is Type.FLOAT else SAME
                if type_ is Type.STRING and dictionary is not stored_dictionary:
                    assert dictionary is not None and stored_dictionary is not None, "a string column has a dictionary"
                    kind, translation = CODE, CodeTranslation(dictionary, stored_dictionary)
            else:
                assert type_.numeric and stored_type.numeric, f"{type_} never equals {stored_type}"
                kind = INT_TO_FLOAT if type_ is Type.INT else FLOAT_TO_INT
            kinds.append(kind)
            translations.append(translation)
        return cls(kinds, translations)

    def fold(
        self, cells: Sequence[np.ndarray], nulls: Sequence[np.ndarray | None], rows: np.ndarray | None = None
    ) -> Keys:  # fmt: skip
        """The keys of rows given by column, or of those whose numbers are in `rows` (int32)."""
        n = len(cells[0]) if rows is None else len(rows)
        listed = _NO_ROWS if rows is None else rows
        if len(cells) == 1 and self._kinds[0] == SAME and nulls[0] is None and rows is None:
            return Keys(cells[0], _NO_COLUMNS, _NO_BYTES)
        usable = np.ones(n, np.uint8)
        columns = np.empty((len(cells), n), np.int64)
        for k, kind in enumerate(self._kinds):
            translation = self._translations[k]
            table = _NO_TRANSLATION if translation is None else translation.refresh()
            null_bytes = nulls[k]
            fold_column(
                cells[k], _NO_BYTES if null_bytes is None else null_bytes, null_bytes is None, listed, rows is None, n, kind,
                table, columns[k], usable,
            )  # fmt: skip
        if all(null_bytes is None for null_bytes in nulls) and max(self._kinds) <= FLOAT:
            usable = _NO_BYTES
        if len(cells) == 1:
            return Keys(columns[0], _NO_COLUMNS, usable)
        words = np.empty(n, np.int64)
        hash_columns(columns, n, words)
        return Keys(words, columns, usable)

    def bytes(self) -> int:
        return sum(translation.bytes() for translation in self._translations if translation is not None)
