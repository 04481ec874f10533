"""The common part of state buffers: keep rows by id and by key, and give out the due ones.

    rows of the buffer = inserted - removed - forgotten
    take_due(T)        = rows with end <= T, in order of end: they leave the arrangement but are found until `forget`

The second step lets an operator end rows one by one while the others, which are still alive at that instant, are still found.
A subclass is an arrangement: `_place`, `_unplace`, `_take`. Rows may be found by several keys (`add_key`), so that a consumer can
read the rows of its producer by a key of its own.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterator
from typing import ClassVar

from experiments.papers.buffers.element import Element, Values

Key = Callable[[Values], Hashable]


def whole_row(values: Values) -> Hashable:
    """The key of operators that compare whole rows."""
    return values


def due_order(element: Element) -> tuple[int, int, int]:
    """Ends first; of one instant the older row first."""
    return element.end, element.start, element.number


class RowBuffer(ABC):
    """Live rows; `touched` counts the rows looked at to keep them in their arrangement."""

    kind: ClassVar[str]

    def __init__(self, key: Key = whole_row) -> None:
        self.touched = 0
        self._rows: dict[Hashable, Element] = {}
        self._keys: list[Key] = []
        #: one for each key: the rows of each key value
        self._found: list[dict[Hashable, dict[Hashable, Element]]] = []
        self.add_key(key)

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[Element]:
        return iter(self._rows.values())

    def add_key(self, key: Key) -> int:
        """A further way to find rows; gives the number to ask by."""
        self._keys.append(key)
        self._found.append({})
        for element in self._rows.values():
            self._file(len(self._keys) - 1, element)
        return len(self._keys) - 1

    def insert(self, element: Element) -> None:
        """Keep a row; one with the same id, which must be over, is replaced."""
        if element.id in self._rows:
            self.remove(element)
        self.touched += 1
        self._index(element)
        self._place(element)

    def admit_due(self, element: Element) -> None:
        """Keep a row that is due already and is about to be forgotten: it is found, but not arranged."""
        self._index(element)

    def remove(self, element: Element) -> Element | None:
        """Take out the row with this id, as it was kept; None if it is not here."""
        stored = self._rows.get(element.id)
        if stored is not None:
            self.forget(stored)
            self._unplace(stored)
        return stored

    def find(self, key: Hashable, by: int = 0) -> list[Element]:
        """The rows with this key, in order of insertion; rows that are over may be among them."""
        return list(self._found[by].get(key, {}).values())

    def holds(self, id: Hashable) -> bool:
        """Whether a row with this id is here, over or not."""
        return id in self._rows

    def take_due(self, upto: int) -> list[Element]:
        """Rows with `end <= upto`, no longer arranged; the caller forgets each."""
        return sorted(self._take(upto), key=due_order)

    @abstractmethod
    def take_ending(self, end: int) -> list[Element]:
        """Rows that end exactly then, no longer arranged; the caller forgets each."""

    def forget(self, element: Element) -> None:
        """The last step of an end: the row is not found any more."""
        del self._rows[element.id]
        for key, found in zip(self._keys, self._found):
            value = key(element.values)
            del found[value][element.id]
            if not found[value]:
                del found[value]

    def check(self) -> None:
        """All that must hold between calls."""
        arranged = self._arranged()
        assert sorted(map(repr, arranged)) == sorted(map(repr, self._rows.values())), (self.kind, arranged, self._rows)
        for key, found in zip(self._keys, self._found):
            assert sum(map(len, found.values())) == len(self._rows), self.kind
            assert all(key(row.values) == value for value, rows in found.items() for row in rows.values()), self.kind

    def _index(self, element: Element) -> None:
        self._rows[element.id] = element
        for by in range(len(self._keys)):
            self._file(by, element)

    def _file(self, by: int, element: Element) -> None:
        self._found[by].setdefault(self._keys[by](element.values), {})[element.id] = element

    @abstractmethod
    def _place(self, element: Element) -> None:
        """Put a row into the arrangement."""

    @abstractmethod
    def _unplace(self, element: Element) -> None:
        """Take one row out of the arrangement."""

    @abstractmethod
    def _take(self, upto: int) -> list[Element]:
        """Take the due rows out of the arrangement."""

    @abstractmethod
    def _arranged(self) -> list[Element]:
        """All rows of the arrangement."""
