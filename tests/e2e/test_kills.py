"""A server that is killed again and again under load loses nothing that it acknowledged, and shows every change once.

Two clients go on through the kills, as clients do: a writer that sends each row until it is acknowledged, with an idempotency
key, and a reader that follows a query and goes on from its last cursor. At the end there is one row for every row written, in
order, in the reader's hands and in the answer.
"""

from __future__ import annotations

import json
import random
import threading
import time
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.e2e.serving import Server
from tests.reference.seeds import amount

#: Seconds for everything that should happen at once, on a busy machine.
PATIENCE = 120.0


class Writer(threading.Thread):
    """Sends row n = 0, 1, 2, .. each until it is acknowledged."""

    def __init__(self, url: str) -> None:
        super().__init__(daemon=True)
        self.url = url
        self.acknowledged = 0
        self.ends = threading.Event()
        self.broken: str | None = None

    def run(self) -> None:
        with httpx.Client(base_url=self.url, timeout=10.0) as client:
            while not self.ends.is_set():
                n = self.acknowledged
                row = {"n": n, "ts": 1000 + n}
                try:
                    answer = client.post("/v1/streams/s/rows", json=row, headers={"Idempotency-Key": f"row-{n}"})
                except httpx.TransportError:
                    self.ends.wait(0.02)
                    continue
                if answer.status_code == 202:
                    if answer.json()["first_row"] != n:
                        self.broken = f"row {n} was accepted as row {answer.json()['first_row']}"
                        return
                    self.acknowledged = n + 1
                elif answer.status_code not in (429, 503):
                    self.broken = f"row {n}: {answer.status_code} {answer.text}"
                    return


class Reader(threading.Thread):
    """Follows a query; keeps a commit when progress says that it is whole."""

    def __init__(self, url: str, query: str) -> None:
        super().__init__(daemon=True)
        self.url, self.query = url, query
        self.cursor: int | str = "now"
        self.changes: list[dict[str, Any]] = []
        self.ends = threading.Event()
        self.broken: str | None = None

    def run(self) -> None:
        path = f"/v1/queries/{self.query}/changes"
        while not self.ends.is_set():
            waiting: list[dict[str, Any]] = []
            try:
                with (
                    httpx.Client(base_url=self.url, timeout=httpx.Timeout(10.0, read=30.0)) as client,
                    client.stream("GET", path, params={"since": self.cursor, "format": "ndjson"}) as answer,
                ):
                    if answer.status_code != 200:
                        if answer.status_code != 503:
                            self.broken = f"{answer.status_code} {answer.read().decode()}"
                            return
                        self.ends.wait(0.05)
                        continue
                    for line in answer.iter_lines():
                        message = json.loads(line)
                        if "progress" in message:
                            self.changes += waiting
                            waiting, self.cursor = [], message["progress"]
                        elif "seq" in message:
                            waiting.append(message)
                        elif "gap" in message:
                            self.broken = f"a gap: {message}"
                            return
                        if self.ends.is_set():
                            return
            except httpx.TransportError:
                self.ends.wait(0.02)


def start(data: Path, port: int) -> Server:
    server = Server("--data", str(data), port=port)
    server.wait_ready()
    return server


def wait_for(holds: Any, what: str, *threads: Any) -> None:
    deadline = time.monotonic() + PATIENCE
    while not holds():
        for thread in threads:
            assert thread.broken is None, thread.broken
        assert time.monotonic() < deadline, what
        time.sleep(0.01)


def run_kills(data: Path, cycles: int, seed: int) -> None:
    chance = random.Random(seed)
    server = start(data, 0)
    url, port = server.url, server.port
    try:
        with httpx.Client(base_url=url, timeout=30.0) as client:
            columns = {"columns": {"n": "int", "ts": "timestamp"}, "time": "ts"}
            assert client.put("/v1/streams/s", json=columns).status_code == 201
            for definition in (
                {"name": "rows", "sql": "SELECT n FROM s"},
                {"name": "count", "sql": "SELECT COUNT(*) AS c, SUM(n) AS total FROM s [RANGE UNBOUNDED]"},
            ):
                assert client.post("/v1/queries", json=definition).status_code == 201
        writer, reader, counts = Writer(url), Reader(url, "rows"), Reader(url, "count")
        counts.cursor = "snapshot"
        for thread in (reader, counts):
            thread.start()
        wait_for(lambda: reader.cursor != "now" and counts.cursor != "snapshot", "the readers begin", reader, counts)
        writer.start()
        for _ in range(cycles):
            before = writer.acknowledged
            wanted = before + chance.randrange(1, 40)
            wait_for(lambda wanted=wanted: writer.acknowledged >= wanted, "rows are acknowledged", writer, reader, counts)  # type: ignore[misc]
            server.kill()
            server.close()
            server = start(data, port)
        writer.ends.set()
        writer.join(PATIENCE)
        n = writer.acknowledged
        assert writer.broken is None and not writer.is_alive(), writer.broken
        with httpx.Client(base_url=url, timeout=30.0) as client:
            answer = client.get("/v1/queries/count/answer").json()
        # the last row may have been taken though its acknowledgement was lost
        taken = answer["rows"][0]["c"]
        assert taken in (n, n + 1) and answer["rows"][0]["total"] == taken * (taken - 1) // 2
        wait_for(lambda: len(reader.changes) >= taken, "the reader has all", reader)
        assert [change["row"]["n"] for change in reader.changes] == list(range(taken)), "each row once, in order"
        wait_for(lambda: bool(counts.changes) and counts.changes[-1]["row"]["c"] == taken, "the counts come to the end", counts)
        shown: dict[tuple[Any, ...], int] = {}
        for change in counts.changes:
            key = tuple(change["row"].values())
            shown[key] = shown.get(key, 0) + change["sign"]
            assert shown[key] in (0, 1), "nothing is taken back that was not there, nothing comes twice"
        assert [key for key, times in shown.items() if times] == [(taken, taken * (taken - 1) // 2)]
        seqs = [change["seq"] for change in reader.changes]
        assert seqs == sorted(set(seqs)), "numbers of commits only grow, over all restarts"
    finally:
        for one in ("writer", "reader", "counts"):
            if one in locals():
                locals()[one].ends.set()
        server.close()


@pytest.mark.slow
def test_nothing_is_lost_or_repeated_in_many_kills(tmp_path: Path) -> None:
    run_kills(tmp_path / "data", amount(2, long=50), 2)
