"""`eddy serve`: what it cannot do is one sentence and a way out."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from api.base import logs
from api.base.settings import is_loopback
from api.cli import app

TLS = Path(__file__).parents[3] / "e2e" / "tls"
CERT, KEY = str(TLS / "cert.pem"), str(TLS / "key.pem")


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--host", "192.0.2.1"], "no address of this machine"),
        (["--host", "no such host"], "there is no host"),
        (["--host", "0.0.0.0"], "tokens are needed"),
        (["--host", "0.0.0.0", "--token-file", "none/of/these"], "has no tokens"),
        (["--port", "70000"], "the port is 70000"),
        (["--tls-cert", CERT], "a certificate and its key"),
        (["--tls-cert", "none", "--tls-key", KEY], "there is no file none"),
        (["--tls-cert", KEY, "--tls-key", CERT], "cannot be used"),
        (["--discard-state"], "no state to discard"),
        (["--limit", "queries=none"], "the limit queries"),
        (["--max-ahead", "-1"], "max_ahead_seconds"),
        (["--log-format", "xml"], "no log format"),
        (["--log-level", "loud"], "no log level"),
    ],
)
def test_what_cannot_be_served_is_one_sentence_and_a_hint(
    flags: list[str], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:  # fmt: skip
    monkeypatch.setattr(logs, "set_up", lambda format_, level: None)  # the logs of this process belong to pytest
    done = CliRunner().invoke(app, ["serve", "--ephemeral", "--port", "0", *flags])
    error, hint = done.stderr.splitlines()
    assert done.exit_code == 1 and error.startswith("error: ") and words in error and hint.startswith("hint: ")


def test_every_flag_has_its_variable() -> None:
    shown = CliRunner().invoke(app, ["serve", "--help"], env={"COLUMNS": "300"}).stdout
    variables = {"HOST", "PORT", "DATA", "EPHEMERAL", "DISCARD_STATE", "DEMO", "TOKEN_FILE", "TLS_CERT", "TLS_KEY", "MAX_AHEAD",
        "STATE_BYTES", "LIMITS", "POLICY", "EXPIRY", "LOG_FORMAT", "LOG_LEVEL"}  # fmt: skip
    assert all(f"EDDY_{name}]" in shown for name in variables)


def test_loopback_is_told_from_the_rest() -> None:
    assert all(map(is_loopback, ("127.0.0.1", "127.9.9.9", "::1")))
    assert not any(map(is_loopback, ("0.0.0.0", "::", "192.168.1.1", "fe80::1%eth0")))
