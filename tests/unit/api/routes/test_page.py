"""The pages at `/` and `/docs`: one small file each, nothing from elsewhere, and what they ask for."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.reference.in_process import InProcess, in_process

FOLDER = Path(__file__).parents[4] / "api" / "page"
PAGES = {"/": "index.html", "/docs": "docs.html"}


@pytest.fixture
def service() -> Iterator[InProcess]:
    with in_process() as found:
        assert found.put("/v1/streams/s", json={"columns": {"a": "int", "ts": "timestamp"}, "time": "ts"}).is_success
        yield found


@pytest.mark.parametrize("name", PAGES.values())
def test_it_is_one_small_file_with_nothing_from_elsewhere(name: str) -> None:
    text = (FOLDER / name).read_text()
    assert len(text.encode()) < 32_000
    assert not re.search(r"(?:src|href)=[\"'](?:https?:)?//", text) and "@import" not in text
    assert not re.search(r"<[^>]+\son\w+=", text) and not re.search(r"<[^>]+\sstyle=", text), "the policy refuses these"
    assert ".innerHTML" not in text and "eval(" not in text, "names and values of others are text"
    assert "prefers-color-scheme: dark" in text


@pytest.mark.parametrize("path", PAGES)
def test_what_is_served_names_no_other_host(service: InProcess, path: str) -> None:
    answer = service.get(path)
    assert set(re.findall(r"(?:\w+:)?//[\w.-]+\.\w+", answer.text)) == {"http://www.w3.org"}, "the name of SVG, never asked"
    assert answer.text.count("http://www.w3.org") == answer.text.count("http://www.w3.org/2000/svg")
    for policy in answer.headers.get_list("content-security-policy"):
        assert "//" not in policy and "*" not in policy
    assert not re.search(r"(?:fetch|get)\([\"'`](?!/)", answer.text), "only paths of this server are asked for"


@pytest.mark.parametrize("path", PAGES)
def test_its_policy_allows_its_own_script_and_style_alone(service: InProcess, path: str) -> None:
    answer = service.get(path)
    assert answer.status_code == 200 and answer.headers["content-type"].startswith("text/html")
    policies = answer.headers.get_list("content-security-policy")
    (policy,) = [one for one in policies if "sha256-" in one]
    assert "default-src 'none'" in policy and "unsafe" not in policy and "connect-src 'self'" in policy
    for element in ("script", "style"):
        (body,) = re.findall(rf"<{element}>(.*?)</{element}>", answer.text, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(body.encode()).digest()).decode()
        assert f"{element}-src 'sha256-{digest}'" in policy


def test_counts_and_rates_are_there_for_every_stream_and_table(service: InProcess) -> None:
    assert service.put("/v1/tables/t", json={"columns": {"k": "int"}, "key": "k"}).is_success
    assert service.post("/v1/tables/t/rows", json={"k": [1, 2]}).is_success
    assert service.post("/v1/streams/s/rows", json={"a": [1, 2, 3], "ts": [5, 6, 7]}).is_success
    found = service.get("/v1/eddy?brief=true").json()
    assert found["streams"] == {"s": {"rows": 3, "late": 0, "expired": 0, "newest": "1970-01-01T00:00:00.007000Z"}}
    assert found["tables"] == {"t": {"rows": 2}}
    assert found["n_queries"] == 0 and found["queue"] == {"calls": 0, "bytes": 0, "refused": 0}
    rates = found["rates"]
    assert rates["streams"]["s"] == rates["rows"] == pytest.approx(3 / rates["seconds"]) and rates["commits"] > 0
    assert 0 < rates["busy"] < 2
    whole = service.get("/v1/eddy").json()
    assert whole["modules"] == {} and whole["rates"]["streams"].keys() == {"s"}


def test_queries_are_found_by_words_of_their_name_and_text(service: InProcess) -> None:
    for name, sql in {"hot": "SELECT a FROM s WHERE a > 30", "cold": "SELECT a FROM s WHERE a < 5"}.items():
        assert service.put(f"/v1/queries/{name}", json={"sql": sql}).is_success

    def names(words: str) -> list[str]:
        return [one["name"] for one in service.get("/v1/queries", params={"search": words}).json()["items"]]

    assert (
        names("HOT") == ["hot"] and names("select a") == ["hot", "cold"] and names("< cold") == ["cold"] and names("warm") == []
    )


def test_a_listing_has_what_each_query_gave_and_takes(service: InProcess) -> None:
    assert service.put("/v1/queries/hot", json={"sql": "SELECT a FROM s [RANGE 1 MINUTE] WHERE a > 1"}).is_success
    assert service.post("/v1/streams/s/rows", json={"a": [1, 2, 3], "ts": [5, 6, 7]}).is_success
    (item,) = service.get("/v1/queries").json()["items"]
    assert item["results"] == 2 and item["own_bytes"] > 0 and item["errors"] == 0


def test_every_query_is_reached_by_pages(service: InProcess) -> None:
    names = [f"q{n}" for n in range(25)]
    for n, name in enumerate(names):
        assert service.put(f"/v1/queries/{name}", json={"sql": f"SELECT a FROM s WHERE a > {n}"}).is_success
    found: list[str] = []
    cursor = None
    for _ in range(10):
        page = service.get("/v1/queries", params={"limit": 7, **({"cursor": cursor} if cursor else {})}).json()
        found += [one["name"] for one in page["items"]]
        cursor = page["next_cursor"]
        if cursor is None:
            break
    assert found == names


def test_a_listing_tells_of_a_replace_and_of_another_query_of_that_name(service: InProcess) -> None:
    def listed() -> tuple[int, str]:
        (item,) = service.get("/v1/queries").json()["items"]
        return item["id"], item["sql"]

    assert service.put("/v1/queries/q", json={"sql": "SELECT a FROM s WHERE a > 1"}).is_success
    first = listed()
    assert service.put("/v1/queries/q", json={"sql": "SELECT a FROM s WHERE a > 2"}).is_success
    assert listed() == (first[0], "SELECT a FROM s WHERE a > 2")
    assert service.delete("/v1/queries/q").is_success
    assert service.put("/v1/queries/q", json={"sql": "SELECT a FROM s WHERE a > 1"}).is_success
    assert listed()[0] != first[0]


def test_whether_the_demo_runs_is_told(service: InProcess) -> None:
    assert service.get("/v1/eddy?brief=true").json()["demo"] is None
    assert service.get("/v1/eddy").json()["demo"] is None


def test_documents_can_be_read_by_anybody_and_list_the_calls(service: InProcess) -> None:
    assert "/v1/streams/{stream}/rows" in service.get("/openapi.json").json()["paths"]
    assert service.get("/docs").headers["content-type"].startswith("text/html")
