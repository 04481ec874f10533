"""Values by the identity of objects: for keys that are known as one object, and dear to hash or to compare.

A key is kept as long as its value, so no other object can take its identity; a copy of the mapping that is loaded elsewhere knows
the copies of its keys.

    >>> first, second = [1], [1]
    >>> found = ById([(first, "first"), (second, "second")])
    >>> found[second], found.get([1]), len(found)
    ('second', None, 2)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Generic, TypeVar, overload

K = TypeVar("K")
V = TypeVar("V")


class ById(Generic[K, V]):
    """A mapping whose keys are objects, each equal to itself only; in the order in which they came."""

    __slots__ = ("_held",)

    def __init__(self, pairs: Iterable[tuple[K, V]] = ()) -> None:
        self._held = {id(pair[0]): pair for pair in pairs}

    def __len__(self) -> int:
        return len(self._held)

    def __contains__(self, key: K) -> bool:
        return id(key) in self._held

    def __getitem__(self, key: K) -> V:
        return self._held[id(key)][1]

    def __setitem__(self, key: K, value: V) -> None:
        self._held[id(key)] = key, value

    @overload
    def get(self, key: K) -> V | None: ...

    @overload
    def get(self, key: K, default: V) -> V: ...

    def get(self, key: K, default: V | None = None) -> V | None:
        found = self._held.get(id(key))
        return default if found is None else found[1]

    def items(self) -> Iterable[tuple[K, V]]:
        return self._held.values()

    def values(self) -> Iterator[V]:
        return (value for _, value in self._held.values())

    def __getstate__(self) -> tuple[list[tuple[K, V]]]:
        return (list(self._held.values()),)

    def __setstate__(self, state: tuple[list[tuple[K, V]]]) -> None:
        self._held = {id(pair[0]): pair for pair in state[0]}
