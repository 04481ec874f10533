"""LMERGE in a query over REST: submit, plan, pauses of its inputs, refusals, and coming back after a restart."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from storage.directory import DataDirectory
from storage.disk import LocalDisk
from tests.reference.in_process import InProcess, in_process

COLUMNS = {"k": "int", "ts": "timestamp"}
COUNT = "SELECT k, COUNT(*) AS n FROM {} [RANGE 1 HOUR] GROUP BY k"


def make(service: InProcess) -> None:
    for name in ("a", "b"):
        assert service.put(f"/v1/streams/{name}", json={"columns": COLUMNS, "time": "ts"}).status_code == 201
    for name, sql in {
        "na": COUNT.format("a"),
        "nb": COUNT.format("b"),
        "streams": "SELECT k FROM LMERGE(a, b) [RANGE 1 HOUR] AS r",
        "relations": "SELECT k, n FROM LMERGE(na, nb) AS r",
    }.items():
        assert service.put(f"/v1/queries/{name}", json={"sql": sql}).status_code == 201


def push(service: InProcess, name: str, *rows: tuple[int, int]) -> None:
    found = service.post(f"/v1/streams/{name}/rows", json=[{"k": k, "ts": ts} for k, ts in rows])
    assert found.status_code == 202


def shown(service: InProcess, name: str) -> list[Any]:
    return sorted(row["k"] for row in service.get(f"/v1/queries/{name}/answer").json()["rows"])


def test_a_merge_lives_in_the_service_and_comes_back_with_it(tmp_path: Path) -> None:
    with in_process(directory=DataDirectory.open(LocalDisk(tmp_path))) as service:
        make(service)
        live(service)
    with in_process(directory=DataDirectory.open(LocalDisk(tmp_path))) as again:
        assert shown(again, "relations") == [1, 7, 9] and shown(again, "streams") == [1, 9], "b has passed 2 s without 2"
        assert again.post("/v1/queries/na/resume").status_code == 200
        push(again, "a", (4, 4_000))
        assert shown(again, "relations") == [4] and shown(again, "streams") == [1, 4], "and a 3 s without 9"


def live(service: InProcess) -> None:
    """Rows of both streams; then an input of a merge is paused."""
    push(service, "a", (1, 1_000))
    push(service, "b", (1, 1_000), (7, 1_000))
    assert shown(service, "streams") == [1, 7] and shown(service, "relations") == [1]
    push(service, "a", (2, 2_000))
    assert shown(service, "streams") == [1, 2] and shown(service, "relations") == [1, 2]
    (merge,) = [one["merge"] for one in service.get("/v1/queries/streams/plan").json()["operators"] if "merge" in one]
    assert merge["deciding"] == "a" and merge["case"] == "R2" and merge["differs"].startswith("from a only")
    assert service.delete("/v1/queries/na").status_code == 409
    assert service.delete("/v1/streams/a").status_code == 409
    assert service.post("/v1/queries/na/pause").status_code == 200
    push(service, "b", (9, 3_000))
    assert shown(service, "relations") == [1, 7, 9]


@pytest.mark.parametrize(
    ("source", "code"),
    [
        ("LMERGE(a) AS r", "too_few_inputs"),
        ("LMERGE(a, a) AS r", "duplicate_input"),
        ("LMERGE(a, nobody) AS r", "unknown_stream"),
        ("LMERGE(a, na) [NOW] AS r", "column_mismatch"),
        ("LMERGE(na, nb) [NOW] AS r", "relation_window"),
    ],
)
def test_what_cannot_be_merged_is_a_problem_with_a_place(source: str, code: str) -> None:
    with in_process() as service:
        make(service)
        found = service.post("/v1/queries", json={"sql": f"SELECT * FROM {source}"})
        assert (found.status_code, found.json()["code"]) == (422, code)
        assert found.json()["position"]["line"] == 1 and found.json()["position"]["column"] >= 15 and found.json()["hint"]
