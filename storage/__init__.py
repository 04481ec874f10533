"""Durability: a data directory with a journal of calls, snapshots of state and a catalog of definitions.

    directory = DataDirectory.open(LocalDisk("data"))
    recovery = directory.recover()

This package knows bytes and numbers, not what a call means; it imports lineage alone.
"""

from __future__ import annotations

from lineage.errors import StorageError
from storage.catalog import Catalog, Definition
from storage.directory import DataDirectory, Recovery
from storage.disk import Data, Disk, File, LocalDisk
from storage.records import MAX_PAYLOAD, Record
from storage.snapshots import Snapshot

__all__ = [
    "MAX_PAYLOAD",
    "Catalog",
    "Data",
    "DataDirectory",
    "Definition",
    "Disk",
    "File",
    "LocalDisk",
    "Record",
    "Recovery",
    "Snapshot",
    "StorageError",
]
