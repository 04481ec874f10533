"""The demo on a service: what it defines, that it can be defined again, and that it makes way."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from api.core.calls import Call
from api.core.inbox import InboxItem
from api.demo.definitions import STREAMS, TABLE, queries
from api.demo.runner import BUSY_CALLS, Demo, defined
from api.demo.simulated_building import DAY_TICKS, TICK_MS
from eddy import ConflictError
from storage import DataDirectory
from tests.reference.in_process import InProcess, in_process
from tests.reference.simulated_disk import SimulatedDisk

NOON = 2_000_000 * DAY_TICKS + DAY_TICKS // 2


@pytest.fixture
def service() -> Iterator[InProcess]:
    with in_process() as found:
        yield found


def test_a_few_hundred_queries_start_and_answer(service: InProcess) -> None:
    demo = Demo(service.service)
    assert service.do(demo.define()) == len(queries()) > 250
    assert service.do(service.service.read(defined)) == len(queries())
    for tick in range(NOON, NOON + 24):
        service.do(demo.send(tick))
    assert demo.sent == 24 and demo.left_out == 0
    answers = {
        name: service.get(f"/v1/queries/{name}/answer").json()["rows"]
        for name in ("demo_rooms", "demo_occupied", "demo_floors", "demo_lamp_forgotten", "demo_someone_enters", "demo_noise")
    }
    assert len(answers["demo_rooms"]) == 24 and len(answers["demo_floors"]) == 4
    assert 0 < len(answers["demo_occupied"]) < 24 and answers["demo_someone_enters"] and answers["demo_noise"]
    listed = service.get("/v1/queries?tag=demo&limit=1000").json()["items"]
    assert sum(one["results"] > 0 for one in listed) > len(listed) / 2, "most questions have an answer at noon"
    assert sum(one["errors"] for one in listed) == 0


def test_names_are_readable_and_kinds_are_many(service: InProcess) -> None:
    names = [name for name, _ in queries()]
    assert len(set(names)) == len(names) and all(name.startswith("demo_") for name in names)
    texts = " ".join(definition["sql"] for _, definition in queries())
    for word in (
        "GROUP BY",
        "HAVING",
        "DISTINCT",
        "EXCEPT",
        "INTERSECT",
        "ISTREAM",
        "DSTREAM",
        "TUMBLE",
        "HOP",
        "PARTITION BY",
        TABLE,
    ):
        assert word in texts
    assert all("demo" in definition["tags"] for _, definition in queries())


def test_what_is_defined_already_is_left_as_it_is(service: InProcess) -> None:
    demo = Demo(service.service)
    service.do(demo.define())
    before = [(one["id"], one["name"]) for one in service.get("/v1/queries?limit=1000").json()["items"]]
    assert service.do(Demo(service.service).define()) == len(queries())
    assert [(one["id"], one["name"]) for one in service.get("/v1/queries?limit=1000").json()["items"]] == before


def test_a_stream_of_somebody_else_is_left_alone(service: InProcess) -> None:
    assert service.put("/v1/streams/demo_light", json={"columns": {"mine": "int"}}).status_code == 201
    with pytest.raises(ConflictError, match="demo_light"):
        service.do(Demo(service.service).define())
    assert service.get("/v1/streams/demo_light").json()["columns"] == {"mine": "int"}


def test_a_query_of_somebody_else_is_left_alone_and_the_others_start(service: InProcess) -> None:
    demo = Demo(service.service)
    assert service.put("/v1/streams/s", json={"columns": {"a": "int"}}).status_code == 201
    mine = {"sql": "SELECT a FROM s WHERE a > 1", "tags": ["mine"]}
    assert service.put("/v1/queries/demo_hot_lab", json=mine).status_code == 201
    assert service.do(demo.define()) == len(queries()) - 1
    assert service.get("/v1/queries/demo_hot_lab").json()["sql"] == mine["sql"]


def n_rows(service: InProcess) -> int:
    streams = service.get("/v1/eddy?brief=true").json()["streams"]
    return sum(streams[name]["rows"] for name in STREAMS)


def test_rows_are_not_recorded_and_definitions_are() -> None:
    disk = SimulatedDisk()
    with in_process(directory=DataDirectory.open(disk)) as service:
        demo = Demo(service.service)
        service.do(demo.define())
        service.do(demo.send(NOON))
        assert demo.sent == 1 and n_rows(service) > 0
        killed = disk.state().after_kill()
    with in_process(directory=DataDirectory.open(killed)) as again:
        assert again.do(again.service.read(defined)) == len(queries()) and n_rows(again) == 0
        tables = again.get("/v1/eddy?brief=true").json()["tables"]
        assert [table["rows"] > 0 for table in tables.values()] == [True], "rooms are part of the definitions"


def test_a_tick_is_left_out_while_the_service_is_busy(service: InProcess) -> None:
    demo = Demo(service.service)
    for name in STREAMS:
        assert service.put(
            f"/v1/streams/{name}", json={"columns": {"sensor": "int", "room": "string", "value": "float"}}
        ).is_success
    core = service.service.core
    entered, go_on = _hold(core)
    assert entered.wait(30)
    for _ in range(BUSY_CALLS):
        core.put(Call("push", {"stream": "demo_light", "media": "application/json"}, b"[]"), lambda result, error: None)
    service.do(demo.send(NOON))
    go_on.set()
    assert (demo.sent, demo.left_out) == (0, 1)


def _hold(core: Any) -> tuple[Any, Any]:
    """Have the engine's thread wait until it is let go on."""
    entered, go_on = threading.Event(), threading.Event()

    def hold(core: Any) -> None:
        entered.set()
        assert go_on.wait(30)

    core.inbox.put(InboxItem(hold, lambda result, error: None))
    return entered, go_on


def test_it_ends_when_its_streams_are_gone(service: InProcess) -> None:
    # no clock passes: each sleep is as long as a tick has left, and the clock stands at the end of one
    demo = Demo(service.service, now_ms=lambda: NOON * TICK_MS + TICK_MS - 1)
    service.do(demo.run())
    assert demo.sent == 0
