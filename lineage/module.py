"""The protocol of everything that holds state per slot.

A module is told when a slot gets a new owner and resets what it holds for it; that is what makes the reuse of slots safe
without sweeping stored rows. It can be asked for its counters, and can check itself against what its owner believes
was placed in it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, TypeVar

#: What an owner believes to have placed in a module.
Placed = TypeVar("Placed", contravariant=True)


class Module(Protocol[Placed]):
    """Grouped filters, predicate modules, candidate indexes."""

    def on_assign(self, slot: int) -> None:
        """Forget the state of a slot, which has a new owner."""
        ...

    def resize(self, n_words: int) -> None:
        """Slots are now 0 .. 64 * n_words - 1."""
        ...

    def check(self, placed: Placed) -> None:
        """Raise AssertionError if an invariant is broken or something else is held than was placed."""
        ...

    def stats(self) -> Mapping[str, int]:
        """Return counters of its state."""
        ...
