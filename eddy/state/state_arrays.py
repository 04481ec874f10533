"""The arrays of an engine's state: laid out in buffers, and loaded again.

Arrays are taken out of the object graph and numbered (`Arrays.number`); when all are known, they are laid out in **stretches** of
memory: an array that shares no memory with another has a stretch to itself, those that do (a dictionary and the views that
readers were given) have one together, and are views of one memory again when they are loaded. So views need no record of their
own.

    table       per array: its stretch, where it begins there, dtype, shape, strides, whether it may be written
    small       the stretches below `SMALL` bytes, end to end
    buffers     the others, one each, without the zeros at their end

Stretches are copies: the engine may go on while they are written. Each is loaded into memory of its own, so that state that goes
gives its memory back. Arrays of texts (object arrays) are lists of strings here, and go with the table.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

#: Bytes from which a stretch is a buffer of its own.
SMALL = 1 << 15
#: What stretches that several arrays share, and small stretches, are aligned to: no array asks for more.
_ALIGNED = 16
#: Zeros at the end of a buffer are cut off in steps of so many words.
_ZEROS = 1 << 12

#: Stretch, offset in bytes (of texts: entries), dtype, shape, strides (None: in C order), whether it may be written.
Place = tuple[int, int, str, tuple[int, ...], tuple[int, ...] | None, bool]


@dataclass(slots=True)
class ArrayTable:
    """The place of each array, and the stretches that have no buffer."""

    places: list[Place] = field(default_factory=list)
    #: bytes of each stretch, and its texts if it has some
    sizes: list[int] = field(default_factory=list)
    texts: dict[int, list[str | None]] = field(default_factory=dict)


class Arrays:
    """The arrays of one dump."""

    def __init__(self) -> None:
        self._numbers: dict[int, int] = {}
        self._arrays: list[Array] = []

    def number(self, array: Array) -> int:
        """The number of an array; it must not change, nor its memory, before `lay_out`."""
        found = self._numbers.get(id(array))
        if found is None:
            found = self._numbers[id(array)] = len(self._arrays)
            self._arrays.append(array)
        return found

    def lay_out(self) -> tuple[ArrayTable, list[bytes | memoryview]]:
        """The table of all arrays, the small stretches, and the buffers: copies."""
        by_root: dict[int, list[int]] = {}
        for number, array in enumerate(self._arrays):
            by_root.setdefault(id(_root(array)), []).append(number)
        table = ArrayTable([(0, 0, "", (), None, True)] * len(self._arrays))
        stretches: list[Array | memoryview] = []
        for members in by_root.values():
            if len(members) == 1 and self._arrays[members[0]].dtype != object:
                self._lay_out_one(table, stretches, members[0])
            else:
                self._lay_out_shared(table, stretches, members)
        return table, _buffers(stretches)

    def _lay_out_one(self, table: ArrayTable, stretches: list[Array | memoryview], number: int) -> None:
        """Lay out an array that shares its memory with no other."""
        array = self._arrays[number]
        if 0 in array.strides and array.size > 1:
            # one value for many rows stays that
            self._lay_out_shared(table, stretches, [number])
            return
        table.places[number] = (len(stretches), 0, array.dtype.str, array.shape, None, array.flags.writeable)
        if not array.flags.c_contiguous and array.flags.f_contiguous:
            table.places[number] = (*table.places[number][:4], array.strides, array.flags.writeable)
            array = array.T
        table.sizes.append(array.nbytes)
        contiguous = np.ascontiguousarray(array)
        flat = contiguous.reshape(-1).view(np.uint8)
        stretches.append(flat if contiguous is array else flat.data)

    def _lay_out_shared(self, table: ArrayTable, stretches: list[Array | memoryview], members: list[int]) -> None:
        """Lay out arrays that share memory: one stretch for each contiguous part that they use."""
        bounds = sorted((*np.lib.array_utils.byte_bounds(self._arrays[number]), number) for number in members)
        at = 0
        while at < len(bounds):
            first, last = bounds[at][:2]
            together = [bounds[at][2]]
            at += 1
            while at < len(bounds) and bounds[at][0] < last:
                last = max(last, bounds[at][1])
                together.append(bounds[at][2])
                at += 1
            if self._arrays[together[0]].dtype == object:
                self._lay_out_texts(table, stretches, together, first, last)
                continue
            # what was aligned stays aligned
            begin = first - first % _ALIGNED
            for number in together:
                array = self._arrays[number]
                offset = np.lib.array_utils.byte_bounds(array)[0] - begin
                assert all(step >= 0 for step in array.strides), "no array of the state runs backwards"
                strides = None if array.flags.c_contiguous else array.strides
                table.places[number] = (len(stretches), offset, array.dtype.str, array.shape, strides, array.flags.writeable)
            stretch = np.zeros(last - begin, np.uint8)
            stretch[first - begin :] = (ctypes.c_uint8 * (last - first)).from_address(first)
            table.sizes.append(len(stretch))
            stretches.append(stretch.data)

    def _lay_out_texts(
        self, table: ArrayTable, stretches: list[Array | memoryview], together: list[int], first: int, last: int
    ) -> None:
        size = np.dtype(object).itemsize
        texts: list[str | None] = [None] * ((last - first) // size)
        for number in together:
            array = self._arrays[number]
            assert array.ndim == 1 and array.flags.c_contiguous, "texts are in a row"
            offset = (array.ctypes.data - first) // size
            texts[offset : offset + len(array)] = array.tolist()
            table.places[number] = (len(stretches), offset, "O", array.shape, None, array.flags.writeable)
        assert all(text is None or type(text) is str for text in texts), "object arrays hold texts"
        table.texts[len(stretches)] = texts
        table.sizes.append(0)
        stretches.append(memoryview(b""))


def _root(array: Array) -> Any:
    """The object that owns an array's memory."""
    root: Any = array
    while isinstance(root, np.ndarray) and root.base is not None:
        root = root.base
    return root


def _buffers(stretches: list[Array | memoryview]) -> list[bytes | memoryview]:
    """The small stretches as one buffer, and each large one as its own; the engine's arrays are copied."""
    small = bytearray()
    buffers: list[bytes | memoryview] = []
    for stretch in stretches:
        if len(stretch) < SMALL:
            small += stretch.data if isinstance(stretch, np.ndarray) else stretch
            small += bytes(-len(small) % _ALIGNED)
        elif isinstance(stretch, memoryview):
            buffers.append(stretch[: _used(np.frombuffer(stretch, np.uint8))])
        else:
            buffers.append(stretch[: _used(stretch)].copy().data)
    return [bytes(small), *buffers]


def _used(stretch: Array) -> int:
    """The bytes of a stretch up to the zeros at its end."""
    words = stretch[: len(stretch) & ~7].view(np.uint64)
    n = len(words)
    if stretch[8 * n :].any():
        return len(stretch)
    while n and not words[max(0, n - _ZEROS) : n].any():
        n = max(0, n - _ZEROS)
    return 8 * n


def loaded(table: ArrayTable, buffers: Sequence[Any]) -> list[Array]:
    """The arrays of a table, each stretch in memory of its own."""
    small = np.frombuffer(buffers[0], np.uint8)
    at, large = 0, iter(buffers[1:])
    users: list[list[int]] = [[] for _ in table.sizes]
    for number, place in enumerate(table.places):
        users[place[0]].append(number)
    arrays: list[Array] = [small] * len(table.places)
    for stretch, size in enumerate(table.sizes):
        if stretch in table.texts:
            _load_texts(table, stretch, users[stretch], arrays)
            continue
        if size < SMALL:
            filled = small[at : at + size]
            at += size + -size % _ALIGNED
        else:
            filled = np.frombuffer(next(large), np.uint8)
        _load(table.places, users[stretch], size, filled, arrays)
    return arrays


def _load(places: list[Place], users: list[int], size: int, filled: Array, arrays: list[Array]) -> None:
    """Load the arrays of one stretch from its first bytes; the rest are zeros."""
    make: Any = np.empty if len(filled) == size else np.zeros
    # the array that has all of it owns the memory, as it did
    whole = next((k for k in users if places[k][1] == 0 and places[k][4] is None and _nbytes(places[k]) == size), -1)
    owner = make(size, np.uint8) if whole < 0 else make(places[whole][3], places[whole][2])
    owner.reshape(-1).view(np.uint8)[: len(filled)] = filled
    for number in users:
        _, offset, dtype, shape, strides, writeable = places[number]
        array = owner if number == whole else np.ndarray(shape, dtype, owner, offset, strides)
        if not writeable:
            array = array[...]
            array.flags.writeable = False
        arrays[number] = array


def _nbytes(place: Place) -> int:
    size = np.dtype(place[2]).itemsize
    for n in place[3]:
        size *= n
    return size


def _load_texts(table: ArrayTable, stretch: int, users: list[int], arrays: list[Array]) -> None:
    texts = table.texts[stretch]
    owner = np.empty(len(texts), object)
    owner[:] = texts
    for number in users:
        _, offset, _, shape, _, writeable = table.places[number]
        whole = shape[0] == len(texts) and writeable
        array = owner if whole else owner[offset : offset + shape[0]]
        array.flags.writeable = writeable
        arrays[number] = array
