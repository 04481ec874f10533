"""What Prometheus reads."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from api.base.timings import Timings
from api.edge import metrics
from api.edge.access_tokens import NO_ROUTE, ROUTES, route_of
from api.edge.metrics import STREAMS
from tests.reference.in_process import InProcess, in_process


def numbers(service: InProcess) -> dict[tuple[str, ...], float]:
    """Every sample, by its name and labels."""
    answer = service.get("/metrics")
    assert answer.status_code == 200
    return {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(answer.text)
        for sample in family.samples
    }


def test_streams_beyond_the_first_are_counted_together() -> None:
    with in_process() as service:
        for n in range(STREAMS + 3):
            assert service.put(f"/v1/streams/s{n}", json={"columns": {"a": "int"}}).status_code == 201
            rows = {"a": list(range(n + 1))}
            assert service.post(f"/v1/streams/s{n}/rows", json=rows).status_code == 202
        found = numbers(service)
        rows_of = {key[1]: value for key, value in found.items() if key[0] == "eddy_rows_total"}
        assert len(rows_of) == STREAMS + 1 and rows_of["all others"] == 1 + 2 + 3
        assert sum(rows_of.values()) == sum(range(1, STREAMS + 4))
        assert found["eddy_streams",] == STREAMS + 3


def test_what_was_done_is_counted() -> None:
    with in_process() as service:
        service.put("/v1/streams/s", json={"columns": {"a": "int", "ts": "timestamp"}, "time": "ts"})
        service.post("/v1/queries", json={"sql": "SELECT a FROM s [RANGE 1 MINUTE]", "name": "q"})
        before = numbers(service)
        service.post("/v1/streams/s/rows", json={"a": [1, 2, 3], "ts": [0, 0, 0]})
        service.get("/v1/queries/none")
        after = numbers(service)
        assert after["eddy_rows_total", "s"] - before["eddy_rows_total", "s"] == 3
        assert after["eddy_commits_total",] > before["eddy_commits_total",]
        assert after["eddy_requests_total", "POST", "/v1/streams/{stream}/rows", "202"] == 1
        assert after["eddy_requests_total", "GET", "/v1/queries/{query}", "404"] == 1
        assert after["eddy_state_bytes",] > 0 and after["eddy_engine_busy_seconds_total",] > 0
        assert after["eddy_request_seconds_count",] > before["eddy_request_seconds_count",]


def test_an_engine_that_does_not_answer_does_not_keep_the_rest_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics, "PATIENCE", 0.05)
    go_on = threading.Event()
    with in_process() as service:

        async def busy() -> Any:
            return asyncio.ensure_future(service.service.read(lambda core: go_on.wait(60)))

        waiting = service.do(busy())
        found = numbers(service)
        assert found["eddy_ready",] == 1 and ("eddy_queries",) not in found
        go_on.set()

        async def wait() -> None:
            await waiting

        service.do(wait())
        assert numbers(service)["eddy_queries",] == 0


def test_labels_of_requests_are_bounded() -> None:
    routes = {route_of(method, path) for method in ("GET", "POST", "BREW") for path in ("/v1/queries/a", "/v1/x", "/" * 50, "")}
    assert routes <= {route_of(method, path.replace("{", "").replace("}", "")) for method, path in ROUTES} | {NO_ROUTE}


def test_durations_are_counted_in_their_bucket() -> None:
    timings = Timings()
    for seconds in (0.00005, 0.0001, 0.00011, 99.0):
        timings.add(seconds)
    assert timings.counts[0] == 2 and timings.counts[1] == 1 and timings.counts[-1] == 1 and sum(timings.counts) == 4
    assert timings.seconds == pytest.approx(99.00026)
