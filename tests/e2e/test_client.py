"""The client against a real server: every call, bad networks, live tables."""

from __future__ import annotations

import asyncio
import random
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from eddy import ConflictError, EddyError, GoneError, InUseError, NotFoundError, QueryError, RowError, SchemaError
from eddy.client import AsyncClient, Change, Client, LiveTable, UnreachableError
from tests.e2e.cutting import cutting
from tests.e2e.serving import Server, serving, until

#: Seconds for anything, on a busy machine.
PATIENCE = 60.0
COLUMNS = {"a": "int", "x": "float", "s": "string", "ts": "timestamp"}


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    # little room for a slow reader, so that it becomes one soon
    with serving("--ephemeral", "--limit", "subscription_bytes=100000") as found:
        yield found


#: Connections are cut all the time here.
pytestmark = pytest.mark.usefixtures("short_waits")


@pytest.fixture
def client(server: Server) -> Iterator[Client]:
    with Client(server.url) as found:
        yield found


@pytest.fixture
def stream(client: Client, request: pytest.FixtureRequest) -> str:
    """A stream on a timeline of its own."""
    name = f"s_{abs(hash(request.node.nodeid)) % 10**9}"
    client.create_stream(name, COLUMNS, time="ts", timeline=f"t_{name}")
    return name


def rows(*values: int, ts: int = 1000, pad: str = "") -> dict[str, list[Any]]:
    return {"a": list(values), "s": [pad] * len(values), "ts": [ts] * len(values)}


def bag(found: Any) -> list[str]:
    return sorted(map(repr, found))


def same(one: list[dict[str, Any]], table: Any) -> bool:
    """Whether rows are those of a table; time zones may be of different classes."""
    return bag({**row, "ts": row["ts"].timestamp()} for row in one) == bag(
        {**row, "ts": row["ts"].timestamp()} for row in table.to_pylist()
    )


# ---- calls


def test_a_query_lives_through_all_calls(client: Client, stream: str) -> None:
    hot = client.submit(
        f"SELECT a, x FROM {stream} [RANGE 1 MINUTE] WHERE x > :low", name=f"hot_{stream}", params={"low": 30}, tags=["t1"]
    )
    assert (hot.state, hot.kind, hot.columns, hot.tags) == ("running", "relation", {"a": "int", "x": "float"}, ("t1",))
    receipt = client.push(stream, [{"a": 1, "x": 31.5, "ts": 1000}, {"a": 2, "x": 3.0, "ts": 1000}], wait="visible")
    assert (receipt.accepted, receipt.late, receipt.first_row, receipt.last_row, receipt.visible) == (2, 0, 0, 1, True)
    answer = client.answer(hot)
    assert answer.to_pylist() == [{"a": 1, "x": 31.5}]
    assert answer.schema.metadata[b"time"] == b"1970-01-01T00:00:01Z" and int(answer.schema.metadata[b"seq"]) > 0
    assert client.answer(hot.id).equals(client.answer(hot.name))
    assert [(c.sign, c.row) for c in client.changes(hot, since=0)] == [(1, {"a": 1, "x": 31.5})]
    assert client.explain(hot)["query"] == hot.name
    assert client.trace(stream, 1, hot)["refused"][hot.name]["values"] == {"x": 3.0}
    assert client.stats(hot)["results"] == 1
    assert client.replace(hot, f"SELECT a, x FROM {stream} [RANGE 1 MINUTE] WHERE x > 40").sql.endswith("40")
    assert client.answer(hot).num_rows == 0
    assert client.pause(hot).state == "paused" and client.resume(hot).state == "running"
    assert client.query(hot.name).id == hot.id and hot.name in client.queries
    assert [query.name for query in client.find_queries(tag="t1", stream=stream)] == [hot.name]
    with pytest.raises(InUseError):
        client.drop(stream)
    assert client.cancel(hot) == 1
    client.drop(stream)
    assert stream not in client.streams


def test_a_replaced_query_keeps_the_options_it_was_submitted_with(client: Client, stream: str) -> None:
    sql = f"SELECT a FROM {stream} [RANGE 1 MINUTE] WHERE x > 0"
    for options in ({}, {"expiry": "negative", "emit": "event", "history": "window", "tags": ["u"]}):
        query = client.submit(sql, **options)  # type: ignore[arg-type]
        made = client.replace(query, sql + " AND a > 0")
        assert (made.id, made.emit, made.history, made.tags, made.expiry) == (
            query.id, query.emit, query.history, query.tags, query.expiry,
        )  # fmt: skip


def test_tables_are_upserted_deleted_and_joined(client: Client, stream: str) -> None:
    table = client.create_table(f"tab_{stream}", {"a": "int", "room": "string"}, key="a", retroactive=True)
    assert table.name in client.tables and client.table(table.name) == table
    assert client.upsert(table.name, [{"a": 1, "room": "lab"}, {"a": 2, "room": "hall"}]).inserted == 2
    query = client.submit(f"SELECT r.a, t.room FROM {stream} [RANGE 1 MINUTE] r JOIN {table.name} t ON r.a = t.a")
    client.push(stream, rows(1, 2))
    assert client.upsert(table.name, pd.DataFrame({"a": [1], "room": ["roof"]})).updated == 1
    assert client.delete(table.name, [2, 9])[2:4] == (1, 1)
    assert client.answer(query).to_pylist() == [{"a": 1, "room": "roof"}]
    client.cancel(query)
    client.drop(table.name)


def test_keyed_rows_are_retracted_and_time_advances(client: Client, stream: str) -> None:
    name = f"k_{stream}"
    client.create_stream(name, {"a": "int", "ts": "timestamp"}, time="ts", key=["a"], timeline=f"k_{stream}")
    query = client.submit(f"SELECT a FROM {name} [RANGE 1 MINUTE]")
    client.push(name, {"a": [1, 2], "ts": [1000, 1000]})
    assert client.retract(name, [1], 2000).accepted == 1
    assert client.answer(query).to_pylist() == [{"a": 2}]
    seq = client.advance(100_000, f"k_{stream}")
    assert client.answer(query).num_rows == 0 and int(client.answer(query).schema.metadata[b"seq"]) == seq


def test_several_streams_are_pushed_in_one_commit(client: Client, stream: str) -> None:
    other = f"o_{stream}"
    client.create_stream(other, COLUMNS, time="ts", timeline=f"t_{stream}")
    found = client.push_many({stream: rows(1, 2), other: pd.DataFrame({"a": [3], "ts": [1000]})})
    assert {name: receipt.accepted for name, receipt in found.items()} == {stream: 2, other: 1}
    query = client.submit(f"SELECT a, x FROM {stream} [RANGE UNBOUNDED]")
    client.push_many({stream: [{"a": 1, "x": float("nan"), "ts": 1_500}], other: [{"a": 4, "ts": 1_500}]})
    assert repr(client.answer(query).to_pylist()) == "[{'a': 1, 'x': nan}]"
    client.cancel(query)


def test_many_queries_are_submitted_at_once_and_cancelled_by_tag(client: Client, stream: str) -> None:
    good = [{"sql": f"SELECT a FROM {stream} WHERE a > {n}", "tags": [stream]} for n in range(50)]
    assert len(client.submit_many(good)) == 50
    with pytest.raises(QueryError) as caught:
        client.submit_many([*good[:3], f"SELECT nope FROM {stream}"])
    assert getattr(caught.value, "item", None) == 3 and caught.value.column == 8
    mixed = client.submit_many([good[0], "SELECT"], partial=True)
    assert isinstance(mixed[0], str) and isinstance(mixed[1], QueryError)
    assert client.cancel(tag=stream) == 51 and client.cancel(tag=stream) == 0


@pytest.mark.parametrize(
    ("make", "kind", "code"),
    [
        (lambda c, s: c.submit(f"SELECT nope FROM {s}"), QueryError, "unknown_column"),
        (lambda c, s: c.push(s, [{"a": 1, "ts": 1}, {"a": "x", "ts": 1}]), RowError, "bad_value"),
        (lambda c, s: c.push("nope", [{"a": 1}]), NotFoundError, "unknown_stream"),
        (lambda c, s: c.create_stream(f"{s}_x", {"a": "number"}), SchemaError, "unknown_type"),
        (lambda c, s: c.create_stream(s, {"a": "int"}), ConflictError, "other_definition"),
        (lambda c, s: c.drop("nope"), NotFoundError, "unknown_stream"),
        (lambda c, s: c.cancel("nope"), NotFoundError, "unknown_query"),
        (lambda c, s: c.cancel(999_999), NotFoundError, "unknown_query"),
        (lambda c, s: c.cancel(), EddyError, "bad_option"),
        (lambda c, s: list(c.changes("nope")), NotFoundError, "unknown_query"),
        (lambda c, s: c.push(s, [{"a": 1, "ts": "2999-01-01T00:00:00Z"}]), RowError, "too_far_ahead"),
    ],
)  # fmt: skip
def test_mistakes_raise_the_errors_of_the_engine(
    client: Client, stream: str, make: Any, kind: type[EddyError], code: str
) -> None:
    with pytest.raises(kind) as caught:
        make(client, stream)
    assert type(caught.value) is kind and caught.value.code == code


def test_bad_rows_can_be_skipped_and_are_named(client: Client, stream: str) -> None:
    receipt = client.push(stream, [{"a": 1, "ts": 1}, {"a": "x", "ts": 1}, {"a": 3, "ts": 1}], bad="skip")
    assert (receipt.accepted, receipt.rejected, receipt.errors[0]["row"], receipt.errors[0]["column"]) == (2, 1, 1, "a")


@pytest.mark.parametrize(
    "given",
    [
        pd.DataFrame({"a": [1, 2], "x": [0.5, None], "ts": pd.to_datetime(["2024-01-01T00:00:00Z", "2024-01-01T00:00:01Z"])}),
        pl.DataFrame({"a": [1, 2], "x": [0.5, None], "ts": ["2024-01-01T00:00:00Z", "2024-01-01T00:00:01Z"]}),
        pa.table({"a": [1, 2], "x": [0.5, None], "ts": pa.array([1704067200, 1704067201], pa.timestamp("s"))}),
        {"a": [1, 2], "x": [0.5, None], "ts": [1704067200000, 1704067201000]},
        [{"a": 1, "x": 0.5, "ts": 1704067200000}, {"a": 2, "ts": "2024-01-01T00:00:01Z"}],
    ],
    ids=["pandas", "polars", "arrow", "columns", "dicts"],
)
def test_rows_of_every_kind_arrive_alike(client: Client, stream: str, given: Any) -> None:
    query = client.submit(f"SELECT a, x, ts FROM {stream} [RANGE 1 HOUR]")
    client.push(stream, given)
    found = [(row["a"], row["x"], row["ts"].timestamp()) for row in client.answer(query).to_pylist()]
    assert found == [(1, 0.5, 1704067200.0), (2, None, 1704067201.0)]


@pytest.mark.parametrize(
    ("body", "media"),
    [(b'{"a":1,"ts":1000}\n{"a":2,"ts":1000}\n', "application/x-ndjson"), (b"a,ts\n1,1000\n2,1000\n", "text/csv")],
)
def test_bytes_of_a_format_are_pushed_as_they_are(client: Client, stream: str, body: bytes, media: str) -> None:
    assert client.push_body(stream, body, media).accepted == 2


def test_nan_survives_the_way_in_and_out(client: Client, stream: str) -> None:
    query = client.submit(f"SELECT x FROM {stream} [RANGE 1 HOUR]")
    client.push(stream, [{"x": float("nan"), "ts": 1}, {"x": float("-inf"), "ts": 1}])
    assert bag(client.answer(query).column("x").to_pylist()) == ["-inf", "nan"]


def test_a_service_that_is_not_there_is_an_error_at_once() -> None:
    began = time.monotonic()
    with Client("http://127.0.0.1:9", patience=PATIENCE) as nobody, pytest.raises(UnreachableError):
        nobody.limits()
    assert time.monotonic() - began < 10


def test_a_proxy_of_the_environment_is_not_asked_for_this_machine(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    with Client(server.url) as found:
        assert found.limits()["queries"] > 0


def test_the_asynchronous_client_does_the_same(server: Server, client: Client, stream: str) -> None:
    async def go() -> None:
        async with AsyncClient(server.url) as found:
            assert stream in await found.streams
            query = await found.submit(f"SELECT a FROM {stream} [RANGE 1 MINUTE]", name=f"async_{stream}")
            assert (await found.push(stream, rows(1, 2))).accepted == 2
            assert (await found.answer(query)).to_pylist() == [{"a": 1}, {"a": 2}]
            assert [c.row["a"] async for c in found.changes(query)] == [1, 2]
            assert (await found.changes(query, 0).arrow()).column("a").to_pylist() == [1, 2]
            seen: list[int] = []

            async def read() -> None:
                async for change in found.changes(query, follow=True):
                    seen.append(change.row["a"])

            reader = asyncio.create_task(read())
            await found.push(stream, rows(3))
            deadline = time.monotonic() + PATIENCE
            while seen != [1, 2, 3]:
                assert time.monotonic() < deadline, seen
                await asyncio.sleep(0.01)
            await found.cancel(query)
            await asyncio.wait_for(reader, PATIENCE)
            with pytest.raises(NotFoundError):
                await found.answer(query)

    asyncio.run(go())


# ---- limits and roles


class Counting(httpx.HTTPTransport):
    """Counts replies by their status."""

    def __init__(self) -> None:
        super().__init__()
        self.statuses: Counter[int] = Counter()

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        reply = super().handle_request(request)
        self.statuses[reply.status_code] += 1
        return reply


@pytest.mark.slow
def test_a_client_that_is_told_to_wait_waits_and_nothing_is_doubled() -> None:
    with serving("--ephemeral", "--limit", "requests_per_second=5") as strict:
        transport = Counting()
        with Client(strict.url, patience=PATIENCE, transport=transport) as client:
            client.create_stream("s", {"a": "int"})
            numbers = [client.push("s", [{"a": n}]).first_row for n in range(20)]
    assert transport.statuses[429] and numbers == list(range(20))


# ---- changes over a bad network


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.slow
def test_changes_come_once_and_in_order_through_a_network_that_cuts(
    server: Server, client: Client, stream: str, seed: int
) -> None:
    query = client.submit(f"SELECT a, s, ts FROM {stream} [RANGE 5 SECONDS] WHERE a % 3 > 0")
    dice = random.Random(seed)
    found: list[Change] = []
    done = threading.Event()
    with cutting(server.port, seed=seed, after=(200, 20_000)) as proxy, Client(proxy.url, patience=PATIENCE) as reader:
        reader.wait_ready(PATIENCE)

        def read() -> None:
            for change in reader.changes(query, 0, follow=True):
                found.append(change)
                if change.row["a"] == 10**6 + 1:
                    done.set()
                    return

        thread = threading.Thread(target=read, daemon=True)
        thread.start()
        clock = 1000
        for _ in range(60):
            clock += dice.randint(0, 800)
            client.push(
                stream,
                rows(*(dice.randint(0, 99) for _ in range(dice.randint(1, 60))), ts=clock, pad="é\u2028" * dice.randint(0, 9)),
            )
        until(lambda: proxy.cuts >= 5 or not thread.is_alive(), PATIENCE, "the network cuts")
        client.push(stream, rows(10**6 + 1, ts=clock))
        assert done.wait(PATIENCE), f"{len(found)} changes after {proxy.cuts} cuts"
        thread.join(PATIENCE)
        cuts = proxy.cuts
    assert cuts >= 5
    expected = list(client.changes(query, 0))
    assert found == expected[: len(found)] and len(found) >= len(expected) - 1


def test_rows_that_are_pushed_through_a_network_that_cuts_are_taken_once(server: Server, client: Client, stream: str) -> None:
    with cutting(server.port, seed=3, after=(100, 2500)) as proxy, Client(proxy.url, patience=PATIENCE) as writer:
        writer.wait_ready(PATIENCE)
        numbers = [writer.push(stream, rows(n)).first_row for n in range(60)]
        cuts = proxy.cuts
    assert cuts >= 10 and numbers == list(range(60))


def test_one_reader_follows_many_queries_by_tag(server: Server, client: Client, stream: str) -> None:
    seen: list[tuple[str, int]] = []
    first = client.submit(f"SELECT a, ts FROM {stream} WHERE a = 1", name=f"one_{stream}", tags=[stream])

    def read() -> None:
        with Client(server.url) as other:
            for change in other.changes(tags=[stream], since="now", follow=True):
                seen.append((change.query, change.row["a"]))
                assert change.row["ts"].tzinfo is not None
                if change.row["a"] == 2:
                    return

    thread = threading.Thread(target=read, daemon=True)
    thread.start()
    deadline = time.monotonic() + PATIENCE
    while not seen:
        client.push(stream, rows(1))
        assert time.monotonic() < deadline
        time.sleep(0.05)
    second = client.submit(f"SELECT a, ts FROM {stream} WHERE a = 2", name=f"two_{stream}", tags=[stream])
    client.push(stream, rows(2))
    thread.join(PATIENCE)
    assert not thread.is_alive() and seen[0] == (first.name, 1) and seen[-1] == (second.name, 2)


def test_a_reader_of_a_query_that_is_cancelled_ends(client: Client, stream: str) -> None:
    query = client.submit(f"SELECT a FROM {stream} [RANGE 1 MINUTE]")
    client.push(stream, rows(1))
    changes = iter(client.changes(query, follow=True))
    assert next(changes).row == {"a": 1}
    client.cancel(query)
    assert list(changes) == []


@pytest.mark.slow
def test_a_reader_goes_on_after_a_restart(tmp_path: Path) -> None:
    with serving("--data", str(tmp_path / "data")) as server:
        with Client(server.url, patience=2 * PATIENCE) as client:
            client.create_stream("s", COLUMNS, time="ts")
            query = client.submit("SELECT a FROM s [RANGE 1 HOUR]")
            client.push("s", rows(1))
            changes = iter(client.changes(query, follow=True))
            assert next(changes).row == {"a": 1}
            with LiveTable(client, query) as live:
                assert live.rows() == [{"a": 1}]
                assert server.stop() == 0
                with serving("--data", str(tmp_path / "data"), port=server.port):
                    client.push("s", rows(2))
                    assert next(changes).row == {"a": 2}
                    live.wait(int(client.answer(query).schema.metadata[b"seq"]), PATIENCE)
                    assert live.verify(PATIENCE) and live.resyncs == 0 and len(live) == 2


# ---- live tables


def test_a_live_table_is_the_answer_after_every_push(client: Client, stream: str) -> None:
    query = client.submit(f"SELECT a, x, s, ts FROM {stream} [RANGE 3 SECONDS] WHERE a > 2")
    dice = random.Random(5)
    with LiveTable(client, query) as live:
        clock = 1000
        for _ in range(40):
            clock += dice.randint(0, 900)
            client.push(
                stream,
                [{"a": dice.randint(0, 9), "x": dice.choice([None, 0.5, float("nan")]), "s": "x", "ts": clock} for _ in range(5)],
            )
            answer = client.answer(query)
            live.wait(int(answer.schema.metadata[b"seq"]), PATIENCE)
            assert len(live) == answer.num_rows
        assert live.verify(PATIENCE) and live.resyncs == 0
        client.advance(clock + 60_000, f"t_{stream}")
        assert live.verify(PATIENCE) and live.rows() == [] and live.arrow().num_rows == 0


def test_a_live_table_gives_rows_with_the_types_of_the_answer(client: Client, stream: str) -> None:
    query = client.submit(f"SELECT a, x, s, ts FROM {stream} [RANGE 1 HOUR]")
    with LiveTable(client, query) as live:
        client.push(stream, [{"a": 1, "x": 0.5, "s": "é", "ts": 1000}, {"a": 1, "x": 0.5, "s": "é", "ts": 1000}, {"ts": 2000}])
        assert live.verify(PATIENCE)
        answer = client.answer(query)
        assert live.arrow().schema.types == answer.schema.types and live.arrow().column_names == answer.column_names
        assert same(live.rows(), answer) and same(live.arrow().to_pylist(), answer)
        assert live.seq == int(live.arrow().schema.metadata[b"seq"])


@pytest.mark.parametrize("seed", range(2))
def test_a_live_table_is_right_over_a_network_that_cuts(server: Server, client: Client, stream: str, seed: int) -> None:
    query = client.submit(f"SELECT a, ts FROM {stream} [RANGE 2 SECONDS]")
    dice = random.Random(seed)
    with cutting(server.port, seed=seed, after=(500, 30_000)) as proxy, Client(proxy.url, patience=PATIENCE) as reader:
        reader.wait_ready(PATIENCE)
        with LiveTable(reader, query) as live:
            # a snapshot has to come whole over one connection: it is small yet
            assert live.rows() == []
            clock = 1000
            for n in range(60):
                clock += dice.randint(0, 300)
                client.push(stream, rows(*(dice.randint(0, 9) for _ in range(20)), ts=clock))
                if n % 20 == 19:
                    assert live.verify(PATIENCE)
            assert live.verify(PATIENCE) and live.resyncs == 0
            assert same(live.rows(), client.answer(query)) and proxy.cuts >= 2


@pytest.mark.parametrize("slow", ["block", "gap", "conflate"])
def test_a_live_table_is_right_again_after_it_was_too_slow(server: Server, client: Client, stream: str, slow: str) -> None:
    query = client.submit(f"SELECT a, s FROM {stream} [RANGE 1 HOUR]")
    with cutting(server.port) as proxy, Client(proxy.url, patience=PATIENCE) as reader:
        reader.wait_ready(PATIENCE)
        with LiveTable(reader, query, slow=slow) as live:
            client.push(stream, rows(-1))
            live.wait(int(client.answer(query).schema.metadata[b"seq"]), PATIENCE)
            proxy.flows.clear()
            # more than the sockets between take, and then more than the service keeps for one reader
            for n in range(24):
                client.push(stream, rows(*range(400 * n, 400 * n + 400), pad=f"{n:04}" * 250))
            proxy.flows.set()
            client.push(stream, rows(10**6))
            seq = int(client.answer(query).schema.metadata[b"seq"])
            live.wait(seq, PATIENCE)
            assert live.verify(PATIENCE) and len(live) == 24 * 400 + 2
            assert (live.resyncs > 0) == (slow != "block")


def test_a_live_table_that_is_wrong_notices_and_starts_again(client: Client, stream: str) -> None:
    query = client.submit(f"SELECT a FROM {stream} [RANGE 1 HOUR]")
    client.push(stream, rows(1, 2))
    with LiveTable(client, query) as live:
        assert live.verify(PATIENCE)
        with live._changed:
            assert live._bag is not None
            live._bag.counts[(7,)] = 3
        assert not live.verify(PATIENCE)
        until(lambda: live.resyncs == 1, PATIENCE, "it starts again")
        assert live.verify(PATIENCE) and bag(row["a"] for row in live.rows()) == ["1", "2"]


def test_a_live_table_ends_quickly_and_tells_why_it_has_ended(client: Client, stream: str) -> None:
    query = client.submit(f"SELECT a FROM {stream} [RANGE 1 HOUR]")
    before = set(threading.enumerate())
    live = LiveTable(client, query)
    assert live.rows() == [] and set(threading.enumerate()) > before
    began = time.monotonic()
    live.close()
    assert set(threading.enumerate()) <= before and time.monotonic() - began < 5
    with LiveTable(client, query) as other:
        assert len(other) == 0
        client.cancel(query)
        with pytest.raises(GoneError, match="cancelled"):
            other.wait(10**9, PATIENCE)
        assert other.rows() == []


def test_a_live_table_of_a_stream_is_refused(client: Client, stream: str) -> None:
    query = client.submit(f"SELECT a FROM {stream}")
    with pytest.raises(ConflictError) as caught:
        LiveTable(client, query)
    assert caught.value.code == "not_a_relation"


def test_waiting_for_a_commit_that_does_not_come_ends(client: Client, stream: str) -> None:
    query = client.submit(f"SELECT a FROM {stream} [RANGE 1 HOUR]")
    with LiveTable(client, query) as live, pytest.raises(UnreachableError) as caught:
        live.wait(10**9, 0.2)
    assert caught.value.code == "timeout"


def test_commits_that_do_not_touch_a_query_are_told_soon(client: Client, stream: str) -> None:
    query = client.submit(f"SELECT a FROM {stream} [RANGE 1 HOUR] WHERE a > 100")
    with LiveTable(client, query) as live:
        live.rows()
        client.push(stream, rows(1))
        seq = int(client.answer(query).schema.metadata[b"seq"])
        live.wait(seq, 5.0)
        assert live.seq >= seq


def test_gateways_push_into_one_stream(client: Client) -> None:
    columns = {"sensor": "int", "ts": "timestamp", "until": "timestamp"}
    options: dict[str, Any] = {"time": "ts", "end": "until", "inputs": ["a", "b"], "unique": ["sensor"], "order": "any"}
    made = client.create_merge("floor", columns, timeline="floor", **options)
    assert made == client.create_merge("floor", columns, timeline="floor", **options) == client.stream("floor")
    assert client.merges == {"floor": made} and made.inputs == ("a", "b") and made.unique == ("sensor",) and made.case == "R3"
    query = client.submit("SELECT sensor FROM floor [RANGE 1 HOUR]")
    receipt = client.push("floor", {"sensor": [1, 2], "ts": [1000, 1100], "until": [9000, 9000]}, input="a")
    assert receipt[:5] == (2, 0, 0, None, None)
    assert client.adjust("floor", [{"sensor": 2, "ts": 1100, "until": 1100}], input="a").accepted == 1
    said = client.stable("floor", "a", 2000)
    assert said.leader == "a" and said.settled_before is not None and said.settled_before.timestamp() == 2.0
    assert client.answer(query).to_pylist() == [{"sensor": 1}]
    client.detach("floor", "b")
    client.attach("floor", "c", since=2000)
    assert list(client.merge_stats("floor")["inputs"]) == ["a", "c"]
    with pytest.raises(ConflictError, match="merged stream"):
        client.push("floor", {"sensor": [1], "ts": [3000]})
    client.cancel(query)
    client.drop("floor")
    assert client.merges == {}
