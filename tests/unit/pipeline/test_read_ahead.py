"""Items come in order from a thread that never runs far ahead and always ends."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest

from pipeline.read_ahead import ReadAhead


def test_items_come_in_order_from_another_thread() -> None:
    threads = set()

    def items() -> Iterator[int]:
        for n in range(1000):
            threads.add(threading.current_thread())
            yield n

    with ReadAhead(items(), depth=3) as ahead:
        assert list(ahead) == list(range(1000))
        assert list(ahead) == []
    assert threading.current_thread() not in threads


def test_no_more_than_the_depth_is_read_before_it_is_asked_for() -> None:
    taken: list[int] = []

    def items() -> Iterator[int]:
        for n in range(1000):
            taken.append(n)
            yield n

    with ReadAhead(items(), depth=4) as ahead:
        deadline = time.monotonic() + 10
        while len(taken) < 5:
            assert time.monotonic() < deadline
            time.sleep(0.001)
        assert next(ahead) == 0
    # four wait, one was asked for, one is in the thread's hand
    assert len(taken) <= 6


def test_an_error_comes_out_where_it_happened() -> None:
    def items() -> Iterator[int]:
        yield 1
        raise ValueError("torn")

    with ReadAhead(items()) as ahead:
        assert next(ahead) == 1
        with pytest.raises(ValueError, match="torn"):
            next(ahead)


def test_leaving_ends_the_thread_while_it_waits_for_room() -> None:
    def items() -> Iterator[int]:
        while True:
            yield 1

    before = threading.active_count()
    with ReadAhead(items(), depth=2):
        pass
    assert threading.active_count() == before
