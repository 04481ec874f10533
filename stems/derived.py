"""Derived columns: expressions over the rows of one store, computed once a row and kept with it like a column that was pushed.

Who has to find rows by what an expression says of them (`a.k % 100 = b.k`) holds the derived column of the expression, and
addresses it by its position, behind the columns of the schema. Indexes, gatherers and frames do not tell the two apart.

    one column an expression      shared by all that hold it, and gone with the last of them
    always complete               cell[p] = e(row p) for every row held: computed for the rows that are stored when it is first
                                  held, and for every row as it is stored, whoever will read it
    what cannot be computed       is NULL, and counted: once a row and column, when the row's value is computed
    texts                         have a dictionary of the column's own

Expressions with user functions are none: those are called for rows that some condition lets through, at most once a row.
Cost: one evaluation of the expression by column (`filters/expressions/evaluate.py`) and 8 bytes a row. What reads one column of
texts alone is computed once a text, and looked up by code.
"""

from __future__ import annotations

import numpy as np

from filters.expressions.evaluate import evaluate
from filters.expressions.expression import Expression, columns_of, user_functions_of
from filters.expressions.wording import say_expression
from filters.values.vector import ListFrame, Vector
from lineage.dictionary import Dictionary
from lineage.schema import Column, Type
from stems.frame import PageFrame
from stems.row_store import Page, RowStore


class DerivedColumn:
    """One of them."""

    __slots__ = ("expression", "position", "dictionary", "n_users", "errors", "by_text")

    def __init__(self, expression: Expression, position: int, dictionary: Dictionary | None) -> None:
        self.expression = expression
        self.position = position
        #: not None iff it is of texts
        self.dictionary = dictionary
        self.n_users = 0
        #: values that could not be computed
        self.errors = 0
        #: not None iff it reads one column of texts and nothing else
        reads = columns_of(expression)
        self.by_text = TextValues(self, reads[0].position) if [ref.type for ref in reads] == [Type.STRING] else None

    def encoded(self, found: Vector) -> tuple[np.ndarray, np.ndarray | None]:
        """The cells of values, 0 under NULL, and where they are NULL if any is."""
        if self.dictionary is not None:
            return self._codes(found)
        cells = found.values
        cells = cells.astype(np.float64).view(np.int64) if found.type is Type.FLOAT else cells.astype(np.int64)
        if found.nulls is None:
            return cells, None
        cells[found.nulls] = 0
        return cells, found.nulls

    def _codes(self, found: Vector) -> tuple[np.ndarray, np.ndarray | None]:
        nulls = found.nulls
        if nulls is not None and nulls.all():
            return np.zeros(len(found), np.int64), nulls
        assert self.dictionary is not None
        texts, places = found.compact()
        codes = np.array([self.dictionary.computed(text) for text in texts], np.int64)[places]
        if nulls is not None:
            codes[nulls] = 0
        return codes, nulls


class TextValues:
    """The values of a derived column over one column of texts, one for each text: entry 0 for NULL, entry 1 for code 0.

    Only while it can be computed of every text: what fails is counted once a row, so then rows are computed and no longer texts.
    """

    __slots__ = ("_column", "position", "_fails", "_lists", "_cells", "_nulls")

    def __init__(self, column: DerivedColumn, position: int) -> None:
        self._column = column
        self.position = position
        self._fails = False
        #: the texts whose codes stand in it and for which it stands; compacting a dictionary makes a new list
        self._lists: tuple[list[str], ...] = ()
        self._cells = np.zeros(0, np.int64)
        self._nulls = np.zeros(0, np.bool_)

    def of(self, page: Page, at: int, stop: int, texts: Dictionary) -> tuple[np.ndarray, np.ndarray | None] | None:
        """The cells of rows of a page, and where they are NULL if any is; None if they have to be computed."""
        self._learn(texts)
        if self._fails:
            return None
        entries = page.cells[self.position, at:stop] + 1
        if page.nulls is not None:
            entries[page.nulls[self.position, at:stop] != 0] = 0
        nulls = self._nulls[entries]
        return self._cells[entries], nulls if nulls.any() else None

    def _learn(self, texts: Dictionary) -> None:
        """Compute the entries of texts that are new."""
        own = self._column.dictionary
        lists = (texts.strings,) if own is None else (texts.strings, own.strings)
        if len(lists) != len(self._lists) or any(one is not other for one, other in zip(lists, self._lists)):
            self._lists, self._cells, self._nulls = lists, np.zeros(0, np.int64), np.zeros(0, np.bool_)
        known, n = len(self._cells), len(texts) + 1
        if known == n or self._fails:
            return
        codes, missing = np.arange(known - 1, n - 1), np.zeros(n - known, np.bool_)
        if known == 0:
            codes[0], missing[0] = 0, True
        vector = Vector(Type.STRING, codes, missing, texts.as_array())
        frame = ListFrame([vector] * (self.position + 1))
        cells, nulls = self._column.encoded(evaluate(self._column.expression, frame).widened(self._column.expression.type))
        self._fails = frame.errors > 0
        self._cells = np.concatenate([self._cells, cells])
        self._nulls = np.concatenate([self._nulls, np.zeros(len(cells), np.bool_) if nulls is None else nulls])


class DerivedColumns:
    """The derived columns of one store; `dictionaries` are by position, and get one for each derived column."""

    def __init__(self, store: RowStore, dictionaries: list[Dictionary | None]) -> None:
        self._store = store
        self._dictionaries = dictionaries
        #: by their expressions
        self.columns: dict[Expression, DerivedColumn] = {}

    def hold(self, expression: Expression) -> DerivedColumn:
        """The column of an expression over the store's schema; to be given back by `release`. O(rows) if it is new."""
        found = self.columns.get(expression)
        if found is None:
            assert not user_functions_of(expression), "user functions are called when a condition asks for them"
            found = self.columns[expression] = self._add(expression)
            for page, at, stop in self._store.slices(self._store.watermark, self._store.end):
                self._compute(found, page, at, stop)
        found.n_users += 1
        return found

    def _add(self, expression: Expression) -> DerivedColumn:
        position = self._store.add_column(Column(say_expression(expression), expression.type))
        dictionary = Dictionary() if expression.type is Type.STRING else None
        if position == len(self._dictionaries):
            self._dictionaries.append(None)
        self._dictionaries[position] = dictionary
        return DerivedColumn(expression, position, dictionary)

    def release(self, column: DerivedColumn) -> None:
        """One user less; the last one takes the column away."""
        column.n_users -= 1
        if not column.n_users:
            del self.columns[column.expression]
            self._dictionaries[column.position] = None
            self._store.drop_column(column.position)
            del self._dictionaries[len(self._store.columns) :]

    def build(self, page: Page, at: int, stop: int) -> None:
        """Compute the columns for rows that were just appended to the store, at offsets at..stop of a page."""
        for column in self.columns.values():
            self._compute(column, page, at, stop)

    def errors_in(self, column: DerivedColumn, page: Page, at: int, stop: int) -> int:
        """The rows of a page's part for which a column cannot be computed."""
        frame = PageFrame(page, self._store.schema, self._dictionaries, slice(at, stop))
        evaluate(column.expression, frame)
        return frame.errors

    def _compute(self, column: DerivedColumn, page: Page, at: int, stop: int) -> None:
        encoded = None
        if column.by_text is not None:
            texts = self._dictionaries[column.by_text.position]
            assert texts is not None, "a column of texts has a dictionary"
            encoded = column.by_text.of(page, at, stop, texts)
        if encoded is None:
            frame = PageFrame(page, self._store.schema, self._dictionaries, slice(at, stop))
            encoded = column.encoded(evaluate(column.expression, frame).widened(column.expression.type))
            column.errors += frame.errors
        self._store.put(page, at, column.position, *encoded)

    def stats(self) -> dict[str, dict[str, int]]:
        """By the expression of each column, in words."""
        found = {}
        for column in self.columns.values():
            name = self._store.columns[column.position].name
            found[name] = {"users": column.n_users, "errors": column.errors}
        return found

    def check(self) -> None:
        """All invariants of the docstring but the counts."""
        store = self._store
        assert len(self._dictionaries) == len(store.columns), "a column of texts has a dictionary"
        held = {column.position for column in self.columns.values()}
        assert held == {at for at in range(len(store.schema), len(store.columns)) if store.columns[at].type is not Type.NULL}
        for expression, column in self.columns.items():
            assert column.expression == expression and column.n_users > 0, "a column is there for somebody"
            assert self._dictionaries[column.position] is column.dictionary
            for page, at, stop in store.slices(store.watermark, store.end):
                self._check_cells(column, page, at, stop)

    def _check_cells(self, column: DerivedColumn, page: Page, at: int, stop: int) -> None:
        frame = PageFrame(page, self._store.schema, self._dictionaries, slice(at, stop))
        expected = evaluate(column.expression, frame).widened(column.expression.type)
        cells = page.cells[column.position, at:stop]
        nulls = np.zeros(stop - at, np.bool_) if page.nulls is None else page.nulls[column.position, at:stop].astype(np.bool_)
        assert (nulls == expected.null_mask()).all(), "a value is NULL where its expression is"
        there = np.flatnonzero(~nulls)
        if column.dictionary is None:
            stored, _ = column.encoded(expected)
            assert (cells[there] == stored[there]).all(), "a cell is what its expression says"
        else:
            texts, found = column.dictionary.strings, expected.to_pylist()
            assert all(texts[int(cells[row])] == found[row] for row in there.tolist()), "a code leads to the text"
