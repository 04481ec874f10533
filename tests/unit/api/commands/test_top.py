"""`eddy top` on terminals of different widths: sizes are always there, and nothing is wider than the terminal."""

from __future__ import annotations

import io
from typing import Any

import pytest
from rich.console import Console

from api.commands.top import screen

LOOK: dict[str, Any] = {
    "seq": 123_456,
    "commits_per_s": 12.5,
    "queue": {"calls": 3, "bytes": 2048},
    "bytes": 5 << 30,
    "n_queries": 284,
    "streams": [
        {"name": "demo_temperature_of_the_whole_building_and_its_garden", "rows_per_s": 1234.5, "rows": 123_456_789,
         "late": 77_777, "expired": 66_666, "held": 55_555_555, "queries": 284, "bytes": 987_654_321},
        {"name": "7", "rows_per_s": 0.0, "rows": 9, "late": 0, "expired": 0, "held": 9, "queries": 1, "bytes": 700},
    ],
    "largest": [
        {"name": "a_query_with_quite_a_long_name_indeed", "own_bytes": 123_456_789, "sql": "SELECT [x] FROM s " * 20},
        {"name": "b", "own_bytes": 480, "sql": "SELECT 1"},
    ],
}  # fmt: skip


def drawn(width: int, look: dict[str, Any] = LOOK) -> str:
    out = io.StringIO()
    Console(file=out, width=width, force_terminal=True, color_system=None).print(screen(look, width))
    return out.getvalue()


@pytest.mark.parametrize("width", [60, 80, 120])
def test_sizes_are_there_at_every_width(width: int) -> None:
    shown = drawn(width)
    for size in ("941.9 MB", "700 B", "117.7 MB", "480 B", "123.5 M", "1234.5", "284"):
        assert size in shown, size
    assert all(len(line) <= width for line in shown.splitlines())
    assert "demo_temp" in shown and "a_query" in shown and "SELECT [x]" in shown


def test_a_wide_terminal_has_every_count() -> None:
    for count in ("77.8 k", "66.7 k", "55.6 M"):
        assert count in drawn(80) and count not in drawn(60)


def test_an_empty_service_can_be_looked_at() -> None:
    shown = drawn(60, LOOK | {"streams": [], "largest": []})
    assert "stream" in shown and "query" in shown
