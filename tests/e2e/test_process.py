"""The server as a process: how it starts, what it says when it cannot, and how it ends."""

from __future__ import annotations

import json
import resource
import signal
import socket
import ssl
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx
import pytest
from typer.testing import CliRunner
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from api.cli import app
from tests.e2e.serving import SLACK, STOP, Server, serving, until

HERE = Path(__file__).parent
CERT, KEY = HERE / "tls" / "cert.pem", HERE / "tls" / "key.pem"
COLUMNS = {"columns": {"a": "int", "ts": "timestamp"}, "time": "ts"}

# every test starts a server of its own
pytestmark = pytest.mark.slow


@contextmanager
def failed(*flags: str, env: dict[str, str] | None = None) -> Iterator[tuple[int, str]]:
    """A server that does not come up: its exit code, and what it said."""
    server = Server(*flags, env=env)
    try:
        yield server.wait(180), server.log
    finally:
        server.close()


# ---- ending


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_within_5_s_whoever_reads_changes(number: int, tmp_path: Path) -> None:
    with serving("--data", str(tmp_path / "data")) as server, ExitStack() as stack:
        client = stack.enter_context(httpx.Client(base_url=server.url, timeout=30.0))
        assert client.put("/v1/streams/s", json=COLUMNS).status_code == 201
        assert client.post("/v1/queries", json={"sql": "SELECT a FROM s [RANGE 1 MINUTE]", "name": "q"}).status_code == 201
        streams = [stack.enter_context(client.stream("GET", "/v1/queries/q/changes")) for _ in range(5)]
        lines = [answer.iter_lines() for answer in streams]
        for one in lines:
            assert next(one), "it has begun"
        sockets = [stack.enter_context(connect(server.url.replace("http", "ws") + "/v1/ws")) for _ in range(5)]
        for one in sockets:
            one.send(json.dumps({"subscribe": {"id": 1, "query": "q"}}))
            assert json.loads(one.recv())["subscribed"] == 1
        began = time.monotonic()
        server.signal(number)
        assert server.wait() == 0, server.log
        took = time.monotonic() - began
        assert took < STOP + SLACK, "within 5 s, and some for a busy machine"
        for rest in lines:
            assert any('"the service stops"' in line for line in rest), "each reader is told"
        assert "stopped" in server.log and "Traceback" not in server.log, server.log
    with serving("--data", str(tmp_path / "data")) as again:
        assert [one["name"] for one in httpx.get(again.url + "/v1/queries").json()["items"]] == ["q"]


def test_a_request_that_never_ends_does_not_keep_it() -> None:
    with serving("--ephemeral") as server, socket.create_connection(("127.0.0.1", server.port)) as half:
        half.sendall(b"POST /v1/rows HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{")
        assert httpx.get(server.url + "/healthz").status_code == 200
        began = time.monotonic()
        assert server.stop() == 0
        assert time.monotonic() - began < STOP + SLACK


def test_a_second_signal_ends_it_at_once() -> None:
    with serving("--ephemeral") as server, socket.create_connection(("127.0.0.1", server.port)) as half:
        half.sendall(b"POST /v1/rows HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{")
        assert httpx.get(server.url + "/healthz").status_code == 200
        server.signal(signal.SIGINT)
        until(lambda: _refuses(server), 10, "it takes no more connections")
        server.signal(signal.SIGINT)
        assert server.wait() == 1 and "at once" in server.log


def _refuses(server: Server) -> bool:
    try:
        socket.create_connection(("127.0.0.1", server.port)).close()
    except OSError:
        return True
    return False


def test_a_disk_that_cannot_be_written_ends_it_with_exit_code_1_and_no_word_that_was_given_is_broken(tmp_path: Path) -> None:
    data = str(tmp_path / "data")
    with serving("--data", data) as server, httpx.Client(base_url=server.url, timeout=30.0) as client:
        assert client.put("/v1/streams/s", json=COLUMNS).status_code == 201
        # as if the disk were full: no file may grow beyond this
        resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (200_000, 200_000))
        taken = 0
        rows = {"a": list(range(1000)), "ts": [0] * 1000}
        for _ in range(1000):
            try:
                status = client.post("/v1/streams/s/rows", json=rows).status_code
            except httpx.TransportError:
                break  # it has ended
            if status != 202:
                assert status == 503
                break
            taken += 1000
        assert server.wait(60) == 1
        assert "error: " in server.log, server.log
    with serving("--data", data) as again:
        metrics = httpx.get(again.url + "/metrics").text
        assert f'eddy_rows_total{{stream="s"}} {float(taken)}' in metrics.splitlines(), (taken, metrics)


# ---- starting


def test_a_port_that_is_taken_is_one_sentence_and_a_hint() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        with failed("--ephemeral", "--port", str(taken.getsockname()[1])) as (code, said):
            assert code == 1 and len(said.splitlines()) == 2, said
            assert said.startswith("error: the port of") and "hint: " in said


def test_an_engine_that_cannot_be_made_is_one_sentence_and_a_hint() -> None:
    with failed("--ephemeral", "--policy", "none") as (code, said):
        problem = said[said.index("error: ") :]
        assert code == 1 and "none" in problem and "hint: " in problem and "Traceback" not in said, said


def test_a_data_directory_that_cannot_be_used_is_one_sentence_and_a_hint(tmp_path: Path) -> None:
    with serving("--data", str(tmp_path / "data")):
        with failed("--data", str(tmp_path / "data")) as (code, said):
            assert code == 1 and "error: " in said and "hint: " in said and "Traceback" not in said
    (tmp_path / "file").write_text("")
    with failed("--data", str(tmp_path / "file")) as (code, said):
        assert code == 1 and "error: " in said and "hint: " in said and "Traceback" not in said, said


def test_settings_come_from_the_environment_and_a_flag_wins() -> None:
    env = {"EDDY_EPHEMERAL": "1", "EDDY_LIMITS": "queries=7 streams=5", "EDDY_MAX_AHEAD": "60", "EDDY_LOG_FORMAT": "json"}
    with serving("--max-ahead", "61", env=env) as server:
        limits = httpx.get(server.url + "/v1/limits").json()
        assert (limits["queries"], limits["streams"], limits["max_ahead_seconds"]) == (7, 5, 61.0)
        lines = [json.loads(line) for line in server.log.splitlines()]
        assert lines[0]["message"] == "serving" and lines[0]["url"] == server.url and lines[0]["level"] == "info"


# ---- who may


def test_with_tokens_roles_hold_and_a_dropped_one_is_refused_without_a_restart(tmp_path: Path) -> None:
    path = tmp_path / "tokens.json"

    def token(*words: str) -> str:
        done = CliRunner().invoke(app, ["token", *words, "--token-file", str(path)])
        assert done.exit_code == 0, done.output
        return done.stdout

    def add(role: str) -> str:
        secret: str = json.loads(token("add", role, "--role", role, "--json"))["secret"]
        return secret

    secrets = {role: add(role) for role in ("device", "reader", "writer")}
    with serving("--ephemeral", "--token-file", str(path), "--log-level", "debug") as server:
        url = server.url

        def status(method: str, where: str, role: str | None, **more: object) -> int:
            headers = {} if role is None else {"Authorization": f"Bearer {secrets[role]}"}
            return httpx.request(method, url + where, headers=headers, **more).status_code  # type: ignore[arg-type]

        assert status("GET", "/v1/streams", None) == 401
        assert status("PUT", "/v1/streams/s", "reader", json=COLUMNS) == 403
        assert status("PUT", "/v1/streams/s", "writer", json=COLUMNS) == 201
        assert status("POST", "/v1/streams/s/rows", "device", json={"a": 1, "ts": 0}) == 202
        assert status("GET", "/v1/streams/s", "device") == 403
        assert status("PATCH", "/v1/eddy", "writer", json={"policy": "auto"}) == 403
        assert status("GET", f"/v1/changes?tag=x&follow=false&token={secrets['reader']}", None) == 401
        events = httpx.get(
            f"{url}/v1/changes?tag=x&follow=false&token={secrets['reader']}", headers={"Accept": "text/event-stream"}
        )
        assert events.status_code == 200
        with connect(f"{url.replace('http', 'ws')}/v1/ws?token={secrets['device']}") as socket_:
            socket_.send(json.dumps({"push": {"id": 1, "stream": "s", "rows": {"a": 2, "ts": 1}}}))
            assert json.loads(socket_.recv())["receipt"]["accepted"] == 1
            socket_.send(json.dumps({"subscribe": {"id": 2, "tag": "x"}}))
            assert json.loads(socket_.recv())["error"]["code"] == "forbidden"
        with pytest.raises(Exception, match="401"):
            connect(f"{url.replace('http', 'ws')}/v1/ws")
        token("drop", "reader")
        until(lambda: status("GET", "/v1/streams", "reader") == 401, 30, "the token is refused")
        secrets["reader"] = add("reader")
        until(lambda: status("GET", "/v1/streams", "reader") == 200, 30, "the new one is taken")
        assert server.stop() == 0
        assert "answered" in server.log and not any(secret in server.log for secret in secrets.values())


def test_tls_serves_https() -> None:
    with serving("--ephemeral", "--tls-cert", str(CERT), "--tls-key", str(KEY)) as server:
        assert server.url.startswith("https://")
        context = ssl.create_default_context(cafile=str(CERT))
        assert httpx.get(server.url + "/healthz", verify=context).json() == {"status": "ok"}


# ---- abuse


def _raw(server: Server, text: bytes, seconds: float = 60.0) -> bytes:
    """What comes back until the server closes the connection."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=seconds) as one:
        one.sendall(text)
        found = b""
        while piece := one.recv(65536):
            found += piece
        return found


@pytest.fixture(scope="module")
def strict() -> Iterator[Server]:
    limits = ["read_seconds=1", "head_bytes=4096", "body_bytes=200000"]
    with serving("--ephemeral", *(word for limit in limits for word in ("--limit", limit))) as found:
        yield found


def test_heads_and_bodies_that_dribble_or_never_end_are_cut_off(strict: Server) -> None:
    host = b"Host: localhost\r\n"
    assert b" 408 " in _raw(strict, b"GET /healthz HTTP/1.1\r\nX: ")
    assert b" 431 " in _raw(strict, b"GET /healthz HTTP/1.1\r\nX: " + b"x" * 5000)
    assert b" 408 " in _raw(strict, b"POST /v1/rows HTTP/1.1\r\n" + host + b"Content-Length: 100000\r\n\r\n{")
    assert b" 408 " in _raw(strict, b"POST /v1/rows HTTP/1.1\r\n" + host + b"Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n")
    assert b" 413 " in _raw(strict, b"POST /v1/rows HTTP/1.1\r\n" + host + b"Content-Length: 1000000\r\n\r\n{")
    assert _raw(strict, b"") == b"", "a connection on which nothing is asked is closed"
    assert httpx.get(strict.url + "/healthz").status_code == 200


def test_a_body_that_is_too_large_is_answered_before_all_of_it_came(strict: Server) -> None:
    def pieces() -> Iterator[bytes]:
        for _ in range(1000):
            yield b"x" * 10_000

    with httpx.Client(base_url=strict.url) as client:
        refused = client.post("/v1/rows", content=pieces())
        assert refused.status_code == 413 and refused.json()["code"] == "too_large"
        assert client.get("/healthz").status_code == 200


def test_other_hosts_and_origins_are_turned_away(strict: Server) -> None:
    assert httpx.get(strict.url + "/v1/streams", headers={"Host": "evil.example"}).status_code == 421
    assert httpx.get(strict.url + "/v1/streams", headers={"Origin": "http://evil.example"}).status_code == 403
    assert httpx.get(strict.url + "/v1/streams", headers={"Origin": strict.url}).status_code == 200
    with pytest.raises(Exception, match="403"):
        connect(strict.url.replace("http", "ws") + "/v1/ws", origin="http://evil.example")  # type: ignore[arg-type]
    assert httpx.get(strict.url + "/v1/streams", headers={"Origin": strict.url.replace("http", "x")}).status_code == 403


@pytest.mark.parametrize("frames", [[b"\xff\xfe"], [b'{"push": "', b"\xc3", b"("]])
def test_a_text_on_a_socket_that_is_none_closes_it_and_is_no_error_of_ours(frames: list[bytes], strict: Server) -> None:
    with connect(strict.url.replace("http", "ws") + "/v1/ws") as one:
        one.send(iter(frames) if len(frames) > 1 else frames[0], text=True)
        with pytest.raises(ConnectionClosed) as closed:
            one.recv(timeout=30)
    assert closed.value.rcvd is not None and closed.value.rcvd.code == 1007
    with connect(strict.url.replace("http", "ws") + "/v1/ws") as one:
        one.send(b"\xff")
        assert json.loads(one.recv(timeout=30))["error"]["code"] == "bad_body"
    assert "Traceback" not in strict.log and "UTF-8" not in strict.log


def test_what_is_no_http_is_said_in_a_problem_document(strict: Server) -> None:
    head, _, body = _raw(strict, b"nonsense\r\n\r\n").partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400 ") and b"application/problem+json" in head
    assert json.loads(body)["code"] == "bad_request"


def test_too_many_requests_of_one_client_are_refused_until_later() -> None:
    with serving("--ephemeral", "--limit", "requests_per_second=3") as server:
        # in one go, so that the limit is passed however slow this client is
        request = b"GET /v1/limits HTTP/1.1\r\nHost: localhost\r\n"
        answers = _raw(server, (request + b"\r\n") * 50 + request + b"Connection: close\r\n\r\n")
        assert answers.count(b"HTTP/1.1 200 ") >= 3 and b"HTTP/1.1 429 " in answers and b"retry-after: 1\r\n" in answers
        assert httpx.get(server.url + "/healthz").status_code == 200, "health is always told"
        until(lambda: httpx.get(server.url + "/v1/limits").status_code == 200, 30, "later it is served again")


def test_200_connections_that_dribble_do_not_keep_others_from_being_answered() -> None:
    """Others are answered, all of them; how quickly is measured elsewhere."""
    with serving("--ephemeral", "--limit", "read_seconds=600", "--limit", "connections=300") as server:
        client = httpx.Client(base_url=server.url, timeout=60.0)
        assert client.put("/v1/streams/s", json=COLUMNS).status_code == 201
        heads = [
            b"GET /v1/limits HTTP/1.1\r\nX: ",
            b"POST /v1/rows HTTP/1.1\r\nHost: localhost\r\nContent-Length: 90000\r\n\r\n{",
        ]
        loris = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(200)]
        try:
            for n, one in enumerate(loris):
                one.sendall(heads[n % 2])
            for n in range(100):
                for one in loris[n % 4 :: 4]:
                    one.sendall(b"x")
                pushed = client.post("/v1/streams/s/rows", json={"a": n, "ts": n})
                assert pushed.status_code == 202 and pushed.json()["first_row"] == n
            assert client.get("/v1/limits").status_code == 200
        finally:
            for one in loris:
                one.close()
            client.close()


def test_connections_beyond_the_limit_are_told_and_those_within_are_served() -> None:
    with serving("--ephemeral", "--limit", "connections=20") as server:
        with httpx.Client(base_url=server.url) as client:
            assert client.get("/healthz").status_code == 200
            idle = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(19)]
            until(lambda: httpx.get(server.url + "/healthz").status_code == 503, 30, "one more is one too many")
            refused = httpx.get(server.url + "/healthz")
            assert refused.json()["code"] == "too_many_connections" and refused.headers["Retry-After"] == "1"
            assert client.get("/v1/streams").status_code == 200, "who is in stays in"
            for one in idle:
                one.close()
            until(lambda: httpx.get(server.url + "/healthz").status_code == 200, 30, "there is room again")


def test_metrics_have_what_happened_and_no_names_of_queries() -> None:
    with serving("--ephemeral") as server, httpx.Client(base_url=server.url) as client:
        client.put("/v1/streams/s", json=COLUMNS)
        client.post("/v1/queries", json={"sql": "SELECT a FROM s [RANGE 1 MINUTE]", "name": "secret_query"})
        client.post("/v1/streams/s/rows", json={"a": [1, 2], "ts": [0, 0]})
        client.get("/v1/queries/secret_query")
        client.get("/v1/nonsense/secret_query")
        answer = client.get("/metrics")
        text = answer.text
        assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
        for line in (
            'eddy_rows_total{stream="s"} 2.0',
            "eddy_queries 1.0",
            "eddy_ready 1.0",
            'eddy_requests_total{method="GET",route="/v1/queries/{query}",status="200"} 1.0',
            'eddy_requests_total{method="other",route="other",status="404"} 1.0',
        ):
            assert line in text.splitlines(), line
        assert "secret_query" not in text
