"""Rows of a store as a frame that expressions are computed over, and as the rows that satisfy a condition.

This is the reading side, for one query at a time: answers, change streams, traces. It looks at stored cells and outcomes
only, so it gives for any past row exactly what matching gave when the row came, whatever queries came or went since.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from filters.expressions.evaluate import true_rows
from filters.expressions.predicate import Atom, Condition, IndexAtom
from filters.expressions.residual import TRUE
from filters.values.intervals import Intervals
from filters.values.vector import Frame, Vector
from lineage.dictionary import Dictionary
from lineage.kernels import kernel
from lineage.order_keys import order_key
from lineage.schema import KEY_MAX, KEY_MIN, Schema, Type
from stems.gathering import Gatherer
from stems.row_store import Page, RowStore


@kernel("void(int64[:,::1], uint8[:,::1], boolean, int64, int64, int64, boolean, int64, int64, boolean[::1])")
def add_interval(
    cells: np.ndarray, nulls: np.ndarray, has_nulls: bool, column: int, first: int, n_rows: int, is_float: bool, low: int,
    high: int, inside: np.ndarray,
) -> None:  # fmt: skip
    """`inside[i]` becomes true where low <= order key <= high and the value is not NULL."""
    for i in range(n_rows):
        key = order_key(cells[column, first + i], is_float)
        inside[i] |= (low <= key) & (key <= high)
    if has_nulls:
        for i in range(n_rows):
            if nulls[column, first + i]:
                inside[i] = False


def interval_rows(
    intervals: Intervals, store: RowStore, page: Page, at: int, stop: int, position: int, dictionary: Dictionary | None
) -> np.ndarray:
    """Which rows of a page's part hold a value in the intervals."""
    inside = np.zeros(stop - at, np.bool_)
    nulls = None if page.nulls is None else page.nulls[position, at:stop].astype(np.bool_)
    if dictionary is not None:
        codes, places = np.unique(page.cells[position, at:stop], return_inverse=True)
        texts = dictionary.as_array()
        holds = np.array([code < len(texts) and intervals.holds(texts[code]) for code in codes.tolist()], np.bool_)
        inside = holds[places] if len(codes) else inside
        if nulls is not None:
            inside &= ~nulls
    else:
        is_float = store.columns[position].type is Type.FLOAT
        for lo, hi in intervals.spans:
            add_interval(
                page.cells, store.nulls_of(page), page.nulls is not None, position, at, stop - at, is_float,
                KEY_MIN if lo is None else lo, KEY_MAX if hi is None else hi - 1, inside,
            )  # fmt: skip
    if intervals.null and nulls is not None:
        inside |= nulls
    return inside


def condition_rows(
    condition: Condition,
    store: RowStore,
    page: Page,
    at: int,
    stop: int,
    dictionaries: list[Dictionary | None],
    modules: Mapping[str, int],
) -> np.ndarray:
    """Which rows of a page's part satisfy a condition; `modules` numbers the residual expressions that have outcomes."""

    def atom_rows(atom: Atom) -> np.ndarray:
        if isinstance(atom, IndexAtom):
            return interval_rows(atom.intervals, store, page, at, stop, atom.position, dictionaries[atom.position])
        number = modules.get(str(atom))
        if number is None:
            # it was a predicate on a derived column, which may have gone since
            return true_rows(atom.expression, PageFrame(page, store.schema, dictionaries, slice(at, stop)))
        outcome = page.outcomes.get(number)
        return np.zeros(stop - at, np.bool_) if outcome is None else outcome[at:stop] == TRUE

    if condition.never:
        return np.zeros(stop - at, np.bool_)
    found = np.ones(stop - at, np.bool_)
    for atom in condition.single():
        found &= atom_rows(atom)
        if not found.any():
            return found
    for clause in condition.clauses:
        either = np.zeros(stop - at, np.bool_)
        for atom in clause:
            either |= atom_rows(atom)
        found &= either
    return found


class PageFrame(Frame):
    """The rows of one page at given offsets."""

    __slots__ = ("_page", "_schema", "_dictionaries", "_at", "_entries")

    def __init__(self, page: Page, schema: Schema, dictionaries: list[Dictionary | None], at: np.ndarray | slice) -> None:
        super().__init__(len(range(*at.indices(page.n_rows))) if isinstance(at, slice) else len(at))
        self._page = page
        self._schema = schema
        self._dictionaries = dictionaries
        self._at = at
        #: what `texts` gave, by column
        self._entries: dict[int, np.ndarray] = {}

    def texts(self, position: int) -> tuple[Dictionary, np.ndarray] | None:
        dictionary, entries = self._dictionaries[position], self._entries.get(position)
        assert dictionary is not None, "a column of texts has a dictionary"
        if entries is None:
            entries = self._entries[position] = self._page.cells[position, self._at] + 1
            if self._page.nulls is not None:
                entries[self._page.nulls[position, self._at] != 0] = 0
        return dictionary, entries

    def column(self, position: int) -> Vector:
        page, at = self._page, self._at
        nulls = None if page.nulls is None else page.nulls[position, at]
        return vector_of(self._schema.columns[position].type, page.cells[position, at], nulls, self._dictionaries[position])


class RowsFrame(Frame):
    """Rows of several stores side by side: row i is the rows at `positions[k][i]` of store k, one after the other.

    After the columns of all schemas come those of `derived`, each given by its store and its position in it.
    """

    __slots__ = ("_gatherers", "_dictionaries", "_positions", "_places")

    def __init__(
        self, gatherers: Sequence[Gatherer], dictionaries: Sequence[list[Dictionary | None]], positions: Sequence[np.ndarray],
        derived: Sequence[tuple[int, int]] = (),
    ) -> None:  # fmt: skip
        super().__init__(len(positions[0]))
        self._gatherers = gatherers
        self._dictionaries = dictionaries
        self._positions = positions
        #: (store, column in it) of each column
        self._places = [(k, column) for k, rows in enumerate(gatherers) for column in range(len(rows.store.schema))]
        self._places += derived

    def column(self, position: int) -> Vector:
        k, column = self._places[position]
        rows = self._gatherers[k]
        cells, nulls = rows.cells(column, self._positions[k])
        return vector_of(rows.store.columns[column].type, cells, nulls, self._dictionaries[k][column])


def vector_of(type_: Type, cells: np.ndarray, nulls: np.ndarray | None, dictionary: Dictionary | None) -> Vector:
    """Cells of a store and their NULL bytes as a vector of its own memory."""
    mask = None if nulls is None else nulls.astype(np.bool_)
    if mask is not None and not mask.any():
        mask = None
    cells = np.array(cells)
    if type_ is Type.FLOAT:
        return Vector(type_, cells.view(np.float64), mask)
    if type_ is Type.BOOL:
        return Vector(type_, cells.astype(np.bool_), mask)
    return Vector(type_, cells, mask, None if dictionary is None else dictionary.as_array())
