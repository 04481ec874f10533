"""Durability: a data directory with a journal of calls, snapshots of state and a catalog of definitions.

    directory = DataDirectory.open(LocalDisk("data"))
    recovery = directory.recover()

This package knows bytes and numbers, not what a call means; it imports lineage alone.
"""

from __future__ import annotations

from lineage.errors import StorageError
from storage.definition_catalog import CatalogEntry, DefinitionCatalog
from storage.directory import DataDirectory, Recovery
from storage.disk import Data, Disk, File, LocalDisk
from storage.records import MAX_PAYLOAD, JournalRecord
from storage.snapshots import Snapshot

__all__ = [
    "MAX_PAYLOAD",
    "CatalogEntry",
    "Data",
    "DataDirectory",
    "DefinitionCatalog",
    "Disk",
    "File",
    "JournalRecord",
    "LocalDisk",
    "Recovery",
    "Snapshot",
    "StorageError",
]
