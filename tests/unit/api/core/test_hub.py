"""Subscriptions: what each reader has yet to be sent, what happens to slow ones, and what is read for them."""

from __future__ import annotations

import pyarrow as pa
import pytest

from api.core.core import News
from api.core.hub import End, Gap, Hub, Progress, Subscription
from api.core.parts import MAX_CHANGES, ChangePart, parts_of
from api.core.watches import Watches
from eddy import Engine, Query

SMALL = 10**6


def part(seq: int, id_: int = 1, n_rows: int = 1) -> ChangePart:
    table = pa.table({"seq": [seq] * n_rows, "time": [0] * n_rows, "sign": [1] * n_rows, "a": list(range(n_rows))})
    [found] = parts_of(id_, f"q{id_}", table)
    return found


def news(seq: int, *parts: ChangePart) -> News:
    return News(list(parts), [], [], seq, {"main": None})


def reader(hub: Hub, slow: str = "block", max_bytes: int = SMALL, queries: tuple[int, ...] = (1,)) -> Subscription:
    found = Subscription(slow, max_bytes, queries={id_: f"q{id_}" for id_ in queries})
    hub.add(found)
    return found


def test_a_reader_gets_the_parts_of_its_queries_and_then_progress() -> None:
    hub = Hub()
    one, both = reader(hub), reader(hub, queries=(1, 2))
    first, second = part(1), part(1, 2)
    hub.publish(news(1, first, second))
    assert one.take() == [first, Progress(1, {"main": None})]
    assert both.take() == [first, second, Progress(1, {"main": None})]


def test_commits_that_leave_a_reader_alone_move_its_cursor_and_send_nothing() -> None:
    hub = Hub()
    one = reader(hub)
    hub.publish(news(5))
    assert one.take() == [] and one.cursor == 5
    assert hub.progress(one).seq == 5


def test_what_a_reader_had_when_it_began_does_not_come_again() -> None:
    hub = Hub()
    one = reader(hub)
    one.cursor = 3
    hub.publish(news(4, part(3), part(4)))
    assert [one.seq for one in one.take()] == [4, 4]


def test_a_reader_that_blocks_keeps_whole_commits_and_asks_for_the_rest() -> None:
    hub = Hub()
    one = reader(hub, max_bytes=200)
    hub.publish(news(1, part(1)))
    hub.publish(news(3, part(2), part(3)))
    assert one.behind and one.cursor == 1
    assert [found.seq for found in one.take()] == [1, 1]
    hub.publish(news(4, part(4)))
    assert one.take() == [] and one.cursor == 1, "nothing is queued until it has caught up"


def test_a_reader_that_blocks_before_its_first_commit_is_whole_goes_back_to_its_cursor() -> None:
    hub = Hub()
    one = reader(hub, max_bytes=100)
    one.cursor = 6
    hub.publish(news(8, part(7), part(8)))
    assert one.behind and one.cursor == 6 and one.take() == []


def test_a_reader_with_gaps_is_told_what_it_misses_and_goes_on() -> None:
    hub = Hub()
    one = reader(hub, "gap", 200)
    hub.publish(news(2, part(1), part(2), part(2)))
    assert one.take() == [Gap(0, 2, False), Progress(2, {"main": None})]
    last = part(3)
    hub.publish(news(3, last))
    assert one.take()[0] is last and hub.dropped == 3


def test_a_reader_that_conflates_gets_a_gap_and_has_to_read_the_answer() -> None:
    hub = Hub()
    one = reader(hub, "conflate", 100)
    hub.publish(news(2, part(1), part(2)))
    assert one.take() == [Gap(0, 2, True)] and one.behind and one.cursor == 2


def test_a_reader_that_is_cut_off_is_told_why() -> None:
    hub = Hub()
    one = reader(hub, "disconnect", 100)
    hub.publish(news(2, part(1), part(2)))
    assert one.take() == [End(None, "too slow")] and one.ended


@pytest.mark.parametrize("slow", ["block", "conflate", "gap", "disconnect"])
def test_a_slow_reader_moves_nobody_else(slow: str) -> None:
    hub = Hub()
    reader(hub, slow, 1)
    other = reader(hub)
    parts = [part(seq) for seq in range(1, 6)]
    for found in parts:
        hub.publish(news(found.seq, found))
    assert [found for found in other.take() if isinstance(found, ChangePart)] == parts


def test_a_cancelled_query_ends_for_its_readers_and_the_last_one_ends_the_stream() -> None:
    hub = Hub()
    both = reader(hub, queries=(1, 2))

    class Cancelled:
        def __init__(self, id_: int) -> None:
            self.id, self.name = id_, f"q{id_}"

    hub.publish(News([], [], [Cancelled(1)], 1, {}))  # type: ignore[list-item]  # only id and name are looked at
    assert both.take() == [End("q1", "cancelled")] and not both.ended
    hub.publish(News([], [], [Cancelled(2)], 2, {}))  # type: ignore[list-item]
    assert both.take() == [End("q2", "cancelled")] and both.ended


def test_a_closed_hub_ends_all_readers_and_those_to_come() -> None:
    hub = Hub()
    one = reader(hub)
    hub.close("it stops")
    late = reader(hub)
    assert one.take() == late.take() == [End(None, "it stops")]


def test_a_removed_reader_is_not_sent_to() -> None:
    hub = Hub()
    one = reader(hub)
    hub.remove(one)
    hub.publish(news(1, part(1)))
    assert one.take() == [] and not hub.subscriptions


def test_parts_are_cut_by_commit_and_by_size() -> None:
    n = MAX_CHANGES + 5
    seqs = [1] * 3 + [2] * n
    table = pa.table({"seq": seqs, "time": [0] * len(seqs), "sign": [1] * len(seqs), "a": list(range(len(seqs)))})
    found = list(parts_of(1, "q", table))
    assert [(part.seq, len(part), part.last) for part in found] == [(1, 3, True), (2, MAX_CHANGES, False), (2, 5, True)]
    assert found[0].json.startswith(b'{"query":"q","seq":1,"time":0,"sign":1,"row":{"a":0}}')
    assert found[0].json is found[0].json, "encoded once"
    assert found[0].lines.count(b"\n") == 3


# -- Watched queries: what is read for readers, and that nothing is read for one that is behind ------------------------


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
