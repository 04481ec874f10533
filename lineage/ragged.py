"""Several growing arrays end to end in one, as kernels take them.

    array k is   data[at[k] : at[k] + n[k]]        behind it, up to at[k + 1], room filled with `fill`

An insert or a delete moves the entries behind it in that array only. Behind each array at least `spare` entries stay free, so a
kernel may read that far past the end. When an array has no room left all are laid out anew with twice the room for it:
amortised constant per insert. Views and `data` are valid until the next insert.
"""

from __future__ import annotations

import numpy as np


class Ragged:
    """Arrays of one dtype, numbered from 0."""

    __slots__ = ("data", "at", "n", "_fill", "_spare")

    def __init__(self, dtype: type, fill: int = 0, spare: int = 0) -> None:
        self.data: np.ndarray = np.full(1, fill, dtype)
        self.at = np.zeros(1, np.int64)
        self.n = np.zeros(0, np.int64)
        self._fill = fill
        self._spare = spare

    def __len__(self) -> int:
        return len(self.n)

    def append(self, values: np.ndarray) -> None:
        """One more array."""
        views = [self.view(k) for k in range(len(self))]
        self._lay_out([*views, values], [*np.diff(self.at).tolist(), 0])

    def view(self, k: int) -> np.ndarray:
        start = self.at[k]
        return self.data[start : start + self.n[k]]

    def set(self, k: int, values: np.ndarray) -> None:
        """Replace the whole array."""
        start, n = int(self.at[k]), len(values)
        if start + n + self._spare > self.at[k + 1]:
            views = [values if j == k else self.view(j) for j in range(len(self))]
            self._lay_out(views, np.diff(self.at).tolist())
            return
        self.data[start : start + n] = values
        self.data[start + n : start + max(n, int(self.n[k]))] = self._fill
        self.n[k] = n

    def insert(self, k: int, i: int, value: int) -> None:
        """Put a value before entry i."""
        start, n = int(self.at[k]), int(self.n[k])
        if start + n + 1 + self._spare > self.at[k + 1]:
            rooms = np.diff(self.at).tolist()
            rooms[k] = 2 * (n + 1 + self._spare)
            self._lay_out([self.view(j) for j in range(len(self))], rooms)
            start = int(self.at[k])
        data = self.data
        data[start + i + 1 : start + n + 1] = data[start + i : start + n]
        data[start + i] = value
        self.n[k] = n + 1

    def delete(self, k: int, i: int) -> None:
        """Take entry i out."""
        start, n = int(self.at[k]), int(self.n[k])
        data = self.data
        data[start + i : start + n - 1] = data[start + i + 1 : start + n]
        data[start + n - 1] = self._fill
        self.n[k] = n - 1

    def _lay_out(self, arrays: list[np.ndarray], rooms: list[int]) -> None:
        """All arrays anew, each with at least the room given."""
        rooms = [max(room, len(values) + self._spare, 8) for values, room in zip(arrays, rooms, strict=True)]
        at = np.zeros(len(arrays) + 1, np.int64)
        np.cumsum(rooms, out=at[1:])
        data = np.full(max(1, int(at[-1])), self._fill, self.data.dtype)
        for start, values in zip(at.tolist(), arrays):
            data[start : start + len(values)] = values
        self.n = np.array([len(values) for values in arrays], np.int64)
        self.data, self.at = data, at

    def check(self) -> None:
        """Every invariant of the docstring."""
        assert len(self.at) == len(self.n) + 1, "an array begins where the one before it ends"
        for k in range(len(self)):
            start, n, stop = int(self.at[k]), int(self.n[k]), int(self.at[k + 1])
            assert start + n + self._spare <= stop <= len(self.data), "every array has its room"
            assert (self.data[start + n : stop] == self._fill).all(), "free room is filled"
