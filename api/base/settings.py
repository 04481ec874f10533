"""Settings of a service: flags of `eddy serve`, or `EDDY_*` in the environment; a flag wins."""

from __future__ import annotations

import dataclasses
import ipaddress
import socket
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from api.base.limits import FIXED, Limits
from eddy import EddyError

#: Where a service keeps what it holds unless it is told otherwise.
DATA = Path("eddy-data")
LOG_FORMATS = ("text", "json")
LOG_LEVELS = ("debug", "info", "warning", "error")


class SettingsError(EddyError):
    """The service cannot be started with these settings."""

    default_code = "bad_setting"


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings given to `eddy serve`."""

    host: str = "127.0.0.1"
    #: 0: any that is free
    port: int = 8000
    #: None: nothing is kept
    data: Path | None = None
    #: keep the definitions of the data directory and nothing else
    discard_state: bool = False
    #: None: in a new data directory
    demo: bool | None = None
    token_file: Path | None = None
    tls_cert: Path | None = None
    tls_key: Path | None = None
    policy: str = "auto"
    expiry: str = "auto"
    log_format: str = "text"
    log_level: str = "info"
    limits: Limits = field(default_factory=Limits)

    def check(self) -> None:
        """Raise `SettingsError` for the first setting that cannot be served."""
        if not 0 <= self.port <= 65535:
            raise SettingsError(f"the port is {self.port}", hint="--port is a number from 1 to 65535, or 0 for any that is free")
        if self.data is None and self.discard_state:
            raise SettingsError("an ephemeral service has no state to discard", hint="leave one of the two flags out")
        if (self.tls_cert is None) != (self.tls_key is None):
            raise SettingsError("TLS needs a certificate and its key", hint="give both --tls-cert and --tls-key")
        for flag, path in (("--tls-cert", self.tls_cert), ("--tls-key", self.tls_key)):
            if path is not None and not path.is_file():
                raise SettingsError(f"there is no file {path}", hint=f"{flag} names a file")
        for name, word, words in (("format", self.log_format, LOG_FORMATS), ("level", self.log_level, LOG_LEVELS)):
            if word not in words:
                raise SettingsError(f'there is no log {name} "{word}"', hint=f"one of {', '.join(words)}")


def limits_of(words: Iterable[str], **named: float | None) -> Limits:
    """Return the default limits, changed by `name=value` words and by named values."""
    found: dict[str, float] = {}
    known = {one.name: one for one in dataclasses.fields(Limits) if one.name not in FIXED}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or name not in known:
            raise SettingsError(f'there is no limit "{name}" to set', hint=f"--limit NAME=VALUE, of {', '.join(known)}")
        try:
            found[name] = float(value) if known[name].type == "float" else int(value)
        except ValueError:
            kind = "number" if known[name].type == "float" else "whole number"
            raise SettingsError(f'the limit {name} is "{value}"', hint=f"a {kind} above 0") from None
    found |= {name: value for name, value in named.items() if value is not None}
    for name, number in found.items():
        if not 0 < number < float("inf"):
            raise SettingsError(f"the limit {name} is {number}", hint="a number above 0")
    return Limits(**found)  # type: ignore[arg-type]  # the types were just checked


def resolve(host: str, port: int) -> tuple[socket.AddressFamily, tuple[str, int]]:
    """Return the socket address of a host name and a port."""
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
    except (OSError, UnicodeError):
        raise SettingsError(f'there is no host "{host}"', hint="--host is an address or a name of this machine") from None
    return family, (str(address[0]), int(address[1]))


def is_loopback(address: str) -> bool:
    """Return whether an address can be reached from this machine only."""
    return ipaddress.ip_address(address.partition("%")[0]).is_loopback
