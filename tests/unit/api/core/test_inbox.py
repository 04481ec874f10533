"""The bounded queue before the engine's thread."""

from __future__ import annotations

import threading

import pytest

from api.core.calls import Call
from api.core.inbox import BusyError, ClosedError, Inbox, InboxItem


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
