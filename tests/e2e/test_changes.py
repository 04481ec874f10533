"""Changes as they happen, over real sockets: SSE, NDJSON, Arrow and WebSocket; cursors, tags, slow readers, the end."""

from __future__ import annotations

import io
import json
import socket
import time
from collections.abc import Iterator
from typing import Any

import httpx
import pyarrow as pa
import pytest
from websockets.sync.client import connect

from tests.e2e.serving import Server, serving, until

PATIENCE = 60.0


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    # small queues, so that slow readers fill them soon
    with serving("--ephemeral", "--limit", "subscription_bytes=300000") as found:
        yield found


class Desk:
    """A stream, queries over it and their names, apart from those of other tests."""

    def __init__(self, url: str, name: str) -> None:
        self.client = httpx.Client(base_url=url, timeout=30.0)
        self.name = name
        columns = {"columns": {"a": "int", "pad": "string", "ts": "timestamp"}, "time": "ts", "timeline": f"t_{name}"}
        assert self.client.put(f"/v1/streams/{name}", json=columns).status_code == 201

    def submit(self, name: str, sql: str, **options: Any) -> str:
        answer = self.client.post("/v1/queries", json={"name": name, "sql": sql.format(s=self.name), **options})
        assert answer.status_code == 201, answer.text
        return name

    def push(self, *values: int, ts: int = 0, pad: str = "") -> None:
        rows = {"a": list(values), "pad": [pad] * len(values), "ts": [ts] * len(values)}
        answer = self.client.post(f"/v1/streams/{self.name}/rows", json=rows)
        assert answer.status_code == 202, answer.text

    def advance(self, time: int) -> None:
        assert self.client.post(f"/v1/timelines/t_{self.name}/advance", json={"time": time}).status_code == 200


@pytest.fixture
def desk(server: Server, request: pytest.FixtureRequest) -> Iterator[Desk]:
    found = Desk(server.url, f"s{abs(hash(request.node.name)) % 10**8}")
    yield found
    found.client.close()


def events(answer: httpx.Response) -> Iterator[tuple[str | None, Any]]:
    """(id, data) of each event."""
    id_, data = None, []
    for line in answer.iter_lines():
        if line.startswith("id: "):
            id_ = line[4:]
        elif line.startswith("data: "):
            data.append(line[6:])
        elif not line and data:
            yield id_, json.loads("".join(data))
            id_, data = None, []


def rows_of(message: Any) -> list[tuple[int, int]]:
    return [(change["sign"], change["row"]["a"]) for change in message]


def test_server_sent_events_carry_changes_and_then_the_cursor(desk: Desk) -> None:
    query = desk.submit("sse", "SELECT a FROM {s} [RANGE 1 SECOND] WHERE a > 1")
    desk.push(5)
    with desk.client.stream("GET", f"/v1/queries/{query}/changes") as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        stream = events(answer)
        assert rows_of(next(stream)[1]) == [(1, 5)], "the answer as it was"
        id_, progress = next(stream)
        assert id_ == str(progress["progress"])
        desk.push(1, 2, 3, ts=10)
        assert rows_of(next(stream)[1]) == [(1, 2), (1, 3)]
        cursor = next(stream)[0]
        desk.advance(1005)
        assert rows_of(next(stream)[1]) == [(-1, 5)]
    with desk.client.stream("GET", f"/v1/queries/{query}/changes", headers={"Last-Event-ID": str(cursor)}) as answer:
        assert rows_of(next(events(answer))[1]) == [(-1, 5)], "a reader goes on where it was"


def test_a_cursor_that_is_too_old_is_gone(desk: Desk) -> None:
    desk.push(0)
    # of many aggregates that share their sums only those that somebody reads are logged, but for the first few
    for n in range(64):
        query = desk.submit(f"gone{n}", f"SELECT a, COUNT(*) AS n FROM {{s}} [RANGE 1 SECOND] WHERE a > {-n} GROUP BY a")
    seq = desk.client.get("/v1/eddy").json()["seq"]
    desk.push(1)
    answer = desk.client.get(f"/v1/queries/{query}/changes", params={"since": str(seq), "follow": "false"})
    assert answer.status_code == 410 and answer.json()["code"] == "gone"


def test_ndjson_has_a_change_a_line_and_can_end_at_now(desk: Desk) -> None:
    query = desk.submit("lines", "SELECT a FROM {s}")
    desk.push(1, 2)
    desk.push(3)
    params = {"since": "0", "follow": "false", "format": "ndjson"}
    lines = [json.loads(line) for line in desk.client.get(f"/v1/queries/{query}/changes", params=params).text.splitlines()]
    assert [line["row"]["a"] for line in lines[:-1]] == [1, 2, 3] and "progress" in lines[-1]
    assert lines[0]["seq"] < lines[2]["seq"]


def test_arrow_is_one_stream_of_batches(desk: Desk) -> None:
    query = desk.submit("batches", "SELECT a, pad FROM {s}")
    desk.push(1, 2, pad="x")
    desk.push(3)
    params = {"since": "0", "follow": "false", "format": "arrow"}
    body = desk.client.get(f"/v1/queries/{query}/changes", params=params).content
    table = pa.ipc.open_stream(io.BytesIO(body)).read_all()
    assert table.column_names == ["seq", "time", "sign", "a", "pad"]
    assert table.column("a").to_pylist() == [1, 2, 3] and table.column("pad").to_pylist() == ["x", "x", ""]


def test_an_arrow_stream_without_changes_has_its_schema(desk: Desk) -> None:
    query = desk.submit("nothing", "SELECT a FROM {s}")
    body = desk.client.get(f"/v1/queries/{query}/changes", params={"since": "now", "follow": "false", "format": "arrow"}).content
    assert pa.ipc.open_stream(io.BytesIO(body)).schema.names == ["seq", "time", "sign", "a"]


def test_one_stream_carries_many_queries_and_those_with_a_tag_as_they_come(desk: Desk) -> None:
    tag = f"tag_{desk.name}"
    desk.submit("many1", "SELECT a FROM {s} WHERE a > 1", tags=[tag])
    with desk.client.stream("GET", "/v1/changes", params={"tag": tag, "since": "now"}) as answer:
        stream = events(answer)
        next(stream)
        desk.submit("many2", "SELECT a FROM {s} WHERE a > 2", tags=[tag])
        desk.push(2, 3)
        message = next(stream)[1]
        assert [(change["query"], change["row"]["a"]) for change in message] == [("many1", 2), ("many1", 3), ("many2", 3)]
        next(stream)
        assert desk.client.delete("/v1/queries", params={"tag": tag}).json() == {"cancelled": 2}
        ends = {next(stream)[1]["end"]["query"], next(stream)[1]["end"]["query"]}
        assert ends == {"many1", "many2"}


def test_a_stream_of_one_query_ends_when_it_is_cancelled(desk: Desk) -> None:
    query = desk.submit("ends", "SELECT a FROM {s}")
    with desk.client.stream("GET", f"/v1/queries/{query}/changes") as answer:
        stream = events(answer)
        next(stream)
        desk.client.delete(f"/v1/queries/{query}")
        assert next(stream)[1] == {"end": {"query": "ends", "reason": "cancelled"}}
        assert next(stream, None) is None


def test_a_reader_that_has_gone_leaves_nothing_behind(server: Server, desk: Desk) -> None:
    query = desk.submit("leaves", "SELECT a FROM {s}")
    for _ in range(3):
        with httpx.stream("GET", f"{server.url}/v1/queries/{query}/changes", timeout=30.0) as answer:
            next(events(answer))
    until(lambda: _metric(server, "eddy_subscriptions") == 0, PATIENCE, "no subscription is left")


def _metric(server: Server, name: str) -> float:
    text = httpx.get(server.url + "/metrics", timeout=30.0).text
    return float(next(line.split()[1] for line in text.splitlines() if line.startswith(name + " ")))


@pytest.mark.parametrize("slow", ["block", "conflate", "gap", "disconnect"])
@pytest.mark.slow
def test_a_reader_that_does_not_read_is_dealt_with_as_it_asked(server: Server, desk: Desk, slow: str) -> None:
    query = desk.submit(f"slow_{slow}", "SELECT a, pad FROM {s} [RANGE 1 HOUR]")
    host, port = server.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=PATIENCE) as reader:
        request = f"GET /v1/queries/{query}/changes?since=now&format=ndjson&slow={slow} HTTP/1.0\r\nHost: {host}:{port}\r\n\r\n"
        reader.sendall(request.encode())
        assert reader.recv(1)
        n = 0
        deadline = time.monotonic() + PATIENCE
        before = _metric(server, "eddy_subscription_overflows_total")
        while _metric(server, "eddy_subscription_overflows_total") == before:
            desk.push(*range(n, n + 100), pad="x" * 1000)
            n += 100
            assert time.monotonic() < deadline, "the reader's queue fills up"
        desk.push(n)
        text = bytearray()
        reader.settimeout(PATIENCE)
        last = f'"row":{{"a":{n},'.encode()
        while last not in text[-(1 << 16) :] and b'"reason":"too slow"' not in text[-(1 << 12) :]:
            piece = reader.recv(1 << 20)
            assert piece, "the stream ends only when it said so"
            assert time.monotonic() < deadline + PATIENCE, "the reader comes to the end"
            text += piece
    messages = [json.loads(line) for line in bytes(text).split(b"\n")[:-1] if line.startswith(b"{")]
    seen = [message["row"]["a"] for message in messages if "row" in message]
    gaps = [message["gap"] for message in messages if "gap" in message]
    if slow == "block":
        assert seen[: n + 1] == list(range(n + 1)) and not gaps, "everything, in order, in its own time"
    elif slow == "gap":
        assert gaps and not gaps[0]["snapshot"] and len(seen) < n + 1 and seen[-1] == n
    elif slow == "conflate":
        assert gaps and gaps[0]["snapshot"]
        after = [message for message in messages[messages.index({"gap": gaps[-1]}) :] if "row" in message]
        assert {message["row"]["a"] for message in after} == set(range(n + 1)), "the whole answer comes anew"
    else:
        assert messages[-1] == {"end": {"query": None, "reason": "too slow"}}


def test_a_socket_carries_subscriptions_and_pushes(server: Server, desk: Desk) -> None:
    query = desk.submit("ws", "SELECT a FROM {s} WHERE a > 1")
    with connect(server.url.replace("http", "ws") + "/v1/ws", open_timeout=PATIENCE) as ws:

        def say(message: Any) -> None:
            ws.send(json.dumps(message))

        def hear() -> Any:
            return json.loads(ws.recv(PATIENCE))

        say({"subscribe": {"id": 1, "query": query, "since": "now"}})
        assert hear() == {"subscribed": 1, "queries": ["ws"]}
        assert hear()["id"] == 1, "progress"
        say({"push": {"id": "p", "stream": desk.name, "rows": [{"a": 1, "ts": 0}, {"a": 2, "ts": 0}]}})
        heard = [hear(), hear(), hear()]
        receipt = next(one for one in heard if "pushed" in one)["receipt"]
        assert (receipt["accepted"], receipt["late"], receipt["expired"]) == (2, 0, 0)
        assert rows_of(next(one for one in heard if "changes" in one)["changes"]) == [(1, 2)]
        for wrong, code in (
            ({"push": {"id": 7, "stream": desk.name, "rows": [{"b": 1}]}}, "unknown_column"),
            ({"subscribe": {"id": 1, "query": query}}, "id_taken"),
            ({"subscribe": {"id": 2, "query": "nope"}}, "unknown_query"),
            ({"unsubscribe": 9}, "unknown_subscription"),
            ({"dance": {}}, "bad_body"),
            ([1], "bad_body"),
        ):
            say(wrong)
            assert hear()["error"]["code"] == code
        say({"unsubscribe": 1})
        assert hear() == {"unsubscribed": 1}
        desk.push(5)
        say({"unsubscribe": 1})
        assert hear()["error"]["code"] == "unknown_subscription", "nothing came in between"
