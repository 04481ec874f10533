"""Running a Python function over vectors once per distinct combination of its arguments, then gathering.

    map_distinct(f, [a, b])[i] = f(a[i], b[i])    where no argument is NULL, else NULL

Text functions and text casts have no numpy form, but streams repeat their strings, so a call per distinct value is
what makes them cheap: O(rows) array work plus one Python call per distinct combination among the non-NULL rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from filters.values.vector import DTYPES, Array, Frame, Vector, union_nulls
from lineage.schema import Type


def map_distinct(type: Type, function: Callable[..., Any], args: Sequence[Vector], frame: Frame) -> Vector:
    """A vector of `type` from `function` over cells (timestamps as microseconds); its None is an error: NULL, counted."""
    nulls = union_nulls(args)
    if nulls is not None:
        valid = np.flatnonzero(~nulls)
        args = [arg.take(valid) for arg in args]
    keys, places = _distinct_keys(args)
    results = [function(*key) for key in keys]
    found = _gather(type, results, places, frame)
    if nulls is None:
        return found
    values = np.zeros(len(nulls), DTYPES[type])
    values[valid] = found.values
    if found.nulls is not None:
        nulls = nulls.copy()
        nulls[valid] = found.nulls
    return Vector(type, values, nulls, found.dictionary)


def distinct_cells(vector: Vector) -> tuple[list[Any], Array]:
    """The distinct cells of a vector without NULLs, and each row's place among them; -0.0 and 0.0 stay apart."""
    if vector.type is Type.STRING:
        return vector.compact()
    if vector.values.strides == (0,) and len(vector):
        return [vector.values[0].item()], np.zeros(len(vector), np.int64)
    if vector.type is Type.FLOAT:
        bits, places = np.unique(np.ascontiguousarray(vector.values).view(np.int64), return_inverse=True)
        return bits.view(np.float64).tolist(), places
    cells, places = np.unique(vector.values, return_inverse=True)
    return cells.tolist(), places


def _distinct_keys(args: Sequence[Vector]) -> tuple[list[tuple[Any, ...]], Array]:
    cells, places = distinct_cells(args[0])
    keys: list[tuple[Any, ...]] = [(cell,) for cell in cells]
    for arg in args[1:]:
        cells, more = distinct_cells(arg)
        if len(cells) == 1:
            keys = [(*key, cells[0]) for key in keys]
            continue
        # At most rows * rows, so the product stays far inside int64; compacted again before the next argument.
        pairs, places = np.unique(places * len(cells) + more, return_inverse=True)
        keys = [(*keys[pair // len(cells)], cells[pair % len(cells)]) for pair in pairs.tolist()]
    return keys, places


def _gather(type: Type, results: list[Any], places: Array, frame: Frame) -> Vector:
    failed = np.array([result is None for result in results], np.bool_)
    if type is Type.STRING:
        encoded = Vector.of_strings(results)
        found = Vector(type, encoded.values[places], None, encoded.dictionary)
    else:
        cells = np.array([0 if result is None else result for result in results], DTYPES[type])
        found = Vector(type, cells[places])
    if failed.any():
        found.nulls = failed[places]
        frame.fail(found.nulls)
    return found
