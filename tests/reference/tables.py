"""Tables as all the versions their rows ever had (`semantics.md` 15).

A version is current in the commits `opened <= seq < closed`. A table change is a commit of its own, so no row of a stream
arrives in the commit of a version.

Choices where the text leaves room: of two rows with one key in one `upsert` the last one counts; an `upsert` of what is
already there makes a new version (which nets to nothing); NaN is one key and -0.0 is 0.0; NULL in a key is refused, as in
SQL; deleting a key that is not there does nothing, and is a commit all the same.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from tests.reference.values import Row, Value, canonical_row


@dataclass
class Version:
    """One row of a table from the commit that wrote it to the one that replaced or deleted it."""

    number: int
    row: Row
    opened: int
    closed: float = math.inf


@dataclass
class Table:
    name: str
    key: tuple[str, ...]
    retroactive: bool
    #: every version ever, in order of `number`
    versions: list[Version] = field(default_factory=list)
    #: the current ones by key
    current: dict[Value, Version] = field(default_factory=dict)

    def upsert(self, rows: Sequence[Row], seq: int) -> None:
        last: dict[Value, Row] = {}
        for row in rows:
            key = canonical_row(row[column] for column in self.key)
            last.pop(key, None)  # versions are numbered in the order of the rows that count
            last[key] = row
        if any(None in key for key in last):
            raise ValueError(f"NULL in the key of table {self.name}")
        self.delete(last, seq)
        for key, row in last.items():
            self.current[key] = Version(len(self.versions), row, seq)
            self.versions.append(self.current[key])

    def delete(self, keys: Iterable[Sequence[object]], seq: int) -> None:
        for key in keys:
            found = self.current.pop(canonical_row(key), None)
            if found:
                found.closed = seq

    def at(self, seq: int) -> list[Version]:
        """The table as it was after commit `seq`."""
        return [version for version in self.versions if version.opened <= seq < version.closed]
