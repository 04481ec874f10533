"""The engine's thresholds made so small that a short run crosses all of them many times.

The engine lays out queries and rows in different ways by size: bits or candidate indexes, row-major or query-major,
look-up tables or searches, small pushes or columns, pages. A test of a few hundred rows would meet only the small side.
Answers may not depend on any of these numbers.
"""

from __future__ import annotations

import importlib

import pytest

#: (modules that hold the name, name, small value)
SMALL_LIMITS: list[tuple[str, str, object]] = [
    ("stems.row_store", "PAGE_ROWS", 64),
    ("stems.row_store", "_SPARE_PAGES", 1),
    ("stems.table", "MIN_FORGOTTEN", 2),
    ("eddy.committer", "_SETTLE_EVERY", 2),
    ("eddy.retention", "_SLACK_ROWS", 4),
    ("eddy.retention", "UNREAD_BYTES", 500),
    ("eddy.source", "MIN_CANDIDATES", 4),
    ("eddy.source", "MAX_PER_VALUE", 6),
    ("eddy.eddy", "QUERY_MAJOR_ROWS", 6),
    ("eddy.eddy", "SAMPLE_EVERY", 3),
    ("eddy.eddy", "SAMPLE_ROWS", 4),
    ("eddy.eddy", "SAMPLE_WORDS", 8),
    ("eddy.eddy", "MAX_PROFILED", 1),
    ("eddy.eddy", "MAX_PROFILED_WORDS", 2),
    ("eddy.eddy", "LEARN_ROWS", 5),
    ("eddy.eddy eddy.row_lists", "FEW_ROWS", 3),
    ("filters.bank", "MAX_PREFIX", 3),
    ("filters.grouped", "MAX_SPAN", 3),
    ("filters.predicate", "MAX_CLAUSES", 3),
    ("lineage.dictionary lineage.ingest lineage.ingest_columns lineage.ingest_types", "SMALL", 2),
    ("eddy.policies.greedy", "REFRESH", 2),
]


def make_small(monkeypatch: pytest.MonkeyPatch, names: set[str] | None = None) -> None:
    """Set the limits (those in `names` if given) for the rest of a test; a name that is gone is an error."""
    for modules, name, value in SMALL_LIMITS:
        if names is None or name in names:
            for module in modules.split():
                monkeypatch.setattr(importlib.import_module(module), name, value)
