"""What `eddy top`, `eddy trace` and `eddy push` print, on terminals of any width."""

from __future__ import annotations

import io
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from rich.console import Console

from api.commands.push_hints import StreamState, Totals, hints, stream_state
from api.commands.top import screen
from api.commands.trace import lines
from eddy import EddyError, Engine, Stream
from eddy.client import Receipt

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


# -- What `eddy trace` prints ------------------------------------------------------------------------------------------


def make_engine() -> Engine:
    engine = Engine()
    engine.create_stream("readings", {"room": "string", "temp": "float", "ts": "timestamp"}, time="ts")
    return engine


def test_what_stands_above_a_leaf_is_told_below_the_query_that_matched() -> None:
    engine = make_engine()
    engine.submit(
        "SELECT room, COUNT(*) AS n FROM readings [RANGE 1 MINUTE] WHERE temp > 20 GROUP BY room HAVING COUNT(*) > 1", name="busy"
    )
    engine.submit("SELECT room FROM busy WHERE n > 5", name="very_busy")
    engine.submit("SELECT DISTINCT room FROM readings [RANGE 1 MINUTE] WHERE temp > 30", name="hot")
    engine.push("readings", {"room": ["lab"], "temp": [25.0], "ts": [1000]})
    assert lines(engine.trace("readings", 0))[2:] == [
        "✓ busy",
        "    in readings [RANGE 1 MINUTE]",
        "    group room=lab: room=lab  COUNT(*)=1",
        "    having: COUNT(*) > 1 is not true, COUNT(*) is 1",
        "✓ very_busy",
        "    in readings [RANGE 1 MINUTE], through busy",
        "    group room=lab: room=lab  COUNT(*)=1",
        "    having: COUNT(*) > 1 is not true, COUNT(*) is 1",
        "✗ hot: temp > 30.0 is not true, temp is 25.0",
    ]


def test_a_row_that_has_left_and_a_group_without_rows_are_told() -> None:
    engine = make_engine()
    engine.submit("SELECT room, COUNT(*) FROM readings [RANGE 1 SECOND] GROUP BY room", name="rooms")
    engine.submit("SELECT COUNT(*) FROM readings [RANGE 1 SECOND]", name="all")
    engine.push("readings", {"room": [None], "temp": [25.0], "ts": [1000]})
    engine.advance(5000)
    assert lines(engine.trace("readings", 0))[2:] == [
        "✓ rooms",
        "    in readings [RANGE 1 SECOND]; it left at 1970-01-01T00:00:02Z",
        "    group room=NULL: it has no rows now",
        "✓ all",
        "    in readings [RANGE 1 SECOND]; it left at 1970-01-01T00:00:02Z",
        "    all rows: COUNT(*)=0",
    ]


# -- What a push says beside its counts: never more than is known ------------------------------------------------------


NOW = datetime(2024, 12, 31, tzinfo=UTC)
OLD = datetime(2013, 1, 31, 12, tzinfo=UTC)


def said(totals: Totals, before: StreamState | None = None, after: StreamState | None = None) -> str:
    return "\n".join(hints("s", totals, before, after))


def at(newest: datetime | None, clock: datetime | None = NOW, *, rows: int = 100, **options: bool) -> StreamState:
    return StreamState(rows, newest, "main", clock, **options)


def test_a_push_with_nothing_to_say_says_nothing() -> None:
    assert said(Totals(5), at(None, None), at(NOW)) == "" == said(Totals(), at(NOW), at(NOW))
    assert said(Totals(5, rejected=3), None, None) == ""


def test_a_stream_far_behind_its_timeline_is_told_of_timelines() -> None:
    found = said(Totals(5), at(None), at(OLD))
    assert "is of 2013-01-31 12:00:00" in found and '"main" is at 2024-12-31 00:00:00' in found and "--timeline" in found
    assert "shorter than 4351 days" in found
    assert said(Totals(5), at(None), at(NOW - timedelta(minutes=50))) == "", "streams of one time are never quite together"
    assert "shorter than 50 minutes" in said(Totals(5, expired=2), at(None), at(NOW - timedelta(minutes=50)))


def test_expired_rows_are_explained() -> None:
    assert "2 of these rows were older than every window" in said(Totals(5, expired=2))
    assert "no query will ever show any of these rows" in said(Totals(5, expired=5))


def test_late_rows_are_explained_with_what_became_of_them() -> None:
    found = said(Totals(5, late=2), at(NOW, rows=3), at(NOW + timedelta(1), NOW + timedelta(1)))
    assert found.startswith("late: 2 rows are older than the time that the stream had reached") and "count at that time" in found
    assert "--sort" in found and "--lateness" in found and "pushed before" not in found
    dropped = said(Totals(3, late=2), at(NOW, drops=True), at(NOW + timedelta(1), drops=True))
    assert "were dropped" in dropped
    assert "late: 2 rows" in said(Totals(5, late=2)), "also where nobody may ask how the stream stands"


def test_a_file_that_was_pushed_before_looks_so() -> None:
    twice = said(Totals(100, late=99), at(NOW), at(NOW, rows=200))
    assert "looks as if this file was pushed before" in twice and "99 of 100 rows" in twice
    assert "looks as if" in said(Totals(1, late=99), at(NOW, drops=True), at(NOW, rows=101, drops=True))


@pytest.mark.parametrize(
    ("totals", "before", "after"),
    [
        (Totals(100, late=99), at(OLD), at(NOW)),  # something is newer
        (Totals(100, late=100), at(NOW), at(NOW)),  # nothing is as new
        (Totals(100, late=99), at(NOW, rows=99), at(NOW)),  # it had fewer
        (Totals(100, late=99), at(NOW), at(NOW, waits=True)),  # what is not late may be anything
        (Totals(100, late=99), at(None, rows=0), at(NOW)),  # an unsorted file
    ],
)
def test_other_late_rows_do_not(totals: Totals, before: StreamState, after: StreamState) -> None:
    assert "pushed before" not in said(totals, before, after)


def test_receipts_are_summed() -> None:
    total = Totals().plus(Receipt(5, 1, 0, 4, 2)).plus(Receipt(3, 1, 5, 7, 1, rejected=4))
    assert total == Totals(accepted=8, late=2, expired=3, rejected=4)


class Service:
    """A client that knows one stream, or may ask nothing."""

    def __init__(self, time: str | None = "ts", *, device: bool = False) -> None:
        self._stream = Stream("S", {"ts": "timestamp"}, time, "other", 5, "drop")
        self._device = device

    def stream(self, name: str) -> Stream:
        if self._device:
            raise EddyError("not allowed")
        return self._stream

    def totals(self) -> dict[str, object]:
        counts = {"rows": 7, "late": 0, "expired": 0, "newest": "2013-01-31T12:00:00Z"}
        return {"streams": {"S": counts}, "timelines": {"other": "2024-12-31T00:00:00Z", "main": None}}


def test_a_stream_is_looked_up_with_its_own_timeline() -> None:
    assert stream_state(Service(), "s") == StreamState(7, OLD, "other", NOW, drops=True, waits=True)  # type: ignore[arg-type]


@pytest.mark.parametrize("service", [Service(None), Service(device=True)])
def test_without_a_time_or_a_right_to_ask_nothing_is_known(service: Service) -> None:
    assert stream_state(service, "s") is None  # type: ignore[arg-type]
