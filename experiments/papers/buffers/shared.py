"""A producer's output state read as its consumer's input state: one copy, two readers (semantics 33, U Query 4).

    rows the consumer finds = rows the producer keeps whose + the consumer has processed

The producer runs ahead of the consumer by what is in the queue between them; rows are numbered, and the consumer has seen those
up to the number of the last + it took. Ends are the producer's business: it takes rows out, and the consumer has nothing to
maintain.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator

from experiments.papers.buffers.element import Element
from experiments.papers.buffers.row_buffer import Key, RowBuffer


class SharedBuffer(RowBuffer):
    kind = "shared"

    def __init__(self, owner: RowBuffer, key: Key) -> None:
        super().__init__(key)
        self._owner = owner
        self._by = owner.add_key(key)
        #: the number of the last row that the consumer has taken
        self._seen = 0

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __iter__(self) -> Iterator[Element]:
        return (row for row in self._owner if row.number <= self._seen)

    def insert(self, element: Element) -> None:
        self._seen = element.number

    def remove(self, element: Element) -> Element | None:
        # the producer has taken it out already, or has another one with this id by now
        return element if element.number <= self._seen else None

    def find(self, key: Hashable, by: int = 0) -> list[Element]:
        return [row for row in self._owner.find(key, self._by) if row.number <= self._seen]

    def take_ending(self, end: int) -> list[Element]:
        return []

    def forget(self, element: Element) -> None:
        raise AssertionError("rows of a shared buffer are forgotten by their owner")

    def check(self) -> None:
        assert self._seen >= 0

    def _place(self, element: Element) -> None:
        raise AssertionError("rows of a shared buffer are placed by their owner")

    def _unplace(self, element: Element) -> None:
        raise AssertionError("rows of a shared buffer are taken out by their owner")

    def _take(self, upto: int) -> list[Element]:
        return []

    def _arranged(self) -> list[Element]:
        return list(self)
