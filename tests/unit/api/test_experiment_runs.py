"""Runs of experiments over REST, with a stand-in for the program that runs them: what it says, how it ends, who may start it."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from api.app import make_app
from api.base.limits import Limits
from api.core.service import Service
from api.experiment_runs import FILES, ExperimentRuns

#: Does what the experiment it is asked for is called; writes its process id beside itself.
STAND_IN = """
import json, os, pathlib, subprocess, sys, time
words = sys.argv[1:]
here = pathlib.Path(__file__).parent
if words[0] == "list":
    names = ["good", "endless", "broken", "babbling"]
    common = {"question": "?", "figure": "f", "expected": "e", "by": "counts", "parameters": [], "columns": {}}
    print(json.dumps([{"name": n, "files": [], **common} for n in names] + [{"name": "real", "files": ["x"], **common}]))
    sys.exit()
name, out = words[1], pathlib.Path(words[words.index("--out") + 1])
(here / "pid").write_text(str(os.getpid()))
print(json.dumps({"experiment": name, "done": 0, "steps": 2}), flush=True)
if name == "endless":
    grandchild = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    (here / "grandchild").write_text(str(grandchild.pid))
    time.sleep(600)
if name == "broken":
    sys.exit("error: it is broken")
if name == "babbling":
    print("not JSON", flush=True)
(out / name).mkdir(parents=True)
for file in %r:
    (out / name / file).write_text(f"{file} {words}")
print(json.dumps({"experiment": name, "done": 2, "steps": 2}))
print(json.dumps({"experiment": name, "holds": True, "verdict": {"checks": [], "note": ""}}))
"""


class Asked:
    """A client of an application whose experiments are stand-ins."""

    def __init__(self, folder: Path, limits: Limits) -> None:
        self.folder = folder
        (folder / "program.py").write_text(STAND_IN % list(FILES))
        self.app = make_app(Service(None, limits))
        self.runs = ExperimentRuns(limits, (sys.executable, str(folder / "program.py")))
        self.app.state.experiments = self.runs
        self.client = httpx.AsyncClient(transport=httpx.ASGITransport(self.app), base_url="http://127.0.0.1", timeout=60)

    async def start(self, name: str, **more: Any) -> httpx.Response:
        return await self.client.post("/v1/experiments/runs", json={"name": name, **more})

    async def settled(self, location: str, state: str | None = None) -> dict[str, Any]:
        """The run when it is over, or has said how many steps it has."""
        async with asyncio.timeout(60):
            while True:
                facts: dict[str, Any] = (await self.client.get(location)).json()
                if facts["state"] != "running" if state is None else facts["steps"] == 2:
                    return facts
                await asyncio.sleep(0.02)


def asked(folder: Path, do: Callable[[Asked], Awaitable[None]], limits: Limits | None = None) -> None:
    async def whole() -> None:
        found = Asked(folder, limits or Limits())
        try:
            await do(found)
        finally:
            await found.runs.stop()
            await found.client.aclose()

    asyncio.run(whole())


def alive(pid: int) -> bool:
    """Whether a process is there and is no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


async def gone(path: Path) -> None:
    pid = int(path.read_text())
    async with asyncio.timeout(30):
        while alive(pid):
            await asyncio.sleep(0.02)


def test_experiments_are_listed_and_one_that_is_started_can_be_followed_to_its_results(tmp_path: Path) -> None:
    async def do(found: Asked) -> None:
        listed = (await found.client.get("/v1/experiments")).json()["items"]
        assert [one["name"] for one in listed] == ["good", "endless", "broken", "babbling", "real"]
        answer = await found.start("good", quick=False, seed=7)
        assert answer.status_code == 202 and answer.json()["state"] == "running"
        location = answer.headers["location"]
        facts = await found.settled(location)
        assert facts["state"] == "done" and (facts["done"], facts["steps"]) == (2, 2)
        assert facts["verdict"] == {"holds": True, "checks": [], "note": ""} and facts["seed"] == 7
        for path, (name, media) in zip(facts["files"], FILES.items(), strict=True):
            file = await found.client.get(path)
            assert file.status_code == 200 and file.headers["content-type"].startswith(media)
            assert file.text.startswith(name) and "'7'" in file.text and "--quick" not in file.text
        assert (await found.client.get("/v1/experiments/runs")).json() == {"items": [facts]}

    asked(tmp_path, do)


def test_one_runs_at_a_time_and_a_cancel_kills_it_with_all_it_started(tmp_path: Path) -> None:
    async def do(found: Asked) -> None:
        location = (await found.start("endless")).headers["location"]
        await found.settled(location, "running")
        second = await found.start("good")
        assert second.status_code == 409 and second.json()["code"] == "experiment_running"
        early = await found.client.get(f"{location}/plot.png")
        assert early.status_code == 409 and early.json()["code"] == "not_done"
        async with asyncio.timeout(60):
            while not (tmp_path / "grandchild").exists() or not (tmp_path / "grandchild").read_text():
                await asyncio.sleep(0.02)
        assert (await found.client.delete(location)).status_code == 204
        await gone(tmp_path / "pid")
        await gone(tmp_path / "grandchild")
        assert (await found.client.get(location)).status_code == 404
        assert (await found.client.delete(location)).status_code == 404
        assert (await found.start("good")).status_code == 202

    asked(tmp_path, do)


def test_what_runs_is_killed_when_the_service_stops_and_its_files_go(tmp_path: Path) -> None:
    folders: list[Path] = []

    async def do(found: Asked) -> None:
        location = (await found.start("endless")).headers["location"]
        await found.settled(location, "running")
        folders.append(found.runs.all()[0].folder.parent)
        await found.runs.stop()
        await gone(tmp_path / "pid")
        assert (await found.client.get(location)).json()["state"] == "cancelled"
        assert (await found.start("good")).status_code == 409

    asked(tmp_path, do)
    assert not folders[0].exists()


@pytest.mark.parametrize(("name", "words"), [("broken", "it is broken"), ("babbling", "cannot be followed")])
def test_a_run_that_fails_says_why(name: str, words: str, tmp_path: Path) -> None:
    async def do(found: Asked) -> None:
        facts = await found.settled((await found.start(name)).headers["location"])
        assert facts["state"] == "failed" and words in facts["error"] and facts["files"] == []

    asked(tmp_path, do)


def test_a_run_that_takes_too_long_is_ended(tmp_path: Path) -> None:
    async def do(found: Asked) -> None:
        facts = await found.settled((await found.start("endless")).headers["location"])
        assert facts["state"] == "failed" and "more than 1 s" in facts["error"]
        await gone(tmp_path / "pid")

    asked(tmp_path, do, Limits(experiment_seconds=1.0))


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({"name": "nothing"}, 404, "unknown_experiment"),
        ({"name": "real"}, 422, "no_data"),
        ({"name": "good", "seed": -1}, 422, "bad_request"),
        ({"name": "good", "data": "/etc"}, 422, "bad_request"),
    ],
)
def test_what_cannot_be_started_is_refused(body: dict[str, Any], status: int, code: str, tmp_path: Path) -> None:
    async def do(found: Asked) -> None:
        answer = await found.client.post("/v1/experiments/runs", json=body)
        assert answer.status_code == status and answer.json()["code"] == code
        assert (await found.client.get("/v1/experiments/runs")).json() == {"items": []}

    asked(tmp_path, do)


def test_a_file_that_no_run_has_is_refused(tmp_path: Path) -> None:
    async def do(found: Asked) -> None:
        location = (await found.start("good")).headers["location"]
        await found.settled(location)
        assert (await found.client.get(f"{location}/..%2fprogram.py")).status_code in (404, 422)
        assert (await found.client.get(f"{location}/report.html")).status_code == 422
        assert (await found.client.get("/v1/experiments/runs/99/rows.csv")).status_code == 404

    asked(tmp_path, do)


def test_the_experiments_of_this_checkout_are_listed() -> None:
    async def do() -> None:
        runs = ExperimentRuns(Limits())
        try:
            found = await runs.listed()
        finally:
            await runs.stop()
        assert {"routing", "tickets", "queries"} <= {one["name"] for one in found}

    asyncio.run(do())


def test_a_process_whose_starter_is_gone_ends_by_itself() -> None:
    read, write = os.pipe()

    async def do() -> int:
        script = "from experiments.command import _end_with_starter; _end_with_starter()"
        child = await asyncio.create_subprocess_exec(sys.executable, "-c", script, stdin=read)
        os.close(write)
        async with asyncio.timeout(60):
            return await child.wait()

    assert asyncio.run(do()) == 1
    os.close(read)
