"""Watched queries: what is read for readers, and that nothing is read for one that is behind."""

from __future__ import annotations

from api.core.watches import Watches
from eddy import Engine, Query


def engine() -> tuple[Engine, Query]:
    found = Engine()
    found.create_stream("s", {"ts": "timestamp", "a": "int"}, time="ts")
    return found, found.submit("SELECT a FROM s")


def push(engine: Engine, *values: int) -> None:
    engine.push("s", [{"ts": value, "a": value} for value in values])


def values(watches: Watches) -> list[int]:
    return [value for part in watches.collect() for value in part.table.column("a").to_pylist()]


def test_nothing_is_read_for_a_reader_that_is_paused_and_all_that_comes_after_it_is_back() -> None:
    found, query = engine()
    watches = Watches(found)
    watches.add("reader", [query], frozenset())
    push(found, 1)
    assert values(watches) == [1]
    watches.pause("reader")
    push(found, 2)
    assert values(watches) == [] and query not in watches
    watches.resume("reader", [query])
    push(found, 3)
    assert values(watches) == [3], "what came before is read by who catches up"
    watches.remove("reader")
    assert len(watches) == 0


def test_another_reader_of_the_query_goes_on() -> None:
    found, query = engine()
    watches = Watches(found)
    for reader in ("slow", "quick"):
        watches.add(reader, [query], frozenset())
    watches.pause("slow")
    push(found, 1)
    assert values(watches) == [1]
    watches.resume("slow", [query])
    watches.remove("quick")
    push(found, 2)
    assert values(watches) == [2]


def test_a_reader_that_has_gone_is_neither_paused_nor_resumed() -> None:
    found, query = engine()
    watches = Watches(found)
    watches.add("reader", [query], frozenset())
    watches.remove("reader")
    watches.pause("reader")
    watches.resume("reader", [query])
    push(found, 1)
    assert values(watches) == [] and len(watches) == 0


def test_queries_with_a_tag_are_followed_while_a_reader_is_paused() -> None:
    found, query = engine()
    watches = Watches(found)
    watches.add("reader", [query], frozenset({"new"}))
    watches.pause("reader")
    late = found.submit("SELECT a FROM s WHERE a > 1", tags=["new"])
    assert watches.arrived(late, found.seq) == ["reader"]
    watches.resume("reader", [query, late])
    push(found, 1, 2)
    assert sorted(values(watches)) == [1, 2, 2]


def test_a_query_that_went_is_told_once_though_another_has_its_name_already() -> None:
    found, _ = engine()
    watches = Watches(found)
    first = found.submit("SELECT a FROM s", name="Q")
    watches.add("reader", [first], frozenset())
    found.cancel(first)
    second = found.submit("SELECT a FROM s", name="q")
    watches.add("other", [second], frozenset())
    assert watches.cancelled(["other"]) == [], "only names that were touched are looked at"
    assert watches.cancelled(["q"]) == [first] and watches.cancelled(["q"]) == []
    assert second in watches and first not in watches
    push(found, 1)
    assert values(watches) == [1]
