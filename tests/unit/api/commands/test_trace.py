"""What `eddy trace` prints."""

from __future__ import annotations

from api.commands.trace import lines
from eddy import Engine


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
