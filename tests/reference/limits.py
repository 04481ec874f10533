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
    ("eddy.commit.committer", "_SETTLE_EVERY", 2),
    ("eddy.history.retention", "_SLACK_ROWS", 4),
    ("eddy.history.retention", "UNREAD_BYTES", 500),
    ("eddy.streams.placement", "MIN_CANDIDATES", 4),
    ("eddy.streams.placement", "MAX_PER_VALUE", 6),
    ("eddy.matching.eddy", "QUERY_MAJOR_ROWS", 6),
    ("eddy.matching.eddy", "SAMPLE_EVERY", 3),
    ("eddy.matching.eddy", "SAMPLE_ROWS", 4),
    ("eddy.matching.eddy", "SAMPLE_WORDS", 8),
    ("eddy.matching.eddy", "MAX_PROFILED", 1),
    ("eddy.matching.eddy", "MAX_PROFILED_WORDS", 2),
    ("eddy.streams.modules", "LEARN_ROWS", 5),
    ("eddy.matching.eddy eddy.matching.row_lists", "FEW_ROWS", 3),
    ("filters.index.bank", "MAX_PREFIX", 3),
    ("filters.index.grouped", "MAX_SPAN", 3),
    ("filters.expressions.predicate", "MAX_CLAUSES", 3),
    ("lineage.dictionary lineage.ingest lineage.ingest_columns lineage.ingest_types", "SMALL", 2),
    ("eddy.routing.greedy", "REFRESH", 2),
    ("eddy.joins.join_group eddy.reading.table_reader", "PART_ROWS", 64),
    ("eddy.lives.early_ends", "_PART_ROWS", 2),
]


def make_small(monkeypatch: pytest.MonkeyPatch, names: set[str] | None = None) -> None:
    """Set the limits (those in `names` if given) for the rest of a test; a name that is gone is an error."""
    for modules, name, value in SMALL_LIMITS:
        if names is None or name in names:
            for module in modules.split():
                monkeypatch.setattr(importlib.import_module(module), name, value)


def settle_always(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget after every commit what no window and no log needs, and not after every 64th."""
    monkeypatch.setattr("eddy.commit.committer._SETTLE_EVERY", 1)


def cut_ends(monkeypatch: pytest.MonkeyPatch, most: int, step: int = 4096) -> None:
    """Cut calls that end more than `most` rows into commits of about `step` ends."""
    monkeypatch.setattr("eddy.commit.ends.MAX_ENDS", most)
    monkeypatch.setattr("eddy.commit.ends.STEP_ENDS", step)


def log_commits(monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    """Keep so many commits in the log, however few rows they have."""
    monkeypatch.setattr("eddy.history.retention.MAX_COMMITS", most)


def wait_for_few(monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    """Make room for so many rows that wait for stragglers."""
    monkeypatch.setattr("eddy.streams.timeline.MAX_WAITING", most)


def trace_few(monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    """Let a trace read so many rows, of all queries together."""
    monkeypatch.setattr("eddy.inspect.trace_rows.LOOKED_AT", most)
