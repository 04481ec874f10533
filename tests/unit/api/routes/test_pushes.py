"""Plain pushes have a way of their own, which says what the route says."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from api.routes.pushes import plain_push
from tests.reference.in_process import InProcess, in_process

COLUMNS = {"ts": "timestamp", "a": "int", "b": "string"}
ROW = b'{"ts": 1000, "a": 1, "b": "x"}'


def arrow() -> bytes:
    sink = pa.BufferOutputStream()
    table = pa.table({"ts": pa.array([1000], pa.timestamp("ms")), "a": [1], "b": ["x"]})
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


#: what is sent: stream, media type, body
SENT: dict[str, tuple[str, str | None, bytes]] = {
    "a row": ("s", "application/json", ROW),
    "rows": ("S", "application/json; charset=utf-8", b"[" + ROW + b"," + ROW + b"]"),
    "columns": ("s", "application/json", b'{"ts": [1, 2], "a": [1, 2], "b": ["x", null]}'),
    "lines": ("s", "application/x-ndjson", ROW + b"\n" + ROW),
    "csv": ("s", "text/csv", b"ts,a,b\n1000,1,x\n"),
    "arrow": ("s", "application/vnd.apache.arrow.stream", arrow()),
    "no rows": ("s", "application/json", b"[]"),
    "no media type": ("s", None, ROW),
    "a form": ("s", "application/x-www-form-urlencoded", ROW),
    "no JSON": ("s", "application/json", b'{"ts": '),
    "no arrow": ("s", "application/vnd.apache.arrow.stream", b"abc"),
    "no body": ("s", "application/json", b""),
    "a wrong type": ("s", "application/json", b'{"ts": 1000, "a": "one", "b": "x"}'),
    "an unknown column": ("s", "application/json", b'{"ts": 1000, "c": 1}'),
    "no such stream": ("t", "application/json", ROW),
    "a table": ("k", "application/json", b'{"id": 1}'),
    "a long name": ("n" * 129, "application/json", ROW),
    "a name with a space": ("a%20b", "application/json", ROW),
}


@pytest.fixture(scope="module")
def service() -> Iterator[InProcess]:
    with in_process() as found:
        assert found.put("/v1/streams/s", json={"columns": COLUMNS, "time": "ts"}).status_code == 201
        assert found.put("/v1/tables/k", json={"columns": {"id": "int"}, "key": ["id"]}).status_code == 201
        yield found


@pytest.mark.parametrize("name", SENT)
def test_a_plain_push_is_answered_as_one_that_the_route_takes(service: InProcess, name: str) -> None:
    stream, media, body = SENT[name]
    headers = {} if media is None else {"Content-Type": media}

    def n_rows() -> int:
        found: int = service.get("/v1/eddy").json()["streams"]["s"]["rows"]
        return found

    def pushed(query: str) -> tuple[int, dict[str, str], dict[str, Any]]:
        before = n_rows()
        answer = service.post(f"/v1/streams/{stream}/rows{query}", content=body, headers=headers)
        accepted = n_rows() - before
        found = answer.json()
        for key in ("first_row", "last_row"):
            if found.get(key) is not None:
                found[key] -= before
        assert found.pop("request_id", answer.headers["x-request-id"]) == answer.headers["x-request-id"]
        assert accepted == (found["accepted"] if answer.status_code == 202 else 0)
        kept = {key: value for key, value in answer.headers.items() if key not in ("x-request-id", "content-length")}
        return answer.status_code, kept, found

    plain, routed = pushed(""), pushed("?bad=refuse")
    assert plain == routed
    assert plain[0] == 202 or plain[1]["content-type"] == "application/problem+json"


def scope(path: str, method: str = "POST", query: bytes = b"", type_: str = "http") -> dict[str, Any]:
    return {"type": type_, "path": path, "method": method, "query_string": query}


@pytest.mark.parametrize(
    ("given", "stream"),
    [
        (scope("/v1/streams/s/rows"), "s"),
        (scope("/v1/streams/s/rows", method="GET"), None),
        (scope("/v1/streams/s/rows", query=b"wait=visible"), None),
        (scope("/v1/streams/s/rows/retract"), None),
        (scope("/v1/streams//rows"), None),
        (scope("/v1/streams/rows"), None),
        (scope("/v1/streams/a/b/rows"), None),
        (scope("/v1/tables/s/rows"), None),
        (scope(f"/v1/streams/{'n' * 129}/rows"), None),
        ({"type": "lifespan"}, None),
        ({"type": "websocket", "path": "/v1/streams/s/rows"}, None),
    ],
)
def test_only_plain_pushes_are_taken_out_of_the_way(given: dict[str, Any], stream: str | None) -> None:
    found = plain_push(given)
    assert (None if found is None else found.stream) == stream and (found is None or found.input is None)


def test_a_reader_of_formats_that_breaks_ends_one_call_and_not_the_service(
    service: InProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*args: Any) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("api.core.calls.parse_rows", broken)
    answer = service.post("/v1/streams/s/rows", content=ROW, headers={"Content-Type": "application/json"})
    assert answer.status_code == 400 and answer.json()["detail"] == "the body cannot be read; ZeroDivisionError"
    monkeypatch.undo()
    assert service.post("/v1/streams/s/rows", content=ROW, headers={"Content-Type": "application/json"}).status_code == 202


def test_expired_rows_are_counted_in_receipts_stats_and_metrics(service: InProcess) -> None:
    for name in ("ahead", "behind"):
        definition = {"columns": {"a": "int", "ts": "timestamp"}, "time": "ts", "timeline": "two"}
        assert service.put(f"/v1/streams/{name}", json=definition).is_success
    sql = "SELECT a FROM behind [RANGE 10 SECONDS]"
    assert service.put("/v1/queries/of_behind", json={"sql": sql}).is_success
    assert service.post("/v1/streams/ahead/rows", json={"a": 1, "ts": 100_000}).json()["expired"] == 0
    rows = {"a": [1, 2, 3], "ts": [1000, 90_000, 90_001]}
    assert service.post("/v1/streams/behind/rows", json=rows).json()["expired"] == 2
    late = service.post("/v1/streams/behind/rows?bad=refuse", json={"a": 4, "ts": 5}).json()
    assert (late["late"], late["expired"]) == (1, 0), "it counts at the front of its stream, which is alive"
    many = {"ahead": [{"a": 1, "ts": 200_000}], "behind": [{"a": 1, "ts": 90_002}, {"a": 1, "ts": 89_000}]}
    found = service.post("/v1/rows", json=many).json()
    assert (found["behind"]["expired"], found["behind"]["late"], found["ahead"]["expired"]) == (0, 1, 0)
    assert service.post("/v1/streams/behind/rows", json={"a": 1, "ts": 91_000}).json()["expired"] == 1
    for path in ("/v1/eddy", "/v1/eddy?brief=true"):
        assert service.get(path).json()["streams"]["behind"]["expired"] == 3
    assert 'eddy_expired_rows_total{stream="behind"} 3.0' in service.get("/metrics").text


@pytest.mark.parametrize(("path", "found"), [
    ("/v1/merges/m/inputs/gw1/rows", ("m", "gw1")), ("/v1/merges/m/inputs/gw1/stable", None), ("/v1/merges/m/rows", None),
    ("/v1/merges/m/inputs//rows", None), ("/v1/merges//inputs/a/rows", None), ("/v1/merges/m/inputs/a/b/rows", None),
])  # fmt: skip
def test_rows_of_an_input_are_a_plain_push_too(path: str, found: tuple[str, str] | None) -> None:
    scope = {"type": "http", "method": "POST", "query_string": b"", "path": path}
    assert plain_push(scope) == found
