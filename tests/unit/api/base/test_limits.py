"""Every limit of `GET /v1/limits`, at one below, at it, and one above.

`CASES` has for each field a way to use `n` of something under a limit of `limit`; it says whether that was accepted.
"""

from __future__ import annotations

import asyncio
import dataclasses
import gzip
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import orjson
import pyarrow as pa
import pytest
from uvicorn.config import Config
from uvicorn.server import ServerState

from api.base.limits import FIXED, Limits
from api.base.refusals import TooManyError
from api.base.settings import SettingsError, limits_of
from api.core.calls import Call
from api.core.core import News
from api.core.holdings import Holdings, KeptReceipt
from api.core.hub import Hub, Subscription
from api.core.inbox import BusyError, Inbox, InboxItem
from api.core.parts import ChangePart
from api.core.service import Service
from api.edge.connections import BoundedConnection, HeadRefusal, protocol_of
from api.edge.guard import Guard
from api.edge.rates import RateLimiter
from api.experiment_runs import ExperimentRun, ExperimentRuns
from eddy import EddyError, Engine, GoneError, LimitError
from tests.reference.asgi import ask
from tests.reference.in_process import InProcess, in_process
from tests.reference.virtual_time import run

Case = Callable[[int, int], bool]
COLUMNS = {"a": "int", "ts": "timestamp[us]"}
SQL = "SELECT a FROM s [RANGE 1 MINUTE]"


async def _echo(scope: Any, receive: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b""})


@contextmanager
def served(**limits: Any) -> Iterator[InProcess]:
    """A service with a stream `s`."""
    with in_process(Limits(**limits)) as client:
        assert client.put("/v1/streams/s", json={"columns": COLUMNS, "time": "ts"}).status_code == 201
        yield client


def accepted(response: Any, refusal: int = 422, code: str | None = None) -> bool:
    """Whether a call was accepted; if not it is for the reason that is expected."""
    if response.status_code == refusal:
        assert code is None or response.json()["code"] == code, response.text
        return False
    assert response.status_code < 300, response.text
    return True


# ---- requests


def body_bytes(limit: int, n: int) -> bool:
    guard = Guard(_echo, Limits(body_bytes=limit))
    plain, packed = bytes(n), gzip.compress(bytes(n))
    chunked = {"Transfer-Encoding": "chunked"}
    answers = {
        run(ask(guard, "POST", "/v1/rows", body=[plain])).status,
        run(ask(guard, "POST", "/v1/rows", body=[plain[:7], plain[7:]], headers=chunked)).status,
        run(ask(guard, "POST", "/v1/rows", body=[packed], headers=chunked | {"Content-Encoding": "gzip"})).status,
    }
    assert len(answers) == 1, "all three ways count the same"
    return answers == {200}


def query_bytes(limit: int, n: int) -> bool:
    guard = Guard(_echo, Limits(query_bytes=limit))
    ways = [("POST", "/v1/queries"), ("POST", "/v1/queries/validate"), ("PUT", "/v1/queries/q")]
    packed = {"Transfer-Encoding": "chunked", "Content-Encoding": "gzip"}
    answers = {run(ask(guard, *way, body=[bytes(n)])).status for way in ways}
    answers |= {run(ask(guard, *way, body=[gzip.compress(bytes(n))], headers=packed)).status for way in ways}
    assert len(answers) == 1, "all of them count the same"
    assert run(ask(guard, "POST", "/v1/queries/batch", body=[bytes(n)])).status == 200
    return answers == {200}


def receiving_bytes(limit: int, n: int) -> bool:
    guard = Guard(_echo, Limits(receiving_bytes=limit))
    guard.reader.held = limit // 2  # other bodies
    answer = run(ask(guard, "POST", "/v1/rows", body=[bytes(n - limit // 2)]))
    assert answer.status == 200 or answer.headers["retry-after"] == "1"
    return answer.status == 200


def read_seconds(limit: int, n: int) -> bool:
    async def late() -> Any:
        await asyncio.sleep(n)
        return {"type": "http.request", "body": b"12", "more_body": False}

    guard = Guard(_echo, Limits(read_seconds=limit))
    return run(ask(guard, "POST", "/v1/rows", headers={"Content-Length": "2"}, receive=late)).status == 200


def read_bytes_per_second(limit: int, n: int) -> bool:
    """At exactly this rate a body is in time; 0.5 ms before its second second is over."""
    pieces = [(0.0, bytes(n), True), (1.9995, b"", False)]

    async def steady() -> Any:
        wait, piece, more = pieces.pop(0) if pieces else (0.0, b"", False)
        await asyncio.sleep(wait)
        return {"type": "http.request", "body": piece, "more_body": more}

    guard = Guard(_echo, Limits(read_seconds=1, read_bytes_per_second=limit))
    return run(ask(guard, "POST", "/v1/rows", headers={"Transfer-Encoding": "chunked"}, receive=steady)).status == 200


def requests_per_second(limit: int, n: int) -> bool:
    now = 0.0
    rates = RateLimiter(limit, lambda: now)
    try:
        for _ in range(n):
            rates.take("a")
            rates.take("b")  # others have their own
    except TooManyError as error:
        assert 0 < error.retry_after <= 1  # type: ignore[operator]
        now = error.retry_after  # type: ignore[assignment]
        rates.take("a")
        return False
    return True


# ---- connections


class _Transport:
    """The side of the server of a connection."""

    def __init__(self) -> None:
        self.written = b""
        self.closed = False

    def write(self, data: bytes) -> None:
        self.written += data

    def close(self) -> None:
        self.closed = True

    abort = close

    def is_closing(self) -> bool:
        return self.closed

    def get_extra_info(self, name: str) -> Any:
        return None

    def pause_reading(self) -> None: ...
    def resume_reading(self) -> None: ...


async def connect(
    limits: Limits, state: ServerState, refusal: HeadRefusal = lambda *head: None
) -> tuple[BoundedConnection, _Transport]:  # fmt: skip
    """A connection, and the server's side of it."""
    config = Config(_echo, log_config=None, ws="none")
    config.load()
    connection, transport = protocol_of(limits, refusal)(config=config, server_state=state, app_state={}), _Transport()
    assert isinstance(connection, BoundedConnection)
    connection.connection_made(transport)  # type: ignore[arg-type]
    return connection, transport


def head_bytes(limit: int, n: int) -> bool:
    async def main() -> bool:
        connection, transport = await connect(Limits(head_bytes=limit), ServerState())
        head = b"GET / HTTP/1.1\r\nX: ".ljust(n, b"x")
        connection.data_received(head[:10])
        connection.data_received(head[10:])
        closed = transport.closed
        assert closed == (b"431" in transport.written)
        connection.connection_lost(None)
        return not closed

    return run(main())


def connections(limit: int, n: int) -> bool:
    async def main() -> bool:
        state = ServerState()
        made = [await connect(Limits(connections=limit), state) for _ in range(n)]
        connection, transport = made[-1]
        connection.data_received(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        for _ in range(20):
            await asyncio.sleep(0)
        for one, _ in made:
            one.connection_lost(None)
        assert transport.written.startswith(b"HTTP/1.1 200") or b"too_many_connections" in transport.written
        return b"200" in transport.written[:20]

    return run(main())


# ---- the queue


def _put(inbox: Inbox, n: int, item: Callable[[], InboxItem]) -> bool:
    try:
        for _ in range(n):
            inbox.put(item())
    except BusyError as error:
        assert error.retry_after >= 1
        return False
    return True


def queue_calls(limit: int, n: int) -> bool:
    return _put(Inbox(limit, 1 << 20, 1), n, lambda: InboxItem(Call("push", {}), lambda result, error: None, 1))


def queue_bytes(limit: int, n: int) -> bool:
    """A call is let in while fewer bytes wait, however large it is itself."""
    inbox = Inbox(10, limit, 1)
    inbox.put(InboxItem(Call("push", {}), lambda result, error: None, n - 1))
    assert inbox.has_room(n - 1) == (n - 1 < limit)
    return _put(inbox, 1, lambda: InboxItem(Call("push", {}), lambda result, error: None, 1000))


def queue_reads(limit: int, n: int) -> bool:
    return _put(Inbox(1, 1, limit), n, lambda: InboxItem(lambda core: None, lambda result, error: None))


# ---- what there may be


def streams(limit: int, n: int) -> bool:
    with served(streams=limit) as client:
        found = [client.put(f"/v1/streams/s{i}", json={"columns": COLUMNS}) for i in range(n - 1)]
        assert client.put("/v1/streams/s", json={"columns": COLUMNS, "time": "ts"}).status_code == 200, "an equal one is no other"
        return accepted(found[-1], code="too_many_streams")


def tables(limit: int, n: int) -> bool:
    with served(tables=limit) as client:
        found = [client.put(f"/v1/tables/t{i}", json={"columns": COLUMNS, "key": "a"}) for i in range(n)]
        return accepted(found[-1], code="too_many_tables")


def columns(limit: int, n: int) -> bool:
    with served(columns=limit) as client:
        wide = {f"c{i}": "int" for i in range(n)}
        answers = {
            accepted(client.put("/v1/streams/wide", json={"columns": wide}), code="too_many_columns"),
            accepted(client.put("/v1/tables/widest", json={"columns": wide, "key": "c0"}), code="too_many_columns"),
        }
        assert len(answers) == 1
        return answers == {True}


def queries(limit: int, n: int) -> bool:
    with served(queries=limit) as client:
        batch = {"queries": [{"sql": SQL, "name": f"q{i}"} for i in range(n - 2)]}
        assert client.post("/v1/queries/batch", json=batch).status_code == 200
        assert accepted(client.put("/v1/queries/p", json={"sql": SQL}), code="too_many_queries")
        found = accepted(client.post("/v1/queries", json={"sql": SQL}), code="too_many_queries")
        assert client.put("/v1/queries/p", json={"sql": SQL}).status_code == 200, "the same one is no other"
        n_more = limit - (n if found else n - 1)
        more = {"queries": [{"sql": SQL}] * (n_more + 1)}
        assert not accepted(client.post("/v1/queries/batch", json=more), code="too_many_queries"), "all or none"
        assert not accepted(client.put("/v1/queries/new", json={"sql": SQL}), code="too_many_queries") or n_more
        return found


def batch_queries(limit: int, n: int) -> bool:
    with served(batch_queries=limit) as client:
        found = client.post("/v1/queries/batch", json={"queries": [{"sql": SQL}] * n})
        assert len(client.get("/v1/queries").json()["items"]) == (n if found.status_code == 200 else 0)
        return accepted(found, code="too_many_queries")


def _in_service(do: Callable[[Service], Awaitable[bool]], **limits: Any) -> bool:
    async def main() -> bool:
        service = Service(None, Limits(**limits))
        await service.start()
        try:
            await service.ask(Call("create_stream", {"name": "s", "definition": {"columns": COLUMNS, "time": "ts"}}))
            await service.ask(Call("submit", {"definition": {"sql": SQL, "name": "q"}}))
            return await do(service)
        finally:
            await service.stop()

    return asyncio.run(main())


def subscriptions(limit: int, n: int) -> bool:
    async def do(service: Service) -> bool:
        made = []
        try:
            for _ in range(n):
                made.append(await service.subscribe(["q"], frozenset(), "now", "block"))
        except LimitError as error:
            assert error.code == "too_many_subscriptions"
            await service.unsubscribe(made.pop())
            await service.subscribe(["q"], frozenset(), "now", "block")
            return False
        return True

    return _in_service(do, subscriptions=limit)


def socket_subscriptions(limit: int, n: int) -> bool:
    with served(socket_subscriptions=limit) as client:
        assert client.post("/v1/queries", json={"sql": SQL, "name": "q"}).status_code == 201
        texts = [orjson.dumps({"subscribe": {"id": i, "query": "q", "since": "now"}}).decode() for i in range(n)]
        given = [{"type": "websocket.connect"}, *({"type": "websocket.receive", "text": text} for text in texts)]

        async def receive() -> Any:
            return given.pop(0) if given else {"type": "websocket.disconnect", "code": 1000}

        sent = client.do(ask(client.app, path="/v1/ws", kind="websocket", receive=receive)).messages
        said = [orjson.loads(one["text"]) for one in sent if one["type"] == "websocket.send"]
        assert [one["subscribed"] for one in said if "subscribed" in one] == list(range(min(n, limit)))
        errors = [one["error"]["code"] for one in said if "error" in one]
        assert errors in ([], ["too_many_subscriptions"])
        return not errors


def logs_all(engine: Engine, n: int) -> bool:
    """Push rows, a commit each, until the last of them; whether a reader from before still gets all."""
    engine.create_stream("s", COLUMNS, time="ts")
    cursor = engine.submit("SELECT a FROM s [RANGE 1 MILLISECOND]").changes(since="now")
    for i in range(n):
        engine.push("s", [{"a": i, "ts": i}])
    engine.advance(n)
    try:
        return len(list(cursor)) == 2 * n
    except GoneError:
        return False


def log_rows(limit: int, n: int) -> bool:
    return logs_all(Engine(log_rows=limit), n)


def log_bytes(limit: int, n: int) -> bool:
    """What a log of 20 rows takes is counted: the limit is set so that it makes `n`, relative to `limit`."""
    whole = Engine()
    assert logs_all(whole, 20)
    kept = whole.stats()["timelines"]["main"]["log"]["bytes"]
    return logs_all(Engine(log_bytes=kept - (n - limit)), 20)


def subscription_bytes(limit: int, n: int) -> bool:
    part = ChangePart(1, "q", 1, pa.table({"a": pa.array([0] * (n - 64), pa.int8())}), True)
    assert part.n_bytes == n
    hub, subscription = Hub(), Subscription("disconnect", limit, {1: "q"})
    hub.add(subscription)
    hub.publish(News([part], [], [], 1, {}))
    return not subscription.ended


def state_bytes(limit: int, n: int) -> bool:
    """A query is charged 4,096 bytes: the limit is set so that it makes `n`, relative to `limit`."""
    engine = Engine()
    engine.create_stream("s", COLUMNS, time="ts", keep=1)
    engine.push("s", {"a": range(1 << 16), "ts": [0] * (1 << 16)})  # a limit is a megabyte at least
    held = engine.totals()["bytes"]
    engine.limit(state_bytes=held + 4096 - (n - limit), max_ahead=None, log_rows=1000, log_bytes=1 << 20)
    try:
        engine.submit(SQL)
    except LimitError as error:
        assert error.code == "state_full" and not engine.queries
        return False
    return True


def max_ahead_seconds(limit: int, n: int) -> bool:
    """`n` is in microseconds over the limit, in seconds."""
    now = 4_000_000_000_000_000  # never before the clock of the calls that were made

    async def do(service: Service) -> bool:
        service.core.arrival._wall = lambda: now
        rows = {"a": [1], "ts": [now + limit * 1_000_000 + (n - limit)]}
        try:
            await service.ask(Call("push", {"stream": "s", "media": "application/json"}, rows=rows))
        except EddyError as error:
            assert error.code == "too_far_ahead", error
            return False
        return True

    return _in_service(do, max_ahead_seconds=limit)


class _Runs(ExperimentRuns):
    """Runs without processes, which take some seconds each."""

    seconds = 0.0

    async def listed(self) -> list[dict[str, Any]]:
        return [{"name": "e", "files": []}]

    async def _spawn(self, *words: str) -> Any:
        return SimpleNamespace(returncode=0)

    async def _listen(self, run: ExperimentRun, child: Any) -> None:
        await asyncio.sleep(self.seconds)
        run.state = "done"


def experiment_seconds(limit: int, n: int) -> bool:
    async def do() -> str:
        runs = _Runs(Limits(experiment_seconds=limit))
        runs.seconds = n
        found = await runs.start("e", True, 1)
        assert found.task is not None
        await found.task
        await runs.stop()
        return found.state

    return run(do()) == "done"


def experiment_runs(limit: int, n: int) -> bool:
    async def do() -> list[int]:
        runs = _Runs(Limits(experiment_runs=limit))
        for _ in range(n):
            found = await runs.start("e", True, 1)
            assert found.task is not None
            await found.task
        await runs.stop()
        return [found.id for found in runs.all()]

    kept = run(do())
    assert len(kept) == min(n, limit) and kept[0] == n
    return 1 in kept


# ---- texts


def _submitted(sql: str, code: str) -> bool:
    with served() as client:
        return accepted(client.post("/v1/queries", json={"sql": sql}), code=code)


def sql_bytes(limit: int, n: int) -> bool:
    return _submitted("SELECT a FROM s -- é".ljust(n - 1), "query_too_long")  # one character of it is two bytes


def sql_tokens(limit: int, n: int) -> bool:
    head = "SELECT a FROM s WHERE a IN ( 1"
    values = " , 1" * ((n - len(head.split()) - 1) // 2)
    sql = f"{head}{values} )" + " ;" * ((n - len(head.split()) - 1) % 2)
    return _submitted(sql, "too_many_tokens")


def sql_depth(limit: int, n: int) -> bool:
    return _submitted(f"SELECT a FROM s WHERE {'(' * n}a{')' * n} > 1", "query_too_deep")


def name_characters(limit: int, n: int) -> bool:
    with served() as client:
        answers = {
            accepted(client.put(f"/v1/streams/{'x' * n}", json={"columns": COLUMNS})),
            accepted(client.put(f"/v1/tables/{'y' * n}", json={"columns": COLUMNS, "key": "a"})),
            accepted(client.put(f"/v1/queries/{'z' * n}", json={"sql": SQL})),
            accepted(client.post("/v1/queries", json={"sql": SQL, "name": "w" * n})),
        }
        assert len(answers) == 1
        return answers == {True}


def tag_characters(limit: int, n: int) -> bool:
    with served() as client:
        return accepted(client.post("/v1/queries", json={"sql": SQL, "tags": ["t" * n]}))


def tags(limit: int, n: int) -> bool:
    with served() as client:
        return accepted(client.post("/v1/queries", json={"sql": SQL, "tags": [f"t{i}" for i in range(n)]}))


def page_items(limit: int, n: int) -> bool:
    with served() as client:
        return accepted(client.get("/v1/queries", params={"limit": n}))


def subscription_queries(limit: int, n: int) -> bool:
    with served() as client:
        assert client.post("/v1/queries", json={"sql": SQL, "name": "q"}).status_code == 201
        answers = {
            accepted(client.get("/v1/changes", params={"follow": False, "query": ["q"] * n})),
            accepted(client.get("/v1/changes", params={"follow": False, "tag": ["q"] * n})),
        }
        assert len(answers) == 1
        return answers == {True}


def key_characters(limit: int, n: int) -> bool:
    with served() as client:
        rows = {"a": 1, "ts": 0}
        return accepted(client.post("/v1/streams/s/rows", json=rows, headers={"Idempotency-Key": "k" * n}))


def keys(limit: int, n: int) -> bool:
    """All of `n` keys are remembered."""
    holdings = Holdings(Engine())
    for i in range(n):
        holdings.keep_receipt(str(i), KeptReceipt("", None))
    assert len(holdings.receipts) == min(n, limit) and str(n - 1) in holdings.receipts
    return "0" in holdings.receipts


CASES: dict[str, Case] = {
    case.__name__: case
    for case in (
        body_bytes, query_bytes, receiving_bytes, read_seconds, read_bytes_per_second, requests_per_second, head_bytes,
        connections, queue_calls, queue_bytes, queue_reads, streams, tables, columns, queries, batch_queries, subscriptions,
        socket_subscriptions, subscription_bytes, experiment_runs, experiment_seconds, state_bytes, log_rows, log_bytes,
        max_ahead_seconds,
        sql_bytes, sql_tokens, sql_depth,
        name_characters, tag_characters, tags, page_items, subscription_queries, key_characters, keys,
    )
}  # fmt: skip
#: Small values for those that can be set.
SMALL = {"body_bytes": 100, "query_bytes": 100, "receiving_bytes": 100, "head_bytes": 100, "queue_bytes": 100,
    "subscription_bytes": 1000, "read_bytes_per_second": 100, "max_ahead_seconds": 60}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_a_limit_holds_at_one_below_at_it_and_one_above(name: str) -> None:
    limit = getattr(Limits(), name) if name in FIXED else SMALL.get(name, 4)
    found = [CASES[name](limit, n) for n in (limit - 1, limit, limit + 1)]
    expected = {
        # when the time is up it is up
        "read_seconds": [True, False, False],
        "experiment_seconds": [True, False, False],
        "read_bytes_per_second": [False, True, True],  # this one is a least
    }.get(name, [True, True, False])
    assert found == expected


def test_no_limit_is_without_its_test() -> None:
    assert {one.name for one in dataclasses.fields(Limits)} == set(CASES)


def test_limits_are_shown_as_they_are_set_and_whole_numbers_stay_whole() -> None:
    with served(queries=7, read_seconds=1.5) as client:
        shown = client.get("/v1/limits").json()
    assert shown == Limits(queries=7, read_seconds=1.5).as_dict()
    assert {name for name, value in shown.items() if not isinstance(value, int)} == {
        "read_seconds", "max_ahead_seconds", "experiment_seconds"}  # fmt: skip


def test_limits_are_set_by_words() -> None:
    assert limits_of(["queries=7", "read_seconds=1.5"], max_ahead_seconds=60.0, state_bytes=None) == Limits(
        queries=7, read_seconds=1.5, max_ahead_seconds=60.0
    )


@pytest.mark.parametrize("word", ["queries", "queries=", "queries=x", "queries=1.5", "queries=0", "queries=-1", "none=1",
    "read_seconds=nan", "read_seconds=inf", "sql_bytes=1", "=3"])  # fmt: skip
def test_words_that_set_no_limit_are_said(word: str) -> None:
    with pytest.raises(SettingsError):
        limits_of([word])
