"""Eddy: thousands of standing queries over live streams at once.

    from eddy import Engine

The engine loads on first use, so that what needs less of it starts quickly.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from eddy.base.description import Change, MergedStream, MergeReceipt, Receipt, Stream, Table, TableReceipt
    from eddy.changes import Changes
    from eddy.engine import Engine
    from eddy.matching.commit import Commit
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
    "Change": "eddy.base.description",
    "Changes": "eddy.changes",
    "Commit": "eddy.matching.commit",
    "Engine": "eddy.engine",
    "MergeReceipt": "eddy.base.description",
    "MergedStream": "eddy.base.description",
    "Receipt": "eddy.base.description",
    "Stream": "eddy.base.description",
    "Table": "eddy.base.description",
    "TableReceipt": "eddy.base.description",
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
    "MergeReceipt",
    "MergedStream",
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
