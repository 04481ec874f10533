"""The engine's thread and the queue before it: calls in order, nothing told before it is durable, failures, rates."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from api.base.limits import Limits
from api.core.calls import Call, apply, decode
from api.core.core import Clock, Core, News
from api.core.holdings import Holdings
from api.core.inbox import BusyError, ClosedError, Inbox, InboxItem
from api.core.meter import Meter
from eddy import EddyError, Engine, NotFoundError

COLUMNS = {"columns": {"a": "int", "ts": "timestamp"}, "time": "ts"}


class Running:
    """A core without a data directory, and what it told."""

    def __init__(self, limits: Limits | None = None) -> None:
        self.news: list[News] = []
        clock = Clock()
        holdings = Holdings(Engine(clock=clock))
        self.core = Core(holdings, clock, None, limits or Limits(), self.news.append, lambda do: do())
        self.core.start()

    def ask(self, what: Call | Callable[[Core], Any], then: Callable[[Any], Any] | None = None) -> Any:
        done = threading.Event()
        told: list[Any] = []

        def tell(result: Any, error: BaseException | None) -> None:
            told.extend((result, error))
            done.set()

        self.core.put(what, tell, then)
        assert done.wait(30), "an answer comes"
        if told[1] is not None:
            raise told[1]
        return told[0]


@pytest.fixture
def running() -> Iterator[Running]:
    found = Running()
    yield found
    found.core.stop()


def test_calls_are_carried_out_and_told(running: Running) -> None:
    assert running.ask(Call("create_stream", {"name": "s", "definition": COLUMNS}))["created"]
    running.ask(Call("submit", {"definition": {"sql": "SELECT a FROM s [RANGE 1 MINUTE] WHERE a > 1", "name": "q"}}))
    receipt = running.ask(Call("push", {"stream": "s", "media": "application/json"}, b'{"a": [1, 2], "ts": [0, 0]}'))
    assert receipt == {"accepted": 2, "late": 0, "first_row": 0, "last_row": 1, "expired": 0, "rejected": 0}
    assert running.ask(lambda core: core.engine.answer("q").to_pylist()) == [{"a": 2}]


def test_an_equal_definition_changes_nothing_and_another_is_refused(running: Running) -> None:
    call = Call("create_stream", {"name": "s", "definition": COLUMNS})
    assert running.ask(call)["created"]
    assert not running.ask(call)["created"]
    with pytest.raises(EddyError) as error:
        running.ask(Call("create_stream", {"name": "S", "definition": COLUMNS | {"lateness": 5}}))
    assert error.value.code == "other_definition"


def test_an_idempotency_key_has_a_call_carried_out_once(running: Running) -> None:
    running.ask(Call("create_stream", {"name": "s", "definition": COLUMNS}))
    push = {"stream": "s", "media": "application/json", "key": "k1"}
    first = running.ask(Call("push", dict(push), b'{"a": 1, "ts": 0}'))
    assert running.ask(Call("push", dict(push), b'{"a": 1, "ts": 0}')) == first
    assert running.ask(lambda core: core.engine.stats()["streams"]["s"]["rows"]) == 1
    with pytest.raises(EddyError) as error:
        running.ask(Call("push", dict(push), b'{"a": 2, "ts": 0}'))
    assert error.value.code == "key_reused"


def test_bad_rows_are_left_out_when_asked_and_named(running: Running) -> None:
    running.ask(Call("create_stream", {"name": "s", "definition": COLUMNS}))
    body = b'[{"a": 1, "ts": 0}, {"a": "x", "ts": 0}, {"a": 3}, {"a": 4, "ts": 1}]'
    header = {"stream": "s", "media": "application/json", "bad": "skip"}
    receipt = running.ask(Call("push", header, body))
    assert (receipt["accepted"], receipt["rejected"]) == (2, 2)
    assert [(error["row"], error["column"]) for error in receipt["errors"]] == [(1, "a"), (2, "ts")]
    assert header["skipped"] == receipt["errors"], "what is recorded says which rows were left out"


def test_a_csv_is_read_by_its_form_and_again_so_from_the_journal() -> None:
    definition = {"columns": {"x_y": "float", "c": "string", "ts": "timestamp"}, "time": "ts"}
    form = {"delimiter": ";", "decimal": ",", "tz": "Europe/Berlin", "null": ["?"], "time": "ts=d,h"}
    body = b"d;h;x.y;c\n2024-07-01;12:00;1,5;a\n2024-07-01;12:01;?;?\n2024-07-01;12:02;oops;c\n;12:03;1;d\n1;2\n"
    first = Running()
    calls = [
        Call("create_stream", {"name": "s", "definition": definition}),
        Call("submit", {"definition": {"sql": "SELECT * FROM s [RANGE 1 DAY]", "name": "q"}}),
        Call("push", {"stream": "s", "media": "text/csv", "csv": form, "bad": "skip"}, body),
        Call("push", {"stream": "s", "media": "text/csv"}, b"x_y,c,ts\n2.5,NA,1719828180000\nNA,,2024-07-01T10:03:00Z\n"),
    ]
    try:
        receipts = [first.ask(call) for call in calls][2:]
        rows = first.ask(lambda core: core.engine.answer("q").to_pylist())
    finally:
        first.core.stop()
    assert [(receipt["accepted"], receipt["rejected"], receipt["nulls"]) for receipt in receipts] == [
        (2, 3, {"x_y": 1, "c": 1}),
        (2, 0, {"x_y": 1, "c": 1}),
    ]
    assert [(error["row"], error["column"]) for error in receipts[0]["errors"]] == [(2, "x_y"), (3, "ts"), (4, None)]
    assert [(row["x_y"], row["c"], f"{row['ts']:%H:%M}") for row in rows] == [
        (1.5, "a", "10:00"), (None, None, "10:01"), (2.5, "NA", "10:03"), (None, None, "10:03"),
    ]  # fmt: skip
    again = Holdings(Engine(clock=Clock()))
    for call in calls:
        apply(again, decode(memoryview(b"".join(call.encode()))))
    assert again.engine.answer("q").to_pylist() == rows


def test_a_table_takes_a_csv_in_its_form_too(running: Running) -> None:
    running.ask(Call("create_table", {"name": "t", "definition": {"columns": {"k": "int", "room": "string"}, "key": "k"}}))
    header = {"table": "t", "media": "text/csv", "csv": {"delimiter": "|", "names": "k,room", "null": ["none"]}}
    receipt = running.ask(Call("upsert", header, b"1|lab\n2|none\n"))
    assert receipt["inserted"] == 2 and receipt["nulls"] == {"room": 1}


def test_a_batch_of_queries_is_all_or_none(running: Running) -> None:
    running.ask(Call("create_stream", {"name": "s", "definition": COLUMNS}))
    good, bad = {"sql": "SELECT a FROM s", "name": "good"}, {"sql": "SELECT b FROM s"}
    with pytest.raises(EddyError) as error:
        running.ask(Call("submit_many", {"definitions": [good, bad], "partial": False}))
    assert error.value.item == 1  # type: ignore[attr-defined]
    assert running.ask(lambda core: (list(core.engine.queries), list(core.holdings.definitions))) == ([], ["s"])
    found = running.ask(Call("submit_many", {"definitions": [good, bad], "partial": True}))
    assert found[0].name == "good" and isinstance(found[1], EddyError)


def test_queries_are_cancelled_together_whoever_reads_whom(running: Running) -> None:
    running.ask(Call("create_stream", {"name": "s", "definition": COLUMNS}))
    ids = [
        running.ask(Call("submit", {"definition": {"sql": sql, "name": name, "tags": ["t"]}})).id
        for name, sql in (("low", "SELECT a FROM s [RANGE 1 MINUTE]"), ("top", "SELECT COUNT(*) AS n FROM low"))
    ]
    running.ask(Call("submit", {"definition": {"sql": "SELECT n FROM top", "name": "other"}}))
    with pytest.raises(EddyError) as error:
        running.ask(Call("cancel_many", {"queries": ids}))
    assert error.value.code == "in_use"
    running.ask(Call("cancel", {"query": "other"}))
    assert running.ask(Call("cancel_many", {"queries": ids})) == {"cancelled": 2}


def test_the_same_text_put_again_changes_nothing_and_another_replaces_it(running: Running) -> None:
    running.ask(Call("create_stream", {"name": "s", "definition": COLUMNS}))
    text = {"sql": "SELECT a FROM s [RANGE 1 MINUTE] WHERE a > :x", "params": {"x": 1}}
    assert running.ask(Call("put_query", {"name": "q", "definition": text}))["created"]
    seq = running.ask(lambda core: core.engine.seq)
    assert not running.ask(Call("put_query", {"name": "q", "definition": text | {"tags": []}}))["created"]
    assert running.ask(lambda core: core.engine.seq) == seq
    running.ask(Call("put_query", {"name": "q", "definition": text | {"params": {"x": 2}}}))
    assert running.ask(lambda core: core.engine.seq) == seq + 1
    with pytest.raises(EddyError) as error:
        running.ask(Call("put_query", {"name": "q", "definition": text | {"emit": "event"}}))
    assert error.value.code == "other_definition"


def test_news_carry_the_changes_of_watched_queries_only(running: Running) -> None:
    running.ask(Call("create_stream", {"name": "s", "definition": COLUMNS}))
    for name in ("p", "q"):
        running.ask(Call("submit", {"definition": {"sql": "SELECT a FROM s", "name": name}}))
    running.ask(lambda core: core.watches.add("reader", [core.engine.query("q")], frozenset()))
    running.ask(Call("push", {"stream": "s", "media": "application/json"}, b'{"a": 1, "ts": 0}'))
    assert [(part.query, part.seq, len(part)) for news in running.news for part in news.parts] == [("q", 1, 1)]
    running.ask(lambda core: core.watches.remove("reader"))
    assert running.ask(lambda core: len(core.watches)) == 0


def test_what_came_before_a_cancel_in_the_same_group_is_told(running: Running) -> None:
    running.ask(Call("create_stream", {"name": "s", "definition": COLUMNS}))
    running.ask(Call("submit", {"definition": {"sql": "SELECT a FROM s", "name": "q"}}))
    running.ask(lambda core: core.watches.add("reader", [core.engine.query("q")], frozenset()))
    held, errors = threading.Event(), []
    running.core.put(lambda core: held.wait(30), lambda result, error: None)
    for call in (
        Call("push", {"stream": "s", "media": "application/json"}, b'{"a": 1, "ts": 0}'),
        Call("cancel", {"query": "q"}),
    ):
        running.core.put(call, lambda result, error: errors.append(error))
    held.set()
    running.ask(lambda core: None)
    assert errors == [None, None]
    (news,) = (news for news in running.news if news.parts)
    assert [(part.query, len(part)) for part in news.parts] == [("q", 1)] and [query.name for query in news.gone] == ["q"]


def test_a_query_that_comes_with_a_followed_tag_is_watched_from_its_first_commit_on(running: Running) -> None:
    running.ask(Call("create_stream", {"name": "s", "definition": COLUMNS}))
    running.ask(Call("push", {"stream": "s", "media": "application/json"}, b'{"a": 1, "ts": 0}'))
    running.ask(lambda core: core.watches.add("reader", [], frozenset({"t"})))
    definition = {"sql": "SELECT COUNT(*) AS n FROM s [RANGE 1 MINUTE]", "name": "q", "tags": ["t"], "history": "window"}
    running.ask(Call("submit", {"definition": definition}))
    running.ask(lambda core: None)
    [(query, readers)] = [came for news in running.news for came in news.came]
    assert (query.name, readers) == ("q", ["reader"])
    assert [part.table.column("sign").to_pylist() for news in running.news for part in news.parts] == [[1]]


def test_a_bug_in_a_call_stops_the_service_and_one_in_a_read_does_not(
    running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:  # fmt: skip
    with pytest.raises(ZeroDivisionError):
        running.ask(lambda core: 1 // 0)
    running.ask(Call("create_stream", {"name": "s", "definition": COLUMNS}))
    failed: list[BaseException] = []
    running.core.on_failure = failed.append
    monkeypatch.setattr(type(running.core.engine), "push", lambda *given: 1 // 0)
    with pytest.raises(ZeroDivisionError):
        running.ask(Call("push", {"stream": "s", "media": "application/json"}, b'{"a": 1, "ts": 0}'))
    assert len(failed) == 1
    with pytest.raises(ClosedError):
        running.ask(lambda core: None)


def test_an_unknown_query_is_an_error_and_nothing_else(running: Running) -> None:
    with pytest.raises(NotFoundError):
        running.ask(Call("cancel", {"query": "nope"}))
    assert running.core.failure is None


# -- The bounded queue before the engine's thread ----------------------------------------------------------------------


def call(n_bytes: int = 10) -> InboxItem:
    return InboxItem(Call("push", {}), lambda result, error: None, n_bytes)


def read() -> InboxItem:
    return InboxItem(lambda core: None, lambda result, error: None)


def test_calls_are_bounded_by_number() -> None:
    inbox = Inbox(2, 1000, 2)
    inbox.put(call())
    inbox.put(call())
    with pytest.raises(BusyError) as error:
        inbox.put(call())
    assert error.value.retry_after >= 1 and inbox.refused == 1
    inbox.put(read())  # reads have room of their own


def test_calls_are_bounded_by_bytes_but_the_last_may_be_large() -> None:
    """A large call would else never find room beside many small ones."""
    inbox = Inbox(10, 100, 2)
    inbox.put(call(99))
    inbox.put(call(500))
    with pytest.raises(BusyError):
        inbox.put(call(1))
    assert [item.n_bytes for item in inbox.take(10, 10**6, 0)] == [99, 500]
    inbox.put(call(100))
    with pytest.raises(BusyError):
        inbox.put(call(1))


def test_what_is_under_way_counts_before_it_is_put() -> None:
    inbox = Inbox(10, 100, 2)
    assert inbox.has_room(99) and not inbox.has_room(100)
    inbox.check_room(99)
    with pytest.raises(BusyError):
        inbox.check_room(100)
    assert inbox.refused == 1


def test_reads_are_bounded_by_number() -> None:
    inbox = Inbox(1, 10, 1)
    inbox.put(read())
    with pytest.raises(BusyError):
        inbox.put(read())
    inbox.put(call())


def test_things_are_taken_in_order_and_in_bounded_groups() -> None:
    inbox = Inbox(100, 1000, 100)
    items = [call(n) for n in (10, 20, 30, 40)]
    for item in items:
        inbox.put(item)
    assert inbox.take(2, 1000, 0) == items[:2]
    assert inbox.take(10, 30, 0) == items[2:3]
    assert inbox.take(10, 1000, 0) == items[3:]
    assert inbox.take(10, 1000, 0) == [] and inbox.empty and inbox.bytes == 0


def test_who_waits_is_woken_by_what_comes() -> None:
    inbox = Inbox(10, 1000, 10)
    found: list[InboxItem] = []
    thread = threading.Thread(target=lambda: found.extend(inbox.take(10, 1000, 10.0)))
    thread.start()
    inbox.put(call())
    thread.join(10)
    assert not thread.is_alive() and len(found) == 1


def test_a_closed_inbox_takes_nothing_and_gives_what_it_has() -> None:
    inbox = Inbox(10, 1000, 10)
    inbox.put(call())
    inbox.close(ClosedError("it stops"))
    with pytest.raises(ClosedError):
        inbox.put(call())
    assert len(inbox.take(10, 1000, 10.0)) == 1
    assert inbox.take(10, 1000, 10.0) == []


# -- Rates: over a second at least, shared by whoever asks -------------------------------------------------------------


class Time:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_rate_is_the_growth_since_the_look_before() -> None:
    time = Time()
    meter = Meter({"rows": 1000}, time)
    time.now += 2
    assert meter.look({"rows": 1200}) == (2.0, {"rows": 100.0})
    time.now += 4
    assert meter.look({"rows": 1240}) == (4.0, {"rows": 10.0})


def test_whoever_asks_often_does_not_shorten_the_span_for_others() -> None:
    time = Time()
    meter = Meter({"rows": 0}, time)
    for n in range(1, 101):
        time.now += 0.125
        seconds, rates = meter.look({"rows": 25 * n})
        assert abs(rates["rows"] - 200.0) < 1e-6
        assert n < 16 or 1.0 <= seconds <= 2.0


def test_a_counter_that_is_new_or_starts_again_counts_from_0() -> None:
    time = Time()
    meter = Meter({"old": 50}, time)
    time.now += 1
    assert meter.look({"old": 10, "new": 5}).of == {"old": 0.0, "new": 5.0}
