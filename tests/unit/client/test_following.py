"""A reader of changes, wherever the bytes are cut: whole commits, each once, in order."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from eddy import GoneError, LimitError
from eddy.client import Client, UnreachableError, exchange
from eddy.client.facts import Change
from eddy.client.following import ChangeCursor, Committed, End, Gap, Message, follow

COLUMNS = {"a": "int", "t": "timestamp"}


def change(seq: int, a: int, sign: int = 1, query: str = "q") -> dict[str, Any]:
    time = f"1970-01-01T00:00:{seq % 60:02}Z"
    return {"query": query, "seq": seq, "time": time, "sign": sign, "row": {"a": a, "t": time}}


def frame(value: Any) -> bytes:
    return b"".join(json.dumps(one).encode() + b"\n" for one in (value if isinstance(value, list) else [value]))


def read(cursor: ChangeCursor, *frames: Any, size: int = 1 << 20) -> list[Message]:
    """What a connection with these frames gives, cut into chunks."""
    cursor.restart()
    data = b"".join(map(frame, frames))
    found = []
    for at in range(0, len(data), size):
        for changes, message in cursor.feed(data[at : at + size]):
            for name in cursor.unknown(changes):
                cursor.learn(name, COLUMNS)
            found.append(cursor.finished(changes, message))
    return found


def values(messages: list[Message]) -> list[tuple[int, list[int], bool]]:
    return [(m.seq, [c.row["a"] for c in m.changes], m.snapshot) for m in messages if isinstance(m, Committed)]


@pytest.mark.parametrize("size", [1, 2, 7, 64, 1 << 20])
def test_commits_come_whole_however_the_bytes_are_cut(size: int) -> None:
    cursor = ChangeCursor(["q"], (), 3)
    frames = [
        [change(4, 1), change(4, 2), change(5, 3)],
        [change(5, 4)],
        {"progress": 6, "times": {"main": None}},
        {"progress": 9},
    ]
    assert values(read(cursor, *frames, size=size)) == [(4, [1, 2], False), (6, [3, 4], False), (9, [], False)]
    assert cursor.since == 9


def test_what_came_of_a_commit_that_was_cut_comes_again_and_is_given_once() -> None:
    cursor = ChangeCursor(["q"], (), 3)
    assert values(read(cursor, [change(4, 1)])) == []
    assert cursor.since == 3
    assert values(read(cursor, [change(4, 1), change(4, 2)], {"progress": 4})) == [(4, [1, 2], False)]


def test_a_snapshot_is_given_when_it_is_whole() -> None:
    cursor = ChangeCursor(["q"], (), "snapshot")
    assert values(read(cursor, [change(7, 1)])) == [] and cursor.since == "snapshot"
    assert values(read(cursor, [change(8, 1)], [change(8, 2)], {"progress": 8}, [change(9, 3)], {"progress": 9})) == [
        (8, [1, 2], True), (9, [3], False),
    ]  # fmt: skip


def test_times_are_times_and_texts_may_hold_any_character() -> None:
    cursor = ChangeCursor(["q"], (), "now")
    odd = change(1, 5)
    odd["row"]["s"] = "a\u2028b\x85c\x0cd\re\n"
    message = read(cursor, [odd], {"progress": 1, "times": {"main": "1970-01-01T00:00:01Z"}}, size=3)[0]
    assert isinstance(message, Committed)
    found = message.changes[0]
    assert found.row["s"] == odd["row"]["s"]
    assert found.row["t"] == found.time and found.time.tzinfo is not None and found.time.second == 1
    assert message.times["main"] == found.time


def test_a_gap_moves_the_cursor_and_what_waited_is_forgotten() -> None:
    cursor = ChangeCursor(["q"], (), 3, "gap")
    found = read(
        cursor,
        [change(4, 1)],
        {"gap": {"after": 3, "until": 8, "snapshot": False}},
        {"progress": 8},
        [change(9, 5)],
        {"progress": 9},
    )
    assert found[0] == Gap(3, 8, False) and values(found) == [(8, [], False), (9, [5], False)]


def test_after_a_gap_with_a_snapshot_the_whole_answer_comes() -> None:
    cursor = ChangeCursor(["q"], (), 3, "conflate")
    gap = {"gap": {"after": 3, "until": 8, "snapshot": True}}
    assert values(read(cursor, [change(4, 1)], gap)) == [] and cursor.since == 3
    assert values(read(cursor, gap, [change(8, 1)], [change(8, 2)], {"progress": 8})) == [(8, [1, 2], True)]


def test_the_end_of_a_query_is_told_and_ends_a_reader_of_it_alone() -> None:
    end = {"end": {"query": "q", "reason": "cancelled"}}
    alone, several, tagged = ChangeCursor(["Q"], (), 0), ChangeCursor(["q", "r"], (), 0), ChangeCursor(["q"], ["t"], 0)
    assert [read(cursor, end) for cursor in (alone, several, tagged)] == [[End("q", "cancelled")]] * 3
    assert [cursor.done for cursor in (alone, several, tagged)] == [True, False, False]
    assert several.queries == ("r",)


def test_a_service_that_stops_is_no_end() -> None:
    cursor = ChangeCursor(["q"], (), 0)
    assert read(cursor, {"end": {"query": None, "reason": "the service stops"}}) == [] and not cursor.done


def test_a_reader_that_was_too_slow_is_told() -> None:
    with pytest.raises(LimitError, match="too slow"):
        read(ChangeCursor(["q"], (), 0), {"end": {"query": None, "reason": "too slow"}})


def test_a_service_that_began_anew_is_noticed() -> None:
    with pytest.raises(GoneError) as caught:
        read(ChangeCursor(["q"], (), 30), {"progress": 2})
    assert caught.value.code == "began_anew"


@pytest.mark.usefixtures("short_waits")
@pytest.mark.parametrize("seed", range(20))
def test_whatever_breaks_each_change_is_given_once_and_in_order(seed: int) -> None:
    dice = random.Random(seed)
    log = [change(seq, n) for n, seq in enumerate(sorted(dice.choices(range(1, 40), k=60)))]

    class Cut(httpx.SyncByteStream):
        def __init__(self, data: bytes, length: int) -> None:
            self.data, self.length = data, length

        def __iter__(self) -> Iterator[bytes]:
            at = 0
            while at < self.length:
                size = dice.randint(1, 200)
                yield self.data[at : min(at + size, self.length)]
                at += size
            if self.length < len(self.data):
                raise httpx.ReadError("cut")

    def serve(request: httpx.Request) -> httpx.Response:
        if request.url.path == "/readyz":
            return httpx.Response(200)
        if request.url.path == "/v1/queries/q":
            return httpx.Response(200, json={"columns": COLUMNS})
        if dice.random() < 0.2:
            raise httpx.ConnectError("refused")
        if dice.random() < 0.2:
            return httpx.Response(503, json={"detail": "recovering", "code": "recovering"})
        since = int(request.url.params["since"])
        frames = []
        for seq in range(since + 1, 41):
            rows = [c for c in log if c["seq"] == seq]
            at = dice.randint(0, len(rows))
            frames += [part for part in (rows[:at], rows[at:]) if part]
            if rows and dice.random() < 0.5:
                frames.append({"progress": seq})
        frames.append({"progress": 40})
        data = b"".join(map(frame, frames))
        whole = dice.random() < 0.1
        return httpx.Response(200, stream=Cut(data, len(data) if whole else dice.randint(0, len(data) - 1)))

    with Client(transport=httpx.MockTransport(serve), patience=30.0) as client:
        client.wait_ready()
        found = list(client.changes("q", 0))
        assert [(c.seq, c.row["a"]) for c in found] == [(c["seq"], c["row"]["a"]) for c in log]
        assert all(isinstance(c, Change) and c.query == "q" for c in found)


def test_a_loop_that_is_left_early_loses_nothing() -> None:
    data = b"".join(map(frame, [[change(1, 1), change(1, 2)], [change(2, 3)], {"progress": 2}]))

    def serve(request: httpx.Request) -> httpx.Response:
        if request.url.path == "/v1/queries/q":
            return httpx.Response(200, json={"columns": COLUMNS})
        return httpx.Response(
            200, content=data if request.url.params["since"] == "0" else frame([change(2, 3)]) + frame({"progress": 2})
        )

    with Client(transport=httpx.MockTransport(serve)) as client:
        cursor = client.changes("q", 0)
        first = next(iter(cursor))
        assert first.row["a"] == 1 and [c.row["a"] for c in cursor] == [2, 3] and cursor.seq == 2


def test_a_gap_is_an_error_for_a_reader_of_changes() -> None:
    data = frame({"gap": {"after": 3, "until": 8, "snapshot": False}}) + frame({"progress": 8})
    with Client(transport=httpx.MockTransport(lambda request: httpx.Response(200, content=data))) as client:
        with pytest.raises(GoneError, match="after commit 3 up to 8"):
            list(client.changes("q", 3, slow="gap"))


def test_patience_with_a_service_that_is_gone_ends() -> None:
    def serve(request: httpx.Request) -> httpx.Response:
        if request.url.path == "/readyz":
            return httpx.Response(200)
        raise httpx.ConnectError("refused")

    with Client(transport=httpx.MockTransport(serve), patience=0.3) as client:
        client.wait_ready()
        with pytest.raises(UnreachableError):
            list(client.changes("q", 0, follow=True))


def test_what_is_asked_for_names_the_queries_the_tags_and_the_place() -> None:
    one = ChangeCursor(["hot"], (), 5, "gap").request()
    assert one.path == "/v1/queries/hot/changes" and ("since", "5") in one.params and ("slow", "gap") in one.params
    many = ChangeCursor(["hot"], ["demo"], "now").request()
    assert many.path == "/v1/changes" and ("query", "hot") in many.params and ("tag", "demo") in many.params


def test_nothing_is_asked_before_somebody_reads() -> None:
    steps = follow(ChangeCursor(["q"], (), 0), exchange.Patience(1.0))
    assert isinstance(next(steps), exchange.Open)
    steps.close()
