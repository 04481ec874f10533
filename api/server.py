"""The server process: opens the data directory, runs uvicorn, and shuts down in order.

uvicorn alone waits for ever for streams that never end, so the first signal ends all subscriptions; then requests under way are
finished, what waits is done, a snapshot is written. All of that takes at most `GRACE` and `STOP` seconds: whatever was
acknowledged is in the journal, so a snapshot that takes longer is left out. A second signal ends the process at once.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import gc
import logging
import os
import resource
import socket
import ssl
import sys
from pathlib import Path
from types import FrameType

import uvicorn
import uvloop

from api.app import make_app
from api.base import logs
from api.base.settings import Settings, SettingsError, is_loopback, resolve
from api.core.service import Service
from api.edge.access_tokens import Tokens
from api.edge.connections import SPARE, SocketConnection, protocol_of
from api.opening import Opening
from eddy import EddyError
from eddy.base import compile
from storage.directory import DataDirectory
from storage.disk import LocalDisk

_log = logging.getLogger("eddy.server")

#: Open files beside connections: journal, snapshots, catalog, libraries.
OTHER_FILES = 128
#: Seconds that requests under way have to end.
GRACE = 2


class Server(uvicorn.Server):
    """A uvicorn server that ends the subscriptions first when it is told to stop, and then returns an exit code."""

    def __init__(self, config: uvicorn.Config, service: Service) -> None:
        super().__init__(config)
        self._service = service

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self._service.end_subscriptions()
        self.force_exit = self.should_exit
        self.should_exit = True


def serve(settings: Settings) -> int:
    """Serve until told to stop; return the exit code."""
    logs.set_up(settings.log_format, settings.log_level)
    bound = bind(settings.host, settings.port)
    with bound:
        address = bound.getsockname()
        loopback = is_loopback(address[0])
        tokens = open_tokens(settings.token_file, loopback)
        hosts = frozenset({"localhost", "127.0.0.1", "::1", address[0], settings.host.lower()}) if loopback else None
        allow_connections(settings.limits.connections)
        directory = None
        if settings.data is not None:
            directory = DataDirectory.open(LocalDisk(settings.data), discard_state=settings.discard_state)
        # here, where it can be seen, rather than with the first engine, which would keep every request waiting
        compile.ensure()
        service = Service(directory, settings.limits, policy=settings.policy, expiry=settings.expiry)
        host = f"[{address[0]}]" if bound.family == socket.AF_INET6 else address[0]
        url = f"{'http' if settings.tls_cert is None else 'https'}://{host}:{address[1]}"
        is_new = directory is None or directory.is_new
        opening = Opening(service, settings, is_new=is_new, url=url, say=_say if settings.log_format == "text" else _quiet)
        app = make_app(service, opening.run, tokens=tokens, hosts=hosts)
        config = uvicorn.Config(
            app, http=protocol_of(settings.limits, app.state.room.refusal),
            ws=SocketConnection, ws_max_size=settings.limits.body_bytes, timeout_graceful_shutdown=GRACE,
            log_config=None, access_log=False, server_header=False, proxy_headers=False,
            ssl_certfile=settings.tls_cert, ssl_keyfile=settings.tls_key,
        )  # fmt: skip
        _load(config)
        # what is loaded by now stays: looking through it again and again would hold everything up for a tenth of a second
        gc.collect()
        gc.freeze()
        server = Server(config, service)
        service.on_failure = lambda error: setattr(server, "should_exit", True)
        _log.info("serving", extra={"url": url, "data": "none" if settings.data is None else str(settings.data)})
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(server.serve(sockets=[bound]))
        if server.force_exit:
            _log.warning("ended at once, by a second signal")
            sys.stderr.flush()
            os._exit(1)
        code = _outcome(service)
        if service.unfinished:
            # a thread still works, and nothing that it could do is needed any more
            sys.stderr.flush()
            os._exit(code)
        return code


def _say(text: str) -> None:
    """Print to standard output for the person at the terminal; logs go to standard error."""
    with contextlib.suppress(OSError):  # nobody reads it any more
        print(text, flush=True)


def _quiet(text: str) -> None:
    """Print nothing: the reader is a machine and reads the log."""


def open_tokens(path: Path | None, loopback: bool) -> Tokens | None:
    """Return the tokens of the file; without a file only loopback addresses may be served."""
    tokens = None if path is None else Tokens(path)
    if not loopback and not tokens:
        fact = "beyond this machine tokens are needed" if path is None else f"the token file {path} has no tokens"
        hint = "`eddy token add NAME --role writer --token-file FILE`, then --token-file FILE; or --host 127.0.0.1"
        raise SettingsError(fact, code="no_tokens", hint=hint)
    return tokens


def allow_connections(n: int) -> None:
    """Raise this process's limit of open files so that `n` connections fit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = n + SPARE + OTHER_FILES
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted if hard == resource.RLIM_INFINITY else min(wanted, hard), hard))
        if hard != resource.RLIM_INFINITY and hard < wanted:
            _log.warning("the system allows fewer open files than connections", extra={"files": hard, "connections": n})


def _outcome(service: Service) -> int:
    failure = service.failure
    if failure is None:
        _log.info("stopped")
        return 0
    if isinstance(failure, EddyError):
        raise failure
    _log.error("failed", extra={"reason": str(failure)})
    return 1


def _load(config: uvicorn.Config) -> None:
    """Load uvicorn's configuration with the certificate, or raise `SettingsError`."""
    try:
        config.load()
    except (ssl.SSLError, OSError) as error:
        fact = "the certificate and its key cannot be used"
        raise SettingsError(fact, detail=str(error), hint="--tls-cert and --tls-key are PEM files that belong together") from None


def bind(host: str, port: int) -> socket.socket:
    """Return a socket bound to an address, or raise `SettingsError` with a hint."""
    family, address = resolve(host, port)
    bound = socket.socket(family, socket.SOCK_STREAM)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(address)
    except OSError as error:
        bound.close()
        where = f"{host}:{port}"
        if error.errno == errno.EADDRINUSE:
            fact, hint = f"the port of {where} is taken", "another eddy may be running; --port 0 takes one that is free"
        elif error.errno == errno.EACCES:
            fact, hint = f"this user may not listen at {where}", "ports from 1024 on need no permission: --port 8000"
        elif error.errno == errno.EADDRNOTAVAIL:
            fact, hint = f"{host} is no address of this machine", "--host 127.0.0.1 is for this machine, 0.0.0.0 for all"
        else:
            fact, hint = f"it is not possible to listen at {where}: {error.strerror}", "see --host and --port"
        raise SettingsError(fact, code="cannot_listen", hint=hint) from None
    bound.set_inheritable(False)
    return bound
