"""A server to load: its own process on a free port of the loopback, with a data directory of its own, ended at the end."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import websockets.sync.client

#: Seconds for a server to come up.
START = 120.0
#: Files that are there are in memory: a sync costs nothing, so that nobody's disk is measured.
MEMORY = Path("/dev/shm")
_URL = re.compile(r"http://127\.0\.0\.1:\d+")


class Running:
    """A server, and a client of it."""

    def __init__(self, url: str, process: subprocess.Popen[bytes]) -> None:
        self.url = url
        self._process = process
        self.client = httpx.Client(base_url=url, timeout=60.0)

    def define(self, n_queries: int) -> float:
        """A stream and queries over it, one of them for marked rows; the seconds that the batch of queries took."""
        columns = {"columns": {"n": "int", "price": "float", "size": "int"}}
        self.client.put("/v1/streams/ticks", json=columns).raise_for_status()
        queries = [
            {"sql": "SELECT price FROM ticks WHERE price > :p AND size > :s", "params": {"p": 99 - i % 7 / 10, "s": i % 900}}
            for i in range(n_queries - 1)
        ]
        self.client.post("/v1/queries", json={"name": "marked", "sql": "SELECT n FROM ticks WHERE n > 0"}).raise_for_status()
        began = time.perf_counter()
        self.client.post("/v1/queries/batch", json={"queries": queries}).raise_for_status()
        return time.perf_counter() - began

    def send(self, format_: str, n_rows: int, seconds: float, rate: float = 0.0) -> dict[str, Any]:
        """Load it from another process."""
        words = [sys.executable, "-m", "experiments.bench.service.sender", self.url, format_]
        with subprocess.Popen([*words, str(n_rows), str(seconds), str(rate)], stdout=subprocess.PIPE) as sender:
            _keep_to(sender.pid, 1)
            try:
                printed, _ = sender.communicate(timeout=seconds + 120)
            except subprocess.TimeoutExpired:
                sender.kill()
                raise
        if sender.returncode:
            raise RuntimeError("the sender failed")
        found: dict[str, Any] = json.loads(printed)
        return found

    @contextmanager
    def stalled(self, query: str) -> Iterator[None]:
        """A subscriber of a query that never reads."""
        host, port = self.url.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port)), timeout=30) as reader:
            reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            path = f"/v1/queries/{query}/changes?since=now&format=ndjson"
            reader.sendall(f"GET {path} HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n".encode())
            reader.recv(1)
            yield

    @contextmanager
    def watched(self, n: int) -> Iterator[None]:
        """Readers of all changes of a query, by SSE and by WebSocket, who have got their first answer."""
        self.client.put("/v1/streams/idle", json={"columns": {"n": "int"}}).raise_for_status()
        self.client.put("/v1/queries/silent", json={"sql": "SELECT n FROM idle"}).raise_for_status()
        with contextlib.ExitStack() as stack:
            for _ in range(n):
                request = httpx.stream("GET", f"{self.url}/v1/queries/silent/changes", timeout=60.0)
                next(stack.enter_context(request).iter_bytes())
                socket_ = stack.enter_context(websockets.sync.client.connect(f"ws{self.url.removeprefix('http')}/v1/ws"))
                socket_.send('{"subscribe": {"id": 1, "query": "silent"}}')
                socket_.recv(60.0)
            yield

    def stop(self, signal_: signal.Signals) -> tuple[float, int]:
        """Tell the process to end; the seconds until it has, and its exit code."""
        began = time.perf_counter()
        self._process.send_signal(signal_)
        code = self._process.wait(60.0)
        return time.perf_counter() - began, code

    @contextmanager
    def dribbling(self, n: int) -> Iterator[None]:
        """Connections that begin a request and never end it."""
        host, port = self.url.removeprefix("http://").split(":")
        sockets = []
        try:
            for _ in range(n):
                one = socket.create_connection((host, int(port)), timeout=30)
                sockets.append(one)
                one.sendall(
                    f"POST /v1/streams/ticks/rows HTTP/1.1\r\nHost: {host}:{port}\r\nContent-Length: 100000\r\n\r\n[".encode()
                )
            yield
        finally:
            for one in sockets:
                one.close()


@contextmanager
def running(*, in_memory: bool = False) -> Iterator[Running]:
    """A server that is ready; `in_memory`: its files are, if the machine has a place for that."""
    place = MEMORY if in_memory and MEMORY.is_dir() else None
    with tempfile.TemporaryDirectory(dir=place) as folder, tempfile.TemporaryFile() as log:
        words = ["-m", "api.cli", "serve", "--port", "0", "--no-demo", "--data", str(Path(folder) / "data")]
        with subprocess.Popen([sys.executable, *words], stdout=log, stderr=subprocess.STDOUT) as process:
            _keep_to(process.pid, 0)
            try:
                found = Running(_wait(process, log.fileno()), process)
                try:
                    yield found
                finally:
                    found.client.close()
            finally:
                process.terminate()
                try:
                    process.wait(15)
                except subprocess.TimeoutExpired:
                    process.kill()


def _keep_to(pid: int, core: int) -> None:
    """Server and sender have a core each, whatever the load: else an idle sender would lend the server its own."""
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) > 1:
        os.sched_setaffinity(pid, {cores[core % len(cores)]})


def _wait(process: subprocess.Popen[bytes], log: int) -> str:
    deadline = time.monotonic() + START
    while time.monotonic() < deadline:
        text = os.pread(log, 1 << 20, 0).decode(errors="replace")
        if process.poll() is not None:
            raise RuntimeError(f"the server ended:\n{text}")
        found = _URL.search(text)
        if found is not None:
            try:
                if httpx.get(found[0] + "/readyz", timeout=5.0).status_code == 200:
                    return found[0]
            except httpx.TransportError:
                pass
        time.sleep(0.05)  # between two looks; the loop has an end
    raise RuntimeError("the server does not come up")
