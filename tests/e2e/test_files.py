"""Files as people have them: every line of docs/files.md, on a file in its style, against a real server."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import httpx
import pytest
from typer.testing import CliRunner, Result

from api.cli import app
from eddy.client import Client
from tests.e2e.serving import ROOT, Server, serving
from tests.reference.csv_styles import ROWS, STYLES, styled

LINES = re.findall(r"`(eddy push \w+ \S+\.(?:csv|log) [^`]*)`", (ROOT / "docs" / "files.md").read_text())

#: Columns of a stream that say that its file was understood.
WANTED = {
    "weather": {"hour": "int", "temp": "float", "wind_gust": "float", "pressure": "float", "wind_dir": "int", "ts": "timestamp"},
    "air": {"pm25": "int", "PM10": "int", "TEMP": "float", "wd": "string", "ts": "timestamp"},
    "conn": {"ts": "timestamp[s]", "id_orig_h": "string", "id_orig_p": "int", "duration": "float", "local_orig": "bool"},
    "stock": {"Datum": "timestamp", "Kurs": "float", "Volumen": "int"},
    "trips": {"pickup": "timestamp", "dropoff": "timestamp", "payment_type": "string", "distance": "float"},
    "flights": {"time": "timestamp", "country": "string", "delayed": "bool", "minutes": "int"},
}


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving("--ephemeral") as found:
        yield found


@pytest.fixture
def client(server: Server) -> Iterator[Client]:
    with Client(server.url) as found:
        yield found
        for query in found.find_queries():
            found.cancel(query)
        for name in found.streams:
            found.drop(name)


@pytest.fixture
def eddy(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("EDDY_URL", server.url)
    for name in STYLES:
        (tmp_path / name).write_bytes(styled(name))

    def run(line: str, code: int = 0) -> Result:
        done = CliRunner().invoke(app, shlex.split(line)[1:])
        assert done.exit_code == code, f"{done.output}\n{done.exception!r}"
        return done

    return run


def now(client: Client, timeline: str) -> datetime:
    """The clock of a timeline."""
    return datetime.fromisoformat(client.stats()["timelines"][timeline]["time"])


def test_the_page_has_a_line_for_every_style() -> None:
    assert {line.split()[3] for line in LINES} == set(STYLES)


@pytest.mark.parametrize("line", LINES, ids=lambda line: str(line).split()[2])
def test_a_file_goes_in_by_one_line(line: str, eddy: Any, client: Client) -> None:
    stream = line.split()[2]
    timeline = [] if "--timeline" in line else ["--timeline", stream]
    done = eddy(shlex.join([*shlex.split(line), *timeline, "--json"]))
    receipt = json.loads(done.stdout)
    assert (receipt["accepted"], receipt["rejected"]) == (ROWS, 0)
    columns = client.stream(stream).columns
    assert {name: columns[name] for name in WANTED[stream]} == WANTED[stream]
    if stream != "flights":
        assert receipt["late"] == 0
    if stream == "weather":
        assert receipt["nulls"]["wind_gust"] > ROWS / 2 and set(receipt["nulls"]) <= {"wind_gust", "pressure", "wind_dir"}
        assert "taken as UTC" in done.stderr
    if stream == "flights":
        assert "country" in receipt["nulls"] and receipt["nulls"]["country"] < ROWS / 2, "NA is a country"
        assert client.stream(stream).timeline == "flights" and client.stream(stream).lateness_us == 60_000_000


def test_formats_and_zones_come_out_as_meant(eddy: Any, client: Client) -> None:
    for stream in ("stock", "trips"):
        line = next(line for line in LINES if line.split()[2] == stream)
        eddy(f"{line} --timeline {stream}2")
    last_day = styled("stock.csv").decode().splitlines()[-1].split(";")[0]
    assert f"{now(client, 'stock2'):%d.%m.%Y}" == last_day
    last = max(line.split(",")[0] for line in styled("trips.csv").decode().splitlines()[1:])
    there = datetime.fromisoformat(last).replace(tzinfo=ZoneInfo("America/New_York"))
    assert now(client, "trips2") == there


@pytest.mark.parametrize(
    ("content", "options", "hint"),
    [
        (b"when,x\n1/2/2024 10:00,1\n", "--time when", "--time-format"),
        (b"a,b,ts\n1,2,1000\nx,2,1000\n", "--time ts --types a=int", "--null"),
        (b"#separator \\x09\n#fields\tts\n", "--time ts", "--names"),
        (b"x.y,x_y,ts\n1,2,3\n", "--time ts", "--rename"),
        (b"caf\xe9,ts\n1,2\n", "--time ts", "iconv"),
        (b"ts,v\n1000,1\n2000\n", "--time ts", "--bad skip"),
        (b'ts,v\n1000,"1\n', "--time ts", "never closed"),
        (b"", "--time ts", "--names"),
        (b"ts,v\n1000,1\n", "--time nope", "--time"),
    ],
)
def test_a_file_that_is_refused_is_told_what_helps_and_leaves_no_stream(
    content: bytes, options: str, hint: str, eddy: Any, client: Client, tmp_path: Path
) -> None:
    (tmp_path / "rows.csv").write_bytes(content)
    done = eddy(f"eddy push rows rows.csv --create --timeline other {options}", code=1)
    assert hint in done.stderr
    assert "rows" not in client.streams


def test_parts_that_were_taken_stay_when_a_later_one_is_refused(eddy: Any, client: Client, tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("a,ts\n" + "1,1000\n" * 10_000 + "x,1000\n")
    done = eddy("eddy push rows rows.csv --create --time ts --types a=int --timeline third", code=1)
    assert "the 10000 rows of earlier parts were taken" in done.stderr and "row 10000" in done.stderr
    assert "rows" in client.streams


def test_a_row_of_a_sorted_file_is_named_by_its_place_in_the_file(eddy: Any, client: Client, tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("a,ts\n1,3000\n2,2000\nx,1000\n")
    done = eddy("eddy push rows rows.csv --create --time ts --types a=int --timeline fourth --sort", code=1)
    assert 'row 2, column "a"' in done.stderr


def test_the_service_takes_the_same_form_and_counts_nulls(client: Client, server: Server) -> None:
    client.create_stream("s", {"PM2_5": "float", "ts": "timestamp"}, time="ts", timeline="fifth")
    answer = httpx.post(
        f"{server.url}/v1/streams/s/rows",
        params={"delimiter": ";", "decimal": ",", "time": "ts=d,h", "tz": "Europe/Berlin", "null": ["k.A.", "x"], "bad": "skip"},
        content=b"d;h;PM2.5\n2024-07-01;12:00;1,5\n2024-07-01;12:01;k.A.\n2024-07-01;12:02;-\n2024-07-01;12:03;oops\n1;2\n",
        headers={"Content-Type": "text/csv"},
    )
    facts = answer.json()
    assert answer.status_code == 202 and facts["accepted"] == 3 and facts["nulls"] == {"PM2_5": 2}
    assert [(error["row"], error["column"]) for error in facts["errors"]] == [(3, "PM2_5"), (4, None)]
    assert f"{now(client, 'fifth'):%H:%M}" == "10:02"
    for params, code in (({"tz": "Mars/Olympus"}, "bad_csv_form"), ({"delimiter": "ab"}, "bad_csv_form")):
        refused = httpx.post(
            f"{server.url}/v1/streams/s/rows", params=params, content=b"ts\n1\n", headers={"Content-Type": "text/csv"}
        )
        assert (refused.status_code, refused.json()["code"]) == (400, code)
    refused = httpx.post(f"{server.url}/v1/streams/s/rows", params={"tz": "UTC"}, json=[{"ts": 1}])
    assert refused.status_code == 400 and "CSV only" in refused.json()["detail"] + refused.json()["title"]
