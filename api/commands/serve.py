"""The command `eddy serve`: every flag has its `EDDY_*` variable."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from api.base.settings import DATA, Settings, limits_of
from eddy import EddyError

_Host = Annotated[str, typer.Option(envvar="EDDY_HOST", help="Address to serve; beyond this machine it needs --token-file.")]
_Port = Annotated[int, typer.Option(envvar="EDDY_PORT", help="Port; 0 takes one that is free.")]
_Data = Annotated[Path, typer.Option(envvar="EDDY_DATA", help="Directory that keeps what the service holds.")]
_Ephemeral = Annotated[bool, typer.Option("--ephemeral", envvar="EDDY_EPHEMERAL", help="Keep nothing on disk.")]
_Discard = Annotated[
    bool, typer.Option("--discard-state", envvar="EDDY_DISCARD_STATE", help="Keep definitions only: windows start empty.")
]
_Demo = Annotated[
    bool | None,
    typer.Option("--demo/--no-demo", envvar="EDDY_DEMO", help="Live sensors; by itself only in a new data directory."),
]
_Tokens = Annotated[
    Path | None, typer.Option(envvar="EDDY_TOKEN_FILE", help="Who may do what; `eddy token add` makes one.", dir_okay=False)
]
_Cert = Annotated[Path | None, typer.Option(envvar="EDDY_TLS_CERT", help="Certificate for https, PEM.")]
_Key = Annotated[Path | None, typer.Option(envvar="EDDY_TLS_KEY", help="Its private key, PEM.")]
_Ahead = Annotated[
    float | None, typer.Option(envvar="EDDY_MAX_AHEAD", help="Seconds that a row's time may be ahead of the clock (3600).")
]
_State = Annotated[int | None, typer.Option(envvar="EDDY_STATE_BYTES", help="Bytes that the engine may hold.")]
_Limit = Annotated[
    list[str] | None,
    typer.Option("--limit", metavar="NAME=VALUE", envvar="EDDY_LIMITS", help="Any other limit of GET /v1/limits; repeatable."),
]
_Policy = Annotated[str, typer.Option(envvar="EDDY_POLICY", help="How rows are routed.")]
_Expiry = Annotated[str, typer.Option(envvar="EDDY_EXPIRY", help="How rows leave windows.")]
_LogFormat = Annotated[str, typer.Option(envvar="EDDY_LOG_FORMAT", help="text or json, a line an event.")]
_LogLevel = Annotated[str, typer.Option(envvar="EDDY_LOG_LEVEL", help="debug, info, warning or error.")]


def serve(
    host: _Host = "127.0.0.1", port: _Port = 8000, data: _Data = DATA, ephemeral: _Ephemeral = False,
    discard_state: _Discard = False, demo: _Demo = None, token_file: _Tokens = None, tls_cert: _Cert = None,
    tls_key: _Key = None, max_ahead: _Ahead = None, state_bytes: _State = None, limit: _Limit = None,
    policy: _Policy = "auto", expiry: _Expiry = "auto", log_format: _LogFormat = "text", log_level: _LogLevel = "info",
) -> None:  # fmt: skip
    """Serve over HTTP until Ctrl-C."""
    try:
        limits = limits_of(limit or (), max_ahead_seconds=max_ahead, state_bytes=state_bytes)
        settings = Settings(
            host, port, None if ephemeral else data, discard_state, demo, token_file, tls_cert, tls_key, policy, expiry,
            log_format, log_level, limits,
        )  # fmt: skip
        settings.check()
        from api.server import serve as run

        code = run(settings)
    except EddyError as error:
        print(f"error: {error.fact}" + (f": {error.detail}" if error.detail else ""), file=sys.stderr)
        if error.hint:
            print(f"hint: {error.hint}", file=sys.stderr)
        code = 1
    raise typer.Exit(code)
