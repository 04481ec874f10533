"""Output rows of a query: columns, times and signs; their netting, and their form as an Arrow table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from filters.values.vector import Vector, end_to_end
from lineage.schema import Type
from windows.state.netting import uncancelled

#: What the objects of a part take beside its cells, and those of each of its columns.
_PART_BYTES = 512
_COLUMN_BYTES = 256


@dataclass(slots=True)
class Results:
    """Output rows, in order of time: vectors of the output columns, effective times, and signs, one for all or one each."""

    columns: list[Vector]
    times: np.ndarray
    sign: int | np.ndarray

    def __len__(self) -> int:
        return len(self.times)

    def take(self, rows: np.ndarray | slice) -> Results:
        sign = self.sign if isinstance(self.sign, int) else self.sign[rows]
        return Results([column.take(rows) for column in self.columns], self.times[rows], sign)

    @property
    def signs(self) -> np.ndarray:
        """+1 or -1 for each row."""
        return np.full(len(self), self.sign, np.int8) if isinstance(self.sign, int) else self.sign.astype(np.int8)

    def by_sign(self) -> list[tuple[int, Results]]:
        """The rows of each sign that has any, - before +."""
        if isinstance(self.sign, int):
            return [(self.sign, self)] if len(self) else []
        parts = [(sign, np.flatnonzero(self.sign == sign)) for sign in (-1, 1)]
        return [
            (sign, Results([column.take(rows) for column in self.columns], self.times[rows], sign))
            for sign, rows in parts
            if len(rows)
        ]


def size_of(part: Results) -> int:
    """The bytes of a batch of changes."""
    n_bytes = _PART_BYTES + part.times.nbytes + (0 if isinstance(part.sign, int) else part.sign.nbytes)
    return n_bytes + sum(map(_column_size, part.columns))


def _column_size(column: Vector) -> int:
    n_bytes = _COLUMN_BYTES + column.values.nbytes
    codes = column.values
    if column.nulls is not None:
        n_bytes += column.nulls.nbytes
        codes = codes[~column.nulls]
    if column.dictionary is not None and len(codes):
        texts, places = Vector(Type.STRING, codes, None, column.dictionary).compact()
        n_bytes += int(np.array([len(text) for text in texts])[places].sum())
    return n_bytes


def net(minus: Results | None, plus: Results) -> list[Results]:
    """Return the changes of a commit without rows of equal values, - before +: of each value the latest ends or starts remain."""
    if minus is not None and len(minus) and len(plus):
        left, came = uncancelled(minus.columns, plus.columns)
        if len(left) < len(minus):
            minus, plus = minus.take(left), plus.take(came)
    return [part for part in (minus, plus) if part is not None and len(part)]


def net_by_instant(minus: Results | None, plus: Results) -> list[Results]:
    """Return the same for each instant of the commit alone, in order of time: a row that came and left inside it is shown."""
    # with the time as a value among the others, only changes of one instant cancel
    parts = net(None if minus is None else _stamped(minus), _stamped(plus))
    if not parts:
        return []
    times, signs = np.concatenate([part.times for part in parts]), np.concatenate([part.signs for part in parts])
    columns = joined_columns([part.columns[1:] for part in parts])
    return [Results(columns, times, signs).take(np.lexsort((signs, times)))]


def joined_columns(parts: Sequence[Sequence[Vector]]) -> list[Vector]:
    """Return the columns of parts, of which there are some, end to end."""
    return [end_to_end(columns[0].type, columns) for columns in zip(*parts, strict=True)]


def _stamped(results: Results) -> Results:
    return Results([Vector(Type.TIMESTAMP, results.times), *results.columns], results.times, results.sign)


#: How the changes of a commit are netted, by the `emit` of a query (semantics 12).
NETTING = {"commit": net, "event": net_by_instant}


def to_table(names: Sequence[str], results: Results, metadata: dict[str, str]) -> pa.Table:
    """Output rows as an Arrow table."""
    arrays = [column.to_arrow() for column in results.columns]
    fields = [pa.field(name, array.type) for name, array in zip(names, arrays, strict=True)]
    return pa.table(arrays, schema=pa.schema(fields, metadata=metadata))
