"""Packing many small results into a few long arrays, for the dump of a change log (`eddy/state/dump.py`).

A log has some arrays for each commit that changed its query, so an engine may have a million of a few bytes each. Packed they
stand end to end, column by column; unpacked every result is a slice of that.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from eddy.base.results import Results
from filters.values.vector import Array, Vector
from lineage.schema import Type


class Joined(NamedTuple):
    """The arrays of all results end to end; `there[k]`: whether result k has an array."""

    there: list[bool]
    #: None if no result has any
    values: Array | None


class PackedColumn(NamedTuple):
    """One column of all results."""

    types: list[Type]
    #: by type: parts of a column may be of the type NULL
    values: dict[Type, Array]
    nulls: Joined
    #: those that occur, and the place of each result's among them
    dictionaries: list[Array | None]
    dictionary_of: list[int]


class PackedResults(NamedTuple):
    """Results, all with the same columns."""

    #: rows of each
    lengths: list[int]
    times: Array
    #: the one sign of each result's rows, 0 if they have signs of their own
    sign: list[int]
    signs: Joined
    columns: list[PackedColumn]


def pack(results: Sequence[Results]) -> PackedResults | None:
    """Pack results with the same columns; None for no results."""
    if not results:
        return None
    return PackedResults(
        [len(result) for result in results],
        np.concatenate([result.times for result in results]),
        [result.sign if isinstance(result.sign, int) else 0 for result in results],
        _joined([None if isinstance(result.sign, int) else result.sign for result in results]),
        [_pack_column(list(column)) for column in zip(*(result.columns for result in results), strict=True)],
    )


def unpack(packed: PackedResults | None) -> list[Results]:
    """The results again, as slices of the packed arrays."""
    if packed is None:
        return []
    lengths = packed.lengths
    times = _parted(packed.times, lengths)
    signs = _pieces(packed.signs, lengths)
    columns = [_unpack_column(column, lengths) for column in packed.columns]
    return [
        Results([column[k] for column in columns], times[k], packed.sign[k] if (own := signs[k]) is None else own)
        for k in range(len(lengths))
    ]


def _pack_column(vectors: list[Vector]) -> PackedColumn:
    types = [vector.type for vector in vectors]
    values = {each: np.concatenate([v.values for v in vectors if v.type is each]) for each in dict.fromkeys(types)}
    places: dict[int, int] = {}
    dictionaries: list[Array | None] = []
    for vector in vectors:
        if id(vector.dictionary) not in places:
            places[id(vector.dictionary)] = len(dictionaries)
            dictionaries.append(vector.dictionary)
    of = [places[id(vector.dictionary)] for vector in vectors]
    return PackedColumn(types, values, _joined([vector.nulls for vector in vectors]), dictionaries, of)


def _unpack_column(column: PackedColumn, lengths: list[int]) -> list[Vector]:
    values = {
        each: iter(_parted(found, [n for n, type_ in zip(lengths, column.types) if type_ is each]))
        for each, found in column.values.items()
    }
    nulls = _pieces(column.nulls, lengths)
    return [
        Vector(type_, next(values[type_]), nulls[k], column.dictionaries[of])
        for k, (type_, of) in enumerate(zip(column.types, column.dictionary_of))
    ]


def _joined(arrays: list[Array | None]) -> Joined:
    there = [array for array in arrays if array is not None]
    return Joined([array is not None for array in arrays], np.concatenate(there) if there else None)


def _pieces(joined: Joined, lengths: list[int]) -> list[Array | None]:
    """The array of each result; None for a result without one."""
    if joined.values is None:
        return [None] * len(lengths)
    parts = iter(_parted(joined.values, [n for n, there in zip(lengths, joined.there) if there]))
    return [next(parts) if there else None for there in joined.there]


def _parted(array: Array, lengths: list[int]) -> list[Array]:
    """Consecutive slices."""
    found, at = [], 0
    for n in lengths:
        found.append(array[at : at + n])
        at += n
    return found
