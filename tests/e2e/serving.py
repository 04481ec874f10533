"""A real server for tests: its own process, on a free port of this machine's loopback, stopped at the end.

    with serving("--ephemeral") as server:
        httpx.get(server.url + "/v1/streams")

`serving` returns once `/readyz` says yes; a server that does not come up, or ends early, fails the test with its log. What
is started here is ended here, by its own process id.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import httpx

ROOT = Path(__file__).resolve().parents[2]
#: Seconds for a server to come up; the first one on a machine compiles kernels.
START = 180.0
#: Seconds for it to end once told to, as promised, and then some for a busy machine.
STOP = 5.0
SLACK = 10.0

_DEMO: dict[bool | None, list[str]] = {True: ["--demo"], False: ["--no-demo"], None: []}
_URL = re.compile(r"https?://[\w.\[\]:-]+:\d+")


def until(found: Callable[[], bool], seconds: float, what: str) -> None:
    """Wait until something holds; fails after some seconds."""
    deadline = time.monotonic() + seconds
    while not found():
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {seconds:.0f} s: {what}")
        time.sleep(0.02)


class Server:
    """A server process."""

    def __init__(
        self, *flags: str, env: Mapping[str, str] | None = None, port: int = 0, demo: bool | None = False
    ) -> None:  # fmt: skip
        self._out = tempfile.TemporaryFile()  # closed by `close`
        clean = {name: value for name, value in os.environ.items() if not name.startswith("EDDY_")}
        words = [sys.executable, "-m", "api.cli", "serve", "--host", "127.0.0.1", "--port", str(port), *_DEMO[demo], *flags]
        self.process = subprocess.Popen(
            words, cwd=ROOT, env={**clean, "PYTHONPATH": str(ROOT), **(env or {})}, stdout=self._out, stderr=subprocess.STDOUT
        )
        #: where it listens, as "http://127.0.0.1:port", once it says so
        self.url = ""

    @property
    def log(self) -> str:
        """What it has written so far."""
        return os.pread(self._out.fileno(), 1 << 20, 0).decode(errors="replace")

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2])

    def wait_listening(self, seconds: float = START) -> None:
        """Wait until it says where it listens."""

        def found() -> bool:
            match = _URL.search(self.log)
            if match is not None:
                self.url = match[0]
            assert match is not None or self.process.poll() is None, f"the server ended:\n{self.log}"
            return match is not None

        until(found, seconds, "the server says where it listens")

    def wait_ready(self, seconds: float = START) -> None:
        """Wait until `/readyz` says yes."""
        self.wait_listening(seconds)

        def ready() -> bool:
            assert self.process.poll() is None, f"the server ended:\n{self.log}"
            try:
                return httpx.get(self.url + "/readyz", timeout=5.0, verify=False).status_code == 200
            except httpx.TransportError:
                return False

        until(ready, seconds, "/readyz says yes")

    def signal(self, number: int = signal.SIGTERM) -> None:
        self.process.send_signal(number)

    def wait(self, seconds: float = STOP + SLACK) -> int:
        """Wait until it has ended; its exit code."""
        return self.process.wait(seconds)

    def stop(self, seconds: float = STOP + SLACK) -> int:
        """End it in good order; its exit code."""
        if self.process.poll() is None:
            self.signal()
        return self.wait(seconds)

    def kill(self) -> None:
        """End it as a power cut would."""
        self.process.kill()
        self.process.wait()

    def close(self) -> None:
        """Free what it took, and end it if it has not ended."""
        if self.process.poll() is None:
            self.kill()
        self._out.close()


@contextmanager
def serving(*flags: str, env: Mapping[str, str] | None = None, port: int = 0) -> Iterator[Server]:
    """A server that is ready, with flags of `eddy serve`; without `--data` give `--ephemeral`."""
    server = Server(*flags, env=env, port=port)
    try:
        server.wait_ready()
        yield server
    finally:
        server.close()
