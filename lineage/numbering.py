"""Numbers that are given out once each, upwards; unlike an iterator of the library one can be copied and loaded again."""

from __future__ import annotations

from typing import Self


class Numbering:
    """`next(numbering)` is one more than the number before.

    >>> modules = Numbering(1)
    >>> next(modules), next(modules)
    (1, 2)
    """

    __slots__ = ("_next",)

    def __init__(self, first: int = 0) -> None:
        self._next = first

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> int:
        number = self._next
        self._next = number + 1
        return number
