"""Requests made up from the OpenAPI document, against a real server.

Whatever is asked: no 5xx, no status that the document does not list, answers as it describes them; and what was refused has
changed nothing: definitions, answers, rows, clocks and the number of the last commit are what they were.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, settings
from schemathesis.checks import CHECKS, load_all_checks

from tests.e2e.serving import serving
from tests.reference.in_process import in_process
from tests.reference.seeds import amount

load_all_checks()
with in_process() as _service:
    DOCUMENT = _service.get("/openapi.json").json()
CHOSEN = CHECKS.get_by_names(
    ["not_a_server_error", "status_code_conformance", "content_type_conformance", "response_headers_conformance",
     "response_schema_conformance"]
)  # fmt: skip

STREAM = {"columns": {"sensor": "int", "temp": "float", "ts": "timestamp"}, "time": "ts", "key": ["sensor"]}
TABLE = {"columns": {"sensor": "int", "room": "string"}, "key": "sensor"}
QUERIES = {
    "hot": {"sql": "SELECT sensor, temp FROM readings [RANGE 5 MINUTES] WHERE temp > :max", "params": {"max": 30}, "tags": ["t"]},
    "rooms": {"sql": "SELECT r.temp, x.room FROM readings AS r, rooms_of AS x WHERE r.sensor = x.sensor"},
    "mean": {"sql": "SELECT sensor, AVG(temp) AS mean FROM readings [RANGE 1 HOUR] GROUP BY sensor"},
}
#: Names that are there, so that not everything that is made up ends with 404.
KNOWN = {"stream": "readings", "table": "rooms_of", "query": "hot", "timeline": "main"}


class World:
    """A server with something in it, which is put back whenever a call has changed it."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.client = httpx.Client(base_url=url, timeout=60.0)
        self.seen = 0
        self.restore()

    def _get(self, path: str, **params: Any) -> Any:
        answer = self.client.get(path, params=params)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def restore(self) -> None:
        """Put everything back; rows stay, they only add up."""
        client = self.client
        while extra := [one["name"] for one in self._get("/v1/queries", limit=1000)["items"] if one["name"] not in QUERIES]:
            done = [client.delete(f"/v1/queries/{name}").status_code for name in reversed(extra)]
            assert 204 in done, done
        for kind, kept in (("streams", "readings"), ("tables", "rooms_of")):
            for one in self._get(f"/v1/{kind}")["items"]:
                if one["name"] != kept:
                    assert client.delete(f"/v1/{kind}/{one['name']}").status_code == 204
        for one in self._get("/v1/experiments/runs")["items"]:
            assert client.delete(f"/v1/experiments/runs/{one['id']}").status_code == 204
        assert client.put("/v1/streams/readings", json=STREAM).status_code in (200, 201)
        assert client.put("/v1/tables/rooms_of", json=TABLE).status_code in (200, 201)
        for name, definition in QUERIES.items():
            if client.put(f"/v1/queries/{name}", json=definition).status_code == 409:
                assert client.delete(f"/v1/queries/{name}").status_code == 204
                assert client.put(f"/v1/queries/{name}", json=definition).status_code == 201
            client.post(f"/v1/queries/{name}/resume")
        self.digest = self.look()

    def look(self) -> Any:
        """Everything that a refused call must leave as it was."""
        eddy = self._get("/v1/eddy")
        return [
            eddy["seq"], eddy["policy"], eddy["timelines"],
            {name: (one["rows"], one["late"], one["held"]) for name, one in eddy["streams"].items()},
            {name: one["rows"] for name, one in eddy["tables"].items()},
            self._get("/v1/streams"), self._get("/v1/tables"), self._get("/v1/queries", limit=1000),
            [self._get(f"/v1/queries/{name}/answer") for name in QUERIES], self._get("/v1/experiments/runs"),
        ]  # fmt: skip


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    with serving("--ephemeral", "--limit", "requests_per_second=1000000") as server:
        found = World(server.url)
        yield found
        found.client.close()
        assert server.stop() == 0 and "Traceback" not in server.log, server.log


def schema_of() -> Any:
    schema = schemathesis.openapi.from_dict(DOCUMENT)
    schema.config.phases.update(phases=["examples", "fuzzing"])
    return schema


SCHEMA = schema_of()


def check(case: Any, world: World) -> None:
    """Ask, and look at the answer and at what it left behind."""
    world.seen += 1
    for name, known in KNOWN.items():
        if name in (case.path_parameters or {}) and world.seen % 4:
            case.path_parameters[name] = known
    if case.path.endswith("/changes"):
        case.query = {**(case.query or {}), "follow": "false"}  # a stream that ends
    answer = case.call(base_url=world.url, timeout=60)
    case.validate_response(answer, checks=CHOSEN)
    if 400 <= answer.status_code < 500:
        assert world.look() == world.digest, "a refusal changes nothing"
    elif case.method != "GET":
        world.restore()


_COMMON = {
    "deadline": None, "database": None, "phases": [Phase.explicit, Phase.generate], "suppress_health_check": list(HealthCheck),
}  # fmt: skip


@pytest.mark.slow
@SCHEMA.parametrize()
@settings(max_examples=amount(5, long=100), **_COMMON)
def test_whatever_is_asked_the_document_holds_and_a_refusal_changes_nothing(case: Any, world: World) -> None:
    check(case, world)


def test_every_route_lists_its_statuses_and_every_body_has_an_example() -> None:
    for path, verbs in DOCUMENT["paths"].items():  # type: ignore[attr-defined]
        for verb, operation in verbs.items():
            statuses = set(operation["responses"])
            assert {"403", "421", "503"} <= statuses, (verb, path)
            if path.startswith("/v1/"):
                assert {"400", "401", "408", "413", "415", "422", "429"} <= statuses, (verb, path)
            if "{" in path and verb != "put":
                assert "404" in statuses, (verb, path)
            assert operation.get("description") or operation.get("summary"), (verb, path)
            for content in operation.get("requestBody", {}).get("content", {}).values():
                schema = content["schema"]
                if "$ref" in schema:
                    schema = DOCUMENT["components"]["schemas"][schema["$ref"].rpartition("/")[2]]  # type: ignore[index]
                fields = schema.get("properties", {}).values()
                shown = [schema, content, *fields]
                assert schema.get("type") == "string" or any({"example", "examples"} & set(one) for one in shown), (verb, path)
