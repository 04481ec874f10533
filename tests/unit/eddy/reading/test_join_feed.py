"""Feeds of rows that end unscheduled number them once, however often somebody looks at them."""

from __future__ import annotations

from eddy import Engine
from eddy.operators.template import Member
from eddy.operators.tree_query import TreeQuery
from eddy.reading.join_feed import JoinFeed


def test_a_look_at_the_rows_takes_no_number() -> None:
    engine = Engine()
    engine.create_stream("s", {"k": "int", "ts": "timestamp"}, time="ts", key="k")
    text = "SELECT k FROM s [RANGE 1 MINUTE] WHERE k < 3 UNION ALL SELECT k FROM s [RANGE 1 MINUTE] WHERE k > 1"
    query = engine.submit(text, name="both")
    assert isinstance(query, TreeQuery)
    assert isinstance(query.operation, Member)
    feeds = [feed for _, feed in query.operation.template.feeds]
    engine.push("s", {"k": [1, 2, 3], "ts": [1000, 1000, 1000]})
    for reader in range(3):
        engine.submit("SELECT DISTINCT k FROM both", name=f"reader{reader}")
    assert sorted(engine.answer("reader2")["k"].to_pylist()) == [1, 2, 3]
    assert [len(feed._numbers) for feed in feeds if isinstance(feed, JoinFeed)] == [2, 2]
    engine.retract("s", [1, 2, 3], 2000)
    assert engine.answer("reader2").num_rows == 0
    assert [len(feed._numbers) for feed in feeds if isinstance(feed, JoinFeed)] == [0, 0], "what ended is forgotten"
