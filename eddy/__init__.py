"""Eddy: thousands of standing queries over live streams at once.

    from eddy import Engine

The engine loads on first use, so that what needs less of it starts quickly.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from eddy.changes import Changes
    from eddy.commit import Commit
    from eddy.description import Change, Receipt, Stream, Table, TableReceipt
    from eddy.engine import Engine
    from eddy.query import Query
    from lineage.errors import (
        ConflictError,
        EddyError,
        GoneError,
        InUseError,
        LimitError,
        NotFoundError,
        QueryError,
        RowError,
        SchemaError,
    )

_HOME = {
    "Change": "eddy.description",
    "Changes": "eddy.changes",
    "Commit": "eddy.commit",
    "Engine": "eddy.engine",
    "Receipt": "eddy.description",
    "Stream": "eddy.description",
    "Table": "eddy.description",
    "TableReceipt": "eddy.description",
    "Query": "eddy.query",
    **dict.fromkeys(
        [
            "ConflictError",
            "EddyError",
            "GoneError",
            "InUseError",
            "LimitError",
            "NotFoundError",
            "QueryError",
            "RowError",
            "SchemaError",
        ],
        "lineage.errors",
    ),
}

__all__ = [
    "Change",
    "Changes",
    "Commit",
    "ConflictError",
    "EddyError",
    "Engine",
    "GoneError",
    "InUseError",
    "LimitError",
    "NotFoundError",
    "Query",
    "QueryError",
    "Receipt",
    "RowError",
    "SchemaError",
    "Stream",
    "Table",
    "TableReceipt",
]


def __getattr__(name: str) -> Any:
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module 'eddy' has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(home), name)
