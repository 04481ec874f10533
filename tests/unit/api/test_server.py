"""The server around the service: sockets, tokens, logs, the bounds of stopping."""

from __future__ import annotations

import asyncio
import errno
import json
import logging
import socket
import threading
from pathlib import Path

import pytest

from api.app import make_app
from api.base.limits import Limits
from api.base.logs import JsonFormatter, TextFormatter
from api.base.settings import SettingsError
from api.core import service as services
from api.core.service import Service
from api.edge.access_tokens import add_token, drop_token
from api.server import bind, open_tokens
from tests.reference.asgi import ask


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (errno.EADDRINUSE, "is taken"),
        (errno.EACCES, "may not listen"),
        (errno.EADDRNOTAVAIL, "no address"),
        (errno.EIO, "Input/"),
    ],
)
def test_each_way_not_to_listen_has_its_sentence(number: int, words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken(socket.socket):
        def bind(self, address: object) -> None:
            raise OSError(number, "Input/output error")

    monkeypatch.setattr(socket, "socket", Broken)
    with pytest.raises(SettingsError, match=words) as error:
        bind("127.0.0.1", 80)
    assert error.value.hint


def test_beyond_loopback_tokens_are_needed(tmp_path: Path) -> None:
    path = tmp_path / "tokens"
    assert open_tokens(None, True) is None
    with pytest.raises(SettingsError, match="tokens are needed"):
        open_tokens(None, False)
    add_token(path, "a", "reader")
    found = open_tokens(path, False)
    assert found is not None and len(found) == 1
    drop_token(path, "a")
    with pytest.raises(SettingsError, match="has no tokens"):
        open_tokens(path, False)
    assert open_tokens(path, True) is not None, "a token file turns tokens on, on loopback too"


# ---- a service that is not ready


def test_while_it_recovers_health_and_metrics_are_told_and_nothing_else() -> None:
    async def main() -> None:
        app = make_app(Service(None, Limits()))
        assert (await ask(app, path="/healthz")).status == 200
        for path in ("/readyz", "/v1/streams"):
            refused = await ask(app, path=path)
            assert refused.status == 503 and json.loads(refused.body)["code"] == "recovering"
        assert (await ask(app, "POST", "/v1/rows", body=[b"{}"])).status == 503
        metrics = await ask(app, path="/metrics")
        assert metrics.status == 200 and b"eddy_ready 0.0" in metrics.body.splitlines()

    asyncio.run(main())


def test_a_service_that_cannot_start_says_why_and_tells_the_server() -> None:
    async def main() -> None:
        service = Service(None, Limits(), policy="none")
        told: list[BaseException] = []
        service.on_failure = told.append
        await service.begin()
        assert service.state == "failed" and told == [service.failure]
        await service.stop()

    asyncio.run(main())


def test_stopping_gives_up_on_what_takes_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(services, "STOP", 0.05)
    ended = threading.Event()

    async def main() -> None:
        service = Service(None, Limits())
        await service.start()
        really_stop = service.core.stop
        monkeypatch.setattr(service.core, "stop", lambda: (ended.wait(60), really_stop()))
        await service.stop()
        assert service.unfinished
        ended.set()

    asyncio.run(main())


# ---- logs


def record(message: str, **fields: object) -> logging.LogRecord:
    return logging.makeLogRecord({"msg": message, "levelname": "INFO", "name": "eddy.x", "created": 0.5, "msecs": 500, **fields})


def test_logs_are_a_line_an_event_for_people_and_for_machines() -> None:
    one = record("serving", url="http://a", port=3)
    assert TextFormatter().format(one) == "1970-01-01T00:00:00.500Z info eddy.x: serving url=http://a port=3"
    assert json.loads(JsonFormatter().format(one)) == {
        "time": "1970-01-01T00:00:00.500Z", "level": "info", "logger": "eddy.x", "message": "serving",
        "url": "http://a", "port": 3,
    }  # fmt: skip


@pytest.mark.parametrize("formatter", [TextFormatter(), JsonFormatter()])
def test_what_came_from_outside_cannot_make_a_line_of_its_own(formatter: logging.Formatter) -> None:
    assert "\n" not in formatter.format(record("a\r\n1970-01-01 info: forged", field="b\nc"))
