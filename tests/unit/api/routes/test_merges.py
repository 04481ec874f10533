"""Merged streams over REST: definitions, inputs, rows in every format, points, and what is refused."""

from __future__ import annotations

import gzip
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa
import pytest

from api.core.calls import WaitingError
from api.edge.access_tokens import Tokens, add_token
from api.edge.problems import as_problem
from eddy import EddyError
from tests.reference.in_process import InProcess, in_process

COLUMNS = {"sensor": "int", "temp": "float", "ts": "timestamp"}
DEFINITION: dict[str, Any] = {
    "columns": COLUMNS, "time": "ts", "inputs": ["gw1", "gw2"], "unique": ["sensor"], "missing": "any", "order": "any",
}  # fmt: skip
RECEIPT = {"accepted", "duplicate", "settled", "settled_before", "leader"}


@pytest.fixture(scope="module")
def service() -> Iterator[InProcess]:
    with in_process() as found:
        yield found


@pytest.fixture
def merge(service: InProcess) -> Iterator[str]:
    """A merge of two inputs, with a query on it."""
    assert service.put("/v1/merges/m", json=DEFINITION).status_code == 201
    assert service.put("/v1/queries/q", json={"sql": "SELECT sensor, temp FROM m [RANGE 1 HOUR]"}).status_code == 201
    yield "m"
    assert service.delete("/v1/queries/q").status_code == 204
    assert service.delete("/v1/merges/m").status_code == 204


def row(sensor: int, ts: int, temp: float = 20.0) -> dict[str, Any]:
    return {"sensor": sensor, "temp": temp, "ts": ts}


def give(service: InProcess, of: str, rows: Any, query: str = "", **more: Any) -> httpx.Response:
    more = more or {"json": rows}
    return service.post(f"/v1/merges/m/inputs/{of}/rows{query}", **more)


def lines(*elements: Any) -> dict[str, Any]:
    content = b"\n".join(json.dumps(element).encode() for element in elements)
    return {"content": content, "headers": {"Content-Type": "application/x-ndjson"}}


def say(service: InProcess, of: str, point: Any) -> httpx.Response:
    return service.post(f"/v1/merges/m/inputs/{of}/stable", json={"time": point})


def answer(service: InProcess) -> list[tuple[int, float]]:
    return sorted((one["sensor"], one["temp"]) for one in service.get("/v1/queries/q/answer").json()["rows"])


def state(service: InProcess) -> dict[str, Any]:
    found: dict[str, Any] = service.get("/v1/merges/m").json()["state"]
    return found


# ---- definitions


def test_a_merge_is_declared_once_listed_and_dropped(service: InProcess) -> None:
    first = service.put("/v1/merges/m", json=DEFINITION)
    again = service.put("/v1/merges/m", json=DEFINITION)
    other = service.put("/v1/merges/M", json=DEFINITION | {"missing": "leader"})
    assert (first.status_code, again.status_code, other.status_code) == (201, 200, 409)
    assert other.json()["code"] == "other_definition"
    facts = service.get("/v1/merges/m").json()
    assert facts["kind"] == "merge" and facts["case"] == "R3" and facts["unique"] == ["sensor"]
    assert facts["inputs"] == ["gw1", "gw2"] and facts["missing"] == "any" and facts["order"] == "any" and facts["lag"] == 0
    assert list(facts["state"]["inputs"]) == ["gw1", "gw2"]
    assert service.get("/v1/merges").json()["items"] == [facts]
    shown = service.get("/v1/streams/m").json()
    assert shown == {name: value for name, value in facts.items() if name != "state"}
    assert [one["kind"] for one in service.get("/v1/streams").json()["items"]] == ["merge"]
    refused = service.delete("/v1/streams/m")
    assert refused.status_code == 409 and refused.json()["hint"] == "DELETE /v1/merges/m"
    assert service.delete("/v1/merges/m").status_code == 204
    assert service.get("/v1/merges/m").status_code == 404 and service.get("/v1/merges").json()["items"] == []


def test_streams_and_merges_share_their_names(service: InProcess) -> None:
    assert service.put("/v1/streams/s", json={"columns": COLUMNS, "time": "ts"}).json()["kind"] == "stream"
    answers = [
        service.put("/v1/merges/s", json=DEFINITION), service.get("/v1/merges/s"), service.delete("/v1/merges/s"),
        service.post("/v1/merges/s/inputs/gw1/rows", json=row(1, 1)),
    ]  # fmt: skip
    assert [(one.status_code, one.json()["code"]) for one in answers] == [(409, "no_merge")] * 4
    assert service.put("/v1/merges/m", json=DEFINITION).status_code == 201
    assert service.put("/v1/streams/m", json={"columns": COLUMNS, "time": "ts"}).status_code == 409
    assert service.delete("/v1/streams/s").status_code == service.delete("/v1/merges/m").status_code == 204


@pytest.mark.parametrize(("options", "code"), [
    ({"policy": "first", "unique": False, "missing": "leader"}, "needs_unique"),
    ({"missing": "any", "unique": False}, "needs_unique"),
    ({"case": "R9"}, "unknown_case"),
    ({"case": "R1"}, "bad_case"),
    ({"case": "R4"}, "bad_case"),
    ({"inputs": []}, "bad_inputs"),
    ({"inputs": ["a", "A"]}, "bad_inputs"),
    ({"policy": "fraction:2"}, "bad_option"),
    ({"policy": "newest"}, "bad_option"),
    ({"unique": ["room"]}, "bad_unique"),
    ({"order": "strict", "lateness": 5}, "bad_option"),
    ({"order": "sideways"}, "bad_request"),
    ({"missing": "all"}, "bad_request"),
    ({"keys": "sensor"}, "bad_request"),
])  # fmt: skip
def test_a_definition_that_cannot_be_is_refused(service: InProcess, options: dict[str, Any], code: str) -> None:
    refused = service.put("/v1/merges/m", json=DEFINITION | options)
    assert (refused.status_code, refused.json()["code"]) == (422, code)
    assert refused.headers["content-type"] == "application/problem+json"
    assert service.get("/v1/merges/m").status_code == 404


# ---- rows


def test_the_receipt_tells_the_sender_what_it_need_not_keep(service: InProcess, merge: str) -> None:
    first = give(service, "gw1", [row(1, 1000), row(2, 2000), row(1, 1000)])
    assert first.status_code == 202 and set(first.json()) >= RECEIPT
    expected = {"accepted": 2, "duplicate": 1, "settled": 0, "settled_before": None, "leader": None}
    assert {name: first.json()[name] for name in RECEIPT} == expected
    assert give(service, "gw2", row(1, 1000)).json()["accepted"] == 1
    assert answer(service) == []
    said = say(service, "gw2", 1500)
    assert said.status_code == 202 and said.json()["settled_before"] == "1970-01-01T00:00:01.500000Z"
    assert said.json()["leader"] == "gw2" and answer(service) == [(1, 20.0)]
    late = give(service, "gw1", [row(5, 1200), row(6, 1600)]).json()
    assert (late["accepted"], late["settled"], late["leader"]) == (1, 1, "gw2")
    say(service, "gw1", "1970-01-01T00:00:10Z")
    assert answer(service) == [(1, 20.0), (2, 20.0), (6, 20.0)]
    found = state(service)
    assert found["leader"] == "gw1" and found["inputs"]["gw1"]["duplicates"] == 1 and found["inputs"]["gw1"]["settled"] == 1


def arrow(rows: list[dict[str, Any]]) -> bytes:
    table = pa.Table.from_pylist([one | {"ts": pa.scalar(one["ts"], pa.timestamp("ms", "UTC")).as_py()} for one in rows])
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


def bodies() -> dict[str, tuple[str, bytes]]:
    rows = [row(1, 1000), row(2, 1500)]
    columns = {name: [one[name] for one in rows] for name in rows[0]}
    csv = b"sensor,temp,ts\n1,20.0,1970-01-01T00:00:01Z\n2,20.0,1970-01-01T00:00:01.5Z\n"
    return {
        "array": ("application/json", json.dumps(rows).encode()),
        "columns": ("application/json", json.dumps(columns).encode()),
        "ndjson": ("application/x-ndjson", b"\n".join(json.dumps(one).encode() for one in rows)),
        "csv": ("text/csv", csv),
        "arrow": ("application/vnd.apache.arrow.stream", arrow(rows)),
    }


@pytest.mark.parametrize("form", list(bodies()))
@pytest.mark.parametrize("zipped", [False, True])
@pytest.mark.parametrize("query", ["", "?bad=skip"])
def test_rows_of_an_input_come_in_every_format(service: InProcess, merge: str, form: str, zipped: bool, query: str) -> None:
    media, content = bodies()[form]
    headers = {"Content-Type": media} | ({"Content-Encoding": "gzip"} if zipped else {})
    found = give(service, "gw1", None, query, content=gzip.compress(content) if zipped else content, headers=headers)
    assert found.status_code == 202, found.text
    assert found.json()["accepted"] == 2 and found.json()["rejected"] == 0
    say(service, "gw1", 2000)
    assert answer(service) == [(1, 20.0), (2, 20.0)]


def test_one_row_is_an_object_and_a_socket_takes_rows_of_an_input(service: InProcess, merge: str) -> None:
    assert give(service, "gw1", row(1, 1000)).json()["accepted"] == 1
    pushes = [{"id": 7, "stream": "m", "input": "gw2", "rows": [row(2, 1000)]}, {"id": 8, "stream": "m", "input": 3, "rows": []},
              {"id": 9, "stream": "m", "rows": [row(2, 1000)]}]  # fmt: skip
    said = service.socket(*({"type": "websocket.receive", "text": json.dumps({"push": push})} for push in pushes))
    assert {one.get("pushed") or one["error"]["code"] for one in said} == {7, "bad_body", "is_merge"}
    assert next(one for one in said if one.get("pushed"))["receipt"]["accepted"] == 1


def test_a_line_may_be_an_adjust_or_a_point(service: InProcess) -> None:
    ends = DEFINITION | {"columns": COLUMNS | {"until": "timestamp"}, "end": "until"}
    assert service.put("/v1/merges/m", json=ends).status_code == 201
    assert service.put("/v1/queries/q", json={"sql": "SELECT sensor, temp FROM m [RANGE 1 HOUR]"}).status_code == 201
    long = {"until": 90_000}
    found = give(service, "gw1", None, **lines(
        row(1, 1000) | long, {"adjust": {"sensor": 1, "ts": 1000, "until": 50_000}}, row(2, 1100) | long, {"stable": 1050},
        row(3, 1200) | long, {"adjust": {"sensor": 2, "ts": 1100, "until": 1100}}, {"stable": 1900}, {"stable": 1500},
    ))  # fmt: skip
    assert found.status_code == 202, found.text
    assert (found.json()["accepted"], found.json()["settled_before"]) == (5, "1970-01-01T00:00:01.900000Z")
    assert answer(service) == [(1, 20.0), (3, 20.0)]
    later = give(service, "gw1", None, **lines({"adjust": {"sensor": 3, "ts": 1200, "until": 2000}}, {"stable": 3000}))
    assert later.json()["accepted"] == 1 and answer(service) == [(1, 20.0)]
    refused = [
        (lines(row(4, 4000) | long, {"adjust": {"sensor": 9, "ts": 4000, "until": 5000}}), "unknown_event", 1, "ts"),
        (lines(row(4, 4000) | long, {"stable": 5000}, row(5, 4500) | long), "below_point", 2, "ts"),
        (lines(row(4, 4000) | long, {"stable": 5000}, {"adjust": {"sensor": 4, "ts": 4000, "until": 4500}}), "below_point", 2,
         "until"),
        (lines(row(4, 4000) | long, {"adjust": {"sensor": 4, "ts": 4000, "until": 3500}}), "bad_end", 1, "until"),
        (lines(row(4, 4000) | long, {"stable": "soon"}), None, 1, None),
        (lines(row(4, 4000) | long, {"stable": None}), None, 1, None),
        (lines(row(4, 4000) | long, {"stable": [1]}), None, 1, None),
        (lines(row(4, 4000) | long, {"adjust": 7}), None, 1, None),
        (lines(row(4, 4000) | long, {"stable": 4_000_000_000_000}), "too_far_ahead", 1, "ts"),
        (lines(row(4, 4000) | long, 17, {"stable": 5000}), None, 1, None),
        (lines({"adjust": {"sensor": 3, "ts": 1200, "until": 2500}}, row(4, 4000) | long), "below_point", 0, "until"),
    ]  # fmt: skip
    before = state(service)
    for body, code, place, column in refused:
        problem = give(service, "gw1", None, **body)
        assert problem.status_code == 422, problem.text
        assert code in (None, problem.json()["code"]) and problem.json()["position"]["row"] == place
        assert column in (None, problem.json()["position"]["column"])
    assert state(service) == before, "nothing was taken"
    skipped = give(service, "gw1", None, "?bad=skip", **lines(
        row(4, 100) | long, {"sensor": "x", "ts": 4000}, row(5, 4000) | long, {"adjust": {"sensor": 5, "ts": 4000, "until": 6000}}
    )).json()  # fmt: skip
    assert (skipped["accepted"], skipped["rejected"]) == (2, 2) and [one["row"] for one in skipped["errors"]] == [0, 1]
    assert service.delete("/v1/queries/q").status_code == service.delete("/v1/merges/m").status_code == 204


def test_a_call_with_a_key_counts_once(service: InProcess, merge: str) -> None:
    keyed = {"json": [row(1, 1000)], "headers": {"Idempotency-Key": "k1"}}
    first, again = give(service, "gw1", None, **keyed), give(service, "gw1", None, **keyed)
    assert first.json() == again.json() and first.json()["accepted"] == 1
    other = give(service, "gw2", None, **keyed)
    assert (other.status_code, other.json()["code"]) == (409, "key_reused")
    said = [
        service.post("/v1/merges/m/inputs/gw1/stable", json={"time": 2000}, headers={"Idempotency-Key": "k2"}) for _ in range(2)
    ]
    assert said[0].json() == said[1].json() and state(service)["inputs"]["gw1"]["rows"] == 1


def test_bad_rows_can_be_left_out(service: InProcess) -> None:
    assert service.put("/v1/merges/m", json=DEFINITION | {"order": "ordered"}).status_code == 201
    rows = [row(1, 1000), {"sensor": "x", "ts": 1100}, row(2, 900), row(3, 1200), {"sensor": 4}, row(5, 1100), row(6, 1200)]
    found = give(service, "gw1", rows, "?bad=skip").json()
    assert (found["accepted"], found["rejected"]) == (3, 4)
    assert [(one["row"], one["column"]) for one in found["errors"]] == [(1, "sensor"), (2, "ts"), (4, "ts"), (5, "ts")]
    many = [row(n, 2000 + n if n != 300 else 2100) for n in range(600)]
    found = give(service, "gw1", many, "?bad=skip").json()
    assert (found["accepted"], [one["row"] for one in found["errors"]]) == (599, [300])
    say(service, "gw1", 5000)
    assert give(service, "gw1", [row(1, 4999), row(2, 5000)], "?bad=skip").json()["rejected"] == 1
    assert service.delete("/v1/merges/m").status_code == 204


def test_who_waits_hears_when_the_rows_are_in_answers(service: InProcess) -> None:
    assert service.put("/v1/merges/m", json=DEFINITION | {"order": "ordered"}).status_code == 201
    assert give(service, "gw1", row(1, 1000)).json()["visible"] is None
    assert give(service, "gw2", None, "?wait=visible", **lines(row(2, 1500), {"stable": 2000})).json()["visible"] is True
    assert service.delete("/v1/merges/m").status_code == 204


# ---- what is refused


def test_plain_calls_on_a_merge_name_the_right_one(service: InProcess, merge: str) -> None:
    rows = "POST /v1/merges/m/inputs/{input}/rows"
    answers = [
        service.post("/v1/streams/m/rows", json=row(1, 1000)),
        service.post("/v1/streams/M/rows?bad=skip", json=row(1, 1000)),
        service.post("/v1/rows", json={"m": [row(1, 1000)]}),
        service.post("/v1/streams/m/rows/retract", json={"keys": [1], "time": 1000}),
    ]
    for found in answers:
        assert (found.status_code, found.json()["code"]) == (409, "is_merge") and found.json()["hint"].startswith(rows)
    assert state(service)["inputs"]["gw1"]["rows"] == 0


def test_rows_that_cannot_be_are_refused_by_row_and_column(service: InProcess, merge: str) -> None:
    ahead = int(time.time() * 1000) + 10_000_000
    assert say(service, "gw1", 1000).status_code == 202
    before = state(service)
    cases = [
        (give(service, "gw1", [row(1, 1000), row(1, 999)]), 422, "below_point", (1, "ts")),
        (give(service, "gw1", [row(1, 2000), row(1, ahead)]), 422, "too_far_ahead", (1, "ts")),
        (give(service, "gw1", [row(1, 2000), {"sensor": 1}]), 422, None, (1, "ts")),
        (give(service, "gw1", [row(1, 2000), {"sensor": "x", "ts": 2000}]), 422, None, (1, "sensor")),
        (give(service, "gw1", [row(1, 2000) | {"room": 1}]), 422, None, None),
        (give(service, "gw1", None, **lines({"adjust": {"sensor": 1, "ts": 2000}})), 422, "unknown_event", (0, "ts")),
        (say(service, "gw1", ahead), 422, "too_far_ahead", (None, "ts")),
        (say(service, "gw1", "soon"), 422, None, None),
        (give(service, "gw3", row(1, 2000)), 404, "unknown_input", None),
        (say(service, "gw3", 2000), 404, "unknown_input", None),
        (service.delete("/v1/merges/m/inputs/gw3"), 404, "unknown_input", None),
        (service.put("/v1/merges/m/inputs/gw1", json={}), 409, "attached", None),
        (service.put("/v1/merges/m/inputs/gw 3", json={}), 422, "bad_name", None),
        (service.put("/v1/merges/m/inputs/gw3", json={"since": ahead}), 422, "too_far_ahead", None),
        (service.post("/v1/merges/x/inputs/gw1/rows", json=row(1, 1)), 404, "unknown_stream", None),
        (give(service, "gw1", None, content=b"[{", headers={"Content-Type": "application/json"}), 400, "bad_body", None),
        (give(service, "gw1", None, content=b"a", headers={"Content-Type": "text/html"}), 415, "unsupported_media", None),
    ]  # fmt: skip
    for found, status, code, place in cases:
        assert found.status_code == status and code in (None, found.json()["code"]), found.text
        assert found.headers["content-type"] == "application/problem+json"
        if place is not None:
            position = found.json()["position"]
            assert (position["row"], position["column"]) == place, found.text
    assert state(service) == before, "nothing was taken"


def test_a_row_against_the_declared_order_is_refused_and_one_below_an_implied_point_is_not(service: InProcess) -> None:
    assert service.put("/v1/merges/m", json=DEFINITION | {"order": "strict"}).status_code == 201
    refused = give(service, "gw1", [row(1, 1000), row(2, 1000)])
    assert (refused.status_code, refused.json()["code"], refused.json()["position"]) == (
        422, "out_of_order", {"row": 1, "column": "ts"}
    )  # fmt: skip
    assert service.delete("/v1/merges/m").status_code == 204
    assert service.put("/v1/merges/m", json={**DEFINITION, "order": None, "lateness": 500}).status_code == 201
    assert give(service, "gw1", [row(1, 1000), row(2, 3000)]).json()["settled_before"] == "1970-01-01T00:00:02.500000Z"
    found = give(service, "gw1", [row(1, 1000), row(3, 1500)])
    assert (found.status_code, found.json()["accepted"], found.json()["settled"]) == (202, 0, 2)
    assert service.delete("/v1/merges/m").status_code == 204


def test_inputs_that_contradict_each_other_are_shown_with_both_values(service: InProcess, merge: str) -> None:
    give(service, "gw1", row(1, 1000, 20.0))
    assert give(service, "gw2", row(1, 1000, 21.0)).status_code == 202
    found = state(service)
    assert found["inputs"]["gw2"]["contradictions"] == 1
    shown = {
        "input": "gw2",
        "time": "1970-01-01T00:00:01Z",
        "column": "temp",
        "event": {"sensor": 1},
        "kept": 20.0,
        "given": 21.0,
    }
    assert found["contradictions"] == [shown]
    say(service, "gw2", 2000)
    assert answer(service) == [(1, 20.0)]


def test_inputs_leave_and_come_back(service: InProcess, merge: str) -> None:
    give(service, "gw1", row(1, 1000))
    say(service, "gw1", 2000)
    assert [service.delete(f"/v1/merges/m/inputs/{of}").status_code for of in ("gw1", "gw2")] == [204, 204]
    gone = give(service, "gw1", row(2, 3000))
    assert (gone.status_code, gone.json()["code"]) == (409, "detached")
    assert service.put("/v1/merges/m/inputs/gw3", json={"since": 5000}).status_code == 204
    assert give(service, "gw3", row(3, 6000)).json()["accepted"] == 1
    assert say(service, "gw3", 7000).json()["leader"] == "gw3"
    assert answer(service) == [(1, 20.0), (3, 20.0)]
    found = state(service)
    assert list(found["inputs"]) == ["gw3"]
    assert found["gaps"] == {"count": 1, "last": [["1970-01-01T00:00:02Z", "1970-01-01T00:00:05Z"]]}
    assert service.put("/v1/merges/m/inputs/gw1", json={}).status_code == 204


def test_too_many_rows_that_wait_are_refused_for_now() -> None:
    error = WaitingError("more than 2 rows wait for a stable point", detail='inputs without a point: "gw2"')
    refused = as_problem(error)
    assert refused.status_code == 429 and refused.headers["Retry-After"] == "1"
    assert b"too_many_waiting" in refused.body and b"gw2" in refused.body


def test_metrics_tell_the_inputs_of_a_merge_apart(service: InProcess, merge: str) -> None:
    give(service, "gw1", [row(1, 1000), row(1, 1000), row(2, 9000)])
    give(service, "gw2", [row(1, 1000, 25.0)])
    say(service, "gw2", 1000)
    say(service, "gw1", 5000)
    say(service, "gw2", 7000)
    text = service.get("/metrics").text
    assert 'eddy_merge_live_events{merge="m"} 1.0' in text and 'eddy_merge_bytes{merge="m"}' in text
    assert 'eddy_merge_chatter_total{merge="m"} 0.0' in text and 'eddy_merge_gaps_total{merge="m"} 0.0' in text
    counts = {"rows_total": (3, 1), "duplicates_total": (1, 0), "settled_total": (0, 0), "contradictions_total": (0, 1),
              "stable_lag_seconds": (2, 0)}  # fmt: skip
    for name, values in counts.items():
        for of, value in zip(("gw1", "gw2"), values, strict=True):
            assert f'eddy_merge_input_{name}{{input="{of}",merge="m"}} {value:.1f}' in text
    leads = [float(line.rsplit(" ", 1)[1]) for line in text.splitlines() if line.startswith("eddy_merge_input_leads{")]
    assert leads == pytest.approx([4 / 6, 2 / 6])


# ---- who may


def test_a_device_may_bring_rows_and_one_that_is_bound_those_of_its_input(tmp_path: Path) -> None:
    file = tmp_path / "tokens"
    secrets = {role: add_token(file, role, role) for role in ("device", "reader", "writer")}
    secrets["bound"] = add_token(file, "gateway", "device", "m/gw1")
    with in_process(tokens=Tokens(file)) as service:

        def ask(who: str, method: str, path: str, body: Any = None) -> int:
            headers = {"Authorization": f"Bearer {secrets[who]}"}
            return service.request(method, path, headers=headers, **({} if body is None else {"json": body})).status_code

        assert ask("device", "PUT", "/v1/merges/m", DEFINITION) == ask("reader", "PUT", "/v1/merges/m", DEFINITION) == 403
        assert ask("writer", "PUT", "/v1/merges/m", DEFINITION) == 201
        assert ask("writer", "PUT", "/v1/streams/s", {"columns": COLUMNS, "time": "ts"}) == 201
        rows, point = "/v1/merges/m/inputs/{}/rows", "/v1/merges/m/inputs/{}/stable"
        wanted = {
            ("device", "gw1"): (202, 202), ("device", "gw2"): (202, 202), ("reader", "gw1"): (403, 403),
            ("bound", "gw1"): (202, 202), ("bound", "GW1"): (202, 202), ("bound", "gw2"): (403, 403),
            ("writer", "gw2"): (202, 202),
        }  # fmt: skip
        for (who, of), statuses in wanted.items():
            found = ask(who, "POST", rows.format(of), row(1, 1000)), ask(who, "POST", point.format(of), {"time": 1})
            assert found == statuses, (who, of)
        assert ask("device", "PUT", "/v1/merges/m/inputs/gw3", {}) == ask("bound", "DELETE", "/v1/merges/m/inputs/gw1") == 403
        assert ask("device", "POST", "/v1/streams/s/rows", row(1, 1)) == 202
        assert (
            ask("bound", "POST", "/v1/streams/s/rows", row(1, 1)) == ask("bound", "POST", "/v1/rows", {"s": [row(1, 1)]}) == 403
        )
        assert ask("device", "GET", "/v1/merges/m") == ask("bound", "GET", "/v1/merges") == 403
        assert ask("reader", "GET", "/v1/merges/m") == 200


@pytest.mark.parametrize(("role", "bound"), [("reader", "m/gw1"), ("device", "m"), ("device", "m/"), ("device", "a/b/c")])
def test_only_a_device_is_bound_and_to_one_input(tmp_path: Path, role: str, bound: str) -> None:
    with pytest.raises(EddyError) as refused:
        add_token(tmp_path / "tokens", "a", role, bound)
    assert refused.value.code == "bad_option" and refused.value.hint == "--role device --input merge/input"
