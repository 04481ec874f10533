"""Slow twins of the indexes of `stems/`: a dict of lists, and a list that is scanned."""

from __future__ import annotations

from collections.abc import Hashable, Iterable


class SlowHashIndex:
    """Key -> positions, oldest first; a key of None is not indexed."""

    def __init__(self) -> None:
        self.positions: dict[Hashable, list[int]] = {}

    def build(self, key: Hashable | None, position: int) -> None:
        if key is not None:
            self.positions.setdefault(key, []).append(position)

    def probe(self, key: Hashable | None, low: int, hi: int) -> list[int]:
        """Newest first."""
        return [position for position in reversed(self.positions.get(key, [])) if low <= position < hi] if key is not None else []

    def remove(self, gone: Iterable[int]) -> None:
        """Deleted positions."""
        lost = set(gone)
        for key, held in list(self.positions.items()):
            self.positions[key] = [position for position in held if position not in lost]

    def forget(self, watermark: int) -> None:
        for key, held in list(self.positions.items()):
            self.positions[key] = [position for position in held if position >= watermark]
            if not self.positions[key]:
                del self.positions[key]


class SlowSortedIndex:
    """(position, order key) of each row; a key of None is not indexed."""

    def __init__(self) -> None:
        self.rows: list[tuple[int, int]] = []

    def build(self, key: int | None, position: int) -> None:
        if key is not None:
            self.rows.append((position, key))

    def probe(self, lowest: int, highest: int, low: int, hi: int) -> list[int]:
        """Positions with lowest <= key <= highest, in ascending order."""
        return [position for position, key in self.rows if lowest <= key <= highest and low <= position < hi]

    def remove(self, gone: Iterable[int]) -> None:
        lost = set(gone)
        self.rows = [(position, key) for position, key in self.rows if position not in lost]

    def forget(self, watermark: int) -> None:
        self.rows = [(position, key) for position, key in self.rows if position >= watermark]
