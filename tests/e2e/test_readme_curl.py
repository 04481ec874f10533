"""Every curl block of README and guide does what it says, as pasted and as often as one likes; only the port is another."""

from __future__ import annotations

import csv
import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.e2e.serving import Server, serving, until
from tests.e2e.test_readme import found_blocks

ADDRESS = "127.0.0.1:8000"


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving("--ephemeral", "--demo") as found:
        answer = f"{found.url}/v1/queries/demo_rooms/answer"
        until(lambda: len(_rows(answer)) == 24, 60, "the demo has begun")
        yield found


def _rows(url: str) -> list[object]:
    found = httpx.get(url)
    rows: list[object] = found.json()["rows"] if found.status_code == 200 else []
    return rows


def curl_blocks() -> list[tuple[int, str]]:
    """(line, text) of every block that calls curl."""
    return [(line, body) for language, body, line, _ in found_blocks() if language == "bash" and "curl " in body]


def paste(server: Server, text: str) -> str:
    """Run what somebody pasted."""
    here = text.replace(ADDRESS, server.url.partition("://")[2])
    done = subprocess.run(["bash", "-c", here], capture_output=True, text=True, timeout=120, cwd=Path("/"))
    assert done.returncode == 0, f"{text}\n{done.stdout}\n{done.stderr}"
    assert done.stdout.strip() and '"status":4' not in done.stdout and '"status":5' not in done.stdout, f"{text}\n{done.stdout}"
    return done.stdout


@pytest.mark.slow
def test_every_block_runs_as_pasted_and_again(server: Server) -> None:
    found = curl_blocks()
    assert len(found) >= 3, "the documents have curl blocks"
    for line, text in found * 2:
        assert ADDRESS in text, f"block at line {line}: it asks another server"
        paste(server, text)


@pytest.mark.slow
def test_the_first_three_show_an_answer_changes_and_a_query_of_ones_own(server: Server) -> None:
    answer, changes, own = (paste(server, text) for _, text in curl_blocks()[:3])
    rooms = list(csv.DictReader(answer.splitlines()))
    assert len(rooms) == 24 and rooms[0].keys() == {"room", "celsius", "coldest", "hottest", "readings"}
    lines = [json.loads(line) for line in changes.splitlines()]
    assert len(lines) == 20 and {line["sign"] for line in lines if "sign" in line} == {-1, 1}
    assert any("progress" in line for line in lines)
    query, found = (json.loads(text) for text in own.replace("}{", "}\n{").splitlines())
    assert query["name"] == found["query"] == "warm_rooms"
    assert found["rows"] and all(row["celsius"] > 20 for row in found["rows"])


def printed(server: Server) -> list[str]:
    """The commands that a start prints."""
    until(lambda: server.log.count("  curl ") == 3, 60, "it says what to paste")
    return [line for line in server.log.splitlines() if line.startswith("  curl ")]


@pytest.mark.slow
def test_what_a_start_prints_can_be_pasted_and_again(server: Server) -> None:
    with serving("--ephemeral") as without_demo:
        commands = {each: printed(each) for each in (server, without_demo)}
        assert ["demo_rooms" in found[0] for found in commands.values()] == [True, False]
        for each, found in commands.items():
            for line in found * 2:
                paste(each, line)
