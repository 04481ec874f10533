"""Bad requests on every route and in every format: refused, and the state is what it was before, byte for byte.

And times: no call of a device takes a timeline further past the clock than `max_ahead`.
"""

from __future__ import annotations

import gzip
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
import pytest

from api.base.limits import Limits
from api.edge.access_tokens import ROUTES, Tokens, add_token
from api.wire.bodies import ARROW, CSV, JSON, NDJSON
from eddy import EddyError, Engine
from tests.reference.in_process import InProcess, in_process
from tests.reference.service_state import state_of

KEYED: dict[str, Any] = {
    "columns": {"k": "string", "v": "float", "until": "timestamp", "ts": "timestamp"},
    "time": "ts",
    "key": "k",
    "end": "until",
}
S: dict[str, Any] = {"columns": {"a": "int", "g": "string", "ts": "timestamp"}, "time": "ts", "lateness": 1000}
T: dict[str, Any] = {"columns": {"g": "string", "floor": "int"}, "key": "g"}
M: dict[str, Any] = {"columns": S["columns"], "time": "ts", "inputs": ["gw1", "gw2"], "unique": ["a"], "lateness": 1000}
QUERIES = {
    "plain": "SELECT a, g FROM s [RANGE 1 MINUTE] WHERE a > 1",
    "grouped": "SELECT g, COUNT(*) AS n FROM s [RANGE 1 MINUTE] GROUP BY g",
    "named": "SELECT g, n FROM grouped WHERE n > 1",
    "joined": "SELECT s.a, t.floor FROM s, t WHERE s.g = t.g",
    "keys": "SELECT k, v FROM keyed [RANGE 1 MINUTE]",
}
FAR = 253_370_764_800_000
LONG = "x" * 70_000
#: What no route takes as a body.
JUNK = [
    b"", b"{", b"[1", b"\xff\xfe\x00", b"null", b'"x"', b"7", b"[[]]", b'{"a": {}}', b'{"sql": 5}', b'{"keys": 1}', b"a,b\n1\n",
    b"[" * 5000, b'{"a": 1e999, "nope": 1}', b'{"sql": "SELECT \\ud800"}', b'{"definitions": []}', b'{"queries": [{}]}',
    b'{"keys": [{}], "time": "x"}', b'{"time": {}}', b'{"name": "\\u0000"}', b'{"sql": "SELECT", "nope": 1}',
    orjson.dumps({"sql": "SELECT " + "1+" * 100_000}), orjson.dumps({"sql": "(" * 60_000}),
]  # fmt: skip
MEDIA = (JSON, NDJSON, CSV, ARROW, "text/plain", "application/x-www-form-urlencoded")


def arrow(rows: list[dict[str, Any]], stream: str | None = None) -> bytes:
    table = pa.Table.from_pylist(rows)
    table = table if stream is None else table.replace_schema_metadata({"stream": stream})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def in_formats(row: dict[str, Any]) -> list[tuple[str, bytes, dict[str, str]]]:
    """A row in every format, plain and packed."""
    csv = (",".join(row) + "\n" + ",".join("" if value is None else str(value) for value in row.values()) + "\n").encode()
    plain = [
        (JSON, orjson.dumps(row)),
        (JSON, orjson.dumps([row])),
        (NDJSON, orjson.dumps(row)),
        (CSV, csv),
        (ARROW, arrow([row])),
    ]
    plain.append((JSON, orjson.dumps({name: [value] for name, value in row.items()})))
    packed = [(media, gzip.compress(body), {"Content-Encoding": "gzip"}) for media, body in plain]
    return [*((media, body, {}) for media, body in plain), *packed]


class World:
    """A service with something of everything, which no bad request may change."""

    def __init__(self, client: InProcess) -> None:
        self.client = client
        now = int(time.time() * 1000)
        assert client.put("/v1/streams/s", json=S).status_code == 201
        assert client.put("/v1/streams/keyed", json=KEYED).status_code == 201
        assert client.put("/v1/merges/m", json=M).status_code == 201
        assert client.put("/v1/tables/t", json=T).status_code == 201
        assert client.post("/v1/tables/t/rows", json={"g": ["u", "v"], "floor": [1, 2]}).status_code == 202
        for name, sql in QUERIES.items():
            assert client.put(f"/v1/queries/{name}", json={"sql": sql, "tags": ["tag"]}).status_code == 201
        rows = {"a": [1, 2], "g": ["u", "v"], "ts": [now - 2000, now - 1000]}
        assert client.post("/v1/streams/s/rows", json=rows).status_code == 202
        self.refused: dict[tuple[str, str], int] = {}
        self.before = self.state()

    def state(self) -> list[bytes]:
        found: list[bytes] = self.client.do(self.client.service.read(lambda core: state_of(core.holdings)))
        return found

    def try_(self, method: str, template: str, path: str, *, good: bool = False, look: bool = True, **more: Any) -> int:
        """Ask; unless it may be `good`, it is refused. Whether that changed anything is looked at now or with the next one."""
        answer = self.client.request(method, path, **more)
        about = method, path, {name: str(value)[:60] for name, value in more.items()}, answer.status_code, answer.text[:200]
        assert answer.status_code < 500 and self.client.service.failure is None, about
        if 400 <= answer.status_code < 500:
            assert answer.json()["code"], about
            self.refused[method, template] = self.refused.get((method, template), 0) + 1
            assert not look or self.state() == self.before, about
        else:
            assert good, about
            self.before = self.state()
        return answer.status_code


@pytest.fixture
def world() -> Iterator[World]:
    with in_process(Limits(requests_per_second=1_000_000)) as client:
        yield World(client)


#: For each parameter of a path names of nothing, and of something that cannot be changed.
NAMES = {
    "stream": ("nope", "x" * 200), "table": ("nope", "s"), "query": ("nope", "q" * 129), "timeline": ("nope",), "run": ("nope",),
    "file": ("nope",), "merge": ("nope", "s", "m" * 200), "input": ("nope", "i" * 200),
}  # fmt: skip


def paths(template: str) -> list[str]:
    found = [template]
    for name, values in NAMES.items():
        if "{" + name + "}" in template:
            found = [path.replace("{" + name + "}", value) for path in found for value in values]
    return found


def test_bad_requests_on_every_route_change_nothing(world: World) -> None:
    document = world.client.app.openapi()
    routes = [(verb.upper(), path) for path, verbs in document["paths"].items() for verb in verbs]
    assert len(routes) > 35
    for method, template in routes:
        follow: dict[str, Any] = {"params": {"follow": "false", "limit": "-1", "since": "x"}} if method == "GET" else {}
        for path in paths(template):
            world.try_(method, template, path, good="{" not in template, **follow)
        if method in ("POST", "PUT", "PATCH"):
            query = "grouped" if template.endswith("/pause") else "plain" if template.endswith("/resume") else "joined"
            known = {
                "stream": "s",
                "merge": "m",
                "input": "gw1",
                "table": "t",
                "query": query,
                "timeline": "main",
                "run": "x",
                "file": "x",
            }
            for n, body in enumerate(JUNK):
                media = MEDIA[n % len(MEDIA)] if n % 2 else JSON
                headers = {"Content-Type": media, **({"Idempotency-Key": "k" * 300} if n % 5 == 4 else {})}
                path = template.format(**known)
                # an empty body is no rows; what would replace a text that runs is refused for its text
                world.try_(
                    method, template, path, good=_says_nothing(template, body, media), look=False, content=body, headers=headers
                )
            for encoding, body in (("gzip", b"no"), ("gzip", gzip.compress(b"{")[:-3]), ("br", b"x"), ("deflate", b"\x78x")):
                headers = {"Content-Encoding": encoding, "Content-Type": JSON}
                world.try_(method, template, template.format(**known), content=body, headers=headers)
    unchanged = {(method, path) for method, path in routes if method == "GET" and "{" not in path}
    assert set(routes) - unchanged <= set(world.refused), set(routes) - unchanged - set(world.refused)


def _says_nothing(template: str, body: bytes, media: str) -> bool:
    """Whether a body is taken because it asks for nothing."""
    return template.endswith("/rows") and not body and media == NDJSON


BAD_ROWS: list[dict[str, Any]] = [
    {"a": "x", "g": "new", "ts": 1}, {"a": 1, "g": "new", "ts": None}, {"a": 1, "g": "new", "ts": FAR}, {"a": 1, "g": "new"},
    {"a": 1, "g": "new", "ts": 1, "nope": 1}, {"a": 1.5, "g": "new", "ts": 1}, {"a": 1 << 62, "g": "n" * (1 << 20 | 1), "ts": 1},
]  # fmt: skip


def test_bad_rows_in_every_format_change_nothing(world: World) -> None:
    rows, bundle = "/v1/streams/{stream}/rows", "/v1/rows"
    for row in BAD_ROWS:
        for media, body, headers in in_formats(row):
            headers = {"Content-Type": media, **headers}
            world.try_("POST", rows, "/v1/streams/s/rows", look=False, content=body, headers=headers)
            world.try_("POST", rows, "/v1/streams/s/rows?bad=refuse", content=body, headers={**headers, "Idempotency-Key": "k"})
        good = {"k": "new", "v": 1.0, "until": 5, "ts": 1}
        both = {"keyed": [good], "s": [row]}
        world.try_("POST", bundle, bundle, json=both)
        world.try_("POST", bundle, bundle, content=arrow([good], "keyed") + arrow([row], "s"), headers={"Content-Type": ARROW})
        said = world.client.socket(
            {"type": "websocket.receive", "text": orjson.dumps({"push": {"stream": "s", "rows": row}}).decode()}
        )
        assert "error" in said[0] and world.state() == world.before
    for text in (
        "{",
        "[]",
        '{"push": 5}',
        '{"push": {}}',
        '{"push": {"stream": "s", "rows": 7}}',
        '{"x": {}}',
        '{"subscribe": {}}',
    ):
        said = world.client.socket({"type": "websocket.receive", "text": text})
        assert "error" in said[0] and world.state() == world.before
    wrong: list[list[Any]] = [[{}], [["a", "b"]], ["x", 5], [1.5]]
    for key in wrong:
        world.try_("POST", "delete", "/v1/tables/t/rows/delete", json={"keys": key})
        world.try_("POST", "retract", "/v1/streams/keyed/rows/retract", json={"keys": key, "time": 1})
    for row in ({"g": None, "floor": 1}, {"g": "new", "floor": "x"}, {"nope": 1}):
        for media, body, headers in in_formats(row):
            if media != CSV:
                world.try_("POST", "upsert", "/v1/tables/t/rows", content=body, headers={"Content-Type": media, **headers})


def test_what_is_in_use_or_there_already_is_refused_and_stays(world: World) -> None:
    for method, path, more in (
        ("DELETE", "/v1/streams/s", {}), ("DELETE", "/v1/tables/t", {}), ("DELETE", "/v1/queries/grouped", {}),
        ("POST", "/v1/queries/grouped/pause", {}), ("POST", "/v1/queries/plain/resume", {}),
        ("PUT", "/v1/streams/s", {"json": KEYED}), ("PUT", "/v1/tables/t", {"json": T | {"retroactive": True}}),
        ("PUT", "/v1/queries/plain", {"json": {"sql": "SELECT a FROM s [RANGE 1 MINUTE]"}}),
        ("PUT", "/v1/queries/plain", {"json": {"sql": QUERIES["plain"], "tags": []}}),
        ("POST", "/v1/queries", {"json": {"sql": QUERIES["plain"], "name": "s"}}),
        ("POST", "/v1/queries", {"json": {"sql": "SELECT nope FROM s"}}),
        ("POST", "/v1/queries/batch", {"json": {"queries": [{"sql": QUERIES["plain"]}, {"sql": "SELECT"}]}}),
        ("POST", "/v1/queries/batch", {"json": {"queries": [{"sql": QUERIES["joined"], "history": "window"}, {"sql": LONG}]}}),
        ("POST", "/v1/timelines/main/advance", {"json": {"time": FAR}}), ("PATCH", "/v1/eddy", {"json": {"policy": "nope"}}),
    ):  # fmt: skip
        world.try_(method, path, path, **more)


# ---- times

HOUR = 3_600_000


def test_every_call_that_takes_a_time_refuses_one_too_far_ahead_and_takes_one_just_within() -> None:
    now = 1_700_000_000_000
    for ahead, fits in ((HOUR, True), (HOUR + 1, False)):
        for do in (_push, _push_many, _retract, _advance):
            engine = Engine(clock=lambda: now, max_ahead=HOUR)
            engine.create_stream("s", S["columns"], time="ts")
            engine.create_stream("keyed", **KEYED)
            at = now + ahead
            if fits:
                do(engine, at, now)
                assert engine.times()["main"] == datetime.fromtimestamp(at / 1000, UTC)
            else:
                with pytest.raises(EddyError) as refused:
                    do(engine, at, now)
                assert refused.value.code == "too_far_ahead" and engine.times()["main"] is None


def _push(engine: Engine, at: int, now: int) -> None:
    engine.push("s", {"a": [1], "g": ["x"], "ts": [at]})


def _push_many(engine: Engine, at: int, now: int) -> None:
    engine.push_many({"s": {"a": [1], "ts": [at]}, "keyed": {"k": ["a"], "ts": [now]}})


def _retract(engine: Engine, at: int, now: int) -> None:
    engine.retract("keyed", ["a"], at)


def _advance(engine: Engine, at: int, now: int) -> None:
    engine.advance(at)


def test_the_end_of_a_row_may_lie_in_the_future_and_moves_no_clock() -> None:
    now = 1_700_000_000_000
    engine = Engine(clock=lambda: now, max_ahead=HOUR)
    engine.create_stream("keyed", **KEYED)
    engine.push("keyed", {"k": ["a"], "until": [FAR], "ts": [now]})
    assert engine.times()["main"] == datetime.fromtimestamp(now / 1000, UTC)


def test_no_call_of_a_device_takes_a_timeline_beyond_what_is_allowed(tmp_path: Path) -> None:
    file = tmp_path / "tokens"
    secrets = {role: add_token(file, role, role) for role in ("device", "writer")}
    device, writer = ({"Authorization": f"Bearer {secrets[role]}"} for role in ("device", "writer"))
    limits = Limits(requests_per_second=1_000_000, max_ahead_seconds=60)
    with in_process(limits, Tokens(file)) as client:
        for name, definition in (("s", S), ("keyed", KEYED), ("arriving", {"columns": {"x": "int"}, "key": "x"})):
            assert client.put(f"/v1/streams/{name}", json=definition, headers=writer).status_code == 201
        assert client.put("/v1/merges/m", json=M, headers=writer).status_code == 201
        assert client.put("/v1/tables/t", json=T, headers=writer).status_code == 201
        sql = "SELECT x FROM arriving [RANGE 5 SECONDS]"
        assert client.post("/v1/queries", json={"sql": sql}, headers=writer).status_code == 201
        tried = set()
        times: list[Any] = [FAR, "9999-01-01T00:00:00Z", int(time.time() * 1000) + 120_000, int(time.time() * 1000) + 30_000]
        for at in times:
            row = {"a": 1, "g": "x", "ts": at}
            keyed = {"k": "x", "until": at, "ts": at}
            for path, about in (
                ("/v1/streams/s/rows", row), ("/v1/streams/keyed/rows", keyed), ("/v1/merges/m/inputs/gw1/rows", row),
            ):  # fmt: skip
                for media, body, more in in_formats(about):
                    for query in ("", "?bad=skip"):
                        client.post(path + query, content=body, headers={"Content-Type": media, **more, **device})
            tried |= {("POST", "/v1/streams/{stream}/rows"), ("POST", "/v1/merges/{merge}/inputs/{input}/rows")}
            client.post("/v1/merges/m/inputs/gw1/stable", json={"time": at}, headers=device)
            tried.add(("POST", "/v1/merges/{merge}/inputs/{input}/stable"))
            for body, media in ((orjson.dumps({"s": [row]}), JSON), (arrow([row], "s"), ARROW)):
                client.post("/v1/rows", content=body, headers={"Content-Type": media, **device})
            tried.add(("POST", "/v1/rows"))
            for name, key in (("keyed", "x"), ("arriving", 1)):
                client.post(f"/v1/streams/{name}/rows/retract", json={"keys": [key], "time": at}, headers=device)
            tried.add(("POST", "/v1/streams/{stream}/rows/retract"))
            client.post("/v1/tables/t/rows", json={"g": "x", "floor": 1}, headers=device)
            client.post("/v1/tables/t/rows/delete", json={"keys": ["x"], "time": at}, headers=device)
            tried |= {("POST", "/v1/tables/{table}/rows"), ("POST", "/v1/tables/{table}/rows/delete")}
            text = orjson.dumps({"push": {"id": 1, "stream": "s", "rows": row}}).decode()
            client.socket({"type": "websocket.receive", "text": text}, headers=device)
            tried.add(("WS", "/v1/ws"))
            latest = time.time() + limits.max_ahead_seconds
            for line, clock in client.do(client.service.read(lambda core: core.engine.times())).items():
                assert clock is None or clock.timestamp() <= latest, (at, line, clock)
        assert tried == {route for route, role in ROUTES.items() if role in ("device", "any")}, "every route of a device"
        assert client.post("/v1/timelines/main/advance", json={"time": FAR}, headers=device).status_code == 403
