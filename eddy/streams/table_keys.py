"""Keys as users write them, for `delete` and `retract`, and the last row of each key in an upsert."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from lineage.dictionary import Dictionary
from lineage.errors import RowError
from lineage.ingest import Ingestor
from lineage.schema import Schema, Type
from lineage.times import show
from stems.keys import KeyFolding, Keys

if TYPE_CHECKING:
    from eddy.streams.table_source import TableSource


def null_key(table: str, column: str, row: int) -> RowError:
    return RowError(
        f'column "{column}" is NULL, and it is in the key of table "{table}"', code="null_key", row=row, column=column,
        hint="every row of a table has its key",
    )  # fmt: skip


def key_cells(values: np.ndarray, type_: Type) -> np.ndarray:
    """A column as 64-bit cells in memory of their own: input may be of any width, and read-only."""
    return np.array(values, np.float64 if type_ is Type.FLOAT else np.int64).view(np.int64)


def last_of_each(keys: Keys) -> np.ndarray:
    """The last row of each key, in order of the rows."""
    if len(keys) < 2:
        return np.arange(len(keys))
    columns = keys.columns if len(keys.columns) else keys.words[None]
    order = np.lexsort(columns)
    ordered = columns[:, order]
    # the sort is stable, so the last of a run of equal keys is the last row of the key
    last = np.append((ordered[:, 1:] != ordered[:, :-1]).any(axis=0), True)
    return np.sort(order[last])


def parse_keys(keys: Any, table: TableSource) -> Keys:
    """Keys of a table, ready for look-up: from a list of values, or of tuples or lists for a key of several columns."""
    given = given_keys(keys, [table.schema.names[position] for position in table.key])
    # texts that the table does not have must not enter its dictionaries
    columns = [table.schema.columns[position] for position in table.key]
    own = [Dictionary() if column.type is Type.STRING else None for column in columns]
    taken = Ingestor(Schema(tuple(columns)), None, own).take(given)
    ordered = np.argsort(table.key).tolist()
    probing = [(columns[at].type, own[at]) for at in ordered]
    stored = [(columns[at].type, table.dictionaries[table.key[at]]) for at in ordered]
    cells = [key_cells(taken.cells[at], columns[at].type) for at in ordered]
    nulls = [taken.nulls[at] for at in ordered]
    return KeyFolding.of_probing(probing, stored).fold(cells, [None if null is None else null.astype(np.uint8) for null in nulls])


def given_keys(keys: Any, names: list[str]) -> dict[str, Any]:
    """Keys by column; raises `RowError` if `keys` is not a list of them."""
    if isinstance(keys, str | bytes | dict) or not hasattr(keys, "__len__") or not hasattr(keys, "__iter__"):
        raise RowError(f"{show(keys)} is no list of keys", code="not_keys", hint=_hint(names))
    return {names[0]: keys} if len(names) == 1 else _columns(keys, names)


def _columns(keys: Any, names: list[str]) -> dict[str, list[Any]]:
    for row, key in enumerate(keys):
        if not isinstance(key, tuple | list) or len(key) != len(names):
            raise RowError(f"{show(key)} is no key of {len(names)} columns", code="not_keys", row=row, hint=_hint(names))
    return {name: [key[at] for key in keys] for at, name in enumerate(names)}


def _hint(names: list[str]) -> str:
    return f"a list of values of {names[0]}" if len(names) == 1 else f"a list of tuples ({', '.join(names)})"
