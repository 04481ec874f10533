"""Several kinds of rows in one table: the columns of all, side by side, NULL where a kind has no such column.

Spark has one schema for a stream and a folder of files, we have several streams and queries. Each kind has a name that its rows
carry in a column of their own, beside the columns that every row has (`common`). A column that several kinds have is one column
if its type is the same in all of them; otherwise there is one for each type, `price_int` and `price_float`.
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from pipeline.dataset import ARROW_TYPES


class Wide:
    """The one schema of several kinds of rows, by type words.

    >>> wide = Wide("stream", {"row": "int"}, {"a": {"x": "int", "y": "bool"}, "b": {"x": "float"}})
    >>> wide.columns
    {'stream': 'string', 'row': 'int', 'x_int': 'int', 'y': 'bool', 'x_float': 'float'}
    """

    def __init__(self, kind: str, common: Mapping[str, str], kinds: Mapping[str, Mapping[str, str]]) -> None:
        self._kind = kind
        #: name -> type word of every column
        self.columns: dict[str, str] = {kind: "string", **common}
        own = {name.lower() for name in self.columns}
        words: dict[str, set[str]] = {}
        for columns in kinds.values():
            for name, word in columns.items():
                words.setdefault(name.lower(), set()).add(word)
        #: kind -> its column -> the wide one
        self._places: dict[str, dict[str, str]] = {}
        for of, columns in kinds.items():
            places = self._places[of] = {}
            for name, word in columns.items():
                alone = len(words[name.lower()]) == 1 and name.lower() not in own
                places[name] = self._place(name if alone else f"{name}_{word}", word, {*own, *words} if not alone else set())
        self.schema = pa.schema([(name, ARROW_TYPES[word]) for name, word in self.columns.items()])

    def _place(self, name: str, word: str, taken: set[str]) -> str:
        """The wide column of that name and type, which is made if it is not there; in any case, as everywhere in SQL."""
        while name.lower() in taken:
            name += "_"
        for known in self.columns:
            if known.lower() == name.lower():
                return known
        self.columns[name] = word
        return name

    def widen(self, kind: str, rows: pa.Table, common: Mapping[str, pa.Array]) -> pa.Table:
        """Rows of a kind in the wide schema."""
        given = {self._kind: pa.repeat(pa.scalar(kind, pa.string()), rows.num_rows), **common}
        given |= {wide: rows.column(name) for name, wide in self._places[kind].items()}
        return pa.table(
            [
                given[field.name].cast(field.type) if field.name in given else pa.nulls(rows.num_rows, field.type)
                for field in self.schema
            ],
            schema=self.schema,
        )

    def narrow(self, kind: str, rows: pa.Table) -> pa.Table:
        """Rows of the wide schema, all of a kind, with the kind's own columns."""
        places = self._places[kind]
        return pa.table([rows.column(wide) for wide in places.values()], names=list(places))
